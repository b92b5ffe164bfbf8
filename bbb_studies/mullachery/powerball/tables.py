"""The tables that the Powerball study prints (D37)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    listed,
    table,
    table_of_columns,
)
from bbb_studies.data import powerball as data

from .coverage import LEVELS, Coverage, covered, intervals, undecided
from .models import BAYESIAN, PRINTED, Fitted, Setup, logit
from .positions import dispersion, positions
from .scores import RULE, Interval, Scores

__all__ = ["CONFUSION", "claims_of_the_paper", "lay_out"]

SHOWN = (0, 1, 3, 5, 10, 14, 17, 18, 20, 25, 30, 40, 50, 60, 69)  # of the numbers
CONFUSION = (0.26, 0.068)  # the paper's: bin-3 balls called bin 1, and the other way round
NETWORK, UNITS = BAYESIAN[0], Setup().hidden


def lay_out(
    draws: data.Draws,
    exact: data.Exact,
    scores: Mapping[str, Scores],
    full: Mapping[str, Fitted],
    zero: Mapping[float, Fitted],
    coverage: Mapping[str, Coverage],
    setup: Setup,
    sizes: Mapping[str, int],
) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    at_zero = _at_zero(full, zero, setup)
    parts = {
        "Powerball: is a ball w1 (bin 1) or w3 (bin 3) of its draw? In brackets standard errors.": (
            _game(draws, exact, sizes)
        ),
        "Accuracy (%) held out by cross-validation over whole draws (standard error over draws); "
        "less the exact\nrule's on the same balls; below the ceiling in standard errors; in the "
        "long run (deviation between fits).": _accuracy(scores, exact.accuracy),
        "Log loss in nats, probabilities kept 1e-6 from 0 and 1; RMSE of P(bin 1 | number) over "
        "the balls as they\ncome; ECE: expected calibration error in ten bins, of the exact rule "
        "by chance alone.": _probabilities(scores),
        "How many % of the exact probabilities the credible intervals hold, numbers as often as "
        "they come and each\nonce: on data sets played by the rules (standard error), and on the "
        "real draws.": _intervals(full, coverage, exact),
        "P(bin 1 | number) from all draws, with 95 % credible intervals, each marked.": (
            _numbers(full, exact)
        ),
        "P(bin 1 | 0), with 95 % credible interval and deviation; 'bin 3': functions that say so "
        "at 0; long: all draws.": _zero(at_zero),
    }
    drawn = {name: one for name, one in full.items() if one.rhat is not None}
    wide = widths(full[NETWORK], setup.chains)[0]
    return "\n\n".join(
        [
            _positions(draws),
            captioned(parts),
            _chains(drawn, scores, exact.limit),
            _widths(full, setup.chains),
            claims(
                "In brackets standard errors; s.e.: what is printed from held-out draws.",
                "the paper",
                claims_of_the_paper(exact, scores, at_zero, wide),
            ),
        ]
    )


def _positions(draws: data.Draws) -> str:
    return listed(
        "Where the numbers lie (unsorted: a random order, the file has sorted draws), and by the "
        "rules.\nOf a Poisson distribution the variance over the mean is 1.",
        "numbers",
        ((one.name, one) for one in positions(draws)),
        {
            "mean": lambda one: f"{one.seen.mean():.2f}",
            "by the rules": lambda one: f"{one.mean:.2f}",
            "s.e. off": lambda one: f"{(one.seen.mean() - one.mean) / one.error:+.1f}",
            "variance / mean": lambda one: f"{one.seen.var() / one.seen.mean():.1f}",
            "of the rules": lambda one: f"{dispersion(one.mass):.1f}",
        },
    )


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def _interval(part: Interval, digits: int = 2) -> str:
    return f"{_percent(part.mean, digits)} ({_percent(part.error, digits)})"


def _fine(part: Interval) -> str:
    return f"{part.mean:.4f} ({part.error:.4f})"


def _game(draws: data.Draws, exact: data.Exact, sizes: Mapping[str, int]) -> str:
    rows = [
        ("draws, two balls of each", f"{len(draws.days)}"),
        ("first", f"{draws.days[0]}"),
        ("last", f"{draws.days[-1]}"),
    ]
    for balls, share in exact.shares.items():
        rule = data.exact(balls)
        rows += [
            (f"{balls} balls: share of the draws, %", _percent(share, 1)),
            (f"{balls} balls: ceiling of accuracy, %", _percent(rule.accuracy)),
            (f"{balls} balls: bin 1 up to", f"{rule.limit}"),
        ]
    rows += [
        ("not told which: ceiling of accuracy, %", _percent(exact.accuracy)),
        ("not told which: bin 1 up to", f"{exact.limit}"),
        ("not told which: least log loss, nats", f"{exact.log_loss:.4f}"),
        ("luck of the perfect classifier, points", _percent(_luck(exact, len(draws.days)))),
        ("numbers that either bin can hold", f"{len(undecided(exact))}"),
        ("folds of the cross-validation", f"{sizes['folds']}"),
        ("repeats of the cross-validation", f"{sizes['repeats']}"),
        ("data sets played by the rules, as large", f"{sizes['sets']}"),
    ]
    return table(("the game", "value"), rows)


def _luck(exact: data.Exact, draws: int) -> float:
    """Return the deviation of the perfect classifier's accuracy on so many draws."""
    return float(exact.draw_deviation / np.sqrt(draws))


def _accuracy(scores: Mapping[str, Scores], ceiling: float) -> str:
    every = scores.values()
    columns = {
        "accuracy, %": list(scores),
        "printed": [_percent(PRINTED[name]) if name in PRINTED else "-" for name in scores],
        "held out": [_interval(s.accuracy) for s in every],
        "above rule": [
            "-" if name == RULE else _interval(s.above_rule) for name, s in scores.items()
        ],
        "below ceiling": [f"{(ceiling - s.accuracy.mean) / s.accuracy.error:.1f}" for s in every],
        "under the rules": [_interval(s.true_accuracy, 3) for s in every],
        "s/fit": [f"{s.seconds:.2f}" for s in every],
    }
    return table_of_columns(columns)


def _probabilities(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "probabilities": list(scores),
        "log loss held out": [_fine(s.log_loss) for s in every],
        "under the rules": [_fine(s.true_log_loss) for s in every],
        "RMSE of p": [_fine(s.rmse) for s in every],
        "ECE": [f"{s.calibration_error:.4f}" for s in every],
    }
    return table_of_columns(columns)


def _functions(fitted: Fitted) -> NDArray[Any]:
    assert fitted.functions is not None  # as of every network
    return fitted.functions


def _intervals(
    full: Mapping[str, Fitted], coverage: Mapping[str, Coverage], exact: data.Exact
) -> str:
    widest, every = LEVELS[-1], coverage.values()
    here = [covered(_functions(full[name]), exact)[widest] for name in coverage]
    columns = {"intervals hold, %": list(coverage)}
    for level in LEVELS:
        columns[f"{level:.0%}"] = [_interval(c[level][1], 0) for c in every]
    columns[f"{widest:.0%} of numbers"] = [_interval(c[widest][0], 0) for c in every]
    columns[f"{widest:.0%} here"] = [_percent(balls, 0) for _, balls in here]
    columns["numbers here"] = [_percent(numbers, 0) for numbers, _ in here]
    return table_of_columns(columns)


def _numbers(full: Mapping[str, Fitted], exact: data.Exact) -> str:
    truth = dict(enumerate(exact.probability))
    known = [truth.get(number, np.nan) for number in SHOWN]
    columns = {
        "number": [f"{number}" for number in SHOWN],
        "exact": ["no ball" if np.isnan(p) else f"{p:.4f}" for p in known],
    }
    for name in BAYESIAN[:3]:
        lows, highs = intervals(_functions(full[name]), LEVELS[-1])
        found = full[name].probability
        columns[name] = [
            f"{found[v]:.3f} [{lows[v]:.3f}, {highs[v]:.3f}] {_mark(p, lows[v], highs[v]):>5}"
            for v, p in zip(SHOWN, known, strict=True)
        ]
    return table_of_columns(columns)


def _mark(truth: float, low: float, high: float) -> str:
    if not 0 < truth < 1:  # nan, too: no network says exactly 0 or 1
        return "-"
    return "right" if low <= truth <= high else "WRONG"


def _at_zero(
    full: Mapping[str, Fitted], zero: Mapping[float, Fitted], setup: Setup
) -> dict[str, Fitted]:
    """Return the networks that are asked for number 0, by what they are called."""
    short = {f"{NETWORK}, log(v + {offset:g})": fitted for offset, fitted in zero.items()}
    return short | {f"{name}, log(v + {setup.offset:g}), long": full[name] for name in BAYESIAN}


def _zero(asked: Mapping[str, Fitted]) -> str:
    functions = [_functions(fitted) for fitted in asked.values()]
    ends = [[end[0] for end in intervals(f, LEVELS[-1])] for f in functions]
    deviations = [f.std(axis=0) for f in functions]
    columns = {
        "number 0": list(asked),
        "P(bin 1)": [f"{fitted.probability[0]:.4f}" for fitted in asked.values()],
        "95 %": [f"{low:.4f} to {high:.4f}" for low, high in ends],
        "deviation": [f"{d[0]:.4f}" for d in deviations],
        "largest, 1-69": [f"{d[1:].max():.4f} at {1 + np.argmax(d[1:])}" for d in deviations],
        "of logit": [f"{logit(f[:, 0]).std():.2f}" for f in functions],
        "bin 3, %": [_percent(float((f[:, 0] < 0.5).mean())) for f in functions],
        "R-hat": [
            "-" if fitted.rhat is None else f"{fitted.rhat[0]:.2f}" for fitted in asked.values()
        ],
    }
    return table_of_columns(columns)


def _chains(drawn: Mapping[str, Fitted], scores: Mapping[str, Scores], limit: int) -> str:
    return listed(
        "R-hat of the logit and of the worst weight, divergences: all draws, and at worst in the "
        "short chains (cv).",
        "chains",
        ((name, (one, scores[name])) for name, one in drawn.items()),
        {
            f"at {limit}": lambda both: f"{both[0].rhat[limit]:.3f}",
            "any ball": lambda both: f"{both[0].rhat[1:].max():.2f}",
            "weight": lambda both: f"{both[0].weight_rhat:.2f}",
            "divergences": lambda both: f"{both[0].divergent} of {len(both[0].weights)}",
            f"cv: at {limit}": lambda both: f"{both[1].rhat[0]:.3f}",
            "cv: any ball": lambda both: f"{both[1].rhat[1]:.2f}",
            "cv: divergences": lambda both: f"{both[1].divergent}",
        },
    )


def widths(fitted: Fitted, chains: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the deviation of every weight (P,): in the first chain, and over all of them."""
    assert fitted.weights is not None  # as of every network
    return fitted.weights[::chains].std(axis=0), fitted.weights.std(axis=0)


def _widths(full: Mapping[str, Fitted], chains: int) -> str:
    rows = {}
    for name, fitted in full.items():
        if fitted.rhat is not None:
            rows[f"{name}, one chain"], rows[f"{name}, all chains"] = widths(fitted, chains)
        elif fitted.weights is not None:
            rows[name] = fitted.weights.std(axis=0)
    return listed(
        "Deviations of single weights. Units can be exchanged: by the exact posterior all weights "
        "of a block\nare equally wide, one chain need not have gone round.",
        "weights",
        rows.items(),
        {
            "narrowest": lambda of: f"{of.min():.2f}",
            "widest": lambda of: f"{of.max():.2f}",
            "of W0": lambda of: f"{of[:UNITS].min():.2f} to {of[:UNITS].max():.2f}",
        },
    )


def claims_of_the_paper(
    exact: data.Exact,
    scores: Mapping[str, Scores],
    asked: Mapping[str, Fitted],
    wide: NDArray[Any],
) -> list[Claim]:
    """Judge the printed accuracies, the printed confusion, the sentences about 0 and the weights.

    `asked` are the networks that are asked for number 0, `wide` the deviations of single weights.
    """
    found = []
    for name, printed in PRINTED.items():
        here = scores[name].accuracy
        off = abs(here.mean - printed) / here.error
        found.append(Claim(f"accuracy of {name}, %", _percent(printed), _interval(here), off))
    best, ceiling, network = max(PRINTED.values()), exact.accuracy, PRINTED[NETWORK]
    implied = 1.0 - sum(CONFUSION) / 2.0  # with as many balls of either bin, as there are
    share = (1.0 - network - CONFUSION[1]) / (CONFUSION[0] - CONFUSION[1])
    first, third = (2.0 * np.cumsum(exact.mass[label]) for label in (1, 0))
    cut = int(np.argmin(np.abs(third - CONFUSION[0])))
    shares, of_cut = (
        f"{_percent(one, 1)} and {_percent(other, 1)}"
        for one, other in (CONFUSION, (third[cut], 1.0 - first[cut]))
    )
    deviations = [_functions(fitted).std(axis=0) for fitted in asked.values()]
    ratios = np.array([d[0] / d[1:].max() for d in deviations])
    more, networks = int((ratios > 1).sum()), len(ratios)
    spread = [dispersion(2.0 * exact.mass[label]) for label in (1, 0)]  # a bin each
    above, same = _percent(best - ceiling), _percent(network) == _percent(implied)
    rows = [
        (f"false positives and negatives, %; here bin 1 up to {cut}", shares, of_cut,
         cut == exact.limit),
        ("uncertainty at 0", "'extremely high'", f"largest in {more} of {networks} networks",
         more == networks),
        ("weights, by their deviations", "'very narrow', 'wide'",
         f"{wide.min():.2f} to {wide.max():.2f}", bool(wide.max() > 2.0 * wide.min())),
        ("bins 1 and 3", "'Poisson-like'", "variance / mean {:.1f}, {:.1f}".format(*spread),
         max(spread) < 2.0),
    ]  # fmt: skip
    inputs = wide[:UNITS].max() / wide[:UNITS].min()
    ours = [
        ("input weights of units, widest over narrowest", "1", f"{inputs:.2f}", inputs < 1.2),
        ("the best printed accuracy, points above the ceiling", "<= 0", above, best <= ceiling),
        ("the network's accuracy by its confusion, %", _percent(network), _percent(implied), same),
        ("for that: held-out balls in bin 3, %", "50", _percent(share, 0), abs(share - 0.5) < 0.01),
    ]
    return [*found, *(Claim(*row) for row in rows), *(Claim(*row, True) for row in ours)]

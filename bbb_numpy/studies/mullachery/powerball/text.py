"""What the numbers of the Powerball study say (D37)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bbb_numpy.data import powerball as data
from bbb_numpy.studies.comparing import table

from .coverage import LEVELS, covered, intervals, undecided
from .models import BAYESIAN, PRINTED, Fitted, Setup, logit
from .scores import RULE, Interval, Scores

__all__ = ["Study", "write"]

SHOWN = (0, 1, 3, 5, 10, 14, 17, 18, 20, 25, 30, 40, 50, 60, 69)  # in the table
CONFUSION = (0.26, 0.068)  # the paper's: bin-3 balls called bin 1, and the other way round
NETWORK = BAYESIAN[0]


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was computed."""

    draws: data.Draws
    exact: data.Exact
    scores: Mapping[str, Scores]
    full: Mapping[str, Fitted]
    zero: Mapping[float, Fitted]
    coverage: Mapping[str, Mapping[float, tuple[Interval, Interval]]]
    sizes: Mapping[str, int]
    setup: Setup


def write(study: Study) -> str:
    """Return the text."""
    parts = (_game, _accuracy, _forecasts, _intervals, _numbers, _zero, _confusion, _chains)
    return "\n\n".join(part(study) for part in parts)


def _paragraph(*sentences: str) -> str:
    return textwrap.fill(" ".join(sentences), 98)


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def _interval(part: Interval, digits: int = 2) -> str:
    return f"{100 * part.mean:.{digits}f} ({100 * part.error:.{digits}f})"


def _game(study: Study) -> str:
    days, exact = study.draws.days, study.exact
    each = ", ".join(
        f"{balls} balls {share:.1%} of them: {_percent(data.exact(balls).accuracy)} % "
        f"(bin 1 up to {data.exact(balls).limit})"
        for balls, share in exact.shares.items()
    )
    return _paragraph(
        f"Powerball, {len(days)} draws from {days[0]} to {days[-1]}, two examples each: w1 (bin 1)",
        f"and w3 (bin 3). The most that a classifier can reach (D37): {each};",
        f"not told which rule, {_percent(exact.accuracy)} %. Least log loss",
        f"{exact.log_loss:.4f} nats. The perfect classifier scatters on so many draws by",
        f"{_percent(exact.draw_deviation / np.sqrt(len(days)))} points.",
    )


def _accuracy(study: Study) -> str:
    sizes, rows = study.sizes, []
    for name, found in study.scores.items():
        rows.append(
            [
                name,
                _percent(PRINTED[name]) if name in PRINTED else "-",
                _interval(found.accuracy),
                f"{100 * (found.accuracy.mean - 1.96 * found.accuracy.error):.1f} to "
                f"{100 * (found.accuracy.mean + 1.96 * found.accuracy.error):.1f}",
                "-" if name == RULE else _interval(found.above_rule),
                _interval(found.true_accuracy),
                f"{found.seconds:.2f}",
            ]
        )
    head = ["accuracy, %", "printed", "held out", "95 %", "above rule", "under the rules", "s/fit"]
    net, rule = study.scores[NETWORK], study.scores[RULE]
    ceiling, short = study.exact.accuracy, study.exact.accuracy - net.true_accuracy.mean
    below = (ceiling - net.accuracy.mean) / net.accuracy.error
    apart = abs(net.above_rule.mean) / net.above_rule.error if net.above_rule.error else 0.0
    return "\n".join(
        [
            table(head, rows),
            "",
            _paragraph(
                f"Held out: {sizes['repeats']} x {sizes['folds']}-fold cross-validation, whole",
                "draws in one fold. In brackets the standard error over draws (the scores of one",
                "draw averaged first); above rule: minus the exact rule's on the same balls;",
                "under the rules: the accuracy that the fitted classifiers have in the long run,",
                "computed by the exact probabilities, and its deviation between fits.",
            ),
            _paragraph(
                f"These draws were {'un' if rule.accuracy.mean < ceiling else ''}lucky: the exact",
                f"rule itself has {_percent(rule.accuracy.mean)} % on them.",
                f"The network ({NETWORK}) is {below:.1f} standard errors below the",
                f"ceiling of {_percent(ceiling)} % on held-out draws"
                f" ({_within(abs(below))}), {apart:.1f} from the exact rule on",
                f"the same balls ({_within(apart)}); in the long run it falls",
                f"{_percent(short, 3)} points short of the ceiling (deviation between fits",
                f"{_percent(net.true_accuracy.error, 3)}).",
                f"The printed 84.93 % is {_percent(PRINTED['Gaussian process'] - ceiling)} points",
                "above the ceiling, which nothing but luck can be.",
            ),
        ]
    )


def _within(errors: float) -> str:
    return "within one" if errors <= 1 else "within two" if errors <= 2 else "NOT within two"


def _forecasts(study: Study) -> str:
    rows = [
        [
            name,
            f"{found.log_loss.mean:.4f} ({found.log_loss.error:.4f})",
            f"{found.true_log_loss.mean:.4f} ({found.true_log_loss.error:.4f})",
            f"{found.rmse.mean:.4f} ({found.rmse.error:.4f})",
            f"{found.calibration_error:.4f}",
        ]
        for name, found in study.scores.items()
    ]
    head = ["probabilities", "log loss held out", "under the rules", "RMSE of p", "ECE"]
    best = min(study.full, key=lambda name: study.scores[name].rmse.mean)
    return "\n".join(
        [
            table(head, rows),
            "",
            _paragraph(
                "Log loss in nats, with probabilities of 0 and 1 taken as 1e-6 from them; RMSE of",
                "P(bin 1 | number) against the exact one, over the balls as they come; ECE:",
                "expected calibration error of the held-out probabilities of the first repeat in",
                "ten bins, which for",
                f"the exact ones is {study.scores[RULE].calibration_error:.4f} by chance. Nearest",
                f"to the exact probabilities: {best}.",
            ),
        ]
    )


def _intervals(study: Study) -> str:
    rows = []
    for name, levels in study.coverage.items():
        functions = study.full[name].functions
        assert functions is not None  # as of every network
        here = covered(functions, study.exact)
        rows.append(
            [
                name,
                *(_interval(levels[level][1], 0) for level in LEVELS),
                _interval(levels[LEVELS[-1]][0], 0),
                _percent(here[LEVELS[-1]][1], 0),
                _percent(here[LEVELS[-1]][0], 0),
            ]
        )
    head = ["intervals hold, %", *(f"{level:.0%}" for level in LEVELS)]
    head += [f"{LEVELS[-1]:.0%} of numbers", f"{LEVELS[-1]:.0%} here", "numbers here"]
    return "\n".join(
        [
            table(head, rows),
            "",
            _paragraph(
                "How often a credible interval of P(bin 1 | number) holds the exact probability,",
                f"in {study.sizes['sets']} data sets of {len(study.draws.days)} draws played by",
                "the rules (standard error), the numbers weighted as they come, and each once;",
                "then on the real draws. Of the",
                f"{len(undecided(study.exact))} numbers that either bin can hold: at the others",
                "the truth is 0 or 1, which no network says.",
                "'prior s': all weights N(0, s^2) beforehand.",
            ),
        ]
    )


def _numbers(study: Study) -> str:
    exact, rows = study.exact.probability, []
    for number in SHOWN:
        truth = exact[number] if number < len(exact) else np.nan
        row = [str(number), "no ball" if np.isnan(truth) else f"{truth:.4f}"]
        for name in BAYESIAN[:3]:
            fitted = study.full[name]
            assert fitted.functions is not None
            low, high = (end[number] for end in intervals(fitted.functions, LEVELS[-1]))
            mark = "-"
            if 0 < truth < 1:
                mark = "right" if low <= truth <= high else "WRONG"
            row.append(f"{fitted.probability[number]:.3f} [{low:.3f}, {high:.3f}] {mark:<5}")
        rows.append(row)
    head = ["number", "exact", *BAYESIAN[:3]]
    return "P(bin 1 | number) from all draws, with 95 % credible intervals, each marked:\n" + table(
        head, rows
    )


def _zero(study: Study) -> str:
    rows, ratios = [], []
    asked = {f"{NETWORK}, log(v + {offset:g})": fit for offset, fit in study.zero.items()}
    for name in BAYESIAN:
        asked[f"{name}, log(v + {study.setup.offset:g}), long"] = study.full[name]
    for name, fitted in asked.items():
        assert fitted.functions is not None
        low, high = (end[0] for end in intervals(fitted.functions, LEVELS[-1]))
        deviation, logits = fitted.functions.std(axis=0), logit(fitted.functions).std(axis=0)
        ratios.append(float(deviation[0] / deviation[1:].max()))
        rows.append(
            [
                name,
                f"{fitted.probability[0]:.4f}",
                f"{low:.4f} to {high:.4f}",
                f"{deviation[0]:.4f}",
                f"{deviation[1:].max():.4f} at {1 + int(np.argmax(deviation[1:]))}",
                f"{logits[0]:.2f}",
                _percent(float((fitted.functions[:, 0] < 0.5).mean())),
                "-" if fitted.rhat is None else f"{fitted.rhat[0]:.2f}",
            ]
        )
    head = ["number 0", "P(bin 1)", "95 %", "deviation", "largest, 1-69", "of logit", "bin 3, %"]
    more = sum(ratio > 1 for ratio in ratios)
    return "\n".join(
        [
            table([*head, "R-hat"], rows),
            "",
            _paragraph(
                "The paper takes the logarithm of the number v and asks for 0, which has none;",
                "what it did is not said. Here the network's input is",
                f"log(v + {study.setup.offset:g}), standardised; other offsets for comparison. It",
                "finds 'extremely high uncertainty'",
                "at 0, as never observed. Here the deviation of P(bin 1) at 0 is",
                f"{min(ratios):.2f} to {max(ratios):.2f} times the largest at a real number, more",
                f"than it in {more} of {len(ratios)} rows. 'Bin 3': the functions, of all drawn,",
                "that turn back below 1 and name it.",
            ),
        ]
    )


def _confusion(study: Study) -> str:
    rows = [
        [name, _percent(found.wrong[0], 1), _percent(found.wrong[1], 1)]
        for name, found in study.scores.items()
    ]
    rows.append(["the paper's network, printed", *(_percent(share, 1) for share in CONFUSION)])
    head = ["called the wrong bin, %", "of bin-3 balls", "of bin-1 balls"]
    first, third = (np.cumsum(study.exact.mass[label]) * 2 for label in (1, 0))
    cut = int(np.argmin(np.abs(third - CONFUSION[0])))
    share = (1 - PRINTED[NETWORK] - CONFUSION[1]) / (CONFUSION[0] - CONFUSION[1])
    return "\n".join(
        [
            table(head, rows),
            "",
            _paragraph(
                "Held out. With as many balls of either bin, the paper's two shares give an",
                f"accuracy of {_percent(1 - sum(CONFUSION) / 2)} %, not the printed",
                f"{_percent(PRINTED[NETWORK])} %; for that {share:.0%} of its held-out balls would",
                f"have to be of bin 3. 'Bin 1 up to {cut}' is wrong for",
                f"{_percent(third[cut], 1)} and {_percent(1 - first[cut], 1)} % in the long run;",
                f"the best limit is {study.exact.limit}.",
            ),
        ]
    )


def _chains(study: Study) -> str:
    limit, lines = study.exact.limit, []
    for name, fitted in study.full.items():
        if fitted.rhat is None or fitted.weights is None:
            continue
        boundary, worst = study.scores[name].rhat
        lines.append(
            f"{name}, all draws: R-hat of the logit {fitted.rhat[limit]:.3f} at {limit}, at most "
            f"{fitted.rhat[1:].max():.2f} at a ball; of a weight up to {fitted.weight_rhat:.2f}; "
            f"{fitted.divergent} divergences in {len(fitted.weights)} draws. In the short chains "
            f"of the cross-validation at most {boundary:.3f}, {worst:.2f}; "
            f"{study.scores[name].divergent} divergences in all."
        )
    return _paragraph(
        *lines,
        "Exchanging hidden units, or the signs of all weights around one, changes no function:",
        "the chains sit in different copies of the same posterior, so convergence is judged by",
        "what the network computes, and weights are drawn pooled over the units of a layer.",
    )

"""Powerball, bin 1 against bin 3: the paper's four accuracies, and what they can be (D37).

The paper prints accuracies of 81.23 to 84.93 % for a Bayesian network, a random forest, AdaBoost
and a Gaussian process. The rules of the game say what each of them can reach, and what every
probability and every credible interval should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_studies.comparing import write
from bbb_studies.data import powerball as data

from . import plots, tables
from .coverage import LEVELS, Coverage, covered, intervals, simulated
from .models import BAYESIAN, COST, METHODS, PRINTED, Fitted, Setup, train
from .scores import Scores, cross_validate

__all__ = [
    "OFFSETS",
    "PRINTED",
    "Setup",
    "Study",
    "compute",
    "fit_all",
    "full",
    "reproduce",
    "zeros",
]

UNTIL = "2017-12-31"  # the last day before the paper
LONGER = 8  # times the work of a fit is that of NUTS on all rows
OFFSETS = (1.0, 0.1, 0.001)  # added to the number before the logarithm


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was computed."""

    draws: data.Draws
    exact: data.Exact
    scores: Mapping[str, Scores]
    full: Mapping[str, Fitted]
    zero: Mapping[float, Fitted]
    coverage: Mapping[str, Coverage]


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for twice the folds and three times the played data."""
    return {"seed": seed, "repeats": 2, "sets": 6}


def fit_all(rows: data.Examples, seed: int, setup: Setup, done: Done = unseen) -> dict[str, Fitted]:
    """Train every classifier on all rows, with longer chains and paths of NUTS."""
    longer = replace(
        setup,
        warm_up=3 * setup.warm_up,
        draws=4 * setup.draws,
        max_depth=setup.max_depth + 1,
    )
    fits = {}
    for name in METHODS:
        fits[name] = train(name, rows, seed, longer)
        done(COST[name] * (LONGER if name.startswith("NUTS") else 1))
    return fits


def zeros(rows: data.Examples, seed: int, setup: Setup, done: Done = unseen) -> dict[float, Fitted]:
    """Train the network by NUTS with every one of `OFFSETS`, to see what 0 owes to them."""
    return {
        offset: train("NUTS, prior 1", rows, seed, replace(setup, offset=offset))
        for offset in counted(OFFSETS, done, COST["NUTS, prior 1"])
    }


def compute(
    draws: data.Draws,
    seed: int,
    setup: Setup,
    folds: int,
    repeats: int,
    sets: int,
    progress: bool | None = None,
) -> Study:
    """Fit, judge on held-out draws, ask for 0, and play new draws for the credible intervals.

    The arguments are those of `reproduce`.
    """
    rows, shares = data.examples(draws), data.rules(draws)
    exact = data.exact(shares)
    work = sum(COST[name] * (LONGER if name.startswith("NUTS") else 1) for name in METHODS)
    work += folds * repeats * sum(COST.values()) + len(OFFSETS) * COST["NUTS, prior 1"]
    work += sets * sum(COST[name] for name in BAYESIAN)
    with steps(work, progress) as done:
        fits = fit_all(rows, seed, setup, done)
        scores = cross_validate(rows, exact, setup, seed, folds, repeats, done)
        zero = zeros(rows, seed, setup, done)
        coverage = simulated(shares, len(draws.days), setup, seed, sets, done)
    return Study(draws, exact, scores, fits, zero, coverage)


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    setup: Setup | None = None,
    folds: int = 5,
    repeats: int = 1,
    sets: int = 2,
    progress: bool | None = None,
) -> str:
    """Run everything, write pictures and ``numbers.json`` into `out`, return the tables.

    Shorter chains in `setup`; `folds` and `repeats` of the cross-validation; `sets` of data played
    by the rules. Without scikit-learn, whose classifiers are compared: ModuleNotFoundError.
    """
    setup = Setup() if setup is None else setup
    draws = data.load(UNTIL)
    study = compute(draws, seed, setup, folds, repeats, sets, progress)
    exact, fits, scores = study.exact, study.full, study.scores
    pictures = {
        "data": plots.frequencies(data.examples(draws), exact),
        "buckets": plots.buckets(draws),
        "boundaries": plots.boundaries(fits, exact),
        "uncertainty": plots.uncertainty({name: fits[name] for name in BAYESIAN[:3]}, exact),
        "calibration": plots.calibration(scores),
        "confusion": plots.confusion(scores),
        "weights": plots.weights(fits, setup),
    }
    sizes = {"seed": seed, "folds": folds, "repeats": repeats, "sets": sets}
    write(out, pictures, {**sizes, "setup": setup, **_numbers(study)})
    return tables.lay_out(draws, exact, scores, fits, study.zero, study.coverage, setup, sizes)


def _numbers(study: Study) -> dict[str, Any]:
    """Return all numbers, for a file; of draws of weights their deviations and intervals."""

    def fitted(one: Fitted) -> dict[str, Any]:
        kept = {**one._asdict(), "functions": None, "weights": None}
        if one.functions is not None and one.weights is not None:
            low, high = intervals(one.functions, LEVELS[-1])
            kept |= {"low": low, "high": high, "deviation": one.functions.std(axis=0)}
            kept |= {"covered": covered(one.functions, study.exact)}
            kept |= {"weights": one.weights.std(axis=0)}
        return kept

    return {
        "draws": len(study.draws.days),
        "shares": study.exact.shares,
        "ceiling": study.exact.accuracy,
        "least log loss": study.exact.log_loss,
        "exact": study.exact.probability,
        "printed": PRINTED,
        "scores": study.scores,
        "all draws": {name: fitted(one) for name, one in study.full.items()},
        "zero": {offset: fitted(one) for offset, one in study.zero.items()},
        "coverage": study.coverage,
    }

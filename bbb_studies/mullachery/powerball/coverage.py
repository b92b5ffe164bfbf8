"""Do the credible intervals of Powerball's networks hold the exact probabilities? (D37)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.progress import Done, unseen
from bbb_studies.data import powerball as data

from .models import BAYESIAN, COST, Setup, train
from .scores import Interval

__all__ = ["LEVELS", "Coverage", "covered", "intervals", "play", "simulated", "undecided"]

Array = NDArray[Any]
LEVELS = (0.5, 0.8, 0.95)
Coverage = Mapping[float, tuple[Interval, Interval]]  # by level: of the numbers, of the balls


def intervals(functions: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the central credible intervals of probabilities (S, 70), (70,) each."""
    low, high = np.quantile(functions, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high


def undecided(exact: data.Exact) -> NDArray[np.int_]:
    """Return the numbers that either bin can hold: elsewhere it is 0 or 1, or no ball."""
    p = exact.probability
    return np.flatnonzero((p > 0) & (p < 1))


def covered(functions: Array, exact: data.Exact) -> dict[float, tuple[float, float]]:
    """Return by level of how many numbers, and balls, the interval holds the exact probability.

    Numbers that one bin alone can hold do not count: no network says exactly 0 or 1.
    """
    where = undecided(exact)
    truth, share = exact.probability[where], {}
    weight = exact.mass.sum(axis=0)[where]
    for level in LEVELS:
        low, high = (end[where] for end in intervals(functions, level))
        holds = (low <= truth) & (truth <= high)
        share[level] = (float(holds.mean()), float(holds @ weight / weight.sum()))
    return share


def simulated(
    shares: Mapping[int, float],
    draws: int,
    setup: Setup,
    seed: int,
    sets: int,
    done: Done = unseen,
) -> dict[str, Coverage]:
    """Return by classifier the mean of `covered` over new data sets, and its standard error.

    Intervals at neighbouring numbers are right or wrong together, so one data set says little;
    but more draws can be had, `draws` in each of the `sets`, from the `shares` of the rules.
    """
    exact = data.exact(shares)
    found: dict[str, list[dict[float, tuple[float, float]]]] = {name: [] for name in BAYESIAN}
    for which in range(sets):
        rows = play(shares, draws, np.random.default_rng([seed, which]))
        for name in BAYESIAN:
            functions = train(name, rows, seed + which, setup).functions
            assert functions is not None  # as of all of BAYESIAN
            found[name].append(covered(functions, exact))
            done(COST[name])

    def mean(values: list[float]) -> Interval:
        error = np.std(values, ddof=1) / np.sqrt(sets) if sets > 1 else 0.0
        return Interval(float(np.mean(values)), float(error))

    return {
        name: {
            level: (mean([row[level][0] for row in some]), mean([row[level][1] for row in some]))
            for level in LEVELS
        }
        for name, some in found.items()
    }


def play(shares: Mapping[int, float], draws: int, rng: np.random.Generator) -> data.Examples:
    """Play the game: the rules one after the other, each for its share of the draws."""
    ends = np.round(np.cumsum([0.0, *shares.values()]) * draws).astype(int)
    balls = np.repeat(list(shares), np.diff(ends))
    white = np.sort(
        [rng.choice(np.arange(1, urn + 1), data.WHITE, replace=False) for urn in balls], axis=1
    )
    days = np.datetime64("2000-01-01") + np.arange(draws)
    return data.examples(data.Draws(days, white, balls))

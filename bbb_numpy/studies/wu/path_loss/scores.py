"""What is measured of one fit: errors and deviations on the map, near jumps and far (W6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.data import path_loss as data
from bbb_numpy.data.path_loss import Receivers
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.studies.comparing import METHODS, Fitted, judge, train

from .models import BASE, Variant, without_corner

Average = dict[str, tuple[float, float]]
Array = NDArray[Any]
CELLS = 40  # of the map, along each side
EDGE = 3.0  # m: a cell this close to a jump of the field is near an edge
FRESH = 2000  # held-out receivers
WORST = 0.1  # share of the cells that count as those of the largest error


class Measured(NamedTuple):
    """One data set, one fit, the maps in dB or dBm (cells,), and the numbers."""

    receivers: Receivers
    fitted: Fitted
    truth: Array
    predictive: Predictive
    near: NDArray[np.bool_]
    numbers: dict[str, float]


@dataclass(frozen=True, eq=False)
class Study:
    """All that is trained and measured: mean and standard error over the data sets, by variant."""

    repeats: int
    methods: dict[str, Measured]  # on the first data set
    runs: dict[str, list[Measured]]  # of `models.WHY`, every data set
    side: dict[str, Average]  # MLE, MAP and VI
    why: dict[str, Average]
    how: dict[str, Average]
    split: dict[str, tuple[float, float]]  # from `bias_and_spread`; empty of one data set


def mean(values: Array) -> float:
    """Return the mean, nan of nothing."""
    return float(values.mean()) if len(values) else nan


def rms(values: Array) -> float:
    """Return the root mean square."""
    return sqrt(mean(values**2)) if len(values) else nan


def rank_correlation(one: Array, other: Array) -> float:
    """Return Spearman's rank correlation of two flat arrays; nan if either is constant."""
    ranks = []
    for values in (one, other):
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        middle = np.cumsum(count) - 0.5 * count  # ties share the mean of their ranks
        ranks.append(middle[place] - middle[place].mean())
    if any(np.ptp(rank) == 0.0 for rank in ranks):
        return float("nan")
    return float(ranks[0] @ ranks[1] / np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1])))


def measure(variant: Variant, seed: int) -> Measured:
    """Draw receivers, train, predict the map, and judge it.

    Returns
    -------
    Measured
        The numbers are those of `judge` on fresh receivers over the whole plane, and of the map:
        ``near`` and ``far``, RMSE within `EDGE` of a jump and elsewhere, in dB, and of the same
        cells the mean ``epistemic`` and ``total`` deviation; ``rank epistemic`` and ``rank
        total``, rank correlation of absolute error and deviation, and ``rank if right``, what
        that of the epistemic one is on average when the truth is itself a function drawn from
        the posterior; ``tenths``, RMSE in the tenth of the cells of largest total deviation over
        that in the tenth of smallest; ``worst near``, the share near a jump of the cells of
        largest error; ``corner error`` and ``corner epistemic``, of the corner that
        `without_corner` leaves out. What is not defined, as a rank correlation of a point
        estimate, is left out.
    """
    scene = variant.scene
    rng = np.random.default_rng(seed)
    known = data.receivers(scene, rng, variant.count, variant.area)
    fresh = data.receivers(scene, rng, FRESH)
    cells = data.grid(scene, CELLS)
    truth, near = data.field(scene, cells), data.near_edge(scene, cells, EDGE)

    x = variant.inputs(scene, known.places)
    fitted = train(variant.build, variant.setup, x, known.y, seed=seed, members=variant.members)
    numbers = judge(fitted, variant.inputs(scene, fresh.places), fresh.y, fresh.truth)
    inputs = variant.inputs(scene, cells)
    found = fitted.predict(inputs)
    p = Predictive._make(moment[:, 0] for moment in found)
    error = np.abs(p.mean - truth[:, 0])

    drawn = np.abs(fitted.functions(inputs, 30)[..., 0] - p.mean)  # (S, cells)
    right = [rank_correlation(d, p.epistemic) for d in drawn]
    worst = error >= np.quantile(error, 1.0 - WORST)
    tenths = np.array_split(np.argsort(p.total), 10)
    corner = ~without_corner(cells)
    numbers |= {
        "near": rms(error[near]),
        "far": rms(error[~near]),
        "rank epistemic": rank_correlation(error, p.epistemic),
        "rank total": rank_correlation(error, p.total),
        "rank if right": float(np.mean(right)),
        "rank if right, deviation": float(np.std(right)),
        "epistemic near": mean(p.epistemic[near]),
        "epistemic far": mean(p.epistemic[~near]),
        "total near": mean(p.total[near]),
        "total far": mean(p.total[~near]),
        "tenths": rms(error[tenths[-1]]) / rms(error[tenths[0]]) if np.ptp(p.total) else nan,
        "worst near": float(near[worst].mean()),
        "edge share": float(near.mean()),
        "corner error": rms(error[corner]),
        "corner epistemic": mean(p.epistemic[corner]),
    }
    numbers = {name: value for name, value in numbers.items() if isfinite(value)}
    return Measured(known, fitted, truth[:, 0], p, near, numbers)


def bias_and_spread(runs: Sequence[Measured]) -> dict[str, tuple[float, float]]:
    """Split the error of several data sets near jumps and elsewhere, in dB.

    Returns
    -------
    dict
        ``near`` and ``far``: root mean square over cells of the bias, the mean over data sets
        less the truth (freed of the variance that this mean still has), and of the deviation
        between data sets, which an epistemic deviation should equal.
    """
    means = np.stack([run.predictive.mean for run in runs])  # (R, cells)
    variance = means.var(axis=0, ddof=1)
    squared = (means.mean(axis=0) - runs[0].truth) ** 2 - variance / len(runs)
    near = runs[0].near
    return {
        name: (sqrt(max(mean(squared[chosen]), 0.0)), sqrt(mean(variance[chosen])))
        for name, chosen in (("near", near), ("far", ~near))
    }


def compare(seed: int = 0, base: Variant = BASE) -> dict[str, Measured]:
    """Train every one of `METHODS` on the same receivers, and measure."""
    return {name: measure(base.but(name, build=METHODS[name]), seed) for name in METHODS}

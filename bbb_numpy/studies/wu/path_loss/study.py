"""Wu's second system: a radio field over a plane with buildings (W6), and his two questions.

`compare` sets MLE, MAP and VI side by side. `WHY` asks why a large error does not come with a
large deviation, `HOW` how to fit the simulated function exactly; both are lists of variants of
one base case, each measured on several data sets by `measure`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite, nan, sqrt
from pathlib import Path

import numpy as np

from bbb_numpy.data import path_loss as data
from bbb_numpy.evaluation.predictive import Predictive

from ..quartic import METHODS, average, judge, train
from .cases import (
    BASE,
    CELLS,
    EDGE,
    FRESH,
    HOW,
    NOISE_LIMIT,
    WHY,
    WORST,
    Array,
    Measured,
    Variant,
    mean,
    rms,
    without_corner,
)
from .plots import draw_how, draw_maps, draw_why
from .text import how_text, scene_text, side_text, why_text

__all__ = [
    "BASE",
    "HOW",
    "NOISE_LIMIT",
    "WHY",
    "Measured",
    "Variant",
    "bias_and_spread",
    "compare",
    "draw_maps",
    "measure",
    "rank_correlation",
    "reproduce",
]


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
    p = Predictive(*(moment[:, 0] for moment in found))
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


def reproduce(out: Path, seed: int = 0, repeats: int = 4, effort: float = 1.0) -> str:
    """Run everything; write ``maps.png``, ``why.png``, ``how.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        An existing folder.
    seed : int
        Of the first data set, which is the one in the maps.
    repeats : int
        Data sets, from which every standard error comes.
    effort : float
        Factor on all epochs, for a quick look.

    Returns
    -------
    str
        What the numbers say.
    """

    def shorter(variant: Variant) -> Variant:
        return variant.but(variant.name, epochs=max(1, round(effort * variant.setup.epochs)))

    seeds = range(seed, seed + repeats)
    pairs = [compare(which, shorter(BASE)) for which in seeds]
    runs = {BASE.name: [pair[BASE.name] for pair in pairs]}
    for variant in WHY[1:]:
        runs[variant.name] = [measure(shorter(variant), which) for which in seeds]
    side = {name: average([pair[name].numbers for pair in pairs]) for name in METHODS}
    why = {name: average([run.numbers for run in measured]) for name, measured in runs.items()}
    how = {
        variant.name: average([measure(shorter(variant), which).numbers for which in seeds])
        for variant in HOW
    }
    split = bias_and_spread(runs[BASE.name]) if repeats > 1 else {}
    numbers = {"methods": side, "why": why, "how": how, "bias and spread": split}
    (out / "numbers.json").write_text(
        json.dumps({"seed": seed, "repeats": repeats, **numbers}, indent=1, allow_nan=False) + "\n",
        encoding="utf-8",
    )
    draw_maps(pairs[0]).savefig(out / "maps.png", dpi=100)
    draw_why(why, runs).savefig(out / "why.png", dpi=100)
    draw_how(how).savefig(out / "how.png", dpi=100)
    return "\n\n".join([scene_text(repeats), side_text(side), why_text(why, split), how_text(how)])

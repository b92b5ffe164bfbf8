"""What is trained on the radio field, one base case and its variants, and what is measured (W6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_studies.comparing import METHODS, Fitted, Setup, judge, train
from bbb_studies.data import path_loss as data
from bbb_studies.data.path_loss import Receivers, Scene

Average = dict[str, tuple[float, float]]
Array = NDArray[Any]
CELLS = 40  # of the map, along each side
EDGE = 3.0  # m: a cell this close to a jump of the field is near an edge
FRESH = 2000  # held-out receivers
WORST = 0.1  # share of the cells that count as those of the largest error


def full_rank(model: Model) -> Estimator:
    """Return the estimator of a full-rank posterior that starts narrow."""
    return ClosedFormKL(model, FullRank(0.3, -5.0))


def places_alone(scene: Scene, places: Array) -> Array:
    """Return the places themselves: the network is told x and y."""
    return places


def places_and_distance(scene: Scene, places: Array) -> Array:
    """Return x, y and log10 of the distance."""
    return np.hstack([places, data.features(scene, places)[:, :1]])


def distance_and_walls(scene: Scene, places: Array) -> Array:
    """Return log10 of the distance and the number of walls, whichever building's."""
    found = data.features(scene, places)
    return np.stack([found[:, 0], found[:, 1:].sum(axis=1)], axis=1)


@dataclass(frozen=True)
class Variant:
    """One way to measure, to describe the place, and to train."""

    name: str = "VI"
    build: Callable[[Model], Estimator] = METHODS["VI"]
    setup: Setup = field(
        default=Setup(
            hidden=(32, 32),
            activation="relu",
            prior_scale=0.5,
            likelihood=GaussianLikelihood(0.3, learn=True),
            epochs=500,
            batch_size=50,
        )
    )
    members: int = 1
    count: int = 400  # receivers
    scene: Scene = Scene()
    inputs: Callable[[Scene, Array], Array] = places_alone
    area: Callable[[Array], NDArray[np.bool_]] | None = None  # where receivers are

    def but(self, name: str, **changes: Any) -> Variant:
        """Return this variant with other numbers, of its own or of its setup."""
        own = {key: changes.pop(key) for key in list(changes) if key in self.__dataclass_fields__}
        return replace(self, name=name, setup=replace(self.setup, **changes), **own)


BASE = Variant()
NOISE_HEAD = HeteroscedasticLikelihood(0.05)
MANY = {"count": 1600, "batch_size": 100}
SMOOTH, EXACT = "VI, no buildings", "full rank, right inputs"
WEIGHTS = 2 + len(BASE.scene.buildings)  # in which the field is linear: lambda, phi_j, constant
NOISE_LIMIT = BASE.scene.shadowing * sqrt(WEIGHTS / BASE.count)  # dB, of least squares in them


def without_corner(places: Array) -> NDArray[np.bool_]:
    """Return where receivers are when the corner x, y > 60 m has none."""
    return ~np.all(places > 60.0, axis=1)


WHY = (
    BASE,
    BASE.but("VI, 1600 receivers", **MANY),
    BASE.but("VI, 64-64", hidden=(64, 64)),
    BASE.but("VI, prior 0.25", prior_scale=0.25),
    BASE.but("VI, prior 1", prior_scale=1.0),
    BASE.but("VI, 12-12", hidden=(12, 12)),
    BASE.but("full rank, 12-12", build=full_rank, hidden=(12, 12), learning_rate=2e-3, samples=4),
    BASE.but("5 VI", members=5),
    BASE.but("5 MAP", build=METHODS["MAP"], members=5),
    BASE.but("5 MLE", build=METHODS["MLE"], members=5),
    BASE.but("VI, noise head", likelihood=NOISE_HEAD),
    BASE.but("VI, noise head, 1600", likelihood=NOISE_HEAD, **MANY),
    BASE.but(
        "5 MAP, noise head, 1600", build=METHODS["MAP"], members=5, likelihood=NOISE_HEAD, **MANY
    ),
    BASE.but(SMOOTH, scene=Scene(buildings=())),
    BASE.but("VI, empty corner", area=without_corner),
    BASE.but("5 MAP, empty corner", build=METHODS["MAP"], members=5, area=without_corner),
    BASE.but(
        EXACT,
        build=full_rank,
        hidden=(),
        inputs=data.features,
        samples=4,
    ),
)

LEAST_SQUARES = BASE.but(
    "400 receivers, 32-32, 2 dB, 500 epochs",
    build=METHODS["MLE"],
    likelihood=GaussianLikelihood(0.2),
)
SILENT = Scene(shadowing=0.0)
HOW = (
    LEAST_SQUARES,
    LEAST_SQUARES.but("100 receivers", count=100),
    LEAST_SQUARES.but("1600 receivers", **MANY),
    LEAST_SQUARES.but("8-8", hidden=(8, 8)),
    LEAST_SQUARES.but("128-128", hidden=(128, 128)),
    LEAST_SQUARES.but("0 dB", scene=SILENT),
    LEAST_SQUARES.but("6 dB", scene=Scene(shadowing=6.0)),
    LEAST_SQUARES.but("100 epochs", epochs=100),
    LEAST_SQUARES.but("2000 epochs", epochs=2000),
    LEAST_SQUARES.but("1600, 64-64, 0 dB", **MANY, hidden=(64, 64), scene=SILENT),
    LEAST_SQUARES.but(
        "6400, 64-64, 0 dB", count=6400, batch_size=200, hidden=(64, 64), scene=SILENT
    ),
    LEAST_SQUARES.but("x, y, log10 d", inputs=places_and_distance),
    LEAST_SQUARES.but("log10 d, walls; 32-32", inputs=distance_and_walls),
    LEAST_SQUARES.but("log10 d, walls of each; 32-32", inputs=data.features),
    LEAST_SQUARES.but("log10 d, walls of each; linear", inputs=data.features, hidden=()),
    LEAST_SQUARES.but("the same, 0 dB", inputs=data.features, hidden=(), scene=SILENT),
)


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
    runs: dict[str, list[Measured]]  # of `WHY`, every data set
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

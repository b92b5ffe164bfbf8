"""The variants that are trained on the radio field: one base case, and what is changed (W6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.data import path_loss as data
from bbb_numpy.data.path_loss import Scene
from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.studies.comparing import METHODS, Setup

Array = NDArray[Any]


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

"""What a Bayesian network is compared with, and how any of them is scored on rows it has not seen.

A rival of numbers predicts a normal distribution around its mean, as wide as its errors on training
rows that it was not fitted to; one of counts a Poisson distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..evaluation.calibration import crps_draws, crps_gaussian
from ..numeric.elementary import LOG_2PI, log_factorial

__all__ = ["Forecast", "of_model", "rivals"]

Array = NDArray[Any]
MANY = 10_000  # rows from which boosting works on histograms
DRAWS = 500  # of the predictive distribution, for CRPS and ranks
BLOCK = 2000  # rows at once
TINY = 1e-9  # of the standard deviation of y: no predicted one is below


class Forecast(NamedTuple):
    """What was predicted for rows, beside what happened, (N,) each."""

    log_density: Array
    mean: Array | None = None  # of numbers
    crps: Array | None = None
    pit: Array | None = None
    proba: Array | None = None  # (N, C) of classes

    @staticmethod
    def joined(parts: list[Forecast]) -> Forecast:
        """Return the rows of several forecasts, one after the other."""
        columns = zip(*parts, strict=True)
        made: list[Any] = [None if c[0] is None else np.concatenate(c) for c in columns]
        return Forecast(*made)


Rival = Callable[[Array, Array, Array, Array, np.random.Generator], Forecast]


def of_model(model: Any, x: Any, y: Array, rng: np.random.Generator) -> Forecast:
    """Return what a learner predicts for rows `x` with targets `y`."""
    density = model.log_predictive_density(x, y)
    if hasattr(model, "classes_"):
        return Forecast(density, proba=model.predict_proba(x))
    parts = []
    for begin in range(0, len(y), BLOCK):
        rows = slice(begin, begin + BLOCK)
        draws = model.sample_y(x[rows], DRAWS).T
        mean = model.predict(x[rows])
        parts.append(_of_draws(mean, density[rows], draws, y[rows], rng))
    return Forecast.joined(parts)


def _of_draws(
    mean: Array, density: Array, draws: Array, y: Array, rng: np.random.Generator
) -> Forecast:
    """Return the forecast of draws (T, N): y's randomised rank among them stands for the PIT."""
    crps = crps_draws(draws[..., None], y[:, None], fair=True)[:, 0]
    below, equal = (draws < y).sum(axis=0), (draws == y).sum(axis=0)
    rank = (below + rng.random(len(y)) * (equal + 1)) / (len(draws) + 1)
    return Forecast(density, mean, crps, rank)


def _normal(mean: Array, scale: float, y: Array) -> Forecast:
    z = (y - mean) / scale
    density = -0.5 * (z * z + LOG_2PI) - np.log(scale)
    return Forecast(density, mean, crps_gaussian(mean, scale, y), ndtr(z))


def _poisson(rate: Array, y: Array, rng: np.random.Generator) -> Forecast:
    density = y * np.log(rate) - rate - log_factorial(y)
    return _of_draws(rate, density, rng.poisson(rate, (DRAWS, len(y))).astype(float), y, rng)


def rivals(task: str, rows: int, seed: int) -> dict[str, Rival]:
    """Return what each rival does, by name: from training rows and test rows to a forecast."""
    many = rows >= MANY
    if task == "classification":
        boosting = HistGradientBoostingClassifier if many else GradientBoostingClassifier
        return {
            "logistic regression": _of_classes(_scaled(LogisticRegression(max_iter=1000))),
            "gradient boosting": _of_classes(_scaled(boosting(random_state=seed))),
            "base rate": _of_classes(DummyClassifier(strategy="prior")),
        }
    if task == "counts":
        hist = HistGradientBoostingRegressor(loss="poisson", random_state=seed)
        return {
            "Poisson regression": _of_counts(_scaled(PoissonRegressor(alpha=0.01, max_iter=1000))),
            "gradient boosting": _of_counts(_scaled(hist)),
            "base rate": _of_counts(DummyRegressor()),
        }
    boosting = HistGradientBoostingRegressor if many else GradientBoostingRegressor
    return {
        "ridge": _of_numbers(_scaled(RidgeCV(np.logspace(-3.0, 3.0, 13)))),
        "gradient boosting": _of_numbers(_scaled(boosting(random_state=seed))),
        "base rate": _moments,
    }


def _scaled(kind: Any) -> Any:
    return make_pipeline(StandardScaler(), kind)


def _of_numbers(model: Any) -> Rival:
    def rival(x: Array, y: Array, new: Array, target: Array, rng: np.random.Generator) -> Forecast:
        off = y - cross_val_predict(model, x, y, cv=min(5, len(y)))
        scale = max(float(np.sqrt(np.mean(off**2))), TINY * float(y.std()))
        return _normal(model.fit(x, y).predict(new), scale, target)

    return rival


def _of_counts(model: Any) -> Rival:
    def rival(x: Array, y: Array, new: Array, target: Array, rng: np.random.Generator) -> Forecast:
        least = 0.5 / len(y)  # of a rate, whose logarithm is taken
        return _poisson(np.maximum(model.fit(x, y).predict(new), least), target, rng)

    return rival


def _of_classes(model: Any) -> Rival:
    def rival(x: Array, y: Array, new: Array, target: Array, rng: np.random.Generator) -> Forecast:
        proba = model.fit(x, y).predict_proba(new)
        happened = proba[np.arange(len(target)), np.searchsorted(model.classes_, target)]
        return Forecast(np.log(np.maximum(happened, np.finfo(float).tiny)), proba=proba)

    return rival


def _moments(x: Array, y: Array, new: Array, target: Array, rng: np.random.Generator) -> Forecast:
    scale = float(y.std()) or 1.0
    return _normal(np.full(len(target), y.mean()), scale, target)

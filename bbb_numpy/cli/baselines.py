"""What a Bayesian network is compared with, and how any of them is scored on rows it has not seen.

A rival of numbers predicts a normal distribution around its mean, as wide as its errors on training
rows that it was not fitted to; one of counts a Poisson distribution.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from ..evaluation.calibration import crps_draws, crps_gaussian
from ..evaluation.reliability import (
    Reliability,
    expected_calibration_error,
    reliability,
    top_label,
)

__all__ = [
    "BASE_RATE",
    "Forecast",
    "Score",
    "baselines",
    "forecast_baseline",
    "forecast_learner",
    "score_forecast",
    "top_label_reliability",
]

Array = NDArray[Any]
INTERVAL_LEVEL = 0.9  # of the interval whose coverage is counted
MIN_ROWS_HISTOGRAM = 10_000  # rows from which boosting works on histograms
N_PREDICTIVE_DRAWS = 500  # of the predictive distribution, for CRPS and ranks
MAX_BATCH_ROWS = 2000  # rows at once
MIN_RELATIVE_SCALE = 1e-9  # of the standard deviation of y: no predicted one is below
BASE_RATE = "base rate"  # of all rows, whatever the weights of classes


class Forecast(NamedTuple):
    """What was predicted for rows, beside what happened, (N,) each."""

    log_density: Array
    mean: Any = None  # of numbers
    crps: Any = None
    pit: Any = None
    proba: Any = None  # (N, C) of classes

    @staticmethod
    def concatenate(parts: list[Forecast]) -> Forecast:
        """Return the rows of several forecasts, one after the other."""
        columns = zip(*parts, strict=True)
        made: list[Any] = [None if c[0] is None else np.concatenate(c) for c in columns]
        return Forecast(*made)


def forecast_learner(
    model: Any, x: Any, y: Array, rng: np.random.Generator
) -> Forecast:
    """Return what a learner predicts for rows `x` with targets `y`."""
    density = model.log_predictive_density(x, y)
    if hasattr(model, "classes_"):
        return Forecast(density, proba=model.predict_proba(x))
    parts = []
    for begin in range(0, len(y), MAX_BATCH_ROWS):
        rows = slice(begin, begin + MAX_BATCH_ROWS)
        draws, mean = (
            model.sample_y(x[rows], N_PREDICTIVE_DRAWS).T,
            model.predict(x[rows]),
        )
        parts.append(_of_draws(mean, density[rows], draws, y[rows], rng))
    return Forecast.concatenate(parts)


def forecast_baseline(
    model: Any,
    task: str,
    train: tuple[Array, Array],
    new: tuple[Array, Array],
    rng: np.random.Generator,
    class_weight: str | None = None,
) -> Forecast:
    """Return what a model of `baselines` predicts for `new` rows, having learned from others.

    Rows count by the weights of their classes, where there are some, as they do for a learner;
    those of the base rate do not, which would no longer be one.
    """
    (x, y), (x_new, y_new) = train, new
    weights = {}
    if class_weight and not isinstance(model, DummyClassifier):
        name = f"{model.steps[-1][0]}__sample_weight"
        weights[name] = compute_sample_weight(class_weight, y)
    model.fit(x, y, **weights)
    if task == "classification":
        proba = model.predict_proba(x_new)
        happened = proba[np.arange(len(y_new)), np.searchsorted(model.classes_, y_new)]
        return Forecast(np.log(np.maximum(happened, np.finfo(float).tiny)), proba=proba)
    mean = model.predict(x_new)
    if task == "counts":
        rate = np.maximum(mean, 0.5 / len(y))
        draws = rng.poisson(rate, (N_PREDICTIVE_DRAWS, len(rate))).astype(float)
        return _of_draws(rate, stats.poisson.logpmf(y_new, rate), draws, y_new, rng)
    if isinstance(model, DummyRegressor):
        scale = float(y.std()) or 1.0
    else:
        off = y - cross_val_predict(model, x, y, cv=min(5, len(y)))
        scale = max(
            float(np.sqrt(np.mean(off**2))), MIN_RELATIVE_SCALE * float(y.std())
        )
    normal = stats.norm(mean, scale)
    crps = crps_gaussian(mean, scale, y_new)
    return Forecast(normal.logpdf(y_new), mean, crps, normal.cdf(y_new))


def _of_draws(
    mean: Array, density: Array, draws: Array, y: Array, rng: np.random.Generator
) -> Forecast:
    """Return the forecast of draws (T, N): y's randomised rank among them stands for the PIT."""
    crps = crps_draws(draws[..., None], y[:, None], fair=True)[:, 0]
    below, equal = (draws < y).sum(axis=0), (draws == y).sum(axis=0)
    rank = (below + rng.random(len(y)) * (equal + 1)) / (len(draws) + 1)
    return Forecast(density, mean, crps, rank)


def baselines(task: str, n_rows: int, seed: int) -> dict[str, Any]:
    """Return scikit-learn's models for so many training rows, by name, and the base rate."""
    many, base = n_rows >= MIN_ROWS_HISTOGRAM, DummyRegressor()
    if task == "classification":
        name, plain = "logistic regression", LogisticRegression(max_iter=1000)
        boosting: Any = (
            HistGradientBoostingClassifier if many else GradientBoostingClassifier
        )
        base = DummyClassifier(strategy="prior")
    elif task == "counts":
        name, plain = "Poisson regression", PoissonRegressor(alpha=0.01, max_iter=1000)
        boosting = partial(HistGradientBoostingRegressor, loss="poisson")
    else:
        name, plain = "ridge", RidgeCV(np.logspace(-3.0, 3.0, 13))
        boosting = HistGradientBoostingRegressor if many else GradientBoostingRegressor
    return {
        name: make_pipeline(StandardScaler(), plain),
        "gradient boosting": make_pipeline(
            StandardScaler(), boosting(random_state=seed)
        ),
        BASE_RATE: base,
    }


class Score(NamedTuple):
    """A mean over the held-out rows, and its standard error, if it has one."""

    value: float
    error: float | None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.3f}"
        if not 1e-9 * abs(self.value) < self.error < np.inf:
            return f"{self.value:.4g}"
        digits = max(0, 1 - int(np.floor(np.log10(self.error))))  # two of the error
        if digits > 6 or abs(self.value) >= 1e7:
            return f"{self.value:.4g} ± {self.error:.2g}"
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


def score_forecast(forecast: Forecast, y: Array) -> dict[str, Score]:
    """Return the scores of a forecast of rows; classes `y` are given by their places."""
    if forecast.proba is not None:
        _, right = top_label(forecast.proba, y)
        recalls = [_share(right[y == label]) for label in np.unique(y)]
        errors = [float(recall.error or 0.0) for recall in recalls]
        balanced = float(np.mean([recall.value for recall in recalls]))
        return {
            "accuracy": _share(right),
            "balanced_accuracy": Score(
                balanced, float(np.linalg.norm(errors)) / len(errors)
            ),
            "log_loss": _mean(-forecast.log_density),
            **_ranking(forecast.proba, y),
            "brier": _mean(_brier(forecast.proba, y)),
            "ece": Score(
                expected_calibration_error(top_label_reliability(forecast, y)), None
            ),
        }
    mean = _mean((forecast.mean - y) ** 2)
    rmse = float(np.sqrt(mean.value))
    error = None if mean.error is None or rmse == 0.0 else mean.error / (2.0 * rmse)
    return {
        "rmse": Score(rmse, error),
        "log_density": _mean(forecast.log_density),
        "crps": _mean(forecast.crps),
        "coverage": _share(np.abs(forecast.pit - 0.5) <= INTERVAL_LEVEL / 2),
    }


def _ranking(proba: Array, y: Array) -> dict[str, Score]:
    """Return ROC AUC and average precision: of the rarer of two classes, of more each by itself.

    One class against all others, the mean over the classes (macro). Those that no row has, or all
    rows, have neither.
    """
    counts = np.bincount(y, minlength=proba.shape[1])
    judged = np.flatnonzero((counts > 0) & (counts < len(y)))
    if len(counts) == 2:
        judged = judged[np.argsort(counts[judged], kind="stable")][:1]
    metrics = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
    found = {}
    for name, metric in metrics.items():
        values = [metric(y == label, proba[:, label]) for label in judged]
        found[name] = Score(float(np.mean(values)) if values else np.nan, None)
    return found


def _brier(proba: Array, y: Array) -> Array:
    """Return the squared error of the probabilities (N,): of two classes that of one of them."""
    happened = y[:, None] == np.arange(proba.shape[1])
    squares = np.square(proba - happened).sum(axis=1)
    return squares / 2.0 if proba.shape[1] == 2 else squares


def top_label_reliability(forecast: Forecast, y: Array) -> Reliability:
    """Return how often the most probable class was right, in ten bins of its probability."""
    stated, right = top_label(forecast.proba, y)
    return reliability(np.minimum(stated, 1.0), right, 10)


def _mean(values: Array) -> Score:
    values = np.asarray(values, float)
    error = (
        float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    )
    return Score(float(values.mean()), error)


def _share(true: Array) -> Score:
    """Return a share of rows, with the standard deviation of Beta(k + 1, n - k + 1).

    Where all of n rows are true, or none, that of the rows would be 0.
    """
    n, k = len(true), int(np.count_nonzero(true))
    return Score(k / n, float(stats.beta(k + 1, n - k + 1).std()))

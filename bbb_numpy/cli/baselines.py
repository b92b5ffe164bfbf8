"""Baselines that a Bayesian network is compared with, and scores of any model on rows unseen.

A baseline for numbers predicts a normal distribution around its mean, as wide as its errors on
training rows that it was not fitted to; one for counts a Poisson distribution.
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
INTERVAL_LEVEL = 0.9  # of the interval whose coverage is scored
# From so many rows on scikit-learn recommends boosting on histograms, which is faster
MIN_ROWS_HISTOGRAM = 10_000
N_PREDICTIVE_DRAWS = 500  # for CRPS and ranks
MAX_BATCH_ROWS = 2000  # rows whose predictive draws are in memory at once
# Smallest predicted standard deviation, in standard deviations of y: a perfect fit has a density
MIN_RELATIVE_SCALE = 1e-9
BASE_RATE = "base rate"  # of all rows, whatever the weights of the classes
N_CONFIDENCE_BINS = 10


class Forecast(NamedTuple):
    """Predictions for N rows, compared with what happened.

    Parameters
    ----------
    log_density : ndarray (N,)
        Log density, or log probability, of what happened, in nats.
    mean : ndarray (N,), optional
        Predicted means; of numbers and counts, as the next two.
    crps : ndarray (N,), optional
        Continuous ranked probability score.
    pit : ndarray (N,), optional
        Probability integral transform: the predicted probability of less than what happened.
    proba : ndarray (N, C), optional
        Predicted probabilities of the classes.
    """

    log_density: Array
    mean: Any = None
    crps: Any = None
    pit: Any = None
    proba: Any = None

    @staticmethod
    def concatenate(forecasts: list[Forecast]) -> Forecast:
        """Return the rows of several forecasts, one after the other."""
        fields: list[Any] = []
        for arrays in zip(*forecasts, strict=True):
            fields.append(None if arrays[0] is None else np.concatenate(arrays))
        return Forecast(*fields)


def forecast_learner(
    model: Any, x: Any, y: Array, rng: np.random.Generator
) -> Forecast:
    """Return the forecast of a fitted learner for test rows.

    Parameters
    ----------
    model : BayesianMLPRegressor or BayesianMLPClassifier
        The learner.
    x, y : array-like (N, d_in), ndarray (N,)
        The test rows.
    rng : numpy.random.Generator
        Breaks ties between y and predictive draws.
    """
    log_density = model.log_predictive_density(x, y)
    if hasattr(model, "classes_"):
        return Forecast(log_density, proba=model.predict_proba(x))
    forecasts = []
    for start in range(0, len(y), MAX_BATCH_ROWS):
        rows = slice(start, start + MAX_BATCH_ROWS)
        draws = model.sample_y(x[rows], N_PREDICTIVE_DRAWS).T
        mean = model.predict(x[rows])
        forecasts.append(_from_draws(mean, log_density[rows], draws, y[rows], rng))
    return Forecast.concatenate(forecasts)


def forecast_baseline(
    model: Any,
    task: str,
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    rng: np.random.Generator,
    class_weight: str | None = None,
) -> Forecast:
    """Return the forecast of a baseline for test rows, after fitting it to training rows.

    Parameters
    ----------
    model : scikit-learn estimator
        One of `baselines`, not yet fitted.
    task : {'regression', 'classification', 'counts'}
    train, test : tuple of ndarray (N, d_in), ndarray (N,)
        Inputs and target of the training and of the test rows.
    rng : numpy.random.Generator
        Draws counts and breaks ties.
    class_weight : {'balanced'}, optional
        Weights of the training rows by class, as a learner has them. The base rate is not weighted:
        it would no longer be one.
    """
    x, y = train
    x_test, y_test = test
    fit_arguments = {}
    if class_weight and not isinstance(model, DummyClassifier):
        name = f"{model.steps[-1][0]}__sample_weight"
        fit_arguments[name] = compute_sample_weight(class_weight, y)
    model.fit(x, y, **fit_arguments)
    if task == "classification":
        proba = model.predict_proba(x_test)
        labels = np.searchsorted(model.classes_, y_test)
        p_true = proba[np.arange(len(y_test)), labels]
        return Forecast(np.log(np.maximum(p_true, np.finfo(float).tiny)), proba=proba)
    mean = model.predict(x_test)
    if task == "counts":
        rate = np.maximum(mean, 0.5 / len(y))
        draws = rng.poisson(rate, (N_PREDICTIVE_DRAWS, len(rate))).astype(float)
        log_density = stats.poisson.logpmf(y_test, rate)
        return _from_draws(rate, log_density, draws, y_test, rng)
    if isinstance(model, DummyRegressor):
        scale = float(y.std()) or 1.0
    else:
        errors = y - cross_val_predict(model, x, y, cv=min(5, len(y)))
        rmse = float(np.sqrt(np.mean(errors**2)))
        scale = max(rmse, MIN_RELATIVE_SCALE * float(y.std()))
    normal = stats.norm(mean, scale)
    crps = crps_gaussian(mean, scale, y_test)
    return Forecast(normal.logpdf(y_test), mean, crps, normal.cdf(y_test))


def _from_draws(
    mean: Array, log_density: Array, draws: Array, y: Array, rng: np.random.Generator
) -> Forecast:
    """Return the forecast of draws (T, N): y's randomised rank among them stands for the PIT."""
    crps = crps_draws(draws[..., None], y[:, None], fair=True)[:, 0]
    n_below = (draws < y).sum(axis=0)
    n_equal = (draws == y).sum(axis=0)
    rank = (n_below + rng.random(len(y)) * (n_equal + 1)) / (len(draws) + 1)
    return Forecast(log_density, mean, crps, rank)


def baselines(task: str, n_rows: int, seed: int) -> dict[str, Any]:
    """Return scikit-learn's models for a task, and the base rate, by name.

    Parameters
    ----------
    task : {'regression', 'classification', 'counts'}
    n_rows : int
        Number of training rows.
    seed : int
        Of boosting's random numbers.
    """
    is_large = n_rows >= MIN_ROWS_HISTOGRAM
    base_rate = DummyRegressor()
    if task == "classification":
        linear_name = "logistic regression"
        linear: Any = LogisticRegression(max_iter=1000)
        boosting: Any = (
            HistGradientBoostingClassifier if is_large else GradientBoostingClassifier
        )
        base_rate = DummyClassifier(strategy="prior")
    elif task == "counts":
        linear_name = "Poisson regression"
        linear = PoissonRegressor(alpha=0.01, max_iter=1000)
        boosting = partial(HistGradientBoostingRegressor, loss="poisson")
    else:
        linear_name = "ridge"
        linear = RidgeCV(np.logspace(-3.0, 3.0, 13))
        boosting = (
            HistGradientBoostingRegressor if is_large else GradientBoostingRegressor
        )
    boosted = boosting(random_state=seed)
    return {
        linear_name: make_pipeline(StandardScaler(), linear),
        "gradient boosting": make_pipeline(StandardScaler(), boosted),
        BASE_RATE: base_rate,
    }


class Score(NamedTuple):
    """A mean over the held-out rows and its standard error, None for a score without one."""

    value: float
    error: float | None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.3f}"
        if not 1e-9 * abs(self.value) < self.error < np.inf:
            return f"{self.value:.4g}"
        # Two digits of the error
        decimals = max(0, 1 - int(np.floor(np.log10(self.error))))
        if decimals > 6 or abs(self.value) >= 1e7:
            return f"{self.value:.4g} ± {self.error:.2g}"
        return f"{self.value:.{decimals}f} ± {self.error:.{decimals}f}"


def score_forecast(forecast: Forecast, y: Array) -> dict[str, Score]:
    """Return the scores of a forecast by name.

    Parameters
    ----------
    forecast : Forecast
        Of N rows.
    y : ndarray (N,)
        What happened; classes are given by their column in ``forecast.proba``.
    """
    if forecast.proba is not None:
        _, is_right = top_label(forecast.proba, y)
        recalls = [_share(is_right[y == label]) for label in np.unique(y)]
        balanced = float(np.mean([recall.value for recall in recalls]))
        errors = [float(recall.error or 0.0) for recall in recalls]
        balanced_error = float(np.linalg.norm(errors)) / len(errors)
        calibration = expected_calibration_error(top_label_reliability(forecast, y))
        return {
            "accuracy": _share(is_right),
            "balanced_accuracy": Score(balanced, balanced_error),
            "log_loss": _mean(-forecast.log_density),
            **_ranking_scores(forecast.proba, y),
            "brier": _mean(_brier(forecast.proba, y)),
            "ece": Score(calibration, None),
        }
    mean_square = _mean((forecast.mean - y) ** 2)
    rmse = float(np.sqrt(mean_square.value))
    error = None
    if mean_square.error is not None and rmse != 0.0:
        error = mean_square.error / (
            2.0 * rmse
        )  # of a square root, by the delta method
    is_inside = np.abs(forecast.pit - 0.5) <= INTERVAL_LEVEL / 2
    return {
        "rmse": Score(rmse, error),
        "log_density": _mean(forecast.log_density),
        "crps": _mean(forecast.crps),
        "coverage": _share(is_inside),
    }


def _ranking_scores(proba: Array, y: Array) -> dict[str, Score]:
    """Return ROC AUC and average precision: of the rarer of two classes, or the mean over classes.

    Each class is ranked against all others (macro average). Classes that no row has, or all rows,
    have neither score.
    """
    counts = np.bincount(y, minlength=proba.shape[1])
    labels = np.flatnonzero((counts > 0) & (counts < len(y)))
    if len(counts) == 2:
        labels = labels[np.argsort(counts[labels], kind="stable")][:1]
    metrics = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
    scores = {}
    for name, metric in metrics.items():
        values = [metric(y == label, proba[:, label]) for label in labels]
        scores[name] = Score(float(np.mean(values)) if values else np.nan, None)
    return scores


def _brier(proba: Array, y: Array) -> Array:
    """Return the squared error of the probabilities (N,); for two classes that of one of them."""
    one_hot = y[:, None] == np.arange(proba.shape[1])
    squares = np.square(proba - one_hot).sum(axis=1)
    return squares / 2.0 if proba.shape[1] == 2 else squares


def top_label_reliability(forecast: Forecast, y: Array) -> Reliability:
    """Return how often the most probable class is right, in bins of its probability.

    Parameters
    ----------
    forecast : Forecast
        Of classes.
    y : ndarray (N,)
        What happened, as columns of ``forecast.proba``.
    """
    confidence, is_right = top_label(forecast.proba, y)
    return reliability(np.minimum(confidence, 1.0), is_right, N_CONFIDENCE_BINS)


def _mean(values: Array) -> Score:
    """Return the mean of a score over rows, and its standard error if there is more than one."""
    values = np.asarray(values, float)
    error = None
    if len(values) > 1:
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Score(float(values.mean()), error)


def _share(holds: Array) -> Score:
    """Return the share of rows for which `holds` is true, and its standard error.

    The error is the standard deviation of Beta(k + 1, n - k + 1): that of the rows would be 0 if
    all of the n rows are true, or none.
    """
    n = len(holds)
    k = int(np.count_nonzero(holds))
    return Score(k / n, float(stats.beta(k + 1, n - k + 1).std()))

"""Baselines that a Bayesian network is compared with, and scores of any model on test rows.

A baseline for numbers predicts a normal distribution around its mean, whose standard deviation is
the root mean squared error in cross-validation of the training rows. A baseline for counts predicts
a Poisson distribution.
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
    "share_score",
    "top_label_reliability",
]

Array = NDArray[Any]
INTERVAL_LEVEL = 0.9  # level of the interval whose coverage is scored
# number of rows from which on scikit-learn recommends boosting on histograms
MIN_ROWS_HISTOGRAM = 10_000
N_PREDICTIVE_DRAWS = 500  # number of predictive draws at each row
# largest number of rows whose predictive draws are in memory at once
MAX_BATCH_ROWS = 2000
# smallest predicted standard deviation, in standard deviations of y, so that the density of a
# perfect fit is finite
MIN_RELATIVE_SCALE = 1e-9
BASE_RATE = "base rate"  # name of the baseline that ignores the inputs
N_CONFIDENCE_BINS = 10  # number of bins of the expected calibration error


class Forecast(NamedTuple):
    """Predictions for N rows, and their comparison with the observed targets.

    Parameters
    ----------
    log_density : ndarray (N,)
        Log predictive density, or log probability, of the observed target, in nats.
    mean : ndarray (N,), optional
        Predicted means of numbers or counts; None for classes, as the next two.
    crps : ndarray (N,), optional
        Continuous ranked probability score, in units of the target.
    pit : ndarray (N,), optional
        Probability integral transform: the predicted probability of a smaller target.
    proba : ndarray (N, C), optional
        Predicted probabilities of the classes; None for numbers and counts.
    """

    log_density: Array
    mean: Any = None
    crps: Any = None
    pit: Any = None
    proba: Any = None

    @staticmethod
    def concatenate(forecasts: list[Forecast]) -> Forecast:
        """Return one forecast with the rows of several forecasts, in the order of the list."""
        fields: list[Any] = []
        for arrays in zip(*forecasts, strict=True):
            fields.append(None if arrays[0] is None else np.concatenate(arrays))
        return Forecast(*fields)


def forecast_learner(
    model: Any,
    x: Any,
    y: Array,
    rng: np.random.Generator,
    exposure: Array | None = None,
) -> Forecast:
    """Return the forecast of a fitted learner for test rows.

    Parameters
    ----------
    model : BayesianMLPRegressor or BayesianMLPClassifier
        The fitted learner.
    x, y : array-like (N, d_in), ndarray (N,)
        Inputs and targets of the test rows.
    rng : numpy.random.Generator
        Breaks ties between y and predictive draws.
    exposure : ndarray (N,), optional
        Exposure of each row, if the learner was fitted with one.
    """
    log_density = model.log_predictive_density(x, y, exposure=exposure)
    if hasattr(model, "classes_"):
        return Forecast(log_density, proba=model.predict_proba(x))
    forecasts = []
    for start in range(0, len(y), MAX_BATCH_ROWS):
        rows = slice(start, start + MAX_BATCH_ROWS)
        given = {} if exposure is None else {"exposure": exposure[rows]}
        draws = model.sample_y(x[rows], N_PREDICTIVE_DRAWS, **given).T
        mean = model.predict(x[rows], **given)
        forecasts.append(_from_draws(mean, log_density[rows], draws, y[rows], rng))
    return Forecast.concatenate(forecasts)


def forecast_baseline(
    model: Any,
    task: str,
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    rng: np.random.Generator,
    class_weight: str | None = None,
    exposures: tuple[Array, Array] | None = None,
) -> Forecast:
    """Fit a baseline to training rows, and return its forecast for test rows.

    Parameters
    ----------
    model : scikit-learn estimator
        One of `baselines`, not yet fitted.
    task : {'regression', 'classification', 'counts'}
        Task, which determines the predictive distribution.
    train, test : tuple of ndarray (N, d_in), ndarray (N,)
        Inputs and target of the training rows, and of the test rows.
    rng : numpy.random.Generator
        Draws counts and breaks ties.
    class_weight : {'balanced'}, optional
        Weights of the training rows by class, as in `BayesianMLPClassifier`. The base rate is not
        weighted, since a weighted one would not be the base rate.
    exposures : tuple of ndarray (N,), optional
        Exposures of the training and the test rows, of counts. The baselines predict rates y / e,
        with e as weights of the rows: a Poisson likelihood of y with the offset log e has the same
        derivatives (D72).
    """
    x, y = train
    x_test, y_test = test
    weights = None
    if class_weight and not isinstance(model, DummyClassifier):
        weights = compute_sample_weight(class_weight, y)
    if exposures is not None:
        weights = exposures[0]
        y = y / weights
    fit_arguments = {}
    if weights is not None:
        steps = getattr(model, "steps", None)
        prefix = f"{steps[-1][0]}__" if steps else ""
        fit_arguments[f"{prefix}sample_weight"] = weights
    model.fit(x, y, **fit_arguments)
    if task == "classification":
        proba = model.predict_proba(x_test)
        labels = np.searchsorted(model.classes_, y_test)
        p_true = proba[np.arange(len(y_test)), labels]
        return Forecast(np.log(np.maximum(p_true, np.finfo(float).tiny)), proba=proba)
    mean = model.predict(x_test)
    if exposures is not None:
        mean = mean * exposures[1]
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
    """Return the forecast of predictive draws (T, N), with randomised ranks of `y` as PIT values.

    `mean`, `log_density` and `y` are (N,); `rng` breaks ties.
    """
    crps = crps_draws(draws[..., None], y[:, None], fair=True)[:, 0]
    n_below = (draws < y).sum(axis=0)
    n_equal = (draws == y).sum(axis=0)
    rank = (n_below + rng.random(len(y)) * (n_equal + 1)) / (len(draws) + 1)
    return Forecast(log_density, mean, crps, rank)


def baselines(task: str, n_rows: int, seed: int) -> dict[str, Any]:
    """Return the baselines for a task, by name: a linear model, boosting, and the base rate.

    Parameters
    ----------
    task : {'regression', 'classification', 'counts'}
        Task, which determines the models.
    n_rows : int
        Number of training rows.
    seed : int
        Seed of the random numbers of boosting.
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
    """Score over the held-out rows, and its standard error or None for a score without one."""

    value: float
    error: float | None

    def __str__(self) -> str:
        """Return the score and its error as text, with two digits of the error."""
        if self.error is None:
            return f"{self.value:.3f}"
        if not 1e-9 * abs(self.value) < self.error < np.inf:
            return f"{self.value:.4g}"
        # number of decimals with which the error has two significant digits
        decimals = max(0, 1 - int(np.floor(np.log10(self.error))))
        if decimals > 6 or abs(self.value) >= 1e7:
            return f"{self.value:.4g} ± {self.error:.2g}"
        return f"{self.value:.{decimals}f} ± {self.error:.{decimals}f}"


def score_forecast(forecast: Forecast, y: Array) -> dict[str, Score]:
    """Return the scores of a forecast, with standard errors, by metric such as 'rmse'.

    Parameters
    ----------
    forecast : Forecast
        Forecast for N rows.
    y : ndarray (N,)
        Observed targets; a class is given by its column in ``forecast.proba``.
    """
    if forecast.proba is not None:
        _, is_right = top_label(forecast.proba, y)
        recalls = [share_score(is_right[y == label]) for label in np.unique(y)]
        balanced = float(np.mean([recall.value for recall in recalls]))
        errors = [float(recall.error or 0.0) for recall in recalls]
        balanced_error = float(np.linalg.norm(errors)) / len(errors)
        calibration = expected_calibration_error(top_label_reliability(forecast, y))
        return {
            "accuracy": share_score(is_right),
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
        )  # standard error of a square root by the delta method
    is_inside = np.abs(forecast.pit - 0.5) <= INTERVAL_LEVEL / 2
    return {
        "rmse": Score(rmse, error),
        "log_density": _mean(forecast.log_density),
        "crps": _mean(forecast.crps),
        "coverage": share_score(is_inside),
    }


def _ranking_scores(proba: Array, y: Array) -> dict[str, Score]:
    """Return ROC AUC and average precision: of the rarer of two classes, or means over classes.

    Each class is ranked against all others, and the mean over classes is unweighted (macro
    average). Classes that no row has, or all rows have, are left out. `proba` (N, C) are
    probabilities, `y` (N,) the observed classes as columns of it.
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
    """Return the Brier score of each row (N,): 0 to 1 for two classes, 0 to 2 for more.

    It is the squared error of the probabilities, summed over the classes; for two classes, half.
    `proba` (N, C) are probabilities, `y` (N,) the observed classes as columns of it.
    """
    one_hot = y[:, None] == np.arange(proba.shape[1])
    squares = np.square(proba - one_hot).sum(axis=1)
    return squares / 2.0 if proba.shape[1] == 2 else squares


def top_label_reliability(forecast: Forecast, y: Array) -> Reliability:
    """Return the share of rows whose most probable class is right, in 10 bins of its probability.

    Parameters
    ----------
    forecast : Forecast
        Forecast of classes.
    y : ndarray (N,)
        Observed classes, as columns of ``forecast.proba``.
    """
    confidence, is_right = top_label(forecast.proba, y)
    return reliability(np.minimum(confidence, 1.0), is_right, N_CONFIDENCE_BINS)


def _mean(values: Array) -> Score:
    """Return the mean of `values` (N,) and its standard error, None if N is 1 or one infinite."""
    values = np.asarray(values, float)
    error = None
    if len(values) > 1 and np.isfinite(values).all():
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Score(float(values.mean()), error)


def share_score(holds: Array) -> Score:
    """Return the share of rows, 0 to 1, for which `holds` (N,) is true, and its standard error.

    The error is the standard deviation of Beta(k + 1, n - k + 1) if it is true for k of n rows.
    The usual standard error would be 0 if k is 0 or n.
    """
    n = len(holds)
    k = int(np.count_nonzero(holds))
    return Score(k / n, float(stats.beta(k + 1, n - k + 1).std()))

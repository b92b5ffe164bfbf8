"""Scorers for scikit-learn: ``scoring=`` of `cross_val_score`, `GridSearchCV` and the like.

Each is a function (estimator, X, y) of a fitted learner, or of a `Pipeline` or a search around one,
and greater is better. Settings are fixed by `functools.partial`::

    cross_val_score(model, X, y, scoring=log_density_scorer)
    cross_val_score(model, X, y, scoring=partial(interval_scorer, coverage=0.8))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..numeric.layout import Array
from ..numeric.validation import proper_fraction
from .calibration import crps_draws, interval_score
from .predictive import blocks_of_rows

__all__ = ["crps_scorer", "interval_scorer", "log_density_scorer"]

# largest number of rows whose predictive draws are in memory at once
MAX_BATCH_ROWS = 2000


def log_density_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return the mean log predictive density of `y`, in nats per row; for classes of their labels.

    Parameters
    ----------
    estimator : BayesianMLPRegressor or BayesianMLPClassifier, or a Pipeline or search around one
        The fitted estimator.
    X, y : array-like (N, d_in), (N,) or (N, K)
        Inputs and targets. The log density of several outputs is that of all of them together.
    sample_weight : array-like (N,), optional
        Weight of each row in the mean; by default 1.
    """
    learner, X = _learner_of(estimator, X)
    density = learner.log_predictive_density(X, y)
    return float(np.average(density, weights=sample_weight))


def crps_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, n_draws: int = 500
) -> float:
    """Return minus the mean continuous ranked probability score (CRPS), in units of y (D34).

    It is computed from draws of y, the same ones at every call, and unbiased by their number. For
    numbers and counts; of several outputs the mean.

    Parameters
    ----------
    estimator : BayesianMLPRegressor, or a Pipeline or search around one
        The fitted estimator.
    X, y : array-like (N, d_in), (N,) or (N, K)
        Inputs and targets.
    sample_weight : array-like (N,), optional
        Weight of each row in the mean; by default 1.
    n_draws : int
        Number of draws of y at each row, >= 2.

    Raises
    ------
    TypeError
        For a classifier.
    """

    def crps_of_rows(learner: Any, x: Any, targets: Array) -> Array:
        """Return the CRPS (B, K) of rows `x`."""
        drawn = learner.sample_y(x, n_draws).reshape(*targets.shape, n_draws)
        return crps_draws(np.moveaxis(drawn, -1, 0), targets, fair=True)

    return _mean_loss(crps_of_rows, "CRPS", estimator, X, y, sample_weight)


def interval_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, coverage: float = 0.9
) -> float:
    """Return minus the mean interval score of central predictive intervals, in units of y (D35).

    The score is the width of the interval, plus 2 / (1 - coverage) times the distance of a target
    outside. For numbers and counts; of several outputs the mean.

    Parameters
    ----------
    estimator : BayesianMLPRegressor, or a Pipeline or search around one
        The fitted estimator.
    X, y : array-like (N, d_in), (N,) or (N, K)
        Inputs and targets.
    sample_weight : array-like (N,), optional
        Weight of each row in the mean; by default 1.
    coverage : float
        Probability of the intervals, above 0 and below 1.

    Raises
    ------
    TypeError
        For a classifier.
    """
    proper_fraction("coverage", coverage)

    def score(learner: Any, x: Any, targets: Array) -> Array:
        """Return the interval score (B, K) of rows `x`."""
        ends = learner.predict_interval(x, coverage).reshape(*targets.shape, 2)
        return interval_score(ends[..., 0], ends[..., 1], targets, coverage)

    return _mean_loss(score, "interval", estimator, X, y, sample_weight)


def _mean_loss(
    loss: Callable[[Any, Any, Array], Array],
    name: str,
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> float:
    """Return minus the mean of `loss`, a function (learner, x, targets) of rows in batches.

    `name` is that of the score in the message for a classifier.
    """
    learner, X = _learner_of(estimator, X)
    if hasattr(learner, "classes_"):
        raise TypeError(
            f"the {name} score is for numbers and counts; {type(learner).__name__} predicts "
            "classes: use log_density_scorer, or scoring='neg_brier_score'"
        )
    targets = np.asarray(y, float)
    n_rows = getattr(X, "shape", (len(X),))[0]
    if targets.shape != (n_rows, learner.n_outputs_)[: learner.y_ndim_]:
        raise ValueError(
            f"y must have the columns of fit, {learner.n_outputs_}, and as many rows as X, "
            f"{n_rows}; got shape {targets.shape}"
        )
    targets = targets.reshape(n_rows, learner.n_outputs_)
    losses = [
        loss(learner, X[rows], targets[rows]).mean(axis=1)
        for rows in blocks_of_rows(len(targets), MAX_BATCH_ROWS)
    ]
    return -float(np.average(np.concatenate(losses), weights=sample_weight))


def _learner_of(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the learner inside a Pipeline or a search, and `X` as the learner takes it."""
    while not hasattr(estimator, "log_predictive_density"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            raise TypeError(
                "scored are BayesianMLPRegressor and BayesianMLPClassifier, or a Pipeline or a "
                f"search around one; got {type(estimator).__name__}. In place of "
                "TransformedTargetRegressor use target='log'"
            )
    return estimator, X

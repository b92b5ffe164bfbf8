"""What a learner says when a result is not what it seems: overflow, and a collapsed prior."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import Estimator
from ..model.objectives import MLE, Objective
from ..numeric.layout import Layout
from ..training import Training

__all__ = ["need_finite", "warn_of_collapse", "warn_of_scale"]

Array = NDArray[Any]
COLLAPSED = 1e-3  # of its start: a learned prior this narrow has switched the network off
NARROWEST = 1e-6
LEAST_KL = 1.0  # nats: below, the data have told the weights next to nothing


def need_finite(what: str, found: Array, x: Array) -> None:
    """Raise ValueError unless `found` (N, ...) is finite, naming the row of `x` that is not."""
    finite = np.isfinite(found).reshape(len(found), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmax(np.abs(x[row])))
        raise ValueError(
            f"{what} overflows {x.dtype} at row {row}: X there is as far as {x[row, column]:.3g} "
            f"standard deviations from its mean (column {column}; with standardize=False: in its "
            "own units). Check that row; it may be in other units than the rows of fit. If it is "
            "ordinary, the fitted weights or the noise are too large: fit again, with "
            "standardize=True or y in other units, and see whether training or sampling converge"
        )


def warn_of_scale(weights: Array, objective: Objective) -> None:
    """Say so when weights sum to 1, and a prior will outweigh all rows together (D45)."""
    normalised = len(weights) > 1 and abs(weights.sum() - 1.0) < 1e-6
    if normalised and not isinstance(objective, MLE):
        warnings.warn(
            f"sample_weight sums to 1: all {len(weights)} rows together tell the posterior as much "
            "as one row. If only their ratios are meant, as by AdaBoostClassifier, use "
            "inference='mle', or multiply them by the number of rows",
            UserWarning,
            stacklevel=5,
        )


def warn_of_collapse(estimator: Estimator, state: Training) -> None:
    """Say so when a learned prior has shrunk until it rules alone (D17, R8).

    Narrow alone is no fault; but where the posterior is the prior, the data rule nothing.
    """
    prior = estimator.model.prior
    if not prior.blocks() or not state.history:
        return
    start = prior.deviation(Layout(prior.blocks()).views(prior.init(np.float64)))
    now = prior.deviation(estimator.layout.views(state.theta))
    kl = state.history[-1].kl
    nothing_learned = now < start and kl < LEAST_KL
    collapsed = np.isfinite(start) and now < COLLAPSED * start
    if collapsed or now < NARROWEST or nothing_learned:
        warnings.warn(
            f"the learned prior has collapsed: the standard deviation of a weight under it fell "
            f"from {start:.3g} to {now:.3g}, the KL term to {kl:.2g} nats, so that predictions "
            "hardly depend on X. Fix the prior (learn=False), train for fewer epochs, or use more "
            "data or a smaller network",
            UserWarning,
            stacklevel=4,
        )

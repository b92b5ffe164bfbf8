"""Which row to measure next: what its answer would tell about the weights (D84)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric.layout import Array

__all__ = ["information_gain"]


def information_gain(learner: Any, X: Any) -> Array:
    r"""Return what measuring y at each row would tell about the weights, in nats (D84).

    For numbers it is :math:`\frac12 \log(1 + v / \sigma^2)`, with the epistemic variance v of the
    mean and the aleatoric variance of y: the mutual information of y and the weights if both are
    Gaussian, and an upper bound if only the noise is, and known. Where the noise depends on the
    weights too, it is what y tells of its mean, at least, and nothing of what it tells of the
    noise. For classes it is the epistemic part of their entropy, the mutual information itself
    (BALD). Measure where it is largest, fit again, and ask again: rows that are chosen together
    tell much of it twice.

    Parameters
    ----------
    learner : BayesianMLPRegressor or BayesianMLPClassifier
        Fitted learner.
    X : array-like (N, d_in) or DataFrame
        Rows that could be measured.

    Returns
    -------
    ndarray (N,)
        At least 0. Of several outputs it is the sum, at least what all together tell.

    Raises
    ------
    ValueError
        If the noise has no variance (Student's t with df <= 2).

    Examples
    --------
    >>> best = X_pool[information_gain(model, X_pool).argmax()]  # doctest: +SKIP
    """
    distribution = learner.predict_distribution(X)
    if hasattr(distribution, "proba"):
        gain: Array = distribution.epistemic
        return gain
    noise = distribution.aleatoric
    if not np.isfinite(noise).all():
        raise ValueError(
            "the noise has no variance, Student's t with df <= 2; choose another likelihood"
        )
    # where the mean is certain nothing is told, even without noise, as of counts of rate 0
    ratio = np.zeros(noise.shape)
    with np.errstate(divide="ignore"):
        np.divide(
            distribution.epistemic, noise, out=ratio, where=distribution.epistemic > 0
        )
    gains = 0.5 * np.log1p(np.square(ratio))  # D84
    total: Array = gains.reshape(len(gains), -1).sum(axis=1)
    return total

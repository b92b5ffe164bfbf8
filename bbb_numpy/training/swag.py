"""SWAG: a Gaussian around the path of stochastic gradient descent (D80)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric.elementary import inverse_softplus
from ..numeric.layout import Array
from ..numeric.validation import Numbers
from ..parts.low_rank import LowRank

__all__ = ["swag"]

# Smallest standard deviation of a weight: weights of dead units do not move
MIN_SIGMA = 1e-6


def swag(snapshots: Any) -> tuple[LowRank, Array]:
    """Return the Gaussian of SWAG around snapshots of a path of descent (D80).

    Its covariance is half that of the snapshots plus half the diagonal of it (Maddox et al. 2019).
    The variances are those of the snapshots, and the correlations half as large; the diagonal half
    of a weight has a standard deviation of at least 1e-6.

    Parameters
    ----------
    snapshots : array-like (T, P)
        Weights along a path of stochastic gradient descent at a constant learning rate, T >= 2:
        usually after each epoch.

    Returns
    -------
    posterior : LowRank
        Posterior of rank T, for ``Reparameterised(model, posterior)``.
    theta : ndarray (P (2 + T),)
        Its parameters: means, raw scales and columns of the covariance.

    Examples
    --------
    >>> from bbb_numpy.training.swag import swag
    >>> posterior, theta = swag([[1.0, 2.0], [3.0, 2.5], [2.0, 4.5]])
    >>> posterior.rank, theta[:2]
    (3, array([2., 3.]))
    """
    path = np.asarray(Numbers((None, None), min_length=2)("snapshots", snapshots))
    mean = np.mean(path, axis=0)
    deviations = (path - mean) / np.sqrt(2.0 * (len(path) - 1.0))
    sigma = np.maximum(np.sqrt(np.sum(deviations**2, axis=0)), MIN_SIGMA)
    columns = (deviations / sigma).T  # half of the covariance (D80)
    theta = np.concatenate([mean, inverse_softplus(sigma), columns.ravel()])
    return LowRank(rank=len(path)), theta.astype(np.result_type(path, np.float32))

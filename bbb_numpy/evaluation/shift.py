"""Estimates for rows of another law, from weighted rows of this one (D85)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numeric.layout import Array
from ..numeric.validation import COUNT, Numbers, accepts

__all__ = ["WeightedMean", "density_ratio", "effective_rows", "weighted_mean"]

WEIGHTS = Numbers((None,), low=0.0, high=1e150, min_length=1)


class WeightedMean(NamedTuple):
    """Estimate of a mean under another law, with its error."""

    mean: float
    standard_error: float
    effective_rows: float  # rows of that law which would give this error


@accepts(weights=WEIGHTS)
def effective_rows(weights: Any) -> float:
    r"""Return the effective sample size :math:`(\sum \omega)^2 / \sum \omega^2` of weights (D85).

    It is between 1 and the number of rows; a mean with these weights has the variance of a mean
    over so many rows, if what is averaged does not depend on the weights.

    Parameters
    ----------
    weights : array-like (N,)
        Importance weights >= 0, one at least above 0; a common factor does not matter.
    """
    weights = np.asarray(weights, float)
    largest = weights.max()
    if largest == 0.0:
        raise ValueError("weights are 0 in every row; no row tells of the other law")
    shares = weights / largest
    return float(shares.sum() ** 2 / np.square(shares).sum())  # D85


def weighted_mean(values: Any, weights: Any) -> WeightedMean:
    """Return the mean of `values` under another law of the inputs (D85).

    Parameters
    ----------
    values : array-like (N,)
        Loss, log density or anything else of held-out rows.
    weights : array-like (N,)
        Density of each row's inputs under the other law / under theirs, up to a common factor.

    Returns
    -------
    WeightedMean
        `standard_error` is that of the delta method; it is too small where `effective_rows` are
        few, since the rows that matter most may be missing.
    """
    rows = effective_rows(weights)
    shares = np.asarray(weights, float)
    shares = shares / shares.sum()
    values = Numbers(shares.shape)("values", values).astype(float)
    mean = float(shares @ values)
    error = float(np.sqrt(np.square(shares * (values - mean)).sum()))  # D85
    return WeightedMean(mean, error, rows)


@accepts(n_here=COUNT, n_there=COUNT)
def density_ratio(proba: Any, n_here: int, n_there: int) -> Array:
    """Return importance weights (N,) from a classifier that tells two samples apart (D85).

    Parameters
    ----------
    proba : ndarray (N,)
        Probability of each row to be of the other law, of a classifier trained on rows of both.
    n_here, n_there : int
        Numbers of rows of this law and of the other that it was trained on.
    """
    p = Numbers((None,), low=0.0, high=1.0)("proba", proba).astype(float)
    if (p == 1.0).any():
        raise ValueError(
            "proba is 1 for some rows: the two laws do not overlap there, and no weight helps"
        )
    ratio: Array = p / (1.0 - p) * (n_here / n_there)  # D85
    return ratio

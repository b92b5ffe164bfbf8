"""Means and standard deviations of columns, for training in standard units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["moments", "standardise"]

Array = NDArray[Any]


def moments(
    array: Array, standardize: bool, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return each column's mean and standard deviation, which is 1 for a constant column.

    Parameters
    ----------
    array : ndarray (N, d)
        Numbers whose columns are summarised.
    standardize : bool
        If False, means of 0 and standard deviations of 1 are returned.
    weights : ndarray (N,), optional
        Weight > 0 of each row in both averages (D45); by default 1.

    Returns
    -------
    mean : ndarray (d,)
    scale : ndarray (d,)
        Standard deviations.
    """
    if not standardize:
        return np.zeros(array.shape[1]), np.ones(array.shape[1])
    largest = np.abs(array).max(axis=0)
    # columns are divided by their largest number, because squares of 1e200 would overflow
    unit = np.where(largest > 0, largest, 1.0)
    scaled = array / unit
    if weights is None:
        mean = scaled.mean(axis=0)
        scale = scaled.std(axis=0)
    else:
        shares = weights / weights.sum()
        mean = shares @ scaled
        scale = np.sqrt(shares @ (scaled - mean) ** 2)  # weighted sd of columns (D45)
    # the deviations of a constant column are rounding errors, which must not be scaled up to 1
    constant = scale <= 10 * np.finfo(float).eps
    mean = np.where(constant, scaled[0], mean)
    return mean * unit, np.where(constant, 1.0, scale * unit)


def standardise(
    array: Array, mean: Array, scale: Array, dtype: Any, name: str
) -> Array:
    """Return (array - mean) / scale as `dtype`.

    Parameters
    ----------
    array : ndarray (N, d)
        Numbers in the units of the data.
    mean, scale : ndarray (d,)
        Mean and standard deviation of each column, from `moments`.
    dtype : dtype
        Dtype of the result.
    name : str
        Name of the array, for error messages.

    Raises
    ------
    ValueError
        If a number is too large for `dtype`.
    """
    with np.errstate(over="ignore"):
        standard = ((array - mean) / scale).astype(dtype)
    if not np.isfinite(standard).all():
        row, column = np.argwhere(~np.isfinite(standard))[0].tolist()
        raise ValueError(
            f"{name} is too large at row {row}, column {column} for {np.dtype(dtype)}: "
            f"{array[row, column]:g} with mean {mean[column]:g} and standard deviation "
            f"{scale[column]:g}"
        )
    return standard

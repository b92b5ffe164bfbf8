"""Shift and scale of columns, for training in standard units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["moments", "standardise"]

Array = NDArray[Any]


def moments(
    array: Array, standardize: bool, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column, 1 where a column is constant.

    Parameters
    ----------
    array : ndarray (N, d)
    standardize : bool
        If False, return means of 0 and standard deviations of 1.
    weights : ndarray (N,), optional
        Weight > 0 of each row, which counts as so many rows (D45); by default 1.

    Returns
    -------
    mean : ndarray (d,)
    scale : ndarray (d,)
        Standard deviations.
    """
    if not standardize:
        return np.zeros(array.shape[1]), np.ones(array.shape[1])
    largest = np.abs(array).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of 1e200 would overflow
    scaled = array / unit
    if weights is None:
        mean = scaled.mean(axis=0)
        scale = scaled.std(axis=0)
    else:
        shares = weights / weights.sum()
        mean = shares @ scaled
        scale = np.sqrt(shares @ (scaled - mean) ** 2)  # D45
    # A constant column leaves rounding errors of the mean, which must not be blown up.
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
    mean, scale : ndarray (d,)
        Results of `moments`.
    dtype : dtype
    name : str
        Name of the array, for errors.

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

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
    """Return mean and standard deviation of the columns of (N, d), 1 where nothing varies.

    With `weights` (N,) > 0 each row counts so many times (D45).
    """
    if not standardize:
        return np.zeros(array.shape[1]), np.ones(array.shape[1])
    largest = np.abs(array).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of 1e200 would overflow
    scaled = array / unit
    if weights is None:
        mean, scale = scaled.mean(axis=0), scaled.std(axis=0)
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
    """Return (array - mean) / scale as `dtype`; a number too large for it is a ValueError."""
    with np.errstate(over="ignore"):
        out = ((array - mean) / scale).astype(dtype)
    if not np.isfinite(out).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise ValueError(
            f"{name} is too large at row {row}, column {column} for {np.dtype(dtype)}: "
            f"{array[row, column]:g} with mean {mean[column]:g} and standard deviation "
            f"{scale[column]:g}"
        )
    return out

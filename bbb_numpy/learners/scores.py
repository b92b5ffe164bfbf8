"""Weights of rows, and R^2 in any units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rows import check_same_rows, check_targets

__all__ = ["check_weights", "r_squared"]

Array = NDArray[Any]


def check_weights(weights: Any, rows: Array, name: str = "sample_weight") -> Array:
    """Return weights of rows (N,), scaled so that they sum to 1; None stands for equal ones.

    Raises
    ------
    TypeError, ValueError
        Unless there is one finite number >= 0 for each of `rows`, and not all are 0.
    """
    if weights is None:
        return np.full(len(rows), 1.0 / len(rows))
    array = check_targets(weights, name)
    if array.ndim != 1 or array.min() < 0 or array.max() == 0:
        raise ValueError(f"{name} must be one number >= 0 per row, not all of them 0")
    check_same_rows(y=rows, **{name: array})
    array = array / array.max()
    return array / array.sum()


def r_squared(y: Array, mean: Array, weights: Array) -> float:
    """Return R^2 of predictions `mean` for `y` (N, K), averaged over the K outputs.

    For a constant column, 1.0 if it is predicted exactly and else 0.0.
    """
    seen = weights > 0
    constant = (y[seen] == y[seen][0]).all(axis=0)
    exact = np.where((y == mean)[seen].all(axis=0), 1.0, 0.0)
    unit = np.maximum(np.abs(y), np.abs(mean)).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)  # squares of 1e200 would overflow
    y, mean = y / unit, mean / unit
    residual = weights @ (y - mean) ** 2  # (K,)
    spread = weights @ (y - weights @ y) ** 2
    with np.errstate(over="ignore"):
        r2 = 1.0 - residual / np.where(constant, 1.0, spread)
    return float(np.where(constant, exact, r2).mean())

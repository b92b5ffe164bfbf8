"""Make an input at which a function loses digits simpler: fewer numbers, fewer digits of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..structures import map_leaves
from .inputs import like_leaf
from .numbers import Point, is_float_leaf

__all__ = ["shrink"]

Array = NDArray[Any]
N_SIGNIFICANT = (
    1,
    2,
    3,
    5,
    8,
    12,
)  # numbers of significant digits that are tried, in this order


def shrink(
    point: Point,
    data: tuple[Any, ...],
    still_fails: Callable[[Point], bool],
    max_runs: int,
) -> Point:
    """Return the simplest point found at which the function still fails.

    Parameters
    ----------
    point : Point
        A point at which it fails.
    data : tuple
        The data of the caller, which are simpler than any others.
    still_fails : callable
        Returns whether the function fails at a point.
    max_runs : int
        Largest number of calls of `still_fails`.
    """
    n_runs = 0
    is_simpler = True
    while is_simpler:
        is_simpler = False
        for simpler in _simpler_points(point, data):
            if n_runs >= max_runs:
                return point
            n_runs += 1
            if still_fails(simpler):
                point = simpler
                is_simpler = True
                break
    return point


def _simpler_points(point: Point, data: tuple[Any, ...]) -> Iterator[Point]:
    """Yield points that are simpler than `point`, the simplest first."""
    if not _are_same(point.data, data):
        yield point._replace(data=data)
        ones = map_leaves(point.data, _ones)
        if not _are_same(point.data, ones):
            yield point._replace(data=ones)
    theta = point.theta
    tried = {theta.tobytes()}
    for simpler in _simpler_arrays(theta):
        simpler = simpler.astype(theta.dtype)
        if simpler.tobytes() not in tried and np.isfinite(simpler).all():
            tried.add(simpler.tobytes())
            yield point._replace(theta=simpler)


def _simpler_arrays(theta: Array) -> Iterator[Array]:
    """Yield arrays (D,) that are simpler than theta: with more zeros, or with fewer digits."""
    nonzero = np.flatnonzero(theta)
    size = len(nonzero)
    while size > 1:
        size = -(-size // 2)
        for start in range(0, len(nonzero), size):
            block = theta.copy()
            block[nonzero[start : start + size]] = 0
            yield block
    for n_digits in N_SIGNIFICANT:
        rounded = _rounded(theta, n_digits)
        if (rounded == theta).all():
            break
        yield rounded
    for i in nonzero:
        for n_digits in (0, *N_SIGNIFICANT):
            entry = _rounded(theta[i], n_digits) if n_digits else np.sign(theta[i])
            if len(str(entry)) >= len(str(theta[i])) and n_digits:
                break
            if abs(entry) != abs(theta[i]):
                yield np.where(np.arange(theta.size) == i, entry, theta)


def _rounded(numbers: Array, n_digits: int) -> Array:
    """Return numbers rounded to `n_digits` significant digits."""
    return np.array([float(f"{x:.{n_digits - 1}e}") for x in numbers.ravel()]).reshape(
        numbers.shape
    )


def _ones(value: Any) -> Any:
    """Return an array or a float of ones, with the signs of `value`, or another value as it is."""
    if not is_float_leaf(value):
        return value
    return like_leaf(value, np.sign(np.asarray(value)))


def _are_same(first: Any, second: Any) -> bool:
    """Return whether two structures of arrays have the same contents."""
    return repr(first) == repr(second)

"""Make an input at which a function loses digits simpler: fewer numbers, fewer digits of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numbers import Point

__all__ = ["shrink"]

Array = NDArray[Any]
# Numbers of significant digits that are tried, in this order
N_SIGNIFICANT = (1, 2, 3, 5, 8, 12)


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
    tried = {(point.theta.tobytes(), repr(point.data))}
    for _ in range(max_runs):
        points = [Point(point.theta, data)]
        for theta in _simpler(point.theta):
            points.append(point._replace(theta=theta))
        keys = [(simpler.theta.tobytes(), repr(simpler.data)) for simpler in points]
        i = next((i for i, key in enumerate(keys) if key not in tried), None)
        if i is None:
            break
        tried.add(keys[i])
        if still_fails(points[i]):
            point = points[i]
    return point


def _simpler(theta: Array) -> Iterator[Array]:
    """Yield arrays (D,) that are simpler than theta: with more zeros, or with fewer digits."""
    yield theta + 0.0  # without -0
    nonzero = np.flatnonzero(theta)
    size = len(nonzero)
    while size > 1:
        size = -(-size // 2)
        for start in range(0, len(nonzero), size):
            block = theta.copy()
            block[nonzero[start : start + size]] = 0
            yield block
    for chosen in (nonzero, *nonzero[:, None]):
        for n_digits in N_SIGNIFICANT:
            rounded = theta.copy()
            rounded[chosen] = [float(f"{x:.{n_digits - 1}e}") for x in theta[chosen]]
            if (rounded == theta).all():
                break
            yield rounded

"""Krasser's regression problem: 32 noisy points on one period of a sine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.validation import FINITE, GENERATOR, INTERVAL, ROWS, accepts, spread

from .kebude import Toy

__all__ = ["one_period", "ten_sine"]

Array = NDArray[Any]


def ten_sine(x: Array) -> Array:
    r"""Return :math:`10 \sin 2\pi x`, elementwise."""
    return 10.0 * np.sin(2.0 * np.pi * x)


@accepts(rng=GENERATOR, rows=ROWS, low=FINITE, high=FINITE, noise=spread)
def one_period(
    rng: np.random.Generator,
    rows: int = 32,
    low: float = -0.5,
    high: float = 0.5,
    noise: float = 1.0,
) -> Toy:
    r"""Draw :math:`y = 10 \sin 2\pi x + \epsilon` on evenly spaced x.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the noise alone: the x are not random.
    rows : int
        N >= 1.
    low, high : float
        First and last x.
    noise : float
        Standard deviation of epsilon, >= 0, in units of y.

    Raises
    ------
    ValueError
        If rows < 1, the range is empty or the noise is negative or not finite.
    """
    INTERVAL("the range", (low, high))
    x = np.linspace(low, high, rows)[:, None]  # (N, 1)
    return Toy(x, ten_sine(x) + noise * rng.standard_normal((rows, 1)), ten_sine)

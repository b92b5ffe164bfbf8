"""The regression problems of the report's Section 2, and Krasser's: curves with noise on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Toy(NamedTuple):
    """A data set whose true curve is known."""

    x: Array  # (N, 1)
    y: Array  # (N, 1)
    truth: Callable[[Array], Array]  # the curve without noise, elementwise


def sine_curve(x: Array) -> Array:
    r"""Return :math:`x + 0.3\sin 2\pi x + 0.3\sin 4\pi x`, elementwise."""
    return x + 0.3 * np.sin(2.0 * np.pi * x) + 0.3 * np.sin(4.0 * np.pi * x)


def cubic_curve(x: Array) -> Array:
    """Return ``x^3``, elementwise."""
    return x**3


def ten_sine(x: Array) -> Array:
    r"""Return :math:`10 \sin 2\pi x`, elementwise."""
    return 10.0 * np.sin(2.0 * np.pi * x)


def _draw(
    rng: np.random.Generator, rows: int, low: float, high: float, noise: float
) -> tuple[Array, Array]:
    """Return x ~ U(low, high) (N, 1) and epsilon ~ N(0, noise^2) (N, 1)."""
    return rng.uniform(low, high, (rows, 1)), noise * rng.standard_normal((rows, 1))


def sine(
    rng: np.random.Generator,
    rows: int = 500,
    low: float = 0.0,
    high: float = 0.5,
    noise: float = 0.02,
) -> Toy:
    r"""Draw the report's first problem (Blundell et al. 2015, Section 5.2).

    .. math:: y = x + 0.3\sin 2\pi(x + \epsilon) + 0.3\sin 4\pi(x + \epsilon) + \epsilon

    One :math:`\epsilon` per row, so y is the curve at :math:`x + \epsilon`: it scatters around
    the curve at x by :math:`|f'(x)|` times as much, 0.063 (root mean square), not 0.02.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws all x first, then all noise.
    rows : int
        N >= 1. The report does not say how many.
    low, high : float
        x ~ U(low, high).
    noise : float
        Standard deviation of epsilon, >= 0, in units of x and y. The report's N(0, 0.02) as a
        variance would drown the curve.
    """
    x, eps = _draw(rng, rows, low, high, noise)
    return Toy(x, sine_curve(x + eps), sine_curve)


def cubic(
    rng: np.random.Generator,
    rows: int = 500,
    low: float = -4.0,
    high: float = 4.0,
    noise: float = 3.0,
) -> Toy:
    r"""Draw the report's second problem, :math:`y = x^3 + \epsilon` (Balan et al. 2015).

    The report has 500, 300 and 125 rows on [-4, 4], [-2.5, 2.5] and [-1, 1]; its N(0, 9) is a
    variance.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws all x first, then all noise.
    rows : int
        N >= 1.
    low, high : float
        x ~ U(low, high).
    noise : float
        Standard deviation of epsilon, >= 0, in units of y.
    """
    x, eps = _draw(rng, rows, low, high, noise)
    return Toy(x, cubic_curve(x) + eps, cubic_curve)


def one_period(
    rng: np.random.Generator,
    rows: int = 32,
    low: float = -0.5,
    high: float = 0.5,
    noise: float = 1.0,
) -> Toy:
    r"""Draw Krasser's :math:`y = 10 \sin 2\pi x + \epsilon` on evenly spaced x.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the noise alone: x is not random.
    rows : int
        N >= 1.
    low, high : float
        First and last x.
    noise : float
        Standard deviation of epsilon, >= 0, in units of y.
    """
    x = np.linspace(low, high, rows)[:, None]  # (N, 1)
    return Toy(x, ten_sine(x) + noise * rng.standard_normal((rows, 1)), ten_sine)

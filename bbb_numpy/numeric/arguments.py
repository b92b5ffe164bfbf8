"""Checks of single arguments, with errors that name them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = [
    "LARGEST",
    "MOST_SAMPLES",
    "MOST_STEPS",
    "SMALLEST",
    "flag",
    "fraction",
    "not_negative",
    "positive",
    "proper_fraction",
    "real",
    "spread",
    "standard_deviation",
    "whole",
]

INFINITY = float("inf")
SMALLEST = float(np.nextafter(0.0, 1.0))  # above 0


# What ends, or fits in memory, wherever it comes from: a number in a file is anybody's.
MOST_SAMPLES = 10**6  # of weights, at once or in a prediction; chains
MOST_STEPS = 10**9  # epochs, draws, leapfrog steps
LARGEST = 2**63 - 1  # what NumPy counts with


def whole(name: str, value: Any, least: int, most: int | None = LARGEST) -> int:
    """Return `value` as an int.

    Raises
    ------
    TypeError
        If it is no number (text, None, a truth value).
    ValueError
        If it is not a whole number >= `least` and <= `most` (None: of any size).
    """
    wanted = f"{name} must be a whole number >= {least}"
    if not _is_number(value):
        raise TypeError(f"{wanted}; got {value!r}")
    number = _float(wanted, value)
    if not least <= number < INFINITY or number != np.floor(number):
        raise ValueError(f"{wanted}; got {value!r}")
    found = int(value) if isinstance(value, Integral) else int(number)
    if most is not None and found > most:
        raise ValueError(f"{wanted} and <= {most}; got {value!r}")
    return found


def real(name: str, value: Any, low: float, high: float, wanted: str = "") -> float:
    """Return `value` as a float, or raise unless ``low <= value < high``."""
    wanted = f"{name} must be {wanted or f'a number >= {low:g} and < {high:g}'}"
    if not _is_number(value):
        raise TypeError(f"{wanted}; got {value!r}")
    number = _float(wanted, value)
    if not low <= number < high:
        raise ValueError(f"{wanted}; got {value!r}")
    return number


def _is_number(value: Any) -> bool:
    """Whether this is a real number: to NumPy a span of time is a whole number too."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def _float(wanted: str, value: Any) -> float:
    """Return a number as a float, or say that it is larger than any."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{wanted}; got a number of {len(str(abs(value)))} digits") from None


def positive(name: str, value: Any) -> float:
    """Return `value` as a float, or raise unless it is positive and finite."""
    return real(name, value, SMALLEST, INFINITY, "positive and finite")


def not_negative(name: str, value: Any) -> float:
    """Return `value` as a float, or raise unless it is finite and at least 0."""
    return real(name, value, 0.0, INFINITY, "finite and >= 0")


def spread(name: str, value: Any) -> float:
    """Return a width that may be 0 as a float, or raise; below 1e150 its square is finite."""
    return real(name, value, 0.0, 1e150, "finite and >= 0, and below 1e150")


def fraction(name: str, value: Any) -> float:
    """Return `value` as a float, or raise unless it is at least 0 and below 1."""
    return real(name, value, 0.0, 1.0)


def proper_fraction(name: str, value: Any, least: float = SMALLEST) -> float:
    """Return `value` as a float, or raise unless it is above 0, at least `least`, and below 1."""
    return real(name, value, least, 1.0, "> 0 and < 1")


def standard_deviation(name: str, value: Any) -> float:
    """Return a standard deviation as a float, or raise.

    Within 1e-150 and 1e150 its square and the square's inverse are finite.
    """
    wanted = "positive and finite, between 1e-150 and 1e150"
    return real(name, value, 1e-150, 1e150, wanted)


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool, or raise TypeError: 'no' and 1 are not truth values."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)

"""A mean and its standard error, and how they are printed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "concise", "estimate"]

Array = NDArray[Any]


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def estimate(values: Array) -> Estimate:
    """Return the mean of independent values and its standard error."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def concise(value: float, error: float, most: int = 9) -> str:
    """Return ``value(error)``, the error in units of the last digit: 0.123(4) is 0.123 +- 0.004.

    With at most `most` decimals; an error below the last of them is left out.

    >>> concise(0.12345, 0.0042), concise(12.3, 1.4), concise(0.0, 0.0), concise(123456, 789)
    ('0.123(4)', '12(1)', '0', '1.235(8)e5')
    """
    if abs(value) >= 1e4:
        power = int(np.floor(np.log10(abs(value))))
        return f"{concise(value / 10.0**power, error / 10.0**power, most)}e{power}"
    if error < 1e-12:  # rounding alone
        return "0" if abs(value) < 1e-9 else f"{value:.4g}"
    if error < 0.5 * 10.0**-most:
        return f"{value:.{most}f}"
    places = min(max(-int(np.floor(np.log10(error))), 0), most)
    if round(error * 10**places) == 10:  # 0.0096 rounds to one unit more
        places = max(places - 1, 0)
    return f"{value:.{places}f}({max(round(error * 10**places), 1)})"

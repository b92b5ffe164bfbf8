"""Rows unlike those of training: beyond the range of a column, or in a new combination (D74)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.layout import Array

__all__ = ["COMBINATION", "Novelty", "TrainingRegion", "find_region"]

# largest probability that a row from the law of the training rows counts as new, by each of the two
# measures, if training rows are enough (D74)
FALSE_ALARM_RATE = 0.01
COMBINATION = "combination of columns"
# Evenly spaced rows, of which scales and combinations of columns are measured
MAX_MEASURED_ROWS = 20_000
MAX_INPUTS = 256  # of which combinations are judged; their axes take d^3 operations
MAX_SCALED = 1e4  # scaled inputs that are larger count as this
CONSTANT = 1e3  # beside the scaled inputs
RIDGE = 1e-6  # added to the variances of scaled inputs, which may be 0 along an axis
ROUNDING = 1e-5  # of scaled inputs in float32


class Novelty(NamedTuple):
    """Which rows are unlike the training rows, and why."""

    outside: NDArray[np.bool_]  # (N,) whether the row is unlike the training rows
    # (N,) str: name of the column farthest beyond its range, or 'combination of columns' if only
    # that is new; '' for a row inside
    column: Array


@dataclass(frozen=True, eq=False)
class TrainingRegion:
    """Where training rows lie, as `find_region` measures it (D74).

    Parameters
    ----------
    centre, scale : ndarray (d,)
        Mean of each input, and a scale of it; the other fields are of z = (x - centre) / scale.
    lower, upper : ndarray (d,)
        Smallest and largest z of each input.
    margin : ndarray (d,)
        Distance beyond that range up to which a value is ordinary.
    axes : ndarray (d + 1, a)
        Axes along which combinations are judged.
    limit : float
        Square of the length of ``[CONSTANT, z] @ axes`` up to which a row is ordinary.
    false_alarm_rate : float
        Bound on the probability that a row from the law of the training rows counts as new.
    """

    centre: Array
    scale: Array
    lower: Array
    upper: Array
    margin: Array
    axes: Array
    limit: float
    false_alarm_rate: float

    def judge(self, x: Array) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return whether rows are outside, (N,), and which input is farthest out, -1 for none.

        Parameters
        ----------
        x : ndarray (N, d)
            Inputs, in the units of the rows that `find_region` has seen.
        """
        z = _scaled(x, self.centre, self.scale)
        beyond = np.maximum(self.lower - z, z - self.upper)
        excess = beyond - self.margin - ROUNDING
        column = np.where((excess > 0).any(axis=1), excess.argmax(axis=1), -1)
        distance = np.square(_with_constant(z) @ self.axes).sum(axis=1)
        is_far = distance > self.limit * (1.0 + ROUNDING)
        return (column >= 0) | is_far, column


def find_region(x: Array) -> TrainingRegion:
    """Return where training rows lie, and how far outside a row from the same law may be (D74).

    Both thresholds are distances that training rows themselves have from the other ones: the k-th
    largest, with k the 100th part of the number of rows, at least 1.

    Parameters
    ----------
    x : ndarray (N, d)
        Inputs of the training rows.
    """
    few = x[:: len(x) // MAX_MEASURED_ROWS + 1].astype(np.float64)
    scale = _robust_scale(few)
    centre = few.mean(axis=0)
    z = _scaled(x, centre, scale)
    lower, upper = z.min(axis=0), z.max(axis=0)
    # inputs of one or two values, such as those of categories, have no margin and no axes
    varies = ((z > lower) & (z < upper)).any(axis=0)
    margin = np.where(varies, _threshold(_gaps(z, varies)), 0.0)
    if x.shape[1] > MAX_INPUTS:
        varies[:] = False
    used = np.append(True, varies)
    rows = _with_constant(_scaled(few, centre, scale))[:, used]
    ridge = RIDGE * len(rows) * np.eye(rows.shape[1])
    variances, directions = np.linalg.eigh(rows.T @ rows + ridge)
    axes = np.zeros((len(used), len(variances)))
    axes[used] = directions / np.sqrt(variances)
    leverage = np.square(rows @ axes[used]).sum(axis=1)
    limit = _threshold(
        leverage / (1.0 - leverage)
    )  # distance from all other rows (D74)
    rate = _rank(len(x)) / (len(x) + 1) + _rank(len(few)) / (len(few) + 1)
    return TrainingRegion(centre, scale, lower, upper, margin, axes, limit, rate)


@np.errstate(over="ignore")
def _robust_scale(x: Array) -> Array:
    """Return a scale of each column (d,) that a few far rows do not change; of a Gaussian its sd.

    It is the distance of the quartiles / 1.349, if that is 0 the standard deviation, then 1.
    """
    quartiles = np.percentile(x, [25, 75], axis=0)
    scale = (quartiles[1] - quartiles[0]) / 1.349
    scale = np.where(scale > 0, scale, x.std(axis=0))
    return np.where(scale > 0, scale, 1.0)


@np.errstate(over="ignore")
def _scaled(x: Array, centre: Array, scale: Array) -> Array:
    """Return z = (x - centre) / scale, (N, d) in float64, at most `MAX_SCALED` in size."""
    z = (x.astype(np.float64) - centre) / scale
    return np.clip(z, -MAX_SCALED, MAX_SCALED, out=z)


def _gaps(z: Array, varies: NDArray[np.bool_]) -> Array:
    """Return how far each row (N,) lies beyond the range of all others, in its farthest column.

    It is 0 for rows that hold no largest or smallest value; only columns in `varies` (d,) count.
    """
    gaps = np.zeros(len(z))
    for column in z.T[varies]:
        for signed in (column, -column):
            row = signed.argmax()
            gap = signed[row] - np.delete(signed, row).max()
            gaps[row] = max(gaps[row], gap)
    return gaps


def _rank(n_rows: int) -> int:
    """Return how many of `n_rows` training rows may be as far from the others as a new row."""
    return max(1, int(FALSE_ALARM_RATE * (n_rows + 1)))


def _threshold(distances: Array) -> float:
    """Return the distance that `_rank` of the training rows (N,) have from all others (D74)."""
    rank = _rank(len(distances))
    return float(np.partition(distances, -rank)[-rank])


def _with_constant(z: Array) -> Array:
    """Return `z` (N, d) with a column of the same number before it, (N, d + 1).

    The number is large, so that where rows are fewer than inputs, and a row is a combination of
    others, the coefficients sum to 1.
    """
    return np.insert(z, 0, CONSTANT, axis=1)

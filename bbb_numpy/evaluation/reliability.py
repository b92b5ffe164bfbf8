"""Are probabilities of classes right? Reliability and calibration errors.

All of it is about pairs of a stated probability and what happened, 0 or 1. Several classes
become such pairs by `top_label`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numeric.layout import Array
from ..numeric.validation import (
    MATRIX,
    SAMPLES,
    Check,
    InstanceOf,
    Numbers,
    OneOf,
    accepts,
)

__all__ = [
    "BINNINGS",
    "Reliability",
    "chance_calibration_error",
    "expected_calibration_error",
    "reliability",
    "top_label",
    "wilson",
]

BINNINGS = ("equal width", "equal mass")
COUNTS = Numbers(low=0, high=2**53 - 1, whole=True)  # those that float64 tells apart
BINNED: dict[str, Check] = {
    "proba": Numbers((None,), finite=False, low=0.0, high=1.0, min_length=1),
    "bins": SAMPLES,
    "binning": OneOf(*BINNINGS),
}


class Reliability(NamedTuple):
    """Probabilities in M bins beside what happened, (M,) each; empty bins are left out."""

    low: Array  # edges of the bin
    high: Array
    rows: Array  # how many
    stated: Array  # mean stated probability
    seen: Array  # share of ones
    seen_low: Array  # Wilson interval of `seen`, 95 %
    seen_high: Array
    # of `seen` around `stated`, if all stated probabilities were right
    deviation: Array


@accepts(successes=COUNTS, trials=COUNTS)
def wilson(successes: Any, trials: Any) -> tuple[Array, Array]:
    r"""Return the 95 % interval of Wilson (1927) for a share, elementwise (D35).

    All p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`, where z is the 97.5 % quantile of
    N(0, 1): never a single point, not even at 0 or all successes, and inside [0, 1].
    """
    ones, rows = np.broadcast_arrays(
        np.asarray(successes, int), np.asarray(trials, int)
    )
    if not np.all((rows >= 1) & (ones <= rows)):
        raise ValueError("wilson needs 0 <= successes <= trials and trials >= 1")
    z2 = 1.959963984540054**2
    half = np.sqrt(z2 * (ones * (rows - ones) / rows + 0.25 * z2))
    low, high = ((ones + 0.5 * z2 + side * half) / (rows + z2) for side in (-1.0, 1.0))
    return np.where(ones == 0, 0.0, low), np.where(ones == rows, 1.0, high)


@accepts(proba=MATRIX)
def top_label(proba: Any, labels: Any) -> tuple[Array, Array]:
    """Return the largest probability of each row and whether its class came, (N,) each.

    Parameters
    ----------
    proba : ndarray (N, K)
        Rows sum to 1.
    labels : ndarray (N,)
        Whole numbers 0, ..., K - 1.
    """
    proba, (rows, classes) = np.asarray(proba, float), proba.shape
    labels = Numbers((rows,), low=0, high=classes - 1, whole=True)("labels", labels)
    if not np.all(np.abs(proba.sum(axis=1) - 1.0) < 1e-6):
        raise ValueError("the rows of proba must sum to 1; divide each by its sum")
    best = proba.argmax(axis=1)
    return proba[np.arange(rows), best], (best == labels).astype(float)


@accepts(**BINNED)
def reliability(
    proba: Any, y: Any, bins: int = 10, binning: str = "equal width"
) -> Reliability:
    """Sort rows into bins of their stated probability and count what happened (D35).

    Parameters
    ----------
    proba : ndarray (N,)
        Probability that y is 1.
    y : ndarray (N,)
        0 or 1.
    bins : int
        M >= 1, at most; empty ones are left out.
    binning : {'equal width', 'equal mass'}
        Edges at k / M, or at the quantiles of `proba`. Equal probabilities always share a bin.
    """
    y = Numbers(proba.shape, low=0.0, high=1.0, whole=True)("y", y).astype(float)
    proba = proba.astype(float)
    if binning == "equal width":
        edges = np.arange(bins + 1) / bins
    else:
        edges = np.unique(np.quantile(proba, np.arange(bins + 1) / bins))
        # of equal probabilities: one bin, no width
        edges = np.resize(edges, max(len(edges), 2))
    # [low, high), none below the first one; the last one is closed
    place = np.minimum(np.searchsorted(edges, proba, side="right") - 1, len(edges) - 2)
    count = np.bincount(place)
    kept = np.flatnonzero(count)
    stated, ones, variance = (
        np.bincount(place, values)[kept] for values in (proba, y, proba * (1 - proba))
    )
    count = count[kept]
    seen_low, seen_high = wilson(ones, count)
    return Reliability(
        edges[kept],
        edges[kept + 1],
        count,
        stated / count,
        ones / count,
        seen_low,
        seen_high,
        np.sqrt(variance) / count,
    )


@accepts(table=InstanceOf(Reliability))
def expected_calibration_error(table: Reliability) -> float:
    """Return the mean over rows of |stated - seen| of their bin (D35).

    It is not 0 for right probabilities: compare `chance_calibration_error`.
    """
    return float(table.rows @ np.abs(table.stated - table.seen) / table.rows.sum())


@accepts(table=InstanceOf(Reliability))
def chance_calibration_error(table: Reliability) -> float:
    r"""Return what `expected_calibration_error` is on average when all probabilities are right.

    :math:`E|Z| = \sqrt{2 / \pi}` standard deviations per bin, in the normal limit (D35).
    """
    chance = np.sqrt(2.0 / np.pi) * table.deviation
    return float(table.rows @ chance / table.rows.sum())

"""Are probabilities of classes right? Reliability, calibration errors, Brier score.

All of it is about pairs of a stated probability and what happened, 0 or 1. Several classes
become such pairs by `top_label`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.layout import Array
from ..numeric.validation import (
    MATRIX,
    SAMPLES,
    InstanceOf,
    Numbers,
    OneOf,
    Rule,
    accepts,
    proper_fraction,
)

__all__ = [
    "BINNINGS",
    "BrierParts",
    "Reliability",
    "brier_parts",
    "chance_calibration_error",
    "clustered_mean",
    "expected_calibration_error",
    "reliability",
    "top_label",
    "wilson",
]

BINNINGS = ("equal width", "equal mass")
COUNTS = Numbers(low=0, high=2**53 - 1, whole=True)  # those that float64 tells apart
BINNED: dict[str, Rule] = {
    "proba": Numbers((None,), finite=False, low=0.0, high=1.0, least=1),
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
    deviation: Array  # of `seen` around `stated`, if all stated probabilities were right


class BrierParts(NamedTuple):
    """The Brier score and its parts: score = reliability - resolution + uncertainty + within."""

    score: float
    reliability: float  # mean (stated - seen)^2 over bins: 0 is calibrated
    resolution: float  # mean (seen - base rate)^2 over bins: more is better
    uncertainty: float  # base rate (1 - base rate): what the base rate alone scores
    within: float  # what binning hides: variance less twice the covariance inside bins


@accepts(successes=COUNTS, trials=COUNTS, level=partial(proper_fraction, low=1e-9))
def wilson(successes: Any, trials: Any, level: float = 0.95) -> tuple[Array, Array]:
    r"""Return the interval of Wilson (1927) for a share, elementwise (D35).

    All p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`, where z is the quantile of N(0, 1)
    for `level`: never a single point, not even at 0 or all successes, and inside [0, 1].
    """
    from scipy.special import ndtri  # the learners' extra

    ones, rows = np.broadcast_arrays(np.asarray(successes, int), np.asarray(trials, int))
    if not np.all((rows >= 1) & (ones <= rows)):
        raise ValueError("wilson needs 0 <= successes <= trials and trials >= 1")
    z2 = float(ndtri(0.5 + 0.5 * level)) ** 2
    half = np.sqrt(z2 * (ones * (rows - ones) / rows + 0.25 * z2))
    low, high = ((ones + 0.5 * z2 + side * half) / (rows + z2) for side in (-1.0, 1.0))
    return np.where(ones == 0, 0.0, low), np.where(ones == rows, 1.0, high)


@accepts(values=Numbers((None,)))
def clustered_mean(values: Any, groups: Any) -> tuple[float, float]:
    r"""Return the mean of `values` (N,) and its standard error when groups hang together (D35).

    With residuals r the error is :math:`\frac1N \sqrt{\frac{G}{G - 1} \sum_g (\sum_{i \in g}
    r_i)^2}` over G groups: rows of one group, such as the companies of one day, may be correlated
    in any way, groups may not. With one row per group it is the usual standard error.
    """
    values, groups = np.asarray(values, float), np.asarray(groups)
    if values.shape != groups.shape:
        raise ValueError(f"groups must have shape {values.shape}, as values; got {groups.shape}")
    names, place = np.unique(groups, return_inverse=True)
    count, mean = len(names), values.mean()
    if count < 2:
        raise ValueError(f"clustered_mean needs two groups or more; got {count}")
    sums = np.bincount(place, values - mean)
    variance = sums @ sums * count / (count - 1)
    return float(mean), float(np.sqrt(variance) / len(values))


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
def reliability(proba: Any, y: Any, bins: int = 10, binning: str = "equal width") -> Reliability:
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
    proba, y = _pairs(proba, y)
    if binning == "equal width":
        edges = np.arange(bins + 1) / bins
    else:
        edges = np.unique(np.quantile(proba, np.arange(bins + 1) / bins))
        edges = np.resize(edges, max(len(edges), 2))  # of equal probabilities: one bin, no width
    place = _place(proba, edges)
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


@accepts(**BINNED)
def brier_parts(proba: Any, y: Any, bins: int = 10, binning: str = "equal width") -> BrierParts:
    """Split the Brier score of probabilities (N,) of 1 (Murphy 1973; D35).

    Exact to rounding for any bins: what they hide is a part of its own, `within`
    (Stephenson, Coelho and Jolliffe 2008), and 0 if all probabilities of a bin are equal.
    """
    proba, y = _pairs(proba, y)
    table = reliability(proba, y, bins, binning)
    share, base = table.rows / len(y), y.mean()
    place = _place(proba, np.append(table.low, table.high[-1]))
    stray = proba - table.stated[place]  # of which those in a bin sum to 0
    return BrierParts(
        float(np.mean((proba - y) ** 2)),
        float(share @ (table.stated - table.seen) ** 2),
        float(share @ (table.seen - base) ** 2),
        float(base * (1.0 - base)),
        float(np.mean(stray * stray - 2.0 * stray * y)),
    )


def _place(proba: Array, edges: Array) -> NDArray[np.intp]:
    """Return the bin [low, high) of each probability, none below; the last one is closed."""
    return np.minimum(np.searchsorted(edges, proba, side="right") - 1, len(edges) - 2)


def _pairs(proba: Any, y: Any) -> tuple[Array, Array]:
    y = Numbers(proba.shape, low=0.0, high=1.0, whole=True)("y", y)
    return proba.astype(float), y.astype(float)

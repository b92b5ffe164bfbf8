"""Are probabilities of classes right? Reliability and calibration errors.

The functions take predicted probabilities of an event and outcomes, 1 if it happened and 0 if not.
For several classes `top_label` returns such pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numeric.deprecation import accept_old_attributes
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
EXACT_COUNTS = Numbers(
    low=0, high=2**53 - 1, whole=True
)  # whole numbers that float64 represents exactly
BINNED: dict[str, Check] = {
    "proba": Numbers((None,), finite=False, low=0.0, high=1.0, min_length=1),
    "bins": SAMPLES,
    "binning": OneOf(*BINNINGS),
}


class Reliability(NamedTuple):
    """Predicted probability and observed frequency by bin: an array (M,) per field, M bins."""

    low: Array  # lower edge of the bin
    high: Array  # upper edge of the bin
    n_rows: Array  # number of rows in the bin
    predicted: Array  # mean of the predicted probabilities
    observed: Array  # share of the rows with outcome 1
    observed_low: Array  # lower end of the 95 % Wilson interval of `observed`
    observed_high: Array  # upper end of the 95 % Wilson interval of `observed`
    # standard deviation that `observed` would have if all predicted probabilities were right
    standard_error: Array


accept_old_attributes(
    Reliability,
    {
        "rows": "n_rows",
        "stated": "predicted",
        "seen": "observed",
        "seen_low": "observed_low",
        "seen_high": "observed_high",
        "deviation": "standard_error",
    },
)


@accepts(successes=EXACT_COUNTS, trials=EXACT_COUNTS)
def wilson(successes: Any, trials: Any) -> tuple[Array, Array]:
    r"""Return Wilson's (1927) 95 % confidence interval of a proportion, elementwise (D35).

    It holds all p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`, where z is the 97.5 %
    quantile of N(0, 1). It is never a single point, not even at 0 or all successes, and lies
    inside [0, 1].

    Parameters
    ----------
    successes, trials : array-like of int
        Numbers k of successes in n trials, with 0 <= k <= n and n >= 1.

    Returns
    -------
    low, high : ndarray
        Lower and upper end of the interval, in [0, 1].
    """
    k, n = np.broadcast_arrays(np.asarray(successes, int), np.asarray(trials, int))
    if not np.all((n >= 1) & (k <= n)):
        raise ValueError(
            "successes and trials must satisfy 0 <= successes <= trials and trials >= 1"
        )
    z2 = 1.959963984540054**2
    half = np.sqrt(z2 * (k * (n - k) / n + 0.25 * z2))
    low, high = ((k + 0.5 * z2 + side * half) / (n + z2) for side in (-1.0, 1.0))
    return np.where(k == 0, 0.0, low), np.where(k == n, 1.0, high)


@accepts(proba=MATRIX)
def top_label(proba: Any, labels: Any) -> tuple[Array, Array]:
    """Return the largest class probability of each row, and whether that class is the true one.

    Parameters
    ----------
    proba : ndarray (N, K)
        Probabilities of K classes; rows sum to 1.
    labels : ndarray (N,)
        True classes, whole numbers 0, ..., K - 1.

    Returns
    -------
    largest : ndarray (N,)
        Largest probability of each row.
    right : ndarray (N,)
        1.0 if the most probable class is the true one, else 0.0.
    """
    n_rows, n_classes = proba.shape
    proba = np.asarray(proba, float)
    labels = Numbers((n_rows,), low=0, high=n_classes - 1, whole=True)("labels", labels)
    if not np.all(np.abs(proba.sum(axis=1) - 1.0) < 1e-6):
        raise ValueError("the rows of proba must sum to 1; divide each by its sum")
    best = proba.argmax(axis=1)
    return proba[np.arange(n_rows), best], (best == labels).astype(float)


@accepts(**BINNED)
def reliability(
    proba: Any, y: Any, bins: int = 10, binning: str = "equal width"
) -> Reliability:
    """Return mean predicted probability and observed share of y = 1 by bin of probability (D35).

    Parameters
    ----------
    proba : ndarray (N,)
        Predicted probability that y is 1.
    y : ndarray (N,)
        Outcomes, 0 or 1.
    bins : int
        Number of bins, >= 1; empty bins are left out of the result.
    binning : {'equal width', 'equal mass'}
        Whether the edges are k / bins, or the k / bins quantiles of `proba`. Equal probabilities
        always share a bin.

    Returns
    -------
    Reliability
    """
    y = Numbers(proba.shape, low=0.0, high=1.0, whole=True)("y", y).astype(float)
    proba = proba.astype(float)
    if binning == "equal width":
        edges = np.arange(bins + 1) / bins
    else:
        edges = np.unique(np.quantile(proba, np.arange(bins + 1) / bins))
        # If all probabilities are equal, their quantiles are one edge; repeated, it makes one bin
        edges = np.resize(edges, max(len(edges), 2))
    # Bins are [low, high), the last one [low, high]; no probability is below the first edge
    bin_of_row = np.searchsorted(edges, proba, side="right") - 1
    bin_of_row = np.minimum(bin_of_row, len(edges) - 2)
    n_rows = np.bincount(bin_of_row)
    filled = np.flatnonzero(n_rows)
    n_rows = n_rows[filled]
    proba_sum, n_ones, variance = (
        np.bincount(bin_of_row, values)[filled]
        for values in (proba, y, proba * (1 - proba))
    )
    observed_low, observed_high = wilson(n_ones, n_rows)
    return Reliability(
        low=edges[filled],
        high=edges[filled + 1],
        n_rows=n_rows,
        predicted=proba_sum / n_rows,
        observed=n_ones / n_rows,
        observed_low=observed_low,
        observed_high=observed_high,
        standard_error=np.sqrt(variance) / n_rows,
    )


@accepts(table=InstanceOf(Reliability))
def expected_calibration_error(table: Reliability) -> float:
    """Return the expected calibration error of a reliability table, in [0, 1] (D35).

    It is the mean over rows of |predicted - observed| of the row's bin. It is not 0 for right
    probabilities: compare it with `chance_calibration_error`.
    """
    return float(
        table.n_rows @ np.abs(table.predicted - table.observed) / table.n_rows.sum()
    )


@accepts(table=InstanceOf(Reliability))
def chance_calibration_error(table: Reliability) -> float:
    r"""Return the expected calibration error that chance alone gives, if probabilities are right.

    In the normal limit it is :math:`E|Z| = \sqrt{2 / \pi}` standard errors per bin (D35).
    """
    chance = np.sqrt(2.0 / np.pi) * table.standard_error
    return float(table.n_rows @ chance / table.n_rows.sum())

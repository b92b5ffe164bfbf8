"""The scale on which ``target="auto"`` models y: y, or its logarithm if rows speak for it."""

from __future__ import annotations

import numpy as np

from ..numeric.layout import Array
from ..numeric.standardisation import moments
from .fit_measures import linear_gain
from .fit_report import NEGLIGIBLE_DENSITY, STRONG_EVIDENCE

__all__ = ["TARGET_SCALES", "choose_target"]

TARGET_SCALES = ("identity", "log", "auto")  # values of the learner's argument `target`
MAX_ROWS_OF_CHOICE = 10_000  # largest number of rows that are judged
# Of N rows above 0 the next is at most 0 with probability 1 / (N + 2) (D73): from here on at most
# 2.5 %, what lies below a 95 % interval
MIN_ROWS_OF_LOG = 38


def choose_target(x: Array, y: Array) -> str:
    """Return 'log' if rows are more probable under a line for log y than under one for y (D73).

    The lines are of least squares with Gaussian noise, and both densities are of y: those of Box
    and Cox (1964) for the powers 0 and 1. The logarithm must gain 0.05 nats a row and 5 nats in
    all. A target that is not positive keeps its scale, and one of fewer than 38 rows: a logarithm
    says that no target at or below 0 will come, which so few rows cannot know.

    Parameters
    ----------
    x, y : ndarray (N, d_in), (N, K)
        Inputs and targets. Each row counts once, and outputs are decided on together.
    """
    if len(y) < MIN_ROWS_OF_LOG or not (y > 0).all():
        return "identity"
    rows = slice(None, None, -(-len(y) // MAX_ROWS_OF_CHOICE))
    gain = 0.0
    for column in y[rows].T[..., None]:  # (N, 1) each
        logs = np.log(column)
        ratio = moments(column, True)[1] / moments(logs, True)[1]
        gain += linear_gain(x[rows], logs) - linear_gain(x[rows], column)
        if np.ptp(logs) > 0:
            gain += float(np.log(ratio[0]) - logs.mean())  # Jacobian (D73)
    if gain > max(NEGLIGIBLE_DENSITY, STRONG_EVIDENCE / len(y)):
        return "log"
    return "identity"

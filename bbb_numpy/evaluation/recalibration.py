"""Corrections of predictions by rows that the model has not seen: temperature, factor, conformal.

Each is one number from held-out rows: by `fit_temperature` and `fit_sd_factor` a model says how
sure it should have been there (D76), by `conformal_quantile` its intervals get a guarantee (D77).
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from ..numeric.layout import Array
from ..numeric.validation import MATRIX, Numbers, accepts, proper_fraction

__all__ = [
    "conformal_quantile",
    "conformal_rank",
    "fit_sd_factor",
    "fit_temperature",
    "temper",
]

MODERATE = Numbers(low=-1e150, high=1e150)
# Relative distance from a whole number within which coverage * (N + 1) is one
RANK_TOLERANCE = 1e-12
N_BISECTIONS = 60  # of an interval that holds 1 / temperature
MAX_INVERSE_TEMPERATURE = 2.0**20


def fit_temperature(log_proba: Any, codes: Any, sample_weight: Any = None) -> float:
    r"""Return the temperature with the smallest loss of held-out rows (D76).

    Tempered probabilities are :math:`p_k^{1/T} / \sum_j p_j^{1/T}`; T above 1 makes them less
    sure. Their negative log likelihood is convex in 1 / T, so there is one best T.

    Parameters
    ----------
    log_proba : ndarray (N, C)
        Log probabilities of the classes, or logits: a constant of each row may be missing.
    codes : ndarray (N,)
        Classes of the rows, 0 to C - 1.
    sample_weight : array-like (N,), optional
        Number of times that each row counts, >= 0.

    Returns
    -------
    float
        Temperature > 0.

    Raises
    ------
    ValueError
        If no temperature is best: the loss falls on and on as T falls, since the most probable
        class is right in every row, or as T grows, since probabilities are no better than chance.
    """
    logits = np.asarray(MATRIX("log_proba", log_proba), float)
    n_rows, n_classes = logits.shape
    codes = Numbers((n_rows,), low=0, high=n_classes - 1, whole=True)("codes", codes)
    weights = _weights(sample_weight, n_rows)
    logits = logits - logits.max(axis=1, keepdims=True)
    unit = np.abs(logits).max() or 1.0
    logits = logits / unit
    observed = weights @ logits[np.arange(n_rows), codes.astype(int)]

    def slope(inverse_temperature: float) -> float:
        """Return the derivative of the loss by 1 / T."""
        p = temper(logits, 1.0 / inverse_temperature)
        return float(weights @ (p * logits).sum(axis=1) - observed)  # D76

    if observed >= 0.0:
        raise ValueError(
            "no temperature is best: the most probable class is right in every held-out row; hold "
            "out more rows"
        )
    if float(weights @ logits.mean(axis=1)) >= observed:
        raise ValueError(
            "no temperature is best: the probabilities of held-out rows are no better than chance; "
            "look at the fit first"
        )
    low, high = 0.0, 1.0
    while slope(high) < 0.0 and high < MAX_INVERSE_TEMPERATURE:
        low, high = high, 2.0 * high
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        if slope(middle) < 0.0:
            low = middle
        else:
            high = middle
    return float(unit / high)


def temper(log_proba: Any, temperature: float) -> Array:
    r"""Return probabilities :math:`p_k^{1/T} / \sum_j p_j^{1/T}` (N, C) at temperature T (D76).

    Parameters
    ----------
    log_proba : ndarray (N, C)
        Log probabilities or logits.
    temperature : float
        Temperature T > 0; 1 changes nothing.
    """
    logits = np.asarray(log_proba, float)
    logits = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(logits / temperature)
    tempered: Array = powers / powers.sum(axis=1, keepdims=True)  # D76
    return tempered


@accepts(mean=MODERATE, sd=MODERATE, y=MODERATE)
def fit_sd_factor(mean: Any, sd: Any, y: Any, sample_weight: Any = None) -> Array:
    r"""Return the factor (K,) on standard deviations that suits held-out rows best (D76).

    It is :math:`c = \sqrt{\frac1N \sum_i z_i^2}` with :math:`z = (y - m) / s`: under N(m, c^2 s^2)
    the log density is largest, by :math:`(c^2 - 1)/2 - \log c` nats a row above that of c = 1.

    Parameters
    ----------
    mean, sd, y : ndarray (N, K)
        Predictive means, standard deviations > 0, and targets.
    sample_weight : array-like (N,), optional
        Number of times that each row counts, >= 0.

    Raises
    ------
    ValueError
        If a standard deviation is not positive, or all means are equal to the targets.
    """
    if not np.all(np.asarray(sd) > 0):
        raise ValueError("sd must be positive; some standard deviations are not")
    z = (np.asarray(y, float) - mean) / np.asarray(sd, float)
    weights = _weights(sample_weight, len(z))
    factor: Array = np.sqrt(weights @ (z * z) / weights.sum())  # mean of z^2 (D76)
    if not np.all(factor > 0):
        raise ValueError(
            "the predictive means are equal to all held-out targets, so no factor is best; hold "
            "out rows that the model has not seen"
        )
    return factor


def conformal_rank(n_rows: int, coverage: float) -> int:
    """Return which of `n_rows` scores, in rising order, bounds a new one (D77).

    A new score is at most that one with the probability rank / (n_rows + 1): at least `coverage`,
    and above it by less than 1 / (n_rows + 1).

    Parameters
    ----------
    n_rows : int
        Number N of held-out rows.
    coverage : float
        Probability, above 0 and below 1.

    Raises
    ------
    ValueError
        If there are fewer than coverage / (1 - coverage) rows: no finite bound has the probability.
    """
    rank = ceil(coverage * (n_rows + 1) * (1.0 - RANK_TOLERANCE))  # D77
    if rank > n_rows:
        needed = ceil(coverage / (1.0 - coverage) * (1.0 - RANK_TOLERANCE))
        raise ValueError(
            f"coverage={coverage} needs at least {needed} held-out rows; got {n_rows}, with which "
            f"only an infinite interval has it. Hold out more rows, or ask for a coverage of at "
            f"most {n_rows / (n_rows + 1):.4g}"
        )
    return rank


@accepts(scores=MODERATE, coverage=proper_fraction)
def conformal_quantile(scores: Any, coverage: float = 0.9) -> Array:
    """Return a bound of the score of a new row, from those of N held-out rows (D77).

    If the held-out rows and the new one are exchangeable, for example independent and from one
    law, the new score is at most the bound with a probability of at least `coverage`; without ties
    of at most ``coverage + 1 / (N + 1)``. This holds for any model and any score, but on average
    over rows and over sets of held-out rows.

    Parameters
    ----------
    scores : ndarray (N,) or (N, K)
        Score of each held-out row: how unlike its prediction it is.
    coverage : float
        Probability, above 0 and below 1.

    Returns
    -------
    ndarray () or (K,)

    Raises
    ------
    ValueError
        If N is too small: ``coverage=0.9`` needs 9 rows, 0.99 needs 99.
    """
    scores = np.asarray(scores, float)
    rank = conformal_rank(len(scores), coverage)
    bound: Array = np.partition(scores, rank - 1, axis=0)[rank - 1]  # D77
    return bound


def _weights(sample_weight: Any, n_rows: int) -> Array:
    """Return weights (N,) in float64: ones by default; raise ValueError if all are 0."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = Numbers((n_rows,), low=0.0)("sample_weight", sample_weight).astype(float)
    if not weights.any():
        raise ValueError("sample_weight is 0 in every row; at least one has to count")
    return weights

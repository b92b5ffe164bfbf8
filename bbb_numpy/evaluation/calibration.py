r"""Are predictive distributions right? PIT, coverage of intervals, CRPS.

For real targets the predictive distribution is a mixture over T weight samples,
:math:`F(y) = \frac1T \sum_t \Phi((y - m_t) / s_t)`, given by means m and standard deviations s
(T, N, K). Everything here is exact for that mixture, nothing is drawn from it; `crps_draws`
alone takes draws of y. For probabilities of classes see `reliability`.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..numeric.layout import Array
from ..numeric.validation import ListOf, Numbers, accepts, flag, proper_fraction
from .reliability import wilson

__all__ = [
    "Coverage",
    "coverage",
    "crps_draws",
    "crps_gaussian",
    "crps_mixture",
    "interval_score",
    "pit",
]

# range of numbers whose squares do not overflow
MODERATE = Numbers(low=-1e150, high=1e150)
# range of standard deviations whose squares neither underflow nor overflow
SCALES = Numbers(low=1e-150, high=1e150)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # default probabilities of central intervals
# approximate largest size, in numbers, of the temporary arrays over pairs of draws
BLOCK_NUMBERS = 4_000_000


class Coverage(NamedTuple):
    """Shares of targets inside central predictive intervals: fields (L,) for L levels."""

    level: Array  # nominal probability of the intervals
    share: Array  # share of the targets that lie inside the intervals
    low: Array  # lower end of the 95 % Wilson interval of `share`; rows independent
    high: Array  # upper end of the 95 % Wilson interval of `share`


@accepts(means=MODERATE, scales=SCALES, y=MODERATE)
def pit(means: Any, scales: Any, y: Any) -> Array:
    """Return the probability integral transform F(y) of targets under Gaussian mixtures (D35).

    Its values are uniform on [0, 1] if the predictive distribution is right.

    Parameters
    ----------
    means : ndarray (T, N, K)
        Means of the T components, E[y|x, w_t], in units of y.
    scales : ndarray, broadcastable to means
        Standard deviations of the components > 0, in units of y; a learned noise, for example, is
        (T, 1, 1) or (T, 1, K).
    y : ndarray (N, K)
        Observed targets.

    Returns
    -------
    ndarray (N, K)
        F(y) of each target, the mean over components of their distribution functions.
    """
    means, scales, y = _mixture(means, scales, y)
    return ndtr((y - means) / scales).mean(axis=0)  # mean of the T normal CDFs (D35)


@accepts(pits=Numbers(low=0.0, high=1.0, min_length=1), levels=ListOf(proper_fraction))
def coverage(pits: Any, levels: Any = LEVELS) -> Coverage:
    """Return the share of targets inside central predictive intervals of given `levels` (D35).

    A target is inside if its PIT value F(y) is in [(1 - level) / 2, (1 + level) / 2], so that no
    quantile has to be computed.

    Parameters
    ----------
    pits : array-like
        F(y) of each target, as `pit` returns it, of any shape.
    levels : list of float
        Probabilities of the intervals, strictly between 0 and 1.

    Returns
    -------
    Coverage
    """
    pits = np.ravel(np.asarray(pits, float))
    levels = np.asarray(levels, float)
    inside = (np.abs(pits[:, None] - 0.5) <= 0.5 * levels).sum(axis=0)
    return Coverage(levels, inside / pits.size, *wilson(inside, pits.size))


@accepts(mean=MODERATE, scale=SCALES, y=MODERATE)
def crps_gaussian(mean: Any, scale: Any, y: Any) -> Array:
    r"""Return the continuous ranked probability score of Gaussians, elementwise (D34).

    In units of y, the CRPS of N(mean, scale^2) is
    :math:`\sigma [z (2 \Phi(z) - 1) + 2 \varphi(z) - 1 / \sqrt\pi]` with
    :math:`z = (y - \mu) / \sigma`; smaller is better.

    Parameters
    ----------
    mean, scale, y : array-like
        Means, standard deviations > 0, and observed targets, of shapes that broadcast.
    """
    mean, scale, y = (np.asarray(array, float) for array in (mean, scale, y))
    return _distance(y - mean, scale) - scale / sqrt(pi)  # Gaussian CRPS (D34)


@accepts(means=MODERATE, scales=SCALES, y=MODERATE)
def crps_mixture(means: Any, scales: Any, y: Any) -> Array:
    r"""Return the CRPS (N, K) of mixtures of T equally weighted Gaussians, in units of y (D34).

    The continuous ranked probability score; smaller is better. It is
    :math:`\frac1T \sum_t A(y - m_t, s_t) - \frac1{2 T^2} \sum_{t,u} A(m_t - m_u,
    \sqrt{s_t^2 + s_u^2})` with :math:`A(m, s) = E|m + s Z|`, Z ~ N(0, 1). Each target costs
    T^2 / 2 terms: a few hundred draws are enough, so thin longer chains.

    Parameters
    ----------
    means : ndarray (T, N, K)
        Means of the T components, E[y|x, w_t], in units of y.
    scales : ndarray, broadcastable to means
        Standard deviations of the components > 0, in units of y.
    y : ndarray (N, K)
        Observed targets.
    """
    means, scales, y = _mixture(means, scales, y)
    n_draws = len(means)
    t, u = np.triu_indices(n_draws, 1)
    flat_means, flat_scales = means.reshape(n_draws, -1), scales.reshape(n_draws, -1)
    between = np.empty(flat_means.shape[1])
    step = max(1, BLOCK_NUMBERS // max(len(t), 1))
    for start in range(0, len(between), step):
        m = flat_means[:, start : start + step]
        s = flat_scales[:, start : start + step]
        pairs = _distance(m[t] - m[u], np.hypot(s[t], s[u])).sum(axis=0)
        # Each pair t < u stands for two of the T^2 terms (t, u); each of the T terms with t = u is
        # A(0, s sqrt 2) = 2 s / sqrt(pi)
        between[start : start + step] = (
            2.0 * pairs + 2.0 / sqrt(pi) * s.sum(axis=0)
        ) / n_draws**2
    return _distance(y - means, scales).mean(axis=0) - 0.5 * between.reshape(y.shape)


@accepts(draws=MODERATE, y=MODERATE, fair=flag)
def crps_draws(draws: Any, y: Any, fair: bool = False) -> Array:
    r"""Return the CRPS (N, K) of the empirical distribution of T draws, in units of y (D34).

    The continuous ranked probability score; smaller is better. It is
    :math:`\frac1T \sum_t |x_t - y| - \frac1{2 T^2} \sum_{t,u} |x_t - x_u|`. The double sum is
    computed from the sorted draws in T log T operations,
    :math:`\sum_{t,u} |x_t - x_u| = 2 \sum_i (2 i - T - 1) x_{(i)}`.

    Parameters
    ----------
    draws : ndarray (T, N, K)
        Draws of y, not of its mean.
    y : ndarray (N, K)
        Observed targets.
    fair : bool
        Whether to divide the double sum by T (T - 1) instead of T^2: then the expectation over
        independent draws is the CRPS of the distribution from which they are drawn. Needs T >= 2.
    """
    draws, y = _checked("draws", draws, y)
    n_draws = len(draws)
    if fair and n_draws < 2:
        raise ValueError("the fair CRPS needs at least 2 draws; got 1: draw more")
    from_y = np.abs(draws - y).mean(axis=0)
    # Draws are centred, so that the weighted sum loses fewer digits to cancellation
    ordered = np.sort(draws, axis=0) - draws.mean(axis=0)
    rank = 2.0 * np.arange(1, n_draws + 1) - n_draws - 1.0
    n_pairs = n_draws * n_draws
    if fair:
        n_pairs -= n_draws
    return from_y - np.tensordot(rank, ordered, axes=1) / n_pairs


@accepts(lower=MODERATE, upper=MODERATE, y=MODERATE, coverage=proper_fraction)
def interval_score(lower: Any, upper: Any, y: Any, coverage: float = 0.9) -> Array:
    r"""Return the interval score of central intervals, elementwise, in units of y (D35).

    With a = 1 - coverage it is :math:`(u - l) + \tfrac2a (l - y)_+ + \tfrac2a (y - u)_+`; smaller
    is better, and its mean is smallest for the quantiles a/2 and 1 - a/2 of y (Gneiting and
    Raftery 2007).

    Parameters
    ----------
    lower, upper, y : array-like
        Ends of the intervals and observed targets, of shapes that broadcast.
    coverage : float
        Probability of the intervals, above 0 and below 1.
    """
    lower, upper, y = (np.asarray(array, float) for array in (lower, upper, y))
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return upper - lower + 2.0 / (1.0 - coverage) * outside  # interval score (D35)


def _distance(mean: Array, scale: Array) -> Array:
    """Return E|m + s Z| = m (2 Phi(m/s) - 1) + 2 s phi(m/s), elementwise (D34).

    m is `mean`, s is `scale`, Z a standard normal number.
    """
    z = mean / scale
    tail = ndtr(-np.abs(z))
    density = np.exp(-0.5 * z * z) / sqrt(2.0 * pi)
    return np.abs(mean) * (1.0 - 2.0 * tail) + 2.0 * scale * density


def _checked(name: str, draws: Any, y: Any) -> tuple[Array, Array]:
    """Return `draws` (T, N, K) and `y` (N, K) as float64; raise ValueError if shapes do not fit.

    `name` is the name of the argument `draws` in the error message.
    """
    draws, y = np.asarray(draws, float), np.asarray(y, float)
    if draws.ndim < 2 or not len(draws) or draws.shape[1:] != y.shape:
        raise ValueError(
            f"{name} must be (draws, *shape of y) with at least one draw; got shape "
            f"{draws.shape} for y of shape {y.shape}"
        )
    return draws, y


def _mixture(means: Any, scales: Any, y: Any) -> tuple[Array, Array, Array]:
    """Return `means`, `scales` and `y` as float64, with `scales` broadcast to `means` (T, N, K)."""
    means, y = _checked("means", means, y)
    return means, np.broadcast_to(np.asarray(scales, float), means.shape), y

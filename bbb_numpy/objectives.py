"""Objectives: from (S,) log densities to one number and its cotangents (floor 2).

An objective sees the three log densities of S weight samples and nothing else. It returns
the value to *minimise* and its derivatives with respect to each of them; one chain rule
(`bbb_numpy.gradients`) turns those into the gradient for theta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .workspace import LogDensities

__all__ = [
    "TERMS",
    "Cotangents",
    "Objective",
    "free_energy",
    "geometric_kl_weights",
    "likelihood_term",
    "posterior_term",
    "prior_term",
    "proportional_kl_weights",
]

Array = NDArray[Any]


class Cotangents(NamedTuple):
    """Derivatives of the value with respect to each log density, (S,) each."""

    posterior: Array
    prior: Array
    likelihood: Array


Objective = Callable[[LogDensities, float], tuple[Any, Cotangents]]


def _weighted_means(
    terms: LogDensities, weights: tuple[float, float, float]
) -> tuple[Any, Cotangents]:
    """Return sum_t weight_t mean_s(term_t), and weight_t / S for every sample."""
    samples = len(terms.prior)
    each = np.full(samples, 1.0 / samples, terms.prior.real.dtype)
    posterior, prior, likelihood = (weight * each for weight in weights)
    value = posterior @ terms.posterior + prior @ terms.prior + likelihood @ terms.likelihood
    return value, Cotangents(posterior, prior, likelihood)


def free_energy(terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
    r"""Variational free energy F = -ELBO of one minibatch, in nats (K5, K17, K18 corrected, D8).

    .. math:: F = \frac1S \sum_s \pi_i [\log q(w_s|\theta) - \log P(w_s)] - \log P(D_i|w_s)

    With mean-field q, Gaussian prior, unit noise, S = 1 and :math:`\pi_i = 1/n` this is K18
    with the sign of :math:`\log\sigma_{data}` corrected and no constant dropped:

    .. math:: \frac1n \sum_j \Big[-\log\sigma_j + \log\sigma_{data} - \tfrac12\epsilon_j^2
              + \frac{w_j^2}{2\sigma_{data}^2}\Big] + \tfrac12 (y - \hat y)^2 + \tfrac12\log 2\pi

    Parameters
    ----------
    terms : LogDensities
        Three arrays (S,); the likelihood is summed over the rows of the minibatch.
    kl_weight : float
        The share pi_i of the KL term that this minibatch pays, see `proportional_kl_weights`.

    Returns
    -------
    value : scalar
    cotangents : Cotangents
        ``pi_i / S``, ``-pi_i / S`` and ``-1 / S``.
    """
    return _weighted_means(terms, (kl_weight, -kl_weight, -1.0))


def posterior_term(terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
    """Return the first term of K5 alone, pi_i mean log q(w|theta); for gradient checks."""
    return _weighted_means(terms, (kl_weight, 0.0, 0.0))


def prior_term(terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
    """Return the second term of K5 alone, -pi_i mean log P(w); for gradient checks."""
    return _weighted_means(terms, (0.0, -kl_weight, 0.0))


def likelihood_term(terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
    """Return the third term of K5 alone, -mean log P(D|w); for gradient checks."""
    return _weighted_means(terms, (0.0, 0.0, -1.0))


TERMS: dict[str, Objective] = {
    "posterior": posterior_term,
    "prior": prior_term,
    "likelihood": likelihood_term,
    "free energy": free_energy,
}


def proportional_kl_weights(batch_sizes: ArrayLike) -> Array:
    """Return pi_i = B_i / N for the minibatches of one epoch; they sum to 1 (D6).

    With one example per step this is the 1/n of K18; with a ragged last minibatch it stays
    exact, where 1/M would not.
    """
    rows = np.asarray(batch_sizes, float)
    return rows / rows.sum()


def geometric_kl_weights(batch_sizes: ArrayLike) -> Array:
    """Return Blundell's pi_i = 2^(M-i) / (2^M - 1), i = 1..M, stable for any M (D6).

    The first minibatches are ruled by the prior, the last ones by the data (Blundell et
    al. 2015, Section 3.4). Only the number M of minibatches matters.
    """
    half_powers = 0.5 ** np.arange(1.0, len(np.asarray(batch_sizes)) + 1.0)
    return half_powers / half_powers.sum()

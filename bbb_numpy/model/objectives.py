"""Objectives: from (S,) log densities to one number and its cotangents.

An objective sees the three log densities of S weight samples and nothing else. It returns
the value to *minimise* and its derivatives with respect to each of them; one chain rule
(`bbb_numpy.gradients.reparameterised`) turns those into the gradient for theta.

On minibatch i, which pays the share pi_i of the KL term, every objective is pi_i times
itself with the log likelihood multiplied by 1 / pi_i (D30). For those that are linear in the
log densities (`FreeEnergy`, `MLE`, `MAP`) the minibatches of an epoch then cost, in expectation,
what all data cost at once. The others hold exp(log likelihood): their minibatches are biased.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np

from ..numeric.elementary import log1p, logsumexp
from ..numeric.layout import Array
from ..numeric.validation import (
    COUNT,
    check_fields,
    not_negative,
    proper_fraction,
    real,
)

__all__ = [
    "EUBO",
    "MAP",
    "MLE",
    "TERMS",
    "Cotangents",
    "FreeEnergy",
    "Linear",
    "LogDensities",
    "Objective",
    "PACBayes",
    "Renyi",
    "free_energy",
    "log_weights",
]


class LogDensities(NamedTuple):
    """The three terms of the free energy (K5) for each of S weight samples, in nats."""

    posterior: Array  # (S,) log q(w|theta)
    prior: Array  # (S,) log P(w)
    likelihood: Array  # (S,) log P(D|w) of the rows of the minibatch


class Cotangents(NamedTuple):
    """Derivatives of the objective with respect to each log density, (S,) each."""

    posterior: Array
    prior: Array
    likelihood: Array


Objective = Callable[[LogDensities, float], tuple[Any, Cotangents]]
Factors = tuple[float, float, float]


class Linear:
    """Base class of objectives that are weighted sums of the means of the three terms (D30)."""

    factors: Any  # coefficients of pi_i log q, pi_i log P(w), log P(D_i|w)

    def __call__(self, terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
        """Return the weighted sum of the three terms' means over samples, and its derivatives.

        With weight_t for term t, the value is sum_t weight_t mean_s(term_t), and each cotangent
        weight_t / S.

        Parameters
        ----------
        terms : LogDensities
            Log densities (S,); the likelihood is summed over the rows of the minibatch.
        kl_weight : float
            Share pi_i of the KL term that this minibatch pays, see `kl_weights`.

        Returns
        -------
        value : float
            The objective in nats.
        cotangents : Cotangents
            Its derivatives with respect to the log densities, (S,) each.
        """
        n_samples = len(terms.prior)
        mean = np.full(n_samples, 1.0 / n_samples, terms.prior.real.dtype)
        posterior_factor, prior_factor, likelihood_factor = self.factors
        posterior = posterior_factor * kl_weight * mean
        prior = prior_factor * kl_weight * mean
        likelihood = likelihood_factor * mean
        value = posterior.dot(terms.posterior)  # half the time of @
        value += prior.dot(terms.prior)
        value += likelihood.dot(terms.likelihood)
        return value, Cotangents(posterior, prior, likelihood)


@dataclass(frozen=True)
class FreeEnergy(Linear):
    r"""Variational free energy F = -ELBO, in nats (K5, K17, K18 corrected, D8, R1-R3).

    .. math:: F = \frac1S \sum_s \beta \pi_i [\log q(w_s|\theta) - \log P(w_s)] - \log P(D_i|w_s)

    With mean-field q, Gaussian prior, unit noise, S = 1 and :math:`\pi_i = 1/n` this is K18
    with the sign of :math:`\log\sigma_{data}` corrected and no constant dropped:

    .. math:: \frac1n \sum_j \Big[-\log\sigma_j + \log\sigma_{data} - \tfrac12\epsilon_j^2
              + \frac{w_j^2}{2\sigma_{data}^2}\Big] + \tfrac12 (y - \hat y)^2 + \tfrac12\log 2\pi

    Parameters
    ----------
    beta : float
        Weight >= 0 of the KL term (D24). 1 is the ELBO; below 1 the data count 1/beta times, and
        -F is then no bound on the log evidence of this model.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        """Raise an error unless `beta` is valid."""
        check_fields(self, beta=not_negative)

    @property
    def factors(self) -> Factors:
        """Coefficients of pi_i log q, pi_i log P(w) and log P(D_i|w) in the free energy."""
        return self.beta, -self.beta, -1.0  # beta KL - log P(D|w) (K17, R1-R3, D8, D24)


free_energy = FreeEnergy()


@dataclass(frozen=True)
class MLE(Linear):
    """Maximum likelihood, -log P(D|w): the point estimate without a prior (W1)."""

    factors = (0.0, 0.0, -1.0)  # the loss is -log P(D|w) (W1)


@dataclass(frozen=True)
class MAP(Linear):
    """Maximum a posteriori, -log P(D|w) - log P(w): the point estimate with a prior (W2)."""

    factors = (0.0, -1.0, -1.0)  # the loss is -log P(w) - log P(D|w) (W2)


@dataclass(frozen=True)
class Term(Linear):
    """One of the three terms of K5 alone, as an objective for gradient checks."""

    factors: Factors


TERMS: dict[str, Objective] = {
    "posterior": Term((1.0, 0.0, 0.0)),
    "prior": Term((0.0, -1.0, 0.0)),
    "likelihood": Term((0.0, 0.0, -1.0)),
    "free energy": free_energy,
}


@dataclass(frozen=True)
class PACBayes:
    r"""Bound on the share of wrong classes, as an objective (Perez-Ortiz et al. 2021; D58).

    .. math:: N \log 2\, \big(\sqrt{r + \kappa} + \sqrt \kappa\big)^2, \qquad
              r = -\frac{E_q[\log P(D|w)]}{N \log 2}, \qquad
              \kappa = \frac{KL(q \| P(w)) + \log(2 \sqrt N / \delta)}{2N}

    A wrong prediction gives the right class a probability of at most 1/2, so r is at least the
    share of wrong classes in the rows, and with probability 1 - delta over the rows the square
    bounds the share of wrong classes in new data. Its gradient is that of a `FreeEnergy` whose
    beta depends on r and kappa.

    Parameters
    ----------
    rows : int
        Number N >= 1 of rows of all data; a minibatch pays its share of the bound.
    delta : float
        Probability in (0, 1) that the bound does not hold, over draws of the rows.
    """

    rows: int = 1000
    delta: float = 0.025

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, rows=COUNT, delta=proper_fraction)

    def __call__(self, terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
        """Return the bound in nats, and its derivatives for the log densities (D58).

        Parameters
        ----------
        terms : LogDensities
            Log densities (S,), of which log q - log P(w) is the same KL for all samples.
        kl_weight : float
            Share pi_i of all rows that are in this minibatch.

        Returns
        -------
        value : float
            The objective in nats.
        cotangents : Cotangents
            Its derivatives with respect to the log densities, (S,) each.
        """
        n_samples = len(terms.prior)
        scale = kl_weight * self.rows * log(2.0)
        mean = np.full(n_samples, 1.0 / n_samples, terms.prior.real.dtype)
        confidence = log(2.0 * self.rows**0.5 / self.delta)
        kl = mean.dot(terms.posterior - terms.prior)
        kappa = (kl + confidence) / (2.0 * self.rows)
        root_kappa = np.sqrt(kappa)
        # r + kappa, with r the mean log loss per row in bits
        root_sum = np.sqrt(kappa - mean.dot(terms.likelihood) / scale)
        total = root_kappa + root_sum
        # The derivatives of total^2 are total / root_sum for r and
        # total^2 / (root_kappa root_sum) for kappa
        slope = 0.5 * kl_weight * log(2.0) * (total * total / (root_kappa * root_sum))
        d_kl = mean * slope  # derivative for log q - log P(w) (D58)
        d_likelihood = mean * -(total / root_sum)
        return scale * total * total, Cotangents(d_kl, -d_kl, d_likelihood)


def log_weights(terms: LogDensities, kl_weight: float) -> Array:
    """Return the log importance weight log P(w, D) - log q(w) of each sample (G1, G7, D30).

    It is log P(w) - log q(w) + log P(D_i|w) / pi_i. With all data in one minibatch these weights
    are those of q for the posterior, and their mean estimates the evidence (G1). With
    pi_i = B_i / N the likelihood has Sagar's N/S scaling, of which the exponential is biased.

    Parameters
    ----------
    terms : LogDensities
        Log densities, (S,) each.
    kl_weight : float
        Share pi_i > 0 of the KL term that this minibatch pays.

    Returns
    -------
    ndarray (S,)
        Log weights in nats.
    """
    # log P(w) - log q(w) + log P(D_i|w) / pi_i
    return terms.prior - terms.posterior + terms.likelihood / kl_weight  # G1, D30


def _self_normalised(logs: Array) -> Array:
    """Return the softmax of real log weights `logs` (S,): importance weights that sum to 1 (G7)."""
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


@dataclass(frozen=True)
class Renyi:
    r"""Renyi's bound of order alpha (Li and Turner 2016), as a loss in nats (D25).

    .. math:: -\frac{1}{1-\alpha} \Big[\mathrm{logsumexp}_s\, (1-\alpha) \log w_s - \log S\Big],
              \qquad \log w_s = \log P(w_s, D) - \log q(w_s)

    ``alpha = 0`` is the importance-weighted bound of Burda et al. (2016), IWAE; ``alpha = 1`` is
    the ELBO, its limit, and nothing is lost next to it: with m the mean of the log w, the value is
    computed there as ``m + log1p(mean(expm1((1 - alpha) (log w - m)))) / (1 - alpha)``.

    Parameters
    ----------
    alpha : float
        Any finite number; below 1 the bound covers the posterior's mass, above 1 it seeks modes.
    """

    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Raise an error unless `alpha` is valid."""
        check_fields(self, alpha=partial(real, low=-1e6, high=1e6))

    def __call__(self, terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
        """Return the bound in nats, and its cotangents ``pi_i u``, ``-pi_i u`` and ``-u``.

        Here u = softmax((1 - alpha) log w) over the samples.

        Parameters
        ----------
        terms : LogDensities
            Log densities (S,); the likelihood is summed over the rows of the minibatch.
        kl_weight : float
            Share pi_i > 0 of the KL term that this minibatch pays.

        Returns
        -------
        value : float
            The objective in nats.
        cotangents : Cotangents
            Its derivatives with respect to the log densities, (S,) each.
        """
        order = 1.0 - self.alpha
        if order == 0.0:
            return free_energy(terms, kl_weight)
        logs = log_weights(terms, kl_weight)
        centred = logs - np.mean(logs)
        if np.max(np.abs(order * centred.real)) < 1.0:
            mean = log1p(np.atleast_1d(np.mean(np.expm1(order * centred))))[0]
            bound = np.mean(logs) + mean / order
        else:
            bound = (logsumexp(order * logs) - log(len(logs))) / order
        share = _self_normalised(order * logs.real)  # share in the gradient (D25)
        return -kl_weight * bound, Cotangents(
            kl_weight * share, -kl_weight * share, -share
        )


@dataclass(frozen=True)
class EUBO:
    r"""Evidence upper bound with self-normalised weights (G2-G8): Sagar's Algorithm 1, corrected.

    .. math:: U = E_{P(w|D)}[\log P(D, w) - \log q(w|\theta)] = \log P(D) + KL(P(w|D) \| q)

    estimated by :math:`\sum_s \hat w_s \log w_s` with :math:`\hat w = \mathrm{softmax}(\log w)`.
    The estimate is below U for few samples: with S = 1 it is the ELBO and teaches q nothing.

    Its cotangents are those of a surrogate, with the weights and the samples held fixed (G8):
    they raise log q where the posterior has mass, and for the learned numbers of prior and
    likelihood they raise the evidence (D27), which minimising U would lower.
    """

    def __call__(self, terms: LogDensities, kl_weight: float) -> tuple[Any, Cotangents]:
        """Return the bound in nats, and cotangents ``-pi_i w^``, ``-pi_i w^`` and ``-w^``.

        Here w^ are the normalised importance weights.

        Parameters
        ----------
        terms : LogDensities
            Log densities (S,); the likelihood is summed over the rows of the minibatch.
        kl_weight : float
            Share pi_i > 0 of the KL term that this minibatch pays.

        Returns
        -------
        value : float
            The objective in nats.
        cotangents : Cotangents
            Derivatives of the surrogate with respect to the log densities, (S,) each.
        """
        logs = log_weights(terms, kl_weight)
        share = _self_normalised(logs.real)  # normalised importance weights (G7)
        # A sample of density 0 has share 0; replace its log weight -inf, as 0 times -inf is NaN
        finite_logs = np.where(share > 0, logs, 0.0)
        # Derivatives for log q, log P(w) and log P(D|w) of each sample
        cotangents = Cotangents(-kl_weight * share, -kl_weight * share, -share)  # G4
        # The surrogate: a mean of log weights in which the shares count as constants
        return kl_weight * (share @ finite_logs), cotangents  # G2, G6


NAMED = {
    "objective": {
        "elbo": FreeEnergy(),
        "tempered-elbo": FreeEnergy(0.1),
        "iwae": Renyi(0.0),
        "renyi": Renyi(0.5),
        "eubo": EUBO(),
        "mle": MLE(),
        "map": MAP(),
        # The bound depends on the number of rows, so there is no entry with a name that a user
        # could choose
        "pac-bayes": (None, PACBayes(64, 0.25)),
    }
}

r"""A guarantee for classes to come, from the rows that trained q: PAC-Bayes certificates (D57).

With probability 1 - delta over N rows, for all q at once, if P(w) was fixed before they were seen:

.. math:: \mathrm{kl}(r \,\|\, R) \le \frac{KL(q \| P) + \log(2 \sqrt N / \delta)}{N}

with r the share of wrong classes in the rows and R that of classes to come, both of networks that
are drawn from q anew for every case (Langford and Caruana 2002; Maurer 2004).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ..gradients.estimator import GradientEstimator
from ..gradients.local_reparameterisation import LocalReparameterisation
from ..numeric.buffers import Buffers
from ..numeric.deprecation import accept_old_attributes, renamed_arguments
from ..numeric.layout import Array
from ..numeric.validation import (
    COUNT,
    FLOATS,
    GENERATOR,
    SAMPLES,
    SHARE,
    InstanceOf,
    Numbers,
    accepts,
    not_negative,
    proper_fraction,
)
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from ..parts.posteriors import GaussianPosterior, MeanField
from ..parts.priors import ClosedFormPrior
from .predictive import BLOCK_NUMBERS, blocks_of_rows

__all__ = ["Certificate", "binary_kl", "certificate", "invert_kl", "pac_bayes"]


class Certificate(NamedTuple):
    """Bound on the error rate of networks drawn from q, at probability 1 - delta - delta_draws."""

    # upper bound on the error rate for new cases, each with a newly drawn network
    bound: float
    risk: float  # observed error rate on the rows, over the networks drawn
    # upper bound on the expected error rate on the rows of a network drawn from q; it holds with
    # probability 1 - delta_draws over the draws
    risk_bound: float
    kl: float  # KL divergence KL(q || P(w)) from the prior, in nats
    n_rows: int  # number of rows N on which errors were counted


accept_old_attributes(Certificate, {"rows": "n_rows"})


def binary_kl(q: float, p: float) -> float:
    """Return the KL divergence, in nats, between Bernoulli distributions of means q and p (D57).

    It is inf if p is 0 or 1 and q is not p. For p near q both terms are nearly p - q and cancel;
    they are computed from that difference, so that the relative error is a few eps / abs(p - q).

    Parameters
    ----------
    q, p : float
        Probabilities of the outcome 1, in [0, 1]; the divergence is kl(q || p).
    """
    difference = p - q
    return _kl_term(q, p, difference) + _kl_term(1.0 - q, 1.0 - p, -difference)


def _kl_term(a: float, b: float, difference: float) -> float:
    """Return a log(a / b) for probabilities `a` and `b`; `difference` is the exact b - a."""
    if a == 0.0:
        return 0.0
    if b == 0.0:
        return inf
    if abs(difference) < 0.5 * a:
        return -a * log1p(difference / a)
    return -a * log(b / a)


@renamed_arguments(most="bound")
@accepts(q=SHARE, bound=not_negative)
def invert_kl(q: float, bound: float) -> float:
    """Return the largest probability p whose Bernoulli divergence kl(q || p) is at most `bound`.

    Bisection goes on until no float lies between the two ends; the larger end is returned, so that
    p is rounded up and remains an upper bound.

    Parameters
    ----------
    q : float
        Probability between 0 and 1.
    bound : float
        Bound on the divergence, >= 0, in nats.
    """
    inside = q
    outside = 1.0
    while (middle := inside + 0.5 * (outside - inside)) not in (inside, outside):
        if binary_kl(q, middle) <= bound:
            inside = middle
        else:
            outside = middle
    return outside


@renamed_arguments(rows="n_rows")
@accepts(kl=not_negative, n_rows=COUNT, delta=proper_fraction)
def pac_bayes(risk: float, kl: float, n_rows: int, delta: float) -> float:
    """Return the PAC-Bayes upper bound (Maurer 2004) on the error rate for new cases (D57).

    It holds with probability 1 - delta over the rows, for every q at once.

    Parameters
    ----------
    risk : float
        Error rate on the rows, of networks drawn from q; or an upper bound on it.
    kl : float
        KL(q || P(w)), in nats.
    n_rows : int
        Number of rows N.
    delta : float
        Probability in (0, 1) that the bound fails.
    """
    # Maurer's bound, solved for the error rate by inverting the Bernoulli divergence
    return invert_kl(risk, (kl + log(2.0 * n_rows**0.5 / delta)) / n_rows)  # D57


@accepts(
    estimator=InstanceOf(GradientEstimator),
    theta=FLOATS,
    x=Numbers((None, None), min_length=1),
    y=Numbers((None, None), min_length=1),
    rng=GENERATOR,
    samples=SAMPLES,
    delta=proper_fraction,
    delta_draws=proper_fraction,
)
def certificate(
    estimator: GradientEstimator,
    theta: Array,
    x: Array,
    y: Array,
    *,
    rng: Generator,
    samples: int = 100,
    delta: float = 0.025,
    delta_draws: float = 0.01,
) -> Certificate:
    """Return a PAC-Bayes bound on the error rate of networks drawn from q, for new cases (D57).

    It holds with probability 1 - delta - delta_draws, and for a network that is drawn from q anew
    for every case. A majority vote of many networks makes at most twice as many errors. The bound
    says nothing of the network with the mean weights.

    Parameters
    ----------
    estimator : GradientEstimator
        Model and posterior. The scales of the prior must be fixed, not learned, and KL(q || P(w))
        must have a closed form. The prior must have been chosen *without the rows*, which cannot be
        checked. `CentredGaussianPrior` is centred at weights that were learned from other rows.
    theta : ndarray (D,)
        Flat parameters of q. They may have been trained on the rows with any objective, best with
        `PACBayes`.
    x, y : ndarray (N, d_in), (N, K)
        Inputs and classes of the rows, drawn independently from the distribution of the new cases.
        y is one-hot, or one column of 0 and 1.
    rng : numpy.random.Generator
        Draws the networks.
    samples : int
        Number of networks drawn for each row; no two rows share one, so that N x samples networks
        are drawn.
    delta, delta_draws : float
        Probabilities in (0, 1) that the bound fails because of the choice of the rows, and because
        of the networks that were drawn.

    Returns
    -------
    Certificate
        The bound, and the error rate on the rows and the KL divergence from which it is computed.

    Raises
    ------
    ValueError
        If the prior is not Gaussian or was learned, the posterior has no density, or the likelihood
        is not one of classes.
    """
    model, posterior = estimator.model, estimator.posterior
    n_rows, n_classes = y.shape
    Numbers((estimator.layout.size,))("theta", theta)
    Numbers((n_rows, model.network.sizes[0]))("x, of as many rows as y,", x)
    binary = isinstance(model.likelihood, BernoulliLikelihood) and n_classes == 1
    if not binary and not isinstance(model.likelihood, CategoricalLikelihood):
        raise ValueError(
            "a certificate counts wrong classes: the likelihood must be categorical, or a "
            f"Bernoulli one with a single output; got {model.likelihood!r}, {n_classes} outputs"
        )
    if not isinstance(posterior, GaussianPosterior) or not isinstance(
        model.prior, ClosedFormPrior
    ):
        raise ValueError(
            "a certificate needs KL(q || prior) in closed form: a posterior with a density and a "
            f"Gaussian prior; got {posterior!r} and {model.prior!r}"
        )
    if model.prior.blocks():
        raise ValueError(
            "a certificate needs a prior that does not depend on the rows; got one whose scale is "
            "learned from them: use learn=False"
        )
    kl = _divergence(estimator, theta)
    n_draws = n_rows * samples
    n_wrong = 0
    x = np.asarray(x, theta.dtype)
    for rows, f in _outputs(estimator, theta, x, rng, samples):
        n_wrong += int(np.count_nonzero(_is_wrong(f, y[rows], binary)))
    risk = n_wrong / n_draws
    risk_bound = invert_kl(risk, -log(delta_draws) / n_draws)  # Chernoff (D57)
    bound = pac_bayes(risk_bound, kl, n_rows, delta)
    return Certificate(bound, risk, risk_bound, kl, n_rows)


def _is_wrong(f: Array, y: Array, binary: bool) -> Array:
    """Return a mask (S, B) that is True where a network predicts the wrong class.

    `f` (S, B, K) holds the logits of S networks at B rows, `y` (B, K) the one-hot classes. If
    `binary`, K is 1, `y` is a column of 0 and 1, and the mask is (S, B, 1).
    """
    if binary:
        return (f > 0) != (y > 0.5)
    return f.argmax(-1) != y.argmax(-1)


def _divergence(estimator: GradientEstimator, theta: Array) -> float:
    """Return KL(q || P(w)), in nats, at the posterior parameters `theta`, in float64 (D18, D19)."""
    posterior: Any = estimator.posterior
    prior: Any = estimator.model.prior
    blocks = estimator.layout.views(theta.astype(np.float64))
    entropy = posterior.entropy(posterior.factor(blocks, Buffers()), prior.group_starts)
    expected = prior.expected_log_density({}, blocks["mu"], entropy.total_variance, {})
    # Where q equals the prior the divergence is 0, which rounding could make negative
    return max(0.0, float(-entropy.value - expected.value))


def _outputs(
    estimator: GradientEstimator, theta: Array, x: Array, rng: Generator, samples: int
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of B rows, and outputs (S, B, K) of S networks drawn anew for each row (D57).

    S is `samples`. Under a mean-field posterior the pre-activations of the layers are drawn instead
    of the weights (local reparameterisation, D21). For other posteriors S is 1, and each slice
    comes `samples` times.
    """
    model = estimator.model
    buffers = Buffers()
    if isinstance(estimator.posterior, MeanField):
        local = LocalReparameterisation(model, estimator.posterior)
        step = max(1, BLOCK_NUMBERS // (samples * sum(model.network.sizes)))
        for rows in blocks_of_rows(len(x), step):
            noise = local.draw(rng, samples, len(x[rows]), theta.dtype)
            yield rows, local.row_outputs(theta, noise, x[rows], buffers.rewind())
        return
    step = max(1, BLOCK_NUMBERS // (4 * model.layout.size))
    for rows in list(blocks_of_rows(len(x), step)) * samples:
        eps = estimator.draw_weights(rng, len(x[rows]), theta.dtype)
        # (B, P) one weight vector for each of B rows
        w = estimator.weights(theta, eps, buffers.rewind())
        yield rows, model.predict(w, x[rows][:, None], buffers).swapaxes(0, 1)

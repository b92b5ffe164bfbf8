"""The KL divergence in closed form, and the estimator that samples the likelihood alone.

    F = pi_i KL(q || P(w)) - mean_s log P(D_i|w_s)

The first term has no Monte Carlo error (D18, D19). `local_reparameterisation` and `flipout`
build on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..model.objectives import Cotangents, LogDensities
from ..numeric.elementary import add_scaled
from ..numeric.layout import Array
from ..parts.posteriors import GaussianPosterior, MeanField
from ..parts.priors import ExpectedLogPrior
from .estimator import Batch, GradientEstimator
from .reparameterised import Sampled

__all__ = ["ClosedFormKL", "add_kl", "costs"]


class Costs(NamedTuple):
    """Objective of one step, whose KL(q || P(w)) was computed in closed form."""

    value: Any  # objective in nats
    # log densities, where log q - log P(w) is the KL for every sample
    terms: LogDensities
    cotangents: Cotangents  # derivatives of the objective with respect to the terms
    expected: ExpectedLogPrior  # E_q[log P(w)] and its derivatives


def costs(
    estimator: GradientEstimator, batch: Batch, factor: Any, log_likelihood: Array
) -> Costs:
    """Return the objective and its derivatives, with KL(q || P(w)) in closed form (D18, D19).

    The divergence is KL = -H(q) - E_q[log P(w)], with the entropy H.

    Parameters
    ----------
    estimator : GradientEstimator
        Estimator whose posterior has an entropy, and whose prior has `expected_log_density`.
    batch : Batch
        Arguments of the step. The blocks of `d_blocks` that the prior learns receive the gradient
        of E_q[log P(w)], which `add_kl` multiplies by the weight of the KL later.
    factor : Any
        Scales of q and their derivatives, the result of `posterior.factor`.
    log_likelihood : ndarray (S,)
        log P(D_i|w) of each weight sample, in nats.
    """
    posterior: Any = estimator.posterior
    prior: Any = estimator.model.prior
    entropy = posterior.entropy(factor, prior.group_starts)
    expected = prior.expected_log_density(
        batch.blocks, batch.blocks["mu"], entropy.total_variance, batch.d_blocks
    )
    log_q = np.full(len(log_likelihood), -entropy.value - expected.value)
    terms = LogDensities(log_q, np.zeros_like(log_q), log_likelihood)
    # objective with the exact KL, and its derivatives with respect to the log densities
    value, cotangents = estimator.objective(terms, batch.kl_weight)  # D18, D19
    return Costs(value, terms, cotangents, expected)


def add_kl(
    estimator: GradientEstimator, batch: Batch, factor: Any, cost: Costs
) -> None:
    """Add the gradient of the KL term to the gradient of the likelihood in `batch` (D18, D19).

    Parameters
    ----------
    estimator : GradientEstimator
        Estimator that `costs` was called with.
    batch : Batch
        Arguments of the step; its `d_blocks` hold the gradient of the likelihood term, to which
        that of the KL is added in place.
    factor : Any
        Scales of q, the result of `posterior.factor`.
    cost : Costs
        Result of `costs`.
    """
    posterior: Any = estimator.posterior
    expected = cost.expected
    weight = np.add.reduce(cost.cotangents.posterior)
    for name, _ in estimator.model.prior.blocks():
        batch.d_blocks[name] *= -weight  # KL gradient of the learned scales (D17)
    add_scaled(batch.d_blocks["mu"], expected.d_mean, -weight)
    posterior.add_entropy_vjp(
        factor, -weight, -weight * expected.d_variance, batch.d_blocks
    )


@dataclass(frozen=True)
class ClosedFormKL(Sampled):
    """Estimator that samples the likelihood; KL(q || P(w)) is exact (D18, D19, R1)."""

    posterior: GaussianPosterior = MeanField()
    needs: ClassVar[frozenset[str]] = frozenset({"density", "closed form"})

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Return the objective and its log densities; write the gradient into `batch` (D18, D19).

        Parameters
        ----------
        batch : Batch
            Arguments of the step; `batch.d_blocks` is overwritten by the gradient.

        Returns
        -------
        value : float
            The objective on the minibatch, in nats.
        terms : LogDensities
            Log densities from which it was computed, (S,) each.
        """
        sample = self.posterior.sample(batch.blocks, batch.noise, batch.buffers)
        evaluation = self.model.evaluate(
            sample.w, batch.blocks, batch.x, batch.y, batch.buffers, batch.sample_weight
        )
        cost = costs(self, batch, sample.parts, evaluation.log_likelihood)
        d_w = self.model.likelihood_vjp(
            evaluation, cost.cotangents.likelihood, batch.d_blocks, batch.buffers
        )  # (S, P), derivative of the objective for the weights
        self.posterior.pull_back(sample, d_w, None, batch.d_blocks)
        add_kl(self, batch, sample.parts, cost)
        return cost.value, cost.terms


NAMED = {
    "estimator": {
        "closed-form-kl": ClosedFormKL,
        "closed-form-kl-antithetic": partial(ClosedFormKL, antithetic=True),
    }
}

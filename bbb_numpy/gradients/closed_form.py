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
    """The objective of one step, KL(q || P(w)) in it by its formula."""

    value: Any
    terms: LogDensities  # log q - log P is the KL for every sample
    cotangents: Cotangents  # of the terms
    expected: ExpectedLogPrior


def costs(
    family: GradientEstimator, at: Batch, parts: Any, log_likelihood: Array
) -> Costs:
    """Return the objective, with KL = -H(q) - E_q[log P(w)] in closed form (D18, D19).

    `parts` is the `factor` of q. The gradient of E_q[log P(w)] for the prior's own numbers stands
    in `at.d_blocks`, until `add_kl` weighs it.
    """
    posterior: Any = family.posterior
    prior: Any = family.model.prior
    entropy = posterior.entropy(parts, prior.group_starts)
    expected = prior.expected_log_density(
        at.blocks, at.blocks["mu"], entropy.total_variance, at.d_blocks
    )
    log_q = np.full(len(log_likelihood), -entropy.value - expected.value)
    terms = LogDensities(log_q, np.zeros_like(log_q), log_likelihood)
    value, cotangents = family.objective(terms, at.kl_weight)  # D18, D19
    return Costs(value, terms, cotangents, expected)


def add_kl(family: GradientEstimator, at: Batch, parts: Any, found: Costs) -> None:
    """Add the gradient of the KL term to that of the likelihood (D18, D19)."""
    posterior: Any = family.posterior
    weight, expected = np.add.reduce(found.cotangents.posterior), found.expected
    for name, _ in family.model.prior.blocks():
        at.d_blocks[name] *= -weight  # D17
    add_scaled(at.d_blocks["mu"], expected.d_mean, -weight)
    posterior.add_entropy_vjp(
        parts, -weight, -weight * expected.d_variance, at.d_blocks
    )


@dataclass(frozen=True)
class ClosedFormKL(Sampled):
    """Sample the likelihood alone; KL(q || P(w)) by its formula (D18, D19, R1)."""

    posterior: GaussianPosterior = MeanField()
    needs: ClassVar[frozenset[str]] = frozenset({"density", "closed form"})

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient of the objective (D18, D19)."""
        sample = self.posterior.sample(at.blocks, at.noise, at.buffers)
        found = self.model.evaluate(
            sample.w, at.blocks, at.x, at.y, at.buffers, at.sample_weight
        )
        cost = costs(self, at, sample.parts, found.log_likelihood)
        of_data = cost.cotangents.likelihood
        # (S, P)
        d_w = self.model.likelihood_vjp(found, of_data, at.d_blocks, at.buffers)
        self.posterior.pull_back(sample, d_w, None, at.d_blocks)
        add_kl(self, at, sample.parts, cost)
        return cost.value, cost.terms


NAMED = {
    "estimator": {
        "closed-form-kl": ClosedFormKL,
        "closed-form-kl-antithetic": partial(ClosedFormKL, antithetic=True),
    }
}

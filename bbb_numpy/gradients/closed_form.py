"""The KL divergence in closed form, and the estimator that samples the likelihood alone.

    F = pi_i KL(q || P(w)) - mean_s log P(D_i|w_s)

The first term has no Monte Carlo error (D18, D19). `local_reparameterisation` and `flipout`
build on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..model.objectives import FreeEnergy, LogDensities, free_energy
from ..numeric.elementary import add_scaled
from ..numeric.layout import Array
from ..parts.posteriors import Density, MeanField
from .family import Batch, Family
from .reparameterised import Sampled

__all__ = ["ClosedFormKL", "add_kl", "shares"]


def shares(at: Batch) -> Array:
    """Return -1/S (S,), the cotangents of the samples' log likelihoods."""
    return np.full(len(at.noise), -1.0 / len(at.noise), at.grad.real.dtype)


def add_kl(
    family: Family, at: Batch, parts: Any, each: Array, log_likelihood: Array
) -> tuple[Any, LogDensities]:
    """Add KL(q || P(w)) to the cost, and its gradient to that of the likelihood (D18, D19).

    KL = -H(q) - E_q[log P(w)], with `parts` the `factor` of q and `each` the `shares`. Of the
    log densities that are returned log q - log P is the KL for every sample.
    """
    objective: Any = family.objective
    posterior: Any = family.posterior
    prior: Any = family.model.prior
    weight = objective.beta * at.kl_weight
    entropy = posterior.entropy(parts, prior.starts)
    expected = prior.expected_log_density(
        at.blocks, at.blocks["mu"], entropy.total_variance, at.d_blocks
    )
    for name, _ in prior.blocks():
        at.d_blocks[name] *= -weight  # D17
    add_scaled(at.d_blocks["mu"], expected.d_mean, -weight)
    posterior.add_entropy_vjp(parts, -weight, -weight * expected.d_variance, at.d_blocks)
    kl = -entropy.value - expected.value
    log_q = np.full(len(log_likelihood), kl)
    value = weight * kl + each @ log_likelihood  # D18, D19
    return value, LogDensities(log_q, np.zeros_like(log_q), log_likelihood)


@dataclass(frozen=True)
class ClosedFormKL(Sampled):
    """Sample the likelihood alone; KL(q || P(w)) by its formula (D18, D19, R1)."""

    posterior: Density = MeanField()
    objective: FreeEnergy = free_energy

    needs: ClassVar[frozenset[str]] = frozenset({"density", "linear", "closed form"})

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient of the free energy (D18, D19)."""
        sample = self.posterior.sample(at.blocks, at.noise, at.buffers)
        found = self.model.evaluate(sample.w, at.blocks, at.x, at.y, at.buffers, at.sample_weight)
        each = shares(at)
        d_w = self.model.likelihood_vjp(found, each, at.d_blocks, at.buffers)  # (S, P)
        self.posterior.pull_back(sample, d_w, None, at.d_blocks)
        return add_kl(self, at, sample.parts, each, found.log_likelihood)

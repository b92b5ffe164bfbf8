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
from ..numeric.buffers import Buffers
from ..numeric.elementary import add_scaled
from ..numeric.layout import Array, Params
from ..parts.posteriors import MeanField
from ..parts.priors import ClosedFormPrior
from .family import Density, Evaluated
from .reparameterised import Sampled

__all__ = ["ClosedFormKL", "add_kl", "exact_terms"]


def add_kl(
    posterior: Density,
    prior: ClosedFormPrior,
    blocks: Params,
    parts: Any,
    weight: float,
    d_blocks: Params,
) -> Any:
    """Return KL(q || P(w)) and add `weight` times its gradient to `d_blocks` (D18, D19).

    KL = -H(q) - E_q[log P(w)], with `parts` the posterior's `factor`.
    """
    entropy = posterior.entropy(parts, prior.starts)
    expected = prior.expected_log_density(blocks, blocks["mu"], entropy.total_variance, d_blocks)
    for name, _ in prior.blocks():
        d_blocks[name] *= -weight  # D17
    add_scaled(d_blocks["mu"], expected.d_mean, -weight)
    posterior.add_entropy_vjp(parts, -weight, -weight * expected.d_variance, d_blocks)
    return -entropy.value - expected.value


def exact_terms(kl: Any, log_likelihood: Array) -> LogDensities:
    """Return the log densities of which log q - log P is the KL for every sample."""
    each = np.full(len(log_likelihood), kl)
    return LogDensities(each, np.zeros_like(each), log_likelihood)


@dataclass(frozen=True)
class ClosedFormKL(Sampled):
    """Sample the likelihood alone; KL(q || P(w)) by its formula (D18, D19, R1)."""

    posterior: Density = MeanField()
    objective: FreeEnergy = free_energy

    needs: ClassVar[frozenset[str]] = frozenset({"density", "linear", "closed form"})

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        buffers: Buffers | None = None,
        sample_weight: Array | None = None,
    ) -> Evaluated:
        """Return the free energy on one minibatch and its gradient for theta (D18, D19)."""
        buffers, blocks, grad, d_blocks = self.unpacked(theta, noise, x, y, buffers, sample_weight)
        weight = self.objective.beta * kl_weight

        sample = self.posterior.sample(blocks, noise, buffers)
        found = self.model.evaluate(sample.w, blocks, x, y, buffers, sample_weight)
        each = np.full(len(sample.w), -1.0 / len(sample.w), theta.real.dtype)
        d_w = self.model.likelihood_vjp(found, each, d_blocks, buffers)  # (S, P)
        self.posterior.pull_back(sample, d_w, None, d_blocks)
        prior: Any = self.model.prior
        kl = add_kl(self.posterior, prior, blocks, sample.parts, weight, d_blocks)
        value = weight * kl + each @ found.log_likelihood  # D18, D19
        return Evaluated(value, grad, exact_terms(kl, found.log_likelihood))

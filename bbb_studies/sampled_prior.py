"""Local reparameterisation under a prior whose KL term has no closed form: it is sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.estimator import Batch
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.model.objectives import LogDensities

Array = NDArray[Any]


@dataclass(frozen=True)
class LocalSampledPrior(LocalReparameterisation):
    r"""Sample the outputs for the likelihood, and one weight vector a sample for the prior.

    With the entropy H of q in closed form (D18) and weights w = mu + sigma eps, whose noise is
    independent of that of the outputs (D21), an unbiased estimate of F is

    .. math:: \pi_i \Big( -H - \frac1S \sum_s \log P(w_s) \Big) - \frac1S \sum_s \log P(D_i | z_s)
    """

    needs: ClassVar[frozenset[str]] = frozenset({"density", "linear"})

    @property
    def noise_per_sample(self) -> int:
        """The noise of a weight vector, which all rows share."""
        return self.model.layout.size

    def _zetas(self, noise: Array) -> list[Array]:
        """View what follows the weight vector's noise as zeta (S, B, O) of each layer."""
        return super()._zetas(noise[:, self.noise_per_sample :])

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient of the objective, and return its value and terms."""
        prior = self.model.prior
        likelihood = self.model.likelihood
        blocks = at.d_blocks
        parts = self.posterior.factor(at.blocks, at.buffers)
        eps = at.noise[:, : self.noise_per_sample]
        z, tape = self._forward(at, parts.softplus)
        log_likelihood, saved = likelihood.log_likelihood(
            at.blocks, z, at.y, at.sample_weight
        )
        w = at.blocks["mu"] + parts.softplus * eps
        log_prior, saved_prior = prior.log_density(at.blocks, w, at.buffers)
        entropy = self.posterior.entropy(parts).value
        terms = LogDensities(
            np.full_like(log_prior, -entropy), log_prior, log_likelihood
        )
        value, cotangents = self.objective(terms, at.kl_weight)

        d_z = likelihood.log_likelihood_vjp(saved, cotangents.likelihood, blocks)
        self._backward(at, parts.softplus, tape, d_z)
        d_w = np.zeros_like(w)
        prior.add_vjp(saved_prior, cotangents.prior, d_w, blocks)
        blocks["mu"] += d_w.sum(0)
        blocks["rho"] += (d_w * eps).sum(0)
        blocks["rho"] *= parts.sigmoid  # d sigma/d rho = sig(rho)
        weight = np.add.reduce(cotangents.posterior)
        self.posterior.add_entropy_vjp(parts, -weight, 0.0, blocks)  # D18
        return value, terms

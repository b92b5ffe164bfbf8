"""The KL divergence in closed form, and the estimator that samples the likelihood alone.

    F = pi_i KL(q || P(w)) - mean_s log P(D_i|w_s)

The first term has no Monte Carlo error (D18, D19). `local_reparameterisation` and `flipout`
build on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numeric.workspace import LogDensities, Workspace
from .family import Family, closed_form_prior, need_density, need_linear
from .reparameterised import Sampled

__all__ = ["ClosedFormKL", "add_kl", "check_parts", "remember"]

Array = NDArray[Any]


def add_kl(
    family: Family,
    blocks: dict[str, Array],
    parts: Any,
    weight: float,
    d_blocks: dict[str, Array],
) -> Any:
    """Return KL(q || P(w)) and add `weight` times its gradient to `d_blocks` (D18, D19).

    KL = -H(q) - E_q[log P(w)]. Spends `parts`, the posterior's `spread`.
    """
    posterior, prior = family.density, closed_form_prior(family.model)
    entropy = posterior.entropy(parts, prior.starts)
    expected = prior.expected_log_density(blocks, blocks["mu"], entropy.total_variance, d_blocks)
    for name, _ in prior.blocks():
        d_blocks[name] *= -weight  # D17
    slope = expected.d_mean
    slope *= -weight
    d_blocks["mu"] += slope
    posterior.add_entropy_vjp(parts, -weight, -weight * expected.d_variance, d_blocks)
    return -entropy.value - expected.value


def remember(work: Workspace, kl: Any, log_likelihood: Array) -> None:
    """Leave the KL where training looks for log q - log P."""
    each = np.full(len(log_likelihood), kl)
    work.log_densities = LogDensities(each, np.zeros_like(each), log_likelihood)


def check_parts(estimator: str, family: Family) -> None:
    """Raise unless the free energy of `family` has a KL term in closed form."""
    need_density(estimator, family.posterior)
    need_linear(estimator, family.objective)
    closed_form_prior(family.model, estimator)


@dataclass(frozen=True)
class ClosedFormKL(Sampled):
    """Sample the likelihood alone; KL(q || P(w)) by its formula (D18, D19, R1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parts("ClosedFormKL", self)

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        work: Workspace | None = None,
        frozen: Array | None = None,
    ) -> tuple[Any, Array]:
        """Return the free energy on one minibatch and its gradient for theta.

        Arguments and results as `Reparameterised.value_and_grad`.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)
        weight = self.beta * kl_weight

        sample = self.posterior.sample(blocks, noise, work)
        found = self.model.evaluate(sample.w, blocks, x, y, work)
        each = np.full(len(sample.w), -1.0 / len(sample.w), theta.real.dtype)
        d_w = self.model.likelihood_vjp(found, each, d_blocks, work)  # (S, P)
        self.posterior.pull_back(sample, d_w, None, d_blocks)
        kl = add_kl(self, blocks, sample.parts, weight, d_blocks)
        remember(work, kl, found.log_likelihood)
        return weight * kl + each @ found.log_likelihood, grad

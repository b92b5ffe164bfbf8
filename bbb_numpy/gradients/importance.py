"""Gradient estimators for importance-weighted objectives: IWAE and the EUBO.

`Reparameterised` differentiates IWAE and Renyi as well; the ones here are less noisy, or the
only right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.objectives import EUBO, LogDensities, Renyi
from ..numeric.validation import short_repr
from .estimator import Batch
from .reparameterised import Frozen

__all__ = ["DoublyReparameterised", "SelfNormalised"]


@dataclass(frozen=True)
class DoublyReparameterised(Frozen):
    """The gradient of IWAE without its score term (Tucker et al. 2019; D26).

    The score inside the weights is reparameterised once more, which squares the
    self-normalised weights on the path through w. Numbers of prior and likelihood keep
    the plain weights.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, Renyi) or self.objective.alpha != 0.0:
            raise ValueError(
                "the objective of DoublyReparameterised must be IWAE, Renyi(0.0); got "
                f"{short_repr(self.objective)}. Use Reparameterised"
            )
        if self.antithetic:
            raise ValueError(
                "DoublyReparameterised needs independent samples: its score identity holds each "
                "sample's noise apart. Use antithetic=False, or Reparameterised"
            )

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        r"""Write the doubly reparameterised gradient (D26).

        With :math:`u = \mathrm{softmax}(\log w)`, frozen, the surrogate is

        .. math:: -\sum_s u_s^2 \log w(w_s(\theta); \text{frozen}) - \sum_s u_s \log P(D, w_s)

        in whose second part only the numbers of prior and likelihood move.
        """
        step = self.forward(at)
        c = step.cotangents
        d_w = self.model.vjp(step.joint, c.prior, c.likelihood, at.d_blocks, at.buffers)
        self.posterior.add_density_slope(step.sample, c.posterior, d_w)  # carries u
        d_w *= -c.likelihood[:, None]  # D26: u once more, u^2 in all
        self.posterior.pull_back(step.sample, d_w, None, at.d_blocks)
        return step.value, step.terms

    def frozen_value(self, at: Batch, frozen: Batch) -> Any:
        """Return the surrogate: u and log w frozen, the numbers of prior and likelihood not."""
        there = self.forward(frozen)
        w = self.posterior.sample(at.blocks, at.noise, at.buffers).w
        path = self.densities(w, frozen.blocks, frozen)
        drawn = there.sample.w.astype(w.dtype)
        own = self.model.forward(
            drawn, at.blocks, at.x, at.y, at.buffers, at.sample_weight
        )
        c, u = there.cotangents, -there.cotangents.likelihood
        through_w = c.posterior @ (u * path.posterior) + c.prior @ (u * path.prior)
        through_w += c.likelihood @ (u * path.likelihood)
        return through_w + c.prior @ own.log_prior + c.likelihood @ own.log_likelihood


@dataclass(frozen=True)
class SelfNormalised(Frozen):
    """Sagar's Algorithm 1, corrected: descend the EUBO with samples and weights fixed (G8).

    Without learned numbers in prior or likelihood no backward pass through the network is
    needed.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, EUBO):
            raise ValueError(
                "the objective of SelfNormalised must be EUBO(); got "
                f"{short_repr(self.objective)}. Use Reparameterised"
            )

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        r"""Write the gradient of the surrogate of the EUBO (G8, D27).

        .. math:: -\sum_s \hat w_s [\log q(w_s; \theta) + \log P(D, w_s)]

        with the weights and their shares :math:`\hat w` frozen.
        """
        step = self.forward(at)
        c = step.cotangents
        self.posterior.pull_back_direct(step.sample, c.posterior, at.d_blocks)  # G8
        if self.model.learned():  # D27
            self.model.vjp(step.joint, c.prior, c.likelihood, at.d_blocks, at.buffers)
        return step.value, step.terms

    def frozen_value(self, at: Batch, frozen: Batch) -> Any:
        """Return the surrogate: samples and their shares frozen."""
        there = self.forward(frozen)
        c, w = there.cotangents, there.sample.w.astype(at.grad.dtype)
        found = self.densities(w, at.blocks, at)
        value = c.posterior @ found.posterior + c.prior @ found.prior
        return value + c.likelihood @ found.likelihood


NAMED = {
    "estimator": {
        "doubly-reparameterised": DoublyReparameterised,
        "self-normalised": SelfNormalised,
    }
}

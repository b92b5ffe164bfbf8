"""Gradient estimators for importance-weighted objectives: IWAE and the EUBO.

`Reparameterised` differentiates IWAE and Renyi as well; the ones here are less noisy, or the
only right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..model.objectives import EUBO, Renyi
from ..numeric.buffers import Buffers
from ..numeric.layout import Array
from ..numeric.validation import brief
from ..parts.posteriors import MeanField
from .family import Density, Evaluated
from .reparameterised import Sampled

__all__ = ["DoublyReparameterised", "SelfNormalised"]


@dataclass(frozen=True)
class DoublyReparameterised(Sampled):
    """The gradient of IWAE without its score term (Tucker et al. 2019; D26).

    The score inside the weights is reparameterised once more, which squares the
    self-normalised weights on the path through w. Numbers of prior and likelihood keep
    the plain weights.
    """

    posterior: Density = MeanField()

    needs: ClassVar[frozenset[str]] = frozenset({"density"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, Renyi) or self.objective.alpha != 0.0:
            raise ValueError(
                "the objective of DoublyReparameterised must be IWAE, Renyi(0.0); got "
                f"{brief(self.objective)}. Use Reparameterised"
            )
        if self.antithetic:
            raise ValueError(
                "DoublyReparameterised needs independent samples: its score identity holds each "
                "sample's noise apart. Use antithetic=False, or Reparameterised"
            )

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
        r"""Return the objective and its doubly reparameterised gradient (D26).

        With :math:`u = \mathrm{softmax}(\log w)`, frozen, the surrogate is

        .. math:: -\sum_s u_s^2 \log w(w_s(\theta); \text{frozen}) - \sum_s u_s \log P(D, w_s)

        in whose second part only the numbers of prior and likelihood move.
        """
        step = self.forward(theta, noise, x, y, kl_weight, buffers, sample_weight)
        c = step.cotangents
        d_w = self.model.vjp(step.joint, c.prior, c.likelihood, step.d_blocks, step.buffers)
        self.posterior.add_density_slope(step.sample, c.posterior, d_w)  # carries u
        d_w *= -c.likelihood[:, None]  # D26: u once more, u^2 in all
        self.posterior.pull_back(step.sample, d_w, None, step.d_blocks)
        return Evaluated(step.value, step.grad, step.terms)

    def surrogate(
        self,
        theta: Array,
        frozen: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        sample_weight: Array | None = None,
    ) -> Any:
        """Return the value of the surrogate, whose derivative at `frozen` is the gradient."""
        there = self.forward(frozen, noise, x, y, kl_weight, None, sample_weight)
        moving, fixed, buffers = self.layout.views(theta), self.layout.views(frozen), Buffers()
        w = self.posterior.sample(moving, noise, buffers).w
        scored = self.posterior.log_density(self.posterior.at(fixed, w, buffers))
        path = self.model.forward(w, fixed, x, y, buffers, sample_weight)
        drawn = there.sample.w.astype(w.dtype)
        own = self.model.forward(drawn, moving, x, y, buffers, sample_weight)
        c, u = there.cotangents, -there.cotangents.likelihood
        through_w = c.posterior @ (u * scored) + c.prior @ (u * path.log_prior)
        through_w += c.likelihood @ (u * path.log_likelihood)
        return through_w + c.prior @ own.log_prior + c.likelihood @ own.log_likelihood


@dataclass(frozen=True)
class SelfNormalised(Sampled):
    """Sagar's Algorithm 1, corrected: descend the EUBO with samples and weights fixed (G8).

    Without learned numbers in prior or likelihood no backward pass through the network is
    needed.
    """

    posterior: Density = MeanField()

    needs: ClassVar[frozenset[str]] = frozenset({"density"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective, EUBO):
            raise ValueError(
                f"the objective of SelfNormalised must be EUBO(); got {brief(self.objective)}. "
                "Use Reparameterised"
            )

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
        r"""Return the EUBO and the gradient of its surrogate (G8, D27).

        .. math:: -\sum_s \hat w_s [\log q(w_s; \theta) + \log P(D, w_s)]

        with the weights and their shares :math:`\hat w` frozen.
        """
        step = self.forward(theta, noise, x, y, kl_weight, buffers, sample_weight)
        c = step.cotangents
        self.posterior.pull_back_direct(step.sample, c.posterior, step.d_blocks)  # G8
        if self.model.learned():  # D27
            self.model.vjp(step.joint, c.prior, c.likelihood, step.d_blocks, step.buffers)
        return Evaluated(step.value, step.grad, step.terms)

    def surrogate(
        self,
        theta: Array,
        frozen: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        sample_weight: Array | None = None,
    ) -> Any:
        """Return the value of the surrogate, whose derivative at `frozen` is the gradient."""
        there = self.forward(frozen, noise, x, y, kl_weight, None, sample_weight)
        moving, buffers, c = self.layout.views(theta), Buffers(), there.cotangents
        w = there.sample.w.astype(theta.dtype)
        scored = self.posterior.log_density(self.posterior.at(moving, w, buffers))
        joint = self.model.forward(w, moving, x, y, buffers, sample_weight)
        value = c.posterior @ scored + c.prior @ joint.log_prior
        return value + c.likelihood @ joint.log_likelihood

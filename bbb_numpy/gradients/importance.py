"""Gradient estimators for importance-weighted objectives: IWAE and the EUBO.

`Reparameterised` differentiates IWAE and Renyi as well; the ones here are less noisy, or the
only right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..model.objectives import EUBO, Renyi
from ..numeric.workspace import LogDensities, Workspace
from .family import need_density
from .reparameterised import Sampled

__all__ = ["DoublyReparameterised", "SelfNormalised"]

Array = NDArray[Any]


@dataclass(frozen=True)
class DoublyReparameterised(Sampled):
    """The gradient of IWAE without its score term (Tucker et al. 2019; D26).

    The score inside the weights is reparameterised once more, which squares the
    self-normalised weights on the path through w. Numbers of prior and likelihood keep
    the plain weights.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        need_density("DoublyReparameterised", self.posterior)
        if not isinstance(self.objective, Renyi) or self.objective.alpha != 0.0:
            raise ValueError(
                "DoublyReparameterised is the gradient of IWAE, Renyi(0.0); got "
                f"{self.objective!r}. Use Reparameterised"
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
        work: Workspace | None = None,
        frozen: Array | None = None,
    ) -> tuple[Any, Array]:
        r"""Return the objective and its doubly reparameterised gradient (D26).

        With :math:`u = \mathrm{softmax}(\log w)`, frozen, the surrogate is

        .. math:: -\sum_s u_s^2 \log w(w_s(\theta); \text{frozen}) - \sum_s u_s \log P(D, w_s)

        in whose second part only the numbers of prior and likelihood move. Arguments and results
        as `Reparameterised.value_and_grad`.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)
        if frozen is not None:
            value = self._surrogate(theta, noise, x, y, kl_weight, frozen)

        sample = self.posterior.sample(blocks, noise, work)
        joint = self.model.forward(sample.w, blocks, x, y, work)
        log_q = self.posterior.log_density(sample)
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        bound, c = self.objective(terms, kl_weight)
        work.log_densities = terms

        d_w = self.model.vjp(joint, c.prior, c.likelihood, d_blocks, work)  # carries u
        self.density.add_density_slope(sample, c.posterior, d_w)
        d_w *= -c.likelihood[:, None]  # u once more: u^2 in all
        self.posterior.pull_back(sample, d_w, None, d_blocks)
        return (bound if frozen is None else value), grad

    def _surrogate(
        self, theta: Array, noise: Array, x: Array, y: Array, kl_weight: float, frozen: Array
    ) -> Any:
        """Return the value of the surrogate, whose derivative at `frozen` is the gradient."""
        moving, fixed = self.layout.views(theta), self.layout.views(frozen)
        there = self.posterior.sample(fixed, noise, Workspace())
        w = self.posterior.sample(moving, noise, Workspace()).w
        scored = self.posterior.log_density(self.density.at(fixed, w, Workspace()))
        joint = self.model.forward(there.w, fixed, x, y, Workspace())
        terms = LogDensities(
            self.posterior.log_density(there), joint.log_prior, joint.log_likelihood
        )
        c = self.objective(terms, kl_weight)[1]
        path = self.model.forward(w, fixed, x, y, Workspace())
        own = self.model.forward(there.w.astype(w.dtype), moving, x, y, Workspace())
        u = -c.likelihood
        through_w = c.posterior @ (u * scored) + c.prior @ (u * path.log_prior)
        through_w += c.likelihood @ (u * path.log_likelihood)
        return through_w + c.prior @ own.log_prior + c.likelihood @ own.log_likelihood


@dataclass(frozen=True)
class SelfNormalised(Sampled):
    """Sagar's Algorithm 1, corrected: descend the EUBO with samples and weights fixed (G8).

    Without learned numbers in prior or likelihood no backward pass through the network is
    needed.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        need_density("SelfNormalised", self.posterior)
        if not isinstance(self.objective, EUBO):
            raise ValueError(
                f"SelfNormalised is the gradient of EUBO(); got {self.objective!r}. "
                "Use Reparameterised"
            )

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
        r"""Return the EUBO and the gradient of its surrogate (G8, D27).

        .. math:: -\sum_s \hat w_s [\log q(w_s; \theta) + \log P(D, w_s)]

        with the weights and their shares :math:`\hat w` frozen. Arguments and results as
        `Reparameterised.value_and_grad`.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)

        fixed = blocks if frozen is None else self.layout.views(frozen)
        drawn = self.posterior.sample(fixed, noise, work if frozen is None else Workspace())
        joint = self.model.forward(drawn.w, fixed, x, y, work if frozen is None else Workspace())
        terms = LogDensities(
            self.posterior.log_density(drawn), joint.log_prior, joint.log_likelihood
        )
        value, c = self.objective(terms, kl_weight)
        sample = drawn
        if frozen is not None:
            w = drawn.w.astype(theta.dtype)
            sample = self.density.at(blocks, w, work)
            joint = self.model.forward(w, blocks, x, y, work)
            terms = LogDensities(
                self.posterior.log_density(sample), joint.log_prior, joint.log_likelihood
            )
            value = c.posterior @ terms.posterior + c.prior @ terms.prior
            value += c.likelihood @ terms.likelihood
        work.log_densities = terms

        self.density.pull_back_direct(sample, c.posterior, d_blocks)  # G8
        if self.model.learned():  # D27
            self.model.vjp(joint, c.prior, c.likelihood, d_blocks, work)
        return value, grad

"""The report's gradient estimator, and sticking the landing.

An estimator has four parts: `layout` (what theta holds), `init`, `draw` (the noise), and
`value_and_grad` (deterministic given the noise). Training and gradient checks call the
same `value_and_grad`.

Where the gradient is that of a surrogate, with some of its parts frozen, the estimator has a method
`surrogate` too: the value of that surrogate at one theta, frozen at another. A gradient check
differentiates it around the theta at which it is frozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..model.objectives import EUBO, FreeEnergy, LogDensities, free_energy
from ..numeric.buffers import Buffers
from ..numeric.elementary import standard_normal
from ..numeric.layout import Array
from ..numeric.validation import flag
from ..parts.posteriors import MeanField, PointMass
from .family import Density, Evaluated, Family

__all__ = ["Reparameterised", "Sampled", "StickingTheLanding"]


@dataclass(frozen=True)
class Sampled(Family):
    """An estimator whose noise is one weight vector per sample.

    Parameters
    ----------
    antithetic : bool
        Draw samples in pairs eps, -eps (D23); their number must then be even.
    """

    antithetic: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("antithetic", self.antithetic)
        if self.antithetic and isinstance(self.posterior, PointMass):
            raise ValueError("a point mass has no noise to mirror; use antithetic=False")

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite `noise` (S, P), one weight sample per row (K1, D23).

        Raises
        ------
        ValueError
            If antithetic noise is asked for and the number of samples is odd.
        """
        if not self.antithetic:
            standard_normal(rng, noise)
            return
        half, odd = divmod(len(noise), 2)
        if odd:
            raise ValueError(
                f"antithetic noise comes in pairs: samples must be even; got {len(noise)}"
            )
        np.negative(standard_normal(rng, noise[:half]), out=noise[half:])  # D23


@dataclass(frozen=True)
class Reparameterised(Sampled):
    """The report's estimator: differentiate through w = mu + sigma eps (K19-K30).

    Its parameters are those of `Family`, and `antithetic` of `Sampled`. The objective is any: the
    single terms of `bbb_numpy.model.objectives` are for gradient checks.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.objective, EUBO):
            raise ValueError(
                "the EUBO's weights are exponentials of log q: differentiated through the samples "
                "its gradient is another one, and sigma shrinks to 0. Use SelfNormalised"
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
        r"""Return the objective on one minibatch and its gradient for theta.

        For the report's choices, with :math:`g_w = \partial(-\log P(D|w))/\partial w`:

        .. math::
            \partial F/\partial\mu  &= \pi_i \frac{w}{\sigma_{data}^2} + g_w        && (K21) \\
            \partial F/\partial\rho &= \Big[\pi_i \Big(-\frac1\sigma
                + \frac{w}{\sigma_{data}^2}\epsilon\Big) + g_w \epsilon\Big]
                \frac{1}{1 + e^{-\rho}}                                             && (K30)
        """
        step = self.forward(theta, noise, x, y, kl_weight, buffers, sample_weight)  # K1-K18
        c = step.cotangents
        # K21: d_mu  = d_w                              with d_w = pi w / sigma_data^2 + g_w
        # K30: d_rho = (-pi / sigma + d_w eps) s(rho)   the same d_w: one backward pass
        # Over samples these are sums, since the cotangents carry the 1/S of the mean.
        d_w = self.model.vjp(step.joint, c.prior, c.likelihood, step.d_blocks, step.buffers)
        self.posterior.pull_back(step.sample, d_w, c.posterior, step.d_blocks)  # K27, K29, K30
        return Evaluated(step.value, step.grad, step.terms)


@dataclass(frozen=True)
class StickingTheLanding(Sampled):
    """Leave out the score of q, whose mean is 0 (Roeder et al. 2017; D20).

    log q(w; theta) is differentiated through w alone. Where q is the posterior, every sample
    gives the gradient 0 exactly.
    """

    posterior: Density = MeanField()
    objective: FreeEnergy = free_energy

    needs: ClassVar[frozenset[str]] = frozenset({"density", "linear"})

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
        """Return the objective and the gradient of its surrogate (D20)."""
        step = self.forward(theta, noise, x, y, kl_weight, buffers, sample_weight)
        c = step.cotangents
        # d_w = pi d(-log P(w))/dw + g_w + pi d log q(w; frozen)/dw, the last one -pi eps / sigma
        # d_mu = d_w,  d_rho = d_w eps s(rho)             D20
        d_w = self.model.vjp(step.joint, c.prior, c.likelihood, step.d_blocks, step.buffers)
        self.posterior.add_density_slope(step.sample, c.posterior, d_w)  # D20
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
        """Return the objective with log q(w; frozen) in place of log q(w; theta) (D20)."""
        buffers, blocks, _, _ = self.unpacked(theta, noise, x, y, None, sample_weight)
        w = self.posterior.sample(blocks, noise, buffers).w
        joint = self.model.forward(w, blocks, x, y, buffers, sample_weight)
        scored = self.posterior.at(self.layout.views(frozen), w, buffers)
        log_q = self.posterior.log_density(scored)
        return self.objective(
            LogDensities(log_q, joint.log_prior, joint.log_likelihood), kl_weight
        )[0]

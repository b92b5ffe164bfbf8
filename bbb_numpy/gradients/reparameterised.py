"""The report's gradient estimator, and sticking the landing.

An estimator has four parts: `layout` (what theta holds), `init`, `draw` (the noise), and
`value_and_grad` (deterministic given the noise). Training and gradient checks call the
same `value_and_grad`.

Where the gradient is that of a surrogate, with some of its parts frozen, `value_and_grad` takes
the theta at which they are frozen as an argument. Without it they are frozen at theta itself, as
in training; with it the value is that of the surrogate, which a gradient check can
differentiate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.objectives import EUBO
from ..numeric.workspace import LogDensities, Workspace
from ..parts.posteriors import PointMass
from .family import Family, need_density, need_linear

__all__ = ["Reparameterised", "Sampled", "StickingTheLanding"]

Array = NDArray[Any]


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
        if self.antithetic and isinstance(self.posterior, PointMass):
            raise ValueError("a point mass has no noise to mirror; use antithetic=False")

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        work: Workspace | None = None,
        rows: int = 0,
    ) -> Array:
        """Draw the noise (S, P) of one step, one weight sample per row (K1, D23).

        Raises
        ------
        ValueError
            If antithetic noise is asked for and `samples` is odd.
        """
        if not self.antithetic:
            return self.draw_weights(rng, samples, dtype, work)
        if samples % 2:
            raise ValueError(
                f"antithetic noise comes in pairs: samples must be even; got {samples}"
            )
        half = self.draw_weights(rng, samples // 2, dtype, work)
        return np.concatenate([half, -half])  # D23


@dataclass(frozen=True)
class Reparameterised(Sampled):
    """The report's estimator: differentiate through w = mu + sigma eps (K19-K30).

    Parameters
    ----------
    model : Model
    posterior : MeanField, FullRank or PointMass
    objective : callable
        From log densities to a value and cotangents; `free_energy` trains, the single
        terms of `bbb_numpy.model.objectives` are for gradient checks.
    antithetic : bool
        Draw samples in pairs eps, -eps (D23).
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
        work: Workspace | None = None,
        frozen: Array | None = None,
    ) -> tuple[Any, Array]:
        r"""Return the objective on one minibatch and its gradient for theta.

        For the report's choices, with :math:`g_w = \partial(-\log P(D|w))/\partial w`:

        .. math::
            \partial F/\partial\mu  &= \pi_i \frac{w}{\sigma_{data}^2} + g_w        && (K21) \\
            \partial F/\partial\rho &= \Big[\pi_i \Big(-\frac1\sigma
                + \frac{w}{\sigma_{data}^2}\epsilon\Big) + g_w \epsilon\Big]
                \frac{1}{1 + e^{-\rho}}                                             && (K30)

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it. Real, or complex for a complex step.
        noise : ndarray (S, P)
            From `draw`.
        x, y : ndarray (B, d_in), (B, K)
            One minibatch; B may be 0.
        kl_weight : float
            This minibatch's share pi_i of the KL term.
        work : Workspace, optional
            Reuses the buffers of the previous call, the returned gradient among them.
        frozen : ndarray, optional
            Accepted for the sake of the other estimators: nothing is frozen here.

        Returns
        -------
        value : scalar
            In nats.
        grad : ndarray
            Shape and dtype of `theta`.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)

        sample = self.posterior.sample(blocks, noise, work)  # K1-K4
        joint = self.model.forward(sample.w, blocks, x, y, work)  # K31-K36, K11-K16
        log_q = self.posterior.log_density(sample)  # K6-K10
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, c = self.objective(terms, kl_weight)  # K5, K17, K18
        work.log_densities = terms

        # K21: d_mu  = d_w                              with d_w = pi w / sigma_data^2 + g_w
        # K30: d_rho = (-pi / sigma + d_w eps) s(rho)   the same d_w: one backward pass
        # Over samples these are sums, since the cotangents carry the 1/S of the mean.
        d_w = self.model.vjp(joint, c.prior, c.likelihood, d_blocks, work)  # (S, P)
        self.posterior.pull_back(sample, d_w, c.posterior, d_blocks)
        return value, grad


@dataclass(frozen=True)
class StickingTheLanding(Sampled):
    """Leave out the score of q, whose mean is 0 (Roeder et al. 2017; D20).

    log q(w; theta) is differentiated through w alone. Where q is the posterior, every sample
    gives the gradient 0 exactly.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        need_density("StickingTheLanding", self.posterior)
        need_linear("StickingTheLanding", self.objective)

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
        """Return the objective and the gradient of its surrogate, log q(w; frozen) (D20).

        Arguments and results as `Reparameterised.value_and_grad`.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)

        sample = self.posterior.sample(blocks, noise, work)
        joint = self.model.forward(sample.w, blocks, x, y, work)
        scored = sample
        if frozen is not None:
            scored = self.density.at(self.layout.views(frozen), sample.w, Workspace())
        terms = LogDensities(
            self.posterior.log_density(scored), joint.log_prior, joint.log_likelihood
        )
        value, c = self.objective(terms, kl_weight)
        work.log_densities = terms

        # d_w = pi d(-log P(w))/dw + g_w + pi d log q(w; frozen)/dw, the last one -pi eps / sigma
        # d_mu = d_w,  d_rho = d_w eps s(rho)             D20
        d_w = self.model.vjp(joint, c.prior, c.likelihood, d_blocks, work)
        self.density.add_density_slope(sample, c.posterior, d_w)
        self.posterior.pull_back(sample, d_w, None, d_blocks)
        return value, grad

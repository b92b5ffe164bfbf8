"""The report's gradient estimator, and sticking the landing.

An estimator has four parts: `layout` (what theta holds), `init`, `draw` (the noise), and
`value_and_grad` (deterministic given the noise). Training and gradient checks call the
same `value_and_grad`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..model.objectives import EUBO, FreeEnergy, LogDensities, free_energy
from ..numeric.elementary import standard_normal
from ..numeric.layout import Array, Params
from ..numeric.validation import Check, flag
from ..parts.posteriors import GaussianPosterior, MeanField, PointMass
from .estimator import FIELD_RULES, Batch, GradientEstimator

__all__ = ["Frozen", "Reparameterised", "Sampled", "StickingTheLanding"]


@dataclass(frozen=True)
class Sampled(GradientEstimator):
    """Base class of estimators whose noise determines one weight vector per sample.

    Parameters
    ----------
    model : Model
        Network, prior and likelihood.
    posterior : MeanField, LowRank, FullRank or PointMass
        The variational distribution q(w|theta) of the weights.
    objective : callable
        Function of log densities that returns a value and its derivatives, see
        `bbb_numpy.model.objectives`.
    antithetic : bool
        Draw samples in pairs eps, -eps (D23); their number must then be even.
    """

    antithetic: bool = False

    rules: ClassVar[Mapping[str, Check]] = FIELD_RULES | {"antithetic": flag}

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid; a point mass cannot be antithetic."""
        super().__post_init__()
        if self.antithetic and isinstance(self.posterior, PointMass):
            raise ValueError(
                "a point mass has no noise to draw in pairs eps, -eps; use antithetic=False"
            )

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite `noise` with N(0, 1) numbers for one step, in pairs if `antithetic` (K1, D23).

        Parameters
        ----------
        rng : numpy.random.Generator
        noise : ndarray (S, P)
            Array that receives N(0, 1) numbers, one row per weight sample. If `antithetic`, the
            second half of the rows is minus the first half.

        Raises
        ------
        ValueError
            If `antithetic` is true and the number of samples is odd.
        """
        if not self.antithetic:
            standard_normal(rng, noise)
            return
        if len(noise) % 2:
            raise ValueError(
                f"the number of samples must be even; got {len(noise)}: antithetic noise is "
                "drawn in pairs eps, -eps"
            )
        half = len(noise) // 2
        # The second half of the samples is minus the first half
        np.negative(standard_normal(rng, noise[:half]), out=noise[half:])  # D23


@dataclass(frozen=True)
class Reparameterised(Sampled):
    """Estimator of the report: it differentiates through w = mu + sigma eps (K19-K30).

    Its parameters are those of `GradientEstimator`, and `antithetic` of `Sampled`. It accepts any
    objective but the EUBO; those of a single term, `TERMS`, are for gradient checks.
    """

    def __post_init__(self) -> None:
        """Raise ValueError for the EUBO, whose gradient is not that of the samples."""
        super().__post_init__()
        if isinstance(self.objective, EUBO):
            raise ValueError(
                "the EUBO cannot be differentiated through its samples: its importance weights "
                "depend on log q, the gradient would be wrong and sigma shrink to 0. Use "
                "SelfNormalised"
            )

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        r"""Return the objective and its log densities; write the gradient into `batch`.

        For the report's choices, with :math:`g_w = \partial(-\log P(D|w))/\partial w`:

        .. math::
            \partial F/\partial\mu  &= \pi_i \frac{w}{\sigma_{data}^2} + g_w        && (K21) \\
            \partial F/\partial\rho &= \Big[\pi_i \Big(-\frac1\sigma
                + \frac{w}{\sigma_{data}^2}\epsilon\Big) + g_w \epsilon\Big]
                \frac{1}{1 + e^{-\rho}}                                             && (K30)

        Parameters
        ----------
        batch : Batch
            Arguments of the step; `batch.d_blocks` is overwritten by the gradient.

        Returns
        -------
        value : float
            The objective on the minibatch, in nats.
        terms : LogDensities
            Log densities from which it was computed, (S,) each.
        """
        step = self.forward(batch)  # weights, log densities, objective (K1-K18)
        c = step.cotangents
        # K21: d_mu  = d_w                              with d_w = pi w / sigma_data^2 + g_w
        # K30: d_rho = (-pi / sigma + d_w eps) sig(rho)   the same d_w, so one backward pass will do
        # These are summed over samples, since the cotangents contain the 1/S of the mean.
        d_w = self.model.vjp(
            step.joint, c.prior, c.likelihood, batch.d_blocks, batch.buffers
        )
        self.posterior.pull_back(
            step.sample, d_w, c.posterior, batch.d_blocks
        )  # gradients for mu and rho (K27, K29, K30)
        return step.value, step.terms


@dataclass(frozen=True)
class Frozen(Sampled):
    """Base class of estimators whose gradient is that of a surrogate with frozen parts.

    The gradient is not the derivative of the value, but of a surrogate in which some quantities
    stay at the theta where they were computed. A gradient check differentiates the surrogate.
    """

    posterior: GaussianPosterior = MeanField()

    needs: ClassVar[frozenset[str]] = frozenset({"density"})

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
        """Return the surrogate objective, whose derivative for `theta` is the estimator's gradient.

        Parameters
        ----------
        theta : ndarray
            Flat vector at which the surrogate is evaluated.
        frozen : ndarray
            Flat vector at which its frozen parts are evaluated. The derivative for `theta`, at
            ``theta = frozen``, is the gradient that `value_and_grad` returns there.
        noise, x, y, kl_weight, sample_weight
            Those of `value_and_grad`.
        """
        batch = self.make_batch(theta, noise, x, y, kl_weight, None, sample_weight)
        frozen_batch = self.make_batch(
            frozen, noise, x, y, kl_weight, None, sample_weight
        )
        return self.frozen_value(batch, frozen_batch)

    def frozen_value(self, batch: Batch, frozen: Batch) -> Any:
        """Return the surrogate objective on a minibatch, in nats; see `surrogate`.

        Parameters
        ----------
        batch : Batch
            Minibatch with the theta at which the surrogate is evaluated.
        frozen : Batch
            The same minibatch with the theta at which the frozen parts are evaluated.
        """
        raise NotImplementedError

    def densities(self, w: Array, q_blocks: Params, batch: Batch) -> LogDensities:
        """Return log q(w), log P(w) and log P(D|w) of the weights `w`, in nats, (S,) each.

        Parameters
        ----------
        w : ndarray (S, P)
            S flat weight vectors.
        q_blocks : dict of str to ndarray
            Blocks of theta by name, at which log q is evaluated.
        batch : Batch
            Learned numbers of prior and likelihood, and the rows.
        """
        joint = self.model.forward(
            w, batch.blocks, batch.x, batch.y, batch.buffers, batch.sample_weight
        )
        log_q = self.posterior.log_density(
            self.posterior.from_weights(q_blocks, w, batch.buffers)
        )
        return LogDensities(log_q, joint.log_prior, joint.log_likelihood)


@dataclass(frozen=True)
class StickingTheLanding(Frozen):
    """Estimator of the reparameterised gradient without the score of q (Roeder et al. 2017; D20).

    log q(w; theta) is differentiated through w alone, which keeps the estimate unbiased, as the
    score has mean 0. If q is the exact posterior, the gradient of every sample is exactly 0.
    """

    objective: FreeEnergy = free_energy

    needs: ClassVar[frozenset[str]] = frozenset({"density", "linear"})

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Return the objective and its log densities; write the surrogate's gradient (D20).

        Parameters
        ----------
        batch : Batch
            Arguments of the step; `batch.d_blocks` is overwritten by the gradient.

        Returns
        -------
        value : float
            The objective on the minibatch, in nats.
        terms : LogDensities
            Log densities from which it was computed, (S,) each.
        """
        step = self.forward(batch)
        c = step.cotangents
        # d_w = pi d(-log P(w))/dw + g_w + pi d log q(w; frozen)/dw, the last term -pi eps / sigma
        # d_mu = d_w,  d_rho = d_w eps sig(rho)             D20
        d_w = self.model.vjp(
            step.joint, c.prior, c.likelihood, batch.d_blocks, batch.buffers
        )
        # log q is differentiated through the weights only, and not for theta with w fixed
        self.posterior.add_density_slope(step.sample, c.posterior, d_w)  # D20
        self.posterior.pull_back(step.sample, d_w, None, batch.d_blocks)
        return step.value, step.terms

    def frozen_value(self, batch: Batch, frozen: Batch) -> Any:
        """Return the objective with log q(w; frozen) in place of log q(w; theta) (D20).

        Parameters
        ----------
        batch : Batch
            Minibatch with the theta at which the surrogate is evaluated.
        frozen : Batch
            The same minibatch with the theta at which the frozen parts are evaluated.
        """
        w = self.posterior.sample(batch.blocks, batch.noise, batch.buffers).w
        return self.objective(self.densities(w, frozen.blocks, batch), batch.kl_weight)[
            0
        ]


NAMED = {
    "estimator": {
        "reparameterised": Reparameterised,
        "antithetic": partial(Reparameterised, antithetic=True),
        "sticking-the-landing": StickingTheLanding,
    }
}

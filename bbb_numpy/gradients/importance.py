"""Gradient estimators for importance-weighted objectives: IWAE and the EUBO.

IWAE is the importance-weighted bound of Burda et al. (2016), the EUBO the evidence upper bound.
`Reparameterised` differentiates IWAE and Renyi's bounds as well, with more noise; of the EUBO only
`SelfNormalised` has the right gradient.
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
    """Estimator of the gradient of IWAE without its score term (Tucker et al. 2019; D26).

    The score inside the importance weights is reparameterised a second time, which squares the
    self-normalised weights in the derivative through w. In the gradient for learned parameters of
    prior and likelihood the weights are not squared.
    """

    def __post_init__(self) -> None:
        """Raise ValueError unless the objective is IWAE and samples are independent."""
        super().__post_init__()
        if not isinstance(self.objective, Renyi) or self.objective.alpha != 0.0:
            raise ValueError(
                "the objective of DoublyReparameterised must be IWAE, Renyi(0.0); got "
                f"{short_repr(self.objective)}. Use Reparameterised, which differentiates "
                "any objective"
            )
        if self.antithetic:
            raise ValueError(
                "DoublyReparameterised needs independent samples, not antithetic pairs. Use "
                "antithetic=False, or Reparameterised"
            )

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        r"""Return the objective and its log densities; write the gradient into `batch` (D26).

        With :math:`u = \mathrm{softmax}(\log w)`, frozen, the surrogate is

        .. math:: -\sum_s u_s^2 \log w(w_s(\theta); \text{frozen}) - \sum_s u_s \log P(D, w_s)

        in whose second part only the learned parameters of prior and likelihood vary.

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
        d_w = self.model.vjp(
            step.joint, c.prior, c.likelihood, batch.d_blocks, batch.buffers
        )
        # adds u d log q/dw, with the normalised importance weights u
        self.posterior.add_density_slope(step.sample, c.posterior, d_w)
        d_w *= -c.likelihood[:, None]  # multiplied by u once more: u^2 in all (D26)
        self.posterior.pull_back(step.sample, d_w, None, batch.d_blocks)
        return step.value, step.terms

    def frozen_value(self, batch: Batch, frozen: Batch) -> Any:
        """Return the surrogate of IWAE, with importance weights fixed at `frozen` (D26).

        In its first part the parameters of q, prior and likelihood are fixed there as well.

        Parameters
        ----------
        batch : Batch
            Minibatch with the theta at which the surrogate is evaluated.
        frozen : Batch
            The same minibatch with the theta at which the frozen parts are evaluated.
        """
        frozen_step = self.forward(frozen)
        w = self.posterior.sample(batch.blocks, batch.noise, batch.buffers).w
        path = self.densities(w, frozen.blocks, frozen)
        frozen_w = frozen_step.sample.w.astype(w.dtype)
        joint = self.model.forward(
            frozen_w, batch.blocks, batch.x, batch.y, batch.buffers, batch.sample_weight
        )
        c = frozen_step.cotangents
        u = -c.likelihood
        through_w = c.posterior @ (u * path.posterior) + c.prior @ (u * path.prior)
        through_w += c.likelihood @ (u * path.likelihood)
        return (
            through_w + c.prior @ joint.log_prior + c.likelihood @ joint.log_likelihood
        )


@dataclass(frozen=True)
class SelfNormalised(Frozen):
    """Estimator of the EUBO's gradient with samples and weights fixed: Sagar's Algorithm 1 (G8).

    The algorithm is corrected. A backward pass through the network is needed only if prior or
    likelihood learn parameters.
    """

    def __post_init__(self) -> None:
        """Raise ValueError unless the objective is the EUBO."""
        super().__post_init__()
        if not isinstance(self.objective, EUBO):
            raise ValueError(
                "the objective of SelfNormalised must be EUBO(); got "
                f"{short_repr(self.objective)}. Use Reparameterised, which differentiates "
                "any objective"
            )

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        r"""Return the objective and its log densities; write the gradient into `batch` (G8, D27).

        The gradient is that of the surrogate

        .. math:: -\sum_s \hat w_s [\log q(w_s; \theta) + \log P(D, w_s)]

        with the samples :math:`w_s` and their normalised importance weights :math:`\hat w` frozen.

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
        # gradient of log q(w; theta) for theta, with the samples w fixed
        self.posterior.pull_back_direct(step.sample, c.posterior, batch.d_blocks)  # G8
        if self.model.learned():  # gradient for learned scales (D27)
            self.model.vjp(
                step.joint, c.prior, c.likelihood, batch.d_blocks, batch.buffers
            )
        return step.value, step.terms

    def frozen_value(self, batch: Batch, frozen: Batch) -> Any:
        """Return the surrogate of the EUBO, with samples and importance weights fixed at `frozen`.

        Parameters
        ----------
        batch : Batch
            Minibatch with the theta at which the surrogate is evaluated.
        frozen : Batch
            The same minibatch with the theta at which the frozen parts are evaluated.
        """
        frozen_step = self.forward(frozen)
        c = frozen_step.cotangents
        w = frozen_step.sample.w.astype(batch.grad.dtype)
        terms = self.densities(w, batch.blocks, batch)
        value = c.posterior @ terms.posterior + c.prior @ terms.prior
        return value + c.likelihood @ terms.likelihood


NAMED = {
    "estimator": {
        "doubly-reparameterised": DoublyReparameterised,
        "self-normalised": SelfNormalised,
    }
}

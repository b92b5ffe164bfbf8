"""Network + prior + likelihood: the log joint density and its gradient (floor 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import network
from .layout import Layout
from .likelihoods import GaussianLikelihood, GaussianResiduals
from .network import MLP, Tape
from .priors import GaussianPrior
from .workspace import Workspace

__all__ = ["Joint", "Model"]

Array = NDArray[Any]


class Joint(NamedTuple):
    """The two log densities of one forward pass, and what the backward pass needs."""

    log_prior: Array  # (S,)  log P(w)
    log_likelihood: Array  # (S,)  log P(D|w), summed over the rows
    tape: Tape
    saved: GaussianResiduals


@dataclass(frozen=True)
class Model:
    """log P(w, D) = log P(w) + log P(D|w) of S flat weight vectors at once.

    Parameters
    ----------
    network : MLP
    prior : GaussianPrior
    likelihood : GaussianLikelihood
        Its learned numbers, if any, are passed to `forward` as `params`.
    """

    network: MLP
    prior: GaussianPrior = GaussianPrior()
    likelihood: GaussianLikelihood = GaussianLikelihood()

    @property
    def layout(self) -> Layout:
        """The blocks of one flat weight vector, P numbers."""
        return self.network.layout

    @property
    def outputs(self) -> int:
        """Number of outputs K."""
        return self.network.sizes[-1]

    def forward(
        self, w: Array, params: dict[str, Array], x: Array, y: Array, work: Workspace
    ) -> Joint:
        """Evaluate both log densities for weights `w` (S, P) on rows `x`, `y` (B, ...)."""
        f, tape = network.forward(self.network, w, x, work)  # (S, B, K)
        rowwise, saved = self.likelihood.log_density(params, f, y, work)  # (S, B)
        return Joint(self.prior.log_density(w), np.add.reduce(rowwise, axis=1), tape, saved)

    def vjp(
        self,
        joint: Joint,
        d_log_prior: Array,
        d_log_likelihood: Array,
        d_params: dict[str, Array],
        work: Workspace,
    ) -> Array:
        """Pull cotangents (S,) of the two log densities back to the weights.

        Returns
        -------
        d_w : ndarray (S, P)
            The likelihood by backpropagation (K37-K42), the prior in closed form (K19).
            `d_params` receives the gradient of the likelihood's own numbers. The tape is
            spent: its activations and weights are overwritten.
        """
        d_f = self.likelihood.vjp(joint.saved, d_log_likelihood, d_params)
        d_w = network.vjp(self.network, joint.tape, d_f, work)
        self.prior.add_vjp(joint.tape.w, d_log_prior, d_w)
        return d_w

    def predict(self, w: Array, x: Array, work: Workspace) -> Array:
        """Return the network outputs (S, B, K) alone; they live in `work`."""
        return network.forward(self.network, w, x, work)[0]

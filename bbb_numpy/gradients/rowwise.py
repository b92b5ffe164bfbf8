"""What local reparameterisation and Flipout share: every row of a minibatch has its own weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..model.objectives import LogDensities
from ..numeric.buffers import Buffers
from ..numeric.layout import Array
from ..parts.network import open_gates
from ..parts.posteriors import MeanField
from .closed_form import add_kl, costs
from .estimator import Batch, GradientEstimator

__all__ = ["Rowwise", "sum_outer"]


@dataclass(frozen=True)
class Rowwise(GradientEstimator):
    """An estimator that gives each row of a minibatch its own weights, layer by layer.

    One has `_forward`, from sigma (P,) to the outputs (S, B, K) and a tape of layers;
    and `_backward`, which writes the gradient for mu and sigma in the blocks of mu and rho, given
    the cotangent of the outputs.
    """

    posterior: MeanField = MeanField()
    needs: ClassVar[frozenset[str]] = frozenset({"density", "closed form"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.posterior, MeanField):
            raise ValueError(
                f"the posterior of {type(self).__name__} must have independent weights, MeanField; "
                f"got {type(self.posterior).__name__}. Use ClosedFormKL"
            )

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient of the objective (D21, D22)."""
        likelihood, parts = (
            self.model.likelihood,
            self.posterior.factor(at.blocks, at.buffers),
        )
        z, tape = self._forward(at, parts.softplus)
        log_likelihood, saved = likelihood.log_likelihood(
            at.blocks, z, at.y, at.sample_weight
        )
        cost = costs(self, at, parts, log_likelihood)
        d_z = likelihood.log_likelihood_vjp(
            saved, cost.cotangents.likelihood, at.d_blocks
        )
        self._backward(at, parts.softplus, tape, d_z)
        at.d_blocks["rho"] *= parts.sigmoid  # d sigma/d rho = s(rho)
        add_kl(self, at, parts, cost)
        return cost.value, cost.terms

    def _forward(self, at: Batch, sigma: Array) -> tuple[Array, list[Any]]:
        raise NotImplementedError

    def _backward(self, at: Batch, sigma: Array, tape: list[Any], d_z: Array) -> None:
        raise NotImplementedError

    def _at(
        self, theta: Array, noise: Array, x: Array, buffers: Buffers | None
    ) -> tuple[Array, list[Any]]:
        at = self.batch(theta, noise, x, x, 1.0, buffers, None)  # at any y
        return self._forward(at, self.posterior.factor(at.blocks, at.buffers).softplus)

    def row_outputs(
        self, theta: Array, noise: Array, x: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the network's outputs (S, B, heads), of every row by weights of its own."""
        return self._at(theta, noise, x, buffers)[0]

    def gates(self, theta: Array, noise: Array, x: Array) -> Array:
        """Return which ReLU units are on, for every sample and row."""
        _, tape = self._at(theta, noise, x, None)
        return open_gates(self.model.network, [layer.slope for layer in tape[1:]])

    def pairs(self, flat: Array) -> list[tuple[Array, Array]]:
        """View `flat` (P,) as the pairs W (d_in, d_out), b (d_out,) of each layer."""
        views = list(self.model.network.layout.views(flat).values())
        return list(zip(views[0::2], views[1::2], strict=True))


def sum_outer(a: Array, g: Array, d_weight: Array, d_bias: Array) -> None:
    """Write a^T g and 1^T g, summed over samples and rows, for g (S, B, O)."""
    if a.ndim == 2:  # all samples share the inputs of the first layer
        g = g[0] if len(g) == 1 else np.add.reduce(g, axis=0)
    rows = g.reshape(-1, g.shape[-1])
    np.matmul(a.reshape(-1, a.shape[-1]).T, rows, out=d_weight)
    np.matmul(np.ones(len(rows), rows.dtype), rows, out=d_bias)

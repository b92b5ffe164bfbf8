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
    """The base class of estimators that give each row of a minibatch weights of its own.

    A subclass adds `_forward`, from sigma (P,) to the outputs (S, B, K) and a tape of layers, and
    `_backward`, which writes the gradient for mu and sigma into the blocks of mu and rho, given
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

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient of the objective (D21, D22)."""
        likelihood = self.model.likelihood
        factor = self.posterior.factor(batch.blocks, batch.buffers)
        z, tape = self._forward(batch, factor.softplus)
        log_likelihood, saved = likelihood.log_likelihood(
            batch.blocks, z, batch.y, batch.sample_weight
        )
        cost = costs(self, batch, factor, log_likelihood)
        d_z = likelihood.log_likelihood_vjp(
            saved, cost.cotangents.likelihood, batch.d_blocks
        )
        self._backward(batch, factor.softplus, tape, d_z)
        batch.d_blocks["rho"] *= factor.sigmoid  # d sigma/d rho = s(rho)
        add_kl(self, batch, factor, cost)
        return cost.value, cost.terms

    def _forward(self, batch: Batch, sigma: Array) -> tuple[Array, list[Any]]:
        raise NotImplementedError

    def _backward(
        self, batch: Batch, sigma: Array, tape: list[Any], d_z: Array
    ) -> None:
        raise NotImplementedError

    def _outputs_and_tape(
        self, theta: Array, noise: Array, x: Array, buffers: Buffers | None
    ) -> tuple[Array, list[Any]]:
        batch = self.make_batch(theta, noise, x, x, 1.0, buffers, None)  # any y will do
        return self._forward(
            batch, self.posterior.factor(batch.blocks, batch.buffers).softplus
        )

    def row_outputs(
        self, theta: Array, noise: Array, x: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the network's outputs, those of every row by weights of its own.

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it.
        noise : ndarray (S, ...)
            From `draw`, for as many rows as `x` has.
        x : ndarray (B, d_in)
        buffers : Buffers, optional
            Memory of the outputs, which the next call with it overwrites.

        Returns
        -------
        ndarray (S, B, heads)
        """
        return self._outputs_and_tape(theta, noise, x, buffers)[0]

    def gates(self, theta: Array, noise: Array, x: Array) -> Array:
        """Return which ReLU units are on, for every sample and row, as one flat bool array.

        Parameters
        ----------
        theta, noise, x
            Those of `row_outputs`.
        """
        _, tape = self._outputs_and_tape(theta, noise, x, None)
        return open_gates(self.model.network, [layer.slope for layer in tape[1:]])

    def pairs(self, flat: Array) -> list[tuple[Array, Array]]:
        """Return views of `flat` (P,): the pair W (d_in, d_out), b (d_out,) of each layer."""
        views = list(self.model.network.layout.views(flat).values())
        return list(zip(views[0::2], views[1::2], strict=True))


def sum_outer(a: Array, g: Array, d_weight: Array, d_bias: Array) -> None:
    """Write a^T g and 1^T g, summed over samples and rows: the slopes of a layer's W and b.

    Parameters
    ----------
    a : ndarray (S, B, I), or (B, I) in the first layer
        The layer's inputs.
    g : ndarray (S, B, O)
        The cotangent of its outputs.
    d_weight, d_bias : ndarray (I, O), (O,)
        Are overwritten.
    """
    if a.ndim == 2:  # all samples share the inputs of the first layer
        g = g[0] if len(g) == 1 else np.add.reduce(g, axis=0)
    rows = g.reshape(-1, g.shape[-1])
    np.matmul(a.reshape(-1, a.shape[-1]).T, rows, out=d_weight)
    np.matmul(np.ones(len(rows), rows.dtype), rows, out=d_bias)

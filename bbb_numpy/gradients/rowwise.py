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
    """Base class of estimators that give each row of a minibatch its own weights.

    A subclass defines `_forward`, which returns the outputs and a tape of layers, and `_backward`,
    which writes the gradient for mu and sigma into the blocks of mu and rho.
    """

    posterior: MeanField = MeanField()
    needs: ClassVar[frozenset[str]] = frozenset({"density", "closed form"})

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid and the posterior is a mean field."""
        super().__post_init__()
        if not isinstance(self.posterior, MeanField):
            raise ValueError(
                f"the posterior of {type(self).__name__} must have independent weights, "
                f"MeanField; got {type(self.posterior).__name__}. Use ClosedFormKL"
            )

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Return the objective and its log densities; write the gradient into `batch` (D21, D22).

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
        batch.d_blocks["rho"] *= factor.sigmoid  # d sigma/d rho = sigmoid(rho)
        add_kl(self, batch, factor, cost)
        return cost.value, cost.terms

    def _forward(self, batch: Batch, sigma: Array) -> tuple[Array, list[Any]]:
        """Return the network's outputs, and the results of each layer that `_backward` needs.

        Parameters
        ----------
        batch : Batch
            Arguments of the step.
        sigma : ndarray (P,)
            Standard deviations of the weights.

        Returns
        -------
        outputs : ndarray (S, B, heads)
            Outputs of the network.
        tape : list
            Intermediate results of each layer.
        """
        raise NotImplementedError

    def _backward(
        self, batch: Batch, sigma: Array, tape: list[Any], d_z: Array
    ) -> None:
        """Write the gradient for mu and sigma into the blocks mu and rho of `batch.d_blocks`.

        Parameters
        ----------
        batch : Batch
            Arguments of the step, and memory for the gradient.
        sigma : ndarray (P,)
            Standard deviations of the weights.
        tape : list
            Second result of `_forward`.
        d_z : ndarray (S, B, heads)
            Derivative of the loss for the outputs of the network.
        """
        raise NotImplementedError

    def _outputs_and_tape(
        self, theta: Array, noise: Array, x: Array, buffers: Buffers | None
    ) -> tuple[Array, list[Any]]:
        """Return the two results of `_forward`: the network's outputs, and those of each layer."""
        # x stands in for the targets, which are not used
        batch = self.make_batch(theta, noise, x, x, 1.0, buffers, None)
        return self._forward(
            batch, self.posterior.factor(batch.blocks, batch.buffers).softplus
        )

    def row_outputs(
        self, theta: Array, noise: Array, x: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the outputs of the network, for which each row of `x` has its own weights.

        Parameters
        ----------
        theta : ndarray
            Flat vector with the blocks of `layout`.
        noise : ndarray (S, ...)
            Noise from `draw`, called with as many rows as `x` has.
        x : ndarray (B, d_in)
            Inputs.
        buffers : Buffers, optional
            Source of the memory of the outputs, which the next use of it overwrites; by default new
            memory.

        Returns
        -------
        ndarray (S, B, heads)
            Outputs, with `Likelihood.heads` columns.
        """
        return self._outputs_and_tape(theta, noise, x, buffers)[0]

    def gates(self, theta: Array, noise: Array, x: Array) -> Array:
        """Return a flat bool array that says which ReLU units are on, for every sample and row.

        Parameters
        ----------
        theta, noise, x
            Those of `row_outputs`.
        """
        _, tape = self._outputs_and_tape(theta, noise, x, None)
        return open_gates(self.model.network, [layer.slope for layer in tape[1:]])

    def pairs(self, flat: Array) -> list[tuple[Array, Array]]:
        """Return views of each layer's weights (d_in, d_out) and biases (d_out,) in `flat`."""
        views = list(self.model.network.layout.views(flat).values())
        return list(zip(views[0::2], views[1::2], strict=True))


def sum_outer(a: Array, g: Array, d_weight: Array, d_bias: Array) -> None:
    """Write the gradients of a layer's weights and biases, summed over samples and rows.

    They are a^T g for the weights W, and 1^T g for the biases b.

    Parameters
    ----------
    a : ndarray (S, B, I), or (B, I) in the first layer
        Inputs of the layer.
    g : ndarray (S, B, O)
        Derivative of the loss for the outputs of the layer.
    d_weight : ndarray (I, O)
        Gradient for W, which is overwritten.
    d_bias : ndarray (O,)
        Gradient for b, which is overwritten.
    """
    if a.ndim == 2:  # all samples share the inputs of the first layer
        g = g[0] if len(g) == 1 else np.add.reduce(g, axis=0)
    rows = g.reshape(-1, g.shape[-1])
    np.matmul(a.reshape(-1, a.shape[-1]).T, rows, out=d_weight)
    np.matmul(np.ones(len(rows), rows.dtype), rows, out=d_bias)

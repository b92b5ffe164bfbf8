"""Local reparameterisation: sample the outputs of a layer, not its weights (D21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..numeric.elementary import SMALLEST_NORMAL
from ..numeric.layout import Array
from ..parts.network import activate
from .estimator import Batch
from .rowwise import Rowwise, sum_outer

__all__ = ["LocalReparameterisation"]


class OutputLayer(NamedTuple):
    """Intermediate results of the forward pass of one layer, for its backward pass.

    The layer has I inputs and O outputs, for S weight samples and B rows.
    """

    mean: Array  # (I, O) means mu of the weights
    variance: Array  # (I, O) variances sigma^2 of the weights
    inputs: Array  # activations a: (B, I) in the first layer, then (S, B, I)
    slope: Array | None  # derivative of the activation; None in the first layer
    square: Array  # a^2, of the shape of the inputs
    root: Array  # (B, O) or (S, B, O) standard deviations sqrt(v) of the outputs
    zeta: Array  # (S, B, O) noise of the outputs


@dataclass(frozen=True)
class LocalReparameterisation(Rowwise):
    r"""Estimator that samples each layer's outputs, not its weights (Kingma et al. 2015; D21).

    Given its inputs a, an output of a layer is Gaussian with mean a mu and variance a^2 sigma^2.
    Every row has its own noise, so their gradients are independent. For each layer, with
    :math:`\delta = \partial(-\log P)/\partial z`:

    .. math::
        z &= a \mu + \mu_b + \sqrt{v} \circ \zeta, \qquad v = a^2 \sigma^2 + \sigma_b^2 \\
        \delta_v &= \delta \circ \zeta / (2 \sqrt v), \qquad d\mu = a^T \delta, \qquad
             d\sigma^2 = (a^2)^T \delta_v \\
        da &= \delta \mu^T + 2 a \circ (\delta_v (\sigma^2)^T)
    """

    @property
    def noise_per_sample(self) -> int:
        """Number of noise values that all rows share: 0, since each row has its own."""
        return 0

    @property
    def noise_per_row(self) -> int:
        """Number of noise values of a row: one for each output of each layer."""
        return sum(self.model.network.sizes[1:])

    def _zetas(self, noise: Array) -> list[Array]:
        """Return each layer's noise, a view (samples, rows, outputs) of the flat `noise`."""
        widths = self.model.network.sizes[1:]
        n_rows = noise.shape[1] // self.noise_per_row
        ends = np.cumsum([n_rows * width for width in widths[:-1]])
        layers = np.split(noise, ends, axis=1)
        return [
            zeta.reshape(len(noise), n_rows, width)
            for zeta, width in zip(layers, widths, strict=True)
        ]

    def _forward(self, batch: Batch, sigma: Array) -> tuple[Array, list[OutputLayer]]:
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
        net = self.model.network
        buffers = batch.buffers
        a = net.without_offset(batch.x)
        slope = None
        sigma_squared = np.multiply(sigma, sigma, out=buffers.like(sigma))
        means = buffers.views(batch.blocks["mu"], self.pairs)
        variances = buffers.views(sigma_squared, self.pairs)
        tape: list[OutputLayer] = []
        # The square root of a variance v has no derivative at v = 0, so v is at least the smallest
        # normal number, whose root is 1e-154 in float64
        tiny = SMALLEST_NORMAL[sigma.real.dtype]
        for (mean, bias), (variance, bias_variance), zeta in zip(
            means, variances, buffers.views(batch.noise, self._zetas), strict=True
        ):
            if tape:
                slope = activate(net, a, buffers.like(a))
            shape = zeta.shape if tape else zeta.shape[1:]
            square = np.multiply(a, a, out=buffers.like(a))
            root = np.matmul(square, variance, out=buffers.array(shape, sigma.dtype))
            root += bias_variance + tiny
            np.sqrt(root, out=root)  # standard deviations of the outputs
            center = np.matmul(a, mean, out=buffers.array(shape, sigma.dtype))
            center += bias
            tape.append(OutputLayer(mean, variance, a, slope, square, root, zeta))
            a = np.multiply(zeta, root, out=buffers.array(zeta.shape, sigma.dtype))
            a += center  # outputs of the layer: mean + noise
        return net.add_offset(a, batch.x), tape

    def _backward(
        self, batch: Batch, sigma: Array, tape: list[OutputLayer], d_z: Array
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
        # The block of rho first holds twice the derivative for sigma^2, so that two factors cancel:
        # 1/2 in d sqrt(v)/dv, and 2 in d sigma^2/d sigma
        buffers = batch.buffers
        d_sigma = batch.d_blocks["rho"]
        d_means = buffers.views(batch.d_blocks["mu"], self.pairs)
        d_variances = buffers.views(d_sigma, self.pairs)
        for layer, d_mean, d_variance in zip(
            reversed(tape), reversed(d_means), reversed(d_variances), strict=True
        ):
            a = layer.inputs
            h = np.multiply(d_z, layer.zeta, out=buffers.like(d_z))
            # h is twice the derivative of the loss for the variance v of the outputs
            h /= layer.root  # D21: 2 delta_v = delta zeta / sqrt v
            sum_outer(layer.square, h, *d_variance)  # twice the gradient for sigma^2
            sum_outer(a, d_z, *d_mean)  # gradients for the means
            if layer.slope is not None:  # derivative by the inputs, unless they are x
                d_a = np.matmul(h, layer.variance.T, out=buffers.like(a))
                d_a *= a
                d_a += np.matmul(d_z, layer.mean.T, out=buffers.like(a))
                d_a *= layer.slope
                d_z = d_a
        d_sigma *= sigma  # D21: d sigma^2/d sigma = 2 sigma


NAMED = {"estimator": {"local-reparameterisation": LocalReparameterisation}}

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
    """What the forward pass of a layer leaves for the backward pass; S, B, I inputs, O outputs."""

    mean: Array  # (I, O)  mu
    variance: Array  # (I, O)  sigma^2
    inputs: Array  # (B, I) in the first layer, then (S, B, I)  a
    slope: Array | None  # activation' of the inputs; None: they are x
    square: Array  # a^2
    root: Array  # (B, O) or (S, B, O)  sqrt(v)
    zeta: Array  # (S, B, O)


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
        """Length of the noise that all rows share: 0."""
        return 0

    @property
    def noise_per_row(self) -> int:
        """Length of the noise of a row: one number for each output of each layer."""
        return sum(self.model.network.sizes[1:])

    def _zetas(self, noise: Array) -> list[Array]:
        """Return views of the flat noise: zeta (S, B, O) of each layer."""
        widths = self.model.network.sizes[1:]
        n_rows = noise.shape[1] // self.noise_per_row
        ends = np.cumsum([n_rows * width for width in widths[:-1]])
        layers = np.split(noise, ends, axis=1)
        return [
            zeta.reshape(len(noise), n_rows, width)
            for zeta, width in zip(layers, widths, strict=True)
        ]

    def _forward(self, batch: Batch, sigma: Array) -> tuple[Array, list[OutputLayer]]:
        net = self.model.network
        buffers = batch.buffers
        a = batch.x
        slope = None
        sigma_squared = np.multiply(sigma, sigma, out=buffers.like(sigma))
        means = buffers.views(batch.blocks["mu"], self.pairs)
        variances = buffers.views(sigma_squared, self.pairs)
        tape: list[OutputLayer] = []
        # v = 0 has no slope; its root is then 1e-154
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
            np.sqrt(root, out=root)  # sqrt(v)
            center = np.matmul(a, mean, out=buffers.array(shape, sigma.dtype))
            center += bias
            tape.append(OutputLayer(mean, variance, a, slope, square, root, zeta))
            a = np.multiply(zeta, root, out=buffers.array(zeta.shape, sigma.dtype))
            a += center  # z
        return a, tape

    def _backward(
        self, batch: Batch, sigma: Array, tape: list[OutputLayer], d_z: Array
    ) -> None:
        # first 2 d_sigma^2 in the place of d_sigma: with 2 delta_v two factors cancel
        buffers = batch.buffers
        d_sigma = batch.d_blocks["rho"]
        d_means = buffers.views(batch.d_blocks["mu"], self.pairs)
        d_variances = buffers.views(d_sigma, self.pairs)
        for layer, d_mean, d_variance in zip(
            reversed(tape), reversed(d_means), reversed(d_variances), strict=True
        ):
            a = layer.inputs
            h = np.multiply(d_z, layer.zeta, out=buffers.like(d_z))
            # v is the variance of z
            h /= layer.root  # D21: 2 delta_v = delta zeta / sqrt v
            sum_outer(layer.square, h, *d_variance)  # (a^2)^T 2 delta_v
            sum_outer(a, d_z, *d_mean)  # d_mu = a^T delta, d_b = 1^T delta
            if layer.slope is not None:  # delta mu^T + a (2 delta_v sigma^2^T)
                d_a = np.matmul(h, layer.variance.T, out=buffers.like(a))
                d_a *= a
                d_a += np.matmul(d_z, layer.mean.T, out=buffers.like(a))
                d_a *= layer.slope
                d_z = d_a
        d_sigma *= sigma  # D21: d sigma^2/d sigma = 2 sigma


NAMED = {"estimator": {"local-reparameterisation": LocalReparameterisation}}

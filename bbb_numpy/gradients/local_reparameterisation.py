"""Local reparameterisation: sample the outputs of a layer, not its weights (D21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.elementary import TINY
from ..numeric.layout import Array
from ..parts.network import activate
from .rowwise import Rowwise, sum_outer

__all__ = ["LocalReparameterisation"]


class OutputTape(NamedTuple):
    """What the forward pass leaves for the backward pass; lists have an entry for each layer."""

    sigma: Array  # (P,)
    means: list[tuple[Array, Array]]  # views of mu
    variances: list[tuple[Array, Array]]  # views of sigma^2
    inputs: list[Array]  # a: (B, I), then (S, B, I)
    squares: list[Array]  # a^2
    roots: list[Array]  # sqrt(v) (B, O), then (S, B, O)
    zetas: list[Array]  # (S, B, O)
    slopes: list[Array]  # (S, B, O)  activation'(z), but for the last layer


@dataclass(frozen=True)
class LocalReparameterisation(Rowwise):
    r"""Sample each layer's outputs, not its weights (Kingma et al. 2015; D21).

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
        """No noise is shared by all rows."""
        return 0

    @property
    def noise_per_row(self) -> int:
        """One number for each output of each layer."""
        return sum(self.model.network.sizes[1:])

    def _zetas(self, noise: Array, rows: int) -> list[Array]:
        """Cut the flat noise into zeta (S, B, O) of each layer."""
        sizes = self.model.network.sizes[1:]
        ends = np.cumsum([rows * width for width in sizes[:-1]])
        parts = np.split(noise, ends, axis=1)
        return [part.reshape(len(noise), rows, w) for part, w in zip(parts, sizes, strict=True)]

    def _forward(
        self, mu: Array, sigma: Array, noise: Array, x: Array, buffers: Buffers
    ) -> tuple[Array, OutputTape]:
        net, a = self.model.network, x
        variance = np.multiply(sigma, sigma, out=buffers.like(sigma))
        means, variances = buffers.views(mu, self.pairs), buffers.views(variance, self.pairs)
        zetas = self._zetas(noise, len(x))
        inputs: list[Array] = []
        squares: list[Array] = []
        roots: list[Array] = []
        slopes: list[Array] = []
        tiny = TINY[variance.real.dtype]  # v = 0 has no slope; its root is then 1e-154
        for layer, zeta in enumerate(zetas):
            (mean, bias), (spread, bias_spread) = means[layer], variances[layer]
            shape = zeta.shape if a.ndim == 3 else zeta.shape[1:]
            square = np.multiply(a, a, out=buffers.like(a))
            root = np.matmul(square, spread, out=buffers.array(shape, mu.dtype))
            root += bias_spread + tiny
            np.sqrt(root, out=root)  # sqrt(v), (S, B, O) or (B, O)
            center = np.matmul(a, mean, out=buffers.array(shape, mu.dtype))
            center += bias
            z = np.multiply(zeta, root, out=buffers.array(zeta.shape, mu.dtype))
            z += center
            inputs.append(a)
            squares.append(square)
            roots.append(root)
            if layer < len(means) - 1:
                slopes.append(activate(net, z, buffers.like(z)))
            a = z
        return a, OutputTape(sigma, means, variances, inputs, squares, roots, zetas, slopes)

    def _backward(
        self, tape: OutputTape, d_z: Array, d_mu: Array, d_sigma: Array, buffers: Buffers
    ) -> None:
        # first 2 d_sigma^2 in the place of d_sigma: with 2 delta_v two factors cancel
        d_means, d_variances = buffers.views(d_mu, self.pairs), buffers.views(d_sigma, self.pairs)
        for layer in range(len(d_means) - 1, -1, -1):
            a = tape.inputs[layer]
            h = np.multiply(d_z, tape.zetas[layer], out=buffers.like(d_z))
            h /= tape.roots[layer]  # D21: 2 delta_v = delta zeta / sqrt v
            sum_outer(tape.squares[layer], h, *d_variances[layer])  # (a^2)^T 2 delta_v
            sum_outer(a, d_z, *d_means[layer])  # d_mu = a^T delta, d_b = 1^T delta
            if layer:  # delta mu^T + a (2 delta_v sigma^2^T)
                d_a = np.matmul(h, tape.variances[layer][0].T, out=buffers.like(a))
                d_a *= a
                d_a += np.matmul(d_z, tape.means[layer][0].T, out=buffers.like(a))
                d_a *= tape.slopes[layer - 1]
                d_z = d_a
        d_sigma *= tape.sigma  # D21: d sigma^2/d sigma = 2 sigma

"""Flipout: one weight perturbation for all rows, with signs of their own (D22)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.elementary import standard_normal
from ..numeric.layout import Array
from ..parts.network import activate
from ..parts.products import Layer
from .rowwise import Rowwise, sum_outer

__all__ = ["Flipout"]


class Flips(NamedTuple):
    """The signs of one layer, for every row."""

    inputs: Array  # (S, B, I)  R_in
    outputs: Array  # (S, B, O)  R_out
    bias: Array  # (S, B, O)  R_bias


class FlipoutTape(NamedTuple):
    """What the forward pass leaves for the backward pass; lists have an entry for each layer."""

    eps: Array  # (S, P)
    shift: Array  # (S, P)  Delta = sigma o eps
    means: list[tuple[Array, Array]]  # views of mu
    pushes: list[Layer]  # views of `shift`
    flips: list[Flips]
    inputs: list[Array]  # (B, I), then (S, B, I)
    slopes: list[Array]  # (S, B, O)  activation'(z), but for the last layer


@dataclass(frozen=True)
class Flipout(Rowwise):
    r"""One weight perturbation for all rows, with signs of their own (Wen et al. 2018; D22).

    For each layer, with random signs R for every row and :math:`\Delta = \sigma \circ \epsilon`
    shared:

    .. math::
        z &= a \mu + ((a \circ R^{in}) \Delta) \circ R^{out} + \mu_b
             + R^{bias} \circ (\sigma_b \epsilon_b) \\
        d\mu &= a^T \delta, \qquad d\Delta = (a \circ R^{in})^T (\delta \circ R^{out}), \qquad
        da = \delta \mu^T + ((\delta \circ R^{out}) \Delta^T) \circ R^{in}

    and dsigma = dDelta o eps.
    """

    @property
    def noise_per_row(self) -> int:
        """How many signs a row has: of the inputs, the outputs and the bias of each layer."""
        return sum(d_in + 2 * d_out for d_in, d_out in pairwise(self.model.network.sizes))

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite `noise` (S, P + rows * signs): eps, then signs."""
        size = self.model.layout.size
        eps, signs = noise[:, :size], noise[:, size:]
        eps[...] = standard_normal(rng, np.empty(eps.shape, noise.dtype))
        bits = np.frombuffer(rng.bytes((signs.size + 7) // 8), np.uint8)
        flips = np.unpackbits(bits, count=signs.size).reshape(signs.shape)
        np.multiply(flips, 2.0, out=signs)
        signs -= 1.0

    def _flips(self, noise: Array, rows: int) -> list[Flips]:
        """Cut the signs of each layer out of the flat noise."""
        cut, start = [], self.model.layout.size
        for d_in, d_out in pairwise(self.model.network.sizes):
            signs = []
            for width in (d_in, d_out, d_out):
                stop = start + rows * width
                signs.append(noise[:, start:stop].reshape(len(noise), rows, width))
                start = stop
            cut.append(Flips(*signs))
        return cut

    def _forward(
        self, mu: Array, sigma: Array, noise: Array, x: Array, buffers: Buffers
    ) -> tuple[Array, FlipoutTape]:
        eps = noise[:, : len(sigma)]
        shift = np.multiply(eps, sigma, out=buffers.array(eps.shape, sigma.dtype))  # (S, P)  Delta
        net, a, inputs, slopes = self.model.network, x, [], []
        means = buffers.views(mu, self.pairs)
        pushes = buffers.views(shift, net.layers)
        flips = self._flips(noise, len(x))
        for (mean, bias), push, sign in zip(means, pushes, flips, strict=True):
            inputs.append(a)
            a = np.matmul(a * sign.inputs, push.weight)  # (S, B, O)
            a *= sign.outputs
            a += np.matmul(inputs[-1], mean)
            a += bias
            a += sign.bias * push.bias
            if len(inputs) < len(flips):
                slopes.append(activate(net, a, buffers.like(a)))
        return a, FlipoutTape(eps, shift, means, pushes, flips, inputs, slopes)

    def _backward(
        self, tape: FlipoutTape, d_z: Array, d_mu: Array, d_sigma: Array, buffers: Buffers
    ) -> None:
        d_shift = buffers.like(tape.shift)
        d_means = buffers.views(d_mu, self.pairs)
        d_pushes = buffers.views(d_shift, self.model.network.layers)
        for layer in range(len(d_means) - 1, -1, -1):
            a, sign = tape.inputs[layer], tape.flips[layer]
            flipped = d_z * sign.outputs  # D22: delta o R_out
            sum_outer(a, d_z, *d_means[layer])
            np.matmul((a * sign.inputs).swapaxes(-1, -2), flipped, out=d_pushes[layer].weight)
            np.add.reduce(d_z * sign.bias, axis=1, keepdims=True, out=d_pushes[layer].bias)
            if layer:
                d_a = np.matmul(flipped, tape.pushes[layer].weight.swapaxes(-1, -2))
                d_a *= sign.inputs
                d_a += np.matmul(d_z, tape.means[layer][0].T)
                d_a *= tape.slopes[layer - 1]
                d_z = d_a
        np.einsum("sp,sp->p", d_shift, tape.eps, out=d_sigma, casting="same_kind")  # D22

"""Flipout: one weight perturbation for all rows, with signs of their own (D22)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..numeric.elementary import standard_normal
from ..numeric.layout import Array
from ..parts.network import activate
from ..parts.products import Layer
from .estimator import Batch
from .rowwise import Rowwise, sum_outer

__all__ = ["Flipout"]


class Flips(NamedTuple):
    """The signs of one layer, for every row."""

    inputs: Array  # (S, B, I)  R_in
    outputs: Array  # (S, B, O)  R_out
    bias: Array  # (S, B, O)  R_bias


class FlippedLayer(NamedTuple):
    """What the forward pass of a layer leaves for the backward pass."""

    mean: Array  # (I, O)  mu
    push: Layer  # views of Delta = sigma o eps
    sign: Flips
    inputs: Array  # (B, I) in the first layer, then (S, B, I)
    slope: Array | None  # activation' of the inputs; None: they are x


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
        return sum(
            d_in + 2 * d_out for d_in, d_out in pairwise(self.model.network.sizes)
        )

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

    def _forward(self, at: Batch, sigma: Array) -> tuple[Array, list[FlippedLayer]]:
        net, buffers, a, slope = self.model.network, at.buffers, at.x, None
        eps = at.noise[:, : len(sigma)]
        # (S, P)  Delta
        shift = np.multiply(eps, sigma, out=buffers.array(eps.shape, sigma.dtype))
        means = buffers.views(at.blocks["mu"], self.pairs)
        pushes = buffers.views(shift, net.layers)
        tape: list[FlippedLayer] = []
        for (mean, bias), push, sign in zip(
            means, pushes, self._flips(at.noise, len(a)), strict=True
        ):
            if tape:
                slope = activate(net, a, buffers.like(a))
            tape.append(FlippedLayer(mean, push, sign, a, slope))
            z = np.matmul(a * sign.inputs, push.weight)  # (S, B, O)
            z *= sign.outputs
            z += np.matmul(a, mean)
            z += bias
            z += sign.bias * push.bias
            a = z
        return a, tape

    def _backward(
        self, at: Batch, sigma: Array, tape: list[FlippedLayer], d_z: Array
    ) -> None:
        eps, buffers = at.noise[:, : len(sigma)], at.buffers
        d_shift = buffers.array(eps.shape, sigma.dtype)
        d_means = buffers.views(at.d_blocks["mu"], self.pairs)
        d_pushes = buffers.views(d_shift, self.model.network.layers)
        for layer, d_mean, d_push in zip(
            reversed(tape), reversed(d_means), reversed(d_pushes), strict=True
        ):
            a, sign = layer.inputs, layer.sign
            flipped = d_z * sign.outputs  # D22: delta o R_out
            sum_outer(a, d_z, *d_mean)
            np.matmul((a * sign.inputs).swapaxes(-1, -2), flipped, out=d_push.weight)
            np.add.reduce(d_z * sign.bias, axis=1, keepdims=True, out=d_push.bias)
            if layer.slope is not None:
                d_a = np.matmul(flipped, layer.push.weight.swapaxes(-1, -2))
                d_a *= sign.inputs
                d_a += np.matmul(d_z, layer.mean.T)
                d_a *= layer.slope
                d_z = d_a
        np.einsum(
            "sp,sp->p", d_shift, eps, out=at.d_blocks["rho"], casting="same_kind"
        )  # D22


NAMED = {"estimator": {"flipout": Flipout}}

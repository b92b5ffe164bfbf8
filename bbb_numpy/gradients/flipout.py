"""Flipout: one weight perturbation for all rows, with random signs for each row (D22)."""

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
    """Random signs, +1 or -1, of one layer, for every weight sample and row."""

    inputs: Array  # (S, B, I) signs R_in, which multiply the inputs
    outputs: Array  # (S, B, O) signs R_out, which multiply the outputs
    bias: Array  # (S, B, O) signs R_bias, which multiply the noise of the biases


class FlippedLayer(NamedTuple):
    """Intermediate results of the forward pass of one layer, for its backward pass.

    The layer has I inputs and O outputs, for S weight samples and B rows.
    """

    mean: Array  # (I, O) means mu of the weights
    perturbation: Layer  # views of Delta = sigma o eps for this layer
    signs: Flips
    inputs: Array  # activations a: (B, I) in the first layer, then (S, B, I)
    slope: Array | None  # derivative of the activation; None in the first layer


@dataclass(frozen=True)
class Flipout(Rowwise):
    r"""Estimator with one weight perturbation, whose signs differ by row (Wen et al. 2018; D22).

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
        """Number of signs of a row: for the inputs, the outputs and the biases of each layer."""
        return sum(
            d_in + 2 * d_out for d_in, d_out in pairwise(self.model.network.sizes)
        )

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite `noise`, the noise of one step, with a new draw of eps and of signs.

        Parameters
        ----------
        rng : numpy.random.Generator
        noise : ndarray (S, P + rows * signs)
            Array that receives eps, N(0, 1) numbers, then the signs 1 or -1 of each row.
        """
        size = self.model.layout.size
        eps, signs = noise[:, :size], noise[:, size:]
        eps[...] = standard_normal(rng, np.empty(eps.shape, noise.dtype))
        bits = np.frombuffer(rng.bytes((signs.size + 7) // 8), np.uint8)
        flips = np.unpackbits(bits, count=signs.size).reshape(signs.shape)
        np.multiply(flips, 2.0, out=signs)
        signs -= 1.0

    def _flips(self, noise: Array, rows: int) -> list[Flips]:
        """Return each layer's signs, as views of `noise` behind the noise of the P weights."""
        layers = list[Flips]()
        start = self.model.layout.size
        for d_in, d_out in pairwise(self.model.network.sizes):
            signs = []
            for width in (d_in, d_out, d_out):
                stop = start + rows * width
                signs.append(noise[:, start:stop].reshape(len(noise), rows, width))
                start = stop
            layers.append(Flips(*signs))
        return layers

    def _forward(self, batch: Batch, sigma: Array) -> tuple[Array, list[FlippedLayer]]:
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
        eps = batch.noise[:, : len(sigma)]
        # (S, P) perturbations sigma eps of the weights
        delta = np.multiply(eps, sigma, out=buffers.array(eps.shape, sigma.dtype))
        means = buffers.views(batch.blocks["mu"], self.pairs)
        perturbations = buffers.views(delta, net.layers)
        tape: list[FlippedLayer] = []
        for (mean, bias), perturbation, signs in zip(
            means, perturbations, self._flips(batch.noise, len(a)), strict=True
        ):
            if tape:
                slope = activate(net, a, buffers.like(a))
            tape.append(FlippedLayer(mean, perturbation, signs, a, slope))
            # (S, B, O), outputs of the perturbation alone
            z = np.matmul(a * signs.inputs, perturbation.weight)
            z *= signs.outputs
            z += np.matmul(a, mean)
            z += bias
            z += signs.bias * perturbation.bias
            a = z
        return net.add_offset(a, batch.x), tape

    def _backward(
        self, batch: Batch, sigma: Array, tape: list[FlippedLayer], d_z: Array
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
        buffers = batch.buffers
        eps = batch.noise[:, : len(sigma)]
        d_delta = buffers.array(eps.shape, sigma.dtype)
        d_means = buffers.views(batch.d_blocks["mu"], self.pairs)
        d_perturbations = buffers.views(d_delta, self.model.network.layers)
        for layer, d_mean, d_layer in zip(
            reversed(tape), reversed(d_means), reversed(d_perturbations), strict=True
        ):
            a = layer.inputs
            signs = layer.signs
            flipped = d_z * signs.outputs  # derivative for the perturbation (D22)
            sum_outer(a, d_z, *d_mean)
            np.matmul((a * signs.inputs).swapaxes(-1, -2), flipped, out=d_layer.weight)
            np.add.reduce(d_z * signs.bias, axis=1, keepdims=True, out=d_layer.bias)
            if layer.slope is not None:
                d_a = np.matmul(flipped, layer.perturbation.weight.swapaxes(-1, -2))
                d_a *= signs.inputs
                d_a += np.matmul(d_z, layer.mean.T)
                d_a *= layer.slope
                d_z = d_a
        np.einsum(
            "sp,sp->p", d_delta, eps, out=batch.d_blocks["rho"], casting="same_kind"
        )  # gradient for sigma, which `fill_gradient` makes that for rho (D22)


NAMED = {"estimator": {"flipout": Flipout}}

"""Flipout: one weight perturbation for all rows, with signs of their own (D22)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.buffers import Buffers
from ..numeric.elementary import standard_normal
from ..parts.network import activate, open_gates
from ..parts.products import Layer
from .closed_form import add_kl, exact_terms
from .family import Evaluated, closed_form_prior
from .rowwise import Rowwise, sum_outer

__all__ = ["Flipout"]

Array = NDArray[Any]


class Flips(NamedTuple):
    """The signs of one layer, for every row."""

    inputs: Array  # (S, B, I)  R_in
    outputs: Array  # (S, B, O)  R_out
    bias: Array  # (S, B, O)  R_bias


class FlipoutTape(NamedTuple):
    """What the forward pass leaves for the backward pass; lists have an entry for each layer."""

    shift: Array  # (S, P)  Delta = sigma o eps
    means: list[tuple[Array, Array]]  # views of mu
    pushes: list[Layer]  # views of `shift`
    flips: list[Flips]
    inputs: list[Array]  # (B, I), then (S, B, I)
    slopes: list[Array]  # (S, B, O)  activation'(z), but for the last layer


@dataclass(frozen=True)
class Flipout(Rowwise):
    """One weight perturbation for all rows, with signs of their own (Wen et al. 2018; D22)."""

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

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        buffers: Buffers | None = None,
    ) -> Evaluated:
        r"""Return the free energy on one minibatch and its gradient for theta (D22).

        For each layer, with random signs R for every row and :math:`\Delta = \sigma \circ \epsilon`
        shared:

        .. math::
            z &= a \mu + ((a \circ R^{in}) \Delta) \circ R^{out} + \mu_b
                 + R^{bias} \circ (\sigma_b \epsilon_b) \\
            d\mu &= a^T \delta, \qquad d\Delta = (a \circ R^{in})^T (\delta \circ R^{out}), \qquad
            da = \delta \mu^T + ((\delta \circ R^{out}) \Delta^T) \circ R^{in}

        and drho = dDelta o eps o s(rho). Arguments and results as
        `Reparameterised.value_and_grad`; `noise` from this class's `draw`, for as many rows as
        `x` has.
        """
        buffers, blocks, grad, d_blocks = self.unpacked(theta, noise, x, y, buffers)
        weight, size = self.objective.beta * kl_weight, self.model.layout.size
        parts = self.posterior.factor(blocks, buffers)
        eps = noise[:, :size]
        shift = buffers.array(eps.shape, parts.softplus.dtype)
        np.multiply(eps, parts.softplus, out=shift)  # (S, P)  Delta = sigma o eps

        z, tape = self._forward(blocks["mu"], shift, noise, x, buffers)
        rowwise, residuals = self.model.likelihood.log_density(blocks, z, y)
        log_likelihood = np.add.reduce(rowwise, axis=1)
        each = np.full(len(noise), -1.0 / len(noise), theta.real.dtype)

        d_z = self.model.likelihood.vjp(residuals, each, d_blocks)
        d_shift = self._backward(tape, d_z, d_blocks["mu"], buffers)
        np.einsum("sp,sp->p", d_shift, eps, out=d_blocks["rho"], casting="same_kind")
        d_blocks["rho"] *= parts.sigmoid
        prior = closed_form_prior(self.model)
        kl = add_kl(self.posterior, prior, blocks, parts, weight, d_blocks)
        value = weight * kl + each @ log_likelihood
        return Evaluated(value, grad, exact_terms(kl, log_likelihood))

    def _forward(
        self, mu: Array, shift: Array, noise: Array, x: Array, buffers: Buffers
    ) -> tuple[Array, FlipoutTape]:
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
        return a, FlipoutTape(shift, means, pushes, flips, inputs, slopes)

    def _backward(self, tape: FlipoutTape, d_z: Array, d_mu: Array, buffers: Buffers) -> Array:
        """Write d_mu, and return the cotangent (S, P) of the perturbation Delta."""
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
        return d_shift

    def gates(self, theta: Array, noise: Array, x: Array) -> NDArray[np.bool_]:
        """Return which ReLU units are on, for every sample and row."""
        blocks, buffers = self.layout.views(theta), Buffers()
        sigma = self.posterior.factor(blocks, buffers).softplus
        shift = noise[:, : self.model.layout.size] * sigma
        _, tape = self._forward(blocks["mu"], shift, noise, x, buffers)
        return open_gates(self.model.network, tape.slopes)

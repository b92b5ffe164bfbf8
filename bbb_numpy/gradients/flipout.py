"""Flipout: one weight perturbation for all rows, with signs of their own (D22)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.elementary import standard_normal
from ..numeric.workspace import Workspace
from ..parts.network import activate
from .closed_form import add_kl, remember
from .rowwise import LayerTape, Rowwise, open_gates, sum_outer

__all__ = ["Flipout"]

Array = NDArray[Any]


class Perturbation(NamedTuple):
    """The noise of one layer in `Flipout`."""

    eps: Array  # (S, I, O)
    eps_b: Array  # (S, 1, O)
    r: Array  # (S, B, I)  signs of the inputs
    s: Array  # (S, B, O)  signs of the outputs
    t: Array  # (S, B, O)  signs of the bias


@dataclass(frozen=True)
class Flipout(Rowwise):
    """One weight perturbation for all rows, with signs of their own (Wen et al. 2018; D22)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_mean_field()

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        work: Workspace | None = None,
        rows: int = 0,
    ) -> Array:
        """Draw the noise (S, P + rows * (inputs + 2 outputs of all layers)): eps, then signs."""
        size = self.model.layout.size
        signs = rows * sum(d_in + 2 * d_out for d_in, d_out in self.widths())
        shape = (samples, size + signs)
        out = np.empty(shape, dtype) if work is None else work.array("flips", shape, dtype)
        eps = (
            np.empty((samples, size), dtype)
            if work is None
            else work.array("eps", (samples, size), dtype)
        )
        out[:, :size] = standard_normal(rng, eps)
        bits = np.frombuffer(rng.bytes((samples * signs + 7) // 8), np.uint8)
        flips = np.unpackbits(bits, count=samples * signs).reshape(samples, signs)
        np.multiply(flips, 2.0, out=out[:, size:], casting="same_kind")
        out[:, size:] -= 1.0
        return out

    def _noise(self, noise: Array, rows: int) -> list[Perturbation]:
        """Cut the flat noise into the parts of each layer."""
        net, samples = self.model.network, len(noise)
        size = net.layout.size
        eps = net.layers(noise[:, :size])
        cut, start = [], size
        for (d_in, d_out), (weight, bias) in zip(self.widths(), eps, strict=True):
            signs = []
            for width in (d_in, d_out, d_out):
                stop = start + rows * width
                signs.append(noise[:, start:stop].reshape(samples, rows, width))
                start = stop
            cut.append(Perturbation(weight, bias, *signs))
        return cut

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        work: Workspace | None = None,
        frozen: Array | None = None,
    ) -> tuple[Any, Array]:
        r"""Return the free energy on one minibatch and its gradient for theta (D22).

        For each layer, with R, S, T random signs for every row and P = sigma o eps shared:

        .. math::
            z &= a \mu + ((a \circ R) P) \circ S + b_\mu + T \circ (\sigma_b \epsilon_b) \\
            d\mu &= a^T G, \qquad dP = (a \circ R)^T (G \circ S), \qquad
            da = G \mu^T + ((G \circ S) P^T) \circ R

        and drho = dP o eps o s(rho). Arguments and results as
        `Reparameterised.value_and_grad`; `noise` from this class's `draw`, for as many rows as
        `x` has.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)
        weight, size = self.beta * kl_weight, self.model.layout.size
        parts = self.density.factor(blocks, work)
        eps = noise[:, :size]
        shift = work.array("perturbation", eps.shape, parts.softplus.dtype)
        np.multiply(eps, parts.softplus, out=shift)  # (S, P)

        z, tapes = self._forward(blocks["mu"], shift, noise, x, work)
        rowwise, saved = self.model.likelihood.log_density(blocks, z, y, work)
        log_likelihood = np.add.reduce(rowwise, axis=1)
        each = np.full(len(noise), -1.0 / len(noise), theta.real.dtype)

        d_z = self.model.likelihood.vjp(saved, each, d_blocks)
        d_shift = work.array("d perturbation", shift.shape, shift.dtype)
        self._backward(blocks["mu"], shift, tapes, d_z, d_blocks["mu"], d_shift, work)
        np.einsum("sp,sp->p", d_shift, eps, out=d_blocks["rho"], casting="same_kind")
        d_blocks["rho"] *= parts.sigmoid
        kl = add_kl(self, blocks, parts, weight, d_blocks)
        remember(work, kl, log_likelihood)
        return weight * kl + each @ log_likelihood, grad

    def _forward(
        self, mu: Array, shift: Array, noise: Array, x: Array, work: Workspace
    ) -> tuple[Array, list[LayerTape]]:
        net, a, tapes = self.model.network, x, []
        means = work.views("layers of mu", mu, self.pairs)
        layers = zip(means, work.views("layers of shift", shift, net.layers), strict=True)
        flips = self._noise(noise, len(x))
        for layer, ((mean, bias), (push, push_b)) in enumerate(layers):
            p = flips[layer]
            z = np.matmul(a * p.r, push)  # (S, B, O)
            z *= p.s
            z += np.matmul(a, mean)
            z += bias
            z += p.t * push_b
            slope = None
            if layer < len(net.sizes) - 2:
                slope = activate(net, z, work.array(f"slope{layer}", z.shape, z.dtype))
            tapes.append(LayerTape(a, p, slope))
            a = z
        return a, tapes

    def _backward(
        self,
        mu: Array,
        shift: Array,
        tapes: list[LayerTape],
        d_z: Array,
        d_mu: Array,
        d_shift: Array,
        work: Workspace,
    ) -> None:
        net = self.model.network
        means = work.views("layers of mu", mu, self.pairs)
        pushes = work.views("layers of shift", shift, net.layers)
        d_means = work.views("layers of d_mu", d_mu, self.pairs)
        d_pushes = work.views("layers of d_shift", d_shift, net.layers)
        for layer in range(len(tapes) - 1, -1, -1):
            a, noise, _ = tapes[layer]
            p = Perturbation(*noise)
            flipped = d_z * p.s  # G o S
            sum_outer(a, d_z, *d_means[layer])
            np.matmul((a * p.r).swapaxes(-1, -2), flipped, out=d_pushes[layer][0])
            np.add.reduce(d_z * p.t, axis=1, keepdims=True, out=d_pushes[layer][1])
            if layer:
                d_a = np.matmul(flipped, pushes[layer][0].swapaxes(-1, -2))
                d_a *= p.r
                d_a += np.matmul(d_z, means[layer][0].T)
                d_a *= tapes[layer - 1].slope
                d_z = d_a

    def gates(self, theta: Array, noise: Array, x: Array) -> NDArray[np.bool_]:
        """Return which ReLU units are on, for every sample and row."""
        blocks = self.layout.views(theta)
        sigma = self.density.factor(blocks, Workspace()).softplus
        shift = noise[:, : self.model.layout.size] * sigma
        _, tapes = self._forward(blocks["mu"], shift, noise, x, Workspace())
        return open_gates(self.model.network, tapes)

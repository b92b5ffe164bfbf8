"""Local reparameterisation: sample the outputs of a layer, not its weights (D21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.buffers import Buffers
from ..numeric.elementary import (
    LOG_2PI,
    TINY,
    SoftplusParts,
    log1p,
    softplus_parts,
    sums_of_squares,
)
from ..parts.network import activate, open_gates
from ..parts.posteriors import Entropy
from ..parts.priors import ClosedFormPrior
from .closed_form import exact_terms
from .family import Evaluated, closed_form_prior
from .rowwise import Rowwise, sum_outer

__all__ = ["LocalReparameterisation"]

Array = NDArray[Any]
BLOCK = 65_536  # numbers of one pass: three such float32 arrays stay in a cache of 1 MiB


class OutputTape(NamedTuple):
    """What the forward pass leaves for the backward pass; lists have an entry for each layer."""

    variance: Array  # (P,)  sigma^2
    means: list[tuple[Array, Array]]  # views of mu
    variances: list[tuple[Array, Array]]  # views of `variance`
    inputs: list[Array]  # a: (B, I), then (S, B, I)
    squares: list[Array]  # a^2
    roots: list[Array]  # sqrt(v) (B, O), then (S, B, O)
    zetas: list[Array]  # (S, B, O)
    slopes: list[Array]  # (S, B, O)  activation'(z), but for the last layer


@dataclass(frozen=True)
class LocalReparameterisation(Rowwise):
    """Sample each layer's outputs, not its weights (Kingma et al. 2015; D21).

    Given its inputs a, an output of a layer is Gaussian with mean a mu and variance a^2 sigma^2.
    Every row has its own noise, so their gradients are independent.
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
        cut: list[Array] = []
        start = 0
        for width in self.model.network.sizes[1:]:
            stop = start + rows * width
            cut.append(noise[:, start:stop].reshape(len(noise), rows, width))
            start = stop
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
        r"""Return the free energy on one minibatch and its gradient for theta (D21).

        For each layer, with :math:`\delta = \partial(-\log P)/\partial z`:

        .. math::
            z &= a \mu + \mu_b + \sqrt{v} \circ \zeta, \qquad v = a^2 \sigma^2 + \sigma_b^2 \\
            \delta_v &= \delta \circ \zeta / (2 \sqrt v), \qquad d\mu = a^T \delta, \qquad
                 d\sigma^2 = (a^2)^T \delta_v \\
            da &= \delta \mu^T + 2 a \circ (\delta_v (\sigma^2)^T)

        Arguments and results as `Reparameterised.value_and_grad`; `noise` from this class's
        `draw`, for as many rows as `x` has.
        """
        buffers, blocks, grad, d_blocks = self.unpacked(theta, noise, x, y, buffers)
        weight, prior = self.objective.beta * kl_weight, closed_form_prior(self.model)
        parts = _variance_parts(blocks["rho"], prior.starts, buffers)

        z, tape = self._forward(blocks["mu"], parts.variance, noise, x, buffers)
        rowwise, residuals = self.model.likelihood.log_density(blocks, z, y)
        log_likelihood = np.add.reduce(rowwise, axis=1)
        each = np.full(len(noise), -1.0 / len(noise), theta.real.dtype)

        d_z = self.model.likelihood.vjp(residuals, each, d_blocks)
        twice = self._backward(tape, d_z, d_blocks["mu"], buffers)
        kl = _finish(prior, blocks, parts, twice, weight, d_blocks, buffers)
        value = weight * kl + each @ log_likelihood
        return Evaluated(value, grad, exact_terms(kl, log_likelihood))

    def _forward(
        self, mu: Array, variance: Array, noise: Array, x: Array, buffers: Buffers
    ) -> tuple[Array, OutputTape]:
        net, a = self.model.network, x
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
        return a, OutputTape(variance, means, variances, inputs, squares, roots, zetas, slopes)

    def _backward(self, tape: OutputTape, d_z: Array, d_mu: Array, buffers: Buffers) -> Array:
        """Write d_mu, and return 2 d_sigma^2 (P,): with 2 delta_v two factors cancel."""
        twice = buffers.like(tape.variance)
        d_means, d_variances = buffers.views(d_mu, self.pairs), buffers.views(twice, self.pairs)
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
        return twice

    def gates(self, theta: Array, noise: Array, x: Array) -> NDArray[np.bool_]:
        """Return which ReLU units are on, for every sample and row."""
        blocks, buffers = self.layout.views(theta), Buffers()
        sigma = self.posterior.factor(blocks, buffers).softplus
        _, tape = self._forward(blocks["mu"], sigma * sigma, noise, x, buffers)
        return open_gates(self.model.network, tape.slopes)


class VarianceParts(NamedTuple):
    """What `LocalReparameterisation` needs of all deviations."""

    entropy: Entropy
    variance: Array  # (P,)  sigma^2
    half_slope: Array  # (P,)  sigma s(rho), half of d sigma^2/d rho
    ratio: Array  # (P,)  s(rho) / sigma = d log sigma/d rho


def _variance_parts(rho: Array, starts: tuple[int, ...] | None, buffers: Buffers) -> VarianceParts:
    """Return all of them; variances summed by group if `starts`.

    The readable form ::

        parts = softplus_parts(rho)
        variance, half_slope = parts.softplus**2, parts.softplus * parts.sigmoid
        ratio, entropy = parts.ratio, MeanField().entropy(parts, starts)

    Block by block, all these passes run in the cache instead of in memory.
    """
    variance, half_slope, ratio = (buffers.like(rho) for _ in range(3))
    scratch = buffers.array((3, min(len(rho), BLOCK)), rho.dtype)
    logs: Any = 0.0
    total: Any = 0.0
    for start in range(0, len(rho), BLOCK):
        block = slice(start, start + BLOCK)
        here = rho[block]
        sigma, slope, log_sigma = scratch[:, : len(here)]
        logs += _deviations(here, SoftplusParts(sigma, slope, log_sigma, ratio[block]))
        np.multiply(sigma, sigma, out=variance[block])
        np.multiply(sigma, slope, out=half_slope[block])
        total += sums_of_squares(sigma)
    if starts is not None:
        total = np.add.reduceat(variance, starts)
    value = logs + 0.5 * (1.0 + LOG_2PI) * len(rho)
    return VarianceParts(Entropy(value, total), variance, half_slope, ratio)


def _deviations(rho: Array, out: SoftplusParts) -> Any:
    """Fill all but `log_softplus` of `out`, which is spent, and return the sum of log sigma.

    The readable form, which blocks with a larger rho take ::

        return np.add.reduce(softplus_parts(rho, out).log_softplus)

    For moderate rho the defining formulas are exact to rounding, and eight sigma, each between
    4e-5 and 11, have a product that neither overflows nor underflows: one logarithm for eight.
    """
    eighth, real = len(rho) // 8, rho.real
    if not (real.item(real.argmax()) < 10.0 and real.item(real.argmin()) > -10.0):  # nan too
        return np.add.reduce(softplus_parts(rho, out).log_softplus)
    sigma, slope, e, ratio = out
    np.exp(rho, out=e)
    log1p(e, out=sigma)
    np.add(e, 1.0, out=slope)
    np.divide(e, slope, out=slope)
    np.divide(slope, sigma, out=ratio)
    products = e[: 4 * eighth]
    np.multiply(sigma[: 4 * eighth], sigma[4 * eighth : 8 * eighth], out=products)
    products[: 2 * eighth] *= products[2 * eighth :]
    products[:eighth] *= products[eighth : 2 * eighth]
    logs = np.log(products[:eighth], out=products[:eighth])
    return np.add.reduce(logs) + np.add.reduce(np.log(sigma[8 * eighth :]))


def _finish(
    prior: ClosedFormPrior,
    blocks: dict[str, Array],
    found: VarianceParts,
    twice: Array,
    weight: float,
    d_blocks: dict[str, Array],
    buffers: Buffers,
) -> Any:
    """Return KL(q || P(w)), add its gradient and write d_rho, given 2 d_sigma^2 (D18, D21).

    The same numbers as from `add_kl`, in fewer passes: with s the scale of the prior ::

        d_rho = (2 d_sigma^2 + weight / s^2) sigma s(rho) - weight s(rho) / sigma
        d_mu += weight mu / s^2
    """
    entropy, d_mu, d_rho = found.entropy, d_blocks["mu"], d_blocks["rho"]
    expected = prior.expected_log_density(blocks, blocks["mu"], entropy.total_variance, d_blocks)
    for name, _ in prior.blocks():
        d_blocks[name] *= -weight  # D17
    shift = -2.0 * weight * expected.d_variance  # weight / s^2, one number or (P,)
    scratch = buffers.array((min(len(d_rho), BLOCK),), d_rho.dtype)
    for start in range(0, len(d_rho), BLOCK):
        block = slice(start, start + BLOCK)
        part = d_rho[block]
        np.add(twice[block], shift[block] if np.ndim(shift) else shift, out=part)
        part *= found.half_slope[block]
        part -= np.multiply(found.ratio[block], weight, out=scratch[: len(part)])
        d_mu[block] += np.multiply(expected.d_mean[block], -weight, out=scratch[: len(part)])
    return -entropy.value - expected.value

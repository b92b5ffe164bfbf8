"""Local reparameterisation: sample the outputs of a layer, not its weights (D21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.elementary import (
    LOG_2PI,
    SoftplusParts,
    log1p,
    softplus_parts,
    standard_normal,
    sums_of_squares,
)
from ..numeric.workspace import Workspace
from ..parts.network import activate
from ..parts.posteriors import Entropy
from .closed_form import remember
from .family import Family, closed_form_prior
from .rowwise import LayerTape, Rowwise, open_gates, sum_outer

__all__ = ["LocalReparameterisation"]

Array = NDArray[Any]
BLOCK = 65_536  # numbers of one pass: three such float32 arrays stay in a cache of 1 MiB


@dataclass(frozen=True)
class LocalReparameterisation(Rowwise):
    """Sample each layer's outputs, not its weights (Kingma et al. 2015; D21).

    Given its inputs a, an output of a layer is Gaussian with mean a mu and variance a^2 sigma^2.
    Every row has its own noise, so their gradients are independent.
    """

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
        """Draw the noise (S, rows * sum of widths): one number for each output of each layer."""
        shape = (samples, rows * sum(self.model.network.sizes[1:]))
        out = np.empty(shape, dtype) if work is None else work.array("zeta", shape, dtype)
        return standard_normal(rng, out)

    def _noise(self, noise: Array, rows: int) -> list[Array]:
        """Cut the flat noise into zeta (S, B, O) of each layer."""
        cut, start = [], 0
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
        work: Workspace | None = None,
        frozen: Array | None = None,
    ) -> tuple[Any, Array]:
        r"""Return the free energy on one minibatch and its gradient for theta (D21).

        For each layer, with :math:`G = \partial(-\log P)/\partial z`:

        .. math::
            z &= a \mu + b_\mu + \sqrt{D} \circ \zeta, \qquad D = a^2 \sigma^2 + \sigma_b^2 \\
            H &= G \circ \zeta / (2 \sqrt D), \qquad d\mu = a^T G, \qquad
                 d\sigma^2 = (a^2)^T H \\
            da &= G \mu^T + 2 a \circ (H (\sigma^2)^T)

        Arguments and results as `Reparameterised.value_and_grad`; `noise` from this class's
        `draw`, for as many rows as `x` has.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)
        weight = self.beta * kl_weight
        # sigma^2 lives where its gradient will be: one array of the size of all weights less
        variance = d_blocks["rho"]
        starts = closed_form_prior(self.model).starts
        variances = _variances(blocks["rho"], variance, starts, work)

        z, tapes = self._forward(blocks["mu"], variance, noise, x, work)
        rowwise, saved = self.model.likelihood.log_density(blocks, z, y, work)
        log_likelihood = np.add.reduce(rowwise, axis=1)
        each = np.full(len(noise), -1.0 / len(noise), theta.real.dtype)

        d_z = self.model.likelihood.vjp(saved, each, d_blocks)
        self._backward(blocks["mu"], variance, tapes, d_z, d_blocks["mu"], work)
        kl = _add_kl_of_variances(self, blocks, variances, weight, d_blocks)
        remember(work, kl, log_likelihood)
        return weight * kl + each @ log_likelihood, grad

    def _forward(
        self, mu: Array, variance: Array, noise: Array, x: Array, work: Workspace
    ) -> tuple[Array, list[LayerTape]]:
        net, a, tapes = self.model.network, x, []
        tiny = np.finfo(variance.real.dtype).tiny  # D = 0 has no slope; its root is then 1e-154
        means = work.views("layers of mu", mu, self.pairs)
        spreads = work.views("layers of sigma^2", variance, self.pairs)
        zetas = self._noise(noise, len(x))
        for layer, zeta in enumerate(zetas):
            (mean, bias), (spread, bias_spread) = means[layer], spreads[layer]
            shape = zeta.shape if a.ndim == 3 else zeta.shape[1:]
            square = np.multiply(a, a, out=work.array(f"a^2 {layer}", a.shape, a.dtype))
            root = np.matmul(square, spread, out=work.array(f"root{layer}", shape, mu.dtype))
            root += bias_spread + tiny
            np.sqrt(root, out=root)  # sqrt(D), (S, B, O) or (B, O)
            center = np.matmul(a, mean, out=work.array(f"center{layer}", shape, mu.dtype))
            center += bias
            z = np.multiply(zeta, root, out=work.array(f"z{layer}", zeta.shape, mu.dtype))
            z += center
            slope = None
            if layer < len(net.sizes) - 2:
                slope = activate(net, z, work.array(f"slope{layer}", z.shape, z.dtype))
            tapes.append(LayerTape(a, (zeta, root, square), slope))
            a = z
        return a, tapes

    def _backward(
        self,
        mu: Array,
        variance: Array,
        tapes: list[LayerTape],
        d_z: Array,
        d_mu: Array,
        work: Workspace,
    ) -> None:
        """Write d_mu, and twice d_sigma^2 over sigma^2: with 2H for H two factors cancel."""
        means = work.views("layers of mu", mu, self.pairs)
        spreads = work.views("layers of sigma^2", variance, self.pairs)
        d_means = work.views("layers of d_mu", d_mu, self.pairs)
        for layer in range(len(tapes) - 1, -1, -1):
            a, (zeta, root, square), _ = tapes[layer]
            h = np.multiply(d_z, zeta, out=work.array(f"h{layer}", zeta.shape, d_z.dtype))
            h /= root  # 2 H = G zeta / sqrt D
            if layer:  # before sigma^2 of this layer is overwritten
                out = work.array(f"d_a{layer}", a.shape, h.dtype)
                d_a = np.matmul(h, spreads[layer][0].T, out=out)
            sum_outer(square, h, *spreads[layer])  # 2 d_sigma^2 = (a^2)^T 2 H
            sum_outer(a, d_z, *d_means[layer])  # d_mu = a^T G, d_b = 1^T G
            if layer:
                d_a *= a
                d_a += np.matmul(d_z, means[layer][0].T, out=a)  # G mu^T + a (2 H sigma^2^T)
                d_a *= tapes[layer - 1].slope
                d_z = d_a

    def gates(self, theta: Array, noise: Array, x: Array) -> NDArray[np.bool_]:
        """Return which ReLU units are on, for every sample and row."""
        blocks = self.layout.views(theta)
        sigma = self.density.factor(blocks, Workspace()).softplus
        _, tapes = self._forward(blocks["mu"], sigma * sigma, noise, x, Workspace())
        return open_gates(self.model.network, tapes)


class Variances(NamedTuple):
    """What `LocalReparameterisation` needs of all deviations."""

    entropy: Entropy
    half_slope: Array  # (P,)  sigma s(rho), half of d sigma^2/d rho
    ratio: Array  # (P,)  s(rho) / sigma = d log sigma/d rho


def _variances(
    rho: Array, variance: Array, starts: tuple[int, ...] | None, work: Workspace
) -> Variances:
    """Fill `variance` with sigma^2 and return the rest; variances summed by group if `starts`.

    The readable form ::

        parts = softplus_parts(rho)
        variance = parts.softplus**2
        half_slope, ratio = parts.softplus * parts.sigmoid, parts.ratio
        entropy = MeanField().entropy(parts, starts)

    Block by block, all these passes run in the cache instead of in memory.
    """
    half_slope, ratio = (work.array(name, rho.shape, rho.dtype) for name in ("sigma s", "s/sigma"))
    scratch = work.array("block", (3, min(len(rho), BLOCK)), rho.dtype)
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
    return Variances(Entropy(value, total), half_slope, ratio)


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


def _add_kl_of_variances(
    family: Family,
    blocks: dict[str, Array],
    found: Variances,
    weight: float,
    d_blocks: dict[str, Array],
) -> Any:
    """Return KL(q || P(w)) and finish the gradient, of which 'rho' holds 2 d_sigma^2 (D18, D21).

    The same numbers as from `add_kl`, in fewer passes: with S the scale of the prior ::

        d_rho = (2 d_sigma^2 + weight / S^2) sigma s(rho) - weight s(rho) / sigma
        d_mu += weight mu / S^2

    Spends `found`.
    """
    prior = closed_form_prior(family.model)
    entropy, d_mu, d_rho = found.entropy, d_blocks["mu"], d_blocks["rho"]
    expected = prior.expected_log_density(blocks, blocks["mu"], entropy.total_variance, d_blocks)
    for name, _ in prior.blocks():
        d_blocks[name] *= -weight  # D17
    shift = -2.0 * weight * expected.d_variance  # weight / S^2, one number or (P,)
    for start in range(0, len(d_rho), BLOCK):
        block = slice(start, start + BLOCK)
        part, ratio, slope = d_rho[block], found.ratio[block], expected.d_mean[block]
        part += shift[block] if np.ndim(shift) else shift
        part *= found.half_slope[block]
        ratio *= weight
        part -= ratio
        slope *= -weight
        d_mu[block] += slope
    return -entropy.value - expected.value

r"""Variational posteriors q(w | theta) that factorise: mean field, and a point mass.

Two methods of those with a density differentiate log q, and together they are what Wu's split form
(W4, W5) keeps apart:

* `add_density_slope`: through the weights, d log q(w; theta)/dw with theta held fixed;
* `pull_back_direct`: the direct partials, d log q(w; theta)/d theta with w held fixed.

`pull_back` is their sum, in the report's cancelled form (K21, K30).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.deprecation import accept_old_methods, renamed_arguments, renamed_names
from ..numeric.elementary import (
    LOG_2PI,
    SoftplusParts,
    add_scaled,
    inverse_softplus,
    softplus_parts,
    sums_of_squares,
)
from ..numeric.layout import Array, Blocks, Layout, Params
from ..numeric.validation import check_fields, real, spread

__all__ = [
    "Entropy",
    "GaussianPosterior",
    "GaussianSample",
    "MeanField",
    "PointMass",
    "PointSample",
    "Posterior",
]

GroupStarts = tuple[int, ...] | None


class GaussianSample(NamedTuple):
    """S weight samples and what their pull-back needs."""

    w: Array  # (S, P)  mu + sigma eps, or mu + C eps
    eps: Array  # (S, P)
    parts: Any  # of `factor`


class Entropy(NamedTuple):
    """What a closed-form KL divergence needs of a Gaussian q."""

    value: Any  # scalar: -E_q[log q], in nats
    # the sum of the variances of all weights, or (L,) of each group
    total_variance: Any


class Posterior:
    """What a posterior has; a new one writes what raises NotImplementedError here.

    A frozen dataclass, of which every field has a default. Its methods obey what `Prior` says of
    arguments, buffers, dtypes and complex numbers; `sample` takes the weights from `buffers`, and
    nobody overwrites them.
    """

    def blocks(self, size: int) -> Blocks:
        """Name the blocks of theta for `size` weights."""
        raise NotImplementedError

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw the starting theta."""
        raise NotImplementedError

    def noise_size(self, size: int) -> int:
        """Return how many numbers eps ~ N(0, 1) make a weight vector: one per weight (K1, D11)."""
        return size

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> Any:
        """Turn noise (S, P) into weights (S, P), with what the pull-back needs."""
        raise NotImplementedError

    def log_density(self, sample: Any) -> Array:
        """Return log q(w|theta) (S,), constants kept."""
        raise NotImplementedError

    def pull_back(
        self, sample: Any, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradient for theta into `d_theta`, given cotangents of w and of log q.

        `d_w` (S, P) is that of the weights, of everything but log q; `d_log_q` (S,) is None where
        log q enters by no sample.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class GaussianPosterior(Posterior):
    """A Gaussian with a density: theta begins with mu (P,) and rho (P,), for scales softplus(rho).

    What `MeanField` and `FullRank` write is below what they share.
    """

    mu_scale: float = 0.1
    rho_offset: float = -5.0
    rho_halfwidth: float = 0.01

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        accept_old_methods(cls, {"at": "from_weights"})

    def __post_init__(self) -> None:
        offset = partial(
            real, low=-1e150, high=1e150, expected="between -1e150 and 1e150"
        )
        check_fields(self, mu_scale=spread, rho_offset=offset, rho_halfwidth=spread)

    def blocks(self, size: int) -> Blocks:
        return (("mu", (size,)), ("rho", (size,)))  # K2

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw the starting theta: mu, rho, and zeros for what else there is."""
        theta = np.zeros(Layout(self.blocks(size)).size, dtype)
        theta[:size] = self.mu_scale * rng.standard_normal(size)
        width = self.rho_halfwidth
        theta[size : 2 * size] = rng.uniform(-width, width, size) + self.rho_offset
        return theta

    def factor(self, blocks: Params, buffers: Buffers) -> Any:
        """Return the standard deviations, or the Cholesky factor, and their companions."""
        raise NotImplementedError

    def from_weights(self, blocks: Params, w: Array, buffers: Buffers) -> Any:
        """Return given weights (S, P) as a sample."""
        raise NotImplementedError

    def add_density_slope(self, sample: Any, cotangent: Array, d_w: Array) -> None:
        """Add cotangent (S,) times d log q/dw, theta fixed, to `d_w` (S, P)."""
        raise NotImplementedError

    def pull_back_direct(self, sample: Any, d_log_q: Array, d_theta: Params) -> None:
        """Write the direct partials of log q for theta, w held fixed (W4, W5, G8).

        What is left of `pull_back` where the cotangent of w cancels the way through it.
        """
        back = np.zeros_like(sample.w)
        self.add_density_slope(sample, -d_log_q, back)
        self.pull_back(sample, back, d_log_q, d_theta)

    def entropy(self, parts: Any, group_starts: GroupStarts = None) -> Entropy:
        """Return the entropy, and the variances summed, from `factor`.

        With `group_starts`, where groups of weights begin, they are summed by group.
        """
        raise NotImplementedError

    def add_entropy_vjp(
        self, parts: Any, d_entropy: float, d_variance: Any, d_theta: Params
    ) -> None:
        """Add the gradient of both; `d_variance` is one number for all weights, or (P,)."""
        raise NotImplementedError


@dataclass(frozen=True)
class MeanField(GaussianPosterior):
    """Independent Gaussians, q(w|theta) = prod_j N(w_j; mu_j, softplus(rho_j)^2) (K2, K3).

    The parameters are the starting values of the report's Section 7; `pack` starts anywhere else.

    Parameters
    ----------
    mu_scale : float
        Initial mu ~ N(0, mu_scale^2). The report: variance 0.01, so 0.1.
    rho_offset, rho_halfwidth : float
        Initial rho ~ U(offset - halfwidth, offset + halfwidth). The report: -5 and 0.01,
        which starts every sigma between 0.00665 and 0.00678.
    """

    @renamed_arguments(deviation="sd")
    def pack(self, mean: Array, sd: Array) -> Array:
        """Return the theta (2P,) of a Gaussian.

        Parameters
        ----------
        mean : ndarray (P,)
        sd : ndarray (P,)
            Standard deviations, > 0.
        """
        if np.ndim(mean) != 1 or np.shape(mean) != np.shape(sd):
            raise ValueError(
                f"mean and sd must be vectors of one length; got shapes {np.shape(mean)} "
                f"and {np.shape(sd)}"
            )
        if not np.all(np.asarray(sd) > 0):
            raise ValueError(f"sd must be positive; got {np.min(sd):g}")
        return np.concatenate([mean, inverse_softplus(sd)])

    def factor(self, blocks: Params, buffers: Buffers) -> SoftplusParts:
        """Return sigma = softplus(rho) and its companions (P,) (K3)."""
        rho = blocks["rho"]
        return softplus_parts(rho, buffers.softplus_parts(rho))

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> GaussianSample:
        """Turn noise (S, P) into weights: sigma = softplus(rho), w = mu + sigma eps (K3, K4)."""
        mu, parts = blocks["mu"], self.factor(blocks, buffers)
        w = buffers.array(eps.shape, np.result_type(mu, eps))  # (S, P)
        np.multiply(eps, parts.softplus[None], out=w)
        w += mu[None]  # K4
        return GaussianSample(w, eps, parts)

    def from_weights(
        self, blocks: Params, w: Array, buffers: Buffers
    ) -> GaussianSample:
        parts = self.factor(blocks, buffers)
        return GaussianSample(w, (w - blocks["mu"]) / parts.softplus, parts)

    def log_density(self, sample: GaussianSample) -> Array:
        r"""Return log q(w|theta) of each sample (S,), constants kept (K6-K10).

        As a function of theta with eps held fixed,
        :math:`\sum_j [-\log\sigma_j - \tfrac12\epsilon_j^2 - \tfrac12\log 2\pi]`: the
        squared distance of K9 is eps^2 exactly (K10), so mu has dropped out.
        """
        constant = (
            np.add.reduce(sample.parts.log_softplus)
            + 0.5 * LOG_2PI * sample.eps.shape[-1]
        )
        return -0.5 * sums_of_squares(sample.eps) - constant  # K6-K10

    def pull_back(
        self, sample: GaussianSample, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradient for (mu, rho), given cotangents of w (S, P) and of log q (S,)."""
        d_mu, d_rho = d_theta["mu"], d_theta["rho"]
        # d_mu  = sum_s d_w                                       K21 (K20: dw/dmu = 1)
        # d_rho = (sum_s d_w eps) s(rho)                          K30 (K28: dw/drho = eps s(rho),
        #         - (sum_s d_log_q) s(rho) / sigma                     K25: d log sigma/drho)
        # one sample is its own sum: two passes over memory instead of three
        if len(d_w) == 1:
            d_mu[...] = d_w[0]
            np.multiply(d_w[0], sample.eps[0], out=d_rho)
        else:
            np.add.reduce(d_w, axis=0, out=d_mu)
            np.einsum("sp,sp->p", d_w, sample.eps, out=d_rho, casting="same_kind")
        d_rho *= sample.parts.sigmoid  # K26-K28
        if d_log_q is not None:
            add_scaled(d_rho, sample.parts.ratio, -np.add.reduce(d_log_q))

    def add_density_slope(
        self, sample: GaussianSample, cotangent: Array, d_w: Array
    ) -> None:
        """Add cotangent (S,) times d log q/dw = -eps / sigma, theta fixed, to `d_w` (W3, D20)."""
        d_w -= cotangent[:, None] * sample.eps / sample.parts.softplus  # W3

    def pull_back_direct(
        self, sample: GaussianSample, d_log_q: Array, d_theta: Params
    ) -> None:
        """Write the direct partials of log q for (mu, rho), w held fixed (W4, W5, G8).

        ``d log q/d mu = eps / sigma`` and ``d log q/d rho = (eps^2 - 1) s(rho) / sigma``.
        """
        eps, parts = sample.eps, sample.parts
        np.divide(d_log_q @ eps, parts.softplus, out=d_theta["mu"])  # W4
        np.multiply(d_log_q @ (eps * eps - 1.0), parts.ratio, out=d_theta["rho"])  # W5

    def entropy(
        self, parts: SoftplusParts, group_starts: GroupStarts = None
    ) -> Entropy:
        r"""Return :math:`\sum_j \log\sigma_j + \tfrac P2 (1 + \log 2\pi)` (D18)."""
        sigma = parts.softplus
        value = np.add.reduce(parts.log_softplus) + 0.5 * (1.0 + LOG_2PI) * len(sigma)
        if group_starts is None:
            return Entropy(value, sums_of_squares(sigma))
        return Entropy(value, np.add.reduceat(sigma * sigma, group_starts))

    def add_entropy_vjp(
        self, parts: SoftplusParts, d_entropy: float, d_variance: Any, d_theta: Params
    ) -> None:
        """Add that for rho: d H/d rho = s(rho) / sigma, d sigma^2/d rho = 2 sigma s(rho) (D18)."""
        sigma, slope, d_rho = parts.softplus, parts.sigmoid, d_theta["rho"]
        add_scaled(d_rho, parts.ratio, d_entropy)
        d_rho += sigma * slope * (2.0 * d_variance)


class PointSample(NamedTuple):
    """The weights of a point mass, one row for each of S identical samples."""

    w: Array  # (S, P)


@dataclass(frozen=True)
class PointMass(Posterior):
    """All mass on one weight vector mu: the point estimates MLE and MAP (W1, W2).

    Parameters
    ----------
    mu_scale : float
        Initial mu ~ N(0, mu_scale^2).
    """

    mu_scale: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self, mu_scale=spread)

    def blocks(self, size: int) -> Blocks:
        return (("mu", (size,)),)

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        return (self.mu_scale * rng.standard_normal(size)).astype(dtype)

    def pack(self, mean: Array) -> Array:
        """Return the theta (P,) of the point `mean`, a copy."""
        return np.array(mean)

    def noise_size(self, size: int) -> int:
        return 0

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> PointSample:
        mu = blocks["mu"]
        w = buffers.array((len(eps), len(mu)), mu.dtype)
        w[...] = mu
        return PointSample(w)

    def log_density(self, sample: PointSample) -> Array:
        """Return 0 for each sample: a density at a point has no finite logarithm to add."""
        return np.zeros(len(sample.w), sample.w.dtype)

    def pull_back(
        self, sample: PointSample, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        np.add.reduce(d_w, axis=0, out=d_theta["mu"])


__getattr__ = renamed_names(__name__, {"Density": "GaussianPosterior"})
NAMED = {
    "posterior": {
        "mean-field": (MeanField(rho_offset=-4.0), MeanField(0.3, -0.5, 0.5)),
        "point": (PointMass(), PointMass(0.3)),
    }
}

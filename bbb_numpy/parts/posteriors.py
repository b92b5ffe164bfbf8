r"""Variational posteriors q(w | theta) that factorise: mean field, and a point mass.

Two methods of Gaussian posteriors differentiate log q. They are the two terms that Wu's split form
(W4, W5) keeps apart:

* `add_density_slope`: through the weights, d log q(w; theta)/dw with theta fixed;
* `pull_back_direct`: the direct partials, d log q(w; theta)/d theta with w fixed.

`pull_back` is their sum, in the report's cancelled form (K21, K30).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.deprecation import accept_old_members, renamed_arguments, renamed_names
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

GroupStarts = tuple[int, ...] | None  # index of each group's first weight


class GaussianSample(NamedTuple):
    """S weight samples with the noise and scales that they were made from, for `pull_back`."""

    w: Array  # (S, P) weight vectors, mu + sigma eps or mu + C eps
    eps: Array  # (S, P) standard normal noise
    parts: Any  # the scales, as `factor` returns them


class Entropy(NamedTuple):
    """Entropy and total variance of a Gaussian q, for a KL divergence in closed form."""

    value: Any  # entropy -E_q[log q], a scalar in nats
    # Sum of the weights' variances under q: a scalar, or (L,), one sum for each of L groups
    total_variance: Any


class Posterior:
    """Base class of posteriors; a subclass defines the methods that raise NotImplementedError here.

    A posterior is a frozen dataclass; each of its fields has a default. Its methods obey the
    contract of `Prior` on arguments, buffers, dtypes and complex numbers; `sample` takes the
    weights from `buffers`, and nobody overwrites them.
    """

    def blocks(self, size: int) -> Blocks:
        """Return names and shapes of the blocks of theta, for a network of `size` weights."""
        raise NotImplementedError

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw an initial theta: one flat vector, with the blocks in the order of `blocks`.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int
            Number of weights P.
        dtype : dtype
            Dtype of theta, float64 or float32.
        """
        raise NotImplementedError

    def noise_size(self, size: int) -> int:
        """Return how many noise numbers `size` weights need: by default `size` (K1, D11)."""
        return size

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> Any:
        """Return S weight vectors computed from the noise `eps`, and what `pull_back` needs.

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        eps : ndarray (S, noise_size)
            Standard normal noise. It is not written to.
        buffers : Buffers
            Source of the weights' memory, which the owner of the buffers reuses.

        Returns
        -------
        object
            A sample, whose attribute ``w`` (S, P) holds the weights.
        """
        raise NotImplementedError

    def log_density(self, sample: Any) -> Array:
        """Return the normalised log density log q(w|theta) of each sample, (S,) in nats."""
        raise NotImplementedError

    def pull_back(
        self, sample: Any, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradient for theta, given the loss's derivatives for the weights and log q.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        d_w : ndarray (S, P)
            Derivative of the loss for the weights, through all terms but log q.
        d_log_q : ndarray (S,) or None
            Derivative of the loss for log q(w|theta) of each sample; None if the loss has no log q.
        d_theta : dict
            Gradients for the blocks of theta by name, each in its block's shape; overwritten.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class GaussianPosterior(Posterior):
    """Base class of Gaussians: theta begins with mu (P,) and rho (P,), for scales softplus(rho).

    A subclass defines `sample`, `log_density`, `pull_back` and the methods that raise
    NotImplementedError here.
    """

    mu_scale: float = 0.1
    rho_offset: float = -5.0
    rho_halfwidth: float = 0.01

    def __init_subclass__(cls, **options: Any) -> None:
        """Let subclasses define `from_weights` by its old name `at`, with a warning."""
        super().__init_subclass__(**options)
        accept_old_members(cls, {"at": "from_weights"})

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        offset = partial(
            real, low=-1e150, high=1e150, expected="between -1e150 and 1e150"
        )
        check_fields(self, mu_scale=spread, rho_offset=offset, rho_halfwidth=spread)

    def blocks(self, size: int) -> Blocks:
        """Return names and shapes of theta's blocks mu and rho, for `size` weights."""
        return (("mu", (size,)), ("rho", (size,)))  # means and raw scales (K2)

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw an initial theta: mu, rho, and zeros for the blocks that a subclass adds.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int
            Number of weights P.
        dtype : dtype
            Dtype of theta.
        """
        theta = np.zeros(Layout(self.blocks(size)).size, dtype)
        theta[:size] = self.mu_scale * rng.standard_normal(size)
        width = self.rho_halfwidth
        theta[size : 2 * size] = rng.uniform(-width, width, size) + self.rho_offset
        return theta

    def factor(self, blocks: Params, buffers: Buffers) -> Any:
        """Return q's standard deviations, or its Cholesky factor, and what gradients need of them.

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.
        """
        raise NotImplementedError

    def from_weights(self, blocks: Params, w: Array, buffers: Buffers) -> Any:
        """Return the given weights as a sample, with the noise that yields them under theta.

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        w : ndarray (S, P)
            S flat weight vectors.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.

        Returns
        -------
        GaussianSample
            The weights `w` (S, P), the noise that yields them, and the scales.
        """
        raise NotImplementedError

    def add_density_slope(self, sample: Any, cotangent: Array, d_w: Array) -> None:
        """Add `cotangent` times d log q/dw, with theta held fixed, to `d_w`.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        cotangent : ndarray (S,)
            Derivative of the loss for log q(w|theta) of each sample.
        d_w : ndarray (S, P)
            Gradient for the weights, to which the result is added in place.
        """
        raise NotImplementedError

    def pull_back_direct(self, sample: Any, d_log_q: Array, d_theta: Params) -> None:
        """Write the partial derivatives of log q for theta, the weights held fixed (W4, W5, G8).

        `pull_back` computes them, with a cotangent of w that cancels the derivative through w.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        d_log_q : ndarray (S,)
            Derivative of the loss for log q(w|theta) of each sample.
        d_theta : dict
            Gradients for the blocks of theta by name, each in its block's shape; overwritten.
        """
        d_w = np.zeros_like(sample.w)
        self.add_density_slope(sample, -d_log_q, d_w)
        self.pull_back(sample, d_w, d_log_q, d_theta)

    def entropy(self, parts: Any, group_starts: GroupStarts = None) -> Entropy:
        """Return the entropy of q in nats, and the sum of the variances of the weights under q.

        Parameters
        ----------
        parts : object
            The scales of q: the result of `factor`.
        group_starts : tuple of int, optional
            Index of the first weight of each group, whose variances are summed separately; by
            default all weights are one group.
        """
        raise NotImplementedError

    def add_entropy_vjp(
        self, parts: Any, d_entropy: float, d_variance: Any, d_theta: Params
    ) -> None:
        """Add to `d_theta` the gradient for theta through q's entropy and variances.

        Parameters
        ----------
        parts : object
            The scales of q: the result of `factor`.
        d_entropy : float
            Derivative of the loss for the entropy.
        d_variance : float or ndarray (P,)
            Derivative of the loss for the variance of each weight; a float if all are equal.
        d_theta : dict
            Gradients for the blocks of theta by name, to which the result is added in place.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class MeanField(GaussianPosterior):
    """Posterior of independent Gaussians, prod_j N(w_j; mu_j, softplus(rho_j)^2) (K2, K3).

    By default it starts as in the report's Section 7; `pack` makes a theta of any other start.

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
        """Return the theta of a Gaussian with the given means and standard deviations.

        Parameters
        ----------
        mean : ndarray (P,)
            Means of the weights.
        sd : ndarray (P,)
            Standard deviations of the weights, > 0.
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
        """Return sigma = softplus(rho), its logarithm and its derivative, (P,) each (K3)."""
        rho = blocks["rho"]
        return softplus_parts(rho, buffers.softplus_parts(rho))

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> GaussianSample:
        """Return S weight vectors w = mu + softplus(rho) eps, for standard normal noise (K3, K4).

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        eps : ndarray (S, P)
            Standard normal noise, one row per weight vector.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.

        Returns
        -------
        GaussianSample
            The weights `w` (S, P), their noise and the scales.
        """
        mu = blocks["mu"]
        parts = self.factor(blocks, buffers)
        w = buffers.array(eps.shape, np.result_type(mu, eps))  # (S, P) weight vectors
        np.multiply(eps, parts.softplus[None], out=w)
        w += mu[None]  # w = mu + sigma eps (K4)
        return GaussianSample(w, eps, parts)

    def from_weights(
        self, blocks: Params, w: Array, buffers: Buffers
    ) -> GaussianSample:
        """Return the given weights as a sample, with their noise eps = (w - mu) / sigma.

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        w : ndarray (S, P)
            S flat weight vectors.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.

        Returns
        -------
        GaussianSample
            The weights `w` (S, P), the noise that yields them, and the scales.
        """
        parts = self.factor(blocks, buffers)
        return GaussianSample(w, (w - blocks["mu"]) / parts.softplus, parts)

    def log_density(self, sample: GaussianSample) -> Array:
        r"""Return the normalised log density log q(w|theta) of each sample, (S,) in nats (K6-K10).

        As a function of theta with eps held fixed,
        :math:`\sum_j [-\log\sigma_j - \tfrac12\epsilon_j^2 - \tfrac12\log 2\pi]`: the
        squared distance of K9 is eps^2 exactly (K10), so mu has dropped out.
        """
        constant = (
            np.add.reduce(sample.parts.log_softplus)
            + 0.5 * LOG_2PI * sample.eps.shape[-1]
        )
        # log N(w; mu, sigma^2), where (w - mu) / sigma = eps
        return -0.5 * sums_of_squares(sample.eps) - constant  #  (K6-K10)

    def pull_back(
        self, sample: GaussianSample, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradients for mu and rho, given those for the weights and for log q.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        d_w : ndarray (S, P)
            Derivative of the loss for the weights, through all terms but log q.
        d_log_q : ndarray (S,) or None
            Derivative of the loss for log q(w|theta) of each sample; None if the loss has no log q.
        d_theta : dict
            Gradients for the blocks of theta by name, each in its block's shape; overwritten.
        """
        d_mu = d_theta["mu"]
        d_rho = d_theta["rho"]
        # d_mu  = sum_s d_w                                       K21 (K20: dw/dmu = 1)
        # d_rho = (sum_s d_w eps) sig(rho)                      K30 (K28: dw/drho = eps sig(rho),
        #         - (sum_s d_log_q) sig(rho) / sigma              K25: d log sigma/drho)
        # A single sample needs no sum over samples, which saves one of three passes over memory
        if len(d_w) == 1:
            d_mu[...] = d_w[0]
            np.multiply(d_w[0], sample.eps[0], out=d_rho)
        else:
            np.add.reduce(d_w, axis=0, out=d_mu)
            np.einsum("sp,sp->p", d_w, sample.eps, out=d_rho, casting="same_kind")
        d_rho *= sample.parts.sigmoid  # d sigma/d rho = sig(rho) (K26-K28)
        if d_log_q is not None:
            add_scaled(d_rho, sample.parts.ratio, -np.add.reduce(d_log_q))

    def add_density_slope(
        self, sample: GaussianSample, cotangent: Array, d_w: Array
    ) -> None:
        """Add `cotangent` times d log q/dw = -eps / sigma, theta held fixed, to `d_w` (W3, D20).

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        cotangent : ndarray (S,)
            Derivative of the loss for log q(w|theta) of each sample.
        d_w : ndarray (S, P)
            Gradient for the weights, to which the result is added in place.
        """
        # d log q/dw = -(w - mu) / sigma^2 = -eps / sigma
        d_w -= cotangent[:, None] * sample.eps / sample.parts.softplus  # W3

    def pull_back_direct(
        self, sample: GaussianSample, d_log_q: Array, d_theta: Params
    ) -> None:
        """Write the partial derivatives of log q for mu and rho, with w held fixed (W4, W5, G8).

        ``d log q/d mu = eps / sigma`` and ``d log q/d rho = (eps^2 - 1) sig(rho) / sigma``.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        d_log_q : ndarray (S,)
            Derivative of the loss for log q(w|theta) of each sample.
        d_theta : dict
            Gradients for the blocks of theta by name, each in its block's shape; overwritten.
        """
        eps = sample.eps
        parts = sample.parts
        np.divide(d_log_q @ eps, parts.softplus, out=d_theta["mu"])  # d log q/d mu (W4)
        # d log q/d rho = (eps^2 - 1) sig(rho) / sigma, with w held fixed
        np.multiply(d_log_q @ (eps * eps - 1.0), parts.ratio, out=d_theta["rho"])  # W5

    def entropy(
        self, parts: SoftplusParts, group_starts: GroupStarts = None
    ) -> Entropy:
        r"""Return the entropy of q in nats, and the sum of the variances of the weights (D18).

        The entropy is :math:`\sum_j \log\sigma_j + \tfrac P2 (1 + \log 2\pi)`.

        Parameters
        ----------
        parts : object
            The scales of q: the result of `factor`.
        group_starts : tuple of int, optional
            Index of the first weight of each group, whose variances are summed separately; by
            default all weights are one group.

        Returns
        -------
        Entropy
            The entropy in nats, and the sum of the variances of the weights.
        """
        sigma = parts.softplus
        value = np.add.reduce(parts.log_softplus) + 0.5 * (1.0 + LOG_2PI) * len(sigma)
        if group_starts is None:
            return Entropy(value, sums_of_squares(sigma))
        return Entropy(value, np.add.reduceat(sigma * sigma, group_starts))

    def add_entropy_vjp(
        self, parts: SoftplusParts, d_entropy: float, d_variance: Any, d_theta: Params
    ) -> None:
        """Add to `d_theta` the gradient for rho through q's entropy and variances (D18).

        The entropy has ``d H/d rho = sig(rho) / sigma``; ``d sigma^2/d rho = 2 sigma sig(rho)``.

        Parameters
        ----------
        parts : object
            The scales of q: the result of `factor`.
        d_entropy : float
            Derivative of the loss for the entropy.
        d_variance : float or ndarray (P,)
            Derivative of the loss for the variance of each weight; a float if all are equal.
        d_theta : dict
            Gradients for the blocks of theta by name, to which the result is added in place.
        """
        d_rho = d_theta["rho"]
        add_scaled(d_rho, parts.ratio, d_entropy)
        d_rho += parts.softplus * parts.sigmoid * (2.0 * d_variance)


class PointSample(NamedTuple):
    """Weights of a point mass, S equal rows."""

    w: Array  # (S, P) weight vectors


@dataclass(frozen=True)
class PointMass(Posterior):
    """Posterior with all mass on one weight vector mu: the point estimates MLE and MAP (W1, W2).

    Parameters
    ----------
    mu_scale : float
        Initial mu ~ N(0, mu_scale^2).
    """

    mu_scale: float = 0.1

    def __post_init__(self) -> None:
        """Raise an error unless `mu_scale` is valid."""
        check_fields(self, mu_scale=spread)

    def blocks(self, size: int) -> Blocks:
        """Return name and shape of theta's only block mu, for `size` weights."""
        return (("mu", (size,)),)

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw an initial theta, which is mu, from N(0, mu_scale^2) for each weight.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int
            Number of weights P.
        dtype : dtype
            Dtype of theta.
        """
        return (self.mu_scale * rng.standard_normal(size)).astype(dtype)

    def pack(self, mean: Array) -> Array:
        """Return the theta of a point mass at `mean` (P,): a copy of `mean`."""
        return np.array(mean)

    def noise_size(self, size: int) -> int:
        """Return 0: a point mass needs no noise, whatever the number `size` of weights."""
        return 0

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> PointSample:
        """Return S equal weight vectors, copies of mu.

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        eps : ndarray (S, 0)
            Empty noise; its length S is the number of samples.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.
        """
        mu = blocks["mu"]
        w = buffers.array((len(eps), len(mu)), mu.dtype)
        w[...] = mu
        return PointSample(w)

    def log_density(self, sample: PointSample) -> Array:
        """Return 0 for each sample, by convention: a point mass has no finite log density."""
        return np.zeros(len(sample.w), sample.w.dtype)

    def pull_back(
        self, sample: PointSample, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradient for mu: the sum of `d_w` over samples; `d_log_q` is ignored.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        d_w : ndarray (S, P)
            Derivative of the loss for the weights, through all terms but log q.
        d_log_q : ndarray (S,) or None
            Derivative of the loss for log q(w|theta) of each sample; None if the loss has no log q.
        d_theta : dict
            Gradients for the blocks of theta by name, each in its block's shape; overwritten.
        """
        np.add.reduce(d_w, axis=0, out=d_theta["mu"])


__getattr__ = renamed_names(__name__, {"Density": "GaussianPosterior"})
NAMED = {
    "posterior": {
        "mean-field": (MeanField(rho_offset=-4.0), MeanField(0.3, -0.5, 0.5)),
        "point": (PointMass(), PointMass(0.3)),
    }
}

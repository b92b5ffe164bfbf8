r"""A low rank and a diagonal: correlated weights at the price of a few mean fields (D59).

.. math:: w = \mu + \sigma \circ a, \qquad a = \epsilon_1 + V \epsilon_2 \sim N(0, I + V V^T)

where V has a few columns. It is a mean field whose noise a is correlated; only the density of a is
new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.elementary import LOG_2PI, SoftplusParts, inner, softplus_parts
from ..numeric.layout import Array, Blocks, Params
from ..numeric.validation import COUNT, check_fields, spread
from .posteriors import (
    Entropy,
    GaussianPosterior,
    GaussianSample,
    GroupStarts,
    MeanField,
)

__all__ = ["LowRank"]

MEAN_FIELD = MeanField()


class LowRankFactor(NamedTuple):
    """Diagonal and columns of the covariance, in units of sigma, and what its density needs."""

    diagonal: SoftplusParts  # standard deviations sigma (P,) and functions of them
    v: Array  # (P, R) matrix V: R columns of the covariance
    inverse: Array  # (R, R) matrix M^-1, with M = I + V^T V
    log_det: Any  # log |M|, which equals log |I + V V^T|


class LowRankSample(NamedTuple):
    """S weight samples, with the noise and factors that `pull_back` needs."""

    w: Array  # (S, P) weights
    eps: Array  # (S, P) correlated noise a, in units of sigma
    parts: LowRankFactor
    column_eps: Array  # (S, R) noise eps_2, one number for each column of V


@dataclass(frozen=True)
class LowRank(GaussianPosterior):
    """Gaussian posterior of covariance D (I + V V^T) D, with D = diag(softplus(rho)) (D59).

    theta holds mu (P,), rho (P,) and V (P, R). With V = 0 it is `MeanField`; log q, its entropy and
    their gradients take P R^2 steps where `FullRank` takes P^3 (Ong, Nott and Smith 2018).

    Parameters
    ----------
    mu_scale : float
        Initial mu ~ N(0, mu_scale^2).
    rho_offset, rho_halfwidth : float
        Initial rho ~ U(offset - halfwidth, offset + halfwidth).
    rank : int
        Number of columns R of V, >= 1.
    v_scale : float
        Initial V ~ N(0, v_scale^2). At V = 0 its gradient would be 0 as well.
    """

    rank: int = 4
    v_scale: float = 0.1

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        super().__post_init__()
        check_fields(self, rank=COUNT, v_scale=spread)

    def blocks(self, size: int) -> Blocks:
        """Return names and shapes of theta's blocks mu, rho and v, for `size` weights."""
        return (*super().blocks(size), ("v", (size, self.rank)))  # the matrix V (D59)

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw an initial theta: means mu, raw scales rho and covariance columns V.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int
            Number of weights P.
        dtype : dtype
            Dtype of theta.
        """
        theta = super().init(rng, size, dtype)
        theta[2 * size :] = self.v_scale * rng.standard_normal(size * self.rank)
        return theta

    def noise_size(self, size: int) -> int:
        """Return how much noise a sample takes: one number per weight and per column of V."""
        return size + self.rank

    def factor(self, blocks: Params, buffers: Buffers) -> LowRankFactor:
        """Return q's scales sigma, V, and inverse and log determinant of I + V^T V (D59)."""
        rho = blocks["rho"]
        v = blocks["v"]
        # A proof runs this code with exact numbers, in arrays of dtype object
        exact = v.dtype.kind == "O"
        identity = np.eye(self.rank, dtype=None if exact else v.real.dtype)
        m = identity + v.T @ v
        sign, log_abs_det = np.linalg.slogdet(m)  # complex weights have a complex sign
        return LowRankFactor(
            diagonal=softplus_parts(rho, buffers.softplus_parts(rho)),
            v=v,
            inverse=np.linalg.inv(m),
            log_det=log_abs_det + np.log(sign),
        )

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> LowRankSample:
        """Return S weight vectors mu + sigma (eps_1 + V eps_2), with (eps_1, eps_2) = `eps` (D59).

        Parameters
        ----------
        blocks : dict
            Blocks of theta by name, as `blocks` lists them.
        eps : ndarray (S, P + R)
            Standard normal noise, one row per weight vector.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.

        Returns
        -------
        LowRankSample
            The weights `w` (S, P), their noise and the scales.
        """
        parts = self.factor(blocks, buffers)
        weight_eps = eps[:, : -self.rank]
        column_eps = eps[:, -self.rank :]
        a = buffers.array(weight_eps.shape, np.result_type(weight_eps, parts.v))
        np.matmul(column_eps, parts.v.T, out=a)
        a += weight_eps  # a = eps_1 + V eps_2 (D59)
        w = np.multiply(a, parts.diagonal.softplus, out=buffers.like(a))
        w += blocks["mu"]
        return LowRankSample(w, a, parts, column_eps)

    def from_weights(self, blocks: Params, w: Array, buffers: Buffers) -> LowRankSample:
        """Return the given weights as a sample, with the most probable noise that yields them.

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
        LowRankSample
            The weights `w` (S, P), the noise that makes them, and the scales.
        """
        parts = self.factor(blocks, buffers)
        a = (w - blocks["mu"]) / parts.diagonal.softplus
        return LowRankSample(w, a, parts, a @ parts.v @ parts.inverse)

    def log_density(self, sample: LowRankSample) -> Array:
        r"""Return the log density log q(w|theta) of each of S samples, in nats, normalised (D59).

        With c = M^-1 V^T a: :math:`-\sum_j \log\sigma_j - \tfrac12 \log|M| - \tfrac12 a^T (a - V c)
        - \tfrac P2 \log 2\pi`, by Woodbury's identity and the determinant lemma.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        """
        a = sample.eps
        parts = sample.parts
        u, _ = _solve(sample)
        log_scales = np.add.reduce(parts.diagonal.log_softplus) + 0.5 * parts.log_det
        # Quadratic form a^T (I + V V^T)^-1 a, log determinant, and the power of 2 pi
        return -0.5 * inner(a, u) - log_scales - 0.5 * LOG_2PI * a.shape[-1]  # D59

    def pull_back(
        self, sample: LowRankSample, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradients for mu, rho and V, given those for weights and log q (D59).

        For mu and rho it is that of a mean field with the noise a. For V, with u = a - V c,
        ``dV = sum_s [sigma d_w eps_2^T - d_log_q (V M^-1 + u (eps_2 - c)^T)]``.

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
        parts = sample.parts
        as_mean_field = GaussianSample(sample.w, sample.eps, parts.diagonal)
        MEAN_FIELD.pull_back(as_mean_field, d_w, d_log_q, d_theta)
        d_v = d_theta["v"]
        np.matmul((d_w * parts.diagonal.softplus).T, sample.column_eps, out=d_v)
        if d_log_q is not None:
            u, c = _solve(sample)
            # Gradient of the term -log |M| / 2 of log q for V
            d_v -= np.add.reduce(d_log_q) * (parts.v @ parts.inverse)
            # Gradient of the term -a^T (I + V V^T)^-1 a / 2 of log q for V
            d_v -= u.T @ (d_log_q[:, None] * (sample.column_eps - c))  # D59

    def add_density_slope(
        self, sample: LowRankSample, cotangent: Array, d_w: Array
    ) -> None:
        """Add `cotangent` times d log q/dw, with theta held fixed, to `d_w` (W3, D59).

        Here d log q/dw = -u / sigma, with u = (I + V V^T)^-1 (w - mu) / sigma.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        cotangent : ndarray (S,)
            Derivative of the loss for log q(w|theta) of each sample.
        d_w : ndarray (S, P)
            Gradient for the weights, to which the result is added in place.
        """
        u, _ = _solve(sample)
        d_w -= cotangent[:, None] * u / sample.parts.diagonal.softplus

    def entropy(
        self, parts: LowRankFactor, group_starts: GroupStarts = None
    ) -> Entropy:
        r"""Return the entropy of q in nats, and the sum of the variances of the weights (D59).

        The entropy is :math:`\sum_j \log\sigma_j + \tfrac12 \log|M| + \tfrac P2 (1 + \log 2\pi)`,
        the variance of w_j is ``sigma_j^2 (1 + |V_j|^2)``.

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
        diagonal = MEAN_FIELD.entropy(parts.diagonal, group_starts)
        # What V adds to the variance of each weight, (P,)
        correlated = parts.diagonal.softplus**2 * inner(parts.v, parts.v)
        if group_starts is None:
            variance = diagonal.total_variance + np.add.reduce(correlated)
        else:
            by_group = np.add.reduceat(correlated, group_starts)
            variance = diagonal.total_variance + by_group
        return Entropy(diagonal.value + 0.5 * parts.log_det, variance)

    def add_entropy_vjp(
        self, parts: LowRankFactor, d_entropy: float, d_variance: Any, d_theta: Params
    ) -> None:
        """Add to `d_theta` the gradients for rho and V through q's entropy and variances (D59).

        Parameters
        ----------
        parts : object
            Scales and columns of the covariance: the result of `factor`.
        d_entropy : float
            Derivative of the loss for the entropy.
        d_variance : float or ndarray (P,)
            Derivative of the loss for the variance of each weight; a float if all are equal.
        d_theta : dict
            Gradients for the blocks of theta by name, to which the result is added in place.
        """
        MEAN_FIELD.add_entropy_vjp(parts.diagonal, d_entropy, d_variance, d_theta)
        sigma = parts.diagonal.softplus
        squares = inner(parts.v, parts.v)  # squared norm of each row of V, (P,)
        d_theta["rho"] += 2.0 * d_variance * sigma * parts.diagonal.sigmoid * squares
        d_theta["v"] += d_entropy * (parts.v @ parts.inverse)  # V M^-1 (D59)
        d_theta["v"] += (2.0 * d_variance * sigma * sigma)[:, None] * parts.v


def _solve(sample: LowRankSample) -> tuple[Array, Array]:
    """Solve (I + V V^T) u = a for a = `sample.eps`; return u = a - V c, and c = M^-1 V^T a (D59).

    Here M = I + V^T V; u has the shape (S, P) of a, and c is (S, R).
    """
    v = sample.parts.v
    c = sample.eps @ v @ sample.parts.inverse
    return sample.eps - c @ v.T, c


NAMED = {
    "posterior": {
        "low-rank": (LowRank(rho_offset=-4.0), LowRank(0.3, -0.5, 0.5, 2, 0.4)),
    }
}

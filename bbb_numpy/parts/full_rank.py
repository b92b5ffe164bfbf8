r"""The full-rank Gaussian posterior q(w | theta) = N(mu, C C^T), for small networks.

The formulas of automatic differentiation variational inference as Mullachery et al. print
them (M1-M4), with their L, our C, lower triangular and its diagonal a softplus, so that it is
never singular, and with the gradient masked to the lower triangle, which the print forgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.elementary import (
    LOG_2PI,
    SoftplusParts,
    inverse_softplus,
    softplus_parts,
    sums_of_squares,
    symmetric,
)
from ..numeric.layout import Array, Blocks, Params
from ..numeric.validation import check_fields, positive, standard_deviation
from .posteriors import Entropy, GaussianPosterior, GaussianSample

__all__ = ["Factor", "FullRank"]

# Measured peak memory of a fit with Adam, in float64 arrays of shape (P, P)
PEAK_COPIES = 12


class Factor(NamedTuple):
    """Cholesky factor C of the covariance, and functions of the logits rho of its diagonal."""

    lower: Array  # (P, P) factor C, zero above its diagonal
    diagonal: SoftplusParts  # diagonal C_jj (P,), and functions of it


@dataclass(frozen=True)
class FullRank(GaussianPosterior):
    """Gaussian posterior with all correlations, q(w|theta) = N(w; mu, C C^T) (M1).

    theta holds mu (P,), rho (P,) with ``C_jj = softplus(rho_j)``, and the strict lower triangle
    of C row by row, P (P - 1) / 2 numbers, each in units of `unit`.

    Parameters
    ----------
    mu_scale : float
        Initial mu ~ N(0, mu_scale^2). The strict lower triangle of C starts at 0, without
        correlations; `pack` makes a theta of any other start.
    rho_offset, rho_halfwidth : float
        Initial rho ~ U(offset - halfwidth, offset + halfwidth).
    unit : float
        C_jk = unit * lower_jk below the diagonal, > 0. Adam moves every number of theta by about
        its learning rate. A row of C has up to P - 1 of them, and together they would move a
        weight by far more than that. A small unit lets correlations grow slowly, and changes no
        optimum.
    limit_gib : float
        Largest memory, in GiB, that training may need; larger networks are refused.
    """

    unit: float = 1.0
    limit_gib: float = 4.0

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        super().__post_init__()
        check_fields(self, unit=standard_deviation, limit_gib=positive)

    def check_size(self, size: int) -> None:
        """Raise ValueError if training `size` weights needs more than `limit_gib` GiB of memory."""
        needed = PEAK_COPIES * 8.0 * size**2 / 2**30
        if needed > self.limit_gib:
            raise ValueError(
                f"a full-rank posterior of {size:,} weights has a factor of "
                f"{size * (size + 1) // 2:,} numbers; training it needs about {needed:,.1f} GiB, "
                f"the limit is {self.limit_gib:g} GiB. Use MeanField, a smaller network, or a "
                "larger FullRank(limit_gib=...)"
            )

    def blocks(self, size: int) -> Blocks:
        """Return names and shapes of theta's blocks mu, rho and lower, for P = `size` weights."""
        # `lower` holds the numbers of C below its diagonal, row by row
        return (*super().blocks(size), ("lower", (size * (size - 1) // 2,)))  # C (M1)

    def pack(self, mean: Array, covariance: Array) -> Array:
        """Return the theta of a Gaussian with the given mean and covariance.

        Parameters
        ----------
        mean : ndarray (P,)
            Means of the weights.
        covariance : ndarray (P, P)
            Covariance of the weights, symmetric and positive definite.

        Returns
        -------
        ndarray (2 P + P (P - 1) / 2,)
            The blocks mu, rho and lower of theta.

        Raises
        ------
        ValueError
            If the covariance is not a symmetric matrix of P rows.
        numpy.linalg.LinAlgError
            If it is not positive definite.
        """
        size = len(mean)
        covariance = np.asarray(covariance)
        if covariance.shape != (size, size) or not symmetric(covariance):
            raise ValueError(
                f"covariance must be a symmetric matrix {(size, size)} for {size} means; "
                f"got shape {covariance.shape}"
            )
        factor = np.linalg.cholesky(covariance)
        lower = factor[_strict_triangle(size)] / self.unit
        return np.concatenate([mean, inverse_softplus(np.diag(factor)), lower])

    def factor(self, blocks: Params, buffers: Buffers) -> Factor:
        """Return the Cholesky factor C of q's covariance, and its diagonal softplus(rho) (M1)."""
        rho = blocks["rho"]
        lower = blocks["lower"]
        size = len(rho)
        parts = softplus_parts(rho, buffers.softplus_parts(rho))
        factor = buffers.array((size, size), np.result_type(rho, lower))
        factor.fill(0.0)
        # `lower` lists the numbers below the diagonal row by row, as the mask selects them
        factor[_strict_triangle(size)] = self.unit * lower
        factor.flat[:: size + 1] = parts.softplus
        return Factor(factor, parts)

    def sample(self, blocks: Params, eps: Array, buffers: Buffers) -> GaussianSample:
        """Return S weight vectors w = mu + C eps, for standard normal noise `eps` (M1).

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
        factor = self.factor(blocks, buffers)
        w = buffers.array(eps.shape, np.result_type(factor.lower, eps))
        np.matmul(eps, factor.lower.T, out=w)  # C eps, to which mu is added below (M1)
        w += blocks["mu"]
        return GaussianSample(w, eps, factor)

    def from_weights(
        self, blocks: Params, w: Array, buffers: Buffers
    ) -> GaussianSample:
        """Return the given weights as a sample, with their noise eps = C^-1 (w - mu).

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
        factor = self.factor(blocks, buffers)
        return GaussianSample(w, _solve(factor.lower, w - blocks["mu"]), factor)

    def log_density(self, sample: GaussianSample) -> Array:
        r"""Return the log density log q(w|theta) of each of S samples, in nats, normalised (M1).

        :math:`-\sum_j \log C_{jj} - \tfrac12 |\epsilon|^2 - \tfrac P2 \log 2\pi`, since
        :math:`|\det C|` is the product of the diagonal.

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        """
        logs = np.add.reduce(sample.parts.diagonal.log_softplus)
        return (
            -0.5 * sums_of_squares(sample.eps)
            - logs
            - 0.5 * LOG_2PI * sample.eps.shape[-1]
        )

    def pull_back(
        self, sample: GaussianSample, d_w: Array, d_log_q: Array | None, d_theta: Params
    ) -> None:
        """Write the gradients for mu, rho and lower, given those for the weights and for log q.

        ``d_mu = sum_s d_w`` (M2) and ``dC = tril(sum_s d_w eps^T) - (sum_s d_log_q) diag(1/C_jj)``
        (M3): entries above the diagonal are not parameters and have no gradient.

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
        np.add.reduce(d_w, axis=0, out=d_theta["mu"])  # w = mu + C eps (M2)
        diagonal = sample.parts.diagonal
        d_factor = d_w.T @ sample.eps  # gradient for C; M3 keeps its lower half
        strict = _strict_triangle(len(d_factor))
        np.multiply(d_factor[strict], self.unit, out=d_theta["lower"])
        np.multiply(np.diagonal(d_factor), diagonal.sigmoid, out=d_theta["rho"])
        if d_log_q is not None:
            d_theta["rho"] -= np.add.reduce(d_log_q) * diagonal.ratio

    def add_density_slope(
        self, sample: GaussianSample, cotangent: Array, d_w: Array
    ) -> None:
        """Add `cotangent` times d log q/dw = -C^-T eps, with theta held fixed, to `d_w` (W3, D20).

        Parameters
        ----------
        sample : object
            Weights, noise and scales: the result of `sample` or `from_weights`.
        cotangent : ndarray (S,)
            Derivative of the loss for log q(w|theta) of each sample.
        d_w : ndarray (S, P)
            Gradient for the weights, to which the result is added in place.
        """
        d_w -= cotangent[:, None] * _solve(
            sample.parts.lower, sample.eps, transposed=True
        )

    def entropy(
        self, factor: Factor, group_starts: tuple[int, ...] | None = None
    ) -> Entropy:
        r"""Return the entropy of q in nats, and the sum of the variances of the weights (M4, D19).

        The entropy is :math:`\sum_j \log C_{jj} + \tfrac P2 (1 + \log 2\pi)`.

        Parameters
        ----------
        factor : object
            The scales of q: the result of `factor`.
        group_starts : tuple of int, optional
            Index of the first weight of each group, whose variances are summed separately; by
            default all weights are one group.

        Returns
        -------
        Entropy
            The entropy in nats, and the sum of the variances of the weights.
        """
        constant = 0.5 * (1.0 + LOG_2PI) * len(factor.lower)
        value = np.add.reduce(factor.diagonal.log_softplus) + constant  # entropy (M4)
        squares = factor.lower * factor.lower  # C_jk^2 (P, P): row j sums to Var w_j
        if group_starts is None:
            return Entropy(value, np.add.reduce(squares, axis=None))
        return Entropy(
            value, np.add.reduceat(np.add.reduce(squares, axis=1), group_starts)
        )

    def add_entropy_vjp(
        self, factor: Factor, d_entropy: float, d_variance: Any, d_theta: Params
    ) -> None:
        """Add to `d_theta` the gradients for rho and lower through q's entropy and variances (D19).

        With the entropy H, ``d H/dC = diag(1/C_jj)``, and ``d Var w_j/dC = 2 C`` on row j of the
        lower triangle.

        Parameters
        ----------
        factor : object
            The Cholesky factor: the result of `factor`.
        d_entropy : float
            Derivative of the loss for the entropy.
        d_variance : float or ndarray (P,)
            Derivative of the loss for the variance of each weight; a float if all are equal.
        d_theta : dict
            Gradients for the blocks of theta by name, to which the result is added in place.
        """
        parts = factor.diagonal
        strict = _strict_triangle(len(factor.lower))
        if np.ndim(d_variance):
            d_squares = (d_variance[:, None] * factor.lower)[strict]
        else:
            d_squares = d_variance * factor.lower[strict]
        d_theta["lower"] += 2.0 * self.unit * d_squares  # d Var/dC = 2 C (D19)
        d_theta["rho"] += 2.0 * d_variance * parts.softplus * parts.sigmoid
        d_theta["rho"] += d_entropy * parts.ratio


def _solve(lower: Array, rows: Array, transposed: bool = False) -> Array:
    """Solve C x = r, or C^T x = r, for each row r of `rows` (S, P); `lower` is C (P, P).

    The result is nan if C is singular, as where a standard deviation has underflowed to 0.

    Parameters
    ----------
    lower : ndarray (P, P)
        Cholesky factor C.
    rows : ndarray (S, P)
        Vectors, one per row.
    transposed : bool
        If true, multiply by C^-T, else by C^-1.
    """
    matrix = lower.T if transposed else lower
    try:
        return np.linalg.solve(matrix, rows.T).T
    except np.linalg.LinAlgError:
        return np.full(rows.shape, np.nan, np.result_type(lower, rows))


@lru_cache(maxsize=4)
def _strict_triangle(size: int) -> Array:
    """Return a read-only mask of shape (size, size), True below the diagonal."""
    mask = np.tri(size, k=-1, dtype=bool)
    mask.flags.writeable = False
    return mask


NAMED = {
    "posterior": {
        "full-rank": (FullRank(rho_offset=-4.0, unit=0.01), FullRank(0.3, -0.5, 0.5)),
    }
}

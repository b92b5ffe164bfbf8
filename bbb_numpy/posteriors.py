"""Variational posteriors q(w | theta): draw, transform, log density, pull back (floor 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arguments import not_negative, real
from .numerics import LOG_2PI, SoftplusParts, softplus_parts, standard_normal, sums_of_squares
from .workspace import Workspace

__all__ = ["MeanField", "MeanFieldSample"]

Array = NDArray[Any]


class MeanFieldSample(NamedTuple):
    """S weight samples and what their pull-back needs."""

    w: Array  # (S, P)  mu + sigma eps
    eps: Array  # (S, P)
    parts: SoftplusParts  # (P,) each: sigma, s(rho), log sigma, s(rho) / sigma


@dataclass(frozen=True)
class MeanField:
    """Independent Gaussians, q(w|theta) = prod_j N(w_j; mu_j, softplus(rho_j)^2) (K2, K3).

    The parameters are the starting values of the report's Section 7.

    Parameters
    ----------
    mu_scale : float
        Initial mu ~ N(0, mu_scale^2). The report: variance 0.01, so 0.1.
    rho_offset, rho_halfwidth : float
        Initial rho ~ U(offset - halfwidth, offset + halfwidth). The report: -5 and 0.01,
        which starts every sigma between 0.00665 and 0.00678.

    Raises
    ------
    ValueError
        If a scale is negative or a number is not finite.
    """

    mu_scale: float = 0.1
    rho_offset: float = -5.0
    rho_halfwidth: float = 0.01

    def __post_init__(self) -> None:
        not_negative("mu_scale", self.mu_scale)
        not_negative("rho_halfwidth", self.rho_halfwidth)
        real("rho_offset", self.rho_offset, -1e300, 1e300, "a finite number")

    def blocks(self, size: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name the blocks of theta for `size` weights (K2)."""
        return (("mu", (size,)), ("rho", (size,)))

    def init(self, rng: np.random.Generator, size: int, dtype: Any) -> Array:
        """Draw the starting theta (2 * size,): all mu, then all rho (report, Section 7)."""
        mu = self.mu_scale * rng.standard_normal(size)
        rho = rng.uniform(-self.rho_halfwidth, self.rho_halfwidth, size) + self.rho_offset
        return np.concatenate([mu, rho]).astype(dtype)

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        size: int,
        dtype: Any,
        out: Array | None = None,
    ) -> Array:
        """Draw the noise eps ~ N(0, 1) (samples, size), one per weight and bias (K1, D11)."""
        return standard_normal(rng, np.empty((samples, size), dtype) if out is None else out)

    def sample(self, mu: Array, rho: Array, eps: Array, work: Workspace) -> MeanFieldSample:
        """Turn noise (S, P) into weights: sigma = softplus(rho), w = mu + sigma eps (K3, K4)."""
        buffers = work.views("softplus parts of rho", rho, work.softplus_parts)
        parts = softplus_parts(rho, buffers)  # K3: sigma = parts.softplus
        w = work.array("w", eps.shape, np.result_type(rho, eps))  # (S, P)
        np.multiply(eps, parts.softplus[None], out=w)
        w += mu[None]  # K4
        return MeanFieldSample(w, eps, parts)

    def log_density(self, sample: MeanFieldSample) -> Array:
        r"""Return log q(w|theta) of each sample (S,), constants kept (K6-K10).

        As a function of theta with eps held fixed,
        :math:`\sum_j [-\log\sigma_j - \tfrac12\epsilon_j^2 - \tfrac12\log 2\pi]`: the
        squared distance of K9 is eps^2 exactly (K10), so mu has dropped out.
        """
        constant = np.add.reduce(sample.parts.log_softplus) + 0.5 * LOG_2PI * sample.eps.shape[-1]
        return -0.5 * sums_of_squares(sample.eps) - constant  # K10

    def pull_back(
        self,
        sample: MeanFieldSample,
        d_w: Array,
        d_log_q: Array,
        d_theta: dict[str, Array],
    ) -> None:
        """Write the gradient for (mu, rho), given cotangents of w and of log q.

        Parameters
        ----------
        sample : MeanFieldSample
            Its `ratio` is overwritten.
        d_w : ndarray (S, P)
            Cotangent of the weights, that is of everything but log q.
        d_log_q : ndarray (S,)
            Cotangent of `log_density`.
        d_theta : dict
            Blocks 'mu' and 'rho' (P,) of the gradient to fill.
        """
        d_mu, d_rho = d_theta["mu"], d_theta["rho"]
        # d_mu  = sum_s d_w                                       K21 (K20: dw/dmu = 1)
        # d_rho = (sum_s d_w eps) s(rho)                          K30 (K28: dw/drho = eps s(rho),
        #         - (sum_s d_log_q) s(rho) / sigma                     K25: d log sigma/drho)
        if len(d_w) == 1:  # one sample is its own sum: two passes over memory instead of three
            d_mu[...] = d_w[0]
            np.multiply(d_w[0], sample.eps[0], out=d_rho)
        else:
            np.add.reduce(d_w, axis=0, out=d_mu)
            np.einsum("sp,sp->p", d_w, sample.eps, out=d_rho, casting="same_kind")
        d_rho *= sample.parts.sigmoid
        ratio = sample.parts.ratio
        ratio *= np.add.reduce(d_log_q)
        d_rho -= ratio

"""A scale mixture of two Gaussians as a prior, fixed or learned (R4-R8)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.deprecation import renamed_names
from ..numeric.elementary import (
    LOG_2PI,
    add_scaled,
    columns,
    inner,
    inverse_softplus,
    log_softmax,
    logsumexp,
    softplus_parts,
    write_gradient,
)
from ..numeric.layout import Array, Blocks, Params
from ..numeric.validation import check_fields, flag, fraction, standard_deviation
from .priors import Prior

__all__ = ["ScaleMixturePrior"]

MIN_SIGMA = 1e-6  # lower limit of a learned standard deviation


class _Components(NamedTuple):
    """Two Gaussians of the scale mixture, in the order wide, narrow; and derivatives (R8)."""

    sigma: tuple[Any, Any]  # standard deviations sigma1 and sigma2
    log_sigma: tuple[Any, Any]
    log_pi: tuple[Any, Any]  # log pi, log(1 - pi)
    slopes: tuple[Any, Any, Any]  # d sigma2/d t2, d (sigma1 - sigma2)/d t1, pi


@dataclass(frozen=True)
class ScaleMixturePrior(Prior):
    """Scale-mixture prior prod_j [pi N(w_j; 0, sigma1^2) + (1 - pi) N(w_j; 0, sigma2^2)] (R4).

    Fixed as Blundell et al. (2015) use it, or learned as Krasser does. The learned numbers are
    ``prior_mixture = (t1, t2, a)`` with (R8) ::

        sigma2 = 1e-6 + softplus(t2),   sigma1 = sigma2 + softplus(t1),   pi = sigmoid(a)

    so that no step can leave the domain, and the wide component stays the wide one. The 1e-6
    keeps 1 / sigma^3 finite, in float32 too, and stops a narrow component that collapses.

    Parameters
    ----------
    pi : float
        Weight of the wide component, between 0 and 1.
    sigma1, sigma2 : float
        Standard deviations of the wide and of the narrow component, sigma1 > sigma2 > 0.
    learn : bool
        Learn all three, shared by all layers; the arguments are the starting values.

    Notes
    -----
    Equal components would have equal gradients and never separate. A learned sigma2 must start
    well above 1e-6, where the narrow component has collapsed.
    """

    pi: float = 0.2
    sigma1: float = 1.0
    sigma2: float = 0.1
    learn: bool = False

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid and sigma1 exceeds sigma2."""
        check_fields(self, learn=flag, pi=fraction)
        if self.pi == 0.0:
            raise ValueError(
                "pi must be > 0 and < 1; got 0: for a single component use GaussianPrior"
            )
        check_fields(
            self, "the prior", sigma1=standard_deviation, sigma2=standard_deviation
        )
        if not self.sigma1 > self.sigma2 * (1.0 + 1e-9):
            raise ValueError(
                f"sigma1 must be larger than sigma2; got {self.sigma1:g} and {self.sigma2:g}. "
                "Swap them and use 1 - pi; for one component use GaussianPrior"
            )
        if self.learn and not self.sigma2 > 2 * MIN_SIGMA:
            raise ValueError(
                f"a learned sigma2 must start above {2 * MIN_SIGMA:g}; got {self.sigma2:g}, "
                "with which the narrow component has collapsed onto 0: use a larger sigma2, "
                "or learn=False"
            )

    def blocks(self) -> Blocks:
        """Return name and shape (3,) of the learned block (t1, t2, a); () if nothing is learned."""
        return (("prior_mixture", (3,)),) if self.learn else ()

    def init(self, dtype: Any) -> Array:
        """Return the starting values of (t1, t2, a); an empty array if nothing is learned."""
        if not self.learn:
            return np.zeros(0, dtype)
        raw = inverse_softplus([self.sigma1 - self.sigma2, self.sigma2 - MIN_SIGMA])
        return np.array([*raw, log(self.pi) - log(1.0 - self.pi)], dtype)

    def values(self, params: Params) -> tuple[float, float, float]:
        """Return pi, sigma1 and sigma2 as floats, computed from `params` if they are learned."""
        if not self.learn:
            return self.pi, self.sigma1, self.sigma2
        c = self._components(params)
        return float(c.slopes[2]), float(c.sigma[0]), float(c.sigma[1])

    def sd(self, params: Params) -> float:
        """Return a weight's standard deviation, sqrt(pi sigma1^2 + (1 - pi) sigma2^2)."""
        pi, sigma1, sigma2 = self.values(params)
        return (pi * sigma1**2 + (1.0 - pi) * sigma2**2) ** 0.5

    def _components(self, params: Params) -> _Components:
        """Return the two Gaussians' parameters: floats, or (S, 1) if samples have their own."""
        if not self.learn:
            return _Components(
                sigma=(self.sigma1, self.sigma2),
                log_sigma=(log(self.sigma1), log(self.sigma2)),
                log_pi=(log(self.pi), log(1.0 - self.pi)),
                slopes=(0.0, 0.0, self.pi),
            )
        # Raw numbers t1, t2 and a: (3,), or (3, S) if each sample has its own
        raw = np.ascontiguousarray(params["prior_mixture"].T)
        if raw.ndim == 2:
            raw = raw[:, :, None]  # (3, S, 1), which broadcasts with weights (S, P)
        parts = softplus_parts(raw)
        narrow = MIN_SIGMA + parts.softplus[1]  # sigma2, positive for any t2 (R8)
        wide = narrow + parts.softplus[0]  # sigma1, larger than sigma2 for any t1 (R8)
        # log pi = log sigmoid(a) and log(1 - pi) = log sigmoid(-a)
        log_pi = log_softmax(np.stack([raw[2], raw[2] * 0.0]), 0)
        return _Components(
            sigma=(wide, narrow),
            log_sigma=(np.log(wide), np.log(narrow)),
            log_pi=(log_pi[0], log_pi[1]),
            slopes=(parts.sigmoid[1], parts.sigmoid[0], parts.sigmoid[2]),
        )

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        r"""Return the log density log P(w) of each weight vector, by logsumexp, in nats (R4).

        With :math:`l_k = \log\pi_k - \log\sigma_k - w^2 / (2\sigma_k^2)` a weight contributes
        :math:`\mathrm{logsumexp}(l_1, l_2) - \tfrac12\log 2\pi`. The printed
        :math:`\log(\pi N_1 + (1-\pi) N_2)` is -inf where both densities underflow, from
        \|w\| = 39 sigma1 on.

        Parameters
        ----------
        params : dict
            Learned numbers of the prior by block name: (K,), or (S, K), one row per weight vector.
        w : ndarray (S, P)
            S flat weight vectors, which are not written to.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.

        Returns
        -------
        value : ndarray (S,)
            log P(w) of each weight vector, in nats.
        saved : tuple
            Intermediate results that `add_vjp` needs.
        """
        c = self._components(params)
        square = np.multiply(w, w, out=buffers.like(w))
        logs = buffers.array((2, *w.shape), w.dtype)
        for k in range(2):
            np.multiply(square, -0.5 * c.sigma[k] ** -2, out=logs[k])
            logs[k] += c.log_pi[k] - c.log_sigma[k]
        total = logsumexp(logs, axis=0)  # log P(w_j) (S, P)  R4
        logs -= total
        value = np.add.reduce(total, axis=-1) - 0.5 * LOG_2PI * w.shape[-1]
        return value, (w, square, np.exp(logs, out=logs), c)

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        r"""Add `cotangent` times d log P(w)/dw to `d_w`; write the gradient for (t1, t2, a).

        With the responsibilities :math:`\xi = e^{l_1} / (e^{l_1} + e^{l_2})` and 1 - xi, which is
        not formed as a difference: that would lose it next to 1 ::

            d log P/dw      = -w [xi / sigma1^2 + (1 - xi) / sigma2^2]                    R5
            d log P/dsigma1 = sum_j xi (w^2 / sigma1^3 - 1 / sigma1)                     R6
            d log P/dsigma2 = sum_j (1 - xi) (w^2 / sigma2^3 - 1 / sigma2)               R6
            d log P/da      = sum_j (xi - pi) = sum_j [xi (1 - pi) - (1 - xi) pi]          R7
            d/dt1 = d/dsigma1 sigmoid(t1),  d/dt2 = (d/dsigma1 + d/dsigma2) sigmoid(t2) R8

        Parameters
        ----------
        saved : object
            Second result of `log_density` for the same weights; it is not written to.
        cotangent : ndarray (S,)
            Derivative of the loss with respect to each log P(w).
        d_w : ndarray (S, P)
            Gradient for the weights, to which the result is added in place.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.
        """
        w, square, (wide, narrow), c = saved  # w, w^2, responsibilities: (S, P)
        s1, s2 = c.sigma
        d_sigma2, d_sigma1, pi = c.slopes
        if self.learn:
            # Sums over the weights of the responsibilities r, and of r w^2, (S, 1) each
            mass = [np.add.reduce(r, axis=-1, keepdims=True) for r in (wide, narrow)]
            moment = [inner(r, square)[:, None] for r in (wide, narrow)]
            d_wide = moment[0] * s1**-3 - mass[0] / s1  # derivative for sigma1 (R6)
            d_narrow = moment[1] * s2**-3 - mass[1] / s2  # derivative for sigma2 (R6)
            d_t1 = d_wide * d_sigma1  # sigma1 alone depends on t1 (R8)
            d_t2 = (d_wide + d_narrow) * d_sigma2  # both scales depend on t2 (R8)
            complement = np.exp(
                c.log_pi[1]
            )  # 1 - pi, which keeps its digits for pi near 1
            d_a = mass[0] * complement - mass[1] * pi  # derivative for logit(pi) (R7)
            # Derivatives of log P(w) for t1, t2 and a, (S, 3)
            d_mixture = np.concatenate([d_t1, d_t2, d_a], axis=1)
            write_gradient(d_params["prior_mixture"], cotangent, d_mixture)
        for block in columns(w):
            precision = wide[block] * s1**-2
            precision += narrow[block] * s2**-2
            precision *= w[block]  # -d log P(w)/dw (R5)
            add_scaled(d_w[block], precision, -cotangent[:, None])

    def draw(
        self, rng: np.random.Generator, params: Params, shape: tuple[int, int]
    ) -> Array:
        """Draw S weight vectors from the prior, (S, P) in float64.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the prior by block name: (K,), or (S, K), one row per weight vector.
        shape : tuple of int
            (S, P), the number of weight vectors and their length.
        """
        c = self._components(params)
        wide = np.log(rng.random(shape)) < c.log_pi[0]
        return rng.standard_normal(shape) * np.where(wide, c.sigma[0], c.sigma[1])


__getattr__ = renamed_names(__name__, {"SMALLEST": "MIN_SIGMA"})
NAMED = {
    "prior": {"mixture": (ScaleMixturePrior(), ScaleMixturePrior(0.25, 1.0, 0.25))}
}

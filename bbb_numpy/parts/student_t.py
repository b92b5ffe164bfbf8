"""Student's t as a prior of weights and as the noise of targets: tails of a power law (D41-D43).

A Gaussian pays for a number at distance d with d^2, Student's t with (nu + 1) log d from some
point on: a large weight, or a target far off, is believed and then hardly felt. The degrees of
freedom nu say how heavy the tails are, from 1 (Cauchy) to infinity (Gaussian).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.elementary import (
    LOG_2PI,
    columns,
    for_outputs,
    gamma_half_step,
    log1p,
    write_gradient,
)
from ..numeric.layout import Array, Params
from ..numeric.validation import check_fields, flag, real, standard_deviation
from .likelihoods import Likelihood, check_shape
from .priors import Prior

__all__ = ["StudentTLikelihood", "StudentTPrior"]

MIN_DF, MAX_DF = 1e-3, 1e9  # degrees of freedom: all mass in the tails, and a Gaussian


def _check_df(name: str, value: Any) -> float:
    wanted = f">= {MIN_DF:g} and < {MAX_DF:g} (for more use a Gaussian)"
    return real(f"{name}, the degrees of freedom,", value, MIN_DF, MAX_DF, wanted)


class _DensityTerms(NamedTuple):
    """The density's numbers, each a float or of a shape that broadcasts with what it is of."""

    nu: Any
    precision: Any  # 1 / (nu scale^2)
    constant: Any  # log density at 0
    slope: Any  # d constant / d log nu


def _slopes(
    numbers: _DensityTerms, count: int, logs: Array, shares: Array
) -> tuple[Array, Array]:
    """Return the slopes for log scale and log nu, of `count` sums of log(1 + chi), chi/(1+chi)."""
    nu = numbers.nu
    d_scale = (nu + 1.0) * shares - count
    d_df = count * numbers.slope - 0.5 * nu * logs + 0.5 * (nu + 1.0) * shares
    return d_scale, d_df


def _student_t_sd(scale: Any, nu: Any) -> Any:
    """Return scale sqrt(nu / (nu - 2)), infinite for nu <= 2."""
    excess = np.maximum(np.subtract(nu, 2.0), 0.0)
    return scale * np.sqrt(
        np.divide(nu, excess, out=np.full_like(excess, inf), where=excess > 0)
    )


@dataclass(frozen=True)
class _StudentT:
    """The numbers that a prior and a likelihood share, and under which names they learn them."""

    scale: float = 1.0
    df: float = 4.0
    learn: bool = False

    _names: ClassVar[tuple[str, str]]
    _what: ClassVar[str]

    def __post_init__(self) -> None:
        check_fields(self, f"the {self._what}", scale=standard_deviation)
        check_fields(self, df=_check_df, learn=flag)

    def initial_values(self) -> dict[str, float]:
        logs = log(self.scale), log(self.df)
        return dict(zip(self._names, logs, strict=True)) if self.learn else {}

    def _scale_and_df(self, params: Params, where: Any) -> tuple[Any, Any]:
        """Return both, learned ones as they lie at `where` in their blocks."""
        if not self.learn:
            return self.scale, self.df
        log_scale, log_df = (params[name][where] for name in self._names)
        return np.exp(log_scale), np.exp(log_df)

    def _numbers(self, params: Params, where: Any) -> _DensityTerms:
        """Return the density's numbers, which fixed leave single precision as it is."""
        scale, nu = self._scale_and_df(params, where)
        log_scale = params[self._names[0]][where] if self.learn else log(scale)
        step = gamma_half_step(nu)
        constant = step.value - 0.5 * LOG_2PI - log_scale
        found = _DensityTerms(nu, 1.0 / (nu * scale * scale), constant, step.slope)
        return (
            found
            if self.learn
            else _DensityTerms._make(float(number) for number in found)
        )


@dataclass(frozen=True)
class StudentTPrior(_StudentT, Prior):
    """P(w) = prod_j t(w_j; nu, 0, scale): most weights small, a few as large as they like (D42).

    Parameters
    ----------
    scale : float
        Of Student's t, > 0; the standard deviation of a weight is ``scale * sqrt(df / (df - 2))``,
        infinite for df <= 2. The starting value when it is learned.
    df : float
        Degrees of freedom nu, between 1e-3 and 1e9; the starting value when they are learned.
    learn : bool
        Learn ``prior_log_scale = log scale`` and ``prior_log_df = log nu`` (D42).
    """

    _names: ClassVar[tuple[str, str]] = "prior_log_scale", "prior_log_df"
    _what: ClassVar[str] = "prior"

    def sd(self, params: Params) -> float:
        return float(_student_t_sd(*self._scale_and_df(params, 0)))

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        r"""Return log P(w) (S,) of weights (S, P), constants kept (D42).

        :math:`\sum_j [c_\nu - \log s - \tfrac{\nu+1}2 \log(1 + w_j^2 / (\nu s^2))]` with s the
        scale. As log(1 + chi) it neither overflows before w^2 does nor rounds small weights away.
        """
        numbers = self._numbers(params, (..., 0))  # () for all samples, or (S,)
        ratio = np.multiply(w, w, out=buffers.like(w))
        ratio *= np.asarray(numbers.precision, ratio.dtype)[..., None]
        logs = log1p(ratio, out=buffers.like(w))
        value = w.shape[-1] * numbers.constant
        value = value - 0.5 * (numbers.nu + 1.0) * np.add.reduce(logs, axis=-1)
        return value, (w, ratio, logs, numbers)

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add cotangent (S,) times d log P/dw to `d_w` (S, P); write that of the learned numbers.

        With chi = w^2 / (nu s^2), and c_nu the constant, whose slope is that of D41 ::

            d log P/dw       = -(nu + 1) w / (nu s^2 + w^2)
            d log P/d log s  = sum_j [(nu + 1) chi / (1 + chi) - 1]
            d log P/d log nu = sum_j [d c/d log nu - nu/2 log(1 + chi) + (nu + 1)/2 chi / (1 + chi)]
        """
        w, ratio, logs, numbers = saved  # (S, P): w, chi, log(1 + chi)
        if self.learn:
            shares = np.add.reduce(ratio / (1.0 + ratio), axis=-1)
            sums = np.add.reduce(logs, axis=-1), shares
            d_scale, d_df = _slopes(numbers, w.shape[-1], *sums)
            write_gradient(d_params["prior_log_scale"], cotangent, d_scale[:, None])
            write_gradient(d_params["prior_log_df"], cotangent, d_df[:, None])
        factor = (-cotangent * ((numbers.nu + 1.0) * numbers.precision))[:, None]  # D42
        for block in columns(w):
            d_w[block] += w[block] / (1.0 + ratio[block]) * factor

    def draw(
        self, rng: np.random.Generator, params: Params, shape: tuple[int, int]
    ) -> Array:
        scale, nu = self._scale_and_df(params, ...)
        return rng.standard_t(np.broadcast_to(nu, shape)) * scale


@dataclass(frozen=True)
class StudentTLikelihood(_StudentT, Likelihood):
    """P(D|w) = prod over rows and outputs of t(y; nu, f(x, w), scale): noise with outliers (D43).

    The pull of a row on the network, which under Gaussian noise grows with its distance, is
    largest at a distance of ``scale * sqrt(df)`` and falls beyond: a target far off is taken for
    an outlier (Lange, Little and Taylor 1989).

    The outputs f are the median of y, its mean for df > 1; the variance is infinite for df <= 2,
    and so is then that of every prediction.

    Parameters
    ----------
    scale : float
        Of the noise, > 0, in units of y; its standard deviation is
        ``scale * sqrt(df / (df - 2))``. The starting value when it is learned.
    df : float
        Degrees of freedom nu, between 1e-3 and 1e9; the starting value when they are learned.
    learn : bool
        Learn ``log_noise = log scale`` and ``log_df = log nu``, one each per output (D43).
    """

    _names: ClassVar[tuple[str, str]] = "log_noise", "log_df"
    _what: ClassVar[str] = "noise"
    heavy_tails: ClassVar[bool] = True
    noise_name: ClassVar[str] = "noise scale"

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Any]:
        r"""Return log P(y|x, w) (S, B) of every row, summed over outputs, constants kept (D43).

        :math:`\sum_k [c_{\nu_k} - \log s_k - \tfrac{\nu_k+1}2
        \log(1 + (y_k - f_k)^2 / (\nu_k s_k^2))]` with s the scale.
        """
        check_shape(f, y)
        numbers = self._numbers(params, (..., None, slice(None)))  # (1, K) or (S, 1, K)
        residual = np.subtract(y, f, out=np.empty_like(f))
        ratio = residual * residual * numbers.precision
        logs = log1p(ratio)
        rowwise = np.add.reduce(
            numbers.constant - 0.5 * (numbers.nu + 1.0) * logs, axis=-1
        )
        return rowwise, (residual, ratio, logs, numbers)

    def vjp(self, saved: Any, cotangent: Array, d_params: Params) -> Array:
        """Pull a cotangent (S,) of the summed rows, or (S, B), back to outputs and learned numbers.

        With chi = (y - f)^2 / (nu s^2), and c_nu the constant, whose slope is that of D41 ::

            d log P/df       = (nu + 1) (y - f) / (nu s^2 + (y - f)^2)                       D43
            d log P/d log s  = sum_b [(nu + 1) chi / (1 + chi) - 1]
            d log P/d log nu = sum_b [d c/d log nu - nu/2 log(1 + chi) + (nu + 1)/2 chi / (1 + chi)]
        """
        residual, ratio, logs, numbers = saved  # (S, B, K): y - f, chi, log(1 + chi)
        if self.learn:
            if cotangent.ndim == 1:
                # (S, 1, K)
                shares = np.add.reduce(ratio / (1.0 + ratio), axis=1, keepdims=True)
                sums = np.add.reduce(logs, axis=1, keepdims=True), shares
                d_scale, d_df = _slopes(numbers, residual.shape[1], *sums)
                slopes = d_scale[:, 0], d_df[:, 0]
            else:
                slopes = _slopes(numbers, 1, logs, ratio / (1.0 + ratio))  # (S, B, K)
            write_gradient(d_params["log_noise"], cotangent, slopes[0])
            write_gradient(d_params["log_df"], cotangent, slopes[1])
        d_f = residual / (1.0 + ratio)
        d_f *= (numbers.nu + 1.0) * numbers.precision  # D43
        d_f *= for_outputs(cotangent)
        return d_f

    def variance(self, params: Params, f: Array) -> Array:
        _, scale, nu = self.components(params, f)
        return np.asarray(_student_t_sd(scale, nu) ** 2)

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        # (1, K) or (S, 1, K)
        scale, nu = self._scale_and_df(params, (..., None, slice(None)))
        return f, np.asarray(scale), np.asarray(nu)

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        location, scale, nu = components
        z = (y - location) / scale
        found: Array = special.stdtr(nu, -z if upper else z)
        return found

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        _, scale, nu = self.components(params, f)
        noise = rng.standard_t(np.broadcast_to(nu, f.shape))
        return f + (scale * noise).astype(f.dtype)


NAMED = {
    "prior": {"student-t": (StudentTPrior(0.35, 4.0), StudentTPrior(0.5, 4.0))},
    "likelihood": {
        "student-t": (StudentTLikelihood(0.1, 4.0), StudentTLikelihood(0.5, 4.0))
    },
}

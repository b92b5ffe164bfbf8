"""Student's t as a prior of weights and as the noise of targets: tails of a power law (D41-D43).

At a distance d from the centre minus the log density of a Gaussian grows like d^2, that of
Student's t like (nu + 1) log d: a large weight, or a target far off, pulls only weakly. The degrees
of freedom nu say how heavy the tails are, from 1 (Cauchy) to infinity (Gaussian).
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

# Limits of the degrees of freedom: below MIN_DF all mass is in the tails, above MAX_DF the
# density is that of a Gaussian in all digits
MIN_DF = 1e-3
MAX_DF = 1e9


def _check_df(name: str, value: Any) -> float:
    """Return degrees of freedom as a float; raise an error unless in [1e-3, 1e9).

    Parameters
    ----------
    name : str
        Name of the argument, for error messages.
    value : object
        Value that is checked.
    """
    expected = f">= {MIN_DF:g} and < {MAX_DF:g} (for more use a Gaussian)"
    return real(f"{name}, the degrees of freedom,", value, MIN_DF, MAX_DF, expected)


class _DensityTerms(NamedTuple):
    """Terms of the log density: floats, or arrays that broadcast with weights or targets."""

    nu: Any  # degrees of freedom
    precision: Any  # 1 / (nu scale^2)
    constant: Any  # log density at w = 0 or y = f
    slope: Any  # derivative of `constant` with respect to log nu


def _derivatives(
    terms: _DensityTerms, count: int, logs: Array, shares: Array
) -> tuple[Array, Array]:
    """Return the derivatives of Student's t log density for log(scale) and log(df) (D42).

    Parameters
    ----------
    terms : _DensityTerms
        Degrees of freedom and constants.
    count : int
        Number of weights or targets that the log density is summed over.
    logs, shares : ndarray
        Sums of log(1 + chi) and of chi / (1 + chi) over these numbers.
    """
    nu = terms.nu
    d_scale = (nu + 1.0) * shares - count
    d_df = count * terms.slope - 0.5 * nu * logs + 0.5 * (nu + 1.0) * shares
    return d_scale, d_df


def _student_t_sd(scale: Any, nu: Any) -> Any:
    """Return the standard deviation of Student's t for `scale` and df `nu`; inf for nu <= 2."""
    excess = np.maximum(np.subtract(nu, 2.0), 0.0)
    return scale * np.sqrt(
        np.divide(nu, excess, out=np.full_like(excess, inf), where=excess > 0)
    )


@dataclass(frozen=True)
class _StudentT:
    """Base class of a prior or likelihood with scale and degrees of freedom, fixed or learned."""

    scale: float = 1.0
    df: float = 4.0
    learn: bool = False

    _block_names: ClassVar[tuple[str, str]]  # names of learned log(scale), log(df)
    _owner: ClassVar[str]  # "prior" or "noise", for error messages

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, f"the {self._owner}", scale=standard_deviation)
        check_fields(self, df=_check_df, learn=flag)

    def initial_values(self) -> dict[str, float]:
        """Return log(scale) and log(df) by block name if they are learned; otherwise {}."""
        if not self.learn:
            return {}
        scale_name, df_name = self._block_names
        return {scale_name: log(self.scale), df_name: log(self.df)}

    def _scale_and_df(self, params: Params, where: Any) -> tuple[Any, Any]:
        """Return scale and degrees of freedom: learned ones from `params`, else the fields.

        Parameters
        ----------
        params : dict
            Learned numbers by block name, on the scale of logarithms.
        where : object
            Any NumPy index, which is applied to each learned block.
        """
        if not self.learn:
            return self.scale, self.df
        log_scale, log_df = (params[name][where] for name in self._block_names)
        return np.exp(log_scale), np.exp(log_df)

    def _density_terms(self, params: Params, where: Any) -> _DensityTerms:
        """Return the terms of the log density that depend on scale and df alone.

        If nothing is learned they are floats, which keep float32.

        Parameters
        ----------
        params : dict
            Learned numbers by block name, on the scale of logarithms.
        where : object
            Any NumPy index, which is applied to each learned block.
        """
        scale, nu = self._scale_and_df(params, where)
        log_scale = params[self._block_names[0]][where] if self.learn else log(scale)
        step = gamma_half_step(nu)
        constant = step.value - 0.5 * LOG_2PI - log_scale
        precision = 1.0 / (nu * scale * scale)
        if self.learn:
            return _DensityTerms(nu, precision, constant, step.slope)
        return _DensityTerms(
            float(nu), float(precision), float(constant), float(step.slope)
        )


@dataclass(frozen=True)
class StudentTPrior(_StudentT, Prior):
    """Student's t prior prod_j t(w_j; nu, 0, scale): most weights small, a few of any size (D42).

    Parameters
    ----------
    scale : float
        Scale of Student's t, > 0; the standard deviation of a weight is
        ``scale * sqrt(df / (df - 2))``, infinite for df <= 2. The starting value when it is
        learned.
    df : float
        Degrees of freedom nu, between 1e-3 and 1e9; the starting value when they are learned.
    learn : bool
        Learn ``prior_log_scale = log scale`` and ``prior_log_df = log nu`` (D42).
    """

    _block_names: ClassVar[tuple[str, str]] = "prior_log_scale", "prior_log_df"
    _owner: ClassVar[str] = "prior"

    def sd(self, params: Params) -> float:
        """Return the standard deviation of a weight, inf for `df` <= 2."""
        return float(_student_t_sd(*self._scale_and_df(params, 0)))

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        r"""Return the normalised log density log P(w) of each weight vector, (S,) in nats (D42).

        :math:`\sum_j [c_\nu - \log s - \tfrac{\nu+1}2 \log(1 + w_j^2 / (\nu s^2))]` with s the
        scale. As log(1 + chi) it neither overflows before w^2 does nor rounds small weights away.

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
        # The index (..., 0) turns learned blocks (1,) into scalars, and (S, 1) into (S,)
        terms = self._density_terms(params, (..., 0))
        ratio = np.multiply(w, w, out=buffers.like(w))
        ratio *= np.asarray(terms.precision, ratio.dtype)[..., None]
        logs = log1p(ratio, out=buffers.like(w))
        value = w.shape[-1] * terms.constant
        value = value - 0.5 * (terms.nu + 1.0) * np.add.reduce(logs, axis=-1)
        return value, (w, ratio, logs, terms)

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add `cotangent` times d log P(w)/dw to `d_w`; write the gradients for scale and df.

        With chi = w^2 / (nu s^2), s the scale, and the constant c_nu, differentiated in D41 ::

            d log P/dw       = -(nu + 1) w / (nu s^2 + w^2)
            d log P/d log s  = sum_j [(nu + 1) chi / (1 + chi) - 1]
            d log P/d log nu = sum_j [d c/d log nu - nu/2 log(1 + chi) + (nu + 1)/2 chi / (1 + chi)]

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
        w, ratio, logs, terms = saved  # w, chi and log(1 + chi), (S, P) each
        if self.learn:
            shares = np.add.reduce(ratio / (1.0 + ratio), axis=-1)
            log_sums = np.add.reduce(logs, axis=-1)
            d_scale, d_df = _derivatives(terms, w.shape[-1], log_sums, shares)
            write_gradient(d_params["prior_log_scale"], cotangent, d_scale[:, None])
            write_gradient(d_params["prior_log_df"], cotangent, d_df[:, None])
        # d log P(w)/dw = -(nu + 1) w / (nu scale^2 (1 + chi)); w / (1 + chi) follows below
        factor = (-cotangent * ((terms.nu + 1.0) * terms.precision))[:, None]  # D42
        for block in columns(w):
            d_w[block] += w[block] / (1.0 + ratio[block]) * factor

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
        scale, nu = self._scale_and_df(params, ...)
        return rng.standard_t(np.broadcast_to(nu, shape)) * scale


@dataclass(frozen=True)
class StudentTLikelihood(_StudentT, Likelihood):
    """Student's t likelihood, the product over rows and outputs of t(y; nu, f, scale) (D43).

    The gradient of a row, which under Gaussian noise grows with the distance of its target, is
    largest at a distance of ``scale * sqrt(df)`` and falls beyond: a target far off is taken for
    an outlier (Lange, Little and Taylor 1989).

    The outputs f are the median of y, and its mean for df > 1. For df <= 2 the variance of y is
    infinite, and so is that of every prediction.

    Parameters
    ----------
    scale : float
        Scale of the noise, > 0, in units of y; its standard deviation is
        ``scale * sqrt(df / (df - 2))``. The starting value when it is learned.
    df : float
        Degrees of freedom nu, between 1e-3 and 1e9; the starting value when they are learned.
    learn : bool
        Learn ``log_noise = log scale`` and ``log_df = log nu``, one each per output (D43).
    """

    _block_names: ClassVar[tuple[str, str]] = "log_noise", "log_df"
    _owner: ClassVar[str] = "noise"
    heavy_tails: ClassVar[bool] = True
    noise_name: ClassVar[str] = "noise scale"

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Any]:
        r"""Return the Student-t log likelihood of each row, log P(y|x, w), in nats (D43).

        :math:`\sum_k [c_{\nu_k} - \log s_k - \tfrac{\nu_k+1}2
        \log(1 + (y_k - f_k)^2 / (\nu_k s_k^2))]` with s the scale.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        y : ndarray (B, K)
            Targets of the rows.

        Returns
        -------
        value : ndarray (S, B)
            log P(y|x, w) of each sample and row in nats, summed over targets.
        saved : tuple
            Intermediate results that `vjp` needs.
        """
        check_shape(f, y)
        # This index adds an axis for the rows: each term is (1, K) or (S, 1, K)
        terms = self._density_terms(params, (..., None, slice(None)))
        residual = np.subtract(y, f, out=np.empty_like(f))
        ratio = residual * residual * terms.precision
        logs = log1p(ratio)
        rowwise = np.add.reduce(terms.constant - 0.5 * (terms.nu + 1.0) * logs, axis=-1)
        return rowwise, (residual, ratio, logs, terms)

    def vjp(self, saved: Any, cotangent: Array, d_params: Params) -> Array:
        """Return the gradient for the outputs; write those for learned scale and df to `d_params`.

        With chi = (y - f)^2 / (nu s^2), s the scale and c_nu the constant, differentiated in D41 ::

            d log P/df       = (nu + 1) (y - f) / (nu s^2 + (y - f)^2)                       D43
            d log P/d log s  = sum_b [(nu + 1) chi / (1 + chi) - 1]
            d log P/d log nu = sum_b [d c/d log nu - nu/2 log(1 + chi) + (nu + 1)/2 chi / (1 + chi)]

        Parameters
        ----------
        saved : object
            Second result of `log_density` for the same arguments; it is not written to.
        cotangent : ndarray (S,) or (S, B)
            Derivative of the loss with respect to each sum over rows, or to each row.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ndarray (S, B, K)
            Derivative of the loss with respect to the network outputs, a new array.
        """
        residual, ratio, logs, terms = saved  # y - f, chi, log(1 + chi): (S, B, K)
        if self.learn:
            if cotangent.ndim == 1:
                shares = np.add.reduce(ratio / (1.0 + ratio), axis=1, keepdims=True)
                # Sums over rows, kept as an axis of length 1: (S, 1, K)
                log_sums = np.add.reduce(logs, axis=1, keepdims=True)
                d_scale, d_df = _derivatives(terms, residual.shape[1], log_sums, shares)
                d_scale = d_scale[:, 0]  # derivative for log(scale), (S, K)
                d_df = d_df[:, 0]
            else:
                shares = ratio / (1.0 + ratio)  # chi / (1 + chi), (S, B, K)
                d_scale, d_df = _derivatives(terms, 1, logs, shares)
            write_gradient(d_params["log_noise"], cotangent, d_scale)
            write_gradient(d_params["log_df"], cotangent, d_df)
        d_f = residual / (1.0 + ratio)
        d_f *= (terms.nu + 1.0) * terms.precision  # d log P/df (D43)
        d_f *= for_outputs(cotangent)
        return d_f

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance of each target, scale^2 df / (df - 2); inf for df <= 2."""
        _, scale, nu = self.components(params, f)
        return np.asarray(_student_t_sd(scale, nu) ** 2)

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        """Return the location `f`, and scale and df, (1, K) or (S, 1, K) each."""
        scale, nu = self._scale_and_df(params, (..., None, slice(None)))
        return f, np.asarray(scale), np.asarray(nu)

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the probability that a Student-t target is <= y.

        Parameters
        ----------
        special : module
            `scipy.special`.
        y : ndarray
            Values of the target; they broadcast with the components.
        *components : ndarray
            Parameters of the distribution of y, as `components` returns them.
        upper : bool
            If true, return the probability of a target > y instead.

        Returns
        -------
        ndarray
            Probabilities, in the shape to which `y` and the components broadcast.
        """
        location, scale, nu = components
        z = (y - location) / scale
        probability: Array = special.stdtr(nu, -z if upper else z)
        return probability

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw targets from P(y|x, w) for each weight sample and row, (S, B, K) like `f`.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        """
        _, scale, nu = self.components(params, f)
        noise = rng.standard_t(np.broadcast_to(nu, f.shape))
        return f + (scale * noise).astype(f.dtype)


NAMED = {
    "prior": {"student-t": (StudentTPrior(0.35, 4.0), StudentTPrior(0.5, 4.0))},
    "likelihood": {
        "student-t": (StudentTLikelihood(0.1, 4.0), StudentTLikelihood(0.5, 4.0))
    },
}

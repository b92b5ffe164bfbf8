"""Likelihoods P(D | w): the contract, and Gaussian noise of real targets.

Likelihoods of counts and classes are in `discrete`, Student's t in `student_t`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

import numpy as np

from ..numeric.deprecation import accept_old_members
from ..numeric.elementary import (
    LOG_2PI,
    for_outputs,
    inner,
    softplus_and_slope,
    write_gradient,
)
from ..numeric.layout import Array, Blocks, Params
from ..numeric.validation import check_fields, flag, standard_deviation

__all__ = ["GaussianLikelihood", "HeteroscedasticLikelihood", "Likelihood"]


def check_shape(f: Array, y: Array) -> None:
    """Raise ValueError unless `y` has the shape (S, B, K) of the outputs `f`, or (B, K)."""
    if y.shape not in (f.shape[1:], f.shape):
        raise ValueError(
            f"y must have shape (rows, outputs) = {f.shape[1:]}; got {y.shape}"
        )


class Likelihood:
    """Base class of likelihoods; a subclass defines `cdf`, and what raises NotImplementedError.

    A likelihood is a frozen dataclass. Each of its fields has a default and is checked when an
    object is made. Its methods obey the contract of `Prior` on arguments, learned numbers, dtypes
    and complex numbers, with the outputs `f` in the place of `w`; `vjp` returns a new array.
    `log_density` and `vjp` look at each row alone, so that minibatches add up.
    """

    # Kind of the targets: 'real', 'count' or 'class'; learners standardise only real targets
    target_kind: ClassVar[str] = "real"
    heavy_tails: ClassVar[bool] = False  # whether the variance of y may be infinite
    # whether the outputs are logarithms of the mean, to which that of an exposure is added (D72)
    log_link: ClassVar[bool] = False
    # Label under which `fit` prints `noise_scale`; empty if the noise is not one number per output
    noise_name: ClassVar[str] = ""
    scale: float

    def __init_subclass__(cls, **options: Any) -> None:
        """Let subclasses define `initial_values` by its old name `_starts`, with a warning."""
        super().__init_subclass__(**options)
        accept_old_members(cls, {"_starts": "initial_values"})

    def initial_values(self) -> dict[str, float]:
        """Return the starting value, such as log(scale), of each learned block by block name."""
        return {}

    def heads(self, targets: int) -> int:
        """Return the number of network outputs needed for `targets` target columns or classes."""
        return targets

    def targets(self, heads: int) -> int:
        """Return how many target columns or classes a network with `heads` outputs can predict."""
        return heads

    def check_targets(self, y: Array, dtype: Any) -> None:
        """Raise ValueError unless `y` holds targets of this likelihood; by default any number is.

        Parameters
        ----------
        y : ndarray (B, K)
            Targets, whose numbers are finite.
        dtype : dtype
            Dtype of training, float64 or float32.
        """

    def blocks(self, outputs: int) -> Blocks:
        """Return name and shape (outputs,) of each learned block; () if nothing is learned."""
        return tuple((name, (outputs,)) for name in self.initial_values())

    def init(self, outputs: int, dtype: Any) -> Array:
        """Return the starting values of all learned blocks, concatenated into one flat vector.

        Parameters
        ----------
        outputs : int
            Number K of target columns.
        dtype : dtype
            Dtype of the result.
        """
        return np.repeat(np.array([*self.initial_values().values()], dtype), outputs)

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Any]:
        """Return the normalised log likelihood of each row's targets, log P(y|x, w), in nats.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        y : ndarray (B, K)
            Targets of the rows.

        Returns
        -------
        value : ndarray (S, B)
            log P(y|x, w) in nats, summed over targets.
        saved : object
            Intermediate results that `vjp` needs.

        Raises
        ------
        ValueError
            If the shapes of `f` and `y` do not fit.
        """
        raise NotImplementedError

    def vjp(self, saved: Any, cotangent: Array, d_params: Params) -> Array:
        """Return the gradient for the network outputs; write that for learned blocks to `d_params`.

        Parameters
        ----------
        saved : object
            Second result of `log_density`; it is not written to.
        cotangent : ndarray (S,) or (S, B)
            Derivative of the loss with respect to each sum over rows, or to each row (D45).
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ndarray (S, B, heads)
            Derivative of the loss with respect to the network outputs, a new array.
        """
        raise NotImplementedError

    def log_likelihood(
        self, params: Params, f: Array, y: Array, sample_weight: Array | None = None
    ) -> tuple[Array, Any]:
        """Return log P(D|w), the log likelihood summed over rows, and what its VJP needs.

        With weights v it is sum_b v_b log P(y_b|x_b, w): a weight of 2 stands for a row that
        occurs twice, and a weight of 0 leaves the row out (D45).

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        y : ndarray (B, K)
            Targets of the rows.
        sample_weight : ndarray (B,), optional
            Weight of each row; by default all are 1.

        Returns
        -------
        value : ndarray (S,)
            log P(D|w) of each weight sample, in nats.
        saved : tuple
            Intermediate results that `log_likelihood_vjp` needs.
        """
        rowwise, saved = self.log_density(params, f, y)
        if sample_weight is not None:
            rowwise = rowwise * sample_weight  # v_b log P(y_b|x_b, w) (D45)
        return np.add.reduce(rowwise, axis=1), (saved, sample_weight)

    def log_likelihood_vjp(
        self, saved: Any, cotangent: Array, d_params: Params
    ) -> Array:
        """Return the gradient for the network outputs, given that for the log likelihood (D45).

        Parameters
        ----------
        saved : tuple
            Second result of `log_likelihood`; it holds the weights of the rows.
        cotangent : ndarray (S,)
            Derivative of the loss with respect to each log P(D|w).
        d_params : dict
            Gradients of the learned blocks by name, in the shape of each block; every number is
            overwritten.

        Returns
        -------
        ndarray (S, B, heads)
            Derivative of the loss with respect to the network outputs.
        """
        saved_rows, sample_weight = saved
        if sample_weight is not None:
            # The loss's derivative for each row: that for the sum over rows, times v_b
            cotangent = cotangent[:, None] * sample_weight  # per row (D45)
        return self.vjp(saved_rows, cotangent, d_params)

    def curvature(self, params: Params, f: Array) -> Array:
        """Return minus the Hessian of log P(y|x, w) with respect to the outputs of each row (D54).

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.

        Raises
        ------
        TypeError
            For a likelihood without such a curvature.
        """
        raise TypeError(
            f"the curvature of {type(self).__name__} depends on y, or is not defined: use a "
            "Gaussian likelihood with one noise scale, a categorical, Bernoulli or Poisson "
            "likelihood, or define its method `curvature`"
        )

    def mean(self, params: Params, f: Array) -> Array:
        """Return the expected targets E[y|x, w], (S, B, K) in units of y; by default the outputs.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        """
        return f

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance of each target, in squared units of y; inf where it does not exist.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        """
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw targets from P(y|x, w) for each weight sample and row, (S, B, K) like `f`.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        """
        raise NotImplementedError

    def noise_scale(self, params: Params, outputs: int) -> Array:
        """Return the scale of the noise of each target column, in units of y.

        It is the exponential of the learned block ``log_noise``, or the field `scale`. Likelihoods
        without a `noise_name` have no such scale.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        outputs : int
            Number of target columns K.
        """
        if "log_noise" in self.initial_values():
            return np.exp(params["log_noise"])
        return np.full(outputs, self.scale)

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        """Return the parameters of the distribution of each target, in the order that `cdf` takes.

        Each array broadcasts to (S, B, K). For real targets the first two are location and scale,
        between which quantiles are searched; for counts the first is the mean; for classes, or 0
        and 1, they are the probabilities.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        """
        mean = self.mean(params, f)
        if self.target_kind == "real":
            return mean, np.sqrt(self.variance(params, f))
        return (mean,)

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the cumulative distribution function: the probability that a target is <= y.

        Parameters
        ----------
        special : module
            `scipy.special`; it is an argument because this folder imports NumPy alone.
        y : ndarray
            Values of the target; they broadcast with the components.
        *components : ndarray
            Parameters of the distribution of y, as `components` returns them.
        upper : bool
            If true, return the probability of a target > y instead, without the cancellation of
            1 - cdf.

        Returns
        -------
        ndarray
            Probabilities, in the shape to which `y` and the components broadcast.

        Raises
        ------
        TypeError
            For a likelihood without a distribution function.
        """
        raise TypeError(
            f"the distribution function of {type(self).__name__} is not defined: define its "
            "method `cdf`, or use quantiles of the draws of y that `sample_targets` returns"
        )


class _Gaussian(Likelihood):
    """Base class of Gaussian noise, whose `components` are the mean and standard deviation of y."""

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance of each target, in squared units of y; it broadcasts to (S, B, K)."""
        return self.components(params, f)[1] ** 2

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw targets from P(y|x, w) for each weight sample and row, (S, B, K) like `f`.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        """
        mean, sigma = self.components(params, f)
        return mean + sigma.astype(f.dtype) * rng.standard_normal(
            mean.shape, f.dtype.type
        )

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the probability that a Gaussian target is <= y.

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
        mean, sigma = components
        z = (y - mean) / sigma
        probability: Array = special.ndtr(-z if upper else z)
        return probability


@dataclass(frozen=True)
class GaussianLikelihood(_Gaussian):
    """Gaussian likelihood, the product over rows and outputs of N(y; f, sigma_y^2) (K14-K16, D1).

    The report fixes sigma_y = 1 (K14), with which its first problem cannot be learnt:
    there the noise has the standard deviation 0.06.

    Parameters
    ----------
    scale : float
        Standard deviation sigma_y > 0 of the noise, in units of y; the starting value when it is
        learned.
    learn : bool
        Learn one ``log_noise = log sigma_y`` per output, by its own gradient (D1).
    """

    scale: float = 1.0
    learn: bool = False

    noise_name: ClassVar[str] = "noise sd"

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, "the noise", scale=standard_deviation)
        check_fields(self, learn=flag)

    def initial_values(self) -> dict[str, float]:
        """Return {'log_noise': log(scale)} if the noise is learned, otherwise {}."""
        return {"log_noise": log(self.scale)} if self.learn else {}

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Any]:
        r"""Return the Gaussian log likelihood of each row, log P(y|x, w), summed over its targets.

        :math:`\sum_k [-\tfrac12\log 2\pi - \log\sigma_k - (y_k-f_k)^2/(2\sigma_k^2)]`
        (K15, D1). With sigma_y = 1 and without the constant this is K16. Targets `y` may be
        (S, B, K) as well: each sample has its own.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        y : ndarray (B, K)
            Targets of the rows.

        Returns
        -------
        value : ndarray (S, B)
            log P(y|x, w) of each sample and row in nats, summed over targets.
        saved : tuple
            Residuals y - f, and residuals divided by the variance of the noise, for `vjp`.
        """
        check_shape(f, y)
        precision: Any
        log_scales: Any
        if self.learn:
            # log of the noise scale: (1, K), or (S, 1, K) if each weight sample has its own scale
            log_noise = params["log_noise"][..., None, :]
            precision = np.exp(-2.0 * log_noise)
            log_scales = np.add.reduce(log_noise, axis=-1)
        else:
            precision = self.scale**-2
            log_scales = f.shape[-1] * log(self.scale)
        residual = np.subtract(y, f, out=np.empty_like(f))
        scaled = np.multiply(residual, precision, out=np.empty_like(f))
        rowwise = -0.5 * inner(residual, scaled)
        # The normalising constant of the Gaussian, summed over the K outputs
        rowwise -= log_scales + 0.5 * LOG_2PI * f.shape[-1]  # K14-K16
        return rowwise, (residual, scaled)

    def vjp(self, saved: Any, cotangent: Array, d_params: Params) -> Array:
        """Return the gradient for the network outputs; write that for learned noise to `d_params`.

        The derivative is ``d log P/df = (y - f) / sigma_y^2``, which with sigma_y = 1 and the minus
        sign of the loss is the report's ``-(y - yhat)`` (K37); and for the noise (D1)
        ``d log P/d log_noise_k = sum_b ((y - f)^2 / sigma_k^2 - 1)``.

        Parameters
        ----------
        saved : object
            Second result of `log_density` for the same arguments.
        cotangent : ndarray (S,) or (S, B)
            Derivative of the loss with respect to each sum over rows, or to each row.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ndarray (S, B, K)
            Derivative of the loss with respect to the network outputs, a new array.
        """
        residual, scaled = saved  # y - f and (y - f) / sigma_y^2, (S, B, K) each
        if self.learn:
            if cotangent.ndim == 1:
                squares = np.einsum("sbk,sbk->sk", residual, scaled) - residual.shape[1]
            else:
                squares = residual * scaled - 1.0  # derivative for log sigma_y
            # d log P / d log sigma_y = (y - f)^2 / sigma_y^2 - 1 for each number of y
            write_gradient(d_params["log_noise"], cotangent, squares)  # D1
        return np.multiply(scaled, for_outputs(cotangent), out=np.empty_like(scaled))

    def curvature(self, params: Params, f: Array) -> Array:
        """Return minus the Hessian of log P(y|x, w) for each row's outputs: I / sigma_y^2 (D54)."""
        noise_scale = self.noise_scale(params, f.shape[-1])[..., None, :]
        precision = np.ones_like(f) * noise_scale**-2.0
        return precision[..., None] * np.eye(f.shape[-1], dtype=f.dtype)

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        """Return mean `f` and standard deviation, (1, K) or (S, 1, K), of the targets."""
        return f, self.noise_scale(params, f.shape[-1])[..., None, :]


@dataclass(frozen=True)
class HeteroscedasticLikelihood(_Gaussian):
    r"""Gaussian likelihood prod N(y; m(x, w), sigma(x, w)^2), whose noise depends on x (D12).

    The network has two heads of K outputs each: first the means m, then raw numbers h with
    :math:`\sigma = \mathrm{floor} + s\,\mathrm{softplus}(h)`.

    Parameters
    ----------
    floor : float
        Smallest standard deviation of the noise, > 0, in units of y. It bounds the density, which
        a network that passes through a data point could otherwise make infinite.
    scale : float
        Factor s > 0 of all noise, in units of y; the starting value when it is learned.
    learn : bool
        Learn one ``log_noise = log s`` per target (D68). A prior that draws the weights of h to 0,
        such as `ARDPrior`, then draws the noise towards a constant, s log 2, of any size.
    """

    floor: float = 1e-3
    scale: float = 1.0
    learn: bool = False

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, floor=standard_deviation)
        check_fields(self, "the noise", scale=standard_deviation)
        check_fields(self, learn=flag)

    def initial_values(self) -> dict[str, float]:
        """Return {'log_noise': log(scale)} if the factor is learned, otherwise {}."""
        return {"log_noise": log(self.scale)} if self.learn else {}

    def heads(self, targets: int) -> int:
        """Return 2 * `targets`: one mean and one raw scale for each target column."""
        return 2 * targets

    def targets(self, heads: int) -> int:
        """Return the number of target columns, `heads` / 2; raise ValueError if `heads` is odd."""
        if heads % 2:
            raise ValueError(
                "a heteroscedastic likelihood needs two network outputs for each target, a mean "
                f"and a raw scale; got {heads} outputs. Use an even last size"
            )
        return heads // 2

    def _heads(self, params: Params, f: Array) -> tuple[Array, Array, Array, Array]:
        """Return m, sigma, d sigma/dh and d sigma/d log s, for outputs `f` (m, h)."""
        outputs = f.shape[-1] // 2
        above_floor, slope = softplus_and_slope(np.ascontiguousarray(f[..., outputs:]))
        factor: Any = self.scale
        if self.learn:
            # (1, K), or (S, 1, K) if each weight sample has its own factor
            factor = np.exp(params["log_noise"])[..., None, :]
        if self.learn or self.scale != 1.0:
            above_floor = above_floor * factor
            slope = slope * factor
        return f[..., :outputs], above_floor + self.floor, slope, above_floor

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Any]:
        r"""Return the Gaussian log likelihood of each row, summed over its targets (D12).

        :math:`\sum_k [-\tfrac12\log 2\pi - \log\sigma_k - (y_k - m_k)^2 / (2\sigma_k^2)]`, for
        outputs `f` (S, B, 2K): means, then raw numbers.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, heads)
            Network outputs of S weight samples for B rows.
        y : ndarray (B, K)
            Targets of the rows.

        Returns
        -------
        value : ndarray (S, B)
            log P(y|x, w) of each sample and row in nats, summed over targets.
        saved : tuple
            (y - m) / sigma, 1 / sigma, d sigma/dh and d sigma/d log s, for `vjp`.
        """
        mean, sigma, slope, above_floor = self._heads(params, f)
        check_shape(mean, y)
        inverse = 1.0 / sigma
        residual = y - mean
        residual *= inverse
        log_scales = np.log(sigma)
        rowwise = -0.5 * inner(residual, residual)
        for k in range(y.shape[-1]):
            rowwise -= log_scales[..., k]  # -r^2 / 2 - log sigma, summed (D12)
        rowwise -= 0.5 * LOG_2PI * y.shape[-1]
        return rowwise, (residual, inverse, slope, above_floor)

    def vjp(self, saved: Any, cotangent: Array, d_params: Params) -> Array:
        """Return the gradient for the network outputs: for the means, then for raw scales (D12).

        ``d log P/dm = (y - m) / sigma^2`` and
        ``d log P/dh = ((y - m)^2 / sigma^3 - 1 / sigma) s sigmoid(h)``; for a learned factor
        ``d log P/d log s = ((y - m)^2 / sigma^3 - 1 / sigma) (sigma - floor)`` (D68).

        Parameters
        ----------
        saved : object
            Second result of `log_density` for the same arguments.
        cotangent : ndarray (S,) or (S, B)
            Derivative of the loss with respect to each sum over rows, or to each row.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ndarray (S, B, 2K)
            Derivative of the loss with respect to the network outputs, a new array.
        """
        # (S, B, K) each: (y - m) / sigma, 1 / sigma, d sigma/dh, d sigma/d log s
        residual, inverse, slope, above_floor = saved
        scaled = inverse * for_outputs(cotangent)
        d_sigma = residual - 1.0
        d_sigma *= residual + 1.0
        d_sigma *= scaled
        if self.learn:
            d_log_scale = d_sigma * above_floor  # d log P / d log s (D68)
            per_sample = np.add.reduce(d_log_scale, axis=1)  # (S, K)
            ones = np.ones(len(per_sample), per_sample.dtype)
            write_gradient(d_params["log_noise"], ones, per_sample)
        d_sigma *= slope
        return np.concatenate([residual * scaled, d_sigma], axis=-1)

    def mean(self, params: Params, f: Array) -> Array:
        """Return the expected targets (S, B, K): the first half of the outputs `f` (S, B, 2K)."""
        return f[..., : f.shape[-1] // 2]

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        """Return mean and standard deviation of each target, (S, B, K) each, in units of y."""
        return self._heads(params, f)[:2]


NAMED = {
    "likelihood": {
        "gaussian": (GaussianLikelihood(0.1), GaussianLikelihood(0.5)),
        "heteroscedastic": HeteroscedasticLikelihood(),
    }
}

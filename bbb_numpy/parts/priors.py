"""Priors P(w) of all weights and biases: the contract, Gaussian, layerwise and Laplace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from math import log
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.deprecation import accept_old_members
from ..numeric.elementary import (
    LOG_2PI,
    add_scaled,
    columns,
    sums_of_squares,
    write_gradient,
)
from ..numeric.layout import Array, Blocks, Params
from ..numeric.validation import (
    NUMBERS,
    Numbers,
    Optional,
    check_fields,
    flag,
    standard_deviation,
)

__all__ = [
    "CentredGaussianPrior",
    "ClosedFormPrior",
    "ExpectedLogPrior",
    "GaussianPrior",
    "LaplacePrior",
    "LayerwiseGaussianPrior",
    "Prior",
]

Self = TypeVar("Self", bound="Prior")


class Prior:
    """Base class of priors; a subclass defines the methods that raise NotImplementedError here.

    A prior is a frozen dataclass. Each of its fields has a default and is checked when an object
    is made: scales must be between 1e-150 and 1e150, or ValueError is raised. The contract of its
    methods:

    - *Arguments are not written to*, `w` and what `log_density` returns least of all: the same
      weights go into the likelihood, and a backward pass may be repeated. The exceptions are
      named below: `add_vjp` adds to `d_w`, and writes every number of `d_params`.
    - *Nothing is left behind*, on the prior or in `buffers`: all that `add_vjp` needs is returned.
      Large arrays are taken from `buffers`, or are new.
    - *One set of learned numbers or S.* A block has its shape (K,), or (S, K), one row for each
      weight vector, as the chains of a sampler have (D33); `write_gradient` serves both. Every
      real number is allowed: learn log scale.
    - *The dtype of `w`* is that of all results, float32 too. Python numbers keep it, NumPy's
      float64 numbers do not.
    - *Complex-safe*: for complex `w` and `params` the value continues analytically. Comparisons
      look at ``.real``; no ``abs``, ``conj``, ``max`` of complex numbers; `log1p` is that of
      `numeric.elementary`.
    - *Finite*: all results are finite where w^2 is.

    A subclass of `ClosedFormPrior` has `expected_log_density` as well. Estimators that need
    KL(q || prior) in closed form accept such priors alone.
    """

    # Whether log P(w) has a kink at w_j = 0; gradient checks then skip coordinates that cross it
    kink: ClassVar[bool] = False
    # Index of the first weight of each group whose weights share a scale; None if all weights do
    group_starts: ClassVar[Any] = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Let subclasses define methods by old names, with a warning: `deviation` and `_starts`."""
        super().__init_subclass__(**options)
        accept_old_members(cls, {"deviation": "sd", "_starts": "initial_values"})

    def initial_values(self) -> dict[str, float]:
        """Return the starting value, such as log(scale), of each learned block by block name."""
        return {}

    def for_network(self: Self, sizes: tuple[int, ...]) -> Self:
        """Return the prior for a network with layer widths `sizes`; by default the prior itself."""
        return self

    def blocks(self) -> Blocks:
        """Return names and shapes of the learned blocks; () if nothing is learned.

        By default there is one block of shape (1,) for each of `initial_values`. No name may be
        that of a block of a posterior or a likelihood. A block whose name begins with ``log_`` or
        ``prior_log_`` holds logarithms of scales.
        """
        return tuple((name, (1,)) for name in self.initial_values())

    def init(self, dtype: Any) -> Array:
        """Return the starting values of all learned blocks, as one flat vector of dtype `dtype`."""
        return np.array([*self.initial_values().values()], dtype)

    def sd(self, params: Params) -> float:
        """Return the prior standard deviation of one weight, given `params`; it may be inf."""
        raise NotImplementedError

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        """Return the normalised log density log P(w) of each weight vector, (S,) in nats.

        Parameters
        ----------
        params : dict
            Learned numbers of the prior by block name: (K,), or (S, K), one row per weight vector.
            Fixed numbers are fields of the prior.
        w : ndarray (S, P)
            S flat weight vectors, which are not written to.
        buffers : Buffers
            Source of the large arrays, which the owner of the buffers reuses.

        Returns
        -------
        value : ndarray (S,)
            log P(w) in nats.
        saved : object
            Intermediate results that `add_vjp` needs.
        """
        raise NotImplementedError

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add the gradient for the weights to `d_w`; write that for learned blocks to `d_params`.

        Parameters
        ----------
        saved : object
            Second result of `log_density` for the same weights; it is not written to.
        cotangent : ndarray (S,)
            Derivative of the loss with respect to each log P(w).
        d_w : ndarray (S, P)
            Gradient for the weights, to which cotangent times d log P/dw is added.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.
        """
        raise NotImplementedError

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
        raise NotImplementedError


class ClosedFormPrior(Prior):
    """Base class of priors whose E_q[log P(w)] has a closed form for Gaussian q (D18, D19, D39)."""

    def expected_log_density(
        self, params: Params, mean: Array, total_variance: Any, d_params: Params
    ) -> ExpectedLogPrior:
        """Return E_q[log P(w)] for a Gaussian q, and its derivatives for q's means and variances.

        Parameters
        ----------
        params : dict
            Learned numbers of the prior by block name, (K,) each.
        mean : ndarray (P,)
            Means of the weights under q.
        total_variance : float or ndarray (L,)
            Sum of the variances of all weights, or of each group that begins at `group_starts`.
        d_params : dict
            Receives the derivatives for the learned blocks by name, each in its block's shape.

        Returns
        -------
        ExpectedLogPrior
            The expectation in nats, and its derivatives for the mean and variance of each weight.
        """
        raise NotImplementedError


class ExpectedLogPrior(NamedTuple):
    """E_q[log P(w)] for a Gaussian q, and its derivatives for means and variances."""

    value: Any  # E_q[log P(w)], a scalar in nats
    d_mean: Any  # (P,), derivative for each weight's mean
    # Derivative for each weight's variance: (P,), or a scalar if all weights have the same
    d_variance: Any


@dataclass(frozen=True)
class GaussianPrior(ClosedFormPrior):
    """Gaussian prior, P(w) = prod_j N(w_j; 0, scale^2) (K11-K13, D17).

    The report sets the scale to "the data's" standard deviation sigma_data; here it is a number
    of its own: weights and targets have different units.

    Parameters
    ----------
    scale : float
        Standard deviation, > 0; the starting value when it is learned.
    learn : bool
        Learn ``prior_log_scale = log scale`` by its own gradient (D17).
    """

    scale: float = 1.0
    learn: bool = False

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, "the prior", scale=standard_deviation)
        check_fields(self, learn=flag)

    def initial_values(self) -> dict[str, float]:
        """Return {'prior_log_scale': log(scale)} if the scale is learned, otherwise {}."""
        return {"prior_log_scale": log(self.scale)} if self.learn else {}

    def sd(self, params: Params) -> float:
        """Return the standard deviation of a weight: the learned scale, or the field `scale`."""
        return float(np.exp(params["prior_log_scale"][0])) if self.learn else self.scale

    def _precision(self, params: Params) -> tuple[Any, Any]:
        """Return 1 / scale^2 and log(scale): scalars, or (S,) if samples have their own scale."""
        if not self.learn:
            return self.scale**-2, log(self.scale)
        log_scale = params["prior_log_scale"][..., 0]  # log(scale): a scalar or (S,)
        return np.exp(-2.0 * log_scale), log_scale

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        r"""Return the normalised log density log P(w) of each weight vector, (S,) in nats (K12).

        :math:`\sum_j [-\log\sigma_{data} - \tfrac12\log 2\pi - w_j^2 / (2\sigma_{data}^2)]`;
        K13 is the same without :math:`\tfrac12\log 2\pi`.

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
        precision, log_scale = self._precision(params)
        constants = w.shape[-1] * (log_scale + 0.5 * LOG_2PI)
        squares = sums_of_squares(w)
        value = -0.5 * precision * squares - constants  # log N(w; 0, s^2) (K11-K13)
        return value, (w, precision, squares)

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add `cotangent` times d log P(w)/dw = -w / scale^2 to `d_w` (K19, K26).

        For a learned scale, d log P / d log scale = sum_j w_j^2 / scale^2 - P (D17).

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
        # w is (S, P), the precision a number or (S,), and the squares |w|^2 are (S,)
        w, precision, squares = saved
        if self.learn:
            slope = precision * squares - w.shape[-1]  # (S,), for log(scale)  D17
            write_gradient(d_params["prior_log_scale"], cotangent, slope[:, None])
        add_scaled(d_w, w, (-cotangent * precision)[:, None])  # -w / scale^2 (K19, K26)

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
        scale = np.exp(params["prior_log_scale"]) if self.learn else self.scale
        return rng.standard_normal(shape) * scale

    def expected_log_density(
        self, params: Params, mean: Array, total_variance: Any, d_params: Params
    ) -> ExpectedLogPrior:
        r"""Return E_q[log P(w)] for a Gaussian q, and its derivatives (D18, D19).

        :math:`-P (\log S + \tfrac12\log 2\pi) - (|\mu|^2 + \sum_j \mathrm{Var}\,w_j) / (2S^2)`
        with S the scale. `d_params` receives its derivative for log S, if that is learned (D17).

        Parameters
        ----------
        params : dict
            Learned numbers of the prior by block name: (K,), or (S, K), one row per weight vector.
        mean : ndarray (P,)
            Means of the weights under q.
        total_variance : float
            Sum of the variances of all weights under q.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ExpectedLogPrior
            The expectation in nats, and its derivatives for the mean and variance of each weight.
        """
        precision, log_scale = self._precision(params)
        size = len(mean)
        squares = sums_of_squares(mean) + total_variance
        if self.learn:
            d_params["prior_log_scale"][0] = precision * squares - size
        value = -0.5 * precision * squares - size * (log_scale + 0.5 * LOG_2PI)
        return ExpectedLogPrior(value, -precision * mean, -0.5 * precision)


@dataclass(frozen=True, eq=False)
class CentredGaussianPrior(GaussianPrior):
    """Gaussian prior around weights learned from other data, prod_j N(w_j; c_j, scale^2) (D57).

    Parameters
    ----------
    scale : float
        Standard deviation, > 0; the starting value when it is learned.
    learn : bool
        Learn ``prior_log_scale = log scale`` by its own gradient (D17).
    centre : float or ndarray (P,)
        Expected weights c, e.g. the posterior mean of a fit to other rows.
    """

    centre: Any = 0.0

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid, `centre` among them."""
        super().__post_init__()
        check_fields(self, centre=NUMBERS)

    def _offset(self, w: Array) -> Array:
        """Return the weights minus the prior's centre, in the dtype of `w`."""
        return w - np.asarray(self.centre, w.real.dtype)

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        """Return the normalised log density log P(w) of each weight vector, (S,) in nats.

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
        return super().log_density(params, self._offset(w), buffers)

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
        return super().draw(rng, params, shape) + self.centre

    def expected_log_density(
        self, params: Params, mean: Array, total_variance: Any, d_params: Params
    ) -> ExpectedLogPrior:
        """Return E_q[log P(w)] for a Gaussian q, and its derivatives for q's means and variances.

        Parameters
        ----------
        params : dict
            Learned numbers of the prior by block name: (K,), or (S, K), one row per weight vector.
        mean : ndarray (P,)
            Means of the weights under q.
        total_variance : float
            Sum of the variances of all weights under q.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ExpectedLogPrior
            The expectation in nats, and its derivatives for the mean and variance of each weight.
        """
        return super().expected_log_density(
            params, self._offset(mean), total_variance, d_params
        )


@dataclass(frozen=True)
class LaplacePrior(Prior):
    """Laplace prior, P(w) = prod_j exp(-|w_j| / scale) / (2 scale) (D16).

    Its tails are heavier than those of a Gaussian.

    Parameters
    ----------
    scale : float
        Mean of abs(w), > 0; the standard deviation of a weight is sqrt(2) scale.
    """

    scale: float = 1.0

    kink: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise an error unless `scale` is valid."""
        check_fields(self, "the prior", scale=standard_deviation)

    def sd(self, params: Params) -> float:
        """Return the standard deviation of a weight, sqrt(2) * `scale`."""
        return self.scale * 2.0**0.5

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Array]:
        """Return log P(w) = sum_j [-log(2 scale) - |w_j| / scale] of each weight vector (D16).

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
        saved : ndarray (S, P)
            The weights, which `add_vjp` needs.
        """
        magnitude = np.multiply(w, np.sign(w.real), out=buffers.like(w))
        constant = w.shape[-1] * log(2.0 * self.scale)
        value = (
            np.add.reduce(magnitude, axis=-1) * (-1.0 / self.scale) - constant
        )  # -|w| / scale - log(2 scale), summed over weights (D16)
        return value, w

    def add_vjp(
        self, saved: Array, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add `cotangent` times d log P(w)/dw = -sign(w) / scale to `d_w` (D16).

        At w = 0, where the density has a kink, the slope is taken as 0.

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
        slope = (-cotangent / self.scale)[:, None]
        for block in columns(saved):
            d_w[block] += np.sign(saved[block].real) * slope

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
        return rng.laplace(0.0, self.scale, shape)


def _check_widths(name: str, value: Any) -> tuple[int, ...]:
    """Return the widths of a network as a tuple of int; raise an error unless all are >= 1.

    Parameters
    ----------
    name : str
        Name of the argument, for error messages.
    value : object
        Value that is checked.
    """
    return tuple(Numbers((None,), low=1, whole=True)(name, value).astype(int).tolist())


def _check_scales(name: str, value: Any, layers: int | None) -> tuple[float, ...]:
    """Return one scale per layer as a tuple of float; raise an error unless in [1e-150, 1e150].

    Parameters
    ----------
    name : str
        Name of the argument, for error messages.
    value : object
        Value that is checked: it must be a sequence of numbers from 1e-150 to 1e150.
    layers : int or None
        Required length of `value`; None, if the network is not known yet, accepts any length >= 1.
    """
    check = Numbers((layers,), low=1e-150, high=1e150, min_length=1)
    return tuple(check(name, value).astype(float).tolist())


@dataclass(frozen=True)
class LayerwiseGaussianPrior(ClosedFormPrior):
    r"""Gaussian prior with a scale per layer, prod_l prod_j N(w_lj; 0, scale_l^2) (D39).

    With one scale s for all weights the function's prior standard deviation grows like
    :math:`s \sqrt H` with H hidden units. Neal (1996) divides the scale of the output weights by
    the square root of H, and the prior over functions has a limit. A layer's biases have the
    scale of its weights.

    Parameters
    ----------
    scales : tuple of float, optional
        One standard deviation > 0 for each layer, from the input on; the starting values when
        they are learned. Default: 1 for the first layer, 1 / sqrt(inputs of the layer) for others.
    learn : bool
        Learn ``prior_log_scale = log scale``, (L,), one for each layer.
    sizes : tuple of int, optional
        Widths of the network. `Model` fills them in.
    """

    scales: tuple[float, ...] | None = None
    learn: bool = False
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, learn=flag, sizes=Optional(_check_widths))
        layers = None if self.sizes is None else len(self.sizes) - 1
        if self.scales is None and self.sizes is not None:
            object.__setattr__(
                self, "scales", (1.0, *(size**-0.5 for size in self.sizes[1:-1]))
            )
        check_fields(self, scales=Optional(partial(_check_scales, layers=layers)))

    def for_network(self, sizes: tuple[int, ...]) -> LayerwiseGaussianPrior:
        """Return the prior for layer widths `sizes`; raise ValueError if it has other widths."""
        if self.sizes not in (None, sizes):
            raise ValueError(
                f"the prior was made for a network of sizes {self.sizes}; got a network of sizes "
                f"{sizes}. Give each model a prior of its own, made without `sizes`"
            )
        return replace(self, sizes=sizes)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of weights and biases of each layer, a tuple with one int per layer."""
        if self.sizes is None:
            raise ValueError(
                "a LayerwiseGaussianPrior must know the widths of its network: make a Model "
                "of both, or call for_network(sizes)"
            )
        return tuple((d_in + 1) * d_out for d_in, d_out in pairwise(self.sizes))

    @cached_property
    def group_starts(self) -> tuple[int, ...]:
        """Index of each layer's first weight in a flat weight vector."""
        return tuple(sum(self.counts[:layer]) for layer in range(len(self.counts)))

    def _layers(self, w: Array) -> list[Array]:
        """Return one view of `w` (..., P) for each layer, with its weights and biases."""
        ends = (*self.group_starts[1:], w.shape[-1])
        return [
            w[..., start:stop]
            for start, stop in zip(self.group_starts, ends, strict=True)
        ]

    def blocks(self) -> Blocks:
        """Return name and shape of the block of log scales, one per layer; () if fixed."""
        return (("prior_log_scale", (len(self.counts),)),) if self.learn else ()

    def init(self, dtype: Any) -> Array:
        """Return the starting values of the layers' log scales; an empty array if fixed."""
        scales = self.scales if self.learn else None
        return np.array([log(scale) for scale in scales or ()], dtype)

    def sd(self, params: Params) -> float:
        """Return the smallest of the layers' prior standard deviations."""
        return float(np.min(np.exp(self._log_scales(params, np.float64))))

    def _log_scales(self, params: Params, dtype: Any) -> Array:
        """Return the log scale of each of L layers, (L,), or (S, L) if learned per sample."""
        if self.learn:
            return params["prior_log_scale"]
        # A proof runs this code with exact numbers, in arrays of dtype object
        if np.dtype(dtype).kind == "O":
            dtype = np.float64
        return np.array([log(scale) for scale in self.scales or ()], dtype)

    def _squares(self, w: Array) -> Array:
        """Return the sum of squares of each layer's weights and biases, for weights `w` (S, P)."""
        return np.stack([sums_of_squares(layer) for layer in self._layers(w)], axis=-1)

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        r"""Return the normalised log density log P(w) of each weight vector, (S,) in nats (D39).

        :math:`\sum_l [-P_l (\log s_l + \tfrac12\log 2\pi) - |w_l|^2 / (2 s_l^2)]` with P_l
        weights w_l in layer l.

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
        log_scales = self._log_scales(params, w.real.dtype)
        counts = np.array(self.counts, w.real.dtype)
        precision = np.exp(-2.0 * log_scales)  # 1 / scale^2, (L,) or (S, L)
        squares = self._squares(w)  # sum of squares of each layer, (S, L)
        terms = -0.5 * precision * squares  # (S, L), each layer's quadratic term
        terms -= counts * (log_scales + 0.5 * LOG_2PI)  # log normaliser per layer (D39)
        return np.add.reduce(terms, axis=-1), (w, precision, squares)

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add `cotangent` times d log P(w)/dw = -w / scale^2, scale of w's layer, to `d_w` (D39).

        For learned scales, d log P / d log scale_l = |w_l|^2 / scale_l^2 - P_l.

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
        # w is (S, P), the precision (L,) or (S, L), and the squares |w_l|^2 are (S, L)
        w, precision, squares = saved
        if self.learn:
            # Derivatives of log P(w) for the layers' log scales, (S, L)
            slope = precision * squares - np.array(self.counts, w.real.dtype)
            write_gradient(d_params["prior_log_scale"], cotangent, slope)
        factors = -cotangent[:, None] * precision  # (S, L), times w
        layers = zip(self._layers(d_w), self._layers(w), strict=True)
        for layer, (d_layer, layer_weights) in enumerate(layers):
            add_scaled(d_layer, layer_weights, factors[:, layer, None])

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
        scales = np.exp(self._log_scales(params, np.float64))
        return rng.standard_normal(shape) * np.repeat(scales, self.counts, axis=-1)

    def expected_log_density(
        self, params: Params, mean: Array, total_variance: Any, d_params: Params
    ) -> ExpectedLogPrior:
        r"""Return E_q[log P(w)], and its derivatives, given q's variances summed by layer (D39).

        :math:`\sum_l [-P_l (\log s_l + \tfrac12\log 2\pi)
        - (|\mu_l|^2 + \sum_{j \in l} \mathrm{Var}\,w_j) / (2 s_l^2)]`. `d_params` receives its
        derivatives for the log s_l, if these are learned.

        Parameters
        ----------
        params : dict
            Learned numbers of the prior by block name: (K,), or (S, K), one row per weight vector.
        mean : ndarray (P,)
            Means of the weights under q.
        total_variance : ndarray (L,)
            Sum of the variances of the weights of each layer under q.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ExpectedLogPrior
            The expectation in nats, and its derivatives for the mean and variance of each weight.
        """
        log_scales = self._log_scales(params, mean.real.dtype)
        precision = np.exp(-2.0 * log_scales)  # 1 / scale^2 of each layer, (L,)
        counts = np.array(self.counts, mean.real.dtype)
        squares = self._squares(mean) + total_variance  # E_q of the sum of squares
        if self.learn:
            d_params["prior_log_scale"][...] = precision * squares - counts
        value = np.add.reduce(
            -0.5 * precision * squares - counts * (log_scales + 0.5 * LOG_2PI)
        )
        # 1 / scale^2 of each weight, (P,)
        of_weights = np.repeat(precision, self.counts)
        return ExpectedLogPrior(value, -of_weights * mean, -0.5 * of_weights)


NAMED = {
    "prior": {
        "gaussian": GaussianPrior(0.5),
        "layerwise": LayerwiseGaussianPrior(),
        "laplace": (LaplacePrior(0.35), LaplacePrior(0.25)),
    }
}

"""The posterior predictive: moments and functions, in bounded memory.

The predictive distribution integrates over weights, P(y|x, D) = E_q[P(y|x, w)], here by
S weight samples. By the law of total variance (D4) ::

    Var[y] = Var_q[E[y|w]]   +  E_q[Var[y|w]]
             epistemic^2        aleatoric^2

For a linearised network with Gaussian noise the predictive is one Gaussian, and no sample is needed
(D54). Where a network overflows, results are not finite.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from math import log, pi
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator

from ..gradients.estimator import GradientEstimator
from ..numeric.buffers import Buffers
from ..numeric.elementary import logsumexp
from ..numeric.layout import Array
from ..numeric.validation import (
    FLOATS,
    GENERATOR,
    MATRIX,
    SAMPLES,
    Check,
    InstanceOf,
    accepts,
)
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from ..parts.likelihoods import GaussianLikelihood, check_shape
from ..sampling.draws import DrawnWeights
from ..training.laplace import Linearised

__all__ = [
    "BAND",
    "ClassPredictive",
    "Predictive",
    "Source",
    "blocks_of_rows",
    "covariance",
    "is_gaussian",
    "log_predictive_density",
    "mixture",
    "outputs",
    "predict",
    "predict_classes",
    "sample_functions",
    "sample_targets",
]

# an estimator from which weights can be drawn
Source = GradientEstimator | DrawnWeights
Function = TypeVar("Function", bound=Callable[..., Any])
BAND = 2.0  # half-width of bands in standard deviations; holds 95.4 % of a Gaussian
BLOCK_NUMBERS = (
    4_000_000  # approximate largest size, in numbers, of a block of activations
)
# Size, in numbers, of a block of activations that stays in the cache, and the rows below which
# reading the weights anew for every block would take longer than that saves
CACHE_NUMBERS = 250_000
MIN_BLOCK_ROWS = 64


# checks of the arguments that all functions of predictions share
ARGUMENTS: dict[str, Check] = {
    "estimator": InstanceOf(GradientEstimator, DrawnWeights),
    "theta": FLOATS,
    "x": MATRIX,
    "rng": GENERATOR,
    "samples": SAMPLES,
}


def _prediction(function: Function) -> Function:
    """Return `function` with checks of its arguments, and without overflow warnings."""
    silent = np.errstate(over="ignore", invalid="ignore")(function)
    return accepts(**ARGUMENTS)(silent)  # type: ignore[return-value]


class Predictive(NamedTuple):
    """Moments of the predictive distribution, (N, K) each, in units of y."""

    mean: Array
    # standard deviation of E[y|x, w] over weight samples, which falls with more data
    epistemic: Array
    # standard deviation of the noise of y around E[y|x, w], which more data do not reduce
    aleatoric: Array

    @property
    def total(self) -> Array:
        """Standard deviation of a new y: sqrt(epistemic^2 + aleatoric^2) (D4)."""
        return np.hypot(self.epistemic, self.aleatoric)  # total sd of y (D4, R10)


class ClassPredictive(NamedTuple):
    """Class probabilities, and the epistemic and aleatoric parts of their entropy, in nats (D29).

    ``H[E p] = (H[E p] - E H[p]) + E H[p]``: the epistemic part, which is the mutual information of
    class and weights and falls with more data, plus the aleatoric part, which does not.
    """

    proba: Array  # (N, K)  class probabilities E_q[p(y = k|x, w)]
    aleatoric: Array  # (N,)  mean under q of the entropy of p(y|x, w), in nats

    @property
    def total(self) -> Array:
        """Entropy (N,) of the predictive distribution, in nats."""
        return _entropy(self.proba)

    @property
    def epistemic(self) -> Array:
        """Mutual information (N,) of class and weights, in nats: total - aleatoric, >= 0."""
        return np.maximum(self.total - self.aleatoric, 0.0)  # mutual information (D29)


def _weight_blocks(
    estimator: Source, theta: Array, rng: Generator, samples: int, rng_is_spent: bool
) -> Iterator[tuple[Array, dict[str, Array]]]:
    """Yield weights (S_b, P) in blocks of S_b samples, and the learned numbers by name.

    The block size depends on the network alone, so the functions drawn from one generator state do
    not depend on the rows at which they are evaluated. The last block is drawn whole, which the
    state of `rng` afterwards depends on, unless `rng_is_spent`.
    """
    block = max(1, min(BLOCK_NUMBERS // (4 * estimator.model.layout.size), 256))
    if rng_is_spent and theta.dtype == np.float64:
        # numbers in float64 are drawn one by one: a shorter block is the beginning of a whole one
        block = min(block, samples)
    buffers = Buffers()
    for eps in estimator.noise_blocks(rng, samples, block, theta.dtype):
        yield (
            estimator.weights(theta, eps, buffers.rewind()),
            estimator.params(theta, eps),
        )


def blocks_of_rows(n_rows: int, block_size: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `block_size` rows that cover rows 0 to `n_rows`.

    Parameters
    ----------
    n_rows : int
        Number of rows to cover.
    block_size : int
        Largest number of rows of a slice, >= 1.
    """
    for start in range(0, n_rows, block_size):
        yield slice(start, start + block_size)


def _as_rows(estimator: Source, theta: Array, x: Array) -> Array:
    """Return inputs `x` in the dtype of `theta`; raise ValueError if a shape is wrong."""
    width, size = estimator.model.network.n_columns, estimator.layout.size
    if x.shape[1] != width:
        raise ValueError(f"x must have shape (rows, {width}); got {x.shape}")
    if theta.ndim == 0 or theta.shape[-1] != size:
        raise ValueError(
            f"theta must have {size} numbers along its last axis, the size of the estimator's "
            f"layout; got shape {theta.shape}"
        )
    return np.ascontiguousarray(x, theta.dtype)


def outputs(
    estimator: Source,
    theta: Array,
    x: Array,
    rng: Generator,
    samples: int,
    rng_is_spent: bool = False,
) -> Iterator[tuple[slice, slice, Array, dict[str, Array]]]:
    """Yield the network's outputs for all weight samples and rows, in blocks of bounded memory.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of weight samples S.
    rng_is_spent : bool
        Whether `rng` is not used afterwards, so that noise which no sample needs is not drawn.

    Yields
    ------
    samples, rows : slice
        Slices of the S samples and of the N rows that the block covers.
    f : ndarray (S_b, B, heads)
        Outputs of the last layer, before the likelihood's mean; the next block may overwrite them.
    params : dict of str to ndarray
        Learned numbers of prior and likelihood, by name.
    """
    x = _as_rows(estimator, theta, x)
    buffers = Buffers()
    n_done = 0
    for w, params in _weight_blocks(estimator, theta, rng, samples, rng_is_spent):
        row_numbers = len(w) * max(estimator.model.network.sizes)
        step = max(CACHE_NUMBERS // row_numbers, MIN_BLOCK_ROWS)
        step = max(1, min(step, BLOCK_NUMBERS // row_numbers))
        of_samples = slice(n_done, n_done + len(w))
        for rows in blocks_of_rows(len(x), step):
            f = estimator.outputs(theta, w, x[rows], buffers.rewind())
            f = estimator.model.network.below_ceiling(f, x[rows])
            yield of_samples, rows, f, params
        n_done += len(w)


def is_gaussian(estimator: Source) -> bool:
    """Return whether P(y|x, D) is Gaussian: linearised network and Gaussian likelihood (D54)."""
    gaussian = type(estimator.model.likelihood) is GaussianLikelihood
    return isinstance(estimator, Linearised) and gaussian


def _affine(
    estimator: Any, theta: Array, x: Array
) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Yield blocks (rows, f, G, noise) of the linearised model y = f + G eps + noise * eta (D54).

    `rows` is a slice of B rows, f (B, K) the mean, G (B, K, P) the slopes, noise (K,) a standard
    deviation; eps (P,) and eta (K,) are standard normal.
    """
    x = _as_rows(estimator, theta, x)
    model = estimator.model
    params = estimator.layout.views(theta)
    noise = model.likelihood.noise_scale(params, model.outputs)
    step = max(1, BLOCK_NUMBERS // (model.outputs * model.layout.size))
    for rows in blocks_of_rows(max(len(x), 1), step):
        yield rows, *estimator.affine(theta, x[rows]), noise


@_prediction
def predict(
    estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int = 100
) -> Predictive:
    """Return the predictive mean, and the epistemic and aleatoric standard deviation, at `x`.

    Memory does not grow with `samples`: blocks of samples are merged into running moments
    (Chan, Golub and LeVeque 1983), so that 10,000 samples at a million rows need little
    more memory than the three arrays that are returned.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of weight samples S >= 1. With one sample the epistemic standard deviation is 0. None
        is drawn where the predictive is a Gaussian (`is_gaussian`).

    Returns
    -------
    Predictive
        Arrays (N, K) `mean`, `epistemic` and `aleatoric`, in the units of y in training.
    """
    shape = (len(x), estimator.model.outputs)
    mean, squares, variance = (np.zeros(shape, theta.dtype) for _ in range(3))
    if is_gaussian(estimator):
        for rows, f, slopes, noise in _affine(estimator, theta, x):
            mean[rows] = f
            variance[rows] = noise**2
            squares[rows] = np.einsum("bkp,bkp->bk", slopes, slopes)  # diag G G^T (D54)
        return Predictive(mean, np.sqrt(squares), np.sqrt(variance))
    for block, rows, f, params in outputs(estimator, theta, x, rng, samples):
        n_old = block.start
        n_new = block.stop - block.start
        aleatoric = estimator.model.likelihood.variance(params, f)
        f = estimator.model.likelihood.mean(params, f)
        block_mean = f.mean(axis=0)
        aleatoric = np.broadcast_to(aleatoric, f.shape)
        variance[rows] += aleatoric.mean(axis=0) * (n_new / samples)
        f -= block_mean
        shift = block_mean - mean[rows]
        squares[rows] += np.einsum("sbk,sbk->bk", f, f) + shift**2 * (
            n_old * n_new / (n_old + n_new)
        )
        mean[rows] += shift * (n_new / (n_old + n_new))  # running mean (D4, R9)
    return Predictive(mean, np.sqrt(squares / max(samples - 1, 1)), np.sqrt(variance))


@_prediction
def covariance(
    estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int = 100
) -> Array:
    """Return the covariance (N, N, K) of new targets at the N rows of `x`, per output (D46).

    Between two rows it is the covariance of the functions E[y|x, w] over weight samples, since the
    noise of different rows is independent. On the diagonal the variance of the noise is added,
    which makes it the square of `Predictive.total`.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of weight samples S.
    """
    total = predict(estimator, theta, x, rng=copy.deepcopy(rng), samples=samples).total
    if is_gaussian(estimator):
        blocks = [slopes for _, _, slopes, _ in _affine(estimator, theta, x)]
        # The slopes G, as (P, N, K), take the place of centred samples: the covariance is G G^T
        functions = np.moveaxis(np.concatenate(blocks), -1, 0)  # slopes (D54)
    else:
        functions = sample_functions(estimator, theta, x, rng=rng, samples=samples)
        functions = (functions - functions.mean(axis=0)) / max(samples - 1, 1) ** 0.5
    by_output = np.moveaxis(functions, -1, 0)  # (K, S, N) functions of each output
    between = by_output.swapaxes(1, 2) @ by_output  # (K, N, N) covariances (D46)
    diagonal = np.arange(len(x))
    between[:, diagonal, diagonal] = total.T**2
    return np.moveaxis(between, 0, -1)


@_prediction
def sample_functions(
    estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int = 10
) -> Array:
    """Draw functions E[y|x, w] from the posterior, and return their values at `x`, (S, N, K).

    Entry [s] uses one weight sample for all rows, and so is one function, not pointwise noise. For
    classes and counts the functions are probabilities and rates.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of functions S.
    """
    shape = (samples, len(x), estimator.model.outputs)
    functions = np.empty(shape, theta.dtype)
    for block, rows, f, params in outputs(estimator, theta, x, rng, samples):
        functions[block, rows] = estimator.model.likelihood.mean(params, f)
    return functions


@_prediction
def mixture(
    estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int = 100
) -> tuple[Array, Array]:
    """Return mean and standard deviation of y given each weight sample, as mixture components (D5).

    ``P(y|x, D) = mean over s of N(y; means[s], scales[s]^2)`` for a Gaussian likelihood.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of components S.

    Returns
    -------
    means, scales : ndarray (S, N, K)
        Means and standard deviations of the components, in the units of y in training.
    """
    shape = (2, samples, len(x), estimator.model.outputs)
    means, variances = np.empty(shape, theta.dtype)
    for block, rows, f, params in outputs(estimator, theta, x, rng, samples):
        # The variance is computed first, since `mean` may overwrite the outputs f
        variances[block, rows] = estimator.model.likelihood.variance(params, f)
        means[block, rows] = estimator.model.likelihood.mean(params, f)
    return means, np.sqrt(variances)


@_prediction
def sample_targets(
    estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int = 10
) -> Array:
    """Draw targets (S, N, K) from the predictive distribution at rows `x`.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters (D,) that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples, then the targets; the same state gives the same weights for
        any rows.
    samples : int
        Number of draws S at each row, each with weights of its own.
    """
    heads = np.empty((samples, len(x), estimator.model.network.sizes[-1]), theta.dtype)
    params_of_blocks = {}
    for block, rows, f, params in outputs(estimator, theta, x, rng, samples):
        heads[block, rows] = f
        params_of_blocks[block.start] = (block, params)
    # Targets are drawn last, so that the weights are those of `sample_functions` for this rng
    draw = estimator.model.likelihood.draw
    targets = [
        draw(rng, params, heads[block]) for block, params in params_of_blocks.values()
    ]
    return np.concatenate(targets)


@_prediction
def predict_classes(
    estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int = 100
) -> ClassPredictive:
    """Return class probabilities at `x`, with aleatoric and epistemic uncertainty in nats (D29).

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws. Its likelihood must be categorical,
        or Bernoulli with a single output.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of weight samples S.

    Returns
    -------
    ClassPredictive
        Probabilities (N, C) of C classes, and uncertainties (N,).

    Raises
    ------
    ValueError
        If the likelihood is neither categorical nor Bernoulli with a single output.
    """
    likelihood = estimator.model.likelihood
    binary = (
        isinstance(likelihood, BernoulliLikelihood) and estimator.model.outputs == 1
    )
    if not binary and not isinstance(likelihood, CategoricalLikelihood):
        raise ValueError(
            "class probabilities need a categorical likelihood, or a Bernoulli one with a single "
            f"output; got {likelihood!r} with {estimator.model.outputs} outputs"
        )
    n_classes = 2 if binary else estimator.model.outputs
    proba = np.zeros((len(x), n_classes), theta.dtype)
    aleatoric = np.zeros(len(x), theta.dtype)
    for _, rows, f, params in outputs(estimator, theta, x, rng, samples):
        p = likelihood.mean(params, f)  # (S_b, B, K) probabilities
        if binary:
            p = np.concatenate([1.0 - p, p], axis=-1)
        proba[rows] += p.sum(axis=0)
        aleatoric[rows] += _entropy(p).sum(axis=0) / samples
    proba /= proba.sum(axis=1, keepdims=True)  # the sum was S, up to rounding
    return ClassPredictive(proba, aleatoric)


def _entropy(p: Array) -> Array:
    """Return the entropy, in nats, of probabilities `p` along the last axis, with 0 log 0 = 0."""
    return -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=-1)


@_prediction
def log_predictive_density(
    estimator: Source,
    theta: Array,
    x: Array,
    y: Array,
    *,
    rng: Generator,
    samples: int = 100,
) -> Array:
    """Return the log predictive density log E_q[P(y|x, w)] of each row, (N,), in nats (D5).

    The mean over samples is taken of densities, not of their logarithms, by a running logsumexp;
    with few samples the result is too low on average. Where the predictive is a Gaussian
    (`is_gaussian`), its joint density of all outputs is computed without samples.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x, y : ndarray (N, d_in), (N, K)
        Rows and their targets; classes are one-hot, or one column of 0 and 1.
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Number of weight samples S.
    """
    y = np.ascontiguousarray(MATRIX("y", y), theta.dtype)
    log_sum = np.full(len(x), -np.inf, theta.dtype)
    if is_gaussian(estimator):
        for rows, f, slopes, noise in _affine(estimator, theta, x):
            check_shape(f[None], y[rows])
            # Targets and slopes are divided by the noise: then no eigenvalue of the covariance is
            # below 1, and it can be inverted safely
            slopes /= noise[:, None]
            z = ((y[rows] - f) / noise)[..., None]
            # (B, K, K) covariance of y at each row, in units of the noise
            y_covariance = np.eye(len(noise)) + slopes @ slopes.swapaxes(1, 2)
            squares = np.sum(z * np.linalg.solve(y_covariance, z), axis=(1, 2))
            log_det = np.linalg.slogdet(2.0 * pi * y_covariance)[1]
            log_sum[rows] = -0.5 * (squares + log_det)  # Gaussian log density (D54)
            log_sum[rows] -= np.log(noise).sum()
        return log_sum
    for _, rows, f, params in outputs(estimator, theta, x, rng, samples):
        rowwise, _ = estimator.model.likelihood.log_density(params, f, y[rows])
        log_sum[rows] = np.logaddexp(log_sum[rows], logsumexp(rowwise, axis=0))
    return log_sum - log(samples)  # mean of S densities (D5)

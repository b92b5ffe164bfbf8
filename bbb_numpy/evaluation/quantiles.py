r"""Quantiles and prediction sets of the predictive mixture itself (D46).

The predictive distribution function is a mean over weight samples,
:math:`F(y|x) = \frac1S \sum_s F(y|x, w_s)`. Its inverse is neither the mean of the components'
quantiles nor a function of mean and standard deviation, so quantiles of skewed, heavy-tailed or
bimodal mixtures are right too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..numeric.layout import Array
from ..numeric.validation import ANY_NUMBERS, Numbers, accepts
from ..parts.likelihoods import HeteroscedasticLikelihood, Likelihood
from . import predictive
from .predictive import Source, blocks_of_rows, is_gaussian, outputs

__all__ = ["check_levels", "distribution_function", "likely_classes", "quantiles"]

# Half-widths of the brackets within which a quantile is searched for, in units of the largest
# scale: from 2 up to 2^511, whose square does not overflow yet
BRACKET_WIDTHS = (*(2.0 ** (2**k) for k in range(9)), 2.0**511)
# Largest last step towards a quantile of Gaussians, in units of the smallest scale: the error
# that it leaves is about its third power, 1e-15 of that scale
MAX_LAST_STEP = 1e-5
MAX_ROOT_STEPS = 30  # exact ones of `_gaussian_roots`, of which most mixtures need one
# Smallest level from which a root is first approached with Phi to 7.5e-8: the error of that step,
# 7.5e-8 over the density, is then below MAX_LAST_STEP, so that one exact step is left
MIN_ROUGH_LEVEL = 0.005
# Coefficients p, and b_5 to b_1 over sqrt(2 pi), of `_rough_cdf`
ROUGH_RATE = 0.2316419
ROUGH_SERIES = tuple(
    np.array([1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530])
    / sqrt(2.0 * pi)
)
# Size, in numbers, of the parameters of a block of rows: new memory for larger ones takes longer
# than drawing the weights anew for each block
BLOCK_PARAMETERS = 1_000_000
GAUSSIAN_BLOCK = (
    32_768  # numbers of an array of `_gaussian_roots`, which the cache holds
)


def check_levels(name: str, value: Any) -> Array:
    """Check that probabilities are in [0, 1], and return them as a float64 array () or (Q,).

    Parameters
    ----------
    name : str
        Name of the argument in the error message.
    value : float or array-like (Q,)
        One probability, or Q >= 1 of them.

    Raises
    ------
    ValueError
        If one is not in [0, 1], or the list is empty.
    """
    levels = ANY_NUMBERS(name, value).astype(np.float64)
    if levels.ndim > 1 or not levels.size or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(
            f"{name} must be a number between 0 and 1, or a list of them; got {value!r}"
        )
    return levels


# Checks of arguments, but theta may hold infinite numbers: quantiles are then nan
QUANTILE_ARGUMENTS = predictive.ARGUMENTS | {"theta": ANY_NUMBERS}


@accepts(**QUANTILE_ARGUMENTS)
def distribution_function(
    estimator: Source,
    theta: Array,
    x: Array,
    y: Array,
    *,
    rng: Generator,
    samples: int = 100,
) -> Array:
    """Return the predictive cumulative distribution function F(y|x, D) at targets, (N, K) (D46).

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    y : ndarray (N, K)
        Targets; F is that of each output by itself. They may be infinite.
    rng : numpy.random.Generator
        Draws the weight samples.
    samples : int
        Number of weight samples S.

    Raises
    ------
    TypeError
        For a likelihood without a distribution function.
    """
    from scipy import special  # SciPy is installed with the extra "learners"

    likelihood = estimator.model.likelihood
    shape = (len(x), estimator.model.outputs)
    y = Numbers(shape, finite=False)("y", y)
    total = np.zeros(shape)
    n_components, blocks = _components(estimator, theta, x, rng, samples)
    for _, rows, params in blocks:
        params = [param.astype(np.float64) for param in params]
        below = likelihood.cdf(special, y[rows].astype(np.float64), *params)
        total[rows] += np.where(_undefined(params), np.nan, below).sum(axis=0)
    return total / n_components  # mean of the components' CDFs (D46)


@accepts(**QUANTILE_ARGUMENTS)
def quantiles(
    estimator: Source,
    theta: Array,
    x: Array,
    q: Any,
    *,
    rng: Generator,
    samples: int = 100,
) -> Array:
    """Return quantiles (Q, N, K) of the predictive distribution of each output at rows `x` (D46).

    The quantile is the smallest y with F(y|x) >= q, of each output by itself. It is exact up to
    rounding for real targets, a whole number for counts, and 0 or 1 for targets of 0 and 1. For
    q = 0 it is the smallest possible target (-inf if real), for q = 1 the largest (inf, or 1).
    Quantiles of Student's t that are more than 7e153 scales from its location are infinite.

    Every quantile is a root of the mixture's distribution function, not a mean of its components'
    quantiles. It is found by Halley's method within a bracket for Gaussian noise (D46), by
    bisection for counts, and by a bracketing method for other real targets.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
        Model with its approximate posterior, or with draws.
    theta : ndarray
        Flat parameters that the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
        Inputs at which to predict.
    q : float or array-like (Q,)
        Probabilities between 0 and 1.
    rng : numpy.random.Generator
        Draws the weight samples.
    samples : int
        Number of weight samples S.

    Raises
    ------
    TypeError
        For a likelihood without a distribution function.
    """
    levels = np.atleast_1d(check_levels("q", q))
    likelihood, n_outputs = estimator.model.likelihood, estimator.model.outputs
    has_gaussian_noise: bool = type(likelihood).cdf is HeteroscedasticLikelihood.cdf
    out = np.empty((len(levels), len(x), n_outputs))
    order = np.argsort(levels)
    for rows, params in _row_blocks(estimator, theta, x, rng, samples):
        if has_gaussian_noise:
            roots = _gaussian_quantiles(likelihood, params, levels[order])
        else:
            of_levels = [_smallest(likelihood, params, q) for q in levels[order]]
            roots = np.stack(of_levels)
        # Rounding could make the quantile of one level exceed that of the next; the maximum of
        # all lower levels prevents this
        ordered = np.maximum.accumulate(roots)
        ordered[:, _undefined(params).any(axis=0)] = np.nan
        out[order, rows] = ordered.reshape(len(levels), -1, n_outputs)
    return out


@accepts(
    proba=Numbers((None, None), min_length=1), coverage=Numbers((), low=0.0, high=1.0)
)
def likely_classes(proba: Array, coverage: float) -> Array:
    """Return the smallest sets of classes whose probabilities sum to `coverage` or more.

    Classes are added from the most probable one on until their probabilities sum to `coverage`
    (D46). Of equally probable classes the first is added first. A set holds at least one class.

    Parameters
    ----------
    proba : ndarray (N, C)
        Probabilities of the classes; rows sum to 1.
    coverage : float
        Probability that a set must reach, in [0, 1].

    Returns
    -------
    ndarray (N, C) of bool
        True for the classes of each row's prediction set.
    """
    order = np.argsort(-proba, kind="stable")
    ordered = np.take_along_axis(proba, order, axis=1)
    # Total probability of each class and all less probable ones, summed from the smallest on, so
    # that rounding excludes no class of positive probability if coverage is 1
    remaining = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]
    chosen = remaining > 1.0 - coverage  # classes in the set (D46)
    chosen[:, 0] = True
    out = np.empty_like(chosen)
    np.put_along_axis(out, order, chosen, axis=1)
    return out


def _components(
    estimator: Source,
    theta: Array,
    x: Array,
    rng: Generator,
    samples: int,
    rng_is_spent: bool = False,
) -> tuple[int, Iterator[tuple[slice, slice, list[Array]]]]:
    """Return the number of mixture components, and an iterator over their parameters in blocks.

    A block is (slice of components, slice of rows, list of parameters). Each parameter, such as
    location or scale, is an array (S_b, B, K). Arguments are those of `outputs`.
    """
    if is_gaussian(estimator):
        p = predictive.predict(estimator, theta, x, rng=rng)
        return 1, iter([(slice(0, 1), slice(None), [p.mean[None], p.total[None]])])
    return samples, _drawn_components(estimator, theta, x, rng, samples, rng_is_spent)


def _drawn_components(
    estimator: Source,
    theta: Array,
    x: Array,
    rng: Generator,
    samples: int,
    rng_is_spent: bool,
) -> Iterator[tuple[slice, slice, list[Array]]]:
    """Yield the parameters of P(y|x, w), such as location and scale, for each weight sample.

    Arguments are those of `outputs`. A block is the slice of samples, the slice of rows, and the
    list of parameters, arrays (S_b, B, K) each that the next block may overwrite.
    """
    likelihood = estimator.model.likelihood
    drawn = outputs(estimator, theta, x, rng, samples, rng_is_spent)
    for block, rows, f, learned in drawn:
        shape = likelihood.mean(learned, f).shape
        params = likelihood.components(learned, f)
        yield block, rows, [np.broadcast_to(param, shape) for param in params]


def _row_blocks(
    estimator: Source, theta: Array, x: Array, rng: Generator, samples: int
) -> Iterator[tuple[slice, list[Array]]]:
    """Yield slices of B rows, and the parameters of the S components, float64 arrays (S, B * K).

    Entry b * K + k of the last axis is output k of row b.
    """
    n_outputs = estimator.model.outputs
    step = max(1, BLOCK_PARAMETERS // (samples * n_outputs))
    for rows in blocks_of_rows(len(x), step):
        # Each block starts from a copy of the generator, so that all rows have the same weights
        same_rng = copy.deepcopy(rng)
        n, blocks = _components(
            estimator, theta, x[rows], same_rng, samples, rng_is_spent=True
        )
        joined: list[Array] = []
        for components, rows_of_block, params in blocks:
            joined = joined or [np.empty((n, len(x[rows]), n_outputs)) for _ in params]
            for array, param in zip(joined, params, strict=True):
                array[components, rows_of_block] = param
        yield rows, [array.reshape(n, -1) for array in joined]


def _undefined(params: list[Array]) -> Any:
    """Return a mask that is True where any of `params`, arrays of equal shape, is nan."""
    return np.logical_or.reduce([np.isnan(param) for param in params])


def _gaussian_quantiles(
    likelihood: Likelihood, params: list[Array], levels: Array
) -> Array:
    """Return the quantiles (Q, M) of M mixtures of S Gaussians at `levels` (Q,) (D46).

    `params` are means and standard deviations, arrays (S, M). What Halley's method does not solve
    to rounding, and numbers that are not finite, go to the bracketing method.
    """
    mean, sd = params
    # Near F = 1, 1 - F is more precise than F: an upper quantile is minus a lower one of -y
    signs = np.where(levels > 0.5, -1.0, 1.0)[:, None]
    tails = np.minimum(levels, 1.0 - levels)[:, None]
    out = np.empty((len(levels), mean.shape[1]))
    n_columns = max(1, GAUSSIAN_BLOCK // (len(mean) * len(levels)))
    for columns in blocks_of_rows(mean.shape[1], n_columns):
        # (S, Q, M_b): every level is one more mixture, of -y in the upper half
        means = signs * mean[:, None, columns]
        scales = np.broadcast_to(sd[:, None, columns], means.shape)
        q = np.broadcast_to(tails, means.shape[1:])
        flat = (means.reshape(len(mean), -1), scales.reshape(len(mean), -1), q.ravel())
        out[:, columns] = signs * _gaussian_roots(*flat).reshape(q.shape)
    for index, level in enumerate(levels):
        unsolved = np.flatnonzero(np.isnan(out[index]))
        if len(unsolved):
            of_unsolved = [param[:, unsolved] for param in params]
            out[index, unsolved] = _smallest(likelihood, of_unsolved, level)
    return out


@np.errstate(all="ignore")
def _gaussian_roots(mean: Array, sd: Array, q: Array) -> Array:
    """Return the roots t (M,) of F(t) = q for M mixtures of S Gaussians, nan where none was found.

    Halley's method solves Phi^-1(F(t)) = Phi^-1(q) instead, which for a single Gaussian is linear
    in t. The root lies between the least and the largest quantile of the components, and between
    all t tried; a step out of that bracket is replaced by its middle (D46).

    Parameters
    ----------
    mean, sd : ndarray (S, M)
        Means and standard deviations of the components.
    q : ndarray (M,)
        Probabilities in [0, 1/2].
    """
    from scipy import special

    def exact_cdf(z: Array, bell: Array) -> Array:
        """Return Phi(z)."""
        below: Array = special.ndtr(z)
        return below

    n_mixtures = mean.shape[1]
    out = np.full(n_mixtures, np.nan)
    unsolved: Array = np.arange(n_mixtures)
    score = special.ndtri(q)  # Phi^-1(q)
    ends = score * sd + mean
    low, high = ends.min(axis=0), ends.max(axis=0)
    last_step = MAX_LAST_STEP * sd.min(axis=0)
    # The first t is the quantile of one Gaussian with the moments of the mixture
    centre = mean.mean(axis=0)
    variance = np.square(sd).mean(axis=0) + np.square(mean - centre).mean(axis=0)
    t = np.clip(centre + score * np.sqrt(variance), low, high)
    precision = 1.0 / sd
    if (q >= MIN_ROUGH_LEVEL).all():
        # A first step with Phi to 7.5e-8, since exact Phi is the dearest part of a step
        _, step, _ = _halley_step(t, mean, precision, score, _rough_cdf)
        nearer = t + step
        t = np.where((low < nearer) & (nearer < high), nearer, t)
    for _ in range(MAX_ROOT_STEPS):
        below, step, newton = _halley_step(t, mean, precision, score, exact_cdf)
        # Where F is flat the step may be short, but Newton's is long
        solved = np.maximum(np.abs(step), np.abs(newton)) <= last_step
        low = np.where(below < q, t, low)
        high = np.where(below < q, high, t)
        t = t + step
        out[unsolved[solved]] = t[solved]
        inside = (low < t) & (t < high)
        t = np.where(inside, t, 0.5 * (low + high))
        finished = solved | ~np.isfinite(t)
        if finished.all():
            break
        if 2 * finished.sum() >= len(t):  # go on with the others alone
            rest = np.flatnonzero(~finished)
            unsolved, score, q, t = unsolved[rest], score[rest], q[rest], t[rest]
            low, high, last_step = low[rest], high[rest], last_step[rest]
            mean, precision = mean[:, rest], precision[:, rest]
    return out


def _halley_step(
    t: Array,
    mean: Array,
    precision: Array,
    score: Array,
    cdf: Callable[[Array, Array], Array],
) -> tuple[Array, Array, Array]:
    """Return F(t), Halley's step from t, and Newton's, (M,) each, for M mixtures of S Gaussians.

    Parameters
    ----------
    t : ndarray (M,)
        Points at which the steps begin.
    mean, precision : ndarray (S, M)
        Means and inverse standard deviations of the components.
    score : ndarray (M,)
        Phi^-1(q).
    cdf : callable
        Function of z (S, M) and e^(-z^2 / 2) that returns Phi(z), for example exactly.
    """
    from scipy import special

    z = (t - mean) * precision
    bell = np.exp(-0.5 * z * z)
    below = cdf(z, bell).mean(axis=0)  # F(t) of the mixture (D46)
    weight = bell * precision
    # F' and F'' divided by the density of N(0, 1) at h = Phi^-1(F)
    h = special.ndtri(below)
    scale = np.exp(0.5 * h * h) / len(mean)
    first = scale * weight.sum(axis=0)
    second = -scale * np.einsum("sm,sm->m", weight * precision, z)
    newton = (score - h) / first
    curvature = second / first + h * first  # h'' / h'
    return below, newton / (1.0 + 0.5 * newton * curvature), newton  # D46


def _rough_cdf(z: Array, bell: Array) -> Array:
    """Return Phi(z) to 7.5e-8, from ``bell = e^(-z^2 / 2)`` (Abramowitz and Stegun, 26.2.17).

    It takes a third of the time of SciPy's `ndtr`: for z < 0, with u = 1 / (1 + p |z|),
    ``bell (b_1 u + b_2 u^2 + ... + b_5 u^5)``.
    """
    u = np.abs(z)
    u *= ROUGH_RATE
    u += 1.0
    np.reciprocal(u, out=u)
    tail = u * ROUGH_SERIES[0]
    for coefficient in ROUGH_SERIES[1:]:
        tail += coefficient
        tail *= u
    tail *= bell
    return np.where(z > 0.0, 1.0 - tail, tail)


def _smallest(likelihood: Likelihood, params: list[Array], q: float) -> Array:
    """Return the `q`-quantiles (M,) of M mixtures of S components; `params` are arrays (S, M)."""
    params = [np.ascontiguousarray(param.T) for param in params]  # (M, S) each
    if likelihood.target_kind == "class":
        return (params[0].mean(axis=1) > 1.0 - q).astype(float)  # D46: F(0) = 1 - p
    if likelihood.target_kind == "count":
        return _smallest_count(likelihood, params, q)
    # Near F = 1, 1 - F is more precise than F: an upper quantile is minus a lower one of -y
    if q > 0.5:
        return -_root(likelihood, params, -1.0, 1.0 - q)
    return _root(likelihood, params, 1.0, q)


def _root(likelihood: Likelihood, params: list[Array], sign: float, q: float) -> Array:
    """Return the `q`-quantiles (M,) of sign * y for M real mixtures, 0 <= q <= 0.5, `sign` 1 or -1.

    It is the root t of P(sign * y <= t) = q, and nan where a component is not finite. `params` are
    locations, scales and further parameters of S components, arrays (M, S) each.
    """
    from scipy import special
    from scipy.optimize.elementwise import find_root  # import takes half a second

    location, scale = sign * params[0], params[1]

    def excess(t: Array, rows: NDArray[np.intp]) -> Array:
        """Return P(sign * y <= t) - q for the mixtures with indices `rows`."""
        of_rows = [param[rows] for param in params]
        below = likelihood.cdf(special, sign * t[:, None], *of_rows, upper=sign < 0)
        return below.mean(axis=1) - q  # F(t) - q of the mixture (D46)

    # The root lies between two ends. Two of the widest scales below the least location, F is mostly
    # less than q; if not, the lower end moves farther down. At the largest location F is at least
    # 1/2 >= q, since the components are symmetric
    least, largest = location.min(axis=1), location.max(axis=1)
    widest = scale.max(axis=1)
    finite = np.isfinite(location).all(axis=1) & np.isfinite(scale).all(axis=1)
    low = np.full(len(location), -np.inf)
    high = np.full(len(location), np.inf)
    for width in (0.0, *BRACKET_WIDTHS):
        rows = np.flatnonzero(finite & np.isposinf(high))
        t = largest[rows] + width * widest[rows]
        high[rows] = np.where(excess(t, rows) >= 0, t, np.inf)
    for width in BRACKET_WIDTHS:
        rows = np.flatnonzero(finite & np.isneginf(low))
        t = least[rows] - width * widest[rows]
        low[rows] = np.where(excess(t, rows) < 0, t, -np.inf)
    without_root = np.where(np.isposinf(high), np.inf, -np.inf)
    out = np.where(finite, without_root, np.nan)
    rows = np.flatnonzero(finite & np.isfinite(low) & np.isfinite(high))
    if len(rows):
        out[rows] = find_root(excess, (low[rows], high[rows]), args=(rows,)).x
    return out


def _smallest_count(likelihood: Likelihood, params: list[Array], q: float) -> Array:
    """Return the `q`-quantiles (M,) of M mixtures of counts, whole numbers; nan if not finite.

    Each is the smallest count with F >= q. `params` are arrays (M, S), the first one the means of
    the S components; the quantile is nan if one of them is not finite.
    """
    from scipy import special

    means = params[0]
    finite: Any = np.isfinite(means).all(axis=1)
    if q == 1.0:
        return np.where(finite, np.inf, np.nan)
    params = [np.where(finite[:, None], param, 0.0) for param in params]

    def reached(count: Array) -> NDArray[np.bool_]:
        """Return a mask (M,) of the mixtures with F(count) >= q."""
        if q > 0.5:  # near F = 1, 1 - F is more precise than F
            above = likelihood.cdf(special, count[:, None], *params, upper=True)
            return above.mean(axis=1) <= 1.0 - q
        below = likelihood.cdf(special, count[:, None], *params)
        return below.mean(axis=1) >= q  # F of the mixture (D46)

    low: Array = np.full(len(means), -1.0)
    high: Array = np.ceil(params[0].max(axis=1))
    while not (enough := reached(high)).all():
        # Doubling `high` makes progress, since it is not 0 here: if all rates are 0, F(0) = 1
        high = np.where(enough, high, 2.0 * high)
    while True:
        middle = np.floor(0.5 * (low + high))
        # Beyond 2^53 not every whole number is a float, and the middle may equal one of the ends
        inside = (low < middle) & (middle < high)
        if not inside.any():
            return np.where(finite, high, np.nan)
        enough = reached(middle)
        high = np.where(inside & enough, middle, high)
        low = np.where(inside & ~enough, middle, low)

r"""Quantiles, intervals and sets of classes, of the predictive mixture itself (D46).

The predictive distribution function is a mean over weight samples,
:math:`F(y|x) = \frac1S \sum_s F(y|x, w_s)`. Its inverse is no mean of theirs, nor does it follow
from mean and standard deviation: mixtures that are skewed, heavy-tailed or two-humped stay so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..numeric.layout import Array
from ..numeric.validation import ANY_NUMBERS, Numbers, accepts
from ..parts.likelihoods import Likelihood
from . import predictive
from .predictive import BLOCK_NUMBERS, Source, blocks_of_rows, is_gaussian, outputs

__all__ = ["check_levels", "distribution_function", "likely_classes", "quantiles"]

# Widths of brackets around a root, in scales: from 2 to where squares would overflow
BRACKET_WIDTHS = (*(2.0 ** (2**k) for k in range(9)), 2.0**511)


def check_levels(name: str, value: Any) -> Array:
    """Return one probability as a float64 array (), or a list of them as (Q,).

    Parameters
    ----------
    name : str
        Of the argument, for the error.
    value : float or array-like (Q,)

    Raises
    ------
    ValueError
        Unless all are between 0 and 1, and there is one at least.
    """
    levels = ANY_NUMBERS(name, value).astype(np.float64)
    if levels.ndim > 1 or not levels.size or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(
            f"{name} must be a number between 0 and 1, or a list of them; got {value!r}"
        )
    return levels


# theta may hold infinite numbers, which make quantiles nan
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
    """Return F(y|x, D), the predictive probability of a target <= y (N, K) (D46).

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
    theta : ndarray
        What the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
    y : ndarray (N, K)
        Targets, each output by itself; they may be infinite.
    rng : numpy.random.Generator
        Draws the weight samples.
    samples : int
        Number of weight samples.

    Raises
    ------
    TypeError
        For a likelihood without a distribution function.
    """
    from scipy import special  # installed with the extra "learners"

    likelihood = estimator.model.likelihood
    shape = (len(x), estimator.model.outputs)
    y = Numbers(shape, finite=False)("y", y)
    total = np.zeros(shape)
    n_components, blocks = _components(estimator, theta, x, rng, samples)
    for _, rows, params in blocks:
        below = likelihood.cdf(special, y[rows].astype(np.float64), *params)
        total[rows] += np.where(_undefined(params), np.nan, below).sum(axis=0)
    return total / n_components  # D46


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
    """Return the quantiles of the predictive distribution at every row of `x`, (Q, N, K) (D46).

    The smallest y with F(y|x) >= q, of each output by itself: of real targets to rounding, of
    counts a whole number, of 0 and 1 one of the two. That of q = 0 is the least possible target,
    -inf for real ones, that of q = 1 inf, or 1. Student's t with so few degrees of freedom that a
    quantile is beyond 7e153 scales has an infinite one.

    Every quantile is a root of the mixture's distribution function, not a mean of those of its
    components: bisection for counts, a bracketed root for real targets.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ..., or DrawnWeights
    theta : ndarray
        What the estimator learned; for `DrawnWeights` the draws (T, D).
    x : ndarray (N, d_in)
    q : float or array-like (Q,)
        Probabilities between 0 and 1.
    rng : numpy.random.Generator
        Draws the weight samples.
    samples : int
        Number of weight samples.

    Raises
    ------
    TypeError
        For a likelihood without a distribution function.
    """
    levels = np.atleast_1d(check_levels("q", q))
    likelihood, n_outputs = estimator.model.likelihood, estimator.model.outputs
    out = np.empty((len(levels), len(x), n_outputs))
    order = np.argsort(levels)
    for rows, params in _row_blocks(estimator, theta, x, rng, samples):
        roots = [_smallest(likelihood, params, level) for level in levels[order]]
        # roots are rounded; no two may cross
        ordered = np.maximum.accumulate(np.stack(roots))
        ordered[:, _undefined(params).any(axis=1)] = np.nan
        out[order, rows] = ordered.reshape(len(levels), -1, n_outputs)
    return out


@accepts(
    proba=Numbers((None, None), min_length=1), coverage=Numbers((), low=0.0, high=1.0)
)
def likely_classes(proba: Array, coverage: float) -> Array:
    """Return the smallest sets of classes that hold `coverage` of the probability, bool (N, C).

    The most probable classes of each row, until together they have it (D46). Of equally probable
    ones the first come first; one class at least.

    Parameters
    ----------
    proba : ndarray (N, C)
        Rows sum to 1.
    coverage : float
        Between 0 and 1.
    """
    order = np.argsort(-proba, kind="stable")
    ordered = np.take_along_axis(proba, order, axis=1)
    # What the class and all less probable ones have: summed from the small end, so that with
    # coverage=1 no possible class is lost to rounding
    remaining = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]
    chosen = remaining > 1.0 - coverage  # D46
    chosen[:, 0] = True
    out = np.empty_like(chosen)
    np.put_along_axis(out, order, chosen, axis=1)
    return out


def _components(
    estimator: Source, theta: Array, x: Array, rng: Generator, samples: int
) -> tuple[int, Iterator[tuple[slice, slice, list[Array]]]]:
    """Return the number of components of the mixture, and blocks of their parameters.

    A block is (components, rows, parameters (S_b, B, K) each, such as location and scale).
    """
    if is_gaussian(estimator):
        p = predictive.predict(estimator, theta, x, rng=rng)
        return 1, iter([(slice(0, 1), slice(None), [p.mean[None], p.total[None]])])
    return samples, _drawn_components(estimator, theta, x, rng, samples)


def _drawn_components(
    estimator: Source, theta: Array, x: Array, rng: Generator, samples: int
) -> Iterator[tuple[slice, slice, list[Array]]]:
    """Yield the parameters of the distributions of y given each weight sample, block by block.

    Arguments are those of `outputs`. Yields the slice of samples, the slice of rows, and the
    parameters, float64 arrays (S_b, B, K) each.
    """
    likelihood = estimator.model.likelihood
    for block, rows, f, learned in outputs(estimator, theta, x, rng, samples):
        shape = likelihood.mean(learned, f).shape
        params = likelihood.components(learned, f)
        yield (
            block,
            rows,
            [np.broadcast_to(param, shape).astype(np.float64) for param in params],
        )


def _row_blocks(
    estimator: Source, theta: Array, x: Array, rng: Generator, samples: int
) -> Iterator[tuple[slice, list[Array]]]:
    """Yield blocks of rows with parameters of components, (M, S) each for M = rows x outputs."""
    n_outputs = estimator.model.outputs
    step = max(1, BLOCK_NUMBERS // (samples * n_outputs))
    for rows in blocks_of_rows(len(x), step):
        # The same state for every block: the same weight samples, and so the same mixture
        same_rng = copy.deepcopy(rng)
        n, blocks = _components(estimator, theta, x[rows], same_rng, samples)
        joined: list[Array] = []
        for components, rows_of_block, params in blocks:
            joined = joined or [np.empty((len(x[rows]), n_outputs, n)) for _ in params]
            for array, param in zip(joined, params, strict=True):
                array[rows_of_block, :, components] = np.moveaxis(param, 0, -1)
        yield rows, [array.reshape(-1, n) for array in joined]


def _undefined(params: list[Array]) -> Any:
    """Return where any of the parameters, arrays of one shape, is nan."""
    return np.logical_or.reduce([np.isnan(param) for param in params])


def _smallest(likelihood: Likelihood, params: list[Array], q: float) -> Array:
    """Return the smallest target (M,) with F >= q, of mixtures with parameters (M, S)."""
    if likelihood.target_kind == "class":
        return (params[0].mean(axis=1) > 1.0 - q).astype(float)  # D46: F(0) = 1 - p
    if likelihood.target_kind == "count":
        return _smallest_count(likelihood, params, q)
    if q > 0.5:  # in the tail, where 1 - F has all its digits: the root in -y
        return -_root(likelihood, params, -1.0, 1.0 - q)
    return _root(likelihood, params, 1.0, q)


def _root(likelihood: Likelihood, params: list[Array], sign: float, q: float) -> Array:
    """Return t (M,) with P(sign y <= t) = q, 0 <= q <= 0.5; nan where a component is not finite."""
    from scipy import special
    from scipy.optimize.elementwise import find_root  # half a second, for this alone

    location, scale = sign * params[0], params[1]

    def excess(t: Array, rows: NDArray[np.intp]) -> Array:
        of_rows = [param[rows] for param in params]
        below = likelihood.cdf(special, sign * t[:, None], *of_rows, upper=sign < 0)
        return below.mean(axis=1) - q  # D46

    # The root is between a number so far below the least location that F is less than q, mostly
    # two of the widest scales, and the largest location, where symmetric components reach 1/2
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
    """Return the smallest whole number (M,) with F >= q; nan where a mean is not finite."""
    from scipy import special

    means = params[0]
    finite: Any = np.isfinite(means).all(axis=1)
    if q == 1.0:
        return np.where(finite, np.inf, np.nan)
    params = [np.where(finite[:, None], param, 0.0) for param in params]

    def reached(count: Array) -> NDArray[np.bool_]:
        if q > 0.5:  # in the tail, where 1 - F has all its digits
            above = likelihood.cdf(special, count[:, None], *params, upper=True)
            return above.mean(axis=1) <= 1.0 - q
        below = likelihood.cdf(special, count[:, None], *params)
        return below.mean(axis=1) >= q  # D46

    low: Array = np.full(len(means), -1.0)
    high: Array = np.ceil(params[0].max(axis=1))
    while not (enough := reached(high)).all():
        # not 0: of a rate of 0 that is enough
        high = np.where(enough, high, 2.0 * high)
    while True:
        middle = np.floor(0.5 * (low + high))
        # beyond 2^53 not every whole number between is a float
        inside = (low < middle) & (middle < high)
        if not inside.any():
            return np.where(finite, high, np.nan)
        enough = reached(middle)
        high = np.where(inside & enough, middle, high)
        low = np.where(inside & ~enough, middle, low)

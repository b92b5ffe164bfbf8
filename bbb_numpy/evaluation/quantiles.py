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
from .predictive import Source, is_gaussian, outputs

__all__ = ["check_levels", "distribution_function", "likely_classes", "quantiles"]

BLOCK = 4_000_000  # at most about this many numbers of components at once
# In scales, from 2 to where squares would overflow
WIDTHS = (*(2.0 ** (2**k) for k in range(9)), 2.0**511)


def check_levels(name: str, value: Any) -> Array:
    """Return one probability, or a list of some, as a float64 array () or (Q,), or raise."""
    levels = ANY_NUMBERS(name, value).astype(np.float64)
    if levels.ndim > 1 or not levels.size or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(
            f"{name} must be a number between 0 and 1, or a list of some; got {value!r}"
        )
    return levels


# of which infinite ones make quantiles nan
RULES = predictive.RULES | {"theta": ANY_NUMBERS}


@accepts(**RULES)
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

    `y` (N, K) is judged of each output by itself, infinite numbers too; the other arguments are
    those of `predictive.predict`. A likelihood without a distribution function raises TypeError.
    """
    from scipy import special  # the learners' extra

    likelihood, shape = estimator.model.likelihood, (len(x), estimator.model.outputs)
    y, total = Numbers(shape, finite=False)("y", y), np.zeros(shape)
    count, found = _components(estimator, theta, x, rng, samples)
    for _, rows, parts in found:
        below = likelihood.cdf(special, y[rows].astype(np.float64), *parts)
        total[rows] += np.where(_undefined(parts), np.nan, below).sum(axis=0)
    return total / count  # D46


@accepts(**RULES)
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
    quantile is beyond 7e153 scales has an infinite one. `q` (Q,) lies between 0 and 1; the other
    arguments are those of `distribution_function`.
    """
    levels = np.atleast_1d(check_levels("q", q))
    likelihood, width = estimator.model.likelihood, estimator.model.outputs
    out = np.empty((len(levels), len(x), width))
    order = np.argsort(levels)
    for rows, parts in _row_blocks(estimator, theta, x, rng, samples):
        found = np.stack(
            [_smallest(likelihood, parts, level) for level in levels[order]]
        )
        found = np.maximum.accumulate(found)  # roots are rounded; no two may cross
        found[:, _undefined(parts).any(axis=1)] = np.nan
        out[order, rows] = found.reshape(len(levels), -1, width)
    return out


@accepts(
    proba=Numbers((None, None), min_length=1), coverage=Numbers((), low=0.0, high=1.0)
)
def likely_classes(proba: Array, coverage: float) -> Array:
    """Return the smallest sets of classes that hold `coverage` of the probability, bool (N, C).

    The most probable classes of each row of `proba` (N, C), until together they have it (D46). Of
    equally probable ones the first come first; one class at least.
    """
    order = np.argsort(-proba, kind="stable")
    ordered = np.take_along_axis(proba, order, axis=1)
    # What the class and all less probable ones have: summed from the small end, so that with
    # coverage=1 no possible class is lost to rounding
    rest = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]
    chosen = rest > 1.0 - coverage  # D46
    chosen[:, 0] = True
    out = np.empty_like(chosen)
    np.put_along_axis(out, order, chosen, axis=1)
    return out


def _components(
    estimator: Source, theta: Array, x: Array, rng: Generator, samples: int
) -> tuple[int, Iterator[tuple[slice, slice, list[Array]]]]:
    """Return how many distributions of y are mixed, and what they are made of, (S, B, K) each."""
    likelihood = estimator.model.likelihood

    def drawn() -> Iterator[tuple[slice, slice, list[Array]]]:
        for which, rows, f, params in outputs(estimator, theta, x, rng, samples):
            shape, parts = (
                likelihood.mean(params, f).shape,
                likelihood.components(params, f),
            )
            wide = [np.broadcast_to(part, shape).astype(np.float64) for part in parts]
            yield which, rows, wide

    if is_gaussian(estimator):
        p = predictive.predict(estimator, theta, x, rng=rng)
        return 1, iter([(slice(0, 1), slice(None), [p.mean[None], p.total[None]])])
    return samples, drawn()


def _row_blocks(
    estimator: Source, theta: Array, x: Array, rng: Generator, samples: int
) -> Iterator[tuple[slice, list[Array]]]:
    """Yield blocks of rows with their components, (M, S) each for M = rows times outputs."""
    width = estimator.model.outputs
    step = max(1, BLOCK // (samples * width))
    for start in range(0, len(x), step):
        rows, joined = slice(start, start + step), list[Array]()
        # The same state for every block: the same weight samples, and so the same mixture
        mixed, found = _components(
            estimator, theta, x[rows], copy.deepcopy(rng), samples
        )
        for which, some, parts in found:
            joined = joined or [np.empty((len(x[rows]), width, mixed)) for _ in parts]
            for into, part in zip(joined, parts, strict=True):
                into[some, :, which] = np.moveaxis(part, 0, -1)
        yield rows, [array.reshape(-1, mixed) for array in joined]


def _undefined(parts: list[Array]) -> Any:
    """Return where a number of a distribution is nan."""
    return np.logical_or.reduce([np.isnan(part) for part in parts])


def _smallest(likelihood: Likelihood, parts: list[Array], q: float) -> Array:
    """Return the smallest target (M,) with F >= q, of mixtures with components (M, S)."""
    if likelihood.target_kind == "class":
        return (parts[0].mean(axis=1) > 1.0 - q).astype(float)  # D46: F(0) = 1 - p
    if likelihood.target_kind == "count":
        return _smallest_count(likelihood, parts, q)
    if q > 0.5:  # in the tail, where 1 - F has all its digits: the root in -y
        return -_root(likelihood, parts, -1.0, 1.0 - q)
    return _root(likelihood, parts, 1.0, q)


def _root(likelihood: Likelihood, parts: list[Array], sign: float, q: float) -> Array:
    """Return t (M,) with P(sign y <= t) = q, 0 <= q <= 0.5; nan where a component is not finite."""
    from scipy import special
    from scipy.optimize.elementwise import find_root  # half a second, for this alone

    location, scale = sign * parts[0], parts[1]

    def excess(t: Array, row: NDArray[np.intp]) -> Array:
        some = [part[row] for part in parts]
        below = likelihood.cdf(special, sign * t[:, None], *some, upper=sign < 0)
        return below.mean(axis=1) - q  # D46

    # Between a place so far below the least location that F is less than q, mostly two of the
    # widest scales, and the largest location, where symmetric components have reached 1/2
    least, most, widest = location.min(axis=1), location.max(axis=1), scale.max(axis=1)
    finite = np.isfinite(location).all(axis=1) & np.isfinite(scale).all(axis=1)
    low, high = np.full(len(location), -np.inf), np.full(len(location), np.inf)
    for width in (0.0, *WIDTHS):
        rows = np.flatnonzero(finite & np.isposinf(high))
        there = most[rows] + width * widest[rows]
        high[rows] = np.where(excess(there, rows) >= 0, there, np.inf)
    for width in WIDTHS:
        rows = np.flatnonzero(finite & np.isneginf(low))
        there = least[rows] - width * widest[rows]
        low[rows] = np.where(excess(there, rows) < 0, there, -np.inf)
    out = np.where(finite, np.where(np.isposinf(high), np.inf, -np.inf), np.nan)
    rows = np.flatnonzero(finite & np.isfinite(low) & np.isfinite(high))
    if len(rows):
        out[rows] = find_root(excess, (low[rows], high[rows]), args=(rows,)).x
    return out


def _smallest_count(likelihood: Likelihood, parts: list[Array], q: float) -> Array:
    """Return the smallest whole number (M,) with F >= q; nan where a mean is not finite."""
    from scipy import special

    means = parts[0]
    finite: Any = np.isfinite(means).all(axis=1)
    if q == 1.0:
        return np.where(finite, np.inf, np.nan)
    parts = [np.where(finite[:, None], part, 0.0) for part in parts]

    def reached(count: Array) -> NDArray[np.bool_]:
        if q > 0.5:  # in the tail, where 1 - F has all its digits
            above = likelihood.cdf(special, count[:, None], *parts, upper=True)
            return above.mean(axis=1) <= 1.0 - q
        return likelihood.cdf(special, count[:, None], *parts).mean(axis=1) >= q  # D46

    low: Array = np.full(len(means), -1.0)
    high: Array = np.ceil(parts[0].max(axis=1))
    while not (enough := reached(high)).all():
        # not 0: of a rate of 0 that is enough
        high = np.where(enough, high, 2.0 * high)
    while True:
        middle = np.floor(0.5 * (low + high))
        # beyond 2^53 not every number between is one
        inside = (low < middle) & (middle < high)
        if not inside.any():
            return np.where(finite, high, np.nan)
        enough = reached(middle)
        high = np.where(inside & enough, middle, high)
        low = np.where(inside & ~enough, middle, low)

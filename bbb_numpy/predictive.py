"""The posterior predictive (floor 4): means, deviations and functions, in bounded memory.

The predictive distribution integrates over weights, P(y|x, D) = E_q[P(y|x, w)], here by
S weight samples. By the law of total variance (D4) ::

    Var[y] = Var_q[E[y|w]]   +  E_q[Var[y|w]]
             epistemic^2        aleatoric^2

"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arguments import whole
from .gradients import Reparameterised
from .numerics import logsumexp
from .workspace import Workspace

__all__ = ["Predictive", "log_predictive_density", "predict", "sample_functions", "sample_targets"]

Array = NDArray[Any]
BLOCK_NUMBERS = 4_000_000  # at most about this many numbers in one block of activations


class Predictive(NamedTuple):
    """Moments of the predictive distribution, (N, K) each, in units of y."""

    mean: Array
    epistemic: Array  # deviation of the mean between weight samples: falls with more data
    aleatoric: Array  # deviation of y around one function: does not

    @property
    def total(self) -> Array:
        """Deviation of a new y: sqrt(epistemic^2 + aleatoric^2) (D4)."""
        return np.hypot(self.epistemic, self.aleatoric)


def _weight_blocks(
    estimator: Reparameterised, theta: Array, rng: np.random.Generator, samples: int
) -> Iterator[Array]:
    """Draw `samples` weight vectors, a block (S_b, P) at a time.

    The cut depends on the network alone, so the functions drawn from one generator state do
    not depend on the rows at which they are evaluated.
    """
    whole("samples", samples, 1)
    size = max(estimator.model.layout.size, 1)
    block = int(np.clip(BLOCK_NUMBERS // (4 * size), 1, 256))
    work = Workspace()
    for begin in range(0, samples, block):
        noise = estimator.draw(rng, min(block, samples - begin), theta.dtype, work)
        yield estimator.weights(theta, noise, work)


def _row_blocks(estimator: Reparameterised, samples: int, rows: int) -> list[slice]:
    width = max(estimator.model.network.sizes)
    block = max(1, BLOCK_NUMBERS // (samples * width))
    return [slice(begin, begin + block) for begin in range(0, rows, block)]


def _outputs(
    estimator: Reparameterised,
    theta: Array,
    x: Array,
    rng: np.random.Generator,
    samples: int,
) -> Iterator[tuple[slice, slice, Array]]:
    """Yield (sample slice, row slice, outputs (S_b, B, K)) until all S x N are covered."""
    x = np.ascontiguousarray(x, theta.dtype)
    width = estimator.model.network.sizes[0]
    if x.ndim != 2 or x.shape[1] != width:
        raise ValueError(f"x must have shape (rows, {width}); got {x.shape}")
    begin, work = 0, Workspace()
    for w in _weight_blocks(estimator, theta, rng, samples):
        for rows in _row_blocks(estimator, len(w), len(x)):
            yield slice(begin, begin + len(w)), rows, estimator.model.predict(w, x[rows], work)
        begin += len(w)


def predict(
    estimator: Reparameterised,
    theta: Array,
    x: Array,
    *,
    rng: np.random.Generator,
    samples: int = 100,
) -> Predictive:
    """Return mean, epistemic and aleatoric deviation at every row of `x` (N, d_in).

    Memory does not grow with `samples`: blocks of samples are merged into running moments
    (Chan, Golub and LeVeque 1983), so that 10,000 samples at a million rows need little
    more than their three results.

    Parameters
    ----------
    estimator : Reparameterised
    theta : ndarray
    x : ndarray (N, d_in)
    rng : numpy.random.Generator
        Draws the weight samples; the same state gives the same functions for any rows.
    samples : int
        Weight samples S >= 1. With one sample the epistemic deviation is 0.

    Returns
    -------
    Predictive
    """
    shape = (len(x), estimator.model.outputs)
    mean, squares, variance = (np.zeros(shape, theta.dtype) for _ in range(3))
    params = estimator.layout.views(theta)
    for seen, rows, f in _outputs(estimator, theta, x, rng, samples):
        old, new = seen.start, seen.stop - seen.start
        block_mean = f.mean(axis=0)
        aleatoric = np.broadcast_to(estimator.model.likelihood.variance(params, f), f.shape)
        variance[rows] += aleatoric.mean(axis=0) * (new / samples)
        f -= block_mean
        shift = block_mean - mean[rows]
        squares[rows] += np.einsum("sbk,sbk->bk", f, f) + shift**2 * (old * new / (old + new))
        mean[rows] += shift * (new / (old + new))
    return Predictive(mean, np.sqrt(squares / max(samples - 1, 1)), np.sqrt(variance))


def sample_functions(
    estimator: Reparameterised,
    theta: Array,
    x: Array,
    *,
    rng: np.random.Generator,
    samples: int = 10,
) -> Array:
    """Return `samples` functions drawn from q, evaluated at `x`: (S, N, K).

    One weight sample serves all rows, so each [s] is one function, not pointwise noise.
    """
    out = np.empty((samples, len(x), estimator.model.outputs), theta.dtype)
    for which, rows, f in _outputs(estimator, theta, x, rng, samples):
        out[which, rows] = f
    return out


def sample_targets(
    estimator: Reparameterised,
    theta: Array,
    x: Array,
    *,
    rng: np.random.Generator,
    samples: int = 10,
) -> Array:
    """Return draws from the predictive distribution of y at `x`: (S, N, K)."""
    f = sample_functions(estimator, theta, x, rng=rng, samples=samples)
    return estimator.model.likelihood.draw(rng, estimator.layout.views(theta), f)


def log_predictive_density(
    estimator: Reparameterised,
    theta: Array,
    x: Array,
    y: Array,
    *,
    rng: np.random.Generator,
    samples: int = 100,
) -> Array:
    """Return log P(y|x, D) = log E_q[P(y|x, w)] of each row (N,), in nats (D5).

    The mean over samples is taken of densities, not of their logarithms, by a running
    logsumexp; it is a lower estimate for few samples.
    """
    y = np.ascontiguousarray(y, theta.dtype)
    params = estimator.layout.views(theta)
    log_sum, work = np.full(len(x), -np.inf, theta.dtype), Workspace()
    for _, rows, f in _outputs(estimator, theta, x, rng, samples):
        rowwise, _ = estimator.model.likelihood.log_density(params, f, y[rows], work)
        log_sum[rows] = np.logaddexp(log_sum[rows], logsumexp(rowwise, axis=0))
    return log_sum - np.log(samples)

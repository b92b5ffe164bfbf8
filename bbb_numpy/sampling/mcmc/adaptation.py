r"""Warm-up: the step size by dual averaging, the metric from windows of draws (M11, M12).

Only during warm-up: a kernel that goes on learning from its own past is no Markov chain, and need
not leave the target as it is. All chains share what is learned from all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ...numeric.layout import Array
from ...numeric.validation import Optional, proper_fraction
from .leapfrog import Phase, hamiltonian, leapfrog
from .metrics import DenseMetric, DiagonalMetric, Metric, Scaled
from .states import Info, State, Target, init

__all__ = [
    "Adaptable",
    "Adaptation",
    "DualAveraging",
    "Moments",
    "first_step_size",
    "windows",
]

Search = Callable[[float], float]


class DualAveraging(NamedTuple):
    """Nesterov's dual averaging of log eps, as Hoffman and Gelman (2014) use it (M11)."""

    anchor: float  # log eps_0, towards which the steps are drawn
    log_step: float  # for the next draw
    log_mean: float  # the average, for after warm-up
    error: float  # running mean of (wanted - seen acceptance)
    draws: int

    @classmethod
    def start(cls, step_size: float) -> DualAveraging:
        """Begin at `step_size`."""
        return cls(log(step_size), log(step_size), log(step_size), 0.0, 0)

    def update(self, miss: float) -> DualAveraging:
        r"""Learn from one draw whose acceptance missed the wanted one by `miss` (M11).

        With t the number of draws so far ::

            error <- (1 - w) error + w (wanted - seen),     w = 1 / (t + 10)
            log eps <- log eps_0 - error sqrt(t) / 0.1
            mean <- t^-0.75 log eps + (1 - t^-0.75) mean

        They use 0.05, with which the last 50 draws of a warm-up still swing about (measured for
        Langevin: an acceptance of about 0.7 for a wanted 0.574).
        Their anchor is 10 eps_0, to try large steps early; here `first_step_size` has found
        eps_0, and the factor would end a short warm-up with a step many times too large.
        """
        count = self.draws + 1
        weight = 1.0 / (count + 10.0)
        error = (1.0 - weight) * self.error + weight * miss
        log_step = self.anchor - error * sqrt(count) / 0.1  # M11
        log_step = min(max(log_step, -60.0), 60.0)
        share = count**-0.75
        log_mean = share * log_step + (1.0 - share) * self.log_mean
        return DualAveraging(self.anchor, log_step, log_mean, error, count)


class Moments(NamedTuple):
    """Running moments of the draws of a window, by Welford's updates.

    Deviations are from each chain's own mean. Chains of a network sit in different modes, which
    permute its units: the distance between these says nothing about the shape of one of them.
    """

    draws: int
    mean: Array  # (S, D)
    squares: Array  # (D,), or (D, D): summed over draws and chains

    @classmethod
    def start(cls, like: Array, dense: bool) -> Moments:
        """Begin with no draws of positions (S, D)."""
        size = like.shape[1]
        return cls(0, np.zeros(like.shape), np.zeros((size, size) if dense else size))

    def update(self, position: Array) -> Moments:
        """Add one draw of every chain."""
        count = self.draws + 1
        before = position - self.mean
        mean = self.mean + before / count
        after = position - mean
        new = (
            before.T @ after
            if self.squares.ndim == 2
            else np.einsum("sd,sd->d", before, after)
        )
        return Moments(count, mean, self.squares + new)

    def metric(self, dtype: Any) -> Metric:
        """Return the metric of these draws, one or more, drawn towards 1e-3 by five more (M12).

        The five pseudo-draws are Stan's; they matter for short windows alone.
        """
        seen = (self.draws - 1) * len(self.mean)
        if self.squares.ndim == 1:
            return DiagonalMetric(((self.squares + 5e-3) / (seen + 5.0)).astype(dtype))
        covariance = 0.5 * (self.squares + self.squares.T)
        covariance[np.diag_indices_from(covariance)] += 5e-3  # M12
        # with fewer draws than coordinates it is singular but for the pseudo-draws: keep them
        # above the rounding of the dtype
        largest = float(np.finfo(dtype).eps) * float(np.trace(covariance))
        covariance[np.diag_indices_from(covariance)] += 10.0 * largest
        return DenseMetric((covariance / (seen + 5.0)).astype(dtype))


def windows(warm_up: int) -> tuple[int, ...]:
    """Return the draws after which the metric is renewed, the first being where windows begin.

    Much as Stan: 75 draws for the step size alone, windows of 25, 50, 100, ... draws, then 50
    draws for the step size under the last metric; in the proportions 15, 75, 10 % if that does
    not fit; no window at all for fewer than 20.
    """
    if warm_up < 20:
        return ()
    first, last, size = 75, 50, 25
    if first + last + size > warm_up:  # one window
        first, last, size = int(0.15 * warm_up), int(0.1 * warm_up), warm_up
    ends, end = [first], warm_up - last
    while ends[-1] < end:
        after = ends[-1] + size
        ends.append(end if after + 2 * size > end else after)
        size *= 2
    return tuple(ends)


def first_step_size(
    target: Target, rng: Generator, metric: Metric, state: State, step_size: float
) -> float:
    """Double or halve `step_size` until one leapfrog step is accepted by 80 % on average (M11)."""
    momentum = metric.draw_momentum(rng, state.position)
    phase = Phase(state.position, momentum, state.log_density, state.gradient)
    before = hamiltonian(metric, phase)
    direction = 0
    for _ in range(60):
        after = hamiltonian(metric, leapfrog(target, metric, phase, step_size))
        good = np.exp(np.minimum(0.0, before - after)).mean() > 0.8
        if direction == 0:
            direction = 1 if good else -1
        elif good != (direction == 1):
            break
        step_size *= 2.0**direction
    return step_size


class Adaptation(NamedTuple):
    """A warm-up under way."""

    kernel: Any  # as it is to be used for the next draw; after the last one: as found
    done: int
    warm_up: int
    target_accept: float | None  # None: everything is accepted
    averaging: DualAveraging
    moments: Moments
    # of a path, where it is learned: `chees.PathLength`, `microcanonical.Decoherence`
    length: Any

    def update(
        self, target: Target, rng: Generator, state: Any, info: Info
    ) -> Adaptation:
        """Learn from one draw, `state`, whose step did what `info` says (M11, M12, D47, D50)."""
        kernel, length, moments, done = (
            self.kernel,
            self.length,
            self.moments,
            self.done + 1,
        )
        metric = kernel.metric
        miss = kernel.adaptation_error(target, rng, state, info, self.target_accept)
        averaging = self.averaging.update(miss)
        step_size = exp(averaging.log_step)
        ends = windows(self.warm_up)
        inside = bool(ends) and ends[0] < done <= ends[-1]
        if inside:
            moments = moments.update(state.position)
        if length is not None:
            length = length.learned(kernel, state, info, step_size, inside)
        if done in ends[1:]:
            metric = moments.metric(state.position.dtype)
            search = partial(first_step_size, target, rng, metric, state)
            step_size = kernel.first_step_size(search, exp(averaging.log_mean), state)
            averaging = DualAveraging.start(step_size)
            if length is not None:
                edge = (done == ends[1], done == ends[-1])
                length = length.renewed(kernel, moments, step_size, *edge)
            moments = Moments.start(state.position, moments.squares.ndim == 2)
        last = done == self.warm_up
        if last:
            step_size = exp(averaging.log_mean)
        found = () if length is None else (length.found(last),)
        tuned = kernel.tuned(step_size, metric, *found)
        return Adaptation(
            tuned, done, self.warm_up, self.target_accept, averaging, moments, length
        )


class Adaptable(Scaled):
    """What kernels with a step size and a metric have in common."""

    target_accept: float | None
    # of an unadjusted kernel: that of draws above which a warning says so
    max_bias: float = 0.0
    remedy: str = ""  # and what makes it smaller

    def init(self, target: Target, position: Array) -> Any:
        return init(target, position)

    def adapt(
        self,
        target: Target,
        rng: Generator,
        state: Any,
        warm_up: int,
        *,
        dense: bool = False,
        target_accept: float | None = None,
    ) -> Adaptation | None:
        """Begin a warm-up of `warm_up` draws from `state`; None if there is nothing to adapt.

        `dense` learns a full matrix instead of a diagonal; `target_accept` is by default the
        kernel's own.
        """
        wanted = self.target_accept if target_accept is None else target_accept
        wanted = Optional(proper_fraction)("target_accept", wanted)
        if target_accept is not None and getattr(self, "unadjusted", False):
            raise ValueError(
                f"target_accept says nothing to {type(self).__name__}, which accepts everything; "
                f"its steps become smaller by {self.remedy}"
            )
        metric = self.metric_for(state.position)
        search = partial(first_step_size, target, rng, metric, state)
        step_size = self.first_step_size(search, None, state)
        length, *found = self.init_length(state, step_size)
        kernel, moments = (
            self.tuned(step_size, metric, *found),
            Moments.start(state.position, dense),
        )
        averaging = DualAveraging.start(step_size)
        return Adaptation(kernel, 0, warm_up, wanted, averaging, moments, length)

    def first_step_size(
        self, search: Search, begin: float | None, state: State
    ) -> float:
        """Return where dual averaging begins, at first (`begin` None) and under every new metric.

        `search` is `first_step_size` of the state and the metric.
        """
        return search(self.step_size if begin is None else begin)

    def init_length(self, state: Any, step_size: float) -> tuple[Any, ...]:
        """Return what is to learn the length of paths, and the first one; None if it is not."""
        return (None,)

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, wanted: Any
    ) -> float:
        """Return what dual averaging is to bring to 0: positive if the step is too large (M11)."""
        return float(wanted - float(np.mean(info.acceptance)))


NAMED = {
    "state": {
        "Adaptation": Adaptation,
        "DualAveraging": DualAveraging,
        "Moments": Moments,
    }
}

r"""Warm-up: the step size by dual averaging, the metric from windows of draws (M11, M12).

Only during warm-up: a kernel that goes on learning from its own past is no Markov chain, and need
not leave the target as it is. All chains share what is learned from all of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...numeric.validation import proper_fraction
from .leapfrog import Phase, hamiltonian, leapfrog
from .metrics import DenseMetric, DiagonalMetric, Metric, identity
from .states import Info, State, Target, init

__all__ = ["Adaptable", "Adaptation", "DualAveraging", "Moments", "first_step_size", "windows"]

Array = NDArray[Any]


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
        new = before.T @ after if self.squares.ndim == 2 else np.einsum("sd,sd->d", before, after)
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
    target: Target, rng: np.random.Generator, metric: Metric, state: State, step_size: float
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
    target_accept: float
    averaging: DualAveraging
    moments: Moments
    length: Any = None  # of a kernel that learns its path: `chees.PathLength`

    def update(
        self, target: Target, rng: np.random.Generator, state: Any, info: Info
    ) -> Adaptation:
        """Learn from one draw, `state`, whose step did what `info` says (M11, M12, D47)."""
        kernel, length, moments, done = self.kernel, self.length, self.moments, self.done + 1
        metric = kernel.metric
        seen = kernel.mean_acceptance(info.acceptance)
        averaging = self.averaging.update(self.target_accept - seen)
        step_size = exp(averaging.log_step)
        if length is not None:
            length = length.learned(kernel, state, info, step_size)
        ends = windows(self.warm_up)
        if ends and ends[0] < done <= ends[-1]:
            moments = moments.update(state.position)
        if done in ends[1:]:
            metric = moments.metric(state.position.dtype)
            moments = Moments.start(state.position, moments.squares.ndim == 2)
            step_size = exp(averaging.log_mean)
            step_size = kernel.first_step_size(target, rng, metric, state, step_size)
            averaging = DualAveraging.start(step_size)
            if length is not None and done < ends[-1]:  # D47: up from a short path, in new units
                length = length.start(kernel.first_path(step_size))
        path = None if length is None else exp(length.log_path)
        if done == self.warm_up:
            step_size = exp(averaging.log_mean)
            path = None if length is None else exp(length.log_mean)
        return self._replace(
            kernel=kernel.tuned(step_size, metric, *([] if path is None else [path])),
            done=done,
            averaging=averaging,
            moments=moments,
            length=length,
        )


class Adaptable:
    """What kernels with a step size and a metric have in common."""

    step_size: float
    metric: Metric | None
    target_accept: float | None

    def init(self, target: Target, position: Array) -> Any:
        """Return the state at `position` (S, D)."""
        return init(target, position)

    def tuned(self, step_size: float, metric: Metric) -> Self:
        """Return the kernel with another step size and metric."""
        return replace(self, step_size=step_size, metric=metric)  # type: ignore[type-var]

    def adapt(
        self,
        target: Target,
        rng: np.random.Generator,
        state: Any,
        warm_up: int,
        *,
        dense: bool = False,
        target_accept: float | None = None,
    ) -> Any:
        """Begin a warm-up of `warm_up` draws from `state`, or return None if nothing is to adapt.

        Parameters
        ----------
        dense : bool
            Learn a full matrix instead of a diagonal.
        target_accept : float, optional
            Wanted mean acceptance, by default the kernel's own.
        """
        wanted = self.target_accept if target_accept is None else target_accept
        metric = identity(state.position) if self.metric is None else self.metric
        step_size = self.first_step_size(target, rng, metric, state, self.step_size)
        return Adaptation(
            self.tuned(step_size, metric),
            0,
            warm_up,
            proper_fraction("target_accept", wanted),
            DualAveraging.start(step_size),
            Moments.start(state.position, dense),
        )

    def first_step_size(
        self,
        target: Target,
        rng: np.random.Generator,
        metric: Metric,
        state: State,
        step_size: float,
    ) -> float:
        """Return where dual averaging begins, at first and under every new metric."""
        return first_step_size(target, rng, metric, state, step_size)

    def mean_acceptance(self, acceptance: Array) -> float:
        """Return of the acceptances (S,) of a draw what is to become `target_accept`."""
        return float(np.mean(acceptance))

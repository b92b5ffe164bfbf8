r"""Warm-up: the step size by dual averaging, the metric from windows of draws (M11, M12).

Of `ChEES` the path too, by its criterion (D47).

Only during warm-up: a kernel that goes on learning from its own past is no Markov chain, and
need not leave the target as it is. All chains share one step size and one metric, learned from all
of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...numeric.validation import proper_fraction, whole
from .chees import ChEES, PathLength, first_path, harmonic_mean, relearned
from .leapfrog import Phase, hamiltonian, leapfrog
from .metrics import DenseMetric, DiagonalMetric, Metric, identity
from .metropolis import MetropolisHastings, Tunable
from .states import Info, State, Target

__all__ = [
    "Adaptation",
    "DualAveraging",
    "Moments",
    "begin",
    "first_step_size",
    "retuned",
    "tunable",
    "update",
    "windows",
]

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


class Adaptation(NamedTuple):
    """A warm-up under way."""

    kernel: Any  # as it is to be used for the next draw; after the last one: as found
    done: int
    warm_up: int
    target_accept: float
    averaging: DualAveraging
    moments: Moments
    length: PathLength | None = None  # of a kernel that learns its path


def tunable(kernel: Any) -> Tunable | None:
    """Return the part of a kernel that has a step size and a metric to adapt, if any."""
    part = kernel.proposal if isinstance(kernel, MetropolisHastings) else kernel
    return part if isinstance(part, Tunable) else None


def retuned(kernel: Any, step_size: float, metric: Metric, length: float | None = None) -> Any:
    """Return the kernel with another step size and metric, and length of path if it has one."""
    if length is not None:
        return kernel.tuned(step_size, metric, length)
    if isinstance(kernel, MetropolisHastings):
        return replace(kernel, proposal=tunable(kernel).tuned(step_size, metric))  # type: ignore[union-attr]
    return kernel.tuned(step_size, metric)


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


def begin(
    kernel: Any,
    target: Target,
    rng: np.random.Generator,
    state: State,
    warm_up: int,
    *,
    dense: bool = False,
    target_accept: float | None = None,
) -> Any:
    """Begin a warm-up of `warm_up` draws, or return None if there is nothing to adapt.

    Parameters
    ----------
    kernel : ChEES, HMC, NUTS, MAMS, MCLMC, MetropolisHastings or one's own
        One with a method `warm_up` makes its own adaptation, with `kernel` and `update`.
    state : State
        Where the chains start.
    warm_up : int
    dense : bool
        Learn a full matrix instead of a diagonal.
    target_accept : float, optional
        Wanted mean acceptance, by default the kernel's own; for `ChEES` of the harmonic mean.

    Raises
    ------
    ValueError
        If `ChEES` is to learn from one chain alone.
    """
    part = tunable(kernel)
    if part is None or whole("warm_up", warm_up, 0) == 0:
        return None
    if hasattr(kernel, "warm_up"):  # it has more to learn than a step size and a metric
        options = {"dense": dense, "target_accept": target_accept}
        return kernel.warm_up(target, rng, state, warm_up, **options)
    if isinstance(kernel, ChEES) and len(state.position) < 2:
        raise ValueError(
            "ChEES learns its path from the spread of the chains, of which it needs two at least; "
            "got 1. Ask for chains=2 or more, or give the path: HMC(path=1.57)"
        )
    wanted = part.target_accept if target_accept is None else target_accept
    proper_fraction("target_accept", wanted)
    metric = identity(state.position) if part.metric is None else part.metric
    step_size = part.step_size
    if not isinstance(kernel, MetropolisHastings):
        step_size = first_step_size(target, rng, metric, state, step_size)
    path = first_path(step_size) if isinstance(kernel, ChEES) else None
    return Adaptation(
        retuned(kernel, step_size, metric, path),
        0,
        warm_up,
        wanted,
        DualAveraging.start(step_size),
        Moments.start(state.position, dense),
        None if path is None else PathLength.start(path),
    )


def update(
    adaptation: Any, target: Target, rng: np.random.Generator, state: Any, info: Info
) -> Any:
    """Learn from one draw, `state`, whose step did what `info` says (M11, M12, D47)."""
    if not isinstance(adaptation, Adaptation):
        return adaptation.update(target, rng, state, info)
    a, part = adaptation, tunable(adaptation.kernel)
    assert part is not None
    assert part.metric is not None  # as `begin` has made sure
    metric, moments, done = part.metric, a.moments, a.done + 1
    mean = np.mean if a.length is None else harmonic_mean
    averaging = a.averaging.update(a.target_accept - float(mean(info.acceptance)))
    step_size = exp(averaging.log_step)
    length = a.length
    if length is not None:
        length = relearned(length, a.kernel, state, info, step_size)
    ends = windows(a.warm_up)
    if ends and ends[0] < done <= ends[-1]:
        moments = moments.update(state.position)
    if done in ends[1:]:
        metric = moments.metric(state.position.dtype)
        moments = Moments.start(state.position, moments.squares.ndim == 2)
        step_size = exp(averaging.log_mean)
        if not isinstance(a.kernel, MetropolisHastings):
            step_size = first_step_size(target, rng, metric, state, step_size)
        averaging = DualAveraging.start(step_size)
        if length is not None and done < ends[-1]:  # D47: up from a short path, in new units
            length = PathLength.start(first_path(step_size))
    path = None if length is None else exp(length.log_path)
    if done == a.warm_up:
        step_size = exp(averaging.log_mean)
        path = None if length is None else exp(length.log_mean)
    kernel = retuned(a.kernel, step_size, metric, path)
    return Adaptation(kernel, done, a.warm_up, a.target_accept, averaging, moments, length)

r"""Warm-up: the step size by dual averaging, the metric from windows of draws (M11, M12).

A kernel is tuned during warm-up alone: one that goes on learning from its own past is no Markov
chain, and need not leave the target as it is. All chains share what is learned from all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, log, sqrt
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.random import Generator

from ...numeric.deprecation import accept_old_methods
from ...numeric.layout import Array
from ...numeric.validation import Optional, proper_fraction
from .leapfrog import Phase, hamiltonian, leapfrog
from .metrics import DenseMetric, DiagonalMetric, Metric, Scaled
from .states import Info, State, Target, init

__all__ = [
    "Adaptable",
    "Adaptation",
    "DualAveraging",
    "LengthAdaptation",
    "Moments",
    "first_step_size",
    "windows",
]

# Names that kernels had before for what a subclass may define, and those of today
OLD_METHODS = {
    "first_length": "init_length",
    "miss": "adaptation_error",
    "too_large": "share_too_large",
}
OLD_VALUES = {
    "learned": "tuned_fields",
    "most_bias": "max_bias",
    "together": "min_group_chains",
    "usual_warm_up": "default_warm_up",
}
# From a step size to one that `first_step_size` finds from there
Search = Callable[[float], float]


class DualAveraging(NamedTuple):
    """State of Nesterov's dual averaging of log eps (M11; Hoffman and Gelman 2014)."""

    anchor: float  # log eps_0, towards which the steps are drawn
    log_step: float  # log step size of the next draw
    log_mean: float  # its average, for after warm-up
    mean_error: float  # running mean of (wanted - seen acceptance)
    n_draws: int

    @classmethod
    def start(cls, step_size: float) -> DualAveraging:
        """Return the state before the first draw, whose step has this size."""
        return cls(log(step_size), log(step_size), log(step_size), 0.0, 0)

    def update(self, error: float) -> DualAveraging:
        r"""Return the state after one more draw (M11).

        With t the number of draws so far ::

            mean error <- (1 - w) mean error + w error,     w = 1 / (t + 10)
            log eps    <- log eps_0 - mean error sqrt(t) / 0.1
            log mean   <- t^-0.75 log eps + (1 - t^-0.75) log mean

        Hoffman and Gelman have 0.05 for 0.1, with which the last 50 draws of a warm-up still swing
        about (measured for Langevin: an acceptance of about 0.7 for a wanted 0.574). Their anchor
        is 10 eps_0, to try large steps early; here `first_step_size` has found eps_0, and the
        factor would end a short warm-up with a step many times too large.

        Parameters
        ----------
        error : float
            Wanted less seen acceptance of the draw, or what `Adaptable.adaptation_error` returns
            instead: positive if the step was too large.
        """
        count = self.n_draws + 1
        weight = 1.0 / (count + 10.0)
        mean_error = (1.0 - weight) * self.mean_error + weight * error
        log_step = self.anchor - mean_error * sqrt(count) / 0.1  # M11
        log_step = min(max(log_step, -60.0), 60.0)
        share = count**-0.75
        log_mean = share * log_step + (1.0 - share) * self.log_mean
        return DualAveraging(self.anchor, log_step, log_mean, mean_error, count)


class Moments(NamedTuple):
    """Running moments of the draws of a window, by Welford's updates.

    Deviations are from each chain's own mean. Chains of a network sit in different modes, which
    permute its units: the distance between these says nothing about the shape of one of them.
    """

    n_draws: int
    mean: Array  # (S, D)  of each chain
    # (D,), or (D, D): products of deviations, summed over draws and chains
    squares: Array

    @classmethod
    def start(cls, like: Array, dense: bool) -> Moments:
        """Return the moments of no draws.

        Parameters
        ----------
        like : ndarray (S, D)
            Positions, whose shape is taken.
        dense : bool
            Whether products of all pairs of coordinates are summed, or squares alone.
        """
        size = like.shape[1]
        shape = (size, size) if dense else size
        return cls(0, np.zeros(like.shape), np.zeros(shape))

    def update(self, position: Array) -> Moments:
        """Return the moments with one more draw of every chain, `position` (S, D)."""
        count = self.n_draws + 1
        old_deviation = position - self.mean
        mean = self.mean + old_deviation / count
        deviation = position - mean
        if self.squares.ndim == 2:
            products = old_deviation.T @ deviation
        else:
            products = np.einsum("sd,sd->d", old_deviation, deviation)
        return Moments(count, mean, self.squares + products)

    def metric(self, dtype: Any) -> Metric:
        """Return the metric of these draws, one or more, shrunk towards 1e-3 by five more (M12).

        The five pseudo-draws are Stan's; they matter for short windows alone.
        """
        degrees = (self.n_draws - 1) * len(self.mean)  # of freedom
        if self.squares.ndim == 1:
            variance = (self.squares + 5e-3) / (degrees + 5.0)
            return DiagonalMetric(variance.astype(dtype))
        covariance = 0.5 * (self.squares + self.squares.T)
        diagonal = np.diag_indices_from(covariance)
        covariance[diagonal] += 5e-3  # M12
        # with fewer draws than coordinates it is singular but for the pseudo-draws: keep them
        # above the rounding of the dtype
        rounding = float(np.finfo(dtype).eps) * float(np.trace(covariance))
        covariance[diagonal] += 10.0 * rounding
        return DenseMetric((covariance / (degrees + 5.0)).astype(dtype))


def windows(warm_up: int) -> tuple[int, ...]:
    """Return the draws after which the metric is renewed; windows begin after the first of them.

    Much as in Stan: 75 draws for the step size alone, windows of 25, 50, 100, ... draws, then 50
    draws for the step size under the last metric; in the proportions 15, 75, 10 % if that does
    not fit; no window at all for fewer than 20 draws of warm-up.
    """
    if warm_up < 20:
        return ()
    initial_draws = 75
    final_draws = 50
    size = 25
    if initial_draws + final_draws + size > warm_up:  # one window
        initial_draws = int(0.15 * warm_up)
        final_draws = int(0.1 * warm_up)
        size = warm_up
    ends = [initial_draws]
    last_end = warm_up - final_draws
    while ends[-1] < last_end:
        end = ends[-1] + size
        if (
            end + 2 * size > last_end
        ):  # the next window would not fit: this one takes its draws
            end = last_end
        ends.append(end)
        size *= 2
    return tuple(ends)


def first_step_size(
    target: Target, rng: Generator, metric: Metric, state: State, step_size: float
) -> float:
    """Return the first doubled or halved step size past a mean acceptance of 80 % (M11).

    Parameters
    ----------
    target : Target
        The log density and its gradient.
    rng : Generator
        Draws one momentum for each chain, with which all trial steps begin.
    metric : Metric
        The mass matrix.
    state : State
        Where each trial step of one leapfrog begins; acceptance is its mean over the chains.
    step_size : float
        Where the search begins, in units of the metric.
    """
    momentum = metric.draw_momentum(rng, state.position)
    phase = Phase(state.position, momentum, state.log_density, state.gradient)
    initial_energy = hamiltonian(metric, phase)
    direction = 0
    for _ in range(60):
        energy = hamiltonian(metric, leapfrog(target, metric, phase, step_size))
        acceptance = np.exp(np.minimum(0.0, initial_energy - energy)).mean()
        accepted = acceptance > 0.8
        if direction == 0:
            direction = 1 if accepted else -1
        elif accepted != (direction == 1):
            break
        step_size *= 2.0**direction
    return step_size


class LengthAdaptation(Protocol):
    """What learns the length of paths: `chees.PathLength` or `microcanonical.Decoherence`."""

    def after_draw(
        self, kernel: Any, state: Any, info: Info, step_size: float, in_window: bool
    ) -> Self:
        """Return what is known after one more draw.

        Parameters
        ----------
        kernel : Kernel
            With which the draw was made.
        state : State
        info : Info
            Report of the step that led to `state`.
        step_size : float
            Of the next draw.
        in_window : bool
            Whether the draw belongs to a window of draws, from which a metric is learned.
        """

    def after_window(
        self, kernel: Any, moments: Moments, step_size: float, first: bool, last: bool
    ) -> Self:
        """Return what is known after a window of draws, when the metric is renewed.

        Parameters
        ----------
        kernel : Kernel
        moments : Moments
            Of the draws of the window.
        step_size : float
            Of the next draw, in units of the new metric.
        first, last : bool
            Whether the window is the first or the last one.
        """

    def current(self, last: bool) -> float:
        """Return the length for the next draw; with `last` that for after the warm-up."""


class Adaptation(NamedTuple):
    """State of a warm-up between two draws."""

    kernel: Any  # for the next draw; after the last one it is the result of the warm-up
    n_draws: int  # made so far
    warm_up: int  # draws in all
    target_accept: float | None  # None: the kernel accepts everything
    averaging: DualAveraging
    moments: Moments
    length: Any  # a `LengthAdaptation`, or None where paths have no length to learn

    def update(
        self, target: Target, rng: Generator, state: Any, info: Info
    ) -> Adaptation:
        """Return the warm-up after one more draw (M11, M12, D47, D50).

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            The draw.
        info : Info
            Report of the step that led to it.
        """
        kernel = self.kernel
        metric = kernel.metric
        length = self.length
        moments = self.moments
        n_draws = self.n_draws + 1
        error = kernel.adaptation_error(target, rng, state, info, self.target_accept)
        averaging = self.averaging.update(error)
        step_size = exp(averaging.log_step)
        ends = windows(self.warm_up)
        in_window = bool(ends) and ends[0] < n_draws <= ends[-1]
        if in_window:
            moments = moments.update(state.position)
        if length is not None:
            length = length.after_draw(kernel, state, info, step_size, in_window)
        if n_draws in ends[1:]:
            metric = moments.metric(state.position.dtype)
            search = partial(first_step_size, target, rng, metric, state)
            step_size = kernel.first_step_size(search, exp(averaging.log_mean), state)
            averaging = DualAveraging.start(step_size)
            if length is not None:
                first = n_draws == ends[1]
                last = n_draws == ends[-1]
                length = length.after_window(kernel, moments, step_size, first, last)
            moments = Moments.start(state.position, moments.squares.ndim == 2)
        finished = n_draws == self.warm_up
        if finished:
            step_size = exp(averaging.log_mean)
        tuning = [step_size, metric]
        if length is not None:
            tuning.append(length.current(finished))
        return Adaptation(
            kernel.tuned(*tuning),
            n_draws,
            self.warm_up,
            self.target_accept,
            averaging,
            moments,
            length,
        )


class Adaptable(Scaled):
    """Base class of kernels whose step size and metric a warm-up learns."""

    target_accept: float | None
    # Of an unadjusted kernel: the bias of the draws' variances above which a warning says so
    max_bias: float = 0.0
    remedy: str = ""  # and what makes it smaller

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        accept_old_methods(cls, OLD_METHODS)
        # values under their old names, in kernels of users
        values = {old: new for old, new in OLD_VALUES.items() if old in vars(cls)}
        accept_old_methods(cls, values)

    def init(self, target: Target, position: Array) -> Any:
        """Return the state of chains at `position` (S, D); see `states.init`."""
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
        """Return a warm-up before its first draw; None if the kernel has nothing to adapt.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            What `init` has returned.
        warm_up : int
            Number of draws, >= 1.
        dense : bool
            Learn a dense metric instead of a diagonal one.
        target_accept : float, optional
            Wanted mean acceptance; by default the kernel's own.

        Raises
        ------
        ValueError
            If `target_accept` is given to a kernel that accepts everything.
        """
        accept = self.target_accept if target_accept is None else target_accept
        accept = Optional(proper_fraction)("target_accept", accept)
        if target_accept is not None and getattr(self, "unadjusted", False):
            raise ValueError(
                f"target_accept must be None for {type(self).__name__}, which accepts "
                f"everything; got {target_accept}. For smaller steps take {self.remedy}"
            )
        metric = self.metric_for(state.position)
        search = partial(first_step_size, target, rng, metric, state)
        step_size = self.first_step_size(search, None, state)
        length, *tuning = self.init_length(state, step_size)
        return Adaptation(
            self.tuned(step_size, metric, *tuning),
            0,
            warm_up,
            accept,
            DualAveraging.start(step_size),
            Moments.start(state.position, dense),
            length,
        )

    def first_step_size(
        self, search: Search, step_size: float | None, state: State
    ) -> float:
        """Return the step size with which dual averaging begins, under every new metric.

        Parameters
        ----------
        search : callable
            The function `first_step_size` of this module, of all arguments but the last.
        step_size : float or None
            What dual averaging has learned under the last metric; None at the first one.
        state : State
        """
        return search(self.step_size if step_size is None else step_size)

    def init_length(self, state: Any, step_size: float) -> tuple[Any, ...]:
        """Return a `LengthAdaptation` and the first length; (None,) if the kernel learns none.

        Parameters
        ----------
        state : State
        step_size : float
            Of the first draw.
        """
        return (None,)

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return what dual averaging brings to 0: positive if the step is too large (M11).

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            The draw.
        info : Info
            Report of the step that led to it.
        target_accept : float or None
            Wanted mean acceptance; None if the kernel accepts everything.
        """
        return float(target_accept - float(np.mean(info.acceptance)))


NAMED = {
    "state": {
        "Adaptation": Adaptation,
        "DualAveraging": DualAveraging,
        "Moments": Moments,
    }
}

r"""Warm-up: the step size by dual averaging, the metric from windows of draws (M11, M12).

A kernel is tuned during warm-up alone: if it went on learning from its own past, the chain would
not be Markov, and need not leave the target invariant. All chains of a group share one step size
and one metric, learned from all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import exp, log, sqrt
from typing import Any, ClassVar, NamedTuple, Protocol, Self

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
    "LengthAdaptation",
    "Moments",
    "first_step_size",
    "windows",
]

# Function from the step size at which a search begins to the step size that it finds
Search = Callable[[float], float]


class DualAveraging(NamedTuple):
    """State of Nesterov's dual averaging of log eps (M11; Hoffman and Gelman 2014)."""

    anchor: float  # log eps_0, the log step size towards which the iterates are pulled
    log_step: float  # log step size of the next draw
    log_mean: float  # weighted mean of log step sizes, used after the warm-up
    mean_error: float  # running mean of target acceptance minus actual acceptance
    n_draws: int  # number of draws so far, under the present metric

    @classmethod
    def start(cls, step_size: float) -> DualAveraging:
        """Return the state of dual averaging before the first draw, made with `step_size`."""
        return cls(log(step_size), log(step_size), log(step_size), 0.0, 0)

    def update(self, error: float) -> DualAveraging:
        r"""Return the state of dual averaging after one more draw, with its next step size (M11).

        With t the number of draws so far ::

            mean error <- (1 - w) mean error + w error,     w = 1 / (t + 10)
            log eps    <- log eps_0 - mean error sqrt(t) / 0.1
            log mean   <- t^-0.75 log eps + (1 - t^-0.75) log mean

        Hoffman and Gelman use 0.05 in place of 0.1, with which the step size still oscillates
        during the last 50 draws of a warm-up (measured for Langevin: an acceptance of about 0.7
        for a target of 0.574). Their anchor is log(10 eps_0), to try large steps early; here
        `first_step_size` has found a suitable eps_0, and the factor 10 would end a short warm-up
        with a step many times too large.

        Parameters
        ----------
        error : float
            Target acceptance minus the acceptance of the draw, or another value returned by
            `Adaptable.adaptation_error`: positive if the step was too large.
        """
        count = self.n_draws + 1
        weight = 1.0 / (count + 10.0)
        mean_error = (1.0 - weight) * self.mean_error + weight * error
        log_step = self.anchor - mean_error * sqrt(count) / 0.1  # next log eps (M11)
        log_step = min(max(log_step, -60.0), 60.0)
        share = count**-0.75
        log_mean = share * log_step + (1.0 - share) * self.log_mean
        return DualAveraging(self.anchor, log_step, log_mean, mean_error, count)


class Moments(NamedTuple):
    """Running moments of the draws of a window, by Welford's updates.

    Deviations are from each chain's own mean. Chains of a network are in different modes, which
    are permutations of its units: the distance between modes says nothing about their shape.
    """

    n_draws: int  # number of draws of each chain in the window
    mean: Array  # (S, D)  mean of each chain's positions
    # (D,) squares or (D, D) products of deviations, summed over draws and chains
    squares: Array

    @classmethod
    def start(cls, like: Array, dense: bool) -> Moments:
        """Return the moments of a window that has no draws yet: all sums are 0.

        Parameters
        ----------
        like : ndarray (S, D)
            Array of the shape of the positions.
        dense : bool
            True to sum products of all pairs of coordinates, False to sum squares alone.
        """
        size = like.shape[1]
        shape = (size, size) if dense else size
        return cls(0, np.zeros(like.shape), np.zeros(shape))

    def update(self, position: Array) -> Moments:
        """Return the moments after one more draw of every chain, at `position` (S, D)."""
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
        """Return the metric with the window's covariance, shrunk towards variances of 1e-3 (M12).

        The shrinkage counts as five draws, as in Stan; it matters for short windows alone.

        Parameters
        ----------
        dtype : dtype
            Dtype of the positions, and so of the metric.
        """
        # degrees of freedom of the variances: one less for each chain, whose mean was estimated
        degrees = (self.n_draws - 1) * len(self.mean)
        if self.squares.ndim == 1:
            variance = (self.squares + 5e-3) / (degrees + 5.0)
            return DiagonalMetric(variance.astype(dtype))
        covariance = 0.5 * (self.squares + self.squares.T)
        diagonal = np.diag_indices_from(covariance)
        covariance[diagonal] += 5e-3  # five draws of variance 1e-3 (M12)
        # with fewer draws than coordinates only the shrinkage makes the covariance nonsingular:
        # the diagonal is kept above the rounding error of the dtype
        rounding = float(np.finfo(dtype).eps) * float(np.trace(covariance))
        covariance[diagonal] += 10.0 * rounding
        return DenseMetric((covariance / (degrees + 5.0)).astype(dtype))


def windows(warm_up: int) -> tuple[int, ...]:
    """Return the draw numbers, 0 to `warm_up`, at which windows for the metric begin and end.

    The first number is the beginning of the first window; each other number is the end of a
    window, at which the metric is renewed, and the beginning of the next window. Much as in Stan
    there are 75 draws for the step size alone, windows of 25, 50, 100, ... draws, then 50 draws for
    the step size under the last metric. If these do not fit, the three parts are 15, 75 and 10 %
    of the warm-up; with fewer than 20 draws there is no window, and the result is empty.
    """
    if warm_up < 20:
        return ()
    initial_draws = 75
    final_draws = 50
    size = 25
    # a warm-up too short for these three numbers has one window, of 75 % of its draws
    if initial_draws + final_draws + size > warm_up:
        initial_draws = int(0.15 * warm_up)
        final_draws = int(0.1 * warm_up)
        size = warm_up
    ends = [initial_draws]
    last_end = warm_up - final_draws
    while ends[-1] < last_end:
        end = ends[-1] + size
        # if the next window would not fit in the rest, this one takes its draws too
        if end + 2 * size > last_end:
            end = last_end
        ends.append(end)
        size *= 2
    return tuple(ends)


def first_step_size(
    target: Target, rng: Generator, metric: Metric, state: State, step_size: float
) -> float:
    """Return a step size at which a leapfrog step's mean acceptance crosses 80 % (M11).

    The step size is doubled or halved until the acceptance has crossed 80 %.

    Parameters
    ----------
    target : Target
        The log density and its gradient.
    rng : Generator
        Generator of one momentum for each chain, with which every trial step begins.
    metric : Metric
        The mass matrix.
    state : State
        State at which every trial step begins; the acceptance is averaged over its chains.
    step_size : float
        Step size at which the search begins, in units of the metric.

    Returns
    -------
    float
        The first step size on the other side of 80 %; the last one if 60 trials do not cross it.
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
    """State of learning the length of paths: `chees.PathLength`, `microcanonical.Decoherence`."""

    def after_draw(
        self, kernel: Any, state: Any, info: Info, step_size: float, in_window: bool
    ) -> Self:
        """Return the state of learning the path length after one more draw.

        Parameters
        ----------
        kernel : Kernel
            Kernel that made the draw.
        state : State
            State of the chains at the draw.
        info : Info
            Report of the step that led to `state`.
        step_size : float
            Step size of the next draw, in units of the metric.
        in_window : bool
            Whether the draw belongs to a window of draws, from which a metric is learned.
        """

    def after_window(
        self, kernel: Any, moments: Moments, step_size: float, first: bool, last: bool
    ) -> Self:
        """Return the state of learning the path length after a window, under a new metric.

        Parameters
        ----------
        kernel : Kernel
            Kernel that made the draws of the window.
        moments : Moments
            Moments of the draws of the window.
        step_size : float
            Step size of the next draw, in units of the new metric.
        first, last : bool
            Whether the window is the first one, and whether it is the last one.
        """

    def current(self, last: bool) -> float:
        """Return the length of the next path; if `last`, of the paths after the warm-up."""


class Adaptation(NamedTuple):
    """State of a warm-up between two draws."""

    # kernel of the next draw; after the last draw it is the result of the warm-up
    kernel: Any
    n_draws: int  # number of draws made so far
    warm_up: int  # number of draws of the whole warm-up
    target_accept: float | None  # aim of the acceptance; None if nothing is rejected
    averaging: DualAveraging  # state of learning the step size
    moments: Moments  # moments of the draws of the present window
    length: Any  # a `LengthAdaptation`; None if no path length is learned

    def update(
        self, target: Target, rng: Generator, state: Any, info: Info
    ) -> Adaptation:
        """Return the state of the warm-up after one more draw (M11, M12, D47, D50).

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Generator of the trial steps with which a new metric begins.
        state : State
            State of the chains at the draw.
        info : Info
            Report of the step that led to `state`.
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

    target_accept: float | None  # default aim of a warm-up; None if nothing is rejected
    # Relative bias of variances (0.06 is 6 %) above which a run of the kernel ends with a warning
    max_bias: float = 0.0
    remedy: str = ""  # settings that lower the bias, named in the warning

    old_names: ClassVar[Mapping[str, str]] = {
        **Scaled.old_names,
        "first_length": "init_length",
        "miss": "adaptation_error",
        "most_bias": "max_bias",
        "together": "min_group_chains",
        "too_large": "share_too_large",
        "usual_warm_up": "default_warm_up",
    }

    def init(self, target: Target, position: Array) -> Any:
        """Return the initial state of S chains, whose positions are a copy of `position` (S, D)."""
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
        """Return the state of a warm-up before its first draw; None if nothing is to be adapted.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Generator of the trial steps that find the first step size.
        state : State
            Initial state, from `init`.
        warm_up : int
            Number of draws of the warm-up, >= 1.
        dense : bool
            True to learn a dense metric, False for a diagonal one.
        target_accept : float, optional
            Mean acceptance to aim at, > 0 and < 1; by default the kernel's own `target_accept`.

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
        """Return the step size with which dual averaging begins under a new metric.

        Parameters
        ----------
        search : callable
            Function from the step size at which a search begins to the step size that it finds:
            the function `first_step_size` of this module with all other arguments bound.
        step_size : float or None
            Step size that dual averaging has learned under the previous metric; None if there is
            no previous metric.
        state : State
            State of the chains.
        """
        return search(self.step_size if step_size is None else step_size)

    def init_length(self, state: Any, step_size: float) -> tuple[Any, ...]:
        """Return a `LengthAdaptation` and the first path length; (None,) if none is learned.

        Parameters
        ----------
        state : State
            Initial state of the chains.
        step_size : float
            Step size of the first draw, in units of the metric.
        """
        return (None,)

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return the error that dual averaging drives to 0: target minus mean acceptance (M11).

        A subclass may return another error that is positive if the step is too large.

        Parameters
        ----------
        target : Target
            Ignored: the acceptance is in `info`.
        rng : Generator
            Ignored.
        state : State
            State of the chains at the draw.
        info : Info
            Report of the step that led to `state`.
        target_accept : float or None
            Mean acceptance to aim at; None if the kernel accepts everything.
        """
        return float(target_accept - float(np.mean(info.acceptance)))


NAMED = {
    "state": {
        "Adaptation": Adaptation,
        "DualAveraging": DualAveraging,
        "Moments": Moments,
    }
}

r"""Hamiltonian Monte Carlo that learns its path length: ChEES-HMC (D47).

The path length is the one setting of HMC that can be learned neither from the acceptance (M11) nor
from the variances of the draws (M12). Hoffman, Radul and Sountsov (2021) choose it by the *change
in the estimator of the expected square* from the beginning of a path to its proposal,

.. math::
    \tfrac14 E\big[ (\|\theta' - m'\|^2 - \|\theta - m\|^2)^2 \big],

which the warm-up maximises by Adam; all chains share one path length, and one number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isfinite, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ...numeric.deprecation import renamed_names
from ...numeric.elementary import inner
from ...numeric.layout import Array
from ...numeric.validation import check_fields, positive
from .adaptation import Adaptable, Moments
from .hmc import trajectory
from .leapfrog import steps_for
from .metrics import Metric
from .states import Info, State, Target, init

__all__ = [
    "ChEES",
    "ChEESState",
    "PathLength",
    "criterion_slope",
    "halton",
    "mean_slope",
]

MAX_FIRST_STEPS = 16  # largest number of leapfrog steps of a warm-up's first path
CENTER_MEMORY = 100  # number of draws in the running mean of a chain's positions


class ChEESState(NamedTuple):
    """A `State` of S chains, and the quantities from which ChEES learns the path length."""

    position: Array  # (S, D)  positions of S chains
    log_density: Array  # (S,)  log densities, in nats and up to a constant
    gradient: Array  # (S, D)  gradient of the log density
    # (S,) int  number of steps made so far, the same in all chains: index of Halton's sequence
    halton_index: Array
    # (S,)  derivative of the criterion by log path at the last proposal; 0 before the first
    # proposal, and if its acceptance is 0
    slope: Array
    # (S, D)  running mean of each chain's positions, which begins as the mean over all chains
    center: Array


def halton(index: int) -> float:
    """Return number `index` = 1, 2, ... of Halton's sequence 1/2, 1/4, 3/4, 1/8, ... (D47).

    The digits after the binary point are the binary digits of `index` in reverse order (van der
    Corput). The first 2^k - 1 numbers are all multiples of 2^-k in (0, 1): path lengths are spread
    evenly within a few draws already, where independent random numbers leave gaps.
    """
    number = 0.0
    digit_value = 0.5
    while index:
        index, digit = divmod(index, 2)
        number += digit * digit_value
        digit_value *= 0.5
    return number


def mean_slope(slope: Array, acceptance: Array) -> float:
    """Return the acceptance-weighted mean of the criterion's derivatives by log path (D47).

    A proposal that is rejected does not move its chain, however far away it is. If all
    acceptances are 0 the mean is 0.

    Parameters
    ----------
    slope : ndarray (S,)
        Derivative of each chain's term of the criterion by log path.
    acceptance : ndarray (S,)
        Acceptance probabilities.
    """
    total = float(acceptance.sum())
    return float(slope @ acceptance) / total if total > 0.0 else 0.0  # mean (D47)


def criterion_slope(
    metric: Metric,
    start: Array,
    end: Array,
    momentum: Array,
    acceptance: Array,
    time: float,
) -> Array:
    r"""Return each chain's derivative (S,) of the ChEES criterion by the log path length (D47).

    The path has the length h T with jitter h, so that its end :math:`\theta'` moves by h times the
    velocity :math:`M^{-1} r'` as T grows. In the norm of the metric, :math:`\|u\|^2 = u^T M u`, the
    matrix cancels, and the derivative of a term by log T is ::

        h T (|theta' - m'|^2 - |theta - m|^2) (theta' - m')^T r'

    Parameters
    ----------
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    start, end : ndarray (S, D)
        Positions theta and theta' before and after the path, or their offsets from each chain's
        own center: if chains are in different modes, their common mean is in none of the modes, and
        the distance from it measures nothing (D47).
    momentum : ndarray (S, D)
        Momentum r' at the end of the path.
    acceptance : ndarray (S,)
        Acceptance probabilities, which weight the ends in their mean m'. An end of weight 0, which
        may be at infinity, is left out, and its derivative is 0.
    time : float
        Length h T of this path, in units of the metric.
    """
    slope: Array = np.zeros(len(start), np.result_type(end, float))
    used = np.flatnonzero(acceptance > 0.0)
    if not used.size:
        return slope
    # fourth powers of offsets may leave the range of float32: they are computed in float64
    start = start.astype(np.result_type(start, float))
    end = end[used].astype(np.result_type(end, float))
    momentum = momentum[used].astype(np.result_type(momentum, float))
    start_offset = start - start.mean(axis=0)
    end_offset = end - acceptance[used] @ end / acceptance[used].sum()
    change = _square(metric, end_offset) - _square(metric, start_offset)[used]
    slope[used] = time * change * inner(end_offset, momentum)  # by log T (D47)
    return slope


def _square(metric: Metric, offset: Array) -> Array:
    """Return the squared norms u^T M u (S,) of offsets u (S, D), with M the mass matrix."""
    white = metric.whiten(offset)
    return inner(white, white)


class PathLength(NamedTuple):
    """State of Adam, without momentum, on the log path length, with its mean iterate (D47)."""

    log_path: float  # log of the path length of the next draw
    log_mean: float  # mean of the log path lengths, used after the warm-up
    mean_square: float  # running mean of squared derivatives of the criterion
    n_draws: int  # number of updates so far, under the present metric

    @classmethod
    def start(cls, path: float) -> PathLength:
        """Return the learning state before the first draw, which has the path length `path`."""
        return cls(log(path), log(path), 0.0, 0)

    def update(self, slope: float, shortest: float, longest: float) -> PathLength:
        """Return the learning state after an Adam step that increases the ChEES criterion (D47).

        The learning rate of 0.025 and the memory of 20 draws for the squares are the paper's. If
        the slope is 0 or not finite, the state is returned unchanged.

        Parameters
        ----------
        slope : float
            Mean derivative of the criterion by log path.
        shortest, longest : float
            Bounds of the path length, in units of the metric.
        """
        if slope * slope == 0.0 or not isfinite(slope * slope):
            return self
        count = self.n_draws + 1
        mean_square = 0.95 * self.mean_square + 0.05 * slope * slope
        root = sqrt(mean_square / (1.0 - 0.95**count))
        log_path = self.log_path + 0.025 * slope / root  # step of Adam (D47)
        log_path = min(max(log_path, log(shortest)), log(longest))
        share = count**-0.75
        log_mean = share * log_path + (1.0 - share) * self.log_mean
        return PathLength(log_path, log_mean, mean_square, count)

    def after_draw(
        self,
        kernel: ChEES,
        state: ChEESState,
        info: Info,
        step_size: float,
        in_window: bool,
    ) -> PathLength:
        """Return the learning state after one more draw, for paths of 1 to max_steps steps (D47).

        Parameters
        ----------
        kernel : ChEES
            Kernel that made the draw.
        state : ChEESState
            State of the chains at the draw.
        info : Info
            Report of the step that led to `state`.
        step_size : float
            Step size of the next draw, in units of the metric.
        in_window : bool
            Ignored: the path is learned from every draw.
        """
        slope = mean_slope(state.slope, info.acceptance)
        return self.update(slope, step_size, kernel.max_steps * step_size)

    def after_window(
        self, kernel: ChEES, moments: Moments, step_size: float, first: bool, last: bool
    ) -> PathLength:
        """Return a new learning state for the new metric; after the last window, this one (D47).

        After the last window too few draws are left to learn the path length anew.

        Parameters
        ----------
        kernel : ChEES
            Kernel that made the draws of the window.
        moments : Moments
            Ignored: moments of the draws of the window.
        step_size : float
            Step size of the next draw, in units of the new metric.
        first, last : bool
            Whether the window is the first one (ignored), and whether it is the last one.
        """
        return self if last else PathLength.start(kernel.init_path(step_size))

    def current(self, last: bool) -> float:
        """Return the path length of the next draw; if `last`, the mean one, for the sampling."""
        return exp(self.log_mean if last else self.log_path)


@dataclass(frozen=True, eq=False)
class ChEES(Adaptable):
    """Hamiltonian Monte Carlo whose warm-up learns the length of the path (D47).

    In each draw all chains take the same number of leapfrog steps, so that no chain waits for
    another; the number differs from draw to draw. After the warm-up step size, path and metric stay
    the same. `step` needs a state that `ChEES.init` has made, because it counts the paths.

    Parameters
    ----------
    step_size : float
        Step size eps of the leapfrog, > 0, in units of the metric.
    path : float
        Length of the longest trajectory in units of the metric, > 0. The lengths of successive
        paths are `path` times Halton's numbers 1/2, 1/4, 3/4, 1/8, ... A warm-up learns `path`
        from two chains or more; it begins at pi/2, or at 16 leapfrog steps if these are shorter.
    metric : Metric, optional
        Mass matrix; by default unit variances.
    max_steps : int
        Largest number of leapfrog steps of a path.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 0.1
    path: float = 0.5 * pi
    metric: Metric | None = None
    max_steps: int = 1000

    # The harmonic mean over the chains, which a single stuck chain pulls down, is to have this
    # value: it is optimal in theory (Beskos et al. 2013), and the choice of the paper
    target_accept = 0.651
    default_warm_up = 4000  # number of warm-up steps, as for HMC
    # smallest number of chains in a group, because chains learn the path from each other
    min_group_chains = 4
    tuned_fields = ("step_size", "metric", "path")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, path=positive)

    def steps(self, index: int) -> int:
        """Return the number of leapfrog steps of path number `index` = 1, 2, ... (D47)."""
        return steps_for(halton(index) * self.path, self.step_size, self.max_steps)

    def init_path(self, step_size: float) -> float:
        """Return the path length, in units of the metric, with which its learning begins (D47).

        It is pi/2, a quarter of the period of a Gaussian that the metric fits, but at most 16 steps
        and at least one step. The metric may still fit badly, and a path that is too short can be
        lengthened by learning until it reaches the first maximum of the criterion.

        Parameters
        ----------
        step_size : float
            Step size in units of the new metric, like the path length.
        """
        return max(min(0.5 * pi, MAX_FIRST_STEPS * step_size), step_size)

    def check_chains(self, chains: int) -> None:
        """Raise ValueError if there are fewer than the two `chains` that a warm-up needs."""
        if chains < 2:
            raise ValueError(
                "ChEES must have 2 chains or more, from whose spread it learns its path; got 1. "
                "Set chains=2 or more, or use a kernel with a fixed path: HMC(path=1.57)"
            )

    def init_length(self, state: Any, step_size: float) -> tuple[PathLength, float]:
        """Return the initial `PathLength`, and its path length; ValueError for a single chain."""
        self.check_chains(len(state.position))
        path = self.init_path(step_size)
        return PathLength.start(path), path

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return the target acceptance minus the harmonic mean acceptance of the chains (D47).

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
        target_accept : float
            Harmonic mean acceptance to aim at.
        """
        # if a chain's acceptance is 0, 1 / acceptance is inf and the harmonic mean 0
        with np.errstate(divide="ignore", over="ignore"):
            return float(target_accept - float(1.0 / np.mean(1.0 / info.acceptance)))

    def init(self, target: Target, position: Array) -> ChEESState:
        """Return the initial `ChEESState` of S chains at `position` (S, D), which is copied."""
        state = init(target, position)
        chains = len(position)
        center = np.tile(position.mean(axis=0), (chains, 1))
        return ChEESState(*state, np.zeros(chains, int), np.zeros(chains), center)

    def step(
        self, target: Target, rng: Generator, state: Any
    ) -> tuple[ChEESState, Info]:
        """Return the state after one path of each chain, accepted or not, and a report (D47, M7).

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : ChEESState
            State that `init` or the step before returned; it is not changed.

        Raises
        ------
        TypeError
            If `state` is not a `ChEESState`.
        """
        if not isinstance(state, ChEESState):
            raise TypeError(
                "state must be one that ChEES.init has made, because it counts the paths; "
                f"got a {type(state).__name__}"
            )
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        index = int(state.halton_index[0]) + 1
        new, info, final = trajectory(
            target,
            rng,
            metric,
            State(*state[:3]),
            momentum,
            self.step_size,
            self.steps(index),
        )
        slope = criterion_slope(
            metric,
            state.position - state.center,
            final.position - state.center,
            final.momentum,
            info.acceptance,  # the acceptance is 0 for divergent chains
            halton(index) * self.path,
        )
        share = 1.0 / min(index, CENTER_MEMORY)
        center = state.center + share * (new.position - state.center)
        return ChEESState(*new, state.halton_index + 1, slope, center), info


NAMED = {
    "sampler": {"chees": ChEES()},
    "state": {"ChEESState": ChEESState, "PathLength": PathLength},
}
__getattr__ = renamed_names(__name__, {"Paced": "ChEESState"})

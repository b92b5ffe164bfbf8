r"""Hamiltonian Monte Carlo that finds its path length: ChEES-HMC (D47).

The length of the path is the one number of HMC that neither the acceptance (M11) nor the draws'
variances (M12) can tell. Hoffman, Radul and Sountsov (2021) choose it by the *change in the
estimator of the expected square* from the beginning of a path to its proposal,

.. math::
    \tfrac14 E\big[ (\|\theta' - m'\|^2 - \|\theta - m\|^2)^2 \big],

which the warm-up climbs by Adam; all chains share one length, and one number of steps.
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

MAX_FIRST_STEPS = 16  # leapfrog steps of the longest path with which a warm-up begins
CENTER_MEMORY = 100  # draws over which the running mean of a chain's positions is taken


class ChEESState(NamedTuple):
    """A `State` of S chains, and what ChEES has learned from their paths."""

    position: Array  # (S, D)
    log_density: Array  # (S,)
    gradient: Array  # (S, D)
    # (S,) int  steps made so far: the index in Halton's sequence, the same in all chains
    halton_index: Array
    # (S,)  slope of the criterion in log path, of the last proposal; 0 where there is none
    slope: Array
    # (S, D)  running mean of each chain's positions; at first that of all chains
    center: Array


def halton(index: int) -> float:
    """Return number 1, 2, ... of Halton's sequence in base 2: 1/2, 1/4, 3/4, 1/8, ... (D47).

    The binary digits of `index`, mirrored at the point (van der Corput). After 2^k - 1 numbers
    every multiple of 2^-k in (0, 1) has been there once: paths are spread evenly over short
    stretches of a chain too, where independent random numbers leave gaps.
    """
    number = 0.0
    digit_value = 0.5
    while index:
        index, digit = divmod(index, 2)
        number += digit * digit_value
        digit_value *= 0.5
    return number


def mean_slope(slope: Array, acceptance: Array) -> float:
    """Return the mean slope of S chains, each weighted by the acceptance of its proposal (D47).

    A proposal that will be rejected moves nothing, however far away it is. Where nothing is
    accepted, nothing is known: 0.

    Parameters
    ----------
    slope : ndarray (S,)
        Of the criterion in log path.
    acceptance : ndarray (S,)
        Probabilities.
    """
    total = float(acceptance.sum())
    return float(slope @ acceptance) / total if total > 0.0 else 0.0  # D47


def criterion_slope(
    metric: Metric,
    start: Array,
    end: Array,
    momentum: Array,
    acceptance: Array,
    time: float,
) -> Array:
    r"""Return the slope in log path of every chain's term of the criterion (S,) (D47).

    With the path h T of a jitter h, the end :math:`\theta'` moves by h times its velocity
    :math:`M^{-1} r'` as T grows. In the norm of the metric, :math:`\|u\|^2 = u^T M u`, the matrix
    cancels, and a term's slope in log T is ::

        h T (|theta' - m'|^2 - |theta - m|^2) (theta' - m')^T r'

    Parameters
    ----------
    metric : Metric
    start, end : ndarray (S, D)
        Positions before and after the path, or their distances from each chain's own center:
        of chains in different modes the mean is in no mode, and the way there no measure (D47).
    momentum : ndarray (S, D)
        r' at the end.
    acceptance : ndarray (S,)
        Weights of the ends' mean m'. An end of weight 0, which may be at infinity, has no part in
        it, and the slope 0.
    time : float
        h T, the length of this path.
    """
    slope: Array = np.zeros(len(start), np.result_type(end, float))
    used = np.flatnonzero(acceptance > 0.0)
    if not used.size:
        return slope
    # not in float32, whose range squares of squares leave
    start = start.astype(np.result_type(start, float))
    end = end[used].astype(np.result_type(end, float))
    momentum = momentum[used].astype(np.result_type(momentum, float))
    start_offset = start - start.mean(axis=0)
    end_offset = end - acceptance[used] @ end / acceptance[used].sum()
    change = _square(metric, end_offset) - _square(metric, start_offset)[used]
    slope[used] = time * change * inner(end_offset, momentum)  # D47
    return slope


def _square(metric: Metric, offset: Array) -> Array:
    """Return u^T M u (S,) of offsets (S, D)."""
    white = metric.whiten(offset)
    return inner(white, white)


class PathLength(NamedTuple):
    """Adam on the logarithm of the path, without momentum, and the mean of its iterates (D47)."""

    log_path: float  # log of the path of the next draw
    log_mean: float  # mean of the log path, used after warm-up
    mean_square: float  # running mean of squared slopes
    n_draws: int

    @classmethod
    def start(cls, path: float) -> PathLength:
        """Return the state before the first draw, with the first path."""
        return cls(log(path), log(path), 0.0, 0)

    def update(self, slope: float, shortest: float, longest: float) -> PathLength:
        """Return the state after a step up the slope of one draw (D47).

        Steps of 0.025 and a memory of 20 draws for the squares are the paper's. No slope, no step:
        at a slope of 0, or one that is not finite, all stays as it is.

        Parameters
        ----------
        slope : float
            Mean slope of the criterion in log path.
        shortest, longest : float
            Bounds of the path, in units of the metric.
        """
        if slope * slope == 0.0 or not isfinite(slope * slope):
            return self
        count = self.n_draws + 1
        mean_square = 0.95 * self.mean_square + 0.05 * slope * slope
        root = sqrt(mean_square / (1.0 - 0.95**count))
        log_path = self.log_path + 0.025 * slope / root  # D47
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
        """Climb by the mean slope of the draw, to a path of 1 to `max_steps` steps (D47).

        Parameters
        ----------
        kernel : ChEES
            That made the draw.
        state : ChEESState
            The draw.
        info : Info
            Report of the step that led to it.
        step_size : float
            Of the next draw.
        in_window : bool
            Whether the draw belongs to a window.
        """
        slope = mean_slope(state.slope, info.acceptance)
        return self.update(slope, step_size, kernel.max_steps * step_size)

    def after_window(
        self, kernel: ChEES, moments: Moments, step_size: float, first: bool, last: bool
    ) -> PathLength:
        """Begin anew under a new metric, unless there is no time for it after the last (D47).

        Parameters
        ----------
        kernel : ChEES
        moments : Moments
            Of the draws of the window.
        step_size : float
            Of the next draw, in units of the new metric.
        first, last : bool
            Whether it is the first or the last window.
        """
        return self if last else PathLength.start(kernel.init_path(step_size))

    def current(self, last: bool) -> float:
        """Return the path length of the next draw; if `last`, as a warm-up has ended, the mean."""
        return exp(self.log_mean if last else self.log_path)


@dataclass(frozen=True, eq=False)
class ChEES(Adaptable):
    """Hamiltonian Monte Carlo whose warm-up finds the length of the path (D47).

    All chains take the same number of leapfrog steps, another one in each path, so that no chain
    waits for another. After the warm-up step size, path and metric stay as they are. `step` takes
    states of this kernel's own `init` alone, which know how many paths have been taken.

    Parameters
    ----------
    step_size : float
        eps > 0 of the leapfrog, in units of the metric.
    path : float
        Length of the longest trajectory in units of the metric, > 0. A warm-up begins here, or at
        16 leapfrog steps if these are shorter, and learns it; it needs two chains at least. The
        lengths of the paths are this times Halton's numbers 1/2, 1/4, 3/4, 1/8, ...
    metric : Metric, optional
        By default unit variances.
    max_steps : int
        Upper bound of the leapfrog steps of a path.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 0.1
    path: float = 0.5 * pi
    metric: Metric | None = None
    max_steps: int = 1000

    # Of the harmonic mean over chains, which one stuck chain pulls down: best in theory (Beskos et
    # al. 2013), and that of the paper
    target_accept = 0.651
    default_warm_up = 4000  # as that of HMC
    min_group_chains = (
        4  # chains of a group at least: they learn the path from each other
    )
    tuned_fields = ("step_size", "metric", "path")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, path=positive)

    def steps(self, index: int) -> int:
        """Return the leapfrog steps of path number 1, 2, ..., of length h T (D47)."""
        return steps_for(halton(index) * self.path, self.step_size, self.max_steps)

    def init_path(self, step_size: float) -> float:
        """Return the path with which the warm-up begins under every new metric (D47).

        A quarter period of a Gaussian whose covariance is the metric, or fewer steps if the metric
        is still far from that: short enough to be below the first maximum of the criterion.
        """
        return max(min(0.5 * pi, MAX_FIRST_STEPS * step_size), step_size)

    def check_chains(self, chains: int) -> None:
        """Raise ValueError for fewer chains than a warm-up learns from."""
        if chains < 2:
            raise ValueError(
                "ChEES must have 2 chains or more, from whose spread it learns its path; got 1. "
                "Ask for chains=2 or more, or give the path: HMC(path=1.57)"
            )

    def init_length(self, state: Any, step_size: float) -> tuple[PathLength, float]:
        self.check_chains(len(state.position))
        path = self.init_path(step_size)
        return PathLength.start(path), path

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return the wanted acceptance less the harmonic mean over the chains (D47).

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            The draw.
        info : Info
            Report of the step that led to it.
        target_accept : float
            Wanted harmonic mean of the acceptance.
        """
        with np.errstate(divide="ignore", over="ignore"):  # 0 if one of them is 0
            return float(target_accept - float(1.0 / np.mean(1.0 / info.acceptance)))

    def init(self, target: Target, position: Array) -> ChEESState:
        state = init(target, position)
        chains = len(position)
        center = np.tile(position.mean(axis=0), (chains, 1))
        return ChEESState(*state, np.zeros(chains, int), np.zeros(chains), center)

    def step(
        self, target: Target, rng: Generator, state: Any
    ) -> tuple[ChEESState, Info]:
        """Move every chain along one trajectory, or leave it where it is (D47, M7).

        Parameters
        ----------
        target : Target
        rng : Generator
        state : ChEESState
            What `init`, or the step before, has returned; it is not changed.
        """
        if not isinstance(state, ChEESState):
            raise TypeError(
                "state must be one of ChEES.init, which knows how many paths have been taken; "
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
            info.acceptance,  # 0 where divergent
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

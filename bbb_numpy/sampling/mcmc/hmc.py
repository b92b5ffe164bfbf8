"""Hamiltonian Monte Carlo with paths of random length (M7)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, pi

import numpy as np
from numpy.random import Generator

from ...numeric.layout import Array
from ...numeric.validation import SHARE, check_fields, positive
from .adaptation import Adaptable
from .leapfrog import MAX_ENERGY_ERROR, Phase, hamiltonian, leapfrog, steps_for
from .metrics import Metric
from .states import Info, State, Target, select

__all__ = ["HMC"]


@dataclass(frozen=True, eq=False)
class HMC(Adaptable):
    """Hamiltonian Monte Carlo, with the same path length for all chains of a draw (M7).

    Parameters
    ----------
    step_size : float
        Step size eps of the leapfrog, > 0, in units of the metric.
    path : float
        Length of the longest trajectory in the same units, > 0; it takes path / step_size leapfrog
        steps, rounded up. On a Gaussian whose covariance is the inverse mass matrix a quarter
        period, pi/2, gives independent draws without jitter; with the default jitter successive
        draws have the correlation 2/pi.
    metric : DiagonalMetric or DenseMetric, optional
        Mass matrix; by default unit variances.
    jitter : float
        Number in [0, 1]. The path length of each draw is drawn uniformly from (1 - jitter) path to
        path. Without jitter a path close to the period of some direction returns that direction to
        its starting point in every draw: the chain is then not ergodic.
    max_steps : int
        Largest number of leapfrog steps of a path, whatever the step size.
    small_steps : float
        Share, in [0, 1], of the paths whose step size is drawn uniformly from 0 to step_size;
        their number of steps stays the same. Without them a chain may be stuck for thousands of
        draws where the leapfrog is not stable with step_size.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 0.1
    path: float = 0.5 * pi
    metric: Metric | None = None
    jitter: float = 1.0
    max_steps: int = 1000
    small_steps: float = 0.1

    # acceptance: Neal (2011) finds 0.65 optimal for Gaussians; smaller steps suit more posteriors
    target_accept = 0.8
    # paths are short, so that chains need many of them to reach the bulk of the posterior
    default_warm_up = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, path=positive, jitter=SHARE, small_steps=SHARE)

    @property
    def steps(self) -> int:
        """Number of leapfrog steps of the longest path."""
        return steps_for(self.path, self.step_size, self.max_steps)

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        r"""Return the state after one trajectory of each chain, accepted or not, and a report (M7).

        The end of the trajectory is accepted with probability :math:`\min(1, e^{H_0 - H_1})`,
        :math:`H = -\log\pi(\theta) + \tfrac12 r^T M^{-1} r`. For the proposal to be its own inverse
        the new momentum would have to be negated; that has no effect, because the next step draws
        a new momentum.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of the chains; it is not changed.
        """
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        # number and size of the steps are drawn once and shared by all chains
        steps = ceil(self.steps * (1.0 - self.jitter * rng.random()))
        step_size = self.step_size
        if self.small_steps and rng.random() < self.small_steps:
            step_size *= 1.0 - rng.random()  # a factor in (0, 1]
        new, info, _ = trajectory(
            target, rng, metric, state, momentum, step_size, steps
        )
        return new, info


def trajectory(
    target: Target,
    rng: Generator,
    metric: Metric,
    state: State,
    momentum: Array,
    step_size: float,
    steps: int,
) -> tuple[State, Info, Phase]:
    """Return next state, report, and end point even if rejected, of one HMC trajectory (M7).

    Parameters
    ----------
    target : Target
        Function of the log density (S,) in nats, and of its gradient (S, D).
    rng : Generator
        Generator of the random numbers that decide on acceptance.
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    state : State
        State at which the trajectory begins.
    momentum : ndarray (S, D)
        Momentum at which the trajectory begins.
    step_size : float
        Step size of the leapfrog, in units of the metric.
    steps : int
        Number of leapfrog steps.

    Returns
    -------
    state : State
        The end of the trajectory for chains that accept it, else its beginning.
    info : Info
        Report of the step.
    end : Phase
        The end of the trajectory, accepted or not.
    """
    phase = Phase(state.position, momentum, state.log_density, state.gradient)
    initial_energy = hamiltonian(metric, phase)
    for _ in range(steps):
        phase = leapfrog(target, metric, phase, step_size)
    energy = hamiltonian(metric, phase)
    # the initial energy is finite: `init` and `accept` refuse positions where it is not
    error = energy - initial_energy
    energies = (initial_energy, energy)
    new, info = accept(rng, error, state, phase.state, energies, steps)
    return new, info, phase


def accept(
    rng: Generator,
    error: Array,
    old: State,
    new: State,
    energies: tuple[Array, Array],
    steps: int,
) -> tuple[State, Info]:
    """Return each chain's new state with probability min(1, exp(-error)), else the old one (M7).

    Parameters
    ----------
    rng : Generator
        Source of the random numbers.
    error : ndarray (S,)
        Change of the energy from the old to the new state, in nats.
    old, new : State
        States of S chains before and after the path.
    energies : tuple of ndarray (S,)
        Energies of the old and of the new state, in nats.
    steps : int
        Number of gradient evaluations of each chain, for the report.

    Returns
    -------
    state : State
        The next state.
    info : Info
        Report of the step.
    """
    threshold = rng.standard_exponential(len(error))
    accepted = error < threshold  # M7: log u = -Exp(1) < -error
    energy = np.where(accepted, energies[1], energies[0])
    probability = np.exp(np.minimum(0.0, -error))
    info = Info.of(probability, accepted, ~(error < MAX_ENERGY_ERROR), energy, steps)
    return select(accepted, new, old), info


NAMED = {"sampler": {"hmc": HMC()}}

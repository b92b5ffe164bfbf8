r"""The evidence P(D) by annealed importance sampling (M20).

Chains start in the prior, where P(D) plays no part, and move to the posterior by way of

.. math:: f_t(w) = P(w)\, P(D \mid w)^{\beta_t}, \qquad 0 = \beta_0 < \dots < \beta_T = 1

Before each move a chain multiplies its weight by :math:`f_t / f_{t-1}`, where it stands. The
mean of the weights is unbiased for P(D), however badly the chains mix (Neal 2001); mixing only
decides the variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.elementary import logsumexp
from bbb_numpy.sampling.mcmc import HMC, DiagonalMetric, Kernel, State, Target
from bbb_numpy.sampling.mcmc.adaptation import first_step_size
from bbb_numpy.sampling.mcmc.states import evaluate

Array = NDArray[Any]
Path = Callable[[float], Target]
# Rise of the log step size from a power to the next, per unit of excess acceptance.
STEP_SIZE_GAIN = 0.5


class Annealed(NamedTuple):
    """Weighted chains at the end of the path, and what their weights say of log Z."""

    log_weights: Array  # (S,)  nats
    positions: Array  # (S, D)  with these weights, draws of the posterior

    @property
    def log_evidence(self) -> float:
        """The logarithm of the mean weight, in nats; low by about error^2 / 2 on average (M20)."""
        return float(logsumexp(self.log_weights)) - log(len(self.log_weights))

    @property
    def error(self) -> float:
        """Standard error of `log_evidence`: relative standard error of the mean weight (M20).

        Trust it where `lower` is not far below, and few weights do not make up the mean.
        """
        shares = np.exp(self.log_weights - logsumexp(self.log_weights)) * len(
            self.log_weights
        )
        return float(shares.std(ddof=1) / len(shares) ** 0.5)

    @property
    def lower(self) -> float:
        """Mean of the log weights: below log Z on average, by Jensen's inequality (M20)."""
        return float(np.mean(self.log_weights))


class Pilot(NamedTuple):
    """Kernels and spreads that chains of a pilot have learned for each power."""

    kernels: tuple[Any, ...]  # T kernels, one tuned to each power
    # (T,)  standard deviation of log f_t - log f_(t-1), per unit of power
    spread: Array


def powers(steps: int, smallest: float = 1e-4) -> Array:
    """Return powers (T + 1,): 0, then first^(1 - t/T), by equal factors up to 1.

    Where prior and posterior are far apart a tiny power, above 0 and below 1, already matters.

    Parameters
    ----------
    steps : int
        Number T of powers above 0.
    smallest : float
        The smallest power above 0.
    """
    return np.concatenate([[0.0], smallest ** (1.0 - np.arange(1, steps + 1) / steps)])


def equalised(schedule: Array, spread: Array, steps: int) -> Array:
    """Return T powers between which log f_t - log f_(t-1) has equal variance (M20).

    The variance of a log weight is about the sum of those of its T terms, each the square of spread
    times step; for a given T the sum is least where all are equal.

    Parameters
    ----------
    schedule : array (T' + 1,)
        Powers of a pilot.
    spread : array (T',)
        Standard deviation per unit of power that the pilot measured.
    steps : int
        Number T of steps of the new schedule.

    Returns
    -------
    array (T + 1,)
        Powers, strictly increasing.
    """
    # The powers must rise strictly, even without data.
    spread = spread + 1e-6 * spread.mean() + 1e-300
    length = np.concatenate([[0.0], np.cumsum(spread * np.diff(schedule))])
    powers = np.interp(np.linspace(0.0, length[-1], steps + 1), length, schedule)
    powers[0] = schedule[0]
    powers[-1] = schedule[-1]
    return powers


def between(initial: Target, final: Target) -> Path:
    """Return the path of densities initial^(1 - power) final^power between two targets.

    Parameters
    ----------
    initial : callable
        Target at power 0: positions (S, D) to log density (S,) and gradient (S, D).
    final : callable
        Target at power 1.

    Returns
    -------
    callable
        From a power to a target.
    """

    def path(power: float) -> Target:
        def target(position: Array) -> tuple[Array, Array]:
            value0, grad0 = initial(position)
            value1, grad1 = final(position)
            value = (1.0 - power) * value0 + power * value1
            return value, (1.0 - power) * grad0 + power * grad1

        return target

    return path


def anneal(
    path: Path,
    start: Array,
    kernels: Sequence[Kernel],
    schedule: Array,
    rng: np.random.Generator,
    sweeps: int = 1,
) -> Annealed:
    """Return weighted chains that were moved along the path of densities (M20).

    Parameters
    ----------
    path : callable
        ``path(power)`` is a target.
    start : ndarray (S, D)
        Independent draws from ``path(schedule[0])``.
    kernels : sequence of T kernels
        The t-th leaves ``path(schedule[t + 1])`` invariant. They must not have learned from
        these chains: a kernel chosen by where its chain has been need not leave anything
        invariant, and the mean weight is then biased. `pilot` learns them from others.
    schedule : ndarray (T + 1,)
        Powers. Falling ones, from draws of the posterior, weight by 1 / Z.
    sweeps : int
        Moves at each power.

    Returns
    -------
    Annealed
        Weighted by Z(last power) / Z(first power).
    """
    state = State(start, *evaluate(path(float(schedule[0])), start))
    log_weights = np.zeros(len(start))
    for kernel, power in zip(kernels, schedule[1:], strict=True):
        target = path(float(power))
        state, rise = _reweight(target, state)  # M20
        log_weights += rise
        for _ in range(sweeps):
            state, _ = kernel.step(target, rng, state)
    return Annealed(log_weights, state.position)


def _reweight(target: Target, state: State) -> tuple[State, Array]:
    """Return the state under another target, and log f_new - log f_old (S,) where it stood.

    Chains of density 0 go on as copies of one that has some: their weight is 0 for good, and a
    kernel cannot start from there.
    """
    new = State(state.position, *evaluate(target, state.position))
    dead = np.isneginf(new.log_density)
    # Where the density is 0 at both powers, -inf - (-inf) is nan, which `where` discards.
    with np.errstate(invalid="ignore"):
        rise = np.where(dead, -np.inf, new.log_density - state.log_density)
    if dead.all():
        raise ValueError(
            "no chain has a density above 0 at the next power; check the data and the prior, or "
            "take more chains and smaller steps"
        )
    if np.isposinf(rise).any():
        raise ValueError(
            "a chain has a density of 0 at one power and more at the next: its weight would be "
            "infinite; start must hold draws from path(schedule[0])"
        )
    alive = int(np.argmin(dead))
    survivors = np.where(dead, alive, np.arange(len(dead)))
    return State._make(part[survivors] for part in new), rise


def pilot(
    path: Path,
    start: Array,
    kernel: Any,
    schedule: Array,
    rng: np.random.Generator,
    sweeps: int = 1,
) -> Pilot:
    """Return `kernel` tuned to every power, by chains that are thrown away (M20).

    Each power gets the variances of all chains at the power before it as its diagonal metric,
    and the step size that the acceptances up to there led to: from each power to the next its
    logarithm rises by half of what the acceptance exceeds the wanted one.

    Parameters
    ----------
    path : callable
        ``path(power)`` is a target.
    start : array (S, D)
        Draws from ``path(schedule[0])``, independent of the chains that will be weighted.
    kernel : Kernel
        One with something to tune to its `target_accept`: HMC, NUTS, or MetropolisHastings with
        a walk or Langevin. Without Metropolis' correction no density is left as it is.
    schedule : array (T + 1,)
        Powers.
    rng : numpy.random.Generator
        The only source of randomness.
    sweeps : int
        Moves at each power.

    Returns
    -------
    Pilot
        A kernel for each power above the first, and the spread of the log weights.

    Raises
    ------
    ValueError
        If all chains lose their density, or one gains it, at the next power.
    """
    state = State(start, *evaluate(path(float(schedule[0])), start))
    step_size = kernel.step_size
    tuned = []
    spread = np.empty(len(schedule) - 1)
    for t, power in enumerate(schedule[1:]):
        target = path(float(power))
        state, rise = _reweight(target, state)
        with np.errstate(all="ignore"):  # from 1e154 on squares overflow
            spread[t] = rise[np.isfinite(rise)].std() / abs(power - schedule[t])
        metric = DiagonalMetric(state.position.var(axis=0) + 1e-12)
        if t == 0:
            step_size = first_step_size(target, rng, metric, state, step_size)
        full = kernel.tuned(step_size, metric)
        tuned.append(full)
        for _ in range(sweeps):
            state, info = full.step(target, rng, state)
        step_size *= exp(
            STEP_SIZE_GAIN * (float(info.acceptance.mean()) - kernel.target_accept)
        )
    return Pilot(tuple(tuned), spread)


def evidence(
    joint: LogJoint,
    *,
    chains: int = 100,
    steps: int = 200,
    pilot_chains: int = 50,
    seed: Any = None,
) -> Annealed:
    """Estimate the log evidence of a model by annealing from its prior (M20).

    Pilots come first, and are thrown away: one along a geometric schedule, to find `equalised`
    powers, and one along these powers, to tune HMC.

    Parameters
    ----------
    joint : LogJoint
        Model, data and hyperpriors. The evidence integrates over weights *and* learned numbers.
    chains : int
        Independent weights S >= 2.
    steps : int
        T. Twice the steps halve the variance of the log weights, if the chains keep up.
    pilot_chains : int
        S of each pilot.
    seed : int, SeedSequence or Generator, optional

    Notes
    -----
    All chains may miss a narrow mode that holds most of the posterior. Then the estimate is low,
    and its `error` does not know: compare a run of several times the steps.
    """
    rng = np.random.default_rng(seed)
    # Every power has only a few trajectories, of which none is spent on small steps.
    kernel = HMC(small_steps=0.0)

    def path(power: float) -> Target:
        return replace(joint, power=power)

    start = joint.draw_prior(rng, pilot_chains)
    # The likelihood of draws from a wide prior may overflow.
    with np.errstate(all="ignore"):
        scatter = np.nan_to_num(joint.log_likelihood(start).std(), nan=np.inf)
    rough = powers(steps, float(1.0 / scatter.clip(10.0, 1e12)))
    schedule = equalised(rough, pilot(path, start, kernel, rough, rng).spread, steps)
    start = joint.draw_prior(rng, pilot_chains)
    kernels = pilot(path, start, kernel, schedule, rng).kernels
    return anneal(path, joint.draw_prior(rng, chains), kernels, schedule, rng)


class BayesFactor(NamedTuple):
    """log P(D|first) - log P(D|second), in nats, and its standard error."""

    log: float
    error: float


def bayes_factor(first: Any, second: Any) -> BayesFactor:
    """Return the Bayes factor of two models, from independent runs on the same data (M20).

    Parameters
    ----------
    first, second : Annealed
        Or any object with a `log_evidence` in nats and its standard `error`.
    """
    error = float(np.hypot(first.error, second.error))
    return BayesFactor(first.log_evidence - second.log_evidence, error)


def in_words(log_factor: float) -> str:
    """Return the words of Kass and Raftery (1995) for a log Bayes factor in nats, by 2 log B."""
    strength_2_log = 2.0 * abs(log_factor)
    if strength_2_log < 2.0:
        return "not worth more than a bare mention"
    strength = "very strong"
    if strength_2_log < 10.0:
        strength = "positive" if strength_2_log < 6.0 else "strong"
    winner = "first" if log_factor > 0 else "second"
    return f"{strength}, for the {winner}"

r"""Microcanonical Langevin samplers, unadjusted and adjusted (D48, D49, D50).

The position moves with speed 1 in units of the metric; the gradient turns the direction of motion:

.. math:: \dot\theta = M^{-1} r, \quad
    \dot r = \frac1{D - 1} \big( g - r\, (r^T M^{-1} g) \big), \quad
    r^T M^{-1} r = 1, \quad g = \nabla\log\pi(\theta)

In place of volume and energy this motion preserves the density :math:`\pi(\theta)` times the
uniform density of directions. In one dimension there is no direction to turn: these kernels need
positions of two numbers or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, erfc, exp, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ...numeric.elementary import inner
from ...numeric.layout import Array
from ...numeric.validation import Optional, check_fields, positive
from .adaptation import Adaptable, Moments, Search
from .hmc import accept
from .leapfrog import MAX_ENERGY_ERROR, Phase, steps_for
from .metrics import Metric
from .states import Info, State, Target, evaluate, init, select

__all__ = [
    "MAMS",
    "MCLMC",
    "Decoherence",
    "bias",
    "energy_variance",
    "isokinetic",
    "kick",
    "refreshed",
]

# Length of every path of MCLMC, and of the longest path of MAMS, in decoherence lengths
PATH_LENGTHS = 2.0
# Acceptance probability of a path of MAMS below which its steps count as too large
MIN_PATH_ACCEPTANCE = exp(-5.0)
# Ratio of the decoherence length to the distance moved per effective draw (Robnik et al. 2023)
LENGTH_PER_EFFECTIVE_DRAW = 0.4
MAX_ERROR_RATIO = 10.0  # upper bound of the ratio of energy variances
# Largest q = sqrt(D v) for which e^(q^2 / 2) does not overflow and Phi(-q) does not underflow
MAX_ROOT = 35.0


def directions(metric: Metric, rng: Generator, like: Array) -> Array:
    """Draw unit momenta r (S, D), r^T M^-1 r = 1, in uniformly distributed directions.

    Parameters
    ----------
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    rng : Generator
        Source of the random numbers.
    like : ndarray (S, D)
        Array whose shape and dtype the momenta have.
    """
    return _unit(metric, metric.draw_momentum(rng, like))


def _unit(metric: Metric, momentum: Array) -> Array:
    """Return the unit momenta r / |r| (S, D) of momenta r (S, D), with |r|^2 = r^T M^-1 r."""
    return momentum / np.sqrt(2.0 * metric.kinetic(momentum))[:, None]


def kick(
    metric: Metric, momentum: Array, gradient: Array, step_size: Any
) -> tuple[Array, Array]:
    r"""Return unit momenta turned by the gradient for a time `step_size`, and the work (S,) (D49).

    With :math:`e = g / |g|`, :math:`c = e^T M^{-1} r` and
    :math:`\delta = \varepsilon |g| / (D - 1)` ::

        r  <- [r + (sinh(delta) + c (cosh(delta) - 1)) e] / (cosh(delta) + c sinh(delta))
        -log |det| = (D - 1) log(cosh(delta) + c sinh(delta))

    Both are computed with exp(delta) factored out, so that nothing overflows.

    Parameters
    ----------
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    momentum : ndarray (S, D)
        Directions r, with r^T M^-1 r = 1.
    gradient : ndarray (S, D)
        Gradients g of the log density.
    step_size : float
        Time eps, in units of the metric; negative to go backwards.

    Returns
    -------
    momentum : ndarray (S, D)
        The turned directions.
    work : ndarray (S,)
        Minus the log determinant of the Jacobian on the sphere, in nats: what the kick adds to the
        energy error.
    """
    freedom = momentum.shape[1] - 1
    length = np.sqrt(2.0 * metric.kinetic(gradient))
    # a gradient of 0 turns nothing: its e is set to 0, so that c = 0
    e = gradient / np.where(length == 0.0, 1.0, length)[:, None]
    along = inner(e, metric.velocity(momentum))  # c, cosine of e and momentum
    delta = step_size * length / freedom
    share = -0.5 * np.expm1(-2.0 * delta) + 0.5 * along * np.expm1(-delta) ** 2
    new = momentum * np.exp(-delta)[:, None] + e * share[:, None]
    log_factor = np.log1p(0.5 * (1.0 - along) * np.expm1(-2.0 * delta))
    work = freedom * (delta + log_factor)  # minus log determinant (D49)
    return _unit(metric, new), work


def isokinetic(
    target: Target, metric: Metric, phase: Phase, step_size: Any
) -> tuple[Phase, Array]:
    r"""Return the phase after one step at constant speed, and the step's work (S,) in nats (D49).

    The step is a `kick` for a time eps/2, a drift of length eps and another kick for eps/2. It is
    symmetric, so that a step of -eps undoes it. The determinant of its Jacobian is
    :math:`e^{-\text{work}}`. The energy error log pi(before) - log pi(after) + work is of order
    eps^3, its variance of order eps^6.

    Parameters
    ----------
    target : Target
        Function of the log density (S,) in nats, and of its gradient (S, D).
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    phase : Phase
        Positions, and momenta of unit length.
    step_size : float
        Step size eps, in units of the metric; negative to go backwards in time.
    """
    half = 0.5 * step_size
    # a diverging path overflows without a warning; `evaluate` then sets its density to -inf
    with np.errstate(all="ignore"):
        momentum, work = kick(metric, phase.momentum, phase.gradient, half)
        position = phase.position + step_size * metric.velocity(momentum)
        value, gradient = evaluate(target, position)
        momentum, second_work = kick(metric, momentum, gradient, half)
    return Phase(position, momentum, value, gradient), work + second_work


def refreshed(
    metric: Metric, rng: Generator, momentum: Array, step_size: float, length: float
) -> Array:
    r"""Return unit momenta (S, D) mixed with noise, so that they decorrelate over `length` (D48).

    :math:`r \leftarrow (r + \nu z) / |r + \nu z|`, :math:`z \sim N(0, M)`,
    :math:`\nu^2 = (e^{2\varepsilon / \ell} - 1) / D`: after a distance ell the correlation of the
    directions is 1/e. The noise has no preferred direction, so that the uniform distribution of
    directions is invariant.

    Parameters
    ----------
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    rng : Generator
        Source of the random numbers.
    momentum : ndarray (S, D)
        Directions r of unit length.
    step_size : float
        Distance eps moved since the last refreshment, in units of the metric.
    length : float
        Decoherence length ell, in the same units.
    """
    share = sqrt(np.expm1(min(2.0 * step_size / length, 700.0)) / momentum.shape[1])
    new = momentum + share * metric.draw_momentum(rng, momentum)  # r + nu z (D48)
    return _unit(metric, new)


class Decoherence(NamedTuple):
    """State of learning the decoherence length in a warm-up (D50).

    The length begins as sqrt(D), the root of the summed variances in units of the metric. At the
    end of every window but the first it becomes 0.4 of the length of path per effective draw, but
    at most sqrt(D), and at least half of that: the draws of a network are also correlated because
    chains seldom change modes, and longer paths do not help against that.
    """

    length: float  # present decoherence length, in units of the metric
    last_position: Array  # (S, D)  positions at the last draw
    # (D,)  squared differences of successive draws, summed over chains and draws of a window
    jumps: Array

    def after_draw(
        self,
        kernel: _Microcanonical,
        state: State,
        info: Info,
        step_size: float,
        in_window: bool,
    ) -> Decoherence:
        """Return the learning state after one more draw, whose squared jump a window sums (D50).

        Parameters
        ----------
        kernel : MCLMC or MAMS
            Ignored.
        state : State
            State of the chains at the draw.
        info : Info
            Ignored.
        step_size : float
            Ignored.
        in_window : bool
            Whether the draw belongs to a window.
        """
        jumps = self.jumps
        if in_window:
            jump = state.position - self.last_position
            jumps = jumps + np.sum(jump**2, axis=0, dtype=float)
        return self._replace(last_position=state.position, jumps=jumps)

    def after_window(
        self,
        kernel: _Microcanonical,
        moments: Moments,
        step_size: float,
        first: bool,
        last: bool,
    ) -> Decoherence:
        """Return the learning state with the decoherence length that a window's draws give (D50).

        If rho is the correlation of successive draws, and correlations decay geometrically with
        the lag, an effective draw takes (1 + rho) / (1 - rho) draws.

        Parameters
        ----------
        kernel : MCLMC or MAMS
            Kernel that made the draws of the window.
        moments : Moments
            Moments of the draws of the window.
        step_size : float
            Ignored.
        first, last : bool
            Whether the window is the first one, of which the length does not learn, and whether it
            is the last one (ignored).
        """
        size = len(self.jumps)
        if first:
            return self._replace(jumps=np.zeros(size))
        squares = moments.squares
        if squares.ndim == 2:
            squares = np.diag(squares)
        chains = len(moments.mean)
        count = moments.n_draws * chains
        with np.errstate(all="ignore"):
            variance = squares / (count - chains)
            # the mean squared jump is 2 (1 - rho) times the variance
            rho = 1.0 - 0.5 * (self.jumps / count) / variance
        rho = np.clip(np.where(np.isfinite(rho), rho, 0.0), -0.5, 0.98)
        path = min(
            PATH_LENGTHS * kernel.length(size), kernel.step_size * kernel.max_steps
        )
        if not kernel.unadjusted:
            path *= 0.5  # the mean path of MAMS is half of its longest path
        draws_per_effective = float(np.mean((1.0 + rho) / (1.0 - rho)))
        length = LENGTH_PER_EFFECTIVE_DRAW * path * draws_per_effective
        # at most sqrt(D), the length for a Gaussian, and at least half of it
        length = min(max(length, 0.5 * sqrt(size)), sqrt(size))  # D50
        return self._replace(length=length, jumps=np.zeros(size))

    def current(self, last: bool) -> float:
        """Return the decoherence length in units of the metric; `last` does not matter."""
        return self.length


class _Microcanonical(Adaptable):
    """Base class of the microcanonical kernels MCLMC and MAMS."""

    decoherence_length: float | None
    max_steps: int
    unadjusted: bool  # whether there is no Metropolis test

    tuned_fields = ("step_size", "metric", "decoherence_length")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, decoherence_length=Optional(positive))

    def length(self, size: int) -> float:
        """Return the decoherence length in units of the metric; by default sqrt(`size`)."""
        if self.decoherence_length is None:
            return sqrt(size)
        return self.decoherence_length

    def steps(self, size: int) -> int:
        """Return the number of steps of a path of two decoherence lengths in `size` dimensions.

        It is rounded up, and is at most `max_steps`.
        """
        return steps_for(
            PATH_LENGTHS * self.length(size), self.step_size, self.max_steps
        )

    def init(self, target: Target, position: Array) -> State:
        """Return the initial state of S chains at `position` (S, D); ValueError unless D >= 2."""
        state = init(target, position)
        if position.shape[1] < 2:
            raise ValueError(
                "position must have 2 numbers or more for each chain, because microcanonical "
                "kernels turn a direction in a plane; got 1. Use 'nuts', 'hmc' or 'mh'"
            )
        return state

    def first_step_size(
        self, search: Search, step_size: float | None, state: State
    ) -> float:
        """Return the first step size: sqrt(D) times one that suits HMC in D dimensions.

        Parameters
        ----------
        search : callable
            Function from the step size at which a search begins to the step size that it finds,
            for leapfrog steps as in HMC.
        step_size : float or None
            Step size learned under the previous metric; None if there is no previous metric.
        state : State
            State of the chains.
        """
        root = sqrt(state.position.shape[1])
        return root * search(0.1 if step_size is None else step_size / root)

    def init_length(self, state: State, step_size: float) -> tuple[Decoherence, float]:
        """Return the initial `Decoherence`, and its decoherence length in units of the metric."""
        size = state.position.shape[1]
        length = self.length(size)
        return Decoherence(length, state.position, np.zeros(size)), length

    def _draw_phase(self, rng: Generator, state: State) -> tuple[Metric, Phase]:
        """Return the metric, and the positions of `state` with newly drawn directions."""
        metric = self.metric_for(state.position)
        momentum = directions(metric, rng, state.position)
        return metric, Phase(
            state.position, momentum, state.log_density, state.gradient
        )


@dataclass(frozen=True, eq=False)
class MCLMC(_Microcanonical):
    r"""Microcanonical Langevin Monte Carlo, unadjusted: fast, and biased (D48, D49, D50).

    Nothing is rejected, so the draws are biased, however many there are: on a Gaussian in many
    dimensions, with its covariance as the metric, every variance is too large by the relative bias
    :math:`(v / 12)^{1/3}`, where v is the variance of one step's energy error per dimension: 3.5 %
    for the v = 5e-4 that the warm-up aims at. With a metric that does not fit, the variances of
    wide directions are too small by up to twice that. Far from a Gaussian the bias is larger, of
    the same order eps^2, and means are biased too. `Draws.expected_bias` estimates the bias from
    the energy errors of the draws; for unbiased draws use `MAMS`.

    A draw is the end of a path of two decoherence lengths, which begins in a new random direction.

    Parameters
    ----------
    step_size : float
        Step size eps > 0, a length in units of the metric: sqrt(D) times that of HMC.
    decoherence_length : float, optional
        Length ell > 0, in the same units, after which the correlation of directions is 1/e. By
        default sqrt(D) at first; the warm-up learns it.
    metric : Metric, optional
        Mass matrix; by default unit variances.
    energy_variance : float
        Variance v > 0 of the energy error of one step, per dimension, that the warm-up aims at. A
        smaller one means less bias and smaller steps.
    max_steps : int
        Largest number of steps of a path.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.

    References
    ----------
    Robnik, De Luca, Silverstein and Seljak (2023), arXiv:2212.08549; Robnik and Seljak (2023),
    arXiv:2303.18221.
    """

    step_size: float = 1.0
    decoherence_length: float | None = None
    metric: Metric | None = None
    energy_variance: float = 5e-4
    max_steps: int = 1000

    target_accept = None  # there is no acceptance to aim at
    unadjusted = True
    max_bias = 0.06
    remedy = "a smaller energy_variance, e.g. 1e-4; sampler='mams' has no bias"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, energy_variance=positive)

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        """Return the state after paths of two decoherence lengths, and a report (D48, D49).

        A step whose energy error is not finite, or greater than `leapfrog.MAX_ENERGY_ERROR`, is
        undone: the chain stays, takes a new direction, and is reported as divergent. `acceptance`
        in the report is the mean probability with which the Metropolis rule would accept single
        steps; the bias is estimated from it.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of the chains; it is not changed.
        """
        metric, phase = self._draw_phase(rng, state)
        chains, size = state.position.shape
        length = self.length(size)
        steps = self.steps(size)
        acceptance = np.zeros(chains)
        divergent = np.zeros(chains, bool)
        for _ in range(steps):
            new, work = isokinetic(target, metric, phase, self.step_size)
            with np.errstate(invalid="ignore"):
                error = phase.log_density - new.log_density + work
            fine = error < MAX_ENERGY_ERROR  # false for an error of nan
            acceptance[fine] += np.exp(-np.maximum(error[fine], 0.0))
            if not fine.all():
                divergent |= ~fine
                fresh = directions(metric, rng, state.position)
                momentum = np.where(fine[:, None], new.momentum, fresh)
                stopped = select(fine, new.state, phase.state)
                new = Phase(
                    stopped.position, momentum, stopped.log_density, stopped.gradient
                )
            momentum = refreshed(metric, rng, new.momentum, self.step_size, length)
            phase = new._replace(momentum=momentum)
        moved = np.any(phase.position != state.position, axis=1)
        info = Info.of(acceptance / steps, moved, divergent, -phase.log_density, steps)
        return phase.state, info

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return (ratio - 1) / 10; ratio is a trial step's energy variance over its target (D50).

        The ratio is that of `excess`. With the factor 1/10 the error is, near its zero, about as
        steep in log eps as an acceptance.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Generator of the direction of the trial step.
        state : State
            State at which the trial step begins.
        info : Info
            Ignored.
        target_accept : None
            Ignored: nothing is rejected.
        """
        metric, phase = self._draw_phase(rng, state)
        new, work = isokinetic(target, metric, phase, self.step_size)
        with np.errstate(invalid="ignore"):
            errors = state.log_density - new.log_density + work
        size = state.position.shape[1]
        return 0.1 * (excess(errors, size, self.energy_variance) - 1.0)

    def expected_bias(self, draws: Any) -> float:
        """Return the relative bias of variances, estimated from the acceptance of `draws` (D50).

        Parameters
        ----------
        draws : Draws
            Its ``stats["acceptance"]`` holds the mean acceptance of the single steps of a path.
        """
        acceptance = float(np.mean(draws.stats["acceptance"]))
        return bias(energy_variance(acceptance, draws.positions.shape[-1]))


@dataclass(frozen=True, eq=False)
class MAMS(_Microcanonical):
    """Metropolis-adjusted microcanonical sampler: MCLMC's motion without its bias (D48, D49, D50).

    A path of isokinetic steps begins in a new random direction; its end is accepted or rejected.

    Parameters
    ----------
    step_size : float
        Step size eps > 0, a length in units of the metric: sqrt(D) times that of HMC.
    decoherence_length : float, optional
        Mean length ell > 0 of a path, in the same units; the number of steps is drawn uniformly
        from 1 to 2 ell / eps. By default sqrt(D) at first; the warm-up learns it.
    metric : Metric, optional
        Mass matrix; by default unit variances.
    max_steps : int
        Largest number of steps of a path.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.

    References
    ----------
    Robnik, Cohn-Gordon and Seljak (2025), arXiv:2503.01707.
    """

    step_size: float = 1.0
    decoherence_length: float | None = None
    metric: Metric | None = None
    max_steps: int = 1000

    target_accept = 0.9
    unadjusted = False

    def share_too_large(self, draws: Any) -> float:
        """Return the share of paths, between 0 and 1, with an energy error above 5 nats.

        For a Gaussian target it is 0. In narrow regions, where HMC diverges, motion of constant
        speed does not diverge, but its paths are rejected: their acceptance probability is below
        exp(-5).

        Parameters
        ----------
        draws : Draws
            Its ``stats["acceptance"]`` holds the acceptance probability of every path.
        """
        return float(np.mean(draws.stats["acceptance"] < MIN_PATH_ACCEPTANCE))

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        r"""Return the state after one path of each chain, accepted or rejected, and a report (D49).

        The end of the path is accepted with probability :math:`\min(1, e^{-\Delta})`,
        :math:`\Delta = \log\pi(\theta_0) - \log\pi(\theta_1) + \text{work}`. The work is minus the
        log determinant of the Jacobian: without it the chain would sample another density.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of the chains; it is not changed.
        """
        metric, phase = self._draw_phase(rng, state)
        work = np.zeros_like(state.log_density)
        # the number of steps is drawn once and shared by all chains
        steps = ceil(self.steps(state.position.shape[1]) * (1.0 - rng.random()))
        # an infinite log density plus infinite work is nan, which is rejected below
        with np.errstate(invalid="ignore"):
            for _ in range(steps):
                phase, step_work = isokinetic(target, metric, phase, self.step_size)
                work = work + step_work
            error = state.log_density - phase.log_density + work  # energy error (D49)
        # against a strong force 1 + c may round to 0 and the work to -inf: such paths are rejected
        error = np.where(error > -np.inf, error, np.inf)
        energies = (-state.log_density, -phase.log_density)
        return accept(rng, error, state, phase.state, energies, steps)


# --- tuning: bias and energy variance, from acceptance and energy errors -------------------------


def bias(energy_variance: float) -> float:
    """Return the relative bias (v / 12)^(1/3) of the variances of MCLMC's draws, Gaussian (D50).

    Parameters
    ----------
    energy_variance : float
        Variance v of one step's energy error, per dimension.
    """
    return float(np.cbrt(energy_variance / 12.0))  # (v / 12)^(1/3) (D50)


def energy_variance(acceptance: float, size: int) -> float:
    r"""Return the energy variance per dimension at which steps have the `acceptance` (D50).

    In many dimensions the energy errors along the chain are normal with mean 0 and variance
    q^2 = D v, and the Metropolis rule would accept steps with the mean probability
    :math:`\tfrac12 + e^{q^2/2} \Phi(-q)`. It falls from 1 to one half as q grows: below 0.51, at
    q = 35, it is too flat for an estimate, and v is inf.

    Parameters
    ----------
    acceptance : float
        Mean acceptance probability of single steps.
    size : int
        Number of dimensions D.
    """
    low = 0.0
    high = MAX_ROOT
    for _ in range(60):
        q = 0.5 * (low + high)
        # mean acceptance of steps whose energy errors have the standard deviation q
        accepted = 0.5 + 0.5 * exp(0.5 * q * q) * erfc(q / sqrt(2.0))  # D50
        if accepted <= acceptance:
            high = q
        else:
            low = q
    return np.inf if high == MAX_ROOT else low * low / size


def excess(errors: Array, size: int, target_variance: float) -> float:
    """Return the ratio of mean squared energy error per dimension to its target, 0 to 10 (D50).

    The mean square stands for the variance: the mean error is not subtracted. If an error is not
    finite the ratio is 10, the largest.

    Parameters
    ----------
    errors : ndarray (S,)
        Energy errors of one step, in nats.
    size : int
        Number of dimensions D.
    target_variance : float
        Target v of the variance of the energy error, per dimension.
    """
    with np.errstate(all="ignore"):
        ratio = float(np.mean(np.square(errors, dtype=float))) / (
            size * target_variance
        )
    # a ratio of nan fails this comparison, so that it becomes the largest
    return ratio if ratio < MAX_ERROR_RATIO else MAX_ERROR_RATIO


NAMED = {
    "sampler": {"mams": MAMS(), "mclmc": MCLMC()},
    "state": {"Decoherence": Decoherence},
}

r"""Microcanonical Langevin: motion of constant speed, unadjusted and adjusted (D48, D49, D50).

The position moves with speed 1 in units of the metric, the gradient turns the direction of motion:

.. math:: \dot\theta = M^{-1} r, \quad
    \dot r = \frac1{D - 1} \big( g - r\, (r^T M^{-1} g) \big), \quad
    r^T M^{-1} r = 1, \quad g = \nabla\log\pi(\theta)

In place of volume and energy it keeps the density :math:`\pi(\theta)` times the uniform density of
directions. In one dimension there is no direction to turn: these kernels need two numbers.
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

# Decoherence lengths of a path of MCLMC, and of the longest path of MAMS
PATH_LENGTHS = 2.0
# A path of MAMS with a smaller probability of acceptance had steps too large for where it was
MIN_PATH_ACCEPTANCE = exp(-5.0)
# Decoherence length over the length of path per effective draw (Robnik et al. 2023)
LENGTH_PER_EFFECTIVE_DRAW = 0.4
MAX_ERROR_RATIO = 10.0  # to which energy errors over the wanted ones are cut off
MAX_ROOT = 35.0  # up to which e^(q^2 / 2) and Phi(-q) are numbers


def directions(metric: Metric, rng: Generator, like: Array) -> Array:
    """Draw momenta with r^T M^-1 r = 1, uniform over directions.

    Parameters
    ----------
    metric : Metric
    rng : Generator
    like : ndarray (S, D)
        Array whose shape and dtype the momenta have.
    """
    return _unit(metric, metric.draw_momentum(rng, like))


def _unit(metric: Metric, momentum: Array) -> Array:
    """Return r / |r| with |r|^2 = r^T M^-1 r (S, D)."""
    return momentum / np.sqrt(2.0 * metric.kinetic(momentum))[:, None]


def kick(
    metric: Metric, momentum: Array, gradient: Array, step_size: Any
) -> tuple[Array, Array]:
    r"""Return directions after the gradient has turned them for a time, exactly (D49).

    With :math:`e = g / |g|`, :math:`c = e^T M^{-1} r` and
    :math:`\delta = \varepsilon |g| / (D - 1)` ::

        r  <- [r + (sinh(delta) + c (cosh(delta) - 1)) e] / (cosh(delta) + c sinh(delta))
        -log |det| = (D - 1) log(cosh(delta) + c sinh(delta))

    Both with exp(-delta) taken out: nothing overflows.

    Parameters
    ----------
    metric : Metric
    momentum : ndarray (S, D)
        r, with r^T M^-1 r = 1.
    gradient : ndarray (S, D)
        g, of the log density.
    step_size : float
        eps, the time; negative to go backwards.

    Returns
    -------
    momentum : ndarray (S, D)
    work : ndarray (S,)
        Minus the log determinant of the Jacobian on the sphere: what the kick adds to the energy.
    """
    freedom = momentum.shape[1] - 1
    length = np.sqrt(2.0 * metric.kinetic(gradient))
    # g = 0 turns nothing: c = 0
    e = gradient / np.where(length == 0.0, 1.0, length)[:, None]
    along = inner(e, metric.velocity(momentum))  # c
    delta = step_size * length / freedom
    share = -0.5 * np.expm1(-2.0 * delta) + 0.5 * along * np.expm1(-delta) ** 2
    new = momentum * np.exp(-delta)[:, None] + e * share[:, None]
    log_factor = np.log1p(0.5 * (1.0 - along) * np.expm1(-2.0 * delta))
    work = freedom * (delta + log_factor)  # D49
    return _unit(metric, new), work


def isokinetic(
    target: Target, metric: Metric, phase: Phase, step_size: Any
) -> tuple[Phase, Array]:
    r"""Return the phase after one isokinetic step, and the work of its two kicks (S,) (D49).

    Half a kick, a drift of length eps, half a kick: read from either end it is the same, so that
    -eps undoes it. :math:`e^{-\text{work}}` is the determinant of its Jacobian. The energy error
    log pi(before) - log pi(after) + work is of order eps^3, its variance of order eps^6.

    Parameters
    ----------
    target : Target
    metric : Metric
    phase : Phase
        With momenta of unit length.
    step_size : float
        eps, in units of the metric; negative to go backwards in time.
    """
    half = 0.5 * step_size
    with np.errstate(all="ignore"):  # a diverging path overflows; `evaluate` says so
        momentum, work = kick(metric, phase.momentum, phase.gradient, half)
        position = phase.position + step_size * metric.velocity(momentum)
        value, gradient = evaluate(target, position)
        momentum, second_work = kick(metric, momentum, gradient, half)
    return Phase(position, momentum, value, gradient), work + second_work


def refreshed(
    metric: Metric, rng: Generator, momentum: Array, step_size: float, length: float
) -> Array:
    r"""Return the directions after a partial refreshment with noise (D48).

    :math:`r \leftarrow (r + \nu z) / |r + \nu z|`, :math:`z \sim N(0, M)`,
    :math:`\nu^2 = (e^{2\varepsilon / \ell} - 1) / D`: after a way ell the correlation is 1/e.
    No direction is special, so the uniform distribution stays what it was.

    Parameters
    ----------
    metric : Metric
    rng : Generator
    momentum : ndarray (S, D)
        Directions r of unit length.
    step_size : float
        eps, the way since the last refreshment, in units of the metric.
    length : float
        ell, the decoherence length, in the same units.
    """
    share = sqrt(np.expm1(min(2.0 * step_size / length, 700.0)) / momentum.shape[1])
    new = momentum + share * metric.draw_momentum(rng, momentum)  # D48
    return _unit(metric, new)


class Decoherence(NamedTuple):
    """Warm-up of the decoherence length (D50).

    The length begins as sqrt(D), the root of the summed variances in units of the metric. At the
    end of every window but the first it becomes 0.4 of the path per effective draw, but not more
    than at first, and not less than half of it: the draws of a network are also correlated because
    chains seldom change modes, which longer paths do not mend.
    """

    length: float
    last_position: Array  # (S, D)  the draw before
    # (D,)  summed squares of the differences of successive draws of a window
    jumps: Array

    def after_draw(
        self,
        kernel: _Microcanonical,
        state: State,
        info: Info,
        step_size: float,
        in_window: bool,
    ) -> Decoherence:
        """Add the jump to a draw of a window to its sum (D50).

        Parameters
        ----------
        kernel : MCLMC or MAMS
            That made the draw.
        state : State
            The draw.
        info : Info
            Report of the step that led to it.
        step_size : float
            Of the next draw.
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
        """Update the length of decoherence from the draws of a whole window (D50).

        With the correlation rho of successive draws, as if it fell geometrically from there, an
        effective draw takes (1 + rho) / (1 - rho) draws.

        Parameters
        ----------
        kernel : MCLMC or MAMS
        moments : Moments
            Of the draws of the window.
        step_size : float
            Of the next draw, in units of the new metric.
        first, last : bool
            Whether it is the first or the last window.
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
            # jumps are 2 (1 - rho) variances
            rho = 1.0 - 0.5 * (self.jumps / count) / variance
        rho = np.clip(np.where(np.isfinite(rho), rho, 0.0), -0.5, 0.98)
        path = min(
            PATH_LENGTHS * kernel.length(size), kernel.step_size * kernel.max_steps
        )
        if not kernel.unadjusted:
            path *= 0.5  # the mean path of MAMS
        draws_per_effective = float(np.mean((1.0 + rho) / (1.0 - rho)))
        length = LENGTH_PER_EFFECTIVE_DRAW * path * draws_per_effective
        length = min(max(length, 0.5 * sqrt(size)), sqrt(size))  # D50
        return self._replace(length=length, jumps=np.zeros(size))

    def current(self, last: bool) -> float:
        """Return the decoherence length, the same during the warm-up and after it."""
        return self.length


class _Microcanonical(Adaptable):
    """Base class of MCLMC and MAMS."""

    decoherence_length: float | None
    max_steps: int
    unadjusted: bool

    tuned_fields = ("step_size", "metric", "decoherence_length")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, decoherence_length=Optional(positive))

    def length(self, size: int) -> float:
        """Return ell for `size` numbers: sqrt(D) unless it is given."""
        if self.decoherence_length is None:
            return sqrt(size)
        return self.decoherence_length

    def steps(self, size: int) -> int:
        """Return the isokinetic steps of a path of two decoherence lengths."""
        return steps_for(
            PATH_LENGTHS * self.length(size), self.step_size, self.max_steps
        )

    def init(self, target: Target, position: Array) -> State:
        state = init(target, position)
        if position.shape[1] < 2:
            raise ValueError(
                "position must have 2 numbers or more, in whose plane microcanonical kernels turn "
                "a direction; got 1: the motion would never come back. Use 'nuts', 'hmc' or 'mh'"
            )
        return state

    def first_step_size(
        self, search: Search, step_size: float | None, state: State
    ) -> float:
        """Return sqrt(D) times the step size of HMC.

        Parameters
        ----------
        search : callable
            From a step size to one whose leapfrog steps are accepted.
        step_size : float or None
            Step size under the last metric; None at the first one.
        state : State
        """
        root = sqrt(state.position.shape[1])
        return root * search(0.1 if step_size is None else step_size / root)

    def init_length(self, state: State, step_size: float) -> tuple[Decoherence, float]:
        size = state.position.shape[1]
        length = self.length(size)
        return Decoherence(length, state.position, np.zeros(size)), length

    def _draw_phase(self, rng: Generator, state: State) -> tuple[Metric, Phase]:
        """Return the metric, and the state with directions drawn afresh."""
        metric = self.metric_for(state.position)
        momentum = directions(metric, rng, state.position)
        return metric, Phase(
            state.position, momentum, state.log_density, state.gradient
        )


@dataclass(frozen=True, eq=False)
class MCLMC(_Microcanonical):
    r"""Microcanonical Langevin Monte Carlo, unadjusted: fast, and biased (D48, D49, D50).

    Nothing is rejected, so the draws are not those of the posterior, however many there are: on a
    Gaussian in many dimensions, whose covariance is the metric, every variance is too large by the
    share :math:`(v / 12)^{1/3}`, where v is the variance of one step's energy error per dimension:
    by 3.5 % for the v = 5e-4 that the warm-up aims at. With a metric that does not fit, wide
    directions are too narrow by up to twice that. Far from a Gaussian it is more, of the same order
    eps^2, and means are off too. `Draws.expected_bias` says how much it is, from the draws' own
    energy errors; for draws of the posterior itself use `MAMS`.

    A draw is a path of two decoherence lengths, from a direction drawn afresh.

    Parameters
    ----------
    step_size : float
        eps > 0, a length in units of the metric: sqrt(D) times what it would be for HMC.
    decoherence_length : float, optional
        ell > 0, in the same units, after which the direction is forgotten; by default sqrt(D), and
        learned in the warm-up.
    metric : Metric, optional
        By default unit variances.
    energy_variance : float
        v > 0, which the warm-up aims at: variance of the energy error of one step, per dimension.
        A smaller one is less bias, and smaller steps.
    max_steps : int
        Upper bound of the steps of a path.

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

    target_accept = None  # nothing is accepted or rejected
    unadjusted = True
    max_bias = 0.06
    remedy = "a smaller energy_variance, e.g. 1e-4; sampler='mams' has no bias"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, energy_variance=positive)

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        """Move every chain by two decoherence lengths (D48, D49).

        A step whose energy error is not finite, or greater than `leapfrog.MAX_ENERGY_ERROR`, is
        taken back: the chain stays, takes a new direction, and is reported as divergent.
        `acceptance` is what Metropolis' rule would accept of single steps, on average: it tells
        the bias.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are; it is not changed.
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
            fine = error < MAX_ENERGY_ERROR  # false where it is no number
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
        """Return a tenth of the relative excess of a trial step's energy variance (D50).

        The excess is over `energy_variance` v, which the warm-up aims at. By the factor of a tenth
        it is, near its zero, about as steep in log eps as an acceptance.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            The draw.
        info : Info
            Report of the step that led to it.
        target_accept : None
            Without effect: nothing is rejected.
        """
        metric, phase = self._draw_phase(rng, state)
        new, work = isokinetic(target, metric, phase, self.step_size)
        with np.errstate(invalid="ignore"):
            errors = state.log_density - new.log_density + work
        size = state.position.shape[1]
        return 0.1 * (excess(errors, size, self.energy_variance) - 1.0)

    def expected_bias(self, draws: Any) -> float:
        """Return the share by which variances are off, from the acceptance of `Draws` (D50)."""
        acceptance = float(np.mean(draws.stats["acceptance"]))
        return bias(energy_variance(acceptance, draws.positions.shape[-1]))


@dataclass(frozen=True, eq=False)
class MAMS(_Microcanonical):
    """Metropolis-adjusted microcanonical sampler: MCLMC's motion without its bias (D48, D49, D50).

    A draw is a path of isokinetic steps from a direction drawn afresh, accepted or not.

    Parameters
    ----------
    step_size : float
        eps > 0, a length in units of the metric: sqrt(D) times what it would be for HMC.
    decoherence_length : float, optional
        ell > 0, in the same units: the mean length of a path, whose number of steps is drawn evenly
        from 1 to 2 ell / eps. By default sqrt(D), and learned in the warm-up.
    metric : Metric, optional
        By default unit variances.
    max_steps : int
        Upper bound of the steps of a path.

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

        For a Gaussian target it is 0. Where HMC diverges, motion of constant speed does not, but
        its paths are rejected: their acceptance probability is below exp(-5).

        Parameters
        ----------
        draws : Draws
            Its ``stats["acceptance"]`` holds the acceptance probability of every path.
        """
        return float(np.mean(draws.stats["acceptance"] < MIN_PATH_ACCEPTANCE))

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        r"""Move every chain along one path, or leave it where it is (D49).

        Accepted with probability :math:`\min(1, e^{-\Delta})`,
        :math:`\Delta = \log\pi(\theta_0) - \log\pi(\theta_1) + \text{work}`. The work is minus the
        log determinant of the Jacobian: without it another density would be left invariant.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are; it is not changed.
        """
        metric, phase = self._draw_phase(rng, state)
        work = np.zeros_like(state.log_density)
        # drawn once for all chains
        steps = ceil(self.steps(state.position.shape[1]) * (1.0 - rng.random()))
        with np.errstate(invalid="ignore"):  # infinite work may meet infinite energy
            for _ in range(steps):
                phase, step_work = isokinetic(target, metric, phase, self.step_size)
                work = work + step_work
            error = state.log_density - phase.log_density + work  # D49
        # 1 + c may round to 0 against a strong force, and make the work -inf: no reason to accept
        error = np.where(error > -np.inf, error, np.inf)
        energies = (-state.log_density, -phase.log_density)
        return accept(rng, error, state, phase.state, energies, steps)


# --- tuning --------------------------------------------------------------------------------------


def bias(energy_variance: float) -> float:
    """Return by what share variances of a Gaussian are too large for this energy variance (D50)."""
    return float(np.cbrt(energy_variance / 12.0))  # D50


def energy_variance(acceptance: float, size: int) -> float:
    r"""Return the v of steps of which Metropolis' rule would accept this share (D50).

    Along the chain errors in many dimensions are normal with the mean 0 and the variance
    q^2 = D v, of which :math:`\tfrac12 + e^{q^2/2} \Phi(-q)` would be accepted: from 1 down to a
    half, so that of less than 0.51, q = 35, nothing can be told and v is inf.

    Parameters
    ----------
    acceptance : float
        Mean acceptance of single steps.
    size : int
        D, the number of dimensions.
    """
    low = 0.0
    high = MAX_ROOT
    for _ in range(60):
        q = 0.5 * (low + high)
        accepted = 0.5 + 0.5 * exp(0.5 * q * q) * erfc(q / sqrt(2.0))  # D50
        if accepted <= acceptance:
            high = q
        else:
            low = q
    return np.inf if high == MAX_ROOT else low * low / size


def excess(errors: Array, size: int, target_variance: float) -> float:
    """Return the energy variance per dimension over the wanted one, from 0 to 10 (D50).

    Errors that are not finite count as the largest: nan fails every comparison, so that it is
    the comparison with what is right that has to be made.

    Parameters
    ----------
    errors : ndarray (S,)
        Energy errors of one step, in nats.
    size : int
        D, the number of dimensions.
    target_variance : float
        Variance of the error, per dimension.
    """
    with np.errstate(all="ignore"):
        ratio = float(np.mean(np.square(errors, dtype=float))) / (
            size * target_variance
        )
    return ratio if ratio < MAX_ERROR_RATIO else MAX_ERROR_RATIO


NAMED = {
    "sampler": {"mams": MAMS(), "mclmc": MCLMC()},
    "state": {"Decoherence": Decoherence},
}

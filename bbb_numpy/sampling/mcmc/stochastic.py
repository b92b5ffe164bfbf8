r"""Stochastic gradient Hamiltonian Monte Carlo, with minibatches and without rejection (D64, D65).

Langevin's motion, with friction gamma and temperature T,

.. math:: \dot\theta = M^{-1} r, \quad \dot r = \nabla\log\pi(\theta) - \gamma r
    + \text{noise of variance } 2 \gamma T M

leaves the density :math:`\pi(\theta)^{1/T}` invariant. Steps of finite size and gradients of
minibatches do not: both heat the chain, and no rejection corrects for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf, pi, sqrt, tanh
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ...numeric.deprecation import renamed_names
from ...numeric.layout import Array
from ...numeric.validation import (
    SAMPLES,
    STEPS,
    Optional,
    check_fields,
    fraction,
    positive,
)
from .adaptation import Adaptable
from .leapfrog import MAX_ENERGY_ERROR
from .metrics import Metric
from .states import Info, Target, evaluate, init

__all__ = ["SGHMC", "SGHMCState", "heat"]

# Number of standard deviations by which the cube root of a draw's heat (kinetic energy over its
# expected value) must exceed its mean, so that it is not by chance, to count as too hot
HEAT_Z_SCORE = 4.0
MAX_HEAT_RATIO = 10.0  # upper bound of a step's bias over the target bias


def _friction(name: str, value: Any) -> float:
    """Return `value` as a positive float, which may be inf; else raise an error with `name`."""
    if isinstance(value, Real) and value == inf:
        return inf
    return positive(name, value)


class SGHMCState(NamedTuple):
    """A `State` of S chains with their momenta."""

    position: Array  # (S, D)  positions of S chains
    log_density: Array  # (S,)  log density given all rows
    gradient: Array  # (S, D)  gradient of the log density given all rows
    momentum: Array  # (S, D)  momenta of S chains
    # (S,) int  number of draws made in this cycle, the same for all chains
    draw_in_cycle: Array


@dataclass(frozen=True, eq=False)
class SGHMC(Adaptable):
    r"""Stochastic gradient HMC; with infinite friction SGLD (D64, D65).

    Nothing is rejected, so the draws are biased, however many there are. On a Gaussian variances
    are too large by a relative bias of about :math:`\frac{h^2}{4} (\lambda + \kappa V / T)`, with h
    the step size, :math:`\kappa = \coth(\gamma h / 2)`, :math:`\lambda` the precision, and V the
    variance of the minibatches' gradient, both in units of the metric (D64).
    `Draws.expected_bias` estimates its mean over all directions; stiff directions have more.

    Parameters
    ----------
    step_size : float
        Step size h > 0 of the leapfrog, in units of the metric; for SGLD the root of twice the
        learning rate.
    friction : float
        Friction gamma > 0: in a time 1 / gamma the momentum decays to 1/e of itself. With ``inf``
        a new momentum is drawn for every step, which is SGLD.
    metric : Metric, optional
        Mass matrix; by default unit variances.
    batch_size : int
        Number of rows of a step, drawn for each chain independently. All rows are used if there
        are no more, or if the target has no method `draw_rows`, as `LogJoint` has.
    steps : int
        Number of steps of each draw; each step has its own minibatch.
    temperature : float
        Temperature T > 0: the draws are from the density to the power 1 / T. T < 1 gives a cold
        posterior.
    cycle : int, optional
        Number of draws of a cycle, in which the squared step size falls along a cosine from h^2 to
        0 (Zhang et al. 2020). By default the step size stays the same.
    exploring : float
        Share, >= 0 and < 1, of a cycle's steps that come before its first draw and have no noise
        except that of the minibatches.
    bias : float
        Mean relative bias of variances, > 0, that the warm-up aims at (D65): 0.1 allows variances
        that are 10 % too large.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.

    References
    ----------
    Welling and Teh (2011); Chen, Fox and Guestrin (2014), arXiv:1402.4102; Zhang et al. (2020),
    arXiv:1902.03932.
    """

    step_size: float = 0.01
    friction: float = 10.0
    metric: Metric | None = None
    batch_size: int = 32
    steps: int = 50
    temperature: float = 1.0
    cycle: int | None = None
    exploring: float = 0.0
    bias: float = 0.1

    target_accept = None  # there is no acceptance to aim at
    unadjusted = True
    remedy = (
        "a smaller bias, e.g. 0.03, or a larger batch_size; sampler='hmc' has no bias"
    )
    default_warm_up = 1000

    @property
    def max_bias(self) -> float:  # type: ignore[override]
        """Relative bias of variances above which a warning is emitted: twice the field `bias`."""
        return 2.0 * self.bias

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, batch_size=SAMPLES, steps=STEPS, cycle=Optional(STEPS))
        check_fields(self, temperature=positive, exploring=fraction, bias=positive)
        check_fields(self, friction=_friction)
        if self.exploring and self.cycle is None:
            raise ValueError(
                f"exploring must be 0 if cycle is None, because it is a share of a cycle; got "
                f"{self.exploring}. Set cycle too"
            )

    def init(self, target: Target, position: Array) -> SGHMCState:
        """Return the initial `SGHMCState` of S chains at `position` (S, D), with momenta of 0."""
        state = init(target, position)
        chains = len(position)
        return SGHMCState(*state, np.zeros_like(position), np.zeros(chains, int))

    def plan(self, draw: int) -> tuple[Array, Array]:
        r"""Return the step sizes (n,) and the temperatures (n,) for the n steps of a draw (D65).

        Step k of the K steps of a cycle has the size :math:`h \cos(\pi k / 2 K)`; SGLD's learning
        rate, half the square of it, is :math:`h^2 (1 + \cos(\pi k / K)) / 4`. The first draw of a
        cycle also includes the exploring steps, whose temperature is 0.

        Parameters
        ----------
        draw : int
            Number of draws before this one in the cycle; ignored if `cycle` is None.
        """
        if self.cycle is None:
            step_sizes: Array = np.full(self.steps, self.step_size)
            return step_sizes, np.full(self.steps, self.temperature)
        sampling_steps = self.cycle * self.steps
        total = round(sampling_steps / (1.0 - self.exploring))
        exploring_steps = total - sampling_steps
        first = exploring_steps + draw * self.steps if draw else 0
        k = np.arange(first, exploring_steps + (draw + 1) * self.steps)
        step_sizes = self.step_size * np.cos(0.5 * pi * k / total)  # quarter wave (D65)
        return step_sizes, np.where(k < exploring_steps, 0.0, self.temperature)

    def step(
        self, target: Target, rng: Generator, state: SGHMCState
    ) -> tuple[SGHMCState, Info]:
        r"""Return the state after `steps` leapfrog steps on new minibatches, and a report (D64).

        With :math:`c = e^{-\gamma h}` and g the gradient estimated from the minibatch a step is ::

            r     <- c (r + (h/2) g) + sqrt(T (1 - c^2)) z + (h/2) g,     z ~ N(0, M)
            theta <- theta + h M^-1 r

        which is the leapfrog with the friction between its two half kicks. `energy` in the report
        contains the mean kinetic energy of these steps, from which the bias is estimated. A chain
        whose log density falls by more than `leapfrog.MAX_ENERGY_ERROR` + T D nats, or that ends at
        a density that is not finite, returns to its position before the step, with a newly drawn
        momentum, and is reported as divergent.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : SGHMCState
            State that `init` or the step before returned; it is not changed.
        """
        metric = self.metric_for(state.position)
        x = state.position
        r = state.momentum
        kinetic: Array = np.zeros(len(x))
        n_noisy = 0
        step_sizes, temperatures = self.plan(int(state.draw_in_cycle[0]))
        # a chain that diverges overflows without a warning, and is then put back to its start
        with np.errstate(all="ignore"):
            for h, temperature in zip(step_sizes, temperatures, strict=True):
                _, g = evaluate(self._minibatch(target, rng, x), x)
                c = float(np.exp(-self.friction * h))
                half = float(0.5 * h)
                r = c * (r + half * g) + half * g  # kicks with friction (D64)
                if temperature:
                    noise = metric.draw_momentum(rng, x)
                    r = r + sqrt(temperature * (1.0 - c * c)) * noise
                x = x + float(h) * metric.velocity(r)
                if temperature:
                    kinetic = kinetic + metric.kinetic(r)
                    n_noisy += 1
            value, gradient = evaluate(target, x)
            max_loss = MAX_ENERGY_ERROR + self.temperature * x.shape[1]
            fine = (state.log_density - value < max_loss) & np.isfinite(r).all(axis=1)
        kinetic = kinetic / n_noisy
        if not fine.all():
            fresh = sqrt(self.temperature) * metric.draw_momentum(rng, x)
            x = np.where(fine[:, None], x, state.position)
            r = np.where(fine[:, None], r, fresh)
            gradient = np.where(fine[:, None], gradient, state.gradient)
            value = np.where(fine, value, state.log_density)
            kinetic = np.where(fine, kinetic, metric.kinetic(fresh))
        draw_in_cycle = state.draw_in_cycle
        if self.cycle is not None:
            draw_in_cycle = (draw_in_cycle + 1) % self.cycle
        n_gradients = len(step_sizes) + 1
        info = Info.of(fine.astype(float), fine, ~fine, kinetic - value, n_gradients)
        return SGHMCState(x, value, gradient, r, draw_in_cycle), info

    def _minibatch(self, target: Any, rng: Generator, position: Array) -> Target:
        """Return the target restricted to `batch_size` rows, drawn for each chain independently.

        It is `target` itself if it has no `draw_rows`, or not more rows than a batch.
        """
        draw_rows = getattr(target, "draw_rows", None)
        rows = None
        if draw_rows is not None:
            rows = draw_rows(rng, len(position), self.batch_size)
        minibatch: Target = target if rows is None else partial(target, rows=rows)
        return minibatch

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return (ratio - 1) / 10; ratio is a step's estimated bias of variances over `bias` (D65).

        The ratio is at most 10, as for MCLMC; it is 10 after a divergence.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Generator of the minibatch from which the gradient noise is estimated.
        state : SGHMCState
            State of the chains at the draw.
        info : Info
            Report of the step that led to `state`.
        target_accept : None
            Ignored: nothing is rejected.
        """
        metric = self.metric_for(state.position)
        minibatch = self._minibatch(target, rng, state.position)
        _, noisy = evaluate(minibatch, state.position)
        size = state.position.shape[1] * self.temperature
        with np.errstate(all="ignore"):
            square = np.mean(_square(metric, state.gradient)) / size
            noise = np.mean(_square(metric, noisy - state.gradient)) / size
            ratio = heat(self.step_size, self.friction, square, noise) / self.bias
        if info.divergent.any() or not ratio < MAX_HEAT_RATIO:
            ratio = MAX_HEAT_RATIO
        return 0.1 * (ratio - 1.0)

    def expected_bias(self, draws: Any) -> float:
        """Return the mean relative bias of variances, estimated from the kinetic energy (D65).

        Parameters
        ----------
        draws : Draws
            Draws of this kernel.
        """
        return abs(float(np.mean(self._heats(draws))) - 1.0)

    def share_too_large(self, draws: Any) -> float:
        """Return the share of draws, 0 to 1, whose kinetic energy is larger than by chance (D65).

        The limit is a quantile of the heat, the kinetic energy over its expected value, that few
        draws of a Gaussian exceed by chance. The heat is chi-squared over its degrees of freedom:
        the number of dimensions times the number of independent momenta in the steps of a draw.
        The quantile is approximated by the formula of Wilson and Hilferty.

        Parameters
        ----------
        draws : Draws
            Draws of this kernel.
        """
        heats = self._heats(draws)
        half_decay = min(0.5 * self.friction * self.step_size, 20.0)
        steps = 1.0 + (self.steps - 1) * tanh(half_decay)
        spread = 2.0 / (9.0 * draws.positions.shape[-1] * steps)
        factor = (1.0 - spread + HEAT_Z_SCORE * sqrt(spread)) ** 3
        return float(np.mean(heats > float(heats.mean()) * factor))

    def _heats(self, draws: Any) -> Array:
        """Return the heat (T, S) of T draws of S chains: kinetic energy over its expected value."""
        kinetic = np.asarray(draws.stats["energy"] + draws.log_density, float)
        return 2.0 * kinetic / (draws.positions.shape[-1] * self.temperature)


def _square(metric: Metric, gradient: Array) -> Array:
    """Return the squared norms g^T M^-1 g (S,) of gradients g (S, D), with M the mass matrix."""
    return 2.0 * metric.kinetic(gradient)


def heat(step_size: float, friction: float, square: float, noise: float) -> float:
    r"""Return the relative bias of variances that finite steps and minibatches cause (D65).

    For small steps it is :math:`\frac{h^2}{4} (|g|^2 + \kappa |\xi|^2)`, with
    :math:`\kappa = \coth(\gamma h/2)`, g the gradient and xi the error of its minibatch estimate.

    Parameters
    ----------
    step_size : float
        Step size h, in units of the metric.
    friction : float
        Friction gamma.
    square : float
        Mean of |g|^2 in units of the metric, divided by dimensions and temperature.
    noise : float
        Mean of |xi|^2 in the same units.
    """
    kappa_noise = noise / tanh(0.5 * friction * step_size)
    return 0.25 * step_size**2 * (square + kappa_noise)  # relative bias (D65)


NAMED = {
    "sampler": {"sghmc": SGHMC(), "sgld": SGHMC(friction=np.inf)},
    "state": {"SGHMCState": SGHMCState},
}
__getattr__ = renamed_names(__name__, {"Moving": "SGHMCState"})

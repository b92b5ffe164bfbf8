r"""Stochastic gradient Hamiltonian Monte Carlo, with minibatches and without rejection (D64, D65).

Langevin's motion, with friction gamma and temperature T,

.. math:: \dot\theta = M^{-1} r, \quad \dot r = \nabla\log\pi(\theta) - \gamma r
    + \text{noise of variance } 2 \gamma T M

leaves the density :math:`\pi(\theta)^{1/T}` as it is. Steps of finite size and gradients of
minibatches do not: both heat the chain, and nothing is rejected that would make up for it.
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

# A draw is too hot by more than chance if the cube root of its heat is so many standard
# deviations above its mean
HEAT_Z_SCORE = 4.0
MAX_HEAT_RATIO = 10.0  # to which heat over the wanted one is cut off


def _friction(name: str, value: Any) -> float:
    """Return a positive number; infinity leaves no momentum (SGLD)."""
    if isinstance(value, Real) and value == inf:
        return inf
    return positive(name, value)


class SGHMCState(NamedTuple):
    """A `State` of S chains with their momenta."""

    position: Array  # (S, D)
    log_density: Array  # (S,)  of all rows
    gradient: Array  # (S, D)  of all rows
    momentum: Array  # (S, D)
    draw_in_cycle: Array  # (S,)  draws made in this cycle, the same for all chains


@dataclass(frozen=True, eq=False)
class SGHMC(Adaptable):
    r"""Stochastic gradient HMC; with infinite friction SGLD (D64, D65).

    Nothing is rejected, so the draws are those of another density, however many there are. On a
    Gaussian variances are too large by the share :math:`\frac{h^2}{4} (\lambda + \kappa V / T)`,
    about, with h the step size, :math:`\kappa = \coth(\gamma h / 2)`, and :math:`\lambda` and V the
    precision and the variance of the minibatches' gradient in units of the metric (D64).
    `Draws.expected_bias` tells the mean over all directions; stiff ones have more.

    Parameters
    ----------
    step_size : float
        h > 0 of the leapfrog, in units of the metric; for SGLD the root of twice the learning
        rate.
    friction : float
        gamma > 0: the momentum is forgotten by 1/e in a time 1 / gamma. With ``inf`` it is drawn
        afresh for every step, which is SGLD.
    metric : Metric, optional
        By default unit variances.
    batch_size : int
        Rows of a step, drawn for each chain by itself. All are taken if there are no more, or the
        target has no minibatches (`LogJoint.draw_rows`).
    steps : int
        Steps of each draw, with a minibatch each.
    temperature : float
        T > 0: the draws are of the density to the power 1 / T. Below 1 it is a cold posterior.
    cycle : int, optional
        Number of draws of a cycle, in which the squared step size falls along a cosine from h^2 to
        0 (Zhang et al. 2020). By default the step size stays the same.
    exploring : float
        Share, >= 0 and < 1, of a cycle's steps that come before its first draw and have no noise
        but that of the minibatches.
    bias : float
        Mean share by which variances may be too large, > 0, which the warm-up aims at (D65).

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

    target_accept = None  # nothing is accepted or rejected
    unadjusted = True
    remedy = (
        "a smaller bias, e.g. 0.03, or a larger batch_size; sampler='hmc' has no bias"
    )
    default_warm_up = 1000

    @property
    def max_bias(self) -> float:  # type: ignore[override]
        """Bias above which a warning says so: twice what the warm-up aims at."""
        return 2.0 * self.bias

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, batch_size=SAMPLES, steps=STEPS, cycle=Optional(STEPS))
        check_fields(self, temperature=positive, exploring=fraction, bias=positive)
        check_fields(self, friction=_friction)
        if self.exploring and self.cycle is None:
            raise ValueError(
                f"exploring must be 0 without cycle, of which it is a share; got "
                f"{self.exploring}. Give cycle too"
            )

    def init(self, target: Target, position: Array) -> SGHMCState:
        state = init(target, position)
        chains = len(position)
        return SGHMCState(*state, np.zeros_like(position), np.zeros(chains, int))

    def plan(self, draw: int) -> tuple[Array, Array]:
        r"""Return step sizes and temperatures of the steps of a draw, one after the other (D65).

        Step k of the K steps of a cycle has the size :math:`h \cos(\pi k / 2 K)`; SGLD's learning
        rate, half the square of it, is :math:`h^2 (1 + \cos(\pi k / K)) / 4`. The first draw of a
        cycle has the steps of its exploration too, with temperature 0.
        """
        if self.cycle is None:
            step_sizes = np.full(self.steps, self.step_size)
            return step_sizes, np.full(self.steps, self.temperature)
        sampling_steps = self.cycle * self.steps
        total = round(sampling_steps / (1.0 - self.exploring))
        exploring_steps = total - sampling_steps
        first = exploring_steps + draw * self.steps if draw else 0
        k = np.arange(first, exploring_steps + (draw + 1) * self.steps)
        step_sizes = self.step_size * np.cos(0.5 * pi * k / total)  # D65
        return step_sizes, np.where(k < exploring_steps, 0.0, self.temperature)

    def step(
        self, target: Target, rng: Generator, state: SGHMCState
    ) -> tuple[SGHMCState, Info]:
        r"""Move every chain by `steps` minibatches (D64).

        A step, with :math:`c = e^{-\gamma h}` and g the gradient of its rows, is ::

            r     <- c (r + (h/2) g) + sqrt(T (1 - c^2)) z + (h/2) g,     z ~ N(0, M)
            theta <- theta + h M^-1 r

        which is the leapfrog with the friction between its two half kicks. `energy` has the
        kinetic energy as its mean over these steps, which tells the bias. A chain that loses more
        than `leapfrog.MAX_ENERGY_ERROR` nats and T for each number, or ends where the density is
        not finite, is put back, with a momentum drawn afresh, and reported as divergent.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : SGHMCState
            What `init`, or the step before, has returned; it is not changed.
        """
        metric = self.metric_for(state.position)
        x = state.position
        r = state.momentum
        kinetic: Array = np.zeros(len(x))
        n_noisy = 0
        step_sizes, temperatures = self.plan(int(state.draw_in_cycle[0]))
        with np.errstate(all="ignore"):  # a chain that explodes overflows
            for h, temperature in zip(step_sizes, temperatures, strict=True):
                _, g = evaluate(self._minibatch(target, rng, x), x)
                c = float(np.exp(-self.friction * h))
                half = float(0.5 * h)
                r = c * (r + half * g) + half * g  # D64
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
        """Return the target of rows drawn for each chain; all rows where there are no more."""
        draw_rows = getattr(target, "draw_rows", None)
        rows = None
        if draw_rows is not None:
            rows = draw_rows(rng, len(position), self.batch_size)
        minibatch: Target = target if rows is None else partial(target, rows=rows)
        return minibatch

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, target_accept: Any
    ) -> float:
        """Return a tenth of the relative excess of a step's heat over the wanted bias (D65).

        It is a tenth of the share, cut off at 10 as an error of MCLMC is.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : SGHMCState
            The draw.
        info : Info
            Report of the step that led to it.
        target_accept : None
            Without effect: nothing is rejected.
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
        """Return the mean share by which variances of `Draws` are off (D65).

        It is the excess heat of the momenta.
        """
        return abs(float(np.mean(self._heats(draws))) - 1.0)

    def share_too_large(self, draws: Any) -> float:
        """Return the share of draws, between 0 and 1, whose momenta are too hot (D65).

        Too hot means hotter than chance makes more than a few draws of a Gaussian. The heat of a
        draw is chi-squared, over its numbers times the steps in which a momentum is forgotten; its
        quantile is that of Wilson and Hilferty.
        """
        heats = self._heats(draws)
        half_decay = min(0.5 * self.friction * self.step_size, 20.0)
        steps = 1.0 + (self.steps - 1) * tanh(half_decay)
        spread = 2.0 / (9.0 * draws.positions.shape[-1] * steps)
        factor = (1.0 - spread + HEAT_Z_SCORE * sqrt(spread)) ** 3
        return float(np.mean(heats > float(heats.mean()) * factor))

    def _heats(self, draws: Any) -> Array:
        """Return the heat of draws (T, S): kinetic energy over its mean at the temperature."""
        kinetic = np.asarray(draws.stats["energy"] + draws.log_density, float)
        return 2.0 * kinetic / (draws.positions.shape[-1] * self.temperature)


def _square(metric: Metric, gradient: Array) -> Array:
    """Return g^T M^-1 g (S,), in which a gradient has the part of a momentum."""
    return 2.0 * metric.kinetic(gradient)


def heat(step_size: float, friction: float, square: float, noise: float) -> float:
    r"""Return the share by which steps and minibatches heat a chain, for small steps (D65).

    :math:`\frac{h^2}{4} (|g|^2 + \kappa |\xi|^2)` of the mean square of the gradient and that of
    its minibatches' error, per dimension and temperature, with :math:`\kappa = \coth(\gamma h/2)`.

    Parameters
    ----------
    step_size : float
        h.
    friction : float
        gamma.
    square : float
        Mean of |g|^2 over dimensions and temperature, in units of the metric.
    noise : float
        The same of the minibatches' error xi.
    """
    kappa_noise = noise / tanh(0.5 * friction * step_size)
    return 0.25 * step_size**2 * (square + kappa_noise)  # D65


NAMED = {
    "sampler": {"sghmc": SGHMC(), "sgld": SGHMC(friction=np.inf)},
    "state": {"SGHMCState": SGHMCState},
}
__getattr__ = renamed_names(__name__, {"Moving": "SGHMCState"})

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

HEAT_Z_SCORE = 4.0  # standard deviations of the cube root of a draw's heat


def _friction(name: str, value: Any) -> float:
    """Return a positive number; infinity leaves no momentum (SGLD)."""
    return inf if isinstance(value, Real) and value == inf else positive(name, value)


class SGHMCState(NamedTuple):
    """Where S chains are, and how they move."""

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
        h > 0 of the leapfrog, in units of the metric: of SGLD the root of twice its learning rate.
    friction : float
        gamma > 0: the momentum is forgotten by 1/e in a time 1 / gamma. With ``inf`` it is drawn
        afresh for every step, which is SGLD.
    metric
        As of `HMC`.
    batch_size : int
        Rows of a step, drawn for each chain by itself. All are taken if there are no more, or the
        target has no minibatches (`LogJoint.draw_rows`).
    steps : int
        Steps, a minibatch each, of a draw.
    temperature : float
        T > 0: the draws are of density to the power 1 / T. Below 1 is a cold posterior.
    cycle : int, optional
        Draws of a cycle, in which the squared step size falls along a cosine from h^2 to 0
        (Zhang et al. 2020). By default the step size stays.
    exploring : float
        Share, >= 0 and < 1, of a cycle's steps that come before its first draw and have no noise
        but that of the minibatches.
    bias : float
        The mean share by which variances may be too large, which the warm-up aims at, > 0 (D65).

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
        """Twice what the warm-up aims at."""
        return 2.0 * self.bias

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, batch_size=SAMPLES, steps=STEPS, cycle=Optional(STEPS))
        check_fields(self, temperature=positive, exploring=fraction, bias=positive)
        check_fields(self, friction=_friction)
        if self.exploring and self.cycle is None:
            raise ValueError(
                f"exploring={self.exploring} is a share of a cycle; give cycle too"
            )

    def init(self, target: Target, position: Array) -> SGHMCState:
        chains = len(position) if np.ndim(position) == 2 else 0
        return SGHMCState(
            *init(target, position), np.zeros_like(position), np.zeros(chains, int)
        )

    def plan(self, draw: int) -> tuple[Array, Array]:
        r"""Return step sizes and temperatures of the steps of a cycle's draw (D65).

        Step k of K has the size :math:`h \cos(\pi k / 2 K)`; SGLD's learning rate, half the square
        of it, is :math:`h^2 (1 + \cos(\pi k / K)) / 4`.
        """
        if self.cycle is None:
            return np.full(self.steps, self.step_size), np.full(
                self.steps, self.temperature
            )
        total = self.cycle * self.steps / (1.0 - self.exploring)
        before = round(total) - self.cycle * self.steps  # steps without noise
        first = before + draw * self.steps if draw else 0
        k = np.arange(first, before + (draw + 1) * self.steps)
        step_sizes = self.step_size * np.cos(0.5 * pi * k / round(total))  # D65
        return step_sizes, np.where(k < before, 0.0, self.temperature)

    def step(
        self, target: Target, rng: Generator, state: SGHMCState
    ) -> tuple[SGHMCState, Info]:
        r"""Move every chain by `steps` minibatches (D64).

        One of them, with :math:`c = e^{-\gamma h}` and g the gradient of its rows ::

            r     <- c (r + (h/2) g) + sqrt(T (1 - c^2)) z + (h/2) g,     z ~ N(0, M)
            theta <- theta + h M^-1 r

        which is the leapfrog with the friction between its two half kicks. `energy` has the
        kinetic energy as its mean over these steps: it tells the bias. A chain that loses more
        than `leapfrog.MAX_ENERGY_ERROR` nats and T for each number, or ends where the density is
        not finite, is put back, with a momentum drawn afresh, and reported as divergent.
        """
        metric, old = self.metric_for(state.position), state
        x, r = state.position, state.momentum
        kinetic: Array = np.zeros(len(x))
        noisy = 0
        plan = self.plan(int(state.draw_in_cycle[0]))
        with np.errstate(all="ignore"):  # a chain that explodes overflows
            for h, temperature in zip(*plan, strict=True):
                _, g = evaluate(self._of_rows(target, rng, x), x)
                c, half = float(np.exp(-self.friction * h)), float(0.5 * h)
                r = c * (r + half * g) + half * g  # D64
                if temperature:
                    noise = metric.draw_momentum(rng, x)
                    r = r + sqrt(temperature * (1.0 - c * c)) * noise
                x = x + float(h) * metric.velocity(r)
                if temperature:
                    kinetic, noisy = kinetic + metric.kinetic(r), noisy + 1
            value, gradient = evaluate(target, x)
            most = MAX_ENERGY_ERROR + self.temperature * x.shape[1]
            fine = (old.log_density - value < most) & np.isfinite(r).all(axis=1)
        kinetic = kinetic / noisy
        if not fine.all():
            fresh = sqrt(self.temperature) * metric.draw_momentum(rng, x)
            x, r, gradient = (
                np.where(fine[:, None], new, before)
                for new, before in (
                    (x, old.position),
                    (r, fresh),
                    (gradient, old.gradient),
                )
            )
            value = np.where(fine, value, old.log_density)
            kinetic = np.where(fine, kinetic, metric.kinetic(fresh))
        clock = (
            state.draw_in_cycle
            if self.cycle is None
            else (state.draw_in_cycle + 1) % self.cycle
        )
        info = Info.of(
            fine.astype(float), fine, ~fine, kinetic - value, len(plan[0]) + 1
        )
        return SGHMCState(x, value, gradient, r, clock), info

    def _of_rows(self, target: Any, rng: Generator, position: Array) -> Target:
        """Return the target of a minibatch."""
        draw = getattr(target, "draw_rows", None)
        rows = None if draw is None else draw(rng, len(position), self.batch_size)
        found: Target = target if rows is None else partial(target, rows=rows)
        return found

    def adaptation_error(
        self, target: Target, rng: Generator, state: Any, info: Info, wanted: Any
    ) -> float:
        """Return by how much the heat of a step is above the bias that is wanted (D65).

        A tenth of its share, cut off at 10 as an error of MCLMC is.
        """
        metric = self.metric_for(state.position)
        _, noisy = evaluate(self._of_rows(target, rng, state.position), state.position)
        size = state.position.shape[1] * self.temperature
        with np.errstate(all="ignore"):
            square = np.mean(_square(metric, state.gradient)) / size
            noise = np.mean(_square(metric, noisy - state.gradient)) / size
            ratio = heat(self.step_size, self.friction, square, noise) / self.bias
        return 0.1 * (
            (ratio if ratio < 10.0 and not info.divergent.any() else 10.0) - 1.0
        )

    def expected_bias(self, draws: Any) -> float:
        """Return the mean share by which variances are off: the momenta's excess heat (D65)."""
        return abs(float(np.mean(self._heats(draws))) - 1.0)

    def share_too_large(self, draws: Any) -> float:
        """Return the share of draws that are hotter than chance makes a few of a Gaussian (D65).

        The heat of a draw is chi-squared, over its numbers times the steps in which a momentum is
        forgotten; its quantile is that of Wilson and Hilferty.
        """
        heats = self._heats(draws)
        steps = 1.0 + (self.steps - 1) * tanh(
            min(0.5 * self.friction * self.step_size, 20.0)
        )
        spread = 2.0 / (9.0 * draws.positions.shape[-1] * steps)
        most = float(heats.mean()) * (1.0 - spread + HEAT_Z_SCORE * sqrt(spread)) ** 3
        return float(np.mean(heats > most))

    def _heats(self, draws: Any) -> Array:
        """Return the kinetic energy of draws (T, S) over that of the temperature."""
        kinetic = np.asarray(draws.stats["energy"] + draws.log_density, float)
        return 2.0 * kinetic / (draws.positions.shape[-1] * self.temperature)


def _square(metric: Metric, gradient: Array) -> Array:
    """Return g^T M^-1 g (S,): the gradient is of a momentum's kind."""
    return 2.0 * metric.kinetic(gradient)


def heat(step_size: float, friction: float, square: float, noise: float) -> float:
    r"""Return the share by which steps and minibatches heat a chain, for small steps (D65).

    :math:`\frac{h^2}{4} (|g|^2 + \kappa |\xi|^2)` of the mean square of the gradient and that of
    its minibatches' error, per dimension and temperature, with :math:`\kappa = \coth(\gamma h/2)`.
    """
    return (
        0.25 * step_size**2 * (square + noise / tanh(0.5 * friction * step_size))
    )  # D65


NAMED = {
    "sampler": {"sghmc": SGHMC(), "sgld": SGHMC(friction=np.inf)},
    "state": {"SGHMCState": SGHMCState},
}
__getattr__ = renamed_names(__name__, {"Moving": "SGHMCState"})

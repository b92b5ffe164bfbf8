r"""The leapfrog integrator of Hamilton's equations (M8).

With the potential energy :math:`-\log\pi(\theta)` and the kinetic energy
:math:`\tfrac12 r^T M^{-1} r`, the motion :math:`\dot\theta = M^{-1} r`,
:math:`\dot r = \nabla\log\pi(\theta)` keeps their sum H.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ...numeric.deprecation import renamed_names
from ...numeric.layout import Array
from .metrics import Metric
from .states import State, Target, finite

__all__ = ["MAX_ENERGY_ERROR", "Phase", "hamiltonian", "leapfrog", "steps_for"]

# In nats. A trajectory with a greater error of its energy has diverged: it follows the true motion
# no more, and would be accepted with probability exp(-1000), which is 0
MAX_ENERGY_ERROR = 1000.0


class Phase(NamedTuple):
    """Positions and momenta of S chains, with log density and gradient at the positions."""

    position: Array  # (S, D)
    momentum: Array  # (S, D)
    log_density: Array  # (S,)
    gradient: Array  # (S, D)

    @property
    def state(self) -> State:
        """The state without its momentum."""
        return State(self.position, self.log_density, self.gradient)


def steps_for(length: float, step_size: float, max_steps: int) -> int:
    """Return the number of steps of a path: length / step_size, at least 1.

    Parameters
    ----------
    length : float
        Of the path, in units of the metric.
    step_size : float
        In the same units; the quotient may be 0 or inf.
    max_steps : int
        Upper bound of the number.
    """
    return ceil(min(max(length / step_size, 1), max_steps))


def hamiltonian(metric: Metric, phase: Phase) -> Array:
    """Return the energy H = -log pi + r^T M^-1 r / 2 (S,), in nats; inf where it is not a number.

    Parameters
    ----------
    metric : Metric
    phase : Phase
    """
    with np.errstate(all="ignore"):
        energy = metric.kinetic(phase.momentum) - phase.log_density
        if np.isfinite(np.add.reduce(energy)):  # the common case, in one look
            return energy
    return np.where(np.isnan(energy), np.inf, energy)


def leapfrog(target: Target, metric: Metric, phase: Phase, step_size: Any) -> Phase:
    r"""Return the phase after one step of the leapfrog (M8).

    Its three lines are ::

        r     <- r + (eps/2) grad log pi(theta)
        theta <- theta + eps M^-1 r
        r     <- r + (eps/2) grad log pi(theta)

    Each line shifts one half of (theta, r) by a function of the other: a shear, of determinant 1.
    Read upwards with -eps the lines undo themselves. The error of H is of order eps^2.

    Parameters
    ----------
    target : Target
    metric : Metric
    phase : Phase
        Position and momentum, with log density and gradient there.
    step_size : float or ndarray (S, 1)
        eps, in units of the metric; negative to go backwards in time.
    """
    half = 0.5 * step_size
    # a diverging trajectory overflows; `finite` says so
    with np.errstate(all="ignore"):
        momentum = phase.momentum + half * phase.gradient
        position = phase.position + step_size * metric.velocity(momentum)  # M8
        value, gradient = finite(*target(position))
        momentum += half * gradient
    return Phase(position, momentum, value, gradient)


__getattr__ = renamed_names(__name__, {"DIVERGENT": "MAX_ENERGY_ERROR"})

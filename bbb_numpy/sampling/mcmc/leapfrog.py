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

# Energy error, in nats, from which on a trajectory is divergent: it no longer follows the true
# motion, and its probability of acceptance, exp(-1000), rounds to 0
MAX_ENERGY_ERROR = 1000.0


class Phase(NamedTuple):
    """Positions and momenta of S chains, with log density and gradient at the positions."""

    position: Array  # (S, D)  positions of S chains
    momentum: Array  # (S, D)  momenta of S chains
    log_density: Array  # (S,)  log densities, in nats and up to a constant
    gradient: Array  # (S, D)  gradient of the log density

    @property
    def state(self) -> State:
        """`State` with position, log density and gradient, without the momentum."""
        return State(self.position, self.log_density, self.gradient)


def steps_for(length: float, step_size: float, max_steps: int) -> int:
    """Return the number of steps of a path: length / step_size rounded up, from 1 to max_steps.

    Parameters
    ----------
    length : float
        Length of the path, in units of the metric.
    step_size : float
        Length of a step, in the same units; the quotient may be 0 or inf.
    max_steps : int
        Largest number of steps.
    """
    return ceil(min(max(length / step_size, 1), max_steps))


def hamiltonian(metric: Metric, phase: Phase) -> Array:
    """Return the energies H = -log pi + r^T M^-1 r / 2 (S,), in nats, with nan replaced by inf.

    Parameters
    ----------
    metric : Metric
        Mass matrix M.
    phase : Phase
        Positions and momenta r of S chains, with the log density log pi at the positions.
    """
    with np.errstate(all="ignore"):
        energy = metric.kinetic(phase.momentum) - phase.log_density
        # the common case in one test: if the sum is finite, no energy is nan
        if np.isfinite(np.add.reduce(energy)):
            return energy
    return np.where(np.isnan(energy), np.inf, energy)


def leapfrog(target: Target, metric: Metric, phase: Phase, step_size: Any) -> Phase:
    r"""Return the positions and momenta of S chains after one leapfrog step, as a `Phase` (M8).

    The step is ::

        r     <- r + (eps/2) grad log pi(theta)
        theta <- theta + eps M^-1 r
        r     <- r + (eps/2) grad log pi(theta)

    Each line shifts theta by a function of r, or r by a function of theta: a shear, whose Jacobian
    has determinant 1. The same lines with -eps, from the last to the first, undo the step. The
    error of H is of order eps^2.

    Parameters
    ----------
    target : Target
        Function of the log density (S,) in nats, and of its gradient (S, D).
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    phase : Phase
        Positions and momenta, with log density and gradient at the positions.
    step_size : float or ndarray (S, 1)
        Step size eps, in units of the metric; negative to go backwards in time.
    """
    half = 0.5 * step_size
    # a diverging trajectory overflows without a warning; `finite` then sets its density to -inf
    with np.errstate(all="ignore"):
        momentum = phase.momentum + half * phase.gradient
        position = phase.position + step_size * metric.velocity(momentum)  # drift (M8)
        value, gradient = finite(*target(position))
        momentum += half * gradient
    return Phase(position, momentum, value, gradient)


__getattr__ = renamed_names(__name__, {"DIVERGENT": "MAX_ENERGY_ERROR"})

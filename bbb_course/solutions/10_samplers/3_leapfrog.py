"""A ball in a valley, step by step.

Hamiltonian Monte Carlo gives the weights a momentum and lets them roll through the landscape of
-log pi. The leapfrog does it in steps that can be retraced exactly and keep volumes: half a step
of the momentum, a whole step of the position, and the other half of the momentum, with the slope
at the new position. Euler's method, both at once from the old values, spirals outwards.

    r_half = r + (step / 2) slope(q),
    q_new = q + step r_half,
    r_new = r_half + (step / 2) slope(q_new).

Shapes: q and r are (P,), step is a number, slope is a function: the gradient of log pi, (P,)
to (P,). Return the new q and the new r.

Hint: try yours backwards: with -r_new it should return to the start.

Read: M8 in derivations/samplers.md.
"""

import numpy as np


def leapfrog(q, r, step, slope):
    """Return position and momentum after one leapfrog step.

    Parameters
    ----------
    q, r : ndarray (P,)
        Position and momentum.
    step : float
        Step size.
    slope : callable
        Takes a position (P,) to the gradient (P,) of log pi.

    Returns
    -------
    new_q, new_r : ndarray (P,)
        Position and momentum after the step.
    """
    ### BEGIN SOLUTION
    kick = 0.5 * step
    r = r + kick * slope(q)
    q = q + step * r
    r = r + kick * slope(q)
    return q, r
    ### END SOLUTION

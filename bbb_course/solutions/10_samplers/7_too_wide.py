"""How much too wide the draws of minibatches are.

Stochastic gradient HMC on one weight, whose density is N(0, 1 / lam). The gradient of a minibatch
is g = -lam x + xi, where xi has the mean 0 and the variance v. One step, with z ~ N(0, 1), is

    r <- c (r + h/2 g) + sqrt(T (1 - c^2)) z + h/2 g,       x <- x + h r,

where c = exp(-friction h) says how much of the momentum is kept: 0 is Langevin dynamics. Nothing
is rejected, so that the draws have another variance than 1 / lam.

The positions stay as wide as they are, and so do the momenta, if E r^2 = lam E x^2; that leaves one
equation for E x^2. Two things make it too large: noise and long steps.

Shapes: five numbers; temperature is T.
Return the variance E x^2 of the draws.

Read: D64 in derivations/stochastic-samplers.md.
"""

import numpy as np


def too_wide(lam, v, temperature, h, c):
    """Return the variance of the draws.

    Parameters
    ----------
    lam : float
        Precision of the target.
    v : float
        Variance of a minibatch's gradient.
    temperature : float
        Temperature T of the dynamics.
    h : float
        Step size.
    c : float
        Share of the momentum that a step keeps, from 0 to 1.
    """
    ### BEGIN SOLUTION
    heated = temperature + h**2 / 4 * v * (1 + c) / (1 - c)
    return heated / (lam * (1 - h**2 / 4 * lam))
    ### END SOLUTION

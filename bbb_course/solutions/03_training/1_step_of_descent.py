"""One step downhill.

The gradient points uphill, so one moves a little against it. The posterior of a weight has two
numbers, and both move: mu to where the data want it, rho to how sure they are. What moves is rho,
not sigma: that was the point of softplus.

Shapes: mu, rho, d_mu and d_rho are (P,), eta is a number, the learning rate. Return the new mu
and the new rho; leave the old ones as they are.

Read: K43 and K44 in derivations.md.
"""

import numpy as np


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    """Return mu and rho after one step of gradient descent.

    Parameters
    ----------
    mu, rho : ndarray (P,)
        Means and raw standard deviations of the weights.
    d_mu, d_rho : ndarray (P,)
        Gradient of the cost for mu and for rho.
    eta : float
        Learning rate.

    Returns
    -------
    new_mu, new_rho : ndarray (P,)
        New arrays; mu and rho stay as they are.
    """
    ### BEGIN SOLUTION
    new_mu = mu - d_mu * eta
    new_rho = rho - d_rho * eta
    return new_mu, new_rho
    ### END SOLUTION

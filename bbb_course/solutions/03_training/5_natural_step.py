"""A step that the curvature scales, and a sigma that follows it.

By Price's identity the gradient of the free energy for sigma knows the curvature h of
-log P(w, D), averaged over q: sigma dF/dsigma = sigma^2 h - 1. So no second derivative has to be
computed. With s = 1 / sigma^2 the step of IVON is

    s <- s [1 + (1 + x)^2] / 2  with  x = r sigma dF/dsigma,    mu <- mu - eta dF/dmu / s,

which is s + r (h - s) to first order in r, and positive whatever the noise of h. The new s serves
in the step of mu. Here sigma itself is given and returned.

Shapes: mu, sigma, d_mu and d_sigma (the gradients of F for mu and for sigma) are (P,); the step
sizes eta and r are numbers. Return the new mu and sigma.

Read: D61 and D62 in derivations/training.md.
"""

import numpy as np


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    """Return mu and sigma after one step.

    Parameters
    ----------
    mu, sigma : ndarray (P,)
        Means and standard deviations of the weights.
    d_mu, d_sigma : ndarray (P,)
        Gradient of the free energy for mu and for sigma.
    eta : float
        Step size of mu.
    r : float
        Step size of the precision, between 0 and 1.

    Returns
    -------
    new_mu, new_sigma : ndarray (P,)
        Means and standard deviations after the step.
    """
    ### BEGIN SOLUTION
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    return mu - eta * d_mu / s, 1 / np.sqrt(s)
    ### END SOLUTION

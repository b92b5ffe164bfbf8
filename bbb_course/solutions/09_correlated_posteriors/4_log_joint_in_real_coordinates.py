"""A positive number in real clothes.

ADVI approximates with a Gaussian, which lives on the whole line. A positive theta does not; its
logarithm zeta does. But a density changes when its variable is stretched: a piece of the zeta
line is mapped to a piece of the theta line that is d theta / d zeta times as long. So

    log density of zeta = log density of theta at exp(zeta) + log |d theta / d zeta|.

Without the second term one approximates the posterior of another prior. Value and gradient agree
with each other there, so no gradient check will ever tell you.

Shapes: zeta is (P,); each theta has the unnormalised log density (a - 1) log theta - b theta.
Return the log density in zeta, summed over P, and its slope d_zeta (P,).

Read: M14, M15 and M17 in derivations/correlated-posteriors.md.
"""

import numpy as np


def log_joint_in_real_coordinates(zeta, a, b):
    """Return the log density of zeta and its slope.

    Parameters
    ----------
    zeta : ndarray (P,)
        Logarithms of theta.
    a, b : float
        Shape and rate of the Gamma density of theta.

    Returns
    -------
    value : float
        Log density of zeta, added up over P, without its constant.
    d_zeta : ndarray (P,)
        Its slope for zeta.
    """
    ### BEGIN SOLUTION
    theta = np.exp(zeta)
    log_density = (a - 1) * np.log(theta) - b * theta
    log_jacobian = np.log(theta)
    return np.sum(log_density + log_jacobian), ((a - 1) / theta - b) * theta + 1
    ### END SOLUTION

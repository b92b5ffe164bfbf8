"""The density of weights with a common cause.

In units of their deviations let P weights be a = e + v h, where e are P noises of their own and h
is one that all of them see, all standard normal. Their covariance is I + v v^T. But for a constant

    log q = -1/2 log(1 + |v|^2) - 1/2 [|a|^2 - (v . a)^2 / (1 + |v|^2)]

which takes P steps, where a matrix of P x P would take P^3.

Shapes: a, v (P,).
Return log q, and its slopes for a (with v fixed) and for v (with a fixed).

Hint: c = v . a / (1 + |v|^2) is the mean of h given a, and is in both slopes.

Read: D59 in derivations/correlated-posteriors.md.
"""

import numpy as np


def density_of_low_rank(a, v):
    """Return log q but for a constant, and its slopes for a and v.

    Parameters
    ----------
    a : ndarray (P,)
        Weights, in units of their standard deviations.
    v : ndarray (P,)
        Loadings of the noise that all weights see.

    Returns
    -------
    log_q : float
        Log density of a.
    d_a, d_v : ndarray (P,)
        Its slopes for a and for v.
    """
    ### BEGIN SOLUTION
    m = 1 + v @ v
    c = v @ a / m
    value = -(np.log(m) + a @ a - c**2 * m) / 2
    return value, c * v - a, c * (a - c * v) - v / m
    ### END SOLUTION

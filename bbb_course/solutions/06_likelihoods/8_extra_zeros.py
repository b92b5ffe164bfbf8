"""Zeros of two kinds.

On days on which it is closed a shop sells nothing, whatever the weather. Let a share q of the rows
be of this kind, and the rest have Poisson counts of the rate m = exp(f):

    P(0) = q + (1 - q) exp(-m),    P(y) = (1 - q) exp(-m) m^y / y!  for y > 0.

The share is learned by its log odds z: q = exp(z) / (1 + exp(z)). A zero does not tell of which
kind it is, but how probably; find that number in your slopes. And mind the floats: for f = 7 the
rate is 1097, and exp(1097) is no float.

Shapes: f is (B,), y is (B,) of whole numbers, z is a number. Return minus the log likelihood,
summed over rows and without log y!; its slope d_f (B,); and its slope d_z, one number.

Read: D71 in derivations/likelihoods.md.
"""

import numpy as np


def extra_zeros(f, y, z):
    """Return minus log P(y|f, z), without log y!, and its slopes for f and z.

    Parameters
    ----------
    f : ndarray (B,)
        Logarithms of the rates.
    y : ndarray (B,)
        Counts.
    z : float
        Log odds of an extra zero.

    Returns
    -------
    value : float
        Minus log P(y|f, z), added up over rows, without log y!.
    d_f : ndarray (B,)
        Its slope for f.
    d_z : float
        Its slope for z.
    """
    ### BEGIN SOLUTION
    m = np.exp(f)
    q = 1 / (1 + np.exp(-z))
    log_rest = -np.logaddexp(0, z)  # log(1 - q)
    of_zero = q + np.exp(log_rest - m)
    extra = np.where(y == 0, q / of_zero, 0)
    log_p = np.where(y == 0, np.log(of_zero), log_rest + y * f - m)
    return -np.sum(log_p), (1 - extra) * (m - y), np.sum(q - extra)
    ### END SOLUTION

"""One family of bounds, and its gradient.

Raise the weights to the power 1 - alpha before averaging, and undo it afterwards:

    value = log[ (1/S) sum_s omega_s^(1 - alpha) ] / (1 - alpha).

At alpha = 0 this is the importance-weighted bound, and for alpha towards 1 it becomes the lower
bound. Small alpha listens to the places where q is too small, large alpha to those where it is
too large.

The gradient needs only the slope of this value for the numbers log omega_s. It is a softmax: the
mean over samples in the report's gradient becomes a weighted mean.

Shapes: log_weights is (S,), alpha is a number other than 1. Return the value and the slope
u (S,).

Hint: the u add up to 1.

Read: D25 in derivations/bounds.md.
"""

import numpy as np


def renyi_bound(log_weights, alpha):
    """Return the bound's estimate and its slope for log_weights.

    Parameters
    ----------
    log_weights : ndarray (S,)
        Log importance weights, log P(w, D) - log q(w).
    alpha : float
        Order of the divergence, not 1.

    Returns
    -------
    value : float
        Estimate of the bound, in nats.
    u : ndarray (S,)
        Its slope for log_weights.
    """
    ### BEGIN SOLUTION
    power = 1 - alpha
    terms = np.exp(power * log_weights)
    total = terms.sum()
    return (np.log(total) - np.log(len(terms))) / power, terms / total
    ### END SOLUTION

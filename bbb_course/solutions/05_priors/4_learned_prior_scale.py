"""Let the data choose the prior's width.

Which scale a prior should have is rarely known, so it is learned with the weights. A scale is
positive; t = log s is free. Without the constant log(2 pi) / 2, the cost of P weights is

    sum_j [t + w_j^2 exp(-2 t) / 2].

The first term keeps the scale from growing, the second from shrinking: at the optimum s^2 is the
mean of w^2. Here a wrong sign of log s, harmless for a fixed scale, is fatal.

Shapes: w is (P,), t is a number. Return the value, its slope d_w (P,), and its slope d_t, one
number.

Read: D17 in derivations/priors.md.
"""

import numpy as np


def learned_prior_scale(w, t):
    """Return the value and its slopes for w and t.

    Parameters
    ----------
    w : ndarray (P,)
        Weights.
    t : float
        Logarithm of the prior's standard deviation.

    Returns
    -------
    value : float
        Cost of the weights, in nats.
    d_w : ndarray (P,)
        Its slope for w.
    d_t : float
        Its slope for t.
    """
    ### BEGIN SOLUTION
    precision = np.exp(-2 * t)
    squares = np.sum(w * w) * precision
    return len(w) * t + squares / 2, precision * w, len(w) - squares
    ### END SOLUTION

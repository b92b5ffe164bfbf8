"""The prior that pulls with the same force everywhere.

Laplace's distribution has the density exp(-|w| / b) / (2 b): a peak at 0, and tails that fall
more slowly than a Gaussian's. A small weight is pulled to 0 as hard as a large one, so small ones
vanish and large ones survive.

Shapes: w is (P,), none of them 0; b is a number. Return minus the log density, one number with
its constant, and its slope d_w (P,).

Hint: `np.sign` and `abs` are allowed.

Read: D16 in derivations/priors.md.
"""

import numpy as np


def laplace_prior(w, b):
    """Return minus log P(w) and its slope for w.

    Parameters
    ----------
    w : ndarray (P,)
        Weights, none of them 0.
    b : float
        Scale of the distribution.

    Returns
    -------
    value : float
        Minus log P(w), added up over weights.
    d_w : ndarray (P,)
        Its slope for w.
    """
    ### BEGIN SOLUTION
    size = np.where(w > 0, w, -w)
    slope = np.where(w > 0, 1.0, -1.0) / b
    return np.sum(size) / b + len(w) * np.log(2 * b), slope
    ### END SOLUTION

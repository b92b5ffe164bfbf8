"""The prior that pulls like a spring.

Before the data, every weight is believed to be N(0, prior^2). In the cost this is minus the log
density, summed over weights, and in the gradient a force towards 0 that grows with the distance.

Keep all constants. The gradient for w does not see log(prior), and the report prints it with the
wrong sign; nobody notices until two priors are compared, or `prior` is learned.

Shapes: w is (P,), prior is a standard deviation, a number. Return the value, one number, and its
slope d_w (P,).

Read: K11 to K13 and K21 in derivations.md.
"""

import numpy as np


def gaussian_prior(w, prior):
    """Return minus log P(w) and its slope for w.

    Parameters
    ----------
    w : ndarray (P,)
        Weights.
    prior : float
        Standard deviation.

    Returns
    -------
    value : float
        Minus log P(w), added up over weights.
    d_w : ndarray (P,)
        Its slope for w.
    """
    ### BEGIN SOLUTION
    scaled = w / prior
    constant = len(w) * (np.log(prior) + np.log(2 * np.pi) / 2)
    return np.sum(scaled**2) / 2 + constant, scaled / prior
    ### END SOLUTION

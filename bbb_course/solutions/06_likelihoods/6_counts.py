"""How many?

Counts are not Gaussian: they are whole, never negative, and large ones scatter more. Poisson's
law has one number, the rate, and gives the count y the probability exp(-rate) rate^y / y!. A rate
is positive, so the network's output z is its logarithm.

Shapes: z is (B,), y is (B,) of whole numbers. Return minus the log likelihood, summed over rows
and without log y!, which nothing here depends on; and its slope d_z (B,).

Read: D15 in derivations/likelihoods.md.
"""

import numpy as np


def counts(z, y):
    """Return minus log P(y|z), without log y!, and its slope for z.

    Parameters
    ----------
    z : ndarray (B,)
        Logarithms of the rates.
    y : ndarray (B,)
        Counts.

    Returns
    -------
    value : float
        Minus log P(y|z), added up over rows, without log y!.
    d_z : ndarray (B,)
        Its slope for z.
    """
    ### BEGIN SOLUTION
    rate = np.exp(z)
    return np.sum(rate) - z @ y, rate - y
    ### END SOLUTION

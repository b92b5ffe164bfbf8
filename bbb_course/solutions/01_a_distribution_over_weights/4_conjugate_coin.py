"""A coin, and why some priors are convenient.

The density of a coin's bias r is proportional to r^(alpha - 1) (1 - r)^(beta - 1): a Beta(alpha,
beta). A flip that shows heads multiplies it by r, one that shows tails by 1 - r. The product has
the same form with other exponents, so updating a belief is adding to two numbers. Such a prior is
called *conjugate*.

Published tables have slipped here: one gives alpha - 1 successes and beta - 1 failures as the
posterior, in which no data occur.

Shapes: alpha and beta are numbers, flips is (N,), 1 for heads and 0 for tails. Return the
posterior's two parameters.

Read: M18 and M19 in derivations/why.md.
"""

import numpy as np


def conjugate_coin(alpha, beta, flips):
    """Return the parameters (heads', tails') of the Beta posterior.

    Parameters
    ----------
    alpha, beta : float
        Parameters of the Beta prior.
    flips : ndarray (N,)
        1 for heads and 0 for tails.

    Returns
    -------
    heads, tails : float
        Parameters of the posterior, in the order of alpha and beta.
    """
    ### BEGIN SOLUTION
    heads = np.sum(flips)
    tails = np.sum(1 - flips)
    return alpha + heads, beta + tails
    ### END SOLUTION

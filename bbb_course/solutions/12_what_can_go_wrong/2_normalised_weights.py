"""Weights of e^-1000.

The log density of a data set is easily -1000, and exp(-1000) is 0 in floats. Importance weights
are divided by their sum, so a common factor does not matter, and may be chosen such that nothing
overflows and the sum is not 0. One algorithm is printed with exp(log w + min log w), which does
neither, and without the division.

Shapes: log_weights is (S,). Return the weights, (S,), adding up to 1. The grader tries 800 and
-1000.

Read: G7 in derivations/bounds.md.
"""

import numpy as np


def normalised_weights(log_weights):
    """Return importance weights that add up to 1, (S,)."""
    ### BEGIN SOLUTION
    omega = np.exp(log_weights - np.max(log_weights))
    return omega / omega.sum()
    ### END SOLUTION

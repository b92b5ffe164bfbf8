"""How good was the prediction?

A prediction that is a distribution is scored by the log density that it gave to what happened.
The predictive density is a mixture: each of S drawn functions gives a density, and they are
averaged.

    log P(y | D) = log [ (1/S) sum_s P(y | w_s) ].

The logarithm stands outside. Averaging the logarithms instead is a common slip, and by Jensen's
inequality it is always too small.

Densities of many numbers are tiny: exp(-1000) is 0 in floats, and log 0 is minus infinity. Take
the largest logarithm out of the sum first, and add it again at the end. The grader tries it.

Shapes: log_density is (S, B), the log density of each target under each function. Return (B,).

Read: D5 in derivations/prediction.md.
"""

import numpy as np


def log_predictive_density(log_density):
    """Return the log of the mean density of each row, (B,)."""
    ### BEGIN SOLUTION
    largest = np.max(log_density, axis=0)
    return largest + np.log(np.mean(np.exp(log_density - largest), axis=0))
    ### END SOLUTION

"""A score in the units of the target.

The continuous ranked probability score asks how far the draws are from what happened, and credits
them for their spread:

    CRPS = mean over draws of |x - y| - (1/2) mean over all pairs of draws of |x - x'|.

If all draws are one number it is the absolute error. It is *proper*: on average nobody scores
better than who states the truth. Without the second term this fails, and overconfidence wins.

Shapes: draws is (T,), y is a number. The mean over pairs includes each draw with itself, T^2
pairs. Return one number.

Hint: step 7 of D34 has another divisor, for another question.

Read: D34 in derivations/calibration.md.
"""

import numpy as np


def crps_of_draws(draws, y):
    """Return the CRPS of the draws at y.

    Parameters
    ----------
    draws : ndarray (T,)
        Draws from the predictive distribution.
    y : float
        Target.
    """
    ### BEGIN SOLUTION
    errors = [abs(x - y) for x in draws]
    distances = [abs(x - x_prime) for x in draws for x_prime in draws]
    return sum(errors) / len(errors) - sum(distances) / (2 * len(distances))
    ### END SOLUTION

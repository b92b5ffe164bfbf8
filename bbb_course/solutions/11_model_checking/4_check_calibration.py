"""Grade the test: is this model calibrated?

You are the examiner again. Given draws from the predictive distribution of each row, and the
targets, say whether the targets could have come from it. The grader shows your check right
predictions, some of them with long tails, and wrong ones: bands without the noise, bands of fifty
deviations, means that are off, and some that are too narrow in some rows and too wide in others,
so that their 90 % intervals hold 90 %. The score is the number of wrong ones that you find, minus
your false alarms. You need all, and no alarm.

A rank tells: if the prediction is right, the target is as probably the smallest of the draws as
the largest or any in between.

Shapes: draws is (T, B) with T = 200 and B = 500, y is (B,). Return True if it is right.

Hint: D35 says by how much a share may be off by chance.

Read: D35 in derivations/calibration.md.
"""

import numpy as np


def check_calibration(draws, y):
    """Return whether the targets could have come from the predictive distributions.

    Parameters
    ----------
    draws : ndarray (T, B)
        Draws from the predictive distribution of each row.
    y : ndarray (B,)
        Targets.

    Returns
    -------
    right : bool
        True if the predictive distributions are calibrated.
    """
    ### BEGIN SOLUTION
    rank = np.mean(draws < y, axis=0)
    observed = np.histogram(rank, bins=10, range=(0, 1))[0]
    expected = len(y) / 10
    chi_square = np.sum((observed - expected) ** 2 / expected)
    return bool(chi_square < 30)  # 9 degrees of freedom: once in two thousand by chance
    ### END SOLUTION

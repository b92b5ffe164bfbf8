"""Did the intervals hold?

An interval that says 90 % should hold the target in about nine of ten rows. Count.

Shapes: low, high and y are (B,). Return the share of rows with low <= y <= high.

Hint: step 5 of D35 says how far from 90 % a share may be by chance alone.

Read: D35 in derivations/calibration.md.
"""

import numpy as np


def coverage(low, high, y):
    """Return the share of the targets inside their intervals.

    Parameters
    ----------
    low, high : ndarray (B,)
        Ends of the intervals; they belong to them.
    y : ndarray (B,)
        Targets.
    """
    ### BEGIN SOLUTION
    rows = zip(low, y, high, strict=True)
    n_inside = sum(1 for lower, target, upper in rows if lower <= target <= upper)
    return n_inside / len(y)
    ### END SOLUTION

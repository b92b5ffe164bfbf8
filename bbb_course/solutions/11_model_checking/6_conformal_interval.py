"""An interval that holds what it says.

A model states intervals, and some may be too narrow. How much wider must they be? Ask held-out
rows: the score of each is how far its target lies beyond the nearer end of its interval, and is
negative inside. If the new row is exchangeable with the B held-out ones, its score has each of the
B + 1 ranks with the same probability. So the k-th smallest of the B scores bounds it with the
probability k / (B + 1): take the smallest k for which this is at least the coverage.

Shapes: low, high and y are (B,), new_low and new_high are numbers, percent is a whole number, at
most 100 B / (B + 1). Return the two ends of the new interval: each moves outwards by the bound,
or inwards if it is negative.

Hint: ranks count from 1.

Read: D77 in derivations/calibration-after-training.md.
"""

import numpy as np


def conformal_interval(low, high, y, new_low, new_high, percent):
    """Return an interval that holds a new target with a probability of at least `percent` in 100.

    Parameters
    ----------
    low, high : ndarray (B,)
        Ends of the model's intervals of the held-out rows.
    y : ndarray (B,)
        Their targets.
    new_low, new_high : float
        Ends of the model's interval of the new row.
    percent : int
        Coverage in percent, at most 100 B / (B + 1).
    """
    ### BEGIN SOLUTION
    scores = sorted(max(a - t, t - b) for a, b, t in zip(low, high, y, strict=True))
    rank = next(k for k in range(1, len(y) + 1) if 100 * k >= percent * (len(y) + 1))
    bound = scores[rank - 1]
    return new_low - bound, new_high + bound
    ### END SOLUTION

"""Did the intervals hold?

An interval that says 90 % should hold the target in about nine of ten rows. Count.

Shapes: low, high and y are (B,). Return the share of rows with low <= y <= high.

Hint: step 5 of D35 says how far from 90 % a share may be by chance alone.

Read: D35 in derivations/calibration.md.
"""

import numpy as np


def coverage(low, high, y):
    """Return the share of the targets inside their intervals."""
    ### BEGIN SOLUTION
    held = sum(1 for a, b, one in zip(low, high, y, strict=True) if a <= one <= b)
    return held / len(y)
    ### END SOLUTION

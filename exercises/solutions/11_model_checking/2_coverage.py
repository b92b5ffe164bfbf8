"""Did the intervals hold?

An interval that says 90 % should hold the target in about nine of ten rows. Count.

Shapes: low, high and y are (B,). Return the share of rows with low <= y <= high.

Hint: D35 in derivations.md. Step 5 there says how far from 90 % a share may be by chance alone.
"""

import numpy as np


def coverage(low, high, y):
    """Return the share of the targets inside their intervals."""
    ### BEGIN SOLUTION
    held = sum(1 for a, b, one in zip(low, high, y, strict=True) if a <= one <= b)
    return held / len(y)
    ### END SOLUTION

"""Paying early.

Blundell and his coauthors let the first minibatches of an epoch pay most of the complexity: the
prior leads while few data have been seen, the data lead later. Of M minibatches, number
i = 1, ..., M pays

    pi_i = 2^(M - i) / (2^M - 1).

Any shares will do that add up to 1; show yourself that these do.

Shapes: parts is M, a whole number. Return the shares (M,), the first one the largest.

Hint: 1 + 2 + 4 + ... + 2^(M - 1) = 2^M - 1. An epoch may have some hundred minibatches, and 2^M is
then no 64-bit integer; from M = 1024 on it is no float either.

Read: D6 and D24 in derivations/training.md.
"""

import numpy as np


def geometric_shares(parts):
    """Return the shares of the complexity, (M,)."""
    ### BEGIN SOLUTION
    halves = 0.5 ** np.arange(1, parts + 1)
    return halves / halves.sum()
    ### END SOLUTION

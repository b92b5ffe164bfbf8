"""How wide is a distribution in many dimensions?

The entropy -E[log q] is the part of the bound that keeps q from collapsing. For w = mu + C eps
the density is that of eps divided by the determinant of C, and the determinant of a triangle is
the product of its diagonal. The numbers below the diagonal shear the distribution: they turn it,
and do not make it wider.

One paper prints E[log q] and calls it the entropy; a sign.

Shapes: diagonal is (P,), positive; below is (P,), some numbers below the diagonal, which you may
need or not. Return the entropy in nats, with its constants.

Hint: E[eps^2] = 1 for each weight.

Read: M4 and M16 in derivations/correlated-posteriors.md.
"""

import numpy as np


def entropy_of_full_rank(diagonal, below):
    """Return the entropy of N(mu, C C^T) in nats.

    Parameters
    ----------
    diagonal : ndarray (P,)
        Diagonal of C, positive.
    below : ndarray (P,)
        Some numbers of C below its diagonal.
    """
    ### BEGIN SOLUTION
    per_weight = np.log(diagonal) + np.log(2 * np.pi) / 2 + 0.5
    return per_weight.sum()
    ### END SOLUTION

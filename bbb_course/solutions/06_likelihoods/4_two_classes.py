"""Yes or no.

The output z is a *logit*: the probability of label 1 is s(z) = 1 / (1 + exp(-z)). The likelihood
of a row is s(z) for label 1 and 1 - s(z) for label 0. Both cases in one line: minus its logarithm
is

    log(1 + exp(z)) - y z.

Differentiate that line, and something simple comes out.

Shapes: z is (B,), y is (B,) of zeros and ones. Return the sum over rows, and d_z (B,).

Read: D13 in derivations/likelihoods.md.
"""

import numpy as np


def two_classes(z, y):
    """Return minus log P(y|z) and its slope for z.

    Parameters
    ----------
    z : ndarray (B,)
        Logits.
    y : ndarray (B,)
        Labels, 0 or 1.

    Returns
    -------
    value : float
        Minus log P(y|z), added up over rows.
    d_z : ndarray (B,)
        Its slope for z.
    """
    ### BEGIN SOLUTION
    probability = 1 / (1 + np.exp(-z))
    return np.sum(np.log1p(np.exp(z)) - y * z), probability - y
    ### END SOLUTION

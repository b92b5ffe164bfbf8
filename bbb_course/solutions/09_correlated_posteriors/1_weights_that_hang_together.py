"""Weights that hang together.

Two weights that the data determine only in their sum must be able to say so: if one is larger,
the other is smaller. A diagonal cannot express this, a triangular matrix can. Draw independent
noise and mix it,

    w = mu + C eps,

and the covariance of w is C C^T. C is lower triangular; whatever stands above its diagonal does
not count. (The paper's letter is L; here, as in the derivations, L counts layers.)

Shapes: mu is (P,), C is (P, P), eps is (S, P) with one sample in each row. Return w (S, P).

Hint: mind that samples are rows.

Read: M1 in derivations/correlated-posteriors.md.
"""

import numpy as np


def weights_that_hang_together(mu, C, eps):
    """Return S samples of N(mu, C C^T), (S, P).

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    C : ndarray (P, P)
        Factor of the covariance; above its diagonal it does not count.
    eps : ndarray (S, P)
        Standard normal noise, a sample in each row.

    Returns
    -------
    w : ndarray (S, P)
        Weights, a sample in each row.
    """
    ### BEGIN SOLUTION
    return np.stack([mu + np.tril(C) @ noise for noise in eps])
    ### END SOLUTION

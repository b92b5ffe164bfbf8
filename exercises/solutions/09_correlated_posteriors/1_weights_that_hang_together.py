"""Weights that hang together.

Two weights that the data determine only in their sum must be able to say so: if one is larger,
the other is smaller. A diagonal cannot express this, a triangular matrix can. Draw independent
noise and mix it,

    w = mu + L eps,

and the covariance of w is L L^T. L is lower triangular; whatever stands above its diagonal does
not count. (The derivations call it C, since L counts layers there; the paper's letter is L.)

Shapes: mu is (P,), L is (P, P), eps is (S, P) with one sample in each row. Return w (S, P).

Hint: mind that samples are rows.

Read: M1 in derivations/correlated-posteriors.md.
"""

import numpy as np


def weights_that_hang_together(mu, L, eps):
    """Return S samples of N(mu, L L^T), (S, P)."""
    ### BEGIN SOLUTION
    return np.stack([mu + np.tril(L) @ one for one in eps])
    ### END SOLUTION

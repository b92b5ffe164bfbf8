"""What independence costs.

Let the posterior of two weights be Gaussian with variances 1 and correlation r, and let q be a
product of two Gaussians. Minimising KL(q || posterior), as Bayes by Backprop does, gives each
weight the variance 1 / Lambda_jj, one over the diagonal of the precision: what w_1 would scatter
if w_2 were known. Minimising KL(posterior || q) gives the marginal variance. At both optima the
divergence that is left is the same.

Shapes: r is a number between 0 and 1. Return the variance by the reverse divergence, that by the
inclusive one, and the divergence that is left, in nats.

Hint: the inverse of [[1, r], [r, 1]] is [[1, -r], [-r, 1]] / (1 - r^2).

Read: D28 in derivations/bounds.md; D8 in derivations/why.md.
"""

import numpy as np


def price_of_mean_field(r):
    """Return variance by reverse KL, by inclusive KL, and the gap in nats."""
    ### BEGIN SOLUTION
    determinant = (1 - r) * (1 + r)
    precision = 1 / determinant
    return 1 / precision, precision * determinant, -np.log(determinant) / 2
    ### END SOLUTION

"""A Gaussian around the path of descent.

SWAG (Maddox et al. 2019) trains to a good place and then goes on with a constant rate. The weights
w_1 ... w_T after each of T epochs are a cloud, whose mean and covariance are taken for those of a
posterior. With d_t = w_t - mean, the covariance is half diagonal, half of low rank:

    1/2 diag(var) + 1/2 sum_t d_t d_t^T / (T - 1),    var_j = sum_t d_tj^2 / (T - 1)

One draw needs P numbers for the first half and T for the second, all standard normal, and no matrix
of P x P.

Shapes: path (T, P), own (P,), shared (T,).
Return the mean (P,), the variances (P,) of single weights, and the draw (P,) that these make.

Hint: each half has its own root of 1/2. The two halves of the variance of one weight are equal.

Read: D59 in derivations/correlated-posteriors.md.
"""

import numpy as np


def swag(path, own, shared):
    """Return mean, variances, and the draw that the noise makes."""
    ### BEGIN SOLUTION
    mean = path.mean(axis=0)
    off = path - mean
    variance = (off**2).sum(axis=0) / (len(path) - 1)
    shared_half = shared @ off / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + shared_half
    ### END SOLUTION

"""A Gaussian around the path of descent.

SWAG (Maddox et al. 2019) trains to a good place and then goes on with a constant rate. The weights
w_1 ... w_T after each of T epochs are a cloud, whose mean and covariance are taken for those of a
posterior. With d_t = w_t - mean, the covariance is half diagonal, half of low rank:

    1/2 diag(var) + 1/2 sum_t d_t d_t^T / (T - 1),    var_j = sum_t d_tj^2 / (T - 1)

One draw needs P numbers for the first half, diagonal_noise, and T for the second, low_rank_noise,
all standard normal, and no matrix of P x P.

Shapes: path (T, P), diagonal_noise (P,), low_rank_noise (T,).
Return the mean (P,), the variances (P,) of single weights, and the draw (P,) that these make.

Hint: each half has its own root of 1/2. The two halves of the variance of one weight are equal.

Read: D80 in derivations/approximations.md.
"""

import numpy as np


def swag(path, diagonal_noise, low_rank_noise):
    """Return mean, variances, and the draw that the noise makes.

    Parameters
    ----------
    path : ndarray (T, P)
        Weights after each of T epochs.
    diagonal_noise : ndarray (P,)
        Standard normal noise of the diagonal half.
    low_rank_noise : ndarray (T,)
        Standard normal noise of the half of low rank.

    Returns
    -------
    mean, variance, draw : ndarray (P,)
        Mean and variances of the weights, and the draw.
    """
    ### BEGIN SOLUTION
    mean = path.mean(axis=0)
    deviations = path - mean
    variance = (deviations**2).sum(axis=0) / (len(path) - 1)
    diagonal_half = np.sqrt(variance / 2) * diagonal_noise
    low_rank_half = low_rank_noise @ deviations / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + diagonal_half + low_rank_half
    ### END SOLUTION

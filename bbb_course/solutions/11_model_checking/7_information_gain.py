"""Where to measure next.

The mean of y is linear in weights, phi^T w, and w has the covariance L L^T. What would a reading of
y at phi tell about w, before it is read? By how much it would make the entropy of w fall: half the
logarithm of 1 + v / sigma^2, where v is the variance of phi^T w and sigma the standard deviation of
the noise. Measure where this is largest.

Shapes: features is (B, I), a row phi for each place where one could measure; factor, L, is (I, I);
noise_scale is a number. Return the gains (B,), in nats.

Hint: v is the squared length of a vector. Where little is told, 1 + v / sigma^2 rounds to 1.

Read: D84 in derivations/shift-and-active-learning.md.
"""

import numpy as np


def information_gain(features, factor, noise_scale):
    """Return what a measurement at each row would tell about the weights, in nats.

    Parameters
    ----------
    features : ndarray (B, I)
        Rows that could be measured; the mean of y is features @ w.
    factor : ndarray (I, I)
        L of the covariance L L^T of the weights w.
    noise_scale : float
        Standard deviation of y around its mean.
    """
    ### BEGIN SOLUTION
    covariance = factor @ factor.T
    variances = np.array([phi @ covariance @ phi for phi in features])
    return 0.5 * np.log1p(variances / noise_scale**2)
    ### END SOLUTION

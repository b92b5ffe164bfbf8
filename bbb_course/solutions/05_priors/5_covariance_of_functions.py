"""What a prior on weights says of a function at two inputs.

A network with one layer of H ReLU units has the weights and biases N(0, s0^2) in its first layer
and N(0, s1^2) in its last. At two inputs x and z the pre-activations of a unit are Gaussian, with

    k(x, z) = s0^2 (x z + 1),

and the mean product of what the unit puts out is, with their correlation c = cos(t),

    E a(x) a(z) = sqrt(k(x, x) k(z, z)) (sin t + (pi - t) cos t) / (2 pi).

Return the covariance of f(x) and f(z) over all weights of both layers, and their correlation.

Shapes: x and z are (I,), rows of I inputs; s0, s1 and H are numbers.

Hint: f is a sum over units, and a bias. Rounding can make the correlation of equal inputs greater
than 1, of which np.arccos makes nan.

Read: D81 in derivations/function-priors.md.
"""

import numpy as np


def covariance_of_functions(x, z, s0, s1, H):
    """Return covariance and correlation of f(x) and f(z) under the prior.

    Parameters
    ----------
    x, z : ndarray (I,)
        Two inputs.
    s0, s1 : float
        Standard deviations of weights and biases of the first and of the last layer.
    H : int
        Number of hidden units.

    Returns
    -------
    covariance, correlation : float
        Covariance and correlation of f(x) and f(z).
    """
    ### BEGIN SOLUTION
    scale_x = s0 * np.sqrt(x @ x + 1)
    scale_z = s0 * np.sqrt(z @ z + 1)
    c = np.clip(s0**2 * (x @ z + 1) / (scale_x * scale_z), -1, 1)
    t = np.arccos(c)
    product = scale_x * scale_z * (np.sin(t) + (np.pi - t) * c) / (2 * np.pi)
    covariance = s1**2 * (H * product + 1)
    variance_x = s1**2 * (H * scale_x**2 / 2 + 1)
    variance_z = s1**2 * (H * scale_z**2 / 2 + 1)
    return covariance, covariance / np.sqrt(variance_x * variance_z)
    ### END SOLUTION

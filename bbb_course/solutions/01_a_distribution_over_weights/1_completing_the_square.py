"""One weight, some data, and what is known of the weight afterwards.

A spring is pulled by forces x and stretches by y = w x plus measurement noise. Before the
measurements, w is believed to be about 0, give or take `prior`; each measurement is off by about
`noise`. Both densities are Gaussian, so minus the log of their product is a parabola in w:

    (1/2) w^2 / prior^2 + (1/2) sum_i (y_i - w x_i)^2 / noise^2 + constant.

A parabola in an exponent is a Gaussian again. Complete the square to find which one: the factor
of w^2 / 2 is one over its variance (the *precision*), and the minimum is its mean.

Shapes: x and y are (N,), prior and noise are standard deviations, two numbers. Return mean and
variance.

Hint: precisions add up. D8 does the same for many weights.

Read: One weight, and Bayes' rule in derivations.md; D8 in derivations/why.md.
"""

import numpy as np


def completing_the_square(x, y, prior, noise):
    """Return mean and variance of the posterior of w.

    Parameters
    ----------
    x : ndarray (N,)
        Forces.
    y : ndarray (N,)
        Stretches that were measured.
    prior : float
        Standard deviation of w before the measurements.
    noise : float
        Standard deviation of a measurement.

    Returns
    -------
    mean, variance : float
        Of the posterior of w.
    """
    ### BEGIN SOLUTION
    precision_of_data = np.sum(x**2) / noise**2
    variance = 1 / (precision_of_data + prior**-2)
    mean = variance * np.sum(x * y) / noise**2
    return mean, variance
    ### END SOLUTION

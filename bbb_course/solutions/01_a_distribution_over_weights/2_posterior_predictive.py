"""What is known of a new measurement.

You know w only up to a Gaussian with some `mean` and `variance`. A new force x stretches the
spring by w x, and the measurement adds its own noise. Two things are uncertain, and they are
uncertain for different reasons: w could be learned better from more data (*epistemic*), the noise
could not (*aleatoric*). They are independent, so their variances add up.

Shapes: mean, variance (of w) and noise (a standard deviation) are numbers, x is (N,). Return the
mean and the variance of the new y, each (N,).

Hint: the variance of w x is not that of w. D4 has the same split for networks.

Read: D8 in derivations/why.md; D4 in derivations/prediction.md.
"""

import numpy as np


def posterior_predictive(mean, variance, x, noise):
    """Return mean (N,) and variance (N,) of new targets.

    Parameters
    ----------
    mean, variance : float
        Of the posterior of w.
    x : ndarray (N,)
        New forces.
    noise : float
        Standard deviation of a measurement.

    Returns
    -------
    prediction : ndarray (N,)
        Mean of the new y.
    total : ndarray (N,)
        Variance of the new y.
    """
    ### BEGIN SOLUTION
    epistemic = variance * x * x
    aleatoric = noise * noise
    return mean * x, epistemic + aleatoric
    ### END SOLUTION

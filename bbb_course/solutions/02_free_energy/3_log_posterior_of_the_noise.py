"""The density of a weight at the place where it was drawn.

The cost needs log q(w), the log density of N(mu, sigma^2) at w. But w was made from its noise,
and (w - mu) / sigma is eps again. So neither w nor mu is needed, and something surprising becomes
visible that will simplify the gradient: written in sigma and eps, log q does not contain mu at
all.

Weights are independent: the density of all of them is a product, its logarithm a sum.

Shapes: sigma is (P,), eps is (S, P). Return log q of each sample, (S,), with the constant
log(2 pi) / 2 of every weight.

Read: K6 to K10 in derivations.md.
"""

import numpy as np


def log_posterior_of_the_noise(sigma, eps):
    """Return log q(w) of every sample, (S,).

    Parameters
    ----------
    sigma : ndarray (P,)
        Standard deviations of the weights.
    eps : ndarray (S, P)
        Standard normal noise from which the weights were computed.
    """
    ### BEGIN SOLUTION
    weights = eps.shape[1]
    constant = np.sum(np.log(sigma)) + weights * np.log(2 * np.pi) / 2
    return -np.sum(eps * eps, axis=1) / 2 - constant
    ### END SOLUTION

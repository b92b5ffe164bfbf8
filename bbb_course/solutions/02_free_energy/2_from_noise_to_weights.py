"""Drawing weights so that they can be differentiated.

A weight that is drawn from N(mu, sigma^2) has no derivative for mu: a random number does not say
how it would have moved. The trick of Bayes by Backprop is to draw the noise first, from N(0, 1),
and to compute the weight from it:

    w = mu + sigma eps,    sigma = softplus(rho).

With eps held fixed, w is a plain function of mu and rho.

Shapes: mu and rho are (P,), eps is (S, P): S samples of all weights, every number independent of
all others. Return w (S, P).

Read: K1 and K4 in derivations.md.
"""

import numpy as np


def from_noise_to_weights(mu, rho, eps):
    """Return S samples of the weights, (S, P).

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise.
    """
    ### BEGIN SOLUTION
    sd = np.log1p(np.exp(rho))
    return mu[None, :] + sd[None, :] * eps
    ### END SOLUTION

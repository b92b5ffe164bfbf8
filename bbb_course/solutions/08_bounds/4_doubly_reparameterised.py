"""Sticking the landing inside a logarithm.

In the last chapter the direct part of log q was left out because its mean is 0. Inside the
importance-weighted bound each sample is multiplied by its share, which depends on the sample, and
the mean is no longer 0: leaving it out is biased. It can be reparameterised a second time
instead, and then the shares appear squared:

    - sum_s share_s^2 (d log omega_s / dw_s) (dw_s / dtheta).

Shapes: log_weights is (S,); d_w (S, P) is the slope of minus the log joint; eps is (S, P),
sigma (P,). So -d log omega / dw = d_w - eps / sigma. Return d_mu and d_sigma, (P,) each, of minus
the bound.

Hint: with one sample this is sticking the landing.

Read: D26 in derivations/bounds.md.
"""

import numpy as np


def doubly_reparameterised(log_weights, d_w, eps, sigma):
    """Return the slopes of minus the importance-weighted bound for mu and sigma.

    Parameters
    ----------
    log_weights : ndarray (S,)
        Log importance weights, log P(w, D) - log q(w).
    d_w : ndarray (S, P)
        Slope for the weights of minus the log joint density.
    eps : ndarray (S, P)
        Standard normal noise of the samples.
    sigma : ndarray (P,)
        Standard deviations of the weights.

    Returns
    -------
    d_mu, d_sigma : ndarray (P,)
        Slopes of minus the bound for mu and for sigma.
    """
    ### BEGIN SOLUTION
    omega = np.exp(log_weights)
    squared = (omega / omega.sum())[:, None] ** 2
    through_w = squared * (d_w - eps / sigma)
    return through_w.sum(axis=0), (through_w * eps).sum(axis=0)
    ### END SOLUTION

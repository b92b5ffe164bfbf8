"""An estimator that is silent at the goal.

The report's gradient keeps shaking at the optimum, although its mean there is 0. Split the slope
of log q into its path through w, and its direct part with w held fixed. The direct part has mean
0, so it may be left out. What is left is

    through w:  d_w + pi d log q / dw,    with d log q / dw = -eps / sigma,

and if q is the posterior, this is 0 for every eps, not only on average.

Shapes: sigma and rho are (P,), eps and d_w are (S, P); d_w is the slope of everything but log q;
pi is a number. Return the slopes for mu and rho, (P,) each, as means over samples.

Hint: sigma moves with rho by the sigmoid.

Read: D20, W4 and W5 in derivations/estimators.md.
"""

import numpy as np


def sticking_the_landing(sigma, rho, eps, d_w, pi):
    """Return the slopes for mu and rho without the direct part of log q.

    Parameters
    ----------
    sigma : ndarray (P,)
        Standard deviations of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.
    d_w : ndarray (S, P)
        Slope for the weights of everything but log q.
    pi : float
        Share of the complexity that this minibatch pays.

    Returns
    -------
    d_mu, d_rho : ndarray (P,)
        Estimated slopes for mu and for rho.
    """
    ### BEGIN SOLUTION
    samples = len(eps)
    through_w = d_w - pi * eps / sigma
    d_sigma = np.sum(through_w * eps, axis=0) / samples
    return np.sum(through_w, axis=0) / samples, d_sigma / (1 + np.exp(-rho))
    ### END SOLUTION

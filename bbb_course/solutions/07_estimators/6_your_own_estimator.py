"""Your own estimator.

Write an estimator of the gradient of

    F = E[log q(w) + U(w)],    w = mu + sigma eps,    sigma = softplus(rho),

of which you are given the slope of U, as often as you have samples: four times. It must have the
right mean, and at most half of the variance of the report's estimator, added up over both blocks,
near the end of training, where q is almost the posterior and the posterior almost Gaussian.

You may leave out what has mean 0, add what has mean 0, mirror the noise, throw some of it away,
or use what is known in closed form. Anything is allowed that keeps the mean, wherever mu and rho
are. The grader draws noise some thousand times, there and far from there, and measures both.

Shapes: mu and rho are (P,), eps is (S, P), and slope(w) takes (n, P) to (n, P), with at most S
rows in all. Return d_mu and d_rho, (P,) each.

Hint: D20 and D23 are two ideas; the second alone does not help rho here. Why?

Read: D20 and D23 in derivations/estimators.md.
"""

import numpy as np


def your_own_estimator(mu, rho, eps, slope):
    """Return unbiased estimates of dF/dmu and dF/drho, (P,) each.

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise.
    slope : callable
        Takes weights (n, P) to dU/dw (n, P); at most S rows in all.

    Returns
    -------
    d_mu, d_rho : ndarray (P,)
        Estimated slopes of F for mu and for rho.
    """
    ### BEGIN SOLUTION
    sigma = np.log1p(np.exp(rho))
    through_w = slope(mu + sigma * eps) - eps / sigma
    sigmoid = 1 / (1 + np.exp(-rho))
    return through_w.mean(axis=0), (through_w * eps).mean(axis=0) * sigmoid
    ### END SOLUTION

"""A gradient of something that has no gradient.

Suppose that h(w) can be computed but not differentiated: it counts, or calls a program. Its mean
over q still has a gradient, as q moves. Differentiate the density instead of h:

    d/dtheta E[h(w)] = E[h(w) d log q(w) / dtheta]    with w held fixed.

The factor behind h is called the *score*. This estimator is older than the reparameterised one,
works for everything, and is far noisier.

Shapes: mu and sigma are (P,), eps is (S, P), h is (S,), its values at w = mu + sigma eps. Return
the estimated slopes for mu and for sigma, (P,) each, as means over samples.

Hint: write log q in terms of w, mu and sigma, differentiate, and only then put in w.

Read: W4, W5 and D20 in derivations/estimators.md; D26 in derivations/bounds.md.
"""

import numpy as np


def score_function_estimator(mu, sigma, eps, h):
    """Return estimates of dE[h]/dmu and dE[h]/dsigma, (P,) each.

    Parameters
    ----------
    mu, sigma : ndarray (P,)
        Means and standard deviations of the weights.
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.
    h : ndarray (S,)
        Values of h at the samples.

    Returns
    -------
    d_mu, d_sigma : ndarray (P,)
        Estimated slopes for mu and for sigma.
    """
    ### BEGIN SOLUTION
    samples = len(eps)
    d_mu = h @ eps / samples / sigma
    d_sigma = (h @ eps**2 - np.sum(h)) / samples / sigma
    return d_mu, d_sigma
    ### END SOLUTION

"""Each noise and its mirror image.

If eps is normal, so is -eps. Use both: whatever is odd in the noise cancels exactly, and only the
even part keeps its variance. For a linear function nothing is left to be noisy.

Shapes: h is a function of an array of weights, entry by entry; mu and sigma are (P,), eps is (S,
P). Return the mean over the S pairs of the mean of each pair, (P,).

Hint: D23 says when this is better than 2 S independent draws, and when worse.

Read: D23 in derivations/estimators.md.
"""

import numpy as np


def antithetic_noise(h, mu, sigma, eps):
    """Return the estimate of E[h(w)], (P,).

    Parameters
    ----------
    h : callable
        Function of an array of weights, entry by entry.
    mu, sigma : ndarray (P,)
        Means and standard deviations of the weights.
    eps : ndarray (S, P)
        Standard normal noise; each row makes a pair with its mirror image.
    """
    ### BEGIN SOLUTION
    mirrored = np.concatenate([eps, -eps])
    return h(mu + sigma * mirrored).mean(axis=0)
    ### END SOLUTION

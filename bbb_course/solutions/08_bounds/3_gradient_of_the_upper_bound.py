"""Descending an upper bound.

The divergence the other way round, KL(posterior || q), gives an upper bound on the log evidence.
It averages over the posterior, from which one cannot draw; so draw from q, and weigh each draw by
its share of the importance weights. The posterior does not move when q does. All that is left of
the gradient is

    - sum_s share_s d log q(w_s) / dtheta,    with w_s held fixed.

The algorithm as printed forgets to divide the weights by their sum, and, differentiated by
machine, it would differentiate through w_s as well; then sigma shrinks to 0.

Shapes: log_weights is (S,), eps is (S, P), sigma is (P,). Return d_mu and d_sigma, (P,) each.

Hint: the score is that of the last chapter.

Read: G1, G4, G7 and G8 in derivations/bounds.md.
"""

import numpy as np


def gradient_of_the_upper_bound(log_weights, eps, sigma):
    """Return the slopes of the upper bound for mu and sigma.

    Parameters
    ----------
    log_weights : ndarray (S,)
        Log importance weights, log P(w, D) - log q(w).
    eps : ndarray (S, P)
        Standard normal noise of the samples.
    sigma : ndarray (P,)
        Standard deviations of the weights.

    Returns
    -------
    d_mu, d_sigma : ndarray (P,)
        Slopes of the bound for mu and for sigma.
    """
    ### BEGIN SOLUTION
    omega = np.exp(log_weights)
    share = (omega / omega.sum())[:, None]
    score_mu = eps / sigma
    score_sigma = (eps**2 - 1) / sigma
    return -(share * score_mu).sum(axis=0), -(share * score_sigma).sum(axis=0)
    ### END SOLUTION

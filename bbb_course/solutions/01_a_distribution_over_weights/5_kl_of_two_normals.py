"""How far is one belief from another?

The Kullback-Leibler divergence is the mean of log q(w) - log p(w) over w from q: how many nats
per draw one loses by believing p where q is true. It is 0 for equal densities and positive
otherwise. One of the two costs in the next chapter is such a divergence, from a posterior to its
prior.

For q = N(mean, sd^2) and p = N(prior_mean, prior^2) take the mean of

    log q(w) - log p(w) = log(prior / sd)
                          - (w - mean)^2 / (2 sd^2) + (w - prior_mean)^2 / (2 prior^2).

You need E[(w - mean)^2] and E[(w - prior_mean)^2] under q.

Shapes: four numbers; sd and prior are standard deviations. Return KL(q || p).

Hint: check it with q = p.

Read: One weight, and Bayes' rule in derivations.md; D18 in derivations/estimators.md.
"""

import numpy as np


def kl_of_two_normals(mean, sd, prior_mean, prior):
    """Return KL(q || p) in nats.

    Parameters
    ----------
    mean : float
        Mean of q.
    sd : float
        Standard deviation of q.
    prior_mean : float
        Mean of p.
    prior : float
        Standard deviation of p.
    """
    ### BEGIN SOLUTION
    spread = (sd / prior) ** 2
    shift = ((mean - prior_mean) / prior) ** 2
    return (spread + shift - 1 - np.log(spread)) / 2
    ### END SOLUTION

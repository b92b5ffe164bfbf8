"""What training minimises.

A good approximate posterior explains the data and does not stray from the prior without need. The
*free energy* adds up both costs, in nats: the complexity log q(w) - log P(w), and the misfit
-log P(D|w), averaged over weights drawn from q. It is minus the evidence's lower bound.

With minibatches, an epoch must pay the complexity once, not once per minibatch. So each pays a
share `pi` of it. The likelihood is not shared: a minibatch has its own rows.

Shapes: log_q and log_prior are (S,), one number per sample; log_likelihood is (S, B), one per
sample and row; pi is a number. Return the cost of the minibatch, one number.

Hint: mean over samples, sum over rows. (K18 as printed has a wrong sign in one term.)

Read: K5, K17 and K18 in derivations.md; D6 in derivations/training.md.
"""

import numpy as np


def free_energy(log_q, log_prior, log_likelihood, pi):
    """Return the free energy of a minibatch.

    Parameters
    ----------
    log_q : ndarray (S,)
        Log density of q at each weight sample.
    log_prior : ndarray (S,)
        Log density of the prior at each weight sample.
    log_likelihood : ndarray (S, B)
        Log likelihood of each row under each sample.
    pi : float
        Share of the complexity that this minibatch pays.
    """
    ### BEGIN SOLUTION
    complexity = np.mean(log_q) - np.mean(log_prior)
    misfit = -np.sum(log_likelihood) / len(log_q)
    return pi * complexity + misfit
    ### END SOLUTION

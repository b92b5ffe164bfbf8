"""Two bounds from the same draws.

With weights omega_s = P(w_s, D) / q(w_s) of draws from q, the evidence is the mean of omega. The
mean of log omega is the evidence's lower bound, what Bayes by Backprop maximises. Average first
and take the logarithm afterwards, and one has a tighter bound, which rises to the log evidence as
S grows.

Shapes: log_weights is (S,), the numbers log omega_s. Return the two estimates, the lower bound's
and the importance-weighted bound's.

Hint: Jensen says which is larger. K5 says why the first one is minus the free energy.

Read: K5 in derivations.md; D25 in derivations/bounds.md; R3 in derivations/estimators.md.
"""

import numpy as np


def importance_weighted_bound(log_weights):
    """Return the estimates of the ELBO and of the importance-weighted bound."""
    ### BEGIN SOLUTION
    samples = len(log_weights)
    elbo = log_weights.sum() / samples
    iwae = np.log(np.exp(log_weights).sum()) - np.log(samples)
    return elbo, iwae
    ### END SOLUTION

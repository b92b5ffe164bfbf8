"""Who pays the complexity?

The complexity is a cost of the whole posterior, once for all N examples. A minibatch of B rows
should pay the share of its rows, B / N. Then an epoch adds up to the free energy, however the
data are cut, and a last minibatch that is shorter pays less.

This one factor is where published programs differ most: they divide by layers, by weights, by N
for every B, by B and N, or not at all. Each of them trains; each of them has another posterior.

Shapes: complexity is a number, nll is (B,), minus the log likelihood of each row; total is N.
Return the cost of the minibatch.

Read: K18 in derivations.md; D6 in derivations/training.md.
"""

import numpy as np


def cost_of_a_minibatch(complexity, nll, total):
    """Return the minibatch's own misfit and its share of the complexity.

    Parameters
    ----------
    complexity : float
        Complexity of the whole posterior, in nats.
    nll : ndarray (B,)
        Minus the log likelihood of each row of the minibatch.
    total : int
        Number N of rows of the data set.
    """
    ### BEGIN SOLUTION
    rows = nll.shape[0]
    return complexity * rows / total + np.sum(nll)
    ### END SOLUTION

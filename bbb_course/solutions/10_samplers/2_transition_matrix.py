"""The whole chain in one matrix.

On a few states a chain is a matrix: entry (i, j) is the probability of going from i to j. Build
that of Metropolis and Hastings. A step to another state is proposed and then accepted; a step
that is refused stays where it is, and the diagonal collects these.

A printed proof puts the proposal q in place of this kernel, and then claims for q what holds for
the kernel only. With your matrix you can see both: p @ T is p, p @ q is not.

Shapes: p is (N,), positive, the target up to a factor; q is (N, N), positive, the proposal from
row to column. (Its rows need not add up to 1 here; take its numbers as they are.) Return T (N,
N), whose rows add up to 1. Use loops.

Read: M5 and M6 in derivations/samplers.md.
"""

import numpy as np


def transition_matrix(p, q):
    """Return the kernel of Metropolis and Hastings, (N, N).

    Parameters
    ----------
    p : ndarray (N,)
        Target, up to a factor.
    q : ndarray (N, N)
        Proposal, from row to column.

    Returns
    -------
    T : ndarray (N, N)
        Kernel, from row to column.
    """
    ### BEGIN SOLUTION
    states = range(len(p))
    T = np.zeros_like(q)
    for i in states:
        stay = 1
        for j in states:
            if i == j:
                continue
            forward_traffic = p[i] * q[i, j]
            backward_traffic = p[j] * q[j, i]
            T[i, j] = min(forward_traffic, backward_traffic) / p[i]
            stay = stay - T[i, j]
        T[i, i] = stay
    return T
    ### END SOLUTION

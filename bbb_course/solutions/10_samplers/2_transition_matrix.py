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
    """Return the kernel of Metropolis and Hastings, (N, N)."""
    ### BEGIN SOLUTION
    states = range(len(p))
    T = np.zeros_like(q)
    for i in states:
        stay = 1
        for j in states:
            if i == j:
                continue
            forth, back = p[i] * q[i, j], p[j] * q[j, i]
            T[i, j] = q[i, j] if back >= forth else back / p[i]
            stay = stay - T[i, j]
        T[i, i] = stay
    return T
    ### END SOLUTION

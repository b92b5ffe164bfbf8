"""Grade the test: does this chain sample p?

Now you are the examiner. Given the matrix of a chain and a target p, say whether the chain, from
any start, ends with the states distributed as p. The grader shows your check right chains and
wrong ones, all with real mistakes: the proposal in place of the kernel, refused steps that are
lost, a proposal's ratio forgotten, and some that have p as a stationary distribution and still
never get there. The score is the number of wrong chains that you find, minus your false alarms.
You need all, and no alarm.

Be fair: detailed balance is sufficient, not necessary, and a slow chain is not a wrong one.

Shapes: kernel is (N, N), from row to column; p is (N,), adding up to 1. Return True if it is
right.

Hint: what does a high power of the matrix look like?

Read: M5 and M6 in derivations/samplers.md.
"""

import numpy as np


def check_a_sampler(kernel, p):
    """Return whether the chain converges to p from any start.

    Parameters
    ----------
    kernel : ndarray (N, N)
        Probabilities of the chain's steps, from row to column.
    p : ndarray (N,)
        Target, adding up to 1.

    Returns
    -------
    right : bool
        True if the chain samples p.
    """
    ### BEGIN SOLUTION
    if (kernel < -1e-12).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    power = kernel
    for _ in range(20):  # the kernel, 2^20 times
        power = power @ power
    return bool(np.allclose(power, p, atol=1e-6))
    ### END SOLUTION

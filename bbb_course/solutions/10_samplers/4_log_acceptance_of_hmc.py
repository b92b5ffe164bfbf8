"""Paying for the errors of a trajectory.

Along an exact trajectory the energy -log pi(q) + r . r / 2 is conserved, and every end would be
accepted. The leapfrog makes small errors, and an acceptance step pays for them: the end is
accepted with probability min(1, exp(log_ratio)), where the ratio is that of the joint densities
of position and momentum.

Shapes: log_pi and new_log_pi are numbers; r and new_r are (P,), the momentum at the start, as it
was drawn, and at the end. Return log_ratio.

Hint: M7 also says what chain a wrong sign gives.

Read: M7 in derivations/samplers.md.
"""

import numpy as np


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    """Return the logarithm of the acceptance ratio.

    Parameters
    ----------
    log_pi, new_log_pi : float
        Log density of the target at the start and at the end.
    r, new_r : ndarray (P,)
        Momenta at the start, as it was drawn, and at the end.
    """
    ### BEGIN SOLUTION
    energy = -log_pi + np.sum(r * r) / 2
    new_energy = -new_log_pi + np.sum(new_r * new_r) / 2
    return energy - new_energy
    ### END SOLUTION

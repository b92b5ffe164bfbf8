"""A guarantee, found from the safe side.

With probability 1 - delta over N rows, networks drawn from q, of which the share r is wrong on
these, will be wrong on a share R of cases to come with

    kl(r || R) = r log(r / R) + (1 - r) log((1 - r) / (1 - R)) <= c,    c = (kl + price) / N

where kl is KL(q || prior), and price = log(2 sqrt(N) / delta). The certificate is the largest such
R. There is no formula for it, but Newton's method finds it: from R, go to where the tangent of
kl(r || R) would be c. As kl(r || R) is convex in R, each step from any R > r ends at the
certificate or above it, so that every one of them is a valid promise.

Shapes: all five, rows = N among them, are numbers.
Return kl(r || R), its slope for R, and the R after one step.

Hint: at R = r the slope is 0, and no step can be taken.

Read: D57 in derivations/further-questions.md.
"""

import numpy as np


def step_to_the_certificate(r, R, kl, rows, price):
    """Return kl(r || R), its slope for R, and R after one step of Newton's method.

    Parameters
    ----------
    r : float
        Share of the rows that is wrong, between 0 and 1.
    R : float
        Share from which the step starts, between 0 and 1.
    kl : float
        KL(q || prior), in nats.
    rows : float
        Number N of rows.
    price : float
        Price of certainty, log(2 sqrt(N) / delta).

    Returns
    -------
    divergence : float
        kl(r || R).
    slope : float
        Its slope for R.
    new_R : float
        R after the step.
    """
    ### BEGIN SOLUTION
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    return divergence, slope, R - (divergence - (kl + price) / rows) / slope
    ### END SOLUTION

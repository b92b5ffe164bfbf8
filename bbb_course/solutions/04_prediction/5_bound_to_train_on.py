"""A guarantee to train on.

With probability 1 - delta over N rows, networks drawn from q will be wrong about at most a share

    B = (sqrt(r + k) + sqrt(k))^2     r = nll / (N log 2)     k = (kl + price) / (2 N)

of the classes to come, where nll is the mean over q of -log P(D|w), kl is KL(q || prior), and
price = log(2 sqrt(N) / delta). What a nat of nll or of kl costs are the slopes of N log 2 B.

Shapes: all four, rows = N among them, are numbers.
Return N log 2 B, and its slopes for nll and for kl.

Hint: the slope for nll would be 1 if there were no k. The slope for kl divided by that for nll is
the weight that the KL term has in this objective; for the free energy it is 1.

Read: D58 and D57 in derivations/further-questions.md.
"""

import numpy as np


def bound_to_train_on(nll, kl, rows, price):
    """Return N log 2 B, and its slopes for nll and for kl.

    Parameters
    ----------
    nll : float
        Mean over q of -log P(D|w), in nats.
    kl : float
        KL(q || prior), in nats.
    rows : float
        Number N of rows.
    price : float
        Price of certainty, log(2 sqrt(N) / delta).

    Returns
    -------
    value : float
        N log 2 B.
    d_nll, d_kl : float
        Its slopes for nll and for kl.
    """
    ### BEGIN SOLUTION
    unit = rows * np.log(2)
    small = np.sqrt((kl + price) / (2 * rows))
    large = np.sqrt(nll / unit + small**2)
    root = large + small  # of B
    return unit * root**2, root / large, root**2 / (large * small) * np.log(2) / 2
    ### END SOLUTION

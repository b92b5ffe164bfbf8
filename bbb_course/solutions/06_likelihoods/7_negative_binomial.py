"""More spread than Poisson's.

A Poisson count varies as much as its mean. Visits of loyal customers and of others vary more, by
all that the inputs do not say. Let the rate be m = exp(f) times a Gamma variable of mean 1 and
variance 1 / r, and integrate it out. What is left is the negative binomial law:

    P(y) = [r (r + 1) ... (r + y - 1) / y!]  (m / (m + r))^y  (r / (m + r))^r.

The product has y factors r + j, j = 0 to y - 1; its logarithm is the sum of log(r + j), which is 0
for y = 0. As r > 0 is learned with everything else, for all rows at once, t is its logarithm. Once
you have the slopes: what becomes of d_f if r is large?

Shapes: f is (B,), y is (B,) of whole numbers, t is a number. Return minus the log likelihood,
summed over rows and without log y!; its slope d_f (B,); and its slope d_t, one number.

Read: D70 in derivations/likelihoods.md.
"""

import numpy as np


def negative_binomial(f, y, t):
    """Return minus log P(y|f, t), without log y!, and its slopes for f and t.

    Parameters
    ----------
    f : ndarray (B,)
        Logarithms of the means.
    y : ndarray (B,)
        Counts.
    t : float
        Logarithm of r, the shape of the Gamma distribution of rates.

    Returns
    -------
    value : float
        Minus log P(y|f, t), added up over rows, without log y!.
    d_f : ndarray (B,)
        Its slope for f.
    d_t : float
        Its slope for t.
    """
    ### BEGIN SOLUTION
    m, r = np.exp(f), np.exp(t)
    j = np.arange(np.max(y))
    used = j < y[:, None]
    log_product = np.sum(np.where(used, np.log(r + j), 0), axis=1)
    d_product = np.sum(np.where(used, 1 / (r + j), 0), axis=1)
    ratio = np.log1p(m / r)
    value = (y + r) * ratio + y * (t - f) - log_product
    d_r = ratio + (y - m) / (m + r) - d_product
    return np.sum(value), (m - y) / (1 + m / r), r * np.sum(d_r)
    ### END SOLUTION

"""One row more, for the last layer of a network.

Let the last layer be all that is unsure: f = phi^T w, with phi the outputs of the layer before it
and 1, and w ~ N(m, C) by the rows so far. A further row has the features phi and the target y,
with noise of standard deviation sigma. It adds phi phi^T / sigma^2 to the inverse of C. Nothing
need be inverted for that: with c = C phi, C loses a matrix of rank one, made of c alone.

Shapes: m and phi are (P,), y and sigma numbers. C = L L^T, with L (P, P). Return the new mean (P,),
the new covariance (P, P), and the log density of y that was predicted before it was seen: the sum
of these over all rows is the log evidence.

Hint: before the row is seen, y is Gaussian with mean phi^T m and variance sigma^2 + phi^T c. The
mean of w moves along c.

Read: D56 in derivations/correlated-posteriors.md.
"""

import numpy as np


def one_row_more(m, L, phi, y, sigma):
    """Return mean and covariance after one row, and log p of its y before.

    Parameters
    ----------
    m : ndarray (P,)
        Mean of the weights of the last layer.
    L : ndarray (P, P)
        Factor of their covariance, C = L L^T.
    phi : ndarray (P,)
        Features of the further row.
    y : float
        Its target.
    sigma : float
        Standard deviation of y around phi^T w.

    Returns
    -------
    mean : ndarray (P,)
        Mean after the row.
    covariance : ndarray (P, P)
        Covariance after the row.
    log_p : float
        Log density of y before the row was seen.
    """
    ### BEGIN SOLUTION
    c = L @ (L.T @ phi)
    variance = sigma**2 + phi @ c
    residual = y - phi @ m
    log_p = -0.5 * np.log(2 * np.pi * variance) - 0.5 * residual**2 / variance
    return m + c * residual / variance, L @ L.T - np.outer(c, c) / variance, log_p
    ### END SOLUTION

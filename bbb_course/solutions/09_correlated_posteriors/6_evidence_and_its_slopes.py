"""The evidence around a mode, and where it is largest.

Laplace's approximation puts a Gaussian around the most probable weights: its precision is alpha,
that of the prior, plus beta d_i in direction i, where beta is the precision of the noise and d_i
the curvature of the squared errors. So the evidence P(D) is the joint density at the mode times
the volume of that Gaussian, and but for a constant its logarithm is

    half of  N log beta - beta E + P log alpha - alpha |w|^2 - sum_i log(beta d_i + alpha)

with E the sum of squared residuals. Where its slopes are 0 stand the best scales of prior and
noise, found from the training rows alone.

Shapes: log_alpha, log_beta, squares = |w|^2, misfit = E and rows = N are numbers, d is (P,).
Return the log evidence, and its slopes for log alpha and for log beta.

Hint: gamma = sum_i beta d_i / (beta d_i + alpha), the number of weights that the data determine,
is in both slopes.

Read: D55 and D54 in derivations/correlated-posteriors.md.
"""

import numpy as np


def evidence_and_its_slopes(log_alpha, log_beta, d, squares, misfit, rows):
    """Return the log evidence, and its slopes for log alpha and log beta.

    Parameters
    ----------
    log_alpha : float
        Log precision of the prior.
    log_beta : float
        Log precision of the noise.
    d : ndarray (P,)
        Curvatures of the squared errors in their P directions.
    squares : float
        Squared length |w|^2 of the weights at the mode.
    misfit : float
        Sum E of squared residuals at the mode.
    rows : float
        Number N of rows.

    Returns
    -------
    value : float
        Log evidence, in nats.
    d_log_alpha, d_log_beta : float
        Its slopes for log alpha and for log beta.
    """
    ### BEGIN SOLUTION
    alpha = np.exp(log_alpha)
    beta = np.exp(log_beta)
    precision = beta * d + alpha
    prior = len(d) * log_alpha - alpha * squares
    value = (rows * log_beta - beta * misfit + prior - np.sum(np.log(precision))) / 2
    gamma = np.sum(beta * d / precision)
    return value, (gamma - alpha * squares) / 2, (rows - beta * misfit - gamma) / 2
    ### END SOLUTION

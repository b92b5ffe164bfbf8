"""Some inputs are noisier than others.

Let the network have two outputs for each target: a mean m, and a raw number h, from which this
row's noise has the standard deviation

    sigma = c + log(1 + exp(h)),    c > 0 a floor.

Where the network is often wrong, sigma grows, and these rows weigh less. With its constant, minus
the log likelihood is

    sum_b [log sigma_b + (y_b - m_b)^2 / (2 sigma_b^2) + log(2 pi) / 2].

Take care what the second slope is for: for h, not for sigma.

Shapes: m, h and y are (B,), c is a number. Return the value, d_m (B,) and d_h (B,).

Read: D12 in derivations/likelihoods.md.
"""

import numpy as np


def noise_that_depends_on_the_input(m, h, y, c):
    """Return the value and its slopes for m and h.

    Parameters
    ----------
    m : ndarray (B,)
        Means: the first output of the network.
    h : ndarray (B,)
        Raw standard deviations: its second output.
    y : ndarray (B,)
        Targets.
    c : float
        Positive floor of the standard deviation.

    Returns
    -------
    value : float
        Minus log P(y|m, h), added up over rows.
    d_m, d_h : ndarray (B,)
        Its slopes for m and for h.
    """
    ### BEGIN SOLUTION
    sigma = c + np.log1p(np.exp(h))
    residual = (y - m) / sigma
    value = np.sum(np.log(sigma) + residual**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -residual / sigma, (1 - residual**2) / sigma / (1 + np.exp(-h))
    ### END SOLUTION

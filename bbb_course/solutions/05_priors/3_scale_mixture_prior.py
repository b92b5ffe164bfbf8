"""Either small or large: Blundell's mixture.

Most weights should be nearly 0, a few may be large. Two Gaussians around 0 say so, a wide one of
standard deviation s1 with the weight pi, and a narrow one of standard deviation s2 with the weight
1 - pi:

    P(w) = pi N(w; 0, s1^2) + (1 - pi) N(w; 0, s2^2),    pi = 1 / (1 + exp(-a)).

The slope of minus log P(w) is the mean of the two springs' forces, w / s1^2 and w / s2^2. The
mean is not weighted by pi but by how responsible each component is for this w: its share of the
density there.

Shapes: w is (P,), a, s1 and s2 are numbers. Return minus the sum of log P over the weights, and
its slope d_w (P,).

Hint: do not mind underflow here.

Read: R4 and R5 in derivations/priors.md.
"""

import numpy as np


def scale_mixture_prior(w, a, s1, s2):
    """Return minus log P(w) and its slope for w.

    Parameters
    ----------
    w : ndarray (P,)
        Weights.
    a : float
        Logit of the wide component's share.
    s1 : float
        Standard deviation of the wide component.
    s2 : float
        Standard deviation of the narrow component.

    Returns
    -------
    value : float
        Minus log P(w), added up over weights.
    d_w : ndarray (P,)
        Its slope for w.
    """
    ### BEGIN SOLUTION
    pi = 1 / (1 + np.exp(-a))
    root = np.sqrt(2 * np.pi)
    wide = pi * np.exp(-(w**2) / (2 * s1**2)) / (s1 * root)
    narrow = (1 - pi) * np.exp(-(w**2) / (2 * s2**2)) / (s2 * root)
    density = wide + narrow
    force = (wide / s1**2 + narrow / s2**2) * w
    return -np.sum(np.log(density)), force / density
    ### END SOLUTION

"""Learn how noisy the data are.

If the noise is not known, learn its logarithm t with everything else. Without log(2 pi) / 2, the
cost of B rows is

    sum_b [t + (y_b - f_b)^2 exp(-2 t) / 2].

The first term keeps the noise from explaining everything. At the optimum the noise is the root of
the mean squared error, which is how you can check your slope.

Shapes: f and y are (B,), t is a number. Return the value, d_f (B,), and d_t, one number.

Read: D1 in derivations/likelihoods.md.
"""

import numpy as np


def learned_noise(f, y, t):
    """Return the value and its slopes for f and t.

    Parameters
    ----------
    f : ndarray (B,)
        Outputs of the network.
    y : ndarray (B,)
        Targets.
    t : float
        Logarithm of the standard deviation of y around f.

    Returns
    -------
    value : float
        Cost of the rows, in nats.
    d_f : ndarray (B,)
        Its slope for f.
    d_t : float
        Its slope for t.
    """
    ### BEGIN SOLUTION
    precision = np.exp(-2 * t)
    error = f - y
    squares = precision * np.sum(error**2)
    return len(y) * t + squares / 2, precision * error, len(y) - squares
    ### END SOLUTION

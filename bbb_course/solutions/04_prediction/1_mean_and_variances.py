"""From many functions to one band.

A trained posterior is a distribution over functions. Draw S of them, and at each input you have S
numbers: their mean is the prediction, their variance says how much the functions disagree. A new
target scatters around its function by the noise, so its variance is larger.

Many published figures show the first band and call it the second. State both.

Shapes: f is (S, B), one row for each function; noise is a standard deviation, a number. Return the
mean (B,), the epistemic variance (B,), and the total variance (B,). Divide squares by S - 1: the
mean was estimated from the same S functions. Subtract the mean before you square: of prices, say,
the mean square less the square of the mean has no digit left.

Hint: R10 is a figure that lacks the noise.

Read: D4 and R10 in derivations/prediction.md.
"""

import numpy as np


def mean_and_variances(f, noise):
    """Return mean, epistemic and total variance of the prediction, (B,) each.

    Parameters
    ----------
    f : ndarray (S, B)
        Values of S functions at B inputs.
    noise : float
        Standard deviation of y around f.

    Returns
    -------
    mean, epistemic, total : ndarray (B,)
        Mean of f, variance of f, and variance of a new y.
    """
    ### BEGIN SOLUTION
    samples = len(f)
    mean = f.mean(axis=0)
    squares = ((f - mean) ** 2).sum(axis=0)
    epistemic = squares / (samples - 1)
    return mean, epistemic, epistemic + noise**2
    ### END SOLUTION

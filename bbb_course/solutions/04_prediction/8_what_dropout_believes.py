"""What dropout believes of an output.

MC dropout keeps its masks when it predicts, and reads a standard deviation off the outputs of many
passes. For one layer the passes need not be drawn. Each of its inputs a_j is left out with
probability p, independently, and those that stay are divided by 1 - p:

    f = b + sum_j m_j a_j v_j / (1 - p),    m_j = 0 with probability p, and 1 otherwise

Shapes: a (the inputs of the layer) and v (its weights) are (H,); b (its bias, never left out), p
and noise (the standard deviation of y around f) are numbers.
Return the mean of f over the masks, the variance of f over the masks, and the total variance of y.

Hint: m_j has the mean 1 - p and the variance p (1 - p). What does not depend on the rows that were
seen does not shrink with them: p and a alone decide how wide this is.

Read: D79 in derivations/approximations.md.
"""

import numpy as np


def what_dropout_believes(a, v, b, p, noise):
    """Return mean, epistemic and total variance over all masks.

    Parameters
    ----------
    a : ndarray (H,)
        Inputs of the layer.
    v : ndarray (H,)
        Weights of the layer.
    b : float
        Bias of the layer.
    p : float
        Probability that an input is left out.
    noise : float
        Standard deviation of y around f.

    Returns
    -------
    mean, epistemic, total : float
        Mean of f, variance of f, and variance of y.
    """
    ### BEGIN SOLUTION
    terms = a * v
    epistemic = p / (1 - p) * np.sum(terms**2)
    return b + np.sum(terms), epistemic, epistemic + noise**2
    ### END SOLUTION

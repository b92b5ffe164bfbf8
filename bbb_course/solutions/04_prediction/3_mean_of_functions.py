"""The function of the mean is not the mean of the functions.

It is tempting to predict with the mean weights: one forward pass instead of many. For a linear
model that is right. One blog post says it of a network, too: the mean of q would do.

Take the simplest nonlinear function, f(x) = (w x)^2, with w from N(mu, sigma^2). Compute what it
predicts on average, and what it predicts at the mean weight; the difference is a variance. Of
what?

Shapes: mu and sigma are numbers, x is (B,). Return the mean of f(x) over w, and f(x) at w =
mu, (B,) each.

Read: R9 in derivations/prediction.md.
"""

import numpy as np


def mean_of_functions(mu, sigma, x):
    """Return E[(w x)^2] and (mu x)^2, (B,) each.

    Parameters
    ----------
    mu, sigma : float
        Mean and standard deviation of w.
    x : ndarray (B,)
        Inputs.

    Returns
    -------
    mean : ndarray (B,)
        Mean of (w x)^2 over w.
    at_the_mean : ndarray (B,)
        (w x)^2 at w = mu.
    """
    ### BEGIN SOLUTION
    at_the_mean = (mu * x) ** 2
    return at_the_mean + (sigma * x) ** 2, at_the_mean
    ### END SOLUTION

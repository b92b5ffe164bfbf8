"""A member of an ensemble that is a draw of the posterior.

All members of an ensemble that are trained to the same rows from different starts end, if the
model is linear, at the same weights: their band has width 0. So let each member have rows and a
prior of its own. Noise eps of the size of the measurements' is added to its targets, and its
weights are drawn not to 0 but to a draw of the prior, s eps':

    |y + sigma eps - x w|^2 / (2 sigma^2) + |w - s eps'|^2 / (2 s^2)

Return this cost of a member and its slope for w. The weights at which that slope is 0 are a draw of
the posterior: over eps and eps' they have its mean and its covariance.

Shapes: w (I,), x (B, I), y (B,), eps (B,), eps_prior (I,); sigma and s are numbers.

Hint: the slope is A w minus a vector that depends on eps and eps', A the posterior's precision.

Read: D78 in derivations/approximations.md.
"""

import numpy as np


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    """Return the cost of a member and its slope for w.

    Parameters
    ----------
    w : ndarray (I,)
        Weights of the member while it is trained.
    x : ndarray (B, I)
        Rows.
    y : ndarray (B,)
        Targets.
    eps : ndarray (B,)
        Standard normal noise of the targets.
    eps_prior : ndarray (I,)
        Standard normal noise of the prior.
    sigma : float
        Standard deviation of y around x w.
    s : float
        Standard deviation of the prior.

    Returns
    -------
    value : float
        Cost of w.
    d_w : ndarray (I,)
        Its slope for w.
    """
    ### BEGIN SOLUTION
    targets = y + sigma * eps
    anchor = s * eps_prior
    residual = targets - x @ w
    value = residual @ residual / (2 * sigma**2) + (w - anchor) @ (w - anchor) / (
        2 * s**2
    )
    d_w = -x.T @ residual / sigma**2 + (w - anchor) / s**2
    return value, d_w
    ### END SOLUTION

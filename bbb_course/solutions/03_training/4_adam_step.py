"""Steps of about the same size for every number.

Gradients for mu and for rho differ by orders of magnitude, and so do those of different layers.
Adam divides each number's mean gradient by the root of its mean square, so that each moves by
about the learning rate. Both means forget slowly:

    m <- beta1 m + (1 - beta1) grad,    v <- beta2 v + (1 - beta2) grad^2.

They start at 0, so after t steps they are too small by the factors 1 - beta1^t and 1 - beta2^t.
Divide by these factors before use, and keep the undivided means for the next step. A `tiny`
number is added to the root, so that nothing is divided by 0.

Shapes: theta, m, v and grad are (P,); t = 1, 2, ... counts this step; eta, beta1, beta2 and tiny
are numbers. Return the new theta, m and v.

Hint: write the root as `** 0.5` or `np.sqrt`.

Read: D3 in derivations/training.md.
"""

import numpy as np


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    """Return theta, m and v after step t.

    Parameters
    ----------
    theta : ndarray (P,)
        Parameters before the step.
    m, v : ndarray (P,)
        Running means of the gradient and of its square, not corrected.
    grad : ndarray (P,)
        Gradient at theta.
    t : int
        Number of this step, from 1.
    eta : float
        Learning rate.
    beta1, beta2 : float
        Decay rates of m and of v, between 0 and 1.
    tiny : float
        Positive number that keeps the divisor from being 0.

    Returns
    -------
    new_theta : ndarray (P,)
        Parameters after the step.
    new_m, new_v : ndarray (P,)
        Running means after the step, not corrected.
    """
    ### BEGIN SOLUTION
    m = m * beta1 + grad * (1 - beta1)
    v = v * beta2 + grad * grad * (1 - beta2)
    unbiased_m = m / (1 - beta1**t)
    unbiased_v = v / (1 - beta2**t)
    return theta - eta * unbiased_m / (np.sqrt(unbiased_v) + tiny), m, v
    ### END SOLUTION

"""Backpropagation through one hidden layer.

For a network the likelihood's slope must travel from the outputs back to every weight. Three
facts do it: a sum passes its slope on, a product passes it on times the other factor, ReLU passes
it on where its input is positive. Start with delta = -(y - f) at the outputs and walk backwards:

    z0 = x W0 + b0,  a0 = ReLU(z0),  f = a0 W1 + b1,
    value = sum over rows and outputs of (y - f)^2 / 2.

All matrices here are square, 2 by 2, and there are two rows. So every product that you might
write by mistake, transposed or entry by entry, has the right shape, and only its values are
wrong. That is how the printed K38 and K40 can be misread.

Shapes: x is (B, I), W0 (I, H), b0 (H,), W1 (H, K), b1 (K,), y (B, K). Return value and the slopes
for W0, b0, W1 and b1, in this order.

Hint: a bias meets every row.

Read: K31, K32 and K36 to K42 in derivations.md.
"""

import numpy as np


def backward_pass(x, W0, b0, W1, b1, y):
    """Return half the sum of squares and its slopes for W0, b0, W1, b1.

    Parameters
    ----------
    x : ndarray (B, I)
        Inputs.
    W0 : ndarray (I, H)
        Weights of the hidden layer.
    b0 : ndarray (H,)
        Biases of the hidden layer.
    W1 : ndarray (H, K)
        Weights of the output layer.
    b1 : ndarray (K,)
        Biases of the output layer.
    y : ndarray (B, K)
        Targets.

    Returns
    -------
    value : float
        Half the sum of squared errors over rows and outputs.
    d_W0, d_b0, d_W1, d_b1 : ndarray
        Its slopes, of the shapes of W0, b0, W1 and b1.
    """
    ### BEGIN SOLUTION
    z0 = x @ W0 + b0
    on = z0 > 0
    a0 = np.where(on, z0, 0.0)
    delta1 = a0 @ W1 + b1 - y
    value = np.sum(delta1 * delta1) / 2
    delta0 = np.where(on, delta1 @ W1.T, 0.0)
    every_row = np.ones(len(x))
    return value, x.T @ delta0, every_row @ delta0, a0.T @ delta1, every_row @ delta1
    ### END SOLUTION

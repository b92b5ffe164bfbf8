"""Grade the test: is this gradient right?

You have let this grader prove your gradients. Now write a check yourself. Given a function that
returns value and gradient, say whether the gradient is that of the value. The grader shows your
check right functions, of values near a million and near a millionth, and wrong ones: a sign, a
factor, a derivative that is off by a thousandth, errors that cancel when you look along the
diagonal only, nan. The score is the number of wrong ones that you find, minus your false alarms.
You need all, and no alarm.

Finite differences have two errors: of the step, which shrinks with it, and of rounding, which
grows when it shrinks. The complex step, Im f(theta + i h) / h, has only the first.

Shapes: value_and_grad takes theta (P,) to a number and an array (P,); it takes complex numbers,
too. Return True if the gradient is right.

Hint: what is "almost 0" should be measured against the size of the gradient. np.allclose calls
two numbers equal, unless told otherwise, if they differ by less than 1e-8.

Read: D9 and D44 in derivations/numbers-and-proofs.md.
"""

import numpy as np


def check_a_gradient(value_and_grad, theta):
    """Return whether the gradient is that of the value.

    Parameters
    ----------
    value_and_grad : callable
        Takes theta (P,) to the value, a number, and its gradient (P,).
    theta : ndarray (P,)
        Point at which the gradient is checked.

    Returns
    -------
    right : bool
        True if the gradient is right.
    """
    ### BEGIN SOLUTION
    grad = value_and_grad(theta)[1]
    step = 1e-30
    measured = np.zeros_like(grad)
    for j in range(len(theta)):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        measured[j] = value_and_grad(moved)[0].imag / step
    off = np.max(np.abs(grad - measured))
    return bool(off <= 1e-9 * np.max(np.abs(measured)))
    ### END SOLUTION

"""When to turn round.

A trajectory that is too short wastes its momentum, and one that is too long comes back. NUTS
stops when its ends begin to approach each other: when half the squared distance between them
would shrink if one went on at either end. Its time derivative at the right end is

    d/dt (1/2) |q_right - q_left|^2 = (q_right - q_left) . r_right,

and going back in time from the left end gives the other number, with r_left. The paper's middle
step has the sign wrong.

Shapes: four arrays (P,): q_left and q_right are the positions at the two ends, r_left and r_right
the momenta there, both forwards in time. Return the slope at the left end, (q_right - q_left) .
r_left, and that at the right end, with r_right; a turn is where either is negative.

Read: M9 in derivations/samplers.md.
"""

import numpy as np


def u_turn(q_left, q_right, r_left, r_right):
    """Return the slopes at the left and at the right end.

    Parameters
    ----------
    q_left, q_right : ndarray (P,)
        Positions at the two ends of the trajectory.
    r_left, r_right : ndarray (P,)
        Momenta at the two ends, forwards in time.

    Returns
    -------
    at_left, at_right : float
        Slopes at the left and at the right end.
    """
    ### BEGIN SOLUTION
    span = q_right - q_left
    return np.sum(span * r_left), np.sum(span * r_right)
    ### END SOLUTION

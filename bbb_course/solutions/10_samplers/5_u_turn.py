"""When to turn round.

A trajectory that is too short wastes its momentum, and one that is too long comes back. NUTS
stops when its ends begin to approach each other: when half the squared distance between them
would shrink if one went on at either end. Its time derivative at the right end is

    d/dt (1/2) |right - left|^2 = (right - left) . r_right,

and going back in time from the left end gives the other number, with r_left. The paper's middle
step has the sign wrong.

Shapes: four arrays (P,): the places at the two ends and the momenta there, both forwards in time.
Return (right - left) . r_left and (right - left) . r_right; a turn is where either is negative.

Read: M9 in derivations/samplers.md.
"""

import numpy as np


def u_turn(left, right, r_left, r_right):
    """Return the slopes at the left and at the right end."""
    ### BEGIN SOLUTION
    span = right - left
    return np.sum(span * r_left), np.sum(span * r_right)
    ### END SOLUTION

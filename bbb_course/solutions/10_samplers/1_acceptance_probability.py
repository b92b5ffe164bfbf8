"""When to move.

A Markov chain visits states as often as their probability says if the traffic between any two
states is the same in both directions. Propose a step, and accept it only sometimes: with just the
probability that makes the traffic equal. The target has the `density` at the present state and
`new_density` at the proposed one. The proposal goes there with density `forward`, and from there
it would go back with density `backward`.

"Accept when the new state is more probable" is right for symmetric proposals only, where
forward = backward.

Shapes: four positive numbers: the target's density and new_density, up to a common factor, and the
proposal's forward and backward. Return the largest acceptance probability that keeps the traffic
equal.

Hint: a probability is at most 1.

Read: M6 in derivations/samplers.md.
"""

import numpy as np


def acceptance_probability(density, new_density, forward, backward):
    """Return the probability of accepting the step.

    Parameters
    ----------
    density, new_density : float
        Densities of the target at the old and the new state, up to a factor.
    forward : float
        Density with which the proposal goes from the old state to the new.
    backward : float
        Density with which it goes from the new state to the old.
    """
    ### BEGIN SOLUTION
    forward_traffic = density * forward
    backward_traffic = new_density * backward
    if backward_traffic >= forward_traffic:
        return 1.0
    return backward_traffic / forward_traffic
    ### END SOLUTION

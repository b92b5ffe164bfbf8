"""When to move.

A Markov chain visits places as often as their probability says if the traffic between any two
places is the same in both directions. Propose a step, and accept it only sometimes: with just the
probability that makes the traffic equal. From `here`, the proposal suggests `there` with density
`forth`, and from there it would suggest the way back with density `back`.

"Accept when the new place is more probable" is right for symmetric proposals only, where forth =
back.

Shapes: four positive numbers: the target's densities here and there, up to a common factor, and
the proposal's forth and back. Return the largest acceptance probability that keeps the traffic
equal.

Hint: a probability is at most 1.

Read: M6 in derivations/samplers.md.
"""

import numpy as np


def acceptance_probability(here, there, forth, back):
    """Return the probability of accepting the step."""
    ### BEGIN SOLUTION
    traffic_forth, traffic_back = here * forth, there * back
    if traffic_back >= traffic_forth:
        return 1.0
    return traffic_back / traffic_forth
    ### END SOLUTION

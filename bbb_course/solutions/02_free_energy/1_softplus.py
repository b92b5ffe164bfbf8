"""sigma = softplus(rho).

A standard deviation must be positive, and gradient descent knows nothing of that: sooner or later a
step would make it negative. So the program learns a number rho that may be anything, and computes

    sigma = log(1 + exp(rho)).

For large rho this is nearly rho, for very negative rho nearly exp(rho), and it never reaches 0.

Shapes: rho is (P,), one number for each weight; so is sigma.

Hint: do not mind overflow yet; the last chapter comes back to it.

Read: K3 in derivations.md; D7 in derivations/numbers-and-proofs.md.
"""

import numpy as np


def softplus(rho):
    """Return sigma (P,)."""
    ### BEGIN SOLUTION
    return np.log1p(np.exp(rho))
    ### END SOLUTION

"""The right formula that returns infinity.

The formula log(1 + exp(rho)) is proved, and at rho = 800 it returns infinity: exp(800) is larger
than any float. At rho = -40 it returns 0: 1 + exp(-40) is 1 in floats, and sigma becomes 0, by
which gradients divide. A proof in exact arithmetic says nothing of rounding. That is a question
of its own.

Take the large part out first: log(1 + exp(rho)) = max(rho, 0) + log(1 + exp(-|rho|)), and use
`np.log1p` where 1 would swallow a small number.

Shapes: rho is (P,). Return sigma (P,), right to twelve digits for every rho from -700 to 800.

Read: D7 in derivations/numbers-and-proofs.md; K3 in derivations.md.
"""

import numpy as np


def stable_softplus(rho):
    """Return log(1 + exp(rho)), (P,), without overflow or cancellation."""
    ### BEGIN SOLUTION
    large = np.where(rho > 0, rho, 0.0)
    return large + np.log1p(np.exp(-np.abs(rho)))
    ### END SOLUTION

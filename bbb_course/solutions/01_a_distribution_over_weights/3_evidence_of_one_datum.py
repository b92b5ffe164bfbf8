"""How probable was what we saw?

The *evidence* of a model is the density that it gave to the data before it saw them: the
likelihood, averaged over the prior. Later chapters bound it from below and from above, so it is
good to have computed one. Here the model says y = w x + noise, with w from N(0, prior^2).

The sum of two independent Gaussians is Gaussian. So y has mean 0 and a variance that you can
write down without an integral; the evidence is its density at the y that was measured.

Shapes: y, x, prior and noise are numbers, the last two standard deviations. Return the log density,
in nats, with all constants: log N(y; 0, v) = -y^2 / (2 v) - log(2 pi v) / 2.

Read: One weight, and Bayes' rule in derivations.md; D8 in derivations/why.md; M20 in
derivations/model-checking.md.
"""

import numpy as np


def evidence_of_one_datum(y, x, prior, noise):
    """Return log P(y).

    Parameters
    ----------
    y : float
        Stretch that was measured.
    x : float
        Force.
    prior : float
        Standard deviation of w before the measurement.
    noise : float
        Standard deviation of the measurement.
    """
    ### BEGIN SOLUTION
    v = (x * prior) ** 2 + noise**2
    return -0.5 * (y**2 / v + np.log(v) + np.log(2 * np.pi))
    ### END SOLUTION

"""Some inputs are noisier than others.

Let the network have two outputs for each target: a mean, and v, the logarithm of the variance.
Where the network is often wrong, v grows, and these rows weigh less. Without its constant the
cost is

    sum_b [v_b + (y_b - mean_b)^2 exp(-v_b)] / 2.

Take care what v is the logarithm of: of the variance, not of the standard deviation.

Shapes: mean, v and y are (B,). Return the value, d_mean (B,) and d_v (B,).

Read: D12 in derivations/likelihoods.md.
"""

import numpy as np


def noise_that_depends_on_the_input(mean, v, y):
    """Return the value and its slopes for mean and v."""
    ### BEGIN SOLUTION
    error = mean - y
    pull = error * np.exp(-v)
    return np.sum(v + error * pull) / 2, pull, 0.5 - error * pull / 2
    ### END SOLUTION

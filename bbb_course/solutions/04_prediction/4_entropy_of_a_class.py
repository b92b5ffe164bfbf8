"""Unsure, or unsure which model?

A classifier that says "50 : 50" may mean two things. Perhaps all functions of the posterior say
50 : 50: the picture is ambiguous, and more training data would not help. Or half of them are sure
of one class and half of the other: the model does not know yet.

The entropy -sum_c p_c log p_c, in nats, tells them apart. The entropy of the mean probabilities
is the total. The mean of the entropies is what is left when one knows the function: aleatoric.
Their difference is epistemic, and never negative.

Shapes: p is (S, C), the probabilities of C classes under each of S functions. Return total,
aleatoric and epistemic entropy, three numbers.

Read: D29 in derivations/prediction.md.
"""

import numpy as np


def entropy_of_a_class(p):
    """Return total, aleatoric and epistemic entropy in nats."""
    ### BEGIN SOLUTION
    average = p.sum(axis=0) / len(p)
    total = -(average @ np.log(average))
    aleatoric = -np.sum(p * np.log(p)) / len(p)
    return total, aleatoric, total - aleatoric
    ### END SOLUTION

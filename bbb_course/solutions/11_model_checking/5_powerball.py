"""Homework: a prediction that knows how much it knows.

Five white balls of 69 are drawn and sorted. You see one of them: either the smallest ("bin 1",
label 1) or the one in the middle ("bin 3", label 0), each as often. Given its number, how
probable is it that it was the smallest? You learn from 500 past draws, two balls of each. State a
probability for every number, and an interval that holds the true probability with 90 %.

The truth is known, as the rules of the game give it; so your answer can be graded exactly. The
grader lets it learn from forty histories and measures two numbers. *Regret*: how many nats per
ball your probabilities lose on average to the true ones; at most 0.01 is asked for. *Coverage*:
how often your intervals hold the truth, with each number as often as it comes; from 85 % to 97 %
is accepted. Do not use the rules, pretend that you do not know them: use the data, and of each
history alone. In some of them the labels are exchanged.

Shapes: numbers and labels are (1000,), balls is 69. Return probability, low and high, each (69,),
for the numbers 1 to 69.

Hint: D37 has the truth. A frequency for every number is noisy; a smooth function of the number
has few weights, and you know how to give weights a posterior. A Gaussian around the most probable
weights (Laplace's approximation) is enough here.

Read: D37 and D35 in derivations/calibration.md.
"""

import numpy as np


def powerball(numbers, labels, balls):
    """Return P(bin 1 | number) with the ends of a 90 % interval, (balls,) each.

    Parameters
    ----------
    numbers : ndarray (1000,)
        Numbers on the balls of past draws.
    labels : ndarray (1000,)
        1 for the smallest ball (bin 1), 0 for the middle one (bin 3).
    balls : int
        Number of white balls in the game.

    Returns
    -------
    probability : ndarray (balls,)
        P(bin 1 | number), for the numbers from 1.
    low, high : ndarray (balls,)
        Ends of its 90 % interval.
    """
    ### BEGIN SOLUTION

    def features(number):
        u = (np.asarray(number, float) - balls / 2) / (balls / 2)
        return np.stack([u**k for k in range(5)], axis=1)

    x = features(numbers)
    prior_precision = np.eye(x.shape[1]) / 10.0**2
    w = np.zeros(x.shape[1])
    for _ in range(50):  # Newton's method for the most probable weights
        p = 1 / (1 + np.exp(-(x @ w)))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + prior_precision
        w = w - 0.5 * np.linalg.solve(hessian, x.T @ (p - labels) + prior_precision @ w)
    everywhere = features(np.arange(1, balls + 1))
    logit = everywhere @ w
    sd = np.sqrt(np.sum(everywhere * np.linalg.solve(hessian, everywhere.T).T, axis=1))

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    low = sigmoid(logit - 1.645 * sd)
    high = sigmoid(logit + 1.645 * sd)
    return sigmoid(logit), low, high
    ### END SOLUTION

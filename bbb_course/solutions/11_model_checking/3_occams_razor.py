"""Why a flexible model can lose.

Two models of a coin: it is fair, or its bias r may be anything, each value as probable. The
second can explain any data better, with the best r. But the evidence does not ask for the best r;
it averages over all of them, and most fit badly:

    P(D | unknown r) = integral from 0 to 1 of r^h (1 - r)^t dr = h! t! / (h + t + 1)!,
    P(D | fair) = (1/2)^(h + t).

So the flexible model pays for its freedom, without any penalty that somebody added.

Shapes: heads and tails are whole numbers h and t. Return log P(D | unknown r) - log P(D | fair),
in nats. Try 5 and 3, then 50 and 30.

Hint: log n! is a sum of logarithms.

Read: M18 in derivations/why.md; M20 and M21 in derivations/model-checking.md.
"""

import numpy as np


def occams_razor(heads, tails):
    """Return the log Bayes factor against the fair coin.

    Parameters
    ----------
    heads, tails : int
        Numbers of flips that showed each side.
    """
    ### BEGIN SOLUTION
    # h! t! / (h + t + 1)! = 1 / [(h + t + 1) * (h + t choose h)]
    ways = 1
    for i in range(1, tails + 1):
        ways = ways * (heads + i) // i
    return (heads + tails) * np.log(2) - np.log(heads + tails + 1) - np.log(float(ways))
    ### END SOLUTION

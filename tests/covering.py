"""Few combinations in which every pair of parts meets: most mistakes are about one part or two.

All pairs (or triples) that occur in *any* of the given combinations, so that what is not valid is
asked of none.
"""

from itertools import combinations

import numpy as np


def parts_that_meet(combination, strength=2):
    """The pairs (or triples, ...) of a combination's parts, each with its places."""
    return set(combinations(enumerate(combination), strength))


def covering(everything, strength=2):
    """Choose from `everything` until every pair that occurs there is in a chosen combination.

    Greedy: always the first of those with the most pairs that are still missing; so the same
    combinations on every machine.
    """
    everything = list(everything)
    meetings = [parts_that_meet(which, strength) for which in everything]
    index = {pair: i for i, pair in enumerate(sorted(set().union(*meetings), key=repr))}
    has = np.zeros((len(everything), len(index)), bool)
    for row, pairs in zip(has, meetings, strict=True):
        row[[index[pair] for pair in pairs]] = True
    chosen, missing = [], np.ones(len(index), bool)
    while missing.any():
        best = int(np.argmax(has[:, missing].sum(axis=1)))
        chosen.append(everything[best])
        missing &= ~has[best]
    return chosen

"""Few combinations in which every pair of parts meets: most mistakes are about one part or two.

All pairs (or triples) that occur in *any* of the given combinations, so that what is not valid is
asked of none.
"""

from itertools import combinations

import numpy as np


def parts_that_meet(combination, strength=2):
    """The pairs (or triples, ...) of a combination's parts, each with its places."""
    return set(combinations(enumerate(combination), strength))


def cover(everything, strength=2):
    """Choose from `everything` until every pair that occurs there is in a chosen combination.

    Greedy: always the first of those with the most pairs that are still missing; so the same
    combinations on every machine.
    """
    everything = list(everything)
    meetings = [parts_that_meet(which, strength) for which in everything]
    index = {pair: i for i, pair in enumerate(set().union(*meetings))}
    who = np.zeros((len(index), len(everything)), np.int32)
    for i, pairs in enumerate(meetings):
        who[[index[pair] for pair in pairs], i] = 1
    chosen, missing = [], np.ones(len(index), bool)
    count = who.sum(axis=0, dtype=np.int32)  # of its pairs that are still missing
    while count.any():
        best = int(np.argmax(count))
        chosen.append(everything[best])
        met = missing & (who[:, best] == 1)
        count -= who[met].sum(axis=0, dtype=np.int32)
        missing &= ~met
    return chosen

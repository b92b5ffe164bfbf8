"""Few combinations in which every pair of parts occurs: most mistakes are about one part or two.

Only pairs (or triples) that occur in one of the candidates are covered: no combination is valid
with any other.
"""

from itertools import combinations

import numpy as np


def parts_that_meet(combination, strength=2):
    """Return the pairs (or triples, ...) of a combination's parts, each with its positions."""
    return set(combinations(enumerate(combination), strength))


def cover(candidates, strength=2):
    """Choose combinations until every pair that occurs in a candidate is in one of them.

    Greedy: always the first candidate with the most pairs that are still missing; so the same
    combinations are chosen on every machine.
    """
    candidates = list(candidates)
    pairs_of = [parts_that_meet(combination, strength) for combination in candidates]
    index = {pair: i for i, pair in enumerate(set().union(*pairs_of))}
    contains = np.zeros((len(index), len(candidates)), np.int32)  # (pairs, candidates)
    for i, pairs in enumerate(pairs_of):
        contains[[index[pair] for pair in pairs], i] = 1
    chosen = []
    missing = np.ones(len(index), bool)
    n_missing = contains.sum(axis=0, dtype=np.int32)  # pairs that a candidate would add
    while n_missing.any():
        best = int(np.argmax(n_missing))
        chosen.append(candidates[best])
        added = missing & (contains[:, best] == 1)
        n_missing -= contains[added].sum(axis=0, dtype=np.int32)
        missing &= ~added
    return chosen

"""UCI mushrooms: 22 letters each, edible or poisonous.

Schlimmer (1987), from the Audubon Society field guide. Every letter becomes one input that is 0
or 1; `?`, a missing stalk root, is a letter like the others, and the veil's type, which never
varies, stays, so that there are the 117 inputs of the literature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import DamagedDataError, locate, read

__all__ = ["CODES", "COLUMNS", "COUNTS", "FILE", "Mushrooms", "load"]

Array = NDArray[Any]
FILE = "agaricus-lepiota.csv"
COUNTS = {"e": 4208, "p": 3916}  # edible, poisonous
CODES = {  # the letters that occur, in alphabetical order
    "cap-shape": "bcfksx",
    "cap-surface": "fgsy",
    "cap-color": "bcegnpruwy",
    "bruises": "ft",
    "odor": "acflmnpsy",
    "gill-attachment": "af",
    "gill-spacing": "cw",
    "gill-size": "bn",
    "gill-color": "beghknopruwy",
    "stalk-shape": "et",
    "stalk-root": "?bcer",
    "stalk-surface-above-ring": "fksy",
    "stalk-surface-below-ring": "fksy",
    "stalk-color-above-ring": "bcegnopwy",
    "stalk-color-below-ring": "bcegnopwy",
    "veil-type": "p",
    "veil-color": "nowy",
    "ring-number": "not",
    "ring-type": "eflnp",
    "spore-print-color": "bhknoruwy",
    "population": "acnsvy",
    "habitat": "dglmpuw",
}
COLUMNS = ("class", *CODES)


class Mushrooms(NamedTuple):
    """All mushrooms, one row each."""

    x: Array  # (8124, 117) float32, 0 or 1; every group of one column sums to 1
    poisonous: NDArray[np.bool_]  # (8124,)
    names: tuple[str, ...]  # of the inputs, e.g. "odor=f"


def load() -> Mushrooms:
    """Load the mushrooms from the data folder.

    Raises
    ------
    MissingDataError
        If the file is not there; says where to get it and where to put it.
    DamagedDataError
        If it is not what it should be: header, letters, how many of each class.
    """
    text = read(locate("mushroom", FILE), COLUMNS)[1]
    groups = []
    for column, (name, codes) in enumerate({"class": "ep", **CODES}.items()):
        group = text[:, column, None] == np.array(list(codes))  # (N, letters)
        if not group.any(axis=1).all():
            row = int(np.argmin(group.any(axis=1)))
            raise DamagedDataError(
                f"{FILE}: data row {row + 1} has {text[row, column]!s:.20} for {name}; it "
                f"must be one of {' '.join(codes)}"
            )
        groups.append(group)
    poisonous = groups[0][:, 1]
    found = {"e": int((~poisonous).sum()), "p": int(poisonous.sum())}
    if found != COUNTS:
        raise DamagedDataError(
            f"{FILE} must have {COUNTS['e']} edible (e) and {COUNTS['p']} poisonous (p) "
            f"mushrooms; it has {found['e']} and {found['p']}"
        )
    names = tuple(f"{name}={code}" for name, codes in CODES.items() for code in codes)
    return Mushrooms(np.concatenate(groups[1:], axis=1).astype(np.float32), poisonous, names)

"""UCI mushrooms: 22 letters each, edible or poisonous.

Schlimmer (1987), from the Audubon Society field guide. Every letter becomes one input that is 0
or 1; `?`, a missing stalk root, is a letter like the others, and the veil's type, which never
varies, stays, so that there are the 117 inputs of the literature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import SETS, check_content, locate, read

FILE = SETS["mushroom"]["file"]
# that occur, by column, in their order
LETTERS: dict[str, str] = SETS["mushroom"]["letters"]


class Mushrooms(NamedTuple):
    """All mushrooms, one row each."""

    x: NDArray[Any]  # (8124, 117) float32, 0 or 1; every group of one column sums to 1
    poisonous: NDArray[np.bool_]  # (8124,)
    names: tuple[str, ...]  # of the inputs, e.g. "odor=f"


def load() -> Mushrooms:
    """Load the mushrooms from the data folder.

    Raises
    ------
    MissingDataError
        If the file is not there; says where to get it and where to put it.
    DamagedDataError
        If it is no table with these columns, or does not hold the published letters.
    """
    text = read(locate("mushroom"), ("class", *LETTERS))[1]
    check_content("mushroom", FILE, "\n".join(",".join(row) for row in text).encode())
    names = tuple(
        f"{name}={letter}" for name, letters in LETTERS.items() for letter in letters
    )
    columns = zip(text[:, 1:].T, LETTERS.values(), strict=True)
    x = [column == letter for column, letters in columns for letter in letters]
    return Mushrooms(np.array(x, np.float32).T.copy(), text[:, 0] == "p", names)

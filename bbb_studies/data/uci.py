"""Nine UCI regression sets with their standard splits.

The splits are those of Hernandez-Lobato and Adams (2015): row numbers, so they mean something
only for the published rows in the published order. `load` therefore checks what it found against
known sums over rows and their places, and refuses anything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import SETS, DamagedDataError, download, find, numbers, read

Array = NDArray[Any]
UCI_NAMES = tuple(name for name, known in SETS.items() if "splits" in known)
# Relative, since copies differ in their last digits. Exchanging two rows changes the sums by
# more, except for neighbours and a few in a hundred other pairs in sets of many rows.
CHECKSUM_RTOL = 1e-7


class UCISet(NamedTuple):
    """A regression set and its standard splits."""

    x: Array  # (N, d_in)  in the units of the source
    y: Array  # (N, 1)
    # Row numbers of each test part, in the published order.
    test_rows: tuple[NDArray[np.int_], ...]
    names: tuple[str, ...]  # d_in inputs, then the target

    def training_rows(self, split: int) -> NDArray[np.int_]:
        """Return the row numbers of the training part of a split, increasing."""
        is_training = np.ones(len(self.y), bool)
        is_training[self.test_rows[split]] = False
        return np.flatnonzero(is_training)


def published_splits(name: str) -> int:
    """Return the number of published splits of a set: 20, and 5 for protein."""
    return int(SETS[name]["splits"])


def standard_splits(rows: int, splits: int = 20) -> tuple[NDArray[np.int_], ...]:
    """Return the row numbers of the test part of every split, in the published order.

    Nine tenths of the rows, rounded, are for training.

    Parameters
    ----------
    rows : int
        Number of rows of the set.
    splits : int
        Number of splits; those beyond 20 (for ``protein``: 5) continue the published recipe,
        but are not published.
    """
    state = np.random.RandomState(1)
    n_training = round(rows * 9.0 / 10)
    return tuple(
        state.choice(range(rows), rows, replace=False)[n_training:]
        for _ in range(splits)
    )


def load(name: str, splits: int | None = None) -> UCISet:
    """Load a UCI set and its splits, from the data folder or else from OpenML.

    Parameters
    ----------
    name : str
        One of `UCI_NAMES`.
    splits : int, optional
        Number of splits; by default those published.

    Raises
    ------
    MissingDataError
        If it is in neither place; says where to get it and where to put it.
    DamagedDataError
        If what is there is not the published set in the published order.
    """
    description = SETS[name]
    columns = description["columns"]
    path = find(name, description["file"])
    if path is None:
        table = download(name, columns)
        source = f"OpenML's copy of {name}"
    else:
        table = numbers(path.name, read(path, columns)[1], columns)
        source = path.name
    x = np.ascontiguousarray(table[:, :-1])
    y = table[:, -1:].copy()
    if len(y) != description["rows"]:
        raise DamagedDataError(
            f"{source} has {len(y)} rows; the set has {description['rows']}"
        )
    weights = np.arange(1, len(y) + 1) / (0.5 * len(y) * (len(y) + 1))
    sums = float(weights @ y[:, 0]), float(weights @ x.sum(axis=1))
    if not np.allclose(
        sums,
        (description["targets"], description["inputs"]),
        rtol=CHECKSUM_RTOL,
        atol=0.0,
    ):
        raise DamagedDataError(
            f"{source} does not hold the published rows in the published order, to which the "
            f"standard splits belong: means weighted by place {sums[0]:.9g} and {sums[1]:.9g}, "
            f"published {description['targets']:.9g} and {description['inputs']:.9g}"
        )
    test_rows = standard_splits(
        len(y), description["splits"] if splits is None else splits
    )
    return UCISet(x, y, test_rows, tuple(columns))

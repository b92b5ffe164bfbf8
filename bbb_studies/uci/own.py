"""The methods of the UCI benchmark on a table of one's own: the same trials, splits and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.files import write_arrays

from ..data.uci import standard_splits
from .methods import Settings
from .trials import COSTS, AnyTrial, measure_split

__all__ = ["DATA", "FEWEST", "OwnTrial", "expected_cost", "keep", "measure", "set_name"]

Array = NDArray[Any]
DATA = "data.npz"  # in the folder of a run: what its workers read
FEWEST = 20  # rows: two in a test part, and folds of the others


@dataclass(frozen=True)
class OwnTrial(AnyTrial):
    """One method on one split of a table.

    Parameters
    ----------
    set : str
        Name of the table among the records.
    method : str
    split : int
    data : str
        `keep` returns it: records of other rows do not count.
    settings : Settings
    """

    set: str
    method: str
    split: int
    data: str
    settings: Settings = field(default_factory=Settings)

    @property
    def seeded_by(self) -> str:
        """Its rows' digest, whatever the file's name."""
        return f"{self.data}/{self.method}/{self.split:02d}"


def set_name(source: str) -> str:
    """Return the name of a table as a folder can have it, and no UCI set has."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in source)
    plain = plain.lstrip(".")[-60:]
    return plain if "." in plain else f"{plain}.table"


def keep(out: Path, x: Array, y: Array) -> str:
    """Write the rows `x` (N, d_in), `y` (N, 1) for the workers; return the digest of them."""
    x, y = (np.ascontiguousarray(part, np.float64) for part in (x, y))
    write_arrays(out / DATA, {"x": x, "y": y})
    return sha256(repr((x.shape, y.shape)).encode() + x.tobytes() + y.tobytes()).hexdigest()[:16]


class _Rows(NamedTuple):
    x: Array
    y: Array
    test_rows: tuple[Any, ...]


@lru_cache(maxsize=2)
def _data(path: str, digest: str, splits: int) -> _Rows:
    """Keep the rows, read once for each digest: a worker gets many trials of them."""
    with np.load(path, allow_pickle=False) as file:
        x, y = file["x"], file["y"]
    return _Rows(x, y, standard_splits(len(y), splits))


def measure(path: str, trial: OwnTrial) -> dict[str, Any]:
    """Run a trial on the rows that `keep` has written at `path`, as `trials.measure`."""
    data = _data(path, trial.data, 20 * (1 + trial.split // 20))
    test = data.test_rows[trial.split]
    train = np.setdiff1d(np.arange(len(data.y)), test)
    return measure_split(data.x, data.y, train, test, trial)


def expected_cost(rows: int, trial: OwnTrial) -> float:
    """Return about how many seconds a trial takes on one core."""
    return COSTS[trial.method] * max(rows, 1) * 0.9e-3

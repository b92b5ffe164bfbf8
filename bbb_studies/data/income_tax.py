"""Income tax per return by ZIP code and class of income: Vermont, 2016 (Mullachery et al.).

The paper names the set and leaves it unfinished. The task made of it here: the logarithm of the
income tax of an average return (A06500 / N1, in thousand USD) of one cell, which is one ZIP code
and one of six classes of adjusted gross income, from what its returns state before any tax is
computed. `LEAKS` lists the columns that may not be inputs, and why.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import SETS, DamagedDataError, locate, numbers, read

Array = NDArray[Any]
Int = NDArray[np.intp]
FILE: str = SETS["irs_vermont"]["file"]
# In thousand USD, used as shares of A00100, the adjusted gross income; and counts, per return.
AMOUNTS, COUNTS, LEAKS = (SETS["irs_vermont"][part] for part in ("amounts", "counts", "leaks"))
NO_PLACE = ("0", "00000", "99999")  # the state's total, and all other codes
CLASSES = ("below 25", "25 to 50", "50 to 75", "75 to 100", "100 to 200", "200 and more")
# A typical income of each class: with the indicators of the classes beside it, the income itself
# would tell nearly the same twice, and samplers crawl along directions that the data leave open.
TYPICAL = np.log([12.0, 36.0, 61.0, 87.0, 138.0, 380.0])
INPUTS = (
    "log income per return, less that typical of the class",
    *(f"{name} / income" for name in AMOUNTS.values()),
    *(f"{name} / returns" for name in COUNTS.values()),
    "log returns",
    *(f"class {name}" for name in CLASSES[1:]),
)


class Cells(NamedTuple):
    """One row for each cell of ZIP code and class that was kept, N in all."""

    x: Array  # (N, d_in)  the columns of `INPUTS`
    y: Array  # (N, 1)  log of the income tax per return in thousand USD
    place: NDArray[np.str_]  # (N,)  ZIP code
    income_class: NDArray[np.int_]  # (N,)  0 to 5, see `CLASSES`
    returns: Array  # (N,)  number of returns, rounded to 10 by the IRS
    dropped: dict[str, int]  # reason -> rows left out


def load() -> Cells:
    """Read the file and return the cells that can be used, and what was dropped and why.

    Raises
    ------
    MissingDataError
        If the file is not there; says where to get it.
    DamagedDataError
        If a column is missing or holds no numbers.
    """
    header, text = read(locate("irs_vermont"))
    needed = ["AGI_STUB", "N1", "A00100", "A06500", *AMOUNTS, *COUNTS]
    if absent := [name for name in ("ZIPCODE", *needed) if name not in header]:
        raise DamagedDataError(f"{FILE} has no column {', '.join(absent)}")
    place = text[:, header.index("ZIPCODE")]
    values = numbers(FILE, text[:, [header.index(name) for name in needed]], needed)
    column = dict(zip(needed, values.T, strict=True))
    reasons = {
        "state total and all other codes": np.isin(place, NO_PLACE),
        "no returns shown (suppressed by the IRS)": column["N1"] == 0,
        "income tax shown as 0 (suppressed by the IRS)": column["A06500"] <= 0,
        "no positive income": column["A00100"] <= 0,
    }
    kept, dropped = np.ones(len(place), bool), {}
    for reason, found in reasons.items():
        dropped[reason] = int((kept & found).sum())
        kept &= ~found
    column = {name: values[kept] for name, values in column.items()}
    income, returns = column["A00100"], column["N1"]
    income_class = column["AGI_STUB"].astype(int) - 1
    x = [
        np.log(income / returns) - TYPICAL[income_class],
        *(column[name] / income for name in AMOUNTS),
        *(column[name] / returns for name in COUNTS),
        np.log(returns),
        np.eye(len(CLASSES))[income_class, 1:],
    ]
    y = np.log(column["A06500"] / returns)[:, None]
    return Cells(np.column_stack(x), y, place[kept], income_class, returns, dropped)


def folds(place: NDArray[np.str_], count: int = 5, seed: int = 0) -> list[tuple[Int, Int]]:
    """Return `count` pairs of training and test rows that keep every `place` (N,) whole.

    The six cells of one ZIP code are alike: across a random split they would tell on each other.
    """
    names, code = np.unique(place, return_inverse=True)
    fold = np.empty(len(names), int)
    fold[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % count
    here = [fold[code] == which for which in range(count)]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in here]

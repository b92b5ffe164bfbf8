"""How a table writes numbers: the decimal sign, and what stands between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from .text_files import TableError, shown

__all__ = ["DECIMALS", "MISSING", "THOUSANDS", "NumberForm", "find_form", "is_date", "is_missing"]

DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", "'", " ")  # " " stands for the narrow and the unbroken one too
SPACES = str.maketrans("\u00a0\u202f\u2009", "   ")
MISSING = {"", "?", "NA", "N/A", "#N/A", "<NA>", "n/a", "NaN", "nan", "NULL", "null"}
MOST_LOOKED_AT = 200_000  # distinct cells of a table
EXACT = 2**53  # float64 holds every whole number up to this one
DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d\d))([T ].*)?"
    r"|\d{1,2}:\d\d(:\d.*)?",
    re.ASCII,
)


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip() in MISSING


def is_date(cell: str) -> bool:
    """Whether a cell looks like a date or a time."""
    return DATE.fullmatch(cell.strip()) is not None


@dataclass(frozen=True)
class NumberForm:
    """A way to write numbers.

    Parameters
    ----------
    decimal : str
    thousands : str
        Between groups of three digits, where it is used; '' for nothing.
    """

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        digits, point = "[0-9]+", re.escape(self.decimal)
        if self.thousands:
            digits = rf"(?:[1-9][0-9]{{0,2}}(?:{re.escape(self.thousands)}[0-9]{{3}})+|[0-9]+)"
        return re.compile(rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def read(self, cell: str) -> float | None:
        """Return the number in a cell, infinite if it is too large; None if there is none."""
        plain = self._plain(cell)
        return None if plain is None else float(plain)

    def rounds(self, cell: str) -> bool:
        """Whether a cell holds a whole number that float64 would round."""
        plain = self._plain(cell) or ""
        if not plain.lstrip("+-").isdigit() or not EXACT <= abs(float(plain)) < np.inf:
            return False
        return int(plain) != int(float(plain))

    def _plain(self, cell: str) -> str | None:
        cell = cell.strip().translate(SPACES)
        if len(cell) > 1000 or self._pattern.fullmatch(cell) is None:
            return None
        if self.thousands:
            cell = cell.replace(self.thousands, "")
        return cell.replace(self.decimal, ".")

    def __str__(self) -> str:
        text = f"decimal sign {self.decimal!r}"
        return f"{text}, thousands separated by {self.thousands!r}" if self.thousands else text


def find_form(
    columns: Sequence[Sequence[str]],
    decimal: str | None = None,
    thousands: str | None = None,
    semicolons: bool = False,
) -> NumberForm:
    """Return the way of writing under which most cells are numbers.

    Parameters
    ----------
    columns : sequence of sequences of text
    decimal, thousands : str, optional
        As the user has said; looked for otherwise.
    semicolons : bool
        Whether they separate the columns, as where commas are decimal signs: then 1.234 may mean
        1234, and is refused where no other cell decides.

    Raises
    ------
    TableError
        If cells can be read in two ways, such as '1,234', and no other cell decides which.
    """
    forms = [
        NumberForm(d, t)
        for t in THOUSANDS
        for d in DECIMALS
        if d != t and decimal in (None, d) and thousands in (None, t)
    ]
    if not forms:
        raise TableError(f"cannot have {decimal!r} as --decimal and --thousands; one must differ")
    if len(forms) == 1:
        return forms[0]
    most = max(100, MOST_LOOKED_AT // len(columns))
    cells = [
        cell
        for column in columns
        for cell in islice(dict.fromkeys(column), most)
        if not cell.isdigit() and any(map(str.isdigit, cell)) and len(cell) < 1000
    ]
    found = [[form.read(cell) for cell in cells] for form in forms]
    counts = [sum(value is not None for value in values) for values in found]
    best = max(counts)
    first, *others = (place for place, count in enumerate(counts) if count == best)
    if first == 0 and not (semicolons and best):
        return forms[0]
    _need_one_reading(cells, found, [first, *others], forms)
    only = [
        [
            c
            for c, a, b in zip(cells, found[one], found[other], strict=True)
            if a is not None and b is None
        ]
        for one, other in ((0, first), (first, 0))
    ]
    if only[0]:
        raise TableError(
            f"holds numbers of different kinds, such as {shown(only[0][0])} and "
            f"{shown(only[1][0])}; say by --decimal which are meant, and mend the others"
        )
    return forms[first]


def _need_one_reading(
    cells: Sequence[str],
    found: Sequence[Sequence[float | None]],
    places: Sequence[int],
    forms: Sequence[NumberForm],
) -> None:
    """Raise TableError for a cell that the forms at these places read differently."""
    for other in places[1:]:
        for cell, a, b in zip(cells, found[places[0]], found[other], strict=True):
            if a is not None and b is not None and a != b:
                raise TableError(
                    f"holds cells such as {shown(cell)}, which may be {a:g} or {b:g}: say by "
                    f"--decimal {forms[places[0]].decimal} or --decimal {forms[other].decimal} "
                    "which it is"
                )

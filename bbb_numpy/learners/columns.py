"""From the columns of a table to features: numbers, days, and categories as 0 and 1.

A learner that the command line has fitted keeps these, so that it predicts from a table with the
same columns, in Python as well.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["MOST_CATEGORIES", "Column", "date_order", "encoded", "missing", "pick", "place",
           "shown", "some", "together"]  # fmt: skip

MOST_CATEGORIES = 100  # of a column
MOST_COMPLAINTS = 20  # that are listed
MISSING = ("", "?", "NA", "N/A", "#N/A", "<NA>", "n/a", "NaN", "nan", "NULL", "null")


@dataclass(frozen=True)
class Column:
    """A column of a table, and the features that stand for it."""

    name: str
    categories: tuple[
        str, ...
    ] = ()  # sorted and distinct, one feature each; () for one of numbers
    date: bool = False  # whether it holds dates, whose feature is days since 1970-01-01
    fill: float | str | None = (
        None  # in place of a missing value; None: these are refused
    )
    order: str = (
        ""  # of dates such as 12/31/2024, 'mdy' or 'dmy'; '' for 2024-12-31 alone
    )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: ``'size'``, or ``'colour=blue'``, ``'colour=red'``."""
        if not self.categories:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    def read(self, frame: DataFrame) -> Series:
        """Return the cells (N,) as numbers, days or text; NaN where a value is missing.

        Raises
        ------
        ValueError
            If there is no such column, or a cell is no number or no date; with its place.
        """
        import pandas as pd

        cells = pick(frame, self.name)
        gaps = missing(cells)
        if self.categories:
            return cells.map(_text).where(~gaps)
        if self.date and not pd.api.types.is_numeric_dtype(cells):
            given = _year_first(cells.where(~gaps), self.order)
            times = pd.to_datetime(given, format="ISO8601", errors="coerce", utc=True)
            numbers = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        else:
            numbers = pd.to_numeric(cells.where(~gaps), errors="coerce").astype(float)
        wrong = ~gaps & ~np.isfinite(numbers)
        if wrong.any():
            such = {"": "2024-12-31", "mdy": "12/31/2024", "dmy": "31.12.2024"}[
                self.order
            ]
            kind = f"date such as {such}" if self.date else "number"
            cell = cells[wrong].iloc[0]
            raise ValueError(
                f"{place(frame, self.name, wrong)}: {shown(cell)} is no {kind}"
            )
        return numbers

    def encode(self, frame: DataFrame, unknown: str = "error") -> NDArray[np.float64]:
        """Return the features (N, len(features)); parameters and errors as of `encoded`."""
        cells = self.read(frame)
        gaps = cells.isna()
        if gaps.any() and self.fill is None:
            raise ValueError(
                f"{place(frame, self.name, gaps)}: a value is missing; fill it in, or leave such "
                "rows out (--drop-missing), or fit with --fill median"
            )
        if self.fill is not None:
            cells = cells.where(~gaps, self.fill)
        if not self.categories:
            return cells.to_numpy(float)[:, None]
        hot = cells.to_numpy()[:, None] == np.array(
            self.categories, object
        )  # (N, categories)
        strange = ~hot.any(axis=1)
        if strange.any():
            texts = list(dict.fromkeys(cells[strange]))
            if unknown == "error":
                raise ValueError(
                    f"{place(frame, self.name, strange)}: {shown(texts[0])} is none of the "
                    f"categories of fit, {some(self.categories, 5)}; mend it, or take such cells "
                    "as none of them with --unknown ignore"
                )
            warnings.warn(
                f"column {shown(self.name)}: {strange.sum()} cells are none of the categories of "
                f"fit, such as {some(texts, 5)}; all features of the column are 0 there",
                UserWarning,
                stacklevel=3,
            )
        return hot.astype(float)


def encoded(
    frame: DataFrame, columns: Sequence[Column], unknown: str = "error"
) -> DataFrame:
    """Return the features (N, d_in) of a table's columns.

    Parameters
    ----------
    frame : DataFrame
        With the columns of these names, in any order, among others; or already their features.
    columns : sequence of Column
    unknown : {'error', 'ignore'}
        What becomes of a category that none of the rows of fit had: refused, or 0 in all features
        of its column, with a warning.

    Raises
    ------
    ValueError
        If a column is missing, or a cell is missing, no number, no date, or an unknown category;
        names the column, the row (of a file the line), and what is like it.
    """
    from pandas import DataFrame

    features = [feature for column in columns for feature in column.features]
    if any(column.categories for column in columns) and list(frame.columns) == features:
        return frame
    values = together(partial(column.encode, frame, unknown) for column in columns)
    return DataFrame(np.hstack(values), columns=features, index=frame.index)


def together(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Return what each call returns, or raise one ValueError with what all of them complain of."""
    found, complaints = [], dict[str, None]()
    for call in calls:
        try:
            found.append(call())
        except ValueError as error:
            complaints[str(error)] = None
    if len(complaints) > 1:
        listed = [*complaints][:MOST_COMPLAINTS]
        if len(complaints) > len(listed):
            listed.append(f"and {len(complaints) - len(listed)} more")
        raise ValueError(
            "\n  ".join([f"{len(complaints)} columns cannot be used:", *listed])
        )
    if complaints:
        raise ValueError(*complaints)
    return found


def pick(frame: DataFrame, name: str) -> Series:
    """Return a column, or raise ValueError that names one like it and some of the others."""
    with suppress(KeyError):
        place = frame.columns.get_loc(
            name
        )  # by a hash: a list of all names takes their square
        if isinstance(place, int):
            return frame.iloc[:, place]
    names = [
        str(one) for one in frame.columns
    ]  # labels that are no text, or occur twice
    if name not in names:
        near = get_close_matches(name, names, 1) or [
            n for n in names if n.lower() == name.lower()
        ]
        hint = f"did you mean {shown(near[0])}? It has" if near else "it has"
        raise ValueError(
            f"{frame.attrs.get('source', 'the table')} has no column {shown(name)}; {hint} "
            f"{some(names, 20)}"
        )
    return frame.iloc[:, names.index(name)]


def missing(cells: Any) -> Any:
    """Return where cells of a Series or DataFrame say that there is no value."""
    return cells.isna() | cells.isin(MISSING)


def place(frame: DataFrame, name: str, where: Any) -> str:
    """Say where the first cell (N,) is for which `where` holds: file, line and column."""
    row = frame.index[int(np.argmax(where))]
    source = frame.attrs.get("source", "the table")
    return f"{source}, {frame.index.name or 'row'} {row}, column {shown(name)}"


def shown(value: Any, most: int = 40) -> str:
    """Return what a table holds in quotes, escaped, and shortened if it is long."""
    text = str(value)
    return (
        repr(text)
        if len(text) <= most
        else f"{text[: most - 10]!r}... ({len(text)} characters)"
    )


def some(names: Sequence[str], most: int) -> str:
    """List names, not too many of them."""
    listed = ", ".join(map(shown, names[:most]))
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


DAY_AND_MONTH = re.compile(
    r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d\d)(?=\D|$)", re.ASCII
)


def _year_first(cells: Series, order: str) -> Series:
    """Return cells with their dates of this order as 2024-12-31; two digits are 1969 to 2068."""

    def turned(match: re.Match[str]) -> str:
        month, day = match[1], match[2]
        if order == "dmy":
            month, day = day, month
        year = int(match[3])
        if len(match[3]) == 2:
            year += 2000 if year < 69 else 1900
        return f"{year:04}-{month:0>2}-{day:0>2}"

    if not order:
        return cells
    return cells.map(
        lambda cell: DAY_AND_MONTH.sub(turned, cell.strip(), 1), na_action="ignore"
    )


def date_order(cells: Series) -> str:
    """Return what comes first in dates such as 12/31/2024: '' if there are none, '?' if unclear."""
    found = [match for match in map(DAY_AND_MONTH.match, cells) if match]
    if not found:
        return ""
    first, second = (max(int(match[k]) for match in found) for k in (1, 2))
    if (first > 12) == (second > 12):
        return "?"
    return "dmy" if first > 12 else "mdy"


def _text(value: Any) -> str:
    """Return a cell as a file would have it: in a column with gaps pandas makes 5 to 5.0."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()

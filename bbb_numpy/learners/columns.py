"""Encoding of the columns of a table as features: numbers, days, and categories as 0 and 1.

A learner that the command line has fitted stores its `Column` objects, so that it predicts from a
table with the same columns, in Python as well.
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

from ..numeric.deprecation import renamed_names

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = [
    "MAX_CATEGORIES",
    "Column",
    "call_all",
    "detect_date_order",
    "encode_columns",
    "get_column",
    "is_missing",
    "list_names",
    "locate_cell",
    "quote_cell",
]

MAX_CATEGORIES = 100  # largest number of categories of a column
# largest numbers of errors, names of columns, and categories that an error message lists
MAX_ERRORS_LISTED = 20
MAX_NAMES_LISTED = 20
MAX_CATEGORIES_LISTED = 5
# example of a date in each `Column.order`, for error messages
DATE_EXAMPLES = {"": "2024-12-31", "mdy": "12/31/2024", "dmy": "31.12.2024"}
# cells with these texts are missing values
MISSING = ("", "?", "NA", "N/A", "#N/A", "<NA>", "n/a", "NaN", "nan", "NULL", "null")


@dataclass(frozen=True)
class Column:
    """A column of a table, and its encoding as features.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Categories, sorted and distinct, each encoded by one feature of 0 and 1. If empty, the
        column holds numbers or dates.
    date : bool
        Whether the column holds dates, which are encoded as days since 1970-01-01.
    fill : float or str, optional
        Value that replaces a missing one: a number (for dates in days), or a category. By default
        missing values are refused.
    order : {'', 'mdy', 'dmy'}
        Order of month, day and year in dates such as 12/31/2024. By default dates must look like
        2024-12-31.
    """

    name: str
    categories: tuple[str, ...] = ()
    date: bool = False
    fill: float | str | None = None
    order: str = ""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the column's features: ``'size'``, or ``'colour=red'`` for each category."""
        if not self.categories:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    def read(self, frame: DataFrame) -> Series:
        """Return this column of `frame` as numbers, days or text, a Series (N,), NaN where missing.

        Raises
        ------
        ValueError
            If there is no such column, or a cell is not a number or not a date. The message names
            the row and column of the cell.
        """
        import pandas as pd

        cells = get_column(frame, self.name)
        gaps = is_missing(cells)
        if self.categories:
            return cells.map(_text).where(~gaps)
        if self.date and not pd.api.types.is_numeric_dtype(cells):
            dates = _year_first(cells.where(~gaps), self.order)
            times = pd.to_datetime(dates, format="ISO8601", errors="coerce", utc=True)
            numbers = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        else:
            numbers = pd.to_numeric(cells.where(~gaps), errors="coerce").astype(float)
        invalid = ~gaps & ~np.isfinite(numbers)
        if invalid.any():
            location = locate_cell(frame, self.name, invalid)
            expected = "number"
            if self.date:
                expected = f"date such as {DATE_EXAMPLES[self.order]}"
            cell = quote_cell(cells[invalid].iloc[0])
            raise ValueError(f"{location}: {cell} is not a {expected}")
        return numbers

    def encode(self, frame: DataFrame, unknown: str = "error") -> NDArray[np.float64]:
        """Return the features (N, len(features)) that encode this column of a table.

        Parameters
        ----------
        frame : DataFrame
            Table with a column of this name.
        unknown : {'error', 'ignore'}
            Treatment of a category that is not in `categories`: refused, or encoded as 0 in all
            features, with a warning.

        Raises
        ------
        ValueError
            If there is no such column, or a cell is missing, not a number, not a date, or an
            unknown category.
        """
        cells = self.read(frame)
        gaps = cells.isna()
        if gaps.any() and self.fill is None:
            raise ValueError(
                f"{locate_cell(frame, self.name, gaps)}: a value is missing; fill it in, or leave "
                "such rows out (--drop-missing), or fit with --fill median"
            )
        if self.fill is not None:
            cells = cells.where(~gaps, self.fill)
        if not self.categories:
            return cells.to_numpy(float)[:, None]
        # (N, C) matrix that is True where a cell holds the column's category
        one_hot = cells.to_numpy()[:, None] == np.array(self.categories, object)
        is_unknown = ~one_hot.any(axis=1)
        if is_unknown.any():
            texts = list(dict.fromkeys(cells[is_unknown]))
            if unknown == "error":
                location = locate_cell(frame, self.name, is_unknown)
                categories = list_names(self.categories, MAX_CATEGORIES_LISTED)
                raise ValueError(
                    f"{location}: {quote_cell(texts[0])} must be one of the categories in the "
                    f"training rows, {categories}; correct it, or give such cells no category "
                    "with --unknown ignore"
                )
            examples = list_names(texts, MAX_CATEGORIES_LISTED)
            warnings.warn(
                f"column {quote_cell(self.name)}: {is_unknown.sum()} cells hold categories that "
                f"no training row has, such as {examples}; their features of the column are 0",
                UserWarning,
                stacklevel=3,
            )
        return one_hot.astype(float)


def encode_columns(
    frame: DataFrame, columns: Sequence[Column], unknown: str = "error"
) -> DataFrame:
    """Return the features (N, d_in) that encode columns of a table, as a DataFrame.

    Parameters
    ----------
    frame : DataFrame
        Table that has the columns, in any order, and may have others; or a table of the features,
        which is returned unchanged.
    columns : sequence of Column
        Columns that the learner was fitted to.
    unknown : {'error', 'ignore'}
        Treatment of a category that no row of fit had: refused, or encoded as 0 in all features of
        its column, with a warning.

    Raises
    ------
    ValueError
        If a column is missing, or a cell is missing, not a number, not a date, or an unknown
        category. The message names the column and the row (in a file the line); for a missing
        column it suggests a similar name.
    """
    from pandas import DataFrame

    features = [feature for column in columns for feature in column.features]
    if any(column.categories for column in columns) and list(frame.columns) == features:
        return frame
    values = call_all(partial(column.encode, frame, unknown) for column in columns)
    return DataFrame(np.hstack(values), columns=features, index=frame.index)


def call_all(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Call functions without arguments, and return their results as a list.

    Raise one ValueError with the messages of all calls that raise a ValueError.
    """
    results = []
    errors: dict[str, None] = {}  # keys are the distinct messages, in order
    for call in calls:
        try:
            results.append(call())
        except ValueError as error:
            errors[str(error)] = None
    if len(errors) > 1:
        listed = [*errors][:MAX_ERRORS_LISTED]
        if len(errors) > len(listed):
            listed.append(f"and {len(errors) - len(listed)} more")
        header = f"{len(errors)} columns cannot be used:"
        raise ValueError("\n  ".join([header, *listed]))
    if errors:
        raise ValueError(*errors)
    return results


def get_column(frame: DataFrame, name: str) -> Series:
    """Return the column of a table that has a name; raise ValueError if there is none.

    Parameters
    ----------
    frame : DataFrame
        Table. Column labels that are not text are compared as text; of equal ones the first counts.
    name : str
        Name of the column.

    Raises
    ------
    ValueError
        If there is no such column. The message suggests a similar name.
    """
    # get_loc finds a name by its hash; a search in the list of names, for every column of a wide
    # table, would take quadratic time
    with suppress(KeyError):
        position = frame.columns.get_loc(name)
        if isinstance(position, int):
            return frame.iloc[:, position]
    names = [str(label) for label in frame.columns]
    if name not in names:
        similar = get_close_matches(name, names, 1)
        similar = similar or [n for n in names if n.lower() == name.lower()]
        hint = "it has"
        if similar:
            hint = f"did you mean {quote_cell(similar[0])}? It has"
        raise ValueError(
            f"{frame.attrs.get('source', 'the table')} has no column {quote_cell(name)}; {hint} "
            f"{list_names(names, MAX_NAMES_LISTED)}"
        )
    return frame.iloc[:, names.index(name)]


def is_missing(cells: Any) -> Any:
    """Return a mask of the cells (Series, DataFrame) that are NaN or a text such as 'NA' or '?'."""
    dtype = getattr(cells, "dtype", None)
    if getattr(dtype, "kind", "O") in "iuf":
        return cells.isna()  # numbers need no comparison with texts
    return cells.isna() | cells.isin(MISSING)


def locate_cell(frame: DataFrame, name: str, where: Any) -> str:
    """Return text that locates the first cell of a column for which a mask is True.

    An example is "data.csv, line 3, column 'size'".

    Parameters
    ----------
    frame : DataFrame
        Table, whose ``attrs['source']`` names the file, and the name of whose index is the word for
        a row, such as "line".
    name : str
        Name of the column.
    where : array-like of bool (N,)
        Mask of the cells that meet the condition.
    """
    row = frame.index[int(np.argmax(where))]
    source = frame.attrs.get("source", "the table")
    return f"{source}, {frame.index.name or 'row'} {row}, column {quote_cell(name)}"


def quote_cell(value: Any, max_length: int = 40) -> str:
    """Return the text of a cell in quotes, escaped, and shortened if it is long.

    Parameters
    ----------
    value : object
        Content of the cell.
    max_length : int
        Number of characters above which the text is shortened.
    """
    text = str(value)
    if len(text) <= max_length:
        return repr(text)
    return f"{text[: max_length - 10]!r}... ({len(text)} characters)"


def list_names(names: Sequence[str], max_count: int) -> str:
    """Return text that lists names in quotes, and says how many more there are.

    Parameters
    ----------
    names : sequence of str
        Names to list.
    max_count : int
        Largest number of names that are listed.
    """
    listed = ", ".join(map(quote_cell, names[:max_count]))
    if len(names) > max_count:
        return f"{listed} and {len(names) - max_count} more"
    return listed


DAY_AND_MONTH = re.compile(
    r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d\d)(?=\D|$)", re.ASCII
)


def _year_first(cells: Series, order: str) -> Series:
    """Return cells in which dates of an `order`, 'mdy' or 'dmy', are rewritten as 2024-12-31.

    Years of two digits are 1969 to 2068. If `order` is empty, cells are returned unchanged.
    """

    def year_first(match: re.Match[str]) -> str:
        """Return the date that `match` has found as year-month-day."""
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
        lambda cell: DAY_AND_MONTH.sub(year_first, cell.strip(), 1), na_action="ignore"
    )


def detect_date_order(cells: Series) -> str:
    """Return the order of month, day and year, 'mdy' or 'dmy', of dates such as 12/31/2024.

    The order is '' if there are no such dates, and '?' if they could be in either order.
    """
    matches = [match for match in map(DAY_AND_MONTH.match, cells) if match]
    if not matches:
        return ""
    first, second = (max(int(match[k]) for match in matches) for k in (1, 2))
    if (first > 12) == (second > 12):
        return "?"
    return "dmy" if first > 12 else "mdy"


def _text(value: Any) -> str:
    """Return a cell as text without surrounding spaces; a whole number such as 5.0 is "5".

    pandas converts whole numbers of a column with missing values to floats.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


__getattr__ = renamed_names(
    __name__,
    {
        "encoded": "encode_columns",
        "shown": "quote_cell",
        "MOST_CATEGORIES": "MAX_CATEGORIES",
    },
)

"""Encoding of the columns of a table as features: numbers, days, and categories as 0 and 1.

A learner that was fitted to a table, in Python or by the command line, stores its `Column` objects,
so that it predicts from a table with the same columns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..numeric.deprecation import renamed_names

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = [
    "MAX_CATEGORIES",
    "NUMERIC",
    "SPACES",
    "Column",
    "call_all",
    "check_categories",
    "describe_columns",
    "detect_date_order",
    "encode_columns",
    "get_column",
    "holds_text",
    "is_missing",
    "list_names",
    "locate_cell",
    "quote_cell",
    "set_fill_values",
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
    indicator : bool
        Whether a last feature is 1 where the value is missing, and 0 elsewhere. The features of
        categories, if `fill` is None, are then all 0 where it is.
    """

    name: str
    categories: tuple[str, ...] = ()
    date: bool = False
    fill: float | str | None = None
    order: str = ""
    indicator: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: ``'size'``, ``'colour=red'`` for each category, 'size missing'."""
        names = [self.name]
        if self.categories:
            names = [f"{self.name}={category}" for category in self.categories]
        if self.indicator:
            names.append(f"{self.name} missing")
        return tuple(names)

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
        if gaps.any() and self.fill is None and not self.indicator:
            raise ValueError(
                f"{locate_cell(frame, self.name, gaps)}: a value is missing; fill it in, or leave "
                "such rows out (--drop-missing), or fit with --fill median, or in Python to a "
                "table in which cells of this column are missing too"
            )
        if self.fill is not None:
            cells = cells.where(~gaps, self.fill)
        features = cells.to_numpy()[:, None]
        if self.categories:
            features = self._one_hot(frame, cells, unknown)
        if self.indicator:
            features = np.hstack([features, gaps.to_numpy()[:, None]])
        return features.astype(float)

    def _one_hot(
        self, frame: DataFrame, cells: Series, unknown: str
    ) -> NDArray[np.bool_]:
        """Return the matrix (N, C) that is True where a cell holds the column's category.

        `cells` are those of `frame` after missing ones have been filled in.
        """
        from pandas import Index

        codes = Index(self.categories).get_indexer(cells)  # (N,), -1 where none
        one_hot: NDArray[np.bool_] = codes[:, None] == np.arange(len(self.categories))
        is_unknown = (codes < 0) & cells.notna()
        if is_unknown.any():
            texts = list(dict.fromkeys(cells[is_unknown]))
            if unknown == "error":
                location = locate_cell(frame, self.name, is_unknown)
                categories = list_names(self.categories, MAX_CATEGORIES_LISTED)
                raise ValueError(
                    f"{location}: {quote_cell(texts[0])} must be one of the categories in the "
                    f"training rows, {categories}; correct it, or give such cells no category "
                    "with --unknown ignore, in Python TableEncoder(unknown='ignore')"
                )
            examples = list_names(texts, MAX_CATEGORIES_LISTED)
            warnings.warn(
                f"column {quote_cell(self.name)}: {is_unknown.sum()} cells hold categories that "
                f"no training row has, such as {examples}; their features of the column are 0",
                UserWarning,
                stacklevel=3,
            )
        return one_hot


def describe_columns(frame: DataFrame) -> tuple[Column, ...]:
    """Return how each column of a table is encoded, by its dtype and its cells.

    Columns of dtype category, and columns in which at least half of the cells are text, become
    categories; dates become days; numbers and truth values become numbers. Where cells are missing
    they are filled in, and told by an indicator (`set_fill_values`).

    Parameters
    ----------
    frame : DataFrame
        Training rows.

    Raises
    ------
    ValueError
        If two columns have one name, a column has more than `MAX_CATEGORIES` categories or no cell,
        or its cells are text that may be meant as dates or numbers. The message names all such
        columns.
    """
    names = [str(label) for label in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            "columns must have names of their own; there is more than one "
            f"{list_names(repeated, MAX_NAMES_LISTED)}"
        )
    return tuple(call_all(partial(_describe_column, frame, name) for name in names))


def _describe_column(frame: DataFrame, name: str) -> Column:
    """Return how the column `name` of a table is encoded."""
    import pandas as pd

    cells = get_column(frame, name)
    gaps = is_missing(cells)
    values = cells[~gaps]
    column = Column(name)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        texts = cells.cat.categories.map(_text)
        column = replace(column, categories=check_categories(frame, name, texts))
    elif cells.dtype.kind in "mc" or isinstance(cells.dtype, pd.PeriodDtype):
        raise ValueError(
            f"column {quote_cell(name)} holds {cells.dtype}; convert it to numbers, time "
            "differences for example by / pandas.Timedelta(days=1)"
        )
    elif cells.dtype.kind == "M" or _all_dates(values):
        column = replace(column, date=True)
    elif cells.dtype.kind not in "biuf":
        texts = values.map(_text)
        numbers = pd.to_numeric(texts, errors="coerce")
        if holds_text(frame, name, texts, numbers, TEXT_REMEDIES):
            column = replace(column, categories=check_categories(frame, name, texts))
    if gaps.any():
        [column] = set_fill_values([column], frame)
    return column


def _all_dates(values: Series) -> bool:
    """Return whether all cells of a column of objects are dates, such as `datetime.date`."""
    if values.dtype.kind != "O":
        return False
    return len(values) > 0 and all(hasattr(cell, "year") for cell in values)


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


def is_missing(cells: Series) -> Series:
    """Return a mask of the cells that are NaN, or a text such as 'NA' or '?'."""
    if cells.dtype.kind in "biufcmM":
        return cells.isna()  # a search for texts among a million numbers takes a second
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


def quote_cell(value: Any) -> str:
    """Return the text of a cell in quotes, escaped, and shortened if it has over 40 characters."""
    text = str(value)
    if len(text) <= 40:
        return repr(text)
    return f"{text[:30]!r}... ({len(text)} characters)"


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


def set_fill_values(columns: Sequence[Column], table: DataFrame) -> tuple[Column, ...]:
    """Return columns that fill in missing cells, and tell them where the training rows have some.

    A missing number or date becomes the median of the column, a missing category the most frequent
    one. If a cell of `table` is missing, the column also gets an indicator (`Column.indicator`),
    and a missing category is then none of the others.

    Parameters
    ----------
    columns : sequence of Column
        Columns whose missing values are to be filled.
    table : DataFrame
        Training rows; columns of numbers hold numbers.

    Raises
    ------
    ValueError
        If all values of a column are missing.
    """

    def with_fill(column: Column) -> Column:
        """Return `column` with the value, and the indicator, for its missing cells."""
        cells = column.read(table)
        values = cells.dropna()
        if not len(values):
            raise ValueError(
                f"column {quote_cell(column.name)} has no value to fill it with; leave it out "
                f"with --leave-out {quote(column.name)}"
            )
        indicator = len(values) < len(cells)
        fill: float | str | None = None
        if not column.categories:
            fill = float(values.median())
        elif not indicator:
            fill = str(values.mode()[0])
        return replace(column, fill=fill, indicator=indicator)

    return tuple(map(with_fill, columns))


# Remedies for columns of text that may be something else, by what their cells look like, in Python
TEXT_REMEDIES = {
    "time": "drop the column",
    "date": "pandas.to_datetime makes dates of the column",
    "number": "convert the column to numbers, or to labels with astype('category')",
}
DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d\d))([T ].*)?"
    r"|\d{1,2}:\d\d(:\d.*)?",
    re.ASCII,
)
TIME = re.compile(r"\d{1,2}:\d\d(:\d.*)?", re.ASCII)
# Matches numbers with currency, unit or separators: $5, EUR 5, 5 kg, 30 km/h, 1.234,5, 12 %, 5 m2
NUMERIC = re.compile(
    r"(?:[^\w\s.-]{1,3}|[A-Z]{2,3}\$?\s)?\s*[+-]?\d[\d.,' ]*(?:[eE][+-]?\d+)?"
    r"\s*[^\w\s-]{0,2}(?:[^\W\d_]{1,4}(?:/[^\W\d_]{1,3})?[23²³]?)?"
)
SPACES = str.maketrans("\u00a0\u202f\u2009", "   ")  # non-breaking and thin spaces


def holds_text(
    frame: DataFrame,
    name: str,
    texts: Series,
    numbers: Series,
    remedies: Mapping[str, str],
) -> bool:
    """Return whether a column holds text: less than half of its cells are numbers.

    Parameters
    ----------
    frame : DataFrame
        Table that has the column.
    name : str
        Name of the column.
    texts : Series
        Its cells that are not missing, as text.
    numbers : Series
        The same cells as numbers, NaN where a cell is not one.
    remedies : mapping of str to str
        What the messages advise for cells that look like a 'time', a 'date' or a 'number'.

    Raises
    ------
    ValueError
        If all cells are dates or times, or most look like numbers in another format.
    """
    if 2 * numbers.notna().sum() >= len(texts):
        return False
    location = locate_cell(frame, name, frame.index == texts.index[0])
    first_cell = f"{location}: {quote_cell(texts.iloc[0])}"
    distinct = texts.unique()
    if all(map(TIME.fullmatch, distinct)):
        raise ValueError(
            f"{first_cell}, like all cells of the column, is a time of the day; write it as a "
            f"number of hours, or {remedies['time']}"
        )
    if all(map(DATE.fullmatch, distinct)):
        raise ValueError(
            f"{first_cell}, like all cells of the column, is a date or a time; {remedies['date']}"
        )
    n_numeric = sum(
        bool(NUMERIC.fullmatch(text.translate(SPACES))) for text in distinct
    )
    if 2 * n_numeric > len(distinct):
        raise ValueError(
            f"{first_cell} looks like a number but is not one; {remedies['number']}"
        )
    return True


def check_categories(
    frame: DataFrame, name: str, texts: Iterable[str]
) -> tuple[str, ...]:
    """Return the distinct texts of a column, sorted, as its categories.

    Parameters
    ----------
    frame : DataFrame
        Table that has the column.
    name : str
        Name of the column.
    texts : iterable of str
        Its cells as text; those that stand for a missing value are left out.

    Raises
    ------
    ValueError
        If there is none, or more than `MAX_CATEGORIES`.
    """
    categories = sorted({*texts} - {*MISSING})
    if not 1 <= len(categories) <= MAX_CATEGORIES:
        raise ValueError(
            f"{frame.attrs.get('source', 'the table')}: column {quote_cell(name)} holds "
            f"{len(categories)} different texts; accepted are 1 to {MAX_CATEGORIES} categories. "
            "Group its texts, or leave it out with --leave-out"
        )
    return tuple(categories)


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

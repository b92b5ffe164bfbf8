"""From columns of a table to the features of a learner: numbers, and categories as 0 and 1."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import LONGEST_CATEGORY, MOST_CATEGORIES, Column
from .csv_tables import MOST_COLUMNS, Table, TableError
from .number_forms import is_date, is_missing
from .text_files import shown

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["UNKNOWN", "encoded", "find_columns", "is_text"]

UNKNOWN = ("error", "ignore")  # scikit-learn's names, of OneHotEncoder's handle_unknown


def is_text(table: Table, name: str) -> bool:
    """Whether a column holds labels rather than numbers, of which a few cells may be spoilt.

    Raises
    ------
    TableError
        If it holds dates.
    """
    cells = table.column(name)
    distinct = {cell: table.form.read(cell) is not None for cell in dict.fromkeys(cells)}
    given = [(row, cell) for row, cell in enumerate(cells) if not is_missing(cell)]
    if given and all(is_date(cell) and not distinct[cell] for _, cell in given):
        row, cell = given[0]
        raise TableError(
            f"{table.place(name, row)}: the column holds dates or times, such as {shown(cell)}; "
            "make numbers of them first, such as days since the first one, month or hour"
        )
    return 2 * sum(distinct[cell] for _, cell in given) < len(given)


def find_columns(
    table: Table, names: Sequence[str], categories: Collection[str] = ()
) -> tuple[Column, ...]:
    """Return what the named columns are: text, and those named in `categories`, is one-hot.

    Raises
    ------
    TableError
        If a column is missing, holds dates, or more different texts than can be categories.
    """
    found = []
    for name in names:
        table.column(name)
        if name in categories or is_text(table, name):
            found.append(Column(name, labels(table, name)))
        else:
            found.append(Column(name))
    features = [feature for column in found for feature in column.features]
    if len(features) > MOST_COLUMNS:
        raise TableError(
            f"{table.source} gives {len(features)} inputs, each category one; accepted are "
            f"{MOST_COLUMNS}. Leave columns out with --leave-out"
        )
    twice = next((one for one in features if features.count(one) > 1), None)
    if twice is not None:
        raise TableError(
            f"{table.source}: two inputs would have the name {shown(twice)}; rename a column"
        )
    return tuple(found)


def labels(table: Table, name: str) -> tuple[str, ...]:
    """Return the different texts of a column, sorted.

    Raises
    ------
    TableError
        For a missing value, a text that is too long, and too many different ones.
    """
    cells = table.column(name)
    for row, cell in enumerate(cells):
        if is_missing(cell):
            raise TableError(f"{table.place(name, row)}: {table.fault(cell)}")
        if len(cell.strip()) > LONGEST_CATEGORY:
            raise TableError(f"{table.place(name, row)}: {shown(cell)} is too long for a category")
    found = sorted({cell.strip() for cell in cells})
    if len(found) > MOST_CATEGORIES:
        raise TableError(
            f"{table.source}: column {shown(name)} holds {len(found)} different texts, such as "
            f"{shown(found[0])}; at most {MOST_CATEGORIES} can be categories. Group its texts"
        )
    return tuple(found)


def encoded(table: Table, columns: Sequence[Column], unknown: str = "error") -> DataFrame:
    """Return the features (N, d_in) of columns, as scikit-learn's OneHotEncoder encodes categories.

    Parameters
    ----------
    table : Table
    columns : sequence of Column
    unknown : {'error', 'ignore'}
        What becomes of a category that none of the rows of fit had: refused, or 0 in all features
        of its column, with a warning.

    Raises
    ------
    TableError
        As `Table.numbers`; for a missing value, and for an unknown category, if refused.
    """
    from pandas import DataFrame

    features = [feature for column in columns for feature in column.features]
    values = np.zeros((len(table), len(features)))
    plain = [column.name for column in columns if not column.categories]
    numbers = dict(zip(plain, table.numbers(plain).to_numpy().T, strict=True))
    at = 0
    for column in columns:
        if not column.categories:
            values[:, at] = numbers[column.name]
        else:
            _fill(values[:, at : at + len(column.categories)], table, column, unknown)
        at += len(column.features)
    return DataFrame(values, columns=features)


def _fill(values: NDArray[np.float64], table: Table, column: Column, unknown: str) -> None:
    places = {category: place for place, category in enumerate(column.categories)}
    strange: dict[str, int] = {}
    for row, cell in enumerate(table.column(column.name)):
        place = places.get(cell.strip())
        if place is not None:
            values[row, place] = 1.0
            continue
        if is_missing(cell):
            labels(table.rows([row]), column.name)  # which says so
        if unknown == "error":
            raise TableError(
                f"{table.place(column.name, row)}: {shown(cell.strip())} is none of the categories "
                f"of fit, {_few(column.categories)}; mend it, or take such cells as none of them "
                "with --unknown ignore"
            )
        strange[cell.strip()] = strange.get(cell.strip(), 0) + 1
    if strange:
        warnings.warn(
            f"column {shown(column.name)}: {sum(strange.values())} cells are none of the "
            f"categories of fit, such as {_few(list(strange))}; all features of the column are 0 "
            "there",
            UserWarning,
            stacklevel=2,
        )


def _few(texts: Sequence[str]) -> str:
    listed = ", ".join(map(shown, texts[:5]))
    return f"{listed}, ..." if len(texts) > 5 else listed

"""What to learn from a table: its options on the command line, its inputs and its target."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import (
    MOST_CATEGORIES,
    Column,
    date_order,
    encoded,
    missing,
    pick,
    place,
    shown,
    together,
)
from ..registry import LIKELIHOODS
from .tables import SEPARATORS, SPACES, TableError, numbers, read_csv

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["LIKELIHOODS_OF", "Problem", "add_data_options", "add_reading_options", "complete",
           "filled", "places_of", "read", "read_problem", "with_numbers"]  # fmt: skip

Array = NDArray[Any]
LIKELIHOODS_OF = {
    task: [name for name, one in LIKELIHOODS.items() if one.target_kind == kind]
    for task, kind in (
        ("regression", "real"),
        ("classification", "class"),
        ("counts", "count"),
    )
}
DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d\d))([T ].*)?"
    r"|\d{1,2}:\d\d(:\d.*)?",
    re.ASCII,
)
# $5, EUR 5, 5 kg, 30 km/h, 1.234,5, 12 %, 5 m2: digits and their signs, a currency or a unit
NUMERIC = re.compile(
    r"(?:[^\w\s.-]{1,3}|[A-Z]{2,3}\$?\s)?\s*[+-]?\d[\d.,' ]*(?:[eE][+-]?\d+)?"
    r"\s*[^\w\s-]{0,2}(?:[^\W\d_]{1,4}(?:/[^\W\d_]{1,3})?[23²³]?)?"
)


TIME = re.compile(r"\d{1,2}:\d\d(:\d.*)?", re.ASCII)
COUNTED = 10  # rows from which whole numbers in a row are no chance


class Problem(NamedTuple):
    """A table, made ready for a learner."""

    source: str
    target: str
    task: str
    why: str  # the task was chosen, for a person
    columns: tuple[Column, ...]
    table: DataFrame  # its rows, those columns that are numbers being so
    y: Array  # (N,) numbers, or labels: text or whole numbers

    @property
    def inputs(self) -> DataFrame:
        """The features (N, d_in)."""
        return encoded(self.table, self.columns)

    def summary(self) -> str:
        """Return a line for a person about rows, inputs, target and task."""
        names = [column.name for column in self.columns]
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        features = sum(len(column.features) for column in self.columns)
        hot = f" as {features} features" if features > len(names) else ""
        inputs = f"{len(self.y)} rows, {len(names)} inputs ({listed}){hot}"
        return f"{inputs}, target {self.target}: {self.task}{self.why}"

    def check_counts(self, min_rows: int, min_class_rows: int) -> None:
        """Check that the rows can be split into training and test rows.

        Parameters
        ----------
        min_rows : int
            The number of rows needed.
        min_class_rows : int
            The number of rows that every class needs; ignored where the target is a number.

        Raises
        ------
        TableError
            If there are fewer, or if the target is the same in all rows.
        """
        labels, counts = np.unique(self.y, return_counts=True)
        problem = ""
        if len(self.y) < min_rows:
            problem = f"{len(self.y)} rows are too few; at least {min_rows} are needed"
        elif len(labels) < 2:
            problem = f"the target {shown(self.target)} is the same in all rows"
        elif self.task == "classification" and counts.min() < min_class_rows:
            rarest = shown(labels[np.argmin(counts)])
            problem = (
                f"the class {rarest} has {counts.min()} rows; {min_class_rows} are needed. Leave "
                "such rows out, or join it with another class"
            )
        if problem:
            raise TableError(f"{self.source}: {problem}")


def read(args: argparse.Namespace) -> DataFrame:
    """Read the file that a command is about; cells that --missing names are empty."""
    table = read_csv(
        args.data, SEPARATORS.get(args.separator, args.separator), args.encoding
    )
    if not args.missing:
        return table
    import pandas

    gaps = table.isin(args.missing)
    values = numbers(pandas.Series(args.missing, dtype=object)).dropna()
    for name in table.columns if len(values) else ():
        gaps[name] |= numbers(table[name]).isin(values)
    return table.mask(gaps, "")


def read_problem(args: argparse.Namespace) -> Problem:
    """Read inputs and target of a table as the options say; errors name line and column."""
    table, target = read(args), args.target
    source = table.attrs["source"]
    for name in (
        target,
        *(args.inputs or []),
        *args.leave_out,
        *args.categories,
        *args.dates,
    ):
        pick(table, name)
    names = args.inputs or [name for name in table.columns if name != target]
    left_out = set(args.leave_out)
    names = [name for name in dict.fromkeys(names) if name not in left_out]
    if target in names:
        raise TableError(f"the target {target!r} cannot be one of the inputs")
    if not names:
        raise TableError(f"{source} leaves no input beside the target {target!r}")
    table = complete(table, [*names, target], args)
    _notice(table, names, args)

    def of_target() -> tuple[str, str, Array]:
        task, why = _task(table, args)
        return task, why, _target(table, args, task)

    def of_input(name: str) -> tuple[Column, Series]:
        column = _column(table, name, args)
        alone = with_numbers(table[[name]], [column], args)
        [column] = filled([column], alone) if args.fill else [column]
        column.encode(alone)
        return column, alone[name]

    (task, why, y), *inputs = together(
        [of_target, *(partial(of_input, name) for name in names)]
    )
    columns, cells = zip(*inputs, strict=True)
    table = table.assign(**dict(zip(names, cells, strict=True)))
    return Problem(source, target, task, why, columns, table, y)


def _notice(table: DataFrame, names: Sequence[str], args: argparse.Namespace) -> None:
    """Print which inputs look like the number of a row, and which hold the same as another."""
    seen: dict[Any, str] = {}
    for name in names:
        cells = pick(table, name)
        same = seen.setdefault(tuple(cells), name)
        if same != name and cells.nunique() > 1:
            said = f"columns {shown(same)} and {shown(name)} hold the same"
        elif name not in args.categories and _counts_rows(cells):
            said = f"column {shown(name)} counts the rows, as an identifier does"
        else:
            continue
        source = table.attrs["source"]
        print(
            f"{source}: {said}; without it: --leave-out {quote(name)}", file=sys.stderr
        )


def _counts_rows(cells: Series) -> bool:
    """Whether cells are whole numbers, each one more than that of the row before."""
    if len(cells) < COUNTED or not all(
        re.fullmatch("[0-9]{1,15}", cell) for cell in cells
    ):
        return False
    return bool((np.diff(cells.astype(np.int64)) == 1).all())


def complete(
    table: DataFrame, names: Sequence[str], args: argparse.Namespace
) -> DataFrame:
    """Return the rows in which no value of the named columns is missing, with --drop-missing."""
    if not args.drop_missing:
        return table
    gaps = np.any([missing(pick(table, name)) for name in names], axis=0)
    if gaps.all():
        raise TableError(f"{table.attrs['source']}: a value is missing in every row")
    if gaps.any():
        said = f"{gaps.sum()} of {len(table)} rows are left out: a value is missing"
        print(said, file=sys.stderr)
    return table[~gaps]


def filled(columns: Sequence[Column], table: DataFrame) -> tuple[Column, ...]:
    """Return columns whose missing values become the median, of text the most frequent one."""

    def usual(column: Column) -> Any:
        cells = column.read(table).dropna()
        if not len(cells):
            raise TableError(
                f"column {shown(column.name)} has no value to fill it with"
            )
        return str(cells.mode()[0]) if column.categories else float(cells.median())

    return tuple(replace(column, fill=usual(column)) for column in columns)


def with_numbers(
    table: DataFrame, columns: Sequence[Column], args: argparse.Namespace
) -> DataFrame:
    """Return a table whose columns of numbers are so, read as --decimal and --thousands say."""
    names = [one.name for one in columns if not (one.categories or one.date)]
    found = together(partial(_numbers, table, name, args) for name in names)
    return table.assign(**dict(zip(names, found, strict=True)))


def _numbers(
    table: DataFrame,
    name: str,
    args: argparse.Namespace,
    advice: str = "; mend the cell",
) -> Series:
    """Return the numbers of a column, NaN where a value is missing."""
    cells = pick(table, name)
    found = numbers(cells, args.decimal, args.thousands)
    wrong = ~np.isfinite(found) & ~missing(cells)
    if wrong.any():
        cell = cells[wrong].iloc[0]
        sign = (
            "=" if cell.startswith("-") else " "
        )  # else it may be taken for an option
        hint = f", or --missing{sign}{quote(cell)} if it stands for a missing value"
        if NUMERIC.fullmatch(cell):
            hint = "; see --decimal and --thousands"
        raise TableError(
            f"{place(table, name, wrong)}: {shown(cell)} is no number{advice}{hint}"
        )
    return found


def _is_text(table: DataFrame, name: str, args: argparse.Namespace) -> bool:
    """Whether a column holds labels rather than numbers, of which a few cells may be spoilt."""
    cells = pick(table, name)
    gaps = missing(cells)
    given = cells[~gaps]
    if 2 * numbers(given, args.decimal, args.thousands).notna().sum() >= len(given):
        return False
    first, distinct = (
        f"{place(table, name, ~gaps)}: {shown(given.iloc[0])}",
        given.unique(),
    )
    if all(map(TIME.fullmatch, distinct)):
        raise TableError(
            f"{first}, as all of the column, is a time of the day; write it as a number of hours, "
            f"or leave the column out with --leave-out {quote(name)}"
        )
    if all(map(DATE.fullmatch, distinct)):
        raise TableError(
            f"{first}, as all of the column, is a date or a time; --dates {quote(name)} makes days "
            f"of dates, --leave-out {quote(name)} leaves the column out"
        )
    if 2 * sum(
        bool(NUMERIC.fullmatch(one.translate(SPACES))) for one in distinct
    ) > len(distinct):
        raise TableError(
            f"{first} looks like a number but is none; say how numbers are written with --decimal "
            "and --thousands, take units and signs of currency off, or take the column as labels "
            f"with --categories {quote(name)}"
        )
    return True


def _column(table: DataFrame, name: str, args: argparse.Namespace) -> Column:
    """Return what a column is: dates as named; text, and what --categories names, is one-hot."""
    if name in args.dates:
        cells = pick(table, name)
        given = cells[~missing(cells)]
        order = date_order(given)
        if order and args.date_order:
            order = args.date_order
        if order == "?":
            first = place(table, name, ~missing(cells))
            raise TableError(
                f"{first}: whether the month or the day comes first in {shown(given.iloc[0])} "
                "cannot be told from the column; say --date-order mdy, or dmy"
            )
        return Column(name, date=True, order=order)
    if name in args.categories or _is_text(table, name, args):
        return Column(name, _categories(table, name))
    return Column(name)


def _categories(table: DataFrame, name: str) -> tuple[str, ...]:
    """Return the different texts of a column, sorted."""
    cells = pick(table, name)
    found = sorted(cells[~missing(cells)].unique())
    if not 1 <= len(found) <= MOST_CATEGORIES:
        raise TableError(
            f"{table.attrs['source']}: column {shown(name)} holds {len(found)} different texts; "
            f"accepted are 1 to {MOST_CATEGORIES} categories. Group its texts, or leave it out "
            "with --leave-out"
        )
    return tuple(found)


def _task(table: DataFrame, args: argparse.Namespace) -> tuple[str, str]:
    """Return the task and how it was chosen: text is classes, numbers are numbers."""
    if args.task is not None:
        return args.task, ""
    for task in ("classification", "counts"):
        if args.likelihood in LIKELIHOODS_OF[task]:
            return task, f" (the likelihood is {args.likelihood})"
    if args.target in args.categories or _is_text(table, args.target, args):
        return "classification", " (the target is text)"
    cells = pick(table, args.target).unique()
    few = len(cells) <= 10 and all(map(str.isdigit, cells))
    hint = "; are these classes? --task classification" if few else ""
    return "regression", f" (the target is a number{hint})"


def _target(table: DataFrame, args: argparse.Namespace, task: str) -> Array:
    """Return numbers or classes: whole numbers if all are, text otherwise."""
    name, cells = args.target, pick(table, args.target)
    gaps = missing(cells)
    if gaps.any():
        raise TableError(
            f"{place(table, name, gaps)}: a value of the target is missing; leave such rows out "
            "with --drop-missing"
        )
    if task == "classification":
        labels = cells.to_numpy(str)
        whole = all(
            re.fullmatch("-?[0-9]{1,15}", cell) for cell in _categories(table, name)
        )
        return labels.astype(int) if whole else labels
    advice = f", as the target of {task} must be; for classes: --task classification"
    found = _numbers(table, name, args, advice)
    wrong = (found < 0) | (found != np.floor(found))
    if task == "counts" and wrong.any():
        raise TableError(
            f"{place(table, name, wrong)}: {shown(cells[wrong].iloc[0])} is no count; counts are "
            "whole numbers >= 0"
        )
    y: Array = found.to_numpy()
    return y


@contextmanager
def places_of(frame: DataFrame, target: str = "") -> Iterator[None]:
    """Have errors name a row of inputs by its line in the file, and columns by their names."""
    try:
        yield
    except ValueError as error:
        said = str(error)

        def column(match: re.Match[str]) -> str:
            name = target if said.startswith("y ") else frame.columns[int(match[1])]
            return f"column {shown(name)}"

        said = re.sub(r"\bcolumn (\d+)", column, said)
        said = re.sub(
            r"\brow (\d+)", lambda match: f"line {frame.index[int(match[1])]}", said
        )
        if said == str(error):
            raise
        raise ValueError(said) from None


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a file is written."""
    group = parser.add_argument_group("how the file is written")
    text = (
        f"of columns: {', '.join(SEPARATORS)}, or the sign itself (found from the file)"
    )
    signs = [*SEPARATORS, *SEPARATORS.values()]
    group.add_argument("--separator", choices=signs, metavar="SIGN", help=text)
    text = "decimal sign, . or , (.)"
    group.add_argument("--decimal", choices=tuple(".,"), metavar="SIGN", help=text)
    text = "between groups of three digits: , . ' or a space (nothing)"
    group.add_argument("--thousands", choices=tuple(",.' "), metavar="SIGN", help=text)
    text = "cells that stand for a missing value, such as -999, besides empty ones, NA, ?, ..."
    group.add_argument("--missing", nargs="+", default=[], metavar="CELL", help=text)
    group.add_argument("--encoding", help="where there is no byte order mark (utf-8)")


def add_data_options(
    parser: argparse.ArgumentParser, tasks: Sequence[str] = tuple(LIKELIHOODS_OF)
) -> None:
    """Add the file, its target and inputs, and how it is written."""
    parser.add_argument(
        "data", help="table with a header line, CSV or alike; - for standard input"
    )
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument(
        "--inputs", nargs="+", help="names of the input columns (all others)"
    )
    for name, what in (
        ("leave-out", "columns that are no inputs"),
        ("categories", "columns of numbers that are labels; those of text are anyway"),
        (
            "dates",
            "input columns of dates, such as 2024-12-31, which become days since 1970",
        ),
    ):
        parser.add_argument(
            f"--{name}", nargs="+", default=[], metavar="NAME", help=what
        )
    text = "of dates such as 12/31/2024, where the column does not tell: month or day first"
    parser.add_argument("--date-order", choices=["mdy", "dmy"], help=text)
    usual = "(a target of text is classification, else regression)"
    parser.add_argument("--task", choices=tasks, help=usual)
    gaps = parser.add_mutually_exclusive_group()
    leave = "leave rows out in which a value is missing; without, they are refused"
    gaps.add_argument("--drop-missing", action="store_true", help=leave)
    usual = (
        "missing inputs: by the median of the column, of text by the most frequent one"
    )
    gaps.add_argument("--fill", choices=["median"], help=usual)
    add_reading_options(parser)

"""Options and functions that find the inputs, the target and the task in a table."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import (
    MAX_CATEGORIES,
    NUMERIC,
    Column,
    call_all,
    check_categories,
    detect_date_order,
    encode_columns,
    get_column,
    holds_text,
    is_missing,
    list_names,
    locate_cell,
    quote_cell,
    set_fill_values,
)
from ..registry import LIKELIHOODS
from .options import Options, add_options
from .tables import (
    MAX_NAMES_LISTED,
    SEPARATORS,
    TableError,
    parse_numbers,
    read_csv,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["LIKELIHOODS_OF", "Problem", "add_data_options", "add_reading_options",
           "drop_incomplete_rows", "exposure_values", "lines_in_errors",
           "parse_number_columns", "read_problem", "read_table"]  # fmt: skip

Array = NDArray[Any]
TASKS = {"regression": "real", "classification": "class", "counts": "count"}
LIKELIHOODS_OF = {
    task: [
        name
        for name, likelihood in LIKELIHOODS.items()
        if likelihood.target_kind == target_kind
    ]
    for task, target_kind in TASKS.items()
}
# Matches the beginning of what may be meant as a number, a date or a time
MAYBE_NUMBER = re.compile(r"\W*\d+([-/.:,' ]\d|\W*$)|[^\w\s]\s?\d")
# Matches what stands before or after the digits of a number
UNIT = re.compile(r"^[^\d.,'+-]+|[^\d\s.,'+-].*$")
# smallest number of rows for which whole numbers that increase by 1 are taken for row numbers
MIN_NUMBERED_ROWS = 10
# largest number of distinct whole numbers in a target for which a notice suggests classes
MAX_CLASS_NUMBERS = 10


class Problem(NamedTuple):
    """Learning problem of a table: input columns, target and task."""

    source: str  # name of the file
    target: str  # name of the column to predict
    task: str  # 'regression', 'classification' or 'counts'
    reason: str  # reason for the task, in brackets; '' if the user chose it
    columns: tuple[Column, ...]  # input columns
    table: DataFrame  # all rows; columns of numbers hold numbers, the others text
    y: Array  # (N,) numbers, or labels, which are text or whole numbers
    exposure: Any = None  # (N,) exposures of counts; None without --exposure
    left_out: tuple[str, ...] = ()  # columns that say nothing, each with the reason

    def fit_arguments(self, rows: Any = slice(None)) -> dict[str, Array]:
        """Return the exposures of `rows` as an argument of a learner by name, if there are any."""
        if self.exposure is None:
            return {}
        return {"exposure": self.exposure[rows]}

    @property
    def inputs(self) -> DataFrame:
        """Features (N, d_in) that encode the input columns."""
        return encode_columns(self.table, self.columns)

    def summary(self) -> str:
        """Return lines that say how rows, target and each column of the table are understood."""
        kinds: dict[str, list[str]] = {"numbers": [], "categories": [], "dates": []}
        for column in self.columns:
            kind = "dates" if column.date else "numbers"
            name = column.name
            if column.categories:
                kind = "categories"
                name = f"{name} ({len(column.categories)})"
            kinds[kind].append(name)
        n_inputs = f"{len(self.columns)} input{'s' * (len(self.columns) != 1)}"
        n_features = sum(len(column.features) for column in self.columns)
        if n_features > len(self.columns):
            n_inputs += f" as {n_features} features"
        lines = [
            f"{self.source}: {len(self.y):,} rows, {n_inputs}, target {self.target}: "
            f"{self.task}{self.reason}"
        ]
        for kind, names in kinds.items():
            listed = ", ".join(names[:MAX_NAMES_LISTED])
            if len(names) > MAX_NAMES_LISTED:
                listed += f" and {len(names) - MAX_NAMES_LISTED} more"
            if names:
                lines.append(f"  {kind:<16} {listed}")
        lines += [f"  left out         {text}" for text in self.left_out]
        return "\n".join(lines)

    def check_counts(self, min_rows: int, min_class_rows: int) -> None:
        """Check that the rows can be split into training and test rows.

        Parameters
        ----------
        min_rows : int
            Smallest number of rows.
        min_class_rows : int
            Smallest number of rows of each class; not used if the target is a number.

        Raises
        ------
        TableError
            If there are fewer rows, in total or of a class, or if all targets are the same.
        """
        labels, counts = np.unique(self.y, return_counts=True)
        complaint = ""
        if len(self.y) < min_rows:
            complaint = (
                f"{len(self.y)} rows are too few; at least {min_rows} are needed"
            )
        elif len(labels) < 2:
            complaint = f"the target {quote_cell(self.target)} is the same in all rows"
        elif self.task == "classification" and counts.min() < min_class_rows:
            rarest = quote_cell(labels[np.argmin(counts)])
            complaint = (
                f"the class {rarest} has {counts.min()} rows; {min_class_rows} are needed. Leave "
                "such rows out, or join it with another class"
            )
        if complaint:
            raise TableError(f"{self.source}: {complaint}")


def read_table(args: argparse.Namespace, text_columns: Collection[str]) -> DataFrame:
    """Return the table of the data file; cells with a value named by --missing become empty.

    Parameters
    ----------
    args : argparse.Namespace
        The options of `add_reading_options`.
    text_columns : collection of str
        Names of the columns whose cells must stay text as it is written.
    """
    separator = SEPARATORS.get(args.separator, args.separator)
    texts = None if args.thousands else text_columns
    table = read_csv(args.data, separator, args.encoding, texts, args.decimal)
    if not args.missing:
        return table
    import pandas

    # --missing -999 also matches cells such as -999.0: numbers are compared as numbers
    values = parse_numbers(pandas.Series(args.missing, dtype=object)).dropna()
    for name, cells in table.items():
        gaps = cells.isin(args.missing) | parse_numbers(cells).isin(values)
        table[name] = cells.mask(gaps, "" if cells.dtype == object else np.nan)
    return table


def read_problem(args: argparse.Namespace) -> Problem:
    """Return the learning problem of a table, read by the options of `add_data_options`.

    Raises
    ------
    TableError
        If the table does not agree with the options. The message names line and column.
    """
    target = args.target
    table = read_table(args, {target, *args.categories, *args.dates})
    source = table.attrs["source"]
    if target is None:
        raise TableError(
            f"name the column to predict with --target; {source} has "
            f"{list_names(list(table.columns), MAX_NAMES_LISTED)}"
        )
    inputs = args.inputs or []
    exposure = [args.exposure] if args.exposure else []
    named = (target, *inputs, *args.leave_out, *args.categories, *args.dates, *exposure)
    for name in named:
        get_column(table, name)  # raises if there is no such column
    names = inputs or [
        name for name in table.columns if name not in (target, *exposure)
    ]
    left_out = set(args.leave_out)
    names = [name for name in dict.fromkeys(names) if name not in left_out]
    dropped = {}
    if not inputs:
        described = {*args.categories, *args.dates}
        for name in names:
            reason = _useless_reason(table[name], is_described=name in described)
            if reason:
                dropped[name] = f"{name}: {reason}"
        if len(dropped) < len(names):  # else the first of them is refused, and says why
            names = [name for name in names if name not in dropped]
        else:
            dropped = {}
    if target in names:
        raise TableError(
            f"the target {target!r} cannot be one of the inputs; leave it out of --inputs"
        )
    if not names:
        raise TableError(
            f"{source} leaves no input beside the target {target!r}; name inputs with --inputs, "
            "leave fewer columns out, or say what separates columns with --separator"
        )
    table = drop_incomplete_rows(table, [*names, target, *exposure], args)
    _print_notices(table, names, args)

    def read_target() -> tuple[str, str, Array]:
        """Return the task, the reason for it, and the target (N,)."""
        task, reason = _choose_task(table, args)
        return task, reason, _target_values(table, args, task)

    def read_input(name: str) -> tuple[Column, Series]:
        """Return an input column and its cells; raise TableError if it cannot be encoded."""
        column = _column(table, name, args)
        cells = parse_number_columns(table[[name]], [column], args)
        if args.fill:
            [column] = set_fill_values([column], cells)
        column.encode(cells)  # raises if a cell is missing or not a date
        return column, cells[name]

    (task, reason, y), *parsed = call_all(
        [read_target, *(partial(read_input, name) for name in names)]
    )
    columns, cells = zip(*parsed, strict=True)
    table = table.assign(**dict(zip(names, cells, strict=True)))
    problem = Problem(
        source, target, task, reason, columns, table, y, left_out=(*dropped.values(),)
    )
    if not exposure:
        return problem
    if task != "counts":
        raise TableError(
            f"--exposure is for counts, not for {task}; add --task counts, or leave it out"
        )
    return problem._replace(exposure=exposure_values(table, args))


def _useless_reason(cells: Series, *, is_described: bool) -> str:
    """Return why an input says nothing about the target, or "" if it may.

    An input that the options describe may hold a text of its own in every row.
    """
    gaps = is_missing(cells)
    if gaps.all():
        return "no cell has a value"
    if not gaps.any() and (cells == cells.iloc[0]).all():
        return f"{quote_cell(cells.iloc[0])} in every row"
    if is_described or cells.dtype != object or cells.nunique() < len(cells):
        return ""
    is_identifier = (
        len(cells) > MAX_CATEGORIES and not cells.map(MAYBE_NUMBER.match).any()
    )
    return "a text of its own in every row, as an identifier" if is_identifier else ""


def _print_notices(
    table: DataFrame, names: Sequence[str], args: argparse.Namespace
) -> None:
    """Print a notice for each input that looks like row numbers or repeats another input."""
    from pandas.util import hash_pandas_object

    first_names: dict[bytes, str] = {}
    for name in names:
        cells = get_column(table, name)
        key = hash_pandas_object(cells, index=False).to_numpy().tobytes()
        first = first_names.setdefault(key, name)
        if first != name and cells.nunique() > 1:
            notice = f"columns {quote_cell(first)} and {quote_cell(name)} are equal"
        elif name not in args.categories and _are_row_numbers(cells):
            notice = f"column {quote_cell(name)} counts the rows, as an identifier does"
        else:
            continue
        remedy = f"to leave it out: --leave-out {quote(name)}"
        print(f"{table.attrs['source']}: {notice}; {remedy}", file=sys.stderr)


def _are_row_numbers(cells: Series) -> bool:
    """Return whether 10 or more cells are whole numbers, each 1 more than in the row before."""
    if len(cells) < MIN_NUMBERED_ROWS:
        return False
    if cells.dtype == object:
        if not all(re.fullmatch("[0-9]{1,15}", cell) for cell in cells):
            return False
        cells = cells.astype(np.int64)
    return bool(cells.iloc[0] >= 0 and (np.diff(cells) == 1).all())


def drop_incomplete_rows(
    table: DataFrame, names: Sequence[str], args: argparse.Namespace
) -> DataFrame:
    """Return the table without rows that have missing values, if --drop-missing is set.

    Parameters
    ----------
    table : DataFrame
        Cells of text.
    names : sequence of str
        Columns in which values must not be missing.
    args : argparse.Namespace
        The options; without ``drop_missing`` all rows are returned.

    Raises
    ------
    TableError
        If no row is left.
    """
    if not args.drop_missing:
        return table
    gaps = np.any([is_missing(get_column(table, name)) for name in names], axis=0)
    if gaps.all():
        raise TableError(
            f"{table.attrs['source']}: a value is missing in every row; fit without "
            "columns that have few values (--leave-out), or with --fill median"
        )
    if gaps.any():
        count = f"{gaps.sum()} of {len(table)}"
        print(f"{count} rows are left out: a value is missing", file=sys.stderr)
    return table[~gaps]


def parse_number_columns(
    table: DataFrame, columns: Sequence[Column], args: argparse.Namespace
) -> DataFrame:
    """Return a table in which columns of numbers hold numbers instead of text.

    Parameters
    ----------
    table : DataFrame
        Cells of text.
    columns : sequence of Column
        Input columns; those of categories and dates stay text.
    args : argparse.Namespace
        The options; ``decimal`` and ``thousands`` are the signs in numbers.

    Raises
    ------
    TableError
        If a cell is not a number. The message names its line.
    """
    names = [
        column.name for column in columns if not (column.categories or column.date)
    ]
    numbers = call_all(partial(_number_cells, table, name, args) for name in names)
    return table.assign(**dict(zip(names, numbers, strict=True)))


def _number_cells(
    table: DataFrame,
    name: str,
    args: argparse.Namespace,
    advice: str = "; correct the cell",
) -> Series:
    """Return the numbers of the column `name`, NaN where a value is missing.

    `args` holds the options --decimal and --thousands. Raise TableError for a cell that is not a
    number; `advice` follows this in the message.
    """
    cells = get_column(table, name)
    numbers = parse_numbers(cells, args.decimal, args.thousands, args.strip)
    invalid = ~np.isfinite(numbers) & ~is_missing(cells)
    if invalid.any():
        cell = cells[invalid].iloc[0]
        # "=" before a cell such as "-1", because argparse would take "--missing -1" for two options
        sign = "=" if cell.startswith("-") else " "
        hint = (
            f", or --missing{sign}{quote(cell)} if it stands for a missing value, with --fill "
            "median or --drop-missing"
        )
        if NUMERIC.fullmatch(cell):
            hint = "; see --decimal, --thousands and --strip"
        raise TableError(
            f"{locate_cell(table, name, invalid)}: {quote_cell(cell)} is not a number{advice}"
            f"{hint}"
        )
    return numbers


def exposure_values(table: DataFrame, args: argparse.Namespace) -> Array:
    """Return the exposures (N,) in the column that --exposure names.

    Raises
    ------
    TableError
        If one is missing or not > 0. The message names its line.
    """
    name = args.exposure
    numbers = _number_cells(table, name, args)
    invalid = ~(numbers > 0)
    if invalid.any():
        cell = quote_cell(get_column(table, name)[invalid].iloc[0])
        raise TableError(
            f"{locate_cell(table, name, invalid)}: {cell} is no exposure, which must be > 0"
        )
    exposure: Array = numbers.to_numpy()
    return exposure


def _is_text(table: DataFrame, name: str, args: argparse.Namespace) -> bool:
    """Return whether a column holds text: less than half of its cells are numbers.

    Raise ValueError if all cells are dates or times, or most look like numbers in another format.
    """
    cells = get_column(table, name)
    if cells.dtype != object:  # numbers, by `read_csv`
        return False
    values = cells[~is_missing(cells)]
    numbers = parse_numbers(values, args.decimal, args.thousands, args.strip)
    beside = ""
    unit = UNIT.search("".join(values[:1]))
    if unit:
        beside = f", or what stands beside them with --strip {quote(unit[0].strip())}"
    leave_out = f"--leave-out {quote(name)}"
    remedies = {
        "time": f"leave the column out with {leave_out}",
        "date": f"--dates {quote(name)} converts dates to days, {leave_out} leaves the column out",
        "number": f"say how numbers are written with --decimal and --thousands{beside}, or read "
        f"the column as labels with --categories {quote(name)}",
    }
    return holds_text(table, name, values, numbers, remedies)


def _column(table: DataFrame, name: str, args: argparse.Namespace) -> Column:
    """Return an input column: dates or categories if declared, categories if text, else numbers."""
    if name in args.dates:
        cells = get_column(table, name)
        gaps = is_missing(cells)
        dates = cells[~gaps]
        order = detect_date_order(dates)
        if order and args.date_order:
            order = args.date_order
        if order == "?":
            raise TableError(
                f"{locate_cell(table, name, ~gaps)}: the column does not show whether the month or "
                f"the day comes first in {quote_cell(dates.iloc[0])}; say --date-order mdy, or dmy"
            )
        return Column(name, date=True, order=order)
    if name in args.categories or _is_text(table, name, args):
        cells = get_column(table, name)
        return Column(name, check_categories(table, name, cells))
    return Column(name)


def _choose_task(table: DataFrame, args: argparse.Namespace) -> tuple[str, str]:
    """Return the task, and in brackets the reason for it, which is "" if --task is set.

    Without --task the likelihood decides if it is one for classes or counts. Otherwise the target
    does: text is classification, numbers are regression.
    """
    if args.task is not None:
        return args.task, ""
    if args.exposure and args.likelihood is None:
        return "counts", " (there is an exposure)"
    for task in ("classification", "counts"):
        if args.likelihood in LIKELIHOODS_OF[task]:
            return task, f" (the likelihood is {args.likelihood})"
    if args.target in args.categories or _is_text(table, args.target, args):
        return "classification", " (the target is text)"
    cells = get_column(table, args.target).unique()
    hint = ""
    if len(cells) <= MAX_CLASS_NUMBERS and all(map(str.isdigit, cells)):
        hint = "; are these classes? --task classification"
    elif "0" in cells and all(map(str.isdigit, cells)):
        hint = "; are these counts? --task counts"
    return "regression", f" (the target is a number{hint})"


def _target_values(table: DataFrame, args: argparse.Namespace, task: str) -> Array:
    """Return the target (N,): numbers, or labels, which are text unless all are whole numbers."""
    name = args.target
    cells = get_column(table, name)
    gaps = is_missing(cells)
    if gaps.any():
        raise TableError(
            f"{locate_cell(table, name, gaps)}: a value of the target is missing; leave such rows "
            "out with --drop-missing"
        )
    if task == "classification":
        texts = check_categories(table, name, cells)
        labels = cells.to_numpy(str)
        if all(re.fullmatch("-?[0-9]{1,15}", text) for text in texts):
            return labels.astype(int)
        return labels
    advice = f", as the target of {task} must be; for classes: --task classification"
    numbers = _number_cells(table, name, args, advice)
    invalid = (numbers < 0) | (numbers != np.floor(numbers))
    if task == "counts" and invalid.any():
        raise TableError(
            f"{locate_cell(table, name, invalid)}: {quote_cell(cells[invalid].iloc[0])} is not a "
            "count; counts must be whole numbers >= 0"
        )
    y: Array = numbers.to_numpy()
    return y


@contextmanager
def lines_in_errors(frame: DataFrame, target: str = "") -> Iterator[None]:
    """Replace row and column numbers in a learner's ValueErrors by lines and column names.

    Parameters
    ----------
    frame : DataFrame
        Features that the learner is given; its index holds the lines of the file.
    target : str
        Name of the target column.
    """
    try:
        yield
    except ValueError as error:
        original = str(error)

        def position(match: re.Match[str]) -> str:
            """Return the line or the column name for a matched row or column number."""
            index = int(match[2])
            if match[1] == "row":
                return f"line {frame.index[index]}"
            name = target if original.startswith("y ") else frame.columns[index]
            return f"column {quote_cell(name)}"

        message = re.sub(r"\b(row|column) (\d+)", position, original)
        if message == original:
            raise
        raise ValueError(message) from None


COLUMN_OPTIONS: Options = {
    "target": {
        "metavar": "NAME",
        "help": "Column to predict. Without it the columns of DATA are listed.",
    },
    "inputs": {
        "nargs": "+",
        "metavar": "NAME",
        "help": "Columns to predict from. By default all others.",
    },
    "leave_out": {
        "nargs": "+",
        "default": [],
        "metavar": "NAME",
        "help": "Columns that are not predicted from.",
    },
    "categories": {
        "nargs": "+",
        "default": [],
        "metavar": "NAME",
        "help": "Columns whose numbers are labels, such as postal codes. Columns of text are "
        "categories anyway.",
    },
    "dates": {
        "nargs": "+",
        "default": [],
        "metavar": "NAME",
        "help": "Input columns of dates, such as 2024-12-31, which become days since 1970.",
    },
    "exposure": {
        "metavar": "NAME",
        "help": "Column of the time, area or number of persons over which the target was counted. "
        "The model is then of rates, and no input has this column.",
    },
    "date_order": {
        "choices": ["mdy", "dmy"],
        "help": "What comes first in dates such as 1/2/2024, the month or the day. By default "
        "found from a day above 12.",
    },
}
GAP_OPTIONS: Options = {
    "drop_missing": {
        "action": "store_true",
        "help": "Leave out rows in which a value is missing. By default they are an error.",
    },
    "fill": {
        "choices": ["median"],
        "help": "Fill in missing inputs: the median of the column, of text the most frequent one. "
        "Where rows of fit have gaps, one more input tells them. Predictions do the same.",
    },
}
READING_OPTIONS: Options = {
    "separator": {
        "metavar": "SIGN",
        "choices": [*SEPARATORS, *SEPARATORS.values()],
        "help": f"What separates the columns: {', '.join(SEPARATORS)}, or the sign itself. By "
        "default it is found from the first lines.",
    },
    "decimal": {
        "metavar": "SIGN",
        "choices": (".", ","),
        "help": "Decimal sign of numbers, . or , (by default .).",
    },
    "thousands": {
        "metavar": "SIGN",
        "choices": (",", ".", "'", " "),
        "help": "Sign between groups of three digits: , . ' or a space. By default there is none.",
    },
    "strip": {
        "nargs": "+",
        "default": [],
        "metavar": "TEXT",
        "help": "Signs of currency and units that stand before or after numbers, such as $ or kg.",
    },
    "missing": {
        "nargs": "+",
        "default": [],
        "metavar": "CELL",
        "help": "Cells that stand for a missing value, such as -999, besides empty ones, NA, NaN, "
        "NULL and ?.",
    },
    "encoding": {
        "help": "Encoding of the file, such as cp1252. By default UTF-8, or what a byte order mark "
        "says.",
    },
}


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the format of a table's file."""
    add_options(parser.add_argument_group("how the file is written"), READING_OPTIONS)


def add_data_options(
    parser: argparse.ArgumentParser, tasks: Sequence[str] = tuple(LIKELIHOODS_OF)
) -> None:
    """Add the options for a table: the file, inputs and target, the task, and the file's format.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a subcommand that calls `read_problem`.
    tasks : sequence of str
        Tasks that ``--task`` accepts; by default all tasks.
    """
    group = parser.add_argument_group("the table")
    group.add_argument(
        "data",
        metavar="DATA",
        help="File with a line of column names, CSV or alike; - is standard input.",
    )
    add_options(group, COLUMN_OPTIONS)
    task = {
        "choices": tasks,
        "help": "What the target is: a number, a class or a count. By default text is "
        "classification, and numbers are regression.",
    }
    add_options(group, {"task": task})
    add_options(group.add_mutually_exclusive_group(), GAP_OPTIONS)
    add_reading_options(parser)

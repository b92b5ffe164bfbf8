"""What to learn from a table: its options on the command line, its inputs and its target."""

from __future__ import annotations

import argparse
import codecs
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import MOST_CATEGORIES, Column
from .csv_tables import SEPARATORS, Reading, Table, TableError, read_csv
from .encoding import encoded, find_columns, is_text, labels
from .modelling import LIKELIHOODS_OF
from .number_forms import DECIMALS, THOUSANDS
from .text_files import shown

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "TASKS",
    "Problem",
    "add_data_options",
    "add_reading_options",
    "read",
    "read_problem",
]

Array = NDArray[Any]
TASKS = ("regression", "classification", "counts")


class Problem(NamedTuple):
    """A table, made ready for a learner."""

    source: str
    target: str
    task: str
    why: str  # the task was chosen, for a person
    columns: tuple[Column, ...]
    inputs: DataFrame  # (N, d_in)
    y: Array  # (N,) numbers, or labels: text or whole numbers

    def said(self) -> str:
        """Return a line for a person about rows, inputs, target and task."""
        names = [column.name for column in self.columns]
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        features = self.inputs.shape[1]
        text = f"{len(self.y)} rows, {len(names)} inputs ({listed})"
        if features > len(names):
            text += f" as {features} features"
        return f"{text}, target {self.target}: {self.task}{self.why}"


def read(args: argparse.Namespace) -> Table:
    """Read the file that a command is about, and say how, where that is not plain."""
    separator = SEPARATORS.get(args.separator or "", args.separator)
    table = read_csv(args.data, Reading(separator, args.decimal, args.thousands, args.encoding))
    if table.how_read:
        print(f"{table.source} is read with {table.how_read}", file=sys.stderr)
    return table


def read_problem(args: argparse.Namespace) -> Problem:
    """Read inputs and target of a table as the options say.

    Raises
    ------
    TableError
        Naming the line and column that cannot be used.
    """
    table = read(args)
    table.column(args.target)
    given = [*(args.inputs or []), *args.leave_out, *args.categories]
    for name in given:
        table.column(name)
    names = args.inputs or [name for name in table.columns if name != args.target]
    if args.target in names:
        raise TableError(f"the target {args.target!r} cannot be one of the inputs")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"--inputs names {', '.join(twice)} more than once; name each column once")
    names = [name for name in names if name not in args.leave_out]
    if not names:
        raise TableError(f"{table.source} leaves no input beside the target {args.target!r}")
    if args.drop_missing:
        rows = table.complete([*names, args.target])
        if not rows:
            raise TableError(f"{table.source}: a value is missing in every row")
        if len(rows) < len(table):
            print(
                f"{len(table) - len(rows)} of {len(table)} rows are left out: a value is missing",
                file=sys.stderr,
            )
            table = table.rows(rows)
    task, why = _task(table, args)
    y = _labels(table, args.target) if task == "classification" else _numbers(table, args, task)
    try:
        columns = find_columns(table, names, args.categories)
        inputs = encoded(table, columns)
    except TableError as error:
        raise TableError(f"{error}; or leave the column out with --leave-out NAME") from None
    return Problem(table.source, args.target, task, why, columns, inputs, y)


def _task(table: Table, args: argparse.Namespace) -> tuple[str, str]:
    """Return the task and how it was chosen: text is classes, numbers are numbers."""
    if args.task is not None:
        return args.task, ""
    for task in ("classification", "counts"):
        if args.likelihood in LIKELIHOODS_OF[task]:
            return task, f" (the likelihood is {args.likelihood})"
    if is_text(table, args.target):
        return "classification", " (the target is text)"
    cells = set(table.column(args.target))
    few = len(cells) <= 10 and all(cell.strip().isdigit() for cell in cells)
    hint = "; are these classes? --task classification" if few else ""
    return "regression", f" (the target is a number{hint})"


def _labels(table: Table, target: str) -> Array:
    """Return the classes of the target: whole numbers if all are, text otherwise."""
    found = labels(table, target)
    if len(found) < 2:
        raise TableError(
            f"{table.source}: column {shown(target)} has only one class, {shown(found[0])}; "
            "there is nothing to learn"
        )
    cells = [cell.strip() for cell in table.column(target)]
    if all(cell.removeprefix("-").isdecimal() and cell.isascii() for cell in found):
        whole = [int(cell) for cell in cells]
        if max(map(abs, whole)) < 2**53:
            return np.array(whole)
    return np.array(cells)


def _numbers(table: Table, args: argparse.Namespace, task: str) -> Array:
    if is_text(table, args.target):
        cells = table.column(args.target)
        row = next(row for row, cell in enumerate(cells) if table.form.read(cell) is None)
        few = len({*cells}) <= MOST_CATEGORIES
        classes = f"; for classes: {args.for_classes}" if few else ""
        raise TableError(
            f"{table.place(args.target, row)}: {shown(cells[row])} is no number, as the target of "
            f"{task} must be{classes}"
        )
    y: Array = table.numbers([args.target]).to_numpy()[:, 0]
    wrong = (y < 0) | (y != np.floor(y))
    if task == "counts" and wrong.any():
        row = int(np.argmax(wrong))
        cell = table.column(args.target)[row].strip()
        raise TableError(
            f"{table.place(args.target, row)}: counts must be whole numbers >= 0; got {shown(cell)}"
        )
    return y


def _separator(text: str) -> str:
    text = text.replace("\\t", "\t")
    if text not in SEPARATORS and (len(text) != 1 or text in '"\r\n' or text.isalnum()):
        raise argparse.ArgumentTypeError(
            f"must be one character, or {', '.join(SEPARATORS)}; got {text!r}"
        )
    return text


def _encoding(text: str) -> str:
    try:
        "a".encode(codecs.lookup(text).name)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"must be the name of a text encoding, such as cp1252 or utf-16-le; got {text!r}"
        ) from None
    return text


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a file is written."""
    group = parser.add_argument_group(
        "how the file is written", "found from its contents where nothing is said; gzip is unpacked"
    )
    group.add_argument(
        "--separator", type=_separator, help=f"of columns: a character, or {', '.join(SEPARATORS)}"
    )
    group.add_argument("--decimal", choices=DECIMALS, metavar="SIGN", help="decimal sign, . or ,")
    group.add_argument(
        "--thousands",
        choices=THOUSANDS,
        metavar="SIGN",
        help="between groups of three digits: , . ' or a space; '' for nothing",
    )
    group.add_argument(
        "--encoding", type=_encoding, help="where there is no byte order mark (utf-8)"
    )


def add_data_options(parser: argparse.ArgumentParser, task: bool = True) -> None:
    """Add the file, its target and inputs, and how it is written."""
    parser.add_argument("data", help="table with a header line, CSV or alike; - for standard input")
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument(
        "--inputs", nargs="+", help="names of the input columns (default: all others)"
    )
    parser.add_argument(
        "--leave-out", nargs="+", default=[], metavar="NAME", help="columns that are no inputs"
    )
    parser.add_argument(
        "--categories",
        nargs="+",
        default=[],
        metavar="NAME",
        help="input columns of numbers that are labels; those of text are anyway, one feature of 0 "
        "and 1 for each category",
    )
    parser.set_defaults(for_classes="--task classification" if task else "bbb-numpy evaluate")
    if task:
        parser.add_argument(
            "--task", choices=TASKS, help="(a target of text is classification, else regression)"
        )
    else:
        parser.set_defaults(task="regression", likelihood=None)
    parser.add_argument(
        "--drop-missing",
        action="store_true",
        help="leave rows out in which a value is missing; without, they are refused",
    )
    add_reading_options(parser)

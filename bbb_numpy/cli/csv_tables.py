"""CSV tables of numbers with named columns, for the command line."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Table", "TableError", "read_csv", "write_csv"]

Array = NDArray[Any]
MESSAGE = 1000  # characters


class TableError(ValueError):
    """A CSV file that cannot be used; the message names file, column and row."""

    def __init__(self, message: str) -> None:
        if len(message) > MESSAGE:  # a file can make names, and so messages, of megabytes
            message = f"{message[: MESSAGE // 2]} ... {message[-MESSAGE // 2 :]}"
        super().__init__(message)


@dataclass(frozen=True)
class Table:
    """Named columns of text cells, converted to numbers only when they are asked for.

    Parameters
    ----------
    source : str
        Name of the file, for messages.
    columns : tuple of str
    rows : list of list of str
    """

    source: str
    columns: tuple[str, ...]
    rows: list[list[str]]

    def numbers(self, names: Sequence[str]) -> DataFrame:
        """Return the named columns as float64 (N, len(names)).

        Raises
        ------
        TableError
            If a column is missing, or a cell is empty, text, nan or infinite.
        """
        from pandas import DataFrame

        missing = [name for name in names if name not in self.columns]
        if missing:
            raise TableError(
                f"{self.source} has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(map(repr, self.columns))}"
            )
        values = np.empty((len(self.rows), len(names)))
        for j, name in enumerate(names):
            at = self.columns.index(name)
            for i, row in enumerate(self.rows):
                values[i, j] = self._number(row[at], name, i)
        return DataFrame(values, columns=list(names))

    def _number(self, cell: str, name: str, row: int) -> float:
        try:
            value = float(cell)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            what = "is empty" if not cell.strip() else f"is {cell.strip()!r}"
            raise TableError(
                f"{self.source}: column {name!r} {what} in data row {row + 1}, where a finite "
                "number is needed; leave the column out with --inputs, or mend the row"
            )
        return value


def read_csv(path: str) -> Table:
    """Read a comma-separated file whose first line names the columns; ``-`` is standard input.

    Raises
    ------
    TableError
        If the file cannot be read as text, is empty, repeats or lacks a column name, has no
        data row, or has a row of another length.
    """
    try:
        if path == "-":
            lines = list(csv.reader(sys.stdin))
        else:
            with open(path, newline="", encoding="utf-8-sig") as file:
                lines = list(csv.reader(file))
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path} is not a CSV text file: {error}") from None
    lines = [line for line in lines if line]
    if not lines:
        raise TableError(f"{path} is empty; the first line must name the columns")
    names = tuple(cell.strip() for cell in lines[0])
    if "" in names or len(set(names)) != len(names):
        raise TableError(f"{path}: every column needs a name of its own; got {', '.join(names)}")
    if len(lines) == 1:
        raise TableError(f"{path} has column names but no data row")
    for number, line in enumerate(lines[1:], start=1):
        if len(line) != len(names):
            raise TableError(
                f"{path}: data row {number} has {len(line)} cells, the header has {len(names)}"
            )
    return Table("standard input" if path == "-" else Path(path).name, names, lines[1:])


def write_csv(path: str, columns: Mapping[str, Array]) -> None:
    """Write columns of equal length with full precision; ``-`` is standard output."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    if path == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows([list(columns), *rows])
        return
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([list(columns), *rows])

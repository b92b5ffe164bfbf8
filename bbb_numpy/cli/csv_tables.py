"""Tables of text cells with named columns, for the command line: CSV and its relatives."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.files import naming, write_text
from .number_forms import NumberForm, find_form, is_missing
from .text_files import TableError, lines_of, shown

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["SEPARATORS", "Reading", "Table", "TableError", "read_csv", "some", "write_csv"]

Array = NDArray[Any]
SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "bar": "|", "space": " "}
LOOKED_FOR = "\t;,|"
FIRST = 50  # lines that tell the separator
MOST_CELLS = 10_000_000
MOST_COLUMNS = 10_000
LONGEST_NAME = 200


class Reading(NamedTuple):
    """What a user says about a file; None: what its first lines show."""

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Table:
    """Named columns of text cells, converted to numbers only when they are asked for.

    Parameters
    ----------
    source : str
        Name of the file, for messages.
    columns : tuple of str
    cells : tuple of lists of str
        Those of each column.
    lines : list of int
        On which line of the file each row ends; the header is on line 1.
    separator : str
    form : NumberForm
        How its numbers are written.
    """

    source: str
    columns: tuple[str, ...]
    cells: tuple[list[str], ...]
    lines: list[int]
    separator: str
    form: NumberForm

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> list[str]:
        """Return the cells of a column.

        Raises
        ------
        TableError
            If there is none of this name; names one like it, and some of the others.
        """
        if name not in self.columns:
            near = get_close_matches(name, self.columns, 1, 0.6)
            hint = f"did you mean {shown(near[0])}? It has" if near else "it has"
            raise TableError(
                f"{self.source} has no column {shown(name)}; {hint} {some(self.columns)}"
            )
        return self.cells[self.columns.index(name)]

    def place(self, name: str, row: int) -> str:
        """Say where a cell is."""
        return f"{self.source}, line {self.lines[row]}, column {shown(name)}"

    def numbers(self, names: Sequence[str]) -> DataFrame:
        """Return the named columns as float64 (N, len(names)).

        Raises
        ------
        TableError
            If a column is missing, or a cell is empty, text, nan, infinite, or a whole number
            that float64 would round.
        """
        from pandas import DataFrame

        values = np.empty((len(self), len(names)))
        for j, name in enumerate(names):
            cells = self.column(name)
            found = {cell: self.form.read(cell) for cell in dict.fromkeys(cells)}
            wrong = {
                cell
                for cell, value in found.items()
                if value is None or not np.isfinite(value) or self.form.rounds(cell)
            }
            if wrong:
                row = next(row for row, cell in enumerate(cells) if cell in wrong)
                raise TableError(f"{self.place(name, row)}: {self.fault(cells[row])}")
            values[:, j] = [found[cell] for cell in cells]
        return DataFrame(values, columns=list(names))

    def fault(self, cell: str) -> str:
        """Say why a cell gives no number."""
        cell = cell.strip()
        if is_missing(cell):
            told = f"is {shown(cell)}, a missing value" if cell else "is empty"
            return f"the cell {told}; fill it in, or leave such rows out with --drop-missing"
        value = self.form.read(cell)
        if value is None:
            return f"{shown(cell)} is no number ({self.form}); mend the cell"
        if np.isfinite(value):
            return (
                f"the whole number {shown(cell)} is beyond 2^53, where float64 rounds, so that "
                "neighbours become one number; subtract an offset"
            )
        return f"{shown(cell)} is beyond the range of float64, 1.8e308; use other units"

    def rows(self, keep: Sequence[int]) -> Table:
        """Return the table of these rows."""
        cells = tuple([column[row] for row in keep] for column in self.cells)
        return replace(self, cells=cells, lines=[self.lines[row] for row in keep])

    def complete(self, names: Iterable[str]) -> list[int]:
        """Return the rows without a missing value in the named columns."""
        gaps: set[int] = set()
        for name in names:
            cells = self.column(name)
            missing = {cell for cell in dict.fromkeys(cells) if is_missing(cell)}
            gaps |= {row for row, cell in enumerate(cells) if cell in missing} if missing else set()
        return [row for row in range(len(self)) if row not in gaps]

    @property
    def how_read(self) -> str:
        """Say how the file was read, where it was not as CSV usually is; '' otherwise."""
        usual = self.separator == "," or len(self.columns) == 1
        parts = [] if usual else [f"columns separated by {self.separator!r}"]
        parts += [] if self.form == NumberForm() else [str(self.form)]
        return ", ".join(parts)


def some(names: Sequence[str], most: int = 20) -> str:
    """List names, not too many of them."""
    listed = ", ".join(map(shown, names[:most]))
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def read_csv(path: str, reading: Reading | None = None) -> Table:
    """Read a table whose first line names the columns; ``-`` is standard input.

    Separator, decimal sign and byte order mark are found where `reading` does not say them, and
    gzip is unpacked. Blank lines are skipped.

    Raises
    ------
    ImportError
        Without pandas, which holds tables of numbers.
    TableError
        If the file cannot be read as text, is empty, repeats or lacks a column name, has no
        data row, or has a row of another length.
    """
    try:
        import pandas  # noqa: F401 (what tables of numbers are made of is missed at once)
    except ImportError:
        raise ImportError(
            "reading a table needs pandas; install it with: pip install 'bbb_numpy[learners]'"
        ) from None
    reading = Reading() if reading is None else reading
    source = "standard input" if path == "-" else Path(path).name
    with lines_of(path, reading.encoding) as lines:
        first = list(islice(lines, FIRST))
        separator = reading.separator or _separator(first)
        rows = _rows(chain(first, lines), separator, source)
        names = next(rows, (0, []))[1]
        names = [_printable(" ".join(cell.split())) for cell in names]
        _check_names(names, source)
        cells: tuple[list[str], ...] = tuple([] for _ in names)
        at: list[int] = []
        known: dict[str, str] = {}  # equal cells are one object
        for line, row in rows:
            if len(row) != len(names):
                raise TableError(_ragged(source, line, row, names, separator))
            for column, cell in zip(cells, row, strict=True):
                column.append(known.setdefault(cell, cell))
            at.append(line)
            if len(at) * len(names) > MOST_CELLS:
                raise TableError(f"{source} holds more than {MOST_CELLS} cells; use fewer")
    if not at:
        raise TableError(f"{source} has column names but no data row")
    try:
        form = find_form(cells, reading.decimal, reading.thousands, separator == ";")
    except TableError as error:
        raise TableError(f"{source} {error}") from None
    return Table(source, tuple(names), cells, at, separator, form)


def _rows(lines: Iterable[str], separator: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line of every row that is not blank, and its cells."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            told = str(error)
            if "end of data" in told:
                told = "a quote is opened and never closed"
            elif "expected after" in told:
                told = "something follows a closing quote"
            elif "field limit" in told:
                told = "a cell is longer than 131072 characters"
            raise TableError(f"{source}, line {reader.line_num}: {told}") from None
        if row is None:
            return
        if row and (len(row) > 1 or row[0].strip()):
            yield reader.line_num, row


def _separator(first: Sequence[str]) -> str:
    """Return the separator with which the first lines have as many cells as the header."""
    lines = [line for line in first if line.strip()]
    present = [sign for sign in LOOKED_FOR if lines and sign in lines[0]]
    for sign in present:
        try:  # the last line may go on
            counts = {len(row) for row in csv.reader(lines, delimiter=sign)}
        except csv.Error:
            continue
        if len(counts) == 1:
            return sign
    return present[0] if present else ","


def _printable(name: str) -> str:
    """Return a name without what would upset a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in name)


def _check_names(names: Sequence[str], source: str) -> None:
    if not names:
        raise TableError(f"{source} is empty; the first line must name the columns")
    if len(names) > MOST_COLUMNS:
        raise TableError(f"{source} has {len(names)} columns; accepted are {MOST_COLUMNS}")
    if "" in names or len(set(names)) != len(names):
        raise TableError(f"{source}: every column needs a name of its own; got {some(names)}")
    long = next((name for name in names if len(name) > LONGEST_NAME), None)
    if long is not None:
        raise TableError(
            f"{source}: the column name {shown(long)} is too long; accepted are {LONGEST_NAME}"
        )


def _ragged(
    source: str, line: int, row: Sequence[str], names: Sequence[str], separator: str
) -> str:
    def count(cells: Sequence[str]) -> str:
        return f"{len(cells)} cell{'s' * (len(cells) != 1)}"

    return (
        f"{source}, line {line} has {count(row)}, the header has {len(names)}, separated by "
        f"{separator!r}; mend the line, or give another --separator"
    )


def write_csv(path: str, table: DataFrame) -> None:
    """Write a table with full precision, replacing an older one only when all is written.

    ``-`` is standard output.
    """
    text = table.to_csv(index=False, lineterminator="\n")
    if path == "-":
        with naming(Path("standard output")):
            print(text, end="", flush=True)
    else:
        write_text(Path(path), text)

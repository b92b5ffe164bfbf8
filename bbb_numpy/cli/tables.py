"""Tables of text with named columns: CSV and its relatives, and the numbers written in them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..learners.columns import SPACES, list_names
from ..numeric.files import check_regular

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = [
    "SEPARATORS",
    "TableError",
    "csv_text",
    "parse_numbers",
    "read_csv",
]

SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "bar": "|", "space": " "}
GUESSED_SEPARATORS = "\t;,|"  # tried in this order without --separator
# Matches the first line of a file in which Excel names the separator, such as sep=;
EXCEL_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")
BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
FORMULA = re.compile(r"\s*[=+@-]|[\t\r]")
SIGNED_NUMBER = re.compile(r"[+-][0-9., '\u00a0\u202f\u2009]+([eE][+-]?[0-9]+)?%?")
MAX_NAMES_LISTED = 20  # largest number of names that a message lists


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and column."""


def read_csv(
    path: str, separator: str | None = None, encoding: str | None = None
) -> DataFrame:
    """Read a table whose first line names the columns; its cells are stripped text.

    Blank lines are skipped, and gzip is decompressed. A row that is too short is an error, whereas
    pandas would fill it up silently.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    separator : str, optional
        Character between the cells. By default it is detected from the first lines.
    encoding : str, optional
        Encoding of the text. By default UTF-8. A byte order mark overrides it.

    Returns
    -------
    DataFrame
        Its index is the line on which each row ends; the header is on line 1.

    Raises
    ------
    TableError
        If the file is not such a table. The message names the line.
    """
    try:
        from pandas import DataFrame, Index
    except ImportError:
        raise ImportError(
            "reading a table needs pandas; install it with: pip install 'bbb_numpy[learners]'"
        ) from None
    source = "standard input" if path == "-" else Path(path).name
    text = _read_text(path, source, encoding)
    excel_line = EXCEL_SEPARATOR_LINE.match(text)
    if not separator:
        separator = excel_line[1] if excel_line else _guess_separator(text)
    lines = io.StringIO(text, newline="")
    n_skipped = 0
    if excel_line:
        lines.readline()
        n_skipped = 1
    reader = csv.reader(
        lines, delimiter=separator, skipinitialspace=separator == " ", strict=True
    )
    try:
        rows = [
            (reader.line_num + n_skipped, [cell.strip() for cell in row])
            for row in reader
        ]
    except csv.Error as error:
        line = reader.line_num + n_skipped
        raise TableError(f"{source}, line {line}: {error}") from None
    rows = [(line, row) for line, row in rows if any(row) or len(row) > 1]
    header = rows.pop(0)[1] if rows else []
    if not rows:
        raise TableError(
            f"{source} has no line of column names with a data row below it"
        )
    names = [" ".join(name.split()) for name in header]
    names, rows = _drop_extra_cells(names, rows, source)
    if "" in names or len(set(names)) != len(names):
        raise TableError(
            f"{source}: every column needs a name of its own; got "
            f"{list_names(names, MAX_NAMES_LISTED)}. Write one into the first line for each"
        )
    uneven = [(line, row) for line, row in rows if len(row) != len(names)]
    if uneven:
        line, row = uneven[0]
        others = f" (and {len(uneven) - 1} more lines)" if len(uneven) > 1 else ""
        raise TableError(
            f"{source}, line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the header has "
            f"{len(names)}, separated by {separator!r}{others}; correct the line, or give another "
            "--separator"
        )
    index = Index([line for line, _ in rows], name="line")
    table = DataFrame([row for _, row in rows], index, names, dtype=object)
    table.attrs["source"] = source
    if len(names) > 1 and separator != ",":
        print(
            f"{source} is read with columns separated by {separator!r}", file=sys.stderr
        )
    return table


Rows = list[tuple[int, list[str]]]  # pairs (line number, cells of the line)


def _drop_extra_cells(
    names: list[str], rows: Rows, source: str
) -> tuple[list[str], Rows]:
    """Return names and rows without empty last cells, and without a column of row numbers.

    Lines that end with a separator have an empty last cell. pandas writes row numbers under an
    empty name, R under a header that is one name short. `source` names the file in the notice.
    """
    n_names = len(names)
    while names and not names[-1]:
        names = names[:-1]
    if any(any(row[len(names) :]) for _, row in rows) and len(names) < n_names:
        # A column with values has no name: `read_csv` raises the error for empty names
        return [*names, *[""] * (n_names - len(names))], rows
    rows = [(line, _drop_empty_cells(row, len(names))) for line, row in rows]
    is_longer = all(len(row) == len(names) + 1 for _, row in rows)
    if "" not in names and is_longer and _are_row_names([row[0] for _, row in rows]):
        names = ["", *names]
    has_row_names = names[:1] == [""] and "" not in names[1:]
    if has_row_names and all(len(row) > 1 for _, row in rows):
        print(
            f"{source}: the first column has no name and is left out, as the row numbers that "
            "pandas and R write; to use it, write a name into the first line",
            file=sys.stderr,
        )
        return names[1:], [(line, row[1:]) for line, row in rows]
    return names, rows


def _are_row_names(cells: list[str]) -> bool:
    """Return whether cells are row names of R: increasing whole numbers, or distinct texts."""
    if all(re.fullmatch("[0-9]{1,15}", cell) for cell in cells):
        numbers = [int(cell) for cell in cells]
        return all(number < following for number, following in pairwise(numbers))
    if any(re.match("[-+.]?[0-9]", cell) for cell in cells):
        return False
    return len(set(cells)) == len(cells)


def _drop_empty_cells(row: list[str], count: int) -> list[str]:
    """Return a row without empty cells at its end; at least `count` cells are kept."""
    while len(row) > count and not row[-1]:
        row = row[:-1]
    return row


def _read_text(path: str, source: str, encoding: str | None) -> str:
    """Return the text of the file `path`, or of standard input for ``-``, decompressed.

    `source` is its name in error messages. `encoding` None is UTF-8; a byte order mark at the
    beginning of the text overrides it.
    """
    try:
        if path != "-":
            check_regular(Path(path))
            data = Path(path).read_bytes()
        elif sys.stdin is None:
            raise ValueError("does not exist; name a file")
        else:
            data = sys.stdin.buffer.read()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{source} is a damaged gzip file, or was cut short") from None
    except ValueError as error:
        raise TableError(f"{source} {error}") from None
    for mark, marked_encoding in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            encoding = marked_encoding
    encoding = encoding or "utf-8"
    try:
        text = data.decode(encoding)
    except (UnicodeError, LookupError):
        text = "\0"
    if "\0" in text:
        raise TableError(
            f"{source} is not text in {encoding}; save a workbook as CSV, and name the encoding "
            "of tables saved by older programs on Windows, such as --encoding cp1252"
        )
    return text


def _guess_separator(text: str) -> str:
    """Return the separator with which the first lines have as many cells as the header.

    If none fits, it is the first of `GUESSED_SEPARATORS` in the header. If the header has none of
    them, it is a space if all lines have equally many words, else a comma.
    """
    lines = [line for line in text[:20_000].splitlines()[:50] if line.strip()]
    lines = lines[:-1] or lines  # the last line may be cut off at 20,000 characters
    present = [sign for sign in GUESSED_SEPARATORS if lines and sign in lines[0]]
    for sign in present:
        if len({len(row) for row in csv.reader(lines, delimiter=sign)}) == 1:
            return sign
    if present:
        return present[0]
    n_words = {len(line.split()) for line in lines}
    if len(lines) > 1 and len(n_words) == 1 and n_words != {1}:
        return " "
    return ","


def csv_text(table: DataFrame) -> str:
    """Return a table as CSV text in which a spreadsheet finds no formula.

    Cells and names that begin with a tab or one of ``= + - @``, and are not numbers, get an
    apostrophe in front, which marks text in spreadsheets.
    """
    text = table.astype(object).map(_escape_formula).rename(columns=_escape_formula)
    return str(text.to_csv(index=False, lineterminator="\n"))


def _escape_formula(cell: Any) -> Any:
    """Return a cell, with an apostrophe in front if a spreadsheet would take it for a formula."""
    if not isinstance(cell, str) or SIGNED_NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}" if FORMULA.match(cell) else cell


def parse_numbers(
    cells: Series, decimal: str | None = None, thousands: str | None = None
) -> Series:
    """Return the numbers in cells of text; a cell that is not a number gives nan or inf.

    Parameters
    ----------
    cells : Series
        Cells of text.
    decimal : str, optional
        The decimal sign. By default a point.
    thousands : str, optional
        The sign between groups of three digits. By default there is none.

    Raises
    ------
    TableError
        If `decimal` and `thousands` are the same sign.
    """
    import pandas as pd

    decimal = decimal or "."
    thousands = thousands or ""
    if decimal == thousands:
        raise TableError(
            f"--decimal and --thousands must be different signs; got {decimal!r} for both"
        )
    if thousands or decimal != ".":
        digits = "[0-9]+"
        if thousands:
            grouped = rf"[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+"
            digits = rf"(?:{grouped}|[0-9]+)"
        point = re.escape(decimal)
        number = (
            rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        )
        cells = cells.str.translate(SPACES)
        plain = cells.str.replace(thousands, "", regex=False)
        plain = plain.str.replace(decimal, ".", regex=False)
        cells = plain.where(cells.str.fullmatch(number), "")
    return pd.to_numeric(cells, errors="coerce").astype(float)

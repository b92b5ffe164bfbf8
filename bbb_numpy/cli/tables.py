"""Tables of text with named columns: CSV and its relatives, and the numbers written in them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..learners.columns import MISSING, SPACES, list_names
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
N_SNIFFED_ROWS = 1000  # number of first rows that show which columns may hold numbers


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and column."""


def read_csv(
    path: str,
    separator: str | None = None,
    encoding: str | None = None,
    text_columns: Collection[str] | None = None,
    decimal: str | None = None,
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
    text_columns : collection of str, optional
        Names of the columns that must stay text. Another column may hold numbers instead, NaN where
        a value is missing, if every cell is a finite number or missing; they are those of
        `parse_numbers`. By default all columns stay text, which takes longer.
    decimal : str, optional
        The decimal sign of these numbers. By default a point.

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
        import pandas  # noqa: F401
    except ImportError:
        raise ImportError(
            "reading a table needs pandas; install it with: pip install 'bbb_numpy[learners]'"
        ) from None
    source = "standard input" if path == "-" else Path(path).name
    text = _read_text(path, source, encoding).rstrip("\r\n")
    excel_line = EXCEL_SEPARATOR_LINE.match(text)
    n_skipped = 0
    if excel_line:
        text = text[excel_line.end() :]
        n_skipped = 1
    if not separator:
        separator = excel_line[1] if excel_line else _guess_separator(text)
    data = f"\n{text}\n".encode()
    table = None
    if _is_regular(data, separator):
        table = _read_regular(data, separator, text_columns, decimal or ".")
    if table is None:
        table = _read_irregular(text, separator, source, n_skipped)
    else:
        table.index += n_skipped
    if table.columns[0] == "":
        print(
            f"{source}: the first column has no name and is left out, as the row numbers that "
            "pandas and R write; to use it, write a name into the first line",
            file=sys.stderr,
        )
        table = table.iloc[:, 1:]
    table.attrs["source"] = source
    if len(table.columns) > 1 and separator != ",":
        print(
            f"{source} is read with columns separated by {separator!r}", file=sys.stderr
        )
    return table


def _is_regular(data: bytes, separator: str) -> bool:
    """Return whether every line has as many cells, two or more, and no quote needs a second look.

    Then pandas' parser and `csv` agree. Quotes must begin and end a cell, and hold neither quotes
    nor line breaks; no line may be blank or as long as the longest cell that `csv` accepts. `data`
    begins and ends with a line break that the table does not need.
    """
    if separator not in GUESSED_SEPARATORS or data.count(b"\r") != data.count(b"\r\n"):
        return False
    signs = np.frombuffer(data, np.uint8)
    is_separator = signs == ord(separator)
    is_line_end = signs == ord("\n")
    if b'"' in data:
        # every other quote opens a cell, so that all signs from there to the next are inside
        is_quote = signs == ord('"')
        is_inside = np.cumsum(is_quote, dtype=np.uint8) % 2 == 1
        is_edge = is_separator | is_line_end | (signs == ord("\r"))
        is_opening = is_quote & is_inside
        is_closing = is_quote & ~is_inside
        if not (
            is_edge[:-1][is_opening[1:]].all() and is_edge[1:][is_closing[:-1]].all()
        ):
            return False
        if (is_line_end & is_inside).any():
            return False
        is_separator &= ~is_inside
    # of the signs that end a cell, all but each n_cells-th must be a separator
    ends_line = is_line_end[is_separator | is_line_end][1:]
    n_cells = int(np.argmax(ends_line)) + 1
    if n_cells < 2 or len(ends_line) < 2 * n_cells or len(ends_line) % n_cells:
        return False
    lines = ends_line.reshape(-1, n_cells)
    is_even = lines[:, -1].all() and not lines[:, :-1].any()
    longest = np.diff(np.flatnonzero(is_line_end)).max()
    return bool(is_even and longest < csv.field_size_limit())


def _read_regular(
    data: bytes, separator: str, text_columns: Collection[str] | None, decimal: str
) -> DataFrame | None:
    """Return the table of regular `data` by pandas' parser, or None if names are not distinct."""
    import pandas as pd

    header = data[1 : data.index(b"\n", 1)].decode()
    names = _clean_names(next(csv.reader([header], delimiter=separator)))
    if "" in names[1:] or len(set(names)) != len(names):
        return None
    options: dict[str, Any] = {"sep": separator, "header": 0, "names": names}
    options |= {"index_col": False, "engine": "c", "low_memory": False}
    number_names = [name for name in names if name not in (text_columns or ())]
    if text_columns is None:
        number_names = []
    columns: dict[str, Any] = {}
    for n_rows in (N_SNIFFED_ROWS, None):  # most text is known by its first rows
        if number_names:
            numbers = pd.read_csv(
                io.BytesIO(data), usecols=number_names, nrows=n_rows, decimal=decimal,
                na_values=list(MISSING), keep_default_na=False, **options,
            )  # fmt: skip
            columns = {
                name: cells
                for name, cells in numbers.items()
                if cells.dtype.kind in "iuf" and not np.isinf(cells).any()
            }
            number_names = list(columns)
    text_names = [name for name in names if name not in columns]
    if text_names:
        texts = pd.read_csv(
            io.BytesIO(data), usecols=text_names, dtype=object, na_filter=False, **options,
        )  # fmt: skip
        for name, cells in texts.items():
            columns[name] = pd.Series(list(map(str.strip, cells)), dtype=object)
    table = pd.DataFrame({name: columns[name] for name in names}, copy=False)
    table.index = pd.RangeIndex(2, 2 + len(table), name="line")
    return table


def _read_irregular(
    text: str, separator: str, source: str, n_skipped: int
) -> DataFrame:
    """Return the table of any text, cell by cell; `n_skipped` lines of the file are before it."""
    from pandas import DataFrame, Index

    lines = io.StringIO(text, newline="")
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
    names, rows = _drop_extra_cells(_clean_names(header), rows)
    if "" in names[1:] or names == [""] or len(set(names)) != len(names):
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise TableError(
            f"{source}: every column needs a name of its own; got "
            f"{list_names(repeated or names, MAX_NAMES_LISTED)}{' twice' * bool(repeated)}. Write "
            "one into the first line for each"
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
    return DataFrame([row for _, row in rows], index, names, dtype=object)


def _clean_names(header: list[str]) -> list[str]:
    """Return names of columns without line breaks and spaces that do not separate words."""
    return [" ".join(name.split()) for name in header]


Rows = list[tuple[int, list[str]]]  # pairs (line number, cells of the line)


def _drop_extra_cells(names: list[str], rows: Rows) -> tuple[list[str], Rows]:
    """Return names and rows without empty last cells; a column of row names is named "".

    Lines that end with a separator have an empty last cell. pandas writes row numbers under an
    empty name, R under a header that is one name short.
    """
    n_names = len(names)
    while names and not names[-1]:
        names = names[:-1]
    if any(any(row[len(names) :]) for _, row in rows) and len(names) < n_names:
        # A column with values has no name: `_read_irregular` raises the error for empty names
        return [*names, *[""] * (n_names - len(names))], rows
    rows = [(line, _drop_empty_cells(row, len(names))) for line, row in rows]
    is_longer = all(len(row) == len(names) + 1 for _, row in rows)
    if "" not in names and is_longer and _are_row_names([row[0] for _, row in rows]):
        names = ["", *names]
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
    cells: Series,
    decimal: str | None = None,
    thousands: str | None = None,
    units: Sequence[str] = (),
) -> Series:
    """Return the numbers in cells of text; a cell that is not a number gives nan or inf.

    Parameters
    ----------
    cells : Series
        Cells of text, or numbers, which are returned as floats.
    decimal : str, optional
        The decimal sign. By default a point.
    thousands : str, optional
        The sign between groups of three digits. By default there is none.
    units : sequence of str
        Signs of currency and units that may stand before or after a number.

    Raises
    ------
    TableError
        If `decimal` and `thousands` are the same sign.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells):  # by `read_csv`
        return cells.astype(float)
    decimal = decimal or "."
    thousands = thousands or ""
    if decimal == thousands:
        raise TableError(
            f"--decimal and --thousands must be different signs; got {decimal!r} for both"
        )
    if units:
        unit = f"(?:{'|'.join(map(re.escape, units))})?"
        cells = cells.str.replace(
            rf"^([+-]?)\s*{unit}\s*(.*?)\s*{unit}$", r"\1\2", regex=True
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

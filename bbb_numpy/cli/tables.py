"""Tables of text with named columns: CSV and its relatives, and the numbers written in them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..learners.columns import some
from ..numeric.files import check_regular

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["SEPARATORS", "SPACES", "TableError", "csv_text", "numbers", "read_csv"]

SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "bar": "|", "space": " "}
LOOKED_FOR = "\t;,|"
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
FORMULA = re.compile(r"\s*[=+@-]|[\t\r]")
SIGNED_NUMBER = re.compile(r"[+-][0-9., '\u00a0\u202f\u2009]+([eE][+-]?[0-9]+)?%?")
SPACES = str.maketrans("\u00a0\u202f\u2009", "   ")


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and column."""


def read_csv(path: str, separator: str | None = None, encoding: str | None = None) -> DataFrame:
    """Read a table whose first line names the columns, its cells as stripped text.

    Separator (else found from the first lines) and encoding (UTF-8, where there is no byte order
    mark) may be given; gzip is unpacked; ``-`` is standard input. Blank lines are skipped. What
    pandas would fill without a word, a row that is too short, is a TableError. The index is the
    line on which each row ends, the header being on line 1.
    """
    try:
        from pandas import DataFrame, Index
    except ImportError:
        raise ImportError(
            "reading a table needs pandas; install it with: pip install 'bbb_numpy[learners]'"
        ) from None
    source = "standard input" if path == "-" else Path(path).name
    text = _text(path, source, encoding)
    separator = separator or _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise TableError(f"{source}, line {reader.line_num}: {error}") from None
    rows = [(line, row) for line, row in rows if row and row != [""]]
    names = [" ".join(cell.split()) for cell in rows.pop(0)[1]] if rows else []
    if not rows:
        raise TableError(f"{source} has no line of column names with a data row below it")
    if "" in names or len(set(names)) != len(names):
        raise TableError(f"{source}: every column needs a name of its own; got {some(names, 20)}")
    for line, row in rows:
        if len(row) != len(names):
            raise TableError(
                f"{source}, line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the header has "
                f"{len(names)}, separated by {separator!r}; mend the line, or give another "
                "--separator"
            )
    lines = Index([line for line, _ in rows], name="line")
    table = DataFrame([row for _, row in rows], lines, names, dtype=object)
    table.attrs["source"] = source
    if len(names) > 1 and separator != ",":
        print(f"{source} is read with columns separated by {separator!r}", file=sys.stderr)
    return table


def _text(path: str, source: str, encoding: str | None) -> str:
    """Return what a file or standard input holds."""
    try:
        if path != "-":
            check_regular(Path(path))
        if path == "-" and sys.stdin is None:
            raise ValueError("is not there; name a file")
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{source} is a damaged gzip file, or was cut short") from None
    except ValueError as error:
        raise TableError(f"{source} {error}") from None
    marked = next((name for mark, name in MARKS.items() if data.startswith(mark)), None)
    used = marked or encoding or "utf-8"
    try:
        text = data.decode(used)
    except (UnicodeError, LookupError):
        text = "\0"
    if "\0" in text:
        raise TableError(
            f"{source} is not text in {used}; save a workbook as CSV, and name the encoding of "
            "tables saved by older programs on Windows, such as --encoding cp1252"
        )
    return text


def _separator(text: str) -> str:
    """Return the separator with which the first lines have as many cells as the header."""
    lines = [line for line in text[:20_000].splitlines()[:50] if line.strip()]
    lines = lines[:-1] or lines  # the last one may go on
    present = [sign for sign in LOOKED_FOR if lines and sign in lines[0]]
    for sign in present:
        if len({len(row) for row in csv.reader(lines, delimiter=sign)}) == 1:
            return sign
    return present[0] if present else ","


def csv_text(table: DataFrame) -> str:
    """Return a table as CSV in which no spreadsheet finds a formula.

    Cells and names that begin with a tab or one of ``= + - @`` and are no numbers get an apostrophe
    in front, by which spreadsheets know text.
    """
    text = table.astype(object).map(_as_text).rename(columns=_as_text)
    return str(text.to_csv(index=False, lineterminator="\n"))


def _as_text(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and FORMULA.match(cell) and not SIGNED_NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def numbers(cells: Series, decimal: str | None = None, thousands: str | None = None) -> Series:
    """Return the numbers in cells of text, not finite where there is none.

    `thousands` stand between groups of three digits.
    """
    import pandas as pd

    decimal, thousands = decimal or ".", thousands or ""
    if decimal == thousands:
        raise TableError(f"cannot have {decimal!r} as --decimal and --thousands; one must differ")
    if thousands or decimal != ".":
        digits, point = "[0-9]+", re.escape(decimal)
        if thousands:
            digits = rf"(?:[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+)"
        number = rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        cells = cells.str.translate(SPACES)
        plain = cells.str.replace(thousands, "", regex=False).str.replace(decimal, ".", regex=False)
        cells = plain.where(cells.str.fullmatch(number), "")
    return pd.to_numeric(cells, errors="coerce").astype(float)

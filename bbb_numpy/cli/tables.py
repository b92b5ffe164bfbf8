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

from ..learners.columns import some
from ..numeric.files import check_regular

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["SEPARATORS", "SPACES", "TableError", "csv_text", "numbers", "read_csv"]

SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "bar": "|", "space": " "}
LOOKED_FOR = "\t;,|"
OF_EXCEL = re.compile(r"sep=(.)\r?\n")  # a first line that names the separator
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
FORMULA = re.compile(r"\s*[=+@-]|[\t\r]")
SIGNED_NUMBER = re.compile(r"[+-][0-9., '\u00a0\u202f\u2009]+([eE][+-]?[0-9]+)?%?")
SPACES = str.maketrans("\u00a0\u202f\u2009", "   ")


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and column."""


def read_csv(
    path: str, separator: str | None = None, encoding: str | None = None
) -> DataFrame:
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
    named = OF_EXCEL.match(text)
    separator = separator or (named[1] if named else _separator(text))
    spaces = separator == " "
    lines = io.StringIO(text, newline="")
    skipped = len(lines.readline()) > 0 if named else 0
    reader = csv.reader(
        lines, delimiter=separator, skipinitialspace=spaces, strict=True
    )
    try:
        rows = [
            (reader.line_num + skipped, [cell.strip() for cell in row])
            for row in reader
        ]
    except csv.Error as error:
        raise TableError(
            f"{source}, line {reader.line_num + skipped}: {error}"
        ) from None
    rows = [(line, row) for line, row in rows if any(row) or len(row) > 1]
    header = rows.pop(0)[1] if rows else []
    if not rows:
        raise TableError(
            f"{source} has no line of column names with a data row below it"
        )
    names, rows = _shaped([" ".join(cell.split()) for cell in header], rows, source)
    if "" in names or len(set(names)) != len(names):
        raise TableError(
            f"{source}: every column needs a name of its own; got {some(names, 20)}. Write one "
            "into the first line for each"
        )
    wrong = [(line, row) for line, row in rows if len(row) != len(names)]
    if wrong:
        line, row = wrong[0]
        more = f" (and {len(wrong) - 1} more lines)" if len(wrong) > 1 else ""
        raise TableError(
            f"{source}, line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the header has "
            f"{len(names)}, separated by {separator!r}{more}; mend the line, or give another "
            "--separator"
        )
    lines = Index([line for line, _ in rows], name="line")
    table = DataFrame([row for _, row in rows], lines, names, dtype=object)
    table.attrs["source"] = source
    if len(names) > 1 and separator != ",":
        print(
            f"{source} is read with columns separated by {separator!r}", file=sys.stderr
        )
    return table


Lines = list[tuple[int, list[str]]]  # the number of each, and its cells


def _shaped(names: list[str], rows: Lines, source: str) -> tuple[list[str], Lines]:
    """Return names and rows without what programs add: empty last cells, and a first column.

    Lines that end with a separator have an empty cell there. pandas writes row numbers under no
    name, R under a header that is one name short.
    """
    named = len(names)
    while names and not names[-1]:
        names = names[:-1]
    if any(any(row[len(names) :]) for _, row in rows) and len(names) < named:
        return [*names, *[""] * (named - len(names))], rows  # values without a name
    rows = [(line, _cut(row, len(names))) for line, row in rows]
    longer = all(len(row) == len(names) + 1 for _, row in rows)
    if "" not in names and longer and _are_row_names([row[0] for _, row in rows]):
        names = ["", *names]
    if (
        names[:1] == [""]
        and "" not in names[1:]
        and all(len(row) > 1 for _, row in rows)
    ):
        print(
            f"{source}: the first column has no name and is left out, as the row numbers that "
            "pandas and R write; to use it, write a name into the first line",
            file=sys.stderr,
        )
        return names[1:], [(line, row[1:]) for line, row in rows]
    return names, rows


def _are_row_names(cells: list[str]) -> bool:
    """Whether cells are names of rows as R has them: growing whole numbers, or distinct text."""
    if all(re.fullmatch("[0-9]{1,15}", cell) for cell in cells):
        places = [int(cell) for cell in cells]
        return all(one < next_one for one, next_one in pairwise(places))
    return len(set(cells)) == len(cells) and not any(
        re.match("[-+.]?[0-9]", one) for one in cells
    )


def _cut(row: list[str], count: int) -> list[str]:
    """Return a row without empty cells behind the first `count`."""
    while len(row) > count and not row[-1]:
        row = row[:-1]
    return row


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
    """Return the separator with which the first lines have as many cells as the header.

    A space, if none of the other signs is there and all lines have as many words as the first.
    """
    lines = [line for line in text[:20_000].splitlines()[:50] if line.strip()]
    lines = lines[:-1] or lines  # the last one may go on
    present = [sign for sign in LOOKED_FOR if lines and sign in lines[0]]
    for sign in present:
        if len({len(row) for row in csv.reader(lines, delimiter=sign)}) == 1:
            return sign
    words = {len(line.split()) for line in lines}
    if not present and len(lines) > 1 and len(words) == 1 and words != {1}:
        return " "
    return present[0] if present else ","


def csv_text(table: DataFrame) -> str:
    """Return a table as CSV in which no spreadsheet finds a formula.

    Cells and names that begin with a tab or one of ``= + - @`` and are no numbers get an apostrophe
    in front, by which spreadsheets know text.
    """
    text = table.astype(object).map(_as_text).rename(columns=_as_text)
    return str(text.to_csv(index=False, lineterminator="\n"))


def _as_text(cell: Any) -> Any:
    is_formula = (
        isinstance(cell, str)
        and FORMULA.match(cell)
        and not SIGNED_NUMBER.fullmatch(cell)
    )
    return f"'{cell}" if is_formula else cell


def numbers(
    cells: Series, decimal: str | None = None, thousands: str | None = None
) -> Series:
    """Return the numbers in cells of text, not finite where there is none.

    `thousands` stand between groups of three digits.
    """
    import pandas as pd

    decimal, thousands = decimal or ".", thousands or ""
    if decimal == thousands:
        raise TableError(
            f"cannot have {decimal!r} as --decimal and --thousands; one must differ"
        )
    if thousands or decimal != ".":
        digits, point = "[0-9]+", re.escape(decimal)
        if thousands:
            digits = (
                rf"(?:[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+)"
            )
        number = (
            rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        )
        cells = cells.str.translate(SPACES)
        plain = cells.str.replace(thousands, "", regex=False).str.replace(
            decimal, ".", regex=False
        )
        cells = plain.where(cells.str.fullmatch(number), "")
    return pd.to_numeric(cells, errors="coerce").astype(float)

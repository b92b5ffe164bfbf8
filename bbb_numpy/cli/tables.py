"""Tables of text with named columns: CSV and its relatives, and the numbers written in them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ..learners.columns import some
from ..numeric.files import check_regular, naming, write_text

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["SEPARATORS", "TableError", "number_pattern", "read_csv", "write_csv"]

SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "bar": "|", "space": " "}
LOOKED_FOR = "\t;,|"
MARKS = {  # what begins like this is text in that encoding; the longer mark first
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
ARCHIVES = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and column."""


def read_csv(path: str, separator: str | None = None, encoding: str | None = None) -> DataFrame:
    """Read a table whose first line names the columns, its cells as text.

    Separator (else found from the first lines) and encoding (UTF-8, where there is no byte order
    mark) may be given; gzip is unpacked; ``-`` is standard input. Blank lines are skipped. What
    pandas would fill without a word, a row that is too short, is an error.

    Returns
    -------
    DataFrame
        Of stripped text; its index is the line on which each row ends, the header being on line 1.

    Raises
    ------
    ImportError
        Without pandas.
    TableError
        If the file is no text, is empty, repeats or lacks a column name, has no data row, or has
        a row of another length.
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
    if not names:
        raise TableError(f"{source} is empty; the first line must name the columns")
    if "" in names or len(set(names)) != len(names):
        raise TableError(f"{source}: every column needs a name of its own; got {some(names, 20)}")
    if not rows:
        raise TableError(f"{source} has column names but no data row")
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
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            check_regular(Path(path))
            data = Path(path).read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{source} is a damaged gzip file, or was cut short") from None
    except ValueError as error:
        raise TableError(f"{source} {error}") from None
    if data.startswith(ARCHIVES):
        raise TableError(f"{source} is a workbook or an archive; save the table as CSV")
    marked = next((name for mark, name in MARKS.items() if data.startswith(mark)), None)
    used = marked or encoding or "utf-8"
    try:
        text = data.decode(used)
    except (UnicodeError, LookupError):
        text = "\0"
    if "\0" in text:
        raise TableError(
            f"{source} is not text in {used}; name its encoding, such as --encoding cp1252 for "
            "tables saved by older programs on Windows"
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


def number_pattern(decimal: str = ".", thousands: str = "") -> re.Pattern[str]:
    """Return what a cell must match to be a number; ``thousands`` stand between three digits."""
    if decimal == thousands:
        raise TableError(f"cannot have {decimal!r} as --decimal and --thousands; one must differ")
    digits, point = "[0-9]+", re.escape(decimal)
    if thousands:
        digits = rf"(?:[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+)"
    return re.compile(rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")


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

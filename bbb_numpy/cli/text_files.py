"""The lines of a text file that somebody else made: compressed, or in some encoding."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..numeric.files import check_regular

__all__ = ["TableError", "lines_of", "shown"]

LONGEST_SHOWN = 40
GZIP = b"\x1f\x8b"
MARKS = (  # what begins like this is text in that encoding; the longer mark first
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NO_TEXT = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook; save the table as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the table as CSV"),
    (b"PAR1", "a Parquet file; write the table as CSV"),
    (b"BZh", "compressed by bzip2; unpack it, or use gzip"),
    (b"\xfd7zXZ", "compressed by xz; unpack it, or use gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd; unpack it, or use gzip"),
)


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and column."""


def shown(text: str, most: int = LONGEST_SHOWN) -> str:
    """Return text from a file in quotes, escaped, and shortened if it is long."""
    if len(text) <= most:
        return repr(text)
    return f"{text[: most - 10]!r}... ({len(text)} characters)"


@contextmanager
def lines_of(path: str, encoding: str | None = None) -> Iterator[Iterator[str]]:
    """Yield the lines of a text file with their ends; ``-`` is standard input.

    gzip is unpacked. The encoding is that of a byte order mark, else UTF-8.

    Parameters
    ----------
    path : str
    encoding : str, optional
        In place of UTF-8, where there is no byte order mark.

    Raises
    ------
    TableError
        For what is no regular file, or no text in this encoding.
    """
    name = "standard input" if path == "-" else path
    try:
        with _opened(path) as stream:
            text = _decoded(stream, encoding)
            yield _checked(text)
            if text is not stream:
                text.detach()  # whoever has opened the stream closes it
    except TableError as error:
        said = str(error)
        raise TableError(said if said.startswith(name) else f"{name} {said}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise TableError(f"{name} is a damaged gzip file, or was cut short") from None
    except UnicodeError as error:
        used = getattr(error, "encoding", None) or encoding or "utf-8"
        raise TableError(
            f"{name} is not text in {used}; name its encoding, such as --encoding cp1252 for "
            "tables saved by older programs on Windows"
        ) from None
    except OSError as error:
        raise TableError(f"cannot read {name}: {error.strerror or error}") from None


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    if path == "-":
        yield getattr(sys.stdin, "buffer", sys.stdin)
        return
    try:
        check_regular(Path(path))
    except ValueError as error:
        raise TableError(str(error)) from None
    with open(path, "rb") as file:
        yield file


def _decoded(stream: Any, encoding: str | None) -> Any:
    if isinstance(stream, io.TextIOBase):  # a standard input that another program has replaced
        return stream
    file = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    if file.peek(2).startswith(GZIP):
        file = gzip.GzipFile(fileobj=file)
    start = file.peek(8)
    for mark, kind in NO_TEXT:
        if start.startswith(mark):
            raise TableError(f"is {kind}")
    marked = next((name for mark, name in MARKS if start.startswith(mark)), None)
    return io.TextIOWrapper(file, marked or encoding or "utf-8", newline="")


def _checked(lines: Any) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise TableError(
                f"line {number} holds the character NUL: it is no text, or has an encoding that "
                "must be named, such as --encoding utf-16-le"
            )
        yield line

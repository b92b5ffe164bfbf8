"""The text of the user's source files: their syntax trees, and a line in words."""

from __future__ import annotations

import ast
import linecache
from pathlib import Path
from threading import Lock

__all__ = ["line_in_words", "parse", "source_line", "syntax_tree"]

PARSE_LOCK = Lock()  # before Python 3.12 `ast.parse` may fail in two threads at once


def parse(text: str) -> ast.Module:
    """Return the syntax tree of Python code; raise SyntaxError if it is none."""
    with PARSE_LOCK:
        return ast.parse(text)


def syntax_tree(file: str) -> ast.Module:
    """Return the syntax tree of a file; that of an empty one if it holds no Python code."""
    try:
        return parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


def source_line(file: str, number: int) -> str:
    """Return the text of a line without the spaces around it; "" if it is not known."""
    return linecache.getline(file, number).strip()


def line_in_words(file: str, number: int | None, in_full: bool = False) -> str:
    """Return words such as "line 7 of file.py, `source`".

    Parameters
    ----------
    file : str
        The path of the file; that of a notebook's cell is not printed.
    number : int or None
        The number of the line.
    in_full : bool
        Whether the path is printed. By default it is the name of the file.
    """
    path = Path(file)
    name = file if in_full else path.name
    if path.parent.name.startswith("ipykernel"):
        name = "the cell"
    words = f"line {number} of {name}"
    source = source_line(file, number or 0)
    return f"{words}, `{source}`" if source else words

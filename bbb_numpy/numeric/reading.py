"""Functions that read files which may be damaged, with no more memory than the files' size."""

from __future__ import annotations

import json
import os
import textwrap
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from numpy.lib import format as npy
from numpy.typing import NDArray

from .files import check_regular

__all__ = ["array_reader", "damaged", "read_arrays", "read_json"]

Array = NDArray[Any]


def damaged(error: Exception) -> str:
    """Return an error message, to follow a file's name, that says why it cannot be read."""
    cause = textwrap.shorten(
        f"{type(error).__name__}: {error}", 300, placeholder=" ..."
    )
    return f"is damaged or not written by bbb_numpy: {cause}"


@contextmanager
def array_reader(file: BinaryIO) -> Iterator[Callable[[str], Array]]:
    """Yield a function from names to the arrays of an open file that `write_arrays` wrote.

    No array takes more memory than its bytes in the file: compressed archives, which can unpack to
    a thousand times their size, are refused. The function raises an error if the array is missing,
    or if its length differs from that in its header.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked_size = sum(entry.file_size for entry in archive.infolist())
        if unpacked_size > os.fstat(file.fileno()).st_size:
            raise ValueError("its arrays are compressed, or longer than the file")
        yield cache(partial(_read_array, archive))


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """Return the array of the member ``name.npy``; raise ValueError if its header is wrong."""
    entry = archive.getinfo(f"{name}.npy")
    with archive.open(entry) as file:
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"array {name} must be in version 1.0 of the npy format")
        shape, _, dtype = npy.read_array_header_1_0(file)
        # NumPy would trust the header, and allocate an array of the size that it states
        if file.tell() + prod(shape) * dtype.itemsize != entry.file_size:
            raise ValueError(f"array {name} is not as long as its header says")
    # reading to the end of the member compares its checksum
    with archive.open(entry) as file:
        array: Array = npy.read_array(file, allow_pickle=False)
    return array


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Return the arrays `names`, by name, from a file that `write_arrays` wrote.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Names of the arrays to read; other arrays in the file are ignored.

    Raises
    ------
    ValueError
        If the file is damaged or has no array of a name; the message begins with its path.
    """
    check_regular(path)
    with open(path, "rb") as file:
        try:
            with array_reader(file) as read_array:
                return {name: read_array(name) for name in names}
        except Exception as error:
            raise ValueError(f"{path} {damaged(error)}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the dict in the JSON file `path`; raise ValueError, with the path, if it has none."""
    check_regular(path)
    content = path.read_bytes()
    try:
        table = json.loads(content)
        if not isinstance(table, dict):
            raise TypeError("it must hold a JSON object")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} {damaged(error)}") from None
    return table

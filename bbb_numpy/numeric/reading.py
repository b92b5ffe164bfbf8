"""Reading files that may be damaged or foreign, without using more memory than they have bytes."""

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
    """Return the message for an error that a damaged file has caused, of whatever class."""
    cause = textwrap.shorten(
        f"{type(error).__name__}: {error}", 300, placeholder=" ..."
    )
    return f"is damaged or not ours: {cause}"


@contextmanager
def array_reader(file: BinaryIO) -> Iterator[Callable[[str], Array]]:
    """Yield a function that reads an array by its name from a file of `write_arrays`.

    No array takes more memory than its bytes in the file: compressed archives, which can unpack to
    a thousand times their size, are refused. An array that is missing, or whose length is not that
    of its header, raises an error.
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
            raise ValueError(f"array {name} is of another version")
        shape, _, dtype = npy.read_array_header_1_0(file)
        # NumPy would trust the header and allocate that much
        if file.tell() + prod(shape) * dtype.itemsize != entry.file_size:
            raise ValueError(f"array {name} is not as long as it says")
    with archive.open(entry) as file:  # read to its end, where the checksum is compared
        array: Array = npy.read_array(file, allow_pickle=False)
    return array


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Return arrays, by name, from a file of `write_arrays`.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Names of the arrays to read; others in the file are not read.

    Raises
    ------
    ValueError
        If it is no such file, with its name.
    """
    check_regular(path)
    with open(path, "rb") as file:
        try:
            with array_reader(file) as read_array:
                return {name: read_array(name) for name in names}
        except Exception as error:
            raise ValueError(f"{path} {damaged(error)}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the table in a file of `write_json`; a ValueError names a file without one."""
    check_regular(path)
    content = path.read_bytes()
    try:
        table = json.loads(content)
        if not isinstance(table, dict):
            raise TypeError("no table")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} {damaged(error)}") from None
    return table

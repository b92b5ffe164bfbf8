"""Files that may be damaged, or another's: no more is read than is asked for and is there."""

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
    """Return the words for an error that damage has caused, which can upset every layer."""
    cause = textwrap.shorten(
        f"{type(error).__name__}: {error}", 300, placeholder=" ..."
    )
    return f"is damaged or not ours: {cause}"


@contextmanager
def array_reader(file: BinaryIO) -> Iterator[Callable[[str], Array]]:
    """Yield the function that reads an array, by its name, of what `write_arrays` wrote.

    No array takes more memory than its bytes in the file, where other archives unpack to a thousand
    times theirs. One that is missing, or not as long as it says, raises an error of its own.
    """
    with zipfile.ZipFile(file) as archive:
        if (
            sum(entry.file_size for entry in archive.infolist())
            > os.fstat(file.fileno()).st_size
        ):
            raise ValueError("its arrays are compressed, or longer than the file")
        yield cache(partial(_read_array, archive))


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    entry = archive.getinfo(f"{name}.npy")
    with archive.open(entry) as file:
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"array {name} is of another version")
        shape, _, dtype = npy.read_array_header_1_0(file)
        # NumPy would believe it
        if file.tell() + prod(shape) * dtype.itemsize != entry.file_size:
            raise ValueError(f"array {name} is not as long as it says")
    with archive.open(entry) as file:  # to its end, where the checksum is compared
        array: Array = npy.read_array(file, allow_pickle=False)
    return array


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Return the arrays of these names that `write_arrays` wrote.

    Of anything else, a ValueError names the file.
    """
    check_regular(path)
    with open(path, "rb") as file:
        try:
            with array_reader(file) as read_array:
                return {name: read_array(name) for name in names}
        except Exception as error:
            raise ValueError(f"{path} {damaged(error)}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the table that `write_json` wrote; of anything else, a ValueError names the file."""
    check_regular(path)
    content = path.read_bytes()
    try:
        table = json.loads(content)
        if not isinstance(table, dict):
            raise TypeError("no table")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} {damaged(error)}") from None
    return table

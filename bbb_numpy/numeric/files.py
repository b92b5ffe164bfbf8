"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_regular", "replacing", "write_arrays", "write_text"]

IRREGULAR = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_regular(path: Path) -> None:
    """Raise ValueError for what is no file but can be read for ever, or waits for a writer.

    Raises
    ------
    ValueError
        For a pipe, a socket or a device.
    OSError
        If there is nothing of that name.
    """
    mode = os.stat(path).st_mode
    for is_of_kind, kind in IRREGULAR:
        if is_of_kind(mode):
            raise ValueError(
                f"is {kind}; accepted are regular files. Copy its content to one, and name that"
            )


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which takes the place of `path` only when all is on the disk.

    Raises
    ------
    OSError
        If it cannot be written; an older file is untouched.
    """
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text`, replacing an older file only when all is written; as `replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write `arrays` as .npz, replacing an older file only when all is written; as `replacing`."""
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)

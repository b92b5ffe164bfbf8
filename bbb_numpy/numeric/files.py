"""Files written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

__all__ = ["replacing", "write_arrays", "write_text"]


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

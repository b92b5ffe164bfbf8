"""Files written whole or not at all."""

from __future__ import annotations

import glob
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE, S_IRUSR, S_IWUSR
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "atomic_write",
    "check_regular",
    "check_writable",
    "path_in_errors",
    "write_arrays",
    "write_json",
    "write_text",
]

ABANDONED = 600.0  # seconds after which nobody writes on at an unfinished file


def check_regular(path: Path) -> None:
    """Raise ValueError for pipes and devices, which can be read for ever or wait for a writer."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(
            "is a pipe or a device; copy its content to a regular file, and name that"
        )


@contextmanager
def path_in_errors(path: Path) -> Iterator[None]:
    """Give errors of the system the name of what is written, which that of a full disk lacks."""
    try:
        yield
    except OSError as error:
        if error.errno and not error.filename:
            error.filename = str(path)
        raise


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which takes the place of `path` only when all is on the disk.

    If it cannot be written, an OSError has its name, and an older file is untouched. What a killed
    process had begun to write at this place is removed ten minutes later. The permissions are those
    of the older file, or what the system gives a new one; till all is written only the owner reads.
    """
    place = path.resolve()  # a link stays one
    for leftover in place.parent.glob(f".{glob.escape(place.name)}.{'[0-9a-f]' * 32}"):
        with suppress(OSError):
            if time.time() - leftover.lstat().st_mtime > ABANDONED:
                leftover.unlink()
    unfinished = place.with_name(f".{place.name}.{uuid4().hex}")
    try:
        with path_in_errors(path), open(unfinished, "xb") as file:
            mode = S_IMODE((place if place.exists() else unfinished).stat().st_mode)
            unfinished.chmod(S_IRUSR | S_IWUSR)  # still empty
            yield file
            file.flush()
            unfinished.chmod(mode)
            os.fsync(file.fileno())
        os.replace(unfinished, place)
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise OSError, with the name of `path`, if no file can be written in its place.

    A file is made beside it and removed, as `atomic_write` does: what the system says of rights is
    not all that there is to know.
    """
    place = path.resolve()
    trial = place.with_name(f".{place.name}.{uuid4().hex}")
    try:
        trial.touch(exist_ok=False)
    except OSError as error:
        error.filename = str(path)
        raise
    trial.unlink()


def write_text(path: Path, text: str) -> None:
    """Write `text` by `atomic_write`: whole, or not at all."""
    with atomic_write(path) as file:
        file.write(text.encode())


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write `arrays`, by name, as .npz by `atomic_write`: whole, or not at all."""
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def write_json(path: Path, content: Any) -> None:
    """Write text, numbers and tables of them as JSON; raises ValueError for nan and infinity."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")

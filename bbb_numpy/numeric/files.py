"""Functions that write a file as a whole or not at all."""

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

# Age from which on an unfinished file counts as left by a process that was killed
ABANDONED_AFTER_S = 600.0


def check_regular(path: Path) -> None:
    """Raise ValueError if `path` is a pipe or a device, whose content may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(
            "is a pipe or a device; copy its content to a regular file, and name that"
        )


@contextmanager
def path_in_errors(path: Path) -> Iterator[None]:
    """Add `path` to any OSError of a with block that names no file, such as a full disk's."""
    try:
        yield
    except OSError as error:
        if error.errno and not error.filename:
            error.filename = str(path)
        raise


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `path` only when it is complete on the disk.

    If it cannot be written, an OSError names `path`, and an older file is untouched. Unfinished
    files of killed processes are removed when they are ten minutes old. The permissions are those
    of the older file, or what the system gives a new one; until the file is complete only its
    owner can read it.
    """
    # a symbolic link is followed, so that it is not replaced by a file
    target = path.resolve()
    for leftover in target.parent.glob(
        f".{glob.escape(target.name)}.{'[0-9a-f]' * 32}"
    ):
        with suppress(OSError):
            if time.time() - leftover.lstat().st_mtime > ABANDONED_AFTER_S:
                leftover.unlink()
    unfinished = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        with path_in_errors(path), open(unfinished, "xb") as file:
            permissions_of = target if target.exists() else unfinished
            mode = S_IMODE(permissions_of.stat().st_mode)
            # the permissions are restricted while the file is still empty
            unfinished.chmod(S_IRUSR | S_IWUSR)
            yield file
            file.flush()
            unfinished.chmod(mode)
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise OSError, with the name of `path`, if `atomic_write` could not write it.

    The test creates an empty file in the same folder and removes it, because permissions alone do
    not tell whether a file can be written.
    """
    target = path.resolve()
    trial = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        trial.touch(exist_ok=False)
    except OSError as error:
        error.filename = str(path)
        raise
    trial.unlink()


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 to the file `path`, as a whole or not at all (`atomic_write`).

    An older file is replaced.
    """
    with atomic_write(path) as file:
        file.write(text.encode())


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write `arrays` by name to the .npz file `path`, as a whole or not at all (`atomic_write`).

    An older file is replaced.

    Parameters
    ----------
    path : Path
    arrays : dict of str to ndarray
        Arrays of any shapes, but not of dtype object.

    Raises
    ------
    ValueError
        If an array is of dtype object.
    OSError
        If the file cannot be written.
    """
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def write_json(path: Path, content: Any) -> None:
    """Write `content` as JSON to the file `path`, as a whole or not at all (`atomic_write`).

    An older file is replaced.

    Parameters
    ----------
    path : Path
    content : object
        Text, numbers, or lists and dicts of them.

    Raises
    ------
    ValueError
        If a number is nan or infinite.
    """
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")

"""Files written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:
    LOCKS: Any = None  # Windows, where an unfinished file stays
else:
    LOCKS = fcntl

__all__ = ["check_regular", "naming", "replacing", "write_arrays", "write_json", "write_text"]

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
def naming(path: Path) -> Iterator[None]:
    """Give errors of the system the name of what is written, which that of a full disk lacks."""
    try:
        yield
    except OSError as error:
        if error.errno and not error.filename:
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which takes the place of `path` only when all is on the disk.

    What a killed process had begun to write at this place is removed.

    Raises
    ------
    OSError
        If it cannot be written, with its name; an older file is untouched.
    """
    place = path.resolve()  # a link stays one
    _clear(place)
    file = _begun(place)
    unfinished = Path(file.name)
    try:
        with naming(path), file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if LOCKS is not None:  # before the lock is given up
                os.replace(unfinished, place)
        if LOCKS is None:
            os.replace(unfinished, place)
    finally:
        unfinished.unlink(missing_ok=True)


def _begun(path: Path) -> BinaryIO:
    """Return a new file beside `path`, locked as long as it is open and its process lives."""
    while True:
        file = open(path.with_name(f".{path.name}.{uuid4().hex}"), "xb")  # noqa: SIM115
        if _locked(file.fileno()) and os.fstat(file.fileno()).st_nlink == 0:
            file.close()  # removed by another process, before it was locked
            continue
        return file


def _clear(path: Path) -> None:
    """Remove unfinished files for `path` of processes that live no more."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "r+b") as file:
                    if _locked(file.fileno()):
                        os.unlink(entry.path)


def _locked(descriptor: int) -> bool:
    """Lock a file, or return False if another has, or locks are not to be had here."""
    if LOCKS is None:
        return False
    try:
        LOCKS.flock(descriptor, LOCKS.LOCK_EX | LOCKS.LOCK_NB)
    except OSError:
        return False
    return True


def write_text(path: Path, text: str) -> None:
    """Write `text`, replacing an older file only when all is written; as `replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write `arrays` as .npz, replacing an older file only when all is written; as `replacing`."""
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def write_json(path: Path, content: Any) -> None:
    """Write text, numbers and tables of them as JSON; raises ValueError for nan and infinity."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")

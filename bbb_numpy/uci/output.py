"""The output folder of a run: it can be written, and one run at a time does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["BusyError", "locked", "writable"]


class BusyError(OSError):
    """Another run writes to the same folder."""


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Make the folder if missing, and hold it alone.

    The lock is the operating system's: a killed run leaves none behind.

    Raises
    ------
    BusyError
        If another run holds it; its process and host are named.
    OSError
        If the folder cannot be written.
    """
    owner = out / ".lock.owner"  # not in the lock file itself, which FileLock may empty
    lock = _file_lock(out / ".lock")
    with writable(out):
        out.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except TimeoutError:
            raise _busy(out, owner) from None
    try:
        with writable(out):
            owner.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _file_lock(path: Path) -> Any:
    try:
        from filelock import FileLock
    except ImportError as error:
        raise OSError(
            f"keeping two runs out of one folder needs {error.name}; pip install 'bbb-numpy[uci]' "
            "brings it"
        ) from None
    return FileLock(path)


def _busy(out: Path, owner: Path) -> BusyError:
    try:
        who = f" ({owner.read_text()})"
    except OSError:  # it has only just begun
        who = ""
    return BusyError(
        f"another run{who} writes to {out}; wait until it ends, or give another folder"
    )


@contextmanager
def writable(out: Path) -> Iterator[None]:
    """Name the folder in the error of whatever forbids to write there."""
    try:
        yield
    except BusyError:
        raise
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(
            f"the output folder {out} is a file, or lies below one; give a folder"
        ) from None
    except OSError as error:
        raise OSError(
            f"cannot write to the output folder {out}: {error.strerror or error}; "
            "give one that can be written"
        ) from error

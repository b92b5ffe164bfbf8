"""The records of a run: a folder with one small file for each finished trial.

``records/boston/hmc/03.json`` holds one line of JSON, which ends in a checksum of itself, so that
``cat records/*/*/*.json`` is a table of JSON lines. A file is written whole or not at all: a kill
leaves a record or none. Two runs in one folder at the same time do the same work twice and write
the same numbers, that is all.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from bbb_numpy.numeric.files import check_regular, write_text
from bbb_numpy.version import __version__
from bbb_studies.threads import blas_kernels

__all__ = [
    "FOLDER",
    "Record",
    "RecordsError",
    "line",
    "parse",
    "path_of",
    "prepare",
    "read",
    "said_versions",
    "set_aside",
    "write",
]

Record = dict[str, Any]

FOLDER = "records"


class RecordsError(ValueError):
    """A file holds no record, or a damaged one."""


def said_versions() -> dict[str, str]:
    """Return the versions of which a record tells; with the same ones a trial repeats."""
    return {
        "bbb_numpy": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "blas": blas_kernels(),
    }


def line(record: Record) -> str:
    """Return a record as a line of text that ends in a checksum.

    Raises
    ------
    TypeError, ValueError
        If it is not JSON throughout, or holds nan.
    """
    text = json.dumps(record, allow_nan=False)
    return f'{text[:-1]}, "check": "{_check(text)}"}}\n'


def parse(text: str) -> Record:
    """Return the record of a line.

    Raises
    ------
    RecordsError
        If it is none, or its checksum is not right.
    """
    try:
        record = json.loads(text)
        check = record.pop("check")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise RecordsError("it is no record") from None
    if check != _check(json.dumps(record)):
        raise RecordsError("its checksum is not that of its content")
    found: Record = record
    return found


def _check(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def path_of(out: Path, key: str) -> Path:
    """Return where the record of a trial lies in the output folder."""
    return out / FOLDER / f"{key}.json"


def write(out: Path, record: Record) -> None:
    """Write a record and see it on the disk; one of the same key is replaced."""
    path, text = path_of(out, record["key"]), line(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def read(path: Path) -> list[Record]:
    """Return all records of a folder, by name, or those of a file of such lines.

    Raises
    ------
    RecordsError
        If something else is there, or it is damaged; names the file and line.
    OSError
        If it cannot be read.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    records = []
    for file in files:
        try:
            check_regular(file)
        except ValueError as error:
            raise RecordsError(f"{file} {error}") from None
        for number, text in enumerate(file.read_bytes().splitlines(), 1):
            try:
                records.append(parse(text.decode()))
            except ValueError as error:
                raise RecordsError(f"{file}, line {number}: {error}") from None
    return records


def set_aside(out: Path, paths: Iterable[Path]) -> Path:
    """Move files of the record folder, or all of it, into a new folder beside it; return that."""
    number = 1
    while (aside := out / f"{FOLDER}.previous-{number}").exists():
        number += 1
    for path in paths:
        target = aside / path.relative_to(out / FOLDER)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
    return aside


def prepare(out: Path) -> None:
    """Make the folder of records, and see that files can be written there.

    Raises
    ------
    OSError
        If not; names the output folder.
    """
    folder = out / FOLDER
    with _named(out):
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()


@contextmanager
def _named(out: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(
            f"the output folder {out} is a file, or lies below one; give a folder"
        ) from None
    except OSError as error:
        raise OSError(
            f"cannot write to the output folder {out}: {error.strerror or error}; "
            "give one that can be written"
        ) from error

"""The records of a run: a folder with one small file for each finished trial.

``records/boston/hmc/03.json`` holds one line of JSON, which ends in a checksum of itself, so that
``cat records/*/*/*.json`` is a table of JSON lines. A file is written whole or not at all: a kill
leaves a record or none.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from bbb_numpy.numeric.files import write_text
from bbb_numpy.version import __version__
from bbb_studies.threads import blas_kernels

Record = dict[str, Any]
RECORDS_FOLDER = "records"


class RecordsError(ValueError):
    """A file holds no record, or a damaged one."""


def recorded_versions() -> dict[str, str]:
    """Return the versions of which a record tells; with the same ones a trial repeats."""
    return {
        "bbb_numpy": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "blas": blas_kernels(),
    }


def line(record: Record) -> str:
    """Return a record as a line of JSON that ends in a checksum; nan is no JSON: ValueError."""
    text = json.dumps(record, allow_nan=False)
    return f'{text[:-1]}, "check": "{_check(text)}"}}\n'


def parse(text: str) -> Record:
    """Return the record of a line; raises RecordsError if it is none or its checksum is wrong."""
    try:
        record: Record = json.loads(text)
        check = record.pop("check")
        true_check = _check(json.dumps(record))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise RecordsError(
            "it must be a record, a line of JSON with a checksum"
        ) from None
    if check != true_check:
        raise RecordsError("its checksum is not that of its content")
    return record


def _check(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def path_of(out: Path, key: str) -> Path:
    """Return the path of a trial's record.

    Parameters
    ----------
    out : Path
        Folder of the run.
    key : str
        Key of the trial, e.g. ``boston/hmc/03``.
    """
    return out / RECORDS_FOLDER / f"{key}.json"


def write(out: Path, record: Record) -> None:
    """Write a record to the disk, in place of one with the same key.

    Parameters
    ----------
    out : Path
        Folder of the run.
    record : Record
        With its ``key``.
    """
    path = path_of(out, record["key"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, line(record))


def read(path: Path) -> list[Record]:
    """Return all records of a folder, by name, or those of a file of such lines.

    RecordsError, if something else is there or it is damaged, names the file and line.
    """
    records = []
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        for number, text in enumerate(file.read_bytes().splitlines(), 1):
            try:
                records.append(parse(text.decode()))
            except ValueError as error:
                raise RecordsError(f"{file}, line {number}: {error}") from None
    return records


def set_aside(out: Path, paths: Iterable[Path]) -> Path:
    """Move records into a new folder beside that of the records, and return its path.

    Parameters
    ----------
    out : Path
        Folder of the run.
    paths : iterable of Path
        Files of records.
    """
    number = 1
    while (folder := out / f"{RECORDS_FOLDER}.previous-{number}").exists():
        number += 1
    for path in paths:
        target = folder / path.relative_to(out / RECORDS_FOLDER)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
    return folder

"""The append-only record file of a run: one line of JSON per trial, each with a checksum.

The first line is the header, every other one a record that ends in a checksum of itself. A
record is written by one call and synced, so a kill leaves at worst a last line without its end.
Whatever else cannot be read is damage: it is reported by line number and set aside, and the
records around it are kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..numeric.files import replacing
from .output import locked, writable

__all__ = [
    "FILE",
    "VERSION",
    "Damage",
    "Journal",
    "Reading",
    "RecordsError",
    "open_journal",
    "read",
]

Record = dict[str, Any]

FILE = "records.jsonl"
FORMAT = "bbb_numpy records"
VERSION = 1
HEADER = json.dumps({"format": FORMAT, "version": VERSION}).encode() + b"\n"
LINE = re.compile(rb'(\{.+),"check":"([0-9a-f]{16})"\}')
KEY = re.compile(rb'"key":"([^"\\]+)"')


class RecordsError(ValueError):
    """The file holds no records of this format, or those of another version."""


@dataclass(frozen=True)
class Damage:
    """A line that cannot be read."""

    line: int  # from 1, the header
    key: str  # of its trial, where that can still be read, else ''


@dataclass(frozen=True)
class Reading:
    """What a record file holds."""

    records: tuple[Record, ...] = ()  # in the order of the file
    lines: tuple[bytes, ...] = ()  # of these records, as they are in the file
    damaged: tuple[Damage, ...] = ()
    torn: int = 0  # bytes of a last line whose writing was cut short


def read(path: Path) -> Reading:
    """Return the records of a file; a run may be writing to it meanwhile.

    Raises
    ------
    RecordsError
        If it is no record file or one of another version.
    OSError
        If it cannot be read.
    """
    return _parse(path.read_bytes(), path)


def _parse(data: bytes, path: Path) -> Reading:
    if HEADER.startswith(data):  # empty, or cut short at the very beginning
        return Reading()
    *lines, tail = data.split(b"\n")  # the tail is empty unless a line was cut short
    if lines:
        _same_version(lines[0], path)
    records, good = [], []
    damaged = []
    for number, line in enumerate(lines, 1):
        if number == 1 and line + b"\n" == HEADER:
            continue
        record = _record(line)
        if record is None:
            damaged.append(Damage(number, _key(line)))
        else:
            records.append(record)
            good.append(line)
    last = _record(tail)  # whole but for its line end
    if last is not None:
        records.append(last)
        good.append(tail)
    if not records and (not lines or lines[0] + b"\n" != HEADER):
        raise RecordsError(
            f"{path} is no record file: neither its first line nor any other can be read; "
            "give another folder, or move the file away"
        )
    torn = 0 if last is not None else len(tail)
    return Reading(tuple(records), tuple(good), tuple(damaged), torn)


def _same_version(line: bytes, path: Path) -> None:
    """Refuse the header of another version; one that cannot be read is damage."""
    try:
        header = json.loads(line)
    except ValueError:  # of the encoding too
        return
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        return
    if header.get("version") != VERSION:
        raise RecordsError(
            f"{path} holds records of version {header.get('version')!r}, this bbb_numpy reads "
            f"version {VERSION}; go on with the bbb_numpy that wrote it, or give another folder"
        )


def _check(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:16].encode()


def _line(record: Record) -> bytes:
    body = json.dumps(record, allow_nan=False, separators=(",", ":"))[:-1].encode()
    return body + b',"check":"' + _check(body) + b'"}'


def _record(line: bytes) -> Record | None:
    """Return the record of a line, None unless its checksum is right."""
    found = LINE.fullmatch(line)
    if not found or _check(found[1]) != found[2]:
        return None
    record: Record = json.loads(found[1] + b"}")
    return record


def _key(line: bytes) -> str:
    found = KEY.search(line)
    return found[1].decode(errors="replace") if found else ""


class Journal:
    """A record file open for appending; made by `open_journal`.

    Attributes
    ----------
    records : tuple of dict
        What it held when it was opened.
    damaged : tuple of Damage
        The lines that could not be read.
    messages : tuple of str
        What had to be mended, for a person.
    """

    def __init__(
        self,
        descriptor: int,
        records: tuple[Record, ...],
        damaged: tuple[Damage, ...],
        messages: tuple[str, ...],
    ) -> None:
        self._descriptor = descriptor
        self.records = records
        self.damaged = damaged
        self.messages = messages

    def append(self, record: Record) -> None:
        """Write one record and see it on the disk.

        Parameters
        ----------
        record : dict
            JSON throughout, without nan, with a text "key".

        Raises
        ------
        TypeError, ValueError
            If it is not JSON; nothing is written.
        OSError
            If the disk is full or gone; the file is as it was.
        """
        line = _line(record) + b"\n"
        before = os.fstat(self._descriptor).st_size
        written = os.write(self._descriptor, line)  # one call: whole, or cut short by a full disk
        if written < len(line):
            os.ftruncate(self._descriptor, before)
            raise OSError(f"no space left for the record of {record.get('key')}")
        os.fsync(self._descriptor)


@contextmanager
def open_journal(out: Path, resume: bool = True) -> Iterator[Journal]:
    """Open the record file of a folder, alone, and mend what an interruption left.

    A damaged file is kept as ``records.damaged-1.jsonl`` and goes on without the damaged lines.

    Parameters
    ----------
    out : Path
        The folder; made if missing.
    resume : bool
        False begins a new file and keeps an old one as ``records.previous-1.jsonl``.

    Raises
    ------
    BusyError
        If another run writes to the folder.
    RecordsError
        If the file is no record file or one of another version; it is not touched.
    OSError
        If the folder cannot be written.
    """
    with locked(out):
        path = Path(os.path.realpath(out / FILE))
        with writable(out):
            data = path.read_bytes() if path.exists() else b""
        messages = []
        if data and not resume:
            with writable(out):
                messages.append(f"earlier records are kept in {_aside(path, data, 'previous')}")
            data = b""
        reading = _parse(data, path)
        with writable(out):
            messages += _mend(path, data, reading)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            yield Journal(descriptor, reading.records, reading.damaged, tuple(messages))
        finally:
            os.close(descriptor)


def _mend(path: Path, data: bytes, reading: Reading) -> list[str]:
    """Make the file hold the header and whole records only, and say what was amiss."""
    messages = []
    if reading.torn:
        messages.append(
            f"{path}: dropped the last line, {reading.torn} bytes of a record whose writing was "
            "cut short; its trial is run again"
        )
    if reading.damaged:
        named = ", ".join(f"{at.line}{f' ({at.key})' if at.key else ''}" for at in reading.damaged)
        messages.append(
            f"{path}: cannot read line {named}; kept the {len(reading.records)} whole records "
            f"before and after, and the damaged file as {_aside(path, data, 'damaged')}"
        )
    whole = HEADER + b"".join(line + b"\n" for line in reading.lines)
    if whole != data:
        with replacing(path) as file:
            file.write(whole)
    return messages


def _aside(path: Path, data: bytes, why: str) -> Path:
    """Keep a copy of the file under the first free name; a kill may have left the same copy."""
    number = 1
    while (copy := path.with_name(f"{path.stem}.{why}-{number}{path.suffix}")).exists():
        if copy.read_bytes() == data:
            return copy
        number += 1
    _write(copy, data)
    return copy


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())

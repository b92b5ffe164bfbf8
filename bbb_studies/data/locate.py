"""Where data files are found, and how tables are read.

No data set comes with the package. `locate` looks for ``SET/FILE`` in the folder that the
environment variable BBB_NUMPY_DATA names; `download` asks OpenML, through scikit-learn. What is
missing raises `MissingDataError`, which says where to get it; what is there but cannot be right
raises `DamagedDataError`. Sources, columns and checksums of all sets are in ``sets.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ENVIRONMENT = "BBB_NUMPY_DATA"
SETS: dict[str, dict[str, Any]] = json.loads(
    (files(__package__) / "sets.json").read_text("utf-8")
)
DEFAULT_LAYOUT = "comma separated with one header line, inputs first, the target last"


class MissingDataError(FileNotFoundError):
    """A data file is not there; the message says where to get it and where to put it."""


class DamagedDataError(ValueError):
    """A data file is there, but is not what its name says."""


def find(name: str, file: str) -> Path | None:
    """Return the path of ``NAME/FILE`` in the data folder, or None if it is not there.

    Parameters
    ----------
    name : str
        Name of the data set, that of its folder.
    file : str
        Name of the file.

    Raises
    ------
    MissingDataError
        If BBB_NUMPY_DATA is set, but to no folder.
    """
    folder = os.environ.get(ENVIRONMENT, "")
    try:
        root = Path(folder).expanduser()
    except RuntimeError:  # "~" without a home folder, or of an unknown user
        root = Path(folder)
    if folder and not root.is_dir():
        raise MissingDataError(
            f"{ENVIRONMENT} is set to {folder!r}, which is no folder. Set it to one that holds a "
            "folder for each data set, or unset it"
        )
    path = root / name / file
    return path if folder and path.is_file() else None


def locate(name: str, file: str = "") -> Path:
    """Return the path of ``NAME/FILE``, by default the set's own file, in the data folder.

    Parameters
    ----------
    name : str
        Name of the data set, a key of ``sets.json``.
    file : str
        Name of the file; by default the set's own.

    Raises
    ------
    MissingDataError
        If it is not there; says where to get it, where to put it and in which format.
    """
    file = file or SETS[name]["file"]
    path = find(name, file)
    if path is None:
        raise _missing(name, file)
    return path


def _missing(name: str, file: str, why: str = "") -> MissingDataError:
    description = SETS[name]
    root = os.environ.get(ENVIRONMENT) or "FOLDER"
    layout = description.get("format", DEFAULT_LAYOUT)
    return MissingDataError(
        f"the file {file} of the data set {name!r} is missing{why}. Get it from "
        f"{description['source']}; put it at {Path(root, name, file)} ({layout}) "
        f"and set {ENVIRONMENT}={root} in the environment"
    )


def check_content(name: str, file: str, content: bytes) -> None:
    """Check the content of a file against the checksum of the published one.

    Parameters
    ----------
    name : str
        Name of the data set.
    file : str
        Name of the file.
    content : bytes
        What it holds.

    Raises
    ------
    DamagedDataError
        If the checksum is another.
    """
    if hashlib.sha256(content).hexdigest() != SETS[name]["sha256"][file]:
        raise DamagedDataError(
            f"{file} does not hold what was published: its checksum is another. Get it again from "
            f"{SETS[name]['source']}"
        )


def read(path: Path, columns: Sequence[str] = ()) -> tuple[list[str], NDArray[np.str_]]:
    """Return the header (C,) and the rows (N, C) of a CSV file, plain or ``.gz``, as text.

    Parameters
    ----------
    path : Path
        The file, plain or ``.gz``.
    columns : sequence of str
        Header that it must have; by default any.

    Raises
    ------
    DamagedDataError
        For another header than `columns`, a row of another length, no rows, or what is not text.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about empty lines
            cells = np.loadtxt(
                path, str, None, ",", quotechar='"', encoding="utf-8", ndmin=2
            )
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DamagedDataError(
            f"{path.name} cannot be read as a table: {error}"
        ) from None
    header = [str(cell).strip() for row in cells[:1] for cell in row]
    if columns and header != list(columns):
        raise DamagedDataError(
            f"{path.name} must begin with the line {','.join(columns)}; "
            f"it begins with {','.join(header)[:200] or 'nothing'}"
        )
    if len(cells) < 2:
        raise DamagedDataError(f"{path.name} has no rows")
    return header, cells[1:]


def numbers(name: str, text: NDArray[np.str_], columns: Sequence[str]) -> Array:
    """Return the cells of a table as finite numbers in float64.

    Parameters
    ----------
    name : str
        Name of the file, for the message.
    text : array (N, C) of str
        Cells.
    columns : sequence of str
        Names of the C columns, for the message.

    Returns
    -------
    array (N, C)

    Raises
    ------
    DamagedDataError
        If a cell is empty, no number, nan or infinite; names the first.
    """

    def number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return float("nan")

    values = np.vectorize(number, otypes=[float])(text)
    for row, column in np.argwhere(~np.isfinite(values)):
        raise DamagedDataError(
            f"{name} holds {text[row, column]!s:.40} where a finite number should be: data "
            f"row {row + 1}, column {columns[column]}"
        )
    return values


def increasing_days(name: str, text: NDArray[np.str_]) -> NDArray[np.datetime64]:
    """Return a column of dates such as 2010-01-04, which must increase.

    Parameters
    ----------
    name : str
        Name of the file, for the message.
    text : array (N,) of str
        Dates.

    Returns
    -------
    array (N,) of datetime64[D]

    Raises
    ------
    DamagedDataError
        If a cell is no date, or is not later than the one before.
    """
    try:
        days = text.astype("datetime64[D]")
    except ValueError as error:
        raise DamagedDataError(
            f"{name}: dates must be like 2010-01-04: {error}"
        ) from None
    for row in np.flatnonzero(np.diff(days) <= np.timedelta64(0, "D")):
        raise DamagedDataError(
            f"{name}: the dates must increase; data row {row + 2} does not"
        )
    return days


def download(name: str, columns: Sequence[str]) -> Array:
    """Return columns of a set as numbers (N, C), from OpenML through scikit-learn.

    scikit-learn keeps a copy, so the next call needs no network. Capitals and punctuation of
    OpenML's names of columns do not matter.

    Parameters
    ----------
    name : str
        Name of the data set, a key of ``sets.json``.
    columns : sequence of str
        Columns to return, in this order.

    Raises
    ------
    MissingDataError
        If no copy at OpenML is known, or scikit-learn, pandas or the network is missing.
    DamagedDataError
        If a column is not in what arrives, or is not made of numbers.
    """
    number = SETS[name].get("openml")
    file = SETS[name]["file"]
    if number is None:
        raise _missing(name, file, ", and no copy of it at OpenML is known")
    try:
        from sklearn.datasets import fetch_openml

        frame = fetch_openml(data_id=number, as_frame=True, parser="auto").frame
    except (
        ImportError,
        OSError,
        ValueError,
    ) as error:  # no scikit-learn, no network or no answer
        reason = f", and OpenML did not give it ({type(error).__name__}: {error})"
        raise _missing(name, file, reason) from error

    def bare(column: object) -> str:
        return "".join(letter for letter in str(column).lower() if letter.isalnum())

    column_by_name = {bare(column): column for column in frame.columns}
    missing = [column for column in columns if bare(column) not in column_by_name]
    if missing:
        raise DamagedDataError(
            f"set {number} of OpenML has no column {', '.join(missing)}; it has "
            f"{', '.join(map(str, frame.columns))}"
        )
    text = (
        frame[[column_by_name[bare(column)] for column in columns]]
        .astype(str)
        .to_numpy(str)
    )
    return numbers(f"set {number} of OpenML", text, columns)

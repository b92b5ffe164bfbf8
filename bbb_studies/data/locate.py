"""Where data files are found, and what to do when they are not.

No data set comes with the package. `locate` looks for ``SET/FILE`` in the folder that the
environment variable BBB_NUMPY_DATA names; `download` asks OpenML, through scikit-learn, for the
sets that are there. What is missing raises `MissingDataError`, which says where to get it; what
is there but cannot be right raises `DamagedDataError`.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.validation import brief

__all__ = [
    "ENVIRONMENT",
    "ORIGINS",
    "DamagedDataError",
    "MissingDataError",
    "Origin",
    "download",
    "find",
    "folder",
    "locate",
    "missing",
    "numbers",
    "read",
]

Array = NDArray[Any]
ENVIRONMENT = "BBB_NUMPY_DATA"


class MissingDataError(FileNotFoundError):
    """A data file is not there; the message says where to get it and where to put it."""


class DamagedDataError(ValueError):
    """A data file is there, but is not what its name says."""


@dataclass(frozen=True)
class Origin:
    """Where a data set comes from, and what its file looks like."""

    source: str
    format: str
    openml: int | None = None  # its number there, if it is there


UCI = "the UCI machine learning repository"
CSV = "comma separated with one header line"
INPUTS_FIRST = f"{CSV}, inputs first, the target last"
ORIGINS = {
    "boston": Origin("StatLib, 'Boston housing' (Harrison and Rubinfeld 1978)", INPUTS_FIRST, 531),
    "concrete": Origin(f"{UCI}, 'Concrete Compressive Strength'", INPUTS_FIRST, 44959),
    "energy": Origin(f"{UCI}, 'Energy Efficiency'; target: heating load", INPUTS_FIRST, 44960),
    "protein": Origin(
        f"{UCI}, 'Physicochemical Properties of Protein Tertiary Structure' (CASP.csv)",
        f"{INPUTS_FIRST} (there it is the first column)",
        44963,
    ),
    "wine_red": Origin(f"{UCI}, 'Wine Quality', red", INPUTS_FIRST, 44972),
    "yacht": Origin(f"{UCI}, 'Yacht Hydrodynamics'", INPUTS_FIRST),
    "power": Origin(
        f"{UCI}, 'Combined Cycle Power Plant', its first sheet",
        f"{INPUTS_FIRST}, in the order of rows of the copies that come with the standard splits",
    ),
    "kin8nm": Origin("DELVE, 'kin family of datasets', kin8nm", INPUTS_FIRST, 44980),
    "naval": Origin(
        f"{UCI}, 'Condition Based Maintenance of Naval Propulsion Plants'; target: the "
        "compressor's decay; the turbine's is left out",
        INPUTS_FIRST,
    ),
    "mushroom": Origin(f"{UCI}, 'Mushroom'", f"{CSV}, the class e or p first", 24),
    "mnist": Origin("LeCun, Cortes and Burges, 'MNIST'", "the four original IDX files, .gz", 554),
    "powerball": Origin(
        "New York State open data, 'Lottery Powerball Winning Numbers: Beginning 2010'",
        f"{CSV}: date (2010-02-03), w1 to w5 (the white balls in increasing order), powerball, "
        "multiplier (may be empty)",
    ),
    "irs_vermont": Origin(
        "Internal Revenue Service, Statistics of Income, ZIP Code Data 2016 (16zpallagi), the "
        "rows of Vermont",
        f"{CSV}, column names in capitals: STATEFIPS, STATE, ZIPCODE, AGI_STUB, N1, ...",
    ),
    "sp500": Origin(
        "the table of closes that comes with skfolio, or the Kaggle sets dgawlik/nyse or "
        "camnugent/sandp500",
        f"{CSV}: date (2010-01-04), then one column per company with its daily closes in USD",
    ),
}


def folder() -> Path | None:
    """Return the folder that BBB_NUMPY_DATA names, or None when it is not set or empty.

    Raises
    ------
    MissingDataError
        If it names something that is not a folder.
    """
    given = os.environ.get(ENVIRONMENT, "")
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        raise MissingDataError(
            f"{ENVIRONMENT} is set to {given!r}, which is "
            f"{'not a folder' if path.exists() else 'not there'}. Set it to the folder that holds "
            "one folder per data set, or unset it"
        )
    return path


def find(name: str, file: str) -> Path | None:
    """Return the path of ``NAME/FILE`` in the data folder, or None if it is not there.

    Raises
    ------
    ValueError
        If no data set is called `name`.
    MissingDataError
        If BBB_NUMPY_DATA names something that is not a folder.
    """
    if not isinstance(name, str) or name not in ORIGINS:
        raise ValueError(
            f"name: no data set is called {brief(name)}; there are {', '.join(ORIGINS)}"
        )
    if not isinstance(file, str) or "\0" in file:
        raise TypeError(f"file must be the name of a file; got {brief(file)}")
    root = folder()
    path = root / name / file if root else None
    return path if path and path.is_file() else None


def locate(name: str, file: str) -> Path:
    """Return the path of ``NAME/FILE`` in the data folder.

    Parameters
    ----------
    name : str
        Name of the set, which is its folder: a key of `ORIGINS`.
    file : str
        E.g. ``powerball_2010_2020.csv``.

    Raises
    ------
    MissingDataError
        If it is not there; says where to get it, where to put it and in which format.
    ValueError
        If no data set is called `name`.
    """
    found = find(name, file)
    if found is None:
        raise missing(name, file)
    return found


def missing(name: str, file: str, why: str = "") -> MissingDataError:
    """Return the error that says where ``NAME/FILE`` comes from and where it goes."""
    origin, root = ORIGINS[name], folder()
    put = root / name / file if root else f"FOLDER/{name}/{file}"
    then = "" if root else f" and set {ENVIRONMENT}=FOLDER in the environment"
    return MissingDataError(
        f"the file {file} of the data set {name!r} is missing{why}. Get it from {origin.source}; "
        f"put it at {put} ({origin.format}){then}"
    )


def read(path: Path, columns: Sequence[str]) -> NDArray[np.str_]:
    """Return the rows of a CSV file as text (N, C), N >= 1.

    Parameters
    ----------
    path : Path
        Plain or ``.gz``.
    columns : sequence of str
        What its header must say.

    Raises
    ------
    DamagedDataError
        For another header, a row of another length, no rows, or what is not text.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile, csv.Error) as error:
        raise DamagedDataError(f"{path.name} cannot be read as text: {error}") from None
    header = [cell.strip() for cell in rows[0]] if rows else []
    if header != list(columns):
        raise DamagedDataError(
            f"{path.name} must begin with the line {','.join(columns)}; "
            f"it begins with {','.join(header)[:200] or 'nothing'}"
        )
    body = [(number, row) for number, row in enumerate(rows[1:], start=2) if row]
    for number, row in body:
        if len(row) != len(header):
            raise DamagedDataError(
                f"row {number} of {path.name} has {len(row)} columns, the header {len(header)}"
            )
    if not body:
        raise DamagedDataError(f"{path.name} has a header and no rows")
    return np.array([row for _, row in body])


def numbers(path: Path, text: NDArray[np.str_], columns: Sequence[str]) -> Array:
    """Return the cells (N, C) of `read` as finite float64, or name the first that is none.

    Raises
    ------
    DamagedDataError
        If a cell is empty, no number, nan or infinite.
    """
    try:
        values = text.astype(float)
    except ValueError:
        values = np.array([[_number(cell) for cell in row] for row in text])
    if not np.isfinite(values).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DamagedDataError(
            f"{path.name} holds {text[row, column]!s:.40} where a finite number should be: data "
            f"row {row + 1}, column {columns[column]}"
        )
    return values


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def download(name: str, columns: Sequence[str]) -> Array:
    """Return columns of a set as numbers (N, C), from OpenML through scikit-learn.

    scikit-learn keeps a copy in its own data folder, so the next call needs no network.

    Parameters
    ----------
    name : str
        A key of `ORIGINS` with a number at OpenML.
    columns : sequence of str
        Wanted, in this order; capitals and punctuation of OpenML's names do not matter.

    Raises
    ------
    MissingDataError
        If no copy at OpenML is known, or scikit-learn, pandas or the network is missing.
    DamagedDataError
        If a column is not in what arrives, or is not made of numbers.
    """
    number, wanted = ORIGINS[name].openml, f"{name}.csv"
    if number is None:
        raise missing(name, wanted, ", and no copy of it at OpenML is known")
    try:
        from sklearn.datasets import fetch_openml

        frame = fetch_openml(data_id=number, as_frame=True, parser="auto").frame
    except ImportError as error:
        reason = f", and downloading it needs scikit-learn and pandas ({error})"
        raise missing(name, wanted, reason) from None
    except (OSError, ValueError) as error:  # no network, or an answer that is none
        reason = f", and OpenML did not give it ({type(error).__name__}: {error})"
        raise missing(name, wanted, reason) from error
    found = {_plain(column): column for column in frame.columns}
    absent = [column for column in columns if _plain(column) not in found]
    if absent:
        raise DamagedDataError(
            f"set {number} of OpenML has no column {', '.join(absent)}; it has "
            f"{', '.join(map(str, frame.columns))}"
        )
    text = np.column_stack([np.asarray(frame[found[_plain(c)]]).astype(str) for c in columns])
    return numbers(Path(f"set {number} of OpenML"), text, columns)


def _plain(column: object) -> str:
    """Return a column's name without capitals and punctuation."""
    return "".join(letter for letter in str(column).lower() if letter.isalnum())

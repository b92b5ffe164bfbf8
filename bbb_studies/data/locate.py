"""Where data files are found, and how tables are read.

No data set comes with the package. `locate` looks for ``SET/FILE`` in the folder that the
environment variable BBB_NUMPY_DATA names; `download` asks OpenML, through scikit-learn. What is
missing raises `MissingDataError`, which says where to get it; what is there but cannot be right
raises `DamagedDataError`.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ENVIRONMENT",
    "ORIGINS",
    "DamagedDataError",
    "MissingDataError",
    "Origin",
    "download",
    "find",
    "increasing_days",
    "locate",
    "numbers",
    "read",
]

Array = NDArray[Any]
ENVIRONMENT = "BBB_NUMPY_DATA"


class MissingDataError(FileNotFoundError):
    """A data file is not there; the message says where to get it and where to put it."""


class DamagedDataError(ValueError):
    """A data file is there, but is not what its name says."""


UCI = "the UCI machine learning repository"
CSV = "comma separated with one header line"
INPUTS_FIRST = f"{CSV}, inputs first, the target last"


@dataclass(frozen=True)
class Origin:
    """Where a data set comes from, and what its file looks like."""

    source: str
    format: str = INPUTS_FIRST
    openml: int | None = None  # its number there, if it is there


ORIGINS = {
    "boston": Origin("StatLib, 'Boston housing' (Harrison and Rubinfeld 1978)", openml=531),
    "concrete": Origin(f"{UCI}, 'Concrete Compressive Strength'", openml=44959),
    "energy": Origin(f"{UCI}, 'Energy Efficiency'; target: heating load", openml=44960),
    "protein": Origin(
        f"{UCI}, 'Physicochemical Properties of Protein Tertiary Structure' (CASP.csv)",
        f"{INPUTS_FIRST} (there it is the first column)",
        44963,
    ),
    "wine_red": Origin(f"{UCI}, 'Wine Quality', red", openml=44972),
    "yacht": Origin(f"{UCI}, 'Yacht Hydrodynamics'"),
    "power": Origin(
        f"{UCI}, 'Combined Cycle Power Plant', its first sheet",
        f"{INPUTS_FIRST}, in the order of rows of the copies that come with the standard splits",
    ),
    "kin8nm": Origin("DELVE, 'kin family of datasets', kin8nm", openml=44980),
    "naval": Origin(
        f"{UCI}, 'Condition Based Maintenance of Naval Propulsion Plants'; target: the "
        "compressor's decay; the turbine's is left out"
    ),
    "mushroom": Origin(f"{UCI}, 'Mushroom'", f"{CSV}, the class e or p first"),
    "mnist": Origin("LeCun, Cortes and Burges, 'MNIST'", "the four original IDX files, .gz"),
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


def _folder() -> Path | None:
    """Return the folder that BBB_NUMPY_DATA names; None when it is not set or empty."""
    given = os.environ.get(ENVIRONMENT, "")
    if given and not Path(given).expanduser().is_dir():
        raise MissingDataError(
            f"{ENVIRONMENT} is set to {given!r}, which is "
            f"{'not a folder' if Path(given).expanduser().exists() else 'not there'}. Set it to "
            "the folder that holds one folder per data set, or unset it"
        )
    return Path(given).expanduser() if given else None


def find(name: str, file: str) -> Path | None:
    """Return the path of ``NAME/FILE`` in the data folder, or None if it is not there."""
    root = _folder()
    path = root / name / file if root else None
    return path if path and path.is_file() else None


def locate(name: str, file: str) -> Path:
    """Return the path of ``NAME/FILE`` in the data folder.

    Raises
    ------
    MissingDataError
        If it is not there; says where to get it, where to put it and in which format.
    """
    found = find(name, file)
    if found is None:
        raise _missing(name, file)
    return found


def _missing(name: str, file: str, why: str = "") -> MissingDataError:
    origin, root = ORIGINS[name], _folder()
    put = root / name / file if root else f"FOLDER/{name}/{file}"
    then = "" if root else f" and set {ENVIRONMENT}=FOLDER in the environment"
    return MissingDataError(
        f"the file {file} of the data set {name!r} is missing{why}. Get it from {origin.source}; "
        f"put it at {put} ({origin.format}){then}"
    )


def read(path: Path, columns: Sequence[str] = ()) -> tuple[list[str], NDArray[np.str_]]:
    """Return the header (C,) and the rows (N, C) of a CSV file, plain or ``.gz``, as text.

    Raises
    ------
    DamagedDataError
        For another header than `columns`, a row of another length, no rows, or what is not text.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # empty lines
            cells = np.loadtxt(path, str, None, ",", quotechar='"', encoding="utf-8", ndmin=2)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DamagedDataError(f"{path.name} cannot be read as a table: {error}") from None
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
    """Return cells (N, C) as finite float64; `name` is the file's, for the message.

    Raises
    ------
    DamagedDataError
        If a cell is empty, no number, nan or infinite; names the first.
    """
    values = np.vectorize(_number, otypes=[float])(text)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise DamagedDataError(
            f"{name} holds {text[row, column]!s:.40} where a finite number should be: data "
            f"row {row + 1}, column {columns[column]}"
        )
    return values


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def increasing_days(name: str, text: NDArray[np.str_]) -> NDArray[np.datetime64]:
    """Return dates such as 2010-01-04 (N,), which must increase.

    Raises
    ------
    DamagedDataError
        If one is no date, or is not after the one before it.
    """
    try:
        found = text.astype("datetime64[D]")
    except ValueError as error:
        raise DamagedDataError(f"{name}: dates must be like 2010-01-04: {error}") from None
    late = np.diff(found) > np.timedelta64(0, "D")
    if not late.all():
        row = int(np.flatnonzero(~late)[0]) + 2
        raise DamagedDataError(f"{name}: the dates must increase; data row {row} does not")
    return found


def download(name: str, columns: Sequence[str]) -> Array:
    """Return columns of a set as numbers (N, C), from OpenML through scikit-learn.

    scikit-learn keeps a copy in its own data folder, so the next call needs no network.

    Capitals and punctuation of OpenML's names of columns do not matter.

    Raises
    ------
    MissingDataError
        If no copy at OpenML is known, or scikit-learn, pandas or the network is missing.
    DamagedDataError
        If a column is not in what arrives, or is not made of numbers.
    """
    number, wanted = ORIGINS[name].openml, f"{name}.csv"
    if number is None:
        raise _missing(name, wanted, ", and no copy of it at OpenML is known")
    try:
        from sklearn.datasets import fetch_openml

        frame = fetch_openml(data_id=number, as_frame=True, parser="auto").frame
    except (ImportError, OSError, ValueError) as error:  # no learners, no network, no answer
        reason = f", and OpenML did not give it ({type(error).__name__}: {error})"
        raise _missing(name, wanted, reason) from error
    found = {_plain(column): column for column in frame.columns}
    absent = [column for column in columns if _plain(column) not in found]
    if absent:
        raise DamagedDataError(
            f"set {number} of OpenML has no column {', '.join(absent)}; it has "
            f"{', '.join(map(str, frame.columns))}"
        )
    text = frame[[found[_plain(column)] for column in columns]].astype(str).to_numpy(str)
    return numbers(f"set {number} of OpenML", text, columns)


def _plain(column: object) -> str:
    """Return a column's name without capitals and punctuation."""
    return "".join(letter for letter in str(column).lower() if letter.isalnum())

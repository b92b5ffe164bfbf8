"""Nine UCI regression sets with their standard splits.

The splits are those of Hernandez-Lobato and Adams (2015): row numbers, so they mean something
only for the published rows in the published order. `load` therefore checks what it found against
known sums over rows and their places, and refuses anything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.validation import MOST_SAMPLES, brief, whole

from .locate import DamagedDataError, download, find, numbers, read

__all__ = ["NAMES", "UCISet", "load", "published_splits", "standard_splits"]

Array = NDArray[Any]
# Relative, since copies differ in their last digits. Two rows that change places change the sums by
# more, but for neighbours, and a few in a hundred others, in sets of many rows.
CLOSE = 1e-7


class UCISet(NamedTuple):
    """A regression set and its standard splits."""

    x: Array  # (N, d_in)  in the units of the source
    y: Array  # (N, 1)
    test_rows: tuple[NDArray[np.int_], ...]  # row numbers of each test part, published order
    names: tuple[str, ...]  # d_in inputs, then the target

    def training_rows(self, split: int) -> NDArray[np.int_]:
        """Return the row numbers of the training part of a split, increasing."""
        rest = np.ones(len(self.y), bool)
        rest[self.test_rows[split]] = False
        return np.flatnonzero(rest)


class _Known(NamedTuple):
    """What is known of a set: its columns, rows, standard splits, and sums (see `_check`)."""

    header: str  # the inputs, then the target
    rows: int
    splits: int
    targets: float
    inputs: float
    file: str = ""


_SETS = {
    "boston": _Known(
        "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV",
        *(506, 20, 21.333115045489627, 970.1298012146937),
    ),
    "concrete": _Known(
        "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate "
        "fine_aggregate age strength",
        *(1030, 20, 32.8219067546825, 2367.0891397738073),
    ),
    "energy": _Known(
        "relative_compactness surface_area wall_area roof_area overall_height orientation "
        "glazing_area glazing_area_distribution heating_load",
        *(768, 20, 23.53298937337451, 1184.6810362483745),
    ),
    "protein": _Known(
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 RMSD",
        *(45730, 5, 7.785701946661225, 1387278.0123091785),
        "protein.csv.gz",
    ),
    "wine_red": _Known(
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides "
        "free_sulfur_dioxide total_sulfur_dioxide density pH sulphates alcohol quality",
        *(1599, 20, 5.6669770168855536, 87.61986297186525),
    ),
    "yacht": _Known(
        "longitudinal_position prismatic_coefficient length_displacement beam_draught "
        "length_beam froude_number resistance",
        *(308, 20, 10.951167360147943, 10.3164182112386),
    ),
    "power": _Known(
        "AT V AP RH PE",
        *(9568, 20, 454.4448816005802, 1160.6444248297264),
    ),
    "kin8nm": _Known(
        "theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8 y",
        *(8192, 20, 0.7121238673938531, 0.006176898109712013),
        "kin8nm.csv.gz",
    ),
    "naval": _Known(
        "lever_position ship_speed gas_turbine_shaft_torque gas_turbine_revolutions "
        "gas_generator_revolutions starboard_propeller_torque port_propeller_torque "
        "hp_turbine_exit_temperature gt_compressor_inlet_temperature "
        "gt_compressor_outlet_temperature hp_turbine_exit_pressure gt_compressor_inlet_pressure "
        "gt_compressor_outlet_pressure gt_exhaust_pressure turbine_injection_control fuel_flow "
        "compressor_decay",
        *(11934, 20, 0.9834960201089226, 39811.23063638038),
        "naval.csv.gz",
    ),
}
NAMES = tuple(_SETS)


def published_splits(name: str) -> int:
    """Return the number of published splits of a set: 20, and 5 for protein."""
    return _known(name).splits


def _known(name: str) -> _Known:
    if not isinstance(name, str) or name not in _SETS:
        raise ValueError(f"name: there is no UCI set {brief(name)}; there are {', '.join(NAMES)}")
    return _SETS[name]


def standard_splits(rows: int, splits: int = 20) -> tuple[NDArray[np.int_], ...]:
    """Return the row numbers of the test part of every split, in the published order.

    Nine tenths of the rows, rounded, are for training. Splits beyond 20 (for ``protein``: 5)
    continue the published recipe, but are not published.
    """
    rows = whole("rows", rows, 2, 10**8)
    splits = whole("splits", splits, 1, MOST_SAMPLES)
    state = np.random.RandomState(1)
    end = round(rows * 9.0 / 10)
    return tuple(state.choice(range(rows), rows, replace=False)[end:] for _ in range(splits))


def load(name: str, splits: int | None = None) -> UCISet:
    """Load a set from the data folder, or else from OpenML.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    splits : int, optional
        Default: the published number, 20, and 5 for protein.

    Raises
    ------
    ValueError
        If there is no such set.
    MissingDataError
        If it is in neither place; says where to get it and where to put it.
    DamagedDataError
        If what is there is not the published set in the published order.
    """
    known = _known(name)
    columns = tuple(known.header.split())
    path = find(name, known.file or f"{name}.csv")
    if path is None:
        table, found = download(name, columns), f"OpenML's copy of {name}"
    else:
        table, found = numbers(path.name, read(path, columns)[1], columns), path.name
    x, y = np.ascontiguousarray(table[:, :-1]), table[:, -1:].copy()
    _check(found, known, x, y)
    parts = standard_splits(len(y), known.splits if splits is None else splits)
    return UCISet(x, y, parts, columns)


def _check(name: str, known: _Known, x: Array, y: Array) -> None:
    """Refuse other rows, or another order: means of y and of sum_j x_j, weighted by place."""
    if len(y) != known.rows:
        raise DamagedDataError(f"{name} has {len(y)} rows; the set has {known.rows}")
    place = np.arange(1, len(y) + 1) / (0.5 * len(y) * (len(y) + 1))
    found = float(place @ y[:, 0]), float(place @ x.sum(axis=1))
    if not np.allclose(found, (known.targets, known.inputs), rtol=CLOSE, atol=0.0):
        raise DamagedDataError(
            f"{name} does not hold the published rows in the published order, to which the "
            f"standard splits belong: means weighted by place {found[0]:.9g} and {found[1]:.9g}, "
            f"published {known.targets:.9g} and {known.inputs:.9g}"
        )

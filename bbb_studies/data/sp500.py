"""Next-day directions of S&P 500 companies from strictly past prices (Mullachery et al.; D38).

The paper leaves this set unfinished. A *row* is one company on one day t: its inputs use closes up
to day t, its target is whether the close of day t + 1 is higher. `splits` says which rows may
train what: for a test period, those whose target was known before the period begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .locate import SETS, DamagedDataError, increasing_days, locate, numbers, read

Array = NDArray[Any]
Days = NDArray[np.datetime64]
FILE: str = SETS["sp500"]["file"]
MONTH, WEEK = 20, 5  # trading days
HISTORY = MONTH + 1  # closes that the inputs of one day need, that day's included

INPUTS = (
    *(f"return {lag} d ago" if lag else "return today" for lag in range(WEEK)),
    "return of 20 d",
    "log volatility",
    "market today",
    "market 5 d",
    "market 20 d",
    "log market volatility",
)


class Prices(NamedTuple):
    """Closes of C companies on D trading days."""

    dates: Days  # (D,)  increasing
    symbols: tuple[str, ...]
    close: Array  # (D, C)  USD, adjusted, > 0
    dropped: tuple[str, ...] = ()  # companies left out because a day is missing


class Table(NamedTuple):
    """What is known and what is asked, N = days x companies rows in the order of days."""

    x: Array  # (N, d_in)  the columns of `INPUTS`
    y: Array  # (N, 1)  1 if the next close is higher, else 0
    day: NDArray[np.intp]  # (N,)  index of the day t on which the forecast is made
    company: NDArray[np.intp]  # (N,)
    made: Days  # (N,)  date of day t
    known: Days  # (N,)  date of day t + 1, when the target is known


class Split(NamedTuple):
    """Rows that train and rows that test."""

    name: str
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def load(file: str = FILE) -> Prices:
    """Read a table of closes: ``date``, then one column for each company.

    Companies that lack a close on any day are left out, and named in `dropped`: that they were
    listed throughout is known only afterwards, so what remains has survived.

    Raises
    ------
    MissingDataError
        If the file is not there; says where to get it.
    DamagedDataError
        If it is no such table, dates do not increase, or a close is not positive.
    """
    header, text = read(locate("sp500", file))
    if len(header) < 2 or header[0] != "date":
        raise DamagedDataError(f"{file} must begin with the line date,SYMBOL,...")
    whole_columns = np.flatnonzero((text != "").all(axis=0))
    symbols = [header[i] for i in whole_columns[1:]]
    dates = increasing_days(file, text[:, 0])
    close = numbers(file, text[:, whole_columns[1:]], symbols)
    if not (close > 0).all():
        raise DamagedDataError(f"{file}: closes must be positive")
    return Prices(dates, tuple(symbols), close, tuple(sorted(set(header[1:]) - set(symbols))))


def inputs(close: Array) -> Array:
    """Return the inputs (D - 20, C, d_in) of every day from the 21st on (D38).

    Those of a day use closes (D, C) of that day and before: changing later prices changes no bit
    of them. Returns are logarithmic and in units of the volatility of the past 20 days; the
    market is the mean of all companies. Adjusted closes are scaled down by the dividends and
    splits that follow; ratios of closes, of which all inputs are made, are free of that scale.
    """
    change = np.diff(np.log(close), axis=0)  # (D-1, C)  D38: row i is known on day i + 1
    market = change.mean(axis=1, keepdims=True)
    own, own_volatility = _windows(change)
    all_own, all_volatility = _windows(market)
    of_all = [
        all_own[..., -1] / all_volatility,
        all_own[..., -WEEK:].sum(axis=-1) / (all_volatility * WEEK**0.5),
        all_own.sum(axis=-1) / (all_volatility * MONTH**0.5),
        np.log(all_volatility),
    ]
    columns = [
        *(own[..., -1 - lag] / own_volatility for lag in range(WEEK)),
        own.sum(axis=-1) / (own_volatility * MONTH**0.5),
        np.log(own_volatility),
        *(np.broadcast_to(column, own_volatility.shape) for column in of_all),
    ]
    return np.stack(columns, axis=-1)


def _windows(change: Array) -> tuple[Array, Array]:
    """Return the last 20 changes of each day (D-20, C, 20), and their root mean square."""
    # A copy, so that every window is summed in the same order, wherever it lies in memory.
    windows = np.ascontiguousarray(sliding_window_view(change, MONTH, axis=0))
    return windows, np.sqrt((windows * windows).mean(axis=-1)) + 1e-6  # a price may stand still


def rows(prices: Prices) -> Table:
    """Return inputs and targets of all companies on all days that have both (D38)."""
    x = inputs(prices.close)[:-1]  # the last day has no next one
    days, companies = x.shape[:2]
    day = np.arange(HISTORY - 1, HISTORY - 1 + days)
    y = (prices.close[day + 1] > prices.close[day]).astype(float)
    every, company = np.repeat(day, companies), np.tile(np.arange(companies), days)
    made, known = prices.dates[every], prices.dates[every + 1]
    return Table(x.reshape(len(every), -1), y.reshape(-1, 1), every, company, made, known)


def splits(table: Table, first: int, thin: int = 1) -> Iterator[Split]:
    """Yield one split per calendar year from `first` on: train on the past, test on the year (D38).

    A row belongs to the year in which its target becomes known. It may train if that is before
    the first forecast of the tested year is made, or on that very day, after its close.

    Each company trains once in `thin` days, in turn: companies of one day move together and
    count for little more than a few. All of them are tested.

    ValueError if a year tested has no row, or nothing is known before it.
    """
    year = table.known.astype("datetime64[Y]").astype(int) + 1970
    in_turn = (table.day + table.company) % thin == 0
    if not table.made.size or not year.min() < first <= year.max():
        raise ValueError(
            f"first must be a year after the first of the data and in them; got {first}"
        )
    for tested in range(first, int(year.max()) + 1):
        test = np.flatnonzero(year == tested)
        if not test.size:
            raise ValueError(f"the year {tested} has no rows")
        train = np.flatnonzero((table.known <= table.made[test].min()) & in_turn)
        yield Split(str(tested), train, test)

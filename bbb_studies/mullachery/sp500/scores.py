"""Walk-forward forecasts of next-day directions, and how they are judged (D38)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.calibration import (
    brier,
    chance_calibration_error,
    clustered_mean,
    expected_calibration_error,
    reliability,
)
from bbb_numpy.progress import Done, counted, unseen
from bbb_studies.data import sp500 as data
from bbb_studies.data.sp500 import Prices, Table

from .models import FORECASTERS, Effort, Forecast, Task, logistic

__all__ = [
    "BASE",
    "FIRST",
    "THIN",
    "Facts",
    "Result",
    "Scores",
    "Walk",
    "design_effect",
    "facts",
    "leak",
    "log_loss",
    "measure",
    "walk_forward",
]

Array = NDArray[Any]
FIRST, THIN = 2012, 5
BASE = "climatology"


class Result(NamedTuple):
    """All forecasts of one forecaster, in the order of the test rows."""

    proba: Array  # (M,)
    up: NDArray[np.bool_]  # (M,)
    notes: list[dict[str, float]]  # of each year
    seconds: float


class Walk(NamedTuple):
    """Forecasts of the same M rows by every forecaster, and what happened."""

    results: dict[str, Result]
    y: Array  # (M,)
    made: NDArray[np.datetime64]  # (M,)  day of the forecast
    year: NDArray[np.int_]  # (M,)


def walk_forward(
    rows: Table,
    *,
    forecasters: Mapping[str, Callable[[Task], Forecast]] = FORECASTERS,
    first: int = FIRST,
    thin: int = THIN,
    effort: Effort | None = None,
    seed: int = 0,
    done: Done = unseen,
) -> Walk:
    """Refit every forecaster each year on all that was known, and forecast the year (D38).

    Parameters
    ----------
    rows : Table
    forecasters : mapping of str to callable
    first : int
        First year forecast.
    thin : int
        Networks train on every company once in `thin` days.
    effort : Effort, optional
    seed : int
        Same seed, same forecasts; those of a year do not depend on what comes after it.
    done : callable
        Is told of every forecast of a year.
    """
    effort = effort or Effort()
    tests: list[NDArray[np.intp]] = []
    found: dict[str, list[Forecast]] = {name: [] for name in forecasters}
    seconds = dict.fromkeys(forecasters, 0.0)
    every = list(data.splits(rows, first))
    for all_of_them, thinned in zip(every, data.splits(rows, first, thin), strict=True):
        train, test = all_of_them.train, all_of_them.test
        task = Task(
            rows.x[train],
            rows.y[train],
            np.searchsorted(train, thinned.train),
            rows.x[test],
            (seed, int(all_of_them.name)),
            effort,
        )
        tests.append(test)
        for name, forecaster in counted(forecasters.items(), done):
            began = perf_counter()
            found[name].append(forecaster(task))
            seconds[name] += perf_counter() - began
    chosen = np.concatenate(tests)
    results = {
        name: Result(
            np.concatenate([one.proba for one in some]),
            np.concatenate([one.up for one in some]),
            [one.note for one in some],
            seconds[name],
        )
        for name, some in found.items()
    }
    year = rows.known[chosen].astype("datetime64[Y]").astype(int) + 1970
    return Walk(results, rows.y[chosen, 0], rows.made[chosen], year)


def leak(rows: Table, companies: int, **options: Any) -> float:
    """Return the accuracy of logistic regression whose inputs are one day too new: a planted error.

    Its inputs of day t are those of day t + 1, which contain the change that is to be forecast.
    """
    wrong = rows._replace(x=np.concatenate([rows.x[companies:], rows.x[-companies:]]))
    walk = walk_forward(wrong, forecasters={"leak": logistic}, **options)
    return float((walk.results["leak"].up == walk.y).mean())


def log_loss(proba: Array, y: Array) -> Array:
    """Return -log of the probability stated for what happened (M,), in nats."""
    return -np.log(np.where(y == 1, proba, 1.0 - proba))


class Scores(NamedTuple):
    """What is said of one forecaster; pairs are mean and standard error, clustered by day.

    Gains are over climatology on the same rows, positive where the forecaster is better.
    """

    accuracy: tuple[float, float]
    log_loss: tuple[float, float]  # nats
    brier: tuple[float, float]
    accuracy_gained: tuple[float, float]
    log_loss_gained: tuple[float, float]
    brier_gained: tuple[float, float]
    years: dict[str, tuple[float, float]]  # log loss gained
    calibration_error: float
    calibration_error_by_chance: float
    spread_of_the_probabilities: float
    seconds: float

    @property
    def gains(self) -> dict[str, tuple[float, float]]:
        """All gains over climatology."""
        return {
            "accuracy": self.accuracy_gained,
            "log loss": self.log_loss_gained,
            "Brier": self.brier_gained,
        }


def measure(walk: Walk) -> dict[str, Scores]:
    """Return the scores of every forecaster."""
    base = walk.results[BASE]
    right_base, loss_base = base.up == walk.y, log_loss(base.proba, walk.y)
    out = {}
    for name, result in walk.results.items():
        right = (result.up == walk.y).astype(float)
        loss, squares = log_loss(result.proba, walk.y), brier(result.proba, walk.y)
        gained = loss_base - loss
        bins = reliability(result.proba, walk.y, 10, "equal mass")
        years = {}
        for year in np.unique(walk.year):
            chosen = walk.year == year
            years[str(year)] = clustered_mean(gained[chosen], walk.made[chosen])
        out[name] = Scores(
            accuracy=clustered_mean(right, walk.made),
            log_loss=clustered_mean(loss, walk.made),
            brier=clustered_mean(squares, walk.made),
            accuracy_gained=clustered_mean(right - right_base, walk.made),
            log_loss_gained=clustered_mean(gained, walk.made),
            brier_gained=clustered_mean(brier(base.proba, walk.y) - squares, walk.made),
            years=years,
            calibration_error=expected_calibration_error(bins),
            calibration_error_by_chance=chance_calibration_error(bins),
            spread_of_the_probabilities=float(result.proba.std()),
            seconds=result.seconds,
        )
    return out


def design_effect(walk: Walk) -> float:
    """Return how many times the variance of a mean is that of independent rows."""
    _, error = clustered_mean(walk.y, walk.made)
    return float(error**2 * len(walk.y) / walk.y.var())


class Facts(NamedTuple):
    """What a table of prices holds, and what of it was forecast."""

    companies: int
    dropped: int  # not listed on every day
    days: int
    years: tuple[int, int]
    rows_tested: int
    days_tested: int
    rises: float
    design_effect: float
    naive_error: float  # of the share of rises, were rows independent


def facts(prices: Prices, walk: Walk) -> Facts:
    """Return the facts of a table and its forecasts."""
    return Facts(
        companies=len(prices.symbols),
        dropped=len(prices.dropped),
        days=len(prices.dates),
        years=(int(walk.year.min()), int(walk.year.max())),
        rows_tested=len(walk.y),
        days_tested=len(np.unique(walk.made)),
        rises=float(walk.y.mean()),
        design_effect=design_effect(walk),
        naive_error=float(np.sqrt(walk.y.var() / len(walk.y))),
    )

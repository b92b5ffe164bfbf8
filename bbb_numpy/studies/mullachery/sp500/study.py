"""S&P 500: is the next day's direction predictable from past prices? (Mullachery et al.; D38).

Walk-forward: every year is forecast by what was known when it began. The paper reports nothing;
here every forecaster is set against the share of rises so far, with errors that respect that the
companies of one day move together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.data import sp500 as data
from bbb_numpy.data.sp500 import Table
from bbb_numpy.evaluation.calibration import (
    brier,
    chance_calibration_error,
    clustered_mean,
    expected_calibration_error,
    reliability,
)

from . import plots
from .models import FORECASTERS, Effort, Forecast, Task, logistic
from .text import summarise

__all__ = [
    "FIRST",
    "THIN",
    "Result",
    "Walk",
    "design_effect",
    "leak",
    "log_loss",
    "measure",
    "reproduce",
    "walk_forward",
]

Array = NDArray[Any]
FIRST, THIN = 2012, 5
SECOND, SECOND_FIRST = "close_505_2013_2018.csv.gz", 2015  # a second table, baselines alone
BASELINES = ("climatology", "last value", "logistic regression")


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
        for name, forecaster in forecasters.items():
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


def measure(walk: Walk) -> dict[str, dict[str, Any]]:
    """Return mean scores and their errors, clustered by day, for every forecaster.

    Each score is a pair (mean, error); those named "... gained" are differences to climatology on
    the same rows, positive where the forecaster is better.
    """
    base = walk.results["climatology"]
    out: dict[str, dict[str, Any]] = {}
    for name, result in walk.results.items():
        right = (result.up == walk.y).astype(float)
        loss, loss_base = log_loss(result.proba, walk.y), log_loss(base.proba, walk.y)
        better = {
            "accuracy gained": right - (base.up == walk.y),
            "log loss gained": loss_base - loss,
            "Brier gained": brier(base.proba, walk.y) - brier(result.proba, walk.y),
        }
        bins = reliability(result.proba, walk.y, 10, "equal mass")
        out[name] = {
            "accuracy": clustered_mean(right, walk.made),
            "log loss": clustered_mean(loss, walk.made),
            "Brier": clustered_mean(brier(result.proba, walk.y), walk.made),
            **{key: clustered_mean(value, walk.made) for key, value in better.items()},
            "years": {
                str(year): clustered_mean(
                    better["log loss gained"][walk.year == year], walk.made[walk.year == year]
                )
                for year in np.unique(walk.year)
            },
            "calibration error": expected_calibration_error(bins),
            "calibration error by chance": chance_calibration_error(bins),
            "spread of the probabilities": float(result.proba.std()),
            "seconds": result.seconds,
        }
    return out


def design_effect(walk: Walk) -> float:
    """Return how many times the variance of a mean is that of independent rows."""
    _, error = clustered_mean(walk.y, walk.made)
    return float(error**2 * len(walk.y) / walk.y.var())


def reproduce(out: Path, seed: int = 0, *, effort: Effort | None = None) -> str:
    """Run everything, write ``forecasts.png`` and ``numbers.json`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
    effort : Effort, optional
        Less, for a quick look.

    Raises
    ------
    MissingDataError
        Without the data; says where to get them.
    """
    out.mkdir(parents=True, exist_ok=True)
    prices = data.load()
    rows = data.rows(prices)
    walk = walk_forward(rows, effort=effort, seed=seed)
    numbers = measure(walk)
    facts = {
        "companies": len(prices.symbols),
        "days": len(prices.dates),
        "rows tested": len(walk.y),
        "days tested": len(np.unique(walk.made)),
        "rises": float(walk.y.mean()),
        "design effect": design_effect(walk),
        "thinned": THIN,
        "accuracy with a planted leak": leak(rows, len(prices.symbols)),
    }
    second = _second_table()
    plots.draw(walk, numbers).savefig(out / "forecasts.png", dpi=100)
    stored = {"seed": seed, "facts": facts, "forecasters": numbers, "second table": second}
    text = json.dumps(stored, indent=1, allow_nan=False)
    (out / "numbers.json").write_text(text + "\n", encoding="utf-8")
    return summarise(facts, numbers, walk, second)


def _second_table() -> dict[str, Any]:
    """Return facts and scores of the baselines on more companies and other years."""
    prices = data.load(SECOND)
    forecasters = {name: FORECASTERS[name] for name in BASELINES}
    walk = walk_forward(data.rows(prices), forecasters=forecasters, first=SECOND_FIRST)
    return {
        "companies": len(prices.symbols),
        "dropped": len(prices.dropped),
        "rows tested": len(walk.y),
        "years": [int(walk.year.min()), int(walk.year.max())],
        "design effect": design_effect(walk),
        "forecasters": measure(walk),
    }

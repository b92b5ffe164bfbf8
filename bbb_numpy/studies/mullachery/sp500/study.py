"""S&P 500: is the next day's direction predictable from past prices? (Mullachery et al.; D38).

Walk-forward: every year is forecast by what was known when it began. The paper reports nothing;
here every forecaster is set against the share of rises so far, with errors that respect that the
companies of one day move together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bbb_numpy.data import sp500 as data
from bbb_numpy.progress import steps
from bbb_numpy.studies.comparing import write

from . import plots, tables
from .models import FORECASTERS, Effort
from .scores import BASE, FIRST, Facts, Scores, Walk, facts, leak, measure, walk_forward

__all__ = ["SECOND", "Study", "compute", "reproduce"]

SECOND, SECOND_FIRST = "close_505_2013_2018.csv.gz", 2015  # a second table, baselines alone
BASELINES = (BASE, "last value", "logistic regression")


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was computed; `second` on more companies and other years."""

    facts: Facts
    walk: Walk
    scores: Mapping[str, Scores]
    leaked: float  # accuracy with inputs one day too new
    second_facts: Facts
    second_scores: Mapping[str, Scores]


def compute(seed: int = 0, effort: Effort | None = None, progress: bool | None = None) -> Study:
    """Forecast and judge both tables of prices."""
    prices, second = data.load(), data.load(SECOND)
    rows = data.rows(prices)
    others = data.rows(second)
    baselines = {name: FORECASTERS[name] for name in BASELINES}
    years = len(list(data.splits(rows, FIRST)))
    work = years * (len(FORECASTERS) + 1)
    work += len(list(data.splits(others, SECOND_FIRST))) * len(baselines)
    with steps(work, progress) as done:
        walk = walk_forward(rows, effort=effort, seed=seed, done=done)
        other = walk_forward(others, forecasters=baselines, first=SECOND_FIRST, done=done)
        leaked = leak(rows, len(prices.symbols), done=done)
    return Study(
        facts(prices, walk), walk, measure(walk), leaked, facts(second, other), measure(other)
    )


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``forecasts.png`` and ``numbers.json``, return the tables."""
    study = compute(seed, effort, progress)
    found = {
        "seed": seed,
        "facts": study.facts,
        "accuracy with a planted leak": study.leaked,
        "forecasters": study.scores,
        "second table": study.second_facts,
        "its forecasters": study.second_scores,
    }
    write(out, {"forecasts": plots.draw(study.walk, study.scores)}, found)
    prices = {"first": study.facts, "second": study.second_facts}
    return tables.lay_out(prices, study.walk, study.scores, study.leaked, study.second_scores)

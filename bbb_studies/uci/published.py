"""What others have printed for the same nine sets: for comparison, none of it measured here.

RMSE and mean negative test log-likelihood per point, in the units of the targets, as printed; lower
is better. A number that could not be read, at its source or where somebody quotes it, is left out:
what is not here may exist. The numbers and where they are from are in ``published.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["BASELINE", "COLUMNS", "DROPOUT", "METRICS", "PUBLISHED", "Published", "best"]
__all__ += ["lowest", "printed"]

COLUMNS = (  # in the order of print
    *("boston", "concrete", "energy", "protein", "wine_red"),
    *("yacht", "power", "kin8nm", "naval"),
)
METRICS = ("rmse", "nll")


@dataclass(frozen=True)
class Published:
    """One printed row."""

    name: str
    source: str  # who, when, where it was read
    differs: str  # from what is done here
    scores: Mapping[str, Sequence[float | None]]  # set -> (rmse, nll), None where nothing was read
    bayesian: bool = True  # a posterior, or an approximation of one, over a network's weights
    reported_false: bool = False  # never a number to reach

    def score(self, name: str, metric: str) -> float | None:
        """Return the number printed for a set and a metric; None if there is none here."""
        return self.scores.get(name, (None, None))[METRICS.index(metric)]


_TEXT = files(__package__).joinpath("published.json").read_text("utf-8")
PUBLISHED = tuple(Published(**row) for row in json.loads(_TEXT))
_BY_NAME = {row.name: row for row in PUBLISHED}
BASELINE = _BY_NAME["Bayes by Backprop, best public implementation"]
DROPOUT = _BY_NAME["MC dropout, grid search per split"]


def lowest(name: str, metric: str, rows: Sequence[Published]) -> tuple[float, str] | None:
    """Return the lowest number of some rows that are not reported false, and who has it."""
    found = {row.name: row.score(name, metric) for row in rows if not row.reported_false}
    known = {who: value for who, value in found.items() if value is not None}
    if not known:
        return None
    least = min(known.values())
    return least, " and ".join(who for who, value in known.items() if value == least)


def best(name: str, metric: str) -> float:
    """Return the lowest number of the Bayesian networks listed, never one reported false."""
    found = lowest(name, metric, [row for row in PUBLISHED if row.bayesian])
    assert found is not None  # every cell has one
    return found[0]


def printed(value: float | None) -> str:
    """Return a number as it was printed: two decimals, or as many as it has."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value == round(value, 2) else f"{value:.10g}"

"""Income tax per return by ZIP code and class of income: the regression that the paper left open.

Cross-validation keeps every ZIP code whole. Models differ in what they know of the mean and in
what they know of the noise; scores say which of the two mattered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bbb_numpy.data import income_tax as data
from bbb_numpy.data.income_tax import Cells
from bbb_numpy.progress import steps
from bbb_numpy.studies.comparing import write

from . import plots, tables
from .models import MODELS, Effort
from .scores import FOLDS, Result, Scores, cross_validate, measure

__all__ = ["Study", "compute", "reproduce"]


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was computed."""

    cells: Cells
    results: Mapping[str, Result]
    scores: Mapping[str, Scores]


def compute(seed: int = 0, effort: Effort | None = None, progress: bool | None = None) -> Study:
    """Predict every cell by every model, and judge the predictions."""
    cells = data.load()
    with steps(FOLDS * len(MODELS), progress) as done:
        results = cross_validate(cells, effort=effort, seed=seed, done=done)
    return Study(cells, results, measure(cells, results))


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``tax.png`` and ``numbers.json`` into `out`, return the tables."""
    study = compute(seed, effort, progress)
    found = {"seed": seed, "facts": tables.facts(study.cells), "models": study.scores}
    write(out, {"tax": plots.draw(study.cells, study.results)}, found)
    return tables.lay_out(study.cells, study.scores)

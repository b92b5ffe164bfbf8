"""Income tax per return by ZIP code and class of income: the regression that the paper left open.

Cross-validation keeps every ZIP code whole. Models differ in what they know of the mean and in
what they know of the noise; scores say which of the two mattered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbb_numpy.data import income_tax as data
from bbb_numpy.data.income_tax import Cells
from bbb_numpy.numeric.files import write_json
from bbb_numpy.progress import steps

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
    """Run everything, write ``tax.png`` and ``numbers.json`` into `out`, return the tables.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of the folds, the training and the chains.
    effort : Effort, optional
        Less, for a quick look.
    progress : bool, optional
        Show a progress bar; by default only to a person.

    Raises
    ------
    MissingDataError
        Without the data; says where to get them.
    """
    out.mkdir(parents=True, exist_ok=True)
    study = compute(seed, effort, progress)
    plots.draw(study.cells, study.results).savefig(out / "tax.png", dpi=100)
    found: dict[str, Any] = {
        "seed": seed,
        "facts": tables.facts(study.cells),
        "models": {name: one._asdict() for name, one in study.scores.items()},
    }
    write_json(out / "numbers.json", found)
    return tables.lay_out(study.cells, study.scores)

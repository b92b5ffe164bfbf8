"""Occam's razor at work, in real numbers: Figure 6 of Mullachery et al. (M20, M21).

(a) Labels: eight points on a line have 256 label vectors. For three logistic models, a straight
line, a parabola and a polynomial of degree 7, and for a network, the evidence of *all* of them:
each model has probability one to spend.
(b) Regression: a line, a small and a large network, each judged by annealed importance sampling
on data drawn from each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bbb_numpy.progress import counted, steps
from bbb_numpy.studies.comparing import write

from . import plots, tables
from .models import LABELS, Budget, Labelled, label_models
from .scores import Checked, Measured, check_labels, divergences, measure

__all__ = ["Study", "compute", "reproduce"]


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was computed."""

    models: Mapping[str, Labelled]
    checks: Sequence[Checked]
    regressions: Sequence[Measured]


def compute(seed: int = 0, budget: Budget | None = None, progress: bool | None = None) -> Study:
    """Find the evidence of all label vectors, some of it once more, and that of regressions."""
    budget = budget or Budget()
    first, second, third = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    with steps(4 * budget.checked + 3 * 4 * budget.sets, progress) as done:
        models = label_models(first, budget)
        checks = list(counted(check_labels(models, second, budget), done))
        return Study(models, checks, measure(third, budget, done))


def reproduce(
    out: Path, seed: int = 0, *, budget: Budget | None = None, progress: bool | None = None
) -> str:
    """Compute, write ``occam.png`` and ``occam.json`` into `out`, return the tables."""
    budget = budget or Budget()
    study = compute(seed, budget, progress)
    picture = plots.razor(study.models, study.regressions)
    write(out, {"occam": picture}, _numbers(study), "occam")
    return tables.lay_out(study.models, study.checks, study.regressions, budget)


def _numbers(study: Study) -> dict[str, Any]:
    return {
        "labels": {
            name: {"probability": m.probability, "error": m.error}
            for name, m in study.models.items()
        },
        "checks": [
            {
                "model": check.model,
                "labels": LABELS[check.labels],
                "log_probability": check.known,
                "its error": check.known_error,
                "annealed": check.run.log_evidence,
                "error": check.run.error,
            }
            for check in study.checks
        ],
        "divergences": divergences(study.models),
        "regressions": [
            {"source": one.source, "y": one.y[:, 0], "found": one.found}
            for one in study.regressions
        ],
    }

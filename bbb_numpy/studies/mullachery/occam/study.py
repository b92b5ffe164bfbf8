"""Occam's razor at work, in real numbers: Figure 6 of Mullachery et al. (M20, M21).

(a) Labels: eight points on a line have 256 label vectors. For three logistic models, a straight
line, a parabola and a polynomial of degree 7, and for a network, the evidence of *all* of them:
each model has probability one to spend.
(b) Regression: a line, a small and a large network, each judged by annealed importance sampling
on data drawn from each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bbb_numpy.sampling.annealing import Annealed

from . import plots, text
from .models import LABELS, Budget, Labelled, label_models
from .scores import check_labels, divergences, measure

__all__ = ["reproduce"]


def reproduce(out: Path, seed: int = 0, *, budget: Budget | None = None) -> str:
    """Measure, write ``occam.png``, ``.json`` and ``.txt`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of data sets, prior draws and chains.
    budget : Budget, optional
        Less for a quick look.
    """
    budget = budget or Budget()
    out.mkdir(parents=True, exist_ok=True)
    first, second, third = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    models = label_models(first, budget)
    checks = list(check_labels(models, second, budget))
    measured = measure(third, budget)
    summary = text.summarise(models, checks, measured, budget)
    (out / "occam.txt").write_text(summary + "\n", encoding="utf-8")
    plots.razor(models, measured).savefig(out / "occam.png", dpi=100)
    found = {
        "labels": {
            name: {"probability": m.probability.tolist(), "error": m.error.tolist()}
            for name, m in models.items()
        },
        "checks": _rows(models, checks),
        "divergences": divergences(models),
        "regressions": [
            {"source": m.source, "y": m.y[:, 0].tolist(),
             "found": {name: one._asdict() for name, one in m.found.items()}}
            for m in measured
        ],
    }  # fmt: skip
    (out / "occam.json").write_text(
        json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return summary


def _rows(
    models: Mapping[str, Labelled], checks: Sequence[tuple[str, int, Annealed]]
) -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "labels": LABELS[which].tolist(),
            "log_probability": float(np.log(models[name].probability[which])),
            "its error": float(models[name].error[which] / models[name].probability[which]),
            "annealed": run.log_evidence,
            "error": run.error,
        }
        for name, which, run in checks
    ]

"""The coin of Mullachery et al., with and without conjugacy (M18, M19).

Four priors of the probability r of a head, two of them conjugate, after 0, 1, 10 and 100 tosses.
The posterior three ways: in closed form where there is one, by brute force on a grid, and by
Metropolis-Hastings, which sees the unnormalised product of likelihood and prior alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import plots, text
from .models import PRIORS, Prior
from .scores import BUDGET, Cell, grid, measure

__all__ = ["reproduce", "toss"]

Array = NDArray[Any]
TRUTH = 0.7  # probability of a head of the coin that is tossed
STAGES = (0, 1, 10, 100)  # tosses seen


def toss(seed: int = 0, most: int = STAGES[-1]) -> Array:
    """Toss a coin with P(head) = 0.7: ones and zeros (most,)."""
    return (np.random.default_rng(seed).random(most) < TRUTH).astype(int)


def reproduce(out: Path, seed: int = 0, *, budget: tuple[int, int, int] = BUDGET) -> str:
    """Toss, infer three ways, write pictures and ``coin.json`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of the tosses and of the chains.
    budget : (int, int, int)
        Chains, draws and warm-up steps of each; fewer for a quick look.
    """
    out.mkdir(parents=True, exist_ok=True)
    tosses = toss(seed)
    seeds = iter(np.random.SeedSequence(seed).spawn(len(PRIORS) * len(STAGES) + 1))
    cells = {
        prior.title: [
            measure(prior, h, stage - h, np.random.default_rng(next(seeds)), budget)
            for stage, h in ((stage, int(tosses[:stage].sum())) for stage in STAGES)
        ]
        for prior in PRIORS
    }
    single = measure(PRIORS[0], 1, 0, np.random.default_rng(next(seeds)), budget)
    paths = {prior.title: _path(prior, tosses) for prior in PRIORS}
    plots.posteriors(cells, TRUTH).savefig(out / "coin-posteriors.png", dpi=100)
    plots.one_head(single, paths, TRUTH).savefig(out / "coin-one-head.png", dpi=100)
    rows = [_numbers(cell) for row in cells.values() for cell in row]
    found = {"tosses": tosses.tolist(), "cells": rows, "one head": _numbers(single)}
    (out / "coin.json").write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", "utf-8")
    summary = text.summarise(cells, single, paths, budget, TRUTH)
    (out / "coin.txt").write_text(summary + "\n", encoding="utf-8")
    return summary


def _path(prior: Prior, tosses: Array) -> Array:
    """Return the posterior mean and deviation (N + 1, 2) after each toss, by the grid."""
    heads = np.concatenate([[0], np.cumsum(tosses)])
    found = [grid(prior, int(h), n - int(h), 2000)[2] for n, h in enumerate(heads)]
    return np.array([[one.mean, one.deviation] for one in found])


def _numbers(cell: Cell) -> dict[str, Any]:
    ways = {"closed form": cell.exact, "grid": cell.grid, "metropolis": cell.sampled}
    kept = {
        way: {name: value for name, value in found._asdict().items() if value == value}
        for way, found in ways.items()
        if found is not None
    }
    return {"prior": cell.prior.title, "heads": cell.heads, "tails": cell.tails,
            "acceptance": cell.acceptance, **kept}  # fmt: skip

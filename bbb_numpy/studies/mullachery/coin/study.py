"""The coin of Mullachery et al., with and without conjugacy (M18, M19).

Four priors of the probability r of a head, two of them conjugate, after 0, 1, 10 and 100 tosses.
The posterior three ways: in closed form where there is one, by brute force on a grid, and by
Metropolis-Hastings, which sees the unnormalised product of likelihood and prior alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.progress import counted, steps
from bbb_numpy.studies.comparing import write

from . import plots, tables
from .models import PRIORS, Prior
from .scores import BUDGET, Cell, grid, measure

__all__ = ["Study", "compute", "reproduce", "toss"]

Array = NDArray[Any]
TRUTH = 0.7  # probability of a head of the coin that is tossed
STAGES = (0, 1, 10, 100)  # tosses seen


def toss(seed: int = 0, most: int = STAGES[-1]) -> Array:
    """Toss a coin with P(head) = 0.7: ones and zeros (most,)."""
    return (np.random.default_rng(seed).random(most) < TRUTH).astype(int)


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was computed."""

    tosses: Array  # (N,)  1 is a head
    cells: Mapping[str, Sequence[Cell]]  # by prior, after each of `STAGES`
    single: Cell  # one head under the uniform prior
    paths: Mapping[str, Array]  # (N + 1, 2) each: mean and deviation toss by toss, by prior

    @property
    def every(self) -> list[Cell]:
        """The cells one after the other."""
        return [cell for row in self.cells.values() for cell in row]


def compute(
    seed: int = 0, budget: tuple[int, int, int] = BUDGET, progress: bool | None = None
) -> Study:
    """Toss, and infer three ways."""
    tosses = toss(seed)
    heads = {stage: int(tosses[:stage].sum()) for stage in STAGES}
    seeds = iter(np.random.SeedSequence(seed).spawn(len(PRIORS) * len(STAGES) + 1))
    with steps(len(PRIORS) * len(STAGES) + 1, progress) as done:
        cells = {
            prior.title: [
                measure(prior, h, stage - h, np.random.default_rng(next(seeds)), budget)
                for stage, h in counted(heads.items(), done)
            ]
            for prior in PRIORS
        }
        single = measure(PRIORS[0], 1, 0, np.random.default_rng(next(seeds)), budget)
        done(1)
    return Study(tosses, cells, single, {prior.title: _path(prior, tosses) for prior in PRIORS})


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    budget: tuple[int, int, int] = BUDGET,
    progress: bool | None = None,
) -> str:
    """Compute, write pictures and ``coin.json`` into `out`, return the tables.

    `budget`: chains, draws and warm-up steps of each.
    """
    study = compute(seed, budget, progress)
    pictures = {
        "coin-posteriors": plots.posteriors(study.cells, TRUTH),
        "coin-one-head": plots.one_head(study.single, study.paths, TRUTH),
    }
    found = {
        "tosses": study.tosses,
        "cells": [_numbers(cell) for cell in study.every],
        "one head": _numbers(study.single),
    }
    write(out, pictures, found, "coin")
    return tables.lay_out(study.every, study.single, study.paths, budget, TRUTH)


def _path(prior: Prior, tosses: Array) -> Array:
    """Return the posterior mean and deviation (N + 1, 2) after each toss, by the grid."""
    heads = np.concatenate([[0], np.cumsum(tosses)])
    found = [grid(prior, int(h), n - int(h), 2000)[2] for n, h in enumerate(heads)]
    return np.array([[one.mean, one.deviation] for one in found])


def _numbers(cell: Cell) -> dict[str, Any]:
    ways = {"closed form": cell.exact, "grid": cell.grid, "metropolis": cell.sampled}
    kept = {way: found for way, found in ways.items() if found is not None}
    of_cell = {"heads": cell.heads, "tails": cell.tails, "acceptance": cell.acceptance}
    return {"prior": cell.prior.title, **of_cell, **kept}

"""The coin of Mullachery et al., with and without conjugacy (M18, M19).

Four priors of the probability r of a head, two of them conjugate, after 0, 1, 10 and 100 tosses.
The posterior three ways: in closed form where there is one, by brute force on a grid, and by
Metropolis-Hastings, which sees the unnormalised product of likelihood and prior alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.progress import counted, steps
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    plus_minus,
    table,
    table_of_columns,
    write,
)

from . import plots
from .conjugate import coin_log_density
from .scores import BUDGET, CELLS, PRIORS, Cell, Prior, grid, measure

__all__ = ["claims_of_the_paper", "reproduce", "toss"]

Array = NDArray[Any]
TRUTH = 0.7  # probability of a head of the coin that is tossed
STAGES = (0, 1, 10, 100)  # tosses seen
ROUNDING = 1e-10  # of sums over the grid


def toss(seed: int = 0, most: int = STAGES[-1]) -> Array:
    """Toss a coin with P(head) = 0.7: ones and zeros (most,)."""
    return (np.random.default_rng(seed).random(most) < TRUTH).astype(int)


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
    tosses = toss(seed)
    heads = {stage: int(tosses[:stage].sum()) for stage in STAGES}
    work = len(PRIORS) * len(STAGES) + 1
    rngs = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(work))
    with steps(work, progress) as done:
        cells = {
            prior.title: [
                measure(prior, h, stage - h, next(rngs), budget)
                for stage, h in counted(heads.items(), done)
            ]
            for prior in PRIORS
        }
        single = measure(PRIORS[0], 1, 0, next(rngs), budget)  # one head, uniform prior
        done(1)
    every = [cell for row in cells.values() for cell in row]
    paths = {prior.title: _path(prior, tosses) for prior in PRIORS}
    pictures = {
        "coin-posteriors": plots.posteriors(cells, TRUTH),
        "coin-one-head": plots.one_head(single, paths, TRUTH),
    }
    found = {"tosses": tosses, "cells": [*map(_numbers, every)], "one head": _numbers(single)}
    write(out, pictures, found, "coin")
    return _tables(every, single, paths, budget)


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


def _tables(
    cells: Sequence[Cell], single: Cell, paths: Mapping[str, Array], budget: tuple[int, int, int]
) -> str:
    parts = {
        "A coin and its posterior, three ways: closed form, grid, Metropolis-Hastings (MH).": table(
            ("run", "value"),
            [
                ("P(head) of the coin", f"{TRUTH:g}"),
                ("tosses", f"{STAGES[-1]}"),
                ("cells of the grid", f"{CELLS}"),
                ("chains of MH", f"{budget[0]}"),
                ("draws of each", f"{budget[1]}"),
            ],
        ),
        "Posteriors of r after h heads and t tails, in closed form or else by the grid; log P(D) "
        "in nats;\nz: MH less it, in standard errors of MH.": _posteriors(cells),
        "How far the three ways are apart.": _agreement(cells),
        "Posteriors under the four priors: their deviations, how far their means are apart.": (
            _spread(paths)
        ),
    }
    judged = claims(
        "M18, one head under the uniform prior; +- is a standard error.",
        "the paper",
        claims_of_the_paper(single),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _off(cell: Cell) -> tuple[float, float]:
    """Return MH less the best of the others, in its standard errors: mean, deviation."""
    chains, best = cell.sampled, cell.best
    return (
        (chains.mean - best.mean) / chains.mean_error,
        (chains.deviation - best.deviation) / chains.deviation_error,
    )


def _posteriors(cells: Sequence[Cell]) -> str:
    columns = {
        "prior": [c.prior.title for c in cells],
        "h": [f"{c.heads}" for c in cells],
        "t": [f"{c.tails}" for c in cells],
        "mean": [f"{c.best.mean:.5f}" for c in cells],
        "sd": [f"{c.best.deviation:.5f}" for c in cells],
        "log P(D)": [f"{c.best.log_evidence:.4f}" for c in cells],
        "grid off": [
            f"{abs(c.grid.mean - c.exact.mean):.0e}" if c.exact else "no formula" for c in cells
        ],
        "MH mean": [f"{c.sampled.mean:.5f}" for c in cells],
        "z": [f"{_off(c)[0]:+.1f}" for c in cells],
        "MH sd": [f"{c.sampled.deviation:.5f}" for c in cells],
        "z of sd": [f"{_off(c)[1]:+.1f}" for c in cells],
    }
    return table_of_columns(columns)


def _agreement(cells: Sequence[Cell]) -> str:
    gaps = [c.gap for c in cells if c.exact]
    evidence = [abs(c.grid.log_evidence - c.exact.log_evidence) for c in cells if c.exact]
    differences = np.abs([_off(c) for c in cells])
    acceptance = [c.acceptance for c in cells]
    rows = [
        ("grid less closed form, largest: density", f"{max(gaps):.0e}"),
        ("grid less closed form, largest: log P(D), nats", f"{max(evidence):.0e}"),
        ("differences of MH", f"{differences.size}"),
        ("largest of them, standard errors", f"{differences.max():.1f}"),
        ("acceptance of MH, least", f"{min(acceptance):.2f}"),
        ("acceptance of MH, largest", f"{max(acceptance):.2f}"),
    ]
    return table(("methods", "value"), rows)


def _spread(paths: Mapping[str, Array]) -> str:
    every = np.array(list(paths.values()))  # (priors, N + 1, 2)
    last = every[:, -1, 0]
    farthest = int(np.argmax(np.abs(last - np.median(last))))
    others = np.delete(every, farthest, axis=0)
    stages = (0, 10, every.shape[1] - 1)
    columns = {
        "tosses": [f"{n}" for n in stages],
        "least sd": [f"{every[:, n, 1].min():.3f}" for n in stages],
        "largest sd": [f"{every[:, n, 1].max():.3f}" for n in stages],
        "means": [f"{np.ptp(every[:, n, 0]):.3f}" for n in stages],
        f"without {list(paths)[farthest]}": [f"{np.ptp(others[:, n, 0]):.3f}" for n in stages],
    }
    return table_of_columns(columns)


def claims_of_the_paper(single: Cell) -> list[Claim]:
    """Judge what the paper says of one head (M18) by the grid and by Metropolis-Hastings."""
    area = float(np.exp(single.grid.log_evidence))
    off = float(np.abs(single.density - np.exp(coin_log_density(single.r, 1, 0))).max())
    found = single.sampled
    mean = plus_minus(found.mean, found.mean_error, 4)
    z = abs(found.mean - 2.0 / 3.0) / found.mean_error
    formula, integral = "(h+t+1)!/(h! t!) r^h (1-r)^t", f"integral {area:.6f}"
    return [
        Claim("the posterior of p", "p (= p * 1)", integral, abs(area - 1.0) < ROUNDING),
        Claim("of h heads, t tails", formula, f"2p, off by {off:.0e}", off < ROUNDING),
        Claim("the mean of 2p, by MH, which is given p alone", "2/3", mean, z, True),
    ]

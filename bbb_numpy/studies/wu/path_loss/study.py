"""Wu's second system: a radio field over a plane with buildings (W6), and his two questions.

`compare` sets MLE, MAP and VI side by side. `WHY` asks why a large error does not come with a
large deviation, `HOW` how to fit the simulated function exactly; both are lists of variants of
one base case, each measured on several data sets by `measure`.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

from bbb_numpy.progress import Done, counted, steps
from bbb_numpy.studies.comparing import METHODS, average, write

from . import plots, tables
from .models import BASE, HOW, WHY, Variant
from .scores import Measured, Study, bias_and_spread, compare, measure

__all__ = ["full", "measure_all", "reproduce"]


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for twice as many data sets."""
    return {"seed": seed, "repeats": 4}


def updates(variant: Variant) -> float:
    """Return how many minibatches a variant trains on, all its members together."""
    setup = variant.setup
    return setup.epochs * variant.members * ceil(variant.count / setup.batch_size)


def measure_all(seed: int, repeats: int, effort: float, progress: bool | None = None) -> Study:
    """Train and measure every variant; arguments as for `reproduce`."""
    every = [BASE.but(name, build=METHODS[name]) for name in METHODS] + [*WHY[1:], *HOW]
    with steps(repeats * sum(map(updates, every)), progress) as done:
        return _measure_all(seed, repeats, effort, done)


def _measure_all(seed: int, repeats: int, effort: float, done: Done) -> Study:
    def shorter(variant: Variant) -> Variant:
        return variant.but(variant.name, epochs=max(1, round(effort * variant.setup.epochs)))

    def each(variant: Variant) -> list[Measured]:
        whole = updates(variant)
        return [measure(shorter(variant), which) for which in counted(seeds, done, whole)]

    seeds = range(seed, seed + repeats)
    whole = len(METHODS) * updates(BASE)
    pairs = [compare(which, shorter(BASE)) for which in counted(seeds, done, whole)]
    runs = {BASE.name: [pair[BASE.name] for pair in pairs]}
    runs |= {variant.name: each(variant) for variant in WHY[1:]}
    return Study(
        repeats=repeats,
        methods=pairs[0],
        runs=runs,
        side={name: average([pair[name].numbers for pair in pairs]) for name in METHODS},
        why={name: average([run.numbers for run in measured]) for name, measured in runs.items()},
        how={v.name: average([run.numbers for run in each(v)]) for v in HOW},
        split=bias_and_spread(runs[BASE.name]) if repeats > 1 else {},
    )


def reproduce(
    out: Path,
    seed: int = 0,
    repeats: int = 2,
    effort: float = 1.0,
    progress: bool | None = None,
) -> str:
    """Run everything; write ``maps.png``, ``why.png``, ``how.png`` and ``numbers.json``.

    `repeats` data sets, from which every standard error comes; `effort`, a factor on all epochs.
    """
    found = measure_all(seed, repeats, effort, progress)
    numbers = {
        "seed": seed,
        "repeats": repeats,
        "methods": found.side,
        "why": found.why,
        "how": found.how,
        "bias and spread": found.split,
    }
    maps, why = plots.draw_maps(found.methods), plots.draw_why(found.why, found.runs)
    write(out, {"maps": maps, "why": why, "how": plots.draw_how(found.how)}, numbers)
    return tables.lay_out(found)

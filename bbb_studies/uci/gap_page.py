"""What the gap splits say: whether a posterior is less sure where it has seen nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .gaps import GAP_SETS
from .tables import LABELS, Record, grid, known_first, label
from .trials import LEVELS

__all__ = ["LEVEL", "Gap", "cells", "missing", "said", "table"]

LEVEL = 0.9  # of the central intervals
AT = int(np.flatnonzero(np.isclose(LEVELS, LEVEL))[0])


class Gap(NamedTuple):
    """One method on the gaps of one set, means over inputs: outside the gap, then inside."""

    set: str
    method: str
    inputs: int
    nll: tuple[float, float]
    rmse: tuple[float, float]
    coverage: tuple[float, float]
    growth: float  # of the epistemic standard deviation


def cells(records: Iterable[Record]) -> list[Gap]:
    """Return what finished trials say, in the order of print; the last of a key counts."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for one in {one["key"]: one for one in records}.values():
        if one["status"] == "ok":
            groups.setdefault((one["set"], one["method"]), []).append(one["metrics"])
    methods = known_first(method for _, method in groups)
    order = sorted(groups, key=lambda where: (where[0], methods.index(where[1])))
    return [_cell(*where, groups[where]) for where in order]


def _cell(name: str, method: str, rows: Sequence[Any]) -> Gap:
    def both(read: Callable[[Any], float]) -> tuple[float, float]:
        outside, inside = (np.mean([read(row[at]) for row in rows]) for at in ("outside", "inside"))
        return float(outside), float(inside)

    ratios = [
        row["inside"]["epistemic"] / row["outside"]["epistemic"]
        for row in rows
        if row["outside"]["epistemic"] > 0
    ]
    return Gap(
        name,
        method,
        len(rows),
        both(lambda part: part["nll"]),
        both(lambda part: part["rmse"]),
        both(lambda part: part["coverage"][AT]),
        float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan"),
    )


def table(records: Iterable[Record]) -> str:
    """Return a Markdown table: a line for each set and method, outside → inside."""
    lines = []
    for one in cells(records):
        nll, rmse = (f"{a:.2f} → {b:.2f}" for a, b in (one.nll, one.rmse))
        share = " → ".join(f"{value:.0%}" for value in one.coverage)
        growth = "–" if np.isnan(one.growth) else f"× {one.growth:.2f}"
        lines.append([one.set, label(one.method), one.inputs, nll, rmse, share, growth])
    header = ["set", "method", "gaps", "NLL", "RMSE", f"coverage of {LEVEL:.0%}", "deviation"]
    return grid(header, lines)


def missing(found: Sequence[Gap]) -> dict[str, list[str]]:
    """Return by set the methods that are still open, or rest on fewer gaps than others."""
    open_cells: dict[str, list[str]] = {}
    for name in GAP_SETS:
        have = {one.method: one.inputs for one in found if one.set == name}
        most = max(have.values(), default=0)
        open_cells[name] = [
            LABELS[m] + (f" {have[m]} of {most} gaps" if m in have else "")
            for m in sorted(LABELS, key=have.__contains__)
            if have.get(m, 0) < most
        ] or ([] if have else ["all methods"])
    return {name: what for name, what in open_cells.items() if what}


def said(found: Sequence[Gap]) -> list[dict[str, Any]]:
    """Say in how many sets each method covers as much in the gap as it says, and how it grows."""
    lines = []
    for method in dict.fromkeys(one.method for one in found):
        own = [one for one in found if one.method == method]
        gained = [100 * (one.coverage[1] - one.coverage[0]) for one in own]
        worse = [one.nll[1] - one.nll[0] for one in own]
        growth = [one.growth for one in own if not np.isnan(one.growth)]
        lines.append(
            {
                "method": method,
                "sets": len(own),
                "growth": f"deviation × {min(growth):.2f} to {max(growth):.2f}"
                if growth
                else "no deviation",
                "gained": (min(gained), max(gained)),
                "worse": (min(worse), max(worse)),
            }
        )
    return lines

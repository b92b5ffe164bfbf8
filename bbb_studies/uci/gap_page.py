"""What the gap splits say: whether a posterior is less sure where it has seen nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .gaps import GAP_SETS
from .tables import LABELS, Record, known_first
from .trials import LEVELS

__all__ = ["LEVEL", "Gap", "cells", "section", "table"]

LEVEL = 0.9  # of the central intervals
AT = int(np.flatnonzero(np.isclose(LEVELS, LEVEL))[0])

ABOUT = """\
For each input: train on the outer thirds of its values, test on the middle third, and beside on a
tenth of the outer rows, drawn at random, that was not trained on. Inputs with too few different
values for a gap are left out. Methods, settings and the choice of hyperparameters inside the
training part are those of the standard splits. In a gap the function may do what the outer thirds
do not tell: RMSE there may be larger for every method. The question is whether a method knows.
Deviation: the epistemic one, of E[y|x, w] over the posterior, in the gap over that outside,
geometric mean over inputs; 1 says that a method is as sure where it has seen nothing."""


class Gap(NamedTuple):
    """One method on the gaps of one set, means over inputs: outside the gap, then inside."""

    set: str
    method: str
    inputs: int
    nll: tuple[float, float]
    rmse: tuple[float, float]
    coverage: tuple[float, float]
    growth: float  # of the epistemic deviation


def cells(records: Iterable[Record]) -> list[Gap]:
    """Return what finished trials say, in the order of print; the last of a key counts."""
    last = {one["key"]: one for one in records}
    groups: dict[tuple[str, str], list[Any]] = {}
    for one in last.values():
        if one["status"] == "ok":
            groups.setdefault((one["set"], one["method"]), []).append(one["metrics"])
    methods = known_first({method for _, method in groups}, LABELS)
    found = []
    for name in sorted({name for name, _ in groups}):
        for method in methods:
            rows = groups.get((name, method), [])
            if rows:
                found.append(_cell(name, method, rows))
    return found


def _cell(name: str, method: str, rows: Sequence[Any]) -> Gap:
    def both(read: Any) -> tuple[float, float]:
        outside, inside = (
            float(np.mean([read(one[where]) for one in rows])) for where in ("outside", "inside")
        )
        return outside, inside

    ratios = [
        one["inside"]["epistemic"] / one["outside"]["epistemic"]
        for one in rows
        if one["outside"]["epistemic"] > 0
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
    lines = [
        f"| set | method | gaps | NLL | RMSE | coverage of {LEVEL:.0%} | deviation |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in cells(records):
        nll, rmse = (f"{a:.2f} → {b:.2f}" for a, b in (one.nll, one.rmse))
        share = " → ".join(f"{value:.0%}" for value in one.coverage)
        growth = "–" if np.isnan(one.growth) else f"× {one.growth:.2f}"
        label = LABELS.get(one.method, one.method)
        lines.append(
            f"| {one.set} | {label} | {one.inputs} | {nll} | {rmse} | {share} | {growth} |"
        )
    return "\n".join(lines)


def section(records: Iterable[Record]) -> str:
    """Return the part of the page about gaps.

    What it says of methods against each other is counted from the records.
    """
    rows = list(records)
    failed = sum(one["status"] != "ok" for one in rows)
    parts = [
        "## In the gaps",
        ABOUT,
        "Outside → inside, means over gaps:\n\n" + table(rows),
        _said(cells(rows)),
        _open(cells(rows)),
        "![NLL, coverage and deviation in the gaps and outside](uci_gaps.png)",
        f"{len(rows)} trials, {failed} failed; `uci_gap_records.jsonl`.",
    ]
    return "\n\n".join(part for part in parts if part)


def _open(found: Sequence[Gap]) -> str:
    """Say which cells are still open, or rest on fewer gaps than others of their set."""
    have = {(one.set, one.method): one.inputs for one in found}
    most: dict[str, int] = {}
    for one in found:
        most[one.set] = max(most.get(one.set, 0), one.inputs)
    lines = []
    for name in GAP_SETS:
        absent = [LABELS[method] for method in LABELS if (name, method) not in have]
        fewer = [
            f"{LABELS[m]} {have[name, m]} of {most[name]} gaps"
            for m in LABELS
            if have.get((name, m), most.get(name)) != most.get(name)
        ]
        if len(absent) == len(LABELS):
            lines.append(f"- {name}: all methods.")
        elif absent or fewer:
            lines.append(f"- {name}: {', '.join(absent + fewer)}.")
    return "\n".join(["Still open:", "", *lines]) if lines else ""


def _said(found: Sequence[Gap]) -> str:
    """Say in how many sets each method covers as much in the gap as it says, and how it grows."""
    lines = []
    for method in dict.fromkeys(one.method for one in found):
        own = [one for one in found if one.method == method]
        gained = [one.coverage[1] - one.coverage[0] for one in own]
        worse = [one.nll[1] - one.nll[0] for one in own]
        growth = [one.growth for one in own if not np.isnan(one.growth)]
        grows = f"deviation × {min(growth):.2f} to {max(growth):.2f}" if growth else "no deviation"
        lines.append(
            f"- {LABELS.get(method, method)}, in {len(own)} of {len(GAP_SETS)} sets: {grows}; "
            f"coverage {100 * min(gained):+.0f} to {100 * max(gained):+.0f} points, NLL "
            f"{min(worse):+.2f} to {max(worse):+.2f} nats."
        )
    return "\n".join(lines)

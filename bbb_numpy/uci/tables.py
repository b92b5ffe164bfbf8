"""From the records of trials to means, standard errors, tables and comparisons.

A record is one trial as `running.run` keeps it. Means and standard errors are over the splits of
one set and method that succeeded; whatever did not is named, never left out in silence. Trials of
one split are paired, so two methods are compared by the differences on the splits of both.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from ..data.uci import published_splits
from .published import COLUMNS, METRICS, PUBLISHED

__all__ = [
    "LABELS",
    "SPLITS",
    "Cell",
    "Summary",
    "cells",
    "cells_csv",
    "current",
    "incomplete",
    "known_first",
    "markdown",
    "paired",
    "published_rows",
    "succeeded",
    "summary",
    "trials_csv",
]

Record = Mapping[str, Any]
LABELS = {  # in the order of the rows
    "mean-field": "mean field",
    "local-reparam": "mean field by local reparam.",
    "full-rank": "full rank",
    "renyi": "Rényi bound",
    "eubo": "inclusive KL (Sagar's, corrected)",
    "map": "MAP",
    "ensemble": "ensemble",
    "hmc": "HMC",
    "nuts": "NUTS",
}
SPLITS = {name: published_splits(name) for name in COLUMNS}


@dataclass(frozen=True)
class Summary:
    """Mean over splits and its standard error, nan for a single split."""

    mean: float
    error: float
    count: int

    def __str__(self) -> str:
        if self.count < 2:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Cell:
    """One method on one set; `scores` is empty if no split succeeded."""

    set: str
    method: str
    scores: Mapping[str, Summary]  # by metric
    splits: tuple[int, ...]  # that succeeded
    failed: Mapping[int, str]  # split -> error
    seconds: float  # median wall seconds of a trial; nan without one

    @property
    def complete(self) -> bool:
        """Whether every published split is there."""
        return set(range(SPLITS.get(self.set, 1))) <= set(self.splits)


def summary(values: Iterable[float]) -> Summary:
    """Return mean, standard error (deviation with N - 1, over sqrt N) and number of values."""
    found = np.asarray(list(values), float)
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return Summary(float(found.mean()), float(error), len(found))


def current(records: Iterable[Record]) -> list[Record]:
    """Return the last record of every trial, by set, method and split.

    An append-only file holds a failed trial and its repetition; the later one counts.
    """
    last = {(one["set"], one["method"], one["split"]): one for one in records}
    place = _places(last.values())
    return sorted(
        last.values(),
        key=lambda one: (place[0][one["set"]], place[1][one["method"]], one["split"]),
    )


def _places(records: Iterable[Record]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the order of sets and methods: the published one, then those unknown to it."""
    orders: list[dict[str, int]] = []
    for key, known in (("set", COLUMNS), ("method", tuple(LABELS))):
        names = known_first((one[key] for one in records), known)
        orders.append({name: i for i, name in enumerate(names)})
    return orders[0], orders[1]


def known_first(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the different names, those `known` in their order before the others."""
    present, known = set(names), list(known)
    return [name for name in known if name in present] + sorted(present - set(known))


def succeeded(records: Iterable[Record]) -> list[Record]:
    """Return the current records that hold metrics."""
    return [one for one in current(records) if one["status"] == "ok"]


def cells(records: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    """Return every (set, method) of the records, in the order of print."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for one in current(records):
        groups.setdefault((one["set"], one["method"]), []).append(one)
    return {key: _cell(*key, group) for key, group in groups.items()}


def _cell(name: str, method: str, group: Sequence[Record]) -> Cell:
    fine = [one for one in group if one["status"] == "ok"]
    scores = {m: summary(one["metrics"][m] for one in fine) for m in METRICS} if fine else {}
    return Cell(
        name,
        method,
        scores,
        tuple(one["split"] for one in fine),
        {one["split"]: str(one["error"]) for one in group if one["status"] != "ok"},
        float(np.median([one["seconds"]["wall"] for one in fine])) if fine else float("nan"),
    )


def paired(
    records: Iterable[Record], name: str, one: str, other: str, metric: str
) -> Summary | None:
    """Return the mean of metric(one) - metric(other) over their common splits; None without any.

    Splits differ far more than methods do: the error of this difference is what decides, not
    the errors of the two means.
    """
    by_method: dict[str, dict[int, float]] = {one: {}, other: {}}
    for trial in succeeded(records):
        if trial["set"] == name and trial["method"] in by_method:
            by_method[trial["method"]][trial["split"]] = trial["metrics"][metric]
    a, b = by_method[one], by_method[other]
    common = sorted(a.keys() & b.keys())
    return summary(a[split] - b[split] for split in common) if common else None


def markdown(records: Iterable[Record], published: bool = True) -> str:
    """Return the table: methods as rows, sets as columns, "rmse / nll" with standard errors.

    The lowest mean of ours in each column is bold, RMSE and NLL each for itself. A number of
    splits is given where published ones are missing; failed trials are named below.
    """
    found = cells(records)
    sets = list(dict.fromkeys(name for name, _ in found))
    order = known_first((method for _, method in found), LABELS)
    lowest = {
        (name, metric): min(
            (c.scores[metric].mean for c in found.values() if c.set == name and c.scores),
            default=float("nan"),
        )
        for name in sets
        for metric in METRICS
    }
    rows = [["RMSE / NLL", *sets]]
    for method in order:
        cell = [_text(found.get((name, method)), lowest) for name in sets]
        rows.append([LABELS.get(method, method), *cell])
    if published:
        rows += published_rows(sets)
    return "\n".join([_grid(rows), *_below(found)])


def published_rows(sets: Sequence[str]) -> list[list[str]]:
    """Return the published rows for these sets, in italics what is reported false."""
    rows = []
    for row in PUBLISHED:
        name = f"{row.name} (reported false by its author)" if row.reported_false else row.name
        shown = [
            " / ".join(f"{row.score(one, metric):.2f}" for metric in METRICS)
            if one in row.scores
            else "–"
            for one in sets
        ]
        slant = "*" if row.reported_false else ""
        rows.append([f"{slant}{text}{slant}" for text in (f"published: {name}", *shown)])
    return rows


def _text(cell: Cell | None, lowest: Mapping[tuple[str, str], float]) -> str:
    if cell is None:
        return "–"
    if not cell.scores:
        return "failed"
    parts = []
    for metric, score in cell.scores.items():
        bold = "**" if score.mean == lowest[cell.set, metric] else ""
        parts.append(f"{bold}{score}{bold}")
    text = " / ".join(parts)
    usual = cell.complete and len(cell.splits) == SPLITS.get(cell.set)
    return text if usual else f"{text} ({_of(cell)})"


def _of(cell: Cell) -> str:
    """Say how many splits a cell rests on."""
    wanted = SPLITS.get(cell.set)
    count = len(cell.splits)
    if wanted is None or count >= wanted:  # as many as published, but others
        return f"{count} split{'s' * (count != 1)}"
    return f"{count} of {wanted} splits"


def _grid(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns are aligned in plain text, too."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _below(found: Mapping[tuple[str, str], Cell]) -> list[str]:
    """Name the failed trials, those with the same error together."""
    lines = []
    for cell in found.values():
        by_error: dict[str, list[int]] = {}
        for split, error in cell.failed.items():
            by_error.setdefault(error, []).append(split)
        for error, splits in by_error.items():
            numbers = ", ".join(map(str, splits))
            which = f"split{'s' * (len(splits) > 1)} {numbers}"
            lines.append(f"- {cell.set}, {cell.method}, {which}: {error}")
    return ["", "Failed trials:", "", *lines] if lines else []


def incomplete(records: Iterable[Record]) -> list[str]:
    """Name the cells that rest on fewer than the published splits, those alike together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for cell in cells(records).values():
        if not cell.complete:
            alike.setdefault((cell.set, _of(cell)), []).append(cell.method)
    return [f"{name}, {', '.join(methods)}: {of}" for (name, of), methods in alike.items()]


def cells_csv(records: Iterable[Record]) -> str:
    """Return a line per set and method, numbers with full precision, empty where there is none."""
    head = ["set", "method", "splits", "failed"]
    head += [f"{metric}_{part}" for metric in METRICS for part in ("mean", "standard_error")]
    lines: list[list[Any]] = [[*head, "median_seconds"]]
    for cell in cells(records).values():
        line: list[Any] = [cell.set, cell.method, len(cell.splits), len(cell.failed)]
        for metric in METRICS:
            score = cell.scores.get(metric)
            line += [_or_empty(score.mean), _or_empty(score.error)] if score else ["", ""]
        lines.append([*line, _or_empty(cell.seconds)])
    return _csv(lines)


def trials_csv(records: Iterable[Record]) -> str:
    """Return a line per trial, failed ones with their error."""
    lines: list[list[Any]] = [
        [
            *("set", "method", "split", "status", "seed", "rmse", "nll", "crps"),
            *("train_rows", "test_rows", "wall_seconds", "cpu_seconds", "error"),
        ]
    ]
    for one in current(records):
        metrics, rows, seconds = (one.get(key) or {} for key in ("metrics", "rows", "seconds"))
        lines.append(
            [one["set"], one["method"], one["split"], one["status"], one.get("seed", "")]
            + [metrics.get(key, "") for key in (*METRICS, "crps")]
            + [rows.get("train", ""), rows.get("test", "")]
            + [seconds.get("wall", ""), seconds.get("cpu", ""), one.get("error") or ""]
        )
    return _csv(lines)


def _or_empty(value: float) -> Any:
    return value if np.isfinite(value) else ""


def _csv(lines: Sequence[Sequence[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()

"""Which cells reach what was published: unrounded means against the numbers as printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .methods import SAMPLERS as SAMPLED
from .published import (
    BASELINE,
    COLUMNS,
    DROPOUT,
    METRICS,
    PUBLISHED,
    Published,
    best,
    lowest,
    printed,
)
from .tables import LABELS, Cell, Record, cells, leading

__all__ = [
    "DEFAULT",
    "FAMILY",
    "GOALS",
    "SAMPLERS",
    "Verdict",
    "against_baseline",
    "against_best",
    "against_dropout",
    "ahead",
    "alone",
    "count",
    "table",
]

FAMILY = ("mean-field", "local-reparam", "full-rank", "renyi")
SAMPLERS = tuple(SAMPLED)
DEFAULT = ("default",)
GOALS = {"best": 16, "dropout": 12}  # cells of 18


@dataclass(frozen=True)
class Verdict:
    """The better one of some methods in one cell, beside the number to get below."""

    set: str
    metric: str
    bar: float
    holder: str  # of the bar
    cell: Cell | None  # that leads, see `tables.leading`; None if none has a score

    @property
    def margin(self) -> float:
        """How far the mean is below the bar, in units of the metric; nan without a mean."""
        return self.bar - self.cell.scores[self.metric].mean if self.cell else float("nan")

    @property
    def met(self) -> bool:
        """Whether the unrounded mean is strictly below the bar as printed."""
        return self.margin > 0.0

    @property
    def complete(self) -> bool:
        """Whether every published split is in the mean."""
        return self.cell is not None and self.cell.complete


def against_baseline(records: Iterable[Record], methods: Sequence[str] = FAMILY) -> list[Verdict]:
    """Return the ten cells of some methods beside Bayes by Backprop's public implementation."""
    return _verdicts(records, methods, _bars([BASELINE]))


def against_best(records: Iterable[Record], methods: Sequence[str] = SAMPLERS) -> list[Verdict]:
    """Return the cells of some methods beside the best of the Bayesian networks listed."""
    return _verdicts(records, methods, {(n, m): best(n, m) for n in COLUMNS for m in METRICS})


def against_dropout(records: Iterable[Record], methods: Sequence[str] = DEFAULT) -> list[Verdict]:
    """Return the cells of some methods, the default learner alone, beside MC dropout."""
    return _verdicts(records, methods, _bars([DROPOUT]))


def _bars(rows: Sequence[Published]) -> dict[tuple[str, str], tuple[float, str]]:
    """Return the lowest numbers of some rows, of cells in which any of them has one."""
    return {
        (name, metric): lowest(name, metric, rows)
        for name in COLUMNS
        for metric in METRICS
        if any(row.score(name, metric) is not None for row in rows)
    }


def ahead(records: Iterable[Record]) -> list[tuple[Verdict, Published]]:
    """Return who of all that is listed, networks or not, is below the lowest mean of ours.

    Cell by cell, the lowest first. Our mean is rounded as the other number is: what is printed as
    0.00 is not ahead of 0.001.
    """
    own = [cell for cell in cells(records).values() if cell.scores]
    rows = [row for row in PUBLISHED if not row.reported_false]
    found = []
    for row in rows:
        for one in _beside(own, _bars([row])):
            decimals = len(printed(one.bar).partition(".")[2])
            if one.cell and round(one.cell.scores[one.metric].mean, decimals) > one.bar:
                found.append((one, row))
    order = [(name, metric) for name in COLUMNS for metric in METRICS]
    return sorted(found, key=lambda pair: (order.index((pair[0].set, pair[0].metric)), pair[0].bar))


def _verdicts(
    records: Iterable[Record],
    methods: Sequence[str],
    bars: dict[tuple[str, str], tuple[float, str]],
) -> list[Verdict]:
    found = [cell for cell in cells(records).values() if cell.method in methods and cell.scores]
    return _beside(found, bars)


def _beside(found: Sequence[Cell], bars: dict[tuple[str, str], tuple[float, str]]) -> list[Verdict]:
    verdicts = []
    for (name, metric), (bar, holder) in bars.items():
        least = leading((cell for cell in found if cell.set == name), metric)
        verdicts.append(Verdict(name, metric, bar, holder, least))
    return verdicts


def alone(verdict: Any, records: Sequence[Record], methods: Sequence[str]) -> dict[str, int]:
    """Return in how many cells each method, with all splits, reaches the bars of `verdict` alone.

    Choosing the better of several methods cell by cell looks at test scores: these counts do not.
    """
    return {
        method: sum(one.met and one.complete for one in verdict(records, (method,)))
        for method in methods
        if any(record["method"] == method for record in records)
    }


def table(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table, a line per cell."""
    lines = ["| cell | to get below | ours | below by | met |", "|---|---|---|---|---|"]
    for one in verdicts:
        where = f"{one.set}, {one.metric.upper()}"
        bar = f"{printed(one.bar)} ({one.holder})"
        if one.cell is None:
            lines.append(f"| {where} | {bar} | – | – | no result |")
            continue
        score = one.cell.scores[one.metric]
        digits = 4 if one.bar >= 0.05 or one.bar < 0 else 6
        ours = f"{score.mean:.{digits}f} ({LABELS.get(one.cell.method, one.cell.method)})"
        by = f"{one.margin:+.{digits}f}"
        by += f" ± {score.error:.{digits}f}" if score.count > 1 else ""
        met = "yes" if one.met else "**no**"
        so_far = "" if one.complete else f", on {score.count} splits so far"
        lines.append(f"| {where} | {bar} | {ours} | {by} | {met}{so_far} |")
    return "\n".join(lines)


def count(verdicts: Sequence[Verdict]) -> str:
    """Say how many cells are met, and on how many of them splits are missing."""
    met = [one for one in verdicts if one.met]
    partial = sum(not one.complete for one in met)
    text = f"{len(met)} of {len(verdicts)} cells"
    return f"{text}, {partial} of them with splits missing" if partial else text

"""From the records of trials to means, standard errors, tables and comparisons.

A record is one trial as `running.run` keeps it. Means and standard errors are over the splits of
one set and method that succeeded; whatever did not is named, never left out in silence. Trials of
one split are paired, so two methods are compared by the differences on the splits of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from statistics import median
from typing import Any

import pandas as pd

from .methods import SAMPLERS
from .mixing import SPACES
from .published import COLUMNS, METRICS, PUBLISHED, printed
from .trials import usual_splits

__all__ = [
    "LABELS",
    "SPLITS",
    "Cell",
    "Summary",
    "cells",
    "cells_csv",
    "current",
    "frame",
    "grid",
    "known_first",
    "label",
    "leading",
    "markdown",
    "mixing",
    "paired",
    "succeeded",
    "summary",
    "trials_csv",
]

Record = Mapping[str, Any]
SMALL = 5e-4  # what three digits would show as 0.000; a table of one's own may be in any units
LABELS = {  # in the order of the rows
    "mean-field": "mean field",
    "local-reparam": "mean field by local reparam.",
    "full-rank": "full rank",
    "renyi": "Rényi bound",
    "eubo": "inclusive KL (Sagar's, corrected)",
    "map": "MAP",
    "ensemble": "ensemble",
    "default": "default learner",
    "hmc": "HMC",
    "nuts": "NUTS",
    "chees": "ChEES-HMC",
    "mclmc": "MCLMC",
    "hmc-heteroscedastic": "heteroscedastic HMC",
}
SPLITS = {name: usual_splits(name) for name in COLUMNS}
MIXED = 1.05  # R-hat of functions above which a sampler's cell is marked
TRIAL = ["set", "method", "split"]  # what tells one from another
TYPES = dict.fromkeys(("split", "seed", "train_rows", "test_rows"), "Int64") | dict.fromkeys(
    (*METRICS, "crps", "wall_seconds", "cpu_seconds"), "float64"
)
ORDER = [*TRIAL, "status", "seed", *METRICS, "crps", "train_rows", "test_rows"]
ORDER += ["wall_seconds", "cpu_seconds", "error"]


def label(method: str) -> str:
    """Return the name of a method for print."""
    return LABELS.get(method, method)


@dataclass(frozen=True)
class Summary:
    """Mean over splits and its standard error, nan for a single split."""

    mean: float
    error: float
    count: int

    def __str__(self) -> str:
        if self.count < 2:
            return f"{self.mean:.3f}" if abs(self.mean) >= SMALL else f"{self.mean:.3g}"
        digits = 3 if not 0 < self.error < SMALL else 1 - floor(log10(self.error))
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


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
        """Whether every split that is to be measured is there."""
        return set(range(SPLITS.get(self.set, 1))) <= set(self.splits)

    @property
    def rests_on(self) -> str:
        """How many splits its means rest on, e.g. ``3 of 20 splits``."""
        wanted, count = SPLITS.get(self.set), len(self.splits)
        if wanted is None or count >= wanted:  # as many as published, but others
            return f"{count} split{'s' * (count != 1)}"
        return f"{count} of {wanted} splits"


def summary(values: Iterable[float]) -> Summary:
    """Return mean, standard error (that with N - 1, over sqrt N) and number of values."""
    found = pd.Series(list(values), dtype=float)
    return Summary(float(found.mean()), float(found.sem()), len(found))


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return a table with a row for every trial, in the order of print.

    The last record of a trial counts. Sets and methods come in the published order, then those
    unknown to it. The index is the place among `records`.
    """
    rows = []
    for one in records:
        metrics, parts, seconds = (one.get(key) or {} for key in ("metrics", "rows", "seconds"))
        flat = {f"{part}_rows": count for part, count in parts.items()}
        flat |= {f"{clock}_seconds": count for clock, count in seconds.items()}
        rows.append({**one, **metrics, **flat})
    table = pd.DataFrame(rows, columns=ORDER).astype(TYPES).drop_duplicates(TRIAL, keep="last")
    for key, known in (("set", COLUMNS), ("method", tuple(LABELS))):
        table[key] = pd.Categorical(table[key], known_first(table[key], known), ordered=True)
    return table.sort_values(TRIAL)


def current(records: Iterable[Record]) -> list[Record]:
    """Return the last record of every trial, by set, method and split."""
    given = list(records)
    return [given[place] for place in frame(given).index]


def known_first(names: Iterable[str], known: Iterable[str] = tuple(LABELS)) -> list[str]:
    """Return the different names, those `known` in their order before the others."""
    present, known = set(names), list(known)
    return [name for name in known if name in present] + sorted(present - set(known))


def succeeded(records: Iterable[Record]) -> list[Record]:
    """Return the current records that hold metrics."""
    return [one for one in current(records) if one["status"] == "ok"]


def cells(records: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    """Return every (set, method) of the records, in the order of print."""
    found = {}
    for (name, method), group in frame(records).groupby(["set", "method"], observed=True):
        fine, failed = group[group["status"] == "ok"], group[group["status"] != "ok"]
        found[name, method] = Cell(
            name,
            method,
            {metric: summary(fine[metric]) for metric in METRICS} if len(fine) else {},
            tuple(fine["split"].tolist()),
            dict(zip(failed["split"].tolist(), map(str, failed["error"]), strict=True)),
            float(fine["wall_seconds"].median()),
        )
    return found


def leading(found: Iterable[Cell], metric: str) -> Cell | None:
    """Return the cell of the lowest mean, of those with all splits if there are any.

    Splits differ far more than methods do: one that has met only easy ones would lead.
    """
    scored = [cell for cell in found if cell.scores]
    whole = [cell for cell in scored if cell.complete]
    return min(whole or scored, key=lambda cell: cell.scores[metric].mean, default=None)


def paired(
    records: Iterable[Record], name: str, one: str, other: str, metric: str
) -> Summary | None:
    """Return the mean of metric(one) - metric(other) over their common splits; None without any.

    Splits differ far more than methods do: the error of this difference is what decides, not
    the errors of the two means.
    """
    table = frame(record for record in records if record["set"] == name)
    fine = table[table["status"] == "ok"].set_index("split")
    a, b = (fine.loc[fine["method"] == method, metric] for method in (one, other))
    gap = (a - b).dropna()  # aligned by split
    return summary(gap) if len(gap) else None


def grid(header: Sequence[str], rows: Iterable[Sequence[object]], aligned: bool = False) -> str:
    """Return a Markdown table; `aligned` in plain text, too."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    if not aligned:
        text = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([text[0], "|" + "---|" * len(header), *text[1:]])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])


def markdown(records: Iterable[Record], published: bool = True) -> str:
    """Return the table: methods as rows, sets as columns, "rmse / nll" with standard errors.

    The lowest mean of ours in each column is bold, RMSE and NLL each for itself (see `leading`).
    A number of splits is given where some are missing; failed trials are named below. A sampler's
    cell has R-hat of its functions, the median over splits. Published rows in italics are those
    reported false.
    """
    records = list(records)
    found, mixed = cells(records), mixing(records)
    sets = list(dict.fromkeys(name for name, _ in found))
    first = {
        (name, metric): leading((c for c in found.values() if c.set == name), metric)
        for name in sets
        for metric in METRICS
    }
    rows = [
        [
            label(method),
            *(_text(found.get((s, method)), first, mixed.get((s, method))) for s in sets),
        ]
        for method in known_first(method for _, method in found)
    ]
    for row in PUBLISHED if published else ():
        slant = "*" if row.reported_false else ""
        name = f"{row.name} (reported false by its author)" if row.reported_false else row.name
        shown = [
            " / ".join(printed(row.score(one, m)) for m in METRICS) if one in row.scores else "–"
            for one in sets
        ]
        rows.append([f"{slant}{text}{slant}" for text in (f"published: {name}", *shown)])
    return "\n".join([grid(["RMSE / NLL", *sets], rows, aligned=True), *_failures(found)])


def _text(
    cell: Cell | None,
    first: Mapping[tuple[str, str], Cell | None],
    mixed: Mapping[str, Sequence[float]] | None,
) -> str:
    if cell is None:
        return "–"
    if not cell.scores:
        return "failed"
    parts = []
    for metric, score in cell.scores.items():
        best = first[cell.set, metric]
        bold = "**" if best and score.mean == best.scores[metric].mean else ""
        parts.append(f"{bold}{score}{bold}")
    text = " / ".join(parts)
    if mixed is not None:
        text += f", {_r_hat(mixed['r_hat_functions'], len(cell.splits))}"
    usual = cell.complete and len(cell.splits) == SPLITS.get(cell.set)
    return text if usual else f"{text} ({cell.rests_on})"


def _r_hat(values: Sequence[float], splits: int) -> str:
    """Return the median R-hat, marked above `MIXED`, and of how many splits it is if not of all."""
    if not values:
        return "R̂ –"
    middle = median(values)
    of = "" if len(values) == splits else f" of {len(values)} split{'s' * (len(values) != 1)}"
    return f"R̂ {middle:.2f}{'†' if middle > MIXED else ''}{of}"


def _failures(found: Mapping[tuple[str, str], Cell]) -> list[str]:
    """Name the failed trials, those with the same error together."""
    lines = []
    for cell in found.values():
        for error in dict.fromkeys(cell.failed.values()):
            splits = [str(split) for split, said in cell.failed.items() if said == error]
            which = f"split{'s' * (len(splits) > 1)} {', '.join(splits)}"
            lines.append(f"- {cell.set}, {cell.method}, {which}: {error}")
    return ["", "Failed trials:", "", *lines] if lines else []


def mixing(records: Iterable[Record]) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Return what was recorded of how chains mixed, by set and sampler: a value for each split.

    R-hat and effective sample sizes, each the worst of its kind; empty lists where older records
    have none.
    """
    names = [f"{what}_{space}" for space in SPACES for what in ("r_hat", "ess")]
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in succeeded(records):
        if one["method"] in SAMPLERS:
            here = found.setdefault((one["set"], one["method"]), {name: [] for name in names})
            for name in names:
                if (one["notes"] or {}).get(name) is not None:
                    here[name].append(one["notes"][name])
    return found


def cells_csv(records: Iterable[Record]) -> str:
    """Return a line per set and method, numbers with full precision, empty where there is none."""
    lines = []
    for cell in cells(records).values():
        line: dict[str, Any] = {"set": cell.set, "method": cell.method}
        line |= {"splits": len(cell.splits), "failed": len(cell.failed)}
        for metric in METRICS:
            score = cell.scores.get(metric)
            line[f"{metric}_mean"] = score.mean if score else None
            line[f"{metric}_standard_error"] = score.error if score else None
        lines.append({**line, "median_seconds": cell.seconds})
    return str(pd.DataFrame(lines).to_csv(index=False, lineterminator="\n"))


def trials_csv(records: Iterable[Record]) -> str:
    """Return a line per trial, failed ones with their error."""
    return str(frame(records).to_csv(index=False, lineterminator="\n"))

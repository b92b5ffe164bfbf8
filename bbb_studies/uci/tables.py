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
    "incomplete",
    "known_first",
    "leading",
    "markdown",
    "mixing",
    "not_run",
    "paired",
    "published_rows",
    "r_hat",
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
COLUMNS_OF_A_TRIAL = [
    *TRIAL,
    "status",
    "seed",
    *METRICS,
    "crps",
    "train_rows",
    "test_rows",
    "wall_seconds",
    "cpu_seconds",
    "error",
]


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


def summary(values: Iterable[float]) -> Summary:
    """Return mean, standard error (deviation with N - 1, over sqrt N) and number of values."""
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
        rows.append(
            {key: one.get(key) for key in (*TRIAL, "status", "seed", "error")}
            | {key: metrics.get(key) for key in (*METRICS, "crps")}
            | {f"{part}_rows": parts.get(part) for part in ("train", "test")}
            | {f"{clock}_seconds": seconds.get(clock) for clock in ("wall", "cpu")}
        )
    whole = dict.fromkeys(("split", "seed", "train_rows", "test_rows"), "Int64")
    real = dict.fromkeys((*METRICS, "crps", "wall_seconds", "cpu_seconds"), float)
    table = pd.DataFrame(rows, columns=COLUMNS_OF_A_TRIAL).astype({**whole, **real})
    table = table.drop_duplicates(TRIAL, keep="last")
    for key, known in (("set", COLUMNS), ("method", tuple(LABELS))):
        order = known_first(table[key], known)
        table[key] = pd.Categorical(table[key], order, ordered=True)
    return table.sort_values(TRIAL)


def current(records: Iterable[Record]) -> list[Record]:
    """Return the last record of every trial, by set, method and split."""
    given = list(records)
    return [given[place] for place in frame(given).index]


def known_first(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the different names, those `known` in their order before the others."""
    present, known = set(names), list(known)
    return [name for name in known if name in present] + sorted(present - set(known))


def succeeded(records: Iterable[Record]) -> list[Record]:
    """Return the current records that hold metrics."""
    return [one for one in current(records) if one["status"] == "ok"]


def cells(records: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    """Return every (set, method) of the records, in the order of print."""
    groups = frame(records).groupby(["set", "method"], observed=True)
    return {(name, method): _cell(name, method, group) for (name, method), group in groups}


def _cell(name: str, method: str, group: pd.DataFrame) -> Cell:
    fine, failed = group[group["status"] == "ok"], group[group["status"] != "ok"]
    return Cell(
        name,
        method,
        {metric: summary(fine[metric]) for metric in METRICS} if len(fine) else {},
        tuple(fine["split"].tolist()),
        dict(zip(failed["split"].tolist(), map(str, failed["error"]), strict=True)),
        float(fine["wall_seconds"].median()),
    )


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


def markdown(records: Iterable[Record], published: bool = True) -> str:
    """Return the table: methods as rows, sets as columns, "rmse / nll" with standard errors.

    The lowest mean of ours in each column is bold, RMSE and NLL each for itself (see `leading`).
    A number of splits is given where some are missing; failed trials are named below. A sampler's
    cell has R-hat of its functions, the median over splits.
    """
    records = list(records)
    found, mixed = cells(records), mixing(records)
    sets = list(dict.fromkeys(name for name, _ in found))
    order = known_first((method for _, method in found), LABELS)
    first = {
        (name, metric): leading((c for c in found.values() if c.set == name), metric)
        for name in sets
        for metric in METRICS
    }
    rows = [["RMSE / NLL", *sets]]
    for method in order:
        cell = [_text(found.get((name, method)), first, mixed.get((name, method))) for name in sets]
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
            " / ".join(printed(row.score(one, metric)) for metric in METRICS)
            if one in row.scores
            else "–"
            for one in sets
        ]
        slant = "*" if row.reported_false else ""
        rows.append([f"{slant}{text}{slant}" for text in (f"published: {name}", *shown)])
    return rows


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


def r_hat(values: Sequence[float], splits: int) -> str:
    """Return the median R-hat, marked above `MIXED`, and of how many splits it is if not of all."""
    if not values:
        return "R̂ –"
    middle = median(values)
    of = "" if len(values) == splits else f" of {len(values)} split{'s' * (len(values) != 1)}"
    return f"R̂ {middle:.2f}{'†' if middle > MIXED else ''}{of}"


def _text(
    cell: Cell | None,
    first: Mapping[tuple[str, str], Cell | None],
    mixed: Mapping[str, Sequence[float]] | None = None,
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
        text += f", {r_hat(mixed['r_hat_functions'], len(cell.splits))}"
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
    """Name the cells of which splits are missing, those alike together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for cell in cells(records).values():
        if not cell.complete:
            alike.setdefault((cell.set, _of(cell)), []).append(cell.method)
    return [f"{name}, {', '.join(methods)}: {of}" for (name, of), methods in alike.items()]


def not_run(records: Iterable[Record]) -> list[str]:
    """Name the methods of which a set has no trial, by set; of sets and methods that are known."""
    have = {(one["set"], one["method"]) for one in records}
    absent = {
        name: [LABELS[method] for method in LABELS if (name, method) not in have]
        for name in COLUMNS
    }
    return [f"{name}: {', '.join(methods)}" for name, methods in absent.items() if methods]


def cells_csv(records: Iterable[Record]) -> str:
    """Return a line per set and method, numbers with full precision, empty where there is none."""
    lines = []
    for cell in cells(records).values():
        line = {
            "set": cell.set,
            "method": cell.method,
            "splits": len(cell.splits),
            "failed": len(cell.failed),
        }
        for metric in METRICS:
            score = cell.scores.get(metric)
            line[f"{metric}_mean"] = score.mean if score else None
            line[f"{metric}_standard_error"] = score.error if score else None
        lines.append({**line, "median_seconds": cell.seconds})
    return _csv(pd.DataFrame(lines))


def trials_csv(records: Iterable[Record]) -> str:
    """Return a line per trial, failed ones with their error."""
    return _csv(frame(records))


def _csv(table: pd.DataFrame) -> str:
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text

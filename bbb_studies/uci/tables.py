"""From the records of trials to means, standard errors and tables, beside what others printed.

A record is one trial as `running.run` keeps it. Means and standard errors are over the splits of
one set and method that succeeded; whatever did not is named, never left out in silence. Trials of
one split are paired, so two methods are compared by the differences on the splits of both.

What others have printed for the same nine sets, RMSE and mean negative test log-likelihood per
point in the units of the targets, is in ``published.json``: for comparison, none of it measured
here. A number that could not be read, at its source or where somebody quotes it, is left out: what
is not here may exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import floor, log10
from typing import Any, TypeAlias

import pandas as pd

from .methods import METHODS, SAMPLERS
from .trials import SPACES, usual_splits

Record = Mapping[str, Any]
Records: TypeAlias = Iterable[Record] | pd.DataFrame
METRICS = ("rmse", "nll")
# The sets in the order of the columns.
DATASETS = (
    "boston",
    "concrete",
    "energy",
    "protein",
    "wine_red",
    "yacht",
    "power",
    "kin8nm",
    "naval",
)
# The methods in the order of the rows.
METHOD_LABELS = {name: method.label for name, method in METHODS.items()}
SPLITS = {name: usual_splits(name) for name in DATASETS}
# Numbers below it would be printed as 0.000; a user's table may be in any units.
SHOWN_AS_ZERO = 5e-4
MAX_R_HAT = 1.05  # R-hat of functions above which a sampler's cell is marked
TRIAL_KEY = ["set", "method", "split"]  # columns that identify a trial
FLAT_COLUMNS = {
    f"metrics.{name}": name for name in (*METRICS, "crps", "pit", "coverage")
}
FLAT_COLUMNS |= {f"rows.{part}": f"{part}_rows" for part in ("train", "test")}
FLAT_COLUMNS |= {f"seconds.{clock}": f"{clock}_seconds" for clock in ("wall", "cpu")}
MIXING_COLUMNS = [f"{what}_{space}" for space in SPACES for what in ("r_hat", "ess")]
FLAT_COLUMNS |= {f"notes.{name}": name for name in MIXING_COLUMNS}
COLUMN_DTYPES = dict.fromkeys(
    ("split", "seed", "train_rows", "test_rows"), "Int64"
) | dict.fromkeys(
    (*METRICS, "crps", "wall_seconds", "cpu_seconds", *MIXING_COLUMNS), "float64"
)
COLUMN_ORDER = [
    *TRIAL_KEY,
    "status",
    "seed",
    *METRICS,
    "crps",
    "train_rows",
    "test_rows",
]
COLUMN_ORDER += ["wall_seconds", "cpu_seconds", "error"]


@dataclass(frozen=True)
class Published:
    """One row of published results."""

    name: str
    source: str  # who, when, where it was read
    differs: str  # how its experiment differs from ours
    # From a set to (rmse, nll); None where there is no number.
    scores: Mapping[str, Sequence[float | None]]
    # Whether it is a posterior, or an approximation of one, over a network's weights.
    bayesian: bool = True
    reported_false: bool = False  # whether its author has reported it to be false

    def score(self, name: str, metric: str) -> float | None:
        """Return the number printed for a set and a metric; None if there is none here.

        Parameters
        ----------
        name : str
            Name of the set.
        metric : str
            "rmse" or "nll".
        """
        return self.scores.get(name, (None, None))[METRICS.index(metric)]


_TEXT = files(__package__).joinpath("published.json").read_text("utf-8")
PUBLISHED = tuple(Published(**row) for row in json.loads(_TEXT))
_BY_NAME = {row.name: row for row in PUBLISHED}
BASELINE = _BY_NAME["Bayes by Backprop, best public implementation"]
DROPOUT = _BY_NAME["MC dropout, grid search per split"]
NETWORKS = tuple(row for row in PUBLISHED if row.bayesian)


def lowest(
    name: str, metric: str, rows: Sequence[Published]
) -> tuple[float, str] | None:
    """Return the lowest published number of a cell, and whose it is; None if there is none.

    Parameters
    ----------
    name : str
        Name of the set.
    metric : str
        "rmse" or "nll".
    rows : sequence of Published
        Rows to look at; those reported false are left out.
    """
    value_by_name = {
        row.name: row.score(name, metric) for row in rows if not row.reported_false
    }
    finite = {
        row_name: value
        for row_name, value in value_by_name.items()
        if value is not None
    }
    if not finite:
        return None
    lowest_value = min(finite.values())
    return lowest_value, " and ".join(
        row_name for row_name, value in finite.items() if value == lowest_value
    )


def printed(value: float | None) -> str:
    """Return a number as it was printed: two decimals, or as many as it has."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value == round(value, 2) else f"{value:.10g}"


def label(method: str) -> str:
    """Return the name of a method for print."""
    return METHOD_LABELS.get(method, method)


@dataclass(frozen=True)
class Summary:
    """Mean over splits and its standard error, nan for a single split."""

    mean: float
    error: float
    count: int

    def __str__(self) -> str:
        if self.count < 2:
            notation = "f" if abs(self.mean) >= SHOWN_AS_ZERO else "g"
            return f"{self.mean:.3{notation}}"
        digits = 3
        if 0 < self.error < SHOWN_AS_ZERO:
            digits = 1 - floor(log10(self.error))
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


@dataclass(frozen=True)
class Cell:
    """One method on one set; `scores` is empty if no split succeeded."""

    set: str
    method: str
    scores: Mapping[str, Summary]  # by metric
    splits: tuple[int, ...]  # those that succeeded
    failed: Mapping[int, str]  # split -> error
    seconds: float  # median wall seconds of a trial; nan without one

    @property
    def complete(self) -> bool:
        """Whether every split that is to be measured has succeeded."""
        return set(range(SPLITS.get(self.set, 1))) <= set(self.splits)

    @property
    def rests_on(self) -> str:
        """Number of splits of its means in words, e.g. ``3 of 20 splits``."""
        n_published = SPLITS.get(self.set)
        count = len(self.splits)
        if (
            n_published is None or count >= n_published
        ):  # as many as published, but others
            return f"{count} split{'s' * (count != 1)}"
        return f"{count} of {n_published} splits"


def summary(values: Iterable[float]) -> Summary:
    """Return mean, standard error (that with N - 1, over sqrt N) and number of values."""
    series = pd.Series(list(values), dtype=float)
    return Summary(float(series.mean()), float(series.sem()), len(series))


def frame(records: Records) -> pd.DataFrame:
    """Return a table with a row for every trial, in the order of print; of a table, itself.

    The last record of a trial counts. Sets and methods come in the published order, then those
    unknown to it. The index is the place among `records`.
    """
    if isinstance(records, pd.DataFrame):
        return records
    table = pd.json_normalize([dict(record) for record in records], max_level=1).rename(
        columns=FLAT_COLUMNS
    )
    table = table.reindex(
        columns=[*COLUMN_ORDER, "pit", "coverage", *MIXING_COLUMNS]
    ).astype(COLUMN_DTYPES)
    table = table.drop_duplicates(TRIAL_KEY, keep="last")
    for key, order in (("set", DATASETS), ("method", METHOD_LABELS)):
        table[key] = pd.Categorical(
            table[key], known_first(table[key], order), ordered=True
        )
    return table.sort_values(TRIAL_KEY)


def current(records: Iterable[Record]) -> list[Record]:
    """Return the last record of every trial, by set, method and split."""
    all_records = list(records)
    return [all_records[position] for position in frame(all_records).index]


def known_first(
    names: Iterable[str], order: Iterable[str] = tuple(METHOD_LABELS)
) -> list[str]:
    """Return the different names: first those of `order` in its order, then the others sorted.

    Parameters
    ----------
    names : iterable of str
        May hold a name several times.
    order : iterable of str
        By default that of `METHOD_LABELS`.
    """
    present = set(names)
    order = list(order)
    return [name for name in order if name in present] + sorted(present - set(order))


def succeeded(records: Iterable[Record]) -> list[Record]:
    """Return the current records that hold metrics."""
    return [record for record in current(records) if record["status"] == "ok"]


def cells(records: Records) -> dict[tuple[str, str], Cell]:
    """Return every (set, method) of the records, in the order of print."""
    cell_by_key = {}
    for (name, method), group in frame(records).groupby(
        ["set", "method"], observed=True
    ):
        ok_trials = group[group["status"] == "ok"]
        failed = group[group["status"] != "ok"]
        cell_by_key[name, method] = Cell(
            name,
            method,
            {metric: summary(ok_trials[metric]) for metric in METRICS}
            if len(ok_trials)
            else {},
            tuple(ok_trials["split"].tolist()),
            dict(zip(failed["split"].tolist(), map(str, failed["error"]), strict=True)),
            float(ok_trials["wall_seconds"].median()),
        )
    return cell_by_key


def leading(candidates: Iterable[Cell], metric: str) -> Cell | None:
    """Return the cell of the lowest mean, of those with all splits if there are any.

    Splits differ far more than methods do: one that has met only easy ones would lead.

    Parameters
    ----------
    candidates : iterable of Cell
        Cells of one set; those without scores are left out.
    metric : str
        "rmse" or "nll".
    """
    scored = [cell for cell in candidates if cell.scores]
    complete = [cell for cell in scored if cell.complete]
    return min(
        complete or scored, key=lambda cell: cell.scores[metric].mean, default=None
    )


def paired(
    records: Records, name: str, first: str, second: str, metric: str
) -> Summary | None:
    """Return the mean difference of two methods over their common splits; None if there are none.

    Splits differ far more than methods do: the error of this difference is what decides, not
    the errors of the two means.

    Parameters
    ----------
    records : records or DataFrame
        Of all trials.
    name : str
        Name of the set.
    first, second : str
        The methods; the difference is that of `first` less `second`.
    metric : str
        "rmse" or "nll".
    """
    table = frame(records)
    ok_trials = table[(table["status"] == "ok") & (table["set"] == name)].set_index(
        "split"
    )
    a = ok_trials.loc[ok_trials["method"] == first, metric]
    b = ok_trials.loc[ok_trials["method"] == second, metric]
    gap = (a - b).dropna()  # aligned by split
    return summary(gap) if len(gap) else None


def mixing(records: Records) -> dict[tuple[str, str], pd.DataFrame]:
    """Return what was recorded of how chains mixed, by set and sampler: a row for each split.

    R-hat and effective sample sizes, each the worst of its kind; nan where older records have none.
    """
    table = frame(records)
    ok_trials = table[(table["status"] == "ok") & table["method"].isin(SAMPLERS)]
    return {
        key: group[MIXING_COLUMNS]
        for key, group in ok_trials.groupby(["set", "method"], observed=True)
    }


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, aligned in plain text, too.

    Parameters
    ----------
    header : sequence of str
        Titles of the columns.
    rows : iterable of sequence of str
        One cell for each title.
    """
    lines = [list(header), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        [cell.ljust(w) for cell, w in zip(line, widths, strict=True)] for line in lines
    ]
    text = [f"| {' | '.join(line)} |" for line in padded]
    return "\n".join(
        [text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]]
    )


def markdown(records: Records, published: bool = True) -> str:
    """Return the results as a Markdown table: methods as rows, sets as columns, "rmse / nll".

    The lowest mean of ours in each column is bold, RMSE and NLL each for itself (see `leading`).
    A number of splits is given where some are missing; failed trials are named below. A sampler's
    cell has R-hat of its functions, the median over splits.

    Parameters
    ----------
    records : records or DataFrame
        Of all trials.
    published : bool
        Whether to add published rows; those reported false are in italics.
    """
    table = frame(records)
    cell_by_key = cells(table)
    mixed = mixing(table)
    sets = list(dict.fromkeys(name for name, _ in cell_by_key))
    best_cells = {
        (name, metric): leading(
            (c for c in cell_by_key.values() if c.set == name), metric
        )
        for name in sets
        for metric in METRICS
    }

    def shown(key: tuple[str, str]) -> str:
        cell = cell_by_key.get(key)
        if cell is None:
            return "–"
        if not cell.scores:
            return "failed"
        parts = []
        for metric, score in cell.scores.items():
            best = best_cells[cell.set, metric]
            bold = "**" if best and score.mean == best.scores[metric].mean else ""
            parts.append(f"{bold}{score}{bold}")
        text = " / ".join(parts)
        if key in mixed:
            text += f", {_r_hat(mixed[key])}"
        is_complete = cell.complete and len(cell.splits) == SPLITS.get(cell.set)
        return text if is_complete else f"{text} ({cell.rests_on})"

    methods = known_first(method for _, method in cell_by_key)
    rows = [
        [label(method), *(shown((name, method)) for name in sets)] for method in methods
    ]
    for row in PUBLISHED if published else ():
        emphasis = "*" if row.reported_false else ""
        title = row.name
        if row.reported_false:
            title += " (reported false by its author)"
        numbers = [
            " / ".join(printed(row.score(name, m)) for m in METRICS)
            if name in row.scores
            else "–"
            for name in sets
        ]
        rows.append(
            [
                f"{emphasis}{text}{emphasis}"
                for text in (f"published: {title}", *numbers)
            ]
        )
    failed = failures(cell_by_key.values())
    lines = [grid(["RMSE / NLL", *sets], rows)]
    if failed:
        lines += ["", "Failed trials:", "", *(f"- {line}" for line in failed)]
    return "\n".join(lines)


def _r_hat(mixed: pd.DataFrame) -> str:
    """Return the median R-hat, marked above `MAX_R_HAT`, and its number of splits if not all."""
    values = mixed["r_hat_functions"].dropna()
    if not len(values):
        return "R̂ –"
    median = values.median()
    mark = "†" if median > MAX_R_HAT else ""
    count = ""
    if len(values) < len(mixed):
        count = f" of {len(values)} split{'s' * (len(values) != 1)}"
    return f"R̂ {median:.2f}{mark}{count}"


def failures(cells_with_failures: Iterable[Cell]) -> list[str]:
    """Return a line for each error of a cell, with the splits that failed by it."""
    lines = []
    for cell in cells_with_failures:
        for error in dict.fromkeys(cell.failed.values()):
            splits = [
                str(split) for split, message in cell.failed.items() if message == error
            ]
            which_splits = f"split{'s' * (len(splits) > 1)} {', '.join(splits)}"
            lines.append(f"{cell.set}, {cell.method}, {which_splits}: {error}")
    return lines

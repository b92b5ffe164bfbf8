"""The text of the benchmark's page, by the templates beside this file, and the output folder.

Every number is computed from the records; only the published ones are typed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from bbb_numpy.cli.tables import csv_text
from bbb_numpy.numeric.files import path_in_errors, write_text

from . import hierarchy, pictures, tables, verdicts
from .gaps import GAP_SETS
from .tables import (
    DATASETS,
    METHOD_LABELS,
    METRICS,
    SPLITS,
    Cell,
    Record,
    cells,
    current,
    label,
)


def _render(name: str, records: Iterable[Record], **variables: Any) -> str:
    """Return a page; ValueError if there is no record to write about."""
    rows = current(records)
    if not rows:
        raise ValueError("there is no record to write about; run some trials first")
    table = tables.frame(rows)
    all_cells = list(cells(table).values())
    return TEMPLATES.get_template(name).render(
        rows=rows,
        fine=tables.succeeded(rows),
        table=table,
        cells=all_cells,
        mixed=tables.mixing(table),
        complete=_complete(all_cells),
        ahead=verdicts.ahead(all_cells),
        pairs=_pairs(table),
        fewer_rows=_fewer_rows(table),
        beyond=sorted(
            {r["set"] for r in rows if r["split"] >= SPLITS.get(r["set"], 10**9)}
        ),
        **variables,
    )


def page(
    records: Iterable[Record],
    command: str,
    gaps: Sequence[Record] = (),
    in_folder: bool = False,
) -> str:
    """Return the text of ``benchmarks/uci.md``, or of ``table.md`` in a run's folder.

    Parameters
    ----------
    records : iterable of Record
        Of all trials; the last record of a trial counts.
    command : str
        What one types to repeat the run.
    gaps : sequence of Record
        Records of gap splits; by default none.
    in_folder : bool
        Whether to name the files as in the output folder of a run.

    Raises
    ------
    ValueError
        If there is no record.
    """
    rows = list(records)
    measured = {(record["set"], record["method"]) for record in rows}
    missing = {
        name: [m for m in METHOD_LABELS if (name, m) not in measured]
        for name in DATASETS
    }
    where = "`uci_records.jsonl` beside this page"
    prefix = "uci_"
    if in_folder:
        where = "the folder `records`"
        prefix = ""
    return _render(
        "uci.md.j2",
        rows,
        command=command,
        where=where,
        prefix=prefix,
        absent={name: methods for name, methods in missing.items() if methods},
        gaps=gap_section(gaps) if gaps else "",
    )


def gap_section(records: Iterable[Record], prefix: str = "uci_") -> str:
    """Return the part of the page about gap splits.

    Parameters
    ----------
    records : iterable of Record
        Records of gap splits.
    prefix : str
        With which the names of pictures begin.
    """
    rows = list(records)
    table = pictures.gap_table(rows)
    text = TEMPLATES.get_template("gaps.md.j2").render(
        rows=rows,
        failed=sum(record["status"] != "ok" for record in rows),
        table=table,
        level=pictures.GAP_COVERAGE_LEVEL,
        methods=list(table.groupby("method", observed=True, sort=False)),
        open=_open_gaps(table),
        gap_sets=GAP_SETS,
        prefix=prefix,
    )
    return text.rstrip()


def _open_gaps(table: pd.DataFrame) -> dict[str, list[str]]:
    """Return by set the methods that are still open, or rest on fewer gaps than others."""
    open_cells: dict[str, list[str]] = {}
    for name in GAP_SETS:
        rows_of_set = table[table["set"] == name]
        gaps_by_method = dict(
            zip(rows_of_set["method"], rows_of_set["gaps"], strict=True)
        )
        max_gaps = max(gaps_by_method.values(), default=0)
        open_cells[name] = [
            METHOD_LABELS[m]
            + (
                f" {gaps_by_method[m]} of {max_gaps} gaps"
                if m in gaps_by_method
                else ""
            )
            for m in sorted(METHOD_LABELS, key=gaps_by_method.__contains__)
            if gaps_by_method.get(m, 0) < max_gaps
        ] or ([] if gaps_by_method else ["all methods"])
    return {name: methods for name, methods in open_cells.items() if methods}


def write(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md``, ``trials.csv`` and the pictures, and return text for the terminal.

    The text has the table, and how many cells reach what was published.

    Parameters
    ----------
    out : Path
        Folder of the run.
    records : iterable of Record
        Of all trials.
    command : str
        What one types to repeat the run.

    Raises
    ------
    ValueError
        If there is no record.
    """
    rows = current(records)
    table = _write_files(out, rows, page(rows, command, in_folder=True))
    lines = [_plain(table), "", _complete(cells(table).values())]
    for target in verdicts.TARGETS.values():
        verdict_list = verdicts.against(
            cells(table).values(), target.rows, target.methods.__contains__
        )
        if any(verdict.cell for verdict in verdict_list):
            lines.append(f"{target.short}: {verdicts.count(verdict_list)}")
    return "\n".join(lines)


def write_own(out: Path, records: Iterable[Record], command: str) -> str:
    """Write the files of `write` for a table of one's own, without published numbers.

    Parameters
    ----------
    out : Path
        Folder of the run.
    records : iterable of Record
        Of all trials.
    command : str
        What one types to repeat the run.

    Returns
    -------
    str
        Text for the terminal.

    Raises
    ------
    ValueError
        If there is no record.
    """
    rows = current(records)
    return _plain(_write_files(out, rows, _render("own.md.j2", rows, command=command)))


def write_gaps(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md`` and ``gaps.png`` about gap splits, and return text for the terminal.

    Parameters
    ----------
    out : Path
        Folder of the run.
    records : iterable of Record
        Records of gap splits.
    command : str
        What one types to repeat the run.
    """
    rows = list(records)
    write_text(
        out / "table.md", f"{gap_section(rows, prefix='')}\n\n```\n{command}\n```\n"
    )
    if any(record["status"] == "ok" for record in rows):
        _save(out, rows, pictures.gaps)
    grid = TEMPLATES.get_template("macros.md.j2").module.gap_grid  # type: ignore[attr-defined]
    return str(grid(pictures.gap_table(rows), pictures.GAP_COVERAGE_LEVEL)).rstrip()


def _write_files(out: Path, rows: Sequence[Record], text: str) -> pd.DataFrame:
    """Write all files, the page with its `text`; return the table of the trials."""
    table = tables.frame(rows)
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "table.md", text)
    write_text(out / "trials.csv", csv_text(table[tables.COLUMN_ORDER]))
    if tables.succeeded(rows):
        _save(out, rows, pictures.scores, pictures.calibration, pictures.pit)
    return table


def _save(
    out: Path, rows: Sequence[Record], *draws: Callable[[Iterable[Record]], Figure]
) -> None:
    for draw in draws:
        path = out / f"{draw.__name__}.png"
        with path_in_errors(path):
            draw(rows).savefig(path, dpi=100)


def _plain(table: pd.DataFrame) -> str:
    """Return the results for a terminal: a line per set and method, and what failed."""
    rows = []
    for cell in cells(table).values():
        scores = [str(cell.scores.get(metric, "failed")) for metric in METRICS]
        n_splits = f"{len(cell.splits)}/{SPLITS.get(cell.set, len(cell.splits))}"
        seconds = f"{cell.seconds:.1f}" if cell.splits else "–"
        rows.append([cell.set, label(cell.method), *scores, n_splits, seconds])
    failed = [f"  {line}" for line in tables.failures(cells(table).values())]
    text = tables.grid(["set", "method", "RMSE", "NLL", "splits", "seconds each"], rows)
    if failed:
        failed = ["", "Failed:", *failed]
    return "\n".join([text, *failed])


def _complete(cells_with_scores: Iterable[Cell]) -> str:
    """Return a sentence that names the cells of which splits are missing."""
    methods_by_gap: dict[tuple[str, str], list[str]] = {}
    for cell in cells_with_scores:
        if not cell.complete:
            methods_by_gap.setdefault((cell.set, cell.rests_on), []).append(cell.method)
    missing = [
        f"{name}, {', '.join(methods)}: {splits}"
        for (name, splits), methods in methods_by_gap.items()
    ]
    if missing:
        return "Splits are missing in: " + "; ".join(missing) + "."
    return "Every set and method above has all its splits."


def _pairs(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Compare every method with the one of the lowest mean NLL, set by set, on common splits."""
    scored = [cell for cell in cells(table).values() if cell.scores]
    pairs = []
    for name in dict.fromkeys(cell.set for cell in scored):
        cells_of_set = [cell for cell in scored if cell.set == name]
        best = tables.leading(cells_of_set, "nll")
        for cell in cells_of_set:
            if best is not None and cell is not best:
                first = cell.method
                second = best.method
                rmse = tables.paired(table, name, first, second, "rmse")
                nll = tables.paired(table, name, first, second, "nll")
                if rmse and nll:
                    pairs.append((name, first, second, rmse, nll))
    return pairs


def _fewer_rows(table: pd.DataFrame) -> list[tuple[str, str, int, int]]:
    """Return methods that were trained on fewer rows than others on the same set."""
    ok_trials = table[table["status"] == "ok"]
    max_rows = ok_trials.groupby("set", observed=True)["train_rows"].max()
    min_rows = ok_trials.groupby(["set", "method"], observed=True)["train_rows"].min()
    return [
        (n, m, count, max_rows[n])
        for (n, m), count in min_rows.items()
        if count < max_rows[n]
    ]


# The settings, seeds, hyperparameters, seconds and versions of a run.


def settings_of(rows: Sequence[Record]) -> dict[str, Any]:
    """Return the settings common to all trials, lines on those that differ, and the seeds."""
    settings = [row.get("settings") or {} for row in rows]
    names = list(
        dict.fromkeys(name for record_settings in settings for name in record_settings)
    )
    common = [
        name
        for name in names
        if len({_show(record_settings.get(name)) for record_settings in settings}) == 1
    ]
    return {
        "common": [f"`{name}` {_show(settings[0].get(name))}" for name in common],
        "varied": [_varied(rows, name) for name in names if name not in common],
        "seeds": {row["seed"] for row in rows if row.get("seed") is not None},
    }


def _varied(rows: Sequence[Record], name: str) -> str:
    """Return who has which value: by set or by method, if that tells it."""
    for parts in (("set",), ("method",), ("set", "method")):
        groups: dict[str, dict[str, None]] = {}
        for row in rows:
            value = _show((row.get("settings") or {}).get(name))
            groups.setdefault(value, {})[" ".join(row[part] for part in parts)] = None
        if (
            max(Counter(who for group in groups.values() for who in group).values())
            == 1
        ):
            break  # every group has a single value
    return f"- `{name}`: " + "; ".join(
        f"{v} ({', '.join(who)})" for v, who in groups.items()
    )


def chosen(rows: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Return for each set and method the hyperparameters chosen over the splits."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("chosen"):
            groups.setdefault((row["set"], row["method"]), []).append(row["chosen"])
    lines = []
    for set_and_method, candidates in groups.items():
        # The table of the other candidates, a dict, is left to the records.
        keys = dict.fromkeys(
            k
            for candidate in candidates
            for k, v in candidate.items()
            if not isinstance(v, dict)
        )
        lines.append(
            (
                *set_and_method,
                "; ".join(
                    f"{k}: {_values(o.get(k) for o in candidates)}" for k in keys
                ),
            )
        )
    return lines


def _values(values: Iterable[Any]) -> str:
    """Return one value, a few with their counts, or the range of many numbers."""
    present = [value for value in values if value is not None]
    counts = Counter(map(_show, present))
    if len(counts) == 1:
        return _show(present[0])
    if len(counts) > 4 and all(isinstance(value, (int, float)) for value in present):
        return f"{min(present):.3g} to {max(present):.3g}, median {median(present):.3g}"
    return ", ".join(f"{text} ({count}×)" for text, count in counts.items()) or "–"


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def versions(rows: Sequence[Record]) -> Counter[str]:
    """Return how many trials were run with each combination of versions."""
    combinations = (row["versions"].items() for row in rows if row.get("versions"))
    return Counter(
        ", ".join(f"{name} {value}" for name, value in combination)
        for combination in combinations
    )


def _signed(gap: tables.Summary) -> str:
    return f"{gap.mean:+.3f}" + (f" ± {gap.error:.3f}" if gap.count > 1 else "")


def _spread(table: pd.DataFrame, space: str) -> str:
    """Return R-hat and effective sample sizes: the median, in brackets the worst."""
    r_hat = table[f"r_hat_{space}"].dropna()
    ess = table[f"ess_{space}"].dropna()
    if not len(r_hat):
        return "–"
    return f"{r_hat.median():.2f} ({r_hat.max():.2f}), ESS {ess.median():.0f} ({ess.min():.0f})"


TEMPLATES = Environment(  # Markdown: nothing to escape
    loader=PackageLoader("bbb_studies.uci", ""),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
    autoescape=False,
)
TEMPLATES.filters.update(label=label, signed=_signed, spread=_spread)
TEMPLATES.globals.update(
    hierarchy=hierarchy,
    chosen=chosen,
    settings_of=settings_of,
    splits=SPLITS,
    tables=tables,
    verdicts=verdicts,
    versions=versions,
)

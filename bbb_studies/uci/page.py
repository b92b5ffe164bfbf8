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
    COLUMNS,
    LABELS,
    METRICS,
    SPLITS,
    Cell,
    Record,
    cells,
    current,
    label,
)


def _render(name: str, records: Iterable[Record], **more: Any) -> str:
    """Return a page; ValueError if there is no record to write about."""
    rows = current(records)
    if not rows:
        raise ValueError("there is no record to write about; run some trials first")
    table = tables.frame(rows)
    found = list(cells(table).values())
    return TEMPLATES.get_template(name).render(
        rows=rows,
        fine=tables.succeeded(rows),
        table=table,
        cells=found,
        mixed=tables.mixing(table),
        complete=_complete(found),
        ahead=verdicts.ahead(found),
        pairs=_pairs(table),
        fewer_rows=_fewer_rows(table),
        beyond=sorted(
            {r["set"] for r in rows if r["split"] >= SPLITS.get(r["set"], 10**9)}
        ),
        **more,
    )


def page(
    records: Iterable[Record],
    command: str,
    gaps: Sequence[Record] = (),
    in_folder: bool = False,
) -> str:
    """Return the text of ``benchmarks/uci.md``, or of ``table.md`` in a run's folder.

    Of a repeated trial the last record counts; `gaps` are those of gap splits; `command` wrote
    them; `in_folder`: name the files as in the output folder of a run.
    """
    rows = list(records)
    have = {(one["set"], one["method"]) for one in rows}
    absent = {name: [m for m in LABELS if (name, m) not in have] for name in COLUMNS}
    return _render(
        "uci.md.j2",
        rows,
        command=command,
        where="the folder `records`"
        if in_folder
        else "`uci_records.jsonl` beside this page",
        prefix="" if in_folder else "uci_",
        absent={name: methods for name, methods in absent.items() if methods},
        gaps=gap_section(gaps) if gaps else "",
    )


def gap_section(records: Iterable[Record], prefix: str = "uci_") -> str:
    """Return the part of the page about gap splits; names of pictures begin with `prefix`."""
    rows = list(records)
    table = pictures.gap_table(rows)
    text = TEMPLATES.get_template("gaps.md.j2").render(
        rows=rows,
        failed=sum(one["status"] != "ok" for one in rows),
        table=table,
        level=pictures.LEVEL,
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
        own = table[table["set"] == name]
        have = dict(zip(own["method"], own["gaps"], strict=True))
        most = max(have.values(), default=0)
        open_cells[name] = [
            LABELS[m] + (f" {have[m]} of {most} gaps" if m in have else "")
            for m in sorted(LABELS, key=have.__contains__)
            if have.get(m, 0) < most
        ] or ([] if have else ["all methods"])
    return {name: what for name, what in open_cells.items() if what}


def write(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md``, ``trials.csv`` and the pictures into `out`; return text for the terminal.

    The table and how many cells reach what. ValueError if there is no record.
    """
    rows = current(records)
    table = _write_files(out, rows, page(rows, command, in_folder=True))
    lines = [_plain(table), "", _complete(cells(table).values())]
    for target in verdicts.TARGETS.values():
        found = verdicts.against(
            cells(table).values(), target.rows, target.methods.__contains__
        )
        if any(one.cell for one in found):
            lines.append(f"{target.short}: {verdicts.count(found)}")
    return "\n".join(lines)


def write_own(out: Path, records: Iterable[Record], command: str) -> str:
    """Write what `write` does about a table of one's own, without published numbers."""
    rows = current(records)
    return _plain(_write_files(out, rows, _render("own.md.j2", rows, command=command)))


def write_gaps(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md`` and ``gaps.png`` about gap splits; return the text for the terminal."""
    rows = list(records)
    write_text(
        out / "table.md", f"{gap_section(rows, prefix='')}\n\n```\n{command}\n```\n"
    )
    if any(one["status"] == "ok" for one in rows):
        _save(out, rows, pictures.gaps)
    grid = TEMPLATES.get_template("macros.md.j2").module.gap_grid  # type: ignore[attr-defined]
    return str(grid(pictures.gap_table(rows), pictures.LEVEL)).rstrip()


def _write_files(out: Path, rows: Sequence[Record], text: str) -> pd.DataFrame:
    """Write all files, the page with its `text`; return the table of the trials."""
    table = tables.frame(rows)
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "table.md", text)
    write_text(out / "trials.csv", csv_text(table[tables.ORDER]))
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
        done = f"{len(cell.splits)}/{SPLITS.get(cell.set, len(cell.splits))}"
        each = f"{cell.seconds:.1f}" if cell.splits else "–"
        rows.append([cell.set, label(cell.method), *scores, done, each])
    failed = [f"  {line}" for line in tables.failures(cells(table).values())]
    found = tables.grid(
        ["set", "method", "RMSE", "NLL", "splits", "seconds each"], rows
    )
    return "\n".join([found, *(["", "Failed:"] if failed else []), *failed])


def _complete(found: Iterable[Cell]) -> str:
    """Name the cells of which splits are missing, those alike together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for cell in found:
        if not cell.complete:
            alike.setdefault((cell.set, cell.rests_on), []).append(cell.method)
    missing = [
        f"{name}, {', '.join(methods)}: {of}" for (name, of), methods in alike.items()
    ]
    if missing:
        return "Splits are missing in: " + "; ".join(missing) + "."
    return "Every set and method above has all its splits."


def _pairs(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Compare every method with the one of the lowest mean NLL, set by set, on common splits."""
    found = [cell for cell in cells(table).values() if cell.scores]
    pairs = []
    for name in dict.fromkeys(cell.set for cell in found):
        own = [cell for cell in found if cell.set == name]
        best = tables.leading(own, "nll")
        for cell in own:
            if best is not None and cell is not best:
                pair = cell.method, best.method
                rmse, nll = (tables.paired(table, name, *pair, m) for m in METRICS)
                if rmse and nll:
                    pairs.append((name, *pair, rmse, nll))
    return pairs


def _fewer_rows(table: pd.DataFrame) -> list[tuple[str, str, int, int]]:
    """Return methods that were trained on fewer rows than others on the same set."""
    fine = table[table["status"] == "ok"]
    most = fine.groupby("set", observed=True)["train_rows"].max()
    least = fine.groupby(["set", "method"], observed=True)["train_rows"].min()
    return [
        (n, m, count, most[n]) for (n, m), count in least.items() if count < most[n]
    ]


# What a run used: settings, seeds, hyperparameters, time, versions


def settings_of(rows: Sequence[Record]) -> dict[str, Any]:
    """Return the settings common to all trials, lines on those that differ, and the seeds."""
    settings = [row.get("settings") or {} for row in rows]
    names = list(dict.fromkeys(name for one in settings for name in one))
    common = [
        name for name in names if len({_show(one.get(name)) for one in settings}) == 1
    ]
    return {
        "common": [f"`{name}` {_show(settings[0].get(name))}" for name in common],
        "varied": [_varied(rows, name) for name in names if name not in common],
        "seeds": {row["seed"] for row in rows if row.get("seed") is not None},
    }


def _varied(rows: Sequence[Record], name: str) -> str:
    """Return who has which value: by set or by method, if that tells it."""
    for parts in (("set",), ("method",), ("set", "method")):
        found: dict[str, dict[str, None]] = {}
        for row in rows:
            value = _show((row.get("settings") or {}).get(name))
            found.setdefault(value, {})[" ".join(row[part] for part in parts)] = None
        if max(Counter(who for group in found.values() for who in group).values()) == 1:
            break  # nobody has two values
    return f"- `{name}`: " + "; ".join(
        f"{v} ({', '.join(who)})" for v, who in found.items()
    )


def chosen(rows: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Return for each set and method the hyperparameters chosen over the splits."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("chosen"):
            groups.setdefault((row["set"], row["method"]), []).append(row["chosen"])
    lines = []
    for where, found in groups.items():
        # what else was tried, a table in itself, stays in the records
        keys = dict.fromkeys(
            k for one in found for k, v in one.items() if not isinstance(v, dict)
        )
        lines.append(
            (
                *where,
                "; ".join(f"{k}: {_values(o.get(k) for o in found)}" for k in keys),
            )
        )
    return lines


def _values(values: Iterable[Any]) -> str:
    """Return one value, a few with their counts, or the range of many numbers."""
    given = [value for value in values if value is not None]
    shown = Counter(map(_show, given))
    if len(shown) == 1:
        return _show(given[0])
    if len(shown) > 4 and all(isinstance(value, (int, float)) for value in given):
        return f"{min(given):.3g} to {max(given):.3g}, median {median(given):.3g}"
    return ", ".join(f"{text} ({count}×)" for text, count in shown.items()) or "–"


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def versions(rows: Sequence[Record]) -> Counter[str]:
    """Return how many trials were run with each combination of versions."""
    said = (row["versions"].items() for row in rows if row.get("versions"))
    return Counter(", ".join(f"{name} {value}" for name, value in one) for one in said)


def _signed(gap: tables.Summary) -> str:
    return f"{gap.mean:+.3f}" + (f" ± {gap.error:.3f}" if gap.count > 1 else "")


def _spread(found: pd.DataFrame, space: str) -> str:
    """Return R-hat and effective sample sizes: the median, in brackets the worst."""
    r_hat, size = (found[f"{what}_{space}"].dropna() for what in ("r_hat", "ess"))
    if not len(r_hat):
        return "–"
    return f"{r_hat.median():.2f} ({r_hat.max():.2f}), ESS {size.median():.0f} ({size.min():.0f})"


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

"""The text of the benchmark's page, by the templates beside this file, and the output folder.

Every number is computed from the records; only the published ones are typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from bbb_numpy.numeric.files import naming, write_text

from . import gap_page, hierarchy, pictures, tables, verdicts
from .gaps import GAP_SETS
from .machine import machine_time, settings_table, versions
from .published import COLUMNS, METRICS, PUBLISHED, printed
from .tables import LABELS, SPLITS, Record, cells, current, label

__all__ = ["gap_section", "own_page", "page", "write", "write_gaps", "write_own"]

TEMPLATES = Environment(  # Markdown: nothing to escape
    loader=PackageLoader("bbb_studies.uci", ""),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
    autoescape=False,
)
TEMPLATES.filters.update(
    label=label,
    signed=lambda gap: f"{gap.mean:+.3f}" + (f" ± {gap.error:.3f}" if gap.count > 1 else ""),
    spread=lambda found, space: _spread(found[f"r_hat_{space}"], found[f"ess_{space}"]),
)
TEMPLATES.globals.update(
    against=lambda rows, target: _against(rows, target),
    alone=verdicts.alone,
    chances=hierarchy.markdown,
    count=verdicts.count,
    machine_time=machine_time,
    printed=printed,
    published=PUBLISHED,
    settings_table=settings_table,
    splits=SPLITS,
    tables=tables,
    targets=verdicts.TARGETS,
    verdicts=verdicts.table,
    versions=versions,
)


def _spread(r_hat: Sequence[float], size: Sequence[float]) -> str:
    """Return R-hat and effective sample sizes: the median, in brackets the worst."""
    if not r_hat:
        return "–"
    return f"{median(r_hat):.2f} ({max(r_hat):.2f}), ESS {median(size):.0f} ({min(size):.0f})"


def _against(rows: Sequence[Record], target: verdicts.Target) -> list[verdicts.Verdict]:
    return verdicts.against(rows, target.rows, target.methods.__contains__)


def _render(name: str, records: Iterable[Record], **more: Any) -> str:
    """Return a page; ValueError if there is no record to write about."""
    rows = current(records)
    if not rows:
        raise ValueError("there is no record to write about; run some trials first")
    return TEMPLATES.get_template(name).render(
        rows=rows,
        fine=tables.succeeded(rows),
        pairs=_pairs(rows),
        fewer_rows=_fewer_rows(rows),
        beyond=sorted({r["set"] for r in rows if r["split"] >= SPLITS.get(r["set"], 10**9)}),
        **more,
    )


def page(
    records: Iterable[Record], command: str, gaps: Sequence[Record] = (), in_folder: bool = False
) -> str:
    """Return the text of ``benchmarks/uci.md``, or of ``table.md`` in a run's folder.

    Parameters
    ----------
    records : iterable of mapping
        As read from the record file; of a repeated trial the last one counts.
    command : str
        The command that wrote them.
    gaps : sequence of mapping
        Records of gap splits, see `bbb_studies.uci.gaps`.
    in_folder : bool
        Name the files as in the output folder of a run.
    """
    rows = list(records)
    return _render(
        "uci.md.j2",
        rows,
        command=command,
        where="the folder `records`" if in_folder else "`uci_records.jsonl` beside this page",
        prefix="" if in_folder else "uci_",
        mixed=tables.mixing(rows),
        complete=_complete(rows),
        absent=_absent(rows),
        ahead=verdicts.ahead(rows),
        gaps=gap_section(gaps) if gaps else "",
    )


def own_page(records: Iterable[Record], command: str) -> str:
    """Return the text about trials on a table of one's own, without published numbers."""
    return _render("own.md.j2", records, command=command)


def gap_section(records: Iterable[Record], prefix: str = "uci_") -> str:
    """Return the part of the page about gap splits; names of pictures begin with `prefix`."""
    rows = list(records)
    found = gap_page.cells(rows)
    return (
        TEMPLATES.get_template("gaps.md.j2")
        .render(
            rows=rows,
            failed=sum(one["status"] != "ok" for one in rows),
            table=gap_page.table(rows),
            said=gap_page.said(found),
            open=gap_page.missing(found),
            gap_sets=GAP_SETS,
            prefix=prefix,
        )
        .rstrip()
    )


def write(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md``, ``table.csv``, ``trials.csv`` and the pictures into `out`.

    Returns
    -------
    str
        The text for the terminal: the table and how many cells reach what.

    Raises
    ------
    ValueError
        If there is no record.
    OSError
        If a file cannot be written.
    """
    rows = current(records)
    _write_files(out, rows, page(rows, command, in_folder=True))
    lines = [_plain(rows), "", _complete(rows)]
    for target in verdicts.TARGETS.values():
        found = _against(rows, target)
        if any(one.cell for one in found):
            lines.append(f"{target.short}: {verdicts.count(found)}")
    return "\n".join(lines)


def write_own(out: Path, records: Iterable[Record], command: str) -> str:
    """Write what `write` does, about a table of one's own; return the text for the terminal."""
    rows = current(records)
    _write_files(out, rows, own_page(rows, command))
    return _plain(rows)


def write_gaps(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md`` and ``gaps.png`` about gap splits; return the text for the terminal."""
    rows = list(records)
    if not rows:
        raise ValueError("there is no record to write about; run some trials first")
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "table.md", f"{gap_section(rows, prefix='')}\n\n```\n{command}\n```\n")
    if any(one["status"] == "ok" for one in rows):
        _save(out, rows, [pictures.gaps])
    return gap_page.table(rows)


def _write_files(out: Path, rows: Sequence[Record], text: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "table.md", text)
    write_text(out / "table.csv", tables.cells_csv(rows))
    write_text(out / "trials.csv", tables.trials_csv(rows))
    if tables.succeeded(rows):
        _save(out, rows, [pictures.scores, pictures.calibration, pictures.pit])


def _save(
    out: Path, rows: Sequence[Record], draws: Sequence[Callable[[Iterable[Record]], Figure]]
) -> None:
    for draw in draws:
        path = out / f"{draw.__name__}.png"
        with naming(path):
            draw(rows).savefig(path, dpi=100)


def _plain(rows: Sequence[Record]) -> str:
    """Return the results for a terminal: a block per set, a line per method."""
    lines: list[str] = []
    name = ""
    for cell in cells(rows).values():
        if cell.set != name:
            name = cell.set
            lines += ["", f"{name:36}  {'RMSE':>15}  {'NLL':>15}  splits  seconds each"]
        rmse, nll = (str(cell.scores.get(metric, "failed")) for metric in METRICS)
        done = f"{len(cell.splits)}/{SPLITS.get(name, len(cell.splits))}"
        each = f"{cell.seconds:.1f}" if cell.splits else "–"
        lines.append(f"{label(cell.method):36}  {rmse:>15}  {nll:>15}  {done:>6}  {each:>12}")
    failed = [
        f"  {cell.set}, {cell.method}, split {split}: {error}"
        for cell in cells(rows).values()
        for split, error in cell.failed.items()
    ]
    return "\n".join([*lines[1:], *(["", "Failed:"] if failed else []), *failed])


def _complete(rows: Sequence[Record]) -> str:
    """Name the cells of which splits are missing, those alike together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for cell in cells(rows).values():
        if not cell.complete:
            alike.setdefault((cell.set, cell.rests_on), []).append(cell.method)
    missing = [f"{name}, {', '.join(methods)}: {of}" for (name, of), methods in alike.items()]
    if missing:
        return "Splits are missing in: " + "; ".join(missing) + "."
    return "Every set and method above has all its splits."


def _absent(rows: Sequence[Record]) -> dict[str, list[str]]:
    """Return the methods of which a set has no trial at all; of sets and methods that are known."""
    have = {(one["set"], one["method"]) for one in rows}
    absent = {name: [m for m in LABELS if (name, m) not in have] for name in COLUMNS}
    return {name: methods for name, methods in absent.items() if methods}


def _pairs(rows: Sequence[Record]) -> list[tuple[Any, ...]]:
    """Compare every method with the one of the lowest mean NLL, set by set, on common splits."""
    found = [cell for cell in cells(rows).values() if cell.scores]
    pairs = []
    for name in dict.fromkeys(cell.set for cell in found):
        own = [cell.method for cell in found if cell.set == name]
        best = tables.leading((cell for cell in found if cell.set == name), "nll")
        for method in own:
            first = best.method if best else method
            rmse, nll = (tables.paired(rows, name, method, first, m) for m in METRICS)
            if method != first and rmse and nll:
                pairs.append((name, method, first, rmse, nll))
    return pairs


def _fewer_rows(rows: Sequence[Record]) -> list[tuple[str, str, int, int]]:
    """Return methods that were trained on fewer rows than others on the same set."""
    counts: dict[tuple[str, str], int] = {}
    most: dict[str, int] = {}
    for row in tables.succeeded(rows):
        name, key, count = row["set"], (row["set"], row["method"]), row["rows"]["train"]
        most[name] = max(most.get(name, 0), count)
        counts[key] = min(counts.get(key, count), count)
    return [(n, m, count, most[n]) for (n, m), count in counts.items() if count < most[n]]

"""What a run used, from its records: settings, seeds, hyperparameters, time, versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from .tables import Record, frame, grid, label

__all__ = ["machine_time", "settings_table", "versions"]


def settings_table(rows: Sequence[Record]) -> str:
    """Return the settings common to all trials, then what differs, then what was chosen."""
    settings = [row.get("settings") or {} for row in rows]
    names = list(dict.fromkeys(name for one in settings for name in one))
    common = [name for name in names if len({_show(one.get(name)) for one in settings}) == 1]
    said = ", ".join(f"`{name}` {_show(settings[0].get(name))}" for name in common) or "nothing"
    seeds = {row["seed"] for row in rows if row.get("seed") is not None}
    return "\n".join(
        [
            f"In all trials: {said}.",
            "",
            *(_varied(rows, name) for name in names if name not in common),
            "",
            f"Seeds: {len(seeds)} different ones in {len(rows)} trials, each in its record.",
            "",
            "Chosen inside the training parts, over the splits:",
            "",
            _chosen(rows),
        ]
    )


def _varied(rows: Sequence[Record], name: str) -> str:
    """Return who has which value: by set or by method, if that tells it."""
    for parts in (("set",), ("method",), ("set", "method")):
        found: dict[str, dict[str, None]] = {}
        for row in rows:
            value = _show((row.get("settings") or {}).get(name))
            found.setdefault(value, {})[" ".join(row[part] for part in parts)] = None
        if max(Counter(who for group in found.values() for who in group).values()) == 1:
            break  # nobody has two values
    return f"- `{name}`: " + "; ".join(f"{v} ({', '.join(who)})" for v, who in found.items())


def _chosen(rows: Sequence[Record]) -> str:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row.get("chosen"):
            groups.setdefault((row["set"], row["method"]), []).append(row["chosen"])
    lines = []
    for (name, method), found in groups.items():
        # what else was tried, a table in itself, stays in the records
        keys = dict.fromkeys(k for one in found for k, v in one.items() if not isinstance(v, dict))
        text = "; ".join(f"{k}: {_values(one.get(k) for one in found)}" for k in keys)
        lines.append([name, label(method), text])
    return grid(["set", "method", "chosen"], lines) if lines else "nothing."


def machine_time(rows: Sequence[Record]) -> str:
    """Return the sums of processor and wall seconds of the finished trials, by method."""
    table = frame(rows)
    groups = [(label(str(m)), group) for m, group in table.groupby("method", observed=True)]
    lines = []
    for name, group in [*groups, ("**all**", table)] if len(table) else []:
        cpu, wall = group["cpu_seconds"].sum() / 3600, group["wall_seconds"].sum() / 3600
        each = group["wall_seconds"].median()
        lines.append([name, len(group), f"{cpu:.2f}", f"{wall:.2f}", f"{each:.1f}"])
    header = ["method", "trials", "processor hours", "wall hours", "median seconds of a trial"]
    total = table["cpu_seconds"].sum() / 3600
    return (
        f"{total:.2f} processor hours in all for the {len(rows)} finished trials. Wall hours are "
        "the sum over trials: with several workers less time passes on the clock.\n\n"
        + grid(header, lines)
    )


def versions(rows: Sequence[Record]) -> str:
    """Return the versions with which the trials were run; a line for each combination."""
    seen = Counter(
        ", ".join(f"{name} {value}" for name, value in row["versions"].items())
        for row in rows
        if row.get("versions")
    )
    return "\n".join(f"- {text}: {count} trials" for text, count in seen.items()) or "Not recorded."


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

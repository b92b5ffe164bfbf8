"""What a run used, from its records: settings, seeds, hyperparameters, time, versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .tables import LABELS, Record, frame

__all__ = ["machine_time", "settings_table", "versions"]


def settings_table(rows: Sequence[Record]) -> str:
    """Return the settings common to all trials, then what differs, then what was chosen."""
    settings = [row.get("settings") or {} for row in rows]
    names = list(dict.fromkeys(name for one in settings for name in one))
    common = [name for name in names if len({_show(one.get(name)) for one in settings}) == 1]
    lines = ["In all trials: " + _list({name: settings[0].get(name) for name in common}) + "."]
    lines += ["", *(_varied(rows, name) for name in names if name not in common)]
    seeds = sorted({row["seed"] for row in rows if row.get("seed") is not None})
    lines += ["", f"Seeds: {len(seeds)} different ones in {len(rows)} trials, each in its record."]
    lines += ["", "Chosen inside the training parts, over the splits:", "", *_chosen(rows)]
    return "\n".join(lines)


def _varied(rows: Sequence[Record], name: str) -> str:
    """Return who has which value: by set or by method, if that tells it."""
    for parts in (("set",), ("method",), ("set", "method")):
        found: dict[str, dict[str, None]] = {}
        for row in rows:
            value = _show((row.get("settings") or {}).get(name))
            found.setdefault(value, {})[" ".join(row[part] for part in parts)] = None
        if _apart(found):
            break
    return f"- `{name}`: " + "; ".join(f"{v} ({', '.join(who)})" for v, who in found.items())


def _apart(found: dict[str, dict[str, None]]) -> bool:
    """Whether nobody has two values."""
    everybody = [who for group in found.values() for who in group]
    return len(everybody) == len(set(everybody))


def _chosen(rows: Sequence[Record]) -> list[str]:
    lines = ["| set | method | chosen |", "|---|---|---|"]
    for (name, method), group in _groups(rows).items():
        found = [row["chosen"] for row in group if row.get("chosen")]
        # what else was tried, a table in itself, stays in the records
        keys = dict.fromkeys(k for one in found for k, v in one.items() if not isinstance(v, dict))
        if keys:
            text = "; ".join(f"{k}: {_values(one.get(k) for one in found)}" for k in keys)
            lines.append(f"| {name} | {LABELS.get(method, method)} | {text} |")
    return lines if len(lines) > 2 else ["nothing."]


def machine_time(rows: Sequence[Record]) -> str:
    """Return the sums of processor and wall seconds of the finished trials, by method."""
    lines = [
        "| method | trials | processor hours | wall hours | median seconds of a trial |",
        "|---|---|---|---|---|",
    ]
    table = frame(rows)
    groups = [(LABELS.get(str(m), str(m)), g) for m, g in table.groupby("method", observed=True)]
    for label, group in [*groups, ("**all**", table)] if len(table) else []:
        cpu, wall = group["cpu_seconds"].sum() / 3600, group["wall_seconds"].sum() / 3600
        each = group["wall_seconds"].median()
        lines.append(f"| {label} | {len(group)} | {cpu:.2f} | {wall:.2f} | {each:.1f} |")
    total = table["cpu_seconds"].sum()
    return (
        f"{total / 3600:.2f} processor hours in all for the {len(rows)} finished trials. Wall "
        "hours are the sum over trials: with several workers less time passes on the clock.\n\n"
        + "\n".join(lines)
    )


def versions(rows: Sequence[Record]) -> str:
    """Return the versions with which the trials were run; a line for each combination."""
    seen: dict[str, int] = {}
    for row in rows:
        if row.get("versions"):
            text = ", ".join(f"{name} {value}" for name, value in row["versions"].items())
            seen[text] = seen.get(text, 0) + 1
    return "\n".join(f"- {text}: {count} trials" for text, count in seen.items()) or "Not recorded."


def _groups(rows: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["method"]), []).append(row)
    return groups


def _values(values: Iterable[Any]) -> str:
    """Return one value, a few with their counts, or the range of many numbers."""
    shown: dict[str, int] = {}
    numbers = []
    for value in values:
        if value is not None:
            shown[_show(value)] = shown.get(_show(value), 0) + 1
            numbers.append(value)
    if len(shown) == 1:
        return next(iter(shown))
    if len(shown) > 4 and all(isinstance(value, (int, float)) for value in numbers):
        return f"{min(numbers):.3g} to {max(numbers):.3g}, median {np.median(numbers):.3g}"
    return ", ".join(f"{text} ({count}×)" for text, count in shown.items()) or "–"


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _list(pairs: dict[str, Any]) -> str:
    return ", ".join(f"`{name}` {_show(value)}" for name, value in pairs.items()) or "nothing"

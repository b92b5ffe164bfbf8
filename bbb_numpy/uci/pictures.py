"""Pictures of the scores, of coverage and of PIT values; colours as in `bbb_numpy.plots.style`.

A method has one marker, one line style and one colour in all of them, so they can be told apart
in grey. Nothing here uses pyplot: figures are returned, `page.write` saves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from ..plots.style import BLACK, BLUE, GREEN, GREY, PALE, VERMILLION
from .published import BASELINE, COLUMNS, METRICS, best
from .tables import LABELS, Cell, Record, cells, known_first, succeeded
from .trials import LEVELS

__all__ = ["calibration", "pit", "scores"]

Array = NDArray[Any]
PURPLE, ORANGE = "#CC79A7", "#B87F00"
STYLES: dict[str, tuple[str, str, Any]] = {  # colour, marker, line
    "mean-field": (BLUE, "o", "-"),
    "local-reparam": (GREEN, "s", "--"),
    "full-rank": (PURPLE, "D", "-."),
    "renyi": (BLACK, "^", ":"),
    "eubo": (ORANGE, "v", (0, (6, 1, 1, 1, 1, 1))),
    "map": (GREY, "X", "--"),
    "ensemble": (GREEN, "p", "-."),
    "hmc": (VERMILLION, "P", "-"),
    "nuts": (BLUE, "*", ":"),
}
OTHER = (BLACK, "h", "-")
SHORT = {"local-reparam": "local reparam.", "eubo": "inclusive KL", "renyi": "Rényi"}
GROUPS = (
    ("variational", ("mean-field", "local-reparam", "full-rank", "renyi", "eubo")),
    ("points and samplers", ("map", "ensemble", "hmc", "nuts")),
)
OFF = 0.2  # a panel of coverage ends here; curves may leave it
TALL = 3.0  # a panel of PIT values ends here; higher bars have their height beside them
FAR = 2.5  # a panel ends this many times its useful width above the lowest number


def scores(records: Iterable[Record]) -> Figure:
    """Draw mean RMSE and NLL of every set and method with standard errors.

    Lines mark the best published number that is not reported false, and Bayes by Backprop's.
    A mean far outside is put at the edge, with its number.
    """
    found = {key: cell for key, cell in cells(records).items() if cell.scores}
    _need(found)
    sets = list(dict.fromkeys(name for name, _ in found))
    methods = _order(method for _, method in found)
    size = (max(4.2, 1.6 + 2.3 * len(sets)), 1.8 + 0.5 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(2, len(sets), squeeze=False, sharey=True)
    for row, metric in zip(axes, METRICS, strict=True):
        for ax, name in zip(row, sets, strict=True):
            own = {method: cell for (one, method), cell in found.items() if one == name}
            _scores(ax, name, metric, own, methods)
        row[0].set_yticks(range(len(methods)), [_short(method) for method in methods])
        row[0].set_ylim(len(methods) - 0.4, -0.6)  # shared; the first method on top
    labels = dict(zip(*axes[0, 0].get_legend_handles_labels()[::-1], strict=True))
    columns = 3 if len(sets) > 3 else 1
    figure.legend(
        labels.values(),
        labels,
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )
    return figure


def _scores(
    ax: Axes, name: str, metric: str, own: Mapping[str, Cell], methods: Sequence[str]
) -> None:
    means = {method: cell.scores[metric] for method, cell in own.items()}
    bars = (best(name, metric)[0], BASELINE.score(name, metric)) if name in COLUMNS else ()
    values = np.array([score.mean for score in means.values()])
    low, usual = min([*values, *bars]), max([*bars, float(np.median(values))])
    width = usual - low
    if not bars:  # nothing published says what is far
        width = max([width, *(score.error for score in means.values() if score.count > 1)])
    width = width or 0.1 * abs(low) or 1.0
    limit = low + FAR * width
    shown = [score for score in means.values() if score.mean <= limit]
    ends = [s.mean + sign * np.nan_to_num(s.error) for s in shown for sign in (-1, 1)]
    low, high = min([*ends, *bars, low]), max([*ends, *bars], default=limit)
    margin = 0.12 * (high - low or width)
    ax.set_xlim(low - 0.5 * margin, high + margin)
    for bar, colour, style, label in zip(
        bars,
        (BLACK, GREY),
        ("--", ":"),
        ("best published", "Bayes by Backprop, best public implementation"),
        strict=False,
    ):
        ax.axvline(bar, color=colour, linestyle=style, linewidth=1.4, label=label, zorder=1)
    for method, score in means.items():
        colour, marker, _ = STYLES.get(method, OTHER)
        at = methods.index(method)
        if score.mean > limit:
            ax.plot(high + 0.75 * margin, at, marker=">", color=colour, markersize=6)
            ax.annotate(
                f"{score.mean:.3g}",
                (high + 0.75 * margin, at),
                (-7, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )
            continue
        ax.errorbar(
            score.mean,
            at,
            xerr=np.nan_to_num(score.error),
            color=colour,
            marker=marker,
            markersize=9 if marker == "*" else 6.5,
            capsize=3,
            linewidth=1.2,
            linestyle="",
            zorder=3,
        )
    ax.plot([], [], "k", marker="|", markersize=7, linewidth=1.2, label="mean ± standard error")
    for at in range(len(methods)):
        ax.axhline(at, color="#DDDDDD", linewidth=0.6, zorder=0)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if metric == "rmse":
        ax.set_title(name.replace("_", " "), fontsize="medium")
    ax.set_xlabel("RMSE (units of y)" if metric == "rmse" else "NLL (nats per point)")


def calibration(records: Iterable[Record]) -> Figure:
    """Draw the coverage of central intervals less their level, averaged over splits.

    Above 0 the intervals are too wide. Bars: one standard error over the splits.
    """
    found = _stacked(records, "coverage")
    _need(found)
    sets = list(dict.fromkeys(name for name, _ in found))
    present = _order(method for _, method in found)
    known = [method for _, group in GROUPS for method in group]
    rest = [method for method in present if method not in known]
    groups = [
        (title, [method for method in present if method in (*members, *extra)])
        for (title, members), extra in zip(GROUPS, ((), rest), strict=True)
    ]
    groups = [group for group in groups if group[1]]
    size = (2.2 + 2.3 * len(sets), 0.6 + 2.5 * len(groups))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(groups), len(sets), squeeze=False, sharex=True, sharey="row")
    for ax, name in zip(axes[0], sets, strict=True):
        ax.set_title(name.replace("_", " "), fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("level of the interval")
    for row, (title, members) in zip(axes, groups, strict=True):
        for ax, name in zip(row, sets, strict=True):
            ax.axhline(0.0, color=GREY, linewidth=1.0, zorder=1)
            for i, method in enumerate(members):
                if (name, method) in found:
                    _coverage(ax, method, found[name, method], i)
        low, high = row[0].get_ylim()
        row[0].set_ylim(max(low, -OFF), min(high, OFF))
        handles: dict[str, Any] = {}
        for ax in row:
            handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
        row[0].set_ylabel(f"{title}\ncoverage − level")
        shown = [_short(method) for method in members if _short(method) in handles]
        row[-1].legend(
            [handles[label] for label in shown],
            shown,
            loc="center left",
            bbox_to_anchor=(1.02, 0.5),
            frameon=False,
            fontsize=9,
            handlelength=3.2,
        )
    axes[0, 0].set_xlim(0.0, 1.0)
    axes[0, 0].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return figure


def _coverage(ax: Axes, method: str, shares: Array, place: int) -> None:
    """Draw one curve; markers of different methods at different levels, lest they overlap."""
    colour, marker, style = STYLES.get(method, OTHER)
    off = shares.mean(axis=0) - LEVELS
    ax.plot(
        LEVELS,
        off,
        color=colour,
        linestyle=style,
        linewidth=1.4,
        marker=marker,
        markevery=(place % 4, 4),
        markersize=5.5,
        label=_short(method),
        zorder=3,
    )
    if len(shares) > 1:
        error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        at = slice(place % 4, None, 4)
        ax.errorbar(
            LEVELS[at], off[at], error[at], fmt="none", color=colour, linewidth=0.9, zorder=2
        )


def pit(records: Iterable[Record]) -> Figure:
    """Draw the histogram of F(y) for every set and method, all splits together.

    A hump says that predictive distributions are too wide, a bowl too narrow, a slope biased.
    """
    found = _stacked(records, "pit")
    _need(found)
    sets = list(dict.fromkeys(name for name, _ in found))
    methods = _order(method for _, method in found)
    size = (1.2 + 1.7 * len(sets), 0.7 + 0.95 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(methods), len(sets), squeeze=False, sharex=True, sharey=True)
    for row, method in zip(axes, methods, strict=True):
        for ax, name in zip(row, sets, strict=True):
            ax.set_ylim(0.0, TALL)
            ax.axhline(1.0, color=BLACK, linestyle="--", linewidth=0.9, zorder=3)
            counts = found[name, method].sum(axis=0) if (name, method) in found else np.zeros(0)
            if counts.sum() > 0:
                bins = len(counts)
                density = counts * bins / counts.sum()
                for at in np.flatnonzero(density > TALL):
                    side = "left" if at < bins / 2 else "right"
                    text = f" {density[at]:.1f} "
                    ax.text((at + (side == "left")) / bins, 0.9 * TALL, text, ha=side, va="top")
                ax.bar(
                    np.arange(bins) / bins,
                    density,
                    width=1.0 / bins,
                    align="edge",
                    color=PALE,
                    edgecolor=BLUE,
                    linewidth=0.7,
                )
        row[0].set_ylabel(_short(method).replace(" ", "\n"), rotation=0, ha="right", va="center")
        row[0].set_yticks([0, 1, 2, 3])
    for ax, name in zip(axes[0], sets, strict=True):
        ax.set_title(name.replace("_", " "), fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("F(y)")
    axes[-1, 0].set_xlim(0.0, 1.0)
    axes[-1, 0].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    figure.supylabel("density of F(y); dashed: uniform", fontsize="medium")
    return figure


def _stacked(records: Iterable[Record], key: str) -> dict[tuple[str, str], Array]:
    """Return one row per split of a list in the metrics, by set and method."""
    rows: dict[tuple[str, str], list[Any]] = {}
    for one in succeeded(records):
        rows.setdefault((one["set"], one["method"]), []).append(one["metrics"][key])
    return {where: np.array(found, float) for where, found in rows.items()}


def _need(found: Mapping[Any, Any]) -> None:
    if not found:
        raise ValueError("no trial has finished, so there is nothing to draw")


def _order(methods: Iterable[str]) -> list[str]:
    return known_first(methods, LABELS)


def _short(method: str) -> str:
    return SHORT.get(method, LABELS.get(method, method))

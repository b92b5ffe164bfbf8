"""Pictures of the scores, of coverage and of PIT values; colours as in `bbb_numpy.plots.style`.

A method has one marker, one line style and one colour in all of them, so they can be told apart
in grey. Nothing here uses pyplot: figures are returned, `page.write` saves them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, PALE, PURPLE, VERMILLION

from ..kit import panels
from . import tables
from .methods import METHODS
from .tables import METRICS, Cell, Record, Records, cells, frame, known_first, label
from .trials import INTERVAL_LEVELS

Array = NDArray[Any]
DARK_ORANGE = "#B87F00"
# Colour (related methods have shades of one), marker and line style.
METHOD_STYLES: dict[str, tuple[str, Any, Any]] = {
    "mean-field": (BLUE, "o", "-"),
    "local-reparam": ("#56A0D3", "s", "--"),
    "ivon": ("#7FB2E5", (4, 1, 0), (0, (1, 1))),
    "low-rank": ("#6A4C93", (6, 1, 0), (0, (8, 2))),
    "full-rank": (PURPLE, "D", "-."),
    "renyi": (BLACK, "^", ":"),
    "eubo": (DARK_ORANGE, "v", (0, (6, 1, 1, 1, 1, 1))),
    "map": (GREY, "X", "--"),
    "ensemble": (GREEN, "p", "-."),
    "dropout": ("#5B5B5B", "h", ":"),
    "swag": ("#7A9A01", (5, 1, 180), (0, (6, 1, 1, 1))),
    "laplace": ("#006D5B", "H", "-"),
    "last-layer": ("#4FB39F", (3, 1, 0), (0, (4, 2))),
    "hmc": (VERMILLION, "P", "-"),
    "nuts": ("#8F3F00", "*", ":"),
    "chees": ("#A8327D", ">", "-."),
    "mclmc": ("#7A6A00", "8", "--"),
    "sghmc": ("#C2185B", (8, 1, 0), (0, (1, 1))),
    "hmc-heteroscedastic": ("#E08A5A", "d", (0, (6, 1, 1, 1))),
    "default": ("#003E66", "<", (0, (4, 2))),
}
OTHER_STYLE = (BLACK, ".", "-")
SHORT_LABELS = {
    "local-reparam": "local reparam.",
    "ivon": "IVON",
    "last-layer": "last layer",
    "eubo": "inclusive KL",
    "renyi": "Rényi",
    "hmc-heteroscedastic": "HMC, noise of x",
}
GROUPS = ("variational", "points", "samplers")
MAX_SETS_ABREAST = 5  # sets side by side; more go below
COVERAGE_ERROR_LIMIT = 0.2  # a panel of coverage ends here; curves may leave it
# A panel of PIT values ends here; higher bars have their height beside them.
PIT_LIMIT = 3.0
# A panel ends this many times its useful width above the lowest number.
AXIS_STRETCH = 2.5
GAP_COVERAGE_LEVEL = 0.9  # of the central intervals in the gaps
PLAIN_FORMATTER = FuncFormatter(lambda value, _: f"{value:g}")
EDGE_TEXT_STYLE: dict[str, Any] = {
    "textcoords": "offset points",
    "ha": "right",
    "fontsize": 8,
}
EDGE_TEXT_STYLE["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}


def _title(ax: Axes, name: str) -> None:
    ax.set_title(name.replace("_", " "), fontsize="medium")


def _line_per_method(ax: Axes, methods: Sequence[str], named: bool) -> None:
    """Draw a thin line for each method, the first on top, and name them at the left."""
    for row in range(len(methods)):
        ax.axhline(row, color="#DDDDDD", linewidth=0.6, zorder=0)
    if named:
        ax.set_yticks(range(len(methods)), [_short(method) for method in methods])
        ax.set_ylim(len(methods) - 0.4, -0.6)  # shared by the row


def scores(records: Records) -> Figure:
    """Draw mean RMSE and NLL of every set and method with standard errors.

    Lines mark the best of the Bayesian networks listed, and Bayes by Backprop's public number.
    A mean far outside is put at the edge, with its number.
    """
    scored = {key: cell for key, cell in cells(records).items() if cell.scores}
    sets, methods = _present(scored)
    blocks = _blocks(sets)
    n_columns = len(blocks[0])
    n_blocks = len(blocks)
    size = (
        max(4.2, 1.6 + 2.3 * n_columns),
        0.6 + n_blocks * (1.2 + 0.5 * len(methods)),
    )
    figure, axes = panels(*size, 2 * n_blocks, n_columns, sharey=True, squeeze=False)
    for index, block in enumerate(blocks):
        for row, metric in zip(axes[2 * index : 2 * index + 2], METRICS, strict=True):
            for ax, name in zip(row, block, strict=False):
                cells_of_set = {
                    method: cell
                    for (set_name, method), cell in scored.items()
                    if set_name == name
                }
                _scores(ax, name, metric, cells_of_set, methods)
                _line_per_method(ax, methods, ax is row[0])
            for ax in row[len(block) :]:
                ax.remove()
    labels = dict(zip(*axes[0, 0].get_legend_handles_labels()[::-1], strict=True))
    legend_style: dict[str, Any] = {
        "loc": "outside upper center",
        "frameon": False,
        "fontsize": 9,
    }
    figure.legend(
        labels.values(), labels, ncols=3 if n_columns > 3 else 1, **legend_style
    )
    return figure


def _scores(
    ax: Axes,
    name: str,
    metric: str,
    cells_of_set: Mapping[str, Cell],
    methods: Sequence[str],
) -> None:
    means = {method: cell.scores[metric] for method, cell in cells_of_set.items()}
    lowest = tables.lowest(name, metric, tables.NETWORKS) or (None, "")
    published = lowest[0], tables.BASELINE.score(name, metric)
    bars = [bar for bar in published if bar is not None]
    values = np.array([score.mean for score in means.values()])
    low = min([*values, *bars])
    typical = max([*bars, float(np.median(values))])
    width = typical - low
    if not bars:  # no published number says which means are far away
        width = max(
            [width, *(score.error for score in means.values() if score.count > 1)]
        )
    width = width or 0.1 * abs(low) or 1.0
    limit = low + AXIS_STRETCH * width
    visible = [score for score in means.values() if score.mean <= limit]
    bar_ends = [
        s.mean + sign * np.nan_to_num(s.error) for s in visible for sign in (-1, 1)
    ]
    low = min([*bar_ends, *bars, low])
    high = max([*bar_ends, *bars], default=limit)
    margin = 0.12 * (high - low or width)
    ax.set_xlim(low - 0.5 * margin, high + margin)
    lines = (
        (BLACK, "--", "best Bayesian network listed"),
        (GREY, ":", "Bayes by Backprop, best public implementation"),
    )
    for bar, (colour, style, text) in zip(bars, lines, strict=False):
        ax.axvline(
            bar, color=colour, linestyle=style, linewidth=1.4, label=text, zorder=1
        )
    for method, score in means.items():
        colour, marker, _ = METHOD_STYLES.get(method, OTHER_STYLE)
        row = methods.index(method)
        if score.mean > limit:
            edge = high + 0.75 * margin
            ax.plot(edge, row, marker=">", color=colour, markersize=6)
            ax.annotate(
                f"{score.mean:.3g}",
                (edge, row),
                (-7, 0),
                va="center",
                **EDGE_TEXT_STYLE,
            )
            continue
        size = 9 if marker == "*" or isinstance(marker, tuple) else 6.5
        bar_of: dict[str, Any] = {"xerr": np.nan_to_num(score.error), "capsize": 3}
        bar_of |= {"linewidth": 1.2, "linestyle": "", "zorder": 3}
        ax.errorbar(
            score.mean, row, color=colour, marker=marker, markersize=size, **bar_of
        )
    ax.plot(
        [],
        [],
        "k",
        marker="|",
        markersize=7,
        linewidth=1.2,
        label="mean ± standard error",
    )
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(PLAIN_FORMATTER)
    if metric == "rmse":
        _title(ax, name)
    ax.set_xlabel("RMSE (units of y)" if metric == "rmse" else "NLL (nats per point)")


def calibration(records: Records) -> Figure:
    """Draw the coverage of central intervals less their level, averaged over splits.

    Above 0 the intervals are too wide. Bars: one standard error over the splits.
    """
    stacked = _stacked(records, "coverage")
    sets, present = _present(stacked)
    group_by_label = {name: method.group for name, method in METHODS.items()}
    groups = {
        title: members
        for title in GROUPS
        if (
            members := [
                method
                for method in present
                if group_by_label.get(method, "points") == title
            ]
        )
    }
    blocks = _blocks(sets)
    n_columns = len(blocks[0])
    pairs = [(block, title) for block in blocks for title in groups]
    size = (2.2 + 2.3 * n_columns, 0.6 + 2.5 * len(pairs))
    figure, axes = panels(
        *size, len(pairs), n_columns, sharex=True, sharey="row", squeeze=False
    )
    for index, (row, (block, title)) in enumerate(zip(axes, pairs, strict=True)):
        for ax in row[len(block) :]:
            ax.remove()
        for ax, name in zip(row, block, strict=False):
            if index % len(groups) == 0:
                _title(ax, name)
            if index % len(groups) == len(groups) - 1:
                ax.set_xlabel("level of the interval")
                ax.tick_params(labelbottom=True)
            ax.axhline(0.0, color=GREY, linewidth=1.0, zorder=1)
            for i, method in enumerate(groups[title]):
                if (name, method) in stacked:
                    _coverage(ax, method, stacked[name, method], i)
        low, high = row[0].get_ylim()
        row[0].set_ylim(
            max(low, -COVERAGE_ERROR_LIMIT), min(high, COVERAGE_ERROR_LIMIT)
        )
        row[0].set_ylabel(f"{title}\ncoverage − level")
    handles: dict[str, Any] = {}
    for ax in figure.axes:
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    legend_style: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
    legend_style |= {"frameon": False, "fontsize": 9, "handlelength": 3.2}
    # The legends stand beside the first block.
    for row, members in zip(axes, groups.values(), strict=False):
        labels = [_short(method) for method in members if _short(method) in handles]
        row[n_columns - 1].legend(
            [handles[text] for text in labels], labels, **legend_style
        )
    axes[0, 0].set_xlim(0.0, 1.0)
    axes[0, 0].xaxis.set_major_formatter(PLAIN_FORMATTER)
    return figure


def _coverage(ax: Axes, method: str, shares: Array, offset: int) -> None:
    """Draw one curve; markers of different methods at different levels, lest they overlap."""
    colour, marker, style = METHOD_STYLES.get(method, OTHER_STYLE)
    coverage_error = shares.mean(axis=0) - INTERVAL_LEVELS
    line: dict[str, Any] = {
        "color": colour,
        "linestyle": style,
        "linewidth": 1.4,
        "zorder": 3,
    }
    line |= {"marker": marker, "markevery": (offset % 4, 4), "markersize": 5.5}
    ax.plot(INTERVAL_LEVELS, coverage_error, label=_short(method), **line)
    if len(shares) > 1:
        error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        shown_levels = slice(offset % 4, None, 4)
        bars: dict[str, Any] = {
            "fmt": "none",
            "color": colour,
            "linewidth": 0.9,
            "zorder": 2,
        }
        ax.errorbar(
            INTERVAL_LEVELS[shown_levels],
            coverage_error[shown_levels],
            error[shown_levels],
            **bars,
        )


def pit(records: Records) -> Figure:
    """Draw the histogram of F(y) for every set and method, all splits together.

    A hump says that predictive distributions are too wide, a bowl too narrow, a slope biased.
    """
    stacked = _stacked(records, "pit")
    sets, methods = _present(stacked)
    size = (
        (1.7 if len(sets) <= MAX_SETS_ABREAST else 1.3) * len(sets) + 1.2,
        0.7 + 0.95 * len(methods),
    )
    shared: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
    figure, axes = panels(*size, len(methods), len(sets), **shared)
    for row, method in zip(axes, methods, strict=True):
        for ax, name in zip(row, sets, strict=True):
            ax.set_ylim(0.0, PIT_LIMIT)
            ax.axhline(1.0, color=BLACK, linestyle="--", linewidth=0.9, zorder=3)
            if (name, method) in stacked:
                _histogram(ax, stacked[name, method].sum(axis=0))
        row[0].set_ylabel(
            _short(method).replace(" ", "\n"), rotation=0, ha="right", va="center"
        )
        row[0].set_yticks([0, 1, 2, 3])
    for ax, name in zip(axes[0], sets, strict=True):
        _title(ax, name)
    for ax in axes[-1]:
        ax.set_xlabel("F(y)")
    axes[-1, 0].set_xlim(0.0, 1.0)
    axes[-1, 0].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    figure.supylabel("density of F(y); dashed: uniform", fontsize="medium")
    return figure


def _histogram(ax: Axes, counts: Array) -> None:
    """Draw a density; the highest bar of each run of them that leaves the panel has its number."""
    bins = len(counts)
    density = counts * bins / counts.sum()
    tall_bins = np.flatnonzero(density > PIT_LIMIT)
    runs = np.split(tall_bins, np.flatnonzero(np.diff(tall_bins) > 1) + 1)
    for run in runs if len(tall_bins) else ():
        bin_index = run[np.argmax(density[run])]
        side = "left" if bin_index < bins / 2 else "right"
        text = f" {density[bin_index]:.1f} "
        ax.text(
            (bin_index + (side == "left")) / bins,
            0.9 * PIT_LIMIT,
            text,
            ha=side,
            va="top",
        )
    edges = np.arange(bins) / bins
    width = 1.0 / bins
    ax.bar(
        edges, density, width, align="edge", color=PALE, edgecolor=BLUE, linewidth=0.7
    )


def gap_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return a row for each set and method, means over its gaps, outside them and inside.

    `growth` is of the epistemic standard deviation, inside over outside, its geometric mean; nan
    for a point. Of records with the same key the last one counts.
    """
    rows = []
    for record in {record["key"]: record for record in records}.values():
        if record["status"] != "ok":
            continue
        row = {"set": record["set"], "method": record["method"], "gaps": 1}
        for where, part in record["metrics"].items():
            share = part["coverage"][
                int(np.argmin(np.abs(INTERVAL_LEVELS - GAP_COVERAGE_LEVEL)))
            ]
            row[f"nll_{where}"] = part["nll"]
            row[f"rmse_{where}"] = part["rmse"]
            row[f"coverage_{where}"] = share
            row[f"spread_{where}"] = np.nan
            if part["epistemic"] > 0:
                row[f"spread_{where}"] = np.log(part["epistemic"])
        rows.append(row | {"growth": row["spread_inside"] - row["spread_outside"]})
    if not rows:
        return pd.DataFrame(columns=["set", "method", "gaps"])
    table = pd.DataFrame(rows)
    table["method"] = pd.Categorical(
        table["method"], known_first(table["method"]), ordered=True
    )
    groups = table.groupby(["set", "method"], observed=True)
    means = groups.mean().assign(gaps=groups["gaps"].sum()).reset_index()
    return means.assign(growth=np.exp(means["growth"]))


def gaps(records: Iterable[Record]) -> Figure:
    """Draw NLL, coverage and epistemic standard deviation outside the gaps (open), inside (filled).

    Means over the gaps of a set. Of the standard deviation the ratio inside / outside: 1 is a
    posterior that is as sure where it has seen nothing.
    """
    table = gap_table(records)
    sets, methods = _present([*zip(table["set"], table["method"], strict=True)])
    size = (2.0 + 2.3 * len(sets), 1.2 + 3 * (0.55 + 0.26 * len(methods)))
    figure, axes = panels(*size, 3, len(sets), sharey=True, squeeze=False)
    texts = ("NLL (nats per point)", f"coverage of {GAP_COVERAGE_LEVEL:.0%} intervals")
    for column, name in zip(axes.T, sets, strict=True):
        _title(column[0], name)
        for ax, line in zip(column[1:], (GAP_COVERAGE_LEVEL, 1.0), strict=True):
            ax.axvline(line, color=BLACK, linestyle="--", linewidth=1.2, zorder=1)
        for ax, text in zip(
            column, (*texts, "deviation, inside / outside"), strict=True
        ):
            ax.set_xlabel(text)
            _line_per_method(ax, methods, name == sets[0])
        _gaps(column, table[table["set"] == name], methods)
    for face, text in (("none", "outside the gap"), (BLACK, "inside")):
        axes[0, 0].plot([], [], "o", color=BLACK, markerfacecolor=face, label=text)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _gaps(
    column: Sequence[Axes], rows_of_set: pd.DataFrame, methods: Sequence[str]
) -> None:
    """Draw the methods of one set; an NLL far above the others' is at the edge, with its number."""
    outside = rows_of_set["nll_outside"]
    limit = outside.max() + AXIS_STRETCH * max(outside.max() - outside.min(), 1.0)
    for row in rows_of_set.itertuples():
        colour, marker, _ = METHOD_STYLES.get(row.method, OTHER_STYLE)
        y = methods.index(row.method)
        nll = [min(value, limit) for value in (row.nll_outside, row.nll_inside)]
        shares = [row.coverage_outside, row.coverage_inside]
        for ax, pair in zip(column, (nll, shares), strict=False):
            ax.plot(pair, [y, y], color=colour, linewidth=1.2, zorder=2)
            for value, face in zip(pair, ("white", colour), strict=True):
                ax.plot(
                    value,
                    y,
                    marker=marker,
                    color=colour,
                    markerfacecolor=face,
                    zorder=3,
                )
        if row.nll_inside > limit:
            column[0].annotate(
                f"{row.nll_inside:.3g} →", (limit, y), (-6, 4), **EDGE_TEXT_STYLE
            )
        if np.isfinite(row.growth):
            column[2].plot(row.growth, y, marker=marker, color=colour, zorder=3)


def _blocks(sets: Sequence[str]) -> list[list[str]]:
    """Return the sets in rows of panels."""
    return [
        list(sets[first : first + MAX_SETS_ABREAST])
        for first in range(0, len(sets), MAX_SETS_ABREAST)
    ]


def _stacked(records: Records, metric: str) -> dict[tuple[str, str], Array]:
    """Return one row per split of a list in the metrics, by set and method."""
    table = frame(records)
    groups = table[table["status"] == "ok"].groupby(["set", "method"], observed=True)[
        metric
    ]
    return {
        set_and_method: np.array(rows.tolist(), float)
        for set_and_method, rows in groups
    }


def _present(pairs: Collection[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the sets and the methods of pairs of both, in the order of print."""
    if not pairs:
        raise ValueError("no trial has finished, so there is nothing to draw")
    return list(dict.fromkeys(name for name, _ in pairs)), known_first(
        m for _, m in pairs
    )


def _short(method: str) -> str:
    return SHORT_LABELS.get(method, label(method))

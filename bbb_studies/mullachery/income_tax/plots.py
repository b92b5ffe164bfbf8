"""The picture of the income tax study; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from bbb_numpy.evaluation.calibration import coverage
from bbb_numpy.plots.calibration import STYLES, coverage_curve, pit_histogram
from bbb_numpy.plots.style import BLACK, BLUE, GREY, VERMILLION, finish, plain_numbers
from bbb_studies.data.income_tax import CLASSES, Cells

from .models import NUTS_NAME
from .scores import BASE, Result

__all__ = ["draw"]

MARKERS = "osD^v*"
SHADES = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
LEVELS = np.linspace(0.02, 0.98, 49)


def draw(cells: Cells, results: Mapping[str, Result]) -> Figure:
    """Draw predictions, calibration and the learned noise of the last model against others."""
    figure = Figure(figsize=(15.0, 9.6), layout="constrained")
    (a, b, c), (d, e, f) = figure.subplots(2, 3)
    best, linear = NUTS_NAME, BASE
    _predictions(a, cells, results[best].mean)
    predicted = f"predicted income tax per return (1000 USD)\n(a) {best}; by class of income"
    finish(a, predicted, "income tax per return (1000 USD)", 3)
    styles = {
        best: best,
        linear: linear,
        "network, noise by cell, VI": "network, noise by cell, VI",
        "network, one noise, VI": "network, one noise",
    }
    coverage_curve(
        {
            label: coverage(results[name].pit, LEVELS)
            for name, label in styles.items()
            if name in results
        },
        ax=b,
    )
    b.set_xlabel("level of the central interval\n(b) coverage, all cells")
    _noise(c, cells, results, best, linear)
    for ax, name, letter in ((d, linear, "d"), (e, best, "e")):
        pit_histogram(results[name].pit, ax=ax)
        ax.set_xlabel(f"PIT, F(y)\n({letter}) {name}")
    top = max(d.get_ylim()[1], e.get_ylim()[1])
    d.set_ylim(0, top)
    e.set_ylim(0, top)
    _by_size(f, cells, results, styles)
    return figure


def _predictions(ax: Axes, cells: Cells, mean: Any) -> None:
    for which, (marker, shade) in enumerate(zip(MARKERS, SHADES, strict=True)):
        chosen = cells.income_class == which
        ax.plot(
            np.exp(mean[chosen]), np.exp(cells.y[chosen, 0]), marker, color=shade, markersize=4,
            alpha=0.7, label=f"{CLASSES[which]} k",
        )  # fmt: skip
    ends = np.exp([cells.y.min(), cells.y.max()])
    ax.plot(ends, ends, "--", color=BLACK, linewidth=1.0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)


def _noise(ax: Axes, cells: Cells, results: Mapping[str, Result], best: str, linear: str) -> None:
    ax.plot(
        cells.returns, results[best].noise, ".", color=BLUE, markersize=4, alpha=0.5,
        label="learned noise of each cell",
    )  # fmt: skip
    tenths = np.array_split(np.argsort(cells.returns, kind="stable"), 10)  # decile by decile
    for name, colour, marker, aside in ((best, BLACK, "o", 0.94), (linear, VERMILLION, "s", 1.06)):
        error = cells.y[:, 0] - results[name].mean
        ax.plot(
            [aside * np.median(cells.returns[t]) for t in tenths],
            [np.sqrt(np.mean(error[t] ** 2)) for t in tenths],
            marker, color=colour, markersize=6, markerfacecolor=colour if name == best else "white",
            markeredgewidth=1.6,
            label=f"RMSE by decile, {'network' if name == best else 'linear'}",
        )  # fmt: skip
    at = np.array([cells.returns.min(), cells.returns.max()])
    middle = np.median(results[best].noise) * np.sqrt(np.median(cells.returns) / at)
    ax.plot(at, middle, "--", color=GREY, linewidth=1.4, label="1 / sqrt(returns)")
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis, minor="25")
    x_label = "returns of the cell (deciles at their medians, side by side)\n(c) noise by size"
    finish(ax, f"{x_label} of the cell", "deviation of log tax", 2)


def _by_size(
    ax: Axes, cells: Cells, results: Mapping[str, Result], styles: Mapping[str, str]
) -> None:
    fifths = np.array_split(np.argsort(cells.returns, kind="stable"), 5)
    there = {name: label for name, label in styles.items() if name in results}
    aside = 1.045 ** (2.0 * np.arange(len(there)) - len(there) + 1.0)  # a factor: x is logarithmic
    for (name, label), (colour, marker, style), shift in zip(
        there.items(), STYLES, aside, strict=False
    ):
        held = [coverage(results[name].pit[fifth], (0.9,)) for fifth in fifths]
        share = np.array([one.share[0] for one in held])
        low, high = np.array([(one.low[0], one.high[0]) for one in held]).T
        ax.errorbar(
            [shift * np.median(cells.returns[fifth]) for fifth in fifths], 100 * share,
            yerr=100 * np.abs([share - low, high - share]), marker=marker, linestyle=style,
            color=colour, capsize=3, markersize=6, label=label,
        )  # fmt: skip
    ax.axhline(90, color=BLACK, linestyle="--", linewidth=1.0, label="90 %")
    ax.set_xscale("log")
    ticks = [20, 50, 100, 200, 500, 1000]
    ax.set_xticks(ticks, [f"{tick}" for tick in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())
    x_label = "returns of the cell (fifths at their medians, side by side)\n(f) coverage of 90 %"
    finish(ax, f"{x_label} intervals by size", "targets inside (%, 95 % interval)", 2)

"""Plots of calibration: reliability diagrams and coverage curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from ..evaluation.calibration import Coverage
from ..evaluation.reliability import Reliability
from ..numeric.deprecation import renamed_arguments
from .style import BLACK, BLUE, GREEN, GREY, VERMILLION, axes_or_new, finish

__all__ = ["STYLES", "coverage_curve", "reliability_diagram"]

STYLES = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", "--"),
    (GREEN, "^", "-."),
    (GREY, "D", ":"),
)
Curve = TypeVar("Curve")


def _curves(
    ax: Axes, curves: Mapping[str, Curve], order: int
) -> Iterator[tuple[Curve, dict[str, Any]]]:
    """Draw the diagonal of perfect calibration; yield each curve and its keywords of `Axes.plot`.

    The keys of `curves` are the labels of the legend; `order` is the diagonal's zorder. Raise
    ValueError if there are no curves, or more than `STYLES` has.
    """
    if not 1 <= len(curves) <= len(STYLES):
        raise ValueError(
            f"a figure must have 1 to {len(STYLES)} curves; got {len(curves)}"
        )
    ax.plot(
        [0, 1],
        [0, 1],
        "--",
        color=BLACK,
        linewidth=1.0,
        label="calibrated",
        zorder=order,
    )
    for (name, curve), (colour, marker, line) in zip(
        curves.items(), STYLES, strict=False
    ):
        yield (
            curve,
            {
                "label": name,
                "color": colour,
                "marker": marker,
                "linestyle": line,
                "markersize": 6,
            },
        )


def reliability_diagram(
    tables: Mapping[str, Reliability], *, ax: Axes | None = None
) -> Axes:
    """Draw reliability diagrams: observed against predicted probability, with intervals (D35).

    Parameters
    ----------
    tables : mapping of str to Reliability
        One to four results of `reliability`, by the labels of the legend. Error bars are their 95 %
        Wilson intervals.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If `tables` is empty or has more than four.
    """
    ax = axes_or_new(ax)
    for table, style in _curves(ax, tables, 1):
        x, y = table.predicted, table.observed
        errors = np.abs([y - table.observed_low, table.observed_high - y])
        ax.errorbar(x, y, yerr=errors, linewidth=1.2, capsize=3, **style)
    low = min(
        min(table.predicted.min(), table.observed_low.min())
        for table in tables.values()
    )
    high = max(
        max(table.predicted.max(), table.observed_high.max())
        for table in tables.values()
    )
    margin = 0.04 * (high - low)
    ends = (low - margin, high + margin)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    finish(ax, "stated probability", "share that happened (95 % interval)", 2)
    return ax


@renamed_arguments(found="coverages")
def coverage_curve(
    coverages: Mapping[str, Coverage], *, ax: Axes | None = None
) -> Axes:
    """Draw the share of targets inside central intervals against the intervals' level (D35).

    Parameters
    ----------
    coverages : mapping of str to Coverage
        One to four results of `calibration.coverage`, by the labels of the legend. Markers are
        left out above 12 levels.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If `coverages` is empty or has more than four.
    """
    ax = axes_or_new(ax)
    for coverage, style in _curves(ax, coverages, 3):
        level = coverage.level
        if len(level) > 12:
            style["marker"] = ""
        band = {"color": style["color"], "alpha": 0.18, "linewidth": 0}
        ax.fill_between(level, coverage.low, coverage.high, **band)
        ax.plot(level, coverage.share, linewidth=1.6, **style)
    ax.fill_between(
        [], [], [], color=GREY, alpha=0.25, linewidth=0, label="95 % interval"
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    finish(ax, "level of the central interval", "share of targets inside", 2)
    return ax

"""Pictures of calibration: reliability, coverage; colours as in `style`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from ..evaluation.calibration import Coverage
from ..evaluation.reliability import Reliability
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
) -> Iterator[tuple[Curve, Any]]:
    """Draw the diagonal; yield each curve with its name, colour, marker and line."""
    if not 1 <= len(curves) <= len(STYLES):
        raise ValueError(
            f"accepted are 1 to {len(STYLES)} curves, one a style; got {len(curves)}"
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
        look = {"label": name, "color": colour, "marker": marker, "linestyle": line}
        yield curve, look | {"markersize": 6}


def reliability_diagram(
    tables: Mapping[str, Reliability], *, ax: Axes | None = None
) -> Axes:
    """Draw what happened against what was stated, with 95 % Wilson intervals (D35).

    Parameters
    ----------
    tables : mapping of str to Reliability
        At most four, drawn beside each other at their mean stated probabilities.
    ax : Axes, optional

    Raises
    ------
    ValueError
        For more than four, or none.
    """
    ax = axes_or_new(ax)
    for one, look in _curves(ax, tables, 1):
        bars = np.abs([one.seen - one.seen_low, one.seen_high - one.seen])
        ax.errorbar(one.stated, one.seen, yerr=bars, linewidth=1.2, capsize=3, **look)
    low = min(min(one.stated.min(), one.seen_low.min()) for one in tables.values())
    high = max(max(one.stated.max(), one.seen_high.max()) for one in tables.values())
    margin = 0.04 * (high - low)
    ends = low - margin, high + margin
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    finish(ax, "stated probability", "share that happened (95 % interval)", 2)
    return ax


def coverage_curve(found: Mapping[str, Coverage], *, ax: Axes | None = None) -> Axes:
    """Draw the share of targets inside central intervals against their level (D35).

    Parameters
    ----------
    found : mapping of str to Coverage
        At most four, from `calibration.coverage`; many levels make a curve.
    ax : Axes, optional

    Raises
    ------
    ValueError
        For more than four, or none.
    """
    ax = axes_or_new(ax)
    for one, look in _curves(ax, found, 3):
        if len(one.level) > 12:
            look["marker"] = ""
        ax.fill_between(
            one.level, one.low, one.high, color=look["color"], alpha=0.18, linewidth=0
        )
        ax.plot(one.level, one.share, linewidth=1.6, **look)
    ax.fill_between(
        [], [], [], color=GREY, alpha=0.25, linewidth=0, label="95 % interval"
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    finish(ax, "level of the central interval", "share of targets inside", 2)
    return ax

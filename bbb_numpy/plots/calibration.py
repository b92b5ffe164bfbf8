"""Pictures of calibration: reliability, PIT, coverage; colours as in `style`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from ..evaluation.calibration import Coverage
from ..evaluation.reliability import Reliability
from ..numeric.validation import NUMBERS, TEXT, InstanceOf, Named, Optional, accepts, whole
from .style import BLACK, BLUE, GREEN, GREY, PALE, VERMILLION, axes_or_new, legend_above

__all__ = ["STYLES", "coverage_curve", "pit_histogram", "reliability_diagram"]

Array = NDArray[Any]
STYLES = ((BLUE, "o", "-"), (VERMILLION, "s", "--"), (GREEN, "^", "-."), (GREY, "D", ":"))


def _few(name: str, curves: Mapping[str, Any]) -> None:
    """Refuse more curves than there are styles, and none."""
    if not curves:
        raise ValueError(f"{name} is empty; give at least one curve")
    if len(curves) > len(STYLES):
        raise ValueError(
            f"{name} must hold at most {len(STYLES)} curves, one of each style; got "
            f"{len(curves)}: {', '.join(map(str, curves))}. Draw them on several axes"
        )


_bins = partial(whole, least=2, most=10_000)


@accepts(tables=Named(InstanceOf(Reliability)), ax=Optional(InstanceOf(Axes)))
def reliability_diagram(tables: Mapping[str, Reliability], *, ax: Axes | None = None) -> Axes:
    """Draw what happened against what was stated, with 95 % Wilson intervals (D35).

    Parameters
    ----------
    tables : mapping of str to Reliability
        At most four, drawn beside each other at their mean stated probabilities.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        For more than four.
    """
    _few("tables", tables)
    ax = axes_or_new(ax)
    ends = [(min(t.stated.min(), t.seen_low.min()), max(t.stated.max(), t.seen_high.max()))
            for t in tables.values()]  # fmt: skip
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    margin = 0.04 * (high - low)
    ax.plot([0, 1], [0, 1], "--", color=BLACK, linewidth=1.0, label="calibrated", zorder=1)
    for (name, table), (colour, marker, style) in zip(tables.items(), STYLES, strict=False):
        ax.errorbar(
            table.stated,
            table.seen,
            yerr=np.abs([table.seen - table.seen_low, table.seen_high - table.seen]),
            color=colour,
            marker=marker,
            linestyle=style,
            linewidth=1.2,
            markersize=6,
            capsize=3,
            label=name,
        )
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.set_aspect("equal")
    ax.set_xlabel("stated probability")
    ax.set_ylabel("share that happened (95 % interval)")
    legend_above(ax, 2)
    return ax


@accepts(pits=NUMBERS, bins=_bins, label=TEXT, ax=Optional(InstanceOf(Axes)))
def pit_histogram(pits: Any, *, bins: int = 20, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw the histogram of PIT values beside the uniform density (D35).

    The band holds 95 % of the bars of independent uniform numbers, each bar for itself.
    A hump says that the predictive distribution is too wide, a bowl too narrow, a slope biased.

    Parameters
    ----------
    pits : ndarray
        From `calibration.pit`, any shape.
    bins : int
    label : str
        Of the bars.
    ax : Axes, optional
    """
    ax = axes_or_new(ax)
    pits = np.ravel(pits).astype(float)
    share = 1.0 / bins
    error = 1.96 * np.sqrt(share * (1.0 - share) / max(pits.size, 1)) * bins
    edges = np.arange(bins + 1) / bins
    height = np.histogram(pits, edges)[0] * bins / max(pits.size, 1)
    ax.bar(
        edges[:-1],
        height,
        width=share,
        align="edge",
        color=PALE,
        edgecolor=BLUE,
        linewidth=1.0,
        label=label or f"{pits.size} targets",
    )
    ax.axhspan(1 - error, 1 + error, color=GREY, alpha=0.25, linewidth=0, label="95 % if uniform")
    ax.axhline(1.0, color=BLACK, linestyle="--", linewidth=1.2, label="uniform")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.08 * max(float(height.max()), 1 + error))
    ax.set_xlabel("PIT, F(y)")
    ax.set_ylabel("density")
    legend_above(ax, 3)
    return ax


@accepts(found=Named(InstanceOf(Coverage)), ax=Optional(InstanceOf(Axes)))
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
        For more than four.
    """
    _few("found", found)
    ax = axes_or_new(ax)
    ax.plot([0, 1], [0, 1], "--", color=BLACK, linewidth=1.0, label="calibrated", zorder=3)
    for (name, one), (colour, marker, style) in zip(found.items(), STYLES, strict=False):
        ax.fill_between(one.level, one.low, one.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            one.level,
            one.share,
            linestyle=style,
            marker=marker if len(one.level) <= 12 else "",
            markersize=6,
            color=colour,
            linewidth=1.6,
            label=name,
        )
    ax.fill_between([], [], [], color=GREY, alpha=0.25, linewidth=0, label="95 % interval")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("level of the central interval")
    ax.set_ylabel("share of targets inside")
    legend_above(ax, 2)
    return ax

"""The style of all pictures: colours, new axes, where the legend is.

Colours are Okabe and Ito's, which stay apart for the colour-blind, the bands lighter tints of them;
line styles and lightness keep them apart in grey.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "PALE",
    "SKY",
    "VERMILLION",
    "axes_or_new",
    "legend_above",
]

BLACK, BLUE, SKY, VERMILLION, GREEN = "#000000", "#0072B2", "#7FC4EE", "#D55E00", "#009E73"
PALE, GREY = "#D9ECF8", "#5A5A5A"


def axes_or_new(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    return Figure(figsize=(5.0, 3.8), layout="constrained").subplots()


def legend_above(ax: Axes, columns: int, order: Sequence[str] = ()) -> None:
    """Put the legend above the axes, where it can cover neither data nor curves."""
    found = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    labels = [label for label in order if label in found] or list(found)
    ax.legend(
        [found[label] for label in labels],
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns,
        frameon=False,
        fontsize="small",
        handlelength=2.4,
        columnspacing=1.4,
    )

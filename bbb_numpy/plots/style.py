"""The style of all plots: colours, new axes, position of the legend.

Colours are Okabe and Ito's, which stay apart for the colour-blind, the bands lighter tints of them;
line styles and lightness keep them apart in grey. Through the book one method has one colour:
a mean field is BLUE, full rank PURPLE, draws by HMC or NUTS VERMILLION, as is the mean of a
prediction; a point estimate, like Metropolis, GREY, an ensemble GREEN, a prior ORANGE. What is
exact, the truth and the posterior, is BLACK; data are BLACK or GREY points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

__all__ = ["BLACK", "BLUE", "EDGE", "GREEN", "GREY", "ORANGE", "PALE", "PURPLE", "SKY",
           "VERMILLION", "axes_or_new", "density_of_draws", "finish", "legend_above",
           "legend_of_figure", "plain_numbers"]  # fmt: skip

BLACK = "#000000"
BLUE = "#0072B2"
SKY = "#7FC4EE"
PALE = "#D9ECF8"
VERMILLION = "#D55E00"
GREEN = "#009E73"
GREY = "#5A5A5A"
ORANGE = "#E69F00"
PURPLE = "#CC79A7"
EDGE = "#8C8C8C"  # colour of the lines that mark the range of the data


def axes_or_new(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    return Figure(figsize=(5.0, 3.8), layout="constrained").subplots()


def density_of_draws(ax: Axes, draws: Any, edges: Any, **style: Any) -> None:
    """Draw the histogram of draws as a density, whose area within `edges` is 1.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    draws : array-like
        Draws of one number, of any shape.
    edges : array-like
        Edges of the bins, increasing.
    **style
        Colour, fill and label of the outline, as for `Axes.stairs`.
    """
    density, _ = np.histogram(np.ravel(draws), edges, density=True)
    ax.stairs(density, edges, **style)


def legend_above(ax: Axes, columns: int, order: Sequence[str] = ()) -> None:
    """Draw the legend of the axes above them, where it can cover neither data nor curves.

    Parameters
    ----------
    ax : Axes
        Axes whose curves are labelled.
    columns : int
        Number of columns of the legend.
    order : sequence of str
        Labels in the order of the legend; labels without a curve are skipped. By default all, in
        the order in which they were drawn.
    """
    handles, all_labels = ax.get_legend_handles_labels()
    handle_of = dict(zip(all_labels, handles, strict=True))
    labels = [label for label in order if label in handle_of] or list(handle_of)
    ax.legend(
        [handle_of[label] for label in labels],
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns,
        frameon=False,
        fontsize="small",
        handlelength=2.4,
        columnspacing=1.4,
    )


def legend_of_figure(figure: Figure, ax: Axes, columns: int) -> None:
    """Draw the legend of `ax` above the whole figure, so that it serves all axes of the figure.

    Parameters
    ----------
    figure : Figure
        Figure that gets the legend.
    ax : Axes
        Axes whose curves are labelled.
    columns : int
        Number of columns of the legend.
    """
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=columns, frameon=False
    )


def finish(ax: Axes, x_label: str, y_label: str, columns: int) -> None:
    """Set the labels of x and y, and draw the legend above the axes.

    Parameters
    ----------
    ax : Axes
        Axes to label.
    x_label, y_label : str
        Labels of the axes of x and y.
    columns : int
        Number of columns of the legend.
    """
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    legend_above(ax, columns)


def plain_numbers(axis: Axis, minor: str = "") -> None:
    """Label the ticks of a logarithmic axis with plain numbers, such as 0.1, not powers of ten.

    Parameters
    ----------
    axis : Axis
        Axis with a logarithmic scale.
    minor : str
        First digits of the minor ticks that are labelled too, such as "25" for 0.2, 0.5, 2, 5.
    """

    def label_minor(value: float, position: object) -> str:
        """Return the label of a minor tick, empty unless its first digit is in `minor`."""
        if f"{value:e}"[0] in minor:
            return f"{value:g}"
        return ""

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(label_minor))

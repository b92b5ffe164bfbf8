"""Plot of a partial dependence: the mean prediction against one column, with its band."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ..evaluation.predictive import BAND
from ..evaluation.what_matters import PartialDependence
from .style import SKY, VERMILLION, axes_or_new

__all__ = ["dependence"]


def dependence(
    result: PartialDependence, *, label: str = "", ax: Axes | None = None
) -> Axes:
    """Draw the mean prediction against one column, with a band of +- 2 standard deviations.

    Parameters
    ----------
    result : PartialDependence
        Partial dependence on one column, of one output.
    label : str
        Name of the column, the label of the axis.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If there are two columns, or more than one output or class.
    """
    if result.mean.ndim != 1:
        raise ValueError(
            "a curve has one column and one output; choose one of the outputs or classes: "
            "PartialDependence(result.grid, result.draws[:, k])"
        )
    ax = axes_or_new(ax)
    x = result.grid[0]
    mean, half_width = result.mean, BAND * result.sd
    if np.asarray(x).dtype.kind in "OUSb":  # categories stand side by side
        ax.errorbar(x.astype(str), mean, half_width, fmt="o", color=VERMILLION)
    else:
        ax.fill_between(x, mean - half_width, mean + half_width, color=SKY, linewidth=0)
        ax.plot(x, mean, color=VERMILLION)
    ax.set(xlabel=label, ylabel="mean prediction")
    return ax

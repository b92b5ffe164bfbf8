"""Plots of fits.

pyplot and its global state are not used: without Axes a new Figure is made, which is reached as
``ax.figure`` and saved with ``ax.figure.savefig``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from ..evaluation.predictive import BAND, Predictive
from ..numeric.layout import Array
from .style import BLACK, EDGE, GREY, PALE, SKY, VERMILLION, axes_or_new, legend_above

__all__ = ["BAND", "fit", "residuals"]


def fit(
    x: Array,
    predictive: Predictive,
    *,
    data: tuple[Array, Array] | None = None,
    truth: Callable[[Array], Array] | None = None,
    less_truth: bool = False,
    y_limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a prediction's mean and two bands of +- 2 standard deviations, with data and truth.

    The inner band is epistemic (where the curve may run), the outer one total (where a new
    y may fall). Two dotted vertical lines mark the range of the data.

    Parameters
    ----------
    x : ndarray (N,) or (N, 1)
        Inputs, increasing, in units of the data.
    predictive : Predictive
        Prediction of a single output at `x`, in units of y.
    data : (x, y), optional
        Training rows, (N,) or (N, 1) each.
    truth : callable, optional
        The true curve as a function of x, elementwise.
    less_truth : bool
        Whether to subtract the true curve from everything, so that narrow bands can be seen.
    y_limits : (float, float), optional
        Lower and upper limit of the axis of y. By default bands and data fit in; the truth may
        leave the panel.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Returns
    -------
    Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If the prediction has more than one output per x, or `less_truth` is set without `truth`.
    """
    if less_truth and truth is None:
        raise ValueError("less_truth=True needs truth, the curve to subtract")
    ax = axes_or_new(ax)
    subtract: Callable[[Array], Array] = np.zeros_like
    if less_truth and truth is not None:
        subtract = truth
    x = np.ravel(x)
    mean = np.ravel(predictive.mean) - subtract(x)
    epistemic: Array = np.ravel(predictive.epistemic)
    total: Array = np.ravel(predictive.total)
    outer = f"predictive ± {BAND:g} sd"
    inner = f"epistemic ± {BAND:g} sd"
    # Predictions with heavy tails have an infinite total sd: the outer band is left out
    if np.isinf(total).any():
        total = np.where(np.isinf(total), np.nan, total)
        outer = "predictive sd: infinite"
    bands = ((total, PALE, outer, 1.0), (epistemic, SKY, inner, 1.2))
    for sd, colour, label, order in bands:
        low = mean - BAND * sd
        high = mean + BAND * sd
        ax.fill_between(
            x, low, high, color=colour, linewidth=0, label=label, zorder=order
        )
    widest = BAND * np.fmax(total, epistemic)
    visible = [mean - widest, mean + widest]
    if data is not None:
        x_data = np.ravel(data[0])
        y_data = np.ravel(data[1]) - subtract(x_data)
        visible.append(y_data)
        ax.plot(
            x_data, y_data, ".", color=GREY, markersize=2.5, label="data", zorder=1.4
        )
        for edge in (x_data.min(), x_data.max()):
            ax.axvline(
                edge, color=EDGE, linewidth=0.7, linestyle=(0, (1, 2)), zorder=0.5
            )
    ax.plot(
        x, mean, "-", color=VERMILLION, linewidth=1.8, label="predictive mean", zorder=3
    )
    if truth is not None:
        curve = truth(x) - subtract(x)
        ax.plot(x, curve, "--", color=BLACK, linewidth=1.2, label="truth", zorder=3.2)
    if y_limits is None:
        lowest = min(values.min() for values in visible)
        highest = max(values.max() for values in visible)
        margin = 0.06 * (highest - lowest) or 1.0
        y_limits = (float(lowest - margin), float(highest + margin))
    ax.set(xlim=(float(x[0]), float(x[-1])), ylim=y_limits)
    ax.set(xlabel="x", ylabel="y − truth" if less_truth else "y")
    legend_above(ax, 3, ("data", "truth", "predictive mean", inner, outer))
    return ax


def residuals(
    mean: Array, y: Array, ends: Array, *, level: float, ax: Axes | None = None
) -> Axes:
    """Draw what predicted means miss, y - mean, with the interval of each row as a vertical line.

    Parameters
    ----------
    mean : ndarray (N,)
        Predicted means, in units of y.
    y : ndarray (N,)
        Observed targets.
    ends : ndarray (N, 2)
        Lower and upper ends of the predicted intervals.
    level : float
        Probability of these intervals, such as 0.9; it is named in the legend.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = axes_or_new(ax)
    low, high = ends.T
    is_inside = (low <= y) & (y <= high)
    ax.vlines(
        mean, low - mean, high - mean, color=SKY, linewidth=1.0, label=f"{level:.0%} interval"
    )  # fmt: skip
    for rows, colour, marker, label in (
        (is_inside, BLACK, ".", "inside"),
        (~is_inside, VERMILLION, "x", "outside"),
    ):
        label = f"{label}: {rows.sum():,} rows"
        errors = (y - mean)[rows]
        ax.plot(mean[rows], errors, marker, color=colour, markersize=4, label=label)
    ax.axhline(0.0, color=EDGE, linewidth=0.7)
    ax.set(xlabel="predicted mean", ylabel="y - predicted mean")
    legend_above(ax, 3)
    return ax

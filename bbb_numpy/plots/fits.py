"""Pictures of fits and of training.

No pyplot and so no global state: without Axes a new Figure is made, which is reached as
``ax.figure`` and saved with ``ax.figure.savefig``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from ..evaluation.predictive import BAND, Predictive
from ..training import Epoch
from .style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PALE,
    SKY,
    VERMILLION,
    axes_or_new,
    finish,
    legend_above,
    plain_numbers,
)

__all__ = ["BAND", "deviations", "fit", "loss", "report_figure"]

Array = NDArray[Any]
EDGE = "#8C8C8C"  # of the range of the data


def loss(history: Sequence[Epoch], *, rows: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the free energy against epochs, with its complexity and likelihood parts.

    Parameters
    ----------
    history : sequence of Epoch
        In nats, as `training.fit` records it; at least one.
    rows : int, optional
        Divide by this number of training examples.
    ax : Axes, optional

    Returns
    -------
    Axes
        Logarithmic in the epochs (counted from 1), and in y if all numbers are positive and
        the largest is more than five times the smallest.
    """
    ax = axes_or_new(ax)
    table = np.array([(epoch.objective, epoch.kl, epoch.nll) for epoch in history])
    table /= rows or 1  # (epochs, 3)
    looks = (
        ("free energy", BLACK, "-", 1.6),
        ("KL(q, prior)", BLUE, "--", 1.4),
        ("−log likelihood", VERMILLION, ":", 1.8),
    )
    epochs = np.arange(1, len(history) + 1)
    for values, (label, colour, style, width) in zip(table.T, looks, strict=True):
        ax.plot(epochs, values, style, color=colour, linewidth=width, label=label)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if 0 < 5 * table.min() < table.max():
        ax.set_yscale("log")
        few = table.max() < 100 * table.min()  # powers of ten to read values from
        plain_numbers(ax.yaxis, minor="25" if few else "")
        ax.tick_params(axis="y", which="minor", labelsize=ax.yaxis.label.get_fontsize())
    finish(ax, "epoch", "nats per training example" if rows else "nats", 2)
    return ax


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
    """Draw data, truth, predictive mean and the two bands of mean +- 2 standard deviations.

    The inner band is epistemic (where the curve may run), the outer one total (where a new
    y may fall). Neither is scaled. Two dotted vertical lines mark the range of the data.

    Parameters
    ----------
    x : ndarray (N,) or (N, 1)
        Increasing, in units of the data.
    predictive : Predictive
        At `x`, one output, in units of y.
    data : (x, y), optional
        Training rows, (N,) or (N, 1) each.
    truth : callable, optional
        The true curve, elementwise.
    less_truth : bool
        Subtract the true curve from everything, so that narrow bands can be seen.
    y_limits : (float, float), optional
        Default: what the bands and the data need; the truth may leave the panel.
    ax : Axes, optional

    Raises
    ------
    ValueError
        If the prediction has not one output per x, or `less_truth` lacks a truth.
    """
    if less_truth and truth is None:
        raise ValueError("less_truth=True needs truth, the curve to subtract")
    ax = axes_or_new(ax)
    subtract = truth if less_truth and truth is not None else np.zeros_like
    x = np.ravel(x)
    mean = np.ravel(predictive.mean) - subtract(x)
    epistemic: Array = np.ravel(predictive.epistemic)
    total: Array = np.ravel(predictive.total)
    outer, inner = (f"{what} ± {BAND:g} sd" for what in ("predictive", "epistemic"))
    if np.isinf(total).any():  # heavy tails: there is no such band, and the other one is shown
        total, outer = np.where(np.isinf(total), np.nan, total), "predictive sd: infinite"
    bands = ((total, PALE, outer, 1.0), (epistemic, SKY, inner, 1.2))
    for spread, colour, label, order in bands:
        low, high = mean - BAND * spread, mean + BAND * spread
        ax.fill_between(x, low, high, color=colour, linewidth=0, label=label, zorder=order)
    widest = BAND * np.fmax(total, epistemic)
    visible = [mean - widest, mean + widest]
    if data is not None:
        x_data, y_data = np.ravel(data[0]), np.ravel(data[1])
        y_data = y_data - subtract(x_data)
        visible.append(y_data)
        ax.plot(x_data, y_data, ".", color=GREY, markersize=2.5, label="data", zorder=1.4)
        for edge in (x_data.min(), x_data.max()):
            ax.axvline(edge, color=EDGE, linewidth=0.7, linestyle=(0, (1, 2)), zorder=0.5)
    ax.plot(x, mean, "-", color=VERMILLION, linewidth=1.8, label="predictive mean", zorder=3)
    if truth is not None:
        curve = truth(x) - subtract(x)
        ax.plot(x, curve, "--", color=BLACK, linewidth=1.2, label="truth", zorder=3.2)
    if y_limits is None:
        lowest, highest = min(v.min() for v in visible), max(v.max() for v in visible)
        margin = 0.06 * (highest - lowest) or 1.0
        y_limits = (float(lowest - margin), float(highest + margin))
    ax.set(xlim=(float(x[0]), float(x[-1])), ylim=y_limits)
    ax.set(xlabel="x", ylabel="y − truth" if less_truth else "y")
    legend_above(ax, 3, ("data", "truth", "predictive mean", inner, outer))
    return ax


def deviations(
    x: Array,
    curves: Mapping[str, Array],
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw epistemic standard deviations against x on a logarithmic axis, one curve per name.

    Parameters
    ----------
    x : ndarray (N,) or (N, 1)
    curves : mapping of str to ndarray (N,) or (N, 1)
        At most four standard deviations > 0, in units of y.
    ranges : mapping of str to (low, high), optional
        Where the data of a curve lie: drawn thick there, thin outside.
    ax : Axes, optional
    """
    ax, x = axes_or_new(ax), np.ravel(x)
    styles = ((BLACK, "-"), (BLUE, "--"), (VERMILLION, "-."), (GREEN, ":"))
    for (name, curve), (colour, style) in zip(curves.items(), styles, strict=False):
        values = np.ravel(curve)
        ax.plot(x, values, style, color=colour, linewidth=1.3, label=name)
        if ranges and name in ranges:
            low, high = ranges[name]
            inside = np.where((x >= low) & (x <= high), values, np.nan)
            ax.plot(x, inside, "-", color=colour, linewidth=4.5, alpha=0.4)
    if ranges:
        ax.plot([], [], "-", color=EDGE, linewidth=4.5, label="within the data")
    ax.set(yscale="log", xlim=(float(x[0]), float(x[-1])))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_major_locator(MaxNLocator(7))
    finish(ax, "x", "epistemic standard deviation (units of y)", 2)
    return ax


def report_figure(
    history: Sequence[Epoch],
    x: Array,
    predictive: Predictive,
    *,
    data: tuple[Array, Array],
    truth: Callable[[Array], Array],
    y_limits: tuple[float, float] | None = None,
    title: str = "",
) -> tuple[Axes, Axes, Axes]:
    """Draw a figure in the report's arrangement: (a) loss against epochs, (b) the fit.

    The report's problems have no units. Its two panels are followed by (c), which shows (b)
    within the data less the truth: on the scale of (b) the bands are thinner than the lines.
    Arguments are those of `loss` and `fit`; the figure of the three Axes is ``axes[0].figure``.
    """
    figure = Figure(figsize=(13.0, 4.1), layout="constrained")
    a, b, c = figure.subplots(1, 3, width_ratios=(1.1, 1.2, 1.2))
    loss(history, rows=len(data[0]), ax=a)
    fit(x, predictive, data=data, truth=truth, y_limits=y_limits, ax=b)
    x = np.ravel(x)
    low, high = float(np.min(data[0])), float(np.max(data[0]))
    step = np.diff(x).max(initial=0.0)  # one point further, up to the edges of the panel
    inside = (x > low - step) & (x < high + step)
    within = Predictive._make(np.ravel(moment)[inside] for moment in predictive)
    fit(x[inside], within, data=data, truth=truth, less_truth=True, ax=c)
    c.legend().remove()  # that of (b) serves both
    a.set(xlabel="epoch\n(a) loss against epochs")
    b.set(xlabel="x (dimensionless)\n(b) fit", ylabel="y (dimensionless)")
    label = "x (dimensionless)\n(c) fit less truth, within the data"
    c.set(xlim=(low, high), xlabel=label, ylabel="y − truth (dimensionless)")
    if title:
        figure.suptitle(title, fontsize="medium")
    return a, b, c

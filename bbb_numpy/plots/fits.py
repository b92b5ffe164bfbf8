"""Pictures of fits and of training.

No pyplot and so no global state: without Axes a new Figure is made, which is reached as
``ax.figure`` and saved with ``ax.figure.savefig``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from ..evaluation.predictive import BAND, Predictive
from ..numeric.validation import (
    FUNCTION,
    INTERVAL,
    NUMBERS,
    TEXT,
    InstanceOf,
    Named,
    Numbers,
    Optional,
    accepts,
    brief,
    flag,
    whole,
)
from ..training import Epoch
from .style import BLACK, BLUE, GREEN, GREY, PALE, SKY, VERMILLION, axes_or_new, legend_above

__all__ = ["BAND", "deviations", "fit", "loss", "report_figure"]

Array = NDArray[Any]


def _history(name: str, value: Any) -> Any:
    if not isinstance(value, list | tuple) or not all(isinstance(one, Epoch) for one in value):
        raise TypeError(
            f"{name} must be what training recorded, e.g. model.history_; got {brief(value)}"
        )
    return value


def _points(name: str, value: Any) -> Any:
    return np.ravel(Numbers(least=1)(name, value))


def _pair(name: str, value: Any) -> Any:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name} must be a pair (x, y) of arrays; got {brief(value)}")
    x, y = (_points(name, part) for part in value)
    if len(x) != len(y):
        raise ValueError(f"{name} must be x and y of one length; got {len(x)} and {len(y)}")
    return x, y


AX = Optional(InstanceOf(Axes))


@accepts(history=_history, rows=Optional(partial(whole, least=1)), ax=AX)
def loss(history: Sequence[Epoch], *, rows: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the free energy against epochs, with its complexity and likelihood parts.

    Parameters
    ----------
    history : sequence of Epoch
        In nats, as `training.fit` records it.
    rows : int, optional
        Divide by this number of training examples.
    ax : Axes, optional

    Returns
    -------
    Axes
        Logarithmic in the epochs (counted from 1), and in y if all numbers are positive and
        the largest is more than five times the smallest.

    Raises
    ------
    ValueError
        If the history is empty.
    """
    if not history:
        raise ValueError("the history is empty; train for at least one epoch")
    ax = axes_or_new(ax)
    epochs = np.arange(1, len(history) + 1)
    parts = (
        ("objective", "free energy", BLACK, "-", 1.6),
        ("kl", "KL(q, prior)", BLUE, "--", 1.4),
        ("nll", "−log likelihood", VERMILLION, ":", 1.8),
    )
    table = np.array([[getattr(epoch, part[0]) for part in parts] for epoch in history])
    table /= rows or 1  # (epochs, 3)
    for values, (_, label, colour, style, width) in zip(table.T, parts, strict=True):
        ax.plot(epochs, values, style, color=colour, linewidth=width, label=label)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(plain)
    if 0 < 5 * table.min() < table.max():
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(plain)
        if table.max() < 100 * table.min():  # too few powers of ten to read values from
            ax.yaxis.set_minor_formatter(
                FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
            )
            ax.tick_params(axis="y", which="minor", labelsize=ax.yaxis.label.get_fontsize())
    ax.set_xlabel("epoch")
    ax.set_ylabel("nats per training example" if rows else "nats")
    legend_above(ax, 2)
    return ax


@accepts(
    x=_points,
    predictive=InstanceOf(Predictive),
    data=Optional(_pair),
    truth=Optional(FUNCTION),
    less_truth=flag,
    y_limits=Optional(INTERVAL),
    ax=AX,
)
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

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the prediction has not one output per x, or `less_truth` lacks a truth.
    """
    x = np.ravel(x)
    if np.size(predictive.mean) != x.size:
        raise ValueError(
            f"predictive.mean must have one output for each of {x.size} x; "
            f"got shape {np.shape(predictive.mean)}"
        )
    if less_truth and truth is None:
        raise ValueError("less_truth=True needs truth, the curve to subtract")
    if truth is not None and NUMBERS("truth(x)", truth(x)).shape != x.shape:
        raise ValueError("truth must return a number for each x")
    ax = axes_or_new(ax)
    subtract = truth if less_truth and truth is not None else np.zeros_like
    mean = np.ravel(predictive.mean) - subtract(x)
    epistemic: Array = np.ravel(predictive.epistemic)
    total: Array = np.ravel(predictive.total)
    bands = (f"predictive ± {BAND:g} sd", f"epistemic ± {BAND:g} sd")
    if np.isinf(total).any():  # heavy tails: there is no such band, and the other one is shown
        total, bands = (
            np.where(np.isinf(total), np.nan, total),
            ("predictive sd: infinite", bands[1]),
        )
    for deviation, colour, label, order in (
        (total, PALE, bands[0], 1.0),
        (epistemic, SKY, bands[1], 1.2),
    ):
        low, high = mean - BAND * deviation, mean + BAND * deviation
        ax.fill_between(x, low, high, color=colour, linewidth=0, label=label, zorder=order)
    outer = np.fmax(total, epistemic)
    visible = [mean - BAND * outer, mean + BAND * outer]
    if data is not None:
        x_data = np.ravel(data[0])
        y_data = np.ravel(data[1]) - subtract(x_data)
        visible.append(y_data)
        ax.plot(x_data, y_data, ".", color=GREY, markersize=2.5, label="data", zorder=1.4)
        for edge in (x_data.min(), x_data.max()):
            ax.axvline(edge, color="#8C8C8C", linewidth=0.7, linestyle=(0, (1, 2)), zorder=0.5)
    ax.plot(x, mean, "-", color=VERMILLION, linewidth=1.8, label="predictive mean", zorder=3)
    if truth is not None:
        ax.plot(
            x, truth(x) - subtract(x), "--", color=BLACK, linewidth=1.2, label="truth", zorder=3.2
        )
    if y_limits is None:
        lowest, highest = min(v.min() for v in visible), max(v.max() for v in visible)
        margin = 0.06 * (highest - lowest) or 1.0
        y_limits = (float(lowest - margin), float(highest + margin))
    ax.set_ylim(*y_limits)
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.set_xlabel("x")
    ax.set_ylabel("y − truth" if less_truth else "y")
    legend_above(ax, 3, ("data", "truth", "predictive mean", bands[1], bands[0]))
    return ax


@accepts(x=_points, curves=Named(_points), ranges=Optional(Named(INTERVAL)), ax=AX)
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

    Returns
    -------
    Axes
    """
    for name, curve in curves.items():
        if len(curve) != len(x) or not (curve > 0).all():
            raise ValueError(f"curves[{name!r}] must hold a number > 0 for each x")
    ax = axes_or_new(ax)
    x = np.ravel(x)
    styles = ((BLACK, "-"), (BLUE, "--"), (VERMILLION, "-."), (GREEN, ":"))
    for (name, curve), (colour, style) in zip(curves.items(), styles, strict=False):
        values = np.ravel(curve)
        ax.plot(x, values, style, color=colour, linewidth=1.3, label=name)
        if ranges and name in ranges:
            low, high = ranges[name]
            inside = np.where((x >= low) & (x <= high), values, np.nan)
            ax.plot(x, inside, "-", color=colour, linewidth=4.5, alpha=0.4)
    if ranges:
        ax.plot([], [], "-", color="#8C8C8C", linewidth=4.5, label="within the data")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.xaxis.set_major_locator(MaxNLocator(7))
    ax.set_xlabel("x")
    ax.set_ylabel("epistemic standard deviation (units of y)")
    legend_above(ax, 2)
    return ax


@accepts(history=_history, x=_points, data=_pair, truth=FUNCTION, title=TEXT)
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

    Parameters
    ----------
    history : sequence of Epoch
    x, predictive, data, truth, y_limits
        As for `fit`.
    title : str

    Returns
    -------
    tuple of Axes
        (a), (b), (c); their figure is ``axes[0].figure``.
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
    c.set_xlim(low, high)
    c.legend().remove()  # that of (b) serves both
    a.set_xlabel("epoch\n(a) loss against epochs")
    b.set_xlabel("x (dimensionless)\n(b) fit")
    b.set_ylabel("y (dimensionless)")
    c.set_xlabel("x (dimensionless)\n(c) fit less truth, within the data")
    c.set_ylabel("y − truth (dimensionless)")
    if title:
        figure.suptitle(title, fontsize="medium")
    return a, b, c

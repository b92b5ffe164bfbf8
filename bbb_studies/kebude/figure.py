"""The report's figures: loss against epochs, the fit, and the fit less the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.plots.fits import fit
from bbb_numpy.plots.style import BLACK, BLUE, VERMILLION, axes_or_new, finish, plain_numbers
from bbb_numpy.training import Epoch

__all__ = ["loss", "report_figure"]

Array = NDArray[Any]


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

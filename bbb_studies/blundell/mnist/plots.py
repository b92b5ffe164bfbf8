"""The picture of the MNIST study; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish, plain_numbers
from bbb_numpy.plots.weights import ratios

from .tables import TITLES

__all__ = ["draw"]

Array = NDArray[Any]
STYLES = {
    "SGD": (BLACK, "-", "o"),
    "MAP": (VERMILLION, "--", "s"),
    "BBB": (BLUE, "-", "^"),
    "BBB, one draw": (GREEN, ":", "v"),
}
LABELS = {
    "SGD": "SGD",
    "MAP": "MAP",
    "BBB": "BBB, posterior means",
    "BBB, one draw": "BBB, one draw",
}


def draw(numbers: Mapping[str, Any], weights: Mapping[str, Array]) -> Figure:
    """Draw errors by epoch, weights, signal-to-noise ratios and errors by share removed."""
    figure = Figure(figsize=(12.0, 9.4), layout="constrained")
    (a, b), (c, d) = figure.subplots(2, 2)
    _errors(a, numbers)
    _weights(b, weights)
    ratios(weights["ratio"], ax=c)
    c.set_xlabel(
        f"{c.get_xlabel()}\n(c) signal-to-noise of all weights of BBB (the paper's Figure 4)"
    )
    _pruning(d, numbers)
    return figure


def _errors(ax: Axes, numbers: Mapping[str, Any]) -> None:
    for name, one in numbers["methods"].items():
        colour, style, _ = STYLES[name]
        epochs = np.arange(1, len(one["errors"]) + 1)
        ax.plot(epochs, 100 * np.array(one["errors"]), style, color=colour, label=TITLES[name])
    ax.set_xscale("log")
    plain_numbers(ax.xaxis, minor="25")
    ax.grid(axis="y", color=GREY, alpha=0.2)
    label = "epoch\n(a) errors of the network with the mean weights"
    finish(ax, label, "validation images classified wrongly (%)", 2)


def _weights(ax: Axes, weights: Mapping[str, Array]) -> None:
    shown = {name: weights[name] for name in STYLES if name in weights}
    most = 1.1 * max(float(np.quantile(np.abs(w), 0.9995)) for w in shown.values())
    edges = np.linspace(-most, most, 161)
    lowest = np.inf
    for name, w in shown.items():
        colour, style, _ = STYLES[name]
        density = np.histogram(w, edges)[0] / (len(w) * np.diff(edges))
        lowest = min(lowest, density[density > 0].min())
        ax.stairs(density, edges, color=colour, linestyle=style, linewidth=1.5, label=LABELS[name])
    ax.set_yscale("log")
    ax.set_ylim(bottom=lowest)
    ax.set_xlim(-most, most)
    label = "weight (dimensionless)\n(b) all weights and biases (the paper's Figure 3)"
    finish(ax, label, "density", 2)


def _pruning(ax: Axes, numbers: Mapping[str, Any]) -> None:
    rows = numbers["pruning"]
    left = 100 * (1.0 - np.array([row["share"] for row in rows]))
    tests = numbers["settings"]["test"]
    for name, label in (("BBB", "BBB, by signal-to-noise"), ("SGD", "SGD, by size")):
        colour, style, marker = STYLES[name]
        share = np.array([row[name] for row in rows])
        ax.errorbar(
            left, 100 * share, yerr=100 * np.sqrt(share * (1 - share) / tests), marker=marker,
            linestyle=style, color=colour, capsize=3, label=label,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis)
    ax.set_xticks(left, [f"{value:.0f}" for value in left])
    ax.invert_xaxis()
    plain_numbers(ax.yaxis, minor="235")
    label = "weights left (%)\n(d) pruning; bars are binomial deviations"
    finish(ax, label, "test images classified wrongly (%)", 2)

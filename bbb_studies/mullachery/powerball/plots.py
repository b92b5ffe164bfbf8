"""The pictures of the Powerball study (D37)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    PALE,
    VERMILLION,
    legend_above,
    legend_of_figure,
)
from bbb_studies.data import powerball as data

from .coverage import intervals, undecided
from .models import NUMBERS, Fitted, Setup, logit, network
from .positions import positions
from .scores import RULE, Scores

__all__ = [
    "boundaries",
    "buckets",
    "calibration",
    "confusion",
    "frequencies",
    "uncertainty",
    "weights",
]

Array = NDArray[Any]
BALL = "number of the ball"
P_BIN_1 = "P(bin 1 | number)"


def frequencies(rows: data.Examples, exact: data.Exact, figure: Figure | None = None) -> Figure:
    """Draw how often each number came in the two bins, and how often it should have."""
    figure = _new(figure, 8.6, 4.0)
    ax = figure.subplots()
    count = len(rows.number) // 2
    for label, place, colour, style, mark in (
        (1, 1, BLUE, "-", "o"),
        (0, 3, VERMILLION, "--", "s"),
    ):
        seen = np.bincount(rows.number[rows.label == label], minlength=len(NUMBERS))
        ax.plot(NUMBERS[1:], seen[1:], mark, color=colour, ms=4.5, label=f"bin {place}, seen")
        wanted = 2 * count * exact.mass[label]
        ax.plot(
            np.arange(1, len(wanted)), wanted[1:], style, color=colour, label=f"bin {place}, exact"
        )
    ax.axvline(exact.limit + 0.5, color=GREY, lw=1.0, ls=":", label="best boundary")
    ax.set(xlim=(0, 70), xlabel=BALL, ylabel=f"draws (of {count})")
    ax.set_ylim(bottom=0)
    legend_above(ax, 5)
    return figure


def boundaries(
    full: Mapping[str, Fitted], exact: data.Exact, figure: Figure | None = None
) -> Figure:
    """Draw the probabilities of every classifier, and shade where it says bin 1."""
    figure = _new(figure, 13.0, 8.4)
    panels = _panels(figure, list(full))
    for ax, fitted in zip(panels, full.values(), strict=False):
        p = fitted.probability
        says = np.where(p > 0.5, 2.0, -1.0)
        ax.stairs(says, np.arange(71) - 0.5, baseline=-1, fill=True, color=PALE, label="says bin 1")
        ax.plot(exact.probability, color=BLACK, lw=1.1, ls="--", label="exact")
        ax.step(NUMBERS, p, where="mid", color=BLUE, lw=1.6, label="classifier")
        ax.axvline(exact.limit + 0.5, color=GREY, lw=1.0, ls=":", label="best boundary")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False)
    panels[0].set(xlim=(-0.5, 69.5), ylim=(-0.03, 1.03))
    figure.supxlabel(BALL)
    figure.supylabel(P_BIN_1)
    return figure


def uncertainty(
    full: Mapping[str, Fitted], exact: data.Exact, figure: Figure | None = None
) -> Figure:
    """Draw a credible interval at every number, marked right or wrong.

    Left: probabilities, as in the paper. Right: their logits, where the ends can be seen.
    """
    figure = _new(figure, 13.0, 3.1 * len(full))
    panels = figure.subplots(len(full), 2, sharex=True, squeeze=False)
    where, truth = undecided(exact), exact.probability
    for (name, fitted), (left, right) in zip(full.items(), panels, strict=True):
        assert fitted.functions is not None  # as of every network
        low, high = intervals(fitted.functions, 0.95)
        holds = (low[where] <= truth[where]) & (truth[where] <= high[where])
        others = np.setdiff1d(NUMBERS, where)
        for ax, turn in ((left, _same), (right, logit)):
            for some, colour, mark, size, label in (
                (where[holds], BLUE, "o", 4.0, "95 % interval, right"),
                (where[~holds], VERMILLION, "X", 6.0, "95 % interval, wrong"),
                (others, GREY, "d", 4.5, "no truth, or one of 0 or 1"),
            ):
                middle = turn(np.median(fitted.functions, axis=0)[some])
                ends = [middle - turn(low[some]), turn(high[some]) - middle]
                ax.errorbar(
                    some, middle, ends, fmt=mark, color=colour, ms=size, lw=1.3, label=label
                )
            ax.plot(where, turn(truth[where]), color=BLACK, lw=1.2, label="exact", zorder=5)
        left.set(ylim=(-0.03, 1.03), ylabel=f"{name}\n{P_BIN_1}")
        right.set(ylabel="its logit")
    panels[-1, 0].set(xlim=(-1, 70), xlabel=BALL)
    panels[-1, 1].set(xlabel=BALL)
    legend_of_figure(figure, panels[0, 0], 4)
    return figure


def calibration(scores: Mapping[str, Scores]) -> Figure:
    """Draw how often bin 1 came against how often it was said to come, held out."""
    figure = Figure(figsize=(13.0, 8.4), layout="constrained")
    titles = [f"{name}: ECE {found.calibration_error:.3f}" for name, found in scores.items()]
    panels = _panels(figure, titles)
    for ax, (name, found) in zip(panels, scores.items(), strict=False):
        part = found.reliability
        bars = [part.seen - part.seen_low, part.seen_high - part.seen]
        ax.plot([0, 1], [0, 1], color=GREY, lw=1.0, ls="--")
        ax.errorbar(
            part.stated,
            part.seen,
            np.maximum(bars, 0.0),
            fmt="o",
            color=BLACK if name == RULE else BLUE,
            ms=4.5,
        )
    panels[0].set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    figure.supxlabel(P_BIN_1 + ", mean of a bin of probabilities")
    figure.supylabel("share of bin 1 among its balls")
    return figure


def confusion(scores: Mapping[str, Scores]) -> Figure:
    """Draw the confusion matrix of every classifier, held out, in per cent of each bin."""
    figure = Figure(figsize=(9.0, 8.4), layout="constrained")
    for ax, found in zip(_panels(figure, list(scores)), scores.values(), strict=False):
        third, first = found.wrong
        shares = 100 * np.array([[1 - first, first], [third, 1 - third]])
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=100)
        for (row, column), share in np.ndenumerate(shares):
            colour = "white" if share > 55 else BLACK
            ax.text(column, row, f"{share:.1f} %", ha="center", va="center", color=colour)
        ax.set(xticks=[0, 1], yticks=[0, 1], xticklabels=["bin 1", "bin 3"])
        ax.set_yticklabels(["bin 1", "bin 3"])
    figure.supxlabel("called")
    figure.supylabel("is")
    return figure


def buckets(draws: data.Draws, figure: Figure | None = None) -> Figure:
    """Draw how often each number came: at two unsorted positions, in six sorted buckets."""
    figure = _new(figure, 13.0, 5.6)
    panels = figure.subplots(2, 4, sharex=True, sharey=True).T.ravel()
    for ax, one in zip(panels, positions(draws), strict=True):
        number, seen = np.arange(1, len(one.mass)), np.bincount(one.seen, minlength=len(one.mass))
        ax.plot(number, seen[1:], ".", color=BLUE, ms=4.5, label="seen")
        ax.plot(number, len(one.seen) * one.mass[1:], color=BLACK, lw=1.2, label="by the rules")
        ax.set_title(one.name, fontsize="medium")
    panels[0].set(xlim=(0, 70))
    panels[0].set_ylim(bottom=0)
    figure.supxlabel("number")
    figure.supylabel(f"draws (of {len(draws.days)})")
    legend_of_figure(figure, panels[0], 2)
    return figure


def weights(full: Mapping[str, Fitted], setup: Setup, figure: Figure | None = None) -> Figure:
    """Draw the density of every weight by itself: one chain, all chains, VI, and the prior.

    Units can be exchanged, and the signs around one turned, without changing the function. So by
    the exact posterior the weights of a block are alike, which a chain in one mode, and VI, deny.
    """
    figure = _new(figure, 13.0, 8.4)
    shown = (  # how many chains are left out between two draws
        ("NUTS, prior 1", "one chain", setup.chains, 1),
        ("NUTS, prior 1", "all chains", 1, 1),
        ("VI, prior 1", "", 1, 1),
        ("NUTS, 1-5-5-1", "one chain", setup.chains, 2),
    )
    for ax, (name, which, every, layers) in zip(figure.subplots(4, 1), shown, strict=True):
        layout = network(setup, 1.0, layers).layout
        drawn = np.asarray(full[name].weights)[::every]
        parts = ax.violinplot(drawn, np.arange(drawn.shape[1]), showextrema=False, widths=0.9)
        for body in parts["bodies"]:
            body.set(facecolor=BLUE if name.startswith("VI") else VERMILLION, alpha=0.8)
        ax.plot(drawn.mean(axis=0), "_", color=BLACK, ms=6)
        ends = np.array([place.stop for place in layout.slices.values()]) - 0.5
        for line in ends[:-1]:
            ax.axvline(line, color=GREY, lw=0.8)
        middles = [(p.start + p.stop - 1) / 2 for p in layout.slices.values()]
        ax.set_xticks(middles, list(layout.slices))
        ax.axhspan(-1.96, 1.96, color=PALE, zorder=0)
        ax.set(xlim=(-0.6, drawn.shape[1] - 0.4), ylim=(-5, 5), ylabel=f"{name}\n{which}")
    figure.supylabel("value of the weight (95 % of the prior shaded)")
    return figure


def _panels(figure: Figure, names: Sequence[str]) -> list[Axes]:
    """Return the panels of a 3 x 3 grid with shared axes, titled; those without a name are empty.

    Panels above an empty one show their numbers.
    """
    panels = list(figure.subplots(3, 3, sharex=True, sharey=True).ravel())
    for ax, name in zip(panels, names, strict=False):
        ax.set_title(name, fontsize="medium")
    for ax in panels[len(names) :]:
        ax.set_axis_off()
    for ax in panels[len(names) - 3 : 6]:
        ax.tick_params(labelbottom=True)
    return panels


def _new(figure: Figure | None, width: float, height: float) -> Figure:
    """Return the empty figure that is given, or a new one."""
    return figure or Figure(figsize=(width, height), layout="constrained")


def _same(p: Array) -> Array:
    return p

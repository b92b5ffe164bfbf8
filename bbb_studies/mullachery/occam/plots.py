"""The picture of Occam's razor; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbb_numpy.plots.style import BLACK, BLUE, GREY, VERMILLION, legend_above

from .models import LABELS, POINTS, Labelled, changes
from .scores import Measured

__all__ = ["razor"]

STYLES = {
    "line": (BLUE, "-", "o"),
    "parabola": (VERMILLION, "-", "s"),
    "degree 7": (BLACK, "--", "^"),
    "network": (GREY, ":", "D"),
    "small network": (VERMILLION, "-", "s"),
    "large network": (BLACK, "--", "^"),
}
TITLES = {
    "line": "simple: straight line",
    "parabola": "in between: parabola",
    "degree 7": "complex: degree 7",
    "network": "network 1-20-20-1",
}


def razor(models: Mapping[str, Labelled], measured: Sequence[Measured]) -> Figure:
    """Draw (a) P(D|m) of all label vectors, (b) by complexity, (c) evidence of regressions."""
    figure = Figure(figsize=(13.0, 9.0), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.15, 1.0))  # type: ignore[misc]
    _all_data_sets(above.subplots(), models)
    left, right = below.subplots(1, 2, width_ratios=(1.0, 1.35))
    _by_complexity(left, models)
    _regressions(right, measured)
    return figure


def _all_data_sets(ax: Axes, models: Mapping[str, Labelled]) -> None:
    complexity = changes(LABELS)
    order = np.lexsort((-models["parabola"].probability, complexity))
    place = np.arange(len(order))
    for name, model in models.items():
        if name == "network":
            continue
        colour, style, _ = STYLES[name]
        ax.step(
            place, model.probability[order], where="mid", color=colour, linestyle=style, lw=1.6,
            label=TITLES[name],
        )  # fmt: skip
    starts = np.searchsorted(complexity[order], np.arange(POINTS)).tolist()
    _groups(ax, starts, len(order), [str(c) for c in range(POINTS)])
    ax.set_yscale("log")
    ax.set_xlim(-1, len(order))
    ax.set_ylabel("evidence P(D|m)")
    ax.set_xlabel(
        f"all {len(order)} label vectors of {POINTS} points, by the number of label changes "
        "(simple data left, complex data right)\n(a) Occam's razor: each curve sums to 1"
    )
    legend_above(ax, 3)


def _groups(ax: Axes, starts: Sequence[int], end: int, names: Sequence[str]) -> None:
    """Part the places 0 to `end` where groups start, and name each group at its middle."""
    for start in starts[1:]:
        ax.axvline(start - 0.5, color="#D0D0D0", lw=0.8, zorder=0)
    ends = [*starts[1:], end]
    ax.set_xticks([(a + b - 1) / 2 for a, b in zip(starts, ends, strict=True)], names)
    ax.tick_params(axis="x", length=0)


def _by_complexity(ax: Axes, models: Mapping[str, Labelled]) -> None:
    complexity, kinds = changes(LABELS), np.arange(POINTS)
    for name, model in models.items():
        colour, style, marker = STYLES[name]
        mass = [model.probability[complexity == c].sum() for c in kinds]
        ax.plot(
            kinds, mass, color=colour, linestyle=style, marker=marker, markersize=5.5, lw=1.6,
            label=TITLES[name],
        )  # fmt: skip
    ax.set_xlabel("label changes in the data set\n(b) where each model spends its probability")
    ax.set_ylabel("total probability of such data")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, loc="upper right")


def _regressions(ax: Axes, measured: Sequence[Measured]) -> None:
    names, lowest = list(measured[0].found), -5.0
    sources = [one.source for one in measured]
    for shift, name in zip((-0.18, 0.0, 0.18), names, strict=True):
        colour, _, marker = STYLES[name]
        best = [max(f.log_evidence for f in one.found.values()) for one in measured]
        values = [one.found[name].log_evidence - b for one, b in zip(measured, best, strict=True)]
        errors = [2.0 * one.found[name].error for one in measured]
        lowest = min(lowest, *values)
        ax.errorbar(
            np.arange(len(values)) + shift, values, errors, color=colour, marker=marker,
            markersize=7, linestyle="none", capsize=2, label=name,
        )  # fmt: skip
    ax.set_yscale("symlog", linthresh=5.0)
    ticks = [0, -2, -5, -10, -20, -50, -100, -200, -500, -1000]
    ax.set_yticks(ticks, [str(t).replace("-", "−") for t in ticks])
    ax.set_ylim(1.6 * lowest, 1.5)
    ax.axhline(0.0, color=GREY, lw=0.7, zorder=0)
    firsts = [sources.index(name) for name in names]
    _groups(ax, firsts, len(sources), [f"from the {name}" for name in names])
    ax.set_ylabel("log P(D|m) − that of the best\n(nats, ± 2 s.e.)")
    ax.set_xlabel("data sets\n(c) regressions: every model on data drawn from each")
    legend_above(ax, 3)

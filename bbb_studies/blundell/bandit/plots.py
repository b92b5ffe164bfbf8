"""The picture of the mushroom bandit; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish, plain_numbers

from .models import Game, Settings, regret

__all__ = ["draw"]

Array = NDArray[Any]
STYLES = (
    (BLUE, "-", "o"),
    (BLACK, "--", "s"),
    (VERMILLION, ":", "^"),
    (GREEN, "-.", "D"),
    (GREY, (0, (6, 2, 1, 2, 1, 2)), "v"),
)
POINTS = 1000  # of a curve; more are not seen


def draw(settings: Settings, games: Sequence[Game], ate: Mapping[str, Array]) -> Figure:
    """Draw regret over the whole game and its beginning, and both mistakes against time.

    Parameters
    ----------
    settings : Settings
    games : sequence of Game
        One for each run.
    ate : mapping of str to ndarray (runs, T)
        What each agent ate.
    """
    figure = Figure(figsize=(12.0, 9.0), layout="constrained")
    (a, b), (c, d) = figure.subplots(2, 2)
    total = settings.interactions
    early = min(max(settings.dense, 1), total)
    for (name, eaten), (colour, line, marker) in zip(ate.items(), STYLES, strict=False):
        costs = np.array(
            [np.cumsum(regret(the, one)) for the, one in zip(games, eaten, strict=True)]
        )
        for ax, end in ((a, total), (b, early)):
            at = np.unique(np.linspace(1, end, min(end, POINTS)).astype(int))
            for one in costs[:, at - 1]:
                ax.plot(at, one, color=colour, linewidth=0.7, alpha=0.45)
            ax.plot(
                at, costs[:, at - 1].mean(axis=0), color=colour, linestyle=line, linewidth=2.0,
                label=name,
            )  # fmt: skip
        _mistakes(c, games, eaten, True, name, (colour, line, marker))
        _mistakes(d, games, eaten, False, name, (colour, line, marker))
    a.set_yscale("log")
    a.set_ylim(bottom=max(1.0, a.get_ylim()[1] / 200.0))  # the first few mushrooms say little
    for axis in (a.yaxis, a.xaxis, b.xaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    a.set_xlim(0, total)
    b.set_xlim(0, early)
    b.set_ylim(bottom=0)
    part = "the beginning" if early < total else "the same"
    for ax, label, measured in (
        (a, "(a) mean over runs; thin lines: single runs", "cumulative regret (units of reward)"),
        (b, f"(b) {part}, on a linear scale", "cumulative regret (units of reward)"),
        (c, "(c) mistakes that cost 15 on average", "poisonous mushrooms eaten (%)"),
        (d, "(d) mistakes that cost 5", "edible mushrooms left (%)"),
    ):
        ax.grid(color="#DDDDDD", linewidth=0.6)
        finish(ax, f"mushrooms shown\n{label}", measured, 3)
    return figure


def _mistakes(
    ax: Axes,
    games: Sequence[Game],
    ate: Array,
    poisonous: bool,
    name: str,
    style: tuple[Any, Any, str],
) -> None:
    """Draw the share of one kind of mushrooms that were treated wrongly, in growing windows."""
    bad = np.array([the.poisonous for the in games])
    kind = bad if poisonous else ~bad
    wrong = kind & (ate if poisonous else ~ate)
    total = ate.shape[1]
    edges = np.unique(np.geomspace(min(50, total), total, 12).astype(int))
    edges = np.concatenate([[0], edges])
    shares, middles = [], []
    for begin, end in pairwise(edges.tolist()):
        seen = kind[:, begin:end].sum()
        shares.append(100.0 * wrong[:, begin:end].sum() / seen if seen else np.nan)
        middles.append(np.sqrt(max(begin, 10) * end) if begin else end / 2)
    colour, line, marker = style
    ax.plot(
        middles, shares, color=colour, linestyle=line, marker=marker, markersize=5, label=name,
        markerfacecolor="white",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(0, 100)
    plain_numbers(ax.yaxis)
    ax.set_yticks([0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

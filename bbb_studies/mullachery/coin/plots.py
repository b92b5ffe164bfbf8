"""The pictures of the coin; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.plots.style import BLACK, BLUE, GREY, SKY, VERMILLION, density_of_draws

from .scores import Cell

__all__ = ["one_head", "posteriors"]

Array = NDArray[Any]
R = "r, probability of a head"


def posteriors(cells: Mapping[str, Sequence[Cell]], truth: float) -> Figure:
    """Draw prior, likelihood, posterior and draws, a row for each prior."""
    stages = len(next(iter(cells.values())))
    figure = Figure(figsize=(3.4 * stages, 2.5 * len(cells) + 0.6), layout="constrained")
    panels = figure.subplots(len(cells), stages, sharex=True, squeeze=False)
    for row, (title, some) in zip(panels, cells.items(), strict=True):
        for ax, cell in zip(row, some, strict=True):
            density_of_draws(
                ax, cell.draws, np.linspace(0, 1, 61), fill=True, color=SKY, alpha=0.6,
                label="Metropolis-Hastings",
            )  # fmt: skip
            r = cell.r[::20]
            prior = np.exp(cell.prior.log_density(r))
            likelihood = cell.heads * np.log(r) + cell.tails * np.log1p(-r)
            likelihood = np.exp(likelihood - likelihood.max())
            likelihood /= likelihood.mean()
            name = "posterior, grid" if cell.exact is None else "posterior, closed form"
            ax.plot(r, cell.density[::20], color=BLUE, lw=2.2, label=name)
            ax.plot(r, prior, "--", color=VERMILLION, lw=1.5, label="prior")
            ax.plot(r, likelihood, ":", color=BLACK, lw=1.8, label="likelihood, scaled to area 1")
            ax.axvline(truth, color=GREY, lw=0.8, label="truth")
            ax.set_xlim(0, 1)
            ax.set_ylim(bottom=0)
            ax.set_title(
                f"{_count(cell.heads, 'head')}, {_count(cell.tails, 'tail')}", fontsize=9, pad=3
            )
        row[0].set_ylabel(f"density\n({title})", fontsize=9)
    for ax in panels[-1]:
        ax.set_xlabel(R)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    labels = [label.replace(", closed form", " (closed form or grid)") for label in labels]
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    return figure


def one_head(single: Cell, paths: Mapping[str, Array], truth: float) -> Figure:
    """Draw (a) p, 2p and the draws after one head (M18), (b) posterior means toss by toss."""
    figure = Figure(figsize=(11.5, 4.3), layout="constrained")
    a, b = figure.subplots(1, 2)
    density_of_draws(
        a, single.draws, np.linspace(0, 1, 41), fill=True, color=SKY,
        label="Metropolis-Hastings, given p alone",
    )  # fmt: skip
    a.plot([0, 1], [0, 1], "--", color=VERMILLION, lw=1.8, label="“p * 1”, area 1/2")
    a.plot([0, 1], [0, 2], color=BLUE, lw=1.8, label="2p, area 1")
    a.set_xlim(0, 1)
    a.set_ylim(0, 2.2)
    a.set_xlabel(f"{R}\n(a) after one head, uniform prior")
    a.set_ylabel("density")
    a.legend(loc="upper left", frameon=False)
    styles = ((BLUE, "-", "o"), (VERMILLION, "--", "s"), (BLACK, ":", "^"), (GREY, "-.", "D"))
    for (title, path), (colour, style, marker) in zip(paths.items(), styles, strict=True):
        tosses = np.arange(len(path))
        b.plot(
            tosses, path[:, 0], style, color=colour, marker=marker, markevery=(0, 20), lw=1.6,
            markersize=5, label=title,
        )  # fmt: skip
    flat = next(iter(paths.values()))
    b.fill_between(
        np.arange(len(flat)), flat[:, 0] - flat[:, 1], flat[:, 0] + flat[:, 1], color=SKY,
        alpha=0.5, lw=0, zorder=0, label="uniform prior, ± 1 deviation",
    )  # fmt: skip
    b.axhline(truth, color=GREY, lw=0.8)
    b.set_xlim(0, len(flat) - 1)
    b.set_ylim(0.2, 1.0)
    b.set_xlabel("tosses seen\n(b) posterior mean of r")
    b.set_ylabel(R)
    b.legend(loc="lower right", frameon=False, ncols=2)
    return figure


def _count(some: int, what: str) -> str:
    return f"{some} {what}{'s' if some != 1 else ''}"

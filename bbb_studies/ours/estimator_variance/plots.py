"""The picture of the noise of gradients; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    VERMILLION,
    finish,
    legend_of_figure,
    plain_numbers,
)

from .scores import Noise, Spot

__all__ = ["variances"]


def variances(
    found: Mapping[str, Mapping[str, Noise]],
    spots: Mapping[str, Sequence[Spot]],
    names: Sequence[str],
    figure: Figure | None = None,
) -> Figure:
    """Draw ratios of variances at every place, and the noise of IWAE and EUBO against samples."""
    figure = figure or Figure(figsize=(13.0, 7.6), layout="constrained")
    above, below = cast(Any, figure.subfigures(2, 1, height_ratios=(1.15, 1.0)))
    panels = above.subplots(1, len(found), sharey=True)
    for ax, letter, (place, rows) in zip(panels, "abcde", found.items(), strict=True):
        _ratios(ax, names, rows)
        ax.set_xlabel(f"relative variance\n({letter}) {place}")
    legend_of_figure(above, panels[0], 4)
    left, right = below.subplots(1, 2)
    counts = [spot.samples for spot in spots["IWAE"]]
    for ax, key, colour, marker, style, label in (
        (left, "IWAE", BLUE, "o", "-", "IWAE, reparameterised"),
        (left, "doubly", VERMILLION, "s", "--", "IWAE, doubly reparameterised"),
        (right, "EUBO", BLUE, "o", "-", "EUBO, standard deviation"),
    ):
        values = [s.deviation for s in spots[key]]
        ax.plot(counts, values, color=colour, marker=marker, linestyle=style, label=label)
    bias, errors = ([getattr(s, part) for s in spots["EUBO"]] for part in ("bias", "error"))
    right.errorbar(
        counts, bias, errors, color=VERMILLION, marker="s", linestyle="--", capsize=2,
        label="EUBO, bias ± its s.e.",
    )  # fmt: skip
    for ax, title, limits in (
        (left, "(f) IWAE", (1.0, 100.0)),
        (right, "(g) EUBO, score form", (1e-3, 10.0)),
    ):
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            plain_numbers(axis)
        ax.set_ylim(*limits)
        samples = f"weight samples per step\n{title}, linear regression beside the optimum"
        finish(ax, samples, "relative to |true gradient|", 2)
    return figure


def _ratios(ax: Axes, names: Sequence[str], rows: Mapping[str, Noise]) -> None:
    kinds = (
        ("location", "μ", BLUE, "o", BLUE, 0.2),
        ("scale", "ρ", VERMILLION, "s", "white", 0.0),
        ("cost", "both, × time", GREY, "D", GREY, -0.2),
    )
    values = [getattr(noise, kind[0]).mean for noise in rows.values() for kind in kinds]
    lowest = min(value for value in values if value > 1e-12)
    edge = 10.0 ** np.floor(np.log10(min(lowest, 0.1)) - 0.3)
    for kind, label, colour, marker, face, shift in kinds:
        for place, name in enumerate(reversed(names)):
            if name not in rows:
                continue
            value, error = getattr(rows[name], kind)
            own = label if place == 0 else None
            if value < 1e-12:
                ax.plot(edge, place + shift, "<", color=colour, clip_on=False)
                ax.text(edge * 1.4, place + shift, "0", color=colour, va="center", fontsize=8)
                continue
            ax.errorbar(
                value, place + shift, xerr=2.0 * error, color=colour, marker=marker, label=own,
                markerfacecolor=face, markersize=5, linestyle="none", capsize=2,
            )  # fmt: skip
    ax.axvline(1.0, color=BLACK, linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.set_xlim(left=edge)
    plain_numbers(ax.xaxis)
    ax.xaxis.set_major_locator(LogLocator(numticks=4))
    ax.set_yticks(range(len(names)), list(reversed(names)))
    for place in range(len(names)):
        ax.axhline(place + 0.5, color="#E0E0E0", linewidth=0.6)

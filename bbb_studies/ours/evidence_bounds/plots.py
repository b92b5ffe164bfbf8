"""The picture of the bounds around the evidence; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    legend_of_figure,
    plain_numbers,
)

from .scores import Case

__all__ = ["bounds"]

STYLES = {"IWAE": (BLUE, "o", "-"), "Renyi 1/2": (GREEN, "^", "--"), "EUBO": (VERMILLION, "s", ":")}
LABELS = {
    "IWAE": "importance-weighted bound",
    "Renyi 1/2": "Rényi bound, α = 1/2",
    "EUBO": "self-normalised EUBO",
}


def bounds(cases: Sequence[Case], counts: Sequence[int], figure: Figure | None = None) -> Figure:
    """Draw all bounds against the number of samples, one panel for each q."""
    figure = figure or Figure(figsize=(12.6, 4.2), layout="constrained")
    panels = figure.subplots(1, len(cases))
    for ax, letter, case in zip(panels, "abcd", cases, strict=True):
        _panel(ax, case, counts)
        ax.set_xlabel(f"samples k\n({letter}) q: {case.name}")
    panels[0].set_ylabel("bound − log evidence ± 2 s.e. (nats)")
    legend_of_figure(figure, panels[0], 6)
    return figure


def _panel(ax: Axes, case: Case, counts: Sequence[int]) -> None:
    ax.axhline(0.0, color=BLACK, linewidth=1.2, label="log evidence")
    ax.axhline(case.elbo, color=GREY, linewidth=1.4, linestyle=(0, (1, 1.5)), label="exact ELBO")
    ax.axhline(case.eubo, color=GREY, linewidth=1.4, linestyle=(0, (6, 2)), label="exact EUBO")
    for kind, (colour, marker, style) in STYLES.items():
        means = [b.mean for b in case.bounds[kind]]
        errors = [2.0 * b.error for b in case.bounds[kind]]
        ax.errorbar(
            counts, means, errors, color=colour, marker=marker, linestyle=style, markersize=4.5,
            linewidth=1.3, capsize=2, label=LABELS[kind],
        )  # fmt: skip
    ax.set_xscale("log")
    plain_numbers(ax.xaxis)
    reach = max(-case.elbo, case.eubo)
    if reach > 20.0:
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_yticks([-100, -10, -1, 0, 1, 10])
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    elif reach < 1e-6:
        largest = max(abs(b.mean) for kind in STYLES for b in case.bounds[kind])
        ax.set_ylim(-1.0, 1.0)
        ax.text(
            0.5, 0.56, f"all bounds equal:\nwithin {largest:.0e} nats",
            transform=ax.transAxes, ha="center",
        )  # fmt: skip

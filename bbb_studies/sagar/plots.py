"""The pictures of Sagar's algorithm; styles and colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish, plain_numbers

from .. import linear_gaussian as exactly
from ..linear_gaussian import Regression
from .models import VARIANTS, ByBatch, BySamples, Path

__all__ = ["samples", "trajectories"]

PURPLE = "#7A3F6B"
STYLES = {
    "corrected": (BLUE, "-", 2.2),
    "through": (VERMILLION, "--", 1.6),
    "equation 5": (GREEN, "-.", 1.6),
    "one": (GREY, "-", 0.9),
    "minibatch": (PURPLE, (0, (1, 1)), 1.8),
}
SHADES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"))


def trajectories(
    mean: Regression, paths: Mapping[str, Path], regression: Regression, corrected: Path
) -> Figure:
    """Draw mean and deviation of the Gaussian mean, and the regression's deviations, by step."""
    figure = Figure(figsize=(13.5, 4.6), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    best = exactly.inclusive_optimum(exactly.exact(mean))
    for name, path in paths.items():
        colour, style, width = STYLES[name]
        how: dict[str, Any] = {"color": colour, "ls": style, "lw": width}
        a.plot(path.steps, path.means[:, -1], label=VARIANTS[name].title, **how)
        b.plot(path.steps, path.deviations[:, -1], label=VARIANTS[name].title, **how)
    for ax, value in ((a, best.mean[-1]), (b, best.deviation[-1])):
        ax.axhline(value, color=BLACK, ls=":", lw=1.8, label="exact posterior")
    b.set_yscale("log")
    b.set_ylim(1e-5, 5.0)  # one curve leaves for 1e-22
    finish(a, "step\n(a) Gaussian mean: mean of q", "mean (units of y)", 2)
    finish(b, "step\n(b) Gaussian mean: deviation of q", "deviation (units of y)", 2)

    truth = exactly.exact(regression)
    inclusive, reverse = exactly.inclusive_optimum(truth), exactly.reverse_optimum(truth)
    for j, (colour, _) in enumerate(SHADES):
        c.plot(corrected.steps, corrected.deviations[:, j], color=colour, lw=1.8, label=_name(j))
        c.axhline(inclusive.deviation[j], color=colour, ls=":", lw=1.5)
        c.axhline(reverse.deviation[j], color=colour, ls="--", lw=0.9)
    c.plot([], [], ":", color=BLACK, lw=1.5, label="of the posterior")
    c.plot([], [], "--", color=BLACK, lw=0.9, label="of least free energy")
    c.set_ylim(bottom=0.0)
    finish(c, "step\n(c) regression, corrected: deviations of q", "deviation of a weight", 2)
    for ax in (a, b, c):
        ax.set_xlim(0, corrected.steps[-1])
    return figure


def samples(
    regression: Regression, by_samples: Sequence[BySamples], by_batch: Sequence[ByBatch]
) -> Figure:
    """Draw error, deviations and effective samples against M, and the bias against S."""
    figure = Figure(figsize=(13.5, 8.4), layout="constrained")
    (a, b), (c, d) = figure.subplots(2, 2)
    truth = exactly.exact(regression)
    inclusive, reverse = exactly.inclusive_optimum(truth), exactly.reverse_optimum(truth)
    m = np.array([row.samples for row in by_samples])
    for row in by_samples:
        a.plot([row.samples] * len(row.excess), row.excess, "o", color=GREY, ms=4, alpha=0.7)
    a.plot([], [], "o", color=GREY, ms=4, label="one run")
    a.plot(m, [np.median(row.excess) for row in by_samples], color=BLUE, lw=1.8, label="median")
    a.set_yscale("log")
    excess = "KL(posterior ‖ q) − least (nats)"
    finish(a, "samples per step M\n(a) error after training", excess, 2)
    ratios = np.array([row.ratios for row in by_samples])  # (M, P)
    for j, (colour, mark) in enumerate(SHADES):
        b.plot(m[m > 1], ratios[m > 1, j], marker=mark, ms=5, color=colour, lw=1.4, label=_name(j))
        b.axhline(reverse.deviation[j] / inclusive.deviation[j], color=colour, ls="--", lw=0.9)
    b.axhline(1.0, color=BLACK, ls=":", lw=1.6, label="of the posterior")
    b.plot([], [], "--", color=BLACK, lw=0.9, label="of least free energy")
    top = ratios[m > 1].max(initial=1.0)
    b.set_ylim(0.0, 1.15 * top)
    finish(b, "samples per step M\n(b) what is learned", "deviation / that of the posterior", 3)
    limit = float(np.exp(-exactly.renyi_divergence(2.0, truth.posterior, inclusive)))
    c.plot(m, [row.share for row in by_samples], "o-", color=BLUE, lw=1.6, label="measured")
    c.axhline(limit, color=BLACK, ls=":", lw=1.6, label="many samples, at the optimum")
    c.set_ylim(0.0, 1.05)
    finish(c, "samples per step M\n(c) effective samples", "effective samples / M", 2)
    s = [row.batch for row in by_batch]
    d.plot(s, [row.found for row in by_batch], "o", color=BLUE, ms=7, label="found")
    d.plot(s, [row.predicted for row in by_batch], "--", color=BLACK, lw=1.4, label="predicted")
    d.axhline(by_batch[-1].predicted, color=GREY, ls=":", lw=1.6, label="exact posterior")
    d.set_ylim(bottom=0.0)
    of_mean = "rows per minibatch S\n(d) Gaussian mean, N/S inside exp"
    finish(d, of_mean, "deviation of q (units of y)", 3)
    for ax, ticks in ((a, m), (b, m[m > 1]), (c, m), (d, np.array(s))):
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
        ax.xaxis.set_minor_locator(NullLocator())
        plain_numbers(ax.xaxis)
    return figure


def _name(j: int) -> str:
    return ("weight 1", "weight 2", "bias")[j]

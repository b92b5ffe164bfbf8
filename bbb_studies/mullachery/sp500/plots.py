"""The picture of the S&P 500 study; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.evaluation.calibration import clustered_mean, reliability
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish

from .models import NUTS_NAME, VI_NAME
from .scores import BASE, Scores, Walk, log_loss

__all__ = ["draw"]

STYLES = {
    "last value": (GREY, "D", ":"),
    "logistic regression": (GREEN, "^", "-."),
    VI_NAME: (VERMILLION, "s", "--"),
    NUTS_NAME: (BLUE, "o", "-"),
}


def draw(walk: Walk, scores: Mapping[str, Scores]) -> Figure:
    """Draw gains by year, gains added up over days, and the reliability of the network."""
    figure = Figure(figsize=(15.0, 4.8), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    shown = {name: style for name, style in STYLES.items() if name in scores}
    for place, (name, (colour, marker, style)) in enumerate(shown.items()):
        years = scores[name].years
        mean, error = 1e3 * np.array(list(years.values())).T
        at = np.array([int(year) for year in years]) + 0.12 * (place - 0.5 * (len(shown) - 1))
        a.errorbar(
            at, mean, yerr=1.96 * error, fmt=marker, color=colour, markersize=6, capsize=3,
            label=name,
        )  # fmt: skip
        days, order = np.unique(walk.made, return_inverse=True)
        gained = log_loss(walk.results[BASE].proba, walk.y)
        gained = gained - log_loss(walk.results[name].proba, walk.y)
        per_day = np.bincount(order, gained) / np.bincount(order)
        b.plot(days, per_day.cumsum(), linestyle=style, color=colour, linewidth=1.6, label=name)
        if name == NUTS_NAME:
            cone = 1.96 * per_day.std() * np.sqrt(np.arange(1, len(days) + 1))
            b.fill_between(
                days, -cone, cone, color=GREY, alpha=0.18, linewidth=0,
                label="95 % of chance, NUTS",
            )  # fmt: skip
    a.axhline(0.0, color=BLACK, linewidth=1.0)
    a.set_xticks(sorted({int(year) for year in walk.year}))
    b.axhline(0.0, color=BLACK, linewidth=1.0)
    lowest, highest = 1.0, 0.0
    for name in (VI_NAME, NUTS_NAME):
        colour, marker, style = STYLES[name]
        proba = walk.results[name].proba
        bins = reliability(proba, walk.y, 10, "equal mass")
        inside = np.clip(np.searchsorted(bins.low, proba, side="right") - 1, 0, len(bins.low) - 1)
        found = [
            clustered_mean(walk.y[inside == k], walk.made[inside == k])
            for k in range(len(bins.low))
        ]
        error = 1.96 * np.array([one[1] for one in found])
        c.errorbar(
            bins.stated, bins.seen, yerr=error, marker=marker, linestyle=style, color=colour,
            markersize=6, capsize=3, linewidth=1.2, label=name,
        )  # fmt: skip
        lowest = min(lowest, bins.stated[0], (bins.seen - error).min())
        highest = max(highest, bins.stated[-1], (bins.seen + error).max())
    c.plot(
        [lowest, highest], [lowest, highest], "--", color=BLACK, linewidth=1.0, label="calibrated"
    )
    c.axhline(walk.y.mean(), color=GREY, linestyle=":", linewidth=1.4, label="share of rises")
    clustered = "(95 %, clustered by day)"
    by_year = f"year forecast\n(a) against climatology {clustered}"
    finish(a, by_year, "log loss gained (1e-3 nats per forecast)", 2)
    added = "log loss gained, daily means added up (nats)"
    finish(b, "day of the forecast\n(b) the same, added up", added, 2)
    stated = "stated probability of a rise\n(c) reliability, ten bins of equal mass"
    finish(c, stated, f"share of rises {clustered}", 2)
    return figure

"""The picture of the S&P 500 study; colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.evaluation.calibration import clustered_mean, reliability
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, legend_above

from .models import NUTS_NAME, VI_NAME

__all__ = ["draw"]

STYLES = {
    "last value": (GREY, "D", ":"),
    "logistic regression": (GREEN, "^", "-."),
    VI_NAME: (VERMILLION, "s", "--"),
    NUTS_NAME: (BLUE, "o", "-"),
}


def draw(walk: Any, numbers: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw gains by year, gains added up over days, and the reliability of the network."""
    figure = Figure(figsize=(15.0, 4.8), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    shown = {name: style for name, style in STYLES.items() if name in numbers}
    for place, (name, (colour, marker, style)) in enumerate(shown.items()):
        years = numbers[name]["years"]
        mean, error = 1e3 * np.array(list(years.values())).T
        at = np.array([int(year) for year in years]) + 0.12 * (place - 0.5 * (len(shown) - 1))
        a.errorbar(
            at, mean, yerr=1.96 * error, fmt=marker, color=colour, markersize=6, capsize=3,
            label=name,
        )  # fmt: skip
        days, order = np.unique(walk.made, return_inverse=True)
        gained = _log_loss(walk.results["climatology"].proba, walk.y)
        gained = gained - _log_loss(walk.results[name].proba, walk.y)
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
    a.set_xlabel("year forecast\n(a) against climatology (95 % intervals, clustered by day)")
    a.set_ylabel("log loss gained (1e-3 nats per forecast)")
    b.axhline(0.0, color=BLACK, linewidth=1.0)
    b.set_xlabel("day of the forecast\n(b) the same, added up")
    b.set_ylabel("log loss gained, daily means added up (nats)")
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
    c.set_xlabel("stated probability of a rise\n(c) reliability, ten bins of equal mass")
    c.set_ylabel("share of rises (95 %, clustered by day)")
    for ax, columns in ((a, 2), (b, 2), (c, 2)):
        legend_above(ax, columns)
    return figure


def _log_loss(proba: Any, y: Any) -> Any:
    return -np.log(np.where(y == 1, proba, 1.0 - proba))

"""Figures of the chapter "Calibration"."""

from collections.abc import Callable
from math import pi
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.evaluation.calibration import pit
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    SKY,
    VERMILLION,
    legend_above,
    legend_of_figure,
)
from bbb_studies.data.powerball import exact
from bbb_studies.mullachery import sp500
from chapters.shared import SPRING, titled

# D35: shapes of the probability integral transform

FORECASTS = (
    ("right", 0.0, 1.0),
    ("too narrow", 0.0, 0.6),
    ("too wide", 0.0, 1.7),
    ("too low", -0.5, 1.0),
)


def shares(mean: float, deviation: float, y: Any) -> Any:
    """Return the PIT of targets y under N(mean, deviation^2), (N,)."""
    return pit(np.full((1, len(y), 1), mean), np.array(deviation), y[:, None])[:, 0]


def pit_shapes() -> Figure:
    """Draw the histogram of the PIT for four forecasts of standard normal targets."""
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    y = np.random.default_rng(0).standard_normal(2000)
    edges = np.linspace(0, 1, 11)
    inside = np.sqrt(len(y) * 0.1 * 0.9) * 1.96 / len(y) * 10  # of a bin, if uniform
    every = figure.subplots(1, len(FORECASTS), sharey=True)
    for ax, (name, mean, deviation) in zip(every, FORECASTS, strict=True):
        density, _ = np.histogram(shares(mean, deviation, y), edges, density=True)
        ax.stairs(density, edges, fill=True, color=SKY, ec=BLUE, label="histogram of 2000 rows")
        ax.axhspan(1 - inside, 1 + inside, color=VERMILLION, alpha=0.3, lw=0,
                   label="95 % of bins of a right forecast")  # fmt: skip
        ax.axhline(1, color=BLACK, lw=1, ls="--", label="uniform")
        ax.set_title(f"Forecast {name}", loc="left", fontsize="medium")
        ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        ax.set_xlabel("$u = G(y)$")
    every[0].set_ylabel("density")
    legend_of_figure(figure, every[0], 3)
    return figure


# D37: what can be known of a ball, and what four printed accuracies say

PRINTED = (0.8123, 0.8296, 0.8296, 0.8493)


def powerball() -> Figure:
    """Draw both bins of 59 balls with the ceiling, and how far luck carries the best classifier."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    urn = exact(59)
    numbers = np.arange(1, 60)
    bin_3, bin_1 = 100 * urn.mass[:, 1:]
    left_ax.fill_between(numbers, np.maximum(bin_1, bin_3), color=PALE, lw=0,
                      label=f"sum of the larger: {100 * urn.accuracy:.1f} %")  # fmt: skip
    left_ax.plot(numbers, bin_1, "o-", color=GREEN, ms=2.5, lw=1, label="bin 1")
    left_ax.plot(numbers, bin_3, "s--", color=ORANGE, ms=2.5, lw=1, label="bin 3")
    left_ax.axvline(urn.limit + 0.5, color=BLACK, lw=0.8, ls=":", label="boundary")
    left_ax.set(xlim=(0, 60), ylim=(0, None), ylabel="probability of the pair (%)")
    left_ax.set_xlabel("number of the ball")
    legend_above(left_ax, 2)
    titled(left_ax, "59 balls: which bin and which number")
    best = 100 * urn.accuracy
    for row, draws in enumerate((824, 300, 165)):
        deviation = 100 * urn.draw_deviation / draws**0.5
        right_ax.errorbar(best, row, xerr=2 * deviation, color=BLACK, fmt="o", capsize=4, ms=4,
                       label="best classifier, ±2 sd" if not row else None)  # fmt: skip
    for accuracy in sorted(set(PRINTED)):
        right_ax.axvline(100 * accuracy, color=VERMILLION, lw=1.2, ls="--",
                      label="printed" if accuracy == PRINTED[0] else None)  # fmt: skip
    right_ax.set(xlim=(79.5, 89.5), ylim=(-0.5, 2.5), yticks=[0, 1, 2])
    right_ax.set_yticklabels(["824", "300", "165"])
    right_ax.set_ylabel("draws held out")
    right_ax.set_xlabel("right answers (%)")
    legend_above(right_ax, 1)
    titled(right_ax, "What luck does to the best of all")
    return figure


# D34: what the CRPS measures, and that only the honest forecast minimises it

STRETCH = (2 * SPRING[0], (4 / SPRING[1] + 1) ** 0.5)  # of the next reading at 2 kg, cm


def stated(sigma: Any) -> tuple[Any, Any]:
    """Return E CRPS of N(m, sigma^2), and E|X - y| alone, where y is N(m, STRETCH[1]^2)."""
    distance = np.sqrt(2 / pi) * np.hypot(sigma, STRETCH[1])
    return distance - sigma / np.sqrt(pi), distance


def crps() -> Figure:
    """Draw G and the step of one target, and the expected score against the stated width."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    (mean, deviation), y = STRETCH, 12.0
    x = np.linspace(5, 16, 441)
    below = np.array([NormalDist(mean, deviation).cdf(height) for height in x])
    step = (x >= y).astype(float)
    left_ax.fill_between(x, (below - step) ** 2, color=SKY, label="squared difference")
    left_ax.plot(x, below, color=BLACK, label="$G$, the forecast")
    left_ax.plot(x, step, "--", color=VERMILLION, label="step at the target")
    left_ax.set(
        xlim=(5, 16), ylim=(0, 1.05), xlabel="stretch $x$ (cm)", ylabel="distribution function"
    )
    legend_above(left_ax, 3)
    titled(left_ax, "CRPS: the shaded area, in cm")
    sigma = np.linspace(0, 3, 151)
    score, distance = stated(sigma)
    right_ax.plot(sigma, score, color=BLACK, label="CRPS")
    right_ax.plot(sigma, distance, "--", color=GREY, label="$E|X - y|$ alone")
    right_ax.plot(deviation, stated(deviation)[0], "o", color=VERMILLION, label="honest")
    right_ax.set(xlim=(0, 3), ylim=(0, 2.8), ylabel="expected score (cm)")
    right_ax.set_xlabel("standard deviation that is stated (cm)")
    legend_above(right_ax, 3)
    titled(right_ax, "The honest forecast has the least")
    return figure


# D38: which rows train and which are tested, year by year


def walk() -> list[tuple[str, Any, Any]]:
    """Return each tested year, and the days on which targets of training and test are known."""
    dates = np.arange("2010-01-01", "2017-01-01", dtype="datetime64[D]")
    dates = dates[np.is_busday(dates)]
    close = np.exp(0.01 * np.random.default_rng(0).standard_normal((len(dates), 1)).cumsum(axis=0))
    table = sp500.tabulate(sp500.Prices(dates, ("one",), close))
    return [(split.name, table.target_date[split.train], table.target_date[split.test])
            for split in sp500.splits(table, 2013)]  # fmt: skip


def walk_forward() -> Figure:
    """Draw the walk forward: what trains, what is tested, a row for each fit."""
    figure = Figure(figsize=(4.8, 2.8), layout="constrained")
    ax = figure.subplots()
    for row, (_, train, test) in enumerate(walk()):
        for dates, style in (
            (train, {"color": SKY, "label": "train"}),
            (test, {"color": VERMILLION, "hatch": "//", "label": "test"}),
        ):
            first, last = (date.astype("datetime64[D]").astype(int) / 365.25 + 1970
                           for date in (dates.min(), dates.max()))  # fmt: skip
            style = style if row == 0 else {**style, "label": None}
            ax.barh(row, last - first, left=first, height=0.6, ec=BLACK, lw=0.6, **style)
    ax.set_yticks(range(4), [f"forecasts of {name}" for name, *_ in walk()])
    ax.invert_yaxis()
    ax.set_xlabel("year in which the target of a row becomes known")
    legend_above(ax, 2)
    titled(ax, "One fit a year, by what was known")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "pit": pit_shapes,
    "powerball": powerball,
    "crps": crps,
    "walk-forward": walk_forward,
}

"""Figures of the chapter "Shift and active learning"."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.evaluation.shift import effective_rows
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, VERMILLION, legend_above
from chapters.shared import titled

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

# D84: where to read the spring next, and what choosing is worth

FIRST_LOADS = np.array([-0.4, -0.2, 0.0, 0.3, 0.5])  # kg
NOISE = 0.3  # mm


def variance_of_mean(loads: Any, at: Any) -> Any:
    """Return the exact variance of a cubic, its coefficients N(0, 3^2), after readings (mm^2)."""
    features, rows = np.vander(loads, 4), np.vander(at, 4)
    covariance = np.linalg.inv(np.eye(4) / 9 + features.T @ features / NOISE**2)
    return ((rows @ covariance) * rows).sum(axis=1)


def gain(loads: Any, at: Any) -> Any:
    """Return the information that a reading at each load would give, in nats (D84)."""
    return np.log1p(variance_of_mean(loads, at) / NOISE**2) / 2


def chosen(n: int) -> Any:
    """Return the loads of the first readings and of n more, each the most informative one."""
    loads, pool = FIRST_LOADS, np.linspace(-3, 3, 61)
    for _ in range(n):
        loads = np.append(loads, pool[gain(loads, pool).argmax()])
    return loads


def next_measurement() -> Figure:
    """Draw the gain before and after the first choices, and the error against readings."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    at = np.linspace(-3, 3, 241)
    for n, style in (
        (0, {"color": BLACK, "label": "after 5 readings"}),
        (1, {"color": BLUE, "ls": "--", "label": "after 6"}),
        (4, {"color": VERMILLION, "ls": ":", "lw": 2, "label": "after 9"}),
    ):
        loads = chosen(n)
        left_ax.plot(at, gain(loads, at), **style)
    left_ax.plot(FIRST_LOADS, np.zeros(5), "|", color=BLACK, ms=12, label="the first 5")
    left_ax.plot(loads[5:], gain(loads, loads[5:]), "o", color=VERMILLION, ms=5, label="the next 4")
    left_ax.set(xlim=(-3.1, 3.1), ylim=(0, None), xlabel="load of the next reading (kg)")
    left_ax.set_ylabel("information (nats)")
    legend_above(left_ax, 3)
    titled(left_ax, "A cubic asks at the ends first")
    stored = json.loads((RESULTS / "next_measurement.json").read_text("utf-8"))
    for name, colour, marker in (
        ("linear", BLACK, "o"), ("hmc", BLUE, "s"), ("mean field", ORANGE, "^"),
    ):  # fmt: skip
        for rule, line in (("random", ":"), ("information", "-")):
            errors = stored[name][rule]["rmse"]
            label = name.replace("hmc", "HMC") if line == "-" else None
            right_ax.plot(range(5, 5 + len(errors)), errors, line, color=colour, marker=marker,
                          ms=3.5, label=label)  # fmt: skip
    right_ax.plot([], [], ":", color=GREY, label="at random")
    right_ax.set(yscale="log", xlim=(4.5, 15.5), xticks=[5, 10, 15], xlabel="readings")
    right_ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    right_ax.minorticks_off()
    right_ax.set_ylabel("error of the mean (mm)")
    legend_above(right_ax, 4)
    titled(right_ax, "Chosen by information, and at random")
    return figure


# D85: how many rows weights leave


def rows_left(delta: float, n_rows: int, seed: int = 0) -> float:
    """Return the effective rows of n rows N(0, 1) for the law N(delta, 1), mean of 200 sets."""
    x = np.random.default_rng(seed).standard_normal((200, n_rows))
    return float(np.mean([effective_rows(np.exp(delta * each)) for each in x]))


def shift() -> Figure:
    """Draw two laws with their ratio, and the rows that weights leave against the shift."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    x = np.linspace(-3.5, 5, 341)
    here, there = (np.exp(-((x - centre) ** 2) / 2) / np.sqrt(2 * np.pi) for centre in (0, 1.5))
    left_ax.fill_between(x, here, color=SKY, lw=0, label="$p$, rows")
    left_ax.plot(x, there, color=VERMILLION, label="$p'$, asked for")
    left_ax.plot(x, there / here / 20, "--", color=BLACK, label=r"$\omega/20$")
    left_ax.set(xlim=(-3.5, 5), ylim=(0, 0.7), xlabel="input (standard deviations of $p$)")
    left_ax.set_ylabel("density")
    legend_above(left_ax, 3)
    titled(left_ax, "The largest weights are where rows are few")
    delta = np.linspace(0, 3, 121)
    right_ax.plot(delta, 1000 * np.exp(-(delta**2)), color=BLACK, label=r"$1000\, e^{-\delta^2}$")
    places = np.linspace(0, 3, 13)
    right_ax.plot(places, [rows_left(d, 1000) for d in places], "o", color=GREEN, ms=5,
                  label="as computed from 1,000 rows")  # fmt: skip
    right_ax.set(xlim=(0, 3.05), yscale="log", ylim=(0.1, 1500))
    right_ax.set(xlabel=r"shift $\delta$ (standard deviations)", ylabel="effective rows")
    legend_above(right_ax, 2)
    titled(right_ax, "What 1,000 rows are worth")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {"next-measurement": next_measurement, "shift": shift}

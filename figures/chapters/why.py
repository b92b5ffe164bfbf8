"""Figures of the chapter "Why a distribution over weights"."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from bbb_numpy.plots.style import BLACK, BLUE, GREY, ORANGE, PALE, VERMILLION, legend_above
from bbb_studies.mullachery.coin import coin_log_density
from chapters.shared import gaussian, spring_after, titled


def spring() -> Figure:
    """Draw what is believed of the spring: the lines that remain, and the densities."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    load, w = np.linspace(0, 4, 51), np.linspace(3.3, 7.2, 301)
    for (mean, deviation), colour, hatch, label in (
        (spring_after(0), ORANGE, "//", "catalogue, ± 2 sd"),
        (spring_after(1), BLUE, "", "with the reading, ± 2 sd"),
    ):
        edges = [load * (mean + sign * 2 * deviation) for sign in (-1, 1)]
        style: dict[str, Any] = {"fc": "none" if hatch else colour, "ec": colour, "hatch": hatch}
        left_ax.fill_between(load, *edges, alpha=0.55, lw=0.8, label=label, **style)
    left_ax.plot(load, 5.5 * load, "--", color=BLACK, lw=1.2, label="least squares")
    left_ax.errorbar(2, 11, 2, color=BLACK, fmt="o", capsize=4, ms=5, label="reading, ± 2 cm")
    left_ax.set(xlim=(0, 4), ylim=(0, 26), xlabel="load $x$ (kg)", ylabel="stretch $y$ (cm)")
    right_ax.plot(w, gaussian(w, 5, 0.5), "--", color=ORANGE, lw=1.8, label="prior")
    right_ax.plot(w, gaussian(w, 5.5, 0.5), ":", color=GREY, lw=2, label="likelihood, area 1")
    mean, deviation = spring_after(1)
    right_ax.fill_between(w, gaussian(w, mean, deviation), color=PALE, lw=0)
    right_ax.plot(w, gaussian(w, mean, deviation), color=BLACK, label="posterior")
    right_ax.axvline(5.5, ymax=0.64, color=BLACK, ls="--", lw=1, label="least squares")
    right_ax.set(xlim=(3.3, 7.2), ylim=(0, 1.25), ylabel="density (kg per cm)")
    right_ax.set_xlabel("$w$ (cm per kg)")
    for ax, title in ((left_ax, "One load, one reading"), (right_ax, "Every stretch per kilogram")):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


TOSSES = ((0, 0), (1, 0), (7, 3), (63, 37))  # heads and tails


def coin() -> Figure:
    """Draw the density of the chance of heads after some tosses."""
    figure = Figure(figsize=(4.8, 3.8), layout="constrained")
    ax = figure.subplots()
    r = np.linspace(0, 1, 401)
    for (heads, tails), colour, dash in zip(
        TOSSES, (ORANGE, GREY, BLUE, BLACK), ("--", ":", "-.", "-"), strict=True
    ):
        with np.errstate(divide="ignore"):
            density = np.exp(coin_log_density(r, heads, tails))
        ax.plot(r, density, dash, color=colour, lw=1.8, label=f"{heads} heads, {tails} tails")
    ax.set(xlim=(0, 1), ylim=(0, 8.6), xlabel="chance of heads $r$", ylabel="density")
    legend_above(ax, 2)
    titled(ax, "A coin, after 0, 1, 10 and 100 tosses")
    return figure


def heads_in_two_units(heads: int = 3) -> tuple[Any, Any]:
    """Return the most probable chance of heads, as r itself and by way of its logit (W2)."""
    r = np.linspace(0, 1, 100_001)[1:-1]
    density = (heads + 1) * r**heads
    return r[np.argmax(density)], r[np.argmax(density * r * (1 - r))]  # dr / dz = r (1 - r)


def units() -> Figure:
    """Draw one belief in two variables, and the maximum of each density."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    r, z = np.linspace(0, 1, 201), np.linspace(-3, 7, 301)
    s = 1 / (1 + np.exp(-z))
    left_ax.plot(r, 4 * r**3, color=BLACK, label="posterior")
    right_ax.plot(z, 4 * s**4 * (1 - s), color=BLACK, label="the same posterior")
    ends = (left_ax, 1.0, 4.0, 0.8), (right_ax, np.log(4), 4 * 0.8**4 * 0.2, np.log(4))
    for ax, maximum, height, mean in ends:
        ax.plot(
            maximum, height, "o", color=VERMILLION, ms=8, clip_on=False, label="its maximum: MAP"
        )
        label = "mean of $r$: 0.8" if ax is left_ax else "the same place: $r = 0.8$"
        ax.axvline(mean, color=GREY, ls=":", lw=1.6, label=label)
    left_ax.set(xlim=(0, 1), ylim=(0, 4.3), xlabel="chance of heads $r$", ylabel="density of $r$")
    right_ax.set(xlim=(-3, 7), ylim=(0, 0.4), ylabel="density of $z$")
    right_ax.set_xlabel("logit $z = \\log r / (1 - r)$")
    for ax, title in (
        (left_ax, "Three heads: MAP says $r = 1$"),
        (right_ax, "... and here $r = 0.8$"),
    ):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


# D8, D28: what a mean field misses


def gaps(correlations: Any) -> Any:
    """Return the gap of D8, (sum log Lambda_jj - log det Lambda) / 2 in nats, for each r."""
    gaps_in_nats = []
    for r in correlations:
        precision = np.linalg.inv(np.array([[1, r], [r, 1]]))
        gaps_in_nats.append(
            (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1]) / 2
        )
    return np.array(gaps_in_nats)


def mean_field() -> Figure:
    """Draw posterior and both mean fields at r = 0.9, and the gap against r."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    r = 0.9
    for style, covariance in (
        ({"ec": BLACK, "fc": PALE, "lw": 1.4, "label": "posterior"}, [[1, r], [r, 1]]),
        (
            {"ec": BLUE, "fc": "none", "lw": 1.8, "ls": "--", "label": "least KL(q || posterior)"},
            np.eye(2) * (1 - r**2),
        ),
        (
            {
                "ec": VERMILLION,
                "fc": "none",
                "lw": 1.8,
                "ls": "-.",
                "label": "least KL(posterior || q)",
            },
            np.eye(2),
        ),
    ):
        values, vectors = np.linalg.eigh(np.array(covariance))
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        for size in (2, 1):  # standard deviations
            width, height = 2 * size * np.sqrt(values[::-1])
            ellipse = Ellipse((0, 0), width, height, angle=angle, **style)
            left_ax.add_patch(ellipse)
            style.pop("label", None)
    left_ax.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4), aspect="equal")
    left_ax.set_xlabel("first weight, in posterior standard deviations")
    left_ax.set_ylabel("second weight")
    legend_above(left_ax, 2)
    titled(left_ax, "Correlation 0.9: 1 and 2 standard deviations")
    fine = np.linspace(0, 0.995, 200)
    chosen = np.array([0, 0.3, 0.5, 0.7, 0.9, 0.99])
    right_ax.plot(
        fine,
        -np.log(1 - fine**2) / 2,
        color=BLACK,
        label="$-\\frac{1}{2} \\log(1 - \\mathrm{Cor}^2)$",
    )
    right_ax.plot(chosen, gaps(chosen), "o", color=BLUE, label="from the determinants of D8")
    right_ax.set(xlim=(-0.02, 1.02), ylim=(-0.05, 2.4))
    right_ax.set_xlabel("correlation $\\mathrm{Cor}$ of the two weights")
    right_ax.set_ylabel("gap to the log evidence (nats)")
    legend_above(right_ax, 2)
    titled(right_ax, "What the best mean field misses")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "spring": spring,
    "coin": coin,
    "units": units,
    "mean-field": mean_field,
}

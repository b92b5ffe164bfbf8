"""Figures of the chapter "Calibration after training"."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ndtr
from scipy.stats import beta

from bbb_numpy.evaluation.recalibration import conformal_quantile, fit_temperature, temper
from bbb_numpy.evaluation.reliability import reliability, top_label
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PALE,
    SKY,
    VERMILLION,
    legend_above,
)
from chapters.shared import titled

# D76: a classifier that states its log odds 2.5 times too large

TOO_LARGE = 2.5


def stated_classes(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return stated logits (N, 3), 2.5 times the true ones, and classes (N,) drawn from these."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n_rows, 3))
    noise = rng.gumbel(size=logits.shape)
    return TOO_LARGE * logits, (logits + noise).argmax(axis=1)


def loss(logits: Any, codes: Any, inverse_temperature: float) -> Any:
    """Return the mean negative log likelihood of classes at a temperature, nats a row (D76)."""
    p = temper(logits, 1 / inverse_temperature)
    return -np.log(p[np.arange(len(codes)), codes]).mean()


def temperature() -> Figure:
    """Draw the loss against 1 / T, and the reliability of new rows before and after."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    held_out = stated_classes(200, 0)
    best = fit_temperature(*held_out)
    inverse = np.linspace(0.05, 1.6, 63)
    left_ax.plot(inverse, [loss(*held_out, b) for b in inverse], color=BLACK, label="200 held out")
    left_ax.plot(1 / best, loss(*held_out, 1 / best), "o", color=VERMILLION,
                 label=f"least: $T$ = {best:.2f}")  # fmt: skip
    left_ax.plot(1, loss(*held_out, 1.0), "s", color=BLUE, label="as trained")
    left_ax.set(xlim=(0, 1.6), xlabel="$1/T$", ylabel="loss (nats a row)")
    legend_above(left_ax, 3)
    titled(left_ax, "A valley with one lowest point")
    logits, codes = stated_classes(20_000, 1)
    right_ax.plot([0.3, 1], [0.3, 1], color=GREY, lw=1, label="right")
    for t, style in (
        (1.0, {"color": BLUE, "marker": "s", "ls": "--", "label": "as trained"}),
        (best, {"color": VERMILLION, "marker": "o", "label": f"$T$ = {best:.2f}"}),
    ):
        table = reliability(*top_label(temper(logits, t), codes), bins=10, binning="equal mass")
        right_ax.plot(table.predicted, table.observed, ms=4, **style)
    right_ax.set(xlim=(0.3, 1), ylim=(0.3, 1), xlabel="probability of the named class")
    right_ax.set_ylabel("share that is right")
    legend_above(right_ax, 3)
    titled(right_ax, "20,000 new rows")
    return figure


# D77: the coverage of one held-out set, and that of one load

N_HELD_OUT = 99
LEVEL = 0.9
SLOPES_END = 2.0  # kg; rows lie within, and the mean goes on in straight lines beyond


def coverages(n_sets: int, seed: int = 0) -> Any:
    """Return the coverage (n_sets,) that intervals have after each of many held-out sets (D77)."""
    scores = np.random.default_rng(seed).random((N_HELD_OUT, n_sets))  # as ranked by their law
    return conformal_quantile(scores, LEVEL)


def noise_at(x: Any) -> Any:
    """Return the standard deviation of the spring's readings at a load, mm."""
    return 0.1 + 0.2 * np.abs(x)


def bias_at(x: Any) -> Any:
    """Return how far x^2 is above its mean prediction, a straight line beyond 2 kg, in mm."""
    return np.maximum(np.abs(x) - SLOPES_END, 0) ** 2


def half_width(score: str) -> float:
    """Return the bound of a score for very many held-out rows, loads even within 2 kg."""
    if score == "sd":
        return 1.6448536269514722
    x = np.linspace(-SLOPES_END, SLOPES_END, 4001)
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        enough = (2 * ndtr(middle / noise_at(x)) - 1).mean() >= LEVEL
        low, high = (low, middle) if enough else (middle, high)
    return high


def coverage_at(x: Any, score: str) -> Any:
    """Return the probability that a reading at load x is inside its interval."""
    width = half_width(score) * (noise_at(x) if score == "sd" else 1)
    bias, noise = bias_at(x), noise_at(x)
    return ndtr((width - bias) / noise) - ndtr((-width - bias) / noise)


def conformal() -> Figure:
    """Draw the coverage over held-out sets with its Beta law, and the coverage at each load."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    left_ax.hist(100 * coverages(10_000), np.arange(77.5, 101), density=True, color=SKY, ec=BLUE,
                 label="10,000 held-out sets")  # fmt: skip
    share = np.linspace(0.77, 1, 200)
    left_ax.plot(100 * share, beta(90, 10).pdf(share) / 100, color=BLACK, label="Beta(90, 10)")
    left_ax.axvline(90, color=VERMILLION, ls="--", label="mean, 90 %")
    left_ax.set(
        xlim=(78, 100), xlabel="coverage after one set of 99 rows (%)", ylabel="density (per %)"
    )
    legend_above(left_ax, 2)
    titled(left_ax, "90 %, on average over held-out sets")
    x = np.linspace(-3.5, 3.5, 281)
    right_ax.axvspan(-SLOPES_END, SLOPES_END, color=PALE, lw=0, label="loads of the rows")
    right_ax.axhline(90, color=GREY, lw=1)
    for score, style in (
        ("absolute", {"color": ORANGE, "ls": "--", "label": "equal widths"}),
        ("sd", {"color": BLUE, "label": "widths by the sd"}),
    ):
        right_ax.plot(x, 100 * coverage_at(x, score), **style)
    right_ax.set(xlim=(-3.5, 3.5), ylim=(0, 105), xlabel="load $x$ (kg)", ylabel="coverage (%)")
    legend_above(right_ax, 2)
    titled(right_ax, "and over loads")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {"temperature": temperature, "conformal": conformal}

"""What figures of several chapters compute and draw with."""

from collections.abc import Sequence
from functools import cache
from math import log, pi
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbb_numpy import plain
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.numeric.elementary import softplus_parts
from bbb_numpy.plots import fits
from bbb_numpy.plots.style import BLACK, SKY, legend_above
from bbb_numpy.sampling.mcmc.leapfrog import Phase, leapfrog
from bbb_numpy.sampling.mcmc.metrics import DiagonalMetric

SPRING = (5.25, 8.0)  # mean and precision of the posterior of the spring, see derivations.md


LOG_EVIDENCE = -0.5 * log(2 * pi * 2.0) - (11 - 10) ** 2 / (2 * 2.0)  # N(11; 10, 4 * 0.25 + 1)


def titled(ax: Axes, title: str, pad: float = 34) -> None:
    """Put a title above the axes and above the legend, which takes `pad` points there."""
    ax.set_title(title, loc="left", fontsize="medium", pad=pad)


# The example of plain.py, the same spring: what its stretch is beyond proportion

NET = (1, 20, 1)
NOISE = 0.3
RATE = 2e-3
LOAD, EXCESS = "load $x$ (kg)", "stretch beyond proportion, $y$ (mm)"


LINE = np.linspace(-6, 6, 121)[:, None]


def data() -> tuple[Any, Any, np.random.Generator]:
    """Return loads x (kg) and excess y (mm) of the spring, (100, 1), and the generator."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    return x, x**2 + NOISE * rng.standard_normal((100, 1)), rng


def thetas(epochs: Sequence[int], rho: float = -2) -> list[Any]:
    """Return theta after so many epochs, with `rho` at the start."""
    return list(_trained(tuple(epochs), rho))


@cache
def _trained(epochs: tuple[int, ...], rho: float) -> list[Any]:
    x, y, rng = data()
    thetas = []
    theta = plain.init(NET, rng, rho)
    epoch = 0
    for next_epoch in epochs:
        theta = plain.fit(NET, theta, x, y, 1.0, NOISE, RATE, next_epoch - epoch, 10, 1, rng)
        epoch = next_epoch
        thetas.append(theta)
    return thetas


def predicted(theta: Any, line: Any = LINE) -> Predictive:
    """Return mean and standard deviations (G, 1) at `line`, of a thousand weights."""
    rng = np.random.default_rng(1)
    mean, epistemic, _ = plain.predict(NET, theta, line, NOISE, 1000, rng)
    return Predictive(mean, epistemic, np.full_like(mean, NOISE))


def believed(ax: Axes, theta: Any, lowest: float = -2) -> None:
    """Draw the example's points and band, in the words of the opening chapter."""
    fits.fit(LINE, predicted(theta), data=data()[:2], truth=np.square, y_limits=(lowest, 22), ax=ax)
    names = {
        "predictive ± 2 sd": "measurements ± 2 sd",
        "epistemic ± 2 sd": "networks ± 2 sd",
        "predictive mean": "mean of networks",
    }
    for artist in (*ax.lines, *ax.collections):
        artist.set_label(names.get(str(artist.get_label()), artist.get_label()))
    ax.set(xlabel=LOAD, ylabel=EXCESS)
    legend_above(ax, 3, ("data", "truth", *reversed(names.values())))


# Why: the spring, before and after one reading, and what the coin says after some tosses


def gaussian(x: Any, mean: Any, deviation: Any) -> Any:
    """Return the density of N(mean, deviation^2) at x."""
    return np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


def spring_after(readings: float) -> tuple[float, float]:
    """Return mean and standard deviation of the spring's weight after readings of 11 cm (D8).

    Readings tempered by beta count as 1 / beta (D24).
    """
    precision = 4 + 4 * readings
    return (4 * 5 + 4 * readings * 5.5) / precision, precision**-0.5


def ellipse(covariance: Any, deviations: float) -> Any:
    """Return points (2, 200) of a Gaussian's contour around 0."""
    angle = np.linspace(0, 2 * pi, 200)
    return deviations * np.linalg.cholesky(covariance) @ [np.cos(angle), np.sin(angle)]


def complexity_and_misfit(mu: Any, sigma: Any) -> tuple[Any, Any]:
    """Return both parts of F in nats for q = N(mu, sigma^2), the spring's prior and reading."""
    complexity = np.log(0.5 / sigma) + (sigma**2 + (mu - 5) ** 2) / (2 * 0.5**2) - 0.5
    misfit = 0.5 * log(2 * pi) + ((11 - 2 * mu) ** 2 + (2 * sigma) ** 2) / 2
    return complexity, misfit


def slope(theta: Any) -> Any:
    """Return the gradient of `free_energy` for (mu, rho)."""
    mean, precision = SPRING
    parts = softplus_parts(theta[1:])
    sigma = parts.softplus[0]
    d_sigma = precision * sigma - 1 / sigma
    return np.array([precision * (theta[0] - mean), d_sigma * parts.sigmoid[0]])


# M9: a trajectory that turns back

DEVIATIONS = np.array([1.6, 1.0])


def target(position: Any) -> tuple[Any, Any]:
    """Return log density up to a constant and gradient of a Gaussian with `DEVIATIONS`."""
    scaled = position / DEVIATIONS
    return -0.5 * np.sum(scaled**2, axis=1), -scaled / DEVIATIONS


def trajectory(steps: int = 24, step_size: float = 0.25) -> tuple[Any, Any]:
    """Return positions (steps + 1, 2), and the slope of half the squared distance."""
    start, momentum = np.array([[-1.8, -0.4]]), np.array([[0.2, -1.3]])
    phase = Phase(start, momentum, *target(start))
    positions, slopes = [start[0]], [0.0]
    for _ in range(steps):
        phase = leapfrog(target, DiagonalMetric(np.ones(2)), phase, step_size)
        positions.append(phase.position[0])
        slopes.append(float(phase.momentum[0] @ (phase.position[0] - start[0])))
    return np.array(positions), np.array(slopes)


def beside_contours() -> tuple[Figure, Axes, Axes]:
    """Return a figure of two axes, with contours of `target` in the left one."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    x, y = np.meshgrid(np.linspace(-3.6, 3.6, 90), np.linspace(-2.4, 2.4, 90))
    density = target(np.column_stack([x.ravel(), y.ravel()]))[0].reshape(x.shape)
    left_ax.contour(x, y, density, levels=[-2, -0.5], colors=SKY, linewidths=1, linestyles="solid")
    return figure, left_ax, right_ax


def node(ax: Axes, at: tuple[float, float], text: str, shape: str = "o", size: float = 900) -> None:
    """Draw a node with its text: a circle, a diamond or a square."""
    ax.scatter(*at, s=size, marker=shape, facecolor="white", edgecolor=BLACK, zorder=2)
    ax.text(*at, text, ha="center", va="center", zorder=3)


def edge(
    ax: Axes,
    start: tuple[float, float],
    target: tuple[float, float],
    text: str = "",
    colour: str = BLACK,
    bend: float = 0.0,
    away: tuple[float, float] = (0, 0.1),
) -> None:
    """Draw an arrow between two nodes, with a text at its middle."""
    arrow = {"arrowstyle": "->", "color": colour, "shrinkA": 17, "shrinkB": 17,
           "connectionstyle": f"arc3,rad={bend}"}  # fmt: skip
    ax.annotate("", target, start, arrowprops=arrow)
    middle = [(a + b) / 2 + c for a, b, c in zip(start, target, away, strict=True)]
    ax.text(*middle, text, color=colour, ha="center", va="center", fontsize="small")


def blank(ax: Axes, title: str) -> None:
    """Take the frame away, and leave a title."""
    ax.set_axis_off()
    ax.set_title(title, loc="left", fontsize="medium")


# R3 to D23: six estimators of one gradient of the spring, and how far a single one strays

MEAN, WIDTH = SPRING[0], SPRING[1] ** -0.5  # of the spring's posterior


def log_weight(w: Any, mu: float, sigma: float) -> Any:
    """Return log P(w, D) - log q(w) of the spring, q = N(mu, sigma^2)."""
    gap = ((w - mu) / sigma) ** 2 - ((w - MEAN) / WIDTH) ** 2
    return LOG_EVIDENCE + log(sigma / WIDTH) + gap / 2

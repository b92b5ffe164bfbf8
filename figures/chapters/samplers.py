"""Figures of the chapter "Samplers"."""

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    PALE,
    SKY,
    VERMILLION,
    density_of_draws,
    legend_above,
)
from bbb_numpy.sampling.mcmc.leapfrog import Phase, leapfrog
from bbb_numpy.sampling.mcmc.metrics import DiagonalMetric
from chapters.shared import SPRING, target, titled, trajectory


def u_turn() -> Figure:
    """Draw a trajectory up to and after its U-turn, and the slope that tells."""
    positions, slopes = trajectory()
    turn = int(np.argmax(slopes[1:] < 0)) + 1
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    x, y = np.meshgrid(np.linspace(-3.6, 3.6, 90), np.linspace(-2.4, 2.4, 90))
    density = target(np.column_stack([x.ravel(), y.ravel()]))[0].reshape(x.shape)
    left.contour(x, y, density, levels=[-2, -0.5], colors=SKY, linewidths=1, linestyles="solid")
    on = {"color": VERMILLION, "marker": "o", "ms": 3.5, "lw": 1}
    back = {"color": GREY, "marker": "s", "ms": 3.5, "lw": 1, "ls": "--", "mfc": "none"}
    left.plot(*positions[:turn].T, **on, label="moves away from the start")
    left.plot(*positions[turn - 1 :].T, **back, label="comes back", markevery=slice(1, None))
    left.plot(*positions[0], "*", color=BLACK, ms=12, label="start")
    left.set(xlim=(-3.6, 3.6), ylim=(-2.4, 2.4), aspect="equal")
    left.set_xlabel("$\\theta_1$")
    left.set_ylabel("$\\theta_2$")
    legend_above(left, 2)
    titled(left, "Leapfrog steps on a Gaussian (1, 2 standard deviations)")
    steps = np.arange(len(slopes))
    right.axhline(0, color=GREY, lw=0.8)
    right.plot(steps[:turn], slopes[:turn], **on, label="positive: go on")
    right.plot(
        steps[turn - 1 :],
        slopes[turn - 1 :],
        **back,
        label="negative: stop",
        markevery=slice(1, None),
    )
    right.set_xlabel("leapfrog step")
    right.set_ylabel("$r \\cdot (\\theta' - \\theta)$")
    legend_above(right, 2)
    titled(right, "The slope of half the squared distance")
    return figure


# M10: every point of a trajectory grows it in one way, and all subtrees are looked at

DOUBLINGS = 3


def growth(start: int) -> list[tuple[str, int, int]]:
    """Return direction, first and last point after each doubling that leads from `start` to all."""
    steps = []
    for size in (2**j for j in range(DOUBLINGS)):
        behind = start // size % 2  # the start lies in the second half: its digit is 1
        first = start // (2 * size) * 2 * size
        steps.append(("backwards" if behind else "forwards", first, first + 2 * size - 1))
    return steps


def subtrees() -> list[tuple[int, int]]:
    """Return first and last point of every subtree of more than one point."""
    points = 2**DOUBLINGS
    sizes = (2**j for j in range(1, DOUBLINGS + 1))
    return [(first, first + size - 1) for size in sizes for first in range(0, points, size)]


def doublings() -> Figure:
    """Draw the growth from each of eight points, and who looks at which subtree from one."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    points = 2**DOUBLINGS
    for start in range(points):
        steps = growth(start)
        for (_, first, last), colour, width in reversed(
            list(zip(steps, (BLUE, SKY, PALE), (0.30, 0.50, 0.74), strict=True))
        ):
            size = last - first + 1
            left.barh(start, size - 0.3, width, first - 0.35, color=colour, ec=GREY, lw=0.5,
                      label=f"{int(np.log2(size))} doublings".replace("1 doublings", "1 doubling")
                      if not start else None)  # fmt: skip
        left.plot(start, start, "*", color=BLACK, mfc="white", ms=10,
                  label=None if start else "start")  # fmt: skip
        arrows = " ".join("←" if way == "backwards" else "→" for way, _, _ in steps)
        left.text(points - 0.2, start, arrows, va="center", fontsize="small")
    left.set(xlim=(-0.7, points + 1), ylim=(points - 0.4, -0.6), xticks=range(points))
    left.set(yticks=range(points), xlabel="points in order of time", ylabel="number of the start")
    legend_above(left, 4, ("start", "1 doubling", "2 doublings", "3 doublings"))
    titled(left, "One string of directions from each point")
    start = 5
    for first, last in subtrees():
        whole = first <= start <= last
        look = (
            {"color": VERMILLION, "label": "was the whole trajectory: rule (b)"}
            if whole
            else {"color": PALE, "hatch": "//", "label": "inside a new half: rule (a)"}
        )
        size = last - first + 1
        right.barh(np.log2(size), size - 0.3, 0.5, first - 0.35, ec=GREY, lw=0.8, **look)
    right.plot(range(points), [0] * points, "o", color=GREY, ms=5)
    right.plot(start, 0, "*", color=BLACK, ms=13)
    right.set(xlim=(-0.7, points - 0.3), ylim=(-0.5, 3.5), xticks=range(points))
    right.set(yticks=range(4), yticklabels=["1", "2", "4", "8"])
    right.set(xlabel="points in order of time", ylabel="size of the subtree")
    legend_above(right, 1)
    titled(right, "Who looks at which subtree, from 5")
    return figure


# Samplers: where the mass is, a ball that rolls, a motion of constant speed


def shell(size: int, radius: Any) -> Any:
    """Return the density of |w| for w ~ N(0, I) of `size` numbers: volume times density of w."""
    log_area = log(2) + size / 2 * log(pi) - lgamma(size / 2)
    log_density = -0.5 * radius**2 - size / 2 * log(2 * pi)
    return np.exp(log_area + (size - 1) * np.log(radius) + log_density)


def typical() -> Figure:
    """Draw density, volume and their product against the distance from the most probable point."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    radius, size = np.linspace(0.01, 12, 400), 61
    mass = shell(size, radius)
    left.plot(radius, np.exp(-0.5 * radius**2), ":", color=GREY, lw=1.8, label="density")
    left.plot(radius, (radius / radius[-1]) ** (size - 1), "--", color=BLUE, label="volume")
    left.plot(radius, mass / mass.max(), color=VERMILLION, label="product: mass")
    left.set(ylabel="each over its largest value", xlabel="distance $|w|$ from 0")
    titled(left, "61 weights, $N(0, 1)$ each")
    for one, style, colour in ((1, ":", GREY), (10, "--", BLUE), (61, "-", VERMILLION)):
        weights = np.random.default_rng(one).standard_normal((20_000, one))
        edges = np.linspace(0, 12, 61)
        density_of_draws(right, np.linalg.norm(weights, axis=1), edges, color=PALE, fill=True)
        right.plot(radius, shell(one, radius), style, color=colour,
                   label=f"{one} weight{'s' * (one > 1)}")  # fmt: skip
    right.set(ylabel="density of $|w|$", xlabel="distance $|w|$ from 0")
    for ax in (left, right):
        legend_above(ax, 3)
    titled(right, "20,000 draws each, and the law")
    return figure


def rolled(steps: int = 12, step_size: float = 0.5) -> Any:
    """Return (steps + 1, 3) weight, potential and kinetic energy of the spring's ball, in nats.

    The metric is the precision, so that a period takes 2 pi.
    """
    mean, precision = SPRING

    def spring(w: Any) -> tuple[Any, Any]:
        return -0.5 * precision * (w[:, 0] - mean) ** 2, -precision * (w - mean)

    metric = DiagonalMetric(np.array([1 / precision]))
    start, push = np.array([[4.7]]), np.array([[3.0]])
    phase, path = Phase(start, push, *spring(start)), []
    for _ in range(steps + 1):
        energies = -phase.log_density[0], metric.kinetic(phase.momentum)[0]
        path.append((phase.position[0, 0], *energies))
        phase = leapfrog(spring, metric, phase, step_size)
    return np.array(path)


def ball() -> Figure:
    """Draw the ball of the spring in its valley, and its energies."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    path, w = rolled(), np.linspace(4.2, 6.3, 200)
    left.plot(w, 0.5 * SPRING[1] * (w - SPRING[0]) ** 2, color=GREY, label="$-\\log P$")
    left.plot(path[:5, 0], path[:5, 1], "o", color=VERMILLION, label="the ball, steps 0 to 4")
    for step, (at, height) in enumerate(path[:5, :2]):
        left.annotate(f"{step}", (at, height), xytext=(0, 7), textcoords="offset points",
                      ha="center", fontsize="small")  # fmt: skip
    left.set(xlabel="stretch per load $w$ (cm per kg)", ylabel="potential energy (nats)")
    time = 0.5 * np.arange(len(path))
    potential, kinetic = path[:, 1:].T
    for values, style, colour, label in (
        (potential + kinetic, "-", BLACK, "$H$, their sum"),
        (potential, "o--", VERMILLION, "potential"),
        (kinetic, "s:", BLUE, "kinetic"),
    ):
        right.plot(time, values, style, color=colour, ms=4, label=label)
    right.set(xlabel="time (a period is $2 \\pi$)", ylabel="energy (nats)", ylim=(0, None))
    for ax, title in ((left, "The spring's posterior, upside down"), (right, "Energy is kept")):
        legend_above(ax, 3)
        titled(ax, title)
    return figure


# M12, D47: what the metric saves, and which length of a path forgets most

SCALES = np.array([3.0, 0.3])  # standard deviations of two weights


def quarter_turn(variance: Any, share: float = 1 / 6) -> Any:
    """Return places (steps + 1, 2) of a quarter period of the widest of `SCALES`.

    The inverse metric is `variance`, and the step a share of the largest stable one.
    """

    def density(w: Any) -> tuple[Any, Any]:
        return -0.5 * np.sum((w / SCALES) ** 2, axis=1), -w / SCALES**2

    metric, sizes = DiagonalMetric(variance), SCALES / np.sqrt(variance)
    start, push = np.array([[-2.4, -0.3]]), np.array([[1.5, 1.0]]) / np.sqrt(variance)
    step_size, length = share * 2 * sizes.min(), pi / 2 * sizes.max()
    phase, path = Phase(start, push, *density(start)), [start[0]]
    for _ in range(round(length / step_size)):
        phase = leapfrog(density, metric, phase, step_size)
        path.append(phase.position[0])
    return np.array(path)


def metrics() -> Figure:
    """Draw a quarter turn with M = I, and with the covariance for its inverse."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    angle = np.linspace(0, 2 * pi, 200)
    for ax, (variance, name) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True),
        ((np.ones(2), "$M = I$"), (SCALES**2, "$M^{-1} = \\Sigma$")),
        strict=True,
    ):
        path = quarter_turn(variance)
        for size in (1, 2):
            ax.plot(*(size * SCALES[:, None] * [np.cos(angle), np.sin(angle)]), color=SKY, lw=1)
        ax.plot(*path.T, "o-", color=VERMILLION, ms=3.5, lw=0.9)
        ax.plot(*path[0], "*", color=BLACK, ms=12)
        ax.set(xlabel="wide weight", ylim=(-1, 1))
        ax.set_title(f"{name}: {len(path) - 1} steps", loc="left", fontsize="medium")
    figure.axes[0].set_ylabel("narrow weight")
    return figure


def forgotten(length: Any) -> Any:
    """Return ChEES of N(0, 1) for paths of the length h T, h uniform (D47)."""
    return 0.5 - np.sin(2 * length) / (4 * length)


def lengths() -> Figure:
    """Draw the squared jump and ChEES of N(0, 1) against the length of the path."""
    figure, length = Figure(figsize=(6.4, 3.6), layout="constrained"), np.linspace(0.01, 8, 400)
    ax = figure.subplots()
    ax.plot(length, (1 - np.cos(length)) / 2, ":", color=GREY, lw=1.8, label="squared jump / 4")
    ax.plot(length, np.sin(length) ** 2, "--", color=BLUE, label="ChEES, every path $T$")
    ax.plot(length, forgotten(length), color=VERMILLION, label="ChEES, paths $hT$")
    ax.plot(2.247, forgotten(2.247), "o", color=VERMILLION)
    ax.set_xticks([0, pi / 2, pi, 3 * pi / 2, 2 * pi], ["0", "π/2", "π", "3π/2", "2π"])
    ax.set(xlabel="length $T$ of the path (a period is $2 \\pi$)", ylabel="expected change")
    legend_above(ax, 3)
    titled(ax, "$N(0, 1)$: what a path forgets")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "u-turn": u_turn,
    "doublings": doublings,
    "typical-set": typical,
    "ball": ball,
    "metrics": metrics,
    "path-lengths": lengths,
}

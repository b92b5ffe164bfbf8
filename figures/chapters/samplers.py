"""Figures of the chapter "Samplers"."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PALE,
    SKY,
    VERMILLION,
    density_of_draws,
    legend_above,
)
from bbb_numpy.sampling.mcmc import GaussianWalk, Langevin, MetropolisHastings
from bbb_numpy.sampling.mcmc.adaptation import DualAveraging
from bbb_numpy.sampling.mcmc.leapfrog import Phase, hamiltonian, leapfrog
from bbb_numpy.sampling.mcmc.metrics import DiagonalMetric
from bbb_numpy.sampling.mcmc.states import State, evaluate
from chapters.shared import MEAN, SPRING, WIDTH, beside_contours, gaussian, titled, trajectory


def u_turn() -> Figure:
    """Draw a trajectory up to and after its U-turn, and the slope that tells."""
    positions, slopes = trajectory()
    turn_step = int(np.argmax(slopes[1:] < 0)) + 1
    figure, left_ax, right_ax = beside_contours()
    outward_style = {"color": VERMILLION, "marker": "o", "ms": 3.5, "lw": 1}
    return_style = {"color": GREY, "marker": "s", "ms": 3.5, "lw": 1, "ls": "--", "mfc": "none"}
    left_ax.plot(*positions[:turn_step].T, **outward_style, label="moves away from the start")
    left_ax.plot(
        *positions[turn_step - 1 :].T, **return_style, label="comes back", markevery=slice(1, None)
    )
    left_ax.plot(*positions[0], "*", color=BLACK, ms=12, label="start")
    left_ax.set(xlim=(-3.6, 3.6), ylim=(-2.4, 2.4), aspect="equal")
    left_ax.set_xlabel("$\\theta_1$")
    left_ax.set_ylabel("$\\theta_2$")
    legend_above(left_ax, 2)
    titled(left_ax, "Leapfrog steps on a Gaussian (1, 2 standard deviations)")
    steps = np.arange(len(slopes))
    right_ax.axhline(0, color=GREY, lw=0.8)
    right_ax.plot(steps[:turn_step], slopes[:turn_step], **outward_style, label="positive: go on")
    right_ax.plot(
        steps[turn_step - 1 :],
        slopes[turn_step - 1 :],
        **return_style,
        label="negative: stop",
        markevery=slice(1, None),
    )
    right_ax.set_xlabel("leapfrog step")
    right_ax.set_ylabel("$r \\cdot (\\theta' - \\theta)$")
    legend_above(right_ax, 2)
    titled(right_ax, "The slope of half the squared distance")
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
    left_ax, right_ax = figure.subplots(1, 2, width_ratios=(1.25, 1))
    points = 2**DOUBLINGS
    for start in range(points):
        steps = growth(start)
        for (_, first, last), colour, width in reversed(
            list(zip(steps, (BLUE, SKY, PALE), (0.30, 0.50, 0.74), strict=True))
        ):
            size = last - first + 1
            left_ax.barh(start, size - 0.3, width, first - 0.35, color=colour, ec=GREY, lw=0.5,
                      label=f"{int(np.log2(size))} doublings".replace("1 doublings", "1 doubling")
                      if not start else None)  # fmt: skip
        left_ax.plot(start, start, "*", color=BLACK, mfc="white", ms=10,
                  label=None if start else "start")  # fmt: skip
        arrows = " ".join("←" if direction == "backwards" else "→" for direction, _, _ in steps)
        left_ax.text(points - 0.2, start, arrows, va="center", fontsize="small")
    left_ax.set(xlim=(-0.7, points + 1), ylim=(points - 0.4, -0.6), xticks=range(points))
    left_ax.set(
        yticks=range(points), xlabel="points in order of time", ylabel="number of the start"
    )
    legend_above(left_ax, 4, ("start", "1 doubling", "2 doublings", "3 doublings"))
    titled(left_ax, "One string of directions from each point")
    start = 5
    for first, last in subtrees():
        holds_start = first <= start <= last
        style = (
            {"color": VERMILLION, "label": "was the whole trajectory: rule (b)"}
            if holds_start
            else {"color": PALE, "hatch": "//", "label": "inside a new half: rule (a)"}
        )
        size = last - first + 1
        right_ax.barh(np.log2(size), size - 0.3, 0.5, first - 0.35, ec=GREY, lw=0.8, **style)
    right_ax.plot(range(points), [0] * points, "o", color=GREY, ms=5)
    right_ax.plot(start, 0, "*", color=BLACK, ms=13)
    right_ax.set(xlim=(-0.7, points - 0.3), ylim=(-0.5, 3.5), xticks=range(points))
    right_ax.set(yticks=range(4), yticklabels=["1", "2", "4", "8"])
    right_ax.set(xlabel="points in order of time", ylabel="size of the subtree")
    legend_above(right_ax, 1)
    titled(right_ax, "Who looks at which subtree, from 5")
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
    left_ax, right_ax = figure.subplots(1, 2)
    radius = np.linspace(0.01, 12, 400)
    size = 61
    mass = shell(size, radius)
    left_ax.plot(radius, np.exp(-0.5 * radius**2), ":", color=GREY, lw=1.8, label="density")
    left_ax.plot(radius, (radius / radius[-1]) ** (size - 1), "--", color=BLUE, label="volume")
    left_ax.plot(radius, mass / mass.max(), color=VERMILLION, label="product: mass")
    left_ax.set(ylabel="each over its largest value", xlabel="distance $|w|$ from 0")
    titled(left_ax, "61 weights, $N(0, 1)$ each")
    for dimension, style, colour in ((1, ":", GREY), (10, "--", BLUE), (61, "-", VERMILLION)):
        weights = np.random.default_rng(dimension).standard_normal((20_000, dimension))
        edges = np.linspace(0, 12, 61)
        density_of_draws(right_ax, np.linalg.norm(weights, axis=1), edges, color=PALE, fill=True)
        right_ax.plot(radius, shell(dimension, radius), style, color=colour,
                   label=f"{dimension} weight{'s' * (dimension > 1)}")  # fmt: skip
    right_ax.set(ylabel="density of $|w|$", xlabel="distance $|w|$ from 0")
    for ax in (left_ax, right_ax):
        legend_above(ax, 3)
    titled(right_ax, "20,000 draws each, and the law")
    return figure


def rolled(steps: int = 12, step_size: float = 0.5) -> Any:
    """Return (steps + 1, 3) weight, potential and kinetic energy of the spring's ball, in nats.

    The metric is the precision, so that a period takes 2 pi.
    """
    metric = DiagonalMetric(np.array([1 / SPRING[1]]))
    start, push = np.array([[4.7]]), np.array([[3.0]])
    phase = Phase(start, push, *spring_density(start))
    path = []
    for _ in range(steps + 1):
        energies = -phase.log_density[0], metric.kinetic(phase.momentum)[0]
        path.append((phase.position[0, 0], *energies))
        phase = leapfrog(spring_density, metric, phase, step_size)
    return np.array(path)


def ball() -> Figure:
    """Draw the ball of the spring in its valley, and its energies."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    path = rolled()
    w = np.linspace(4.2, 6.3, 200)
    left_ax.plot(w, 0.5 * SPRING[1] * (w - SPRING[0]) ** 2, color=GREY, label="$-\\log P$")
    left_ax.plot(path[:5, 0], path[:5, 1], "o", color=VERMILLION, label="the ball, steps 0 to 4")
    for step, (at, height) in enumerate(path[:5, :2]):
        left_ax.annotate(f"{step}", (at, height), xytext=(0, 7), textcoords="offset points",
                      ha="center", fontsize="small")  # fmt: skip
    left_ax.set(xlabel="stretch per load $w$ (cm per kg)", ylabel="potential energy (nats)")
    time = 0.5 * np.arange(len(path))
    potential, kinetic = path[:, 1:].T
    for values, style, colour, label in (
        (potential + kinetic, "-", BLACK, "$H$, their sum"),
        (potential, "o--", VERMILLION, "potential"),
        (kinetic, "s:", BLUE, "kinetic"),
    ):
        right_ax.plot(time, values, style, color=colour, ms=4, label=label)
    right_ax.set(xlabel="time (a period is $2 \\pi$)", ylabel="energy (nats)", ylim=(0, None))
    for ax, title in (
        (left_ax, "The spring's posterior, upside down"),
        (right_ax, "Energy is kept"),
    ):
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

    metric = DiagonalMetric(variance)
    sizes = SCALES / np.sqrt(variance)
    start = np.array([[-2.4, -0.3]])
    push = np.array([[1.5, 1.0]]) / np.sqrt(variance)
    step_size, length = share * 2 * sizes.min(), pi / 2 * sizes.max()
    phase = Phase(start, push, *density(start))
    path = [start[0]]
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
    figure = Figure(figsize=(4.8, 3.6), layout="constrained")
    length = np.linspace(0.01, 8, 400)
    ax = figure.subplots()
    ax.plot(length, (1 - np.cos(length)) / 2, ":", color=GREY, lw=1.8, label="squared jump / 4")
    ax.plot(length, np.sin(length) ** 2, "--", color=BLUE, label="ChEES, every path $T$")
    ax.plot(length, forgotten(length), color=VERMILLION, label="ChEES, paths $\\xi T$")
    ax.plot(2.247, forgotten(2.247), "o", color=VERMILLION)
    ax.set_xticks([0, pi / 2, pi, 3 * pi / 2, 2 * pi], ["0", "π/2", "π", "3π/2", "2π"])
    ax.set(xlabel="length $T$ of the path (a period is $2 \\pi$)", ylabel="expected change")
    legend_above(ax, 3)
    titled(ax, "$N(0, 1)$: what a path forgets")
    return figure


# M5, M6, M8, M11: the spring under Metropolis' rule, a leapfrog and a warm-up


def spring_density(w: Any) -> tuple[Any, Any]:
    """Return log density up to a constant and gradient of the spring's posterior at w (S, 1)."""
    mean, precision = SPRING
    return -0.5 * precision * (w[:, 0] - mean) ** 2, -precision * (w - mean)


WALK, FROM = 0.6, 5.8  # cm per kg


def flows(to: Any) -> tuple[Any, Any]:
    """Return P(x) q(x'|x) from x = `FROM` to x' = `to`, and P(x') q(x|x'), for a walk."""
    proposed = gaussian(to, FROM, WALK)
    return gaussian(FROM, MEAN, WIDTH) * proposed, gaussian(to, MEAN, WIDTH) * proposed


@dataclass(frozen=True)
class OneSide:
    """Propose as a walk, folded to one side of the middle: symmetric, and reducible."""

    def propose(self, target: Any, rng: np.random.Generator, state: State) -> tuple[State, Any]:
        """Return candidates, and log q(old|new) - log q(new|old) = 0."""
        to = state.position + WALK * rng.standard_normal(state.position.shape)
        to = MEAN + abs(to - MEAN)
        return State(to, *evaluate(target, to)), np.zeros(len(to))


@dataclass(frozen=True)
class Mirror:
    """Propose the mirror image, equally probable: symmetric, and periodic."""

    def propose(self, target: Any, rng: np.random.Generator, state: State) -> tuple[State, Any]:
        """Return candidates, and log q(old|new) - log q(new|old) = 0."""
        to = 2 * MEAN - state.position
        return State(to, *evaluate(target, to)), np.zeros(len(to))


def means(proposal: Any, steps: int = 16, chains: int = 4000) -> Any:
    """Return the mean (steps + 1,) over chains that all start at `FROM`."""
    kernel = MetropolisHastings(proposal)
    rng = np.random.default_rng(0)
    state = kernel.init(spring_density, np.full((chains, 1), FROM))
    means_of_steps = [FROM]
    for _ in range(steps):
        state, _ = kernel.step(spring_density, rng, state)
        means_of_steps.append(state.position.mean())
    return np.array(means_of_steps)


def flowing() -> Figure:
    """Draw the flows between one weight and all others, and the means of three balanced chains."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    to = np.linspace(4.0, 7.4, 300)
    ahead, backward = flows(to)
    left_ax.fill_between(to, np.minimum(ahead, backward), color=SKY, lw=0, label="after acceptance")
    left_ax.plot(to, ahead, "--", color=BLUE, label="proposed from $x$ to $x'$")
    left_ax.plot(to, backward, ":", color=VERMILLION, lw=2, label="proposed from $x'$ to $x$")
    left_ax.plot(FROM, 0, "*", color=BLACK, ms=12, clip_on=False, label="$x$")
    left_ax.set(xlim=(4.0, 7.4), ylim=(0, None), ylabel="flow (kg² per cm²)")
    left_ax.set_xlabel("the other weight $x'$ (cm per kg)")
    legend_above(left_ax, 2)
    titled(left_ax, "Flows between $x = 5.8$ and other weights")
    for proposal, style, label in (
        (GaussianWalk(WALK), {"ls": "-", "color": BLACK}, "walk"),
        (OneSide(), {"ls": "--", "color": BLUE}, "one half only"),
        (Mirror(), {"ls": ":", "color": VERMILLION, "marker": "o", "ms": 3}, "mirror images"),
    ):
        right_ax.plot(means(proposal), **style, label=label)
    right_ax.axhline(MEAN, color=GREY, lw=0.8)
    right_ax.set(xlabel="step", xticks=(0, 5, 10, 15), ylabel="mean of 4,000 chains (cm per kg)")
    legend_above(right_ax, 3)
    titled(right_ax, "Three balanced kernels; one arrives")
    return figure


def proposals(count: int = 150) -> tuple[Any, Any, Any]:
    """Return places (count,) proposed from 4.8, their heights u P(x), and which are accepted."""
    kernel = MetropolisHastings(GaussianWalk(WALK))
    at = np.full((count, 1), 4.8)
    rng = np.random.default_rng(4)
    to = at + WALK * rng.standard_normal(at.shape)
    heights = np.exp(-rng.standard_exponential(count)) * gaussian(4.8, MEAN, WIDTH)
    moved, info = kernel.step(
        spring_density, np.random.default_rng(4), kernel.init(spring_density, at)
    )
    assert np.array_equal(np.where(info.accepted[:, None], to, at), moved.position)
    return to[:, 0], heights, info.accepted


def chain(steps: int = 60) -> tuple[Any, Any]:
    """Return the places (steps + 1,) of one chain from 3.5, and which steps moved it."""
    kernel = MetropolisHastings(GaussianWalk(WALK))
    rng = np.random.default_rng(0)
    state = kernel.init(spring_density, np.array([[3.5]]))
    positions, moved = [3.5], []
    for _ in range(steps):
        state, info = kernel.step(spring_density, rng, state)
        positions.append(state.position.item())
        moved.append(info.accepted.item())
    return np.array(positions), np.array(moved)


def accepting() -> Figure:
    """Draw proposals under and above the density, and one chain that moves and stays."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w = np.linspace(3.0, 6.8, 200)
    to, heights, accepted = proposals()
    left_ax.plot(w, gaussian(w, MEAN, WIDTH), color=BLACK, label="posterior")
    left_ax.plot(to[accepted], heights[accepted], "o", color=BLUE, ms=3, label="accepted")
    left_ax.plot(to[~accepted], heights[~accepted], "x", color=VERMILLION, ms=4, label="rejected")
    left_ax.plot(4.8, gaussian(4.8, MEAN, WIDTH), "*", color=BLACK, ms=12, label="$x$")
    left_ax.set(xlim=(3.0, 6.8), ylim=(0, 1.2), xlabel="weight (cm per kg)")
    left_ax.set_ylabel("density (kg per cm)")
    legend_above(left_ax, 4)
    titled(left_ax, "150 proposals from $x$, at heights $U P(x)$")
    positions, moved = chain()
    steps = np.arange(len(positions))
    right_ax.plot(steps, positions, color=GREY, lw=0.8, drawstyle="steps-post")
    right_ax.plot(steps[1:][moved], positions[1:][moved], "o", color=BLUE, ms=3.5, label="moves")
    right_ax.plot(
        steps[1:][~moved], positions[1:][~moved], "x", color=VERMILLION, ms=4.5, label="stays"
    )
    right_ax.axhspan(
        MEAN - WIDTH, MEAN + WIDTH, color=PALE, lw=0, label="posterior, ± 1 standard deviation"
    )
    right_ax.set(xlabel="step", ylabel="weight (cm per kg)")
    legend_above(right_ax, 2, ("moves", "stays"))
    titled(right_ax, "One chain from 3.5")
    return figure


def rolling(step_size: float, time: float, method: str = "leapfrog", starts: Any = None) -> Any:
    """Return weights and momenta (steps + 1, S, 2) of the spring's ball after each step.

    The metric is that of `rolled`. Euler's way has one slope for place and momentum.
    """
    metric = DiagonalMetric(np.array([1 / SPRING[1]]))
    starts = np.array([[4.7, 3.0]]) if starts is None else starts
    phase = Phase(starts[:, :1], starts[:, 1:], *spring_density(starts[:, :1]))
    path = [starts]
    for _ in range(round(time / step_size)):
        if method == "leapfrog":
            phase = leapfrog(spring_density, metric, phase, step_size)
        else:
            w = phase.position + step_size * metric.velocity(phase.momentum)
            phase = Phase(w, phase.momentum + step_size * phase.gradient, *spring_density(w))
        path.append(np.hstack(phase[:2]))
    return np.array(path)


def energy_error(path: Any) -> Any:
    """Return by how many nats the energy of the first ball (steps + 1,) is off its first."""
    metric = DiagonalMetric(np.array([1 / SPRING[1]]))
    w, r = path[:, :1, 0], path[:, :1, 1]
    energies = hamiltonian(metric, Phase(w, r, *spring_density(w)))
    return energies - energies[0]


PATCH = np.array([[4.55, 1.6], [4.85, 1.6], [4.85, 3.4], [4.55, 3.4]])  # corners of starts


def area(corners: Any) -> Any:
    """Return the area (...,) of polygons (..., corners, 2) of weights and momenta."""
    w, r = np.moveaxis(corners, -1, 0)
    return abs(np.sum(w * np.roll(r, -1, -1) - r * np.roll(w, -1, -1), axis=-1)) / 2


def leaping() -> Figure:
    """Draw what becomes of a patch of starts, and the error of the energy against time."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    for method, style, label in (
        ("leapfrog", {"fc": PALE, "ec": BLUE, "lw": 1}, "leapfrog"),
        ("Euler", {"fill": False, "ec": VERMILLION, "ls": "--"}, "Euler"),
    ):
        for step, corners in enumerate(rolling(0.25, 4.5, method, PATCH)[::6]):
            left_ax.add_patch(Polygon(corners, **style, label=None if step else label))
            if method == "leapfrog":
                left_ax.annotate(f"{6 * step}", corners.mean(axis=0), ha="center", va="center",
                              fontsize="small")  # fmt: skip
    left_ax.set(xlim=(4.2, 6.7), ylim=(-11.5, 8), xlabel="weight $w$ (cm per kg)")
    left_ax.set_ylabel("momentum $r$ (nats per cm/kg)")
    legend_above(left_ax, 2)
    titled(left_ax, "A patch of starts, after 0 to 18 steps")
    for step_size, method, style in (
        (0.5, "leapfrog", {"color": BLUE, "ls": "-"}),
        (0.25, "leapfrog", {"color": BLACK, "ls": "--"}),
        (0.01, "Euler", {"color": VERMILLION, "ls": ":", "lw": 2}),
    ):
        error = energy_error(rolling(step_size, 19, method))
        time = step_size * np.arange(len(error))
        right_ax.plot(time, error, **style, label=f"{method}, {step_size}")
    right_ax.axhline(0, color=GREY, lw=0.8)
    right_ax.set(xlim=(0, 19), ylim=(-0.15, 0.4), xlabel="time (a period is $2 \\pi$)")
    right_ax.set_ylabel("error of the energy (nats)")
    legend_above(right_ax, 3)
    titled(right_ax, "The ball's energy, by way and step size")
    return figure


def acceptance(step_size: float, draws: int = 20_000) -> float:
    """Return the mean acceptance of Langevin's proposal, from draws of the spring's posterior."""
    rng = np.random.default_rng(1)
    kernel = MetropolisHastings(Langevin(step_size))
    state = kernel.init(spring_density, MEAN + WIDTH * rng.standard_normal((draws, 1)))
    return float(kernel.step(spring_density, rng, state)[1].acceptance.mean())


def warm_up(draws: int = 300) -> tuple[Any, Any, Any]:
    """Return step size and acceptance of each draw of one chain, and the average after it."""
    rng = np.random.default_rng(3)
    averaging = DualAveraging.start(0.1)
    state = State(np.array([[MEAN]]), *spring_density(np.array([[MEAN]])))
    rows = []
    for _ in range(draws):
        step_size = exp(averaging.log_step)
        state, info = MetropolisHastings(Langevin(step_size)).step(spring_density, rng, state)
        averaging = averaging.update(Langevin.target_accept - info.acceptance.item())
        rows.append((step_size, info.acceptance.item(), exp(averaging.log_mean)))
    tried, acceptance, average = np.array(rows).T
    return tried, acceptance, average


def tuning() -> Figure:
    """Draw acceptances against the step size, and the step size while it is found."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    sizes = np.linspace(0.02, 1.2, 60)
    tried, accepted, average = warm_up()
    left_ax.plot(tried, accepted, "o", color=BLUE, ms=3, alpha=0.5, mew=0, label="one draw")
    left_ax.plot(sizes, [acceptance(size) for size in sizes], color=BLACK, label="mean")
    left_ax.axhline(Langevin.target_accept, color=GREY, lw=0.8, ls="--", label="wanted")
    left_ax.plot(average[-1], acceptance(average[-1]), "*", color=BLACK, ms=12, label="found")
    left_ax.set(xlim=(0, 1.2), ylim=(0, 1.05), xlabel="step size $\\varepsilon$ (cm per kg)")
    left_ax.set_ylabel("acceptance")
    legend_above(left_ax, 4)
    titled(left_ax, "What one draw of Langevin's proposal tells")
    right_ax.plot(tried, color=BLUE, lw=0.8, label="step size tried")
    right_ax.plot(average, color=VERMILLION, lw=2, ls="--", label="its average")
    right_ax.set(xlabel="draw of the warm-up", ylabel="step size $\\varepsilon$ (cm per kg)")
    right_ax.set(ylim=(0, 1.6))
    legend_above(right_ax, 2)
    titled(right_ax, "A warm-up")
    return figure


# D32, D33: the spring, if nobody knows how far to believe the catalogue

HYPERPRIORS = {
    "log-normal": LogNormal(0.5),
    "half-normal": HalfNormal(0.5),
    "half-Cauchy": HalfCauchy(0.5),
}


def log_joint(w: Any, u: Any, hyperprior: Any = None) -> Any:
    """Return log P(w, u, D): N(5, e^2u) for w, 11 cm under 2 kg, and p(u), which may be flat."""
    w, u = (np.reshape(values, (-1, 1)) for values in np.broadcast_arrays(w, u))
    prior = GaussianPrior(0.5, learn=True)
    noise = GaussianLikelihood(1.0)
    of_w, _ = prior.log_density({"prior_log_scale": u}, w - 5, Buffers())
    of_y, _ = noise.log_likelihood({}, 2 * w[:, :, None], np.array([[11.0]]))
    return of_w + of_y + (0 if hyperprior is None else hyperprior.log_density(u, 0 * u)[:, 0])


def slopes_of_joint(w: Any, u: Any, hyperprior: Any) -> tuple[Any, Any]:
    """Return its slopes for w and u: steps of K19, D17 and D32."""
    squared_distance = ((w - 5) / np.exp(u)) ** 2
    d_u = squared_distance - 1 + hyperprior.slope(np.reshape(u, (-1, 1)), np.zeros((1, 1)))[:, 0]
    return -(w - 5) / np.exp(2 * u) + 2 * (11 - 2 * w), d_u


def evidence_of_scale(u: Any) -> Any:
    """Return the integral of `log_joint`'s density over w, with p(u) flat."""
    return gaussian(11, 10, np.sqrt(4 * np.exp(2 * u) + 1))


def scales() -> Figure:
    """Draw the posterior of u under four hyperpriors, and the joint density over (u, w)."""
    figure = Figure(figsize=(9.2, 4.2), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    u = np.linspace(-8, 4, 601)
    flat = evidence_of_scale(u)
    left_ax.plot(u, flat, color=BLACK, ls=":", lw=2, label="flat: never falls")
    looks = (BLUE, "--"), (VERMILLION, "-"), (GREEN, "-.")
    for (name, hyperprior), (colour, dash) in zip(HYPERPRIORS.items(), looks, strict=True):
        density = flat * np.exp(hyperprior.log_density(u[:, None], np.zeros(1))[:, 0])
        left_ax.plot(u, density / np.trapezoid(density, u), dash, color=colour, label=name)
    left_ax.set(xlim=(-8, 4), ylim=(0, 0.62), xlabel="$u = \\log s$")
    left_ax.set_ylabel("posterior density of $u$")
    legend_above(left_ax, 2)
    titled(left_ax, "The catalogue's $s$ is not known")
    hyperprior = HYPERPRIORS["half-normal"]
    at_w, at_u = np.linspace(3.6, 7, 120), np.linspace(-4.2, 1.2, 120)
    grid_u, grid_w = np.meshgrid(at_u, at_w)
    density = log_joint(grid_w.ravel(), grid_u.ravel(), hyperprior).reshape(grid_w.shape)
    levels = density.max() - np.array([6, 4, 2, 1, 0.3])
    right_ax.contour(grid_u, grid_w, density, levels=levels, colors=GREY, linewidths=0.8,
                  linestyles="solid")  # fmt: skip
    chains_w = np.array([4.2, 5.06, 6.4, 5.9, 4.93])
    chains_u = np.array([-0.4, -2.8, -0.2, 0.8, -1.6])
    d_w, d_u = slopes_of_joint(chains_w, chains_u, hyperprior)
    size = 5 * np.hypot(d_u / 5.4, d_w / 3.4)
    right_ax.quiver(chains_u, chains_w, d_u / size, d_w / size, color=VERMILLION, angles="xy",
                 scale_units="xy", scale=1, width=0.008)  # fmt: skip
    right_ax.plot(
        chains_u,
        chains_w,
        "o",
        color=VERMILLION,
        ms=5,
        label="a chain, and where its gradient leads",
    )
    right_ax.set(xlim=(-4.2, 1.2), ylim=(3.6, 7), xlabel="$u = \\log s$")
    right_ax.set_ylabel("stretch per load $w$ (cm per kg)")
    legend_above(right_ax, 1)
    titled(right_ax, "Log joint density, $s$ half-normal")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "u-turn": u_turn,
    "doublings": doublings,
    "typical-set": typical,
    "ball": ball,
    "metrics": metrics,
    "path-lengths": lengths,
    "flows": flowing,
    "accepting": accepting,
    "leapfrog": leaping,
    "step-size": tuning,
    "scales": scales,
}

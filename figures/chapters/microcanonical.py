"""Figures of the chapter "Microcanonical samplers"."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, legend_above
from bbb_numpy.sampling.mcmc.leapfrog import Phase
from bbb_numpy.sampling.mcmc.metrics import DiagonalMetric
from bbb_numpy.sampling.mcmc.microcanonical import isokinetic
from chapters.shared import beside_contours, target, titled, trajectory


def steered(steps: int = 24, step_size: float = 0.25) -> Any:
    """Return (steps + 1, 4) place, fall of log pi and work of a path of constant speed (D49)."""
    metric = DiagonalMetric(np.ones(2))
    start = np.array([[-1.8, -0.4]])
    direction = np.array([[0.2, -1.3]]) / np.hypot(0.2, 1.3)
    phase = Phase(start, direction, *target(start))
    path = []
    work = 0.0
    first = phase.log_density[0]
    for _ in range(steps + 1):
        path.append((*phase.position[0], first - phase.log_density[0], work))
        phase, energy_terms = isokinetic(target, metric, phase, step_size)
        work += energy_terms[0]
    return np.array(path)


def constant_speed() -> Figure:
    """Draw a path of constant speed beside one of constant energy, and its two accounts."""
    figure, left_ax, right_ax = beside_contours()
    path = steered()
    left_ax.plot(*trajectory()[0].T, "s--", color=GREY, mfc="none", ms=3.5, lw=1,
              label="constant energy (HMC)")  # fmt: skip
    left_ax.plot(*path[:, :2].T, "o-", color=VERMILLION, ms=3.5, lw=1, label="constant speed")
    left_ax.plot(*path[0, :2], "*", color=BLACK, ms=12)
    left_ax.set(xlim=(-3.6, 3.6), ylim=(-2.4, 2.4), aspect="equal", xlabel="$\\theta_1$")
    left_ax.set_ylabel("$\\theta_2$")
    steps = np.arange(len(path))
    fall, work = path[:, 2:].T
    right_ax.plot(steps, fall, "--", color=BLUE, label="fall of $\\log P$")
    right_ax.plot(steps, work, ":", color=GREEN, lw=1.8, label="work")
    right_ax.plot(steps, fall + work, color=BLACK, label="sum $\\Delta$")
    right_ax.set(xlabel="step", ylabel="nats")
    for ax, title in ((left_ax, "24 steps of 0.25 from the star"), (right_ax, "What is kept")):
        legend_above(ax, 3)
        titled(ax, title)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "constant-speed": constant_speed,
}

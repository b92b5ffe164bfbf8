"""Figures of the chapter "Stochastic gradient samplers"."""

from collections.abc import Callable
from math import gamma, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    PALE,
    VERMILLION,
    legend_above,
    legend_of_figure,
)
from bbb_numpy.sampling.mcmc import SGHMC

# The stationary law of SGHMC beside its target N(0, 1), after D64


class NoisyTarget:
    """N(0, 1), whose minibatches have a gradient with an error of variance 1."""

    def draw_rows(self, rng: np.random.Generator, chains: int, size: int) -> Any:
        """Draw the errors (S, 1)."""
        return rng.standard_normal((chains, 1))

    def __call__(self, position: Any, rows: Any = 0.0) -> tuple[Any, Any]:
        """Return log density and gradient."""
        return -0.5 * (position**2).sum(axis=1), rows - position


def heated(h: float) -> tuple[Any, float]:
    """Return draws with steps h and friction 1, and the variance that D64 says."""
    kernel = SGHMC(h, 1.0, steps=20)
    rng = np.random.default_rng(0)
    state = kernel.init(NoisyTarget(), np.zeros((2000, 1)))
    target = NoisyTarget()
    draws = []
    for _ in range(12):
        state, _ = kernel.step(target, rng, state)
        draws.append(state.position)
    return np.concatenate(draws[2:]), (1 + h**2 / 4 / np.tanh(h / 2)) / (1 - h**2 / 4)


def stochastic() -> Figure:
    """Draw three histograms, the law, and the target."""
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    x = np.linspace(-7, 7, 281)
    for ax, h in zip(figure.subplots(1, 3, sharey=True), (0.3, 1.0, 1.5), strict=True):
        draws, variance = heated(h)
        ax.hist(draws, 70, range=(-7, 7), density=True, color=PALE, label="draws")
        lines = (("law of the steps", variance, VERMILLION, "-"), ("target", 1.0, BLACK, "--"))
        for name, width, colour, style in lines:
            density = np.exp(-0.5 * x * x / width) / np.sqrt(2 * pi * width)
            ax.plot(x, density, color=colour, ls=style, label=name)
        ax.set(title=f"h = {h}: variance {variance:.2f}", xlabel="$\\theta$")
    figure.axes[0].set_ylabel("density")
    legend_of_figure(figure, figure.axes[0], 3)
    return figure


# D65: what the momenta tell, and a cycle of steps


class Quartic(NoisyTarget):
    """Density exp(-theta^4 / 4), with the same noise."""

    def __call__(self, position: Any, rows: Any = 0.0) -> tuple[Any, Any]:
        """Return log density and gradient."""
        return -0.25 * (position**4).sum(axis=1), rows - position**3


def told(target: Any, h: float) -> tuple[float, float, float]:
    """Return E |r|^2, E [-theta g] and E theta^2 of draws with steps h and friction 1 (D65)."""
    kernel = SGHMC(h, 1.0, steps=20)
    rng = np.random.default_rng(0)
    state = kernel.init(target, np.zeros((2000, 1)))
    averages = []
    for draw in range(24):
        state, info = kernel.step(target, rng, state)
        if draw >= 4:
            kinetic = info.energy + state.log_density
            theta, slope = state.position[:, 0], state.gradient[:, 0]
            averages.append([np.mean(2 * kinetic), np.mean(-theta * slope), np.mean(theta**2)])
    heat, work, square = np.mean(averages, axis=0)
    return heat, work, square


STEPS = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)


def heat() -> Figure:
    """Draw what the momenta tell beside what the places show, and the step sizes of two cycles."""
    figure = Figure(figsize=(8.8, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    gaussian = np.array([told(NoisyTarget(), h) for h in STEPS])
    quartic = np.array([told(Quartic(), h) for h in STEPS[:3]])
    width = 2 * gamma(0.75) / gamma(0.25)  # the variance of the quartic density
    left_ax.plot([0, 0.75], [0, 0.75], color=GREY, lw=1, ls="--", label="equal")
    for shares, style, label in (
        (gaussian[:, 1], {"marker": "o", "color": BLACK}, "Gaussian: $-\\theta g$, variance"),
        (quartic[:, 1], {"marker": "s", "color": VERMILLION}, "quartic: $-\\theta g$"),
        (quartic[:, 2] / width, {"marker": "s", "color": VERMILLION, "mfc": "none"},
         "quartic: variance"),
    ):  # fmt: skip
        momenta = (gaussian if len(shares) > 3 else quartic)[:, 0]
        left_ax.plot(momenta - 1, shares - 1, ls="none", ms=6, label=label, **style)
    left_ax.set(xlim=(0, 0.75), ylim=(0, 0.75), xlabel="told by the momenta, $E\\, r^2 - 1$")
    left_ax.set_ylabel("share by which it is too large")
    kernel = SGHMC(0.1, cycle=8, steps=10, exploring=0.4)
    sizes, warm = (
        np.concatenate(sequences) for sequences in zip(*map(kernel.plan, range(8)), strict=True)
    )
    k = np.arange(2 * len(sizes))
    h = np.tile(sizes, 2)
    noisy = np.tile(warm, 2) > 0
    right_ax.plot(k[~noisy], h[~noisy], "x", color=GREY, ms=4, label="without noise: leaves a mode")
    right_ax.plot(k[noisy], h[noisy], ".", color=BLUE, ms=4, label="with noise: samples it")
    ends = np.cumsum([len(kernel.plan(draw)[0]) for draw in range(8)]) - 1
    at = np.concatenate([ends, ends + len(sizes)])
    right_ax.plot(at, h[at], "o", color=BLACK, ms=5, mfc="none", label="a draw is kept")
    right_ax.set(xlabel="step, a minibatch each", ylabel="step size $h$", ylim=(0, 0.107))
    for ax, title, columns in ((left_ax, "What the momenta tell", 2), (right_ax, "Two cycles", 1)):
        legend_above(ax, columns)
        ax.set_title(title, loc="left", fontsize="medium", pad=50)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "stochastic": stochastic,
    "heat": heat,
}

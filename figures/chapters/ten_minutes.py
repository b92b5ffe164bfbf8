"""Figures of the chapter "Ten minutes with a Bayesian network"."""

from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbb_numpy import plain
from bbb_numpy.plots.style import BLACK, BLUE, GREY, VERMILLION, legend_above, plain_numbers
from bbb_studies.kebude import regression, report
from chapters.grounds import for_both_grounds
from chapters.shared import (
    EXCESS,
    LINE,
    LOAD,
    NET,
    NOISE,
    RATE,
    believed,
    data,
    thetas,
    titled,
)

HERE = Path(__file__).parents[1]


# The opening chapter: one network, thirty, two weights, and the two terms of what is minimised


def one_network() -> Any:
    """Return w (61,) of one network, trained as the example but with no noise: MAP."""
    x, y, rng = data()
    theta = plain.init(NET, rng)
    no_noise = np.zeros((1, 61))
    for _ in range(300):
        for rows in np.split(rng.permutation(100), 10):
            _, grad = plain.value_and_grad(NET, theta, no_noise, x[rows], y[rows], 1.0, NOISE, 0.1)
            theta[:61] = plain.update(theta[:61], grad[:61], RATE)
    return theta[:61]


def drawn(theta: Any, count: int, line: Any = LINE) -> Any:
    """Return the functions (count, G) of networks drawn from q."""
    mu, rho = np.split(theta, 2)
    eps = np.random.default_rng(1).standard_normal((count, mu.size))
    return plain.forward(NET, mu + plain.softplus(rho) * eps, line)[0][:, :, 0]


def terms(theta: Any, draws: int = 500) -> tuple[float, float]:
    """Return complexity and misfit in nats, K5's parts, estimated by the same draws."""
    x, y, _ = data()
    eps = np.random.default_rng(1).standard_normal((draws, 61))
    free_energy, misfit = (
        plain.value_and_grad(NET, theta, eps, x, y, 1.0, NOISE, pi)[0] for pi in (1.0, 0.0)
    )
    return free_energy - misfit, misfit


def many_networks() -> Figure:
    """Draw one network's answer, and those of thirty from q."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    x, y, _ = data()
    output = plain.forward(NET, one_network()[None], LINE)[0][0, :, 0]
    axes[0].plot(LINE, output, color=VERMILLION, lw=2, label="its answer")
    outputs = drawn(thetas([300])[0], 30).T
    axes[1].plot(LINE, outputs, color=BLUE, lw=0.7, alpha=0.6)
    axes[1].plot([], [], color=BLUE, lw=0.7, label="their answers")
    for ax, title in zip(axes, ("One network", "Thirty networks"), strict=True):
        ax.plot(x, y, "o", color=BLACK, ms=2, label="100 measurements")
        ax.set(xlabel=LOAD, xlim=(-6, 6), ylim=(-2, 22))
        legend_above(ax, 2)
        titled(ax, title)
    axes[0].set_ylabel(EXCESS)
    return figure


def two_weights() -> Figure:
    """Draw q of the most and of the least certain weight, and the two terms of F by epoch."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    epochs = (*range(10), *range(10, 301, 10))
    thetas_of_epochs = thetas(epochs)
    mu, rho = np.split(thetas_of_epochs[-1], 2)
    sigma = plain.softplus(rho)
    w = np.linspace(-2.5, 2.5, 1001)
    for j, style, label in (
        (np.argmin(sigma), "-", "a weight that the data pin down"),
        (np.argmax(sigma), "--", "one that they have hardly touched"),
    ):
        normal = NormalDist(mu[j], sigma[j])
        left_ax.plot(w, [normal.pdf(v) for v in w], color=BLUE, ls=style, label=label)
    left_ax.plot(
        w, [NormalDist().pdf(v) for v in w], color=BLACK, ls=":", label="before: every weight"
    )
    left_ax.set(xlabel="w (dimensionless)", ylabel="density", ylim=(0, None), xlim=(-2.5, 2.5))
    complexity, misfit = np.transpose([terms(theta) for theta in thetas_of_epochs])
    right_ax.plot(epochs, complexity + misfit, color=BLACK, lw=2, label="F, their sum")
    right_ax.plot(epochs, misfit, color=VERMILLION, ls="--", label="misfit")
    right_ax.plot(epochs, complexity, color=BLUE, ls="-.", label="complexity")
    right_ax.set(xlabel="epochs", ylabel="nats", xscale="symlog", xlim=(0, 300), yscale="log")
    right_ax.set_xticks([0, 1, 10, 100, 300], ["0", "1", "10", "100", "300"])
    plain_numbers(right_ax.yaxis)
    for ax, title in ((left_ax, "Two of 61 bell curves"), (right_ax, "What is minimised")):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300)


def frame(axes: tuple[Axes, Axes], epoch: int, theta: Any) -> None:
    """Draw what is believed after so many epochs, and sigma of every weight."""
    left_ax, right_ax = axes
    for ax in axes:
        ax.clear()
    believed(left_ax, theta, -3)
    sigma = plain.softplus(np.split(theta, 2)[1])
    right_ax.plot(np.arange(1, 62), np.sort(sigma), "o", color=BLUE, ms=3)
    right_ax.axhline(plain.softplus(-2.0), color=GREY, ls=":", lw=1, label="start")
    right_ax.set(xlim=(0, 62), yscale="log", ylim=(0.02, 0.3), xlabel="weights, by sigma")
    right_ax.set_yticks([0.03, 0.1, 0.3])
    right_ax.set_ylabel("sigma")
    plain_numbers(right_ax.yaxis)
    legend_above(right_ax, 1)
    titled(left_ax, f"after {epoch} epoch{'s' * (epoch != 1)}")


def training(folder: Path = HERE) -> Path:
    """Write the README's moving picture: plain.py's example while it trains."""
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    axes = figure.subplots(1, 2, width_ratios=(1.7, 1))
    thetas_of_epochs = thetas(EPOCHS)

    def one(i: int) -> None:
        frame(axes, EPOCHS[i], thetas_of_epochs[i])
        for_both_grounds(figure)

    moving = FuncAnimation(figure, one, frames=len(EPOCHS))
    clear = {"transparent": True}  # which a GIF cannot be in part
    moving.save(folder / "training.png", PillowWriter(fps=1), dpi=90, savefig_kwargs=clear)
    return folder / "training.png"


def fit() -> Figure:
    """Draw the README's fit of a noisy cubic, as ``bbb-numpy report`` does."""
    return report._figure(regression.run(2, 4.0, "should-be"))


FIGURES: dict[str, Callable[[], Figure]] = {
    "many-networks": many_networks,
    "two-weights": two_weights,
}

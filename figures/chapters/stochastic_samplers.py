"""Figures of the chapter "Stochastic gradient samplers"."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.plots.style import BLACK, PALE, VERMILLION, legend_of_figure
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
    kernel, rng = SGHMC(h, 1.0, steps=20), np.random.default_rng(0)
    state, target, draws = kernel.init(NoisyTarget(), np.zeros((2000, 1))), NoisyTarget(), []
    for _ in range(12):
        state, _ = kernel.step(target, rng, state)
        draws.append(state.position)
    return np.concatenate(draws[2:]), (1 + h**2 / 4 / np.tanh(h / 2)) / (1 - h**2 / 4)


def stochastic() -> Figure:
    """Draw three histograms, the law, and the target."""
    figure, x = Figure(figsize=(9.6, 3.6), layout="constrained"), np.linspace(-7, 7, 281)
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


FIGURES: dict[str, Callable[[], Figure]] = {
    "stochastic": stochastic,
}

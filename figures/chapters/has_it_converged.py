"""Figures of the chapter "Has it converged?"."""

import warnings
from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbb_numpy import MLP, GaussianLikelihood, Model, sample
from bbb_numpy.evaluation.convergence import import_arviz
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    PALE,
    SKY,
    VERMILLION,
    density_of_draws,
    legend_above,
    plain_numbers,
)
from bbb_numpy.sampling.mcmc import HMC, MAMS, MCLMC
from bbb_numpy.sampling.run import sample_target
from chapters.shared import NOISE, data, titled

# Has it converged? A chain that fools each of the diagnostics


def two_modes(position: Any) -> tuple[Any, Any]:
    """Return log density and gradient of the mean of N(-4, 1) and N(4, 1)."""
    sides = np.stack([-0.5 * (position[:, 0] - centre) ** 2 for centre in (-4, 4)])
    right = 1 / (1 + np.exp(sides[0] - sides[1]))
    return np.logaddexp(*sides), (8 * right - 4)[:, None] - position


def standard(position: Any) -> tuple[Any, Any]:
    """Return log density and gradient of N(0, I)."""
    return -0.5 * np.sum(position**2, axis=1), -position


def weights_and_scale(position: Any) -> tuple[Any, Any]:
    """Return log density and gradient of u ~ N(0, 1.5^2) and four weights N(0, e^2u): a funnel."""
    u, w = position[:, :1], position[:, 1:]
    squares = np.exp(-2 * u) * w**2
    value = -0.5 * (u[:, 0] / 1.5) ** 2 - 0.5 * np.sum(squares, axis=1) - 4 * u[:, 0]
    slope = -u / 1.5**2 + np.sum(squares, axis=1, keepdims=True) - 4
    return value, np.concatenate([slope, -squares / w], axis=1)


def quietly(density: Any, start: Any, sampler: Any, draws: int, warm_up: int) -> Any:
    """Return draws of a density; that they are bad is what the pictures are of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return sample_target(density, start, sampler=sampler, draws=draws, warm_up=warm_up, seed=1)


def stuck() -> Any:
    """Return four chains of 500 draws that began on one side of `two_modes`."""
    return quietly(two_modes, np.array([[-5.0], [-4.5], [-3.5], [-3]]), HMC(), 500, 500)


def half_turns() -> Any:
    """Return four chains of N(0, 1) whose every path is half a period."""
    kernel = HMC(step_size=pi / 32, path=pi, jitter=0.0, small_steps=0.0)
    return quietly(standard, np.array([[0.3], [0.8], [1.3], [2.0]]), kernel, 500, 0)


def in_the_funnel(sampler: Any) -> Any:
    """Return four chains of 1,000 draws of `weights_and_scale`."""
    start = np.random.default_rng(2).standard_normal((4, 5))
    return quietly(weights_and_scale, start, sampler, 1000, 600)


def unadjusted(draws: int = 2000) -> Any:
    """Return (draws, 4) the mean square of 100 numbers N(0, 1) as MCLMC draws them."""
    start = np.random.default_rng(0).standard_normal((4, 100))
    run = quietly(standard, start, MCLMC(energy_variance=5e-3), draws, draws // 4)
    return np.mean(run.positions**2, axis=2)


def judged(values: Any) -> dict[str, float]:
    """Return what ArviZ says of one number (T, S)."""
    az = import_arviz()
    return {
        "R-hat": float(az.rhat(values.T)),
        "ESS": float(az.ess(values.T)),
        "tail ESS": float(az.ess(values.T, method="tail")),
        "MCSE": float(az.mcse(values.T)),
    }


def e_bfmi(draws: Any) -> Any:
    """Return E-BFMI (S,) of each chain: squared changes of the energy over its variance."""
    energy = draws.stats["energy"]
    return np.mean(np.diff(energy, axis=0) ** 2, axis=0) / np.var(energy, axis=0)


def traces(ax: Axes, values: Any, label: str) -> None:
    """Draw chains (T, S) against the number of the draw."""
    looks = zip((BLACK, VERMILLION, BLUE, SKY), ("-", "--", "-.", ":"), strict=True)
    for chain, (colour, style) in zip(values.T, looks, strict=True):
        ax.plot(chain, style, color=colour, lw=0.7)
    ax.set(xlabel="draw", ylabel=label)


def one_mode() -> Figure:
    """Draw chains that all sit in one of two modes, and what they say."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    draws = stuck()
    left_ax, right_ax = figure.subplots(1, 2, sharey=True, width_ratios=(1.7, 1))
    values = draws.positions[:, :, 0]
    theta = np.linspace(-7.5, 7.5, 200)
    traces(left_ax, values, "$\\theta$")
    summary = judged(values)
    title = f"R-hat {summary['R-hat']:.3f}, ESS {summary['ESS']:,.0f} of 2,000"
    left_ax.set_title(title, loc="left", fontsize="medium")
    density = np.exp(two_modes(theta[:, None])[0]) / (2 * np.sqrt(2 * pi))
    counts, edges = np.histogram(values, 60, (-7.5, 7.5), density=True)
    right_ax.stairs(counts, edges, orientation="horizontal", color=PALE, fill=True, label="draws")
    right_ax.plot(density, theta, color=BLACK, label="target")
    right_ax.set(xlabel="density")
    legend_above(right_ax, 2)
    return figure


def permuted() -> Any:
    """Return four chains of a network 1-3-1 with tanh on the rows of `data`."""
    x, y, _ = data()
    model = Model(MLP((1, 3, 1), "tanh"), GaussianPrior(1.0), GaussianLikelihood(NOISE))
    return sample(model, x, y, chains=4, draws=400, warm_up=600, seed=0, progress=False)


def functions_and_weights() -> Figure:
    """Draw one function value and one weight of the same four chains."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    draws = permuted()
    weights = np.ascontiguousarray(draws.target.weights(draws.flat))
    outputs = draws.target.model.predict(weights, np.array([[1.0]]))
    shape = draws.positions.shape[:2]
    for ax, values, label, title in (
        (0, outputs.reshape(shape), "$f(1)$", "A function"),
        (1, draws.block("W0")[:, :, 0, 0], "first weight", "A weight"),
    ):
        axes = figure.add_subplot(1, 2, ax + 1)
        traces(axes, values, label)
        r_hat = judged(values)["R-hat"]
        axes.set_title(f"{title}: R-hat {r_hat:.2f}", loc="left", fontsize="medium")
    return figure


def same_sizes() -> Figure:
    """Draw chains whose value changes sign at every draw and never its size."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    values = half_turns().positions
    for ax, power, label in zip(
        figure.subplots(1, 2), (1, 2), ("$\\theta$", "$\\theta^2$"), strict=True
    ):
        powers = values[:, :, 0] ** power
        traces(ax, powers[:60], label)
        ess = judged(powers)["ESS"]
        ax.set_title(f"{label}: ESS {ess:,.0f} of 2,000", loc="left", fontsize="medium")
    return figure


def narrow_place() -> Figure:
    """Draw the funnel as HMC and as MAMS see it, and where HMC diverged."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, kernel in zip(axes, (HMC(), MAMS()), strict=True):
        draws = in_the_funnel(kernel)
        diverged = draws.stats["divergent"].astype(bool)
        u, w = draws.positions[:, :, 0], draws.positions[:, :, 1]
        ax.axhspan(-5, -2, color="#E6E6E6", lw=0, label="9 % of the mass")
        ax.plot(w.ravel(), u.ravel(), ".", color=SKY, ms=2, label="draws")
        ax.plot(w[diverged], u[diverged], "x", color=VERMILLION, ms=5, label="after a divergence")
        ax.set(xlim=(-10, 10), ylim=(-5, 5), xticks=(-10, -5, 0, 5, 10))
        ax.set_xlabel("one of four weights $w$")
        legend_above(ax, 3)
        titled(ax, f"{type(kernel).__name__}: {diverged.sum()} divergences, "
                   f"{100 * np.mean(u < -2):.1f} % below $u = -2$")  # fmt: skip
    axes[0].set_ylabel("their log scale $u$")
    return figure


def energies() -> Figure:
    """Draw the spread of the energy and of its changes, in the funnel and in one of two modes."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    for number, (draws, name) in enumerate(
        ((in_the_funnel(HMC()), "The funnel"), (stuck(), "One of two modes")), 1
    ):
        ax = figure.add_subplot(1, 2, number)
        energy = draws.stats["energy"]
        centred = energy - energy.mean(axis=0)
        pooled = np.concatenate([centred, np.diff(energy, axis=0)])
        edges = np.linspace(*np.quantile(pooled, (0.001, 0.999)), 50)
        density_of_draws(ax, centred, edges, color=PALE, fill=True, label="energy less its mean")
        density_of_draws(ax, np.diff(energy, axis=0), edges, color=VERMILLION, lw=1.4,
                         label="its change from draw to draw")  # fmt: skip
        ax.set(xlabel="nats", ylabel="density")
        legend_above(ax, 2)
        titled(ax, f"{name}: E-BFMI {e_bfmi(draws).min():.2f} to {e_bfmi(draws).max():.2f}")
    return figure


def sure_and_wrong() -> Figure:
    """Draw the mean of MCLMC with its standard error, against the draws."""
    figure = Figure(figsize=(4.8, 3.6), layout="constrained")
    values = unadjusted()
    ax = figure.subplots()
    counts = np.geomspace(50, len(values), 10).astype(int)
    means = np.array([100 * (values[:count].mean() - 1) for count in counts])
    errors = np.array([100 * judged(values[:count])["MCSE"] for count in counts])
    ax.axhline(0, color=BLACK, label="posterior")
    ax.errorbar(counts, means, 2 * errors, fmt="o", color=VERMILLION, ms=4, capsize=3,
                label="MCLMC, ± 2 MCSE")  # fmt: skip
    ax.set(xscale="log", xlabel="draws of each of 4 chains", ylabel="error of the variance (%)")
    ax.set(ylim=(-1, None))
    plain_numbers(ax.xaxis, "25")
    legend_above(ax, 2)
    r_hat = judged(values)["R-hat"]
    titled(ax, f"100 numbers $N(0, 1)$: R-hat {r_hat:.2f}")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "one-mode": one_mode,
    "functions-and-weights": functions_and_weights,
    "same-sizes": same_sizes,
    "narrow-place": narrow_place,
    "energies": energies,
    "sure-and-wrong": sure_and_wrong,
}

"""Figures of the chapter "Model checking"."""

from collections.abc import Callable
from math import log, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import MLP, Model, plain
from bbb_numpy.evaluation.model_checks import QUANTITIES
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    VERMILLION,
    density_of_draws,
    legend_above,
)
from bbb_studies.mullachery import occam
from chapters.shared import LOG_EVIDENCE, NET, thetas, titled

# M22: predictive p-values before and after the data, and a misfit that one quantity sees

PLACES = np.linspace(-1, 1, 12)


INPUTS = np.column_stack([np.ones(12), PLACES])  # of a line whose two weights are N(0, 1)


SCATTER = 0.5  # standard deviation of the noise


def weights_after(y: Any, draws: int, rng: np.random.Generator) -> Any:
    """Return draws (draws, 2) of the posterior of the line's weights, which is Gaussian (D8)."""
    covariance = np.linalg.inv(INPUTS.T @ INPUTS / SCATTER**2 + np.eye(2))
    mean = covariance @ INPUTS.T @ y / SCATTER**2
    return rng.multivariate_normal(mean, covariance, draws)


def quantities(name: str, y: Any, weights: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a test quantity of the data and of replications (draws,) for the line's weights."""
    mean = (weights @ INPUTS.T)[:, :, None]
    replications = mean + SCATTER * rng.standard_normal(mean.shape)
    deviation = np.full_like(mean, SCATTER)
    quantity = QUANTITIES[name]
    observed = quantity(np.broadcast_to(y[None, :, None], mean.shape), mean, deviation)
    return observed, quantity(replications, mean, deviation)


def p_values(sets: int, rng: np.random.Generator, draws: int = 200) -> Any:
    """Return p of the largest target for data from the line, before and after them (2, sets)."""
    p = np.empty((2, sets))
    for number in range(sets):
        y = INPUTS @ rng.standard_normal(2) + SCATTER * rng.standard_normal(12)
        for row, weights in enumerate(
            (rng.standard_normal((draws, 2)), weights_after(y, draws, rng))
        ):
            observed, replicated = quantities("largest y", y, weights, rng)
            p[row, number] = np.mean(replicated > observed)
    return p


def bent(rng: np.random.Generator) -> Any:
    """Return targets (12,) of a curve that no line is."""
    return 2.0 * PLACES**2 - 0.5 + SCATTER * rng.standard_normal(12)


def predictive_checks() -> Figure:
    """Draw the histograms of p before and after the data, and a check that sees a misfit."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    edges = np.linspace(0, 1, 21)
    p_before, p_after = p_values(4000, np.random.default_rng(22))
    density_of_draws(left_ax, p_after, edges, fill=True, color=SKY, ec=BLUE,
                     label="weights of the posterior")  # fmt: skip
    density_of_draws(left_ax, p_before, edges, color=BLACK, ls="--", lw=1.4,
                     label="weights of the prior")  # fmt: skip
    left_ax.set(xlim=(0, 1), ylim=(0, None), xlabel="predictive p-value", ylabel="density")
    legend_above(left_ax, 2)
    titled(left_ax, "4000 data sets of the right model")
    rng = np.random.default_rng(3)
    y = bent(rng)
    observed, replicated = quantities(
        "residuals of neighbours", y, weights_after(y, 20_000, rng), rng
    )
    edges = np.linspace(-1.5, 3, 46)
    density_of_draws(
        right_ax, replicated, edges, fill=True, color=SKY, ec=BLUE, label="replications"
    )
    density_of_draws(right_ax, observed, edges, color=BLACK, lw=1.4, label="the data")
    right_ax.set(xlim=(-1.5, 3), ylim=(0, None), ylabel="density")
    right_ax.set_xlabel("mean product of neighbouring residuals")
    legend_above(right_ax, 2)
    share = np.mean(replicated > observed)
    titled(right_ax, f"A line for data that bend: $p = {share:.3f}$")
    return figure


# M20: from the prior to the posterior in small steps, with the account kept


def tempered(beta: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation of the spring's P(w) P(D|w)^beta."""
    return (20 + 22 * beta) / (4 + 4 * beta), (4 + 4 * beta) ** -0.5


def annealed(steps: int, chains: int, rng: np.random.Generator, moves: bool) -> Any:
    """Return log omega (chains,) of `steps` equal powers; the moves mix at once, or not at all."""
    w = 5 + 0.5 * rng.standard_normal(chains)
    weights = np.zeros(chains)
    for beta in np.arange(1, steps + 1) / steps:
        weights -= ((11 - 2 * w) ** 2 / 2 + 0.5 * log(2 * pi)) / steps
        if moves:
            mean, deviation = tempered(beta)
            w = mean + deviation * rng.standard_normal(chains)
    return weights


def annealing() -> Figure:
    """Draw the densities between prior and posterior, and the weights against their number."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w = np.linspace(3.2, 7.3, 301)
    for beta, colour, dash in (
        (0, ORANGE, "--"),
        (0.25, GREY, "-."),
        (0.5, GREY, ":"),
        (1, BLACK, "-"),
    ):
        mean, deviation = tempered(beta)
        density = np.exp(-0.5 * ((w - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * pi))
        left_ax.plot(w, density, dash, color=colour, lw=1.6, label=f"$\\beta = {beta}$")
    left_ax.set(
        xlim=(3.2, 7.3), ylim=(0, None), xlabel="$w$ (cm per kg)", ylabel="density (kg per cm)"
    )
    legend_above(left_ax, 4)
    titled(left_ax, "Prior, path, posterior")
    counts = (1, 2, 4, 8, 16, 32, 64)
    for moves, name, colour, mark in (
        (False, "no moves", GREY, "s"),
        (True, "moves that mix", BLUE, "o"),
    ):
        log_weights = np.array(
            [annealed(n, 20_000, np.random.default_rng(n), moves) for n in counts]
        )
        log_weights -= LOG_EVIDENCE
        shift = 1.0 if moves else 0.93
        style = {"color": colour, "capsize": 3, "ms": 5}
        right_ax.errorbar(
            np.multiply(counts, shift), log_weights.mean(axis=1), log_weights.std(axis=1),
            fmt=mark, label=f"$\\log \\omega$, mean ± standard deviation: {name}", **style,
        )  # fmt: skip
        mean = np.log(np.exp(log_weights).mean(axis=1))
        right_ax.plot(counts, mean, "x", color=colour, label=f"$\\log$ mean of $\\omega$: {name}")
    right_ax.axhline(0, color=BLACK, lw=1)
    right_ax.set(xscale="log", xlabel="powers $n$", ylabel="nats above $\\log P(D)$")
    right_ax.set_xticks(counts, [str(count) for count in counts])
    right_ax.minorticks_off()
    legend_above(right_ax, 1)
    right_ax.set_title(
        "The mean of $\\omega$ is right for any $n$", loc="left", fontsize="medium", pad=70
    )
    return figure


# M21: what three models say of all 256 data sets


def evidence_by_changes(nodes: int = 61) -> dict[str, Any]:
    """Return the mean evidence (8,) of the data sets with 0 to 7 label changes, of each model.

    Integrals over a weight are sums over so many nodes.
    """
    number = occam.count_label_changes(occam.LABEL_VECTORS)
    probabilities = {"degree 7": np.full(256, 2.0**-8)}
    for name, degree in (("line", 1), ("parabola", 2)):
        model = Model(
            MLP((degree, 1)), GaussianPrior(occam.LOGISTIC_PRIOR_SCALE), BernoulliLikelihood()
        )
        w, shares = occam.prior_grid(degree + 1, nodes, occam.LOGISTIC_PRIOR_SCALE)
        probabilities[name] = occam.label_probabilities(
            model, occam.polynomial_features(8, degree), w, shares
        )[0]
    return {
        name: np.bincount(number, of_all) / np.bincount(number)
        for name, of_all in probabilities.items()
    }


def razor() -> Figure:
    """Draw the evidence of three models against the complexity of the data."""
    figure = Figure(figsize=(4.8, 3.6), layout="constrained")
    ax = figure.subplots()
    means = evidence_by_changes()
    for name, colour, style in (("line", BLUE, "o-"), ("parabola", VERMILLION, "s--"),
                               ("degree 7", BLACK, "^:")):  # fmt: skip
        ax.semilogy(range(8), means[name], style, color=colour, label=name)
    ax.set(ylim=(1e-5, 0.3), xlabel="label changes along the line: how complex the data are")
    ax.set_ylabel("mean evidence $P(D|m)$ of a data set")
    legend_above(ax, 3)
    titled(ax, "Eight labels: the evidence of each model")
    return figure


# D36: weights of plain.py removed, by signal-to-noise and by size


def removed() -> tuple[Any, Any, dict[str, Any]]:
    """Return ratios (P,), shares of the weights, and the error without these, by each order."""
    (theta,) = thetas([300])
    mu, rho = np.split(theta, 2)
    ratios = np.abs(mu) / plain.softplus(rho)
    x = np.linspace(-2, 2, 101)[:, None]
    counts = np.arange(0, mu.size + 1, 3)
    errors = {}
    for name, order in (("signal-to-noise", ratios), ("size", np.abs(mu))):
        mask = np.argsort(np.argsort(order)) >= counts[:, None]
        f = plain.forward(NET, mask * mu, x)[0][:, :, 0]
        errors[name] = np.sqrt(np.mean((f - x[:, 0] ** 2) ** 2, axis=1))
    return ratios, counts / mu.size, errors


def pruning() -> Figure:
    """Draw the signal-to-noise ratios of plain.py's weights, and its error without the lowest."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    ratios, shares, errors = removed()
    edges = np.geomspace(0.01, 100, 25)
    left_ax.stairs(np.histogram(ratios, edges)[0], edges, fill=True, color=SKY, ec=BLUE)
    left_ax.axvline(1, color=BLACK, lw=1, ls="--")
    left_ax.set(xscale="log", xlabel="signal-to-noise ratio $|\\mu| / \\sigma$", ylabel="weights")
    left_ax.set_title("61 weights of the band", loc="left", fontsize="medium", pad=34)
    for name, colour, style in (("signal-to-noise", BLUE, "-"), ("size", GREY, "--")):
        right_ax.plot(100 * shares, errors[name], style, color=colour, label=f"lowest by {name}")
    right_ax.set(xlim=(0, 100), ylim=(0, None), xlabel="weights removed (%)")
    right_ax.set_ylabel("error of the mean network (mm)")
    legend_above(right_ax, 2)
    titled(right_ax, "What is left of the fit")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "predictive-checks": predictive_checks,
    "annealing": annealing,
    "razor": razor,
    "pruning": pruning,
}

"""Figures of the chapter "Correlated posteriors, and ADVI"."""

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from bbb_numpy import BayesianMLPRegressor
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.plots.style import BLACK, BLUE, GREY, PURPLE, legend_above, legend_of_figure
from chapters.shared import EXCESS, LOAD, data, titled

# Two clusters of data: a Laplace approximation beside a mean field, after D55


def in_the_gap(inference: str, line: Any) -> tuple[Any, Any, Predictive]:
    """Return x (N, 1), y (N,) of the spring beyond 0.8 kg, and a learner's answer at `line`."""
    x, y, _ = data()
    x, y = x[abs(x[:, 0]) > 0.8], y[abs(x[:, 0]) > 0.8, 0]
    options: Any = {"activation": "tanh", "predict_samples": 1000, "random_state": 0}
    model = BayesianMLPRegressor(inference=inference, **options).fit(x, y)
    return x, y, model.predict_distribution(line)


def gap() -> Figure:
    """Draw both bands, of the functions alone."""
    figure, line = Figure(figsize=(9.6, 3.8), layout="constrained"), np.linspace(-3, 3, 201)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, ("laplace", "mean-field"), strict=True):
        x, y, p = in_the_gap(name, line[:, None])
        for width, alpha in ((2, 0.2), (1, 0.35)):
            low, high = (p.mean + sign * width * p.epistemic for sign in (-1, 1))
            ax.fill_between(line, low, high, color=BLUE, alpha=alpha, lw=0)
        ax.plot(line, p.mean, color=BLUE)
        ax.plot(x[:, 0], y, ".", color=BLACK, ms=3)
        ax.set(title=f'inference="{name}"', xlabel=LOAD, xlim=(-3, 3), ylim=(-1.5, 9))
    axes[0].set_ylabel(EXCESS)
    return figure


# M1: a correlated posterior and the mean field beside it


LOADS = np.array([2.0, 3.0, 4.0])  # kg; read off a ruler whose zero is not known, either


def zeroed() -> tuple[Any, Any, Any]:
    """Return mean (2,), covariance (2, 2) and mean-field variances (2,) of w and the zero.

    The spring's prior, N(0, 1 cm^2) for the zero, and three readings.
    """
    rows = np.column_stack([LOADS, np.ones(3)])
    precision = np.diag([1 / 0.5**2, 1.0]) + rows.T @ rows
    covariance = np.linalg.inv(precision)
    mean = covariance @ (np.array([5 / 0.5**2, 0]) + rows.T @ np.array([11.0, 16.0, 21.5]))
    return mean, covariance, 1 / np.diag(precision)  # D8


def of_lines(covariance: Any, loads: Any) -> Any:
    """Return the standard deviation of w x + b at each load."""
    rows = np.column_stack([loads, np.ones(len(loads))])
    return np.sqrt(np.sum(rows @ covariance * rows, axis=1))


def correlated() -> Figure:
    """Draw full rank and mean field over two weights, and their standard deviations of w x + b."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    mean, covariance, variances = zeroed()
    x = np.linspace(0, 10, 201)
    for name, matrix, colour, dash in (
        ("full rank: the posterior", covariance, BLACK, "-"),
        ("mean field", np.diag(variances), BLUE, "--"),
    ):
        values, vectors = np.linalg.eigh(matrix)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        for size in (1, 2):
            width, height = 2 * size * np.sqrt(values[::-1])
            shape = Ellipse(mean, width, height, angle=angle, fc="none", ec=colour, ls=dash, lw=1.6)
            left.add_patch(shape)
        right.plot(x, of_lines(matrix, x), dash, color=colour, label=name)
    for load in LOADS:
        right.axvline(load, color=GREY, lw=0.8, ls=":")
    left.set(xlim=(4.5, 6), ylim=(-1.7, 2.3), xlabel="stretch per load $w$ (cm per kg)")
    left.set_ylabel("zero of the ruler $b$ (cm)")
    left.set_title("1 and 2 standard deviations of $q$", loc="left", fontsize="medium", pad=34)
    right.set(xlim=(0, 10), ylim=(0, 2.5), xlabel="load $x$ (kg); dotted: three readings")
    right.set_ylabel("standard deviation of $w x + b$ (cm)")
    legend_above(right, 2)
    titled(right, "What each says of the stretch")
    return figure


# M14: a Gaussian for the logit of a coin, with the Jacobian and without

HEADS = (4.0, 10.0)  # Beta(4, 10): three heads, nine tails and a uniform prior


def fitted(heads: tuple[float, float] = HEADS) -> tuple[float, float]:
    """Return mean and standard deviation of the best Gaussian for the logit, by quadrature."""
    a, b = heads
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    weights, mu, sigma = weights / weights.sum(), log(a / b), 0.5
    for _ in range(200):
        s = 1 / (1 + np.exp(-(mu + sigma * z)))
        curvature = (a + b) * weights @ (s * (1 - s))
        mu, sigma = mu + (a - (a + b) * weights @ s) / curvature, curvature**-0.5
    return mu, sigma


def logit_density(zeta: Any, heads: tuple[float, float]) -> Any:
    """Return the density of the logit where the probability is Beta: with the Jacobian (M14)."""
    a, b = heads
    constant = lgamma(a + b) - lgamma(a) - lgamma(b)
    return np.exp(constant - a * np.logaddexp(0, -zeta) - b * np.logaddexp(0, zeta))


def jacobian() -> Figure:
    """Draw both densities of the coin's logit, the best Gaussian, and all carried back."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    zeta = np.linspace(-4, 2.2, 301)
    theta = 1 / (1 + np.exp(-zeta))
    mu, sigma = fitted()
    gauss = np.exp(-0.5 * ((zeta - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * pi))
    without = logit_density(zeta, (HEADS[0] - 1, HEADS[1] - 1))
    for density, name, look in (
        (logit_density(zeta, HEADS), "posterior", {"color": BLACK}),
        (gauss, "best Gaussian $q$", {"color": PURPLE, "ls": "--", "lw": 2}),
        (without, "without the Jacobian", {"color": GREY, "ls": ":", "lw": 2}),
    ):
        left.plot(zeta, density, label=name, **look)
        right.plot(theta, density / (theta * (1 - theta)), **look)
    left.set(xlim=(-4, 2.2), ylim=(0, None), xlabel="$\\zeta$, logit of the probability of heads")
    left.set_ylabel("density of $\\zeta$")
    right.set(xlim=(0, 0.8), ylim=(0, None), xlabel="$\\theta$, probability of heads")
    right.set_ylabel("density of $\\theta$")
    left.set_title("where the Gaussian is fitted", loc="left", fontsize="medium")
    right.set_title("carried back", loc="left", fontsize="medium")
    legend_of_figure(figure, left, 3)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "gap": gap,
    "correlated": correlated,
    "jacobian": jacobian,
}

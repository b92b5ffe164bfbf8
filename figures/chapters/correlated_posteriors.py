"""Figures of the chapter "Correlated posteriors, and ADVI"."""

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from scipy.optimize import minimize

from bbb_numpy import BayesianMLPRegressor, plain
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    legend_above,
    legend_of_figure,
)
from chapters.shared import EXCESS, LINE, LOAD, NET, NOISE, RATE, data, ellipse, titled
from chapters.ten_minutes import one_network

# Two clusters of data: a Laplace approximation beside a mean field, after D55


def away_from_0() -> tuple[Any, Any]:
    """Return loads x (62, 1) and excess y (62, 1) of the spring beyond 0.8 kg either way."""
    x, y, _ = data()
    outside = abs(x[:, 0]) > 0.8
    return x[outside], y[outside]


def laplace_band(line: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation (G,) of the functions at `line` (G, 1): linearised."""
    x, y = away_from_0()
    options: Any = {"activation": "tanh", "predict_samples": 1000, "random_state": 0}
    model = BayesianMLPRegressor(inference="laplace", **options).fit(x, y[:, 0])
    prediction = model.predict_distribution(line)
    return prediction.mean, prediction.epistemic


def mean_field_band(line: Any) -> tuple[Any, Any]:
    """Return the same of plain.py's network, trained as in the example on these points."""
    rng = np.random.default_rng(0)
    theta = plain.init(NET, rng, -2)
    theta = plain.fit(NET, theta, *away_from_0(), 1.0, NOISE, RATE, 300, 10, 1, rng)
    mean, epistemic, _ = plain.predict(NET, theta, line, NOISE, 1000, rng)
    return mean[:, 0], epistemic[:, 0]


def gap() -> Figure:
    """Draw both bands, of the functions alone."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    line = np.linspace(-3, 3, 201)
    axes = figure.subplots(1, 2, sharey=True)
    x, y = away_from_0()
    bands = {"Laplace": laplace_band, "Mean field": mean_field_band}
    for ax, (name, band) in zip(axes, bands.items(), strict=True):
        mean, epistemic = band(line[:, None])
        for width, alpha in ((2, 0.2), (1, 0.35)):
            low, high = mean - width * epistemic, mean + width * epistemic
            ax.fill_between(line, low, high, color=BLUE, alpha=alpha, lw=0)
        ax.plot(line, mean, color=BLUE)
        ax.plot(x[:, 0], y[:, 0], ".", color=BLACK, ms=3)
        ax.set(title=name, xlabel=LOAD, xlim=(-3, 3), ylim=(-1.5, 9))
    axes[0].set_ylabel(EXCESS)
    return figure


# M1: a correlated posterior and the mean field beside it


STRETCHES = np.array([11.0, 16.0, 21.5])  # cm
LOADS = np.array([2.0, 3.0, 4.0])  # kg; read off a ruler whose zero is not known, either


def zeroed() -> tuple[Any, Any, Any]:
    """Return mean (2,), covariance (2, 2) and mean-field variances (2,) of w and the zero.

    The spring's prior, N(0, 1 cm^2) for the zero, and three readings.
    """
    rows = np.column_stack([LOADS, np.ones(3)])
    precision = np.diag([1 / 0.5**2, 1.0]) + rows.T @ rows
    covariance = np.linalg.inv(precision)
    mean = covariance @ (np.array([5 / 0.5**2, 0]) + rows.T @ STRETCHES)
    return mean, covariance, 1 / np.diag(precision)  # D8


def of_lines(covariance: Any, loads: Any) -> Any:
    """Return the standard deviation of w x + b at each load."""
    rows = np.column_stack([loads, np.ones(len(loads))])
    return np.sqrt(np.sum(rows @ covariance * rows, axis=1))


def correlated() -> Figure:
    """Draw full rank and mean field over two weights, and their standard deviations of w x + b."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
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
            left_ax.add_patch(shape)
        right_ax.plot(x, of_lines(matrix, x), dash, color=colour, label=name)
    for load in LOADS:
        right_ax.axvline(load, color=GREY, lw=0.8, ls=":")
    left_ax.set(xlim=(4.5, 6), ylim=(-1.7, 2.3), xlabel="stretch per load $w$ (cm per kg)")
    left_ax.set_ylabel("zero of the ruler $b$ (cm)")
    left_ax.set_title("1 and 2 standard deviations of $q$", loc="left", fontsize="medium", pad=34)
    right_ax.set(xlim=(0, 10), ylim=(0, 2.5), xlabel="load $x$ (kg); dotted: three readings")
    right_ax.set_ylabel("standard deviation of $w x + b$ (cm)")
    legend_above(right_ax, 2)
    titled(right_ax, "What each says of the stretch")
    return figure


# M14: a Gaussian for the logit of a coin, with the Jacobian and without

HEADS = (4.0, 10.0)  # Beta(4, 10): three heads, nine tails and a uniform prior


def fitted(heads: tuple[float, float] = HEADS) -> tuple[float, float]:
    """Return mean and standard deviation of the best Gaussian for the logit, by quadrature."""
    a, b = heads
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    mu = log(a / b)
    sigma = 0.5
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
    left_ax, right_ax = figure.subplots(1, 2)
    zeta = np.linspace(-4, 2.2, 301)
    theta = 1 / (1 + np.exp(-zeta))
    mu, sigma = fitted()
    gauss = np.exp(-0.5 * ((zeta - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * pi))
    without = logit_density(zeta, (HEADS[0] - 1, HEADS[1] - 1))
    for density, name, style in (
        (logit_density(zeta, HEADS), "posterior", {"color": BLACK}),
        (gauss, "best Gaussian $q$", {"color": PURPLE, "ls": "--", "lw": 2}),
        (without, "without the Jacobian", {"color": GREY, "ls": ":", "lw": 2}),
    ):
        left_ax.plot(zeta, density, label=name, **style)
        right_ax.plot(theta, density / (theta * (1 - theta)), **style)
    left_ax.set(
        xlim=(-4, 2.2), ylim=(0, None), xlabel="$\\zeta$, logit of the probability of heads"
    )
    left_ax.set_ylabel("density of $\\zeta$")
    right_ax.set(xlim=(0, 0.8), ylim=(0, None), xlabel="$\\theta$, probability of heads")
    right_ax.set_ylabel("density of $\\theta$")
    left_ax.set_title("where the Gaussian is fitted", loc="left", fontsize="medium")
    right_ax.set_title("carried back", loc="left", fontsize="medium")
    legend_of_figure(figure, left_ax, 3)
    return figure


# D56: what three readings of the spring leave of the prior, one row after the other


def row_by_row() -> list[tuple[Any, Any, float]]:
    """Return mean, covariance and the row's log density before it was seen, after 0 to 3 rows."""
    mean = np.array([5.0, 0.0])
    covariance = np.diag([0.5**2, 1.0])
    posteriors = [(mean, covariance, 0.0)]
    for phi, y in zip(np.column_stack([LOADS, np.ones(3)]), STRETCHES, strict=True):
        column = covariance @ phi
        spread, miss = 1 + phi @ column, y - phi @ mean
        mean = mean + column / spread * miss
        covariance = covariance - np.outer(column, column) / spread
        posteriors.append((mean, covariance, -0.5 * (log(2 * pi * spread) + miss**2 / spread)))
    return posteriors


def rows() -> Figure:
    """Draw the Gaussian over both weights after each row, and the standard deviation of a line."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    x = np.linspace(0, 10, 201)
    looks = (ORANGE, ":"), (GREEN, "-."), (BLUE, "--"), (BLACK, "-")
    for n, ((mean, covariance, _), (colour, dash)) in enumerate(
        zip(row_by_row(), looks, strict=True)
    ):
        label = "prior" if n == 0 else f"{n} row{'s' * (n > 1)}"
        left_ax.plot(*(mean[:, None] + ellipse(covariance, 1)), dash, color=colour, lw=1.6)
        right_ax.plot(x, of_lines(covariance, x), dash, color=colour, lw=1.6, label=label)
    left_ax.set(xlim=(4.3, 5.8), ylim=(-1.3, 1.3), xlabel="stretch per load $w$ (cm per kg)")
    left_ax.set_ylabel("zero of the ruler $b$ (cm)")
    left_ax.set_title("1 standard deviation", loc="left", fontsize="medium")
    right_ax.set(xlim=(0, 10), ylim=(0, 5.2), xlabel="load $x$ (kg)")
    right_ax.set_ylabel("standard deviation of $w x + b$ (cm)")
    right_ax.set_title("What is left of the doubt", loc="left", fontsize="medium")
    legend_of_figure(figure, right_ax, 4)
    return figure


# D59: between mean field and full rank, for the last layer of the opening network


def last_layer(line: Any = LINE) -> tuple[Any, Any]:
    """Return features at `line` (G, 21), and the precision (21, 21) of their weights."""
    w = one_network()[None]

    def features(at: Any) -> Any:
        _, tape = plain.forward(NET, w, at)
        return np.column_stack([tape[-1][0][0], np.ones(len(at))])

    phi = features(data()[0])
    return features(line), phi.T @ phi / NOISE**2 + np.eye(phi.shape[1])


def best_low_rank(precision: Any, rank: int) -> tuple[Any, float]:
    """Return covariance and gap in nats of the best D (I + V V^T) D for a Gaussian (D59, D8)."""
    size = len(precision)

    def gap(flat: Any) -> tuple[float, Any]:
        sigma = np.exp(flat[:size])
        v = flat[size:].reshape(size, rank)
        m, scaled = np.eye(rank) + v.T @ v, sigma[:, None] * precision * sigma
        spread = scaled @ v
        variances = np.diag(scaled) + np.sum(spread * v, axis=1)
        value = 0.5 * variances.sum() - flat[:size].sum() - 0.5 * np.linalg.slogdet(m)[1]
        return value, np.concatenate([variances - 1, (spread - v @ np.linalg.inv(m)).ravel()])

    start = np.random.default_rng(0).standard_normal(size * rank)
    start = np.concatenate([-0.5 * np.log(np.diag(precision)), 0.3 * start])
    best = minimize(gap, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    sigma = np.exp(best.x[:size])
    v = best.x[size:].reshape(size, rank)
    covariance = sigma[:, None] * (np.eye(size) + v @ v.T) * sigma
    return covariance, float(best.fun - 0.5 * np.linalg.slogdet(precision)[1] - size / 2)


RANKS = (0, 1, 2, 3, 4, 6, 8, 12, 16)


def low_rank() -> Figure:
    """Draw the standard deviation of functions for three ranks, and the gap for more."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    phi, precision = last_layer()
    fit_by_rank = {rank: best_low_rank(precision, rank) for rank in RANKS}
    curves = [(fit_by_rank[rank][0], f"rank {rank}", style) for rank, style in
             ((8, (PURPLE, "-.")), (2, (GREEN, ":")))]  # fmt: skip
    curves = [(np.linalg.inv(precision), "exact", (BLACK, "-")), *curves]
    curves.append((fit_by_rank[0][0], "mean field", (BLUE, "--")))
    for covariance, name, (colour, dash) in curves:
        deviation = np.sqrt(np.sum(phi @ covariance * phi, axis=1))
        left_ax.plot(LINE[:, 0], deviation, dash, color=colour, lw=1.6, label=name)
    left_ax.axvspan(-2, 2, color=GREY, alpha=0.15, lw=0)
    left_ax.set(xlim=(-6, 6), ylim=(0, None), xlabel=f"{LOAD}; shaded: the data")
    left_ax.set_ylabel("standard deviation of $f(x)$ (mm)")
    right_ax.plot(
        RANKS,
        [fit_by_rank[rank][1] for rank in RANKS],
        "o-",
        color=PURPLE,
        ms=5,
        label="best $q$ of each rank",
    )
    right_ax.axhline(0, color=BLACK, lw=1, label="exact")
    right_ax.set(
        xlim=(-0.3, 16.3),
        xticks=range(0, 17, 4),
        xlabel="rank $r$",
        ylabel="gap to the log evidence (nats)",
    )
    for ax, title in ((left_ax, "Last layer of the opening network"), (right_ax, "21 weights")):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "gap": gap,
    "correlated": correlated,
    "jacobian": jacobian,
    "rows": rows,
    "low-rank": low_rank,
}

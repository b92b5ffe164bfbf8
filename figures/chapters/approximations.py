"""Figures of the chapter "Deep ensembles, dropout and SWAG"."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import MLP, Adam, GaussianLikelihood, GaussianPrior, Model, sample
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.objectives import MAP
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILLION,
    legend_above,
    plain_numbers,
)
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.ensembles import ensemble_starts
from bbb_numpy.training.optimizers import SGD, Cosine
from bbb_numpy.training.state import Training
from bbb_numpy.training.swag import swag
from bbb_studies.dropout import Dropout
from chapters.shared import LINE, LOAD, NET, NOISE, ellipse, titled

BATCH = 20
TRAINING = Recipe(Adam(1e-2, schedule=Cosine()), epochs=500, batch_size=BATCH)
MEMBERS = 20
SEED = 1  # of the ensembles
SD = "standard deviation of $f$ (mm)"


# The spring as a line in the features x and x^2, whose posterior is Gaussian (D8)


def features(load: Any) -> Any:
    """Return the inputs (N, 2) of the linear model at loads (N, 1) in kg."""
    return np.hstack([load, load**2])


@cache
def spring_rows(n_rows: int) -> tuple[Any, Any]:
    """Return loads in kg and excess in mm, (n_rows, 1), of the spring of plain.py."""
    rng = np.random.default_rng(0)
    load = rng.uniform(-2, 2, (n_rows, 1))
    return load, load**2 + NOISE * rng.standard_normal((n_rows, 1))


def design(load: Any) -> Any:
    """Return the features and a column of ones, for weights [W; b]."""
    return np.hstack([features(load), np.ones((len(load), 1))])


def linear_posterior(n_rows: int) -> tuple[Any, Any]:
    """Return mean (3,) and covariance (3, 3) of the linear model's weights (D8)."""
    load, y = spring_rows(n_rows)
    rows = design(load)
    precision = rows.T @ rows / NOISE**2 + np.eye(3)
    covariance = np.linalg.inv(precision)
    return covariance @ (rows.T @ y)[:, 0] / NOISE**2, covariance


def model(linear: bool) -> Model:
    """Return the linear model of the spring, or the network of plain.py."""
    network = MLP((2, 1)) if linear else MLP(NET)
    return Model(network, GaussianPrior(1.0), GaussianLikelihood(NOISE))


def inputs(linear: bool, load: Any) -> Any:
    """Return what the linear model or the network reads at loads (N, 1)."""
    return features(load) if linear else load


def functions(linear: bool, weights: Any, load: Any) -> Any:
    """Return f (S, N) of weight vectors (S, P) at loads (N, 1)."""
    rows = inputs(linear, load)
    return model(linear).predict(np.ascontiguousarray(weights), rows)[:, :, 0].copy()


@cache
def members(linear: bool, anchored: bool, n_rows: int = 100) -> Any:
    """Return weights (20, P) of a deep ensemble."""
    load, y = spring_rows(n_rows)
    rows = inputs(linear, load)
    options: Any = {"recipe": TRAINING, "progress": False, "seed": SEED}
    return ensemble_starts(model(linear), rows, y, MEMBERS, anchored=anchored, **options)


@cache
def network_draws() -> Any:
    """Return draws (1600, P) from the posterior of the network by HMC."""
    load, y = spring_rows(100)
    options: Any = {"chains": 8, "draws": 200, "warm_up": 400, "seed": 0, "progress": False}
    return sample(model(False), load, y, start=members(False, True)[:8], **options).flat


@cache
def dropout_draws(linear: bool, rate: float, n_rows: int = 100, draws: int = 2000) -> Any:
    """Return weights (2000, P) of MC dropout: of inputs of the line, of hidden units else."""
    load, y = spring_rows(n_rows)
    rates = (rate,) if linear else (0.0, rate)
    estimator = Dropout(model(linear), PointMass(0.3), MAP(), rates)
    rng = np.random.default_rng(0)
    theta = trained(estimator, inputs(linear, load), y, rng).theta
    return estimator.weights(theta, estimator.draw_weights(rng, draws))


def trained(estimator: Any, rows: Any, y: Any, rng: Any) -> Training:
    """Return the state of training after the recipe of all methods."""
    init = start(estimator, rng, TRAINING.optimizer, "float64")
    return fit(estimator, init, rows, y, TRAINING, rng=rng, progress=False)


@cache
def swag_draws(linear: bool, rate: float, n_rows: int = 100, draws: int = 2000) -> Any:
    """Return weights (2000, P) of SWAG: 30 snapshots, 10 epochs of SGD apart."""
    load, y = spring_rows(n_rows)
    rows = inputs(linear, load)
    point = Reparameterised(model(linear), PointMass(0.3), MAP())
    rng = np.random.default_rng(0)
    state = trained(point, rows, y, rng)
    rule = SGD(rate / BATCH)  # of the mean cost of a row; the package adds up rows
    state = Training(state.theta, rule.init(state.theta))
    snapshots = []
    for _ in range(30):
        state = fit(point, state, rows, y, Recipe(rule, 10, BATCH), rng=rng, progress=False)
        snapshots.append(state.theta)
    posterior, theta = swag(np.array(snapshots))
    estimator = Reparameterised(point.model, posterior)
    return estimator.weights(theta, estimator.draw_weights(rng, draws))


def spread(linear: bool, weights: Any, load: Any) -> Any:
    """Return the standard deviation (N,) of f at loads (N, 1)."""
    return functions(linear, weights, load).std(axis=0, ddof=1)


def exact_spread(n_rows: int, load: Any) -> Any:
    """Return the standard deviation (N,) of f under the linear model's posterior."""
    rows = design(load)
    return np.sqrt(np.einsum("ni,ij,nj->n", rows, linear_posterior(n_rows)[1], rows))


def ensembles() -> Figure:
    """Draw members of both kinds in the plane of two weights, and the spread of their functions."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    mean, covariance = linear_posterior(100)
    exact = ellipse(covariance[:2, :2], 2.0)
    left_ax.plot(*(mean[:2, None] + exact), color=BLACK, label="posterior, 2 sd")
    for anchored, mark, colour in ((True, "o", GREEN), (False, "x", VERMILLION)):
        w = members(True, anchored)
        name = "anchored members" if anchored else "plain members"
        left_ax.plot(w[:, 0], w[:, 1], mark, color=colour, ms=4 + 4 * (not anchored), label=name)
    left_ax.set(xlabel="weight of the load $x$ (mm per kg)")
    left_ax.set_ylabel("weight of $x^2$ (mm per kg$^2$)")
    legend_above(left_ax, 3)
    titled(left_ax, "A line in $x$ and $x^2$: 20 members of each kind")
    for weights, style, name in (
        (network_draws(), {"color": BLACK, "lw": 2.2}, "HMC"),
        (members(False, True), {"color": GREEN, "ls": "-."}, "anchored ensemble"),
        (members(False, False), {"color": VERMILLION, "ls": "--"}, "plain ensemble"),
    ):
        right_ax.plot(LINE, spread(False, weights, LINE), **style, label=name)
    right_ax.set(xlabel=LOAD, ylabel=SD, yscale="log", xlim=(-6, 6), ylim=(0.001, 5))
    plain_numbers(right_ax.yaxis)
    legend_above(right_ax, 3)
    titled(right_ax, "A network with 20 hidden units")
    return figure


RATES = ((0.1, VERMILLION, "--"), (0.02, ORANGE, "-."))  # shares that are left out


def dropout_fit(n_rows: int, rate: float) -> Any:
    """Return the weights (3,) of the line that dropout of x and x^2 ends at (D79)."""
    load, y = spring_rows(n_rows)
    rows = design(load)
    gram = rows.T @ rows
    masked = np.diag(np.diag(gram) * [1, 1, 0])  # the bias is never left out
    penalty = rate / (1 - rate) * masked + NOISE**2 * np.eye(3)
    return np.linalg.solve(gram + penalty, rows.T @ y)[:, 0]


def dropout_spread(n_rows: int, rate: float, load: Any) -> Any:
    """Return the standard deviation (N,) of f that dropout of x and x^2 believes in (D79)."""
    terms = features(load) * dropout_fit(n_rows, rate)[:2]
    return np.sqrt(rate / (1 - rate) * np.sum(terms**2, axis=1))


def dropout() -> Figure:
    """Draw the standard deviation at 2 kg against the rows, and that of networks by load."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2, sharey=True)
    sizes = np.array([10, 30, 100, 300, 1000, 3000, 10_000])
    at = np.array([[2.0]])
    exact = [exact_spread(n, at)[0] for n in sizes]
    left_ax.plot(sizes, exact, "-o", color=BLACK, ms=4, label="posterior")
    right_ax.plot(LINE, spread(False, network_draws(), LINE), color=BLACK, lw=2.2, label="HMC")
    for rate, colour, dash in RATES:
        style = {"color": colour, "ls": dash}
        label = f"dropout, p = {rate:g}"
        believed = [dropout_spread(n, rate, at)[0] for n in sizes]
        left_ax.plot(sizes, believed, **style, label=label)
        w = dropout_draws(False, rate)
        right_ax.plot(LINE, spread(False, w, LINE), **style, label=label)
    left_ax.set(xscale="log", yscale="log", xlabel="rows $N$", ylabel=SD, ylim=(0.003, 5))
    right_ax.set(xlabel=LOAD, xlim=(-6, 6))
    for ax, title in (
        (left_ax, "At 2 kg, a line in $x$ and $x^2$"),
        (right_ax, "A network, 100 rows"),
    ):
        plain_numbers(ax.yaxis)
        legend_above(ax, 3)
        titled(ax, title)
    return figure


CURVATURES = np.array([20.0, 2000.0])  # of the cost of all rows in the picture's two directions
ROWS = 100
STEP = 0.04


def sgd_path(curvatures: Any, step: Any, batch: int, steps: int, seed: int = 0) -> Any:
    """Return the path (steps, P) of SGD on a parabola, whose rows have independent gradients.

    `step` is the learning rate in each direction.
    """
    rng = np.random.default_rng(seed)
    slopes = curvatures / ROWS
    w = np.zeros(len(curvatures))
    path = np.empty((steps, len(w)))
    noise = np.sqrt(slopes / batch) * rng.standard_normal((steps, len(w)))
    for t in range(steps):
        w = w - step * (slopes * w + noise[t])
        path[t] = w
    return path


def sgd_variance(curvatures: Any, step: Any, batch: int) -> Any:
    """Return the stationary variance of SGD in directions of these curvatures (D80)."""
    return step / batch / (2 - step * np.asarray(curvatures) / ROWS)


def sgd_law() -> Figure:
    """Draw SGD's cloud beside the posterior, and its variance by curvature."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    batch = 10
    scaled = 2 * batch / (ROWS + batch) * ROWS / CURVATURES
    for step, colour, mark, name in (
        (scaled, GREEN, "o", "SGD in units of the curvature"),
        (STEP, VERMILLION, "x", "SGD"),
    ):
        path = sgd_path(CURVATURES, step, batch, 40_000)[::200]
        left_ax.plot(path[:, 0], path[:, 1], mark, color=colour, ms=3, label=name)
    posterior = ellipse(np.diag(1 / CURVATURES), 2.0)
    left_ax.plot(*posterior, color=BLACK, label="posterior, 2 sd")
    left_ax.set(xlabel="flat direction (units of the weight)")
    left_ax.set(ylabel="steep direction (same units)", ylim=(-0.3, 0.3))
    legend_above(left_ax, 3)
    titled(left_ax, "200 snapshots")
    curvatures = np.geomspace(5, 4000, 200)
    dots = np.geomspace(20, 3000, 6)
    for step, size, colour, dash in ((0.04, 10, VERMILLION, "--"), (0.01, 10, BLUE, "-")):
        ratio = curvatures * sgd_variance(curvatures, step, size)
        label = f"$\\eta$ = {step:g}, $B$ = {size}"
        right_ax.plot(curvatures, ratio, dash, color=colour, label=label)
        drawn = sgd_path(dots, step, size, 40_000)[2000:].var(axis=0)
        right_ax.plot(dots, dots * drawn, "o", color=colour, ms=4)
    right_ax.axhline(1, color=BLACK, lw=1, ls=":")
    right_ax.set(xscale="log", yscale="log", xlim=(5, 4000))
    right_ax.set_xlabel("curvature $a$ of the cost of all rows (1 / weight$^2$)")
    right_ax.set_ylabel("variance of SGD / of the posterior")
    plain_numbers(right_ax.xaxis)
    plain_numbers(right_ax.yaxis)
    legend_above(right_ax, 2)
    titled(right_ax, "Right for one curvature alone")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "ensembles": ensembles,
    "dropout": dropout,
    "sgd-law": sgd_law,
}

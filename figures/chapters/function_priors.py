"""Figures of the chapter "What a prior on weights means for functions"."""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import MLP, LayerwiseGaussianPrior, Model
from bbb_numpy.evaluation.function_space import excess_kurtosis, gp_kernel
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    legend_above,
    plain_numbers,
)
from chapters.shared import titled

PRIOR_INPUTS = np.linspace(-3, 3, 121)[:, None]
GAINS = {"relu": 2.0, "tanh": 1.0}  # H s^2: ReLU then keeps the size from layer to layer


def prior_model(width: int, depth: int, activation: str = "relu", first: float = 1.0) -> Model:
    """Return a network of `depth` hidden layers whose functions keep their size (D81)."""
    later = (GAINS[activation] / width) ** 0.5
    prior = LayerwiseGaussianPrior((first, *(later,) * depth))
    return Model(MLP((1, *(width,) * depth, 1), activation), prior)


def drawn_from(model: Model, n_draws: int, seed: int = 0) -> Any:
    """Return functions (n_draws, G) of a model at `PRIOR_INPUTS`, drawn from its prior."""
    rng = np.random.default_rng(seed)
    w = model.prior.draw(rng, {}, (n_draws, model.layout.size))
    return model.predict(w, PRIOR_INPUTS)[:, :, 0].copy()


def drawn_from_limit(model: Model, n_draws: int, seed: int = 0) -> Any:
    """Return functions (n_draws, G) of the Gaussian process of a model at `PRIOR_INPUTS`."""
    kernel = gp_kernel(model, PRIOR_INPUTS)
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(np.maximum(values, 0))
    return np.random.default_rng(seed).standard_normal((n_draws, len(kernel))) @ root.T


PANELS: tuple[tuple[str, Any], ...] = (
    ("ReLU, 3 units", lambda: drawn_from(prior_model(3, 1), 6)),
    ("ReLU, 300 units", lambda: drawn_from(prior_model(300, 1), 6)),
    ("ReLU, the limit", lambda: drawn_from_limit(prior_model(300, 1), 6)),
    ("tanh, 300 units, $s_0 = 1$", lambda: drawn_from(prior_model(300, 1, "tanh"), 6)),
    ("tanh, 300 units, $s_0 = 5$", lambda: drawn_from(prior_model(300, 1, "tanh", 5.0), 6)),
    ("ReLU, 20 layers of 300", lambda: drawn_from(prior_model(300, 20), 6)),
)


def prior_draws() -> Figure:
    """Draw functions from six priors."""
    figure = Figure(figsize=(9.6, 5.6), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True)
    for ax, (title, draw) in zip(axes.flat, PANELS, strict=True):
        for f, dash in zip(draw(), ("-", "--", "-.", ":", "-", "--"), strict=True):
            ax.plot(PRIOR_INPUTS, f, dash, color=ORANGE, lw=1.3)
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set(xlim=(-3, 3), ylabel="f(x) (dimensionless)")
    for ax in axes[1]:
        ax.set_xlabel("x (dimensionless)")
    return figure


# How fast: the kurtosis of f(x), and the covariance


def kurtosis(width: int, depth: int, x: float = 1.0) -> float:
    """Return E f^4 / (E f^2)^2 - 3 of a ReLU network at x (D82)."""
    return float(excess_kurtosis(prior_model(width, depth), [[x]])[0])


def layer_by_layer(model: Model, x: Sequence[float], n_draws: int, seed: int = 0) -> Any:
    """Return f (n_draws, len(x)) of ReLU networks, drawn without a weight (D81).

    Given the layer before, units are independent with a covariance that their sums of products
    decide.
    """
    rng = np.random.default_rng(seed)
    rows = np.array(x)[:, None]
    scales: Any = model.prior.scales  # type: ignore[attr-defined]
    gram = np.broadcast_to(rows @ rows.T, (n_draws, len(x), len(x)))
    for s, n_units in zip(scales, model.network.sizes[1:], strict=True):
        covariance = s**2 * (gram + 1)
        jitter = 1e-9 * np.trace(covariance, axis1=1, axis2=2)[:, None, None] * np.eye(len(x))
        root = np.linalg.cholesky(covariance + jitter)
        z = root @ rng.standard_normal((n_draws, len(x), n_units))
        a = np.maximum(z, 0)
        gram = a @ a.swapaxes(1, 2)
    return z[:, :, 0]


N_DRAWS = 15_000


def gp_limit() -> Figure:
    """Draw the covariance with f(1), and the excess kurtosis by width."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    places = (-3.0, -2.0, -1.0, 0.0, 2.0, 3.0)
    for depth, colour, dash in ((1, BLUE, "-"), (3, GREEN, "--"), (10, VERMILLION, "-.")):
        model = prior_model(100, depth)
        kernel = gp_kernel(model, PRIOR_INPUTS, [[1.0]])[:, 0]
        layers = "1 hidden layer" if depth == 1 else f"{depth} layers"
        left_ax.plot(PRIOR_INPUTS, kernel, dash, color=colour, label=layers)
        f = layer_by_layer(model, (*places, 1.0), N_DRAWS)
        left_ax.plot(places, f[:, :-1].T @ f[:, -1] / len(f), "o", color=colour, ms=4)
    left_ax.set(xlabel="x (dimensionless)", ylabel="covariance of f(x) and f(1)", xlim=(-3, 3))
    legend_above(left_ax, 3)
    titled(left_ax, "The limit, and networks of width 100")
    widths = np.array([5, 10, 30, 100, 300, 1000])
    for depth, colour, dash in ((1, BLUE, "-"), (3, GREEN, "--"), (10, VERMILLION, "-.")):
        excess = [kurtosis(n, depth) for n in widths]
        layers = "1 hidden layer" if depth == 1 else f"{depth} layers"
        right_ax.plot(widths, excess, dash, color=colour, label=layers)
        for n in (5, 10, 30, 100):
            if excess[list(widths).index(n)] < 2:
                f = layer_by_layer(prior_model(n, depth), (1.0,), 100_000)[:, 0]
                drawn = np.mean(f**4) / np.mean(f**2) ** 2 - 3
                right_ax.plot(n, drawn, "o", color=colour, ms=4)
    right_ax.set(xscale="log", yscale="log", xlabel="units of a hidden layer, $H$")
    right_ax.set_ylabel("excess kurtosis of f(1)")
    plain_numbers(right_ax.xaxis)
    plain_numbers(right_ax.yaxis)
    legend_above(right_ax, 3)
    titled(right_ax, "From heavy tails to a Gaussian")
    return figure


# What depth does to the correlation of two inputs


def relu_step(c: Any) -> Any:
    """Return the correlation after a ReLU layer without biases (D83)."""
    angle = np.arccos(np.clip(c, -1, 1))
    return (np.sin(angle) + (pi - angle) * np.cos(angle)) / pi


def tanh_correlations(gain: float, c: float, n_layers: int) -> Any:
    """Return correlations (n_layers + 1,) of two inputs of equal size after tanh layers.

    Without biases: variances of pre-activations go from v to gain E tanh(z)^2.
    """
    u = np.linspace(-8, 8, 161)
    p = np.exp(-u * u / 2)
    p /= p.sum()
    v = gain * 0.4
    found = [c]
    for _ in range(n_layers):
        z = np.tanh(v**0.5 * u)
        rest = np.tanh(v**0.5 * (c * u[:, None] + max(1 - c * c, 0.0) ** 0.5 * u))
        square = (p @ z**2).item()
        c = min(((p * z) @ rest @ p).item() / square, 1.0)
        v = gain * square
        found.append(c)
    return np.array(found)


def depths() -> Figure:
    """Draw the correlation of f at two inputs against the number of layers."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    layers = np.arange(1, 101)
    for start, colour, dash in ((-0.9, BLUE, "-"), (0.0, GREEN, "--"), (0.9, VERMILLION, "-.")):
        c = start
        apart = []
        for _ in layers:
            c = float(relu_step(c))
            apart.append(1 - c)
        left_ax.plot(layers, apart, dash, color=colour, label=f"from {start:g}")
    left_ax.plot(layers, 9 * pi**2 / (2 * layers**2), ":", color=BLACK, label="$9 \\pi^2 / 2 l^2$")
    left_ax.set(xscale="log", yscale="log", xlim=(1, 100), ylim=(0.002, 3))
    left_ax.set(xlabel="hidden layers $l$", ylabel="1 - correlation of f(x) and f(x')")
    plain_numbers(left_ax.xaxis)
    plain_numbers(left_ax.yaxis)
    legend_above(left_ax, 4)
    titled(left_ax, "ReLU: all inputs become one")
    for gain, colour, dash in ((1.0, BLUE, "-"), (2.0, GREY, "--"), (4.0, VERMILLION, "-.")):
        found = tanh_correlations(gain, 0.9, 30)
        right_ax.plot(found, dash, color=colour, label=f"$H s^2 = {gain:g}$")
    right_ax.set(xlim=(0, 30), ylim=(-0.05, 1.05), xlabel="hidden layers $l$")
    right_ax.set_ylabel("correlation of f(x) and f(x')")
    legend_above(right_ax, 3)
    titled(right_ax, "tanh: by the scale of the weights")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "prior-draws": prior_draws,
    "gp-limit": gp_limit,
    "depths": depths,
}

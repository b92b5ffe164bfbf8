"""Figures of the chapter "Priors"."""

from collections.abc import Callable
from itertools import pairwise
from math import log, pi
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ndtr

from bbb_numpy import plain
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.priors import GaussianPrior, LaplacePrior
from bbb_numpy.parts.student_t import StudentTPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    legend_above,
    legend_of_figure,
    plain_numbers,
)
from chapters.shared import gaussian, thetas, titled

# R4, R5, D16, D42: what a weight pays under each prior

PRIORS: tuple[tuple[str, Any, str, str], ...] = (  # each of standard deviation 1
    ("Gaussian", GaussianPrior(1.0), BLACK, "-"),
    ("Laplace", LaplacePrior(0.5**0.5), BLUE, "--"),
    ("Student t, 4 degrees", StudentTPrior(0.5**0.5, df=4.0), GREEN, "-."),
    ("mixture, $\\sigma_1 / \\sigma_2 = 5$",
     ScaleMixturePrior(0.25, 5 / 7**0.5, 1 / 7**0.5), VERMILLION, ":"),
)  # fmt: skip


def density_and_slope(prior: Any, w: Any) -> tuple[Any, Any]:
    """Return log P(w) of single weights w (G,), and its slope for them."""
    rows = w[:, None]
    d_w = np.zeros((len(w), 1))
    value, saved = prior.log_density({}, rows, Buffers())
    value = value.copy()
    prior.add_vjp(saved, np.ones(len(w)), d_w, {})
    return value, d_w[:, 0]


def priors() -> Figure:
    """Draw what each prior asks of a weight of each size, and how hard it pulls to 0."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w = np.linspace(-4, 4, 802)  # without 0, where Laplace's slope jumps
    for name, prior, colour, dash in PRIORS:
        value, slope_of_w = density_and_slope(prior, w)
        style = {"color": colour, "ls": dash, "lw": 1.8}
        left_ax.plot(w, -value, **style, label=name)
        right_ax.plot(w[w > 0], -slope_of_w[w > 0], **style)
    left_ax.set(xlim=(-4, 4), ylim=(-1, 9), ylabel="price $-\\log P(w)$ (nats)")
    left_ax.set_xlabel("weight, in standard deviations of the prior")
    left_ax.set_title("What a weight costs", loc="left", fontsize="medium")
    right_ax.set(xlim=(0, 4), ylim=(0, 4.2), ylabel="slope of the price")
    right_ax.set_xlabel("weight, in standard deviations of the prior")
    right_ax.set_title("How hard it is pulled to 0", loc="left", fontsize="medium")
    legend_of_figure(figure, left_ax, 4)
    return figure


# R4, R5: the mixture as printed and computed, and the precision that holds a weight

KRASSER = (0.2, 1.0, 0.1)  # share and standard deviations that the post starts from


def printed_mixture(w: Any) -> Any:
    """Return log P(w) of single weights as the post's program computes it, -inf beyond 39."""
    share, wide, narrow = KRASSER
    n = [np.exp(-0.5 * (w / s) ** 2) / (s * np.sqrt(2 * pi)) for s in (wide, narrow)]
    with np.errstate(divide="ignore"):
        return np.log(share * n[0] + (1 - share) * n[1])


def mixture() -> Figure:
    """Draw the log density in two ways, and slope over weight."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w = np.linspace(0.05, 60, 1200)
    printed = printed_mixture(w)
    finite = np.isfinite(printed)
    left_ax.plot(w[finite], printed[finite], color=VERMILLION, lw=4, alpha=0.5, label="as printed")
    left_ax.plot(w, density_and_slope(ScaleMixturePrior(*KRASSER), w)[0], color=BLACK, label="R4")
    left_ax.axvspan(w[~finite][0], 60, color="#E6E6E6", label="as printed: $-\\infty$")
    left_ax.set(xlim=(0, 60), ylim=(-1900, 60), xlabel="size of a weight (no unit)")
    left_ax.set_ylabel("log density (nats)")
    legend_above(left_ax, 3)
    titled(left_ax, "The logarithm of the mixture")
    w = np.geomspace(0.02, 3, 300)
    _, slope_of_w = density_and_slope(ScaleMixturePrior(*KRASSER), w)
    right_ax.plot(w, -slope_of_w / w, color=BLUE, label="slope over weight (R5)")
    for precision, name in ((100, "$1 / \\sigma_2^2$"), (1, "$1 / \\sigma_1^2$")):
        right_ax.axhline(precision, color=GREY, lw=1, ls=":")
        right_ax.annotate(name, (2.5, precision), xytext=(0, -4), textcoords="offset points",
                       ha="right", va="top")  # fmt: skip
    right_ax.axvline((2 * log(40) / 99) ** 0.5, color=BLACK, lw=0.8, ls="-.", label="$|w| = 0.27$")
    right_ax.set(xscale="log", yscale="log", xlim=(0.02, 3), ylim=(0.5, 130))
    right_ax.set_xlabel("size of a weight (no unit)")
    right_ax.set_ylabel("precision that holds the weight")
    plain_numbers(right_ax.xaxis)
    plain_numbers(right_ax.yaxis)
    legend_above(right_ax, 2)
    titled(right_ax, "Small weights are held, large ones let go")
    return figure


# D39: the size of functions by the width of the network

ONE_SCALE = 0.5


def prior_functions(width: int, layerwise: bool, line: Any, draws: int, seed: int = 0) -> Any:
    """Return functions (draws, G) of a network 1-width-width-1 that the prior draws."""
    net = (1, width, width, 1)
    rng = np.random.default_rng(seed)
    scales = (1.0, width**-0.5, width**-0.5) if layerwise else (ONE_SCALE,) * 3
    sizes = [(d_in + 1) * d_out for d_in, d_out in pairwise(net)]
    spread = np.repeat(scales, sizes)
    outputs = [plain.forward(net, (spread * rng.standard_normal(len(spread)))[None], line)[0]
             for _ in range(draws)]  # fmt: skip
    return np.array(outputs)[:, 0, :, 0]


def function_size(width: Any, layerwise: bool, x: float = 1.0) -> Any:
    """Return the standard deviation of f(x) under the prior: the recursion of D39."""
    width = np.asarray(width, float)
    first, later = (1.0, width**-0.5) if layerwise else (ONE_SCALE, ONE_SCALE)
    v = first**2 * (x**2 + 1)
    for _ in range(2):
        v = later**2 * (width * v / 2 + 1)
    return v**0.5


def widths() -> Figure:
    """Draw functions of narrow and wide networks under both priors, and their size by width."""
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    *draws, last = figure.subplots(1, 3)
    line = np.linspace(-2, 2, 81)[:, None]
    sizes = np.array([5, 10, 20, 50, 100, 200])
    titles = ("One scale for all", "A scale for each layer")
    for ax, layerwise, title in zip(draws, (False, True), titles, strict=True):
        for width, style in (
            (200, {"color": BLUE, "lw": 1}),
            (10, {"color": VERMILLION, "ls": "--"}),
        ):
            for number, f in enumerate(prior_functions(width, layerwise, line, 4)):
                ax.plot(line[:, 0], f, **style, label=None if number else f"{width} hidden units")
        ax.set(ylim=(-60, 60) if not layerwise else (-3, 3), xlabel="x (dimensionless)")
        ax.set_ylabel("y (dimensionless)")
        legend_above(ax, 2)
        titled(ax, title)
    for layerwise, style, title in (
        (False, {"color": BLACK, "ls": "-"}, titles[0]),
        (True, {"color": GREEN, "ls": "--"}, titles[1]),
    ):  # fmt: skip
        last.plot(sizes, function_size(sizes, layerwise), **style, label=f"{title.lower()}: D39")
        drawn = [prior_functions(n, layerwise, np.ones((1, 1)), 2000).std() for n in sizes]
        last.plot(sizes, drawn, "o", color=style["color"], ms=4,
                  label="2,000 draws" if not layerwise else None)  # fmt: skip
    last.set(xscale="log", yscale="log", xlabel="hidden units of each layer")
    last.set_ylabel("standard deviation of f(1)")
    plain_numbers(last.xaxis, "25")
    plain_numbers(last.yaxis, "25")
    legend_above(last, 1)
    return figure


# D17: a learned scale settles where the weights are, and a point estimate falls through

SPREADS = (
    ("$\\mu = 0$, one $\\sigma$", (0.0, 0.0), (0.1, 0.1)),
    ("$\\mu = 0$, two $\\sigma$", (0.0, 0.0), (0.05, 0.2)),
    ("$\\mu = \\pm 0.3$", (0.3, -0.3), (0.1, 0.1)),
)


def price_of_scale(mu: Any, sigma: Any, scale: Any) -> Any:
    """Return the complexity cost per weight (G,) in nats under priors of these scales (D18)."""
    mu = np.array(mu)
    sigma = np.array(sigma)
    scale = np.asarray(scale)[:, None]
    terms = np.log(scale / sigma) + (mu**2 + sigma**2) / (2 * scale**2) - 0.5
    return terms.mean(axis=1)


def learned_scale() -> Figure:
    """Draw the complexity cost, and the cost of a point, against the scale of the prior."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    scale = np.geomspace(0.01, 2, 300)
    looks = ((BLUE, "-"), (VERMILLION, "--"), (BLACK, "-."))
    for (name, mu, sigma), (colour, dash) in zip(SPREADS, looks, strict=True):
        left_ax.plot(scale, price_of_scale(mu, sigma, scale), dash, color=colour, label=name)
        best = np.sqrt(np.mean(np.square(mu) + np.square(sigma)))[None]
        left_ax.plot(best, price_of_scale(mu, sigma, best), "o", color=colour)
    left_ax.axhline(0, color=GREY, lw=0.8)
    left_ax.set(ylim=(-0.3, 4), ylabel="complexity cost (nats per weight)")
    legend_above(left_ax, 3)
    titled(left_ax, "Under $q$: never below 0")
    for w, name, dash in ((0.3, "$\\pm 0.3$", "-."), (0.0, "$0$", "-")):
        cost = np.log(scale) + 0.5 * log(2 * pi) + w**2 / (2 * scale**2)
        right_ax.plot(scale, cost, dash, color=BLACK, label=f"all weights {name}")
    right_ax.set(ylim=(-4, 4), ylabel="$-\\log P(w)$ (nats per weight)")
    legend_above(right_ax, 2)
    titled(right_ax, "At a point: no minimum at $w = 0$")
    for ax in (left_ax, right_ax):
        ax.set(xscale="log", xlim=(0.01, 2), xlabel="standard deviation of the prior (no unit)")
        plain_numbers(ax.xaxis)
    return figure


# D16: where the best estimate of the spring is, if its catalogue is a Laplace distribution

SCALE = 0.5 / 2**0.5  # of standard deviation 0.5, as the catalogue's


def mean_size(mu: Any, sigma: float) -> Any:
    """Return E|w| for w ~ N(mu, sigma^2), sigma 0 or more (D16)."""
    if not sigma:
        return abs(mu)
    z = mu / sigma
    return mu * (2 * ndtr(z) - 1) + 2 * sigma * gaussian(z, 0, 1)


def below_zero(slope: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Return where rising slopes cross 0 between low and high, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        up = slope(middle) < 0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return (low + high) / 2


def after_laplace(reading: Any) -> tuple[Any, Any]:
    """Return MAP, and the mean of the best Gaussian q, of the spring after readings (G,) in cm.

    Both are of w - 5, with the prior of `SCALE`. q's mean and standard deviation take turns.
    """
    moved, threshold = reading / 2 - 5, 1 / (4 * SCALE)
    top = np.sign(moved) * np.maximum(abs(moved) - threshold, 0)
    mu = moved / 2
    sigma = np.full(len(moved), 0.3)
    bounds = np.full(len(moved), 3.0)
    for _ in range(40):
        mu = below_zero(lambda m, s=sigma: (2 * ndtr(m / s) - 1) / SCALE + 4 * (m - moved),
                        -bounds, bounds)  # fmt: skip
        sigma = below_zero(lambda s, m=mu: 2 * gaussian(m / s, 0, 1) / SCALE + 4 * s - 1 / s,
                           bounds * 1e-3, bounds)  # fmt: skip
    return top, mu


def no_zeros() -> Figure:
    """Draw the price of a mean under q, and the estimates against the reading."""
    figure = Figure(figsize=(8.4, 3.5), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    mu = np.linspace(-1.5, 1.5, 301)
    for sigma, colour, dash in ((0.0, GREY, ":"), (0.2, BLUE, "--"), (0.5, BLACK, "-")):
        left_ax.plot(
            mu, mean_size(mu, sigma), dash, color=colour, lw=1.8, label=f"$\\sigma$ = {sigma:g}"
        )
    left_ax.set(xlim=(-1.5, 1.5), ylim=(0, 1.6), xlabel="mean $\\mu$ of $q$ (cm per kg)")
    left_ax.set_ylabel("$E_q|w|$ (cm per kg)")
    legend_above(left_ax, 3)
    titled(left_ax, "Under $q$ the kink is round")
    reading = np.linspace(7, 13, 121)
    top, mean = after_laplace(reading)
    right_ax.plot(reading, reading / 2, ":", color=BLACK, label="least squares")
    right_ax.plot(reading, 5 + top, "--", color=GREY, lw=1.8, label="most probable (MAP)")
    right_ax.plot(reading, 5 + mean, color=BLUE, label="mean of $q$")
    right_ax.set(xlim=(7, 13), xlabel="reading at 2 kg (cm)", ylabel="estimate of $w$ (cm per kg)")
    legend_above(right_ax, 3)
    titled(right_ax, "A spring whose catalogue is Laplace's, around 5")
    return figure


# R8: three numbers learned as the post does, and so that they cannot leave their domain

CLIMB = 0.008  # learning rate


def climbed(free: bool, w: Any, steps: int = 60) -> Any:
    """Return share and both standard deviations (steps + 1, 3) while log P(w) is climbed.

    Either `free`, the numbers themselves, by R6 and R7, or t1, t2 and a. It ends before a nan.
    """
    if free:
        at = np.array(KRASSER)
        path = [at]
        for _ in range(steps):
            value, gradient = printed_slopes(at, w)
            if not np.isfinite(value):
                break
            at = at + CLIMB * gradient
            path.append(at)
        return np.array(path)
    prior = ScaleMixturePrior(*KRASSER, learn=True)
    params, slopes = {"prior_mixture": prior.init(np.float64)}, {"prior_mixture": np.zeros(3)}
    path = [prior.values(params)]
    for _ in range(steps):
        _, saved = prior.log_density(params, w[None], Buffers())
        prior.add_vjp(saved, np.ones(1), np.zeros((1, len(w))), slopes)
        params["prior_mixture"] = params["prior_mixture"] + CLIMB * slopes["prior_mixture"]
        path.append(prior.values(params))
    return np.array(path)


def printed_slopes(numbers: Any, w: Any) -> tuple[float, Any]:
    """Return log P(w), as the post's program has it, and its gradient for share and scales."""
    share, *scales = numbers
    wide, narrow = (np.exp(-0.5 * (w / s) ** 2) / (s * np.sqrt(2 * pi)) for s in scales)
    density = share * wide + (1 - share) * narrow
    with np.errstate(invalid="ignore", divide="ignore"):
        xi = share * wide / density
        slopes = [(wide - narrow) / density]
        for r, s in ((xi, scales[0]), (1 - xi, scales[1])):
            slopes.append(r * (w**2 / s**3 - 1 / s))  # R6
        return float(np.log(density).sum()), np.array([slope.sum() for slope in slopes])


def domain() -> Figure:
    """Draw the learned share and standard deviations, steered directly and by R8."""
    figure = Figure(figsize=(8.4, 3.5), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w = thetas([300])[0][:61]
    for free, share, scales, name in (
        (True, VERMILLION, (VERMILLION, VERMILLION), "as in the post"),
        (False, BLUE, (BLUE, BLUE), "by R8"),
    ):
        path = climbed(free, w)
        dash = "--" if free else "-"
        left_ax.plot(path[:, 0], dash, color=share, label=name)
        right_ax.plot(path[:, 1], dash, color=scales[0], lw=2.2, label=f"$\\sigma_1$ {name}")
        right_ax.plot(path[:, 2], dash, color=scales[1], lw=0.9, label=f"$\\sigma_2$ {name}")
        if free:
            for ax, columns in ((left_ax, path[-1:, 0]), (right_ax, path[-1, 1:])):
                ax.plot([len(path) - 1] * len(columns), columns, "x", color=VERMILLION, ms=9,
                        mew=2, label="nan" if ax is left_ax else None)  # fmt: skip
    left_ax.axhspan(1, 1.25, color="#E6E6E6", lw=0)
    left_ax.set(ylim=(0, 1.25), xlabel="step", ylabel="share $\\lambda$")
    right_ax.set(ylim=(0, 3), xlabel="step", ylabel="standard deviations (no unit)")
    legend_above(left_ax, 3)
    legend_above(right_ax, 2)
    titled(left_ax, "The share of the wide component")
    titled(right_ax, "Standard deviations")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "priors": priors,
    "mixture": mixture,
    "learned-scale": learned_scale,
    "widths": widths,
    "no-zeros": no_zeros,
    "domain": domain,
}

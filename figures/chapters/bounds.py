"""Figures of the chapter "Bounds on the evidence"."""

from collections.abc import Callable, Sequence
from math import log, pi
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import plain
from bbb_numpy.model.objectives import LogDensities, Renyi
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PALE,
    VERMILLION,
    legend_above,
    plain_numbers,
)
from chapters.shared import LOG_EVIDENCE, MEAN, SPRING, WIDTH, log_weight, titled

# D25: the bounds against alpha

Q = (0.5, 0.75)  # mean and standard deviation of q; the posterior is N(0, 1), the log evidence 0


def renyi(alpha: Any) -> Any:
    """Return the exact bound of order alpha, minus Renyi's divergence of two Gaussians, in nats."""
    mean, deviation = Q
    alpha = np.where(alpha == 1, 1 + 1e-9, alpha)
    between = alpha + (1 - alpha) * deviation**2
    spread = log(1 / deviation) - np.log(between) / (2 * (alpha - 1))
    return -(spread + alpha * mean**2 / (2 * between))


def estimated(alphas: Any, samples: int, repeats: int, rng: np.random.Generator) -> Any:
    """Return the mean over `repeats` of the estimates of `Renyi` from `samples` samples."""
    mean, deviation = Q
    strata = rng.permuted(np.tile(np.arange(repeats), (samples, 1)), axis=1).T
    uniform = (strata + rng.uniform(size=strata.shape)) / repeats  # a Latin hypercube: less error
    noise = np.vectorize(NormalDist().inv_cdf)(uniform)
    w = mean + deviation * noise
    log_q, log_p = -0.5 * noise**2 - log(deviation), -0.5 * w**2
    zero = np.zeros(samples)
    return np.array(
        [
            np.mean(
                [
                    -Renyi(float(alpha))(LogDensities(a, b, zero), 1.0)[0]
                    for a, b in zip(log_q, log_p, strict=True)
                ]
            )
            for alpha in alphas
        ]
    )


def bounds() -> Figure:
    """Draw exact bounds and the means of their estimates against alpha."""
    figure = Figure(figsize=(4.8, 4.2), layout="constrained")
    ax = figure.subplots()
    fine, coarse = np.linspace(-0.5, 3, 141), np.linspace(-0.5, 3, 15)
    ax.axhline(0, color=GREY, lw=1, ls=":", label="log evidence")
    ax.plot(fine, renyi(fine), color=BLACK, label="exact bound $\\mathcal{R}_\\alpha$")
    for samples, colour, dash, mark in (
        (50, BLUE, "--", "o"), (5, VERMILLION, "-.", "s"), (1, GREEN, ":", "^"),
    ):  # fmt: skip
        means = estimated(coarse, samples, 1000, np.random.default_rng(samples))
        plural = "s" if samples > 1 else ""
        label = f"mean estimate, {samples} sample{plural}"
        ax.plot(coarse, means, dash, color=colour, marker=mark, ms=4, lw=1.2, label=label)
    ax.axvline(0, color=GREY, lw=0.6)
    ax.axvline(1, color=GREY, lw=0.6)
    ax.annotate("importance\nweighted", (0, -0.37), xytext=(3, 0), textcoords="offset points",
                fontsize="small", va="bottom")  # fmt: skip
    ax.annotate("ELBO", (1, -0.37), xytext=(3, 0), textcoords="offset points",
                fontsize="small", va="bottom")  # fmt: skip
    ax.set(xlim=(-0.5, 3), ylim=(-0.38, 0.28))
    ax.set_xlabel("order $\\alpha$")
    ax.set_ylabel("distance from the log evidence (nats)")
    legend_above(ax, 2)
    ax.set_title("Renyi bounds: $q = N(0.5, 0.75^2)$, posterior $N(0, 1)$", loc="left",
                 fontsize="medium", pad=50)  # fmt: skip
    return figure


# G2, G6, D28: one curve averaged under two densities, and what samples of q make of it

NARROW = (4.9, 0.28)  # mean and standard deviation of the q that is too narrow, off the posterior


def two_gaps() -> tuple[float, float]:
    """Return KL(q || posterior) and KL(posterior || q) in nats, q as in NARROW (K18)."""
    mu, sigma = NARROW

    def divergence(m: float, s: float, mean: float, width: float) -> float:
        return log(width / s) + (s**2 + (m - mean) ** 2) / (2 * width**2) - 0.5

    return divergence(mu, sigma, MEAN, WIDTH), divergence(MEAN, WIDTH, mu, sigma)


def by_samples(counts: Sequence[int], draws: int, rng: np.random.Generator) -> Any:
    """Return the mean estimates (2, counts) of the importance-weighted and the upper bound."""
    mu, sigma = NARROW
    means = []
    for count in counts:
        logs = log_weight(mu + sigma * rng.standard_normal((draws, count)), mu, sigma)
        largest = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - largest)
        total = weights.sum(axis=1)
        iwae = largest[:, 0] + np.log(total / count)
        means.append((iwae.mean(), np.mean(np.sum(weights * logs, axis=1) / total)))
    return np.transpose(means)


def two_averages() -> Figure:
    """Draw the log weight with both densities, and the estimates against samples."""
    figure = Figure(figsize=(8.8, 4.6), layout="constrained")
    axes = figure.subplot_mosaic([["q", "k"], ["w", "k"]], height_ratios=(1, 1.5))
    mu, sigma = NARROW
    below, above = two_gaps()
    w = np.linspace(3.9, 6.5, 261)
    bar = {"ls": "-", "lw": 1}
    for m, s, colour, dash, name in ((mu, sigma, BLUE, "--", "$q$"),
                                     (MEAN, WIDTH, BLACK, "-", "posterior")):  # fmt: skip
        density = np.exp(-0.5 * ((w - m) / s) ** 2) / (s * np.sqrt(2 * pi))
        axes["q"].plot(w, density, dash, color=colour, label=name)
        axes["q"].fill_between(w, density, color=colour, alpha=0.15, lw=0)
    axes["q"].set(xlim=(3.9, 6.5), ylim=(0, 1.6), ylabel="density\n(kg per cm)")
    axes["q"].tick_params(labelbottom=False)
    legend_above(axes["q"], 2)
    axes["w"].plot(w, log_weight(w, mu, sigma) - LOG_EVIDENCE, color=GREEN, lw=1.8)
    for ax in (axes["w"], axes["k"]):
        ax.axhline(0, color=GREY, **bar)
        ax.axhline(-below, color=BLUE, **bar)
        ax.axhline(above, color=VERMILLION, **bar)
    axes["w"].set(xlim=(3.9, 6.5), ylim=(-1.8, 3.2), xlabel="weight $w$ (cm per kg)")
    axes["w"].set_ylabel("$\\log \\omega(w) - \\log P(D)$ (nats)")
    for height, words in ((-below, "mean under $q$: $-F$"), (above, "under the posterior: $U$")):
        axes["w"].annotate(words, (3.95, height), xytext=(0, 2), textcoords="offset points",
                           fontsize="small")  # fmt: skip
    counts = (1, 2, 5, 10, 30, 100, 300, 1000)
    iwae, upper = by_samples(counts, 4000, np.random.default_rng(1)) - LOG_EVIDENCE
    axes["k"].plot(counts, np.log(counts), color=GREY, ls=":", label="$\\log S$")
    axes["k"].plot(counts, upper, "s-.", color=VERMILLION, ms=4, label="upper, $\\hat U_S$")
    axes["k"].plot(counts, iwae, "o--", color=BLUE, ms=4, label="importance-weighted")
    for height, words in ((-below, "$-F$"), (0, "$\\log P(D)$"), (above, "$U$")):
        axes["k"].annotate(words, (1000, height), xytext=(4, -3), textcoords="offset points",
                           fontsize="small", annotation_clip=False)  # fmt: skip
    axes["k"].set(xscale="log", xlim=(0.9, 1000), ylim=(-0.8, 1.1), xlabel="samples $S$ of $q$")
    axes["k"].set_ylabel("mean estimate minus $\\log P(D)$ (nats)")
    plain_numbers(axes["k"].xaxis)
    legend_above(axes["k"], 3)
    return figure


# G5, G8: where Algorithm 1 ends, as printed and corrected

NODES, SHARES = np.polynomial.hermite_e.hermegauss(20)


SHARES = SHARES / SHARES.sum()


def corrected(mu: float, rho: float, m: float, v: float, log_z: float) -> Any:
    """Return the expected gradient (2,) of U for (mu, rho), the posterior being N(m, v) (G8)."""
    sigma = plain.softplus(rho)
    slope = plain.sigmoid(rho)
    return np.array([(mu - m) / sigma**2, (1 / sigma - (v + (m - mu) ** 2) / sigma**3) * slope])


def through_the_samples(mu: float, rho: float, m: float, v: float, log_z: float) -> Any:
    """Return what Algorithm 1 is when log q is differentiated through its samples (G8)."""
    return np.array([0.0, plain.sigmoid(rho) / plain.softplus(rho)])


def equation_5(mu: float, rho: float, m: float, v: float, log_z: float) -> Any:
    """Return the expectation of Equation 5 as printed (G5), by quadrature over the posterior."""
    sigma = plain.softplus(rho)
    slope = plain.sigmoid(rho)
    w = m + v**0.5 * NODES
    log_omega = log_z + log(sigma / v**0.5) - NODES**2 / 2 + ((w - mu) / sigma) ** 2 / 2
    d_log_p = (log_omega + 1) * (m - w) / v
    for_rho = d_log_p * (w - mu) / sigma * slope + slope / sigma
    return np.array([SHARES @ d_log_p, SHARES @ for_rho])


def followed(gradient: Any, steps: int, start: tuple[float, float] = (4.4, 0.3)) -> Any:
    """Return (steps + 1, 2) mu and sigma along descent for the spring."""
    theta = np.array(start)
    points = [np.array(start)]
    for _ in range(steps):
        theta = theta - 0.02 * gradient(*theta, MEAN, WIDTH**2, LOG_EVIDENCE)
        points.append(theta)
    mu, rho = np.transpose(points)
    return np.column_stack([mu, plain.softplus(rho)])


def algorithm_1() -> Figure:
    """Draw three descents in the plane of mu and sigma."""
    figure = Figure(figsize=(4.8, 4.0), layout="constrained")
    ax = figure.subplots()
    for gradient, style, name in (
        (corrected, {"color": BLUE, "ls": "-", "marker": "o"}, "corrected (G8)"),
        (equation_5, {"color": VERMILLION, "ls": "--", "marker": "s"}, "Equation 5 as printed"),
        (through_the_samples, {"color": BLACK, "ls": ":", "marker": "^"}, "through the samples"),
    ):
        ax.plot(*followed(gradient, 600).T, **style, ms=4, markevery=30, label=name)
    ax.plot(MEAN, WIDTH, "*", color=GREEN, ms=15, mec=BLACK, label="the posterior")
    ax.set(xlim=(4.3, 5.5), ylim=(0, 1.0), xlabel="mean $\\mu$ of $q$ (cm per kg)")
    ax.set_ylabel("standard deviation $\\sigma$ of $q$ (cm per kg)")
    legend_above(ax, 2)
    titled(ax, "Descents for the spring, with a mark at every 30th step")
    return figure


# D26: signal and noise of the importance-weighted bound


def iwae_gradients(count: int, draws: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return estimates (draws,) of its gradient for mu: reparameterised, and doubly so."""
    mu, sigma = NARROW[0], 2 * NARROW[1]
    eps = rng.standard_normal((draws, count))
    w = mu + sigma * eps
    logs = log_weight(w, mu, sigma)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    d_w = SPRING[1] * (w - MEAN)
    return np.sum(weights * d_w, axis=1), np.sum(weights**2 * (d_w - eps / sigma), axis=1)


def doubly() -> Figure:
    """Draw noise over signal of both gradients against the samples."""
    figure = Figure(figsize=(4.8, 3.7), layout="constrained")
    ax = figure.subplots()
    counts = (1, 3, 10, 30, 100, 300)
    rng = np.random.default_rng(3)
    gradients = [iwae_gradients(count, 20_000, rng) for count in counts]
    signal = np.array([abs(two.mean()) for _, two in gradients])
    for row, style, name in (
        (0, {"color": BLUE, "ls": "--", "marker": "o"}, "reparameterised (D25)"),
        (1, {"color": VERMILLION, "ls": "-", "marker": "s"}, "doubly reparameterised (D26)"),
    ):
        noise = np.array([pair[row].std() for pair in gradients])
        ax.plot(counts, noise / signal, **style, ms=4, label=name)
    ax.set(xscale="log", yscale="log", xlabel="samples $S$")
    ax.set_ylabel("standard deviation over |gradient|")
    plain_numbers(ax.xaxis, "3")
    plain_numbers(ax.yaxis, "25")
    legend_above(ax, 2)
    titled(ax, "Importance-weighted bound of the spring, $q = N(4.9, 0.56^2)$")
    return figure


# D27: descending the upper bound makes the data less probable


def evidence_and_upper(noise: Any) -> tuple[Any, Any]:
    """Return log P(D; psi) and U of the spring's reading with this noise, q its posterior at 1."""
    variance = 4 * 0.25 + noise**2
    log_evidence = -0.5 * np.log(2 * pi * variance) - 1 / (2 * variance)
    precision = 4 + 4 / noise**2
    mean = (4 * 5 + 4 / noise**2 * 5.5) / precision
    ratio = SPRING[1] / precision
    kl = (ratio - 1 - np.log(ratio) + SPRING[1] * (mean - MEAN) ** 2) / 2
    return log_evidence, log_evidence + kl


def descending() -> Figure:
    """Draw the log evidence and the upper bound against the noise."""
    figure = Figure(figsize=(4.8, 3.7), layout="constrained")
    ax = figure.subplots()
    noise = np.linspace(0.4, 2.5, 200)
    lower, upper = evidence_and_upper(noise)
    ax.fill_between(noise, lower, upper, color=PALE, lw=0, label="KL(posterior || $q$)")
    ax.plot(noise, upper, "--", color=VERMILLION, label="$U(\\theta, \\psi)$")
    ax.plot(noise, lower, color=BLACK, label="$\\log P(D; \\psi)$")
    at = float(evidence_and_upper(1.0)[0])
    ax.plot(1, at, "o", color=BLACK, label="$q$ is the posterior here")
    ax.annotate("", (1.45, at - 0.19), (1.05, at - 0.04),
                arrowprops={"arrowstyle": "->", "color": VERMILLION})  # fmt: skip
    ax.annotate("descending $U$", (1.2, at - 0.22), ha="center", fontsize="small", color=VERMILLION)
    ax.set(xlim=(0.4, 2.5), xlabel="standard deviation $\\psi$ of the reading (cm)", ylabel="nats")
    legend_above(ax, 2)
    titled(ax, "The spring's reading, with an unknown ruler")
    return figure


# D30: minibatches of objectives that are not linear

READINGS = 10.5 + np.random.default_rng(30).standard_normal(12)  # of the spring, in cm


def by_rows(sizes: Sequence[int], repeats: int, rng: np.random.Generator) -> tuple[Any, float]:
    """Return means (3, sizes) of ELBO, importance-weighted bound and estimate of U; log P(D)."""
    precision = 4.0 + 4.0 * len(READINGS)
    mean = (4 * 5 + 4 * np.sum(READINGS / 2)) / precision
    sigma = 1.5 * precision**-0.5
    eps = rng.standard_normal((repeats, 300))
    w = mean + sigma * eps
    kappa = log(sigma / 0.5) - 2 * (w - 5) ** 2 + eps**2 / 2
    rows = -0.5 * log(2 * pi) - (READINGS - 2 * w[:, :, None]) ** 2 / 2
    means = []
    for size in sizes:
        share = size / len(READINGS)
        parts = rows.reshape(repeats, 300, -1, size).sum(axis=3) / share
        logs = kappa[:, :, None] + parts
        largest = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - largest)
        total = weights.sum(axis=1)
        upper = np.sum(weights * logs, axis=1) / total
        iwae = largest[:, 0] + np.log(total / 300)
        means.append([logs.mean(), iwae.mean(), upper.mean()])
    at = -2 * (mean - 5) ** 2 - np.sum((READINGS - 2 * mean) ** 2) / 2 - 6 * log(2 * pi)
    return np.transpose(means), float(at - log(0.5) - log(precision) / 2)


def minibatches() -> Figure:
    """Draw what an epoch of minibatches says of each bound, against their rows."""
    figure = Figure(figsize=(4.8, 3.7), layout="constrained")
    ax = figure.subplots()
    sizes = (1, 2, 3, 4, 6, 12)
    means, evidence = by_rows(sizes, 400, np.random.default_rng(0))
    ax.axhline(0, color=GREY, lw=1, label="$\\log P(D)$")
    for row, style, name in zip(
        means - evidence,
        ({"color": BLACK, "marker": "o", "ls": ":"}, {"color": BLUE, "marker": "s", "ls": "--"},
         {"color": VERMILLION, "marker": "^", "ls": "-."}),
        ("ELBO", "importance-weighted", "$\\hat U$"), strict=True,
    ):  # fmt: skip
        ax.plot(sizes, row, **style, ms=5, label=name)
    ax.set(xlabel="rows of a minibatch, of 12", xticks=sizes)
    ax.set_ylabel("mean over an epoch\nminus $\\log P(D)$ (nats)")
    legend_above(ax, 4)
    titled(ax, "Twelve readings of the spring, $q$ 1.5 times too wide")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "two-averages": two_averages,
    "algorithm-1": algorithm_1,
    "bounds": bounds,
    "doubly": doubly,
    "descending": descending,
    "minibatches": minibatches,
}

"""Figures of the derivations' first page, K1 to K44."""

from collections.abc import Callable
from itertools import pairwise
from math import pi
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import MLP, GaussianLikelihood, Model, plain, sample
from bbb_numpy.numeric.elementary import softplus_parts
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    SKY,
    VERMILLION,
    legend_above,
    plain_numbers,
)
from chapters.shared import (
    LINE,
    LOAD,
    LOG_EVIDENCE,
    NET,
    NOISE,
    SPRING,
    believed,
    complexity_and_misfit,
    data,
    predicted,
    thetas,
    titled,
)


def exact_draws(seed: int = 1) -> Any:
    """Return eight chains of 200 draws of the exact posterior, by HMC."""
    x, y, _ = data()
    model = Model(MLP(NET), GaussianPrior(1.0), GaussianLikelihood(NOISE))
    options = {"warm_up": 300, "seed": seed, "progress": False}
    return sample(model, x, y, sampler="hmc", chains=8, draws=200, **options)


def exact_epistemic(draws: Any, line: Any = LINE) -> Any:
    """Return the epistemic standard deviation (G,) of draws of the exact posterior."""
    weights = np.ascontiguousarray(draws.flat)
    return draws.target.model.predict(weights, line)[:, :, 0].std(axis=0)


def band() -> Figure:
    """Draw the band of plain.py, and its standard deviation beside two others."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2, width_ratios=(1.15, 1))
    x, _, _ = data()
    (learned,), (narrow,) = thetas([300]), thetas([300], plain.SECTION_7)
    believed(left_ax, learned)
    for deviation, style, label in (
        (exact_epistemic(exact_draws()), {"color": BLACK}, "exact posterior (HMC)"),
        (predicted(learned).epistemic, {"color": BLUE, "ls": "--"}, "plain.py"),
        (predicted(narrow).epistemic, {"color": BLUE, "ls": ":", "lw": 2}, "from sigma = 0.007"),
    ):
        right_ax.plot(LINE[:, 0], deviation, label=label, **style)
    for edge in (x.min(), x.max()):
        right_ax.axvline(edge, color=GREY, lw=0.7, ls=(0, (1, 2)))
    right_ax.set(xlim=(-6, 6), yscale="log", xlabel=LOAD)
    right_ax.set_ylabel("standard deviation between networks (mm)")
    plain_numbers(right_ax.yaxis)
    legend_above(right_ax, 2)
    for ax, title in ((left_ax, "A spring, and what is believed of it"), (right_ax, "How unsure")):
        titled(ax, title)
    return figure


# K5: the free energy of one weight is complexity and misfit, and never below the floor

WIDTHS = (("too narrow", 0.1), ("as the posterior", SPRING[1] ** -0.5), ("too wide", 0.9))


def floor() -> Figure:
    """Draw three densities q over the posterior, and F with its parts against their widths."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    mean, best = SPRING[0], SPRING[1] ** -0.5
    w = np.linspace(3.2, 7.3, 301)
    sigma = np.geomspace(0.05, 1, 200)
    complexity, misfit = complexity_and_misfit(mean, sigma)
    posterior = np.exp(-0.5 * ((w - mean) / best) ** 2) / (best * np.sqrt(2 * pi))
    left_ax.fill_between(w, posterior, color=PALE, lw=0, label="posterior")
    right_ax.fill_between(sigma, complexity + misfit, -LOG_EVIDENCE, color=PALE, lw=0,
                       label="KL($q$ || posterior)")  # fmt: skip
    right_ax.axhline(-LOG_EVIDENCE, color=GREY, lw=1)
    right_ax.annotate("$-\\log P(D)$", (0.97, -LOG_EVIDENCE), xytext=(0, -4), ha="right",
                   textcoords="offset points", fontsize="small", va="top")  # fmt: skip
    right_ax.plot(sigma, complexity + misfit, color=BLACK, label="$F$: dotted plus dashed")
    right_ax.plot(sigma, complexity, ":", color=GREEN, lw=1.8, label="KL($q$ || prior)")
    right_ax.plot(sigma, misfit, "--", color=GREY, label="$E_q[-\\log P(D|w)]$")
    for (name, width), colour, dash, mark in zip(
        WIDTHS, (VERMILLION, BLACK, BLUE), ("-.", "-", "--"), "so^", strict=True
    ):
        density = np.exp(-0.5 * ((w - mean) / width) ** 2) / (width * np.sqrt(2 * pi))
        top = int(np.argmax(density))
        left_ax.plot(w, density, dash, color=colour, marker=mark, markevery=[top], ms=7,
                  label=f"$q$ {name}, $\\sigma = {width:.2f}$")  # fmt: skip
        right_ax.plot(width, sum(complexity_and_misfit(mean, width)), mark, color=colour, ms=8)
    left_ax.set(xlim=(3.2, 7.3), ylim=(0, 4.3), ylabel="density (kg per cm)")
    left_ax.set_xlabel("weight $w$ (cm per kg)")
    legend_above(left_ax, 2)
    titled(left_ax, "Three choices of $q$")
    right_ax.set(xscale="log", xlim=(0.05, 1), ylim=(-0.1, 4.3), ylabel="nats")
    right_ax.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    right_ax.minorticks_off()
    right_ax.set_xlabel("standard deviation $\\sigma$ of $q$ (cm per kg)")
    legend_above(right_ax, 2)
    titled(right_ax, "The price of each")
    return figure


# K1 to K4, K17, K21 and K30, K37 to K42: the report's way in pictures; the spring is one weight


def normal(z: Any, mean: float, deviation: float) -> Any:
    """Return the density of N(mean, deviation^2)."""
    return np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * pi))


def noise_to_weights() -> Figure:
    """Draw how five values of noise become weights, and softplus with its slope."""
    figure = Figure(figsize=(8.6, 4.2), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    mean, sigma = SPRING[0], SPRING[1] ** -0.5
    eps = np.linspace(-3, 3, 201)
    chosen = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    low, side = mean - 5 * sigma, -5.0
    left_ax.fill_between(eps, low, low + 2.2 * normal(eps, 0, 1), color=PALE, ec=BLACK, lw=1)
    w = np.linspace(mean - 3 * sigma, mean + 3 * sigma, 201)
    left_ax.fill_betweenx(w, side, side + 1.4 * normal(w, mean, sigma), color=SKY, ec=BLUE, lw=1)
    left_ax.plot(eps, mean + sigma * eps, color=BLACK)
    for noise in chosen:
        at = mean + sigma * noise
        left_ax.plot([noise, noise, side], [low, at, at], color=GREY, lw=0.7, ls=":")
        left_ax.plot(noise, at, "o", color=BLUE, ms=5)
    left_ax.text(0, low + 0.25, "$N(0, 1)$", ha="center")
    left_ax.text(side + 0.12, mean, "$q$", va="center")
    left_ax.text(1.1, mean + 0.1, "$w = \\mu + \\sigma\\epsilon$", ha="left", va="top")
    left_ax.set(xlim=(side, 3.2), ylim=(low, mean + 4 * sigma), xticks=chosen)
    left_ax.set(xlabel="noise $\\epsilon$ (no unit)", ylabel="weight $w$ (cm per kg)")
    left_ax.set_title(
        "From noise to a weight: $\\mu = 5.25$, $\\sigma = 0.35$", loc="left", size="medium"
    )
    rho = np.linspace(-5, 5, 201)
    parts = softplus_parts(rho)
    right_ax.plot(rho, parts.softplus, color=BLACK, label="$\\sigma = \\log(1 + e^\\rho)$")
    right_ax.plot(
        rho, parts.sigmoid, "--", color=VERMILLION, label="its slope $\\mathrm{sig}(\\rho)$"
    )
    right_ax.plot(
        rho[rho < 1.6], np.exp(rho[rho < 1.6]), ":", color=GREY, lw=1.6, label="$e^\\rho$"
    )
    right_ax.plot(rho[rho > 0], rho[rho > 0], "-.", color=GREY, lw=1, label="$\\rho$")
    right_ax.set(xlim=(-5, 5), ylim=(0, 5), xlabel="$\\rho$", ylabel="$\\sigma$, and its slope")
    legend_above(right_ax, 2)
    titled(right_ax, "Every $\\rho$ gives a positive $\\sigma$")
    return figure


def log_terms(w: Any, mean: float, deviation: float) -> tuple[Any, Any, Any]:
    """Return log q, log P(w) and log P(D|w) in nats for the spring, q = N(mean, deviation^2)."""
    return (
        np.log(normal(w, mean, deviation)),
        np.log(normal(w, 5.0, 0.5)),
        np.log(normal(11.0, 2 * w, 1.0)),
    )


def three_terms() -> Figure:
    """Draw the three log densities, and the bracket of K5 for two q."""
    figure = Figure(figsize=(8.6, 4.2), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w = np.linspace(3.4, 7.0, 201)
    moments = (4.6, 0.6)
    best = (SPRING[0], SPRING[1] ** -0.5)
    draws = moments[0] + moments[1] * np.array(
        [NormalDist().inv_cdf((k + 0.5) / 8) for k in range(8)]
    )
    looks = (
        ("$\\log q$", "-", BLUE),
        ("$\\log P(w)$", ":", ORANGE),
        ("$\\log P(D|w)$", "--", GREEN),
    )
    for (name, dash, colour), curve, at in zip(
        looks, log_terms(w, *moments), log_terms(draws, *moments), strict=True
    ):
        left_ax.plot(w, curve, dash, color=colour, lw=1.8, label=name)
        left_ax.plot(draws, at, "o", color=colour, ms=4)
    left_ax.set(xlim=(3.4, 7.0), ylim=(-9, 1), ylabel="log density (nats)")
    for (mean, deviation), dash, colour, name in (
        (moments, "-", BLUE, "$q$ of the left picture"),
        (best, "--", BLACK, "$q$ = posterior: $-\\log P(D)$"),
    ):
        q, prior, likelihood = log_terms(w, mean, deviation)
        right_ax.plot(w, q - prior - likelihood, dash, color=colour, label=name)
    q, prior, likelihood = log_terms(draws, *moments)
    right_ax.plot(draws, q - prior - likelihood, "o", color=BLUE, ms=5)
    price = sum(complexity_and_misfit(*moments))
    right_ax.axhline(
        price, color=BLUE, lw=0.8, ls=":", label=f"its mean under $q$: $F$ = {price:.1f}"
    )
    right_ax.set(xlim=(3.4, 7.0), ylim=(-0.5, 10), ylabel="nats")
    for ax, title in (
        (left_ax, "Three terms at eight quantiles of $q$"),
        (right_ax, "The bracket of K5"),
    ):
        ax.set_xlabel("weight $w$ (cm per kg)")
        legend_above(ax, 3 if ax is left_ax else 2)
        titled(ax, title)
    return figure


def pulls_of_mu(mu: Any) -> tuple[Any, Any]:
    """Return the slope of F for mu of the spring's prior and of its reading (K21, a mean)."""
    return (mu - 5) / 0.5**2, -2 * (11 - 2 * mu)


def pulls_of_sigma(sigma: Any) -> tuple[Any, Any, Any]:
    """Return the slope of F for sigma of log q, of the prior and of the reading (K30, a mean)."""
    return -1 / sigma, sigma / 0.5**2, 4 * sigma


def balance() -> Figure:
    """Draw the slopes of the spring's free energy, term by term."""
    figure = Figure(figsize=(8.6, 4.2), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    mu, sigma = np.linspace(4.4, 6.1, 101), np.linspace(0.1, 0.8, 101)
    entropy, *other_pulls = pulls_of_sigma(sigma)
    push = ("of $\\log q$: $-1/\\sigma$", "-.", BLUE)
    pull_style = ("of prior and data: $8\\sigma$", "--", GREEN)
    looks = (("of the prior", ":", ORANGE), ("of the data", "--", GREEN))
    for ax, at, terms, named, best in (
        (left_ax, mu, pulls_of_mu(mu), looks, SPRING[0]),
        (right_ax, sigma, (entropy, sum(other_pulls)), (push, pull_style), SPRING[1] ** -0.5),
    ):
        for (name, dash, colour), term in zip(named, terms, strict=True):
            ax.plot(at, term, dash, color=colour, lw=1.8, label=name)
        ax.plot(at, sum(terms), color=BLACK, label="sum")
        ax.plot(best, 0, "*", color=BLACK, ms=12)
        ax.axhline(0, color=GREY, lw=0.8)
        legend_above(ax, 2)
    left_ax.set(xlim=(4.4, 6.1), ylim=(-7, 7), xlabel="mean $\\mu$ of $q$ (cm per kg)")
    left_ax.set_ylabel("$\\partial F / \\partial \\mu$ (nats per cm/kg)")
    right_ax.set(
        xlim=(0.1, 0.8), ylim=(-8, 8), xlabel="standard deviation $\\sigma$ of $q$ (cm per kg)"
    )
    right_ax.set_ylabel("$\\partial F / \\partial \\sigma$ (nats per cm/kg)")
    titled(left_ax, "Two pulls on the mean")
    titled(right_ax, "Two on the standard deviation")
    return figure


def backward() -> Figure:
    """Draw forward and backward pass of one hidden layer: what is kept, and where it is used."""
    figure = Figure(figsize=(4.8, 4.0))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(-0.6, 10.0), ylim=(-1.9, 2.6))
    ax.set_axis_off()
    boxes = {}
    for name, at, text, face in (
        ("x", (0.3, 2), "$x$", "white"),
        ("z0", (2.4, 2), "$z_0$", "white"),
        ("a0", (4.4, 2), "$a_0$", "white"),
        ("f", (6.8, 2), "$\\hat y = z_1$", "white"),
        ("nll", (9.0, 2), "NLL", "white"),
        ("d1", (8.0, 0.7), "$\\delta_1 = -(y - \\hat y) / \\sigma_y^2$", PALE),
        ("d0", (2.4, 0.7), "$\\delta_0 = (\\delta_1 W_1^{\\top}) \\circ [z_0 > 0]$", PALE),
        ("1", (6.0, -0.8), "$dW_1 = a_0^{\\top} \\delta_1$\n$db_1 = 1^{\\top} \\delta_1$", PALE),
        ("0", (1.0, -0.8), "$dW_0 = x^{\\top} \\delta_0$\n$db_0 = 1^{\\top} \\delta_0$", PALE),
    ):
        frame = {"boxstyle": "round,pad=0.4", "fc": face, "ec": BLACK, "lw": 1 + (name in "01")}
        boxes[name] = ax.text(*at, text, ha="center", va="center", bbox=frame, zorder=3)
    for source, target, dash, colour in (
        *((a, b, "-", BLACK) for a, b in pairwise(("x", "z0", "a0", "f", "nll"))),
        *(
            (a, b, "-", VERMILLION)
            for a, b in (("nll", "d1"), ("d1", "d0"), ("d1", "1"), ("d0", "0"))
        ),
        *((a, b, ":", GREY) for a, b in (("x", "0"), ("z0", "d0"), ("a0", "1"))),
    ):
        patches = [boxes[name].get_bbox_patch() for name in (source, target)]
        arrow = {"arrowstyle": "->", "color": colour, "ls": dash, "lw": 1.3, "patchA": patches[0],
               "patchB": patches[1], "shrinkA": 1, "shrinkB": 1}  # fmt: skip
        ax.annotate(
            "", boxes[target].get_position(), boxes[source].get_position(), arrowprops=arrow
        )
    for at, text in ((1.3, "$\\times W_0 + b_0$"), (3.4, "ReLU"), (5.4, "$\\times W_1 + b_1$"),
                     (8.1, "K15")):  # fmt: skip
        ax.text(at, 2.3, text, ha="center", fontsize="small")
    ax.text(8.2, 1.4, "and back", ha="right", color=VERMILLION, fontsize="small")
    ax.text(-0.3, -1.7, "dotted: kept on the way forwards", color=GREY, va="center", size="small")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "noise-to-weights": noise_to_weights,
    "three-terms": three_terms,
    "balance": balance,
    "backward": backward,
    "band": band,
    "floor": floor,
}

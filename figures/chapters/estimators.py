"""Figures of the chapter "Estimators of the gradient, and their variance"."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import MLP, GaussianLikelihood, Model, plain
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    VERMILLION,
    legend_above,
    legend_of_figure,
    plain_numbers,
)
from chapters.shared import (
    LOAD,
    MEAN,
    NET,
    NOISE,
    SPRING,
    WIDTH,
    blank,
    data,
    edge,
    log_weight,
    node,
    predicted,
    thetas,
    titled,
)


def two_graphs() -> Figure:
    """Draw where the gradient is stopped by a random node, and where it is not."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    for ax, reparameterised in ((left_ax, False), (right_ax, True)):
        node(ax, (0, 0), "$\\theta$", "D", 700)
        node(ax, (1.6, 0), "$w$", "D" if reparameterised else "o", 700 if reparameterised else 900)
        node(ax, (3.2, 0), "$f$", "D", 700)
        edge(ax, (0, 0), (1.6, 0))
        edge(ax, (1.6, 0), (3.2, 0))
        edge(ax, (0, 0), (3.2, 0), "directly", bend=0.45, away=(0, -0.85))
        edge(ax, (3.2, 0), (1.6, 0), "$\\partial f / \\partial w$", VERMILLION, 0.4, (0, 0.52))
        if reparameterised:
            node(ax, (1.6, 1.5), "$\\epsilon$")
            edge(ax, (1.6, 1.5), (1.6, 0))
            slope = "$\\partial w / \\partial \\theta$"
            edge(ax, (1.6, 0), (0, 0), slope, VERMILLION, 0.4, (0, 0.52))
        else:
            ax.text(0.8, 0.5, "?", color=VERMILLION, ha="center")
        ax.set(xlim=(-0.5, 3.7), ylim=(-1.1, 2))
    blank(left_ax, "Original: $w \\sim q(w \\mid \\theta)$")
    blank(right_ax, "Reparameterised: $w = t(\\theta, \\epsilon)$")
    return figure


ESTIMATORS = (
    *("the report's", "KL in closed form", "sticking the landing", "antithetic pair"),
    *("score alone", "score and baseline"),
)


def strayed(mu: float, sigma: float, eps: Any) -> dict[str, Any]:
    """Return estimates (R,) of dF/dmu, each from two samples with the noise eps (R, 2)."""
    score, w = eps / sigma, mu + sigma * eps
    d_w, cost = SPRING[1] * (w - MEAN), -log_weight(w, mu, sigma)
    pair = SPRING[1] * (mu + sigma * np.stack([eps[:, 0], -eps[:, 0]], axis=1) - MEAN)
    estimates = (
        d_w, 4 * (mu - 5) + 4 * (w - 5.5), d_w - score, pair, cost * score,
        2 * (cost - cost.mean(axis=1, keepdims=True)) * score,
    )  # fmt: skip
    return {
        name: pair_estimates.mean(axis=1)
        for name, pair_estimates in zip(ESTIMATORS, estimates, strict=True)
    }


def straying() -> Figure:
    """Draw 150 estimates by each estimator, on the way and at the posterior."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    rng = np.random.default_rng(0)
    points = (
        ("On the way: $q = N(4.6, 0.2^2)$", (4.6, 0.2)),
        ("$q$ is the posterior", (MEAN, WIDTH)),
    )
    for ax, (title, (mu, sigma)) in zip(axes, points, strict=True):
        ax.axvline(SPRING[1] * (mu - MEAN), color=BLACK, lw=1, label="the gradient")
        for row, values in enumerate(strayed(mu, sigma, rng.standard_normal((150, 2))).values()):
            ax.plot(values, row + rng.uniform(-0.28, 0.28, 150), "o", color=BLUE, ms=2.5, alpha=0.5,
                    mew=0, label=None if row else "an estimate from two samples")  # fmt: skip
        ax.set(xlim=(-40, 30), ylim=(5.5, -0.5), xticks=(-20, 0, 20))
        ax.set_xlabel("estimate of $\\partial F / \\partial \\mu$ (nats per cm/kg)")
        ax.set_title(title, loc="left", fontsize="medium")
    axes[0].set_yticks(range(6), ESTIMATORS)
    legend_of_figure(figure, axes[0], 2)
    return figure


# D20: the score cancels the noise of a wide q, and is the noise of a narrow one


def landing() -> Figure:
    """Draw the standard deviation of both gradients for mu against sigma of q."""
    figure = Figure(figsize=(4.8, 3.9), layout="constrained")
    ax = figure.subplots()
    sigma = np.geomspace(0.004, 1, 800)
    stiff = SPRING[1]
    ax.plot(sigma, stiff * sigma, color=BLUE, ls="--", label="$8 \\sigma$: the report's")
    ax.plot(sigma, abs(stiff * sigma - 1 / sigma), color=VERMILLION,
            label="$|8 \\sigma - 1 / \\sigma|$: without the score")  # fmt: skip
    for at, low, name in ((plain.softplus(plain.SECTION_7), 0.5, "the report's start"),
                          (0.25, 0.02, "equal"), (WIDTH, 0.02, "posterior")):  # fmt: skip
        ax.axvline(at, color=GREY, lw=0.8, ls=":")
        ax.annotate(name, (at, low), xytext=(-2, 0), textcoords="offset points", rotation=90,
                    ha="right", fontsize="small")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(0.004, 1), ylim=(0.015, 300))
    ax.set_xlabel("standard deviation $\\sigma$ of $q$ (cm per kg)")
    ax.set_ylabel("standard deviation of the gradient\nfor $\\mu$ (nats per cm/kg)")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)
    legend_above(ax, 2)
    titled(ax, "One sample's gradient for the spring")
    return figure


# D23: a pair keeps the even part


def one_rho(mu: float, eps: Any) -> Any:
    """Return the gradient for rho over sig(rho) (K30) of the spring at the best sigma."""
    return SPRING[1] * (mu + WIDTH * eps - MEAN) * eps - 1 / WIDTH


def pair_ratio(mu: float) -> float:
    """Return the variance of the pair over that of two independent samples (D23)."""
    even, odd = 2 * SPRING[1], (SPRING[1] * (mu - MEAN)) ** 2  # Lambda sigma = Lambda^(1/2)
    return 2 * even / (even + odd)


def antithetic() -> Figure:
    """Draw the gradient for rho and the mean of a pair against eps, far away and at the optimum."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    eps = np.linspace(-2.5, 2.5, 101)
    for ax, mu, title in zip(axes, (MEAN - 1.5, MEAN), ("Far away", "At the optimum"), strict=True):
        gradient, mirrored = one_rho(mu, eps), one_rho(mu, -eps)
        ax.plot(eps, gradient, color=BLUE, label="one sample $h(\\epsilon)$")
        ax.plot(eps, mirrored, ":", color=BLUE, label="its mirror image $h(-\\epsilon)$")
        ax.plot(
            eps,
            (gradient + mirrored) / 2,
            "--",
            color=VERMILLION,
            lw=2,
            label="the mean of the pair",
        )
        ax.set(xlabel="noise $\\epsilon$ (no unit)", xlim=(-2.5, 2.5))
        ratio = f"{title}: variance {pair_ratio(mu):.1f} times that of two"
        ax.set_title(ratio, loc="left", fontsize="medium")
    axes[0].set_ylabel("gradient for $\\rho$ over $\\mathrm{sig}(\\rho)$")
    legend_of_figure(figure, axes[0], 3)
    return figure


# D21, D22: noise that all rows share, and noise of their own

SHARING = ("one $w$ for all rows", "outputs drawn by row (D21)", "signs by row (D22)")


def drawn_outputs(sharing: str, theta: Any, rows: Any, rng: np.random.Generator) -> Any:
    """Return outputs (B,) of the example's network, with its noise shared in one of three ways."""
    mean, spread = (plain.unpack(NET, part[None]) for part in np.split(theta, 2))
    a = rows
    for layer, ((W, b), (V, c)) in enumerate(zip(mean, spread, strict=True)):
        a = a * (a > 0) if layer else a
        V = plain.softplus(V[0])
        c = plain.softplus(c[0])
        z = a @ W[0] + b[0]
        if sharing == SHARING[1]:
            z = z + np.sqrt(a**2 @ V**2 + c**2) * rng.standard_normal(z.shape)
        else:
            inputs, outputs, bias = (
                rng.choice([-1.0, 1.0], size) if sharing == SHARING[2] else 1.0
                for size in (a.shape, z.shape, z.shape)
            )
            z = z + ((a * inputs) @ (V * rng.standard_normal(V.shape))) * outputs
            z = z + bias * c * rng.standard_normal(c.shape)
        a = z
    return a[:, 0]


def gradient_noise(theta: Any, counts: Sequence[int], draws: int = 2000) -> Any:
    """Return the variance (3, counts) of the gradient for mu, summed, with so many rows."""
    model = Model(MLP(NET), GaussianPrior(1.0), GaussianLikelihood(NOISE))
    x, y, _ = data()
    variances = []
    for estimator_class in (ClosedFormKL, LocalReparameterisation, Flipout):
        estimator = estimator_class(model)
        rng = np.random.default_rng(2)
        row = []
        for count in counts:
            grads = [
                estimator.value_and_grad(theta, estimator.draw(rng, 1, rows=count), x[:count],
                                         y[:count], count / len(x))[1][: theta.size // 2]
                for _ in range(draws)
            ]  # fmt: skip
            row.append(np.var(grads, axis=0).sum())
        variances.append(row)
    return np.array(variances)


def shared_noise() -> Figure:
    """Draw three draws of the outputs of 34 rows in each way, and the variance by rows."""
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    (*draws, last) = figure.subplots(2, 2).ravel()
    (theta,) = thetas([300])
    rows = np.sort(data()[0][::3], axis=0)
    middle = predicted(theta, rows).mean[:, 0]
    for ax, sharing in zip(draws, SHARING, strict=True):
        rng = np.random.default_rng(5)
        ax.axhline(0, color=GREY, lw=0.8)
        for colour, mark in ((BLUE, "o"), (VERMILLION, "s"), (BLACK, "^")):
            outputs = drawn_outputs(sharing, theta, rows, rng)
            ax.plot(rows[:, 0], outputs - middle, mark, color=colour, ms=3.5,
                    ls="-" if sharing == SHARING[0] else "", lw=0.8)  # fmt: skip
        ax.set(xlabel=LOAD, ylim=(-0.65, 0.65))
        ax.set_ylabel("output minus its mean (mm)")
        ax.set_title(f"Three draws: {sharing}", loc="left", fontsize="medium")
    counts = (1, 3, 10, 30, 100)
    noise = gradient_noise(theta, counts)
    for row, style, name in zip(
        noise / noise[0],
        ({"ls": "--", "color": GREY}, {"marker": "o", "color": BLUE},
         {"marker": "s", "ls": "-.", "color": VERMILLION}),
        SHARING, strict=True,
    ):  # fmt: skip
        last.plot(counts, row, **style, label=name.removesuffix(" for all rows"))
    last.set(xscale="log", ylim=(0, 1.2), xlabel="rows of the minibatch")
    last.set_ylabel("relative variance")
    last.set_xticks(counts, [str(count) for count in counts])
    last.minorticks_off()
    last.set_title("Gradient for $\\mu$", loc="left", fontsize="medium", pad=22)
    legend_above(last, 3)
    return figure


# W4, W5: the halves of the gradient, through the weights and directly

ON_THE_WAY = (4.6, 0.2)  # mean and standard deviation of q


def halves(eps: Any) -> dict[str, tuple[Any, Any]]:
    """Return both halves of the spring's gradient for mu and, over sig(rho), for rho (W4, W5)."""
    mu, sigma = ON_THE_WAY
    through = SPRING[1] * (mu + sigma * eps - MEAN) - eps / sigma  # df/dw
    return {"mu": (through, eps / sigma), "rho": (through * eps, (eps**2 - 1) / sigma)}


def halved() -> Figure:
    """Draw the halves of both gradients and their sums against the noise."""
    figure = Figure(figsize=(8.4, 3.5), layout="constrained")
    axes = figure.subplots(1, 2)
    eps = np.linspace(-2.5, 2.5, 101)
    names = ("$\\mu$ (W4)", "$\\partial F / \\partial \\mu$"), (
        "$\\rho$ (W5)", "$\\partial F / \\partial \\rho$ over $\\mathrm{sig}(\\rho)$")  # fmt: skip
    for ax, (through, direct), (title, label) in zip(
        axes, halves(eps).values(), names, strict=True
    ):
        ax.axhline(0, color=GREY, lw=0.8)
        ax.plot(eps, through, "--", color=BLUE, label="through the weights")
        ax.plot(eps, direct, ":", color=VERMILLION, lw=1.8, label="directly")
        ax.plot(eps, through + direct, color=BLACK, lw=2, label="sum: the report's")
        ax.set(xlabel="noise $\\epsilon$ (no unit)", xlim=(-2.5, 2.5))
        ax.set_ylabel(f"{label} (nats per cm/kg)")
        ax.set_title(f"For {title}", loc="left", fontsize="medium")
    legend_of_figure(figure, axes[0], 3)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "two-graphs": two_graphs,
    "halves": halved,
    "straying": straying,
    "landing": landing,
    "antithetic": antithetic,
    "shared-noise": shared_noise,
}

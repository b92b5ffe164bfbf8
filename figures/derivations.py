"""The figures of the derivations: computed by the package where it can, drawn as PNG at 150 dpi.

Usage: ``python figures/derivations.py [NAME ...]`` writes all figures, or those that are named,
into this folder; ``training`` is the README's moving one. Each function that computes stands apart
from the one that draws, so that the tests can check the numbers without a picture. (fit.png is
problem2-range4-should-be.png of ``bbb-numpy report``.)
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import lgamma, log, pi
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from sklearn.datasets import load_diabetes

from bbb_numpy import MLP, BayesianMLPRegressor, GaussianLikelihood, Model, plain, sample
from bbb_numpy.evaluation.calibration import pit
from bbb_numpy.evaluation.certificate import binary_kl, invert_kl
from bbb_numpy.evaluation.convergence import import_arviz
from bbb_numpy.evaluation.model_checks import QUANTITIES
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.model.objectives import LogDensities, Renyi
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import gamma_half_step, log_factorial, softplus_parts
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import forward
from bbb_numpy.parts.priors import GaussianPrior, LaplacePrior
from bbb_numpy.parts.student_t import StudentTPrior
from bbb_numpy.plots import fits
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
    density_of_draws,
    legend_above,
    legend_of_figure,
    plain_numbers,
)
from bbb_numpy.sampling.mcmc import HMC, MAMS, MCLMC, SGHMC
from bbb_numpy.sampling.mcmc.leapfrog import Phase, leapfrog
from bbb_numpy.sampling.mcmc.metrics import DiagonalMetric
from bbb_numpy.sampling.mcmc.microcanonical import isokinetic
from bbb_numpy.sampling.run import sample_target
from bbb_numpy.training.optimizers import SGD, Adam, Momentum, Optimizer
from bbb_studies import linear_gaussian
from bbb_studies.data import path_loss
from bbb_studies.data.powerball import exact
from bbb_studies.mullachery import occam, sp500
from bbb_studies.mullachery.coin import coin_log_density
from bbb_studies.ours import elbo_minima

HERE = Path(__file__).parent
SPRING = (5.25, 8.0)  # mean and precision of the posterior of the spring, see derivations/why.md
LOG_EVIDENCE = -0.5 * log(2 * pi * 2.0) - (11 - 10) ** 2 / (2 * 2.0)  # N(11; 10, 4 * 0.25 + 1)


def titled(ax: Axes, title: str) -> None:
    """Put a title above the axes and above the legend, which stands there too."""
    ax.set_title(title, loc="left", fontsize="medium", pad=34)


# The example of plain.py: a band that is wide beyond the data, and what becomes of sigma

NET, NOISE, RATE = (1, 20, 1), 0.3, 2e-3
LINE = np.linspace(-6, 6, 121)[:, None]


def data() -> tuple[Any, Any, np.random.Generator]:
    """Return x and y (100, 1) of the example, and the generator that goes on."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    return x, x**2 + NOISE * rng.standard_normal((100, 1)), rng


def thetas(epochs: Sequence[int], rho: float = -2) -> list[Any]:
    """Return theta after so many epochs, with `rho` at the start."""
    x, y, rng = data()
    found, theta, now = [], plain.init(NET, rng, rho), 0
    for then in epochs:
        theta = plain.fit(NET, theta, x, y, 1.0, NOISE, RATE, then - now, 10, 1, rng)
        now = then
        found.append(theta)
    return found


def predicted(theta: Any, line: Any = LINE) -> Predictive:
    """Return mean and standard deviations (G, 1) at `line`, of a thousand weights."""
    rng = np.random.default_rng(1)
    mean, epistemic, _ = plain.predict(NET, theta, line, NOISE, 1000, rng)
    return Predictive(mean, epistemic, np.full_like(mean, NOISE))


def exact_epistemic(line: Any = LINE, draws: int = 200, seed: int = 1) -> Any:
    """Return the epistemic standard deviation (G,) of the exact posterior, by NUTS."""
    x, y, _ = data()
    model = Model(MLP(NET), GaussianPrior(1.0), GaussianLikelihood(NOISE))
    options = {"sampler": "nuts", "warm_up": 300, "seed": seed, "progress": False}
    found = sample(model, x, y, chains=4, draws=draws, **options)
    return model.predict(np.ascontiguousarray(found.flat), line)[:, :, 0].std(axis=0)


def curvature(theta: Any, rows: Any = None, prior: float = 1.0, noise: float = NOISE,
              hidden: int = NET[1], draws: int = 50) -> Any:  # fmt: skip
    """Return Lambda (P,): 1 / prior^2 + sum_i E_q[(df_i/dw)^2] / noise^2, of each weight."""
    x = data()[0] if rows is None else rows
    mu, rho = np.split(theta, 2)
    squares = 0.0
    for eps in np.random.default_rng(1).standard_normal((draws, mu.size)):
        w = np.tile(mu + plain.softplus(rho) * eps, (len(x), 1))  # a row on each sample's place
        _, tape = plain.forward((1, hidden, 1), w, x[:, None, :])
        squares = squares + np.sum(plain.vjp(tape, np.ones((len(x), 1, 1))) ** 2, axis=0)
    return prior**-2 + squares / draws / noise**2


def without_data(rho: float, epochs: int, rate: float = RATE) -> Any:
    """Return sigma (epochs + 1,) when descent follows the first term of K30 alone."""
    sigmas = []
    for _ in range(epochs + 1):
        sigmas.append(plain.softplus(rho))
        rho = plain.update(rho, -plain.sigmoid(rho) / sigmas[-1], rate)
    return np.array(sigmas)


def grown(sigma: Any, stiffness: Any, time: Any) -> Any:
    """Return where descent takes a small sigma in `time`, learning rate times epochs.

    `stiffness` is Lambda, the curvature of the free energy of this weight.
    """
    return (stiffness + (sigma**-2 - stiffness) * np.exp(-2 * np.asarray(time))) ** -0.5


def band() -> Figure:
    """Draw the band of plain.py, and its standard deviation beside two others."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    x, y, _ = data()
    (learned,), (kept,) = thetas([300]), thetas([300], plain.SECTION_7)
    fits.fit(LINE, predicted(learned), data=(x, y), truth=np.square, ax=left)
    left.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)", ylim=(-2, 22))
    for deviation, look, label in (
        (exact_epistemic(), {"color": BLACK}, "exact posterior (NUTS)"),
        (predicted(learned).epistemic, {"color": BLUE, "ls": "--"}, "plain.py"),
        (predicted(kept).epistemic, {"color": BLUE, "ls": ":", "lw": 2}, "from sigma = 0.007"),
    ):
        right.plot(LINE[:, 0], deviation, label=label, **look)
    for edge in (x.min(), x.max()):
        right.axvline(edge, color=GREY, lw=0.7, ls=(0, (1, 2)))
    right.set(xlim=(-6, 6), yscale="log", xlabel="x (dimensionless)")
    right.set_ylabel("epistemic standard deviation (of y)")
    plain_numbers(right.yaxis)
    legend_above(right, 2)
    for ax, title in ((left, "100 rows of $x^2$, and what is believed"), (right, "How unsure")):
        titled(ax, title)
    return figure


# The opening chapter: one network, thirty, two weights, and the two terms of what is minimised


def one_network() -> Any:
    """Return w (61,) of one network, trained as the example but with no noise: MAP."""
    x, y, rng = data()
    theta = plain.init(NET, rng)
    still = np.zeros((1, 61))
    for _ in range(300):
        for rows in np.split(rng.permutation(100), 10):
            _, grad = plain.value_and_grad(NET, theta, still, x[rows], y[rows], 1.0, NOISE, 0.1)
            theta[:61] = plain.update(theta[:61], grad[:61], RATE)
    return theta[:61]


def drawn(theta: Any, count: int, line: Any = LINE) -> Any:
    """Return the functions (count, G) of networks drawn from q."""
    mu, rho = np.split(theta, 2)
    eps = np.random.default_rng(1).standard_normal((count, mu.size))
    return plain.forward(NET, mu + plain.softplus(rho) * eps, line)[0][:, :, 0]


def terms(theta: Any, draws: int = 500) -> tuple[float, float]:
    """Return complexity and misfit in nats, K5's parts, estimated by the same draws."""
    x, y, _ = data()
    eps = np.random.default_rng(1).standard_normal((draws, 61))
    whole, misfit = (
        plain.value_and_grad(NET, theta, eps, x, y, 1.0, NOISE, pi)[0] for pi in (1.0, 0.0)
    )
    return whole - misfit, misfit


def many_networks() -> Figure:
    """Draw one network's answer, and those of thirty from q."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    x, y, _ = data()
    one = plain.forward(NET, one_network()[None], LINE)[0][0, :, 0]
    axes[0].plot(LINE, one, color=VERMILLION, lw=2, label="its answer")
    many = drawn(thetas([300])[0], 30).T
    axes[1].plot(LINE, many, color=BLUE, lw=0.7, alpha=0.6)
    axes[1].plot([], [], color=BLUE, lw=0.7, label="their answers")
    for ax, title in zip(axes, ("One network", "Thirty networks"), strict=True):
        ax.plot(x, y, "o", color=BLACK, ms=2, label="100 points")
        ax.set(xlabel="x (dimensionless)", xlim=(-6, 6), ylim=(-2, 22))
        legend_above(ax, 2)
        titled(ax, title)
    axes[0].set_ylabel("y (dimensionless)")
    return figure


def two_weights() -> Figure:
    """Draw q of the most and of the least certain weight, and the two terms of F by epoch."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = (*range(10), *range(10, 301, 10))
    found = thetas(epochs)
    mu, rho = np.split(found[-1], 2)
    sigma, w = plain.softplus(rho), np.linspace(-2.5, 2.5, 1001)
    for j, style, label in (
        (np.argmin(sigma), "-", "a weight that the data pin down"),
        (np.argmax(sigma), "--", "one that they leave free"),
    ):
        normal = NormalDist(mu[j], sigma[j])
        left.plot(w, [normal.pdf(v) for v in w], color=BLUE, ls=style, label=label)
    left.plot(
        w, [NormalDist().pdf(v) for v in w], color=BLACK, ls=":", label="before: every weight"
    )
    left.set(xlabel="w (dimensionless)", ylabel="density", ylim=(0, None), xlim=(-2.5, 2.5))
    complexity, misfit = np.transpose([terms(theta) for theta in found])
    right.plot(epochs, complexity + misfit, color=BLACK, lw=2, label="F, their sum")
    right.plot(epochs, misfit, color=VERMILLION, ls="--", label="misfit")
    right.plot(epochs, complexity, color=BLUE, ls="-.", label="complexity")
    right.set(xlabel="epochs", ylabel="nats", xscale="symlog", xlim=(0, 300), yscale="log")
    right.set_xticks([0, 1, 10, 100, 300], ["0", "1", "10", "100", "300"])
    plain_numbers(right.yaxis)
    for ax, title in ((left, "Two of 61 bell curves"), (right, "What is minimised")):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


def leaving() -> Figure:
    """Draw every sigma of the example against epochs, from the start of Section 7."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = np.arange(0, 4001, 50)
    found = {rho: thetas(epochs, rho) for rho in (plain.SECTION_7, -2)}
    sigmas = {rho: plain.softplus(np.split(np.array(t), 2, axis=1)[1]) for rho, t in found.items()}
    slow, time = sigmas[plain.SECTION_7], RATE * epochs
    left.plot(epochs, slow, color=GREY, lw=0.4, alpha=0.6)
    left.plot([], [], color=GREY, lw=0.8, label="each of 61 weights")
    left.plot(epochs, np.median(slow, axis=1), color=BLUE, lw=2.2, label="median")
    free = without_data(plain.SECTION_7, 4000)[epochs]
    left.plot(epochs, free, color=BLACK, ls="--", lw=1, label="without data")
    stiff = np.quantile(curvature(found[plain.SECTION_7][20]), (0.5, 1.0))
    for each in stiff:
        left.plot(epochs, grown(slow[0].mean(), each, time), color=BLACK, ls=":", lw=1.8,
                  label="predicted: median, stiffest" if each == stiff[0] else None)  # fmt: skip
    left.set(yscale="log", ylim=(0.005, 2), ylabel="sigma of a weight")
    for rho, style, label in ((-2, "--", "0.13"), (plain.SECTION_7, "-", "0.007")):
        ends = [predicted(theta, np.array([[6.0]])).epistemic[0, 0] for theta in found[rho]]
        right.plot(epochs, ends, color=BLUE, ls=style, label=f"from sigma = {label}")
    right.axvline(300, color=GREY, lw=0.8, ls=":", label="the example: 300 epochs")
    right.set(ylim=(0, None), ylabel="epistemic standard deviation at x = 6")
    plain_numbers(left.yaxis)
    for ax, title in ((left, "Sigma leaves its start"), (right, "What that means at x = 6")):
        ax.set(xlabel="epochs", xlim=(0, 4000))
        legend_above(ax, 2)
        titled(ax, title)
    return figure


EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300)


def frame(axes: tuple[Axes, Axes], epoch: int, theta: Any) -> None:
    """Draw what is believed after so many epochs, and sigma of every weight."""
    left, right = axes
    for ax in axes:
        ax.clear()
    fits.fit(LINE, predicted(theta), data=data()[:2], truth=np.square, y_limits=(-3, 22), ax=left)
    left.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)")
    sigma = plain.softplus(np.split(theta, 2)[1])
    right.plot(np.arange(1, 62), np.sort(sigma), "o", color=BLUE, ms=3)
    right.axhline(plain.softplus(-2.0), color=GREY, ls=":", lw=1, label="start")
    right.set(xlim=(0, 62), yscale="log", ylim=(0.02, 0.3), xlabel="weights, by sigma")
    right.set_yticks([0.03, 0.1, 0.3])
    right.set_ylabel("sigma")
    plain_numbers(right.yaxis)
    legend_above(right, 1)
    titled(left, f"after {epoch} epoch{'s' * (epoch != 1)}")


def training(folder: Path = HERE) -> Path:
    """Write the README's moving picture: plain.py's example while it trains."""
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    axes = figure.subplots(1, 2, width_ratios=(1.7, 1))
    found = thetas(EPOCHS)
    moving = FuncAnimation(figure, lambda i: frame(axes, EPOCHS[i], found[i]), frames=len(EPOCHS))
    moving.save(folder / "training.gif", PillowWriter(fps=1), dpi=90)
    return folder / "training.gif"


# Why: the spring, before and after one reading, and what the coin says after some tosses


def gaussian(x: Any, mean: Any, deviation: Any) -> Any:
    """Return the density of N(mean, deviation^2) at x."""
    return np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


def spring_after(readings: float) -> tuple[float, float]:
    """Return mean and standard deviation of the spring's weight after readings of 11 cm (D8).

    Readings tempered by beta count as 1 / beta (D24).
    """
    precision = 4 + 4 * readings
    return (4 * 5 + 4 * readings * 5.5) / precision, precision**-0.5


def spring() -> Figure:
    """Draw what is believed of the spring: the lines that remain, and the densities."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    load, w = np.linspace(0, 4, 51), np.linspace(3.3, 7.2, 301)
    for (mean, deviation), colour, hatch, label in (
        (spring_after(0), ORANGE, "//", "catalogue, ± 2 sd"),
        (spring_after(1), BLUE, "", "with the reading, ± 2 sd"),
    ):
        edges = [load * (mean + sign * 2 * deviation) for sign in (-1, 1)]
        look: dict[str, Any] = {"fc": "none" if hatch else colour, "ec": colour, "hatch": hatch}
        left.fill_between(load, *edges, alpha=0.55, lw=0.8, label=label, **look)
    left.plot(load, 5.5 * load, "--", color=BLACK, lw=1.2, label="least squares")
    left.errorbar(2, 11, 2, color=BLACK, fmt="o", capsize=4, ms=5, label="reading, ± 2 cm")
    left.set(xlim=(0, 4), ylim=(0, 26), xlabel="load $x$ (kg)", ylabel="stretch $y$ (cm)")
    right.plot(w, gaussian(w, 5, 0.5), "--", color=ORANGE, lw=1.8, label="prior")
    right.plot(w, gaussian(w, 5.5, 0.5), ":", color=GREY, lw=2, label="likelihood, area 1")
    mean, deviation = spring_after(1)
    right.fill_between(w, gaussian(w, mean, deviation), color=PALE, lw=0)
    right.plot(w, gaussian(w, mean, deviation), color=BLACK, label="posterior")
    right.axvline(5.5, ymax=0.64, color=BLACK, ls="--", lw=1, label="least squares")
    right.set(xlim=(3.3, 7.2), ylim=(0, 1.25), ylabel="density (kg per cm)")
    right.set_xlabel("$w$ (cm per kg)")
    for ax, title in ((left, "One load, one reading"), (right, "Every stretch per kilogram")):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


TOSSES = ((0, 0), (1, 0), (7, 3), (63, 37))  # heads and tails


def coin() -> Figure:
    """Draw the density of the chance of heads after some tosses."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    r = np.linspace(0, 1, 401)
    for (heads, tails), colour, dash in zip(
        TOSSES, (ORANGE, GREY, BLUE, BLACK), ("--", ":", "-.", "-"), strict=True
    ):
        with np.errstate(divide="ignore"):
            density = np.exp(coin_log_density(r, heads, tails))
        ax.plot(r, density, dash, color=colour, lw=1.8, label=f"{heads} heads, {tails} tails")
    ax.set(xlim=(0, 1), ylim=(0, 8.6), xlabel="chance of heads $r$", ylabel="density")
    legend_above(ax, 2)
    titled(ax, "A coin, after 0, 1, 10 and 100 tosses")
    return figure


def heads_in_two_units(heads: int = 3) -> tuple[Any, Any]:
    """Return the most probable chance of heads, as r itself and by way of its logit (W2)."""
    r = np.linspace(0, 1, 100_001)[1:-1]
    density = (heads + 1) * r**heads
    return r[np.argmax(density)], r[np.argmax(density * r * (1 - r))]  # dr / dz = r (1 - r)


def units() -> Figure:
    """Draw one belief in two units, and the maximum of each density."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    r, z = np.linspace(0, 1, 201), np.linspace(-3, 7, 301)
    s = 1 / (1 + np.exp(-z))
    left.plot(r, 4 * r**3, color=BLACK, label="posterior")
    right.plot(z, 4 * s**4 * (1 - s), color=BLACK, label="the same posterior")
    ends = (left, 1.0, 4.0, 0.8), (right, np.log(4), 4 * 0.8**4 * 0.2, np.log(4))
    for ax, most, height, mean in ends:
        ax.plot(most, height, "o", color=VERMILLION, ms=8, clip_on=False, label="its maximum: MAP")
        label = "mean of $r$: 0.8" if ax is left else "the same place: $r = 0.8$"
        ax.axvline(mean, color=GREY, ls=":", lw=1.6, label=label)
    left.set(xlim=(0, 1), ylim=(0, 4.3), xlabel="chance of heads $r$", ylabel="density of $r$")
    right.set(xlim=(-3, 7), ylim=(0, 0.4), ylabel="density of $z$")
    right.set_xlabel("logit $z = \\log r / (1 - r)$")
    for ax, title in ((left, "Three heads: MAP says $r = 1$"), (right, "... and here $r = 0.8$")):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


# D6, D24: who pays the complexity cost, and what a part of it aims at


def shares_of_ten() -> Figure:
    """Draw the shares of ten minibatches, and what has been paid after each."""
    figure = Figure(figsize=(8.4, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    i, sizes = np.arange(1, 11), [10] * 10
    for shares_, colour, mark, label in (
        (proportional_kl_weights(sizes), BLUE, "o-", "proportional, $B_i / N$"),
        (geometric_kl_weights(sizes), VERMILLION, "s--", "geometric, $2^{M - i} / (2^M - 1)$"),
        (np.ones(10), GREY, "^:", "the whole each time: wrong"),
    ):
        left.plot(i, shares_, mark, color=colour, ms=5, lw=1.2, label=label)
        right.plot(np.arange(11), np.cumsum([0, *shares_]), mark, color=colour, ms=5, lw=1.2)
    left.set(ylim=(0, 1.05), ylabel="share $\\pi_i$")
    right.set(ylim=(0, 2.6), ylabel="complexity cost paid, in KL")
    for ax in (left, right):
        ax.set(xlabel="minibatch $i$ of ten", xticks=[0, 2, 4, 6, 8, 10], xlim=(-0.2, 10.3))
    left.set_title("What each pays", loc="left", fontsize="medium")
    right.set_title("What has been paid", loc="left", fontsize="medium")
    legend_of_figure(figure, left, 3)
    return figure


def tempering() -> Figure:
    """Draw the spring's tempered posteriors, and the factor of a warm-up by epochs."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    w, mean, deviation = np.linspace(3.7, 6.8, 301), *spring_after(1)
    left.fill_between(w, gaussian(w, mean, deviation), color=PALE, lw=0)
    for (centre, width), colour, dash, label in (
        ((mean, deviation), BLACK, "-", "$\\beta = 1$: posterior"),
        (spring_after(4), BLUE, "--", "$\\beta = 1/4$: data four times"),
        (spring_after(0.25), GREEN, "-.", "$\\beta = 4$"),
        ((mean, deviation / 2), VERMILLION, ":", "cold, $T = 1/4$"),
    ):
        left.plot(w, gaussian(w, centre, width), dash, color=colour, lw=1.8, label=label)
    left.set(xlim=(3.7, 6.8), ylim=(0, 2.4), ylabel="density (kg per cm)")
    left.set_xlabel("$w$ (cm per kg)")
    epochs = np.arange(100)
    for rule, colour, dash, label in (
        (LinearWarmUp(), BLACK, "-", "linear"),
        (CyclicalWarmUp(), BLUE, "--", "cyclical"),
    ):
        factors = [rule(int(e), 100) for e in epochs]
        right.step(epochs, factors, dash, color=colour, where="mid", label=label)
    right.set(xlim=(0, 100), ylim=(0, 1.05), xlabel="epoch", ylabel="factor $\\beta$")
    titles = (left, "What is aimed at: the spring"), (right, "Warm-up: on the way to 1")
    for ax, title in titles:
        legend_above(ax, 2)
        titled(ax, title)
    return figure


# D2, D63: the cloud in which a constant rate ends


def errors_of_steps(runs: int = 200, steps: int = 400) -> Any:
    """Return the root mean square errors (2, steps) of natural steps of 1 / t and of 0.1 (D63).

    Of the precision's first entry, in units of that of one minibatch.
    """
    rng, problem = np.random.default_rng(0), linear_gaussian.draw(np.random.default_rng(0))
    truth = linear_gaussian.exact(problem).precision[0, 0]
    squares = np.zeros((2, steps))
    for _ in range(runs):
        ends = [linear_gaussian.Natural(np.zeros(3), np.eye(3))] * 2
        for t in range(1, steps + 1):
            rows = rng.integers(40, size=4)
            for k, rate in enumerate((1 / t, 0.1)):
                ends[k] = linear_gaussian.natural_step(ends[k], problem, rows, rate)
                squares[k, t - 1] += (ends[k].precision[0, 0] - truth) ** 2
    single = 40 * np.std(problem.x[:, 0] ** 2) / 0.3**2 / 2
    return np.sqrt(squares / runs) / single


def cloud() -> Figure:
    """Draw the error of steps that fall as 1 / t beside that of constant ones."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    t = np.arange(1, 401)
    falling, constant = errors_of_steps()
    ax.plot(t, constant, "--", color=VERMILLION, label="constant, $r = 0.1$")
    ax.plot(t, falling, color=BLUE, label="falling, $r_t = 1/t$")
    ax.axhline((0.1 / 1.9) ** 0.5, color=BLACK, ls=":", lw=1.6, label="$\\sqrt{r / (2 - r)}$")
    ax.plot(t, t**-0.5, color=BLACK, ls="-.", lw=1, label="$1 / \\sqrt{t}$")
    ax.set(xscale="log", yscale="log", xlim=(1, 400), xlabel="step")
    ax.set_ylabel("error of a precision,\nin those of one minibatch")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)
    legend_above(ax, 2)
    titled(ax, "A constant rate ends in a cloud")
    return figure


def valleys() -> Figure:
    """Draw two functions at which descent ends, and F on three ways between minima (D53)."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    found, x = elbo_minima.search(0, starts=3, progress=False), np.linspace(-2.4, 2.4, 121)
    left.plot(found.x, found.y, ".", color=BLACK, ms=5, label="24 rows")
    for kind, colour, dash in ((0, BLUE, "-"), (1, VERMILLION, "--")):
        first = int(np.flatnonzero(found.kinds == kind)[0])
        mean, _ = elbo_minima.moments(found.thetas[first], x[:, None])
        label = f"$F = {found.energies[first]:.1f}$ nats"
        left.plot(x, mean, dash, color=colour, lw=1.8, label=label)
    for name, label, colour, dash in (
        ("itself, two units exchanged", "to its image, straight", GREY, ":"),
        ("another function, aligned", "to the other minimum, straight", BLACK, "--"),
        ("the same by a bend", "to the other minimum, bent", GREEN, "-"),
    ):
        right.plot(elbo_minima.PLACES, found.ways[name], dash, color=colour, lw=1.8, label=label)
    left.set(xlim=(-2.4, 2.4), xlabel="x (dimensionless)", ylabel="mean of $f(x)$ (dimensionless)")
    right.set(xlim=(0, 1), yscale="log", ylim=(20, 1500), ylabel="free energy (nats)")
    right.set_xlabel("share of the way")
    plain_numbers(right.yaxis, minor="25")
    for ax, title in ((left, "Two of the minima, 1-3-1"), (right, "Between them")):
        legend_above(ax, 2 if ax is left else 1)
        ax.set_title(title, loc="left", fontsize="medium", pad=50)
    return figure


# D4, R9, D5, D29, D46, D57: predictions


def variances_of_the_spring(load: Any, readings: Any) -> tuple[Any, Any]:
    """Return the epistemic and the aleatoric variance in cm^2 of a stretch (D4)."""
    return np.square(load) * spring_after(readings)[1] ** 2, np.ones_like(load)


def two_variances() -> Figure:
    """Draw both bands of the spring against the load, and both variances against readings."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    load = np.linspace(0, 6, 61)
    epistemic, aleatoric = variances_of_the_spring(load, 1)
    for variance, look in (
        (epistemic + aleatoric, {"color": PALE, "label": "total: a new reading"}),
        (epistemic, {"color": BLUE, "alpha": 0.6, "label": "epistemic: the line"}),
    ):
        width = 2 * np.sqrt(variance)
        left.fill_between(load, -width, width, lw=0, **look)
    left.axhline(0, color=VERMILLION, label="predicted mean, 5.25 $x$")
    left.plot(2, 11 - 2 * SPRING[0], "o", color=BLACK, ms=5, label="reading")
    left.set(xlim=(0, 6), ylim=(-5.5, 5.5), xlabel="load $x$ (kg)")
    left.set_ylabel("stretch less its mean (cm)")
    n = np.arange(0, 21)
    epistemic, aleatoric = variances_of_the_spring(np.full(21, 4.0), n)
    right.plot(n, epistemic + aleatoric, color=BLACK, label="total")
    right.plot(n, epistemic, "o--", ms=4, color=BLUE, label="epistemic")
    right.plot(n, aleatoric, ":", color=GREY, lw=2, label="aleatoric")
    right.set(xlim=(0, 20), ylim=(0, 5.2), xticks=[0, 5, 10, 15, 20])
    right.set(xlabel="readings at 2 kg", ylabel="variance at 4 kg (cm²)")
    titles = (left, "After one reading, ± 2 standard deviations"), (right, "More readings")
    for ax, title in titles:
        legend_above(ax, 2 if ax is left else 3)
        titled(ax, title)
    return figure


def relu_moments(mu: Any, sigma: Any) -> Any:
    """Return E max(w, 0) for w = N(mu, sigma^2) (R9)."""
    normal = NormalDist()
    ratio = np.asarray(mu) / sigma
    return mu * np.vectorize(normal.cdf)(ratio) + sigma * np.vectorize(normal.pdf)(ratio)


def mean_output() -> Figure:
    """Draw one ReLU over the density of its weight, and what the means of both differ by."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    mu, sigma = 0.1, log(2)
    w, every = np.linspace(-2.2, 2.4, 231), np.linspace(-2, 2, 161)
    left.fill_between(w, gaussian(w, mu, sigma), color=PALE, lw=0, label="density of $w$")
    left.plot(w, np.maximum(w, 0), color=BLACK, label="$f(w) = \\max(w, 0)$")
    left.axhline(relu_moments(mu, sigma), color=BLUE, ls="--", lw=1.6, label="mean of $f$: 0.33")
    left.plot(mu, mu, "s", color=VERMILLION, ms=7, label="$f$ of the mean: 0.10")
    left.set(xlim=(-2.2, 2.4), ylim=(0, 1.5), xlabel="$w$", ylabel="output; density")
    right.plot(every, relu_moments(every, sigma), "--", color=BLUE, lw=1.6, label="mean of $f$")
    right.plot(every, np.maximum(every, 0), color=VERMILLION, label="$f$ of the mean")
    right.set(xlim=(-2, 2), ylim=(0, 2), xlabel="mean $\\mu$ of $w$", ylabel="output")
    titles = (left, "$w$ from $N(0.1, 0.69^2)$"), (right, "They differ at the bend")
    for ax, title in titles:
        legend_above(ax, 2)
        titled(ax, title)
    return figure


def log_density_of_draws(y: float, samples: Any, repeats: int = 20_000) -> tuple[Any, float]:
    """Return mean estimates of log P(y | 2 kg) from so many weights, and the truth (D5)."""
    rng, (mean, deviation) = np.random.default_rng(0), spring_after(1)
    found = []
    for count in samples:
        w = mean + deviation * rng.standard_normal((repeats, count))
        found.append(np.log(gaussian(y, 2 * w, 1).mean(axis=1)).mean())
    return np.array(found), log(gaussian(y, 2 * mean, (1 + 4 * deviation**2) ** 0.5))


def log_density() -> Figure:
    """Draw the mean estimate of a log predictive density against the number of samples."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    samples = (1, 2, 4, 8, 16, 32, 64, 128)
    found, truth = log_density_of_draws(13, samples)
    ax.axhline(truth, color=BLACK, label="log of the mean density")
    ax.plot(samples, found, "o--", color=BLUE, ms=5, label="mean of its estimate")
    ax.axhline(found[0], color=GREY, ls=":", lw=1.8, label="mean of the log densities")
    ax.set(xscale="log", xlabel="weights $S$ that are drawn", ylabel="nats")
    ax.set_xticks(samples, [str(one) for one in samples])
    ax.minorticks_off()
    legend_above(ax, 2)
    titled(ax, "A second reading at 2 kg, of 13 cm")
    return figure


def entropy(p: Any) -> Any:
    """Return the entropy in nats of two classes with probabilities p and 1 - p, 0 < p < 1."""
    return -p * np.log(p) - (1 - p) * np.log1p(-p)


def entropies() -> Figure:
    """Draw the entropy of two classes, its chord, and the two parts of it."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    p, ends = np.linspace(1e-6, 1 - 1e-6, 201), np.array([0.1, 0.7])
    middle, chord = ends.mean(), entropy(ends).mean()
    ax.plot(p, entropy(p), color=BLACK, label="entropy $H$")
    ax.plot(ends, entropy(ends), "o--", color=GREY, ms=7, label="two weight vectors")
    for low, high, colour, width, label in (
        (0, chord, ORANGE, 7, f"aleatoric: {chord:.2f} nats"),
        (chord, entropy(middle), BLUE, 3, f"epistemic: {entropy(middle) - chord:.2f} nats"),
    ):
        ax.plot([middle, middle], [low, high], color=colour, lw=width, label=label,
                solid_capstyle="butt")  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, 0.75), xlabel="probability of the first class", ylabel="nats")
    legend_above(ax, 2)
    titled(ax, "Two that disagree: 0.1 and 0.7")
    return figure


HUMPS = ((-2.0, 0.6), (2.0, 1.0))  # mean and standard deviation of two equal components


def mixture_intervals(content: float = 0.9) -> tuple[Any, Any, Any]:
    """Return the central interval, the region of highest density, the mean of quantiles (D46)."""
    y = np.linspace(-7, 8, 150_001)
    density = sum(gaussian(y, *hump) for hump in HUMPS) / 2
    mass = np.cumsum(density) * (y[1] - y[0])
    tails = (0.5 - content / 2, 0.5 + content / 2)
    order = np.argsort(-density)
    level = density[order[np.searchsorted(np.cumsum(density[order]) * (y[1] - y[0]), content)]]
    inside = np.flatnonzero(np.diff(np.r_[0, density >= level, 0]))
    normals = [NormalDist(*hump) for hump in HUMPS]
    mean_of_quantiles = [np.mean([one.inv_cdf(u) for one in normals]) for u in tails]
    region = y[np.minimum(inside, len(y) - 1)].reshape(-1, 2)
    return np.interp(tails, mass, y), region, np.array(mean_of_quantiles)


def intervals() -> Figure:
    """Draw a mixture of two humps, and three answers to the question for 90 %."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = figure.subplots()
    y = np.linspace(-4.5, 5.5, 401)
    parts = [gaussian(y, *hump) / 2 for hump in HUMPS]
    ax.fill_between(y, sum(parts), color=PALE, lw=0)
    ax.plot(y, sum(parts), color=BLACK, label="predictive density")
    central, region, wrong = mixture_intervals()
    rows = ([central], BLUE, "-", "central"), (region, GREEN, "--", "highest density")
    for place, (pieces, colour, dash, label) in enumerate(
        (*rows, ([wrong], VERMILLION, "-.", "mean of quantiles: wrong"))
    ):
        for k, piece in enumerate(pieces):
            ax.plot(piece, [-0.04 - 0.04 * place] * 2, dash, color=colour, lw=3,
                    label=None if k else label, marker="|", ms=9)  # fmt: skip
    ax.set(xlim=(-4.5, 5.5), ylim=(-0.15, 0.36), yticks=[0, 0.1, 0.2, 0.3])
    ax.set(xlabel="target $y$", ylabel="density")
    legend_above(ax, 2)
    titled(ax, "Two weights, one prediction, 90 %")
    return figure


CERTIFIED = (  # wrong on its images (%), KL in nats an image, certificate (%), after D58
    ("free energy", 2.26, 29.7, 100.0, "^"),
    ("the bound", 11.01, 0.245, 43.09, "s"),
    ("taught prior", 2.20, 1e-4, 2.66, "o"),
    ("the bound, taught prior", 2.13, 4e-4, 2.79, "D"),
)


def certificates() -> Figure:
    """Draw kl against R with its root, and the certificate against the KL of one image."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    r, allowed = 0.11, 0.245
    every = np.linspace(r, 0.8, 300)
    root = invert_kl(r, allowed)
    left.plot(100 * every, [binary_kl(r, one) for one in every], color=BLACK,
              label="kl(11 % || $R$)")  # fmt: skip
    left.axhline(allowed, color=BLUE, ls="--", label="what KL allows: 0.245 nats")
    left.plot(100 * root, allowed, "s", color=VERMILLION, ms=8, label=f"root: {100 * root:.0f} %")
    left.set(xlim=(0, 80), ylim=(0, 1.2), ylabel="nats an image")
    kl = np.geomspace(1e-4, 40, 200)
    for share, colour, dash in ((0.11, GREY, "--"), (0.022, BLACK, "-")):
        bound = [100 * invert_kl(share, one) for one in kl]
        right.plot(kl, bound, dash, color=colour, label=f"{100 * share:g} % wrong")
    for name, _, each, bound, mark in CERTIFIED:
        right.plot(each, bound, mark, color=VERMILLION, ms=7, mec=BLACK, label=name)
    right.set(xscale="log", ylim=(0, 105), xlabel="KL (nats an image); 0 is drawn at 0.0001")
    right.set_ylabel("certificate (%)")
    left.set_xlabel("share of cases to come that are wrong, $R$ (%)")
    for ax, title, columns in (
        (left, "The certificate is a root", 1), (right, "What a nat costs", 2),
    ):  # fmt: skip
        legend_above(ax, columns)
        ax.set_title(title, loc="left", fontsize="medium", pad=50)
    return figure


# D12, D13, D15, D31, D41, D43, W6: likelihoods


def pulls(residual: Any) -> dict[str, tuple[Any, Any]]:
    """Return price -log P up to a constant, and pull on the mean, of residuals in units of s.

    Gaussian noise, Student's t with 4 degrees, and noise that has followed its residual (D12).
    """
    square = residual**2
    return {
        "Gaussian": (square / 2, residual),
        "Student t, 4 degrees": (2.5 * np.log1p(square / 4), 5 * residual / (4 + square)),
        "noise head at $\\sigma = |y - m|$": (np.log(np.abs(residual)) + 0.5, 1 / residual),
    }


def residuals() -> Figure:
    """Draw what a residual costs under three kinds of noise, and how it pulls at the mean."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    r = np.linspace(0.2, 6, 291)
    looks = (BLACK, "-"), (GREEN, "--"), (BLUE, "-.")
    for (name, (price, pull)), (colour, dash) in zip(pulls(r).items(), looks, strict=True):
        left.plot(r, price, dash, color=colour, lw=1.8, label=name)
        right.plot(r, pull, dash, color=colour, lw=1.8)
    left.set(xlim=(0, 6), ylim=(-1.2, 8), ylabel="$-\\log P$ and a constant (nats)")
    right.set(
        xlim=(0, 6), ylim=(0, 5.2), ylabel="pull on the mean, $\\partial \\log P/\\partial f$"
    )
    titles = (left, "What a residual costs"), (right, "How it pulls")
    for ax, title in titles:
        ax.set_xlabel("residual $y - f$, in units of the scale")
        ax.set_title(title, loc="left", fontsize="medium")
    legend_of_figure(figure, left, 3)
    return figure


def discrete() -> Figure:
    """Draw the price of two classes against the logit, and of counts against the log rate."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    z, f = np.linspace(-6, 6, 241), np.linspace(-2, 4, 241)
    for y, colour, dash in ((1, BLUE, "-"), (0, VERMILLION, "--")):
        price = softplus_parts(z).softplus - y * z
        left.plot(z, price, dash, color=colour, lw=1.8, label=f"$y = {y}$")
    for y, colour, dash in ((0, VERMILLION, "--"), (3, BLUE, "-"), (10, BLACK, "-.")):
        price = np.exp(f) - y * f + log_factorial(y)
        right.plot(f, price, dash, color=colour, lw=1.8, label=f"$y = {y}$")
        if y:
            right.plot(log(y), y - y * log(y) + log_factorial(y), "o", color=colour, ms=6)
    left.set(xlim=(-6, 6), ylim=(0, 6.5), xlabel="logit $z$", ylabel="$-\\log P$ (nats)")
    right.set(xlim=(-2, 4), ylim=(0, 20), xlabel="log rate $f$", ylabel="$-\\log P$ (nats)")
    for ax, title in ((left, "Two classes"), (right, "Counts: least at $e^f = y$")):
        legend_above(ax, 3)
        titled(ax, title)
    return figure


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
            -3617 / 122400, 43867 / 244188, -174611 / 125400)  # fmt: skip


def left_out(z: float) -> Any:
    """Return the size of the first term that is left out after 0, 1, 2, ... of them (D31)."""
    return np.array([abs(c) / z ** (2 * j + 1) for j, c in enumerate(STIRLING)])


def digits_lost(nu: Any) -> Any:
    """Return how far the difference of two log Gammas is from g(nu) (D41)."""
    apart = [lgamma((one + 1) / 2) - lgamma(one / 2) - log(one / 2) / 2 for one in nu]
    return np.abs(apart - gamma_half_step(nu).value)


def constants() -> Figure:
    """Draw the bound on Stirling's error, and the digits that a difference loses."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for z, colour, mark in ((1, VERMILLION, "s--"), (3, GREY, "^-."), (9, BLUE, "o-")):
        left.plot(range(len(STIRLING)), left_out(z), mark, color=colour, ms=5,
                  label=f"$z = {z}$")  # fmt: skip
    left.axhline(2.0**-53, color=BLACK, ls=":", label="double precision")
    left.axvline(6, color=GREY, lw=0.7)
    left.set(
        yscale="log", xlabel="terms of the series", ylabel="error is at most", ylim=(1e-19, 10)
    )
    nu = np.geomspace(1, 1e12, 241)
    right.plot(nu, np.maximum(digits_lost(nu), 1e-18), ".", color=VERMILLION, ms=4,
               label="error of the difference")  # fmt: skip
    right.plot(nu, -gamma_half_step(nu).value, color=BLACK, label="$-g(\\nu)$, as one function")
    right.set(xscale="log", yscale="log", xlabel="degrees of freedom $\\nu$", ylim=(1e-17, 10))
    right.set_ylabel("size (dimensionless)")
    titles = (left, "Stirling: six terms, from $z = 9$ on"), (right, "The constant of Student's t")
    for ax, title in titles:
        legend_above(ax, 2)
        titled(ax, title)
    return figure


def along_a_line() -> tuple[Any, Any, Any]:
    """Return x in m, power in dBm along y = 65 m, and a continuous curve: its mean over 5 m."""
    x = np.linspace(0, 100, 2001)
    power = path_loss.field(path_loss.Scene(), np.column_stack([x, np.full(2001, 65.0)]))[:, 0]
    width = 101
    inside = np.convolve(np.pad(power, width // 2, "edge"), np.full(width, 1 / width), "valid")
    return x, power, inside


def shadows() -> Figure:
    """Draw the map of the received power, and its jumps along one line."""
    figure = Figure(figsize=(8.8, 4.2), layout="constrained")
    axes = figure.subplot_mosaic([["map", "line"], ["map", "error"]], height_ratios=(3, 1))
    scene = path_loss.Scene()
    image = path_loss.field(scene, path_loss.grid(scene, 200)).reshape(200, 200)
    shown = axes["map"].imshow(image, origin="lower", extent=(0, 100, 0, 100), cmap="cividis",
                               vmin=-85, vmax=-35)  # fmt: skip
    figure.colorbar(shown, ax=axes["map"], label="power (dBm)", shrink=0.7)
    for a, b, c, d, _ in scene.buildings:
        axes["map"].plot([a, c, c, a, a], [b, b, d, d, b], color="white", lw=1)
    axes["map"].plot(*scene.transmitters[0], "^", color="white", mec=BLACK, ms=8)
    axes["map"].axhline(65, color="white", ls="--", lw=1.2)
    axes["map"].set(xlabel="$x$ (m)", ylabel="$y$ (m)")
    axes["map"].set_title("Five buildings, one transmitter", loc="left", fontsize="medium")
    x, power, smooth = along_a_line()
    axes["line"].plot(x, power, color=BLACK, lw=1.2, label="the field")
    axes["line"].plot(x, smooth, "--", color=BLUE, lw=1.6, label="a continuous curve")
    axes["error"].plot(x, np.abs(power - smooth), color=VERMILLION, lw=1.2)
    axes["line"].set(xlim=(0, 100), ylabel="power (dBm)", xticklabels=[])
    axes["error"].set(xlim=(0, 100), ylim=(0, 6), ylabel="|error| (dB)")
    axes["error"].set_xlabel("$x$ (m), along the dashed line")
    legend_above(axes["line"], 2)
    return figure


# K5: the free energy of one weight is complexity and misfit, and never below the floor

WIDTHS = (("too narrow", 0.1), ("as the posterior", SPRING[1] ** -0.5), ("too wide", 0.9))


def complexity_and_misfit(mu: Any, sigma: Any) -> tuple[Any, Any]:
    """Return both parts of F in nats for q = N(mu, sigma^2), the spring's prior and reading."""
    complexity = np.log(0.5 / sigma) + (sigma**2 + (mu - 5) ** 2) / (2 * 0.5**2) - 0.5
    misfit = 0.5 * log(2 * pi) + ((11 - 2 * mu) ** 2 + (2 * sigma) ** 2) / 2
    return complexity, misfit


def floor() -> Figure:
    """Draw three densities q over the posterior, and F with its parts against their widths."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    mean, best = SPRING[0], SPRING[1] ** -0.5
    w, sigma = np.linspace(3.2, 7.3, 301), np.geomspace(0.05, 1, 200)
    complexity, misfit = complexity_and_misfit(mean, sigma)
    posterior = np.exp(-0.5 * ((w - mean) / best) ** 2) / (best * np.sqrt(2 * pi))
    left.fill_between(w, posterior, color=PALE, lw=0, label="posterior")
    right.fill_between(sigma, complexity + misfit, -LOG_EVIDENCE, color=PALE, lw=0,
                       label="KL($q$ || posterior)")  # fmt: skip
    right.axhline(-LOG_EVIDENCE, color=GREY, lw=1)
    right.annotate("$-\\log P(D)$", (0.15, -LOG_EVIDENCE), xytext=(0, -4),
                   textcoords="offset points", fontsize="small", va="top")  # fmt: skip
    right.plot(sigma, complexity + misfit, color=BLACK, label="$F$: dotted plus dashed")
    right.plot(sigma, complexity, ":", color=GREEN, lw=1.8, label="KL($q$ || prior)")
    right.plot(sigma, misfit, "--", color=GREY, label="$E_q[-\\log P(D|w)]$")
    for (name, width), colour, dash, mark in zip(
        WIDTHS, (VERMILLION, BLACK, BLUE), ("-.", "-", "--"), "so^", strict=True
    ):
        density = np.exp(-0.5 * ((w - mean) / width) ** 2) / (width * np.sqrt(2 * pi))
        top = int(np.argmax(density))
        left.plot(w, density, dash, color=colour, marker=mark, markevery=[top], ms=7,
                  label=f"$q$ {name}, $\\sigma = {width:.2f}$")  # fmt: skip
        right.plot(width, sum(complexity_and_misfit(mean, width)), mark, color=colour, ms=8)
    left.set(xlim=(3.2, 7.3), ylim=(0, 4.3), ylabel="density (kg per cm)")
    left.set_xlabel("weight $w$ (cm per kg)")
    legend_above(left, 2)
    titled(left, "Three choices of $q$")
    right.set(xscale="log", xlim=(0.05, 1), ylim=(-0.1, 4.3), ylabel="nats")
    right.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    right.minorticks_off()
    right.set_xlabel("standard deviation $\\sigma$ of $q$ (cm per kg)")
    legend_above(right, 2)
    titled(right, "The price of each")
    return figure


# K5, D2, D3: q slides down the free energy of one weight


def free_energy(mu: Any, rho: Any) -> Any:
    """Return F in nats of q = N(mu, softplus(rho)^2) for the spring (K5, D8 with one weight)."""
    mean, precision = SPRING
    sigma = np.logaddexp(0, rho)
    kl = -np.log(sigma) - log(precision) / 2 - 0.5 + precision * (sigma**2 + (mu - mean) ** 2) / 2
    return kl - LOG_EVIDENCE


def slope(theta: Any) -> Any:
    """Return the gradient of `free_energy` for (mu, rho)."""
    mean, precision = SPRING
    parts = softplus_parts(theta[1:])
    sigma = parts.softplus[0]
    d_sigma = precision * sigma - 1 / sigma
    return np.array([precision * (theta[0] - mean), d_sigma * parts.sigmoid[0]])


def path(optimizer: Optimizer, steps: int, start: tuple[float, float]) -> Any:
    """Return (steps + 1, 2) the parameters (mu, rho) along exact descent."""
    theta, points = np.array(start), [np.array(start)]
    memory = optimizer.init(theta)
    for _ in range(steps):
        optimizer.update(theta, slope(theta), memory, 1.0)
        points.append(theta.copy())
    return np.array(points)


def descent() -> Figure:
    """Draw the paths of three optimisers over the contours of F."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    mu, rho = np.meshgrid(np.linspace(4.2, 6.0, 49), np.linspace(-4.4, 1.0, 49))
    lines = ax.contour(
        mu, rho, free_energy(mu, rho), levels=[1.8, 2.0, 2.5, 3, 4, 5, 6], colors=GREY,
        linewidths=0.7,
    )  # fmt: skip
    ax.clabel(lines, fmt="%g", fontsize="x-small")
    start = (4.4, -4.0)
    for name, optimizer, colour, dash, mark in (
        ("plain descent, $\\eta = 0.02$", SGD(0.02), BLACK, "-", "o"),
        ("momentum 0.9, $\\eta = 0.02$", Momentum(0.02, 0.9), VERMILLION, "--", "s"),
        ("Adam, $\\eta = 0.1$", Adam(0.1), BLUE, "-.", "^"),
    ):
        points = path(optimizer, 60, start)
        ax.plot(*points.T, dash, color=colour, marker=mark, ms=3, lw=1, label=name, markevery=2)
    best = np.log(np.expm1(SPRING[1] ** -0.5))
    ax.plot(SPRING[0], best, "*", color=GREEN, ms=13, mec=BLACK, label="minimum: the posterior")
    ax.set_xlabel("mean $\\mu$ of the weight (cm per kg)")
    ax.set_ylabel("raw standard deviation $\\rho$")
    ax.set_xlim(4.2, 6.0)
    ax.set_ylim(-4.4, 1.0)
    legend_above(ax, 2)
    titled(ax, "60 steps down the free energy in nats, every second one marked")
    return figure


# D8, D28: what a mean field misses


def gaps(correlations: Any) -> Any:
    """Return the gap of D8, (sum log Lambda_jj - log det Lambda) / 2 in nats, for each r."""
    found = []
    for r in correlations:
        precision = np.linalg.inv(np.array([[1, r], [r, 1]]))
        found.append((np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1]) / 2)
    return np.array(found)


def mean_field() -> Figure:
    """Draw posterior and both mean fields at r = 0.9, and the gap against r."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    r = 0.9
    for look, covariance in (
        ({"ec": BLACK, "fc": PALE, "lw": 1.4, "label": "posterior"}, [[1, r], [r, 1]]),
        (
            {"ec": BLUE, "fc": "none", "lw": 1.8, "ls": "--", "label": "least KL(q || posterior)"},
            np.eye(2) * (1 - r**2),
        ),
        (
            {
                "ec": VERMILLION,
                "fc": "none",
                "lw": 1.8,
                "ls": "-.",
                "label": "least KL(posterior || q)",
            },
            np.eye(2),
        ),
    ):
        values, vectors = np.linalg.eigh(np.array(covariance))
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        for size in (2, 1):  # standard deviations
            width, height = 2 * size * np.sqrt(values[::-1])
            ellipse = Ellipse((0, 0), width, height, angle=angle, **look)
            left.add_patch(ellipse)
            look.pop("label", None)
    left.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4), aspect="equal")
    left.set_xlabel("first weight, in posterior standard deviations")
    left.set_ylabel("second weight")
    legend_above(left, 2)
    titled(left, "Correlation $r = 0.9$: 1 and 2 standard deviations")
    fine, some = np.linspace(0, 0.995, 200), np.array([0, 0.3, 0.5, 0.7, 0.9, 0.99])
    right.plot(fine, -np.log(1 - fine**2) / 2, color=BLACK, label="$-\\frac{1}{2} \\log(1 - r^2)$")
    right.plot(some, gaps(some), "o", color=BLUE, label="from the determinants of D8")
    right.set(xlim=(-0.02, 1.02), ylim=(-0.05, 2.4))
    right.set_xlabel("correlation $r$ of the two weights")
    right.set_ylabel("gap to the log evidence (nats)")
    legend_above(right, 2)
    titled(right, "What the best mean field misses")
    return figure


# M9: a trajectory that turns back

DEVIATIONS = np.array([1.6, 1.0])


def target(position: Any) -> tuple[Any, Any]:
    """Return log density up to a constant and gradient of a Gaussian with `DEVIATIONS`."""
    scaled = position / DEVIATIONS
    return -0.5 * np.sum(scaled**2, axis=1), -scaled / DEVIATIONS


def trajectory(steps: int = 24, step_size: float = 0.25) -> tuple[Any, Any]:
    """Return positions (steps + 1, 2), and the slope of half the squared distance."""
    start, momentum = np.array([[-1.8, -0.4]]), np.array([[0.2, -1.3]])
    phase = Phase(start, momentum, *target(start))
    positions, slopes = [start[0]], [0.0]
    for _ in range(steps):
        phase = leapfrog(target, DiagonalMetric(np.ones(2)), phase, step_size)
        positions.append(phase.position[0])
        slopes.append(float(phase.momentum[0] @ (phase.position[0] - start[0])))
    return np.array(positions), np.array(slopes)


def u_turn() -> Figure:
    """Draw a trajectory up to and after its U-turn, and the slope that tells."""
    positions, slopes = trajectory()
    turn = int(np.argmax(slopes[1:] < 0)) + 1
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    x, y = np.meshgrid(np.linspace(-3.6, 3.6, 90), np.linspace(-2.4, 2.4, 90))
    density = target(np.column_stack([x.ravel(), y.ravel()]))[0].reshape(x.shape)
    left.contour(x, y, density, levels=[-2, -0.5], colors=SKY, linewidths=1, linestyles="solid")
    on = {"color": VERMILLION, "marker": "o", "ms": 3.5, "lw": 1}
    back = {"color": GREY, "marker": "s", "ms": 3.5, "lw": 1, "ls": "--", "mfc": "white"}
    left.plot(*positions[:turn].T, **on, label="moves away from the start")
    left.plot(*positions[turn - 1 :].T, **back, label="comes back", markevery=slice(1, None))
    left.plot(*positions[0], "*", color=BLACK, ms=12, label="start")
    left.set(xlim=(-3.6, 3.6), ylim=(-2.4, 2.4), aspect="equal")
    left.set_xlabel("$\\theta_1$")
    left.set_ylabel("$\\theta_2$")
    legend_above(left, 2)
    titled(left, "Leapfrog steps on a Gaussian (1, 2 standard deviations)")
    steps = np.arange(len(slopes))
    right.axhline(0, color=GREY, lw=0.8)
    right.plot(steps[:turn], slopes[:turn], **on, label="positive: go on")
    right.plot(
        steps[turn - 1 :],
        slopes[turn - 1 :],
        **back,
        label="negative: stop",
        markevery=slice(1, None),
    )
    right.set_xlabel("leapfrog step")
    right.set_ylabel("$r \\cdot (\\theta' - \\theta)$")
    legend_above(right, 2)
    titled(right, "The slope of half the squared distance")
    return figure


# M10: every point of a trajectory grows it in one way, and all subtrees are looked at

DOUBLINGS = 3


def growth(start: int) -> list[tuple[str, int, int]]:
    """Return direction, first and last point after each doubling that leads from `start` to all."""
    steps = []
    for size in (2**j for j in range(DOUBLINGS)):
        behind = start // size % 2  # the start lies in the second half: its digit is 1
        first = start // (2 * size) * 2 * size
        steps.append(("backwards" if behind else "forwards", first, first + 2 * size - 1))
    return steps


def subtrees() -> list[tuple[int, int]]:
    """Return first and last point of every subtree of more than one point."""
    points = 2**DOUBLINGS
    sizes = (2**j for j in range(1, DOUBLINGS + 1))
    return [(first, first + size - 1) for size in sizes for first in range(0, points, size)]


def doublings() -> Figure:
    """Draw the growth from each of eight points, and who looks at which subtree from one."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    points = 2**DOUBLINGS
    for start in range(points):
        steps = growth(start)
        for (_, first, last), colour, width in reversed(
            list(zip(steps, (BLUE, SKY, PALE), (0.30, 0.50, 0.74), strict=True))
        ):
            size = last - first + 1
            left.barh(start, size - 0.3, width, first - 0.35, color=colour, ec=GREY, lw=0.5,
                      label=f"{int(np.log2(size))} doublings".replace("1 doublings", "1 doubling")
                      if not start else None)  # fmt: skip
        left.plot(start, start, "*", color=BLACK, mfc="white", ms=10,
                  label=None if start else "start")  # fmt: skip
        arrows = " ".join("←" if way == "backwards" else "→" for way, _, _ in steps)
        left.text(points - 0.2, start, arrows, va="center", fontsize="small")
    left.set(xlim=(-0.7, points + 1), ylim=(points - 0.4, -0.6), xticks=range(points))
    left.set(yticks=range(points), xlabel="points in order of time", ylabel="number of the start")
    legend_above(left, 4, ("start", "1 doubling", "2 doublings", "3 doublings"))
    titled(left, "One string of directions from each point")
    start = 5
    for first, last in subtrees():
        whole = first <= start <= last
        look = (
            {"color": VERMILLION, "label": "was the whole trajectory: rule (b)"}
            if whole
            else {"color": PALE, "hatch": "//", "label": "inside a new half: rule (a)"}
        )
        size = last - first + 1
        right.barh(np.log2(size), size - 0.3, 0.5, first - 0.35, ec=GREY, lw=0.8, **look)
    right.plot(range(points), [0] * points, "o", color=GREY, ms=5)
    right.plot(start, 0, "*", color=BLACK, ms=13)
    right.set(xlim=(-0.7, points - 0.3), ylim=(-0.5, 3.5), xticks=range(points))
    right.set(yticks=range(4), yticklabels=["1", "2", "4", "8"])
    right.set(xlabel="points in order of time", ylabel="size of the subtree")
    legend_above(right, 1)
    titled(right, "Who looks at which subtree, from 5")
    return figure


# D7: the softplus family


def naive_ratio(rho: Any) -> Any:
    """Return sigmoid / softplus as it stands in the report (K23, K25)."""
    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(-rho)) / np.log(1 + np.exp(rho))


def softplus() -> Figure:
    """Draw softplus and sigmoid, and their ratio computed in two ways."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    rho = np.linspace(-6, 4, 201)
    parts = softplus_parts(rho)
    left.plot(rho, parts.softplus, color=BLUE, label="$\\sigma = \\log(1 + e^\\rho)$")
    left.plot(rho, parts.sigmoid, "--", color=VERMILLION, label="its slope $s(\\rho)$")
    left.plot(rho, np.maximum(rho, 0), ":", color=GREY, label="max$(\\rho, 0)$")
    left.set_xlabel("$\\rho$")
    left.set_ylabel("standard deviation, slope (no unit)")
    legend_above(left, 3)
    titled(left, "Softplus is positive everywhere")
    far = np.linspace(-40, -28, 301)
    naive = naive_ratio(far)
    finite = np.isfinite(naive)
    right.plot(far[finite], naive[finite], color=VERMILLION, lw=0.9, label="as written")
    right.plot(far, softplus_parts(far).ratio, "--", color=BLACK, label="as computed (D7)")
    right.axvspan(far[0], far[finite][0], color="#E6E6E6", label="as written: infinite")
    right.set(xlim=(-40, -28), ylim=(0, 2.5))
    right.set_xlabel("$\\rho$")
    right.set_ylabel("$s(\\rho) / \\sigma$")
    legend_above(right, 3)
    titled(right, "The ratio of K30, in double precision")
    return figure


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
    places = rng.permuted(np.tile(np.arange(repeats), (samples, 1)), axis=1).T
    uniform = (places + rng.uniform(size=places.shape)) / repeats  # a Latin hypercube: less error
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
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    fine, some = np.linspace(-0.5, 3, 141), np.linspace(-0.5, 3, 15)
    ax.axhline(0, color=GREY, lw=1, ls=":", label="log evidence")
    ax.plot(fine, renyi(fine), color=BLACK, label="exact bound $\\mathcal{R}_\\alpha$")
    for samples, colour, dash, mark in (
        (50, BLUE, "--", "o"), (5, VERMILLION, "-.", "s"), (1, GREEN, ":", "^"),
    ):  # fmt: skip
        means = estimated(some, samples, 1000, np.random.default_rng(samples))
        plural = "s" if samples > 1 else ""
        label = f"mean estimate, {samples} sample{plural}"
        ax.plot(some, means, dash, color=colour, marker=mark, ms=4, lw=1.2, label=label)
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


# D35: shapes of the probability integral transform

FORECASTS = (
    ("right", 0.0, 1.0),
    ("too narrow", 0.0, 0.6),
    ("too wide", 0.0, 1.7),
    ("too low", -0.5, 1.0),
)


def shares(mean: float, deviation: float, y: Any) -> Any:
    """Return the PIT of targets y under N(mean, deviation^2), (N,)."""
    return pit(np.full((1, len(y), 1), mean), np.array(deviation), y[:, None])[:, 0]


def pit_shapes() -> Figure:
    """Draw the histogram of the PIT for four forecasts of standard normal targets."""
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    y = np.random.default_rng(0).standard_normal(2000)
    edges = np.linspace(0, 1, 11)
    inside = np.sqrt(len(y) * 0.1 * 0.9) * 1.96 / len(y) * 10  # of a bin, if uniform
    every = figure.subplots(1, len(FORECASTS), sharey=True)
    for ax, (name, mean, deviation) in zip(every, FORECASTS, strict=True):
        density, _ = np.histogram(shares(mean, deviation, y), edges, density=True)
        ax.stairs(density, edges, fill=True, color=SKY, ec=BLUE, label="histogram of 2000 rows")
        ax.axhspan(1 - inside, 1 + inside, color=VERMILLION, alpha=0.3, lw=0,
                   label="95 % of bins of a right forecast")  # fmt: skip
        ax.axhline(1, color=BLACK, lw=1, ls="--", label="uniform")
        ax.set_title(f"Forecast {name}", loc="left", fontsize="medium")
        ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        ax.set_xlabel("$u = G(y)$")
    every[0].set_ylabel("density")
    legend_of_figure(figure, every[0], 3)
    return figure


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
    again = mean + SCATTER * rng.standard_normal(mean.shape)
    deviation = np.full_like(mean, SCATTER)
    quantity = QUANTITIES[name]
    seen = quantity(np.broadcast_to(y[None, :, None], mean.shape), mean, deviation)
    return seen, quantity(again, mean, deviation)


def p_values(sets: int, rng: np.random.Generator, draws: int = 200) -> Any:
    """Return p of the largest target for data from the line, before and after them (2, sets)."""
    found = np.empty((2, sets))
    for number in range(sets):
        y = INPUTS @ rng.standard_normal(2) + SCATTER * rng.standard_normal(12)
        for row, weights in enumerate(
            (rng.standard_normal((draws, 2)), weights_after(y, draws, rng))
        ):
            seen, again = quantities("largest y", y, weights, rng)
            found[row, number] = np.mean(again > seen)
    return found


def bent(rng: np.random.Generator) -> Any:
    """Return targets (12,) of a curve that no line is."""
    return 2.0 * PLACES**2 - 0.5 + SCATTER * rng.standard_normal(12)


def predictive_checks() -> Figure:
    """Draw the histograms of p before and after the data, and a check that sees a misfit."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    edges = np.linspace(0, 1, 21)
    before, after = p_values(4000, np.random.default_rng(22))
    density_of_draws(left, after, edges, fill=True, color=SKY, ec=BLUE,
                     label="weights of the posterior")  # fmt: skip
    density_of_draws(left, before, edges, color=BLACK, ls="--", lw=1.4,
                     label="weights of the prior")  # fmt: skip
    left.set(xlim=(0, 1), ylim=(0, None), xlabel="predictive p-value", ylabel="density")
    legend_above(left, 2)
    titled(left, "4000 data sets of the right model")
    rng = np.random.default_rng(3)
    y = bent(rng)
    seen, again = quantities("residuals of neighbours", y, weights_after(y, 20_000, rng), rng)
    edges = np.linspace(-1.5, 3, 46)
    density_of_draws(right, again, edges, fill=True, color=SKY, ec=BLUE, label="replications")
    density_of_draws(right, seen, edges, color=BLACK, lw=1.4, label="the data")
    right.set(xlim=(-1.5, 3), ylim=(0, None), ylabel="density")
    right.set_xlabel("mean product of neighbouring residuals")
    legend_above(right, 2)
    share = np.mean(again > seen)
    titled(right, f"A line for data that bend: $p = {share:.3f}$")
    return figure


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
    rows, d_w = w[:, None], np.zeros((len(w), 1))
    value, saved = prior.log_density({}, rows, Buffers())
    value = value.copy()
    prior.add_vjp(saved, np.ones(len(w)), d_w, {})
    return value, d_w[:, 0]


def priors() -> Figure:
    """Draw what each prior asks of a weight of each size, and how hard it pulls to 0."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    w = np.linspace(-4, 4, 802)  # without 0, where Laplace's slope jumps
    for name, prior, colour, dash in PRIORS:
        value, slope_of_w = density_and_slope(prior, w)
        look = {"color": colour, "ls": dash, "lw": 1.8}
        left.plot(w, -value, **look, label=name)
        right.plot(w[w > 0], -slope_of_w[w > 0], **look)
    left.set(xlim=(-4, 4), ylim=(-1, 9), ylabel="price $-\\log P(w)$ (nats)")
    left.set_xlabel("weight, in standard deviations of the prior")
    left.set_title("What a weight costs", loc="left", fontsize="medium")
    right.set(xlim=(0, 4), ylim=(0, 4.2), ylabel="slope of the price")
    right.set_xlabel("weight, in standard deviations of the prior")
    right.set_title("How hard it is pulled to 0", loc="left", fontsize="medium")
    legend_of_figure(figure, left, 4)
    return figure


# D37: what can be known of a ball, and what four printed accuracies say

PRINTED = (0.8123, 0.8296, 0.8296, 0.8493)


def powerball() -> Figure:
    """Draw both bins of 59 balls with the ceiling, and how far luck carries the best classifier."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    urn = exact(59)
    numbers = np.arange(1, 60)
    bin_3, bin_1 = 100 * urn.mass[:, 1:]
    left.fill_between(numbers, np.maximum(bin_1, bin_3), color=PALE, lw=0,
                      label=f"sum of the larger: {100 * urn.accuracy:.1f} %")  # fmt: skip
    left.plot(numbers, bin_1, "o-", color=GREEN, ms=2.5, lw=1, label="bin 1")
    left.plot(numbers, bin_3, "s--", color=ORANGE, ms=2.5, lw=1, label="bin 3")
    left.axvline(urn.limit + 0.5, color=BLACK, lw=0.8, ls=":", label="boundary")
    left.set(xlim=(0, 60), ylim=(0, None), ylabel="probability of the pair (%)")
    left.set_xlabel("number of the ball")
    legend_above(left, 2)
    titled(left, "59 balls: which bin and which number")
    best = 100 * urn.accuracy
    for place, draws in enumerate((824, 300, 165)):
        deviation = 100 * urn.draw_deviation / draws**0.5
        right.errorbar(best, place, xerr=2 * deviation, color=BLACK, fmt="o", capsize=4, ms=4,
                       label="best classifier, ±2 sd" if not place else None)  # fmt: skip
    for accuracy in sorted(set(PRINTED)):
        right.axvline(100 * accuracy, color=VERMILLION, lw=1.2, ls="--",
                      label="printed" if accuracy == PRINTED[0] else None)  # fmt: skip
    right.set(xlim=(79.5, 89.5), ylim=(-0.5, 2.5), yticks=[0, 1, 2])
    right.set_yticklabels(["824", "300", "165"])
    right.set_ylabel("draws held out")
    right.set_xlabel("right answers (%)")
    legend_above(right, 1)
    titled(right, "What luck does to the best of all")
    return figure


# K31, D51, W3: a neuron, a network, and the two graphs of reparameterisation

NEURON_INPUTS, NEURON_WEIGHTS, NEURON_BIAS = (1.0, -2.0, 0.5), (0.6, 0.3, -1.2), 0.2


def neuron(activation: str) -> float:
    """Return the output of the neuron of the picture: a network of one unit that is passed on."""
    w = np.array([*NEURON_WEIGHTS, NEURON_BIAS, 1.0, 0.0])
    found, _ = forward(MLP((3, 1, 1), activation), w[None], np.array([NEURON_INPUTS]), Buffers())
    return float(found.item())


def node(ax: Axes, at: tuple[float, float], text: str, shape: str = "o", size: float = 900) -> None:
    """Draw a node with its text: a circle, a diamond or a square."""
    ax.scatter(*at, s=size, marker=shape, facecolor="white", edgecolor=BLACK, zorder=2)
    ax.text(*at, text, ha="center", va="center", zorder=3)


def edge(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    text: str = "",
    colour: str = BLACK,
    bend: float = 0.0,
    away: tuple[float, float] = (0, 0.1),
) -> None:
    """Draw an arrow between two nodes, with a text at its middle."""
    way = {"arrowstyle": "->", "color": colour, "shrinkA": 17, "shrinkB": 17,
           "connectionstyle": f"arc3,rad={bend}"}  # fmt: skip
    ax.annotate("", end, start, arrowprops=way)
    middle = [(a + b) / 2 + c for a, b, c in zip(start, end, away, strict=True)]
    box = {"color": "white", "pad": 1.0} if text else None
    ax.text(*middle, text, color=colour, ha="center", va="center", fontsize="small", bbox=box)


def blank(ax: Axes, title: str) -> None:
    """Take the frame away, and leave a title."""
    ax.set_axis_off()
    ax.set_title(title, loc="left", fontsize="medium")


def network() -> Figure:
    """Draw a neuron with its numbers, and a network of such neurons."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (x, w) in enumerate(zip(NEURON_INPUTS, NEURON_WEIGHTS, strict=True)):
        node(left, (0, 2 - row), f"${x:g}$")
        factor = f"$\\times {w:g}$" if w > 0 else f"$\\times ({w:g})$"
        edge(left, (0, 2 - row), (1.5, 1), factor, away=(-0.1, 0.07 * (1 - row)))
    z = float(np.dot(NEURON_INPUTS, NEURON_WEIGHTS) + NEURON_BIAS)
    node(left, (1.5, 1), "$\\Sigma$")
    edge(left, (1.5, 2), (1.5, 1), f"+ {NEURON_BIAS:g}", away=(0.25, 0.25))
    node(left, (2.9, 1), "$s$", "s")
    edge(left, (1.5, 1), (2.9, 1), f"$z = {z:g}$", away=(0, 0.16))
    edge(left, (2.9, 1), (4.2, 1), "")
    left.text(4.25, 1, f"{neuron('sigmoid'):.3f}", ha="left", va="center")
    left.set(xlim=(-0.4, 5), ylim=(-0.5, 2.5))
    blank(left, "A neuron: weighted sum, bias, sigmoid")
    sizes = (3, 4, 4, 1)
    places = [[(1.3 * k, (n - 1) / 2 - j) for j in range(n)] for k, n in enumerate(sizes)]
    for before, after in pairwise(places):
        for start in before:
            for end in after:
                right.plot(*zip(start, end, strict=True), color=GREY, lw=0.8, zorder=1)
    for layer, name in zip(places, ("x", "a_0", "a_1", "f"), strict=True):
        for at in layer:
            node(right, at, f"${name}$", size=500)
    for k in range(3):
        right.text(1.3 * k + 0.65, -2.1, f"$W_{k}, b_{k}$", ha="center", fontsize="small")
    right.set(xlim=(-0.4, 4.3), ylim=(-2.4, 2))
    blank(right, "A network 3-4-4-1, K31 to K36")
    return figure


def two_graphs() -> Figure:
    """Draw where the gradient is stopped by a random node, and where it is not."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, reparameterised in ((left, False), (right, True)):
        node(ax, (0, 0), "$\\theta$", "D", 700)
        node(ax, (1.6, 0), "$w$", "D" if reparameterised else "o", 700 if reparameterised else 900)
        node(ax, (3.2, 0), "$f$", "D", 700)
        edge(ax, (0, 0), (1.6, 0))
        edge(ax, (1.6, 0), (3.2, 0))
        edge(ax, (0, 0), (3.2, 0), "directly", bend=0.45, away=(0, -0.72))
        edge(ax, (3.2, 0), (1.6, 0), "$\\partial f / \\partial w$", VERMILLION, 0.4, (0, 0.52))
        if reparameterised:
            node(ax, (1.6, 1.5), "$\\epsilon$")
            edge(ax, (1.6, 1.5), (1.6, 0))
            slope = "$\\partial w / \\partial \\theta$"
            edge(ax, (1.6, 0), (0, 0), slope, VERMILLION, 0.4, (0, 0.52))
        else:
            ax.text(0.8, 0.5, "?", color=VERMILLION, ha="center")
        ax.set(xlim=(-0.5, 3.7), ylim=(-1.1, 2))
    blank(left, "Original: $w \\sim q(w \\mid \\theta)$")
    blank(right, "Reparameterised: $w = t(\\theta, \\epsilon)$")
    return figure


# K1 to K4, K17, K21 and K30, K37 to K42: the report's way in pictures; the spring is one weight


def normal(z: Any, mean: float, deviation: float) -> Any:
    """Return the density of N(mean, deviation^2)."""
    return np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * pi))


def noise_to_weights() -> Figure:
    """Draw how five values of noise become weights, and softplus with its slope."""
    figure = Figure(figsize=(8.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    mean, sigma = SPRING[0], SPRING[1] ** -0.5
    eps, some = np.linspace(-3, 3, 201), np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    low, side = mean - 5 * sigma, -5.0
    left.fill_between(eps, low, low + 2.2 * normal(eps, 0, 1), color=PALE, ec=BLACK, lw=1)
    w = np.linspace(mean - 3 * sigma, mean + 3 * sigma, 201)
    left.fill_betweenx(w, side, side + 1.4 * normal(w, mean, sigma), color=SKY, ec=BLUE, lw=1)
    left.plot(eps, mean + sigma * eps, color=BLACK)
    for each in some:
        at = mean + sigma * each
        left.plot([each, each, side], [low, at, at], color=GREY, lw=0.7, ls=":")
        left.plot(each, at, "o", color=BLUE, ms=5)
    left.text(0, low + 0.25, "$N(0, 1)$", ha="center")
    left.text(side + 0.12, mean, "$q$", va="center")
    left.text(1.1, mean + 0.1, "$w = \\mu + \\sigma\\epsilon$", ha="left", va="top")
    left.set(xlim=(side, 3.2), ylim=(low, mean + 4 * sigma), xticks=some)
    left.set(xlabel="noise $\\epsilon$ (no unit)", ylabel="weight $w$ (cm per kg)")
    left.set_title(
        "From noise to a weight: $\\mu = 5.25$, $\\sigma = 0.35$", loc="left", size="medium"
    )
    rho = np.linspace(-5, 5, 201)
    parts = softplus_parts(rho)
    right.plot(rho, parts.softplus, color=BLACK, label="$\\sigma = \\log(1 + e^\\rho)$")
    right.plot(rho, parts.sigmoid, "--", color=VERMILLION, label="its slope $s(\\rho)$")
    right.plot(rho[rho < 1.6], np.exp(rho[rho < 1.6]), ":", color=GREY, lw=1.6, label="$e^\\rho$")
    right.plot(rho[rho > 0], rho[rho > 0], "-.", color=GREY, lw=1, label="$\\rho$")
    right.set(xlim=(-5, 5), ylim=(0, 5), xlabel="$\\rho$", ylabel="$\\sigma$, and its slope")
    legend_above(right, 2)
    titled(right, "Every $\\rho$ gives a positive $\\sigma$")
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
    left, right = figure.subplots(1, 2)
    w, far = np.linspace(3.4, 7.0, 201), (4.6, 0.6)
    best = (SPRING[0], SPRING[1] ** -0.5)
    draws = far[0] + far[1] * np.array([NormalDist().inv_cdf((k + 0.5) / 8) for k in range(8)])
    looks = (
        ("$\\log q$", "-", BLUE),
        ("$\\log P(w)$", ":", ORANGE),
        ("$\\log P(D|w)$", "--", GREEN),
    )
    for (name, dash, colour), curve, at in zip(
        looks, log_terms(w, *far), log_terms(draws, *far), strict=True
    ):
        left.plot(w, curve, dash, color=colour, lw=1.8, label=name)
        left.plot(draws, at, "o", color=colour, ms=4)
    left.set(xlim=(3.4, 7.0), ylim=(-9, 1), ylabel="log density (nats)")
    for (mean, deviation), dash, colour, name in (
        (far, "-", BLUE, "$q$ of the left picture"),
        (best, "--", BLACK, "$q$ = posterior: $-\\log P(D)$"),
    ):
        q, prior, likelihood = log_terms(w, mean, deviation)
        right.plot(w, q - prior - likelihood, dash, color=colour, label=name)
    q, prior, likelihood = log_terms(draws, *far)
    right.plot(draws, q - prior - likelihood, "o", color=BLUE, ms=5)
    price = sum(complexity_and_misfit(*far))
    right.axhline(price, color=BLUE, lw=0.8, ls=":", label=f"its mean under $q$: $F$ = {price:.1f}")
    right.set(xlim=(3.4, 7.0), ylim=(-0.5, 10), ylabel="nats")
    for ax, title in (
        (left, "Three terms at eight quantiles of $q$"),
        (right, "The bracket of K5"),
    ):
        ax.set_xlabel("weight $w$ (cm per kg)")
        legend_above(ax, 3 if ax is left else 2)
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
    left, right = figure.subplots(1, 2)
    mu, sigma = np.linspace(4.4, 6.1, 101), np.linspace(0.1, 0.8, 101)
    entropy, *others = pulls_of_sigma(sigma)
    push = ("of $\\log q$: $-1/\\sigma$", "-.", BLUE)
    both = ("of prior and data: $8\\sigma$", "--", GREEN)
    looks = (("of the prior", ":", ORANGE), ("of the data", "--", GREEN))
    for ax, at, terms, named, best in (
        (left, mu, pulls_of_mu(mu), looks, SPRING[0]),
        (right, sigma, (entropy, sum(others)), (push, both), SPRING[1] ** -0.5),
    ):
        for (name, dash, colour), term in zip(named, terms, strict=True):
            ax.plot(at, term, dash, color=colour, lw=1.8, label=name)
        ax.plot(at, sum(terms), color=BLACK, label="sum")
        ax.plot(best, 0, "*", color=BLACK, ms=12)
        ax.axhline(0, color=GREY, lw=0.8)
        legend_above(ax, 2)
    left.set(xlim=(4.4, 6.1), ylim=(-7, 7), xlabel="mean $\\mu$ of $q$ (cm per kg)")
    left.set_ylabel("$\\partial F / \\partial \\mu$ (nats per cm/kg)")
    right.set(
        xlim=(0.1, 0.8), ylim=(-8, 8), xlabel="standard deviation $\\sigma$ of $q$ (cm per kg)"
    )
    right.set_ylabel("$\\partial F / \\partial \\sigma$ (nats per cm/kg)")
    titled(left, "Two pulls on the mean")
    titled(right, "Two on the standard deviation")
    return figure


def backward() -> Figure:
    """Draw forward and backward pass of one hidden layer: what is kept, and where it is used."""
    figure = Figure(figsize=(8.6, 3.7))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(-0.9, 9.9), ylim=(-1.3, 2.5))
    ax.set_axis_off()
    boxes = {}
    for name, at, text, face in (
        ("x", (0.3, 2), "$x$", "white"),
        ("z0", (2.4, 2), "$z_0$", "white"),
        ("a0", (4.4, 2), "$a_0$", "white"),
        ("f", (6.8, 2), "$\\hat y = z_1$", "white"),
        ("nll", (9.0, 2), "NLL", "white"),
        ("d1", (7.6, 0.7), "$\\delta_1 = -(y - \\hat y) / \\sigma_y^2$", PALE),
        ("d0", (2.4, 0.7), "$\\delta_0 = (\\delta_1 W_1^{\\top}) \\circ [z_0 > 0]$", PALE),
        ("1", (5.7, -0.7), "$dW_1 = a_0^{\\top} \\delta_1$\n$db_1 = 1^{\\top} \\delta_1$", SKY),
        ("0", (0.3, -0.7), "$dW_0 = x^{\\top} \\delta_0$\n$db_0 = 1^{\\top} \\delta_0$", SKY),
    ):
        frame = {"boxstyle": "round,pad=0.4", "fc": face, "ec": BLACK}
        boxes[name] = ax.text(*at, text, ha="center", va="center", bbox=frame, zorder=3)
    for start, end, dash, colour in (
        *((a, b, "-", BLACK) for a, b in pairwise(("x", "z0", "a0", "f", "nll"))),
        *(
            (a, b, "-", VERMILLION)
            for a, b in (("nll", "d1"), ("d1", "d0"), ("d1", "1"), ("d0", "0"))
        ),
        *((a, b, ":", GREY) for a, b in (("x", "0"), ("z0", "d0"), ("a0", "1"))),
    ):
        patches = [boxes[name].get_bbox_patch() for name in (start, end)]
        way = {"arrowstyle": "->", "color": colour, "ls": dash, "lw": 1.3, "patchA": patches[0],
               "patchB": patches[1], "shrinkA": 1, "shrinkB": 1}  # fmt: skip
        ax.annotate("", boxes[end].get_position(), boxes[start].get_position(), arrowprops=way)
    for at, text in ((1.3, "$\\times W_0 + b_0$"), (3.4, "ReLU"), (5.4, "$\\times W_1 + b_1$"),
                     (8.1, "K15")):  # fmt: skip
        ax.text(at, 2.2, text, ha="center", fontsize="small")
    ax.text(8.7, 1.3, "and back", color=VERMILLION, fontsize="small")
    ax.text(7.1, -0.7, "dotted: kept on the way forwards", color=GREY, va="center", size="small")
    return figure


# Two clusters of data: a Laplace approximation beside a mean field, after D55


def in_the_gap(inference: str, line: Any) -> tuple[Any, Any, Predictive]:
    """Return x (N, 1), y (N,) with a gap in x, and what a learner predicts at `line`."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1.5, -0.6, 60), rng.uniform(0.6, 1.5, 60)])[:, None]
    y = np.sin(4 * x[:, 0] + 0.8) + 0.1 * rng.standard_normal(120)
    options: Any = {"activation": "tanh", "predict_samples": 1000, "random_state": 0}
    model = BayesianMLPRegressor(inference=inference, **options).fit(x, y)
    return x, y, model.predict_distribution(line)


def gap() -> Figure:
    """Draw both bands, of the functions alone."""
    figure, line = Figure(figsize=(9.6, 3.8), layout="constrained"), np.linspace(-2, 2, 201)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, ("laplace", "mean-field"), strict=True):
        x, y, p = in_the_gap(name, line[:, None])
        for width, alpha in ((2, 0.2), (1, 0.35)):
            low, high = (p.mean + sign * width * p.epistemic for sign in (-1, 1))
            ax.fill_between(line, low, high, color=BLUE, alpha=alpha, lw=0)
        ax.plot(line, p.mean, color=BLUE)
        ax.plot(x[:, 0], y, ".", color=BLACK, ms=3)
        ax.set(title=f'inference="{name}"', xlabel="x", ylim=(-2.5, 2.5))
    axes[0].set_ylabel("y, and 1 and 2 standard deviations of functions")
    return figure


# D62: steps that the curvature scales


def bound_by_step(inference: str) -> tuple[Any, Any]:
    """Return steps and the ELBO of diabetes, nats per row, each a mean over 2 % of them."""
    x, y = load_diabetes(return_X_y=True)
    model = BayesianMLPRegressor(inference=inference, random_state=0).fit(x, y)
    bound = -np.array([epoch.kl + epoch.nll for epoch in model.history_]) / len(x)
    width = len(bound) // 50
    of_epoch = model.training_.optimizer_state.steps // len(bound)
    steps = np.arange(width, len(bound) + 1) * of_epoch
    return steps, np.convolve(bound, np.full(width, 1 / width), "valid")


def natural() -> Figure:
    """Draw the ELBO of Adam beside that of IVON."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    for name, label, colour, dash in (
        ("mean-field", "Adam", BLUE, "-."),
        ("ivon", "IVON", VERMILLION, "-"),
    ):
        ax.plot(*bound_by_step(name), dash, color=colour, label=label)
    ax.set(
        xlabel="steps",
        ylabel="ELBO (nats per row)",
        xlim=(300, 16_000),
        ylim=(-2.2, -1.15),
        xscale="log",
    )
    legend_above(ax, 2)
    titled(ax, "442 rows of diabetes, a mean field each as it comes")
    return figure


# The stationary law of SGHMC beside its target N(0, 1), after D64


class NoisyTarget:
    """N(0, 1), whose minibatches have a gradient with an error of variance 1."""

    def draw_rows(self, rng: np.random.Generator, chains: int, size: int) -> Any:
        """Draw the errors (S, 1)."""
        return rng.standard_normal((chains, 1))

    def __call__(self, position: Any, rows: Any = 0.0) -> tuple[Any, Any]:
        """Return log density and gradient."""
        return -0.5 * (position**2).sum(axis=1), rows - position


def heated(h: float) -> tuple[Any, float]:
    """Return draws with steps h and friction 1, and the variance that D64 says."""
    kernel, rng = SGHMC(h, 1.0, steps=20), np.random.default_rng(0)
    state, target, draws = kernel.init(NoisyTarget(), np.zeros((2000, 1))), NoisyTarget(), []
    for _ in range(12):
        state, _ = kernel.step(target, rng, state)
        draws.append(state.position)
    return np.concatenate(draws[2:]), (1 + h**2 / 4 / np.tanh(h / 2)) / (1 - h**2 / 4)


def stochastic() -> Figure:
    """Draw three histograms, the law, and the target."""
    figure, x = Figure(figsize=(9.6, 3.6), layout="constrained"), np.linspace(-7, 7, 281)
    for ax, h in zip(figure.subplots(1, 3, sharey=True), (0.3, 1.0, 1.5), strict=True):
        draws, variance = heated(h)
        ax.hist(draws, 70, range=(-7, 7), density=True, color=PALE, label="draws")
        lines = (("law of the steps", variance, VERMILLION, "-"), ("target", 1.0, BLACK, "--"))
        for name, width, colour, style in lines:
            density = np.exp(-0.5 * x * x / width) / np.sqrt(2 * pi * width)
            ax.plot(x, density, color=colour, ls=style, label=name)
        ax.set(title=f"h = {h}: variance {variance:.2f}", xlabel="$\\theta$")
    figure.axes[0].set_ylabel("density")
    legend_of_figure(figure, figure.axes[0], 3)
    return figure


# R3 to D23: six estimators of one gradient of the spring, and how far a single one strays

MEAN, WIDTH = SPRING[0], SPRING[1] ** -0.5  # of the spring's posterior
ESTIMATORS = (
    *("the report's", "KL in closed form", "sticking the landing", "antithetic pair"),
    *("score alone", "score and baseline"),
)


def log_weight(w: Any, mu: float, sigma: float) -> Any:
    """Return log P(w, D) - log q(w) of the spring, q = N(mu, sigma^2)."""
    gap = ((w - mu) / sigma) ** 2 - ((w - MEAN) / WIDTH) ** 2
    return LOG_EVIDENCE + log(sigma / WIDTH) + gap / 2


def strayed(mu: float, sigma: float, eps: Any) -> dict[str, Any]:
    """Return estimates (R,) of dF/dmu, each from two samples with the noise eps (R, 2)."""
    score, w = eps / sigma, mu + sigma * eps
    d_w, cost = SPRING[1] * (w - MEAN), -log_weight(w, mu, sigma)
    pair = SPRING[1] * (mu + sigma * np.stack([eps[:, 0], -eps[:, 0]], axis=1) - MEAN)
    found = (
        d_w, 4 * (mu - 5) + 4 * (w - 5.5), d_w - score, pair, cost * score,
        2 * (cost - cost.mean(axis=1, keepdims=True)) * score,
    )  # fmt: skip
    return {name: each.mean(axis=1) for name, each in zip(ESTIMATORS, found, strict=True)}


def straying() -> Figure:
    """Draw 150 estimates by each estimator, on the way and at the posterior."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    axes, rng = figure.subplots(1, 2, sharey=True), np.random.default_rng(0)
    places = (
        ("On the way: $q = N(4.6, 0.2^2)$", (4.6, 0.2)),
        ("$q$ is the posterior", (MEAN, WIDTH)),
    )
    for ax, (title, (mu, sigma)) in zip(axes, places, strict=True):
        ax.axvline(SPRING[1] * (mu - MEAN), color=BLACK, lw=1, label="the gradient")
        for row, found in enumerate(strayed(mu, sigma, rng.standard_normal((150, 2))).values()):
            ax.plot(found, row + rng.uniform(-0.28, 0.28, 150), "o", color=BLUE, ms=2.5, alpha=0.5,
                    mew=0, label=None if row else "an estimate from two samples")  # fmt: skip
        ax.set(xlim=(-40, 30), ylim=(5.5, -0.5))
        ax.set_xlabel("estimate of $\\partial F / \\partial \\mu$ (nats per cm/kg)")
        ax.set_title(title, loc="left", fontsize="medium")
    axes[0].set_yticks(range(6), ESTIMATORS)
    legend_of_figure(figure, axes[0], 2)
    return figure


# D20: the score cancels the noise of a wide q, and is the noise of a narrow one


def landing() -> Figure:
    """Draw the standard deviation of both gradients for mu against sigma of q."""
    figure = Figure(figsize=(6.4, 3.9), layout="constrained")
    ax, sigma, stiff = figure.subplots(), np.geomspace(0.004, 1, 800), SPRING[1]
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
    """Return the gradient for rho over s(rho) (K30) of the spring at the best sigma."""
    return SPRING[1] * (mu + WIDTH * eps - MEAN) * eps - 1 / WIDTH


def pair_ratio(mu: float) -> float:
    """Return the variance of the pair over that of two independent samples (D23)."""
    even, odd = 2 * SPRING[1], (SPRING[1] * (mu - MEAN)) ** 2  # Lambda sigma = Lambda^(1/2)
    return 2 * even / (even + odd)


def antithetic() -> Figure:
    """Draw the gradient for rho and the mean of a pair against eps, far away and at the optimum."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    axes, eps = figure.subplots(1, 2, sharey=True), np.linspace(-2.5, 2.5, 101)
    for ax, mu, title in zip(axes, (MEAN - 1.5, MEAN), ("Far away", "At the optimum"), strict=True):
        one, other = one_rho(mu, eps), one_rho(mu, -eps)
        ax.plot(eps, one, color=BLUE, label="one sample $h(\\epsilon)$")
        ax.plot(eps, other, ":", color=BLUE, label="its mirror image $h(-\\epsilon)$")
        ax.plot(eps, (one + other) / 2, "--", color=VERMILLION, lw=2, label="the mean of the pair")
        ax.set(xlabel="noise $\\epsilon$ (no unit)", xlim=(-2.5, 2.5))
        ratio = f"{title}: variance {pair_ratio(mu):.1f} times that of two"
        ax.set_title(ratio, loc="left", fontsize="medium")
    axes[0].set_ylabel("gradient for $\\rho$ over $s(\\rho)$")
    legend_of_figure(figure, axes[0], 3)
    return figure


# D21, D22: noise that all rows share, and noise of their own

SHARING = ("one $w$ for all rows", "outputs drawn by row (D21)", "signs by row (D22)")


def drawn_outputs(way: str, theta: Any, rows: Any, rng: np.random.Generator) -> Any:
    """Return outputs (B,) of the example's network, with its noise shared in one of three ways."""
    mean, spread = (plain.unpack(NET, part[None]) for part in np.split(theta, 2))
    a = rows
    for layer, ((W, b), (V, c)) in enumerate(zip(mean, spread, strict=True)):
        a, V, c = a * (a > 0) if layer else a, plain.softplus(V[0]), plain.softplus(c[0])
        z = a @ W[0] + b[0]
        if way == SHARING[1]:
            z = z + np.sqrt(a**2 @ V**2 + c**2) * rng.standard_normal(z.shape)
        else:
            inputs, outputs, bias = (
                rng.choice([-1.0, 1.0], size) if way == SHARING[2] else 1.0
                for size in (a.shape, z.shape, z.shape)
            )
            z = z + ((a * inputs) @ (V * rng.standard_normal(V.shape))) * outputs
            z = z + bias * c * rng.standard_normal(c.shape)
        a = z
    return a[:, 0]


def gradient_noise(theta: Any, counts: Sequence[int], draws: int = 2000) -> Any:
    """Return the variance (3, counts) of the gradient for mu, summed, with so many rows."""
    model, (x, y, _) = Model(MLP(NET), GaussianPrior(1.0), GaussianLikelihood(NOISE)), data()
    found = []
    for kind in (ClosedFormKL, LocalReparameterisation, Flipout):
        estimator, rng, row = kind(model), np.random.default_rng(2), []
        for count in counts:
            grads = [
                estimator.value_and_grad(theta, estimator.draw(rng, 1, rows=count), x[:count],
                                         y[:count], count / len(x))[1][: theta.size // 2]
                for _ in range(draws)
            ]  # fmt: skip
            row.append(np.var(grads, axis=0).sum())
        found.append(row)
    return np.array(found)


def shared_noise() -> Figure:
    """Draw three draws of the outputs of 34 rows in each way, and the variance by rows."""
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    (*draws, last) = figure.subplots(2, 2).ravel()
    (theta,), rows = thetas([300]), np.sort(data()[0][::3], axis=0)
    middle = predicted(theta, rows).mean[:, 0]
    for ax, way in zip(draws, SHARING, strict=True):
        rng = np.random.default_rng(5)
        ax.axhline(0, color=GREY, lw=0.8)
        for colour, mark in ((BLUE, "o"), (VERMILLION, "s"), (BLACK, "^")):
            ax.plot(rows[:, 0], drawn_outputs(way, theta, rows, rng) - middle, mark, color=colour,
                    ms=3.5, ls="-" if way == SHARING[0] else "", lw=0.8)  # fmt: skip
        ax.set(xlabel="x of the row (dimensionless)", ylim=(-0.65, 0.65))
        ax.set_ylabel("output minus its mean (of y)")
        ax.set_title(f"Three draws: {way}", loc="left", fontsize="medium")
    counts = (1, 3, 10, 30, 100)
    noise = gradient_noise(theta, counts)
    for row, look, name in zip(
        noise / noise[0],
        ({"ls": "--", "color": GREY}, {"marker": "o", "color": BLUE},
         {"marker": "s", "ls": "-.", "color": VERMILLION}),
        SHARING, strict=True,
    ):  # fmt: skip
        last.plot(counts, row, **look, label=name.removesuffix(" for all rows"))
    last.set(xscale="log", ylim=(0, 1.2), xlabel="rows of the minibatch")
    last.set_ylabel("relative variance")
    last.set_xticks(counts, [str(count) for count in counts])
    last.minorticks_off()
    last.set_title("Gradient for $\\mu$", loc="left", fontsize="medium", pad=22)
    legend_above(last, 3)
    return figure


# G2, G6, D28: one curve averaged under two densities, and what samples of q make of it

NARROW = (4.9, 0.28)  # mean and standard deviation of the q that is too narrow, off the posterior


def two_gaps() -> tuple[float, float]:
    """Return KL(q || posterior) and KL(posterior || q) in nats, q as in NARROW (K18)."""
    mu, sigma = NARROW

    def divergence(m: float, s: float, other: float, width: float) -> float:
        return log(width / s) + (s**2 + (m - other) ** 2) / (2 * width**2) - 0.5

    return divergence(mu, sigma, MEAN, WIDTH), divergence(MEAN, WIDTH, mu, sigma)


def by_samples(counts: Sequence[int], draws: int, rng: np.random.Generator) -> Any:
    """Return the mean estimates (2, counts) of the importance-weighted and the upper bound."""
    mu, sigma = NARROW
    found = []
    for count in counts:
        logs = log_weight(mu + sigma * rng.standard_normal((draws, count)), mu, sigma)
        most = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - most)
        total = weights.sum(axis=1)
        iwae = most[:, 0] + np.log(total / count)
        found.append((iwae.mean(), np.mean(np.sum(weights * logs, axis=1) / total)))
    return np.transpose(found)


def two_averages() -> Figure:
    """Draw the log weight with both densities, and the estimates against samples."""
    figure = Figure(figsize=(8.8, 4.6), layout="constrained")
    axes = figure.subplot_mosaic([["q", "k"], ["w", "k"]], height_ratios=(1, 1.5))
    (mu, sigma), (below, above) = NARROW, two_gaps()
    w, bar = np.linspace(3.9, 6.5, 261), {"ls": "-", "lw": 1}
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
    sigma, slope = plain.softplus(rho), plain.sigmoid(rho)
    return np.array([(mu - m) / sigma**2, (1 / sigma - (v + (m - mu) ** 2) / sigma**3) * slope])


def through_the_samples(mu: float, rho: float, m: float, v: float, log_z: float) -> Any:
    """Return what Algorithm 1 is when log q is differentiated through its samples (G8)."""
    return np.array([0.0, plain.sigmoid(rho) / plain.softplus(rho)])


def equation_5(mu: float, rho: float, m: float, v: float, log_z: float) -> Any:
    """Return the expectation of Equation 5 as printed (G5), by quadrature over the posterior."""
    sigma, slope, w = plain.softplus(rho), plain.sigmoid(rho), m + v**0.5 * NODES
    log_omega = log_z + log(sigma / v**0.5) - NODES**2 / 2 + ((w - mu) / sigma) ** 2 / 2
    d_log_p = (log_omega + 1) * (m - w) / v
    for_rho = d_log_p * (w - mu) / sigma * slope + slope / sigma
    return np.array([SHARES @ d_log_p, SHARES @ for_rho])


def followed(gradient: Any, steps: int, start: tuple[float, float] = (4.4, 0.3)) -> Any:
    """Return (steps + 1, 2) mu and sigma along descent for the spring."""
    theta, points = np.array(start), [np.array(start)]
    for _ in range(steps):
        theta = theta - 0.02 * gradient(*theta, MEAN, WIDTH**2, LOG_EVIDENCE)
        points.append(theta)
    mu, rho = np.transpose(points)
    return np.column_stack([mu, plain.softplus(rho)])


def algorithm_1() -> Figure:
    """Draw three descents in the plane of mu and sigma."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = figure.subplots()
    for gradient, look, name in (
        (corrected, {"color": BLUE, "ls": "-", "marker": "o"}, "corrected (G8)"),
        (equation_5, {"color": VERMILLION, "ls": "--", "marker": "s"}, "Equation 5 as printed"),
        (through_the_samples, {"color": BLACK, "ls": ":", "marker": "^"}, "through the samples"),
    ):
        ax.plot(*followed(gradient, 600).T, **look, ms=4, markevery=30, label=name)
    ax.plot(MEAN, WIDTH, "*", color=GREEN, ms=15, mec=BLACK, label="the posterior")
    ax.set(xlim=(4.3, 5.5), ylim=(0, 1.0), xlabel="mean $\\mu$ of $q$ (cm per kg)")
    ax.set_ylabel("standard deviation $\\sigma$ of $q$ (cm per kg)")
    legend_above(ax, 4)
    titled(ax, "Descents for the spring, every thirtieth step marked")
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
    figure = Figure(figsize=(6.4, 3.7), layout="constrained")
    ax, counts, rng = figure.subplots(), (1, 3, 10, 30, 100, 300), np.random.default_rng(3)
    found = [iwae_gradients(count, 20_000, rng) for count in counts]
    signal = np.array([abs(two.mean()) for _, two in found])
    for row, look, name in (
        (0, {"color": BLUE, "ls": "--", "marker": "o"}, "reparameterised (D25)"),
        (1, {"color": VERMILLION, "ls": "-", "marker": "s"}, "doubly reparameterised (D26)"),
    ):
        noise = np.array([each[row].std() for each in found])
        ax.plot(counts, noise / signal, **look, ms=4, label=name)
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
    figure = Figure(figsize=(6.4, 3.7), layout="constrained")
    ax, noise = figure.subplots(), np.linspace(0.4, 2.5, 200)
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
    legend_above(ax, 4)
    titled(ax, "The spring's reading, with an unknown ruler")
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
    left, right = figure.subplots(1, 2)
    w = np.linspace(0.05, 60, 1200)
    found = printed_mixture(w)
    finite = np.isfinite(found)
    left.plot(w[finite], found[finite], color=VERMILLION, lw=4, alpha=0.5, label="as printed")
    left.plot(w, density_and_slope(ScaleMixturePrior(*KRASSER), w)[0], color=BLACK, label="R4")
    left.axvspan(w[~finite][0], 60, color="#E6E6E6", label="as printed: $-\\infty$")
    left.set(xlim=(0, 60), ylim=(-1900, 60), xlabel="size of a weight (no unit)")
    left.set_ylabel("log density (nats)")
    legend_above(left, 3)
    titled(left, "The logarithm of the mixture")
    w = np.geomspace(0.02, 3, 300)
    _, slope_of_w = density_and_slope(ScaleMixturePrior(*KRASSER), w)
    right.plot(w, -slope_of_w / w, color=BLUE, label="slope over weight (R5)")
    for precision, name in ((100, "$1 / \\sigma_2^2$"), (1, "$1 / \\sigma_1^2$")):
        right.axhline(precision, color=GREY, lw=1, ls=":")
        right.annotate(name, (2.5, precision), xytext=(0, -4), textcoords="offset points",
                       ha="right", va="top")  # fmt: skip
    right.axvline((2 * log(40) / 99) ** 0.5, color=BLACK, lw=0.8, ls="-.", label="$|w| = 0.27$")
    right.set(xscale="log", yscale="log", xlim=(0.02, 3), ylim=(0.5, 130))
    right.set_xlabel("size of a weight (no unit)")
    right.set_ylabel("precision that holds the weight")
    plain_numbers(right.xaxis)
    plain_numbers(right.yaxis)
    legend_above(right, 2)
    titled(right, "Small weights are held, large ones let go")
    return figure


# D39: the size of functions by the width of the network

ONE_SCALE = 0.5


def prior_functions(width: int, layerwise: bool, line: Any, draws: int, seed: int = 0) -> Any:
    """Return functions (draws, G) of a network 1-width-width-1 that the prior draws."""
    net, rng = (1, width, width, 1), np.random.default_rng(seed)
    scales = (1.0, width**-0.5, width**-0.5) if layerwise else (ONE_SCALE,) * 3
    sizes = [(d_in + 1) * d_out for d_in, d_out in pairwise(net)]
    spread = np.repeat(scales, sizes)
    found = [plain.forward(net, (spread * rng.standard_normal(len(spread)))[None], line)[0]
             for _ in range(draws)]  # fmt: skip
    return np.array(found)[:, 0, :, 0]


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
    line, sizes = np.linspace(-2, 2, 81)[:, None], np.array([5, 10, 20, 50, 100, 200])
    titles = ("One scale for all", "A scale for each layer")
    for ax, layerwise, title in zip(draws, (False, True), titles, strict=True):
        for width, look in (
            (200, {"color": BLUE, "lw": 1}),
            (10, {"color": VERMILLION, "ls": "--"}),
        ):
            for number, f in enumerate(prior_functions(width, layerwise, line, 4)):
                ax.plot(line[:, 0], f, **look, label=None if number else f"{width} hidden units")
        ax.set(ylim=(-60, 60) if not layerwise else (-3, 3), xlabel="x (dimensionless)")
        ax.set_ylabel("y (dimensionless)")
        legend_above(ax, 2)
        titled(ax, title)
    for layerwise, look, title in (
        (False, {"color": BLACK, "ls": "-"}, titles[0]),
        (True, {"color": GREEN, "ls": "--"}, titles[1]),
    ):  # fmt: skip
        last.plot(sizes, function_size(sizes, layerwise), **look, label=f"{title.lower()}: D39")
        drawn = [prior_functions(n, layerwise, np.ones((1, 1)), 2000).std() for n in sizes]
        last.plot(sizes, drawn, "o", color=look["color"], ms=4,
                  label="2,000 draws" if not layerwise else None)  # fmt: skip
    last.set(xscale="log", yscale="log", xlabel="hidden units of each layer")
    last.set_ylabel("standard deviation of f(1)")
    plain_numbers(last.xaxis, "25")
    plain_numbers(last.yaxis, "25")
    legend_above(last, 1)


# Samplers: where the mass is, a ball that rolls, a motion of constant speed


def shell(size: int, radius: Any) -> Any:
    """Return the density of |w| for w ~ N(0, I) of `size` numbers: volume times density of w."""
    log_area = log(2) + size / 2 * log(pi) - lgamma(size / 2)
    log_density = -0.5 * radius**2 - size / 2 * log(2 * pi)
    return np.exp(log_area + (size - 1) * np.log(radius) + log_density)


def typical() -> Figure:
    """Draw density, volume and their product against the distance from the most probable point."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    radius, size = np.linspace(0.01, 12, 400), 61
    mass = shell(size, radius)
    left.plot(radius, np.exp(-0.5 * radius**2), ":", color=GREY, lw=1.8, label="density")
    left.plot(radius, (radius / radius[-1]) ** (size - 1), "--", color=BLUE, label="volume")
    left.plot(radius, mass / mass.max(), color=VERMILLION, label="product: mass")
    left.set(ylabel="each over its largest value", xlabel="distance $|w|$ from 0")
    titled(left, "61 weights, $N(0, 1)$ each")
    for one, style, colour in ((1, ":", GREY), (10, "--", BLUE), (61, "-", VERMILLION)):
        weights = np.random.default_rng(one).standard_normal((20_000, one))
        edges = np.linspace(0, 12, 61)
        density_of_draws(right, np.linalg.norm(weights, axis=1), edges, color=PALE, fill=True)
        right.plot(radius, shell(one, radius), style, color=colour,
                   label=f"{one} weight{'s' * (one > 1)}")  # fmt: skip
    right.set(ylabel="density of $|w|$", xlabel="distance $|w|$ from 0")
    for ax in (left, right):
        legend_above(ax, 3)
    titled(right, "20,000 draws each, and the law")
    return figure


def rolled(steps: int = 12, step_size: float = 0.5) -> Any:
    """Return (steps + 1, 3) weight, potential and kinetic energy of the spring's ball, in nats.

    The metric is the precision, so that a period takes 2 pi.
    """
    mean, precision = SPRING

    def spring(w: Any) -> tuple[Any, Any]:
        return -0.5 * precision * (w[:, 0] - mean) ** 2, -precision * (w - mean)

    metric = DiagonalMetric(np.array([1 / precision]))
    start, push = np.array([[4.7]]), np.array([[3.0]])
    phase, path = Phase(start, push, *spring(start)), []
    for _ in range(steps + 1):
        energies = -phase.log_density[0], metric.kinetic(phase.momentum)[0]
        path.append((phase.position[0, 0], *energies))
        phase = leapfrog(spring, metric, phase, step_size)
    return np.array(path)


def ball() -> Figure:
    """Draw the ball of the spring in its valley, and its energies."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    path, w = rolled(), np.linspace(4.2, 6.3, 200)
    left.plot(w, 0.5 * SPRING[1] * (w - SPRING[0]) ** 2, color=GREY, label="$-\\log P$")
    left.plot(path[:5, 0], path[:5, 1], "o", color=VERMILLION, label="the ball, steps 0 to 4")
    for step, (at, height) in enumerate(path[:5, :2]):
        left.annotate(f"{step}", (at, height), xytext=(0, 7), textcoords="offset points",
                      ha="center", fontsize="small")  # fmt: skip
    left.set(xlabel="stretch per load $w$ (cm per kg)", ylabel="potential energy (nats)")
    time = 0.5 * np.arange(len(path))
    potential, kinetic = path[:, 1:].T
    for values, style, colour, label in (
        (potential + kinetic, "-", BLACK, "$H$, their sum"),
        (potential, "o--", VERMILLION, "potential"),
        (kinetic, "s:", BLUE, "kinetic"),
    ):
        right.plot(time, values, style, color=colour, ms=4, label=label)
    right.set(xlabel="time (a period is $2 \\pi$)", ylabel="energy (nats)", ylim=(0, None))
    for ax, title in ((left, "The spring's posterior, upside down"), (right, "Energy is kept")):
        legend_above(ax, 3)
        titled(ax, title)
    return figure


def steered(steps: int = 24, step_size: float = 0.25) -> Any:
    """Return (steps + 1, 4) place, fall of log pi and work of a path of constant speed (D49)."""
    metric, start = DiagonalMetric(np.ones(2)), np.array([[-1.8, -0.4]])
    direction = np.array([[0.2, -1.3]]) / np.hypot(0.2, 1.3)
    phase = Phase(start, direction, *target(start))
    path, work, first = [], 0.0, phase.log_density[0]
    for _ in range(steps + 1):
        path.append((*phase.position[0], first - phase.log_density[0], work))
        phase, more = isokinetic(target, metric, phase, step_size)
        work += more[0]
    return np.array(path)


def constant_speed() -> Figure:
    """Draw a path of constant speed beside one of constant energy, and its two accounts."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    x, y = np.meshgrid(np.linspace(-3.6, 3.6, 90), np.linspace(-2.4, 2.4, 90))
    density = target(np.column_stack([x.ravel(), y.ravel()]))[0].reshape(x.shape)
    left.contour(x, y, density, levels=[-2, -0.5], colors=SKY, linewidths=1, linestyles="solid")
    path = steered()
    left.plot(*trajectory()[0].T, "s--", color=GREY, mfc="white", ms=3.5, lw=1,
              label="constant energy (HMC)")  # fmt: skip
    left.plot(*path[:, :2].T, "o-", color=VERMILLION, ms=3.5, lw=1, label="constant speed")
    left.plot(*path[0, :2], "*", color=BLACK, ms=12)
    left.set(xlim=(-3.6, 3.6), ylim=(-2.4, 2.4), aspect="equal", xlabel="$\\theta_1$")
    left.set_ylabel("$\\theta_2$")
    steps, (fall, work) = np.arange(len(path)), path[:, 2:].T
    right.plot(steps, fall, "--", color=BLUE, label="fall of $\\log P$")
    right.plot(steps, work, ":", color=GREEN, lw=1.8, label="work")
    right.plot(steps, fall + work, color=BLACK, label="sum $\\Delta$")
    right.set(xlabel="step", ylabel="nats")
    for ax, title in ((left, "24 steps of 0.25 from the star"), (right, "What is kept")):
        legend_above(ax, 3)
        titled(ax, title)
    return figure


# M12, D47: what the metric saves, and which length of a path forgets most

SCALES = np.array([3.0, 0.3])  # standard deviations of two weights


def quarter_turn(variance: Any, share: float = 1 / 6) -> Any:
    """Return places (steps + 1, 2) of a quarter period of the widest of `SCALES`.

    The inverse metric is `variance`, and the step a share of the largest stable one.
    """

    def density(w: Any) -> tuple[Any, Any]:
        return -0.5 * np.sum((w / SCALES) ** 2, axis=1), -w / SCALES**2

    metric, sizes = DiagonalMetric(variance), SCALES / np.sqrt(variance)
    start, push = np.array([[-2.4, -0.3]]), np.array([[1.5, 1.0]]) / np.sqrt(variance)
    step_size, length = share * 2 * sizes.min(), pi / 2 * sizes.max()
    phase, path = Phase(start, push, *density(start)), [start[0]]
    for _ in range(round(length / step_size)):
        phase = leapfrog(density, metric, phase, step_size)
        path.append(phase.position[0])
    return np.array(path)


def metrics() -> Figure:
    """Draw a quarter turn with M = I, and with the covariance for its inverse."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    angle = np.linspace(0, 2 * pi, 200)
    for ax, (variance, name) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True),
        ((np.ones(2), "$M = I$"), (SCALES**2, "$M^{-1} = \\Sigma$")),
        strict=True,
    ):
        path = quarter_turn(variance)
        for size in (1, 2):
            ax.plot(*(size * SCALES[:, None] * [np.cos(angle), np.sin(angle)]), color=SKY, lw=1)
        ax.plot(*path.T, "o-", color=VERMILLION, ms=3.5, lw=0.9)
        ax.plot(*path[0], "*", color=BLACK, ms=12)
        ax.set(xlabel="wide weight", ylim=(-1, 1))
        ax.set_title(f"{name}: {len(path) - 1} steps", loc="left", fontsize="medium")
    figure.axes[0].set_ylabel("narrow weight")
    return figure


def forgotten(length: Any) -> Any:
    """Return ChEES of N(0, 1) for paths of the length h T, h uniform (D47)."""
    return 0.5 - np.sin(2 * length) / (4 * length)


def lengths() -> Figure:
    """Draw the squared jump and ChEES of N(0, 1) against the length of the path."""
    figure, length = Figure(figsize=(6.4, 3.6), layout="constrained"), np.linspace(0.01, 8, 400)
    ax = figure.subplots()
    ax.plot(length, (1 - np.cos(length)) / 2, ":", color=GREY, lw=1.8, label="squared jump / 4")
    ax.plot(length, np.sin(length) ** 2, "--", color=BLUE, label="ChEES, every path $T$")
    ax.plot(length, forgotten(length), color=VERMILLION, label="ChEES, paths $hT$")
    ax.plot(2.247, forgotten(2.247), "o", color=VERMILLION)
    ax.set_xticks([0, pi / 2, pi, 3 * pi / 2, 2 * pi], ["0", "π/2", "π", "3π/2", "2π"])
    ax.set(xlabel="length $T$ of the path (a period is $2 \\pi$)", ylabel="expected change")
    legend_above(ax, 3)
    titled(ax, "$N(0, 1)$: what a path forgets")
    return figure


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


def unadjusted() -> Any:
    """Return (2000, 4) the mean square of 100 numbers N(0, 1) as MCLMC draws them."""
    start = np.random.default_rng(0).standard_normal((4, 100))
    found = quietly(standard, start, MCLMC(energy_variance=5e-3), 2000, 500)
    return np.mean(found.positions**2, axis=2)


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
    for one, (colour, style) in zip(values.T, looks, strict=True):
        ax.plot(one, style, color=colour, lw=0.7)
    ax.set(xlabel="draw", ylabel=label)


def one_mode() -> Figure:
    """Draw chains that all sit in one of two modes, and what they say."""
    figure, draws = Figure(figsize=(8.4, 3.3), layout="constrained"), stuck()
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.7, 1))
    values, place = draws.positions[:, :, 0], np.linspace(-7.5, 7.5, 200)
    traces(left, values, "$\\theta$")
    said = judged(values)
    left.set_title(f"R-hat {said['R-hat']:.3f}, ESS {said['ESS']:,.0f} of 2,000", loc="left",
                   fontsize="medium")  # fmt: skip
    density = np.exp(two_modes(place[:, None])[0]) / (2 * np.sqrt(2 * pi))
    counts, edges = np.histogram(values, 60, (-7.5, 7.5), density=True)
    right.stairs(counts, edges, orientation="horizontal", color=PALE, fill=True, label="draws")
    right.plot(density, place, color=BLACK, label="target")
    right.set(xlabel="density")
    legend_above(right, 2)
    return figure


def permuted() -> Any:
    """Return four chains of a network 1-3-1 with tanh on the rows of `data`."""
    x, y, _ = data()
    model = Model(MLP((1, 3, 1), "tanh"), GaussianPrior(1.0), GaussianLikelihood(NOISE))
    return sample(model, x, y, chains=4, draws=400, warm_up=600, seed=0, progress=False)


def functions_and_weights() -> Figure:
    """Draw one function value and one weight of the same four chains."""
    figure, draws = Figure(figsize=(8.4, 3.3), layout="constrained"), permuted()
    weights = np.ascontiguousarray(draws.target.weights(draws.flat))
    outputs = draws.target.model.predict(weights, np.array([[1.0]]))
    shape = draws.positions.shape[:2]
    for ax, values, label, what in (
        (0, outputs.reshape(shape), "$f(1)$", "A function"),
        (1, draws.block("W0")[:, :, 0, 0], "first weight", "A weight"),
    ):
        axes = figure.add_subplot(1, 2, ax + 1)
        traces(axes, values, label)
        said = judged(values)["R-hat"]
        axes.set_title(f"{what}: R-hat {said:.2f}", loc="left", fontsize="medium")
    return figure


def same_sizes() -> Figure:
    """Draw chains whose value changes sign at every draw and never its size."""
    figure, values = Figure(figsize=(8.4, 3.3), layout="constrained"), half_turns().positions
    for ax, power, label in zip(
        figure.subplots(1, 2), (1, 2), ("$\\theta$", "$\\theta^2$"), strict=True
    ):
        found = values[:, :, 0] ** power
        traces(ax, found[:60], label)
        said = judged(found)["ESS"]
        ax.set_title(f"{label}: ESS {said:,.0f} of 2,000", loc="left", fontsize="medium")
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
        ax, energy = figure.add_subplot(1, 2, number), draws.stats["energy"]
        each = energy - energy.mean(axis=0)
        both = np.concatenate([each, np.diff(energy, axis=0)])
        edges = np.linspace(*np.quantile(both, (0.001, 0.999)), 50)
        density_of_draws(ax, each, edges, color=PALE, fill=True, label="energy less its mean")
        density_of_draws(ax, np.diff(energy, axis=0), edges, color=VERMILLION, lw=1.4,
                         label="its change from draw to draw")  # fmt: skip
        ax.set(xlabel="nats", ylabel="density")
        legend_above(ax, 2)
        titled(ax, f"{name}: E-BFMI {e_bfmi(draws).min():.2f} to {e_bfmi(draws).max():.2f}")
    return figure


def sure_and_wrong() -> Figure:
    """Draw the mean of MCLMC with its standard error, against the draws."""
    figure, values = Figure(figsize=(6.4, 3.6), layout="constrained"), unadjusted()
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
    said = judged(values)["R-hat"]
    titled(ax, f"100 numbers $N(0, 1)$: R-hat {said:.2f}")
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


# D34: what the CRPS measures, and that only the honest forecast minimises it

STRETCH = (2 * SPRING[0], (4 / SPRING[1] + 1) ** 0.5)  # of the next reading at 2 kg, cm


def stated(sigma: Any) -> tuple[Any, Any]:
    """Return E CRPS of N(m, sigma^2), and E|X - y| alone, where y is N(m, STRETCH[1]^2)."""
    distance = np.sqrt(2 / pi) * np.hypot(sigma, STRETCH[1])
    return distance - sigma / np.sqrt(pi), distance


def crps() -> Figure:
    """Draw G and the step of one target, and the expected score against the stated width."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    (mean, deviation), y = STRETCH, 12.0
    x = np.linspace(5, 16, 441)
    below = np.array([NormalDist(mean, deviation).cdf(each) for each in x])
    step = (x >= y).astype(float)
    left.fill_between(x, (below - step) ** 2, color=SKY, label="squared difference")
    left.plot(x, below, color=BLACK, label="$G$, the forecast")
    left.plot(x, step, "--", color=VERMILLION, label="step at the target")
    left.set(
        xlim=(5, 16), ylim=(0, 1.05), xlabel="stretch $x$ (cm)", ylabel="distribution function"
    )
    legend_above(left, 3)
    titled(left, "CRPS: the blue area, in cm")
    sigma = np.linspace(0, 3, 151)
    score, distance = stated(sigma)
    right.plot(sigma, score, color=BLACK, label="CRPS")
    right.plot(sigma, distance, "--", color=GREY, label="$E|X - y|$ alone")
    right.plot(deviation, stated(deviation)[0], "o", color=VERMILLION, label="honest")
    right.set(xlim=(0, 3), ylim=(0, 2.8), ylabel="expected score (cm)")
    right.set_xlabel("standard deviation that is stated (cm)")
    legend_above(right, 3)
    titled(right, "The honest forecast has the least")
    return figure


# D38: which rows train and which are tested, year by year


def walk() -> list[tuple[str, Any, Any]]:
    """Return each tested year, and the days on which targets of training and test are known."""
    dates = np.arange("2010-01-01", "2017-01-01", dtype="datetime64[D]")
    dates = dates[np.is_busday(dates)]
    close = np.exp(0.01 * np.random.default_rng(0).standard_normal((len(dates), 1)).cumsum(axis=0))
    table = sp500.tabulate(sp500.Prices(dates, ("one",), close))
    return [(one.name, table.known[one.train], table.known[one.test])
            for one in sp500.splits(table, 2013)]  # fmt: skip


def walk_forward() -> Figure:
    """Draw the walk forward: what trains, what is tested, a row for each fit."""
    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    ax = figure.subplots()
    for row, (_, train, test) in enumerate(walk()):
        for known, look in (
            (train, {"color": SKY, "label": "train"}),
            (test, {"color": VERMILLION, "hatch": "//", "label": "test"}),
        ):
            first, last = (date.astype("datetime64[D]").astype(int) / 365.25 + 1970
                           for date in (known.min(), known.max()))  # fmt: skip
            look = look if row == 0 else {**look, "label": None}
            ax.barh(row, last - first, left=first, height=0.6, ec=BLACK, lw=0.6, **look)
    ax.set_yticks(range(4), [f"forecasts of {name}" for name, *_ in walk()])
    ax.invert_yaxis()
    ax.set_xlabel("year in which the target of a row becomes known")
    legend_above(ax, 2)
    titled(ax, "One fit a year, by what was known")
    return figure


# M20: from the prior to the posterior in small steps, with the account kept


def tempered(beta: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation of the spring's P(w) P(D|w)^beta."""
    return (20 + 22 * beta) / (4 + 4 * beta), (4 + 4 * beta) ** -0.5


def annealed(steps: int, chains: int, rng: np.random.Generator, moves: bool) -> Any:
    """Return log omega (chains,) of `steps` equal powers; the moves mix at once, or not at all."""
    w, weights = 5 + 0.5 * rng.standard_normal(chains), np.zeros(chains)
    for beta in np.arange(1, steps + 1) / steps:
        weights -= ((11 - 2 * w) ** 2 / 2 + 0.5 * log(2 * pi)) / steps
        if moves:
            mean, deviation = tempered(beta)
            w = mean + deviation * rng.standard_normal(chains)
    return weights


def annealing() -> Figure:
    """Draw the densities between prior and posterior, and the weights against their number."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    w = np.linspace(3.2, 7.3, 301)
    for beta, colour, dash in (
        (0, ORANGE, "--"),
        (0.25, GREY, "-."),
        (0.5, GREY, ":"),
        (1, BLACK, "-"),
    ):
        mean, deviation = tempered(beta)
        density = np.exp(-0.5 * ((w - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * pi))
        left.plot(w, density, dash, color=colour, lw=1.6, label=f"$\\beta = {beta}$")
    left.set(
        xlim=(3.2, 7.3), ylim=(0, None), xlabel="$w$ (cm per kg)", ylabel="density (kg per cm)"
    )
    legend_above(left, 4)
    titled(left, "Prior, path, posterior")
    counts = (1, 2, 4, 8, 16, 32, 64)
    for moves, name, colour, mark in (
        (False, "no moves", GREY, "s"),
        (True, "moves that mix", BLUE, "o"),
    ):
        found = np.array([annealed(n, 20_000, np.random.default_rng(n), moves) for n in counts])
        found -= LOG_EVIDENCE
        shift, look = 1.0 if moves else 0.93, {"color": colour, "capsize": 3, "ms": 5}
        right.errorbar(
            np.multiply(counts, shift), found.mean(axis=1), found.std(axis=1),
            fmt=mark, label=f"$\\log \\omega$, mean ± standard deviation: {name}", **look,
        )  # fmt: skip
        mean = np.log(np.exp(found).mean(axis=1))
        right.plot(counts, mean, "x", color=colour, label=f"$\\log$ mean of $\\omega$: {name}")
    right.axhline(0, color=BLACK, lw=1)
    right.set(xscale="log", xlabel="powers $T$", ylabel="nats above $\\log P(D)$")
    right.set_xticks(counts, [str(count) for count in counts])
    right.minorticks_off()
    legend_above(right, 1)
    right.set_title(
        "The mean of $\\omega$ is right for any $T$", loc="left", fontsize="medium", pad=70
    )
    return figure


# M21: what three models say of all 256 data sets


def evidence_by_changes() -> dict[str, Any]:
    """Return the mean evidence (8,) of the data sets with 0 to 7 label changes, of each model."""
    number = occam.changes(occam.LABELS)
    found = {"degree 7": np.full(256, 2.0**-8)}
    for name, degree in (("line", 1), ("parabola", 2)):
        model = Model(MLP((degree, 1)), GaussianPrior(occam.PRIOR), BernoulliLikelihood())
        w, shares = occam.nodes(degree + 1, 61, occam.PRIOR)
        found[name] = occam.sum_over_weights(model, occam.features(8, degree), w, shares)[0]
    return {
        name: np.bincount(number, of_all) / np.bincount(number) for name, of_all in found.items()
    }


def razor() -> Figure:
    """Draw the evidence of three models against the complexity of the data."""
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    ax = figure.subplots()
    means = evidence_by_changes()
    for name, colour, look in (("line", BLUE, "o-"), ("parabola", VERMILLION, "s--"),
                               ("degree 7", BLACK, "^:")):  # fmt: skip
        ax.semilogy(range(8), means[name], look, color=colour, label=name)
    ax.set(ylim=(1e-5, 0.3), xlabel="label changes along the line: how complex the data are")
    ax.set_ylabel("mean evidence $P(D|m)$ of a data set")
    legend_above(ax, 3)
    titled(ax, "Eight labels: what is spent on simple data is missing for others")
    return figure


# D36: weights of plain.py removed, by signal-to-noise and by size


def removed() -> tuple[Any, Any, dict[str, Any]]:
    """Return ratios (P,), shares of the weights, and the error without these, by each order."""
    (theta,) = thetas([300])
    mu, rho = np.split(theta, 2)
    ratios = np.abs(mu) / plain.softplus(rho)
    x = np.linspace(-2, 2, 101)[:, None]
    counts, errors = np.arange(0, mu.size + 1, 3), {}
    for name, order in (("signal-to-noise", ratios), ("size", np.abs(mu))):
        kept = np.argsort(np.argsort(order)) >= counts[:, None]
        f = plain.forward(NET, kept * mu, x)[0][:, :, 0]
        errors[name] = np.sqrt(np.mean((f - x[:, 0] ** 2) ** 2, axis=1))
    return ratios, counts / mu.size, errors


def pruning() -> Figure:
    """Draw the signal-to-noise ratios of plain.py's weights, and its error without the lowest."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    ratios, shares, errors = removed()
    edges = np.geomspace(0.01, 100, 25)
    left.stairs(np.histogram(ratios, edges)[0], edges, fill=True, color=SKY, ec=BLUE)
    left.axvline(1, color=BLACK, lw=1, ls="--")
    left.set(xscale="log", xlabel="signal-to-noise ratio $|\\mu| / \\sigma$", ylabel="weights")
    left.set_title("61 weights of the band", loc="left", fontsize="medium", pad=34)
    for name, colour, look in (("signal-to-noise", BLUE, "-"), ("size", GREY, "--")):
        right.plot(100 * shares, errors[name], look, color=colour, label=f"lowest by {name}")
    right.set(xlim=(0, 100), ylim=(0, None), xlabel="weights removed (%)")
    right.set_ylabel("error of the mean network (units of $y$)")
    legend_above(right, 2)
    titled(right, "What is left of the parabola")
    return figure


# D9, D44: a slope measured, and a slope proved


def measured(steps: Any, at: float = -1.3) -> dict[str, Any]:
    """Return the relative error of three measured slopes of the spring's F for rho, by step."""

    def f(rho: Any) -> Any:
        return sum(complexity_and_misfit(4.7, np.log(1 + np.exp(rho))))

    ahead, behind = (f(at + s * steps) - f(at - s * steps) for s in (1, 2))
    found = {
        "second order": ahead / (2 * steps),
        "fourth order": (8 * ahead - behind) / (12 * steps),
        "complex step": f(at + 1j * steps).imag / steps,
    }
    right = slope(np.array([4.7, at]))[1]
    return {name: np.abs(each / right - 1) for name, each in found.items()}


def excess(points: int, rng: np.random.Generator, surplus: int) -> Any:
    """Return, over p, slope of the value less slope by hand of the spring at random residues.

    The value is -log P(w, y) but for a constant, 2 (w - 5)^2 + 2 (w - 5.5)^2; by hand stands
    8 w - 42, and `surplus` times (w - 5) / 10^14.
    """
    p = (1 << 61) - 1
    found = []
    for w in rng.integers(0, p, points).tolist():
        half = pow(2, -1, p)
        value = [(w - 5, 1), (w - 11 * half, 1)]  # dual numbers: residue and slope
        squares = sum(2 * 2 * a * b for a, b in value)
        by_hand = 8 * w - 42 + surplus * (w - 5) * pow(10**14, -1, p)
        found.append((squares - by_hand) % p / p)
    return np.array(found)


def oracles() -> Figure:
    """Draw the error of measured slopes against the step, and residues of a right and wrong one."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = np.logspace(-12, -0.5, 70)
    for (name, error), colour, mark in zip(
        measured(steps).items(), (VERMILLION, BLUE, GREEN), "os^", strict=True
    ):
        left.loglog(steps, error + 1e-17, mark, color=colour, ms=3.5, label=name)
    left.set(ylim=(5e-18, 10), xlabel="step $h$ (units of $\\rho$)", ylabel="relative error")
    legend_above(left, 3)
    titled(left, "Measured: $\\partial F / \\partial\\rho$ of the spring")
    for surplus, colour, mark, name in (
        (1, VERMILLION, "o", "wrong by $10^{-14}$"),
        (0, BLUE, "s", "right"),
    ):
        shares = excess(60, np.random.default_rng(0), surplus)
        right.plot(range(1, 61), shares, mark, color=colour, ms=4, label=name)
    right.set(ylim=(-0.05, 1.05), xlabel="random point of the field", ylabel="excess / $p$")
    legend_above(right, 2)
    titled(right, "Proved: excess of the slope, modulo $p$")
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
    found = []
    for size in sizes:
        share = size / len(READINGS)
        parts = rows.reshape(repeats, 300, -1, size).sum(axis=3) / share
        logs = kappa[:, :, None] + parts
        most = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - most)
        total = weights.sum(axis=1)
        upper = np.sum(weights * logs, axis=1) / total
        iwae = most[:, 0] + np.log(total / 300)
        found.append([logs.mean(), iwae.mean(), upper.mean()])
    at = -2 * (mean - 5) ** 2 - np.sum((READINGS - 2 * mean) ** 2) / 2 - 6 * log(2 * pi)
    return np.transpose(found), float(at - log(0.5) - log(precision) / 2)


def minibatches() -> Figure:
    """Draw what an epoch of minibatches says of each bound, against their rows."""
    figure = Figure(figsize=(6.4, 3.7), layout="constrained")
    ax, sizes = figure.subplots(), (1, 2, 3, 4, 6, 12)
    found, evidence = by_rows(sizes, 400, np.random.default_rng(0))
    ax.axhline(0, color=GREY, lw=1, label="$\\log P(D)$")
    for row, look, name in zip(
        found - evidence,
        ({"color": BLACK, "marker": "o", "ls": ":"}, {"color": BLUE, "marker": "s", "ls": "--"},
         {"color": VERMILLION, "marker": "^", "ls": "-."}),
        ("ELBO", "importance-weighted", "$\\hat U$"), strict=True,
    ):  # fmt: skip
        ax.plot(sizes, row, **look, ms=5, label=name)
    ax.set(xlabel="rows of a minibatch, of 12", xticks=sizes)
    ax.set_ylabel("mean over an epoch\nminus $\\log P(D)$ (nats)")
    legend_above(ax, 4)
    titled(ax, "Twelve readings of the spring, $q$ one and a half times too wide")
    return figure


# D17: a learned scale settles where the weights are, and a point estimate falls through

SPREADS = (
    ("$\\mu = 0$, one $\\sigma$", (0.0, 0.0), (0.1, 0.1)),
    ("$\\mu = 0$, two $\\sigma$", (0.0, 0.0), (0.05, 0.2)),
    ("$\\mu = \\pm 0.3$", (0.3, -0.3), (0.1, 0.1)),
)


def price_of_scale(mu: Any, sigma: Any, scale: Any) -> Any:
    """Return the complexity cost per weight (G,) in nats under priors of these scales (D18)."""
    mu, sigma, scale = np.array(mu), np.array(sigma), np.asarray(scale)[:, None]
    each = np.log(scale / sigma) + (mu**2 + sigma**2) / (2 * scale**2) - 0.5
    return each.mean(axis=1)


def learned_scale() -> Figure:
    """Draw the complexity cost, and the cost of a point, against the scale of the prior."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    scale = np.geomspace(0.01, 2, 300)
    looks = ((BLUE, "-"), (VERMILLION, "--"), (BLACK, "-."))
    for (name, mu, sigma), (colour, dash) in zip(SPREADS, looks, strict=True):
        left.plot(scale, price_of_scale(mu, sigma, scale), dash, color=colour, label=name)
        best = np.sqrt(np.mean(np.square(mu) + np.square(sigma)))[None]
        left.plot(best, price_of_scale(mu, sigma, best), "o", color=colour)
    left.axhline(0, color=GREY, lw=0.8)
    left.set(ylim=(-0.3, 4), ylabel="complexity cost (nats per weight)")
    legend_above(left, 3)
    titled(left, "Under $q$: never below 0")
    for w, name, dash in ((0.3, "$\\pm 0.3$", "-."), (0.0, "$0$", "-")):
        cost = np.log(scale) + 0.5 * log(2 * pi) + w**2 / (2 * scale**2)
        right.plot(scale, cost, dash, color=BLACK, label=f"all weights {name}")
    right.set(ylim=(-4, 4), ylabel="$-\\log P(w)$ (nats per weight)")
    legend_above(right, 2)
    titled(right, "At a point: no minimum at $w = 0$")
    for ax in (left, right):
        ax.set(xscale="log", xlim=(0.01, 2), xlabel="standard deviation of the prior (no unit)")
        plain_numbers(ax.xaxis)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "many-networks": many_networks,
    "two-weights": two_weights,
    "network": network,
    "noise-to-weights": noise_to_weights,
    "three-terms": three_terms,
    "balance": balance,
    "backward": backward,
    "two-graphs": two_graphs,
    "band": band,
    "leaving": leaving,
    "spring": spring,
    "coin": coin,
    "units": units,
    "shares": shares_of_ten,
    "tempering": tempering,
    "cloud": cloud,
    "valleys": valleys,
    "two-variances": two_variances,
    "mean-output": mean_output,
    "log-density": log_density,
    "entropies": entropies,
    "intervals": intervals,
    "certificates": certificates,
    "residuals": residuals,
    "discrete": discrete,
    "constants": constants,
    "shadows": shadows,
    "floor": floor,
    "descent": descent,
    "mean-field": mean_field,
    "u-turn": u_turn,
    "doublings": doublings,
    "softplus": softplus,
    "gap": gap,
    "natural": natural,
    "stochastic": stochastic,
    "straying": straying,
    "landing": landing,
    "antithetic": antithetic,
    "shared-noise": shared_noise,
    "two-averages": two_averages,
    "algorithm-1": algorithm_1,
    "typical-set": typical,
    "ball": ball,
    "metrics": metrics,
    "path-lengths": lengths,
    "constant-speed": constant_speed,
    "one-mode": one_mode,
    "functions-and-weights": functions_and_weights,
    "same-sizes": same_sizes,
    "narrow-place": narrow_place,
    "energies": energies,
    "sure-and-wrong": sure_and_wrong,
    "bounds": bounds,
    "doubly": doubly,
    "descending": descending,
    "minibatches": minibatches,
    "pit": pit_shapes,
    "predictive-checks": predictive_checks,
    "priors": priors,
    "mixture": mixture,
    "learned-scale": learned_scale,
    "widths": widths,
    "powerball": powerball,
    "correlated": correlated,
    "jacobian": jacobian,
    "crps": crps,
    "walk-forward": walk_forward,
    "annealing": annealing,
    "razor": razor,
    "pruning": pruning,
    "oracles": oracles,
}


def write(name: str, folder: Path = HERE) -> Path:
    """Draw one figure into `folder`."""
    into = folder / f"{name}.png"
    FIGURES[name]().savefig(
        into, dpi=150, metadata={"Software": None}, pil_kwargs={"optimize": True}
    )
    return into


if __name__ == "__main__":
    for chosen in sys.argv[1:] or (*FIGURES, "training"):
        print(training() if chosen == "training" else write(chosen))

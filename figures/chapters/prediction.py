"""Figures of the chapter "Prediction"."""

from collections.abc import Callable
from math import log
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model, Reparameterised
from bbb_numpy.evaluation.certificate import binary_kl, invert_kl
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PALE, VERMILLION, legend_above
from bbb_studies.replicated import replicated
from chapters.shared import SPRING, gaussian, spring_after, titled

# D4, R9, D5, D29, D46, D57: predictions


def variances_of_the_spring(load: Any, readings: Any) -> tuple[Any, Any]:
    """Return the epistemic and the aleatoric variance in cm^2 of a stretch (D4)."""
    return np.square(load) * spring_after(readings)[1] ** 2, np.ones_like(load)


def two_variances() -> Figure:
    """Draw both bands of the spring against the load, and both variances against readings."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    load = np.linspace(0, 6, 61)
    epistemic, aleatoric = variances_of_the_spring(load, 1)
    for variance, style in (
        (epistemic + aleatoric, {"color": PALE, "label": "total: a new reading"}),
        (epistemic, {"color": BLUE, "alpha": 0.6, "label": "epistemic: the line"}),
    ):
        width = 2 * np.sqrt(variance)
        left_ax.fill_between(load, -width, width, lw=0, **style)
    left_ax.axhline(0, color=VERMILLION, label="predicted mean, 5.25 $x$")
    left_ax.plot(2, 11 - 2 * SPRING[0], "o", color=BLACK, ms=5, label="reading")
    left_ax.set(xlim=(0, 6), ylim=(-5.5, 5.5), xlabel="load $x$ (kg)")
    left_ax.set_ylabel("stretch less its mean (cm)")
    n = np.arange(0, 21)
    epistemic, aleatoric = variances_of_the_spring(np.full(21, 4.0), n)
    right_ax.plot(n, epistemic + aleatoric, color=BLACK, label="total")
    right_ax.plot(n, epistemic, "o--", ms=4, color=BLUE, label="epistemic")
    right_ax.plot(n, aleatoric, ":", color=GREY, lw=2, label="aleatoric")
    right_ax.set(xlim=(0, 20), ylim=(0, 5.2), xticks=[0, 5, 10, 15, 20])
    right_ax.set(xlabel="readings at 2 kg", ylabel="variance at 4 kg (cm²)")
    titles = (left_ax, "After one reading, ± 2 standard deviations"), (right_ax, "More readings")
    for ax, title in titles:
        legend_above(ax, 2 if ax is left_ax else 3)
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
    left_ax, right_ax = figure.subplots(1, 2)
    mu = 0.1
    sigma = log(2)
    w, every = np.linspace(-2.2, 2.4, 231), np.linspace(-2, 2, 161)
    left_ax.fill_between(w, gaussian(w, mu, sigma), color=PALE, lw=0, label="density of $w$")
    left_ax.plot(w, np.maximum(w, 0), color=BLACK, label="$f(w) = \\max(w, 0)$")
    left_ax.axhline(relu_moments(mu, sigma), color=BLUE, ls="--", lw=1.6, label="mean of $f$: 0.33")
    left_ax.plot(mu, mu, "s", color=VERMILLION, ms=7, label="$f$ of the mean: 0.10")
    left_ax.set(xlim=(-2.2, 2.4), ylim=(0, 1.5), xlabel="$w$", ylabel="output; density")
    right_ax.plot(every, relu_moments(every, sigma), "--", color=BLUE, lw=1.6, label="mean of $f$")
    right_ax.plot(every, np.maximum(every, 0), color=VERMILLION, label="$f$ of the mean")
    right_ax.set(xlim=(-2, 2), ylim=(0, 2), xlabel="mean $\\mu$ of $w$", ylabel="output")
    titles = (left_ax, "$w$ from $N(0.1, 0.69^2)$"), (right_ax, "They differ at the bend")
    for ax, title in titles:
        legend_above(ax, 2)
        titled(ax, title)
    return figure


def log_density_of_draws(y: float, samples: Any, repeats: int = 20_000) -> tuple[Any, float]:
    """Return mean estimates of log P(y | 2 kg) from so many weights, and the truth (D5)."""
    rng = np.random.default_rng(0)
    mean, deviation = spring_after(1)
    means = []
    for count in samples:
        w = mean + deviation * rng.standard_normal((repeats, count))
        means.append(np.log(gaussian(y, 2 * w, 1).mean(axis=1)).mean())
    return np.array(means), log(gaussian(y, 2 * mean, (1 + 4 * deviation**2) ** 0.5))


def log_density() -> Figure:
    """Draw the mean estimate of a log predictive density against the number of samples."""
    figure = Figure(figsize=(4.8, 3.6), layout="constrained")
    ax = figure.subplots()
    samples = (1, 2, 4, 8, 16, 32, 64, 128)
    means, truth = log_density_of_draws(13, samples)
    ax.axhline(truth, color=BLACK, label="log of the mean density")
    ax.plot(samples, means, "o--", color=BLUE, ms=5, label="mean of its estimate")
    ax.axhline(means[0], color=GREY, ls=":", lw=1.8, label="mean of the log densities")
    ax.set(xscale="log", xlabel="weights $S$ that are drawn", ylabel="nats")
    ax.set_xticks(samples, [str(count) for count in samples])
    ax.minorticks_off()
    legend_above(ax, 2)
    titled(ax, "A second reading at 2 kg, of 13 cm")
    return figure


def entropy(p: Any) -> Any:
    """Return the entropy in nats of two classes with probabilities p and 1 - p, 0 < p < 1."""
    return -p * np.log(p) - (1 - p) * np.log1p(-p)


def entropies() -> Figure:
    """Draw the entropy of two classes, its chord, and the two parts of it."""
    figure = Figure(figsize=(4.8, 3.8), layout="constrained")
    ax = figure.subplots()
    p = np.linspace(1e-6, 1 - 1e-6, 201)
    ends = np.array([0.1, 0.7])
    middle = ends.mean()
    chord = entropy(ends).mean()
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
    mean_of_quantiles = [np.mean([normal.inv_cdf(u) for normal in normals]) for u in tails]
    region = y[np.minimum(inside, len(y) - 1)].reshape(-1, 2)
    return np.interp(tails, mass, y), region, np.array(mean_of_quantiles)


def intervals() -> Figure:
    """Draw a mixture of two humps, and three answers to the question for 90 %."""
    figure = Figure(figsize=(4.8, 4.0), layout="constrained")
    ax = figure.subplots()
    y = np.linspace(-4.5, 5.5, 401)
    parts = [gaussian(y, *hump) / 2 for hump in HUMPS]
    ax.fill_between(y, sum(parts), color=PALE, lw=0)
    ax.plot(y, sum(parts), color=BLACK, label="predictive density")
    central, region, wrong = mixture_intervals()
    rows = ([central], BLUE, "-", "central"), (region, GREEN, "--", "highest density")
    for row, (pieces, colour, dash, label) in enumerate(
        (*rows, ([wrong], VERMILLION, "-.", "mean of quantiles: wrong"))
    ):
        for k, piece in enumerate(pieces):
            ax.plot(piece, [-0.04 - 0.04 * row] * 2, dash, color=colour, lw=3,
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
    left_ax, right_ax = figure.subplots(1, 2)
    r, allowed = 0.11, 0.245
    every = np.linspace(r, 0.8, 300)
    root = invert_kl(r, allowed)
    left_ax.plot(100 * every, [binary_kl(r, limit) for limit in every], color=BLACK,
              label="kl(11 % || $R$)")  # fmt: skip
    left_ax.axhline(allowed, color=BLUE, ls="--", label="what KL allows: 0.245 nats")
    left_ax.plot(
        100 * root, allowed, "s", color=VERMILLION, ms=8, label=f"root: {100 * root:.0f} %"
    )
    left_ax.set(xlim=(0, 80), ylim=(0, 1.2), ylabel="nats an image")
    kl = np.geomspace(1e-4, 40, 200)
    for share, colour, dash in ((0.11, GREY, "--"), (0.022, BLACK, "-")):
        bound = [100 * invert_kl(share, budget) for budget in kl]
        right_ax.plot(kl, bound, dash, color=colour, label=f"{100 * share:g} % wrong")
    for name, _, kl_of_method, bound, mark in CERTIFIED:
        right_ax.plot(kl_of_method, bound, mark, color=VERMILLION, ms=7, mec=BLACK, label=name)
    right_ax.set(xscale="log", ylim=(0, 105), xlabel="KL (nats an image); 0 is drawn at 0.0001")
    right_ax.set_ylabel("certificate (%)")
    left_ax.set_xlabel("share of cases to come that are wrong, $R$ (%)")
    for ax, title, columns in (
        (left_ax, "The certificate is a root", 1), (right_ax, "What a nat costs", 2),
    ):  # fmt: skip
        legend_above(ax, columns)
        ax.set_title(title, loc="left", fontsize="medium", pad=50)
    return figure


# D40: second derivatives of three springs in one vector


def hessians(replicates: int = 3, samples: int = 8) -> tuple[Any, Any]:
    """Return the second derivatives, replicate by replicate, of the sum of F and of one bound.

    Each replicate is w x + b with a mean field, 4 numbers, and three readings of its own; the bound
    is the log of the mean over samples of the product of all replicates' weights (D25).
    """
    rng = np.random.default_rng(0)
    estimator = Reparameterised(Model(MLP((1, 1)), GaussianPrior(3.0), GaussianLikelihood(1.0)))
    together = replicated([estimator] * replicates)
    x = np.tile([[2.0], [3.0], [4.0]], (replicates, 1, 1))
    y = 5.25 * x + rng.standard_normal(x.shape)
    theta = np.concatenate([np.tile([5.0, 0.1], replicates), np.full(2 * replicates, -0.5)])
    noise = rng.standard_normal((samples, 2 * replicates))

    def slopes(theta: Any, joint: bool) -> Any:
        results = [together.value_and_grad(theta, eps[None], x, y)[:2] for eps in noise]
        weights = np.full(samples, 1 / samples)
        if joint:
            logs = np.array([-value.sum() for value, _ in results])
            weights = np.exp(logs - logs.real.max())
        return weights @ [grad for _, grad in results] / weights.sum()

    order = np.arange(4 * replicates).reshape(2, replicates, 2).swapaxes(0, 1).ravel()
    units = 1e-20j * np.eye(theta.size)
    matrices = [np.array([slopes(theta + unit, joint).imag for unit in units]) * 1e20
            for joint in (False, True)]  # fmt: skip
    return matrices[0][np.ix_(order, order)], matrices[1][np.ix_(order, order)]


def replicates() -> Figure:
    """Draw which second derivatives are there, of the sum and of the bound."""
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    titles = "the sum of free energies", "one bound of all: refused"
    axes = figure.subplots(1, 2)
    for ax, matrix, title in zip(axes, hessians(), titles, strict=True):
        size = np.abs(matrix)
        rows, columns = np.nonzero(size > 1e-9)
        area = 12 + 22 * np.clip(np.log10(size[rows, columns]) + 2, 0, 5)
        ax.scatter(columns, rows, area, color=BLUE, marker="s", lw=0)
        for edge_of in (3.5, 7.5):
            ax.axhline(edge_of, color=GREY, lw=0.8)
            ax.axvline(edge_of, color=GREY, lw=0.8)
        ax.set(xlim=(-0.5, 11.5), ylim=(11.5, -0.5), aspect="equal", xlabel="replicate")
        ax.set_xticks([1.5, 5.5, 9.5], ["1", "2", "3"])
        ax.set_yticks([1.5, 5.5, 9.5], ["1", "2", "3"])
        ax.tick_params(length=0)
        ax.set_title(title, loc="left", fontsize="medium")
    axes[0].set_ylabel("replicate, four numbers each")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "two-variances": two_variances,
    "mean-output": mean_output,
    "log-density": log_density,
    "entropies": entropies,
    "intervals": intervals,
    "certificates": certificates,
    "replicates": replicates,
}

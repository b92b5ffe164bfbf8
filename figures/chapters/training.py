"""Figures of the chapter "Training"."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes

from bbb_numpy import BayesianMLPRegressor, plain
from bbb_numpy.model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PALE,
    SKY,
    VERMILLION,
    legend_above,
    legend_of_figure,
    plain_numbers,
)
from bbb_numpy.training.optimizers import SGD, Adam, Momentum, Optimizer
from bbb_studies import linear_gaussian
from bbb_studies.ours import elbo_minima
from chapters.shared import (
    LOG_EVIDENCE,
    NET,
    NOISE,
    RATE,
    SPRING,
    data,
    ellipse,
    gaussian,
    predicted,
    slope,
    spring_after,
    thetas,
    titled,
)


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


def leaving() -> Figure:
    """Draw every sigma of the example against epochs, from the start of Section 7."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    epochs = np.arange(0, 4001, 50)
    thetas_by_rho = {rho: thetas(epochs, rho) for rho in (plain.SECTION_7, -2)}
    sigmas = {
        rho: plain.softplus(np.split(np.array(t), 2, axis=1)[1]) for rho, t in thetas_by_rho.items()
    }
    slow, time = sigmas[plain.SECTION_7], RATE * epochs
    left_ax.plot(epochs, slow, color=GREY, lw=0.4, alpha=0.6)
    left_ax.plot([], [], color=GREY, lw=0.8, label="each of 61 weights")
    left_ax.plot(epochs, np.median(slow, axis=1), color=BLUE, lw=2.2, label="median")
    free = without_data(plain.SECTION_7, 4000)[epochs]
    left_ax.plot(epochs, free, color=BLACK, ls="--", lw=1, label="without data")
    stiff = np.quantile(curvature(thetas_by_rho[plain.SECTION_7][20]), (0.5, 1.0))
    for stiffness in stiff:
        label = "predicted: median, stiffest" if stiffness == stiff[0] else None
        predicted_sigma = grown(slow[0].mean(), stiffness, time)
        left_ax.plot(epochs, predicted_sigma, color=BLACK, ls=":", lw=1.8, label=label)
    left_ax.set(yscale="log", ylim=(0.005, 2), ylabel="sigma of a weight")
    for rho, style, label in ((-2, "--", "0.13"), (plain.SECTION_7, "-", "0.007")):
        ends = [predicted(theta, np.array([[6.0]])).epistemic[0, 0] for theta in thetas_by_rho[rho]]
        right_ax.plot(epochs, ends, color=BLUE, ls=style, label=f"from sigma = {label}")
    right_ax.axvline(300, color=GREY, lw=0.8, ls=":", label="the example: 300 epochs")
    right_ax.set(ylim=(0, None), ylabel="standard deviation between networks (mm)")
    plain_numbers(left_ax.yaxis)
    for ax, title in (
        (left_ax, "Sigma leaves its start"),
        (right_ax, "What that means at 6 kg"),
    ):
        ax.set(xlabel="epochs", xlim=(0, 4000))
        legend_above(ax, 2)
        titled(ax, title)
    return figure


# D6, D24: who pays the complexity cost, and what a part of it aims at


def shares_of_ten() -> Figure:
    """Draw the shares of ten minibatches, and what has been paid after each."""
    figure = Figure(figsize=(8.4, 3.5), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    i = np.arange(1, 11)
    sizes = [10] * 10
    for shares_, colour, mark, label in (
        (proportional_kl_weights(sizes), BLUE, "o-", "proportional, $B_i / N$"),
        (geometric_kl_weights(sizes), VERMILLION, "s--", "geometric, $2^{M - i} / (2^M - 1)$"),
        (np.ones(10), GREY, "^:", "the whole each time: wrong"),
    ):
        left_ax.plot(i, shares_, mark, color=colour, ms=5, lw=1.2, label=label)
        right_ax.plot(np.arange(11), np.cumsum([0, *shares_]), mark, color=colour, ms=5, lw=1.2)
    left_ax.set(ylim=(0, 1.05), ylabel="share $\\pi_i$")
    right_ax.set(ylim=(0, 2.6), ylabel="complexity cost paid, in KL")
    for ax in (left_ax, right_ax):
        ax.set(xlabel="minibatch $i$ of ten", xticks=[0, 2, 4, 6, 8, 10], xlim=(-0.2, 10.3))
    left_ax.set_title("What each pays", loc="left", fontsize="medium")
    right_ax.set_title("What has been paid", loc="left", fontsize="medium")
    legend_of_figure(figure, left_ax, 3)
    return figure


def tempering() -> Figure:
    """Draw the spring's tempered posteriors, and the factor of a warm-up by epochs."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    w, mean, deviation = np.linspace(3.7, 6.8, 301), *spring_after(1)
    left_ax.fill_between(w, gaussian(w, mean, deviation), color=PALE, lw=0)
    for (centre, width), colour, dash, label in (
        ((mean, deviation), BLACK, "-", "$\\beta = 1$: posterior"),
        (spring_after(4), BLUE, "--", "$\\beta = 1/4$: data four times"),
        (spring_after(0.25), GREEN, "-.", "$\\beta = 4$"),
        ((mean, deviation / 2), VERMILLION, ":", "cold, $T = 1/4$"),
    ):
        left_ax.plot(w, gaussian(w, centre, width), dash, color=colour, lw=1.8, label=label)
    left_ax.set(xlim=(3.7, 6.8), ylim=(0, 2.4), ylabel="density (kg per cm)")
    left_ax.set_xlabel("$w$ (cm per kg)")
    epochs = np.arange(100)
    for rule, colour, dash, label in (
        (LinearWarmUp(), BLACK, "-", "linear"),
        (CyclicalWarmUp(), BLUE, "--", "cyclical"),
    ):
        factors = [rule(int(e), 100) for e in epochs]
        right_ax.step(epochs, factors, dash, color=colour, where="mid", label=label)
    right_ax.set(xlim=(0, 100), ylim=(0, 1.05), xlabel="epoch", ylabel="factor $\\beta$")
    titles = (left_ax, "What is aimed at: the spring"), (right_ax, "Warm-up: on the way to 1")
    for ax, title in titles:
        legend_above(ax, 2)
        titled(ax, title)
    return figure


# D2, D63: the cloud in which a constant rate ends


def errors_of_steps(runs: int = 200, steps: int = 400) -> Any:
    """Return the root mean square errors (2, steps) of natural steps of 1 / t and of 0.1 (D63).

    Of the precision's first entry, in units of that of one minibatch.
    """
    rng = np.random.default_rng(0)
    problem = linear_gaussian.draw(np.random.default_rng(0))
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
    figure = Figure(figsize=(4.8, 3.8), layout="constrained")
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
    titled(ax, "A constant rate ends in a cloud", 42)
    return figure


def valleys() -> Figure:
    """Draw two functions at which descent ends, and F on three ways between minima (D53)."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    minima = elbo_minima.search(0, starts=3, progress=False)
    x = np.linspace(-2.4, 2.4, 121)
    left_ax.plot(minima.x, minima.y, ".", color=BLACK, ms=5, label="24 rows")
    for valley, colour, dash in ((0, BLUE, "-"), (1, VERMILLION, "--")):
        first = int(np.flatnonzero(minima.kinds == valley)[0])
        mean, _ = elbo_minima.moments(minima.thetas[first], x[:, None])
        label = f"$F = {minima.energies[first]:.1f}$ nats"
        left_ax.plot(x, mean, dash, color=colour, lw=1.8, label=label)
    for name, label, colour, dash in (
        ("itself, two units exchanged", "to its image, straight", GREY, ":"),
        ("another function, aligned", "to the other minimum, straight", BLACK, "--"),
        ("the same by a bend", "to the other minimum, bent", GREEN, "-"),
    ):
        right_ax.plot(
            elbo_minima.PATH_SHARES, minima.ways[name], dash, color=colour, lw=1.8, label=label
        )
    left_ax.set(
        xlim=(-2.4, 2.4), xlabel="x (dimensionless)", ylabel="mean of $f(x)$ (dimensionless)"
    )
    right_ax.set(xlim=(0, 1), yscale="log", ylim=(20, 1500), ylabel="free energy (nats)")
    right_ax.set_xlabel("share of the way")
    plain_numbers(right_ax.yaxis, minor="25")
    for ax, title in ((left_ax, "Two of the minima, 1-3-1"), (right_ax, "Between them")):
        legend_above(ax, 2 if ax is left_ax else 1)
        ax.set_title(title, loc="left", fontsize="medium", pad=50)
    return figure


# K5, D2, D3: q slides down the free energy of one weight


def free_energy(mu: Any, rho: Any) -> Any:
    """Return F in nats of q = N(mu, softplus(rho)^2) for the spring (K5, D8 with one weight)."""
    mean, precision = SPRING
    sigma = np.logaddexp(0, rho)
    kl = -np.log(sigma) - log(precision) / 2 - 0.5 + precision * (sigma**2 + (mu - mean) ** 2) / 2
    return kl - LOG_EVIDENCE


def path(optimizer: Optimizer, steps: int, start: tuple[float, float]) -> Any:
    """Return (steps + 1, 2) the parameters (mu, rho) along exact descent."""
    theta = np.array(start)
    points = [np.array(start)]
    memory = optimizer.init(theta)
    for _ in range(steps):
        optimizer.update(theta, slope(theta), memory, 1.0)
        points.append(theta.copy())
    return np.array(points)


def descent() -> Figure:
    """Draw the paths of three optimisers over the contours of F."""
    figure = Figure(figsize=(4.8, 4.2), layout="constrained")
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
    titled(ax, "60 steps down the free energy, every second marked")
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
    figure = Figure(figsize=(4.8, 3.8), layout="constrained")
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


# D45: a reading that counts more, or less


def counted(times: float, points: int = 2001) -> tuple[Any, Any]:
    """Return w and its posterior density: 11 cm under 2 kg once, 13 cm counted so many times."""
    w = np.linspace(2, 9, points)
    x, y = np.array([2.0, 2.0]), np.array([[11.0], [13.0]])
    prior = GaussianPrior(0.5)
    noise = GaussianLikelihood(1.0)
    of_w, _ = prior.log_density({}, w[:, None] - 5, Buffers())
    f = w[:, None, None] * x[:, None]
    of_rows, _ = noise.log_likelihood({}, f, y, np.array([1.0, times]))
    density = np.exp(of_w + of_rows - np.max(of_w + of_rows))
    return w, density / np.trapezoid(density, w)


def moments_of(times: float) -> tuple[float, float]:
    """Return mean and standard deviation of `counted`."""
    w, density = counted(times)
    mean = np.trapezoid(w * density, w)
    return mean, np.trapezoid((w - mean) ** 2 * density, w) ** 0.5


def copies() -> Figure:
    """Draw the posterior for four weights of the second reading, and its moments against it."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    looks = (GREY, ":"), (GREEN, "-."), (BLACK, "-"), (BLUE, "--")
    for times, (colour, dash) in zip((0, 0.5, 1, 2), looks, strict=True):
        left_ax.plot(*counted(times), dash, color=colour, lw=1.8, label=f"$n = {times:g}$")
    left_ax.set(xlim=(4, 7), ylim=(0, 1.7), xlabel="$w$ (cm per kg)")
    left_ax.set_ylabel("posterior density (kg per cm)")
    v = np.linspace(0, 4, 41)
    mean, width = np.transpose([moments_of(weight) for weight in v])
    right_ax.fill_between(v, mean - width, mean + width, color=SKY, alpha=0.5, lw=0,
                       label="1 standard deviation")  # fmt: skip
    right_ax.plot(v, mean, color=BLACK, label="mean")
    stands = [(20 + 22 + 26 * n) / (8 + 4 * n) for n in range(5)]
    right_ax.plot(range(5), stands, "o", color=VERMILLION, ms=6, label="so many copies")
    right_ax.axhline(6.5, color=GREY, lw=0.8, ls=":")
    right_ax.set(xlim=(-0.1, 4.1), ylim=(4.7, 6.6), xlabel="weight $n$ of the second reading")
    right_ax.set_ylabel("$w$ (cm per kg)")
    for ax, title in (
        (left_ax, "Readings 11 cm, and 13 cm counted $n$ times"),
        (right_ax, "A weight and a number of copies"),
    ):
        legend_above(ax, 2)
        titled(ax, title)
    return figure


# D61: the gradient for rho knows the curvature


def curvatures(draws: int = 20_000, parts: int = 20) -> Any:
    """Return (3, 61) of the opening network: Lambda, h by the gradient for rho, its error.

    Draws come in pairs eps, -eps (D23), of which the noise of the mean slope cancels.
    """
    (theta,) = thetas([300])
    mu, rho = np.split(theta, 2)
    sigma = plain.softplus(rho)
    x, y, _ = data()
    rng = np.random.default_rng(2)
    estimates = []
    for _ in range(parts):
        eps = rng.standard_normal((draws // parts // 2, mu.size))
        pairs = np.concatenate([eps, -eps])
        _, grad = plain.value_and_grad(NET, theta, pairs, x, y, 1.0, NOISE, 1.0)
        d_sigma = np.split(grad, 2)[1] / plain.sigmoid(rho)
        estimates.append((sigma * d_sigma + 1) / sigma**2)
    error = np.std(estimates, axis=0, ddof=1) / parts**0.5
    return np.array([curvature(theta, draws=200), np.mean(estimates, axis=0), error])


def curved() -> Figure:
    """Draw the curvature that the gradient for rho tells against that of the network's slopes."""
    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    ax = figure.subplots()
    second, estimate, error = curvatures()
    line = np.geomspace(2, 2000, 100)
    ax.plot(line, line, color=GREY, lw=1, ls="--", label="equal")
    ax.axhline(0, color=GREY, lw=0.8)
    ax.errorbar(second, estimate, 2 * error, fmt="o", color=BLUE, ms=4, lw=0.8,
                label="61 weights, 2 standard errors")  # fmt: skip
    ax.set(xscale="log", xlim=(2, 2000), ylim=(-30, 2000))
    ax.set_yscale("symlog", linthresh=10)
    ax.set_yticks([-10, 0, 10, 100, 1000])
    ax.set_xlabel("from slopes of the outputs, without jumps: $\\Lambda$")
    ax.set_ylabel("from the gradient for $\\rho$: $h$")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)
    legend_above(ax, 2)
    titled(ax, "Curvature of minus the log joint density")
    return figure


# D60: loads read on two scales that nearly agree


def two_scales(rows: int = 12) -> tuple[Any, Any, Any]:
    """Return standardised inputs (N, 2), their axes (2, 2), and the precision of the weights."""
    rng = np.random.default_rng(4)
    load = rng.uniform(1, 5, rows)
    x = load[:, None] + 0.02 * rng.standard_normal((rows, 2))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    _, axes = np.linalg.eigh(x.T @ x)
    return x, axes[:, ::-1], x.T @ x / 0.3**2 + np.eye(2)


def of_mean_fields() -> tuple[Any, Any]:
    """Return the covariances of the best mean fields: in the columns, and in the axes (D8)."""
    _, axes, precision = two_scales()
    turned = np.diag(1 / np.diag(axes.T @ precision @ axes))
    return np.diag(1 / np.diag(precision)), axes @ turned @ axes.T


def turned() -> Figure:
    """Draw the inputs and their axes, and three covariances of their weights."""
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    x, axes, precision = two_scales()
    left_ax.plot(*x.T, "o", color=BLACK, ms=4, label="12 loads")
    for axis, colour, dash, name in zip(
        axes.T, (BLUE, VERMILLION), ("--", ":"), ("first axis", "second"), strict=True
    ):
        left_ax.plot(*np.outer(axis, [-2.2, 2.2]), color=colour, lw=1.4, ls=dash, label=name)
    left_ax.set(
        xlim=(-2.2, 2.2), ylim=(-2.2, 2.2), aspect="equal", xlabel="first scale, standardised"
    )
    left_ax.set_ylabel("second scale, standardised")
    of_columns, of_axes = of_mean_fields()
    for matrix, name, colour, dash, wide in (
        (np.linalg.inv(precision), "posterior", BLACK, "-", 3.0),
        (of_columns, "mean field, columns", VERMILLION, "-.", 1.8),
        (of_axes, "mean field, axes", SKY, "--", 1.8),
    ):
        ring = ellipse(matrix, 2)
        right_ax.plot(*ring, color=colour, ls=dash, lw=wide, label=name)
    right_ax.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
    right_ax.set_xlabel("weight of the first scale, less its mean")
    right_ax.set_ylabel("weight of the second, less its mean")
    legend_above(left_ax, 3)
    legend_above(right_ax, 2)
    titled(left_ax, "Two inputs that nearly agree")
    titled(right_ax, "Their weights, 2 standard deviations")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "leaving": leaving,
    "shares": shares_of_ten,
    "tempering": tempering,
    "cloud": cloud,
    "valleys": valleys,
    "descent": descent,
    "natural": natural,
    "copies": copies,
    "curved": curved,
    "turned": turned,
}

"""The coin of Mullachery et al., with and without conjugacy (M18, M19).

Four priors of the probability r of a head, two of them conjugate, after 0, 1, 10 and 100 tosses.
The posterior three ways: in closed form where there is one, by brute force on a grid, and by
Metropolis-Hastings, which sees the unnormalised product of likelihood and prior alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, pi
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bbb_numpy.numeric.elementary import log_factorial, softplus
from bbb_numpy.numeric.validation import positive, real, whole
from bbb_numpy.plots.style import BLACK, BLUE, GREY, SKY, VERMILLION, density_of_draws
from bbb_numpy.progress import counted, steps
from bbb_numpy.sampling.mcmc import GaussianWalk, MetropolisHastings
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    plus_minus,
    table,
    table_of_columns,
    write,
)

Array = NDArray[Any]
POINTS = 10_001  # on each side of the grid on which a distribution function is inverted
DROP = 45.0  # the grid ends where the density has fallen by this many nats


def log_gamma(x: ArrayLike) -> Array:
    """Return log Gamma(x), elementwise for x > 0: log x! - log x (D31)."""
    x = np.asarray(x, float)
    return log_factorial(x) - np.log(x)


def coin_log_density(r: ArrayLike, heads: int, tails: int) -> Array:
    r"""Return the log of the paper's posterior of a coin under the uniform prior (M18).

    :math:`\frac{(h + t + 1)!}{h!\, t!} r^h (1 - r)^t`, elementwise for r in [0, 1]; -inf elsewhere.
    One head and no tail give 2r: "p * 1" is this without its factor.
    """
    heads, tails = whole("heads", heads, 0), whole("tails", tails, 0)
    factor = log_factorial(heads + tails + 1) - log_factorial(heads) - log_factorial(tails)
    return factor + _powers(r, heads, tails)  # M18


def _powers(r: ArrayLike, above: float, below: float) -> Array:
    """Return above * log r + below * log(1 - r) with 0 log 0 = 0; -inf outside [0, 1]."""
    r = np.asarray(r, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = above * np.log(r) if above else np.zeros_like(r)
        second = below * np.log1p(-r) if below else np.zeros_like(r)
        return np.where((r < 0) | (r > 1), -np.inf, first + second)


def _counts(data: ArrayLike, what: str, most: float = np.inf) -> Array:
    """Return `data` as one flat float array, or raise unless whole numbers from 0 to `most`."""
    flat = np.atleast_1d(np.asarray(data, float)).ravel()
    wrong = flat[~((flat >= 0) & (flat <= most) & (flat == np.floor(flat)) & (flat < np.inf))]
    if wrong.size:
        raise ValueError(f"data must be {what}; got {wrong[0]:g}")
    return flat


def _interval(log_density: Callable[[Array], Array], mode: float, mass: float) -> Array:
    """Return the equal-tailed interval (2,) of a unimodal density on the real line.

    Its distribution function is the cumulative trapezoidal sum over a grid that is finest at
    the `mode`, inverted by straight lines: both ends good to 1e-5 of the deviation.
    """
    mass = real("mass", mass, 1e-9, 1.0, "above 0 and below 1")
    top, ends = float(log_density(np.array([mode]))[0]), []
    for direction in (-1.0, 1.0):
        low, high = 0.0, 1e-6
        while log_density(np.array([mode + direction * high]))[0] > top - DROP:
            low, high = high, 2.0 * high
        for _ in range(20):  # bisection: a grid no wider than it must be
            middle = 0.5 * (low + high)
            above = log_density(np.array([mode + direction * middle]))[0] > top - DROP
            low, high = (middle, high) if above else (low, middle)
        ends.append(mode + direction * high)
    place = np.linspace(0.0, 1.0, POINTS) ** 3
    grid = mode + np.concatenate([(ends[0] - mode) * place[:0:-1], (ends[1] - mode) * place])
    density = np.exp(log_density(grid) - top)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) * np.diff(grid))])
    return np.interp([0.5 - 0.5 * mass, 0.5 + 0.5 * mass], below / below[-1], grid)


class Conjugate:
    """What all rows share: the evidence from their normalisers and base measures (M19)."""

    @property
    def log_normaliser(self) -> float:
        """A, the logarithm of the integral of the kernel."""
        raise NotImplementedError

    def update(self, data: ArrayLike) -> Self:
        """Return the posterior."""
        raise NotImplementedError

    def log_base(self, data: ArrayLike) -> float:
        """Return the log factor of P(data | parameter) without the parameter."""
        return 0.0

    def log_evidence(self, data: ArrayLike) -> float:
        """Return log P(data) in nats, the observations in their order."""
        return self.update(data).log_normaliser - self.log_normaliser + self.log_base(data)


@dataclass(frozen=True)
class Beta(Conjugate):
    """P(p) proportional to p^(alpha - 1) (1 - p)^(beta - 1), the prior of a probability (M19).

    Like alpha - 1 successes and beta - 1 failures seen from a uniform prior: what the paper's
    table prints as the *posterior*.

    Parameters
    ----------
    alpha, beta : float
        Positive.
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    def observe(self, successes: float, failures: float) -> Beta:
        """Return the posterior Beta(alpha + successes, beta + failures) (M19)."""
        return Beta(self.alpha + successes, self.beta + failures)  # M19

    def update(self, data: ArrayLike) -> Beta:
        """Return the posterior after `data`, each 0 or 1."""
        flat = _counts(data, "0 or 1", 1)
        return self.observe(float(flat.sum()), float(len(flat) - flat.sum()))

    @property
    def log_normaliser(self) -> float:
        """The logarithm of Euler's B(alpha, beta)."""
        a, b = self.alpha, self.beta
        return float(log_gamma(a) + log_gamma(b) - log_gamma(a + b))

    def log_density(self, p: ArrayLike) -> Array:
        """Return the log density at `p`; -inf outside [0, 1]."""
        return _powers(p, self.alpha - 1.0, self.beta - 1.0) - self.log_normaliser

    @property
    def mean(self) -> float:
        """The ratio alpha / (alpha + beta), also the predictive probability of a success."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> float:
        """The product mean (1 - mean) / (alpha + beta + 1)."""
        return self.mean * (1.0 - self.mean) / (self.alpha + self.beta + 1.0)

    def interval(self, mass: float = 0.95) -> Array:
        """Return the equal-tailed interval (2,), found on the grid of z = logit p."""
        a, b = self.alpha, self.beta
        ends = _interval(lambda z: a * z - (a + b) * softplus(z), float(np.log(a / b)), mass)
        return np.exp(-softplus(-ends))

    def log_predictive(self, y: ArrayLike) -> Array:
        """Return log P(next = y), elementwise for y in {0, 1}."""
        ones = _counts(y, "0 or 1", 1).reshape(np.shape(y))
        return np.log(np.where(ones == 1, self.mean, 1.0 - self.mean))


@dataclass(frozen=True)
class Dirichlet(Conjugate):
    """P(p) proportional to prod_k p_k^(alpha_k - 1), the prior of K probabilities (M19).

    Parameters
    ----------
    alpha : tuple of K >= 2 floats
        Positive; kept as a tuple.
    """

    alpha: tuple[float, ...]

    def __post_init__(self) -> None:
        if np.ndim(self.alpha) == 0:  # text, too
            raise TypeError(
                "alpha must be a tuple of positive numbers, one for each class, e.g. (1.0, 1.0); "
                f"got {self.alpha!r}"
            )
        alpha = tuple(positive(f"alpha[{k}]", a) for k, a in enumerate(self.alpha))
        if len(alpha) < 2:
            raise ValueError(f"alpha needs at least 2 numbers, one for each class; got {alpha}")
        object.__setattr__(self, "alpha", alpha)

    def observe(self, counts: ArrayLike) -> Dirichlet:
        """Return the posterior Dirichlet(alpha_k + c_k): counts (K,) by class, not summed (M19)."""
        counts = _counts(counts, "whole numbers >= 0")
        if len(counts) != len(self.alpha):
            raise ValueError(f"there are {len(self.alpha)} classes; got {len(counts)} counts")
        return Dirichlet(tuple(np.add(self.alpha, counts)))

    def update(self, data: ArrayLike) -> Dirichlet:
        """Return the posterior after `data`, each a class 0 ... K - 1."""
        classes = len(self.alpha)
        flat = _counts(data, f"classes 0 ... {classes - 1}", classes - 1)
        return self.observe(np.bincount(flat.astype(int), minlength=classes))

    @property
    def total(self) -> float:
        """The sum of alpha."""
        return sum(self.alpha)

    @property
    def log_normaliser(self) -> float:
        """The difference sum_k log Gamma(alpha_k) - log Gamma(sum_k alpha_k)."""
        return float(log_gamma(self.alpha).sum() - log_gamma(self.total))

    def log_density(self, p: Array) -> Array:
        """Return the log density at `p` (..., K) on the simplex, for p_1 ... p_(K-1)."""
        powers = np.asarray(self.alpha) - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(powers == 0, 0.0, powers * np.log(p))
        return terms.sum(axis=-1) - self.log_normaliser

    @property
    def mean(self) -> Array:
        """The ratios alpha_k / sum alpha (K,), also the predictive probabilities."""
        return np.asarray(self.alpha) / self.total

    @property
    def variance(self) -> Array:
        """Marginal variances (K,)."""
        return self.mean * (1.0 - self.mean) / (self.total + 1.0)

    def interval(self, mass: float = 0.95) -> Array:
        """Return the equal-tailed intervals (K, 2) of the marginals Beta(alpha_k, rest)."""
        return np.stack([Beta(a, self.total - a).interval(mass) for a in self.alpha])

    def log_predictive(self, y: ArrayLike) -> Array:
        """Return log P(next = y), elementwise for classes y."""
        last = len(self.alpha) - 1
        flat = _counts(y, f"classes 0 ... {last}", last)
        return np.log(self.mean)[flat.astype(int)].reshape(np.shape(y))


@dataclass(frozen=True)
class Gamma(Conjugate):
    """P(rate) proportional to rate^(shape - 1) e^(-rate * b), the prior of a Poisson rate (M19).

    Parameters
    ----------
    shape, rate : float
        Positive; `rate` is b, one over the scale. Like `shape` events in `rate` intervals: what
        the paper's table prints as the *posterior*.
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("rate", self.rate)

    def update(self, data: ArrayLike) -> Gamma:
        """Return the posterior Gamma(shape + sum x, rate + N) after counts (M19)."""
        flat = _counts(data, "whole numbers >= 0")
        return Gamma(self.shape + float(flat.sum()), self.rate + len(flat))

    def log_base(self, data: ArrayLike) -> float:
        """Return -sum log x!."""
        return -float(log_factorial(_counts(data, "whole numbers >= 0")).sum())

    @property
    def log_normaliser(self) -> float:
        """The difference log Gamma(shape) - shape log rate."""
        return float(log_gamma(self.shape) - self.shape * np.log(self.rate))

    def log_density(self, x: ArrayLike) -> Array:
        """Return the log density at `x`; -inf for x < 0."""
        x = np.asarray(x, float)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = (self.shape - 1.0) * np.log(x) if self.shape != 1.0 else np.zeros_like(x)
            return np.where(x < 0, -np.inf, power - self.rate * x - self.log_normaliser)

    @property
    def mean(self) -> float:
        """Shape / rate."""
        return self.shape / self.rate

    @property
    def variance(self) -> float:
        """Shape / rate^2."""
        return self.shape / self.rate**2

    def interval(self, mass: float = 0.95) -> Array:
        """Return the equal-tailed interval (2,), found on the grid of z = log x."""
        a, b = self.shape, self.rate
        top = float(np.log(a / b))
        return np.exp(_interval(lambda z: a * (z - top) - a * np.expm1(z - top), top, mass))

    def log_predictive(self, y: ArrayLike) -> Array:
        """Return log P(next = y), elementwise: negative binomial."""
        flat = _counts(y, "whole numbers >= 0").reshape(np.shape(y))
        top = log_gamma(self.shape + flat) - log_gamma(self.shape) - log_factorial(flat)
        return top - self.shape * np.log1p(1.0 / self.rate) - flat * np.log1p(self.rate)


CELLS = 20_000  # of the grid
BUDGET = (200, 2000, 500)  # chains, draws, warm-up


class Prior(NamedTuple):
    """A density of r on (0, 1), its slope, and the object in closed form if it is conjugate."""

    title: str
    log_density: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    conjugate: Beta | None = None


def beta(prior: Beta, title: str) -> Prior:
    """Return a conjugate prior."""
    a, b = prior.alpha - 1.0, prior.beta - 1.0
    return Prior(title, prior.log_density, lambda r: a / r - b / (1.0 - r), prior)


def triangular() -> Prior:
    """Return the density 4 min(r, 1 - r): fair coins are likeliest, and there is a kink."""
    return Prior(
        "triangular",
        lambda r: log(4.0) + np.log(np.minimum(r, 1.0 - r)),
        lambda r: np.where(r < 0.5, 1.0 / r, -1.0 / (1.0 - r)),
    )


def logistic_normal(deviation: float = 1.0) -> Prior:
    """Return the density of r = sigmoid(z), z ~ N(0, deviation^2): |dz/dr| = 1 / (r (1 - r))."""

    def log_density(r: Array) -> Array:
        z = np.log(r) - np.log1p(-r)
        normal = -0.5 * (z / deviation) ** 2 - log(deviation) - 0.5 * log(2.0 * pi)
        return normal - np.log(r) - np.log1p(-r)

    def slope(r: Array) -> Array:
        z = np.log(r) - np.log1p(-r)
        return (2.0 * r - 1.0 - z / deviation**2) / (r * (1.0 - r))

    return Prior("logistic-normal", log_density, slope)


PRIORS = (
    beta(Beta(1.0, 1.0), "uniform, Beta(1, 1)"),
    beta(Beta(20.0, 20.0), "informative, Beta(20, 20)"),
    triangular(),
    logistic_normal(),
)


@dataclass(frozen=True)
class Coin:
    """r^h (1 - r)^t times the prior: a target of samplers, unnormalised, -inf outside (0, 1).

    Parameters
    ----------
    prior : Prior
    heads, tails : int
    """

    prior: Prior
    heads: int
    tails: int

    def __call__(self, position: Array) -> tuple[Array, Array]:
        """Return the log density (S,) and its slope (S, 1) at r = position (S, 1)."""
        inside = (position > 0.0) & (position < 1.0)
        r = np.where(inside, position, 0.5)
        value = self.heads * np.log(r) + self.tails * np.log1p(-r) + self.prior.log_density(r)
        slope = self.heads / r - self.tails / (1.0 - r) + self.prior.slope(r)
        return np.where(inside, value, -np.inf)[:, 0], np.where(inside, slope, 0.0)


class Found(NamedTuple):
    """A posterior by one method; errors are standard errors of Metropolis-Hastings, else 0."""

    mean: float
    deviation: float
    log_evidence: float  # nan for Metropolis-Hastings, which does not have it
    mean_error: float = 0.0
    deviation_error: float = 0.0


def grid(prior: Prior, heads: int, tails: int, cells: int = CELLS) -> tuple[Array, Array, Found]:
    """Return midpoints r, the posterior density there, and its moments, by Bayes' rule.

    The paper's Figure 2: the integral in the denominator as a sum over all cells.
    """
    r = (np.arange(cells) + 0.5) / cells
    joint = heads * np.log(r) + tails * np.log1p(-r) + prior.log_density(r)
    evidence = np.mean(np.exp(joint - joint.max()))
    density = np.exp(joint - joint.max()) / evidence
    mean = np.mean(r * density)
    deviation = np.mean((r - mean) ** 2 * density) ** 0.5
    return r, density, Found(float(mean), float(deviation), float(np.log(evidence) + joint.max()))


def metropolis(
    target: Coin, scale: float, rng: np.random.Generator, chains: int, draws: int, warm_up: int
) -> tuple[Array, float]:
    """Return draws of r (draws, chains) by random-walk Metropolis-Hastings, and its acceptance.

    Parameters
    ----------
    scale : float
        Deviation of a proposal: 2.4 posterior deviations are best for one number.
    """
    kernel = MetropolisHastings(GaussianWalk(scale))
    state = kernel.init(target, rng.uniform(0.01, 0.99, (chains, 1)))
    kept, acceptance = np.empty((draws, chains)), 0.0
    for step in range(-warm_up, draws):
        state, info = kernel.step(target, rng, state)
        if step >= 0:
            kept[step] = state.position[:, 0]
            acceptance += float(info.acceptance.mean()) / draws
    return kept, acceptance


def moments(kept: Array) -> Found:
    """Return mean and deviation of draws (T, S), with standard errors from S independent chains."""
    means = kept.mean(axis=0)
    mean, chains = float(means.mean()), len(means)
    squares = ((kept - mean) ** 2).mean(axis=0)
    deviation = float(squares.mean() ** 0.5)
    error = float(squares.std(ddof=1) / chains**0.5) / (2.0 * deviation)
    mean_error = float(means.std(ddof=1) / chains**0.5)
    return Found(mean, deviation, float("nan"), mean_error, error)


class Cell(NamedTuple):
    """One prior after one number of tosses."""

    prior: Prior
    heads: int
    tails: int
    r: Array  # (CELLS,)
    density: Array  # (CELLS,)  by the grid
    exact: Found | None  # in closed form
    grid: Found
    sampled: Found
    draws: Array  # (T, S)
    acceptance: float
    gap: float  # largest difference of grid and closed-form density, nan without the latter

    @property
    def best(self) -> Found:
        """The closed form if there is one, else the grid."""
        return self.exact or self.grid


def measure(
    prior: Prior,
    heads: int,
    tails: int,
    rng: np.random.Generator,
    budget: tuple[int, int, int] = BUDGET,
) -> Cell:
    """Find one posterior three ways."""
    r, density, by_grid = grid(prior, heads, tails)
    exact, gap = None, float("nan")
    if prior.conjugate is not None:
        q = prior.conjugate.observe(heads, tails)
        evidence = q.log_normaliser - prior.conjugate.log_normaliser
        exact = Found(q.mean, q.variance**0.5, evidence)
        gap = float(np.abs(density - np.exp(q.log_density(r))).max())
    target = Coin(prior, heads, tails)
    kept, acceptance = metropolis(target, 2.4 * by_grid.deviation, rng, *budget)
    return Cell(
        prior, heads, tails, r, density, exact, by_grid, moments(kept), kept, acceptance, gap
    )


R = "r, probability of a head"


def draw_posteriors(cells: Mapping[str, Sequence[Cell]], truth: float) -> Figure:
    """Draw prior, likelihood, posterior and draws, a row for each prior."""
    stages = len(next(iter(cells.values())))
    figure = Figure(figsize=(3.4 * stages, 2.5 * len(cells) + 0.6), layout="constrained")
    panels = figure.subplots(len(cells), stages, sharex=True, squeeze=False)
    for row, (title, some) in zip(panels, cells.items(), strict=True):
        for ax, cell in zip(row, some, strict=True):
            density_of_draws(
                ax, cell.draws, np.linspace(0, 1, 61), fill=True, color=SKY, alpha=0.6,
                label="Metropolis-Hastings",
            )  # fmt: skip
            r = cell.r[::20]
            prior = np.exp(cell.prior.log_density(r))
            likelihood = cell.heads * np.log(r) + cell.tails * np.log1p(-r)
            likelihood = np.exp(likelihood - likelihood.max())
            likelihood /= likelihood.mean()
            name = "posterior, grid" if cell.exact is None else "posterior, closed form"
            ax.plot(r, cell.density[::20], color=BLUE, lw=2.2, label=name)
            ax.plot(r, prior, "--", color=VERMILLION, lw=1.5, label="prior")
            ax.plot(r, likelihood, ":", color=BLACK, lw=1.8, label="likelihood, scaled to area 1")
            ax.axvline(truth, color=GREY, lw=0.8, label="truth")
            ax.set_xlim(0, 1)
            ax.set_ylim(bottom=0)
            ax.set_title(
                f"{_draw_count(cell.heads, 'head')}, {_draw_count(cell.tails, 'tail')}",
                fontsize=9,
                pad=3,
            )
        row[0].set_ylabel(f"density\n({title})", fontsize=9)
    for ax in panels[-1]:
        ax.set_xlabel(R)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    labels = [label.replace(", closed form", " (closed form or grid)") for label in labels]
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    return figure


def draw_one_head(single: Cell, paths: Mapping[str, Array], truth: float) -> Figure:
    """Draw (a) p, 2p and the draws after one head (M18), (b) posterior means toss by toss."""
    figure = Figure(figsize=(11.5, 4.3), layout="constrained")
    a, b = figure.subplots(1, 2)
    density_of_draws(
        a, single.draws, np.linspace(0, 1, 41), fill=True, color=SKY,
        label="Metropolis-Hastings, given p alone",
    )  # fmt: skip
    a.plot([0, 1], [0, 1], "--", color=VERMILLION, lw=1.8, label="“p * 1”, area 1/2")
    a.plot([0, 1], [0, 2], color=BLUE, lw=1.8, label="2p, area 1")
    a.set_xlim(0, 1)
    a.set_ylim(0, 2.2)
    a.set_xlabel(f"{R}\n(a) after one head, uniform prior")
    a.set_ylabel("density")
    a.legend(loc="upper left", frameon=False)
    styles = ((BLUE, "-", "o"), (VERMILLION, "--", "s"), (BLACK, ":", "^"), (GREY, "-.", "D"))
    for (title, path), (colour, style, marker) in zip(paths.items(), styles, strict=True):
        tosses = np.arange(len(path))
        b.plot(
            tosses, path[:, 0], style, color=colour, marker=marker, markevery=(0, 20), lw=1.6,
            markersize=5, label=title,
        )  # fmt: skip
    flat = next(iter(paths.values()))
    b.fill_between(
        np.arange(len(flat)), flat[:, 0] - flat[:, 1], flat[:, 0] + flat[:, 1], color=SKY,
        alpha=0.5, lw=0, zorder=0, label="uniform prior, ± 1 deviation",
    )  # fmt: skip
    b.axhline(truth, color=GREY, lw=0.8)
    b.set_xlim(0, len(flat) - 1)
    b.set_ylim(0.2, 1.0)
    b.set_xlabel("tosses seen\n(b) posterior mean of r")
    b.set_ylabel(R)
    b.legend(loc="lower right", frameon=False, ncols=2)
    return figure


def _draw_count(some: int, what: str) -> str:
    return f"{some} {what}{'s' if some != 1 else ''}"


TRUTH = 0.7  # probability of a head of the coin that is tossed
STAGES = (0, 1, 10, 100)  # tosses seen
ROUNDING = 1e-10  # of sums over the grid


def toss(seed: int = 0, most: int = STAGES[-1]) -> Array:
    """Toss a coin with P(head) = 0.7: ones and zeros (most,)."""
    return (np.random.default_rng(seed).random(most) < TRUTH).astype(int)


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    budget: tuple[int, int, int] = BUDGET,
    progress: bool | None = None,
) -> str:
    """Compute, write pictures and ``coin.json`` into `out`, return the tables.

    `budget`: chains, draws and warm-up steps of each.
    """
    tosses = toss(seed)
    heads = {stage: int(tosses[:stage].sum()) for stage in STAGES}
    work = len(PRIORS) * len(STAGES) + 1
    rngs = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(work))
    with steps(work, progress) as done:
        cells = {
            prior.title: [
                measure(prior, h, stage - h, next(rngs), budget)
                for stage, h in counted(heads.items(), done)
            ]
            for prior in PRIORS
        }
        single = measure(PRIORS[0], 1, 0, next(rngs), budget)  # one head, uniform prior
        done(1)
    every = [cell for row in cells.values() for cell in row]
    paths = {prior.title: _path(prior, tosses) for prior in PRIORS}
    pictures = {
        "coin-posteriors": draw_posteriors(cells, TRUTH),
        "coin-one-head": draw_one_head(single, paths, TRUTH),
    }
    found = {"tosses": tosses, "cells": [*map(_numbers, every)], "one head": _numbers(single)}
    write(out, pictures, found, "coin")
    return _tables(every, single, paths, budget)


def _path(prior: Prior, tosses: Array) -> Array:
    """Return the posterior mean and deviation (N + 1, 2) after each toss, by the grid."""
    heads = np.concatenate([[0], np.cumsum(tosses)])
    found = [grid(prior, int(h), n - int(h), 2000)[2] for n, h in enumerate(heads)]
    return np.array([[one.mean, one.deviation] for one in found])


def _numbers(cell: Cell) -> dict[str, Any]:
    ways = {"closed form": cell.exact, "grid": cell.grid, "metropolis": cell.sampled}
    kept = {way: found for way, found in ways.items() if found is not None}
    of_cell = {"heads": cell.heads, "tails": cell.tails, "acceptance": cell.acceptance}
    return {"prior": cell.prior.title, **of_cell, **kept}


def _tables(
    cells: Sequence[Cell], single: Cell, paths: Mapping[str, Array], budget: tuple[int, int, int]
) -> str:
    parts = {
        "A coin and its posterior, three ways: closed form, grid, Metropolis-Hastings (MH).": table(
            ("run", "value"),
            [
                ("P(head) of the coin", f"{TRUTH:g}"),
                ("tosses", f"{STAGES[-1]}"),
                ("cells of the grid", f"{CELLS}"),
                ("chains of MH", f"{budget[0]}"),
                ("draws of each", f"{budget[1]}"),
            ],
        ),
        "Posteriors of r after h heads and t tails, in closed form or else by the grid; log P(D) "
        "in nats;\nz: MH less it, in standard errors of MH.": _posteriors(cells),
        "How far the three ways are apart.": _agreement(cells),
        "Posteriors under the four priors: their deviations, how far their means are apart.": (
            _spread(paths)
        ),
    }
    judged = claims(
        "M18, one head under the uniform prior; +- is a standard error.",
        "the paper",
        claims_of_the_paper(single),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _off(cell: Cell) -> tuple[float, float]:
    """Return MH less the best of the others, in its standard errors: mean, deviation."""
    chains, best = cell.sampled, cell.best
    return (
        (chains.mean - best.mean) / chains.mean_error,
        (chains.deviation - best.deviation) / chains.deviation_error,
    )


def _posteriors(cells: Sequence[Cell]) -> str:
    columns = {
        "prior": [c.prior.title for c in cells],
        "h": [f"{c.heads}" for c in cells],
        "t": [f"{c.tails}" for c in cells],
        "mean": [f"{c.best.mean:.5f}" for c in cells],
        "sd": [f"{c.best.deviation:.5f}" for c in cells],
        "log P(D)": [f"{c.best.log_evidence:.4f}" for c in cells],
        "grid off": [
            f"{abs(c.grid.mean - c.exact.mean):.0e}" if c.exact else "no formula" for c in cells
        ],
        "MH mean": [f"{c.sampled.mean:.5f}" for c in cells],
        "z": [f"{_off(c)[0]:+.1f}" for c in cells],
        "MH sd": [f"{c.sampled.deviation:.5f}" for c in cells],
        "z of sd": [f"{_off(c)[1]:+.1f}" for c in cells],
    }
    return table_of_columns(columns)


def _agreement(cells: Sequence[Cell]) -> str:
    gaps = [c.gap for c in cells if c.exact]
    evidence = [abs(c.grid.log_evidence - c.exact.log_evidence) for c in cells if c.exact]
    differences = np.abs([_off(c) for c in cells])
    acceptance = [c.acceptance for c in cells]
    rows = [
        ("grid less closed form, largest: density", f"{max(gaps):.0e}"),
        ("grid less closed form, largest: log P(D), nats", f"{max(evidence):.0e}"),
        ("differences of MH", f"{differences.size}"),
        ("largest of them, standard errors", f"{differences.max():.1f}"),
        ("acceptance of MH, least", f"{min(acceptance):.2f}"),
        ("acceptance of MH, largest", f"{max(acceptance):.2f}"),
    ]
    return table(("methods", "value"), rows)


def _spread(paths: Mapping[str, Array]) -> str:
    every = np.array(list(paths.values()))  # (priors, N + 1, 2)
    last = every[:, -1, 0]
    farthest = int(np.argmax(np.abs(last - np.median(last))))
    others = np.delete(every, farthest, axis=0)
    stages = (0, 10, every.shape[1] - 1)
    columns = {
        "tosses": [f"{n}" for n in stages],
        "least sd": [f"{every[:, n, 1].min():.3f}" for n in stages],
        "largest sd": [f"{every[:, n, 1].max():.3f}" for n in stages],
        "means": [f"{np.ptp(every[:, n, 0]):.3f}" for n in stages],
        f"without {list(paths)[farthest]}": [f"{np.ptp(others[:, n, 0]):.3f}" for n in stages],
    }
    return table_of_columns(columns)


def claims_of_the_paper(single: Cell) -> list[Claim]:
    """Judge what the paper says of one head (M18) by the grid and by Metropolis-Hastings."""
    area = float(np.exp(single.grid.log_evidence))
    off = float(np.abs(single.density - np.exp(coin_log_density(single.r, 1, 0))).max())
    found = single.sampled
    mean = plus_minus(found.mean, found.mean_error, 4)
    z = abs(found.mean - 2.0 / 3.0) / found.mean_error
    formula, integral = "(h+t+1)!/(h! t!) r^h (1-r)^t", f"integral {area:.6f}"
    return [
        Claim("the posterior of p", "p (= p * 1)", integral, abs(area - 1.0) < ROUNDING),
        Claim("of h heads, t tails", formula, f"2p, off by {off:.0e}", off < ROUNDING),
        Claim("the mean of 2p, by MH, which is given p alone", "2/3", mean, z, True),
    ]

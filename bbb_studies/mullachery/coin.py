"""The coin of Mullachery et al., with and without conjugacy (M18, M19).

Four priors of the probability r of a head, two of them conjugate, after 0, 1, 10 and 100 tosses.
The posterior three ways: in closed form where there is one, by brute force on a grid, and by
Metropolis-Hastings, which sees the unnormalised product of likelihood and prior alone.

The paper's table of conjugate priors, corrected (M19):

=====================  =======================  ==========================================
data                   prior                    posterior
=====================  =======================  ==========================================
Bernoulli p            `Beta` (a, b)            Beta(a + sum x, b + N - sum x)
categorical p          Dirichlet (a_k)          Dirichlet(a_k + c_k), c_k rows of class k
Poisson rate           Gamma (a, rate b)        Gamma(a + sum x, b + N)
=====================  =======================  ==========================================

Every prior is proportional to exp(<eta, T>) with log normaliser A(eta); the data add their
statistics to eta. Hence log P(D) = A(posterior) - A(prior) + log base measure, in nats, for the
observations in their order. The row for normal data is `bbb_studies.linear_gaussian.exact` (D8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from bbb_numpy.numeric.elementary import log_factorial
from bbb_numpy.plots.style import BLACK, BLUE, GREY, SKY, VERMILLION, density_of_draws
from bbb_numpy.sampling.mcmc import GaussianWalk, MetropolisHastings
from bbb_studies.kit import (
    Claim,
    claims,
    estimate,
    listed,
    panels,
    plus_minus,
    text,
    write,
)
from bbb_studies.progress import counted, steps

Array = NDArray[Any]
TRUE_PROBABILITY = 0.7  # probability of a head of the coin that is tossed
STAGES = (0, 1, 10, 100)  # numbers of tosses after which the posterior is computed
N_GRID_CELLS = 20_000  # between r = 0 and 1
MAX_GRID_ERROR = 1e-10  # rounding of sums over the grid


class SamplingBudget(NamedTuple):
    """Size of one run of Metropolis-Hastings."""

    chains: int = 200
    draws: int = 2000  # of each chain
    warm_up: int = 500


BUDGET = SamplingBudget()


def coin_log_density(r: ArrayLike, heads: int, tails: int) -> Array:
    r"""Return the log posterior density of a coin under the uniform prior (M18).

    :math:`\frac{(h + t + 1)!}{h!\, t!} r^h (1 - r)^t`, elementwise for r in [0, 1]; -inf elsewhere.
    One head and no tail give 2r: "p * 1" is this without its factor.

    Parameters
    ----------
    r : array_like
        Probability of a head.
    heads, tails : int
        Numbers of tosses seen.

    Returns
    -------
    ndarray
        Of the shape of `r`.
    """
    factor = (
        log_factorial(heads + tails + 1) - log_factorial(heads) - log_factorial(tails)
    )
    return factor + _powers(r, heads, tails)  # M18


def _powers(r: ArrayLike, exponent: float, complement_exponent: float) -> Array:
    """Return log(r^exponent (1 - r)^complement_exponent), 0 log 0 = 0; -inf outside [0, 1]."""
    r = np.asarray(r, float)
    with np.errstate(divide="ignore"):
        log_power = special.xlogy(exponent, r) + special.xlog1py(
            complement_exponent, -r
        )
    return np.where((r < 0) | (r > 1), -np.inf, log_power)


@dataclass(frozen=True)
class Beta:
    """P(p) proportional to p^(alpha - 1) (1 - p)^(beta - 1), the prior of a probability (M19).

    Like alpha - 1 successes and beta - 1 failures seen from a uniform prior: what the paper's
    table prints as the *posterior*. Both numbers are positive.
    """

    alpha: float = 1.0
    beta: float = 1.0

    def observe(self, successes: float, failures: float) -> Self:
        """Return the posterior Beta(alpha + successes, beta + failures) (M19).

        Parameters
        ----------
        successes, failures : float
            Numbers of observations of 1 and of 0.
        """
        return type(self)(self.alpha + successes, self.beta + failures)  # M19

    @property
    def log_normaliser(self) -> float:
        """The logarithm of Euler's B(alpha, beta)."""
        return float(special.betaln(self.alpha, self.beta))

    def log_density(self, p: ArrayLike) -> Array:
        """Return the log density at `p`; -inf outside [0, 1]."""
        return _powers(p, self.alpha - 1.0, self.beta - 1.0) - self.log_normaliser

    @property
    def mean(self) -> float:
        """The ratio alpha / (alpha + beta), also the predictive probability of a success."""
        return self.alpha / (self.alpha + self.beta)


class Prior(NamedTuple):
    """A prior density of r on (0, 1), and the conjugate `Beta` distribution if it is one."""

    title: str
    log_density: Callable[[Array], Array]
    conjugate: Beta | None = None


def _logit_density(r: Array) -> Array:
    """Return the log density of r = sigmoid(z), z ~ N(0, 1): |dz/dr| = 1 / (r (1 - r))."""
    return stats.norm.logpdf(special.logit(r)) - np.log(r) - np.log1p(-r)


def _triangular(r: Array) -> Array:
    """Return the log of 4 min(r, 1 - r): fair coins are likeliest, and there is a kink."""
    return log(4.0) + np.log(np.minimum(r, 1.0 - r))


FLAT_PRIOR = Beta(1.0, 1.0)
INFORMATIVE_PRIOR = Beta(20.0, 20.0)
COIN_PRIORS = (
    Prior("uniform, Beta(1, 1)", FLAT_PRIOR.log_density, FLAT_PRIOR),
    Prior(
        "informative, Beta(20, 20)", INFORMATIVE_PRIOR.log_density, INFORMATIVE_PRIOR
    ),
    Prior("triangular", _triangular),
    Prior("logistic-normal", _logit_density),
)


@dataclass(frozen=True)
class Coin:
    """r^h (1 - r)^t times the prior: a target of samplers, unnormalised, -inf outside (0, 1)."""

    prior: Prior
    heads: int
    tails: int

    def __call__(self, position: Array) -> tuple[Array, Array]:
        """Return the log density (S,) at r = position (S, 1), and zeros for the gradient.

        Metropolis-Hastings does not use the gradient.
        """
        inside = (position > 0.0) & (position < 1.0)
        r = np.where(inside, position, 0.5)
        value = (
            self.heads * np.log(r)
            + self.tails * np.log1p(-r)
            + self.prior.log_density(r)
        )
        return np.where(inside, value, -np.inf)[:, 0], np.zeros_like(position)


class PosteriorMoments(NamedTuple):
    """Moments of a posterior by one method.

    Errors are standard errors of Metropolis-Hastings; 0 for the other methods.
    """

    mean: float
    sd: float
    log_evidence: float = float("nan")  # Metropolis-Hastings does not have it
    mean_error: float = 0.0
    sd_error: float = 0.0


def grid(
    prior: Prior, heads: int, tails: int, n_cells: int = N_GRID_CELLS
) -> tuple[Array, Array, PosteriorMoments]:
    """Compute a posterior on a grid by Bayes' rule.

    The paper's Figure 2: the integral in the denominator is a sum over all cells.

    Parameters
    ----------
    prior : Prior
        Need not be conjugate.
    heads, tails : int
        Numbers of tosses seen.
    n_cells : int
        Number of cells between 0 and 1.

    Returns
    -------
    r, density : ndarray (n_cells,)
        Midpoints of the cells, and the posterior density at them.
    moments : PosteriorMoments
        With the log evidence in nats.
    """
    r = (np.arange(n_cells) + 0.5) / n_cells
    joint = heads * np.log(r) + tails * np.log1p(-r) + prior.log_density(r)
    evidence = np.mean(np.exp(joint - joint.max()))
    density = np.exp(joint - joint.max()) / evidence
    mean = np.mean(r * density)
    sd = np.mean((r - mean) ** 2 * density) ** 0.5
    log_evidence = float(np.log(evidence) + joint.max())
    return r, density, PosteriorMoments(float(mean), float(sd), log_evidence)


def moments(draws: Array) -> PosteriorMoments:
    """Return mean and sd of draws (T, S), with standard errors from S independent chains."""
    mean = estimate(draws.mean(axis=0))
    variance = estimate(((draws - draws.mean()) ** 2).mean(axis=0))
    sd = variance.mean**0.5
    return PosteriorMoments(
        mean.mean, sd, mean_error=mean.error, sd_error=variance.error / (2.0 * sd)
    )


class Cell(NamedTuple):
    """The posterior of one prior after some number of tosses, by three methods."""

    prior: Prior
    heads: int
    tails: int
    r: Array  # (N_GRID_CELLS,)
    density: Array  # (N_GRID_CELLS,)  by the grid
    exact: PosteriorMoments | None  # in closed form
    grid: PosteriorMoments
    sampled: PosteriorMoments
    draws: Array  # (T, S)

    @property
    def best(self) -> PosteriorMoments:
        """The closed form if there is one, else the grid."""
        return self.exact or self.grid

    def numbers(self) -> dict[str, Any]:
        """Return the entry of ``coin.json``."""
        by_method = {
            "closed form": self.exact,
            "grid": self.grid,
            "metropolis": self.sampled,
        }
        results = {
            method: result for method, result in by_method.items() if result is not None
        }
        return {
            "prior": self.prior.title,
            "heads": self.heads,
            "tails": self.tails,
            **results,
        }

    def z_score(self, moment: str) -> float:
        """Return the difference between Metropolis-Hastings and the best other method.

        Of the `moment` 'mean' or 'sd', in standard errors of Metropolis-Hastings.
        """
        difference = getattr(self.sampled, moment) - getattr(self.best, moment)
        return float(difference / getattr(self.sampled, f"{moment}_error"))


def measure(
    prior: Prior,
    heads: int,
    tails: int,
    rng: np.random.Generator,
    budget: SamplingBudget = BUDGET,
) -> Cell:
    """Compute one posterior in closed form, on a grid and by Metropolis-Hastings.

    Parameters
    ----------
    prior : Prior
        There is a closed form if it is conjugate.
    heads, tails : int
        Numbers of tosses seen.
    rng : numpy.random.Generator
        Of the initial positions and the chains.
    budget : SamplingBudget
        Number of chains, draws and warm-up steps.

    Returns
    -------
    Cell
        The posterior by each method, and the draws.
    """
    r, density, by_grid = grid(prior, heads, tails)
    exact = None
    if prior.conjugate is not None:
        q = prior.conjugate.observe(heads, tails)
        evidence = q.log_normaliser - prior.conjugate.log_normaliser
        exact = PosteriorMoments(
            q.mean, float(stats.beta.std(q.alpha, q.beta)), evidence
        )
    target = Coin(prior, heads, tails)
    # A random walk of 2.4 posterior standard deviations mixes best in one dimension.
    kernel = MetropolisHastings(GaussianWalk(2.4 * by_grid.sd))
    state = kernel.init(target, rng.uniform(0.01, 0.99, (budget.chains, 1)))
    samples = np.empty((budget.draws, budget.chains))
    for step in range(-budget.warm_up, budget.draws):
        state, _ = kernel.step(target, rng, state)
        if step >= 0:
            samples[step] = state.position[:, 0]
    return Cell(
        prior, heads, tails, r, density, exact, by_grid, moments(samples), samples
    )


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    budget: SamplingBudget = BUDGET,
    progress: bool | None = None,
) -> str:
    """Compare the posteriors of a coin by three methods, and return the tables.

    Writes ``coin-posteriors.png``, ``coin-one-head.png`` and ``coin.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of the tosses and the chains.
    budget : SamplingBudget
        Size of each run of Metropolis-Hastings.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    uniform = np.random.default_rng(seed).random(STAGES[-1])
    tosses = (uniform < TRUE_PROBABILITY).astype(int)
    heads = {stage: int(tosses[:stage].sum()) for stage in STAGES}
    work = len(COIN_PRIORS) * len(STAGES) + 1
    rngs = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(work))
    with steps(work, progress) as report:
        cells = {
            prior.title: [
                measure(prior, n_heads, stage - n_heads, next(rngs), budget)
                for stage, n_heads in counted(heads.items(), report)
            ]
            for prior in COIN_PRIORS
        }
        one_head = measure(COIN_PRIORS[0], 1, 0, next(rngs), budget)
        report(1)
    all_cells = [cell for row in cells.values() for cell in row]
    pictures = {
        "coin-posteriors": _draw_posteriors(cells),
        "coin-one-head": _draw_one_head(one_head),
    }
    numbers = [cell.numbers() for cell in all_cells]
    output = {"tosses": tosses, "cells": numbers, "one head": one_head.numbers()}
    write(out, pictures, output, "coin")
    return _tables(all_cells, one_head, budget)


def _tables(cells: Sequence[Cell], one_head: Cell, budget: SamplingBudget) -> str:
    exact = [c for c in cells if c.exact]
    largest_z = max(abs(c.z_score(part)) for c in cells for part in ("mean", "sd"))
    evidence_error = max(abs(c.grid.log_evidence - c.best.log_evidence) for c in exact)

    def row(c: Cell) -> str:
        grid_error = (
            f"{abs(c.grid.mean - c.exact.mean):.0e}" if c.exact else "no formula"
        )
        best = f"{c.best.mean:.5f} | {c.best.sd:.5f} | {c.best.log_evidence:.4f} | {grid_error}"
        sampled = (
            f"{c.sampled.mean:.5f} | {c.z_score('mean'):+.1f} | {c.sampled.sd:.5f}"
        )
        return f"{c.heads} | {c.tails} | {best} | {sampled} | {c.z_score('sd'):+.1f}"

    return text(
        f"A coin with P(head) {TRUE_PROBABILITY:g}: grid of {N_GRID_CELLS} cells, "
        f"Metropolis-Hastings (MH) of {budget.chains} chains with "
        f"{budget.draws} draws.",
        listed(
            "Posteriors of r after h heads and t tails, in closed form or else by the grid; "
            "log P(D) in nats;\nz: MH less it, in standard errors of MH.",
            "prior | h | t | mean | sd | log P(D) | grid off | MH mean | z | MH sd | z of sd",
            ((c.prior.title, c) for c in cells),
            row,
        ),
        f"Grid less closed form: at most {evidence_error:.0e} nats of log P(D); MH less the "
        f"others: at most {largest_z:.1f} standard errors in {2 * len(cells)}.",
        claims(
            "M18, one head under the uniform prior; +- is a standard error.",
            "the paper",
            claims_of_the_paper(one_head),
        ),
    )


def claims_of_the_paper(one_head: Cell) -> list[Claim]:
    """Judge what the paper says of one head (M18) by the grid and by Metropolis-Hastings."""
    area = float(np.exp(one_head.grid.log_evidence))
    density_error = float(
        np.abs(one_head.density - np.exp(coin_log_density(one_head.r, 1, 0))).max()
    )
    sampled = one_head.sampled
    mean = plus_minus((sampled.mean, sampled.mean_error), 4)
    z = abs(sampled.mean - 2.0 / 3.0) / sampled.mean_error
    formula = "(h+t+1)!/(h! t!) r^h (1-r)^t"
    integral = f"integral {area:.6f}"
    return [
        Claim(
            "the posterior of p",
            "p (= p * 1)",
            integral,
            abs(area - 1.0) < MAX_GRID_ERROR,
        ),
        Claim(
            "of h heads, t tails",
            formula,
            f"2p, off by {density_error:.0e}",
            density_error < MAX_GRID_ERROR,
        ),
        Claim("the mean of 2p, by MH, which is given p alone", "2/3", mean, z, True),
    ]


R_LABEL = "r, probability of a head"


def _draw_posteriors(cells: Mapping[str, Sequence[Cell]]) -> Figure:
    """Draw prior, likelihood, posterior and draws, a row for each prior."""
    stages = len(next(iter(cells.values())))
    width = 3.4 * stages
    height = 2.5 * len(cells) + 0.6
    figure, axes = panels(width, height, len(cells), stages, sharex=True, squeeze=False)
    for row, (title, cells_of_prior) in zip(axes, cells.items(), strict=True):
        for ax, cell in zip(row, cells_of_prior, strict=True):
            density_of_draws(
                ax,
                cell.draws,
                np.linspace(0, 1, 61),
                fill=True,
                color=SKY,
                alpha=0.6,
                label="Metropolis-Hastings",
            )
            r = cell.r[::20]
            likelihood = cell.heads * np.log(r) + cell.tails * np.log1p(-r)
            likelihood = np.exp(likelihood - likelihood.max())
            posterior_label = "posterior (closed form or grid)"
            ax.plot(r, cell.density[::20], color=BLUE, lw=2.2, label=posterior_label)
            prior = np.exp(cell.prior.log_density(r))
            ax.plot(r, prior, "--", color=VERMILLION, lw=1.5, label="prior")
            likelihood_label = "likelihood, scaled to area 1"
            ax.plot(
                r,
                likelihood / likelihood.mean(),
                ":",
                color=BLACK,
                lw=1.8,
                label=likelihood_label,
            )
            ax.axvline(TRUE_PROBABILITY, color=GREY, lw=0.8, label="truth")
            ax.set(xlim=(0, 1), ylim=(0, None))
            ax.set_title(f"heads: {cell.heads}, tails: {cell.tails}", fontsize=9, pad=3)
        row[0].set_ylabel(f"density\n({title})", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel(R_LABEL)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _draw_one_head(cell: Cell) -> Figure:
    """Draw p, 2p and the draws after one head (M18)."""
    figure, ax = panels(6.0, 4.3)
    density_of_draws(
        ax,
        cell.draws,
        np.linspace(0, 1, 41),
        fill=True,
        color=SKY,
        label="Metropolis-Hastings, given p alone",
    )
    ax.plot([0, 1], [0, 1], "--", color=VERMILLION, lw=1.8, label="“p * 1”, area 1/2")
    ax.plot([0, 1], [0, 2], color=BLUE, lw=1.8, label="2p, area 1")
    ax.set(xlim=(0, 1), ylim=(0, 2.2), ylabel="density")
    ax.set_xlabel(f"{R_LABEL}, after one head, uniform prior")
    ax.legend(loc="upper left", frameon=False)
    return figure

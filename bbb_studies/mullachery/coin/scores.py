"""Priors of the probability r of a head, and the posterior found three ways (M18, M19).

In closed form, on a grid, and by Metropolis-Hastings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.sampling.mcmc import GaussianWalk, MetropolisHastings

from .conjugate import Beta

__all__ = [
    "BUDGET",
    "PRIORS",
    "Cell",
    "Coin",
    "Found",
    "Prior",
    "beta",
    "grid",
    "logistic_normal",
    "measure",
    "metropolis",
    "moments",
    "triangular",
]

Array = NDArray[Any]
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

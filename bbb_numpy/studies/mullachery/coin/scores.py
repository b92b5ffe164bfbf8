"""A posterior of r found in closed form, on a grid, and by Metropolis-Hastings (M18, M19)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.sampling.mcmc import GaussianWalk, MetropolisHastings

from .models import Coin, Prior

__all__ = ["BUDGET", "Cell", "Found", "grid", "measure", "metropolis", "moments"]

Array = NDArray[Any]
CELLS = 20_000  # of the grid
BUDGET = (200, 2000, 500)  # chains, draws, warm-up


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

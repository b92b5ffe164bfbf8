"""Bounds of the evidence from samples, beside the exact ones (D25, D28, G6)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.model.objectives import EUBO, LogDensities, free_energy, log_weights
from bbb_numpy.numeric.elementary import logsumexp
from bbb_studies import linear_gaussian as exact
from bbb_studies.linear_gaussian import Exact, Gaussian, Regression

from ..estimates import Estimate, estimate
from .models import place

__all__ = [
    "COUNTS",
    "KINDS",
    "REPEATS",
    "Case",
    "Study",
    "bound",
    "draw",
    "draw_posterior",
    "measure",
    "one_sample_gap",
]

Array = NDArray[Any]
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # samples k; all divide the last
KINDS = ("IWAE", "Renyi 1/2", "EUBO")
REPEATS = 1000  # independent sets of as many samples as the last of COUNTS
AT_ONCE = 10  # of these sets in one pass through the model


class Case(NamedTuple):
    """One q and what was measured with it; bounds less the log evidence, in nats."""

    name: str
    q: Gaussian
    elbo: float  # exact
    renyi: float  # exact, alpha = 1/2, of infinitely many samples
    eubo: float  # exact
    finite: bool  # whether the importance weights have a finite variance
    bounds: dict[str, tuple[Estimate, ...]]  # of each kind, at each of the counts
    steps: dict[str, tuple[Estimate, ...]]  # from one count to the next, same samples
    sampled_elbo: Estimate
    sampled_eubo: Estimate  # from samples of the posterior


@dataclass(frozen=True)
class Study:
    """The regression, and every q from the prior to the posterior."""

    data: Regression
    log_evidence: float
    cases: list[Case]
    gap: float  # from `one_sample_gap`, the largest of all q


def draw(
    data: Regression,
    q: Gaussian,
    rng: np.random.Generator,
    repeats: int = REPEATS,
    most: int = COUNTS[-1],
) -> Array:
    """Return log weights (repeats, most) of samples from `q`, by the library's own pass."""
    estimator, theta = place(data, q)
    rows = []
    for start in range(0, repeats, AT_ONCE):
        sets = min(AT_ONCE, repeats - start)
        terms = exact.log_densities(estimator, theta, estimator.draw(rng, sets * most), data)
        rows.append(log_weights(terms, 1.0).reshape(sets, most))
    return np.concatenate(rows)


def draw_posterior(
    data: Regression, q: Gaussian, truth: Exact, rng: np.random.Generator, samples: int
) -> Array:
    """Return log P(w, D) - log q(w) (S,) of weights drawn from the posterior.

    Noise is an argument: eps = (w - mu) / sigma, or L^-1 (w - mu), makes any w we like.
    """
    estimator, theta = place(data, q)
    factor = np.linalg.cholesky(truth.posterior.covariance)
    w = truth.posterior.mean + rng.standard_normal((samples, len(q.mean))) @ factor.T
    noise = np.linalg.solve(np.linalg.cholesky(q.covariance), (w - q.mean).T).T
    return log_weights(exact.log_densities(estimator, theta, noise, data), 1.0)


def bound(kind: str, logs: Array, count: int) -> Array:
    """Return the bound of `count` samples, averaged over the sets that each row holds.

    Rows keep their samples at every `count`, so differences between counts have the Monte
    Carlo error of the difference alone.

    Parameters
    ----------
    kind : {'IWAE', 'Renyi 1/2', 'EUBO'}
    logs : ndarray (R, k_max)
        Log weights.
    count : int
        k; divides k_max.

    Returns
    -------
    ndarray (R,)
    """
    sets = logs.reshape(len(logs), -1, count)
    if kind == "EUBO":
        shares = np.exp(sets - logsumexp(sets, keepdims=True))
        return np.sum(shares * sets, axis=-1).mean(axis=1)
    order = {"IWAE": 1.0, "Renyi 1/2": 0.5}[kind]  # 1 - alpha
    return ((logsumexp(order * sets) - np.log(count)) / order).mean(axis=1)


def measure(
    data: Regression, name: str, q: Gaussian, truth: Exact, rng: np.random.Generator
) -> Case:
    """Estimate every bound for one q."""
    logs = draw(data, q, rng) - truth.log_evidence
    bounds, steps = {}, {}
    for kind in KINDS:
        values = [bound(kind, logs, count) for count in COUNTS]
        bounds[kind] = tuple(map(estimate, values))
        steps[kind] = tuple(estimate(after - before) for before, after in pairwise(values))
    above = draw_posterior(data, q, truth, rng, 100 * REPEATS) - truth.log_evidence
    spread = 2.0 * truth.precision - np.linalg.inv(q.covariance)
    return Case(
        name,
        q,
        exact.elbo(truth, q) - truth.log_evidence,
        exact.renyi(truth, q, 0.5) - truth.log_evidence,
        exact.eubo(truth, q) - truth.log_evidence,
        bool(np.linalg.eigvalsh(spread).min() > 0.0),
        bounds,
        steps,
        estimate(logs.mean(axis=1)),
        estimate(above),
    )


def one_sample_gap(data: Regression, q: Gaussian, rng: np.random.Generator) -> float:
    """Return the largest difference of the EUBO of one sample and its ELBO (G6)."""
    estimator, theta = place(data, q)
    terms = exact.log_densities(estimator, theta, estimator.draw(rng, 1000), data)
    singles = [LogDensities._make(term[s : s + 1] for term in terms) for s in range(1000)]
    return max(abs(EUBO()(one, 1.0)[0] + free_energy(one, 1.0)[0]) for one in singles)

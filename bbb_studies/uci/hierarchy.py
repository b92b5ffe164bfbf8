r"""One method's chance of being better than another, across splits and across sets.

Within a set (the correlated Bayesian t-test of Corani and Benavoli 2015): training parts of n
splits overlap, so their differences d_1, ..., d_n are not independent. With a correlation
rho = (test rows) / (all rows), as Nadeau and Bengio (2003) take it, and the reference prior, the
mean difference delta of the set has the posterior

    delta = mean(d) + scale * t_{n-1},   scale^2 = (1/n + rho / (1 - rho)) var(d).

Across sets (after Corani, Benavoli, Demsar, Mangili and Zaffalon 2017): sets are draws of a wider
population, delta_i ~ N(delta_0, tau^2), with a flat delta_0 and a half-Cauchy tau. A Student t is a
mixture of normals over a Gamma precision g, and each of them is convolved with N(delta_0, tau^2) in
closed form:

    L_i(delta_0, tau) = E_g N(mean_i; delta_0, tau^2 + scale_i^2 / g),   g ~ Gamma(nu/2, rate nu/2).

Two numbers are left, and they are integrated on a grid: no sampler, no seed. The chance that the
first method is the better one on another set like these is E[Phi(-delta_0 / tau)], lower scores
being better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from .tables import Records, frame, known_first

CORRELATION = 0.1  # of differences on two splits: the share of the rows for testing
TAU_PRIOR_SCALE = 0.3  # of the half-Cauchy of tau, in nats or in units of log RMSE
MIN_SETS = 3
N_PRECISIONS = 40  # nodes of the Gamma by which a Student t is a mixture of normals
GRID_REACH = 5.0
N_GRID_POINTS = 81  # of the grids of delta_0 and log tau
MIN_SCALE = 1e-9  # smaller scales mean that the two methods are the same


class Difference(NamedTuple):
    """The posterior of the mean difference of one set: location + scale * t with nu degrees."""

    mean: float
    scale: float
    freedom: int

    @property
    def below(self) -> float:
        """Probability that the mean difference is below 0."""
        if self.scale <= MIN_SCALE:
            return 0.5 if self.mean == 0 else float(self.mean < 0)
        return float(stats.t.cdf(-self.mean / self.scale, self.freedom))


def correlated(gaps: Iterable[float], correlation: float = CORRELATION) -> Difference:
    """Return the posterior of a mean difference, given those on overlapping splits.

    Parameters
    ----------
    gaps : iterable of float
        Differences on n >= 2 splits.
    correlation : float
        Of two differences: the share of the rows that is for testing.
    """
    d = np.asarray(list(gaps), float)
    inflated = 1.0 / len(d) + correlation / (1.0 - correlation)
    return Difference(
        float(d.mean()), float(np.sqrt(inflated * d.var(ddof=1))), len(d) - 1
    )


def chance(sets: Sequence[Difference]) -> float:
    """Return the chance that the first method is below the second on another set like these."""
    means = np.array([difference.mean for difference in sets])
    scales = np.maximum([difference.scale for difference in sets], MIN_SCALE)
    unit = max(float(np.ptp(means)), float(scales.max()))
    u = np.linspace(-GRID_REACH, GRID_REACH, N_GRID_POINTS)
    centre = float(np.median(means)) + unit * np.sinh(u)  # (U,) values of delta_0
    tau = unit * np.exp(np.linspace(-8.0, 6.0, N_GRID_POINTS))  # (V,)
    # The prior is flat in delta_0 and half-Cauchy in tau; both grids have the densities of
    # their slopes.
    logs = np.log(np.cosh(u))[:, None] + (
        np.log(tau) - np.log1p((tau / TAU_PRIOR_SCALE) ** 2)
    )
    for mean, scale, freedom in zip(
        means, scales, [difference.freedom for difference in sets], strict=True
    ):
        middles = (np.arange(N_PRECISIONS) + 0.5) / N_PRECISIONS
        g = stats.gamma.ppf(middles, freedom / 2.0, scale=2.0 / freedom)
        variance = tau[:, None] ** 2 + scale**2 / g  # (V, G)
        squares = (mean - centre)[:, None, None] ** 2 / variance  # (U, V, G)
        logs = logs + special.logsumexp(-0.5 * (squares + np.log(variance)), axis=-1)
    weights = np.exp(logs - logs.max())
    better = special.ndtr(-centre[:, None] / tau)
    return float((weights * better).sum() / weights.sum())


def chances(records: Records, metric: str) -> dict[tuple[str, str], float]:
    """Return the probability that one method is better than another on a new set, for each pair.

    RMSE is taken by its logarithm. Pairs with fewer than three sets in common, of two splits of
    both at least, which say nothing of how sets differ, are left out.

    Parameters
    ----------
    records : records or DataFrame
        Of all trials.
    metric : str
        "rmse" or "nll"; lower is better.

    Returns
    -------
    dict of (first, second) to float
        Probability that the first method is better.
    """
    table = frame(records)
    probability = {}
    ok_trials = table[table["status"] == "ok"].astype({"set": str, "method": str})
    scores = ok_trials.pivot_table(
        index=["set", "split"], columns="method", values=metric
    )
    if metric == "rmse":
        scores = np.log(scores)  # the logarithm makes differences independent of units
    for first, second in combinations(known_first(scores.columns), 2):
        gaps = (scores[first] - scores[second]).dropna().groupby(level="set")
        sets = [correlated(values) for _, values in gaps if len(values) > 1]
        if len(sets) >= MIN_SETS:
            probability[first, second] = chance(sets)
            probability[second, first] = 1.0 - probability[first, second]
    return probability

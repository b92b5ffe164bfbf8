"""Every kernel leaves its target as it is, for any step size.

Exact draws of the target move a few steps and must be exact draws again. Nothing has to converge,
so step sizes near the limit of stability are as good a test as small ones, and a better one of the
acceptance. Then long chains from elsewhere, judged by the scatter of their means.
"""

import numpy as np
import pytest
from problems import exact_posterior, linear_problem
from targets import (
    Banana,
    Funnel,
    Gammas,
    chain_means,
    change,
    correlated,
)

from bbb_numpy.registry import FAMILIES
from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    NUTS,
    ChEES,
    GaussianWalk,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
)
from bbb_numpy.sampling.run import sample, sample_target

LIMIT = 4.5  # z-score of the worst of a dozen statistics; a right kernel passes it once in 1e4
GAUSSIAN = correlated()
TARGETS = {"gaussian": GAUSSIAN, "funnel": Funnel(), "banana": Banana(), "gammas": Gammas()}
KERNELS = {
    "walk": MetropolisHastings(GaussianWalk(0.7)),
    "langevin": MetropolisHastings(Langevin(0.4)),
    "hmc": HMC(0.2),
    "hmc, large steps": HMC(0.5, path=3.0),
    "hmc, no jitter": HMC(0.3, path=1.0, jitter=0.0),
    "chees": ChEES(0.2),
    "chees, large steps": ChEES(0.5, path=3.0),
    "nuts": NUTS(0.3),
    "nuts, small steps": NUTS(0.1),
    "nuts, large steps": NUTS(0.6),
    "nuts, unstable steps": NUTS(1.2),
    "nuts, shallow": NUTS(0.3, max_depth=3),
    "nuts, one doubling": NUTS(0.5, max_depth=1),
    "mams": MAMS(0.4),
    "mams, large steps": MAMS(0.9, 2.0),
}
# and what else has a name, but for what rejects nothing
OTHERS = FAMILIES["sampler"].checked | {
    name: MetropolisHastings(one)
    for name, one in FAMILIES["proposal"].checked.items()
    if not isinstance(one, GaussianWalk | Langevin | LogNormalWalk)
}
KERNELS |= {
    name: one
    for name, one in OTHERS.items()
    if name not in (*KERNELS, "mh") and not getattr(one, "unadjusted", False)
}


@pytest.mark.equation("M5", "M6", "M7", "M10")
@pytest.mark.parametrize("draws", [2500, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_draws_stay_exact_draws(kernel, target, draws):
    assert change(KERNELS[kernel], TARGETS[target], draws) < LIMIT


# --- long chains from elsewhere ------------------------------------------------------------------


def compared(estimates, exact):
    """z-scores of chain means against exact expectations."""
    mean, error = chain_means(estimates)
    return np.abs(mean - exact) / error


SAMPLERS = {
    "mh": {"sampler": "mh", "draws": 600, "thin": 8},
    "langevin": {"sampler": MetropolisHastings(Langevin(0.5)), "draws": 700, "thin": 4},
    "hmc": {"sampler": "hmc", "draws": 400},
    "nuts": {"sampler": "nuts", "draws": 120},
    "mams": {"sampler": "mams", "draws": 200},
}


@pytest.mark.equation("M7", "M10", "M11", "M12")
@pytest.mark.parametrize("name", SAMPLERS)
def test_adapted_chains_find_the_moments_of_a_correlated_gaussian(name):
    target = correlated(0.8, (1.0, 0.3, 3.0), mean=2.0)
    start = 5.0 * np.random.default_rng(0).standard_normal((32, 3))
    options = {"warm_up": 200, "seed": 1, "metric": "dense"}
    draws = sample_target(target, start, **SAMPLERS[name], **options)
    z = target.standardise(draws.flat).reshape(draws.positions.shape)
    products = np.einsum("tsi,tsj->tsij", z, z)
    assert compared(z, 0.0).max() < LIMIT
    assert compared(products, np.eye(3)).max() < LIMIT


@pytest.mark.equation("D8", "D33", "M10")
@pytest.mark.parametrize("name", SAMPLERS)
def test_chains_find_the_exact_posterior_of_linear_regression(name):
    estimator, x, y = linear_problem()
    exact = exact_posterior(estimator, x, y)
    draws = sample(estimator.model, x, y, chains=16, warm_up=200, seed=2, **SAMPLERS[name])
    factor = np.linalg.cholesky(exact.precision)
    z = (draws.positions - exact.mean) @ factor  # standard normal under the posterior
    assert compared(z, 0.0).max() < LIMIT
    assert compared(np.einsum("tsi,tsj->tsij", z, z), np.eye(3)).max() < LIMIT

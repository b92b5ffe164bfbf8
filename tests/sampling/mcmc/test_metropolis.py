"""Detailed balance of the kernel p, which the proposal q alone does not have (M5, M6)."""

import numpy as np
import pytest
from scipy import stats
from targets import Gammas, Gaussian, correlated

from bbb_numpy.sampling.mcmc import (
    DiagonalMetric,
    GaussianWalk,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
    State,
    StudentWalk,
)

# --- a finite set of points: everything to rounding ------------------------------------------


# --- the package's proposals on the line -----------------------------------------------------


class Chosen:
    """A generator whose normal numbers are given: the candidate is chosen, not drawn."""

    def __init__(self, z):
        self.z = z

    def standard_normal(self, shape, dtype=float):
        return np.broadcast_to(self.z, shape).astype(dtype)


def drift(target, x, s, variance=1.0):
    return x + 0.5 * s * s * variance * target(x[:, None])[1][:, 0]


GAMMA, NORMAL = Gammas(), Gaussian(np.array([[1.7]]))
WIDE = DiagonalMetric(np.array([2.5]))
# proposal, target, log q(b | a) by SciPy, the z that leads from a to b, grid
LINES = {
    "gaussian": (
        GaussianWalk(0.8),
        NORMAL,
        lambda a, b: stats.norm.logpdf(b, a, 0.8),
        lambda a, b: (b - a) / 0.8,
        np.linspace(-9, 9, 241),
    ),
    "log-normal": (
        LogNormalWalk(0.6),
        GAMMA,
        lambda a, b: stats.lognorm.logpdf(b, 0.6, scale=a),
        lambda a, b: np.log(b / a) / 0.6,
        np.linspace(0.08, 24, 300),
    ),
    "langevin": (
        Langevin(0.9),
        NORMAL,
        lambda a, b: stats.norm.logpdf(b, drift(NORMAL, a, 0.9), 0.9),
        lambda a, b: (b - drift(NORMAL, a, 0.9)) / 0.9,
        np.linspace(-9, 9, 241),
    ),
    "langevin, metric": (
        Langevin(0.7, WIDE),
        NORMAL,
        lambda a, b: stats.norm.logpdf(b, drift(NORMAL, a, 0.7, 2.5), 0.7 * 2.5**0.5),
        lambda a, b: (b - drift(NORMAL, a, 0.7, 2.5)) / (0.7 * 2.5**0.5),
        np.linspace(-9, 9, 241),
    ),
}


@pytest.mark.equation("M6")
@pytest.mark.parametrize("name", LINES)
def test_log_ratios_are_those_of_the_proposal_densities(name):
    proposal, target, log_q, z, grid = LINES[name]
    a, b = np.random.default_rng(0).choice(grid[grid < 6], (2, 500))
    state = MetropolisHastings(proposal).init(target, a[:, None])
    new, log_ratio = proposal.propose(target, Chosen(z(a, b)[:, None]), state)
    np.testing.assert_allclose(new.position[:, 0], b, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(log_ratio, log_q(b, a) - log_q(a, b), rtol=1e-8, atol=1e-8)


@pytest.mark.equation("M6")
def test_infinite_steps_of_a_walk_with_hardly_any_degrees_of_freedom_are_refused_in_silence():
    target = correlated()
    kernel, rng = MetropolisHastings(StudentWalk(1.0, 1e-3)), np.random.default_rng(0)
    # the chi-squared numbers under the root are 0 more often than not
    assert (np.random.default_rng(0).chisquare(1e-3, 200) == 0).mean() > 0.5
    state = kernel.init(target, target.draw(rng, 200))
    new, info = kernel.step(target, rng, state)
    assert not info.accepted.any()
    assert np.array_equal(new.position, state.position)


@pytest.mark.parametrize(
    ("proposal", "best"), [(GaussianWalk(), 0.234), (StudentWalk(), 0.234), (Langevin(), 0.574)]
)
def test_a_warm_up_wants_the_acceptance_that_is_best_in_many_dimensions(proposal, best):
    target, rng, kernel = correlated(), np.random.default_rng(0), MetropolisHastings(proposal)
    state = kernel.init(target, target.draw(rng, 2))
    assert kernel.adapt(target, rng, state, 10).target_accept == best


def test_one_s_own_proposal_needs_one_method():
    class Mine:
        def propose(self, target, rng, state):
            position = -state.position
            return State(position, *target(position)), np.zeros(len(position))

    target = correlated()
    state = MetropolisHastings(Mine()).init(target, np.ones((2, 3)))
    new, info = MetropolisHastings(Mine()).step(target, np.random.default_rng(0), state)
    np.testing.assert_array_equal(new.position, -1.0)
    assert info.accepted.all()

"""Proposals have the densities that their ratios say (M6); balance: test_exact_invariance.py."""

import numpy as np
import pytest
import textbook
from scipy import stats
from targets import Gammas, Gaussian, correlated

from bbb_numpy.registry import FAMILIES
from bbb_numpy.sampling.mcmc import (
    DiagonalMetric,
    GaussianWalk,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
    State,
)


class Chosen:
    """A generator whose normal numbers are given: the candidate is chosen, not drawn."""

    def __init__(self, z):
        self.z = z

    def standard_normal(self, shape, dtype=float):
        return np.broadcast_to(self.z, shape).astype(dtype)


NORMAL = Gaussian(np.array([[1.7]]))


def langevin(s, variance):
    """The density of x' at points (S,): around where half a step uphill leads."""
    return lambda x: stats.norm(
        x + 0.5 * s * s * variance * NORMAL(x[:, None])[1][:, 0], s * variance**0.5
    )


# proposal, target, where the chains are, q(.|x) by SciPy
LINES = {
    "gaussian": (GaussianWalk(0.8), NORMAL, (-9, 9), lambda x: stats.norm(x, 0.8)),
    "log-normal": (LogNormalWalk(0.6), Gammas(), (0.1, 6), lambda x: stats.lognorm(0.6, scale=x)),
    "langevin": (Langevin(0.9), NORMAL, (-9, 9), langevin(0.9, 1.0)),
    "langevin, metric": (
        Langevin(0.7, DiagonalMetric(np.array([2.5]))),
        NORMAL,
        (-9, 9),
        langevin(0.7, 2.5),
    ),
}


@pytest.mark.equation("M6")
@pytest.mark.parametrize("name", LINES)
def test_candidates_and_log_ratios_are_those_of_the_proposal_densities(name):
    proposal, target, inside, q = LINES[name]
    rng = np.random.default_rng(0)
    a, z = rng.uniform(*inside, 500), rng.standard_normal(500)
    state = MetropolisHastings(proposal).init(target, a[:, None])
    new, log_ratio = proposal.propose(target, Chosen(z[:, None]), state)
    b = new.position[:, 0]
    np.testing.assert_allclose(q(a).cdf(b), stats.norm.cdf(z), rtol=1e-10)
    np.testing.assert_allclose(log_ratio, q(b).logpdf(a) - q(a).logpdf(b), rtol=1e-8, atol=1e-8)


PROPOSALS = FAMILIES["proposal"].checked


def log_q(proposal, target, old, new):
    """log q(new|old) (S,) by the textbook."""
    formula = textbook.of(textbook.PROPOSALS, proposal)
    return formula(textbook.Numpy, proposal, old, target(old)[1], new).sum(axis=1)


@pytest.mark.equation("M6")
@pytest.mark.parametrize("name", PROPOSALS)
def test_the_log_ratio_is_that_of_the_textbooks_q(name):
    proposal, target, rng = PROPOSALS[name], correlated(), np.random.default_rng(0)
    old = np.exp(rng.standard_normal((50, 3)))  # where a proposal for positive numbers moves, too
    state = MetropolisHastings(proposal).init(target, old)
    new, log_ratio = proposal.propose(target, rng, state)
    right = log_q(proposal, target, new.position, old) - log_q(proposal, target, old, new.position)
    np.testing.assert_allclose(log_ratio, right, rtol=1e-9, atol=1e-9)


@pytest.mark.equation("M6")
@pytest.mark.parametrize("name", PROPOSALS)
@pytest.mark.parametrize("place", [0.3, 2.5])
def test_candidates_are_drawn_from_the_textbooks_q(place, name):
    """By the largest distance of two distribution functions, which a right one passes 1 in 1e4."""
    proposal = PROPOSALS[name]
    state = MetropolisHastings(proposal).init(NORMAL, np.full((40_000, 1), place))
    drawn = proposal.propose(NORMAL, np.random.default_rng(0), state)[0].position[:, 0]
    grid = np.linspace(drawn.min() - 1.0, drawn.max() + 1.0, 20_001)
    with np.errstate(invalid="ignore", divide="ignore"):  # where the proposal never goes
        old, new = np.full((len(grid), 1), place), grid[:, None]
        density = np.nan_to_num(np.exp(log_q(proposal, NORMAL, old, new)))
    below = np.cumsum(density) * (grid[1] - grid[0])
    assert below[-1] == pytest.approx(1.0, abs=2e-3)
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, below)).pvalue > 1e-4


@pytest.mark.parametrize(("proposal", "best"), [(GaussianWalk(), 0.234), (Langevin(), 0.574)])
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

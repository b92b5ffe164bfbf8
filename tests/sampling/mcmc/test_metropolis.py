"""Detailed balance of the kernel p, which the proposal q alone does not have (M5, M6)."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from targets import Gammas, Gaussian, correlated

from bbb_numpy.sampling.mcmc import (
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    Independent,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
    State,
    StudentWalk,
)

# --- a finite set of points: everything to rounding ------------------------------------------


@dataclass(frozen=True)
class Weights:
    """A target on the points 0, 1, 2, ... of unnormalised probabilities."""

    weights: np.ndarray

    def __call__(self, position):
        return np.log(self.weights[position[:, 0].astype(int)]), np.zeros_like(position)

    @property
    def pi(self):
        return self.weights / self.weights.sum()


@dataclass(frozen=True)
class Table:
    """q(x'|x) = table[x, x']; proposes the points of `candidates` instead if it is given."""

    table: np.ndarray
    candidates: np.ndarray | None = None

    def propose(self, target, rng, state):
        old = state.position[:, 0].astype(int)
        new = self.candidates
        if new is None:
            edges = np.cumsum(self.table[old], axis=1)
            new = (rng.random((len(old), 1)) > edges).sum(axis=1)
        position = new[:, None].astype(float)
        with np.errstate(divide="ignore"):
            log_ratio = np.log(self.table[new, old]) - np.log(self.table[old, new])
        return State(position, *target(position)), log_ratio


def kernel_matrix(target, table):
    """p(x'|x) of `MetropolisHastings` on a finite set, from its own acceptance."""
    points = len(table)
    old, new = (index.ravel() for index in np.indices(table.shape))
    kernel = MetropolisHastings(Table(table, new))
    state = kernel.init(target, old[:, None].astype(float))
    with np.errstate(invalid="ignore"):  # pairs that q never proposes
        _, info = kernel.step(target, np.random.default_rng(0), state)
    matrix = table * info.acceptance.reshape(table.shape)
    np.fill_diagonal(matrix, 0.0)
    return matrix + np.diag(1.0 - matrix.sum(axis=1)) * np.eye(points)


def random_chain(seed=0, points=6):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(points), points)
    return Weights(rng.uniform(0.1, 5.0, points)), table


def imbalance(pi, matrix):
    """Largest |pi(x) p(x'|x) - pi(x') p(x|x')|."""
    flow = pi[:, None] * matrix
    return np.abs(flow - flow.T).max()


@pytest.mark.equation("M5", "M6")
@pytest.mark.parametrize("seed", range(5))
def test_the_kernel_is_in_detailed_balance_and_the_proposal_is_not(seed):
    target, table = random_chain(seed)
    matrix = kernel_matrix(target, table)
    assert imbalance(target.pi, matrix) < 1e-16
    assert np.abs(target.pi @ matrix - target.pi).max() < 1e-15
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-14)
    assert imbalance(target.pi, table) > 0.03, "the paper's proof writes q for p"
    assert np.abs(target.pi @ table - target.pi).max() > 0.03


@pytest.mark.equation("M6")
def test_more_probable_points_are_always_accepted_only_when_q_is_symmetric():
    target, table = random_chain()
    symmetric = 0.5 * (table + table.T)
    for q, always in ((symmetric, True), (table, False)):
        new, old = np.indices(q.shape)
        up = target.pi[old] > target.pi[new]  # from row to column
        matrix = kernel_matrix(target, q)
        accepted = (matrix / q)[up & ~np.eye(len(q), dtype=bool)]
        assert np.allclose(accepted, 1.0) == always


@pytest.mark.equation("M5")
def test_a_simulated_chain_stays_and_moves_as_the_matrix_says():
    target, table = random_chain(points=3)
    matrix, count = kernel_matrix(target, table), 30_000
    kernel, rng = MetropolisHastings(Table(table)), np.random.default_rng(1)
    for x in range(3):
        state = kernel.init(target, np.full((count, 1), float(x)))
        new = kernel.step(target, rng, state)[0].position[:, 0].astype(int)
        seen = np.bincount(new, minlength=3)
        assert stats.chisquare(seen, count * matrix[x]).pvalue > 1e-4


@pytest.mark.equation("M5")
def test_detailed_balance_does_not_make_a_chain_irreducible():
    """Two halves that never exchange: pi is stationary, and so is each half alone."""
    target = Weights(np.array([1.0, 2.0, 3.0, 4.0]))
    block = np.full((2, 2), 0.5)
    table = np.block([[block, np.zeros((2, 2))], [np.zeros((2, 2)), block]])
    matrix = kernel_matrix(target, table)
    assert imbalance(target.pi, matrix) < 1e-16
    np.testing.assert_allclose(target.pi @ matrix, target.pi)
    late = np.linalg.matrix_power(matrix, 1000)
    np.testing.assert_allclose(late[0], [1 / 3, 2 / 3, 0, 0], atol=1e-12)
    np.testing.assert_allclose(late[3], [0, 0, 3 / 7, 4 / 7], atol=1e-12)


@pytest.mark.equation("M5")
def test_detailed_balance_does_not_make_a_chain_aperiodic():
    """Two equally probable points and a proposal that always goes to the other."""
    target, swap = Weights(np.ones(2)), np.array([[0.0, 1.0], [1.0, 0.0]])
    matrix = kernel_matrix(target, swap)
    assert imbalance(target.pi, matrix) == 0
    np.testing.assert_array_equal(np.linalg.matrix_power(matrix, 1000), np.eye(2))
    np.testing.assert_array_equal(np.linalg.matrix_power(matrix, 1001), swap)


@pytest.mark.equation("M5")
def test_an_irreducible_aperiodic_chain_converges():
    target, table = random_chain()
    late = np.linalg.matrix_power(kernel_matrix(target, table), 200)
    np.testing.assert_allclose(late, np.tile(target.pi, (len(table), 1)), atol=1e-12)


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
def test_one_dense_langevin_step_agrees_with_scipy():
    target = correlated(0.7)
    metric, s = DenseMetric(0.5 * target.covariance + 0.3 * np.eye(3)), 0.8
    proposal, rng = Langevin(s, metric), np.random.default_rng(0)
    state = MetropolisHastings(proposal).init(target, target.draw(rng, 50))
    new, log_ratio = proposal.propose(target, rng, state)

    def log_q(a, b):
        mean = a.position + 0.5 * s * s * a.gradient @ metric.covariance
        normal = stats.multivariate_normal(np.zeros(3), s * s * metric.covariance)
        return normal.logpdf(b.position - mean)

    np.testing.assert_allclose(log_ratio, log_q(new, state) - log_q(state, new), atol=1e-10)


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


@pytest.mark.equation("M6")
def test_candidates_outside_the_target_are_refused():
    kernel = MetropolisHastings(GaussianWalk(100.0))
    state = kernel.init(Gammas(), np.ones((200, 2)))
    new, info = kernel.step(Gammas(), np.random.default_rng(0), state)
    assert np.all(new.position > 0)
    assert np.all(info.acceptance[~info.accepted] < 1)
    assert not info.divergent.any()
    assert np.all(info.gradients == 1)


@pytest.mark.equation("M6")
def test_a_candidate_of_density_0_is_refused_even_where_nothing_would_lead_there():
    """pi(x') = 0 and q(x'|x) = 0: the ratio is 0 / 0."""
    inside = Independent(
        lambda rng, shape: -rng.random(shape),
        lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf),
    )
    kernel = MetropolisHastings(inside)
    state = kernel.init(Gammas(), np.ones((50, 2)))
    new, info = kernel.step(Gammas(), np.random.default_rng(0), state)
    assert np.all(info.acceptance == 0)
    assert not info.accepted.any()
    np.testing.assert_array_equal(new.position, 1.0)


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


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GaussianWalk(0.0), ValueError, "step_size must be positive and finite; got 0.0"),
        (lambda: StudentWalk(-1.0), ValueError, "step_size must be positive"),
        (lambda: StudentWalk(1.0, 0.0), ValueError, "degrees must be positive"),
        (lambda: LogNormalWalk(np.inf), ValueError, "step_size must be positive"),
        (lambda: Langevin(np.nan), ValueError, "step_size must be positive"),
        (lambda: MetropolisHastings("gaussian"), TypeError, "^proposal must be an object such as"),
        (lambda: MetropolisHastings(GaussianWalk), TypeError, "^proposal must be an object such"),
        (lambda: MetropolisHastings(None), TypeError, "^proposal must be an object such as"),
        (lambda: Independent(3, np.sum), TypeError, "^draw must be"),
        (lambda: Independent(np.sum, "q"), TypeError, "^log_density must be"),
    ],
)
def test_wrong_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()

"""Every kernel leaves its target as it is: no draws, no statistics, all outcomes of a step.

What is shown this way, and what its limits are: derivations.md, M5 and M10. How a kernel is made to
show all its outcomes: ../../enumeration.py.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import sympy
from enumeration import (
    AllPaths,
    Answering,
    Dealer,
    OneChainForEachLeaf,
    Orbit,
    exponential,
    normals_of,
    orbit,
    telling,
    uniform,
)
from problems import COMPLEX_STEP
from scipy import stats

from bbb_numpy.sampling import mcmc
from bbb_numpy.sampling.mcmc import (
    DenseMetric,
    DiagonalMetric,
    Phase,
    State,
    chees,
    hmc,
    leapfrog,
    metropolis,
    microcanonical,
    nuts,
)
from bbb_studies import annealing

EXACT = 1e-12

UNIT = DiagonalMetric(np.ones(2))
DIAGONAL = DiagonalMetric(np.array([0.5, 1.6]))
DENSE = DenseMetric(np.array([[1.0, 0.5], [0.5, 0.8]]))


@dataclass(frozen=True)
class Quartic:
    """A correlated Gaussian with a quartic, and a trench across it that costs some nats."""

    trench: float = 0.0
    stiffness: float = 1.0

    def __call__(self, position):
        precision = np.array([[1.5 * self.stiffness, 0.6], [0.6, 0.8]])
        value = -0.5 * np.einsum("sd,de,se->s", position, precision, position)
        value = value - 0.05 * np.sum(position**4, axis=1)
        gradient = -position @ precision - 0.2 * position**3
        value = value - np.where(np.abs(position[:, 0].real - 0.5) < 0.2, self.trench, 0.0)
        outside = np.isinf(value) | (np.abs(position).max(axis=1) > 1e3)  # a path not stable
        return np.where(outside, -np.inf, value), np.where(outside[:, None], 0.0, gradient)


def covariance(metric):
    """M^-1 (D, D)."""
    return metric.covariance if hasattr(metric, "covariance") else np.diag(metric.variance)


@dataclass(frozen=True)
class Start:
    """A target, a metric, a step size, and the seed of a point of ordinary density."""

    target: Quartic
    metric: DiagonalMetric | DenseMetric
    eps: float
    seed: int = 0

    def orbit(self, reach):
        rng, matrix = np.random.default_rng(self.seed), covariance(self.metric)
        position, normal = 0.8 * rng.standard_normal(2), rng.standard_normal(2)
        momentum = np.linalg.solve(np.linalg.cholesky(matrix).T, normal)
        return orbit(self.target, matrix, position, momentum, self.eps, reach)


def weighed(points, metric):
    """The normal numbers from which `metric` draws each momentum, and the weight of each point.

    Weights are relative to point 0: the target's density times that of the normal numbers.
    """
    normals = normals_of(metric, points.momenta)
    log_weight = points.log_density - 0.5 * np.sum(normals**2, axis=1)
    return normals, np.exp(log_weight - log_weight[points.reach])


def chains_at(points, k, chains):
    """The state of so many chains at point number `k`."""
    return State(
        np.repeat(points.positions[[k]], chains, axis=0),
        np.repeat(points.log_density[[k]], chains),
        np.repeat(points.gradients[[k]], chains, axis=0),
    )


def check_answers(target, rng, new, info):
    """One chain accepts and one rejects, each with the chance that is told."""
    assert info.accepted.tolist() == [True, False]
    np.testing.assert_allclose(info.acceptance, rng.chances[0], rtol=EXACT)
    assert_complete(target, new)


def assert_complete(target, state):
    """The density and gradient that a state carries into the next step are those of its place."""
    value, gradient = target(state.position)
    np.testing.assert_allclose(state.log_density, value, rtol=1e-12)
    np.testing.assert_allclose(state.gradient, gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.equation("M5")
def test_every_shipped_kernel_and_proposal_is_here():
    shipped = {
        name
        for name in mcmc.__all__
        if name != "Kernel" and {"step", "propose"} & set(dir(getattr(mcmc, name)))
    }
    here = {type(proposal).__name__ for proposal in PROPOSALS.values()}
    others = {"MetropolisHastings", "HMC", "ChEES", "NUTS", "MAMS", "MCLMC"}
    others |= {"SGHMC"}  # whose law is another: test_stochastic.py
    assert shipped == here | others


def chance(comparison, number):
    return comparison(number(lambda probability: float(probability)))


@pytest.mark.equation("M6")
@pytest.mark.parametrize("limit", [-np.inf, -2.5, 0.0, 0.25, 0.5, 3.0, np.inf])
def test_a_comparison_has_its_probability(limit):
    """Every one that a kernel asks for: u < c, c < E with an array on the left, -E < c."""
    right, array = pytest.approx, np.array(limit)
    assert chance(lambda u: u < limit, uniform) == right(stats.uniform.cdf(limit), abs=1e-15)
    assert chance(lambda e: array < e, exponential) == right(stats.expon.sf(limit), abs=1e-15)
    assert chance(lambda e: -e < limit, exponential) == right(stats.expon.sf(-limit), abs=1e-15)


# --- NUTS: the points of one orbit are the states ------------------------------------------------

STARTS = {
    "turns in the middle of a half, four doublings": Start(Quartic(), DENSE, 0.7, 5),
    "turns in the middle of a half, three doublings": Start(Quartic(), DENSE, 1.1, 5),
    "turns in the middle of a half, stiff": Start(Quartic(stiffness=6.0), DENSE, 0.5, 5),
    "divergent in the trench": Start(Quartic(2000.0), DIAGONAL, 0.25, 1),
    "turns between two halves": Start(Quartic(stiffness=3.0), UNIT, 0.7, 6),
    "diagonal metric": Start(Quartic(), DIAGONAL, 0.9, 1),
    "large steps": Start(Quartic(), UNIT, 1.3, 0),
    "unstable": Start(Quartic(), UNIT, 1.3, 3),
    "no density in the trench": Start(Quartic(np.inf), UNIT, 0.35, 2),
    "little density in the trench": Start(Quartic(20.0), DENSE, 0.35, 2),
    "dense metric": Start(Quartic(), DENSE, 0.35, 1),
    "small steps": Start(Quartic(), UNIT, 0.2, 1),
}


def steps_from(kernel, target, points, k, normal, dealer):
    """Yield generator, new states and Info for each sequence of directions that may reach 0."""
    used = []
    for forwards in product((False, True), repeat=kernel.max_depth):
        if any(forwards[: len(done)] == done for done in used):
            continue  # the trajectory ended before its last directions were asked for
        ahead = sum(2**level for level, way in enumerate(forwards) if way)
        if not 0 <= k + ahead - points.reach <= 2**kernel.max_depth - 1:
            continue  # point 0 is not on it, however long it grows
        rng = dealer(normal, forwards)
        new, info = kernel.step(target, rng, chains_at(points, k, len(rng.normals)))
        used.append(forwards[: rng.used])
        yield rng, new, info


def check(start, depth, dealer):
    """Assert invariance to rounding; nothing is lost or leaves the orbit; reports are true.

    sum_k w_k P(k -> 0) = w_0, from the column of the transition matrix for point 0. Returns the
    generator and the Info of every step.
    """
    points = start.orbit(2**depth - 1)
    kernel = telling(nuts.NUTS) if dealer is OneChainForEachLeaf else nuts.NUTS
    kernel = kernel(start.eps, start.metric, depth)
    normals, weights = weighed(points, start.metric)
    energy = 0.5 * np.sum(normals**2, axis=1) - points.log_density
    found, inflow = [], 0.0
    for k in np.flatnonzero(weights):
        for rng, new, info in steps_from(kernel, start.target, points, k, normals[k], dealer):
            indices = points.find(new.position)
            inflow += weights[k] * rng.chances[indices == points.reach].sum()
            assert abs(rng.chances.sum() * 2.0**rng.used - 1.0) < EXACT
            possible = rng.chances > 0
            indices = indices[possible]
            assert np.all(indices >= 0)
            assert np.all(info.accepted[possible] == (indices != k))
            for said, true in (
                (info.energy, energy),
                (new.log_density, points.log_density),  # with these the next step begins
                (new.gradient, points.gradients),
            ):
                assert np.abs(said[possible] - true[indices]).max() < 1e-9
            found.append((rng, info))
    assert abs(inflow - 1.0) < EXACT
    return found


@pytest.mark.equation("M8", "M10", "M12")
@pytest.mark.parametrize("name", STARTS)
def test_nuts_leaves_every_orbit_invariant_all_paths_of_decisions_counted(name):
    for depth in (1, 2, 3):
        check(STARTS[name], depth, AllPaths)


# Ways in which trajectories of at most four doublings end, by the number of doublings: kept whole,
# cut by a U-turn inside the last half, or by a divergence there
ENDS = {
    "turns in the middle of a half, four doublings": "1 kept, 2 cut, 2 kept, 3 cut, 4 cut",
    "turns in the middle of a half, three doublings": "1 kept, 2 cut, 2 kept, 3 cut, 3 kept",
    "turns in the middle of a half, stiff": "1 kept, 2 cut, 2 kept, 3 cut, 4 cut",
    "divergent in the trench": "1 divergent, 2 divergent, 3 divergent, 3 kept, 4 cut, 4 divergent",
    "turns between two halves": "1 kept, 2 cut, 2 kept, 3 cut",
    "diagonal metric": "1 kept, 2 cut, 2 kept, 3 cut, 3 kept",
    "large steps": "1 kept, 2 cut, 2 kept, 3 cut",
    "small steps": "2 kept, 3 cut, 3 kept, 4 cut, 4 kept",
}
AT_NIGHT = {"small steps"}  # no trajectory ends before its last doubling


@pytest.mark.equation("M8", "M9", "M10", "M12")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in AT_NIGHT)) for name in ENDS],
)
def test_nuts_of_four_doublings_leaves_every_orbit_invariant(name):
    ends = set()
    for rng, info in check(STARTS[name], 4, OneChainForEachLeaf):
        kept = rng.arrived[rng.level == rng.used - 1].all()
        cut = "divergent" if info.divergent[0] else "cut"
        ends.add(f"{rng.used} {'kept' if kept else cut}")
    assert ", ".join(sorted(ends)) == ENDS[name]


@pytest.mark.equation("M9")
def test_trajectories_of_four_doublings_end_in_every_way_that_there_is():
    ends = set(", ".join(ENDS.values()).split(", "))
    assert ends > {
        f"{doublings} {end}" for doublings in (1, 2, 3, 4) for end in ("kept", "divergent")
    }
    assert ends > {"3 cut", "4 cut"}


def shares(start, kernel, k, forwards, dealer):
    """Probability of each place of the orbit after a step from `k` in these directions."""
    points = start.orbit(2 ** len(forwards) - 1)
    normals, _ = weighed(points, start.metric)
    rng = dealer(normals[k], forwards)
    new, _ = kernel.step(start.target, rng, chains_at(points, k, len(rng.normals)))
    indices = points.find(new.position)
    return np.bincount(indices + 1, rng.chances, len(points.positions) + 1)


@pytest.mark.equation("M10")
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_one_chain_for_each_leaf_sums_all_paths(depth):
    start, middle = STARTS["small steps"], 2**depth - 1
    for forwards in product((False, True), repeat=depth):
        sums = [
            shares(start, kernel(start.eps, start.metric, depth), middle, forwards, dealer)
            for kernel, dealer in (
                (nuts.NUTS, AllPaths),
                (telling(nuts.NUTS), OneChainForEachLeaf),
            )
        ]
        np.testing.assert_allclose(*sums, rtol=0, atol=1e-14)
        assert np.count_nonzero(sums[0]) >= 2 ** (depth - 1), "at least the last half"


# --- HMC: the points of one orbit, there and back ------------------------------------------------

HMC_STARTS = {
    "dense metric": Start(Quartic(), DENSE, 0.45, 1),
    "diagonal metric": Start(Quartic(), DIAGONAL, 0.6, 0),
    "large steps": Start(Quartic(), UNIT, 1.1, 5),
    "no density in the trench": Start(Quartic(np.inf), UNIT, 0.35, 2),
    "divergent in the trench": Start(Quartic(2000.0), DIAGONAL, 0.25, 1),
}
STEPS = 4


def path_lengths(kernel):
    """Intervals (low, high) of the uniform number that decides how many steps a path has."""
    edges = {0.0, 1.0}
    if kernel.jitter:
        edges |= {(1 - m / kernel.steps) / kernel.jitter for m in range(kernel.steps + 1)}
    inside = sorted(edge for edge in edges if 0.0 <= edge <= 1.0)
    return list(pairwise(inside))


def hmc_of(start, jitter, small_steps=0.0, spread=0.0):
    """The kernel whose path has the step size of `start` if its uniform numbers are `spread`."""
    eps = start.eps / (1.0 - small_steps * spread)
    return hmc.HMC(eps, STEPS * eps * 0.99, start.metric, jitter, small_steps=small_steps)


def check_there_and_back(target, points, normals, weights, moves):
    """Assert sum_z w_z P(z -> point 0) = w_0, where z is a point of the orbit or its reverse.

    Orbits of one step size: `moves` are the shares of kernels, their uniform numbers and starts.
    """
    inflow, yes = 0.0, np.array([True, False])
    for k, sign, (share, kernel, spread, begin) in product(
        np.flatnonzero(weights), (1.0, -1.0), moves
    ):
        rng = Answering(np.repeat(sign * normals[[k]], 2, axis=0), yes, spread=spread)
        new, info = kernel.step(target, rng, begin(chains_at(points, k, 2)))
        returned = points.find(new.position) == points.reach
        inflow += 0.5 * weights[k] * share * rng.chances[returned].sum()
        check_answers(target, rng, new, info)
    assert abs(inflow - 1.0) < EXACT


def as_it_is(state):
    return state


@pytest.mark.equation("M7", "M8", "M12")
@pytest.mark.parametrize("small_steps", [0.0, 1.0])
@pytest.mark.parametrize("jitter", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("name", HMC_STARTS)
def test_hmc_leaves_every_orbit_and_its_reverse_invariant(name, jitter, small_steps):
    start = HMC_STARTS[name]
    points = start.orbit(STEPS)
    moves = [
        (high - low, hmc_of(start, jitter, small_steps, spread), spread, as_it_is)
        for low, high in path_lengths(hmc_of(start, jitter))
        for spread in [0.5 * (low + high)]
    ]
    check_there_and_back(start.target, points, *weighed(points, start.metric), moves)


@pytest.mark.equation("D47", "M8")
@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("name", HMC_STARTS)
def test_every_path_of_chees_leaves_every_orbit_and_its_reverse_invariant(name, turn):
    """The number of steps is known before the path, so no average over numbers is needed."""
    start = HMC_STARTS[name]
    kernel = chees.ChEES(start.eps, STEPS * start.eps * 0.99, start.metric)
    assert kernel.steps(turn) == int(np.ceil(0.99 * STEPS * chees.halton(turn)))

    def begun(state):
        begun = kernel.init(start.target, state.position)
        return begun._replace(halton_index=begun.halton_index + turn - 1)

    points = start.orbit(STEPS)
    moves = [(1.0, kernel, None, begun)]
    check_there_and_back(start.target, points, *weighed(points, start.metric), moves)


# --- MAMS: the points of one orbit, there and back, weighted by the volume around them ----------

MAMS_STARTS = {
    **{name: HMC_STARTS[name] for name in ("dense metric", "diagonal metric", "large steps")},
    "no density in the trench": HMC_STARTS["no density in the trench"],
    "turns by much": Start(Quartic(stiffness=3.0), DENSE, 1.2, 5),
}


def turned_by_the_book(u, g, eps):
    """The kick of D49, by its hyperbolic functions alone, in coordinates of unit metric."""
    force = np.sqrt(np.sum(g * g))
    e, delta = g / force, eps * force / (len(u) - 1)
    c = np.sum(e * u)
    new = u + (np.sinh(delta) + c * (np.cosh(delta) - 1.0)) * e
    return new / (np.cosh(delta) + c * np.sinh(delta))


def stepped_by_the_book(start, z, u, eps):
    """One isokinetic step of x = C place, C C^T = M^-1; direction of any length, which it keeps."""
    factor = np.linalg.cholesky(covariance(start.metric))

    def gradient(z):
        return start.target((z @ factor.T)[None])[1][0] @ factor

    length = np.sqrt(np.sum(u * u))
    u = turned_by_the_book(u / length, gradient(z), 0.5 * eps)
    z = z + eps * u
    return z, turned_by_the_book(u, gradient(z), 0.5 * eps) * length


def mams_orbit(start, reach):
    """Positions and directions (2 reach + 1, D) of an orbit, and the log volumes around them.

    The volumes by the complex step of all that a step of the book does: no formula for them.
    """
    rng, factor = np.random.default_rng(start.seed), np.linalg.cholesky(covariance(start.metric))
    z, u = np.linalg.solve(factor, 0.8 * rng.standard_normal(2)), rng.standard_normal(2)
    sides = []
    for sign in (-1.0, 1.0):
        q, r, volume = z, u / np.linalg.norm(u), 0.0
        sides.append([(q, r, volume)])
        for _ in range(reach):
            columns = [
                np.concatenate(
                    stepped_by_the_book(start, q + part[:2], r + part[2:], sign * start.eps)
                ).imag
                for part in 1j * COMPLEX_STEP * np.eye(4)
            ]
            volume += np.linalg.slogdet(np.array(columns) / COMPLEX_STEP)[1]
            q, r = stepped_by_the_book(start, q, r, sign * start.eps)
            sides[-1].append((q, r, volume))
    rows = sides[0][:0:-1] + sides[1]
    orbit, u, volumes = (np.array(part) for part in zip(*rows, strict=True))
    return orbit @ factor.T, u, volumes


@pytest.mark.equation("D48", "D49")
@pytest.mark.parametrize("name", MAMS_STARTS)
def test_mams_leaves_every_orbit_and_its_reverse_invariant(name):
    """sum_z w_z P(z -> point 0) = w_0: density times volume, an orbit and its reverse."""
    start = MAMS_STARTS[name]
    positions, u, volumes = mams_orbit(start, STEPS)
    kernel = microcanonical.MAMS(start.eps, 0.5 * 0.99 * STEPS * start.eps, start.metric)
    assert kernel.steps(2) == STEPS
    value, gradient = start.target(positions)
    log_weight = value + volumes
    weights = np.exp(log_weight - log_weight[STEPS])
    # any length of the normal numbers: the metric makes r of them, the kernel a direction.
    # A diagonal or a dense metric makes C^-T z of z, in coordinates of unit metric z itself
    points, normals = Orbit(positions, u, value, gradient), 1.7 * u
    moves = [(1.0 / STEPS, kernel, (m + 0.5) / STEPS, as_it_is) for m in range(STEPS)]
    check_there_and_back(start.target, points, normals, weights, moves)


@pytest.mark.equation("M12")
@pytest.mark.parametrize("metric", [UNIT, DIAGONAL, DENSE], ids=["unit", "diagonal", "dense"])
def test_momenta_have_the_covariance_m_and_steps_its_inverse(metric):
    """Both are linear in the normal numbers; their rows for the unit vectors say all."""
    momenta, steps = (
        draw(Dealer(np.eye(2)), np.zeros((2, 2)))
        for draw in (metric.draw_momentum, metric.draw_step)
    )
    np.testing.assert_allclose(momenta.T @ momenta @ covariance(metric), np.eye(2), atol=1e-14)
    np.testing.assert_allclose(steps.T @ steps, covariance(metric), atol=1e-14)
    np.testing.assert_allclose(metric.kinetic(momenta), 0.5, rtol=1e-14)


# --- Metropolis-Hastings: pi(x) q(x'|x) alpha(x, x') there and back -------------------------------


@dataclass(frozen=True)
class Proposals:
    """Points, and the numbers from which a candidate is made at each of them."""

    target: Quartic
    positions: np.ndarray  # (S, D)
    normals: np.ndarray  # (S, D)

    @property
    def state(self):
        return State(self.positions, *self.target(self.positions))

    def only(self, which):
        return replace(self, positions=self.positions[which], normals=self.normals[which])


def some_proposals(target, positive=False):
    rng = np.random.default_rng(0)
    positions, normals = rng.standard_normal((2, 40, 2))
    if positive:
        positions = np.exp(0.5 * positions)
    proposals = Proposals(target, positions, normals)
    return proposals.only(np.isfinite(target(positions)[0]))


def candidates(kernel, proposals):
    rng = Answering(proposals.normals)
    return kernel.proposal.propose(proposals.target, rng, proposals.state)[0].position


def jacobian(kernel, proposals):
    """d candidate / d normals (S, D, D), by the complex step."""
    positions = proposals.positions.astype(complex)
    columns = [
        candidates(
            kernel,
            replace(
                proposals,
                positions=positions,
                normals=proposals.normals + 1j * COMPLEX_STEP * direction,
            ),
        ).imag
        for direction in np.eye(positions.shape[1])
    ]
    return np.stack(columns, axis=2) / COMPLEX_STEP


def returning(kernel, proposals, new):
    """The proposals at `new` that lead back, their normal numbers by Newton's method."""
    reverse = replace(proposals, positions=new, normals=np.zeros_like(new))
    for _ in range(50):
        gap = candidates(kernel, reverse) - proposals.positions
        change = np.linalg.solve(jacobian(kernel, reverse), gap[..., None])[..., 0]
        reverse = replace(reverse, normals=reverse.normals - change)
    assert np.abs(candidates(kernel, reverse) - proposals.positions).max() < 1e-13
    return reverse


def log_flow(kernel, proposals):
    """log pi(x) q(x'|x) alpha(x, x') (S,), up to a constant, and x'.

    q is the density of the normal numbers over the volume into which the proposal, as it is
    coded, carries theirs; alpha the probability of the decision, as it is coded.
    """
    outcomes = []
    for answer in (True, False):
        rng = Answering(proposals.normals, np.full(len(proposals.normals), answer))
        new, _ = kernel.step(proposals.target, rng, proposals.state)
        assert_complete(proposals.target, new)
        outcomes.append((new.position, rng.chances))
    (new, accepted), (same, rejected) = outcomes
    np.testing.assert_array_equal(same, proposals.positions)
    np.testing.assert_allclose(accepted + rejected, 1.0, rtol=0, atol=1e-15)
    volume = np.linalg.slogdet(jacobian(kernel, proposals))[1]
    with np.errstate(divide="ignore"):  # never accepted
        flow = np.log(accepted) - volume - 0.5 * np.sum(proposals.normals**2, axis=1)
    return proposals.state.log_density + flow, new


def imbalance(kernel, proposals):
    """Largest |flow(x -> x') / flow(x' -> x) - 1|."""
    forward_flow, new = log_flow(kernel, proposals)
    alive = np.isfinite(proposals.target(new)[0])
    assert np.all(forward_flow[~alive] == -np.inf), "a point of density 0 was accepted"
    forward_flow, new, proposals = forward_flow[alive], new[alive], proposals.only(alive)
    reverse_flow, old = log_flow(kernel, returning(kernel, proposals, new))
    np.testing.assert_allclose(old, proposals.positions, rtol=0, atol=1e-12)
    return np.abs(np.expm1(forward_flow - reverse_flow)).max()


# every proposal whose density is that of a map of normal numbers
PROPOSALS = {
    "walk": metropolis.GaussianWalk(0.8),
    "walk, dense": metropolis.GaussianWalk(0.8, DENSE),
    "walk, diagonal": metropolis.GaussianWalk(0.7, DIAGONAL),
    "langevin": metropolis.Langevin(0.9),
    "langevin, diagonal": metropolis.Langevin(1.1, DIAGONAL),
    "langevin, dense": metropolis.Langevin(0.8, DENSE),
    "log-normal": metropolis.LogNormalWalk(0.4),
}


@pytest.mark.equation("M5", "M6")
@pytest.mark.parametrize("trench", [0.0, 3.0, np.inf])
@pytest.mark.parametrize("name", PROPOSALS)
def test_metropolis_hastings_is_in_detailed_balance_for_every_proposal(name, trench):
    kernel = metropolis.MetropolisHastings(PROPOSALS[name])
    proposals = some_proposals(Quartic(trench), positive=name == "log-normal")
    assert imbalance(kernel, proposals) < EXACT
    rng = Answering(proposals.normals, np.full(len(proposals.normals), True))
    new, info = kernel.step(proposals.target, rng, proposals.state)
    np.testing.assert_allclose(info.acceptance, rng.chances, rtol=EXACT)
    np.testing.assert_allclose(info.energy, -new.log_density, rtol=EXACT)
    assert info.accepted.all()


@pytest.mark.equation("M6")
@pytest.mark.parametrize("name", PROPOSALS)
def test_a_candidate_that_cannot_be_computed_is_never_accepted(name):
    """Its ratio may be no number: infinity less infinity."""
    kernel = metropolis.MetropolisHastings(PROPOSALS[name])
    proposals = some_proposals(Quartic(), positive=name == "log-normal")
    for size in (1e100, 1e200):
        distant = replace(
            proposals, normals=size * np.sign(proposals.normals) * np.sign(proposals.normals[:, :1])
        )
        rng = Answering(distant.normals, np.full(len(distant.normals), True))
        _, info = kernel.step(distant.target, rng, distant.state)
        assert np.all(rng.chances == 0.0)
        assert np.all(info.acceptance == 0.0)


# --- a few points: independent proposals, and annealing ------------------------------------------

PLACES = np.array([[-0.9, 0.4], [0.45, -0.3], [1.2, 0.8]])  # the second lies in the trench
TABLES = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.25, 0.35, 0.4]])


class Placing(Answering):
    """Deals out candidates (S,) among a few places too, each with its probability."""

    def __init__(self, candidates, answers):
        super().__init__(np.zeros((answers.shape[1], 2)), *answers)
        self.candidates = iter(candidates)


def place_of(position):
    return np.argmin(np.abs(position[:, None] - PLACES).max(axis=2), axis=1)


@dataclass(frozen=True)
class Independent:
    """A proposal whose candidate is place j with probability table[j], wherever the chain is."""

    table: np.ndarray

    def propose(self, target, rng, state):
        chosen = next(rng.candidates)
        rng.probability = rng.probability * self.table[chosen]
        new = State(PLACES[chosen], *target(PLACES[chosen]))
        return new, np.log(self.table[place_of(state.position)] / self.table[chosen])


def paths(moves):
    """All paths: starts (S,), candidates (moves, S), answers (moves, S)."""
    count = len(PLACES)
    every = np.array(list(product(range(count), *[range(count), (0, 1)] * moves))).T
    return every[0], every[1::2], every[2::2] == 1


@pytest.mark.equation("M5", "M6")
@pytest.mark.parametrize("trench", [0.0, 3.0, np.inf])
def test_independent_proposals_leave_a_few_places_invariant(trench):
    """(pi P)_j = pi_j, to a rounding of the largest pi_j."""
    target = Quartic(trench)
    density = np.exp(target(PLACES)[0])
    starts, chosen, answers = paths(1)
    possible = density[starts] > 0
    starts, chosen, answers = starts[possible], chosen[:, possible], answers[:, possible]
    rng = Placing(chosen, answers)
    state = State(PLACES[starts], *target(PLACES[starts]))
    new, _ = metropolis.MetropolisHastings(Independent(TABLES[0])).step(target, rng, state)
    inflow = np.bincount(place_of(new.position), density[starts] * rng.chances, len(PLACES))
    np.testing.assert_allclose(inflow, density, rtol=0, atol=EXACT * density.max())


PATHS = {
    "rising": (2.0, [0.0, 0.2, 0.6, 1.0], 1),
    "rising, two moves at each power": (0.0, [0.0, 0.3, 1.0], 2),
    "falling": (2.0, [1.0, 0.5, 0.1, 0.0], 1),
    "to a density that is 0 in places": (np.inf, [0.0, 0.2, 0.6, 1.0], 1),
}


@pytest.mark.equation("M20")
@pytest.mark.parametrize("name", PATHS)
def test_annealed_weights_and_places_have_the_expectation_of_the_target(name):
    """E[weight g(place)] = sum_j f_T(j) g(j) / Z_0 for every g, over all paths: M20, step 1."""
    trench, schedule, sweeps = PATHS[name]
    start, end = Quartic(), Quartic(trench, stiffness=4.0)

    def density(power):
        if power == 0.0:  # 0 times -inf is no number
            return np.exp(start(PLACES)[0])
        return np.exp((1.0 - power) * start(PLACES)[0] + power * end(PLACES)[0])

    first, last = density(schedule[0]), density(schedule[-1])
    moved = [metropolis.MetropolisHastings(Independent(table)) for table in TABLES]
    kernels = moved[: len(schedule) - 1]
    starts, chosen, answers = paths(len(kernels) * sweeps)
    rng = Placing(chosen, answers)
    run = annealing.anneal(
        annealing.between(start, end), PLACES[starts], kernels, np.array(schedule), rng, sweeps
    )
    chances = rng.chances * first[starts] / first.sum()
    assert chances.sum() == pytest.approx(1.0, abs=EXACT)
    weighted = chances * np.exp(run.log_weights)
    mean = np.bincount(place_of(run.positions), weighted, len(PLACES))
    np.testing.assert_allclose(mean, last / first.sum(), rtol=0, atol=EXACT)


# --- the leapfrog in exact arithmetic ------------------------------------------------------------


@dataclass(frozen=True)
class Exact:
    """A rational number and its derivatives; + - * of it and of floats have no rounding."""

    value: Fraction
    slopes: tuple

    def __add__(self, other):
        if not isinstance(other, Exact):
            return self._with_constant(other, lambda c: Exact(self.value + c, self.slopes))
        slopes = tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Exact(self.value + other.value, slopes)

    def __mul__(self, other):
        if not isinstance(other, Exact):
            return self._with_constant(
                other, lambda c: Exact(self.value * c, tuple(c * a for a in self.slopes))
            )
        slopes = tuple(
            self.value * b + other.value * a for a, b in zip(self.slopes, other.slopes, strict=True)
        )
        return Exact(self.value * other.value, slopes)

    @staticmethod
    def _with_constant(number, operation):
        if isinstance(number, (int, float)):
            return operation(Fraction(number))  # a float is a rational number
        return NotImplemented  # an array does it number by number

    def __sub__(self, other):
        return self + -1 * other

    def __rsub__(self, other):
        return other + -1 * self

    def __neg__(self):
        return -1 * self

    __radd__, __rmul__ = __add__, __mul__


def rationals(numbers):
    """The numbers (D,) and (D,) as a position and a momentum (1, D), with all derivatives."""
    size = len(numbers)
    unit = [tuple(Fraction(int(i == j)) for i in range(size)) for j in range(size)]
    exact = np.array([Exact(Fraction(x), u) for x, u in zip(numbers, unit, strict=True)])
    return (half[None] for half in np.split(exact, 2))


def polynomial(position):
    """A quartic that couples all coordinates: value (S,) and gradient (S, D), of products alone."""
    total = np.add.reduce(position, axis=1, keepdims=True)
    square = position * position
    value = np.add.reduce(-0.5 * square - 0.125 * square * square, axis=1)
    mixed = total * total
    gradient = -1.0 * position - 0.5 * square * position - 0.375 * total * mixed
    return value - np.add.reduce(0.09375 * mixed * mixed, axis=1), gradient


def numbers_of(phase):
    return [*phase.position.ravel(), *phase.momentum.ravel()]


EXACT_METRICS = {
    "diagonal": DiagonalMetric(np.array([0.5, 1.6, 0.7])),
    "dense": DenseMetric(np.array([[1.0, 0.5, 0.1], [0.5, 0.8, 0.2], [0.1, 0.2, 0.6]])),
}


@pytest.mark.equation("M8")
@pytest.mark.parametrize("eps", [0.3, -0.7])
@pytest.mark.parametrize("metric", EXACT_METRICS)
def test_the_leapfrog_preserves_volume_and_undoes_itself_without_any_rounding(
    metric, eps, monkeypatch
):
    """The shipped function on rational numbers: the determinant is the number 1."""
    # all of them are finite; NumPy has no isfinite of objects
    monkeypatch.setitem(leapfrog.__globals__, "finite", lambda value, gradient: (value, gradient))
    metric, random = EXACT_METRICS[metric], np.random.default_rng(4).integers(-8, 9, 6)
    position, momentum = rationals([Fraction(int(k), 7) for k in random])
    start = phase = Phase(position, momentum, *polynomial(position))
    for _ in range(2):
        phase = leapfrog(polynomial, metric, phase, eps)
    assert sympy.Matrix([number.slopes for number in numbers_of(phase)]).det() == 1
    for _ in range(2):
        phase = leapfrog(polynomial, metric, phase, -eps)
    assert numbers_of(phase) == numbers_of(start)

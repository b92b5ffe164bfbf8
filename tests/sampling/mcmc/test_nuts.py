"""The No-U-Turn sampler: the criterion, the tree, the weights (M9, M10).

That the target is left as it is: ../test_invariance.py.
"""

import numpy as np
import pytest
from scipy import stats
from targets import Banana, Funnel, Gaussian, correlated, path

from bbb_numpy.sampling.mcmc import (
    NUTS,
    DenseMetric,
    DiagonalMetric,
    Phase,
    hamiltonian,
)
from bbb_numpy.sampling.mcmc.nuts import turned

UNIT = DiagonalMetric(np.ones(2))
DENSE = DenseMetric(np.array([[1.0, 0.5], [0.5, 0.8]]))


def trajectory(target, metric, eps, steps, seed=0):
    """Positions and momenta (T + 1, D) of one path."""
    rng = np.random.default_rng(seed)
    state = NUTS().init(target, target.draw(rng, 1))
    phase = Phase(state.position, metric.draw_momentum(rng, state.position), *state[1:])
    phases = [phase]
    for _ in range(steps):
        phases.append(path(target, metric, phases[-1], eps, 1))
    return np.array([p.position[0] for p in phases]), np.array([p.momentum[0] for p in phases])


# --- the criterion ---------------------------------------------------------------------------


@pytest.mark.equation("M9")
@pytest.mark.parametrize("seed", range(4))
def test_momentum_times_distance_is_half_the_slope_of_the_squared_distance(seed):
    """The right form; the printed middle term has the positions exchanged."""
    eps = 1e-3
    theta, r = trajectory(Banana(), UNIT, eps, 2000, seed)
    half_squared = 0.5 * np.sum((theta - theta[0]) ** 2, axis=1)
    slope = (half_squared[2:] - half_squared[:-2]) / (2 * eps)
    right = np.vecdot(r, theta - theta[0])[1:-1]
    np.testing.assert_allclose(right, slope, atol=5e-5)
    middle = np.vecdot(r, theta[0] - theta)[1:-1]
    np.testing.assert_allclose(middle, -slope, atol=5e-5)
    assert np.abs(slope).max() > 0.1


@pytest.mark.equation("M9")
@pytest.mark.parametrize("metric", [UNIT, DENSE])
def test_the_summed_momenta_are_the_way_from_end_to_end(metric):
    """eps M^-1 sum r, the two ends counted half, tends to theta' - theta as eps^2."""
    errors = []
    for eps in (4e-2, 2e-2, 1e-2):
        theta, r = trajectory(Banana(), metric, eps, round(2 / eps))
        total = r.sum(axis=0) - 0.5 * (r[0] + r[-1])
        way = eps * metric.velocity(total[None])[0]
        errors.append(np.abs(way - (theta[-1] - theta[0])).max())
    assert errors[0] / errors[1] > 3.5
    assert errors[1] / errors[2] > 3.5
    assert errors[2] < 1e-3


@pytest.mark.equation("M9")
def test_a_path_turns_where_its_distance_begins_to_shrink():
    """On a circle of N(0, I) the chord shrinks after half a turn, whatever the start."""
    eps = 0.01
    for seed in range(5):
        _, r = trajectory(Gaussian(np.eye(1)), DiagonalMetric(np.ones(1)), eps, 400, seed)
        sums = np.cumsum(r, axis=0)
        first = np.tile(r[:1], (len(r), 1))
        found = turned(DiagonalMetric(np.ones(1)), first, r, sums)
        # in one dimension the momentum changes its sign at the latest after half a period
        assert not found[1] or np.sign(r[0]) != np.sign(r[1])
        change = np.flatnonzero(np.sign(r[:, 0]) != np.sign(r[0, 0]))[0]
        assert not found[1:change].any()
        assert found[change]


@pytest.mark.equation("M9")
def test_each_end_can_turn_the_path_alone():
    first, last = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert not turned(UNIT, first, last, np.array([[1.0, 1.0]]))
    assert turned(UNIT, first, last, np.array([[-0.1, 1.0]]))
    assert turned(UNIT, first, last, np.array([[1.0, -0.1]]))
    # another metric, another angle: -1 + 1.2 instead of -1 + 0.4
    other, total = np.array([[1.0, 1.0]]), np.array([[-1.0, 0.4]])
    assert turned(UNIT, other, other, total)
    assert not turned(DiagonalMetric(np.array([1.0, 3.0])), other, other, total)


# --- the tree --------------------------------------------------------------------------------


def meets_itself(covariance, r, across=True):
    """Whether consecutive momenta (2^k, D) turn: all of them, or a half and the next point."""
    half = len(r) // 2
    stretches = [r, r[: half + 1], r[half - 1 :]] if across else [r]
    return any((part[[0, -1]] @ covariance @ part.sum(axis=0)).min() <= 0 for part in stretches)


def turns_somewhere(covariance, r, across=True):
    """Whether a subtree of these momenta turns, or one of its halves, their halves, ..."""
    if len(r) == 1:
        return False
    halves = (r[: len(r) // 2], r[len(r) // 2 :])
    return meets_itself(covariance, r, across) or any(
        turns_somewhere(covariance, half, across) for half in halves
    )


def depth_by_definition(covariance, r, zero, directions, across=True):
    """The doublings of the trajectory from r[zero], momenta of one path, in given directions."""
    first, last = zero, zero + 1
    for level, forwards in enumerate(directions):
        size = 2**level
        new = slice(last, last + size) if forwards else slice(first - size, first)
        first, last = min(first, new.start), max(last, new.stop)
        if turns_somewhere(covariance, r[new], across):
            return level + 1
        if meets_itself(covariance, r[first:last], across):
            return level + 1
    return len(directions)


class SameTurns:
    """A generator of one direction for all chains at each doubling; all else is 1."""

    def __init__(self, forwards):
        self.forwards = iter(forwards)

    def random(self, size):
        return np.full(size, 0.25 if next(self.forwards) else 0.75)

    def standard_exponential(self, size):
        return np.ones(size)


def starting(kind, matrix, momentum):
    """A metric whose momentum is given."""

    class Given(kind):
        def draw_momentum(self, rng, like):
            return momentum.copy()

    return Given(matrix)


@pytest.mark.equation("M9", "M10")
@pytest.mark.parametrize("directions", [(1, 1, 1, 1), (0, 0, 0, 0), (0, 1, 1, 0), (1, 0, 1, 0)])
def test_trees_end_where_the_criterion_over_all_their_halves_says(directions):
    """Written once more, without stacks and sums, over the momenta of the whole path."""
    target, rng, eps, metric = correlated(0.5, (1.0, 0.4)), np.random.default_rng(0), 0.5, DENSE
    state = NUTS().init(target, target.draw(rng, 200))
    momentum = metric.draw_momentum(rng, state.position)
    phase = Phase(state.position, momentum, *state[1:])
    momenta = [
        path(target, metric, phase, np.sign(k) * eps, abs(k)).momentum for k in range(-15, 16)
    ]
    each = np.stack(momenta, axis=1)  # (S, 31, D)
    wanted, simple = (
        [depth_by_definition(DENSE.covariance, r, 15, directions, across) for r in each]
        for across in (True, False)
    )
    kernel = NUTS(eps, starting(DenseMetric, metric.covariance, momentum), max_depth=4)
    _, info = kernel.step(target, SameTurns(directions), state)
    np.testing.assert_array_equal(info.depth, wanted)
    assert len(set(wanted)) > 2
    assert simple != wanted, "some turn where two halves meet, and nowhere else"


@pytest.mark.equation("M10")
def test_leaves_are_drawn_by_exp_of_minus_their_energy():
    """One subtree of 8 leaves, grown 20,000 times from the same point."""
    target, count, level, eps = Gaussian(np.diag([1.0, 100.0])), 20_000, 3, 1.2
    kernel, rng = NUTS(eps), np.random.default_rng(1)
    state = kernel.init(target, np.tile([[1.5, 0.0]], (count, 1)))
    momentum = np.tile([[0.5, 5.0]], (count, 1))
    phase = Phase(state.position, momentum, *state[1:])
    h0 = hamiltonian(UNIT, phase)
    sign = np.ones((count, 1))
    tree = kernel._subtree(target, rng, UNIT, phase, sign, h0, level)
    assert tree.complete.all()
    leaves, energy = [phase], []
    for _ in range(2**level):
        leaves.append(path(target, UNIT, leaves[-1], eps, 1))
        energy.append(hamiltonian(UNIT, leaves[-1])[0] - h0[0])
    weights = np.exp(-np.array(energy))
    assert weights.max() / weights.min() > 1.5, "or equal weights would pass"
    places = np.array([leaf.position[0] for leaf in leaves[1:]])
    which = np.argmin(np.abs(tree.drawn.state.position[:, None] - places).sum(axis=2), axis=1)
    counts = np.bincount(which, minlength=8)
    assert stats.chisquare(counts, count * weights / weights.sum()).pvalue > 1e-3
    np.testing.assert_allclose(tree.drawn.log_weight, np.log(weights.sum()), rtol=1e-12)
    expected = np.minimum(1, weights).sum()
    np.testing.assert_allclose(tree.acceptance, expected, rtol=1e-12)
    np.testing.assert_allclose(tree.drawn.energy, h0 + np.array(energy)[which], rtol=1e-12)
    # its end and its span are those of the path
    np.testing.assert_allclose(tree.end.position, leaves[-1].position, rtol=1e-12)
    np.testing.assert_allclose(tree.span.first, leaves[1].momentum, rtol=1e-12)
    np.testing.assert_allclose(tree.span.last, leaves[-1].momentum, rtol=1e-12)
    total = sum(leaf.momentum for leaf in leaves[1:])
    np.testing.assert_allclose(tree.span.total, total, rtol=1e-12)


@pytest.mark.equation("M10")
def test_the_new_half_is_taken_with_the_ratio_of_the_weights():
    """One doubling: the new leaf with probability min(1, W_new / W_old)."""
    target, count = Gaussian(np.eye(1)), 20_000
    for momentum, upwards in ((1.0, False), (-1.0, True)):  # away from, or towards the centre
        metric = starting(DiagonalMetric, np.ones(1), np.full((count, 1), momentum))
        kernel = NUTS(0.9, metric, max_depth=1)
        state = kernel.init(target, np.full((count, 1), 1.2))
        _, info = kernel.step(target, np.random.default_rng(2), state)
        expected = info.acceptance.mean()  # min(1, exp(H0 - H1)), of either direction
        error = np.sqrt(0.25 / count)
        assert abs(info.accepted.mean() - expected) < 4.5 * error, upwards
        assert info.acceptance.min() < 0.9


@pytest.mark.equation("M10")
@pytest.mark.parametrize("max_depth", [1, 2, 5])
def test_a_tree_is_no_deeper_than_asked(max_depth):
    target = correlated()
    kernel, rng = NUTS(1e-3, max_depth=max_depth), np.random.default_rng(0)
    state = kernel.init(target, target.draw(rng, 50))
    _, info = kernel.step(target, rng, state)
    np.testing.assert_array_equal(info.depth, max_depth)
    np.testing.assert_array_equal(info.gradients, 2**max_depth - 1)
    np.testing.assert_allclose(info.acceptance, 1.0, atol=1e-5)


@pytest.mark.equation("M10")
def test_divergences_are_reported_where_they_are():
    funnel, rng = Funnel(), np.random.default_rng(0)
    start = funnel.draw(rng, 2000)
    kernel = NUTS(0.7)
    _, info = kernel.step(funnel, rng, kernel.init(funnel, start))
    low, high = start[:, 0] < -4, start[:, 0] > 0
    assert info.divergent[low].mean() > 0.8, "the neck is narrower than the step"
    assert info.divergent[high].mean() < 0.05
    small = NUTS(0.02, max_depth=6)
    _, info = small.step(funnel, rng, small.init(funnel, start))
    assert info.divergent[start[:, 0] > -4].mean() < 0.01
    plain = correlated(0.5)
    _, info = NUTS(0.1).step(plain, rng, NUTS().init(plain, plain.draw(rng, 500)))
    assert not info.divergent.any()


@pytest.mark.equation("M10")
def test_every_gradient_is_counted_and_a_chain_that_drops_out_keeps_its_acceptance():
    """Trees of several depths: gradients are rows of the target's calls, steps are all good."""
    target, rows = correlated(0.5, (1.0, 0.3)), []

    def counted(position):
        rows.append(len(position))
        return target(position)

    kernel, rng = NUTS(0.01), np.random.default_rng(0)
    state = kernel.init(target, target.draw(rng, 50))
    _, info = kernel.step(counted, rng, state)
    assert info.gradients.sum() == sum(rows)
    assert len(set(info.gradients.tolist())) > 5
    assert len(set(rows)) > 5, "chains drop out inside of subtrees"
    np.testing.assert_allclose(info.acceptance, 1.0, atol=0.01)
    assert not info.divergent.any()


@pytest.mark.equation("M10")
def test_chains_do_not_notice_where_the_trees_of_others_end():
    """Beside chains with long trees, chains with short ones are what they are alone, and v.v."""

    class Mixed:
        """Every other chain lives on a scale a hundred times as large."""

        def __init__(self, scales):
            self.scales = scales

        def __call__(self, position):
            # a chain is recognised by its last coordinate, which has no slope
            scale = np.where(position[:, -1] > 0, self.scales[1], self.scales[0])[:, None]
            gradient = -position / scale**2
            gradient[:, -1] = 0.0
            return -0.5 * np.sum((position[:, :-1] / scale) ** 2, axis=1), gradient

    class Still(DiagonalMetric):
        def draw_momentum(self, rng, like):
            momentum = super().draw_momentum(rng, like)
            momentum[:, -1] = 0.0
            return momentum

    metric, rng, count = Still(np.ones(3)), np.random.default_rng(3), 3000
    which = np.where(np.arange(2 * count) % 2, 1.0, -1.0)
    scale = np.where(which > 0, 20.0, 0.5)
    start = np.column_stack([scale[:, None] * rng.standard_normal((2 * count, 2)), which])
    kernel, target = NUTS(0.4, metric), Mixed((0.5, 20.0))
    both, info = kernel.step(target, rng, kernel.init(target, start))
    assert info.depth[which > 0].mean() > info.depth[which < 0].mean() + 3
    for side in (which > 0, which < 0):
        alone, solo = kernel.step(target, rng, kernel.init(target, start[side]))
        for i in range(2):
            p = stats.ks_2samp(both.position[side, i], alone.position[:, i]).pvalue
            assert p > 1e-3
        counts = [np.bincount(d, minlength=11) for d in (info.depth[side], solo.depth)]
        seen = np.array(counts)[:, np.sum(counts, axis=0) > 10]
        assert len(seen[0]) < 2 or stats.chi2_contingency(seen).pvalue > 1e-3
        # exact draws stay exact draws, beside whatever else
        z = both.position[side, :2] / scale[side][:, None]
        assert min(stats.kstest(c, "norm").pvalue for c in z.T) > 1e-3


@pytest.mark.equation("M10")
def test_a_cliff_is_a_divergence_and_no_warning():
    """Gradients near the largest number, met in the middle of a tree."""

    def cliff(position):
        far = np.maximum(np.abs(position) - 2.0, 0.0)
        value = -0.5 * np.sum(position**2, axis=1) - 1e200 * far.sum(axis=1)
        return value, -position - 1e200 * np.sign(position) * (far > 0)

    kernel, rng = NUTS(0.3), np.random.default_rng(0)
    state, seen = kernel.init(cliff, np.zeros((200, 2))), 0
    for _ in range(20):
        state, info = kernel.step(cliff, rng, state)
        seen += info.divergent.sum()
        assert np.all(np.abs(state.position) <= 2)
    assert seen > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"step_size": -0.1}, ValueError, "step_size must be positive and finite; got -0.1"),
        ({"step_size": None}, TypeError, "step_size must be positive and finite; got None"),
        ({"max_depth": 0}, ValueError, "max_depth must be a whole number >= 1; got 0"),
        ({"max_depth": 2.5}, ValueError, "max_depth must be a whole number >= 1; got 2.5"),
        ({"max_depth": 31}, ValueError, "max_depth must be .* <= 30; got 31"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        NUTS(**arguments)

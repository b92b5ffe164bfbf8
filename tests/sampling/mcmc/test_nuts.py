"""The No-U-Turn sampler: the criterion, the tree, the weights (M9, M10).

That the target is left as it is: ../test_invariance.py.
"""

import numpy as np
import pytest
from targets import correlated, path

from bbb_numpy.sampling.mcmc import (
    NUTS,
    DenseMetric,
    DiagonalMetric,
    Phase,
)
from bbb_numpy.sampling.mcmc.nuts import is_turning

UNIT = DiagonalMetric(np.ones(2))
DENSE = DenseMetric(np.array([[1.0, 0.5], [0.5, 0.8]]))


# --- the criterion ---------------------------------------------------------------------------


@pytest.mark.equation("M9")
def test_each_end_can_turn_the_path_alone():
    first, last = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert not is_turning(UNIT, first, last, np.array([[1.0, 1.0]]))
    assert is_turning(UNIT, first, last, np.array([[-0.1, 1.0]]))
    assert is_turning(UNIT, first, last, np.array([[1.0, -0.1]]))
    # another metric, another angle: -1 + 1.2 instead of -1 + 0.4
    diagonal, total = np.array([[1.0, 1.0]]), np.array([[-1.0, 0.4]])
    assert is_turning(UNIT, diagonal, diagonal, total)
    assert not is_turning(DiagonalMetric(np.array([1.0, 3.0])), diagonal, diagonal, total)


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
    all_momenta = np.stack(momenta, axis=1)  # (S, 31, D)
    expected, simple = (
        [depth_by_definition(DENSE.covariance, r, 15, directions, across) for r in all_momenta]
        for across in (True, False)
    )
    kernel = NUTS(eps, starting(DenseMetric, metric.covariance, momentum), max_depth=4)
    _, info = kernel.step(target, SameTurns(directions), state)
    np.testing.assert_array_equal(info.depth, expected)
    assert len(set(expected)) > 2
    assert simple != expected, "some turn where two halves meet, and nowhere else"


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
def test_a_cliff_is_a_divergence_and_no_warning():
    """Gradients near the largest number, met in the middle of a tree."""

    def cliff(position):
        excess = np.maximum(np.abs(position) - 2.0, 0.0)
        value = -0.5 * np.sum(position**2, axis=1) - 1e200 * excess.sum(axis=1)
        return value, -position - 1e200 * np.sign(position) * (excess > 0)

    kernel, rng = NUTS(0.3), np.random.default_rng(0)
    state, n_divergent = kernel.init(cliff, np.zeros((200, 2))), 0
    for _ in range(20):
        state, info = kernel.step(cliff, rng, state)
        n_divergent += info.divergent.sum()
        assert np.all(np.abs(state.position) <= 2)
    assert n_divergent > 0

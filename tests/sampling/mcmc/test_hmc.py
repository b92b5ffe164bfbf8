"""Hamiltonian Monte Carlo: acceptance, and why the path is jittered (M7)."""

import numpy as np
import pytest
from targets import Banana, Gaussian, departure, moved, path

from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    MCLMC,
    ChEES,
    DiagonalMetric,
    Phase,
    hamiltonian,
)

PERIOD = 12
FULL_CIRCLE = 2 * np.sin(np.pi / PERIOD)  # the step size with which PERIOD steps are a whole turn
UNIT = Gaussian(np.eye(2))


@pytest.mark.equation("M7")
def test_the_acceptance_is_exp_of_minus_the_energy_error_of_the_path():
    target, rng = Banana(), np.random.default_rng(0)
    start = target.draw(rng, 200)
    momentum = rng.standard_normal(start.shape)

    class Given(DiagonalMetric):
        def draw_momentum(self, rng, like):
            return momentum

    metric = Given(np.ones(2))
    kernel = HMC(0.25, path=2.0, metric=metric, jitter=0.0, small_steps=0.0)
    state = kernel.init(target, start)
    new, info = kernel.step(target, rng, state)
    begin = Phase(state.position, momentum, state.log_density, state.gradient)
    end = path(target, metric, begin, 0.25, 8)
    error = hamiltonian(metric, end) - hamiltonian(metric, begin)
    assert error.max() > 1
    np.testing.assert_allclose(info.acceptance, np.exp(np.minimum(0, -error)), rtol=1e-12)
    np.testing.assert_array_equal(
        new.position, np.where(info.accepted[:, None], end.position, start)
    )
    np.testing.assert_array_equal(info.gradients, 8)


def whole_turn(jitter):
    """A path of a whole period, at most."""
    return HMC(FULL_CIRCLE, (PERIOD - 1e-6) * FULL_CIRCLE, jitter=jitter, small_steps=0.0)


def spread_after(jitter, steps=40):
    """Chains that start at (3, 3) on N(0, I), with paths of a whole period."""
    kernel = whole_turn(jitter)
    assert kernel.steps == PERIOD
    start, rng = np.full((4000, 2), 3.0), np.random.default_rng(3)
    return moved(kernel, UNIT, start, rng, steps)


@pytest.mark.equation("M7")
def test_without_jitter_a_periodic_path_never_leaves_its_start():
    """Every proposal is accepted, pi is stationary, and nothing ever moves: not ergodic."""
    np.testing.assert_allclose(spread_after(0.0), 3.0, atol=1e-10)


@pytest.mark.equation("M7")
@pytest.mark.parametrize("jitter", [0.5, 1.0])
def test_jitter_mends_it(jitter):
    # the energy error of so large a step is small: 40 steps are enough to forget the start
    assert departure(spread_after(jitter)) < 4.5


@pytest.mark.equation("M7")
def test_jitter_draws_every_number_of_steps_alike():
    kernel, rng = HMC(0.1, path=0.8), np.random.default_rng(0)
    state = kernel.init(UNIT, np.ones((1, 2)))
    steps = [int(kernel.step(UNIT, rng, state)[1].gradients[0]) for _ in range(2000)]
    counts = np.bincount(steps, minlength=9)
    assert counts[0] == 0
    assert len(counts) == 9
    assert np.all(np.abs(counts[1:] - 250) < 4.5 * np.sqrt(250))
    some = HMC(0.1, path=0.8, jitter=0.25)
    steps = [int(some.step(UNIT, rng, state)[1].gradients[0]) for _ in range(200)]
    assert set(steps) == {7, 8}


@pytest.mark.equation("M7")
def test_a_chain_leaves_a_place_where_the_leapfrog_is_not_stable_with_the_step_size():
    """Of a unit Gaussian the limit is 2: 20 steps of 20 end far outside, one in 100 does not."""
    start = np.random.default_rng(5).standard_normal((50, 2))
    for share, staying in ((0.0, 50), (0.1, 0)):
        kernel = HMC(20.0, path=399.0, jitter=0.0, small_steps=share)
        end = moved(kernel, UNIT, start, np.random.default_rng(6), 500)
        assert (end == start).all(axis=1).sum() == staying


@pytest.mark.equation("M7", "D49")
@pytest.mark.parametrize("kernel", [HMC(1e3, path=1e4), MAMS(1e6, 1e7), MCLMC(1e6, 1e7)])
def test_a_path_that_explodes_is_refused_or_taken_back_and_reported(kernel):
    state = kernel.init(Banana(), np.ones((6, 2)))
    new, info = kernel.step(Banana(), np.random.default_rng(0), state)
    np.testing.assert_array_equal(new.position, 1.0)
    assert info.divergent.all()
    assert not info.accepted.any()
    assert np.all(info.acceptance == 0)
    assert np.all(np.isfinite(info.energy))


STEPS = {
    "hmc": lambda step_size, path, **most: HMC(step_size, path, **most).steps,
    "chees": lambda step_size, path, **most: ChEES(step_size, 2.0 * path, **most).steps(1),
    "mams": lambda step_size, path, **most: MAMS(step_size, path / 2.0, **most).steps(1),
}


@pytest.mark.parametrize("kernel", STEPS)
def test_a_path_has_one_step_at_least_and_max_steps_at_most(kernel):
    steps = STEPS[kernel]
    assert steps(5.0, 1.0) == 1
    assert steps(1e-3, 1.0) == 1000
    assert steps(1e-3, 10.0) == 1000
    assert steps(0.3, 1.0) == 4
    # whatever the step size: where path / step_size is 0 or infinite, too
    assert steps(1e10, 1e-320) == 1
    assert steps(5e-324, 1.0) == 1000
    assert steps(5e-324, 1.0, max_steps=7) == 7

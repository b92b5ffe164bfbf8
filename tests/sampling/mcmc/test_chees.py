"""HMC that finds its path length: Halton's numbers, the criterion's slope, the warm-up (D47)."""

from dataclasses import dataclass, replace
from math import exp, log, pi

import numpy as np
import pytest
from targets import Gaussian, correlated, path

from bbb_numpy.sampling.mcmc import ChEES, DenseMetric, DiagonalMetric, Info, Phase
from bbb_numpy.sampling.mcmc.chees import (
    PathLength,
    criterion_slope,
    halton,
    mean_slope,
)
from bbb_numpy.sampling.run import sample_target

METRICS = {
    "diagonal": DiagonalMetric(np.array([0.5, 1.6, 0.7])),
    "dense": DenseMetric(np.array([[1.0, 0.5, 0.1], [0.5, 0.8, 0.2], [0.1, 0.2, 0.6]])),
}


# --- Halton's numbers ---------------------------------------------------------------------------


@pytest.mark.equation("D47")
@pytest.mark.parametrize("bits", [1, 2, 5, 10])
def test_the_first_numbers_of_halton_are_all_multiples_of_a_power_of_two_once(bits):
    numbers = [halton(index) for index in range(1, 2**bits)]
    assert sorted(numbers) == [k / 2**bits for k in range(1, 2**bits)]
    assert numbers[:7] == [1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8, 3 / 8, 7 / 8][: len(numbers)]


# --- the slope ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flights:
    """Some chains on a quartic, their paths, and the acceptances of these."""

    metric: object
    step_size: float = 2e-3
    acceptance = np.array([0.9, 0.2, 1.0, 0.0, 0.6])

    @staticmethod
    def target(position):
        value = -0.5 * np.sum(position**2, axis=1) - 0.1 * np.sum(position**4, axis=1)
        return value, -position - 0.4 * position**3

    def end(self, steps):
        rng = np.random.default_rng(3)
        position, momentum = rng.standard_normal((2, 5, 3))
        value, gradient = self.target(position)
        phase = Phase(position, momentum, value, gradient)
        return position, path(self.target, self.metric, phase, self.step_size, steps)

    def terms(self, steps, center):
        """Each chain's (|theta' - m'|^2 - |theta - m|^2)^2 / 4, by solving with M^-1."""
        start, end = self.end(steps)
        matrix = getattr(self.metric, "covariance", None)
        matrix = np.diag(self.metric.variance) if matrix is None else matrix
        after, before = (
            np.einsum("sd,sd->s", u, np.linalg.solve(matrix, u.T).T)
            for u in (end.position - center, start - start.mean(axis=0))
        )
        return 0.25 * (after - before) ** 2


@pytest.mark.equation("D47")
@pytest.mark.parametrize("metric", METRICS)
def test_the_slope_is_that_of_the_criterion_along_the_path(metric):
    """By differences along the path, a step each way."""
    flights = Flights(METRICS[metric])
    (start, end), steps, acceptance = flights.end(40), 40, flights.acceptance
    center = acceptance @ end.position / acceptance.sum()
    slope = criterion_slope(
        flights.metric, start, end.position, end.momentum, acceptance, steps * flights.step_size
    )
    # log T grows by d where h T grows by a factor e^d: by one step
    ahead, behind = (flights.terms(steps + sign, center) for sign in (1, -1))
    numeric = (ahead - behind) / log((steps + 1) / (steps - 1))
    numeric[acceptance == 0.0] = 0.0
    assert np.abs(slope - numeric).max() < 1e-3 * np.abs(numeric).max()


@pytest.mark.equation("D47")
def test_the_mean_slope_weighs_each_chain_by_its_acceptance():
    slope, acceptance = np.array([3.0, -1.0, 100.0]), np.array([0.5, 1.0, 0.0])
    assert mean_slope(slope, acceptance) == pytest.approx((1.5 - 1.0) / 1.5, rel=1e-15)
    assert mean_slope(slope, np.zeros(3)) == 0.0


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan, 1e200])
def test_an_end_that_is_no_number_has_no_part_in_the_slope(wrong):
    rng = np.random.default_rng(1)
    start, end, momentum = rng.standard_normal((3, 4, 3))
    acceptance = np.array([0.3, 0.0, 0.7, 1.0])
    alone = criterion_slope(METRICS["dense"], start, end, momentum, acceptance, 1.0)
    end[1], momentum[1] = wrong, wrong
    slope = criterion_slope(METRICS["dense"], start, end, momentum, acceptance, 1.0)
    np.testing.assert_array_equal(slope, alone)
    assert slope[1] == 0.0
    none = criterion_slope(METRICS["dense"], start, end, momentum, np.zeros(4), 1.0)
    np.testing.assert_array_equal(none, 0.0)


# --- Adam on the log path -----------------------------------------------------------------------


def climbed(slope, start=0.3, draws=3000, shortest=1e-3, longest=1e3):
    length = PathLength.start(start)
    for _ in range(draws):
        length = length.update(slope(length.log_path), shortest, longest)
    return length


@pytest.mark.equation("D47")
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_adam_finds_the_path_where_the_slope_changes_its_sign(size):
    """Of any size: only relative to each other do slopes count. They are noisy, as true ones."""
    for start in (0.2, 5.0):
        noise = np.random.default_rng(0)
        length = climbed(lambda at, n=noise: size * (log(2.0) - at + n.standard_normal()), start)
        assert exp(length.log_mean) == pytest.approx(2.0, rel=0.1)


@pytest.mark.equation("D47")
def test_the_first_updates_of_the_path_by_hand():
    """Adam: the mean square is that of the slopes so far, without the 0 that it starts from."""
    start = PathLength.start(2.0)
    first = start.update(-3.0, 1e-3, 1e3)
    assert first.log_path == pytest.approx(log(2.0) - 0.025), "one slope is as large as their mean"
    assert first.log_mean == first.log_path
    second = first.update(1.0, 1e-3, 1e3)
    square = (0.95 * 3.0**2 + 1.0**2) / (0.95 + 1.0)
    assert second.log_path == pytest.approx(first.log_path + 0.025 / square**0.5)
    share = 2**-0.75
    expected = share * second.log_path + (1 - share) * first.log_mean
    assert second.log_mean == pytest.approx(expected)


@pytest.mark.equation("D47")
def test_the_path_stays_between_its_bounds():
    assert exp(climbed(lambda at: 1.0).log_path) == pytest.approx(1e3)
    assert exp(climbed(lambda at: -1.0).log_path) == pytest.approx(1e-3)


@pytest.mark.parametrize("wrong", [0.0, np.nan, np.inf, -np.inf, 1e200])
def test_a_slope_that_says_nothing_changes_nothing(wrong):
    length = climbed(lambda at: 0.5 - at, draws=7)
    assert length.update(wrong, 1e-3, 1e3) == length


# --- the kernel ---------------------------------------------------------------------------------


@pytest.mark.equation("D47")
@pytest.mark.parametrize(
    ("turn", "share"), [(1, 1), (2, 1 / 2), (100, 1 / 100), (101, 1 / 100), (5000, 1 / 100)]
)
def test_the_center_of_a_chain_is_the_mean_of_its_places_and_forgets_after_a_hundred(turn, share):
    target, kernel, rng = correlated(), ChEES(0.2, 2.0), np.random.default_rng(0)
    state = kernel.init(target, target.draw(rng, 4))
    state = state._replace(halton_index=np.full(4, turn - 1), center=rng.standard_normal((4, 3)))
    new, info = kernel.step(target, rng, state)
    assert info.accepted.any()
    expected = (1.0 - share) * state.center + share * new.position
    np.testing.assert_allclose(new.center, expected, rtol=1e-12, atol=1e-15)


def test_the_slope_of_a_step_sees_each_chain_from_its_own_center():
    """Under a constant density a chain that is moved with its center has the same slope."""

    def flat(position):
        return np.zeros(len(position)), np.zeros_like(position)

    def slope(shift):
        state = ChEES(0.2, 2.0).init(flat, start + shift)._replace(center=shift)
        return ChEES(0.2, 2.0).step(flat, np.random.default_rng(1), state)[0].slope

    start, shift = np.random.default_rng(0).standard_normal((2, 4, 3))
    np.testing.assert_allclose(slope(shift), slope(0.0 * shift), rtol=1e-9)


def test_a_warm_up_leaves_no_path_longer_than_the_steps_that_are_allowed():
    target, kernel = correlated(), ChEES(0.2, 2.0, max_steps=3)
    start = kernel.init(target, target.draw(np.random.default_rng(0), 4))
    state, info = kernel.step(target, np.random.default_rng(1), start)
    rising = state._replace(slope=np.ones(4))
    length = PathLength.start(0.5)
    for _ in range(60):
        length = length.after_draw(kernel, rising, info, 0.2, True)
    assert exp(length.log_path) == pytest.approx(3 * 0.2)


def test_divergent_chains_are_rejected_and_leave_the_path_to_the_others():
    """Two chains of four lie where steps are far too large; the others learn as if alone."""

    def target(position):
        stiff = np.where(position[:, :1] > 50.0, 1e8, 1.0)
        return -0.5 * np.sum(stiff * position**2, axis=1), -stiff * position

    start = np.random.default_rng(0).standard_normal((4, 2))
    start[2:, 0] = 100.0
    kernel = ChEES(0.5, 40.0)
    state = kernel.init(target, start)
    for _ in range(5):
        state, info = kernel.step(target, np.random.default_rng(1), state)
        assert info.divergent.tolist() == [False, False, True, True]
        assert np.isfinite(np.concatenate([part.ravel() for part in state])).all()
        assert np.all(state.slope[2:] == 0.0)
        assert np.all(state.slope[:2] != 0.0)


# --- the warm-up --------------------------------------------------------------------------------


def learned(target, chains, warm_up=300, seed=0, dtype=float, **options):
    start = target.draw(np.random.default_rng(seed + 100), chains).astype(dtype)
    return sample_target(
        target, start, sampler=ChEES(), draws=1, warm_up=warm_up, seed=seed, **options
    ).kernel


def equicorrelated(correlation=0.95, size=6):
    """A diagonal metric cannot see its widest direction, of deviation 2.4, the others' 0.22."""
    return correlated(correlation, np.ones(size))


def rate(kernel, target, draws=100, chains=64):
    """Effective draws per gradient, of x^T 1 and of its square: the worse of the two.

    From one lag to the next, in both directions of time; of as many chains a lag of 1 is enough to
    order kernels whose autocorrelations fall geometrically.
    """
    state = kernel.init(target, target.draw(np.random.default_rng(9), chains))
    rng, positions, gradients = np.random.default_rng(8), [], 0
    for _ in range(draws):
        state, info = kernel.step(target, rng, state)
        positions.append(state.position.sum(axis=1))
        gradients += int(info.gradients[0])
    total = np.array(positions)
    rates = []
    for values in (total, total**2):
        gap = values - values.mean()
        correlation = np.mean(gap[1:] * gap[:-1]) / np.mean(gap**2)
        rates.append((1.0 - correlation) / (1.0 + correlation) * draws / gradients)
    return min(rates)


@pytest.mark.equation("D47")
def test_the_learned_path_is_near_the_best_of_a_grid():
    target = equicorrelated()
    kernel = learned(target, 4)
    best = {
        factor: rate(replace(kernel, path=factor * kernel.path), target)
        for factor in (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
    }
    assert best[1.0] > 0.6 * max(best.values())
    assert min(best.values()) < 0.5 * max(best.values()), "the path must matter here"


def test_the_harmonic_mean_is_nothing_where_one_chain_is_stuck():
    for acceptance, mean in (([0.5, 1.0], 2 / 3), ([0.0, 1.0], 0.0)):
        info = Info(np.array(acceptance), *[np.zeros(2)] * 5)
        assert ChEES().adaptation_error(None, None, None, info, 0.9) == pytest.approx(0.9 - mean)


def warmed(kernel, target, warm_up, chains=4, seed=0):
    """Yield the adaptation after every draw of a warm-up."""
    rng = np.random.default_rng(seed)
    state = kernel.init(target, target.draw(rng, chains))
    adaptation = kernel.adapt(target, rng, state, warm_up)
    yield adaptation
    for _ in range(warm_up):
        state, info = adaptation.kernel.step(target, rng, state)
        adaptation = adaptation.update(target, rng, state, info)
        yield adaptation


def test_a_path_begins_short_and_begins_again_with_every_metric_but_the_last():
    adaptations = list(warmed(ChEES(), Gaussian(np.diag([1e-4, 1.0])), 300))
    for draw in (0, 100, 150):
        kernel = adaptations[draw].kernel
        assert kernel.path == ChEES().init_path(kernel.step_size) <= max(kernel.step_size, pi / 2)
        assert adaptations[draw].length.n_draws == 0
    assert adaptations[0].kernel.path == 16 * adaptations[0].kernel.step_size
    assert adaptations[250].length.n_draws > 0, "the last metric came after this draw"
    assert adaptations[300].kernel.path == exp(adaptations[300].length.log_mean)

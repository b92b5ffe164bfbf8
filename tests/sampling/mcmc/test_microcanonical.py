"""Microcanonical Langevin: its motion, its energy, its tuning, and its bias (D48, D49, D50)."""

import copy
import warnings
from math import exp, sqrt

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from targets import Banana, Gaussian, correlated

from bbb_numpy.sampling.mcmc import (
    MAMS,
    MCLMC,
    DiagonalMetric,
    Phase,
)
from bbb_numpy.sampling.mcmc.metrics import identity
from bbb_numpy.sampling.mcmc.microcanonical import (
    bias,
    directions,
    energy_variance,
    excess,
    isokinetic,
    kick,
    refreshed,
)
from bbb_numpy.sampling.run import sample_target


def phases(target, metric, size, chains=20, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    position = spread * rng.standard_normal((chains, size))
    value, gradient = target(position)
    return Phase(position, directions(metric, rng, position), value, gradient)


# --- the kick ------------------------------------------------------------------------------------


@pytest.mark.equation("D49")
@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_kick_solves_its_differential_equation(size):
    """Scipy integrates dr/dt = (g - r (r.g)) / (D - 1) and the work r.g along it."""
    rng = np.random.default_rng(size)
    metric = identity(np.zeros((1, size)))
    gradient = 4.0 * rng.standard_normal((1, size))
    begin = directions(metric, rng, gradient)

    def motion(_, solution):
        r, g = solution[:-1], gradient[0]
        return np.append((g - r * (r @ g)) / (size - 1), r @ g)

    for time in (0.3, 2.0, -1.0):
        exact = integrate.solve_ivp(
            motion, (0.0, time), np.append(begin[0], 0.0), rtol=1e-11, atol=1e-12
        ).y[:, -1]
        end, work = kick(metric, begin, gradient, time)
        np.testing.assert_allclose(end[0], exact[:-1], atol=1e-8)
        np.testing.assert_allclose(work, exact[-1], atol=1e-7)


@pytest.mark.equation("D49")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_kick_overflows(dtype):
    metric = identity(np.zeros((1, 3), dtype))
    along = np.array([[1.0, 0.0, 0.0]], dtype)
    across = np.array([[0.0, 1.0, 0.0]], dtype)
    unturned, none = kick(metric, across, np.zeros((1, 3), dtype), 0.5)
    np.testing.assert_array_equal(unturned, across)
    assert none == 0.0
    for size in (1.0, 1e4, 1e15):
        force = size * along
        np.testing.assert_allclose(kick(metric, along, force, 2.0)[1], 2.0 * size, rtol=1e-6)
        turned, work = kick(metric, across, force, 2.0)
        assert np.isfinite(work).all()
        assert work == pytest.approx(2.0 * np.logaddexp(size, -size) - 2.0 * np.log(2), rel=1e-5)
        assert turned.dtype == dtype
        if size > 1.0:
            np.testing.assert_allclose(turned, along, atol=1e-6)


# --- the step ------------------------------------------------------------------------------------


def energy_errors(target, metric, phase, eps):
    new, work = isokinetic(target, metric, phase, eps)
    return phase.log_density - new.log_density + work


@pytest.mark.equation("D48")
def test_refreshed_directions_forget_by_1_over_e_in_a_length_l_and_stay_uniform():
    size, rng = 40, np.random.default_rng(0)
    metric = identity(np.zeros((1, size)))
    begin = directions(metric, rng, np.zeros((4000, size)))
    end = begin
    for _ in range(10):
        end = refreshed(metric, rng, end, 0.2, 2.0)
    assert np.mean(np.sum(begin * end, axis=1)) == pytest.approx(np.exp(-1.0), abs=0.03)
    assert np.abs(end.mean(axis=0)).max() * np.sqrt(4000 * size) < 4.5
    np.testing.assert_allclose(np.sum(end * end, axis=1), 1.0, rtol=1e-12)
    plane = identity(np.zeros((1, 2)))
    r = directions(plane, rng, np.zeros((4000, 2)))
    angle = np.arctan2(*refreshed(plane, rng, r, 0.5, 1.0).T) / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 1e-4


# --- MCLMC: bias ---------------------------------------------------------------------------------


def stationary_variance(h):
    """V of N(0, I) in many dimensions: V = s^2, s tanh(h s / 2) = h / 2 (D50)."""
    return optimize.brentq(lambda s: s * np.tanh(0.5 * h * s) - 0.5 * h, 0.5, 3.0) ** 2


@pytest.mark.equation("D50")
def test_the_energy_variance_of_a_gaussian_is_h_to_the_sixth_over_144():
    size, h = 400, 0.5
    target, metric = Gaussian(np.eye(size)), identity(np.zeros((1, size)))
    phase = phases(target, metric, size, 2000)
    errors = energy_errors(target, metric, phase, h * sqrt(size))
    assert np.var(errors) / size == pytest.approx(h**6 / 144, rel=0.1)
    # so that the bias h^2 / 12 is (v / 12)^(1/3)
    assert bias(np.var(errors) / size) == pytest.approx(h * h / 12, rel=0.05)
    assert bias(5e-4) == pytest.approx(0.0347, abs=1e-4)
    # these began in the target, where E e^-error is 1 and the mean is half of the variance
    assert np.mean(errors) == pytest.approx(np.var(errors) / 2, abs=4 * errors.std() / 2000**0.5)
    assert energy_variance(1.0, 3) == 0.0
    for acceptance in (0.0, 0.4, 0.511, np.nan):
        assert energy_variance(acceptance, 3) == np.inf


def standard(position):
    """N(0, I) in any number of dimensions."""
    return -0.5 * np.sum(position**2, axis=1), -position


def mean_and_error(values):
    """Mean over chains (S,), and its standard error."""
    return values.mean(), values.std(ddof=1) / sqrt(len(values))


@pytest.mark.equation("D48")
def test_on_flat_land_directions_forget_themselves_within_a_draw():
    """u_0, ..., u_(n-1) of correlation e^(-h / l) a step add up to a persistent random walk."""

    def flat(position):
        return np.zeros(len(position)), np.zeros_like(position)

    h, length, start = 0.5, 2.0, np.zeros((2000, 100))
    kernel = MCLMC(h, decoherence_length=length)
    new, _ = kernel.step(flat, np.random.default_rng(0), kernel.init(flat, start))
    steps = np.arange(kernel.steps(100))
    squares = h * h * np.exp(-np.abs(steps[:, None] - steps) * h / length).sum()
    assert np.sum(new.position**2, axis=1).mean() == pytest.approx(squares, rel=0.03)


@pytest.mark.equation("D49")
def test_the_energy_that_mams_tells_is_that_of_where_it_stays_or_goes():
    kernel, start = MAMS(4.0), np.random.default_rng(1).standard_normal((40, 20))
    new, info = kernel.step(standard, np.random.default_rng(0), kernel.init(standard, start))
    assert 0 < info.accepted.sum() < 40
    assert np.array_equal(info.energy, -new.log_density)


@pytest.mark.equation("D50")
@pytest.mark.parametrize(
    ("size", "chains", "h"),
    [(100, 400, 0.645), (1000, 50, 0.95)],
)
def test_the_acceptance_and_the_bias_of_a_chain_are_those_that_are_told(size, chains, h):
    """In standard errors.

    v = (h^6 / 144) (1 + h^2 / 20 + O(h^4)), and the share (v / 12)^(1/3) leaves out 3/5 of its
    square.
    """
    rng, kernel = np.random.default_rng(0), MCLMC(h * sqrt(size))
    start = sqrt(stationary_variance(h)) * rng.standard_normal((chains, size))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "MCLMC is not adjusted")
        draws = sample_target(standard, start, sampler=kernel, draws=40, warm_up=0, seed=1)
    acceptance, error = mean_and_error(draws.stats["acceptance"].mean(axis=0))
    q = sqrt(size * (1 + h * h / 20)) * h**3 / 12
    assert abs(acceptance - (0.5 + exp(q * q / 2) * stats.norm.cdf(-q))) < 4 * error
    assert error < 0.003
    bias_seen, error = mean_and_error(np.mean(draws.positions**2, axis=(0, 2)) - 1.0)
    assert abs(bias_seen - (stationary_variance(h) - 1.0)) < 4 * error
    assert error < 0.0012
    expected_bias = draws.expected_bias
    assert abs(expected_bias + 0.6 * expected_bias**2 - bias_seen) < 4 * error


# --- MCLMC: tuning -------------------------------------------------------------------------------


def adapted(target, size, kernel, draws=60, warm_up=200, dtype=float, seed=0):
    start = np.random.default_rng(seed).standard_normal((16, size)).astype(dtype)
    return sample_target(target, start, sampler=kernel, draws=draws, warm_up=warm_up, seed=seed)


@pytest.mark.equation("D50")
def test_the_warm_up_finds_step_metric_and_length():
    size, dtype = 50, np.float32
    scales = np.geomspace(0.01, 100.0, size)
    draws = adapted(Gaussian(np.diag(scales)), size, "mclmc", draws=30, dtype=dtype)
    kernel = draws.kernel
    np.testing.assert_allclose(kernel.metric.variance / scales, 1.0, atol=0.5)
    h = kernel.step_size / sqrt(size)
    assert h == pytest.approx((144 * 5e-4) ** (1 / 6), rel=0.08)
    assert 0.5 * sqrt(size) <= kernel.decoherence_length <= sqrt(size)
    assert draws.expected_bias == pytest.approx(bias(5e-4), rel=0.2)
    assert draws.positions.dtype == dtype
    assert draws.divergences == 0


def length_of(adaptation, moments, jumps):
    """What the length would be after a window of these moments and jumps."""
    length = adaptation.length._replace(jumps=jumps)
    return length.after_window(adaptation.kernel, moments, None, False, False).length


def error_of(adaptation, target, rng, state, info):
    return adaptation.kernel.adaptation_error(target, rng, state, info, adaptation.target_accept)


@pytest.mark.equation("D50")
@pytest.mark.parametrize(
    ("kernel", "correlation", "length"),
    [
        (MCLMC(), 0.0, 0.4 * 2.0),  # the way from draw to draw is 2 l, of independent draws
        (MCLMC(), -0.1, 0.4 * 2.0 * 0.9 / 1.1),
        (MAMS(), 0.0, 0.5),  # 0.4 of a mean path l, and no less than half of it
        (MAMS(), 0.25, 0.4 * 1.25 / 0.75),
        (MAMS(), 0.9, 1.0),  # 7.6, and no more than the first
    ],
)
def test_the_length_is_two_fifths_of_the_way_per_effective_draw(kernel, correlation, length):
    """In units of root D, of moments as 30 draws of 8 chains with such neighbours have them."""
    target, rng = Gaussian(np.eye(4)), np.random.default_rng(0)
    adaptation = kernel.adapt(target, rng, kernel.init(target, target.draw(rng, 8)), 40)
    variance, count = np.array([0.1, 1.0, 2.0, 30.0]), 30 * 8
    for moving in (1.0, np.array([0.0, 1.0, 1.0, 1.0])) if correlation == 0.0 else (1.0,):
        moments = adaptation.moments._replace(n_draws=30, squares=moving * variance * (count - 8))
        new_length = length_of(
            adaptation, moments, 2.0 * (1.0 - correlation) * moving * variance * count
        )
        assert new_length == pytest.approx(2.0 * length)


@pytest.mark.equation("D50")
def test_the_length_is_renewed_at_the_end_of_every_window_but_the_first_from_its_draws():
    """By hand from draws 101 to 150, the second window; the other ends at 100."""
    target, rng, kernel = correlated(0.3), np.random.default_rng(0), MAMS()
    positions = target.draw(rng, 201 * 4).reshape(201, 4, 3)
    positions[1:] += 0.3 * positions[:-1]  # so that the length is at neither bound
    adaptations = [kernel.adapt(target, rng, kernel.init(target, positions[0]), 200)]
    info = kernel.step(target, rng, kernel.init(target, positions[0]))[1]
    info = info._replace(acceptance=np.full(4, 0.9))
    for position in positions[1:]:
        adaptations.append(adaptations[-1].update(target, rng, kernel.init(target, position), info))
    lengths = [adaptation.kernel.decoherence_length for adaptation in adaptations]
    assert [k for k in range(1, 201) if lengths[k] != lengths[k - 1]] == [150]
    jumps = np.sum((positions[101:151] - positions[100:150]) ** 2, axis=(0, 1))
    moments = adaptations[149].moments.update(positions[150])
    assert lengths[150] == pytest.approx(length_of(adaptations[149], moments, jumps))
    assert 0.5 * sqrt(3) < lengths[150] < sqrt(3)


@pytest.mark.equation("D50")
def test_what_mclmc_learns_its_step_from_is_the_energy_error_of_a_trial_step():
    """A tenth of by how much the energy variance per dimension is above the wanted one."""
    target, rng = correlated(0.3), np.random.default_rng(0)
    kernel = MCLMC(metric=DiagonalMetric(np.array([1.2, 0.1, 8.0])), energy_variance=2e-3)
    state = kernel.init(target, target.draw(rng, 8))
    adaptation = kernel.adapt(target, rng, state, 40)
    assert adaptation.kernel.metric is kernel.metric
    adaptation = adaptation._replace(kernel=kernel.tuned(0.4, kernel.metric))
    momentum = directions(kernel.metric, copy.deepcopy(rng), state.position)
    phase = Phase(state.position, momentum, *state[1:])
    errors = energy_errors(target, kernel.metric, phase, 0.4)
    error = error_of(adaptation, target, rng, state, None)
    assert error == pytest.approx(0.1 * (np.mean(errors**2) / (3 * 2e-3) - 1.0))
    assert abs(error) < 0.9


class Wall:
    """A standard Gaussian that is no number beyond 1.5 in the first direction."""

    def __call__(self, position):
        value, gradient = -0.5 * np.sum(position**2, axis=1), -position
        return np.where(position[:, 0] > 1.5, np.nan, value), gradient


@pytest.mark.equation("D50")
def test_an_error_that_is_no_number_makes_the_step_smaller_and_harms_nothing():
    for wrong in (np.nan, np.inf, 1e200):
        assert excess(np.array([0.1, wrong]), 2, 5e-4) == 10.0
    assert excess(np.array([0.1, -0.1]), 2, 5e-3) == pytest.approx(1.0)
    assert excess(np.array([0.1]), 1, 1e-2 / 9.5) == pytest.approx(9.5)
    assert excess(np.array([0.1]), 1, 1e-2 / 10.5) == 10.0
    small = np.array([1e-23, -1e-23], np.float32)  # whose squares single precision does not hold
    assert excess(small, 1, 1e-46) == pytest.approx(1.0)
    start = np.random.default_rng(0).uniform(-1, 1, (16, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # divergent, as it should be
        draws = sample_target(Wall(), start, sampler="mclmc", draws=50, warm_up=50, seed=0)
    assert np.isfinite(draws.step_size)
    assert draws.step_size > 1e-3
    assert np.isfinite(draws.positions).all()
    assert draws.positions[..., 0].max() <= 1.5
    assert draws.divergences > 0


@pytest.mark.equation("D50")
def test_a_bias_of_a_tenth_of_a_deviation_is_told():
    """Curved, and too large a step: a mean is wrong by more than that, and it says so."""
    target, rng = Banana(), np.random.default_rng(0)
    mean, deviation = np.array([0.0, 1.0]), np.array([1.0, sqrt(2.0 + 0.5**2)])
    start = target.draw(rng, 300)

    def off(draws):
        return np.abs((draws.flat.mean(axis=0) - mean) / deviation).max()

    options = {"draws": 20, "warm_up": 50, "seed": 1}
    with pytest.warns(UserWarning, match=r"MCLMC is not adjusted.*variances are off by about"):
        rough = sample_target(target, start, sampler=MCLMC(energy_variance=0.3), **options)
    assert off(rough) > 0.1
    assert 0.08 < rough.expected_bias < 0.2
    share = f"{100 * rough.expected_bias:.2g}"
    assert f"unadjusted: variances off by about {share} %" in rough.summary()
    default = sample_target(target, start, sampler="mclmc", **options)  # a warning is an error
    assert off(default) < 0.3 * off(rough)
    assert 0.0 < default.expected_bias < 0.06


def test_paths_that_are_refused_on_a_ridge_are_told():
    """Where HMC diverges; of a Gaussian none is, and shorter steps end it."""
    banana, gaussian = Banana(), Gaussian(np.eye(2))
    start = banana.draw(np.random.default_rng(0), 300)
    options = {"draws": 20, "warm_up": 0, "seed": 1}
    with pytest.warns(UserWarning, match="steps of MAMS were too large in .*Raise target_accept"):
        draws = sample_target(banana, start, sampler=MAMS(0.4), **options)
    assert draws.divergences == 0
    assert draws.too_large_steps == np.mean(draws.stats["acceptance"] < np.exp(-5.0)) > 0.001
    assert sample_target(banana, start, sampler=MAMS(0.1), **options).too_large_steps < 0.001
    assert sample_target(gaussian, start, sampler=MAMS(0.4), **options).too_large_steps == 0.0


# --- what is refused -----------------------------------------------------------------------------


class Against(DiagonalMetric):
    """Momenta against the first axis."""

    def draw_momentum(self, rng, like):
        return np.tile(np.array([[-1.0, 0.0]], like.dtype), (len(like), 1))


@pytest.mark.equation("D49")
@pytest.mark.parametrize("kernel", [MAMS, MCLMC])
@pytest.mark.parametrize(("force", "dtype"), [(1e15, np.float64), (60.0, np.float32)])
def test_a_way_out_exactly_against_a_strong_force_is_a_divergence_and_no_warning(
    kernel, force, dtype
):
    """The kick of which rounding leaves 0 / 0 or log 0: infinities of both signs in the energy."""

    def slope(position):
        gradient = np.zeros_like(position)
        gradient[:, 0] = force
        return np.where(position[:, 0] < -0.5, -np.inf, force * position[:, 0]), gradient

    tried = kernel(1.0, metric=Against(np.ones(2, dtype)))
    state = tried.init(slope, np.zeros((4, 2), dtype))
    new, info = tried.step(slope, np.random.default_rng(0), state)
    np.testing.assert_array_equal(new.position, 0.0)
    assert info.divergent.all()
    np.testing.assert_array_equal(info.acceptance, 0.0)
    adaptation = tried.adapt(slope, np.random.default_rng(0), state, 9)._replace(kernel=tried)
    error = error_of(adaptation, slope, np.random.default_rng(0), state, info)
    assert error == pytest.approx(0.9), "of an acceptance of 0.9, or 0.1 (10 - 1)"

"""SGHMC and SGLD: the law of their draws, minibatches, cycles, and the bias told (D64, D65)."""

import copy
import warnings
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from targets import Banana, Gaussian, chain_means

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, LogJoint, Model
from bbb_numpy.sampling.mcmc import SGHMC, DenseMetric
from bbb_numpy.sampling.mcmc.stochastic import heat
from bbb_numpy.sampling.run import sample_target

PRECISION = np.array([[2.0, 0.5], [0.5, 0.8]])
NOISE = np.array([[3.0, -1.0], [-1.0, 2.0]])  # of the gradient; does not commute with PRECISION
EXACT = Gaussian(np.linalg.inv(PRECISION))
METRIC = DenseMetric(np.array([[1.0, 0.4], [0.4, 0.7]]))
SCHEMES = list(product([0.7, 5.0, np.inf], [1.0, 0.5]))  # friction, temperature


@dataclass(frozen=True, eq=False)
class Noisy(Gaussian):
    """A Gaussian whose minibatches add noise of a known covariance to the gradient."""

    noise: np.ndarray | None = None

    def draw_rows(self, rng, chains, size):
        return rng.standard_normal((chains, len(self.noise))) @ np.linalg.cholesky(self.noise).T

    def __call__(self, position, rows=0.0):
        value, gradient = super().__call__(position)
        return value, gradient + rows


NOISY = Noisy(EXACT.covariance, 0.0, NOISE)


def law(precision, noise, h, friction, temperature):
    """The covariances of positions and momenta in the boxes of D64, where the metric is I."""
    of_precision, rotation = np.linalg.eigh(precision)
    kappa = 1.0 / np.tanh(friction * h / 2.0)
    m, d = (of_precision[:, None] + sign * of_precision for sign in (1, -1))
    m, d = m / 2.0, d / 2.0
    above = temperature * np.eye(len(m)) + h**2 / 4 * kappa * (rotation.T @ noise @ rotation)
    x = above / (m - h**2 / 4 * m**2 + h**2 / 4 * kappa**2 * d**2)
    return rotation @ x @ rotation.T, rotation @ (m * x) @ rotation.T


class Dealt:
    """A generator that deals given rows and normal numbers."""

    def __init__(self, rows, normals):
        self.rows, self.normals = rows, normals

    def integers(self, high, size):
        return np.broadcast_to(self.rows, size)

    def standard_normal(self, shape, dtype):
        return np.broadcast_to(self.normals, shape)


def affine(kernel, target, size, rows=()):
    """G, o and C of one step of the shipped kernel, z' = z G + o + normals C, read off."""

    def step(both, normals=0.0):
        x, r = both[:, :size].copy(), both[:, size:]
        state = kernel.init(target, x)._replace(momentum=r)
        new, _ = replace(kernel, steps=1).step(target, Dealt(rows, normals), state)
        return np.concatenate([new.position, new.momentum], axis=1)

    zero = np.zeros((1, 2 * size))
    offset = step(zero)[0]
    by_noise = [step(zero, each)[0] - offset for each in np.eye(size)]
    return step(np.eye(2 * size)) - offset, offset, np.array(by_noise)


def kept(maps, noise):
    """The second moments S = mean G^T S G + noise of maps that are equally probable."""
    size = len(noise)
    both = np.mean([np.kron(g.T, g.T) for g in maps], axis=0)
    assert np.abs(np.linalg.eigvals(both)).max() < 1.0
    return np.linalg.solve(np.eye(size**2) - both, noise.ravel()).reshape(size, size)


@pytest.mark.equation("D64")
@pytest.mark.parametrize(("friction", "temperature"), SCHEMES)
def test_the_shipped_step_keeps_the_law_of_the_box(friction, temperature):
    """No draws: from the matrices of the step itself, with a metric, to rounding."""
    kernel = SGHMC(0.7, friction, METRIC, temperature=temperature)
    g, _, c = affine(kernel, EXACT, 2)
    errors = [affine(kernel, partial(NOISY, rows=error), 2)[1] for error in np.eye(2)]
    covariance = kept([g], c.T @ c + np.transpose(errors) @ NOISE @ errors)
    factor = np.linalg.cholesky(METRIC.covariance)  # x = F x', r = F^-T r', where M = I
    inside = [factor.T @ each @ factor for each in (PRECISION, NOISE)]
    position, momentum = law(*inside, 0.7, friction, temperature)
    np.testing.assert_allclose(covariance[:2, :2], factor @ position @ factor.T, rtol=1e-12)
    np.testing.assert_allclose(factor.T @ covariance[2:, 2:] @ factor, momentum, rtol=1e-12)


@pytest.mark.equation("D64", "D65")
@pytest.mark.parametrize(("friction", "temperature"), [(0.7, 1.0), (0.7, 0.5), (np.inf, 1.0)])
def test_draws_have_that_law_and_tell_its_bias(friction, temperature):
    """In standard errors; so large a bias is warned of."""
    kernel = SGHMC(0.7, friction, steps=10, temperature=temperature)
    start = EXACT.draw(np.random.default_rng(0), 400)
    with pytest.warns(UserWarning, match="SGHMC is not adjusted.*a smaller bias, e.g. 0.03"):
        draws = sample_target(NOISY, start, sampler=kernel, draws=80, warm_up=0, seed=1)
    x = draws.positions[20:]
    position, momentum = law(PRECISION, NOISE, 0.7, friction, temperature)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        mean, error = chain_means(x[..., i] * x[..., j])
        assert abs(mean - position[i, j]) < 4 * error
        assert error < 0.05 * position[1, 1]
    expected_bias = draws.expected_bias
    share = np.trace(PRECISION @ position) / (2 * temperature) - 1
    assert share == pytest.approx(np.trace(momentum) / (2 * temperature) - 1, rel=1e-12)
    assert expected_bias == pytest.approx(share, rel=0.05)
    assert (draws.stats["gradients"] == 11).all()


@pytest.mark.equation("D65")
def test_the_heat_of_momenta_is_that_of_places_far_from_a_gaussian_too():
    """E[-x.g] = tr E[r r^T] for any density, which would be D of draws of the density itself."""
    kernel, banana = SGHMC(0.4, 2.0, steps=12), Banana(2.0)
    start = banana.draw(np.random.default_rng(0), 400)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SGHMC is not adjusted")
        draws = sample_target(banana, start, sampler=kernel, draws=60, warm_up=0, seed=1)
    x, kinetic = draws.positions, draws.stats["energy"] + draws.log_density
    _, gradient = banana(draws.flat)
    virial = -np.sum(x * gradient.reshape(x.shape), axis=2)[10:]
    mean, error = chain_means(virial - 2.0 * kinetic[10:])
    assert abs(mean) < 4 * error
    assert chain_means(virial)[0] > 2.0 + 4 * error  # and the steps do heat


@pytest.mark.equation("D65")
@pytest.mark.parametrize(("step_size", "friction"), [(0.19, 10.0), (0.25, np.inf)])
def test_draws_too_hot_for_a_ridge_are_told_and_their_variance_is_too_small(step_size, friction):
    """Where the momenta tell that it is too wide by a tenth; of a Gaussian no draw is so hot."""
    banana, kernel = Banana(), SGHMC(step_size, friction, steps=50)
    start = banana.draw(np.random.default_rng(0), 400)
    with pytest.warns(UserWarning, match=r"steps of SGHMC were too large in .*a smaller bias"):
        draws = sample_target(banana, start, sampler=kernel, draws=20, warm_up=20, seed=1)
    assert draws.too_large_steps > 0.003
    assert 0.05 < draws.expected_bias < 0.2
    assert draws.flat[:, 1].var() < 0.85 * 2.25
    gaussian = Gaussian(np.diag([1.0, 0.2]))
    start = gaussian.draw(np.random.default_rng(0), 400)
    of_gaussian = sample_target(gaussian, start, sampler=kernel, draws=10, warm_up=0, seed=1)
    assert of_gaussian.too_large_steps < 0.001  # and a warning would be an error


# --- minibatches ---------------------------------------------------------------------------------


def regression():
    """Three rows and two weights: a line without hidden units, of known noise."""
    x = np.array([[-1.0], [0.5], [2.0]])
    model = Model(MLP((1, 1)), GaussianPrior(0.8), GaussianLikelihood(0.9))
    return LogJoint(model, x, np.array([[0.3], [-0.4], [1.0]]))


BATCHES = [np.array(rows) for rows in product(range(3), repeat=2)]  # all draws of two rows


@pytest.mark.equation("D64")
@pytest.mark.parametrize(("h", "friction"), [(0.15, 1.0), (0.4, np.inf)])
def test_the_law_under_real_minibatches_by_enumeration(h, friction):
    """All draws of rows: the mean is the posterior's; the covariance is that of draws."""
    target, kernel = regression(), SGHMC(h, friction, batch_size=2)
    maps = [affine(kernel, target, 2, rows)[:2] for rows in BATCHES]
    _, _, c = affine(kernel, target, 2, BATCHES[0])
    inputs = np.concatenate([target.x, np.ones((3, 1))], axis=1)
    precision = inputs.T @ inputs / 0.9**2 + np.eye(2) / 0.8**2
    mode = np.linalg.solve(precision, inputs.T @ target.y[:, 0] / 0.9**2)
    fixed = np.concatenate([mode, np.zeros(2)])
    # around the mode, where each minibatch pushes its own way
    pushes = np.array([fixed @ g + o - fixed for g, o in maps])
    np.testing.assert_allclose(pushes.mean(axis=0), 0.0, atol=1e-15)
    covariance = kept([g for g, _ in maps], c.T @ c + pushes.T @ pushes / len(pushes))[:2, :2]
    share = np.diag(covariance) / np.diag(np.linalg.inv(precision)) - 1.0
    assert (share > 0.1).all(), "minibatches heat"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SGHMC is not adjusted")
        start = np.tile(mode, (400, 1))
        draws = sample_target(
            target, start, sampler=replace(kernel, steps=20), draws=60, warm_up=0, seed=0
        )
    gap = draws.positions[10:] - mode
    for values, expected in (
        (gap[..., 0], 0.0),
        (gap[..., 0] ** 2, covariance[0, 0]),
        (gap[..., 1] ** 2, covariance[1, 1]),
        (gap[..., 0] * gap[..., 1], covariance[0, 1]),
    ):
        mean, error = chain_means(values)
        assert abs(mean - expected) < 4 * error


# --- steps, cycles, what ends badly --------------------------------------------------------------


@pytest.mark.equation("D65")
def test_the_squared_step_falls_along_a_cosine_and_exploring_has_no_noise():
    kernel = SGHMC(0.2, steps=4, cycle=3, exploring=0.4, temperature=0.5)
    sizes, temperatures = map(np.concatenate, zip(*map(kernel.plan, range(3)), strict=True))
    k = np.arange(20)  # 12 of them in draws, 8 before
    np.testing.assert_allclose(sizes**2, 0.2**2 * (1 + np.cos(np.pi * k / 20)) / 2, rtol=1e-13)
    np.testing.assert_array_equal(temperatures, [0.0] * 8 + [0.5] * 12)
    state, reports = kernel.init(EXACT, np.ones((2, 2))), []
    for _ in range(4):
        state, info = kernel.step(EXACT, np.random.default_rng(0), state)
        reports.append((*state.draw_in_cycle, *info.gradients))
    assert reports == [(1, 1, 13, 13), (2, 2, 5, 5), (0, 0, 5, 5), (1, 1, 13, 13)]
    same, _ = SGHMC(0.2).plan(7)
    np.testing.assert_array_equal(same, np.full(50, 0.2))


@pytest.mark.equation("D65")
@pytest.mark.parametrize("draw", [0, 1, 2])
def test_a_step_of_sgld_has_the_learning_rate_that_is_told(draw):
    """A rate eta moves by eta g, with noise of variance 2 eta (Welling and Teh 2011)."""
    start, kernel = np.full((20_000, 1), 2.0), SGHMC(0.8, np.inf, steps=1, cycle=3)

    def unit(x):
        return -0.5 * np.sum(x * x, axis=1), -x

    state = kernel.init(unit, start)._replace(draw_in_cycle=np.full(len(start), draw))
    moved = kernel.step(unit, np.random.default_rng(0), state)[0].position - start
    rate = 0.8**2 * (1 + np.cos(np.pi * draw / 3)) / 4
    error = (2 * rate / len(start)) ** 0.5
    assert abs(moved.mean() + 2 * rate) < 4 * error
    assert moved.var() == pytest.approx(2 * rate, rel=4 * (2 / len(start)) ** 0.5)


@pytest.mark.equation("D65")
def test_exploring_is_descent_with_friction():
    """Without noise a full gradient leads to the mode, whatever the generator says."""
    kernel = SGHMC(0.3, cycle=1, steps=1, exploring=0.995)
    state = kernel.init(EXACT, np.ones((3, 2)))
    new, _ = kernel.step(EXACT, np.random.default_rng(0), state)
    assert np.abs(new.position).max() < 0.05
    assert kernel.plan(0)[0][-1] < 0.003, "the only noisy step is short"


@pytest.mark.equation("D64")
@pytest.mark.parametrize("size", [2, 5000])
def test_a_chain_that_explodes_is_put_back_and_one_that_warms_up_is_not(size):
    def unit(x):
        return -0.5 * np.sum(x * x, axis=1), -x

    state = SGHMC().init(unit, np.zeros((3, size)))  # at the mode: size / 2 nats will be lost
    new, info = SGHMC(0.5).step(unit, np.random.default_rng(0), state)
    assert info.accepted.all()
    assert (new.position != 0.0).all()
    for h in (2.5, 1e200):  # not stable above 2
        new, info = SGHMC(h).step(unit, np.random.default_rng(0), state)
        np.testing.assert_array_equal(new.position, 0.0)
        assert info.divergent.all()
        assert not info.accepted.any()
        assert np.std(new.momentum) == pytest.approx(1.0, rel=0.9)
        for array in (*new, info.energy):
            assert np.isfinite(array).all()


# --- the warm-up ---------------------------------------------------------------------------------


@pytest.mark.equation("D65")
@pytest.mark.parametrize("friction", [1.0, np.inf])
@pytest.mark.parametrize("bias", [0.03, 0.1])
def test_the_warm_up_finds_a_step_of_the_wanted_bias(friction, bias):
    start = EXACT.draw(np.random.default_rng(0), 16)
    kernel = SGHMC(friction=friction, bias=bias, steps=20)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SGHMC is not adjusted")
        found = sample_target(NOISY, start, sampler=kernel, draws=1, warm_up=400, seed=0).kernel
    factor = np.diag(np.sqrt(found.metric.variance))
    inside = [factor.T @ each @ factor for each in (PRECISION, NOISE)]
    position, _ = law(*inside, found.step_size, friction, 1.0)
    assert np.trace(inside[0] @ position) / 2 - 1 == pytest.approx(bias, rel=0.3)


@pytest.mark.equation("D65")
def test_heat_is_the_bias_of_small_steps():
    for h, friction in ((0.01, 2.0), (0.02, np.inf)):
        position, _ = law(PRECISION, NOISE, h, friction, 1.0)
        predicted = heat(h, friction, np.trace(PRECISION) / 2, np.trace(NOISE) / 2)
        assert np.trace(PRECISION @ position) / 2 - 1 == pytest.approx(predicted, rel=1e-3 + 2 * h)


def test_what_a_warm_up_misses_is_cut_off_and_a_divergence_is_the_most():
    rng, kernel = np.random.default_rng(0), SGHMC(0.01, batch_size=7)
    state = kernel.init(NOISY, np.ones((3, 2)))
    _, info = kernel.step(NOISY, copy.deepcopy(rng), state)
    assert kernel.adaptation_error(NOISY, rng, state, info, None) < 0.9
    for worse in (replace(kernel, step_size=5.0), replace(kernel, step_size=1e26)):
        assert worse.adaptation_error(NOISY, rng, state, info, None) == pytest.approx(0.9)
    bad = info._replace(divergent=np.array([False, True, False]))
    assert kernel.adaptation_error(NOISY, rng, state, bad, None) == pytest.approx(0.9)


def test_float32_stays_and_without_minibatches_all_rows_are_taken():
    x = np.ones((2, 2), np.float32)
    state, _ = SGHMC(0.1).step(EXACT, np.random.default_rng(0), SGHMC().init(EXACT, x))
    assert state.position.dtype == state.momentum.dtype == np.float32
    target = regression()
    assert target.draw_rows(np.random.default_rng(0), 4, 3) is None
    assert target.draw_rows(np.random.default_rng(0), 4, 2).shape == (4, 2)

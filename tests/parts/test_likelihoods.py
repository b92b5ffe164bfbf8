"""likelihoods: exact densities and slopes, and draws that agree with them."""

from functools import partial
from math import log

import numpy as np
import pytest
import textbook
from scipy import special, stats
from scipy.integrate import cumulative_trapezoid

from bbb_numpy import GaussianLikelihood
from bbb_numpy.numeric.elementary import LOG_2PI, softplus
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.likelihoods import HeteroscedasticLikelihood
from bbb_numpy.registry import CHECKED_LIKELIHOODS

LIKELIHOODS = {name: one for name, one in CHECKED_LIKELIHOODS.items() if one.target_kind == "real"}


def draw(seed, samples=2, rows=4, outputs=3):
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((samples, rows, outputs))
    return f, rng.standard_normal((rows, outputs)), rng


def case(likelihood, seed, targets=3):
    """Outputs f, targets y, the learned block away from its start, and a cotangent."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((2, 4, likelihood.heads(targets)))
    f[..., targets:] *= 0.2  # deviations near 0.7: every density within reach of its logarithm
    learned = likelihood.init(targets, np.float64)
    learned += 0.2 * rng.standard_normal(learned.shape)
    params = Layout(likelihood.blocks(targets)).views(learned)
    return f, rng.standard_normal((4, targets)), params, rng.standard_normal(2)


STRETCHED = np.linspace(-30.0, 30.0, 40_001)
GRID, SLOPE = np.sinh(STRETCHED), np.cosh(STRETCHED)  # dy = cosh(v) dv: wide enough for every tail


@pytest.mark.equation("D1", "D12", "D43")
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_density_of_y_integrates_to_one_with_the_stated_mean_and_variance(name):
    likelihood = LIKELIHOODS[name]
    f, _, params, _ = case(likelihood, 3, targets=1)
    stated = likelihood.mean(params, f)[0, 0, 0]
    at = np.broadcast_to(f[:1, :1], (1, len(GRID), f.shape[-1]))
    density = np.exp(likelihood.log_density(params, at, stated + GRID[:, None])[0][0]) * SLOPE
    assert np.trapezoid(density, STRETCHED) == pytest.approx(1.0, abs=1e-12)
    below, y = cumulative_trapezoid(density, STRETCHED), stated + GRID[1:]
    parts = [np.broadcast_to(part, (2, 4, 1))[0, 0, 0] for part in likelihood.components(params, f)]
    assert likelihood.cdf(special, y, *parts) == pytest.approx(below, abs=1e-6)
    assert likelihood.cdf(special, y, *parts, upper=True) == pytest.approx(1 - below, abs=1e-6)
    assert np.trapezoid(density * GRID, STRETCHED) == pytest.approx(0.0, abs=1e-12)
    variance = np.trapezoid(density * GRID**2, STRETCHED)
    stated = np.broadcast_to(likelihood.variance(params, f), (2, 4, 1))
    assert variance == pytest.approx(stated[0, 0, 0], rel=1e-10)


@pytest.mark.equation("K16")
def test_unit_variance_without_the_constant_is_the_report():
    f, y, _ = draw(0)
    value, _ = GaussianLikelihood(1.0).log_density({}, f, y)
    k16 = -0.5 * ((y - f) ** 2).sum(axis=2)
    assert np.allclose(value, k16 - 1.5 * np.log(2 * np.pi), rtol=1e-13)


@pytest.mark.equation("D1")
def test_the_noise_gradient_vanishes_at_the_root_mean_square_residual():
    f, y, _ = draw(5)
    best = np.log(np.sqrt(((y - f) ** 2).mean(axis=(0, 1))))
    likelihood, d_params = GaussianLikelihood(1.0, learn=True), {"log_noise": np.zeros(3)}
    _, saved = likelihood.log_density({"log_noise": best}, f, y)
    likelihood.vjp(saved, np.ones(2), d_params)
    assert np.abs(d_params["log_noise"]).max() < 1e-12


@pytest.mark.equation("D12")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_floor_bounds_the_density_where_the_network_hits_a_data_point(dtype):
    f, y = np.array([[[2.0, -200.0]]], dtype), np.array([[2.0]], dtype)
    value, saved = HeteroscedasticLikelihood(1e-3).log_density({}, f, y)
    assert value.dtype == dtype
    assert value.item() == pytest.approx(-log(1e-3) - 0.5 * LOG_2PI, rel=1e-6)
    assert np.isfinite(HeteroscedasticLikelihood(1e-3).vjp(saved, np.ones(1, dtype), {})).all()


@pytest.mark.equation("D1", "D12", "D43")
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_draws_follow_the_density(name):
    likelihood, count = LIKELIHOODS[name], 4000
    f, _, params, _ = case(likelihood, 1)
    repeated = np.broadcast_to(f[:1, :1], (1, count, f.shape[-1]))
    y = likelihood.draw(np.random.default_rng(0), params, repeated)[0]
    at = np.broadcast_to(f[0, :1], (len(GRID), f.shape[-1]))
    targets = np.repeat(GRID[:, None], 3, axis=1)
    with np.errstate(over="ignore"):  # of textbooks far out, where the density is 0
        logs = textbook.log_likelihood(likelihood, params, at, targets)
    density = np.exp(logs) * SLOPE[:, None]
    for k in range(3):
        below = cumulative_trapezoid(density[:, k], STRETCHED)
        assert stats.kstest(y[:, k], partial(np.interp, xp=GRID[1:], fp=below)).pvalue > 1e-3


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_draws_have_the_dtype_of_the_outputs_and_noise_of_their_own(name):
    likelihood = LIKELIHOODS[name]
    f = np.zeros((4, 5, likelihood.heads(3)), np.float32)
    params = {block: np.zeros(shape) for block, shape in likelihood.blocks(3)}
    y = likelihood.draw(np.random.default_rng(0), params, f)
    assert y.dtype == np.float32
    assert y.shape == (4, 5, 3)
    assert len(np.unique(y)) == y.size


def test_two_heads_for_each_target_means_first():
    likelihood = HeteroscedasticLikelihood(0.5)
    assert [likelihood.heads(k) for k in (1, 3)] == [2, 6]
    assert [likelihood.targets(k) for k in (2, 6)] == [1, 3]
    f = np.array([[[1.0, 2.0, 0.0, 1.0]]])
    assert likelihood.mean({}, f).tolist() == [[[1.0, 2.0]]]
    assert np.allclose(likelihood.variance({}, f), (0.5 + softplus([0.0, 1.0])) ** 2, rtol=1e-14)
    with pytest.raises(ValueError, match=r"two network outputs for each target.*got 3 outputs"):
        likelihood.targets(3)


@pytest.mark.parametrize("learn", [False, True])
def test_targets_of_their_own_give_each_sample_what_it_has_alone(learn):
    likelihood = GaussianLikelihood(0.8, learn)
    f, _, rng = draw(0)
    y = rng.standard_normal(f.shape)
    params = {"log_noise": np.array([0.1, -0.4, 0.2])}
    slopes, slopes_alone = ({"log_noise": np.zeros(3)} for _ in range(2))
    rowwise, saved = likelihood.log_density(params, f, y)
    d_f = likelihood.vjp(saved, np.ones(len(f)), slopes)
    together = np.zeros(3)
    for s in range(len(f)):
        alone, saved = likelihood.log_density(params, f[s : s + 1], y[s])
        np.testing.assert_array_equal(rowwise[s], alone[0])
        np.testing.assert_array_equal(d_f[s], likelihood.vjp(saved, np.ones(1), slopes_alone)[0])
        together += slopes_alone["log_noise"]
    np.testing.assert_allclose(slopes["log_noise"], together, rtol=1e-14)


def test_fixed_noise_has_no_learned_block():
    assert GaussianLikelihood(2.0).blocks(3) == ()
    assert GaussianLikelihood(2.0).init(3, np.float32).size == 0
    start = GaussianLikelihood(2.0, learn=True).init(3, np.float32)
    assert start.dtype == np.float32
    assert np.allclose(start, np.log(2.0))

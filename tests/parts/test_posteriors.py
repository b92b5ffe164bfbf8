"""posteriors: weights of noise, their density, and its derivative in the report's form and Wu's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import relative_error, seeds
from scipy import stats

from bbb_numpy import MeanField
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import PointMass

BOTH = [MeanField(0.5, -0.5, 1.0), FullRank(0.5, -0.5, 1.0)]
FULL = BOTH[1]
SIZES = st.integers(1, 5)  # of the weight vector; one weight has no correlation to learn


def blocks_of(theta, posterior, size):
    return Layout(posterior.blocks(size)).views(theta)


def problem(posterior, seed, size=4, samples=3):
    """A theta with correlations, noise, and cotangents of the weights and of log q."""
    rng = np.random.default_rng(seed)
    theta = posterior.init(rng, size, np.float64)
    theta[2 * size :] = 0.4 * rng.standard_normal(theta.size - 2 * size)
    eps = rng.standard_normal((samples, posterior.noise_size(size)))
    return theta, eps, rng.standard_normal((samples, size)), rng.standard_normal(samples)


def sample_at(posterior, theta, eps):
    return posterior.sample(blocks_of(theta, posterior, eps.shape[1]), eps, Buffers())


def pull_back(posterior, theta, eps, d_w, d_log_q):
    grad, sample = np.full_like(theta, np.nan), sample_at(posterior, theta, eps)
    posterior.pull_back(sample, d_w, d_log_q, blocks_of(grad, posterior, eps.shape[1]))
    return grad


def factor_of(theta, posterior, size):
    """C (P, P), entry by entry from the names of the blocks."""
    blocks = blocks_of(theta, posterior, size)
    factor = np.diag(np.log1p(np.exp(blocks["rho"])))
    lower = iter(blocks.get("lower", ()))
    for row in range(size if "lower" in blocks else 0):
        for column in range(row):
            factor[row, column] = posterior.unit * next(lower)
    return factor


def split_form(posterior, theta, eps, d_w, d_log_q):
    """W3-W5: through the weights with theta fixed, plus the direct partials with w fixed."""
    sample, through, direct = sample_at(posterior, theta, eps), d_w.copy(), np.full_like(theta, 7.0)
    posterior.add_density_slope(sample, d_log_q, through)
    posterior.pull_back_direct(sample, d_log_q, blocks_of(direct, posterior, eps.shape[1]))
    return pull_back(posterior, theta, eps, through, None) + direct


@pytest.mark.equation("K1")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
def test_noise_is_one_number_per_weight_and_a_point_needs_none(posterior):
    assert posterior.noise_size(500) == 500
    assert PointMass().noise_size(500) == 0


@pytest.mark.equation("K3", "K4", "K6", "K7", "K8", "K9", "K10", "M1")
@pytest.mark.parametrize("posterior", [*BOTH, FullRank(0.5, -0.5, 1.0, unit=0.01)], ids=str)
@given(seed=seeds)
def test_weights_and_density_are_those_of_a_gaussian_with_covariance_c_c_transposed(
    posterior, seed
):
    # K10 writes it with eps; here w itself is put into the normal density of K6
    theta, eps, _, _ = problem(posterior, seed)
    sample, factor = sample_at(posterior, theta, eps), factor_of(theta, posterior, 4)
    assert np.allclose(sample.w, theta[:4] + eps @ factor.T, rtol=1e-13, atol=1e-13)
    expected = stats.multivariate_normal(theta[:4], factor @ factor.T).logpdf(sample.w)
    assert relative_error(posterior.log_density(sample), expected) <= 1e-9


@pytest.mark.parametrize("unit", [1.0, 0.01])
@given(seed=seeds)
def test_full_rank_starts_at_any_mean_and_covariance(unit, seed):
    rng, posterior = np.random.default_rng(seed), FullRank(unit=unit)
    root, mean = rng.standard_normal((4, 6)), rng.standard_normal(4)
    theta = posterior.pack(mean, root @ root.T)
    factor = factor_of(theta, posterior, 4)
    assert np.array_equal(theta[:4], mean)
    assert np.allclose(factor @ factor.T, root @ root.T, rtol=1e-9, atol=1e-9)


@pytest.mark.equation("M1")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES)
def test_given_weights_have_the_density_that_they_had_when_drawn(posterior, seed, size):
    theta, eps, _, _ = problem(posterior, seed, size)
    sample = sample_at(posterior, theta, eps)
    from_weights = posterior.from_weights(blocks_of(theta, posterior, size), sample.w, Buffers())
    assert np.allclose(from_weights.eps, eps, rtol=1e-9, atol=1e-9)
    assert np.allclose(
        posterior.log_density(from_weights), posterior.log_density(sample), rtol=1e-9
    )


@pytest.mark.equation("K10", "D18", "M4", "D19")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
def test_the_mean_of_log_q_is_minus_the_entropy(posterior):
    theta, _, _, _ = problem(posterior, 1)
    eps = np.random.default_rng(2).standard_normal((40_000, 4))
    log_q = posterior.log_density(sample_at(posterior, theta, eps))
    entropy = posterior.entropy(posterior.factor(blocks_of(theta, posterior, 4), Buffers()))
    assert abs(log_q.mean() + entropy.value) < 4 * log_q.std() / np.sqrt(len(log_q))


@pytest.mark.equation("W3", "W4", "W5", "K21", "K30")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES)
def test_wus_split_form_is_the_reports_cancelled_form_for_every_single_sample(
    posterior, seed, size
):
    theta, eps, d_w, d_log_q = problem(posterior, seed, size)
    for s in range(len(eps)):
        one = slice(s, s + 1)
        split = split_form(posterior, theta, eps[one], d_w[one], d_log_q[one])
        cancelled = pull_back(posterior, theta, eps[one], d_w[one], d_log_q[one])
        # what cancels is of size |d_log_q| eps^2 / sigma
        sigma = softplus(theta[size : 2 * size]).min()
        size_of_parts = (
            np.abs(d_w[s]).max() + np.abs(d_log_q[s]) * (1 + (eps[s] ** 2).sum()) / sigma
        )
        assert np.abs(split - cancelled).max() <= 1e-13 * size_of_parts * (1 + 1 / sigma)


@pytest.mark.equation("K3")
@pytest.mark.parametrize("posterior", [MeanField(), FullRank()], ids=str)
def test_the_start_is_that_of_section_7(posterior):
    size = 2_000
    blocks = blocks_of(posterior.init(np.random.default_rng(0), size, np.float64), posterior, size)
    mu, rho = blocks["mu"], blocks["rho"]
    assert abs(mu.var() - 0.01) < 4 * 0.01 * np.sqrt(2 / size)
    assert rho.min() >= -5.01
    assert rho.max() <= -4.99
    # uniform on both sides of its centre
    assert abs(rho.mean() + 5) < 4 * 0.01 / np.sqrt(3 * size)
    assert abs(rho.std() * np.sqrt(3) / 0.01 - 1) < 0.05
    sigma = softplus(rho)
    assert 0.006648 < sigma.min() < sigma.max() < 0.006783
    assert not blocks.get("lower", np.zeros(1)).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_packed_mean_field_starts_where_it_was_told(dtype):
    mean, deviation = np.array([1.0, -2.0], dtype), np.array([1e-3, 30.0], dtype)
    theta = MeanField().pack(mean, deviation)
    assert theta.dtype == dtype
    digits = 1e2 * np.finfo(dtype).eps
    assert np.allclose(softplus(theta[2:]), deviation, rtol=digits)
    assert np.array_equal(theta[:2], mean)


def test_a_point_mass_has_the_same_weights_in_every_sample_and_no_noise():
    posterior, mu = PointMass(0.3), np.array([1.0, -2.0, 0.5])
    sample = posterior.sample({"mu": mu}, np.zeros((4, posterior.noise_size(3))), Buffers())
    assert np.array_equal(sample.w, np.broadcast_to(mu, (4, 3)))
    assert posterior.log_density(sample).tolist() == [0.0] * 4
    d_mu, d_w = np.full(3, np.nan), np.random.default_rng(1).standard_normal((4, 3))
    posterior.pull_back(sample, d_w, None, {"mu": d_mu})
    assert np.allclose(d_mu, d_w.sum(axis=0), rtol=1e-15)
    assert np.array_equal(posterior.pack(mu), mu)
    assert posterior.pack(mu) is not mu
    start = posterior.init(np.random.default_rng(0), 20_000, np.float32)
    assert start.dtype == np.float32
    assert abs(start.std() / 0.3 - 1) < 4 / np.sqrt(2 * 20_000)


@pytest.mark.equation("M1")
def test_weights_of_a_gaussian_without_width_have_no_noise_that_makes_them():
    theta, eps, _, _ = problem(FULL, 0)
    blocks = blocks_of(theta, FULL, 4)
    blocks["rho"][1] = -1e4  # its softplus is 0
    sample = FULL.from_weights(blocks, eps, Buffers())
    assert sample.eps.shape == eps.shape
    assert np.isnan(sample.eps).all()

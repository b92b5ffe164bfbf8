"""low_rank: density and entropy are those of a Gaussian with covariance D (I + V V^T) D."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import seeds
from scipy import stats

from bbb_numpy import LowRank, MeanField
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.layout import Layout

RANKS = st.integers(1, 6)  # also above the number of weights
SIZES = st.integers(1, 5)


def problem(rank, seed, size=4, samples=3):
    """A posterior, blocks of a theta, and noise."""
    rng, posterior = np.random.default_rng(seed), LowRank(0.5, -0.5, 1.0, rank, 0.7)
    theta = posterior.init(rng, size, np.float64)
    blocks = Layout(posterior.blocks(size)).views(theta)
    return posterior, blocks, rng.standard_normal((samples, posterior.noise_size(size))), rng


def covariance_of(blocks):
    sigma, v = np.log1p(np.exp(blocks["rho"])), blocks["v"]
    return sigma[:, None] * (np.eye(len(v)) + v @ v.T) * sigma


@pytest.mark.equation("D59")
@given(rank=RANKS, seed=seeds, size=SIZES)
def test_weights_and_density_are_those_of_the_gaussian_drawn_or_given(rank, seed, size):
    posterior, blocks, eps, _ = problem(rank, seed, size)
    sample, covariance = posterior.sample(blocks, eps, Buffers()), covariance_of(blocks)
    a = eps[:, :size] + eps[:, size:] @ blocks["v"].T
    assert np.allclose(sample.w, blocks["mu"] + np.log1p(np.exp(blocks["rho"])) * a, rtol=1e-13)
    expected = stats.multivariate_normal(blocks["mu"], covariance).logpdf(sample.w)
    assert np.allclose(posterior.log_density(sample), expected, rtol=1e-9, atol=1e-9)
    from_weights = posterior.from_weights(blocks, sample.w, Buffers())
    assert np.allclose(posterior.log_density(from_weights), expected, rtol=1e-9, atol=1e-9)
    # the likeliest noise makes the same weights, and is the shortest
    shortest_eps = np.hstack(
        [from_weights.eps - from_weights.column_eps @ blocks["v"].T, from_weights.column_eps]
    )
    assert np.allclose(
        posterior.sample(blocks, shortest_eps, Buffers()).w, sample.w, rtol=1e-9, atol=1e-9
    )
    assert np.all((shortest_eps**2).sum(axis=1) <= (eps**2).sum(axis=1) * (1 + 1e-9))


@pytest.mark.equation("D59")
@given(rank=RANKS, seed=seeds)
def test_entropy_and_variances_are_those_of_the_covariance_whole_or_by_group(rank, seed):
    posterior, blocks, _, _ = problem(rank, seed)
    parts, covariance = posterior.factor(blocks, Buffers()), covariance_of(blocks)
    entropy = stats.multivariate_normal(np.zeros(4), covariance).entropy()
    assert posterior.entropy(parts).value == pytest.approx(entropy, rel=1e-10)
    assert posterior.entropy(parts).total_variance == pytest.approx(np.trace(covariance), rel=1e-12)
    variances = np.diag(covariance)
    grouped = posterior.entropy(parts, (0, 3)).total_variance
    assert np.allclose(grouped, [variances[:3].sum(), variances[3]], rtol=1e-12)


@pytest.mark.equation("D59", "W3", "W4", "W5")
@given(rank=RANKS, seed=seeds)
def test_wus_split_form_is_the_cancelled_form_and_v_0_is_a_mean_field(rank, seed):
    posterior, blocks, eps, rng = problem(rank, seed)
    d_w, d_log_q = rng.standard_normal((3, 4)), rng.standard_normal(3)
    found = []
    for form in ("whole", "through", "direct"):
        grad = {name: np.full_like(block, np.nan) for name, block in blocks.items()}
        sample, through = posterior.sample(blocks, eps, Buffers()), d_w.copy()
        if form == "whole":
            posterior.pull_back(sample, d_w, d_log_q, grad)
        elif form == "through":
            posterior.add_density_slope(sample, d_log_q, through)
            posterior.pull_back(sample, through, None, grad)
        else:
            posterior.pull_back_direct(sample, d_log_q, grad)
        found.append(grad)
    for name in blocks:
        whole, *split = (grad[name] for grad in found)
        assert np.allclose(whole, sum(split), rtol=1e-7, atol=1e-7 * np.abs(split).max())
    blocks["v"][...] = 0.0
    alone, sample = MeanField(), posterior.sample(blocks, eps, Buffers())
    twin = alone.sample(blocks, eps[:, :4], Buffers())
    assert np.array_equal(sample.w, twin.w)
    assert np.allclose(posterior.log_density(sample), alone.log_density(twin), rtol=1e-13)


def test_the_start_is_that_of_a_mean_field_with_a_little_correlation():
    posterior = LowRank(rank=3)
    theta = posterior.init(np.random.default_rng(0), 2000, np.float32)
    assert theta.dtype == np.float32
    twin = MeanField().init(np.random.default_rng(0), 2000, np.float32)
    assert np.array_equal(theta[:4000], twin)
    assert abs(theta[4000:].std() / 0.1 - 1) < 0.05
    assert theta.size == 2000 * 5
    assert posterior.noise_size(2000) == 2003


@pytest.mark.parametrize(("field", "value"), [("rank", 0), ("v_scale", -0.1), ("mu_scale", np.inf)])
def test_impossible_numbers_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"{field} must be"):
        LowRank(**{field: value})

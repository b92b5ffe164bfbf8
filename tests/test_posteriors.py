"""posteriors: how weights are made of noise, and the density they then have."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy import MeanField
from bbb_numpy.numerics import softplus
from bbb_numpy.workspace import Workspace


def draw(seed, size=7, samples=3):
    rng = np.random.default_rng(seed)
    mu, rho = rng.standard_normal(size), rng.uniform(-6, 3, size)
    return mu, rho, MeanField().draw(rng, samples, size, np.float64)


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.equation("K1")
def test_noise_is_standard_normal_one_number_per_weight_and_sample():
    eps = MeanField().draw(np.random.default_rng(0), 200, 500, np.float64)
    assert eps.shape == (200, 500)
    assert abs(eps.mean()) < 4 / np.sqrt(eps.size)
    assert abs(eps.var() - 1) < 4 * np.sqrt(2 / eps.size)


@pytest.mark.equation("K2", "K3", "K4")
@given(seed=seeds)
def test_a_weight_is_mu_plus_softplus_rho_times_noise(seed):
    mu, rho, eps = draw(seed)
    sample = MeanField().sample(mu, rho, eps, Workspace())
    assert np.allclose((sample.w - mu) / eps, softplus(rho), rtol=1e-9)
    at_zero = MeanField().sample(mu, rho, np.zeros_like(eps), Workspace())
    assert np.array_equal(at_zero.w, np.broadcast_to(mu, eps.shape))


@pytest.mark.equation("K6", "K7", "K8", "K9", "K10")
@given(seed=seeds)
def test_log_density_is_that_of_independent_normals_at_the_weights(seed):
    # K10 writes it with eps; here w itself is put into the normal density of K6
    mu, rho, eps = draw(seed)
    sample = MeanField().sample(mu, rho, eps, Workspace())
    sigma = softplus(rho)
    expected = [
        sum(
            np.log(NormalDist(m, s).pdf(w)) if abs(w - m) < 30 * s else -np.inf
            for m, s, w in zip(mu, sigma, row, strict=True)
        )
        for row in sample.w
    ]
    assert np.allclose(MeanField().log_density(sample), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.equation("K10")
@given(seed=seeds)
def test_with_the_noise_fixed_log_q_does_not_depend_on_mu(seed):
    mu, rho, eps = draw(seed)
    here = MeanField().log_density(MeanField().sample(mu, rho, eps, Workspace()))
    there = MeanField().log_density(MeanField().sample(mu + 3.0, rho, eps, Workspace()))
    assert np.array_equal(here, there)


@pytest.mark.equation("K10")
def test_the_mean_of_log_q_is_minus_the_entropy():
    mu, rho, _ = draw(1)
    eps = MeanField().draw(np.random.default_rng(2), 40_000, len(mu), np.float64)
    log_q = MeanField().log_density(MeanField().sample(mu, rho, eps, Workspace()))
    entropy = np.sum(np.log(softplus(rho)) + 0.5 * np.log(2 * np.pi * np.e))
    assert abs(log_q.mean() + entropy) < 4 * log_q.std() / np.sqrt(len(log_q))


@pytest.mark.equation("K3")
def test_the_start_is_that_of_section_7():
    theta = MeanField().init(np.random.default_rng(0), 50_000, np.float64)
    mu, rho = theta[:50_000], theta[50_000:]
    assert abs(mu.var() - 0.01) < 4 * 0.01 * np.sqrt(2 / len(mu))
    assert rho.min() >= -5.01
    assert rho.max() <= -4.99
    sigma = softplus(rho)
    assert 0.006648 < sigma.min() < sigma.max() < 0.006783


def test_the_start_has_the_dtype_that_was_asked_for():
    assert MeanField().init(np.random.default_rng(0), 3, np.float32).dtype == np.float32


@pytest.mark.parametrize(
    ("name", "value"),
    [("mu_scale", -0.1), ("rho_halfwidth", -1.0), ("mu_scale", np.inf), ("rho_offset", np.nan)],
)
def test_impossible_starts_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        MeanField(**{name: value})

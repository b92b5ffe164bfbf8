"""objectives: the free energy, its sign and its shares, and their derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import COMPLEX_STEP, linear_problem, problems

from bbb_numpy.numerics import softplus
from bbb_numpy.objectives import (
    TERMS,
    free_energy,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.workspace import LogDensities, Workspace


@pytest.mark.equation("K5")
def test_free_energy_is_the_mean_of_weighted_kl_minus_log_likelihood():
    terms = LogDensities(np.array([1.0, 3.0]), np.array([-1.0, 0.0]), np.array([-5.0, -7.0]))
    value, _ = free_energy(terms, 0.5)
    assert value == pytest.approx(0.5 * (2.0 + 3.0) / 2 + 6.0)


@pytest.mark.equation("K5")
@pytest.mark.parametrize("name", list(TERMS))
@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(1, 4), kl_weight=st.floats(1e-6, 2))
def test_cotangents_are_the_derivatives_of_the_value(name, seed, samples, kl_weight):
    densities = np.random.default_rng(seed).standard_normal((3, samples))
    _, cotangents = TERMS[name](LogDensities(*densities), kl_weight)
    for t in range(3):
        for s in range(samples):
            stepped = densities.astype(complex)
            stepped[t, s] += 1j * COMPLEX_STEP
            slope = np.imag(TERMS[name](LogDensities(*stepped), kl_weight)[0]) / COMPLEX_STEP
            assert cotangents[t][s] == pytest.approx(slope, rel=1e-13, abs=1e-300)


@pytest.mark.equation("K5")
@given(problem=problems())
def test_the_three_terms_add_up_to_the_free_energy_and_so_do_their_gradients(problem):
    parts = [
        problem.with_objective(TERMS[name]).value_and_grad(problem.theta)
        for name in ("posterior", "prior", "likelihood")
    ]
    value, grad = problem.value_and_grad(problem.theta)
    sizes = [sum(abs(part[0]) for part in parts), sum(np.abs(part[1]) for part in parts)]
    assert abs(sum(part[0] for part in parts) - value) <= 1e-13 * sizes[0]
    assert np.all(np.abs(sum(part[1] for part in parts) - grad) <= 1e-13 * (sizes[1] + 1e-300))


@pytest.mark.equation("K17", "K18")
def test_one_example_and_unit_noise_give_k18_with_the_sign_of_log_sigma_data_corrected():
    estimator, x, y = linear_problem(noise=1.0, prior=2.5)
    rng = np.random.default_rng(1)
    theta, rows = estimator.init(rng), len(x)
    eps = estimator.draw(rng, 1)
    value, _ = estimator.value_and_grad(theta, eps, x[:1], y[:1], 1 / rows)
    mu, rho = np.split(theta, 2)
    sigma = softplus(rho)
    w = mu + sigma * eps[0]
    y_hat = x[0] @ w[:-1] + w[-1]
    corrected = np.sum(-np.log(sigma) + np.log(2.5) - eps[0] ** 2 / 2 + w**2 / (2 * 2.5**2))
    k18 = corrected / rows + 0.5 * (y[0, 0] - y_hat) ** 2
    # the 2 pi terms of q and of the prior cancel exactly; that of the likelihood stays
    assert value == pytest.approx(k18 + 0.5 * np.log(2 * np.pi), rel=1e-12)


def mean_kl_misses_its_closed_form(kl_of):
    """Whether a Monte Carlo KL is more than 4 standard errors from the closed form."""
    estimator, x, y = linear_problem(prior=2.5)
    rng = np.random.default_rng(2)
    theta = estimator.init(rng)
    mu, rho = np.split(theta, 2)
    sigma, scale = softplus(rho), estimator.model.prior.scale
    exact = np.sum(np.log(scale / sigma) + (sigma**2 + mu**2) / (2 * scale**2) - 0.5)
    work = Workspace()
    noise = estimator.draw(rng, 20_000)
    estimator.value_and_grad(theta, noise, x, y, 1.0, work)
    kl = kl_of(work.log_densities, len(mu), scale)
    return abs(kl.mean() - exact) > 4 * kl.std() / np.sqrt(len(kl))


@pytest.mark.equation("K18")
def test_mean_of_log_q_minus_log_p_is_the_closed_form_kl():
    assert not mean_kl_misses_its_closed_form(lambda t, size, scale: t.posterior - t.prior)


@pytest.mark.equation("K18")
def test_the_printed_sign_of_log_sigma_data_misses_the_closed_form_kl():
    # K18 as printed has - log sigma_data: 2 P log sigma_data too small
    assert mean_kl_misses_its_closed_form(
        lambda t, size, scale: t.posterior - t.prior - 2 * size * np.log(scale)
    )


@pytest.mark.equation("D6")
@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=20))
@pytest.mark.parametrize("shares", [proportional_kl_weights, geometric_kl_weights])
def test_the_shares_of_an_epoch_sum_to_one(shares, sizes):
    pi = shares(sizes)
    assert len(pi) == len(sizes)
    assert np.all(pi > 0)
    assert pi.sum() == pytest.approx(1.0, rel=1e-14)


@pytest.mark.equation("D6", "K18")
def test_shares_are_rows_over_all_rows_or_halve_each_time():
    assert proportional_kl_weights([1] * 8).tolist() == [1 / 8] * 8
    assert proportional_kl_weights([32, 32, 16]).tolist() == [0.4, 0.4, 0.2]
    m = 5
    blundell = [2.0 ** (m - i) / (2.0**m - 1) for i in range(1, m + 1)]
    assert np.allclose(geometric_kl_weights([10] * m), blundell, rtol=1e-15)
    assert np.isfinite(geometric_kl_weights(np.ones(100_000))).all()

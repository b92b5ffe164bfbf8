"""Exact answers: without hidden layer and with Gaussian noise everything has a closed form."""

import numpy as np
import pytest
from problems import exact_posterior, linear_problem

from bbb_numpy import Adam, Cosine
from bbb_numpy.numerics import softplus
from bbb_numpy.training import fit, start
from bbb_numpy.workspace import Workspace


def free_energy(estimator, theta, x, y, samples=40_000, seed=0):
    """Mean and standard error of F over weight samples, from value_and_grad's own terms."""
    work = Workspace()
    noise = estimator.draw(np.random.default_rng(seed), samples)
    estimator.value_and_grad(theta, noise, x, y, 1.0, work)
    t = work.log_densities
    each = t.posterior - t.prior - t.likelihood
    return each.mean(), each.std() / np.sqrt(samples)


def kl_to_posterior(theta, exact):
    """KL(q || posterior) between Gaussians, in nats (D8)."""
    mu, sigma = theta[: len(exact.mean)], softplus(theta[len(exact.mean) :])
    gap = mu - exact.mean
    _, log_det = np.linalg.slogdet(exact.precision)
    trace = np.sum(np.diag(exact.precision) * sigma**2)
    return 0.5 * (trace + gap @ exact.precision @ gap - len(mu) - log_det) - np.log(sigma).sum()


def inverse_softplus(sigma):
    return np.log(np.expm1(sigma))


@pytest.mark.equation("K5", "D8")
@pytest.mark.parametrize("seed", range(5))
def test_free_energy_exceeds_minus_log_evidence_by_the_kl_to_the_posterior(seed):
    estimator, x, y = linear_problem(seed)
    exact = exact_posterior(estimator, x, y)
    rng = np.random.default_rng(seed)
    theta = np.concatenate(
        [exact.mean + 0.05 * rng.standard_normal(3), inverse_softplus(rng.uniform(0.02, 0.2, 3))]
    )
    mean, error = free_energy(estimator, theta, x, y)
    gap = kl_to_posterior(theta, exact)
    assert gap > 0
    assert abs(mean - (gap - exact.log_evidence)) < 4 * error
    assert mean + 4 * error > -exact.log_evidence


@pytest.mark.equation("K18", "D8")
def test_the_printed_sign_of_log_sigma_data_claims_more_than_the_evidence():
    # K18 as printed: 2 P log sigma_data too small, so "F" falls below -log evidence
    estimator, x, y = linear_problem(prior=50.0)
    exact = exact_posterior(estimator, x, y)
    theta = np.concatenate([exact.mean, inverse_softplus(1 / np.sqrt(np.diag(exact.precision)))])
    mean, error = free_energy(estimator, theta, x, y)
    assert mean > -exact.log_evidence - 4 * error
    printed = mean - 2 * len(exact.mean) * np.log(estimator.model.prior.scale)
    assert printed < -exact.log_evidence - 4 * error


@pytest.mark.equation("D8")
def test_the_gradient_vanishes_in_expectation_at_the_mean_field_optimum_and_not_beside_it():
    estimator, x, y = linear_problem()
    exact = exact_posterior(estimator, x, y)
    sigma = 1 / np.sqrt(np.diag(exact.precision))
    optimum = np.concatenate([exact.mean, inverse_softplus(sigma)])

    def mean_over_errors(theta):
        rng = np.random.default_rng(1)
        grads = np.array(
            [
                estimator.value_and_grad(theta, estimator.draw(rng, 50), x, y, 1.0)[1]
                for _ in range(400)
            ]
        )
        return np.abs(grads.mean(axis=0)) / (grads.std(axis=0) / np.sqrt(len(grads)))

    assert mean_over_errors(optimum).max() < 4
    beside = optimum + np.concatenate([0.3 * sigma, np.full(3, 0.3)])
    assert mean_over_errors(beside).min() > 4


@pytest.mark.equation("D8", "K43", "K44")
def test_training_ends_at_the_posterior_mean_and_one_over_root_diagonal_precision():
    estimator, x, y = linear_problem()
    exact = exact_posterior(estimator, x, y)
    ends = []
    for seed in range(6):
        rng, optimizer = np.random.default_rng(seed), Adam(2e-2, schedule=Cosine())
        training = fit(
            estimator, start(estimator, rng, optimizer), x, y,
            rng=rng, optimizer=optimizer, epochs=2500, batch_size=len(x), samples=8,
        )  # fmt: skip
        ends.append(training.theta)
    mu, sigma = np.split(np.array(ends), 2, axis=1)
    sigma = softplus(sigma)
    best = 1 / np.sqrt(np.diag(exact.precision))
    # every run ends within a fifth of the posterior's own deviation; over runs there is no bias
    assert np.abs((mu - exact.mean) / best).max() < 0.2
    assert np.abs(sigma / best - 1).max() < 0.2
    assert np.abs((mu.mean(axis=0) - exact.mean) / best).max() < 0.03
    assert np.abs(sigma.mean(axis=0) / best - 1).max() < 0.03
    for found, target in ((mu, exact.mean), (sigma, best)):
        error = found.std(axis=0, ddof=1) / np.sqrt(len(ends))
        assert np.all(np.abs(found.mean(axis=0) - target) < 6 * error)


@pytest.mark.equation("D8")
def test_mean_field_is_narrower_than_the_marginals_when_inputs_are_correlated():
    estimator, x, y = linear_problem()
    exact = exact_posterior(estimator, x, y)
    marginal = np.sqrt(np.diag(np.linalg.inv(exact.precision)))
    assert np.all(1 / np.sqrt(np.diag(exact.precision)) < marginal)

"""Exact answers: without hidden layer and with Gaussian noise everything has a closed form."""

from itertools import pairwise

import numpy as np
import pytest
from problems import exact_posterior, linear_problem

from bbb_numpy import Adam, Cosine, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.reparameterised import StickingTheLanding
from bbb_numpy.model.objectives import EUBO, Renyi, free_energy
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.training import Recipe, fit, start
from bbb_studies import linear_gaussian as closed
from bbb_studies.ours.evidence_bounds import bound, draw, draw_posterior, estimator_of


def exact_noise(size):
    """Noise (2P, P) of mean 0 and covariance I: exact for what is quadratic in it (D8)."""
    return np.sqrt(size) * np.concatenate([np.eye(size), -np.eye(size)])


def sampled_free_energy(estimator, theta, x, y, samples=40_000, seed=0):
    """Mean and standard error of F over weight samples, from value_and_grad's own terms."""
    noise = estimator.draw(np.random.default_rng(seed), samples)
    t = estimator.value_and_grad(theta, noise, x, y).terms
    costs = t.posterior - t.prior - t.likelihood
    return costs.mean(), costs.std() / np.sqrt(samples)


def kl_to_posterior(theta, exact):
    """KL(q || posterior) between Gaussians, in nats (D8)."""
    mu, sigma = theta[: len(exact.mean)], softplus(theta[len(exact.mean) :])
    gap = mu - exact.mean
    _, log_det = np.linalg.slogdet(exact.precision)
    trace = np.sum(np.diag(exact.precision) * sigma**2)
    return 0.5 * (trace + gap @ exact.precision @ gap - len(mu) - log_det) - np.log(sigma).sum()


@pytest.mark.equation("D63")
def test_a_natural_step_on_all_rows_and_a_pass_with_steps_1_over_t_end_at_the_posterior():
    problem = closed.draw(np.random.default_rng(1))
    exact, initial = closed.exact(problem), closed.Natural(np.full(3, 7.0), 5.0 * np.eye(3))
    after_one_step, after_a_pass = closed.natural_step(initial, problem, slice(None), 1.0), initial
    order = np.random.default_rng(2).permutation(40).reshape(10, 4)
    for t, rows in enumerate(order, start=1):
        after_a_pass = closed.natural_step(after_a_pass, problem, rows, 1.0 / t)
    for q in (after_one_step, after_a_pass):
        np.testing.assert_allclose(q.precision, exact.precision, rtol=1e-12)
        mean = np.linalg.solve(q.precision, q.location)
        np.testing.assert_allclose(mean, exact.posterior.mean, rtol=1e-9)


@pytest.mark.equation("D63")
@pytest.mark.slow
def test_the_noise_of_constant_and_of_falling_natural_steps_is_what_the_formula_says():
    rng, problem = np.random.default_rng(0), closed.draw(np.random.default_rng(0))
    truth, initial = closed.exact(problem).precision[0, 0], closed.Natural(np.zeros(3), np.eye(3))
    ends = []
    for _ in range(300):
        falling = constant = initial
        for t in range(1, 401):
            rows = rng.integers(40, size=4)
            falling = closed.natural_step(falling, problem, rows, 1.0 / t)
            constant = closed.natural_step(constant, problem, rows, 0.1)
        ends.append([falling.precision[0, 0] - truth, constant.precision[0, 0] - truth])
    single = 40 * np.std(problem.x[:, 0] ** 2) / 0.3**2 / 2  # of one estimate, four rows
    relative_noise = np.sqrt(np.mean(np.square(ends), axis=0)) / single
    np.testing.assert_allclose(relative_noise, [400**-0.5, (0.1 / 1.9) ** 0.5], rtol=4 / 600**0.5)


def inverse_softplus(sigma):
    return np.log(np.expm1(sigma))


@pytest.mark.equation("D8")
@pytest.mark.parametrize("seed", range(5))
def test_free_energy_exceeds_minus_log_evidence_by_the_kl_to_the_posterior(seed):
    estimator, x, y = linear_problem(seed)
    exact = exact_posterior(estimator, x, y)
    rng = np.random.default_rng(seed)
    theta = np.concatenate(
        [exact.mean + 0.05 * rng.standard_normal(3), inverse_softplus(rng.uniform(0.02, 0.2, 3))]
    )
    mean, error = sampled_free_energy(estimator, theta, x, y)
    gap = kl_to_posterior(theta, exact)
    assert gap > 0
    assert abs(mean - (gap - exact.log_evidence)) < 4 * error
    assert mean + 4 * error > -exact.log_evidence


# --- D28: where every objective leads, and the order of the bounds -----------------------------

COUNTS = (1, 2, 5, 10, 50, 200)


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.slow)])
def regression(request):
    """A regression with correlated inputs, and its exact answers."""
    rng = np.random.default_rng(request.param)
    while True:
        problem = closed.draw(rng)
        truth = closed.exact(problem)
        deviation = truth.posterior.deviation
        correlation = truth.posterior.covariance / np.outer(deviation, deviation)
        if abs(correlation[0, 1]) > 0.7:  # or mean field would be as good as full rank
            return problem, truth


def train(estimator, problem, seed=0, epochs=3000, samples=8, rate=5e-2, variational=None):
    """Train on all rows at once and return theta."""
    rng, optimizer = np.random.default_rng(seed), Adam(rate, schedule=Cosine())
    initial = start(estimator, rng, optimizer, variational=variational)
    return fit(
        estimator,
        initial,
        problem.x,
        problem.y,
        Recipe(optimizer=optimizer, epochs=epochs, batch_size=len(problem.x), samples=samples),
        rng=rng,
    )


def beside(truth):
    """Return Gaussians that are no optimum of anything: with and without correlations."""
    mean = truth.posterior.mean + 0.4 * truth.posterior.deviation
    covariance = truth.posterior.covariance
    return [
        closed.Gaussian(mean, np.diag(1.7 * np.diag(covariance))),
        closed.Gaussian(mean, 0.8 * covariance + 0.3 * np.diag(np.diag(covariance))),
    ]


@pytest.mark.equation("D8", "D28")
def test_two_ways_to_the_evidence_agree(regression):
    # as the density of y, and as joint over posterior at any weights
    problem, truth = regression
    estimator, theta = estimator_of(problem, truth.posterior)
    noise = estimator.draw(np.random.default_rng(0), 20)
    terms = closed.log_densities(estimator, theta, noise, problem)
    ratios = terms.prior + terms.likelihood - terms.posterior
    assert np.abs(ratios - truth.log_evidence).max() < 1e-10


@pytest.mark.equation("D28", "M1", "M4")
def test_at_the_posterior_minus_f_is_the_log_evidence_for_every_sample(regression):
    problem, truth = regression
    theta = FullRank().pack(*truth.posterior)
    rng = np.random.default_rng(1)
    for estimator in (
        Reparameterised(problem.model, FullRank()),
        StickingTheLanding(problem.model, FullRank()),
    ):
        value, _, _ = estimator.value_and_grad(theta, estimator.draw(rng, 1), problem.x, problem.y)
        assert abs(value + truth.log_evidence) < 1e-10
    # ClosedFormKL replaces log q - log P by its mean, so it needs the mean of the rest as well
    estimator = ClosedFormKL(problem.model, FullRank())
    noise = exact_noise(len(truth.precision))
    value, grad, _ = estimator.value_and_grad(theta, noise, problem.x, problem.y)
    assert abs(value + truth.log_evidence) < 1e-10
    assert np.abs(grad).max() < 1e-9


@pytest.mark.equation("D20", "D28")
def test_full_rank_training_ends_at_the_log_evidence_to_1e_6(regression):
    problem, truth = regression
    estimator = StickingTheLanding(problem.model, FullRank())
    theta = train(estimator, problem, epochs=6000).theta
    q = closed.gaussian(estimator, theta)
    assert closed.kl(q, truth.posterior) < 1e-6
    exact_mean = exact_noise(len(truth.precision))  # of F, which is quadratic in the noise
    value, _, _ = estimator.value_and_grad(theta, exact_mean, problem.x, problem.y)
    assert abs(value + truth.log_evidence) < 1e-6
    assert np.abs(q.mean - truth.posterior.mean).max() < 1e-3 * truth.posterior.deviation.max()


@pytest.mark.equation("G4", "G6", "G8", "D28")
@pytest.mark.parametrize("family", [MeanField(), FullRank()], ids=["mean field", "full rank"])
def test_the_eubo_is_trained_to_the_inclusive_optimum(regression, family):
    # Far from the posterior the weights degenerate, so training starts at twice its deviations.
    problem, truth = regression
    full = isinstance(family, FullRank)
    deviation = truth.posterior.deviation
    target = truth.posterior if full else closed.inclusive_optimum(truth)
    wide = np.diag(4.0 * deviation**2) if full else 2.0 * deviation
    packed = family.pack(truth.posterior.mean + deviation, wide)
    estimator = SelfNormalised(problem.model, family, EUBO())
    ends = [
        closed.gaussian(
            estimator,
            train(estimator, problem, seed, 600, 250, 2e-2, variational=packed).theta,
        )
        for seed in range(5)
    ]
    thetas = np.array(
        [np.concatenate([(q.mean - target.mean) / deviation, q.deviation / deviation - 1])
         for q in ends]
    )  # fmt: skip
    error = thetas.std(axis=0, ddof=1) / np.sqrt(len(ends))
    bias = 10.0 / 250  # of the self-normalised gradient, of the order 1 / samples
    # Weights of unequal size scatter the ends by more on some data than on others: so that a mean
    # could be wrong unseen by a fifth at most, of the way from the start, which is 1.
    assert np.all(4 * error + bias < 0.2)
    assert np.all(np.abs(thetas.mean(axis=0)) < 4 * error + bias)
    if full:
        assert max(closed.kl(truth.posterior, q) for q in ends) < 5e-3
    else:  # and not at the reverse one: a correlation above 0.7 makes that narrower by 29 %
        reverse = closed.reverse_optimum(truth).deviation / deviation - 1
        assert np.all(reverse[:2] < -0.28)


@pytest.mark.equation("D20", "D28")
def test_sticking_the_landing_has_no_variance_at_the_posterior(regression):
    problem, truth = regression
    theta = FullRank().pack(*truth.posterior)
    assert worst_variance(StickingTheLanding, problem, FullRank(), theta) < 1e-20
    assert worst_variance(Reparameterised, problem, FullRank(), theta) > 1.0
    assert worst_variance(ClosedFormKL, problem, FullRank(), theta) > 1.0


@pytest.mark.equation("D28")
def test_the_doubly_reparameterised_gradient_has_no_variance_at_the_posterior(regression):
    problem, truth = regression
    theta = FullRank().pack(*truth.posterior)
    for maker, expected in ((DoublyReparameterised, True), (Reparameterised, False)):
        variance = worst_variance(maker, problem, FullRank(), theta, Renyi(0.0), samples=5)
        assert (variance < 1e-20) == expected


def worst_variance(maker, problem, posterior, theta, objective=free_energy, samples=1):
    """Return the largest variance of any number of the gradient, over 200 draws."""
    estimator, rng = maker(problem.model, posterior, objective), np.random.default_rng(2)
    grads = [
        estimator.value_and_grad(theta, estimator.draw(rng, samples), problem.x, problem.y)[1]
        for _ in range(200)
    ]
    return np.var(grads, axis=0).max()


def standard_errors(values):
    """Return the mean of independent values in its standard errors."""
    return values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))


@pytest.mark.equation("G2", "G6", "D25", "D28")
def test_the_bounds_are_in_order_around_the_log_evidence(regression):
    # Every difference is judged by its own standard error, from the same samples.
    problem, truth = regression
    rng = np.random.default_rng(3)
    for q in [closed.reverse_optimum(truth), closed.inclusive_optimum(truth), *beside(truth)]:
        logs = draw(problem, q, rng, repeats=400, n_samples=COUNTS[-1]) - truth.log_evidence
        iwae = [bound("IWAE", logs, count) for count in COUNTS]
        for fewer, more in pairwise(iwae):
            assert standard_errors(more - fewer) > 4  # a rise that is seen, not only no fall
        assert abs(standard_errors(iwae[0] + closed.kl(q, truth.posterior))) < 4  # k = 1: ELBO
        assert all(standard_errors(values) < 4 for values in iwae)  # none above the evidence
        above = draw_posterior(problem, q, truth, rng, 40_000) - truth.log_evidence
        assert abs(standard_errors(above - closed.kl(truth.posterior, q))) < 4
        assert standard_errors(above) > 4
        # the self-normalised estimate rises from the ELBO towards the EUBO and stays below
        eubo = [bound("EUBO", logs, count) for count in COUNTS]
        assert np.array_equal(eubo[0], iwae[0])
        for fewer, more in pairwise(eubo):
            assert standard_errors(more - fewer) > 0
        assert all(standard_errors(v - closed.kl(truth.posterior, q)) < 4 for v in eubo)


@pytest.mark.equation("D28")
def test_the_gap_of_iwae_falls_as_the_variance_of_the_weights_over_2k(regression):
    problem, truth = regression
    q = closed.Gaussian(truth.posterior.mean, 1.5 * truth.posterior.covariance)
    logs = draw(problem, q, np.random.default_rng(4), 2000, 200) - truth.log_evidence
    variance = np.exp(closed.renyi_divergence(2.0, truth.posterior, q)) - 1.0
    for count in (50, 200):
        gap = bound("IWAE", logs, count)
        error = gap.std() / np.sqrt(len(gap))
        # the next term of the expansion is of the order variance^2 / k^2
        assert abs(gap.mean() + variance / (2 * count)) < 4 * error + 3 * variance**2 / count**2


@pytest.mark.equation("D17", "D28")
@pytest.mark.parametrize("family", [MeanField(), FullRank()], ids=["mean field", "full rank"])
def test_a_learned_prior_scale_ends_at_the_mean_square_of_the_weights(regression, family):
    problem, _ = regression
    model = Model(problem.model.network, GaussianPrior(0.3, learn=True), problem.model.likelihood)
    estimator = ClosedFormKL(model, family, antithetic=True)
    theta = train(estimator, problem).theta
    q = closed.gaussian(estimator, theta)
    mean_square = np.mean(q.mean**2 + q.deviation**2)
    variance = np.exp(2.0 * theta[-1])
    assert variance == pytest.approx(mean_square, rel=5e-3)
    # there, and only there, the slope is 0: exactly, as the complexity cost has no noise
    noise = exact_noise(len(q.mean))
    for factor, zero in ((1.0, True), (1.1, False)):
        at_scale = theta.copy()
        at_scale[-1] = 0.5 * np.log(factor * mean_square)
        _, grad, _ = estimator.value_and_grad(at_scale, noise, problem.x, problem.y)
        assert (abs(grad[-1]) < 1e-12) == zero
    if isinstance(family, FullRank):  # q is the posterior, so the evidence is at its maximum
        top = closed.exact(problem, variance**0.5).log_evidence
        for factor in (0.9, 1.1):
            assert closed.exact(problem, factor * variance**0.5).log_evidence < top

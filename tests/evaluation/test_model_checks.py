"""Model checking: p-values, prior predictions and other priors, all exactly known."""

from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.evaluation.model_checks import (
    QUANTITIES,
    Check,
    posterior_check,
    prior_predictive,
    reweight,
)
from bbb_numpy.model.log_joint import LogJoint
from bbb_studies import linear_gaussian as closed

RNG = np.random.default_rng


def draws_of(truth, rng, samples):
    """Draw exactly from a Gaussian posterior."""
    factor = np.linalg.cholesky(truth.posterior.covariance)
    return truth.posterior.mean + rng.standard_normal((samples, len(factor))) @ factor.T


def joint_of(problem, prior=None):
    prior = problem.model.prior if prior is None else GaussianPrior(prior)
    return LogJoint(replace(problem.model, prior=prior), problem.x, problem.y)


@pytest.fixture(scope="module")
def problem():
    return closed.draw(RNG(0), rows=25, noise=0.5, prior=1.0)


@pytest.mark.equation("M22")
def test_prior_predictions_have_the_moments_of_the_model(problem):
    # y ~ N(0, s^2 Phi Phi' + noise^2 I) before any data
    predictions = prior_predictive(joint_of(problem), RNG(1), 20_000)
    variance = (problem.x**2).sum(axis=1) + 1.0
    assert predictions.targets.shape == predictions.mean.shape == (20_000, 25, 1)
    assert (predictions.sd == 0.5).all()
    for values, expected in ((predictions.targets, variance + 0.25), (predictions.mean, variance)):
        ratio = values[..., 0].var(axis=0) / expected
        assert np.abs(ratio - 1.0).max() < 5 * np.sqrt(2.0 / 20_000)
    elsewhere = prior_predictive(joint_of(problem), RNG(1), 5, np.zeros((3, 2)))
    assert elsewhere.mean.shape == (5, 3, 1)
    assert np.ptp(elsewhere.mean, axis=1).max() == 0.0  # at one x, one function has one value


@pytest.mark.equation("M22")
def test_the_p_value_of_the_sum_of_squares_is_that_of_chi_squared():
    # with the weights known, T(replicated) is chi squared with N degrees of freedom
    model = Model(MLP((1, 1)), GaussianPrior(1.0), GaussianLikelihood(2.0))
    joint = LogJoint(model, np.zeros((6, 1)), np.full((6, 1), 2.0))
    check = posterior_check(joint, np.zeros((40_000, 2)), RNG(3))["sum of squared residuals"]
    assert (check.observed == 6).all()
    # P(chi2_6 > t) = e^(-t/2) (1 + t/2 + (t/2)^2 / 2)
    exact = np.exp(-3.0) * (1.0 + 3.0 + 4.5)
    assert abs(check.p_value - exact) < 4 * (exact * (1 - exact) / 40_000) ** 0.5


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_quantity_is_one_number_for_each_position(name):
    y, mean = RNG(0).standard_normal((2, 3, 4, 2))
    alone = [QUANTITIES[name](y[[i]], mean[[i]], 2.0)[0] for i in range(3)]
    assert QUANTITIES[name](y, mean, 2.0) == pytest.approx(alone, rel=1e-12)


@pytest.mark.equation("M22")
def test_p_values_count_equals_half():
    tie = Check(np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 2.0, 0.0, 1.0]))
    assert tie.p_value == 0.5
    assert Check(np.ones(4), np.zeros(4)).p_value == 0.0


@pytest.mark.equation("M22")
def test_reweighted_draws_are_those_of_the_other_posterior(problem):
    narrow, wide = closed.exact(problem), closed.exact(problem, prior_scale=1.4)
    draws = draws_of(narrow, RNG(9), 20_000)
    reweighted = reweight(joint_of(problem), joint_of(problem, 1.4), draws)
    assert reweighted.weights.sum() == pytest.approx(1.0, abs=1e-12)
    spread = (reweighted.weights[:, None] * (draws - wide.posterior.mean)) ** 2
    off = reweighted.mean(draws) - wide.posterior.mean
    assert np.abs(off / np.sqrt(spread.sum(axis=0))).max() < 4
    assert np.abs(narrow.posterior.mean - wide.posterior.mean).max() > 0.0
    # the mean ratio is the Bayes factor of the two priors, exactly known
    exact = wide.log_evidence - narrow.log_evidence
    error = (1.0 / reweighted.effective_sample_size - 1.0 / len(draws)) ** 0.5
    assert abs(reweighted.log_ratio - exact) < 4 * error
    assert abs(exact) > 10 * error


@pytest.mark.equation("M22")
def test_the_same_prior_changes_nothing_and_a_distant_one_warns(problem):
    draws = draws_of(closed.exact(problem), RNG(11), 500)
    same = reweight(joint_of(problem), joint_of(problem), draws)
    assert np.allclose(same.weights, 1.0 / 500)
    assert (same.effective_sample_size, same.log_ratio) == pytest.approx((500.0, 0.0), abs=1e-9)
    with pytest.warns(UserWarning, match=r"of 500 draws are effective") as warned:
        reweight(joint_of(problem), joint_of(problem, 0.05), draws)
    assert warned[0].filename == __file__, "the line that asked is shown"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda j: prior_predictive(j, 0), TypeError, r"numpy.random.default_rng\(0\); got 0"),
        (
            lambda j: prior_predictive(j, RNG(0), 5, np.ones((3, 7))),
            *(ValueError, r"x must have shape \(any, 2\); got \(3, 7\)"),
        ),
        (
            lambda j: posterior_check(j, np.zeros((5, 4, 3)), RNG(0)),
            *(ValueError, r"positions must have shape \(any, 3\); got \(5, 4, 3\)"),
        ),
        (lambda j: posterior_check(j, np.zeros((5, 3)), None), TypeError, "rng must be a numpy"),
        (lambda j: reweight(j, j, np.zeros((5, 2))), ValueError, r"got \(5, 2\)"),
        (
            lambda j: reweight(j, replace(j, model=Model(MLP((2, 3, 1)))), np.zeros((5, 3))),
            *(ValueError, "same network and learned numbers"),
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, error, message, problem):
    with pytest.raises(error, match=message):
        call(joint_of(problem))

"""Annealed importance sampling, judged by evidence in closed form and in standard errors."""

from dataclasses import replace

import numpy as np
import pytest
from problems import COMPLEX_STEP
from targets import Banana, correlated

from bbb_numpy import GaussianLikelihood, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.parts.hyperpriors import LogNormal
from bbb_numpy.sampling.mcmc import HMC, GaussianWalk, Langevin, MetropolisHastings
from bbb_studies import linear_gaussian as closed
from bbb_studies.annealing import (
    Annealed,
    anneal,
    bayes_factor,
    between,
    equalised,
    evidence,
    in_words,
    pilot,
    powers,
)

RNG = np.random.default_rng


@pytest.fixture(scope="module")
def problem():
    """Ten rows, so that short paths have weights with a known, moderate scatter."""
    return closed.draw(RNG(0), rows=10, noise=0.7, prior=1.0)


@pytest.fixture(scope="module")
def joint(problem):
    return LogJoint(problem.model, problem.x, problem.y)


def along(joint):
    return lambda power: replace(joint, power=power)


def ratio(log_weights, exact):
    """Return mean weight / Z - 1 in standard errors."""
    w = np.exp(log_weights - exact)
    return (w.mean() - 1.0) / (w.std(ddof=1) / len(w) ** 0.5)


KERNELS = {
    "HMC": HMC(),
    "walk": MetropolisHastings(GaussianWalk()),
    "Langevin": MetropolisHastings(Langevin()),
}


@pytest.mark.equation("M20")
@pytest.mark.parametrize("name", KERNELS)
def test_the_mean_weight_is_the_evidence(joint, problem, name):
    rng, schedule = RNG(1), powers(40, smallest=1e-2)
    tuned = pilot(along(joint), joint.draw_prior(rng, 100), KERNELS[name], schedule, rng)
    found = anneal(along(joint), joint.draw_prior(rng, 4000), tuned.kernels, schedule, rng)
    truth = closed.exact(problem)
    assert abs(ratio(found.log_weights, truth.log_evidence)) < 4
    assert found.error < 0.1  # so that 4 of them would see a wrong constant
    assert abs(found.log_evidence - truth.log_evidence) < 4 * found.error
    # and the weighted chains are draws of the posterior
    w = np.exp(found.log_weights - found.log_evidence)[:, None]
    mean = (w * found.positions).mean(axis=0)
    error = (w * (found.positions - mean)).std(axis=0) / len(w) ** 0.5
    assert np.abs((mean - truth.posterior.mean) / error).max() < 4.5


@pytest.mark.equation("M20")
def test_the_log_evidence_is_bounded_from_below_and_from_above(joint, problem):
    truth = closed.exact(problem)
    rng, schedule = RNG(3), powers(30, smallest=1e-2)
    kernels = pilot(along(joint), joint.draw_prior(rng, 100), HMC(), schedule, rng).kernels
    up = anneal(along(joint), joint.draw_prior(rng, 2000), kernels, schedule, rng)
    factor = np.linalg.cholesky(truth.posterior.covariance)
    exact = truth.posterior.mean + rng.standard_normal((2000, len(factor))) @ factor.T
    back = (*kernels[-2::-1], HMC(0.5))  # the last one leaves the prior alone
    down = anneal(along(joint), exact, back, schedule[::-1], rng)
    assert abs(ratio(down.log_weights, -truth.log_evidence)) < 4  # the mean weight is 1 / Z
    for found, sign in ((up, -1), (down, 1)):
        gap = sign * (sign * -1 * found.log_weights - truth.log_evidence)
        error = gap.std(ddof=1) / len(gap) ** 0.5
        assert gap.mean() > 4 * error  # seen to be a bound, not only not refuted
    assert up.lower < truth.log_evidence < -down.lower


@pytest.mark.equation("M20")
@pytest.mark.parametrize("few", [50, pytest.param(100, marks=pytest.mark.slow)])
def test_twice_the_steps_halve_the_variance_of_the_log_weights(joint, few):
    variances = []
    for steps in (few, 2 * few):
        rng = RNG(4)
        place = np.linspace(-2.0, 2.0, steps + 1)
        schedule = 0.5 + 0.5 * np.tanh(place) / np.tanh(2.0)  # all of its steps shrink
        kernels = pilot(along(joint), joint.draw_prior(rng, 100), HMC(), schedule, rng, 2).kernels
        found = anneal(along(joint), joint.draw_prior(rng, 600), kernels, schedule, rng, 2)
        variances.append(found.log_weights.var())
    assert 1.5 < variances[0] / variances[1] < 3.0


@pytest.mark.equation("M20", "D33")
def test_learned_noise_is_integrated_over_its_hyperprior(problem):
    # against a sum over u = log noise of the closed form at that noise
    likelihood = GaussianLikelihood(7.0, learn=True)  # where learning starts: ten times too much
    model = Model(problem.model.network, problem.model.prior, likelihood)
    hyperprior = LogNormal(median=0.5, width=0.4)
    u = np.linspace(np.log(0.5) - 3.2, np.log(0.5) + 3.2, 400)
    terms = [
        closed.exact(
            closed.Regression(
                Model(model.network, model.prior, GaussianLikelihood(float(np.exp(one)))),
                problem.x,
                problem.y,
            )
        ).log_evidence
        for one in u
    ]
    density = hyperprior.log_density(u, np.zeros(1))
    exact = np.log(np.sum(np.exp(np.array(terms) + density)) * (u[1] - u[0]))
    joint = LogJoint(model, problem.x, problem.y, {"log_noise": hyperprior})
    found = evidence(joint, chains=1000, steps=60, seed=5)
    assert found.error < 0.1
    assert abs(found.log_evidence - exact) < 4 * found.error
    # another number, had it been ignored: each of ten rows costs log 10 - 1/2 or so
    start = Model(model.network, model.prior, GaussianLikelihood(7.0))
    fixed = closed.exact(closed.Regression(start, problem.x, problem.y)).log_evidence
    assert exact - fixed > 5.0


@pytest.mark.equation("M20")
@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_the_gradient_of_a_path_is_that_of_its_density(power):
    """A wrong force leaves every kernel exact, only slow: no weight would show it."""
    target = between(Banana(), correlated(0.5, (1.0, 0.3)))(power)
    position = RNG(8).standard_normal((5, 2))
    _, gradient = target(position)
    for i, direction in enumerate(np.eye(2)):
        value, _ = target(position + 1j * COMPLEX_STEP * direction)
        np.testing.assert_allclose(gradient[:, i], value.imag / COMPLEX_STEP, rtol=1e-12)


@pytest.mark.equation("M20")
def test_errors_are_those_of_the_weights(joint, problem):
    # of many runs, the estimates scatter as much as each says of itself
    truth = closed.exact(problem).log_evidence
    rng, schedule = RNG(7), powers(40, smallest=1e-2)
    kernels = pilot(along(joint), joint.draw_prior(rng, 100), HMC(), schedule, rng).kernels
    found = anneal(along(joint), joint.draw_prior(rng, 6000), kernels, schedule, rng)
    runs = [found._replace(log_weights=part) for part in found.log_weights.reshape(60, 100)]
    scores = np.array([(one.log_evidence - truth) / one.error for one in runs])
    assert 0.7 < scores.std() < 1.4
    # below by half the variance, the second term of E log(1 + e)
    bias = np.mean([one.log_evidence + 0.5 * one.error**2 for one in runs]) - truth
    assert abs(bias) < 4 * scores.std() * np.mean([one.error for one in runs]) / 60**0.5
    alike = Annealed(np.full(50, -3.0), np.zeros((50, 1)))
    assert (alike.error, alike.log_evidence) == pytest.approx((0.0, -3.0), abs=1e-12)
    alone = alike._replace(log_weights=np.where(np.arange(50) == 7, 0.0, -np.inf))
    assert alone.error == pytest.approx(1.0)


def test_schedules_rise_from_0_to_1_by_equal_factors():
    found = powers(10, 1e-3)
    assert (len(found), found[0], found[-1]) == (11, 0.0, 1.0)
    assert np.allclose(found[2:] / found[1:-1], 1e-3**-0.1)


@pytest.mark.equation("M20")
def test_equalised_powers_share_the_scatter(joint):
    schedule = np.array([0.0, 0.1, 0.4, 1.0])
    found = equalised(schedule, np.array([10.0, 5.0, 1.0]), 31)
    length = np.interp(found, schedule, [0.0, 1.0, 2.5, 3.1])
    assert np.allclose(np.diff(length), 0.1)
    assert (found[0], found[-1]) == (0.0, 1.0)
    # measured on the model: a second pilot finds equal terms, the geometric schedule does not
    rng, rough = RNG(10), powers(60, smallest=1e-4)
    first = pilot(along(joint), joint.draw_prior(rng, 500), HMC(), rough, rng)
    even = equalised(rough, first.spread, 60)
    second = pilot(along(joint), joint.draw_prior(rng, 500), HMC(), even, rng)
    before, after = first.spread * np.diff(rough), second.spread * np.diff(even)
    assert before.std() / before.mean() > 0.8
    assert after.std() / after.mean() < 0.3


def half(zero):
    """A path of normal densities, 0 where the first number is negative and the power is so."""

    def path(power):
        def target(position):
            out = (position[:, 0] < 0) & zero(power)
            value = -0.5 * (position**2).sum(axis=1)
            return np.where(out, -np.inf, value), np.where(out[:, None], 0.0, -position)

        return target

    return path


def test_without_data_the_evidence_is_one_and_chains_of_density_0_weigh_nothing(problem):
    nothing = LogJoint(problem.model, np.zeros((0, 2)), np.zeros((0, 1)))
    found = evidence(nothing, chains=10, steps=5, seed=0)
    assert np.array_equal(found.log_weights, np.zeros(10))
    assert (found.log_evidence, found.error) == pytest.approx((0.0, 0.0), abs=1e-12)

    rng, later = RNG(0), half(lambda power: power > 0)
    start = rng.standard_normal((2000, 2))
    schedule = np.array([0.0, 0.5, 1.0])
    kernel = MetropolisHastings(GaussianWalk())
    cut = anneal(later, start, [kernel] * 2, schedule, rng)
    assert np.array_equal(np.isfinite(cut.log_weights), start[:, 0] >= 0)
    assert abs(cut.log_evidence - np.log(0.5)) < 4 * cut.error
    assert cut.lower == -np.inf
    tuned = pilot(later, start, HMC(), schedule, rng).kernels
    again = anneal(later, start, tuned, schedule, rng)
    assert abs(again.log_evidence - np.log(0.5)) < 4 * cut.error
    with pytest.raises(ValueError, match="no chain has a density above 0"):
        anneal(later, -np.abs(start), [kernel] * 2, schedule, rng)


def test_a_chain_from_where_the_density_is_0_is_refused():
    """Were the next density above 0, its weight would be infinite, and so the evidence."""
    first = half(lambda power: power == 0)
    for start in (np.array([[1.0], [-1.0]]), np.array([[-2.0], [-1.0]])):
        with pytest.raises(ValueError, match="its weight would be infinite"):
            anneal(first, start, [HMC()], powers(1), RNG(0))
        with pytest.raises(ValueError, match="its weight would be infinite"):
            pilot(first, start, HMC(), powers(1), RNG(0))


@pytest.mark.equation("M20")
def test_the_bayes_factor_by_annealing_is_the_exact_one():
    exact, runs = [], []
    for scale in (1.0, 10.0):
        problem = closed.draw(np.random.default_rng(0), rows=25, noise=0.5, prior=scale)
        exact.append(closed.exact(problem).log_evidence)
        joint = LogJoint(problem.model, problem.x, problem.y)
        runs.append(evidence(joint, chains=400, steps=100, seed=1))
    factor = bayes_factor(*runs)
    assert abs(factor.log - (exact[0] - exact[1])) < 4 * factor.error < 1.2
    assert bayes_factor(*runs[::-1]).log == -factor.log


@pytest.mark.equation("M20")
def test_words_change_where_kass_and_raftery_say():
    # 2 log B at 2, 6, 10; Bayes factors of about 3, 20, 150
    words = [in_words(0.5 * twice) for twice in (0.0, 1.9, 2.0, 5.9, 6.0, 9.9, 10.0)]
    bare, positive, strong, most = dict.fromkeys(words)
    assert words == [bare, bare, positive, positive, strong, strong, most]
    assert [in_words(-7.0), in_words(7.0)] == [
        f"very strong, for the {w}" for w in ("second", "first")
    ]

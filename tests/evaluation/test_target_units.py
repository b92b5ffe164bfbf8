"""target_units: predictions of log y in units of y, against the log-normal laws of SciPy."""

import numpy as np
import pytest
from scipy import stats

from bbb_numpy import MLP, MeanField, Model, Reparameterised
from bbb_numpy.evaluation import predictive
from bbb_numpy.evaluation.quantiles import quantiles
from bbb_numpy.evaluation.target_units import LogUnits, TargetUnits
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.student_t import StudentTLikelihood
from bbb_numpy.training.laplace import Laplace, Linearised

SAMPLES = 40
UNITS = LogUnits(np.array([1.0, -2.0]), np.array([0.8, 0.3]))
X = np.linspace(-1.5, 1.5, 5)[:, None]


def rng():
    return np.random.default_rng(5)


def problem(likelihood, dtype=np.float64):
    """Return an estimator with two outputs, and parameters far from the initial ones."""
    sizes = (1, 4, likelihood.heads(2))
    estimator = Reparameterised(Model(MLP(sizes), likelihood=likelihood), MeanField())
    theta = estimator.init(rng(), dtype)
    return estimator, (theta + 0.3 * rng().standard_normal(theta.shape)).astype(dtype)


def components(estimator, theta, largest=np.inf):
    """Return the laws of y given each weight sample, S log-normal distributions at (N, K).

    The standard deviation of standardised log y is `largest` at most.
    """
    means, scales = predictive.mixture(estimator, theta, X, rng=rng(), samples=SAMPLES)
    scales = np.minimum(scales, largest)
    location = UNITS.mean + UNITS.scale * means
    return stats.lognorm(s=UNITS.scale * scales, scale=np.exp(location))


GAUSSIAN = [GaussianLikelihood(0.4, learn=True), HeteroscedasticLikelihood()]


@pytest.mark.equation("D73")
@pytest.mark.parametrize("likelihood", GAUSSIAN)
def test_moments_are_those_of_the_mixture_of_log_normal_laws(likelihood):
    estimator, theta = problem(likelihood)
    laws = components(estimator, theta, np.inf if likelihood.noise_name else 1.0)
    p = UNITS.predict(estimator, theta, X, rng=rng(), samples=SAMPLES)
    assert np.allclose(p.mean, laws.mean().mean(axis=0), rtol=1e-10)
    assert np.allclose(p.epistemic, laws.mean().std(axis=0, ddof=1), rtol=1e-10)
    assert np.allclose(p.aleatoric**2, laws.var().mean(axis=0), rtol=1e-10)
    functions = UNITS.sample_functions(estimator, theta, X, rng=rng(), samples=SAMPLES)
    assert np.allclose(functions, laws.mean(), rtol=1e-10)
    between = UNITS.covariance(estimator, theta, X, rng=rng(), samples=SAMPLES)
    assert np.allclose(between[0, 3], np.diag(np.cov(functions[:, 0].T, functions[:, 3].T)[2:]))
    assert np.allclose(between[2, 2], p.total[2] ** 2, rtol=1e-10)


@pytest.mark.equation("D73")
@pytest.mark.parametrize("likelihood", GAUSSIAN)
def test_density_and_quantiles_are_those_of_the_mixture_of_log_normal_laws(likelihood):
    estimator, theta = problem(likelihood)
    laws = components(estimator, theta)
    y = np.exp(UNITS.mean) * rng().uniform(0.2, 3.0, (len(X), 2))
    z = (UNITS.from_y(y) - UNITS.mean) / UNITS.scale
    density = predictive.log_predictive_density(estimator, theta, X, z, rng=rng(), samples=SAMPLES)
    exact = np.log(np.exp(laws.logpdf(y).sum(axis=-1)).mean(axis=0))
    assert np.allclose(density + UNITS.log_slope(z), exact, rtol=1e-10)
    of_z = quantiles(estimator, theta, X, [0.05, 0.5, 0.99], rng=rng(), samples=SAMPLES)
    for level, q in zip((0.05, 0.5, 0.99), UNITS.to_y(of_z), strict=True):
        assert np.allclose(laws.cdf(q).mean(axis=0), level, atol=1e-9)


@pytest.mark.equation("D73")
def test_draws_have_the_moments_and_the_quantiles():
    estimator, theta = problem(GAUSSIAN[0])
    draws = UNITS.sample_targets(estimator, theta, X, rng=rng(), samples=20_000)
    p = UNITS.predict(estimator, theta, X, rng=rng(), samples=20_000)
    assert (np.abs(draws.mean(axis=0) - p.mean) < 4.5 * p.total / np.sqrt(20_000)).all()
    below = np.mean(
        draws < UNITS.to_y(quantiles(estimator, theta, X, [0.9], rng=rng(), samples=2000)), axis=0
    )
    assert np.abs(below - 0.9).max() < 4.5 * np.sqrt(0.09 / 2000)


@pytest.mark.equation("D73")
def test_of_a_linearised_network_y_is_one_log_normal_law():
    likelihood = GaussianLikelihood(0.4, learn=True)
    model = Model(MLP((1, 3, 2)), likelihood=likelihood)
    estimator = Linearised(model, Laplace("diagonal"))
    size = estimator.layout.size
    theta = np.abs(rng().standard_normal(size)) * 0.4
    options = {"rng": rng(), "samples": 1}
    of_logs = TargetUnits(UNITS.mean, UNITS.scale).predict(estimator, theta, X, **options)
    p = UNITS.predict(estimator, theta, X, **options)
    law = stats.lognorm(s=of_logs.total, scale=np.exp(of_logs.mean))
    of_noise = stats.lognorm(s=of_logs.aleatoric, scale=np.exp(of_logs.mean))
    of_means = stats.lognorm(s=of_logs.epistemic, scale=of_noise.mean())
    assert np.allclose(p.mean, law.mean())
    assert np.allclose(p.total, law.std())
    assert np.allclose(p.epistemic, of_means.std())
    # E[y_i y_j] is the mean of the log-normal product y_i y_j
    cov = TargetUnits(UNITS.mean, UNITS.scale).covariance(estimator, theta, X, **options)
    between = UNITS.covariance(estimator, theta, X, **options)
    sd = np.sqrt(cov[1, 1] + cov[4, 4] + 2 * cov[1, 4])
    product = stats.lognorm(s=sd, scale=np.exp(of_logs.mean[1] + of_logs.mean[4]))
    assert np.allclose(between[1, 4], product.mean() - p.mean[1] * p.mean[4])
    assert np.allclose(between[3, 3], p.total[3] ** 2)
    functions = UNITS.sample_functions(estimator, theta, X, rng=rng(), samples=20_000)
    error = functions.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(functions.mean(axis=0) - p.mean) < 4.5 * error).all()


@pytest.mark.equation("D73")
def test_noise_that_depends_on_x_is_cut_in_moments_and_a_constant_one_is_not():
    estimator, theta = problem(GAUSSIAN[1])
    theta += 4.0  # wide weights
    _, scales = predictive.mixture(estimator, theta, X, rng=rng(), samples=SAMPLES)
    assert scales.max() > 3
    p = UNITS.predict(estimator, theta, X, rng=rng(), samples=SAMPLES)
    laws = components(estimator, theta, 1.0)
    assert np.allclose(p.mean, laws.mean().mean(axis=0), rtol=1e-10)
    estimator, theta = problem(GaussianLikelihood(3.0))
    p = UNITS.predict(estimator, theta, X, rng=rng(), samples=SAMPLES)
    assert np.allclose(p.mean, components(estimator, theta).mean().mean(axis=0), rtol=1e-10)


def test_with_heavy_tails_the_median_stands_for_the_mean_and_the_variance_is_infinite():
    estimator, theta = problem(StudentTLikelihood(0.4, 3.0))
    p = UNITS.predict(estimator, theta, X, rng=rng(), samples=SAMPLES)
    means, _ = predictive.mixture(estimator, theta, X, rng=rng(), samples=SAMPLES)
    assert np.allclose(p.mean, UNITS.to_y(means).mean(axis=0))
    assert np.isfinite(p.epistemic).all()
    assert np.isinf(p.aleatoric).all()


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_targets_whose_squares_float32_cannot_hold_have_moments(size):
    units = LogUnits(UNITS.mean + np.log(size), UNITS.scale)
    estimator, theta = problem(GAUSSIAN[0])
    exact = UNITS.predict(estimator, theta, X, rng=rng(), samples=SAMPLES)
    single = units.predict(estimator, theta.astype(np.float32), X, rng=rng(), samples=SAMPLES)
    assert np.allclose(single.mean / size, exact.mean, rtol=0.5)
    assert np.isfinite(single.total).all()


def test_the_linear_units_are_shift_and_scale():
    units = TargetUnits(UNITS.mean, UNITS.scale)
    y = rng().standard_normal((6, 2))
    z = (units.from_y(y) - units.mean) / units.scale
    assert np.allclose(units.to_y(z), y)
    assert np.allclose(units.log_slope(z), -np.log(0.8 * 0.3))


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_target_that_is_not_positive_is_named(outputs):
    y = np.ones((4, outputs))
    y[2, -1] = -3.5
    with pytest.raises(ValueError, match="needs y > 0") as caught:
        LogUnits.from_y(y)
    place = "row 2" if outputs == 1 else "row 2, column 1"
    assert f"got -3.5 at {place}." in str(caught.value)

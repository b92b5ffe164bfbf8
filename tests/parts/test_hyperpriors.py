"""Hyperpriors are densities of logarithms, Jacobian included; a flat one is improper (D32)."""

import numpy as np
import pytest
from problems import complex_gradient, exact_posterior, linear_problem, relative_error
from scipy import stats

from bbb_numpy import GaussianLikelihood, GaussianPrior, Model, Reparameterised
from bbb_numpy.parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal

START = np.log([0.3, 2.0])
CASES = {  # with the distribution of the scale of each number
    "log-normal": (LogNormal(), lambda k: stats.lognorm(1.0, scale=np.exp(START[k]))),
    "log-normal, median": (LogNormal(0.7, 0.4), lambda k: stats.lognorm(0.4, scale=0.7)),
    "half-normal": (HalfNormal(0.6), lambda k: stats.halfnorm(scale=0.6)),
    "half-Cauchy": (HalfCauchy(2.5), lambda k: stats.halfcauchy(scale=2.5)),
}


@pytest.mark.equation("D32")
@pytest.mark.parametrize("name", CASES)
class TestEveryHyperprior:
    def test_it_is_the_density_of_the_scale_times_the_scale(self, name):
        hyperprior, scale_of = CASES[name]
        u = np.linspace(-5.0, 3.0, 50)[:, None] + np.zeros(2)
        expected = np.stack([scale_of(k).logpdf(np.exp(u[:, k])) + u[:, k] for k in range(2)], 1)
        np.testing.assert_allclose(hyperprior.log_density(u, START), expected, rtol=1e-12)

    def test_draws_follow_it(self, name):
        hyperprior, scale_of = CASES[name]
        drawn = hyperprior.draw(np.random.default_rng(1), (20_000, 2), START)
        assert drawn.shape == (20_000, 2)
        for k in range(2):
            assert stats.kstest(np.exp(drawn[:, k]), scale_of(k).cdf).pvalue > 1e-3

    def test_its_slope_is_its_derivative(self, name):
        hyperprior = CASES[name][0]
        u = np.random.default_rng(0).uniform(-4.0, 2.0, (7, 2))
        exact = complex_gradient(lambda v: hyperprior.log_density(v, START).sum(), u)
        assert relative_error(hyperprior.slope(u, START), exact) < 1e-13


@pytest.mark.equation("D32")
@pytest.mark.parametrize("hyperprior", [HalfNormal(0.6), HalfCauchy(2.5)])
def test_without_the_jacobian_it_would_have_infinite_mass(hyperprior):
    """p(e^u) alone tends to a constant at u = -infinity: the integral grows with the grid."""
    u = np.linspace(-200.0, -10.0, 1000)[:, None]
    without = hyperprior.log_density(u, START[:1]) - u
    assert without[0] == pytest.approx(without[-1], abs=1e-6)


@pytest.mark.equation("D32")
def test_far_tails_are_finite_and_steep_ones_underflow():
    u = np.array([[-700.0, 700.0]])
    assert np.isfinite(HalfCauchy().log_density(u, START)).all()
    assert np.isfinite(LogNormal().log_density(u, START)).all()
    assert HalfNormal().log_density(np.array([[-700.0]]), START[:1]) == pytest.approx(-700.2258)
    np.testing.assert_array_equal(np.abs(HalfCauchy().slope(u, START)), 1.0)


def marginal(log_scale):
    """Posterior of the prior's log scale, times a flat density: the evidence of a regression."""
    _, x, y = linear_problem(rows=10)
    model = Model(
        Reparameterised(linear_problem()[0].model).model.network,
        GaussianPrior(float(np.exp(log_scale))),
        GaussianLikelihood(0.3),
    )
    return np.exp(exact_posterior(Reparameterised(model), x, y).log_evidence)


@pytest.mark.equation("D32")
def test_under_a_flat_density_the_log_scale_of_the_prior_has_no_posterior():
    """The mass from -L to 0 grows with L for ever; with a hyperprior it does not."""
    _, _, y = linear_problem(rows=10)
    floor = np.exp(stats.norm.logpdf(y, 0.0, 0.3).sum())  # all weights 0
    assert marginal(-60.0) == pytest.approx(floor, rel=1e-9)
    assert floor > 0
    masses, proper = [], []
    for length in (50, 100, 200):
        u = np.linspace(-length, -20.0, 40 * (length - 20))
        values = np.array([marginal(v) for v in u[::20]])
        masses.append(np.mean(values) * (length - 20))
        log_density = LogNormal().log_density(u[::20, None], np.zeros(1))[:, 0]
        proper.append(np.mean(values * np.exp(log_density)) * (length - 20))
    np.testing.assert_allclose(masses, floor * np.array([30.0, 80.0, 180.0]), rtol=1e-6)
    assert max(proper) < 1e-50 * masses[0]

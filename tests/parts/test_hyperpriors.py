"""Hyperpriors are densities of logarithms, Jacobian included; a flat one is improper (D32)."""

import numpy as np
import pytest
from problems import complex_gradient, exact_posterior, linear_problem, relative_error
from scipy import stats

from bbb_numpy import GaussianLikelihood, GaussianPrior, Model, Reparameterised
from bbb_numpy.parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal

START = np.log([0.3, 2.0])
CASES = {
    "log-normal": (LogNormal(), lambda s, k: stats.lognorm.pdf(s, 1.0, scale=np.exp(START[k]))),
    "log-normal, median": (LogNormal(0.7, 0.4), lambda s, k: stats.lognorm.pdf(s, 0.4, scale=0.7)),
    "half-normal": (HalfNormal(0.6), lambda s, k: stats.halfnorm.pdf(s, scale=0.6)),
    "half-Cauchy": (HalfCauchy(2.5), lambda s, k: stats.halfcauchy.pdf(s, scale=2.5)),
}
GRID = np.linspace(-40.0, 40.0, 80_001)


def density(hyperprior, u):
    """p(u) of both numbers at every u, (S, 2)."""
    return np.exp(hyperprior.log_density(np.repeat(u[:, None], 2, axis=1), START))


def integral(values):
    return np.sum(0.5 * (values[1:] + values[:-1]), axis=0) * (GRID[1] - GRID[0])


@pytest.mark.equation("D32")
@pytest.mark.parametrize("name", CASES)
class TestEveryHyperprior:
    def test_it_integrates_to_one_over_the_logarithm(self, name):
        with np.errstate(over="ignore"):
            values = density(CASES[name][0], GRID)
        np.testing.assert_allclose(integral(values), 1.0, atol=1e-9)

    def test_it_is_the_density_of_the_scale_times_the_scale(self, name):
        hyperprior, pdf = CASES[name]
        u = np.linspace(-5.0, 3.0, 50)
        expected = np.stack([pdf(np.exp(u), k) * np.exp(u) for k in range(2)], axis=1)
        np.testing.assert_allclose(density(hyperprior, u), expected, rtol=1e-12)

    def test_its_slope_is_its_derivative(self, name):
        hyperprior = CASES[name][0]
        u = np.random.default_rng(0).uniform(-4.0, 2.0, (7, 2))
        exact = complex_gradient(lambda v: hyperprior.log_density(v, START).sum(), u)
        assert relative_error(hyperprior.slope(u, START), exact) < 1e-13

    def test_draws_follow_it(self, name):
        hyperprior = CASES[name][0]
        drawn = hyperprior.draw(np.random.default_rng(1), (20_000, 2), START)
        assert drawn.shape == (20_000, 2)
        with np.errstate(over="ignore"):
            values = density(hyperprior, GRID)
        steps = 0.5 * (values[1:] + values[:-1]) * (GRID[1] - GRID[0])
        cdf = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        for k in range(2):

            def function(u, k=k):
                return np.interp(u, GRID, cdf[:, k])

            assert stats.kstest(drawn[:, k], function).pvalue > 1e-3
            assert stats.kstest(drawn[:, k] + 0.1, function).pvalue < 1e-6


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

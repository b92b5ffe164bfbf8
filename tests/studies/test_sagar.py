"""Sagar's Algorithm 1: each printed line fails as said, the corrected one finds the optimum."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from tables import cells_of

from bbb_numpy import MeanField
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.model.objectives import EUBO, LogDensities
from bbb_numpy.numeric.elementary import sigmoid, softplus
from bbb_studies import linear_gaussian as exactly
from bbb_studies import sagar
from bbb_studies.sagar import VARIANTS, Equation5, ThroughTheSamples, Variant


@pytest.fixture(scope="module")
def mean():
    return sagar.gaussian_mean(np.random.default_rng(0))


@pytest.fixture(scope="module")
def regression():
    return sagar.correlated_regression(np.random.default_rng(1))


def at_a_point(kind, problem, seed=0, samples=30, **options):
    """Return an estimator, a theta away from the optimum, and noise."""
    estimator = kind(problem.model, MeanField(), EUBO(), **options)
    rng = np.random.default_rng(seed)
    size = problem.model.layout.size
    theta = np.concatenate([0.3 * rng.standard_normal(size), rng.uniform(-1, 0.5, size)])
    return estimator, theta, estimator.draw(rng, samples)


def gradient(estimator, theta, noise, problem):
    return estimator.value_and_grad(theta, noise, problem.x, problem.y)[1]


# (a) the weights


@pytest.mark.equation("G7")
def test_a_shift_changes_no_weight_as_long_as_nothing_overflows():
    log_w = np.array([-3.0, -1.0, -2.5])
    right = np.exp(log_w) / np.exp(log_w).sum()
    for shift in (log_w.min(), 5.0):
        assert sagar.shifted_weights(log_w, shift) == pytest.approx(right, rel=1e-14)


@pytest.mark.equation("G7")
@pytest.mark.parametrize("level", [-1000.0, 800.0])
def test_the_printed_shift_loses_all_weights_of_a_few_hundred_nats(level):
    log_w = level + np.array([0.0, -1.0, 2.0])
    assert np.isnan(sagar.shifted_weights(log_w, log_w.min())).any()
    zero = np.zeros(3)
    _, c = EUBO()(LogDensities(zero, log_w, zero), 1.0)
    assert -c.posterior == pytest.approx(np.exp([0, -1, 2]) / np.exp([0, -1, 2]).sum())


# (b) the gradient through g


@pytest.mark.equation("G8")
def test_through_g_the_data_cancel(regression):
    estimator, theta, noise = at_a_point(ThroughTheSamples, regression)
    d_mu, d_rho = gradient(estimator, theta, noise, regression).reshape(2, -1)
    rho = theta[3:]
    assert not d_mu.any()
    assert d_rho == pytest.approx(sigmoid(rho) / softplus(rho), rel=1e-13)
    assert (d_rho > 0).all()
    moved = regression._replace(y=regression.y + 10.0)
    assert gradient(estimator, theta, noise, moved) == pytest.approx([*d_mu, *d_rho], rel=1e-13)
    # The right one sees them. At the optimum for the first data: far from both optima one and
    # the same sample could have all of the weight for either data.
    best = exactly.inclusive_optimum(exactly.exact(regression))
    theta = MeanField().pack(best.mean, best.deviation)
    right = at_a_point(SelfNormalised, regression)[0]
    here, there = (gradient(right, theta, noise, p) for p in (regression, moved))
    assert np.abs(here - there).max() > 0.1


# (d) N / S inside the exponential


@pytest.mark.equation("G3", "G7")
@pytest.mark.parametrize("batch", [1, 2, 3, 5])
def test_the_fixed_point_of_minibatches_is_the_mixture_over_all_of_them(batch):
    """Every subset has its own posterior, as if it had been seen N / S times."""
    problem = sagar.gaussian_mean(np.random.default_rng(4), rows=5)
    precision = 5 / 1.6**2 + 1
    centres = [
        problem.y[list(rows)].mean() * (5 / 1.6**2) / precision
        for rows in combinations(range(5), batch)
    ]
    found = sagar.minibatch_fixed_point(problem, batch)
    assert found[0] == pytest.approx(np.mean(centres))
    assert found[1] == pytest.approx(sqrt(1 / precision + np.var(centres)))
    if batch == 5:
        assert found[1] == pytest.approx(exactly.exact(problem).posterior.deviation[-1])


# (e) Equation 5


@pytest.mark.equation("G5")
def test_equation_5_as_printed_is_off_by_the_bound_itself(regression):
    """Printed - corrected = sum w^ log w d log q: 0 for mu, -U^ sig(rho) / sigma for rho."""
    printed, theta, noise = at_a_point(Equation5, regression)
    corrected = Equation5(regression.model, MeanField(), EUBO(), corrected=True)
    gap = gradient(printed, theta, noise, regression)
    gap = gap - gradient(corrected, theta, noise, regression)
    bound = printed.value_and_grad(theta, noise, regression.x, regression.y)[0]
    rho = theta[3:]
    assert gap[:3] == pytest.approx(np.zeros(3), abs=1e-10)
    assert gap[3:] == pytest.approx(-bound * sigmoid(rho) / softplus(rho), rel=1e-10)


@pytest.mark.equation("G4", "G5")
def test_corrected_it_estimates_the_gradient_of_the_bound_and_printed_it_does_not(mean):
    found = sagar.slopes_of_rho(mean, np.random.default_rng(5), 1000)
    exact, nothing = found["exact"]
    assert nothing == 0
    for name in ("score form, G8", "Equation 5 corrected"):
        value, error = found[name]
        assert abs(value - exact) < 4 * error
    for name in ("Equation 5 as printed", "through g as printed"):
        value, error = found[name]
        assert abs(value - exact) > 20 * error


# Corrected


@pytest.mark.equation("G4", "G8")
def test_corrected_it_finds_the_moments_of_the_posterior(regression):
    """The marginals, and not the narrower optimum of the free energy."""
    path = sagar.follow(Variant("", samples=1000), regression, np.random.default_rng(2), 1000)
    truth = exactly.exact(regression)
    best, narrow = exactly.inclusive_optimum(truth), exactly.reverse_optimum(truth)
    assert (np.abs(path.means[-1] - best.mean) < 0.1 * best.deviation).all()
    assert path.deviations[-1] == pytest.approx(best.deviation, rel=0.06)
    assert (path.deviations[-1] > 1.2 * narrow.deviation).all()
    assert sagar.excess(regression, path.last) < 0.01


# The tables


@pytest.fixture(scope="module")
def reproduced(short):
    return short("sagar-toy")


def test_each_printed_line_fails_and_the_corrected_one_does_not(reproduced):
    claims = cells_of(reproduced.text, "claim of the paper")
    *held, last = [cells[-1] for cells in claims.values()]
    assert held == ["no"] * 5
    assert float(last.removesuffix(" s.e. off")) > 4
    assert cells_of(reproduced.text, "ours")["corrected, G8"][-1] == "yes"


def test_tables_show_the_numbers(reproduced):
    text, _, numbers, _ = reproduced
    printed = text.splitlines()
    for name, variant in VARIANTS.items():
        q = numbers["gaussian mean"][name]
        row = next(line for line in printed if line.startswith(variant.title))
        assert row.split()[-2:] == [f"{q['mean'][-1]:.4f}", f"{q['deviation'][-1]:.4g}"]
    assert [row["batch"] for row in numbers["by batch"]] == [1, 2, 5, 10, 20]
    assert [row["samples"] for row in numbers["by samples"]] == [1, 5]
    assert numbers["weights"][2]["effective"]["+ min"] is None
    assert numbers["paths apart"]["one"] < 1e-12

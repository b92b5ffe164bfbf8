"""fit_measures: every number of a fit report is what its name says."""

from math import isnan, nan

import numpy as np
import pytest
from scipy import stats

from bbb_numpy import (
    MLP,
    BernoulliLikelihood,
    CategoricalLikelihood,
    DrawnWeights,
    GaussianLikelihood,
    GaussianPrior,
    Model,
    PoissonLikelihood,
)
from bbb_numpy.learners import fit_measures
from bbb_numpy.training import Epoch

ROWS = 64
X = np.random.default_rng(0).uniform(-3, 3, (ROWS, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(ROWS)
CLASSES = (Y > 0).astype(int)
COUNTS = np.random.default_rng(2).poisson(np.exp(1 + X[:, 0] / 2))


def function_sd(prior, sizes, y=Y):
    model = Model(MLP(sizes), prior, GaussianLikelihood())
    return fit_measures.prior_function_sd(DrawnWeights(model), X, y[:, None], 0)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 20, 1), (1, 20, 20, 1), (1, 20, 20, 20, 1)])
def test_functions_of_a_relu_network_vary_by_a_power_of_the_width_of_its_prior(sizes):
    """Of c times as wide a prior the functions are c^layers times as large.

    The last biases do not vary from row to row; from the third layer on others are lower powers.
    """
    narrow, wide = (function_sd(GaussianPrior(scale), sizes) for scale in (0.1, 0.2))
    layers = len(sizes) - 1
    assert wide / narrow == pytest.approx(2**layers, rel=1e-12 if layers < 3 else 0.2)
    of_larger_y = function_sd(GaussianPrior(0.1), sizes, y=10 * Y)
    assert of_larger_y == pytest.approx(narrow / 10, rel=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "y", "density", "free"),
    [
        (BernoulliLikelihood(), CLASSES[:, None], lambda y, p: np.where(y, p, 1 - p), 1),
        (CategoricalLikelihood(), np.eye(3)[np.arange(ROWS) % 3 // 2 * 2], lambda y, p: y @ p, 2),
        (PoissonLikelihood(), COUNTS[:, None], lambda y, p: stats.poisson(p).pmf(y), 1),
    ],
)
def test_bases_of_classes_and_counts_are_their_rates(likelihood, y, density, free):
    log_density, n_parameters = fit_measures.baseline_log_density(
        likelihood, y.astype(float), y.astype(float)
    )
    p = (y.sum(axis=0) + 0.5) / (len(y) + (1.0 if y.shape[1] == 1 else 1.5))
    if isinstance(likelihood, PoissonLikelihood):
        p = (y.sum(axis=0) + 0.5) / len(y)
    expected = np.log(density(y, p)).reshape(len(y), -1)[:, 0]
    np.testing.assert_allclose(log_density, expected, rtol=1e-12)
    assert n_parameters == free


def history(losses):
    return [Epoch(0.0, 1.0, 100 * loss, 0.01, nan) for loss in losses]


def test_the_slope_is_that_of_the_last_quarter_and_its_error_that_of_a_line():
    time = np.arange(400)
    noise = 0.01 * np.random.default_rng(0).standard_normal(400)
    losses = np.where(time < 300, 50.0 - time, -0.001 * time) + noise
    slope, error = fit_measures.loss_slope(history(losses), 100)
    line = stats.linregress(time[300:], losses[300:])
    assert slope == pytest.approx(400 * line.slope)
    assert error == pytest.approx(400 * line.stderr)
    assert all(map(isnan, fit_measures.loss_slope(history([1.0] * 3), 100)))


def test_columns_are_squeezed_by_extreme_rows_and_by_nothing_else():
    x = np.random.default_rng(0).standard_normal((500, 3))
    x[:, 1] = x[:, 1] > 3  # rarely 1
    assert 0.7 < fit_measures.bulk_sd(x, x) < 1.1
    x[17, 2] = 1e6
    assert fit_measures.bulk_sd(x, x) < 1e-4
    x[:, 2] = 1.0
    x[17, 2] = 1e6  # the bulk has nothing to lose
    assert 0.7 < fit_measures.bulk_sd(x, x) < 1.1


def test_halves_of_chains_that_stand_still_or_drift_differ():
    draws = np.random.default_rng(0).standard_normal((1000, 4))
    assert fit_measures.split_r_hat(draws) == pytest.approx(1.0, abs=0.01)
    drift = draws + np.linspace(0.0, 3.0, 1000)[:, None]
    assert fit_measures.split_r_hat(drift) > 1.2
    assert fit_measures.split_r_hat(np.ones((10, 2))) == np.inf
    assert fit_measures.split_r_hat(draws[:3]) == np.inf


def test_the_loss_rises_above_its_lowest_value_before():
    assert fit_measures.largest_loss_rise(history([3.0, 1.0, 2.5, 0.5, 1.0]), 100) == 1.5
    assert fit_measures.largest_loss_rise(history([3.0, 2.0, 1.0]), 100) == 0.0


def test_along_the_path_the_epochs_of_a_falling_rate_are_few():
    losses = [Epoch(0.0, 1.0, 100 * loss, rate, nan)
              for loss, rate in zip([5.0, 4.0, 3.0, 2.0, 1.0], [1.0] * 5, strict=True)]  # fmt: skip
    slope, error = fit_measures.loss_slope_along_path(losses, 100)
    assert slope == pytest.approx(-5.0)  # one nat in each fifth of the path
    assert error == pytest.approx(0.0, abs=1e-6)
    assert all(map(isnan, fit_measures.loss_slope_along_path(losses[:3], 100)))


def test_the_spread_of_functions_does_not_depend_on_blocks_of_rows(monkeypatch):
    model = Model(MLP((1, 20, 1)), GaussianPrior(1.0), GaussianLikelihood())
    draws = np.random.default_rng(0).standard_normal((64, model.layout.size))
    fit = fit_measures.JudgedFit(DrawnWeights(model), draws, 0, X, Y[:, None], 8)
    whole = fit.posterior_function_sd()
    monkeypatch.setattr("bbb_numpy.evaluation.predictive.CACHE_NUMBERS", 1)
    monkeypatch.setattr("bbb_numpy.evaluation.predictive.MIN_BLOCK_ROWS", 7)
    assert fit.posterior_function_sd() == pytest.approx(whole, rel=1e-12)

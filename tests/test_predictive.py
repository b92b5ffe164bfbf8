"""predictive: moments of the functions drawn, the variance split, and bounded memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import linear_problem, problems

from bbb_numpy import MLP, Model, Reparameterised
from bbb_numpy.numerics import softplus
from bbb_numpy.predictive import (
    log_predictive_density,
    predict,
    sample_functions,
    sample_targets,
)


def rng():
    return np.random.default_rng(3)


@pytest.mark.equation("D4")
@given(problem=problems(rows=st.integers(1, 5)), samples=st.integers(2, 600))
def test_moments_are_those_of_the_functions_drawn_with_the_same_generator(problem, samples):
    e, theta, x = problem.estimator, problem.theta, problem.x
    functions = sample_functions(e, theta, x, rng=rng(), samples=samples)
    found = predict(e, theta, x, rng=rng(), samples=samples)
    size = 1 + np.abs(functions).max()
    assert np.allclose(found.mean, functions.mean(axis=0), rtol=0, atol=1e-12 * size)
    assert np.allclose(found.epistemic, functions.std(axis=0, ddof=1), rtol=1e-7, atol=1e-7 * size)


@pytest.mark.equation("D4")
def test_in_the_linear_model_both_deviations_have_closed_forms():
    # Var_q[f(x)] = sum_j x_j^2 sigma_j^2 for f = [x 1] w with independent w_j
    estimator, x, _ = linear_problem(noise=0.3)
    theta = np.array([1.0, -2.0, 0.5, 0.3, -1.0, 0.1])
    found = predict(estimator, theta, x, rng=rng(), samples=20_000)
    design = np.hstack([x, np.ones((len(x), 1))])
    deviation = np.sqrt(design**2 @ softplus(theta[3:]) ** 2)
    error = 1 / np.sqrt(2 * 20_000)
    assert np.abs(found.epistemic[:, 0] / deviation - 1).max() < 4 * error
    z = (found.mean[:, 0] - design @ theta[:3]) / (deviation / np.sqrt(20_000))
    assert np.abs(z).max() < 4.5
    assert np.allclose(found.aleatoric, 0.3, rtol=1e-12)
    assert np.allclose(found.total**2, found.epistemic**2 + 0.09, rtol=1e-12)


@pytest.mark.equation("D4")
def test_drawn_targets_scatter_with_the_total_deviation():
    estimator, x, _ = linear_problem(noise=0.7)
    theta = np.array([1.0, -2.0, 0.5, 0.3, -1.0, 0.1])
    targets = sample_targets(estimator, theta, x[:4], rng=rng(), samples=20_000)
    total = predict(estimator, theta, x[:4], rng=rng(), samples=20_000).total
    assert np.abs(targets.std(axis=0) / total - 1).max() < 4 * np.sqrt(2 / (2 * 20_000))


@pytest.mark.equation("D5")
def test_log_predictive_density_of_the_linear_model_is_a_normal_density():
    estimator, x, y = linear_problem(noise=0.5)
    theta = np.array([0.3, 0.2, 0.4, -1.0, -1.0, -1.0])
    found = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=50_000)
    design = np.hstack([x, np.ones((len(x), 1))])
    variance = design**2 @ softplus(theta[3:]) ** 2 + 0.25
    residual = y[:, 0] - design @ theta[:3]
    exact = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
    near = residual**2 / variance < 9  # far in the tail a sum of samples is no estimate
    assert near.sum() > 20
    assert np.abs(found - exact)[near].max() < 0.05


@pytest.mark.equation("D5")
def test_it_is_the_mean_of_densities_not_of_log_densities():
    estimator, x, y = linear_problem(noise=0.5)
    theta = np.array([0.3, 0.2, 0.4, 0.0, 0.0, 0.0])
    found = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=4_000)
    f = sample_functions(estimator, theta, x, rng=rng(), samples=4_000)
    pointwise = -0.5 * (np.log(2 * np.pi * 0.25) + (y - f)[:, :, 0] ** 2 / 0.25)
    assert np.allclose(found, np.log(np.exp(pointwise).mean(axis=0)), rtol=1e-9)
    assert np.all(found > pointwise.mean(axis=0) + 0.1)


@given(problem=problems(rows=st.integers(2, 5)))
def test_a_rows_prediction_does_not_depend_on_the_other_rows(problem):
    e, theta, x = problem.estimator, problem.theta, problem.x
    together = sample_functions(e, theta, x, rng=rng(), samples=5)
    alone = sample_functions(e, theta, x[1:2], rng=rng(), samples=5)
    assert np.allclose(together[:, 1], alone[:, 0], rtol=1e-12, atol=1e-12)


def test_one_draw_of_weights_is_one_function_of_all_rows():
    estimator, _, _ = linear_problem()
    theta = np.zeros(6)
    x = np.linspace(-1, 1, 7)[:, None] * [[1.0, 2.0]]
    f = sample_functions(estimator, theta, x, rng=rng(), samples=3)
    assert np.allclose(np.diff(f, n=2, axis=1), 0, atol=1e-12)  # straight lines
    assert f.std(axis=0).min() > 0


def test_one_sample_has_no_epistemic_deviation():
    estimator, x, _ = linear_problem()
    assert not predict(estimator, np.zeros(6), x, rng=rng(), samples=1).epistemic.any()


def test_ten_thousand_samples_do_not_need_more_memory_than_a_hundred():
    estimator = Reparameterised(Model(MLP((1, 20, 1))))
    theta = estimator.init(rng(), np.float32)
    x = np.linspace(-1, 1, 30_000, dtype=np.float32)[:, None]

    def peak(samples):
        tracemalloc.start()
        predict(
            estimator, theta, x[: 30_000 if samples <= 600 else 1_000], rng=rng(), samples=samples
        )
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(600) < 80e6  # all activations at once would be 600 x 30,000 x 20 x 4 B = 1.4 GB
    assert peak(10_000) < 80e6


@pytest.mark.parametrize("samples", [0, -3, 2.5])
def test_impossible_sample_counts_are_refused(samples):
    estimator, x, _ = linear_problem()
    with pytest.raises(ValueError, match="samples must be a whole number >= 1"):
        predict(estimator, np.zeros(6), x, rng=rng(), samples=samples)


def test_rows_of_another_width_are_refused():
    estimator, x, _ = linear_problem()
    with pytest.raises(ValueError, match=r"x must have shape \(rows, 2\); got \(40, 1\)"):
        predict(estimator, np.zeros(6), x[:, :1], rng=rng())

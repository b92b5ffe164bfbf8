"""The two toy problems have the curves, ranges and noise that the report writes down."""

import numpy as np
import pytest

from bbb_studies.data.toys import Toy, cubic, sine, sine_curve

PROBLEMS = {"sine": (sine, 0.0, 0.5, 0.02), "cubic": (cubic, -4.0, 4.0, 3.0)}
problems = pytest.mark.parametrize(
    ("draw", "low", "high", "noise"), PROBLEMS.values(), ids=PROBLEMS
)
ROWS = 40_000


def in_standard_errors(values, expected):
    return abs(values.mean() - expected) / (values.std(ddof=1) / np.sqrt(values.size))


@problems
def test_there_are_500_rows_of_one_column_by_default(draw, low, high, noise):
    data = draw(np.random.default_rng(0))
    assert isinstance(data, Toy)
    assert data.x.shape == data.y.shape == (500, 1)
    assert data.x.dtype == data.y.dtype == np.float64


def test_the_cubic_scatters_by_a_standard_deviation_of_3_and_not_a_variance_of_3():
    data = cubic(np.random.default_rng(2), ROWS)
    residual = data.y - data.x**3
    assert in_standard_errors(residual, 0.0) < 4
    assert in_standard_errors(residual**2, 9.0) < 4
    assert in_standard_errors(residual**4, 3 * 9.0**2) < 4
    assert abs(np.corrcoef(data.x[:, 0], residual[:, 0])[0, 1]) < 4 / np.sqrt(ROWS)


def test_the_scatter_of_the_sine_problem_is_the_slope_times_eps():
    """Var(y|x) = f'(x)^2 0.02^2 to first order: the 0.063 that a model has to learn."""
    data = sine(np.random.default_rng(5), ROWS, noise=0.002)  # small: first order suffices
    angle = 2 * np.pi * data.x
    slope = 1 + 0.6 * np.pi * np.cos(angle) + 1.2 * np.pi * np.cos(2 * angle)
    standardised = (data.y - data.truth(data.x)) / (0.002 * slope)
    steep = np.abs(slope) > 1
    assert in_standard_errors(standardised[steep] ** 2, 1.0) < 4
    # and not only to first order: x by midpoints, eps by Gauss and Hermite
    eps, weights = np.polynomial.hermite_e.hermegauss(20)
    x = (np.arange(1000) + 0.5)[:, None] / 2000
    square = (sine_curve(x + 0.02 * eps) - sine_curve(x)) ** 2
    exact = np.mean(square @ weights) / weights.sum()
    assert np.sqrt(exact) == pytest.approx(0.063, abs=0.001)
    coarse = sine(np.random.default_rng(6), ROWS)
    assert in_standard_errors((coarse.y - coarse.truth(coarse.x)) ** 2, exact) < 4


@problems
def test_without_noise_y_is_the_true_curve(draw, low, high, noise):
    data = draw(np.random.default_rng(7), 50, noise=0.0)
    assert np.array_equal(data.y, data.truth(data.x))

"""scores: weights of rows, and R^2 as scikit-learn defines it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbb_numpy.learners.scores import check_weights, r_squared

ROWS = np.zeros((4, 1))


def test_weights_sum_to_one():
    np.testing.assert_array_equal(check_weights(None, ROWS), [0.25] * 4)
    np.testing.assert_allclose(check_weights([1, 0, 2, 1], ROWS), [0.25, 0, 0.5, 0.25], rtol=1e-15)
    np.testing.assert_allclose(check_weights([1e308] * 4, ROWS), [0.25] * 4, rtol=1e-15)


@pytest.mark.parametrize("weights", [[1, 1, 1], [-1, 1, 1, 1], [0] * 4, ROWS, [np.nan] * 4, "abcd"])
def test_other_weights_are_refused(weights):
    with pytest.raises(ValueError, match="sample_weight"):
        check_weights(weights, ROWS)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-200, 290))
def test_r2_is_that_of_scikit_learn_in_any_units(seed, exponent):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    y, mean = rng.normal(size=(2, 9, 2))
    weights = check_weights(rng.random(9), y)
    expected = metrics.r2_score(y, mean, sample_weight=weights)
    unit = 10.0**exponent
    assert r_squared(unit * y, unit * mean, weights) == pytest.approx(expected, rel=1e-9)


def test_a_constant_column_is_predicted_exactly_or_not_at_all():
    y, weights = np.full((5, 2), 0.1), np.full(5, 0.2)
    assert r_squared(y, y, weights) == 1.0
    assert r_squared(y, y + np.array([0.0, 1e-9]), weights) == 0.5

"""standardisation: every column by itself, whatever the size of the others."""

import numpy as np
import pytest

from bbb_numpy.numeric.standardisation import moments, standardise


@pytest.mark.parametrize("sizes", [(1.0, 1.0), (1e200, 1e-150), (1e-300, 1e300)])
def test_columns_of_any_size_get_mean_0_and_deviation_1(sizes):
    columns = np.random.default_rng(0).standard_normal((20, 2)) * sizes
    mean, scale = moments(columns, True)
    standard = standardise(columns, mean, scale, np.float64, "X")
    assert np.abs(standard.mean(axis=0)).max() < 1e-12
    assert standard.std(axis=0) == pytest.approx([1.0, 1.0], rel=1e-12)


def test_a_constant_column_becomes_0_and_nothing_is_done_where_none_is_asked():
    columns = np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 5.0]])
    standard = standardise(columns, *moments(columns, True), np.float64, "X")
    assert (standard[:, 0] == 0).all()
    mean, scale = moments(columns, False)
    assert (standardise(columns, mean, scale, np.float64, "X") == columns).all()


@pytest.mark.equation("D45")
def test_weighted_moments_are_those_of_the_copies():
    columns = np.random.default_rng(0).standard_normal((6, 2)) + 3.0
    counts = np.array([1, 3, 2, 1, 4, 1])
    weighted = moments(columns, True, counts.astype(float))
    copies = moments(np.repeat(columns, counts, axis=0), True)
    np.testing.assert_allclose(weighted, copies, rtol=1e-13)


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 3.0])])
def test_a_column_of_zeros_is_a_constant_one(weights):
    mean, scale = moments(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]), True, weights)
    assert (mean[0], scale[0]) == (0.0, 1.0)


@pytest.mark.parametrize(("large", "dtype"), [(1e39, np.float32), (-1.7e308, np.float64)])
def test_the_first_number_that_is_too_large_is_named(large, dtype):
    columns = np.array([[0.0, 1.0], [2.0, large], [large, 3.0]])
    with pytest.raises(ValueError, match=r"^X is too large at row 1, column 1 for float"):
        standardise(
            columns, np.array([1e308, 1e308]) * (dtype is np.float64), np.ones(2), dtype, "X"
        )

"""What users pass in is either converted, or refused with the argument's name."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array
from sklearn.exceptions import DataConversionWarning

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor
from bbb_numpy.learners.rows import MAX_ROTATED_INPUTS, check_pair, prepare_rows, principal_axes
from bbb_numpy.training.recipe import Rows

NAN, INF = float("nan"), float("inf")
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
DAYS = pd.date_range("2020-01-01", periods=2)


def numbers(x, y):
    return check_pair(BayesianMLPRegressor(), x, y, first=True, labels=False)


def labels(y):
    x = np.zeros((len(y), 1)) if y is not None else [[0.0]]
    return check_pair(BayesianMLPClassifier(), x, y, first=True, labels=True)[1]


@pytest.mark.parametrize(
    "x",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], np.float32),
        np.array([[1, 2], [3, 4]], object),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.ma.array([[1.0, 2.0], [3.0, 4.0]]),
        pd.DataFrame([[1, 2], [3, 4]], columns=["a", "b"]),
    ],
    ids=["list", "float32", "object", "fortran", "unmasked", "frame"],
)
def test_numbers_in_any_container_become_float64(x):
    for array in numbers(x, x):
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0, NAN]], "contains NaN"),
        ([[1.0, -INF]], "contains infinity"),
        ([["1.5", "a"]], "bytes/strings|must hold numbers; got <U3"),
        (np.array([[1.0, "b"]], object), "could not convert string to float: 'b'"),
        ([[1.0 + 2.0j, 0.0]], "Complex data not supported"),
        (np.array([["2020-01-01", "2020-01-02"]], "datetime64[D]"), "must hold numbers; got date"),
        (np.array([[1, 2]], "timedelta64[D]"), "must hold numbers; got timedelta"),
        ([[1.0, np.datetime64("2020")]], "must hold numbers; some are dates or time differences"),
        (np.array([[1.0, np.timedelta64(1)]], object), "must hold numbers; some are dates"),
        (FRAME.assign(when=DAYS), r"column 'when' holds datetime64.*fit .* --dates 'when'$"),
        (
            FRAME.assign(when=DAYS.tz_localize("UTC")),
            "'when' holds datetime64.*UTC.*--dates 'when'",
        ),
        (FRAME.assign(when=DAYS.to_period("D")), "'when' holds period.D.*--dates 'when'"),
        (FRAME.assign(when=[*DAYS.date]), "'when' holds object, .*date.2020, 1, 1.*--dates 'when'"),
        (FRAME.assign(when=DAYS - DAYS[0]), "column 'when' holds timedelta64"),
        (FRAME.assign(kind=["1", "b"]), "column 'kind' holds .*, such as 'b': encode"),
        (FRAME.assign(kind=pd.Categorical(["a", "b"])), "'kind' holds category, such as 'a': enc"),
        (coo_array(np.eye(2)), "[Ss]parse|must hold numbers"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), r"masked entries, the first at \[0, 1\]"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((2, 2, 2)), "dim 3"),
    ],
)
def test_other_cells_are_refused_in_x_and_y(bad, message):
    good = np.zeros((max(np.shape(bad)[0], 1), 2))
    for pair in ((bad, good), (good, bad)):
        with pytest.raises((TypeError, ValueError), match=message):
            numbers(*pair)


LABELS = [
    ["b", "a", "b"],
    [3, 1, 3],
    [3.0, 1.0, 3.0],
    [True, False, True],
    np.array(["b", "a", "b"], object),
    np.array(["2021", "2020", "2021"], "datetime64[D]"),
    pd.Series(["b", "a", "b"]),
]


@pytest.mark.parametrize("y", LABELS, ids=lambda y: f"{type(y).__name__} of {y[0]!r}")
def test_labels_of_any_type_keep_it(y):
    checked = labels(y)
    np.testing.assert_array_equal(checked, np.asarray(y))
    assert checked.dtype == np.asarray(y).dtype


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "a label is missing|requires y"),
        ([[0, 1], [1, 0]], "1d array"),
        ([1, "a"], "y mixes text with other labels"),
        (np.array([1, "a"], object), "y mixes text with other labels"),
        (np.array([1, 2], object), "Unknown label type"),
        ([1.0, NAN], "contains NaN"),
        (["a", None], "NaN or None at row 1: a label is missing"),
        (pd.Series(["a", None], dtype="string"), "label is missing|NaN"),
        ([1.0, 2.5], "Unknown label type: continuous"),
        ([1.0, INF], "contains infinity"),
        (np.ma.array([1, 2], mask=[0, 1]), "y has masked entries"),
    ],
    ids=str,
)
def test_other_labels_are_refused(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        labels(y)


def test_a_single_column_of_labels_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        np.testing.assert_array_equal(labels([[1], [2]]), [1, 2])


# --- what training gets


@pytest.mark.equation("D45")
@pytest.mark.parametrize("held_out", [0, 3, 11])
def test_every_row_keeps_its_own_weight_when_rows_are_held_out_at_random(held_out):
    weights = np.arange(1.0, 13.0)  # each row holds its own
    x, y = np.c_[weights, -weights], 10 * weights[:, None]
    rng = np.random.default_rng(0)
    data = prepare_rows(Rows(x, y, weights), held_out / 12, rng, False, False, np.float64)
    parts = [data.training]
    if held_out:
        parts.append(data.held_out)
        assert not (data.training.x[:, 0] == weights[held_out:]).all()  # they were shuffled
    for rows in parts:
        assert (rows.x[:, 0] == rows.sample_weight).all()
        assert (rows.y[:, 0] == 10 * rows.sample_weight).all()
    all_weights = np.concatenate([rows.sample_weight for rows in parts])
    assert sorted(all_weights) == weights.tolist()


@pytest.mark.parametrize(
    ("fraction", "rows"), [(0.0, 0), (0.01, 1), (0.1, 2), (0.25, 3), (0.9, 11)]
)
def test_a_share_of_the_rows_is_held_out_and_a_part_of_a_row_counts_as_one(fraction, rows):
    x = np.arange(12.0)[:, None]
    rng = np.random.default_rng(0)
    data = prepare_rows(Rows(x, x, None), fraction, rng, False, False, np.float64)
    assert len(data.training.x) == 12 - rows
    assert (0 if data.held_out is None else len(data.held_out.x)) == rows


def collinear(rows=60, spread=0.01):
    """Inputs of which the third is nearly the sum of the others, and a fourth says no more."""
    x = np.random.default_rng(2).standard_normal((rows, 2))
    close = x.sum(axis=1) + spread * np.random.default_rng(3).standard_normal(rows)
    return np.c_[x, close, x[:, 0] - 2.0]


@pytest.mark.equation("D60")
def test_collinear_inputs_are_turned_to_axes_along_which_they_are_uncorrelated():
    x = collinear()
    data = prepare_rows(Rows(x, x[:, :1]), 0.25, np.random.default_rng(0), True, True, float, True)
    axes = data.units["x_axes_"]
    np.testing.assert_allclose(axes.T @ axes, np.eye(4), atol=1e-14)
    gram = data.training.x.T @ data.training.x
    variances = np.diag(gram)
    np.testing.assert_allclose(gram, np.diag(variances), atol=1e-12 * variances.max())
    x_mean, x_scale = data.units["x_mean_"], data.units["x_scale_"]
    back = np.concatenate([data.held_out.x, data.training.x]) @ axes.T
    np.testing.assert_allclose(np.sort(back, axis=0), np.sort((x - x_mean) / x_scale, axis=0))
    plain = prepare_rows(Rows(x, x[:, :1]), 0.25, np.random.default_rng(0), True, True, float)
    assert "x_axes_" not in plain.units


@pytest.mark.equation("D60")
def test_a_weight_turns_the_axes_as_often_as_the_row_is_repeated():
    x, counts = collinear(), np.random.default_rng(4).integers(1, 4, 60)
    axes = principal_axes(x, counts.astype(float))
    expected = principal_axes(np.repeat(x, counts, axis=0), None)
    np.testing.assert_allclose(np.abs(np.sum(axes * expected, axis=0))[1:], 1.0, rtol=1e-9)


@pytest.mark.equation("D60")
def test_what_is_not_collinear_is_not_turned():
    x = collinear()
    assert principal_axes(x, None) is not None
    assert principal_axes(x[:, [0, 1, 3]], None) is None  # the last says the same as the first
    assert principal_axes(collinear(spread=0.5), None) is None
    assert principal_axes(np.zeros((5, 2)), None) is None
    assert principal_axes(np.tile(x, (1, MAX_ROTATED_INPUTS)), None) is None  # too many to look for


@pytest.mark.equation("D45")
def test_units_are_those_of_the_rows_that_are_trained_on_each_with_its_own_weight():
    x = np.random.default_rng(1).standard_normal((12, 2))
    weights = np.arange(1.0, 13.0)
    data = prepare_rows(
        Rows(x, x[:, :1], weights), 4 / 12, np.random.default_rng(0), True, True, np.float64
    )
    *arrays, v = data.training
    for rows in arrays:
        assert np.allclose(np.average(rows, axis=0, weights=v), 0.0, atol=1e-14)
        assert np.allclose(np.average(rows**2, axis=0, weights=v), 1.0, rtol=1e-13)

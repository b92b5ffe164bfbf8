"""What users pass in is either converted or refused with the argument's name."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array
from sklearn.base import BaseEstimator

from bbb_numpy.learners.rows import (
    check_counts,
    check_inputs,
    check_labels,
    check_targets,
    class_weights,
    prepared,
)


def inputs(x):
    return check_inputs(BaseEstimator(), x, first=True)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "x",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], np.int8),
        np.array([[1, 2], [3, 4]], np.float32),
        np.array([[1, 2], [3, 4]], object),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.ma.array([[1.0, 2.0], [3.0, 4.0]]),
        pd.DataFrame([[1, 2], [3, 4]], columns=["a", "b"]),
    ],
    ids=["list", "int8", "float32", "object", "fortran", "unmasked", "frame"],
)
def test_numbers_in_any_container_become_a_float64_matrix(x):
    out = inputs(x)
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out, [[1.0, 2.0], [3.0, 4.0]])


def test_truth_values_are_the_numbers_zero_and_one():
    np.testing.assert_array_equal(inputs([[True, False]]), [[1.0, 0.0]])


BAD_CELLS = [
    ([[1.0, NAN]], ValueError, r"Input @ contains NaN at row 0, column 1"),
    ([[1.0], [-INF]], ValueError, r"Input @ contains infinity at row 1, column 0"),
    ([[1.0], [NAN], [NAN]], ValueError, r"row 1, column 0, and 1 more"),
    (np.array([[2.0]], np.longdouble) * 1e300 * 1e300, ValueError, r"@ contains infinity"),
    ([["1.5"]], ValueError, r"not compatible with arrays of bytes/strings"),
    (np.array([[1.0, "b"]], object), ValueError, r"@ must hold numbers: could not .* 'b'\. For"),
    ([[{"a": 1}]], TypeError, r"argument must be .*number"),
    ([[None]], ValueError, r"@ contains NaN"),
    ([[1.0 + 2.0j]], ValueError, r"Complex data not supported"),
    ([[pd.NA]], ValueError, r"Input @ contains a missing value, <NA>, at row 0, column 0. Remove"),
    ([[1.0, 2.0], [3.0, pd.NA]], ValueError, r"@ contains a missing value, <NA>, at row 1, column"),
    (
        pd.DataFrame({"a": [1, pd.NA]}, dtype=object),
        ValueError,
        r"@ contains a missing .* at row 1",
    ),
    ([[1], [2**53 + 1]], ValueError, r"@ holds the whole number 9007199254740993 at row 1, col"),
    (
        np.array([[2**63 + 1]], np.uint64),
        ValueError,
        r"@ holds the whole number 9223372036854775809",
    ),
    ([[0.5, 2**60 + 1]], ValueError, r"@ holds the whole number 1152921504606846977 at row 0, col"),
    ([[-(2**70) - 1]], ValueError, r"@ holds the whole number -1180591620717411303425 at row 0"),
    (
        pd.DataFrame({"a": [0.5, 1], "id": [1, 2**60 + 1]}),
        ValueError,
        r"@ holds the whole number 1152921504606846977 at row 1, column 1: beyond 2\^53 = 9007",
    ),
    ([[10**400]], ValueError, r"@ holds a whole number beyond the range of float64"),
    (np.array([["2020-01-01"]], "datetime64[D]"), TypeError, r"@ must hold numbers; got dtype"),
    ([[1.0], [1.0, 2.0]], ValueError, r"inhomogeneous shape"),
    (coo_array(np.eye(2)), TypeError, r"[Ss]parse data was passed.*dense data is required"),
    (np.ma.array([[1.0, 2.0]], mask=[[True, False]]), ValueError, r"@ has masked entries"),
    (np.zeros((0, 3)), ValueError, r"Found array with 0 sample"),
    (np.zeros((2, 2, 2)), ValueError, r"Found array with dim 3"),
]


@pytest.mark.parametrize(("data", "kind", "message"), BAD_CELLS)
@pytest.mark.parametrize(("check", "name"), [(inputs, "X"), (check_targets, "y")])
def test_bad_data_are_refused(check, name, data, kind, message):
    with pytest.raises(kind, match=message.replace("@", name)):
        check(data)


def test_text_is_refused_with_what_to_do():
    frame = pd.DataFrame({"area": [1.0, 2.0], "zone": ["north", "west"]})
    with pytest.raises(ValueError, match=r"'north'\. For text encode it \(OneHotEncoder"):
        inputs(frame)
    with pytest.raises(ValueError, match=r"'north'\. For text take BayesianMLPCl"):
        check_targets(frame["zone"])


def test_inputs_have_two_axes_and_targets_one_or_two():
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D.*"):
        inputs([1.0, 2.0])
    assert check_targets([1, 2]).shape == (2,)
    assert check_targets([[1], [2]]).shape == (2, 1)
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        check_targets(None)


def test_the_message_names_the_column():
    with pytest.raises(ValueError, match=r"row 0, column 1 \('b'\)"):
        inputs(pd.DataFrame([[1.0, NAN]], columns=["a", "b"]))


# counts


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, 2**53],
        np.array([2**53], np.uint64),
        [[1, 2], [3, 2**53]],
        np.array([2**53], object),
        [1.5, -1.0, NAN, float("inf")],
        ["a"],
        None,
        [True],
    ],
    ids=str,
)
def test_counts_up_to_two_to_the_53_are_left_to_the_likelihood(y):
    check_counts(y)


@pytest.mark.parametrize(
    ("y", "place"),
    [
        ([0, 2**53 + 1], 1),
        (np.array([2**63 - 1], np.int64), 0),
        (np.array([0, 0, 2**64 - 1], np.uint64), 2),
        ([2**70], 0),
        ([0, 10**400], 1),
        ([2**53 + 1, 1.0], 0),  # NumPy has rounded it to 2^53
        ([[0, 0], [0, 2**60]], 1),
    ],
    ids=str,
)
def test_larger_counts_are_refused_by_place(y, place):
    with pytest.raises(ValueError, match=rf"y holds the count [\d.e+]+ at row {place}.*float64"):
        check_counts(y)


def test_whole_numbers_that_float64_holds_and_floats_of_any_size_pass():
    for x in ([[2**60], [-(2**53)]], [[1e300], [2.0**53 + 2]], np.array([[2**62]], np.uint64)):
        np.testing.assert_array_equal(inputs(x), np.array(x, float))


@pytest.mark.parametrize("y", ["x", b"x", 5, 2.5, {1: 2}])
@pytest.mark.parametrize("check", [check_targets, check_labels])
def test_one_value_in_place_of_targets_is_named(check, y):
    with pytest.raises(
        ValueError, match=r"y must be an array or a list of one target per row; got"
    ):
        check(y)


# --- what training gets


@pytest.mark.equation("D45")
@pytest.mark.parametrize("held_out", [0, 3, 11])
def test_every_row_keeps_its_own_weight_when_rows_are_held_out_at_random(held_out):
    weights = np.arange(1.0, 13.0)  # each row holds its own
    x, y = np.c_[weights, -weights], 10 * weights[:, None]
    rng = np.random.default_rng(0)
    data = prepared(x, y, held_out, rng, False, False, np.float64, weights)
    parts = [(data.training, data.weights[0])]
    if held_out:
        parts.append((data.held_out, data.weights[1]))
        assert not (data.training.x[:, 0] == weights[held_out:]).all()  # they were shuffled
    for rows, v in parts:
        assert (rows.x[:, 0] == v).all()
        assert (rows.y[:, 0] == 10 * v).all()
    both = np.concatenate([v for _, v in parts])
    assert sorted(both) == weights.tolist()


@pytest.mark.equation("D45")
def test_units_are_those_of_the_rows_that_are_trained_on_each_with_its_own_weight():
    x = np.random.default_rng(1).standard_normal((12, 2))
    weights = np.arange(1.0, 13.0)
    data = prepared(x, x[:, :1], 4, np.random.default_rng(0), True, True, np.float64, weights)
    v = data.weights[0]
    for rows in data.training:
        assert np.allclose(np.average(rows, axis=0, weights=v), 0.0, atol=1e-14)
        assert np.allclose(np.average(rows**2, axis=0, weights=v), 1.0, rtol=1e-13)


@pytest.mark.equation("D45")
def test_balanced_classes_share_the_total_among_those_that_occur():
    counts = np.array([3.0, 0.0, 5.0])
    each = class_weights("balanced", np.array(["a", "b", "c"]), counts)
    assert (each * counts).tolist() == pytest.approx([4.0, 0.0, 4.0])
    assert each[1] == 1.0

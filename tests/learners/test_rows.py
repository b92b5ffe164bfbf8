"""What users pass in is either converted or refused with the argument's name."""

import numpy as np
import pytest

from bbb_numpy.learners.rows import (
    check_columns,
    check_inputs,
    check_same_rows,
    check_targets,
    column_names,
)

NAN, INF = float("nan"), float("inf")


class Sparse:
    nnz = 1

    def toarray(self):
        return np.eye(2)


class Frame:
    """A data frame as far as validation can tell: columns, and numbers on request."""

    def __init__(self, numbers, columns):
        self.numbers, self.columns = np.asarray(numbers), columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numbers, dtype=dtype)


@pytest.mark.parametrize(
    "x",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], np.int8),
        np.array([[1, 2], [3, 4]], np.float32),
        np.array([[1, 2], [3, 4]], object),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.ma.array([[1.0, 2.0], [3.0, 4.0]]),
        Frame([[1, 2], [3, 4]], ["a", "b"]),
    ],
    ids=["list", "int8", "float32", "object", "fortran", "unmasked", "frame"],
)
def test_numbers_in_any_container_become_a_float64_matrix(x):
    out = check_inputs(x)
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out, [[1.0, 2.0], [3.0, 4.0]])


def test_truth_values_are_the_numbers_zero_and_one():
    np.testing.assert_array_equal(check_inputs([[True, False]]), [[1.0, 0.0]])


BAD_CELLS = [
    ([[1.0, NAN]], ValueError, r"Input @ contains NaN at row 0, column 1"),
    ([[1.0], [-INF]], ValueError, r"Input @ contains infinity at row 1, column 0"),
    ([[1.0], [NAN], [NAN]], ValueError, r"row 1, column 0, and 1 more"),
    (np.array([[2.0]], np.longdouble) * 1e300 * 1e300, ValueError, r"@ contains infinity"),
    ([["a"]], ValueError, r"@ must hold numbers; got text 'a' at row 0, column 0"),
    ([["1.5"]], ValueError, r"got text '1.5'"),
    (np.array([[1.0, "b"]], object), ValueError, r"text 'b' at row 0, column 1"),
    (np.array([[b"b"]]), ValueError, r"got text"),
    ([[{"a": 1}]], TypeError, r"@ must hold numbers only: .*argument must be .*number"),
    ([[None]], ValueError, r"@ contains NaN"),
    ([[1.0 + 2.0j]], ValueError, r"Complex data not supported: @"),
    (np.array([["2020-01-01"]], "datetime64[D]"), TypeError, r"@ must hold numbers; got dtype"),
    (np.zeros((2, 2), [("a", float)]), TypeError, r"@ must hold numbers; got dtype"),
    ([[1.0], [1.0, 2.0]], ValueError, r"rows must be equally long"),
    (Sparse(), TypeError, r"@ is sparse \(Sparse\).*toarray"),
    (np.ma.array([[1.0, 2.0]], mask=[[True, False]]), ValueError, r"@ has masked entries"),
    (np.zeros((0, 3)), ValueError, r"@ is empty: 0 sample\(s\)"),
    (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is"),
]


@pytest.mark.parametrize(("data", "kind", "message"), BAD_CELLS)
@pytest.mark.parametrize(("check", "name"), [(check_inputs, "X"), (check_targets, "y")])
def test_bad_data_are_refused_by_name_and_place(check, name, data, kind, message):
    with pytest.raises(kind, match=message.replace("@", name)):
        check(data)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (1.0, r"Expected 2D array for X, got 0D.*Reshape your data"),
        ([1.0, 2.0], r"Expected 2D array for X, got 1D.*Reshape your data"),
        (np.zeros((2, 2, 2)), r"X must be a matrix.*\(2, 2, 2\)"),
    ],
)
def test_inputs_have_two_axes(x, message):
    with pytest.raises(ValueError, match=message):
        check_inputs(x)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (1.0, r"y must have shape \(rows,\) or \(rows, outputs\); got shape \(\)"),
        (np.zeros((2, 2, 2)), r"y must have shape .*\(2, 2, 2\)"),
        ([], "y is empty"),
    ],
)
def test_targets_have_one_or_two_axes(y, message):
    with pytest.raises(ValueError, match=message):
        check_targets(y)


def test_targets_keep_their_axes():
    assert check_targets([1, 2]).shape == (2,)
    assert check_targets([[1], [2]]).shape == (2, 1)


def test_the_message_names_the_column():
    with pytest.raises(ValueError, match=r"row 0, column 1 \('b'\)"):
        check_inputs(Frame([[1.0, NAN]], ["a", "b"]))


def test_unequal_lengths_are_told_apart():
    check_same_rows(X=np.zeros((2, 1)), y=np.zeros(2))
    with pytest.raises(ValueError, match=r"X and y must have the same number.*X has 2, y has 3"):
        check_same_rows(X=np.zeros((2, 1)), y=np.zeros(3))


def test_only_text_counts_as_column_names():
    assert list(column_names(Frame([[1, 2]], ["a", "b"]))) == ["a", "b"]
    assert column_names(Frame([[1, 2]], ["a", "b"])).dtype == object
    assert column_names(Frame([[1, 2]], range(2))) is None
    assert column_names(np.zeros((1, 2))) is None
    with pytest.raises(TypeError, match=r"several types \(int, str\)"):
        column_names(Frame([[1, 2]], ["a", 1]))


FITTED = np.array(["a", "b"], object)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["b", "a"], r"should match.*\nFeature names must be in the same order"),
        (["a", "c"], r"should match.*\nFeature names unseen at fit time:\n- c\n.*missing:\n- b"),
        (["a"], r"yet now missing:\n- b\n"),
        (["a", *"cdefghi"], r"- g\n- \.\.\."),
    ],
)
def test_other_columns_are_refused(columns, message):
    x = np.zeros((1, len(columns)))
    with pytest.raises(ValueError, match=message):
        check_columns(Frame(x, columns), x, 2, FITTED, "Learner")


def test_same_columns_pass_and_another_width_does_not():
    x = np.zeros((1, 2))
    check_columns(Frame(x, ["a", "b"]), x, 2, FITTED, "Learner")
    check_columns(x, x, 2, None, "Learner")
    with pytest.raises(ValueError, match="X has 2 features, but Learner is expecting 3 features"):
        check_columns(x, x, 3, None, "Learner")


def test_names_on_one_side_only_warn():
    x = np.zeros((1, 2))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Learner"):
        check_columns(x, x, 2, FITTED, "Learner")
    with pytest.warns(UserWarning, match="X has feature names, but Learner"):
        check_columns(Frame(x, ["a", "b"]), x, 2, None, "Learner")

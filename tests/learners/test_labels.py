"""Labels keep their type, and are of one type."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from bbb_numpy.learners.rows import check_labels, codes, distinct

NAN = float("nan")

LABELS = [
    ["b", "a", "b"],
    [3, 1, 3],
    [3.0, 1.0, 3.0],
    [True, False, True],
    np.array(["b", "a", "b"], object),
    np.array([2**64 - 1, 0, 2**64 - 1], np.uint64),
    np.array(["2021", "2020", "2021"], "datetime64[D]"),
    ("b", "a", "b"),
]


@pytest.mark.parametrize("y", LABELS, ids=lambda y: f"{type(y).__name__} of {y[0]!r}")
def test_labels_of_any_type_keep_it(y):
    labels = check_labels(y)
    classes = distinct(labels)
    np.testing.assert_array_equal(codes(labels, classes), [1, 0, 1])
    np.testing.assert_array_equal(classes[[1, 0, 1]], labels)
    assert type(classes[0]) is type(np.asarray(y)[1])


def test_labels_that_are_no_class_have_the_code_minus_one():
    np.testing.assert_array_equal(
        codes(np.array([0, 1, 2, 5, 9]), np.array([1, 5])), [-1, 0, -1, 1, -1]
    )
    np.testing.assert_array_equal(codes(np.array(["z", "a"]), np.array(["a", "b"])), [-1, 0])


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (None, ValueError, "requires y to be passed, but the target y is None"),
        ([], ValueError, "y is empty"),
        ([[0, 1], [1, 0]], ValueError, r"should be a 1d array, got an array of shape \(2, 2\)"),
        (3, ValueError, "y must be an array or a list of one target per row; got 3"),
        ([[1], [1, 2]], ValueError, "inhomogeneous shape"),
        ([1, "a"], TypeError, r"numbers \(1 at row 0\) and text \('a' at row 1\).*Convert them"),
        (["a", 1.0], TypeError, "several types"),
        ([True, 2], TypeError, "truth values .* and numbers"),
        (np.array([1, "a"], object), TypeError, "several types"),
        (np.array([b"a", b"b"]), TypeError, "labels represented as bytes is not supported"),
        (np.array([1, 2], object), ValueError, "Unknown label type"),
        ([1.0, NAN], ValueError, "Input y contains NaN or None at row 1"),
        (["a", None], ValueError, "NaN or None at row 1"),
        (np.array(["2020", "NaT"], "datetime64[D]"), ValueError, "NaN or None at row 1"),
        ([1.0, 2.5], ValueError, "Unknown label type: continuous"),
        ([1.0, float("inf")], ValueError, "Input y contains infinity"),
        ([1j, 2j], ValueError, "Complex data not supported"),
        (np.ma.array([1, 2], mask=[0, 1]), ValueError, "y has masked entries"),
    ],
    ids=str,
)
def test_other_labels_are_refused(y, kind, message):
    with pytest.raises(kind, match=message):
        check_labels(y)


def test_a_single_column_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        np.testing.assert_array_equal(check_labels([[1], [2]]), [1, 2])


def test_one_class_is_nothing_to_learn():
    with pytest.raises(ValueError, match=r"y has only one class, a: .*partial_fit"):
        distinct(np.array(["a", "a"]))


def test_a_missing_text_label_of_pandas_is_named():
    with pytest.raises(ValueError, match="row 1: a label is missing"):
        check_labels(pd.Series(["a", None] * 5).astype("string"))

"""targets: labels of any one type, and counts that float64 holds."""

from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from bbb_numpy.learners.habits import DataConversionWarning
from bbb_numpy.learners.rows import check_counts, check_labels, codes, distinct

NAN = float("nan")

LABELS = [
    ["b", "a", "b"],
    [3, 1, 3],
    [3.0, 1.0, 3.0],
    [True, False, True],
    np.array(["b", "a", "b"], object),
    np.array([3, 1, 3], object),
    np.array([3, 1.0, np.int8(3)], object),
    np.array([2**64 - 1, 0, 2**64 - 1], np.uint64),
    np.array([b"b", b"a", b"b"]),
    np.array(["2021", "2020", "2021"], "datetime64[D]"),
    np.array([date(2021, 1, 1), date(2020, 1, 1), date(2021, 1, 1)], object),
    np.array([Fraction(3), Fraction(1), Fraction(3)], object),
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
        ([[0, 1], [1, 0]], ValueError, r"one label per row.*got shape \(2, 2\).*bernoulli"),
        (3, ValueError, r"got shape \(\)"),
        ([[1], [1, 2]], ValueError, "y must hold one label per row"),
        ([1, "a"], TypeError, r"numbers \(1 at row 0\) and text \('a' at row 1\).*Convert them"),
        (["a", 1.0], TypeError, "several types"),
        ([True, 2], TypeError, "truth values .* and numbers"),
        (np.array([1, "a"], object), TypeError, "several types"),
        (np.array([b"a", "a"], object), TypeError, "bytes .* and text"),
        ([1.0, NAN], ValueError, "Input y contains NaN or None at row 1"),
        (["a", None], ValueError, "NaN or None at row 1"),
        (np.array(["2020", "NaT"], "datetime64[D]"), ValueError, "NaN or None at row 1"),
        ([1.0, 2.5], ValueError, r"Unknown label type: continuous. y holds .*2.5.* at row 1"),
        (np.array([1, 2.5], object), ValueError, "Unknown label type: continuous"),
        ([1.0, float("inf")], ValueError, "Unknown label type: continuous"),
        ([1j, 2j], ValueError, "Unknown label type|cannot be sorted"),
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


class Colour:
    """A label without order."""


def test_labels_that_cannot_be_sorted_are_refused():
    with pytest.raises(TypeError, match="labels of type Colour, which cannot be sorted"):
        distinct(check_labels(np.array([Colour(), Colour()], object)))


def test_labels_of_another_type_than_the_classes_are_told():
    with pytest.raises(TypeError, match=r"y holds .* text such as 'a', than the classes, numbers"):
        codes(np.array(["a"]), np.array([1, 2]))


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


def test_a_missing_text_label_of_pandas_is_named():
    with pytest.raises(ValueError, match="row 1: a label is missing"):
        check_labels(pd.Series(["a", None] * 5).astype("string"))

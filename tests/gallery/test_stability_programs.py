"""Classic examples of lost digits: every naive form is found out, and no careful one."""

import numpy as np
import pytest
from gallery.stability_programs import EXAMPLES

HALF_OF_THE_DIGITS = 1e-8


def names(examples):
    return [example.title for example in examples]


def error(form, example):
    """Return the largest relative error of a form at `at`, against the careful one in floats."""
    with np.errstate(all="ignore"):
        value, grad = form(example.at.copy(), *example.data)
        right, slopes = example.careful(example.at.copy(), *example.data)
    actual, expected = np.append(value, grad), np.append(right, slopes)
    assert np.isfinite(expected).all()
    gap = np.abs(actual - expected)
    errors = np.where(gap == 0, 0, gap / np.where(expected == 0, 1, np.abs(expected)))
    return np.inf if np.isnan(errors).any() else errors.max()


def test_there_are_forty_examples_and_each_has_a_line_that_loses():
    assert len(EXAMPLES) >= 40
    assert len(set(names(EXAMPLES))) == len(EXAMPLES)
    assert [example.title for example in EXAMPLES if not example.lines] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=names(EXAMPLES))
def test_the_naive_form_has_lost_half_of_its_digits(example):
    assert error(example.naive, example) > HALF_OF_THE_DIGITS

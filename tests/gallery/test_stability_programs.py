"""Classic examples of lost digits: every naive form is found out, and no careful one.

The numbers of float64 and float32 are in benchmarks/stability.md.
"""

import re
from functools import cache

import numpy as np
import pytest
from gallery.stability_programs import CONDITIONED, EXAMPLES

from exactgrad import stability

DTYPES = ("float64", "float32")
HALF_OF_THE_DIGITS = 1e-8
QUICK = ("log(1 + x)", "softplus")
RIGHT_LINES = {"float64": 60, "float32": 57}  # at least so many
RIGHT_CURES = {"float64": 17, "float32": 17}
LINE = re.compile(r"line (\d+) of stability_programs.py")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def names(examples):
    return [example.title for example in examples]


@cache
def judged(title, form, dtype):
    """Return what `stability` says of a form of an example."""
    example = EXAMPLES[names(EXAMPLES).index(title)]
    return stability(
        getattr(example, form),
        example.theta,
        *example.data,
        dtype=dtype,
        fixed=range(len(example.data)),
        sizes=example.sizes,
        domain=example.domain,
        floor=0.0,
    )


def named_lines(result):
    """Return the number of the line that the first failure names, in a list, or []."""
    return [
        int(match[1]) for failure in result.failures[:1] if (match := LINE.search(failure.line))
    ]


def examples_by_speed():
    return [
        pytest.param(example, marks=() if example.title in QUICK else pytest.mark.slow)
        for example in EXAMPLES
    ]


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("example", examples_by_speed(), ids=names(EXAMPLES))
def test_the_naive_form_is_found_out_and_the_careful_one_is_not_accused(example, dtype):
    found = judged(example.title, "naive", dtype)
    assert not found.reason
    assert found.failures
    careful = judged(example.title, "careful", dtype)
    assert careful, str(careful)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_line_that_loses_is_named_and_the_cure(dtype):
    results = [(example, judged(example.title, "naive", dtype)) for example in EXAMPLES]
    right = [e.title for e, found in results if set(named_lines(found)) & e.lines]
    cured = [
        e.title
        for e, found in results
        if e.cure and any(e.cure in failure.cure for failure in found.failures)
    ]
    assert len(right) >= RIGHT_LINES[dtype], sorted(set(names(EXAMPLES)) - set(right))
    assert len(cured) >= RIGHT_CURES[dtype], cured


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("example", CONDITIONED, ids=[title for title, *_ in CONDITIONED])
def test_what_the_rounding_of_theta_costs_is_no_accusation(example, dtype):
    _, function, theta, data, domain = example
    result = stability(
        function, theta, *data, dtype=dtype, domain=domain, fixed=range(len(data)), floor=0.0
    )
    assert result, str(result)

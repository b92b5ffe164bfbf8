"""validation: what a function is given is checked, and an error names it and what was given."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bbb_numpy.numeric.validation import (
    ANY_NUMBERS,
    DTYPE,
    FLOATS,
    FOLDER,
    FUNCTION,
    GENERATOR,
    MAX_STEPS,
    NUMBERS,
    PATH,
    SAMPLES,
    SMALLEST_POSITIVE,
    HasMethods,
    InstanceOf,
    ListOf,
    MappingOf,
    Numbers,
    OneOf,
    Optional,
    accepts,
    check_fields,
    check_generator,
    flag,
    fraction,
    not_negative,
    positive,
    proper_fraction,
    real,
    short_repr,
    spread,
    standard_deviation,
    whole,
)

STEPS = partial(whole, minimum=1, maximum=MAX_STEPS)


class Walk:
    size = 2

    def step(self):
        """Do nothing."""


def seed(name, value):
    return check_generator(value, name)


GOOD = [
    (NUMBERS, [[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
    (NUMBERS, np.float16(0.5), np.array(0.5)),
    (NUMBERS, [], np.array([])),
    (NUMBERS, np.array([1, 2.5], object), np.array([1.0, 2.5])),
    (NUMBERS, pd.Series([1, 2], dtype="Int64"), np.array([1, 2])),
    (ANY_NUMBERS, [np.nan, np.inf], np.array([np.nan, np.inf])),
    (Numbers((None, 2)), np.ones((3, 2)), np.ones((3, 2))),
    (Numbers(low=-10.0, high=10.0), -10, np.array(-10)),
    (Numbers(low=0.0, high=1.0), [0, 0.5, 1], np.array([0.0, 0.5, 1.0])),
    (Numbers(low=1e-150), np.float32([1e-45]), np.float32([1e-45])),
    (Numbers(min_length=2), [1, 2], np.array([1, 2])),
    (Numbers(min_length=1), 5, np.array(5)),
    (Numbers(whole=True), [1.0, -2.0], np.array([1.0, -2.0])),
    (FLOATS, np.ones(2, np.float32), np.ones(2, np.float32)),
]
BAD = [
    (NUMBERS, "x", TypeError, "a must be an array of real numbers; got 'x'"),
    (NUMBERS, [[1, 2], [3]], TypeError, r"a must be .* got \[\[1, 2\], \[3\]\]"),
    (NUMBERS, None, TypeError, "a must be an array"),
    (NUMBERS, np.array(["1", 2.0], object), TypeError, "a must be an array of real numbers"),
    (NUMBERS, [1.0, np.datetime64("2020")], TypeError, "a must be an array of real numbers"),
    (NUMBERS, pd.Series(["1"] * 9), TypeError, "got 0    1 ..., a Series|got a Series|got 0    1$"),
    (NUMBERS, sparse.eye(2), TypeError, "a must be an array"),
    (NUMBERS, np.array(["2020-01-01"], "M8[D]"), TypeError, "a must be an array of real numbers"),
    (NUMBERS, [1.0, np.nan], ValueError, "a holds nan or infinity"),
    (NUMBERS, [np.longdouble("1e400")], ValueError, "a holds nan or infinity"),  # in float64
    (NUMBERS, np.ma.masked_array([1, 2], [0, 1]), ValueError, "a has masked entries"),
    (Numbers((None, 2)), np.ones(2), ValueError, r"a must have shape \(any, 2\); got \(2,\)"),
    (Numbers(low=-10.0, high=10.0), [-(2**63)], ValueError, "a must be between -10 and 10; got -9"),
    (Numbers(low=0.0, high=1.0), [0.5, 1.5], ValueError, "a must be between 0 and 1; got 1.5"),
    (Numbers(low=0.0), [0.5, -1], ValueError, "a must be >= 0; got -1.0"),
    (Numbers(finite=False, low=0.0), [0.5, np.nan], ValueError, "a must be >= 0; got nan"),
    (Numbers(low=SMALLEST_POSITIVE), [3, 0], ValueError, "a must be > 0; got 0"),
    (Numbers(low=1e-150), np.float32([0.0]), ValueError, "a must be >= 1e-150; got 0.0"),
    (Numbers(min_length=2), [3], ValueError, r"a must hold 2 or more numbers; got shape \(1,\)"),
    (Numbers(min_length=1), np.ones((3, 0)), ValueError, "a must hold 1 or more rows"),
    (Numbers(whole=True), [1, 2.5], ValueError, "a must hold whole numbers; got 2.5"),
    (OneOf("b", "c"), "d", ValueError, "^a must be one of 'b', 'c'; got 'd'$"),
    (OneOf("b", "c"), np.array(["b", "c"]), ValueError, "got an array of shape"),
    (DTYPE, None, ValueError, "a must be 'float64' or 'float32'; got None"),
    (DTYPE, pd.Series([1.0]), ValueError, "a must be .float64. or .float32."),
    (
        HasMethods("Walk(1)", "step"),
        5,
        TypeError,
        r"^a must be an object such as Walk\(1\); got 5$",
    ),
    (
        HasMethods("Walk(1)", "step"),
        Walk,
        TypeError,
        r"the class Walk; make an object of it: Walk\(\)",
    ),
    (HasMethods("Walk(1)", "step", "init"), Walk(), TypeError, "a must be an object such as"),
    (
        HasMethods("a function", "__call__"),
        None,
        TypeError,
        "a must be an object such as a function",
    ),
    (FLOATS, [1, 2], TypeError, "a must be of dtype float64 or float32; got int64"),
    (GENERATOR, 0, TypeError, r"a must be a numpy.random.Generator, .* got 0"),
    (FUNCTION, 5, TypeError, "a must be a function; got 5"),
    (PATH, 5, TypeError, "a must be the path of a file; got 5"),
    (PATH, "", ValueError, "a must be the path of a file"),
    (FOLDER, "", ValueError, "a must be the path of a folder; got ''"),
    (partial(whole, minimum=1), 2**63, ValueError, "and <= 9223372036854775807; got"),
    (SAMPLES, 1_000_001, ValueError, "a must be a whole number >= 1 and <= 1000000; got 1000001"),
    (STEPS, 1_000_000_001, ValueError, "a must be a whole number >= 1 and <= 1000000000"),
    (SAMPLES, np.timedelta64(3, "D"), TypeError, "a must be a whole number"),
    (InstanceOf(dict, list), 5, TypeError, "a must be an object of type dict or list; got 5"),
    (MappingOf(NUMBERS), [1], TypeError, "a must be a mapping with text as names"),
    (MappingOf(NUMBERS, "{'b': 1}"), 5, TypeError, "with text as names, e.g. {'b': 1}; got 5"),
    (MappingOf(NUMBERS), {"b": "x"}, TypeError, r"a\['b'\] must be an array"),
    (ListOf(InstanceOf(int)), 5, TypeError, "a must be a list with one entry each; got 5"),
    (ListOf(InstanceOf(int)), np.array(5), TypeError, "a must be a list with one entry each"),
    (ListOf(InstanceOf(int)), [1, "x"], TypeError, "a must be an object of type int; got 'x'"),
    (Optional(NUMBERS), "x", TypeError, "a must be an array"),
    (flag, "no", TypeError, "a must be True or False; got 'no'"),
    (flag, 1, TypeError, "a must be True or False; got 1"),
    (seed, -1, ValueError, "a must be None, a whole number >= 0, .* got -1"),
    (seed, "seed", TypeError, "a must be None, a whole number >= 0, .* got 'seed'"),
    (seed, 10**400, ValueError, "got a number too large for a float"),
]

NUMBER = [
    (partial(whole, minimum=1), [0, 2.5, np.float32(0.5), np.inf, np.nan], "a whole number >= 1"),
    (positive, [0.0, -1, np.inf, np.nan], "positive and finite"),
    (not_negative, [-1e-9, np.inf, np.nan], "finite and >= 0"),
    (fraction, [-0.1, 1.0, np.nan], "a number >= 0 and < 1"),
    (proper_fraction, [0.0, 1.0, np.nan], "> 0 and < 1"),
    (partial(real, low=2, high=3), [1.9, 3], "a number >= 2 and < 3"),
    (standard_deviation, [0.0, 1e-151, 1e150, np.nan], "positive and finite, between 1e-150 and"),
    (spread, [-1e-9, 1e150, np.inf], "finite and >= 0, and below"),
]


@pytest.mark.parametrize(("check", "bad", "wanted"), NUMBER)
def test_numbers_out_of_range_are_value_errors_and_the_rest_type_errors(check, bad, wanted):
    for value in bad:
        with pytest.raises(ValueError, match=f"a must be {wanted}.*; got"):
            check("a", value)
    for value in ("1", None, True, np.True_, 1j, [1], np.array([1])):
        with pytest.raises(TypeError, match=f"a must be {wanted}.*; got"):
            check("a", value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (positive, 5e-324), (not_negative, 0.0), (spread, 0.0), (spread, 9.9e149),
        (standard_deviation, 1e-150), (SAMPLES, 1e6), (STEPS, 10**9),
        (fraction, 1 - 1e-16), (proper_fraction, 5e-324), (proper_fraction, 1 - 1e-16),
        (partial(whole, minimum=0, maximum=None), 2**64 + 1),
        (partial(whole, minimum=1), 2**63 - 1),
        (flag, np.False_),
    ],
)  # fmt: skip
def test_the_last_value_within_a_bound_is_accepted(check, value):
    assert check("a", value) == value


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float32(3)])
def test_whole_numbers_of_any_type_become_int(value):
    assert type(whole("epochs", value, 1)) is int


@pytest.mark.parametrize(("check", "value", "expected"), GOOD)
def test_numbers_come_back_as_an_array(check, value, expected):
    array = check("a", value)
    np.testing.assert_array_equal(array, expected)
    assert array.dtype == expected.dtype


@pytest.mark.parametrize(("check", "value", "error", "message"), BAD)
def test_all_else_is_refused_by_name(check, value, error, message):
    with pytest.raises(error, match=message):
        check("a", value)


@pytest.mark.parametrize("value", [float, "float64", "f8", np.float64, np.dtype("d")])
def test_a_dtype_may_be_written_in_any_way_that_numpy_knows(value):
    assert DTYPE("a", value) is np.dtype(np.float64)


def test_what_fits_comes_back_as_it_is():
    walk = Walk()
    assert HasMethods("Walk(1)", "step")("a", walk) is walk
    assert OneOf("b", "c")("a", np.str_("c")) == "c"
    assert Optional(NUMBERS)("a", None) is None
    assert Optional(SAMPLES)("a", 3.0) == 3


def test_a_number_seeds_and_an_object_moves_on():
    def first(state):
        return check_generator(state).random()

    assert first(3) == first(np.int64(3)) != first(4)
    assert first(None) != first(None)
    for make, bits in ((np.random.default_rng, 32), (np.random.RandomState, 31)):
        assert first(make(0)) == first(make(0))
        state = make(0)
        assert first(state) != first(state)
        assert check_generator(state) is not state
        seeds = [check_generator(state).bit_generator.seed_seq.entropy for _ in range(100)]
        assert (np.shape(seeds), int(np.max(seeds)).bit_length()) == ((100, 4), bits)


@accepts(x=NUMBERS, count=SAMPLES)
def scaled(x, count=2, *, by=1.0):
    """Scale."""
    return count * by * x


def test_a_function_gets_what_its_rules_return():
    assert scaled([1, 2], 3.0).tolist() == [3, 6]
    assert scaled(x=[1], by=5.0).tolist() == [10]
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    for args, given, name in ((("x",), {}, "x"), ((1,), {"count": 0}, "count"), ((), {}, "x")):
        with pytest.raises((TypeError, ValueError), match=name):
            scaled(*args, **given)


def test_a_rule_for_no_argument_is_an_error_of_the_function():
    with pytest.raises(AssertionError, match="z"):
        accepts(z=NUMBERS)(lambda x: x)


@dataclass(frozen=True)
class Plan:
    epochs: int

    def __post_init__(self):
        check_fields(self, epochs=partial(whole, minimum=1))


def test_a_field_holds_what_its_rule_returns():
    epochs = Plan(2.0).epochs
    assert (epochs, type(epochs)) == (2, int)
    with pytest.raises(TypeError, match="epochs must be"):
        Plan("2")


def test_what_was_given_is_told_in_a_few_words():
    assert short_repr(np.ones((2, 3))) == "an array of shape (2, 3) and dtype float64"
    assert len(short_repr("x" * 10**6)) < 100
    assert short_repr("x" * 10**6).endswith("a str")
    eighty = "x" * 78  # with its quotes
    assert short_repr(eighty) == repr(eighty)
    assert short_repr(eighty + "x") == f"'{'x' * 59} ..., a str"

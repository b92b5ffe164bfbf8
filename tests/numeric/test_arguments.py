"""arguments: every refusal names the argument, what was given and what is accepted."""

import numpy as np
import pytest

from bbb_numpy import (
    HMC,
    NUTS,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    ChEES,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Sampling,
)
from bbb_numpy.numeric.validation import (
    check_random_state,
    flag,
    fraction,
    not_negative,
    positive,
    proper_fraction,
    real,
    spread,
    standard_deviation,
    whole,
)
from bbb_numpy.training import Recipe


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float32(3)])
def test_whole_numbers_of_any_type_become_int(value):
    assert type(whole("epochs", value, 1)) is int


@pytest.mark.parametrize(
    ("check", "bad", "wanted"),
    [
        (
            lambda v: whole("a", v, 1),
            [0, -1, 2.5, np.float32(0.5), np.inf, np.nan],
            "a must be a whole number >= 1",
        ),
        (lambda v: positive("a", v), [0.0, -1, np.inf, np.nan], "a must be positive and finite"),
        (lambda v: not_negative("a", v), [-1e-9, np.inf, np.nan], "a must be finite and >= 0"),
        (lambda v: fraction("a", v), [-0.1, 1.0, np.nan], "a must be a number >= 0 and < 1"),
        (lambda v: proper_fraction("a", v), [0.0, -0.1, 1.0, np.nan], "a must be > 0 and < 1"),
        (lambda v: proper_fraction("a", v, least=1e-9), [0.0, 1e-10], "a must be > 0 and < 1"),
        (lambda v: real("a", v, 2, 3), [1.9, 3], "a must be a number >= 2 and < 3"),
        (
            lambda v: standard_deviation("a", v),
            [0.0, -1, 1e-151, 1e150, 1e151, 5e-324, np.inf, np.nan],
            "a must be positive and finite, between 1e-150 and 1e150",
        ),
        (lambda v: spread("a", v), [-1e-9, 1e150, np.inf], "a must be finite and >= 0, and below"),
    ],
)
def test_numbers_out_of_range_are_value_errors_and_the_rest_type_errors(check, bad, wanted):
    for value in bad:
        with pytest.raises(ValueError, match=f"{wanted}.*; got"):
            check(value)
    for value in ("1", None, True, np.True_, 1j, [1], np.array([1])):
        with pytest.raises(TypeError, match=f"{wanted}.*; got"):
            check(value)


def test_the_smallest_positive_number_is_positive():
    assert positive("a", 5e-324) == 5e-324
    assert not_negative("a", 0) == 0.0


@pytest.mark.parametrize("make", [GaussianPrior, GaussianLikelihood, MeanField])
def test_text_in_place_of_a_number_names_the_argument(make):
    with pytest.raises(TypeError, match=r"scale.* must be .*; got '1'"):
        make("1")


@pytest.mark.parametrize("value", [1e-150, 1, np.float32(2.5), 9.9e149])
def test_a_spread_has_a_finite_square_and_a_finite_inverse_square(value):
    found = standard_deviation("a", value)
    assert type(found) is float
    assert np.isfinite([found**2, found**-2]).all()
    assert found**2 > 0


@pytest.mark.parametrize("value", [0, 5e-324, 9.9e149])
def test_a_width_of_0_has_a_finite_square_too(value):
    assert np.isfinite(spread("a", value) ** 2)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_a_flag_is_a_truth_value(value):
    assert flag("learn", value) is bool(value)


@pytest.mark.parametrize("value", [0, 1, "no", None, [], np.array([True]), 1.0])
def test_anything_else_is_no_flag(value):
    with pytest.raises(TypeError, match="learn must be True or False; got"):
        flag("learn", value)


def test_a_number_larger_than_any_float_is_refused_by_name_and_not_printed():
    for check in (lambda v: whole("samples", v, 1), lambda v: positive("scale", v)):
        with pytest.raises(ValueError, match="got a number of 401 digits"):
            check(10**400)
    with pytest.raises(ValueError, match=r"seed must be None, .*; got a number of 401 digits"):
        check_random_state(10**400, "seed")


def test_a_number_beyond_what_is_accepted_is_refused_with_the_bound():
    with pytest.raises(ValueError, match="a must be a whole number >= 1 and <= 10; got 11"):
        whole("a", 11, 1, 10)
    with pytest.raises(ValueError, match=r"and <= 9223372036854775807; got"):
        whole("a", 2**63, 1)
    assert whole("a", 10, 1, 10) == 10
    assert whole("seed", 2**128, 0, None) == 2**128


def test_a_whole_number_keeps_digits_that_a_float_has_not():
    assert whole("seed", 2**64 + 1, 0, None) == 2**64 + 1


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda n: BayesianMLPRegressor(predict_samples=n), "predict_samples"),
        (lambda n: BayesianMLPRegressor(samples=n), "samples"),
        (lambda n: BayesianMLPClassifier(epochs=n), "epochs"),
        (lambda n: BayesianMLPRegressor(inference=Sampling("mh", chains=n)), "chains"),
    ],
)
@pytest.mark.parametrize("value", [2**63, 10**9 + 1])
def test_what_would_not_end_is_refused_by_every_learner(make, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a whole number >= 1 and <= \d+; got"):
        make(value).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda n: Recipe(samples=n), "samples"),
        (lambda n: Recipe(epochs=n), "epochs"),
        (lambda n: Sampling(draws=n), "draws"),
        (lambda n: Sampling(warm_up=n), "warm_up"),
        (lambda n: Sampling(thin=n), "thin"),
        (lambda n: NUTS(max_depth=n), "max_depth"),
        (lambda n: HMC(max_steps=n), "max_steps"),
        (lambda n: ChEES(max_steps=n), "max_steps"),
    ],
)
@pytest.mark.parametrize("value", [2**63, 10**9 + 1])
def test_what_would_not_end_is_refused_by_every_object(make, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a whole number >= \d and <= \d+; got"):
        make(value)


def test_a_million_samples_at_once_are_accepted_and_one_more_is_not():
    assert Recipe(samples=1_000_000).samples == 1_000_000
    with pytest.raises(ValueError, match=r"samples must be .* <= 1000000; got 1000001"):
        Recipe(samples=1_000_001)

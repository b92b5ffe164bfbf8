"""Settings of every registered class: however a number is written, Python's own is stored."""

from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from bbb_numpy import BayesianMLPRegressor, GaussianPrior
from bbb_numpy.learners.inference import Sampling
from bbb_numpy.learners.plan import check_plan
from bbb_numpy.parts.priors import CentredGaussianPrior
from bbb_numpy.registry import FAMILIES
from bbb_numpy.training import Recipe
from bbb_numpy.training.laplace import Laplace

pytestmark = pytest.mark.brief
NUMBERS = (0.0, 0.5, 1.0, 2.0, 3.0)  # in whose range every setting has some
FLOATING = (np.float16, np.float32, np.float64, np.longdouble, Fraction, np.array)
WHOLE = (int, np.int64, np.uint8, lambda number: np.array(int(number), np.uint8))
NO_NUMBERS = [
    *(True, np.True_, np.array(True), "1", np.array("1"), np.nan, np.array(np.nan), 1j),
    *(np.ones(2), np.ones(1), [1.0], np.ma.masked, np.array(None)),
    *(np.timedelta64(1), np.array(np.timedelta64(1, "ns"))),
]
X = np.linspace(-1.0, 1.0, 12)[:, None]
Y = X[:, 0] ** 2


def regressor(**arguments):
    usual = {"hidden_layer_sizes": (2,), "epochs": 2, "predict_samples": 3, "random_state": 0}
    return BayesianMLPRegressor(**usual | arguments)


def parts():
    """One object of each class that has settings, those that no name stands for included."""
    named = [one for entries in FAMILIES.values() for one in entries.checked.values()]
    unnamed = [CentredGaussianPrior(), Laplace(), Recipe(), Sampling()]
    objects = [one for one in (*named, *unnamed) if is_dataclass(one) and not isinstance(one, type)]
    return {type(one): one for one in objects}.values()


def settings(kind):
    """Parts with the names of their settings of one type."""
    return [
        pytest.param(part, field.name, id=f"{type(part).__name__}.{field.name}")
        for part in parts()
        for field in fields(part)
        if field.type.removesuffix(" | None") == kind
    ]


def accepted(part, name, numbers):
    """Return those of the numbers that are in the range of a setting."""
    found = []
    for number in numbers:
        try:
            replace(part, **{name: number})
        except ValueError:
            continue
        found.append(number)
    assert found, "no number of the test is in range"
    return found


def ways(number):
    """A number in every type that has it."""
    return [make(number) for make in (*FLOATING, *(WHOLE if number.is_integer() else ()))]


def need_stored(part, name, number, kind):
    for given in ways(number):
        stored = getattr(replace(part, **{name: given}), name)
        assert type(stored) is kind, repr(given)
        assert stored == number


@pytest.mark.parametrize(("part", "name"), settings("float"))
def test_a_real_setting_is_stored_as_a_float_whatever_type_it_comes_in(part, name):
    for number in accepted(part, name, NUMBERS):
        need_stored(part, name, number, float)


@pytest.mark.parametrize(("part", "name"), settings("int"))
def test_a_whole_setting_is_stored_as_an_int_whatever_type_it_comes_in(part, name):
    for number in accepted(part, name, (1.0, 2.0)):
        need_stored(part, name, number, int)


@pytest.mark.parametrize(("part", "name"), settings("bool"))
def test_a_truth_value_is_stored_as_a_bool(part, name):
    assert getattr(replace(part, **{name: np.False_}), name) is False


@pytest.mark.parametrize(("part", "name"), [*settings("float"), *settings("int")])
def test_what_is_no_number_is_no_setting(part, name):
    for wrong in NO_NUMBERS:
        with pytest.raises((TypeError, ValueError), match=name):
            replace(part, **{name: wrong})


@pytest.mark.parametrize(
    "scales", [np.arange(1, 3, dtype=np.uint8), [np.float16(0.5), Fraction(2)]]
)
def test_a_grid_search_over_a_scale_may_have_numbers_of_any_type(scales):
    search = GridSearchCV(regressor(), {"prior__scale": scales}, cv=2).fit(X, Y)
    for number in scales:
        model = regressor().set_params(prior__scale=number)
        np.testing.assert_array_equal(
            model.fit(X, Y).predict(X),
            regressor(prior=GaussianPrior(float(number))).fit(X, Y).predict(X),
        )
    assert type(search.best_estimator_.prior.scale) is float


def test_a_learners_numbers_may_be_of_any_type():
    """Of NumPy's small integers 16 times the rows of a step would overflow to 0."""
    plain = {"epochs": 2, "batch_size": 32, "samples": 1, "predict_samples": 200}
    small = {name: np.uint8(number) for name, number in plain.items()}
    found, wanted = (
        regressor(**one, random_state=number) for one, number in ((small, np.uint8(0)), (plain, 0))
    )
    np.testing.assert_array_equal(found.fit(X, Y).predict(X), wanted.fit(X, Y).predict(X))
    parts = check_plan(found).parts
    assert {name: (type(parts[name]), parts[name]) for name in plain} == {
        name: (int, number) for name, number in plain.items()
    }
    assert check_plan(regressor(batch_size=np.uint8(32), epochs=None)).recipe(
        512, from_scratch=True, stops_early=False
    ) == check_plan(regressor(batch_size=32, epochs=None)).recipe(
        512, from_scratch=True, stops_early=False
    )


def test_the_share_that_is_held_out_may_be_of_any_type():
    for share in (np.float16(0.25), Fraction(1, 4), np.float32(0.25)):
        model = regressor(validation_fraction=share).fit(X, Y)
        wanted = regressor(validation_fraction=0.25).fit(X, Y)
        np.testing.assert_array_equal(model.theta_, wanted.theta_)

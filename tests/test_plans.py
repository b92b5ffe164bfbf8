"""plans: every constructor argument is checked, and a refusal names it."""

import numpy as np
import pytest

from bbb_numpy.optimizers import Adam, Cosine
from bbb_numpy.plans import (
    DEFAULTS,
    check_flag,
    check_generator,
    check_object,
    check_plan,
    check_sizes,
)
from bbb_numpy.priors import GaussianPrior

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_flags_are_true_or_false(value):
    assert check_flag("standardize", np.True_) is True
    with pytest.raises(TypeError, match="standardize must be one of"):
        check_flag("standardize", value)
    assert check_flag("progress", None, (None, True, False)) is None


def test_layer_widths():
    assert check_sizes("hidden", 50) == (50,)
    assert check_sizes("hidden", np.int64(50)) == (50,)
    assert check_sizes("hidden", [3, 4.0]) == (3, 4)
    assert check_sizes("hidden", np.array([3, 4])) == (3, 4)
    assert check_sizes("hidden", ()) == ()


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ((5, 0), ValueError, r"hidden\[1\] must be a whole number >= 1; got 0"),
        (0, ValueError, r"hidden\[0\]"),
        (("5",), TypeError, r"hidden\[0\]"),
        ("50", TypeError, "hidden must be a tuple.*got '50'"),
        (None, TypeError, "hidden must be a tuple.*got None"),
        (2.5, TypeError, "hidden must be a tuple"),
        (True, TypeError, "hidden"),
    ],
)
def test_other_layer_widths_are_refused(value, kind, message):
    with pytest.raises(kind, match=message):
        check_sizes("hidden", value)


def test_a_class_is_not_an_object():
    assert check_object("prior", GaussianPrior(2.0), (GaussianPrior,)) == GaussianPrior(2.0)
    with pytest.raises(TypeError, match=r"prior must be None or .*GaussianPrior; got the class"):
        check_object("prior", GaussianPrior, (GaussianPrior,))
    with pytest.raises(TypeError, match=r"got 1.0 of type float"):
        check_object("prior", 1.0, (GaussianPrior,))


def test_a_number_seeds_and_an_object_moves_on():
    def first(state):
        return check_generator(state).random()

    assert first(3) == first(np.int64(3)) != first(4)
    assert first(None) != first(None)
    for make in (np.random.default_rng, np.random.RandomState):
        assert first(make(0)) == first(make(0))
        state = make(0)
        assert first(state) != first(state)
        assert check_generator(state) is not state


@pytest.mark.parametrize("value", [-1, 1.5, "seed", [1], True])
def test_other_seeds_are_refused(value):
    with pytest.raises((TypeError, ValueError), match="random_state must be None, a whole number"):
        check_generator(value)


PARAMETERS = {
    "hidden_layer_sizes": (5,),
    "activation": "relu",
    **dict.fromkeys(("prior", "likelihood", "posterior", "optimizer", "early_stopping")),
    **dict.fromkeys(("epochs", "batch_size", "samples", "predict_samples"), 1),
    "standardize": True,
    "validation_fraction": 0.0,
    "dtype": "float32",
    "random_state": None,
    "progress": None,
}


def test_none_stands_for_the_default_object():
    plan = check_plan(PARAMETERS)
    assert {name: getattr(plan, name) for name in DEFAULTS} == DEFAULTS
    assert plan.early_stopping is None
    assert plan.dtype == np.float32
    assert check_plan(PARAMETERS | {"prior": GaussianPrior(3.0)}).prior == GaussianPrior(3.0)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("hidden_layer_sizes", (0,), ValueError),
        ("activation", "swish", ValueError),
        ("activation", None, ValueError),
        ("activation", ["relu"], ValueError),
        ("prior", 1.0, TypeError),
        ("prior", "gaussian", TypeError),
        ("likelihood", GaussianPrior(), TypeError),
        ("posterior", 0.1, TypeError),
        ("optimizer", Adam, TypeError),
        ("optimizer", "adam", TypeError),
        ("optimizer", Cosine(), TypeError),
        ("epochs", 0, ValueError),
        ("epochs", "100", TypeError),
        ("batch_size", 0, ValueError),
        ("batch_size", -3, ValueError),
        ("batch_size", None, TypeError),
        ("samples", 0, ValueError),
        ("predict_samples", 0, ValueError),
        ("standardize", "yes", TypeError),
        ("early_stopping", True, TypeError),
        ("validation_fraction", 1.0, ValueError),
        ("validation_fraction", -0.1, ValueError),
        ("dtype", "float16", ValueError),
        ("dtype", "number", ValueError),
        ("dtype", None, ValueError),
        ("dtype", int, ValueError),
        ("progress", "bar", TypeError),
        ("random_state", -1, ValueError),
        ("random_state", "seed", TypeError),
    ],
)
def test_every_bad_argument_is_named(name, value, kind):
    with pytest.raises(kind, match=name):
        check_plan(PARAMETERS | {name: value})

"""state: fitted attributes are fields of one object, which a fit replaces as a whole."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from bbb_numpy import BayesianMLPRegressor, MeanField
from bbb_numpy.learners.state import FittedState

pytestmark = pytest.mark.brief
X = np.linspace(-1.0, 1.0, 20)[:, None]


def regressor(**params):
    return BayesianMLPRegressor((3,), epochs=2, random_state=0, progress=False, **params)


def test_what_was_not_found_is_no_attribute():
    model = regressor()
    assert model.fitted_.attributes() == {}
    for name in ("theta_", "training_", "draws_", "n_features_in_"):
        assert not hasattr(model, name)
    model.fit(X, X[:, 0])
    assert model.training_ is model.fitted_.training_
    assert not hasattr(model, "draws_")
    assert repr(model.fitted_).startswith("FittedState(estimator_, training_, inference_, rng_, ")
    assert "_FittedAttribute" not in model._repr_html_inner()
    with pytest.raises(AttributeError, match="BayesianMLPRegressor has no attribute 'x_axes_'"):
        model.x_axes_  # noqa: B018


def test_an_attribute_that_is_set_is_in_the_state_of_that_learner_alone():
    model = regressor().fit(X, X[:, 0])
    state = model.fitted_
    model.columns_ = ()
    assert model.fitted_.attributes() == state.attributes() | {"columns_": ()}
    assert not hasattr(regressor(), "columns_")
    with pytest.raises(FrozenInstanceError):
        state.columns_ = ()
    assert not hasattr(model.fit(X, X[:, 0]), "columns_")


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_a_call_that_fails_leaves_the_same_state(call, monkeypatch):
    model = regressor().fit(X, X[:, 0])
    state = model.fitted_

    def fail(*_, **options):
        raise RuntimeError("in the middle of it")

    with pytest.raises(ValueError, match="NaN"):
        getattr(model, call)(X * np.nan, X[:, 0])
    monkeypatch.setattr("bbb_numpy.learners.methods.train", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        getattr(model, call)(X, X[:, 0])
    assert model.fitted_ is state


def test_a_class_has_no_state_but_its_instances_do():
    assert isinstance(BayesianMLPRegressor.fitted_, FittedState)
    assert type(BayesianMLPRegressor.training_).__name__ == "_FittedAttribute"
    assert regressor(inference=MeanField()).fitted_ is BayesianMLPRegressor.fitted_

"""fields of parts: they are read, set and searched like any parameter; parts stay as they are."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_learners import regression_rows, regressor

from bbb_numpy import (
    NUTS,
    SGD,
    Adam,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    Cosine,
    FreeEnergy,
    GaussianLikelihood,
    GaussianPrior,
    LaplacePrior,
    LinearWarmUp,
    PointMass,
    Sampling,
    ScaleMixturePrior,
)
from bbb_numpy.learners.defaults import CLASSIFICATION, REGRESSION

pytestmark = pytest.mark.brief


def test_the_fields_of_parts_are_listed_with_those_that_none_stands_for():
    params = BayesianMLPRegressor().get_params()
    assert params["prior"] is None
    assert params["prior__scale"] == REGRESSION["prior"].scale
    assert params["likelihood__scale"] == REGRESSION["likelihood"].scale
    assert params["likelihood__learn"] is True
    assert params["optimizer__learning_rate"] == REGRESSION["optimizer"].learning_rate
    assert params["optimizer__schedule"] == Cosine()
    assert params["optimizer__schedule__final"] == 0.0
    assert params["kl_warm_up__share"] == REGRESSION["kl_warm_up"].share
    assert params["objective__beta"] == 1.0
    assert params["inference__rho_offset"] == -4.0
    assert BayesianMLPClassifier().get_params()["prior__scale"] == CLASSIFICATION["prior"].scale
    shallow = BayesianMLPRegressor().get_params(deep=False)
    assert set(shallow) < set(params)
    assert not [name for name in shallow if "__" in name]


def test_what_stands_for_no_part_has_no_fields():
    for given, absent in (
        ({"inference": "mle"}, "inference__mu_scale"),  # a posterior and an objective in one
        ({"inference": "nuts"}, "optimizer__learning_rate"),
        ({"inference": "nuts"}, "objective__beta"),
        ({"inference": "map"}, "kl_warm_up__share"),
        ({}, "early_stopping__patience"),
        ({"prior": GaussianPrior}, "prior__scale"),
        ({"prior": "unknown"}, "prior__scale"),
        ({"prior": 3.0, "inference": object(), "likelihood": {}}, "prior__scale"),
    ):
        assert absent not in BayesianMLPRegressor(**given).get_params()


MIXTURE, SGD_STEPS = ScaleMixturePrior(0.25, 1.0, 0.1), {"optimizer__schedule": Cosine()}


@pytest.mark.parametrize(
    ("given", "changes", "name", "wanted"),
    [
        ({}, {"prior__scale": 2.0}, "prior", GaussianPrior(2.0)),
        ({"prior": "laplace"}, {"prior__scale": 2.0}, "prior", LaplacePrior(2.0)),
        ({"prior": GaussianPrior(3.0, True)}, {"prior__scale": 2.0}, "prior",
         GaussianPrior(2.0, True)),
        ({}, {"prior": "laplace", "prior__scale": 2.0}, "prior", LaplacePrior(2.0)),
        ({}, {"prior__scale": 2.0, "prior": "laplace"}, "prior", LaplacePrior(2.0)),
        ({}, {"likelihood__learn": False}, "likelihood", GaussianLikelihood(0.1)),
        ({}, {"optimizer__learning_rate": 0.5, "optimizer__schedule__final": 0.1}, "optimizer",
         Adam(0.5, schedule=Cosine(0.1))),
        ({"optimizer": SGD()}, SGD_STEPS | {"optimizer__schedule__final": 0.2}, "optimizer",
         SGD(schedule=Cosine(0.2))),
        ({}, {"objective__beta": 0.5}, "objective", FreeEnergy(0.5)),
        ({}, {"kl_warm_up__share": 0.25}, "kl_warm_up", LinearWarmUp(0.25)),
        ({"inference": "map"}, {"inference__mu_scale": 1.0}, "inference", PointMass(1.0)),
        ({"inference": "nuts"}, {"inference__chains": 2}, "inference", Sampling("nuts", 2)),
        ({"inference": "nuts"}, {"inference__sampler__max_depth": 3}, "inference",
         Sampling(NUTS(max_depth=3))),
        # neither of the two is a mixture without the other
        ({"prior": MIXTURE}, {"prior__sigma1": 9.0, "prior__sigma2": 5.0}, "prior",
         ScaleMixturePrior(0.25, 9.0, 5.0)),
    ],
)  # fmt: skip
def test_a_field_that_is_set_replaces_the_part(given, changes, name, wanted):
    model = BayesianMLPRegressor(**given)
    old_params = model.get_params(deep=False)
    assert model.set_params(**changes) is model
    after = model.get_params(deep=False)
    assert repr(after[name]) == repr(wanted)  # kernels of samplers are equal only to themselves
    assert {k: v for k, v in after.items() if k != name} == {
        k: v for k, v in old_params.items() if k != name
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 3}, "Invalid parameter 'width' for estimator .*Valid parameters"),
        ({"width__scale": 3}, "Invalid parameter 'width' for estimator"),
        (
            {"prior__width": 3},
            r"Invalid parameter 'width' for prior=GaussianPrior\(scale=0.5, learn=False\)\. "
            r"Valid parameters are: \['scale', 'learn'\]",
        ),
        ({"prior__scale": -1.0}, "scale of the prior"),
        (
            {"prior__scale__x": 1.0},
            r"'x' for scale=0.5\. Valid parameters are: \[\]",
        ),
        ({"optimizer__schedule__x": 1.0}, r"'x' for schedule=Cosine.*final"),
        ({"early_stopping__patience": 3}, "'patience' for early_stopping=None"),
        ({"epochs__x": 3}, "'x' for epochs=7"),
        ({"inference": "mle", "inference__mu_scale": 1.0}, "for inference='mle'"),
        ({"prior__": 1.0}, "Invalid parameter '' for prior"),
    ],
)
def test_nothing_changes_when_one_of_several_is_refused(changes, message):
    model = BayesianMLPRegressor(epochs=7)
    old_params = model.get_params()
    with pytest.raises(ValueError, match=message):
        model.set_params(samples=9, likelihood__scale=0.3, **changes)
    assert model.get_params() == old_params


def test_a_grid_over_fields_of_parts_reaches_them_through_a_pipeline_too():
    x, y = regression_rows(30, 2)
    steps = make_pipeline(StandardScaler(), regressor(epochs=5))
    name = "bayesianmlpregressor__"
    grid = {f"{name}prior__scale": [0.1, 1.0], f"{name}optimizer__learning_rate": [1e-3, 1e-2]}
    search = GridSearchCV(steps, grid, cv=2).fit(x, y)
    best, best_params = search.best_estimator_[-1], search.best_params_
    assert best.estimator_.model.prior == GaussianPrior(best_params[f"{name}prior__scale"])
    assert best.history_[0].learning_rate <= best_params[f"{name}optimizer__learning_rate"]
    assert steps.get_params()[f"{name}prior__scale"] == 0.5
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 4  # each was another fit
    priors = {f"{name}prior": [GaussianPrior(0.1), GaussianPrior(1.0)]}
    alone = GridSearchCV(steps, priors, cv=2).fit(x, y)
    at_default = [
        one[f"{name}optimizer__learning_rate"] == 1e-2 for one in search.cv_results_["params"]
    ]
    np.testing.assert_array_equal(alone.cv_results_["mean_test_score"], scores[at_default])


def test_clones_and_pickles_keep_what_was_set():
    prior, schedule = GaussianPrior(3.0), Cosine()
    model = regressor(prior=prior, optimizer=Adam(schedule=schedule))
    model.set_params(prior__scale=0.25, optimizer__schedule__final=0.5)
    assert (prior, schedule) == (GaussianPrior(3.0), Cosine())  # others may hold them
    for twin in (clone(model), pickle.loads(pickle.dumps(model))):
        assert twin.get_params() == model.get_params()
        assert twin.prior == GaussianPrior(0.25)

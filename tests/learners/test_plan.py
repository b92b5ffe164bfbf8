"""plans: every constructor argument is checked, and a refusal names it."""

import numpy as np
import pytest

from bbb_numpy import (
    EUBO,
    Adam,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BernoulliLikelihood,
    ClosedFormKL,
    Cosine,
    FreeEnergy,
    FullRank,
    GaussianLikelihood,
    GaussianPrior,
    PointMass,
    Renyi,
    Reparameterised,
    Sampling,
    SelfNormalised,
)
from bbb_numpy.learners.defaults import CLASSIFICATION, REGRESSION
from bbb_numpy.learners.plan import check_plan
from bbb_numpy.model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    NoWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.registry import PRIORS


def plan(**params):
    return check_plan(BayesianMLPRegressor(**{"hidden_layer_sizes": (5,)} | params))


@pytest.mark.parametrize(
    ("params", "name", "part"),
    [
        ({}, "prior", REGRESSION["prior"]),
        ({}, "optimizer", Adam(1e-2, schedule=Cosine())),
        ({"likelihood": "heteroscedastic"}, "optimizer", Adam(1e-2, schedule=Cosine(), clip=20.0)),
        ({}, "kl_weights", proportional_kl_weights),
        ({}, "hidden_layer_sizes", (5,)),
        ({}, "early_stopping", None),
        ({"dtype": "float32"}, "dtype", np.dtype(np.float32)),
        ({"prior": "laplace"}, "prior", PRIORS["laplace"]),
        ({"kl_weights": "geometric"}, "kl_weights", geometric_kl_weights),
        ({"objective": Renyi(1.0)}, "objective", FreeEnergy()),
        ({"objective": Renyi(0.99)}, "objective", Renyi(0.99)),
        ({"hidden_layer_sizes": None}, "hidden_layer_sizes", (20,)),
        ({"hidden_layer_sizes": np.int64(3)}, "hidden_layer_sizes", (3,)),
        ({"hidden_layer_sizes": np.array([3, 4])}, "hidden_layer_sizes", (3, 4)),
        ({"hidden_layer_sizes": ()}, "hidden_layer_sizes", ()),
        ({"likelihood": "bernoulli"}, "likelihood", BernoulliLikelihood()),
        ({"kl_warm_up": "cyclical"}, "kl_warm_up", CyclicalWarmUp()),
    ],
)
def test_what_an_argument_stands_for(params, name, part):
    assert plan(**params).parts[name] == part


def test_the_task_has_defaults_of_its_own():
    parts = check_plan(BayesianMLPClassifier()).parts
    assert {name: parts[name] for name in CLASSIFICATION} == CLASSIFICATION


@pytest.mark.parametrize(
    ("make", "params", "rows", "batch_size", "samples", "epochs", "rate"),
    [
        (BayesianMLPRegressor, {}, 20, 32, 1, 1000, 1e-2),  # few rows: all the passes
        (BayesianMLPRegressor, {}, 512, 32, 1, 1000, 1e-2),  # 16 steps a pass
        (BayesianMLPRegressor, {}, 513, 64, 4, 888, 2e-2),  # 9 steps a pass
        (BayesianMLPRegressor, {}, 4096, 64, 4, 500, 2e-2),
        (BayesianMLPRegressor, {}, 4097, 128, 1, 969, 2e-2),  # 33 steps a pass
        (BayesianMLPRegressor, {}, 10240, 256, 1, 800, 2e-2),  # 40 steps a pass
        (BayesianMLPRegressor, {}, 46080, 256, 1, 200, 2e-2),  # no fewer passes
        (BayesianMLPRegressor, {"batch_size": 300}, 5000, 300, 1, 1000, 2e-2),  # no more passes
        (BayesianMLPRegressor, {"batch_size": 100}, 10**4, 100, 1, 320, 2e-2),
        (BayesianMLPRegressor, {"samples": 2}, 1024, 64, 2, 500, 2e-2),
        (BayesianMLPRegressor, {"epochs": 7}, 10**7, 32, 1, 7, 1e-2),  # what is given is meant
        (BayesianMLPRegressor, {"inference": "map"}, 1024, 64, 1, 500, 2e-2),
        (BayesianMLPRegressor, {"inference": "laplace"}, 10**4, 256, 1, 1000, 1e-2),
        (BayesianMLPRegressor, {"objective": "iwae"}, 10**4, 32, 1, 1000, 1e-2),
        (BayesianMLPClassifier, {}, 512, 32, 4, 100, 1e-2),
        (BayesianMLPClassifier, {"batch_size": 8}, 512, 8, 4, 100, 1e-2),
        (BayesianMLPClassifier, {}, 1040, 65, 4, 100, 2e-2),
        (BayesianMLPClassifier, {}, 8192, 256, 4, 100, 2e-2),
        (BayesianMLPClassifier, {}, 8193, 256, 2, 100, 2e-2),
        (BayesianMLPClassifier, {"samples": 3}, 10**5, 256, 3, 100, 2e-2),
        (BayesianMLPClassifier, {"inference": "ivon"}, 2048, 64, 4, 50, 0.2),
        (BayesianMLPRegressor, {"inference": "ivon"}, 10**5, 256, 1, 200, 0.2),
        (BayesianMLPRegressor, {"inference": "ivon", "batch_size": 20}, 10**5, 20, 1, 200, 0.2),
    ],
)
def test_steps_do_not_grow_with_the_rows(make, params, rows, batch_size, samples, epochs, rate):
    plan = check_plan(make(**params))
    recipe = plan.recipe(rows, from_scratch=True, stops_early=False)
    assert (recipe.batch_size, recipe.samples, recipe.epochs) == (batch_size, samples, epochs)
    assert recipe.optimizer.learning_rate == rate
    partial_fit_recipe = plan.recipe(rows, 3, from_scratch=True, stops_early=False)
    assert (partial_fit_recipe.epochs, partial_fit_recipe.batch_size) == (
        3,
        params.get("batch_size", 32),
    )


def test_the_default_warm_up_needs_a_kl_term():
    def warm_up(**params):
        return plan(**params).parts["kl_warm_up"]

    assert warm_up() == LinearWarmUp(0.5)
    assert warm_up(objective="iwae") == warm_up(inference="map") == NoWarmUp()
    assert warm_up(kl_warm_up="none") == NoWarmUp()
    assert warm_up(kl_warm_up=LinearWarmUp(0.1)) == LinearWarmUp(0.1)


def build(**params):
    resolved = plan(**params)
    return resolved.build(3, 2, resolved.parts["likelihood"])


def test_a_plan_builds_its_estimator():
    assert build().model.network.sizes == (3, 5, 2)
    assert build(likelihood="heteroscedastic").model.network.sizes == (3, 5, 4)
    assert type(build()) is Reparameterised
    assert type(build(gradient_estimator=ClosedFormKL)) is ClosedFormKL
    assert build(gradient_estimator="antithetic").antithetic
    assert type(build(objective=EUBO(), samples=2)) is SelfNormalised
    assert build(inference=FullRank()).posterior == FullRank()


def test_a_classifier_takes_no_likelihood_of_numbers():
    for value in ("poisson", "student-t", GaussianLikelihood()):
        with pytest.raises(ValueError, match="The 'likelihood' parameter of BayesianMLPClassifier"):
            check_plan(BayesianMLPClassifier(likelihood=value))


BAD = {
    "hidden_layer_sizes": [(0,), ("5",), "50", 2.5, iter([5]), {3}],
    "activation": ["swish", ["relu"]],
    "prior": [1.0, "gauss"],
    "gradient_estimator": [1.0, "flip", Adam],
    "objective": ["elb", FreeEnergy],
    "kl_weights": [[1.0], "equal"],
    "kl_warm_up": [0.5, "slow", LinearWarmUp],
    "likelihood": [GaussianPrior()],
    "inference": ["mcmc", "mh", Sampling, PointMass, 4, ["nuts"]],
    "optimizer": [Adam, "adem", Cosine()],
    "epochs": [0, "100"],
    "batch_size": [0, -3, 2.5],
    "samples": [0],
    "predict_samples": [0],
    "standardize": ["yes"],
    "early_stopping": [True],
    "validation_fraction": [1.0, -0.1],
    "dtype": ["float16", "number", None, int],
    "progress": ["bar"],
    "verbose": ["loud", -1],
    "warm_start": [1],
    "random_state": [-1, "seed"],
}


@pytest.mark.parametrize(("name", "values"), BAD.items())
def test_every_bad_argument_is_named(name, values):
    for value in values:
        with pytest.raises((TypeError, ValueError), match=name):
            plan(**{name: value})


@pytest.mark.parametrize(
    "name", ["epochs", "batch_size", "samples", "predict_samples", "validation_fraction", "prior"]
)
def test_a_span_of_time_is_no_number(name):
    with pytest.raises(TypeError, match=f"{name} must not be a time difference; got "):
        plan(**{name: np.timedelta64(1, "s")})

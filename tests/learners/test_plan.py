"""plans: every constructor argument is checked, and a refusal names it."""

import numpy as np
import pytest

from bbb_numpy.gradients.catalogue import PRIORS
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.family import Family
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners.classifier import BayesianMLPClassifier
from bbb_numpy.learners.plan import (
    CLASSIFICATION,
    REGRESSION,
    check_part,
    check_plan,
    check_sizes,
)
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.kl_weights import (
    LinearWarmUp,
    NoWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.model.objectives import EUBO, FreeEnergy, Renyi
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior, LaplacePrior
from bbb_numpy.training.optimizers import Adam, Cosine

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_flags_are_true_or_false(value):
    assert check_plan(PARAMETERS | {"standardize": np.True_}).standardize is True
    with pytest.raises(TypeError, match="standardize must be True or False"):
        check_plan(PARAMETERS | {"standardize": value})
    assert check_plan(PARAMETERS | {"progress": None}).progress is None


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
        (2.5, TypeError, "hidden must be a tuple"),
        (True, TypeError, "hidden"),
    ],
)
def test_other_layer_widths_are_refused(value, kind, message):
    with pytest.raises(kind, match=message):
        check_sizes("hidden", value)


def test_a_class_is_not_an_object():
    assert check_part("prior", GaussianPrior(2.0), (GaussianPrior,)) == GaussianPrior(2.0)
    with pytest.raises(TypeError, match=r"prior must be None or .*GaussianPrior; got the class"):
        check_part("prior", GaussianPrior, (GaussianPrior,))
    with pytest.raises(TypeError, match=r"GaussianPrior; got 1\.0"):
        check_part("prior", 1.0, (GaussianPrior,))


def test_text_names_an_entry_of_the_table_if_there_is_one():
    assert check_part("prior", "laplace", (GaussianPrior,), PRIORS) is PRIORS["laplace"]
    with pytest.raises(ValueError, match=r"prior must be one of 'gaussian', .*; got 'lapl'"):
        check_part("prior", "lapl", (GaussianPrior,), PRIORS)
    with pytest.raises(TypeError, match=r"optimizer must be None or .*got 'adam'"):
        check_part("optimizer", "adam", (Adam,))


PARAMETERS = {
    "hidden_layer_sizes": (5,),
    "activation": "relu",
    "inference": "mean-field",
    **dict.fromkeys(("prior", "likelihood", "optimizer", "early_stopping")),
    **dict.fromkeys(("gradient_estimator", "objective", "kl_weights", "kl_warm_up")),
    **dict.fromkeys(("epochs", "batch_size", "samples", "predict_samples"), 1),
    "standardize": True,
    "validation_fraction": 0.0,
    "dtype": "float32",
    "random_state": None,
    "progress": None,
    "verbose": False,
    "warm_start": False,
}


def test_none_stands_for_the_default():
    plan = check_plan(PARAMETERS)
    assert (plan.prior, plan.likelihood) == (REGRESSION.prior, REGRESSION.likelihood)
    assert (plan.posterior, plan.objective) == (MeanField(rho_offset=-4.0), FreeEnergy())
    assert plan.optimizer == Adam(1e-2, schedule=Cosine())
    assert plan.kl_weights is proportional_kl_weights
    assert plan.early_stopping is None
    assert plan.dtype == np.float32
    assert check_plan(PARAMETERS | {"prior": GaussianPrior(3.0)}).prior == GaussianPrior(3.0)
    assert check_plan(PARAMETERS, CLASSIFICATION).prior == CLASSIFICATION.prior
    assert check_plan(PARAMETERS, CLASSIFICATION).likelihood is None


@pytest.mark.parametrize("task", [REGRESSION, CLASSIFICATION])
def test_the_task_has_defaults_of_its_own(task):
    names = ("hidden_layer_sizes", "epochs", "samples", "predict_samples")
    plan = check_plan(PARAMETERS | dict.fromkeys(names), task)
    assert (plan.hidden, plan.epochs) == (task.hidden, task.epochs)
    assert (plan.samples, plan.predict_samples) == (task.samples, task.predict_samples)


def test_the_default_warm_up_needs_a_kl_term():
    def warm_up(**params):
        return check_plan(PARAMETERS | params).warm_up_in_fit(REGRESSION)

    assert warm_up() == LinearWarmUp(0.5)
    assert warm_up(objective="iwae") == warm_up(inference="map") == NoWarmUp()
    assert warm_up(kl_warm_up="none") == NoWarmUp()
    assert warm_up(kl_warm_up=LinearWarmUp(0.1)) == LinearWarmUp(0.1)
    assert check_plan(PARAMETERS).warm_up_in_fit(CLASSIFICATION) == NoWarmUp()


def test_renyi_of_order_one_is_the_elbo_and_no_other_order_is():
    assert check_plan(PARAMETERS | {"objective": Renyi(1.0)}).objective == FreeEnergy()
    assert check_plan(PARAMETERS | {"objective": Renyi(0.99)}).objective == Renyi(0.99)


def test_functions_by_name_and_by_themselves():
    for value in ("geometric", geometric_kl_weights):
        assert check_plan(PARAMETERS | {"kl_weights": value}).kl_weights is geometric_kl_weights


def build(**params):
    plan = check_plan(PARAMETERS | params)
    return plan.build(3, 2, plan.likelihood)


def test_a_plan_builds_its_estimator():
    assert build().model.network.sizes == (3, 5, 2)
    assert build(likelihood="heteroscedastic").model.network.sizes == (3, 5, 4)
    assert type(build()) is Reparameterised
    assert type(build(gradient_estimator=ClosedFormKL)) is ClosedFormKL
    assert build(gradient_estimator="antithetic").antithetic
    assert type(build(objective=EUBO(), samples=2)) is SelfNormalised
    assert build(inference=FullRank()).posterior == FullRank()


def test_a_refusal_says_what_was_given():
    with pytest.raises(
        ValueError,
        match=r"in closed form.*\(given: gradient_estimator=closed-form-kl, .*LaplacePrior",
    ):
        build(gradient_estimator="closed-form-kl", prior=LaplacePrior(1.0))
    with pytest.raises(ValueError, match=r"\(given: gradient_estimator=ClosedFormKL, "):
        build(gradient_estimator=ClosedFormKL, prior=LaplacePrior(1.0))
    with pytest.raises(ValueError, match=r"with a density.*\(given: .*inference=PointMass"):
        build(gradient_estimator="flipout", inference=PointMass())


def test_a_classifier_takes_no_likelihood_of_numbers():
    plan = check_plan(PARAMETERS | {"likelihood": "bernoulli"}, CLASSIFICATION)
    assert plan.likelihood == BernoulliLikelihood()
    for value in ("poisson", GaussianLikelihood()):
        with pytest.raises(TypeError, match=r"likelihood must be .*Bernoulli.*use BayesianMLPReg"):
            check_plan(PARAMETERS | {"likelihood": value}, CLASSIFICATION)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("hidden_layer_sizes", (0,), ValueError),
        ("activation", "swish", ValueError),
        ("activation", None, ValueError),
        ("activation", ["relu"], ValueError),
        ("prior", 1.0, TypeError),
        ("prior", "gauss", ValueError),
        ("gradient_estimator", 1.0, TypeError),
        ("gradient_estimator", "flip", ValueError),
        ("gradient_estimator", Family, TypeError),
        ("gradient_estimator", Adam, TypeError),
        ("objective", "elb", ValueError),
        ("objective", FreeEnergy, TypeError),
        ("kl_weights", [1.0], TypeError),
        ("kl_weights", "equal", ValueError),
        ("kl_warm_up", 0.5, TypeError),
        ("kl_warm_up", "slow", ValueError),
        ("kl_warm_up", LinearWarmUp, TypeError),
        ("likelihood", GaussianPrior(), TypeError),
        ("inference", None, TypeError),
        ("inference", "mcmc", ValueError),
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
        ("verbose", "loud", TypeError),
        ("verbose", -1, ValueError),
        ("warm_start", 1, TypeError),
        ("random_state", -1, ValueError),
        ("random_state", "seed", TypeError),
    ],
)
def test_every_bad_argument_is_named(name, value, kind):
    with pytest.raises(kind, match=name):
        check_plan(PARAMETERS | {name: value})


@pytest.mark.parametrize("value", [np.array(3), 3, np.int8(3)])
def test_one_number_of_any_kind_is_one_hidden_layer(value):
    assert check_sizes("hidden_layer_sizes", value) == (3,)


@pytest.mark.parametrize("value", [np.array(3.5), {3: 1}, {3}, "3", 3.0])
def test_sizes_without_order_or_layers_are_named(value):
    with pytest.raises(TypeError, match="hidden_layer_sizes must be a tuple of whole numbers"):
        check_sizes("hidden_layer_sizes", value)


@pytest.mark.parametrize("value", [(5 for _ in range(2)), iter([5]), map(int, "5"), zip((5,))])
def test_sizes_that_can_be_read_only_once_would_be_gone_in_the_second_fit(value):
    model = BayesianMLPRegressor(value, epochs=1)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"must be a tuple.*which can be read only once"):
            model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert len(list(value)) >= 1  # nothing has been read


@pytest.mark.parametrize("kind", [BayesianMLPRegressor, BayesianMLPClassifier])
def test_an_unknown_keyword_names_the_class_that_was_called(kind):
    for call, name in ((kind, "__init__"), (kind().fit, "fit")):
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\.{name}\(\) got an unexpected"):
            call(colour="red")

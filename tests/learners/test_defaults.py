"""defaults: what inference=None stands for depends on rows and arguments alone."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from small_learners import class_blobs, regression_rows

from bbb_numpy import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    EarlyStopping,
    GaussianPrior,
    HeteroscedasticLikelihood,
    MeanField,
    PoissonLikelihood,
    Sampling,
    load,
    save,
)
from bbb_numpy.learners.defaults import MAX_PRODUCTS, STRATEGIES, n_products, strategy_for
from bbb_numpy.learners.ensemble import Ensemble
from bbb_numpy.learners.inference import BUDGETS, default_chains
from bbb_numpy.learners.plan import check_plan
from bbb_numpy.parts.relevance import ARDPrior
from bbb_numpy.training.schedules import TrainingSchedule


def part(shape, learner=BayesianMLPRegressor, **params):
    """Return what a learner's parts are for a table of this shape."""
    return check_plan(learner(**params), shape).parts


@pytest.mark.parametrize("learner", [BayesianMLPRegressor, BayesianMLPClassifier])
def test_few_rows_have_chains_and_many_have_an_ensemble(learner):
    few, many = part((100, 3), learner), part((100_000, 20), learner)
    assert isinstance(few["inference"], Sampling)
    assert few["inference"].cores == 1  # no process is started
    assert few["prior"] == ARDPrior()
    assert few["activation"] == "tanh"
    assert many["inference"] == Ensemble()
    chains, ensemble = STRATEGIES[learner.task]
    assert few["hidden_layer_sizes"] == chains.parts["hidden_layer_sizes"]
    assert many["hidden_layer_sizes"] == ensemble.parts["hidden_layer_sizes"]


@pytest.mark.parametrize("learner", [BayesianMLPRegressor, BayesianMLPClassifier])
def test_few_rows_with_many_weights_have_one_mean_field(learner):
    assert isinstance(part((255, 2000), learner)["inference"], MeanField)
    assert (
        part((255, 2000), learner)["epochs"]
        == part((1, 1), learner, inference="mean-field")["epochs"]
    )
    assert part((256, 2000), learner)["inference"] == Ensemble()


def test_the_gradients_are_fewer_where_they_are_dearer():
    budgets = [(b.warm_up + b.draws) * b.max_steps for b in BUDGETS]
    assert budgets == sorted(budgets, reverse=True)
    assert BUDGETS[-1].max_products >= MAX_PRODUCTS
    for products in (1, 99_999, 400_001, MAX_PRODUCTS):
        chains = default_chains(products, None)
        assert chains.draws in {b.draws for b in BUDGETS}
        assert chains.hyperpriors == {}
    noise = default_chains(1, HeteroscedasticLikelihood(learn=True)).hyperpriors
    assert list(noise) == ["log_noise"]


@pytest.mark.parametrize(
    "given",
    [
        {"epochs": 5},
        {"batch_size": 8},
        {"optimizer": "adam"},
        {"objective": "iwae"},
        {"early_stopping": EarlyStopping()},
        {"validation_fraction": 0.2},
        {"warm_start": True},
    ],
)
def test_an_argument_of_training_means_a_trained_posterior(given):
    for shape in ((50, 2), (10**6, 20)):
        parts = part(shape, **given)
        assert isinstance(parts["inference"], MeanField)
        assert parts["activation"] == "relu"
        assert parts["prior"] == GaussianPrior(0.5)
    assert strategy_for("regression", BayesianMLPRegressor(**given).get_params(), 9, 1).parts == {}


def test_parts_of_the_user_are_kept():
    parts = part((50, 2), prior=GaussianPrior(2.0), likelihood="poisson", activation="relu")
    assert isinstance(parts["inference"], Sampling)
    assert parts["prior"] == GaussianPrior(2.0)
    assert parts["likelihood"] == PoissonLikelihood()
    assert parts["activation"] == "relu"
    sizes = BayesianMLPRegressor(hidden_layer_sizes=(7,))
    assert check_plan(sizes, (50, 2)).parts["hidden_layer_sizes"] == (7,)


def test_products_are_rows_times_weights():
    assert n_products((4, 3), 10, 2) == 10 * (8 + 12 + 3)
    assert n_products((), 10, 2) == 20
    assert n_products(None, 10, 2) == n_products((20,), 10, 2) == n_products("x", 10, 2)


@pytest.fixture
def cheap(monkeypatch):
    """Let chains and members be as cheap as tests need."""
    few = Sampling(draws=6, warm_up=5, groups=1, cores=1, dtype="float32", start="prior")
    monkeypatch.setattr("bbb_numpy.learners.plan.default_chains", lambda *_: few)
    schedule = TrainingSchedule(1, 64, 1, 1e-2)
    monkeypatch.setattr("bbb_numpy.learners.ensemble.schedule_for", lambda *_: schedule)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_products", [MAX_PRODUCTS, 0])
@pytest.mark.parametrize(
    ("learner", "rows"),
    [
        (BayesianMLPRegressor, regression_rows()),
        (BayesianMLPRegressor, regression_rows(outputs=2)),
        (BayesianMLPClassifier, class_blobs(3)),
    ],
)
def test_a_default_learner_fits_predicts_and_is_saved(
    cheap, monkeypatch, tmp_path, learner, rows, max_products
):
    monkeypatch.setattr("bbb_numpy.learners.defaults.MAX_PRODUCTS", max_products)
    monkeypatch.setattr("bbb_numpy.learners.defaults.MIN_MEMBER_ROWS", 1)
    x, y = rows
    model = learner(random_state=0, progress=False)
    with warnings.catch_warnings(record=True) as caught:
        model.fit(x, y, sample_weight=np.ones(len(x)))
    assert not [w for w in caught if "divergent" in str(w.message)]
    assert isinstance(model.inference_, Sampling if max_products else Ensemble)
    again = clone(model).fit(x, y, sample_weight=np.ones(len(x)))
    assert again.theta_.tobytes() == model.theta_.tobytes()
    assert np.isfinite(model.log_predictive_density(x, y)).all()
    save(model, tmp_path / "model.npz")
    stored = load(tmp_path / "model.npz")
    assert stored.inference_ == model.inference_ or max_products  # kernels have no equality
    np.testing.assert_array_equal(stored.predict(x), model.predict(x))


def test_partial_fit_trains_what_it_always_has():
    x, y = regression_rows()
    model = BayesianMLPRegressor(random_state=0).partial_fit(x, y)
    assert isinstance(model.inference_, MeanField)
    explicit = BayesianMLPRegressor(random_state=0, inference="mean-field").partial_fit(x, y)
    assert explicit.theta_.tobytes() == model.theta_.tobytes()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_partial_fit_does_not_continue_chains(cheap):
    x, y = regression_rows()
    model = BayesianMLPRegressor(random_state=0, progress=False).fit(x, y)
    with pytest.raises(ValueError, match=r"draws of its posterior.*call fit to start anew"):
        model.partial_fit(x, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_grid_of_training_arguments_trains(cheap):
    x, y = regression_rows()
    grid = {"optimizer__learning_rate": [1e-3, 1e-2]}
    search = GridSearchCV(BayesianMLPRegressor(epochs=2, random_state=0), grid, cv=2).fit(x, y)
    assert isinstance(search.best_estimator_.inference_, MeanField)


def test_shapes_that_cannot_be_read_are_refused_as_ever():
    for x in ([[1.0, 2.0], [3.0]], 3.0, None, [1.0, 2.0]):
        with pytest.raises((TypeError, ValueError)):
            BayesianMLPRegressor().fit(x, [1.0, 2.0])

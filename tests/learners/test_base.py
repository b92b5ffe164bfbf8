"""What both learners do: scikit-learn's habits, going on, and nothing lost on failure."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_learners import SMALL_LEARNERS, classifier, fitted_state, regression_rows, regressor

from bbb_numpy import (
    HMC,
    NUTS,
    SGD,
    SGHMC,
    Adam,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    GaussianPrior,
    MeanField,
    Momentum,
    NonFiniteError,
    Reparameterised,
    Sampling,
)
from bbb_numpy.training.laplace import Laplace

pytestmark = [
    pytest.mark.brief,
    pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning"),
    pytest.mark.filterwarnings("ignore:SGHMC is not adjusted:UserWarning"),
]
both = pytest.mark.parametrize(("make", "x", "y"), SMALL_LEARNERS, ids=["numbers", "classes"])

# Copies of a row are drawn in another order than weights and so with other noise. Where neither
# enters, this check passes: test_weights.py
OTHER_NOISE = {"check_sample_weight_equivalence_on_dense_data": "other order and noise of rows"}
FEW = {"chains": 2, "draws": 5, "warm_up": 5, "start": "prior"}


def differs(estimator):
    """To MAP the rows of numbers are one minibatch, without noise; those of classes are more."""
    alike = estimator.inference == "laplace" and isinstance(estimator, BayesianMLPRegressor)
    return OTHER_NOISE if estimator.epochs and not alike else {}


def conformance(*estimators):
    return parametrize_with_checks(list(estimators), expected_failed_checks=differs)


@conformance(  # a habit needs no thousand epochs
    BayesianMLPRegressor((10,), epochs=30, predict_samples=10),
    BayesianMLPClassifier((10,), epochs=20, predict_samples=10),
    BayesianMLPRegressor((4,), activation="tanh", inference=Sampling(NUTS(max_depth=2), **FEW)),
    BayesianMLPClassifier((4,), epochs=20, inference=Laplace(rounds=1), predict_samples=10),
)
def test_every_conformance_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.slow
@conformance(
    BayesianMLPRegressor(epochs=30),
    BayesianMLPClassifier(epochs=20),
    BayesianMLPClassifier((4,), activation="tanh", inference=Sampling(HMC(path=0.5), **FEW)),
    BayesianMLPRegressor((4,), epochs=40, inference="ivon"),
    BayesianMLPClassifier((4,), epochs=40, inference="ivon"),
    BayesianMLPRegressor((4,), epochs=30, inference="laplace"),
    BayesianMLPClassifier((4,), epochs=20, inference="laplace"),
    # enough steps to come from the prior to data, too few for rounding to become another path
    BayesianMLPRegressor((4,), activation="tanh", inference=Sampling(SGHMC(steps=20), **FEW)),
    BayesianMLPClassifier((4,), activation="tanh", inference=Sampling(SGHMC(steps=20), **FEW)),
)
def test_so_does_each_of_every_other_inference(estimator, check):
    check(estimator)


@both
def test_clones_and_pickles_give_the_same_numbers(make, x, y):
    model = make(prior=GaussianPrior(0.3), optimizer=SGD(1e-3)).fit(x, y)
    assert fitted_state(clone(model).fit(x, y)) == fitted_state(model)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(x), model.predict(x))
    assert fitted_state(twin.partial_fit(x, y)) == fitted_state(model.partial_fit(x, y))


@both
def test_data_frames_carry_their_names(make, x, y):
    frame = pd.DataFrame(x, columns=list("abc")[: x.shape[1]])
    model = make().fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.predict(frame), make().fit(x, y).predict(x))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.partial_fit(frame.rename(columns={"a": "z"}), y)
    assert not hasattr(model.fit(x, y), "feature_names_in_")


@both
def test_the_same_seed_gives_the_same_bits(make, x, y):
    assert fitted_state(make().fit(x, y)) == fitted_state(make().fit(x, y))
    assert fitted_state(make().fit(x, y)) != fitted_state(make(random_state=1).fit(x, y))
    assert fitted_state(make(random_state=None).fit(x, y)) != fitted_state(
        make(random_state=None).fit(x, y)
    )
    model = make(random_state=np.random.default_rng(0))
    assert fitted_state(model.fit(x, y)) != fitted_state(model.fit(x, y))


@pytest.mark.parametrize("name", ["theta_", "history_", "n_iter_", "noise_scale_", "classes_"])
@both
def test_fitted_attributes_are_absent_before_fit(make, x, y, name):
    assert not hasattr(make(), name)
    assert hasattr(make().fit(x, y), name) == (
        name != ("classes_" if make is regressor else "noise_scale_")
    )


# Going on


@pytest.mark.parametrize("optimizer", [SGD(1e-3), Momentum(1e-3), Adam(1e-2)])
@both
def test_partial_fits_in_a_row_are_one_fit(make, x, y, optimizer):
    one_fit = make(epochs=4, optimizer=optimizer).fit(x, y)
    first = {} if make is regressor else {"classes": np.unique(y)[::-1]}
    parts = make(optimizer=optimizer).partial_fit(x, y, **first)
    parts.partial_fit(x, y, epochs=2).partial_fit(x, y)
    assert fitted_state(parts) == fitted_state(one_fit)
    assert parts.n_iter_ == len(parts.history_) == 4


# Numbers far beyond those of fit


@both
def test_rows_for_which_the_network_overflows_are_named(make, x, y):
    # 1e308 is finite, and in standard deviations too; its product with a weight above 2 is not.
    # Weights start at N(0, 3^2), and of 50 units some are on and have such weights
    x = x / x.std(axis=0)
    far = np.where(np.arange(len(x))[:, None] == 7, 1e308 * np.sign(x), x)
    wide = {"hidden_layer_sizes": (50,), "inference": MeanField(mu_scale=3.0), "epochs": 1}
    model = make(**wide).fit(x, y)
    calls = {"predict": (), "predict_distribution": (), "sample_functions": (3,)}
    calls |= {"sample_y": (3,)} if make is regressor else {"predict_proba": ()}
    for method, arguments in (calls | {"log_predictive_density": (y,)}).items():
        with pytest.raises(ValueError, match="overflows float64 at row 7: X there is as far as"):
            getattr(model, method)(far, *arguments)


# Bad input, and nothing lost

ZEROS = np.zeros((40, 3))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.full((40, 3), np.nan), np.zeros(40), "X contains NaN"),
        (ZEROS, np.full(40, -np.inf), "y contains infinity"),
        (np.zeros(40), np.zeros(40), "Reshape your data"),
        (np.zeros((40, 0)), np.zeros(40), "Found array with 0 feature"),
        (ZEROS, np.zeros(39), "inconsistent numbers of samples"),
        (ZEROS, ["a"] * 40, "y must hold numbers"),
        (ZEROS, None, "requires y"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "log_predictive_density"])
def test_bad_data_are_named_and_change_nothing(method, x, y, message):
    model = regressor().fit(*regression_rows())
    state_before = fitted_state(model)
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(model, method)(x, y)
    if method != "fit":
        with pytest.raises(ValueError, match="y must have 1 columns, as in fit; got 2"):
            getattr(model, method)(*regression_rows(outputs=2))
    assert fitted_state(model) == state_before


def test_divergence_keeps_the_last_finite_epoch_or_an_earlier_fit():
    x, y = regression_rows()
    rising = SGD(1e-4, lambda epoch, epochs: 1e80 ** (epoch // 2))
    explodes = {"batch_size": 4, "optimizer": rising}
    model = regressor(epochs=5, **explodes)
    with pytest.raises(NonFiniteError, match="in epoch 2"):
        model.fit(x, y)
    assert model.n_iter_ == 2
    good = regressor(epochs=2, **explodes).fit(x, y)
    np.testing.assert_array_equal(model.theta_, good.theta_)
    np.testing.assert_array_equal(model.predict(x), good.predict(x))
    model.set_params(optimizer=SGD(1e-4)).partial_fit(x, y)
    state_before = fitted_state(model)
    with pytest.raises(NonFiniteError, match="in epoch 0"):
        model.set_params(optimizer=SGD(1e80)).fit(x, y)
    assert fitted_state(model) == state_before
    assert np.isfinite(model.predict(x)).all()


def interrupt_after(monkeypatch, steps):
    """Press Ctrl-C in the middle of the step after so many."""
    real, calls = Reparameterised.value_and_grad, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) > steps:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(Reparameterised, "value_and_grad", interrupted)


def test_ctrl_c_leaves_the_last_finished_epoch(monkeypatch):
    x, y = regression_rows()
    constant = Adam(1e-2)
    two = regressor(epochs=2, optimizer=constant).fit(x, y)
    interrupt_after(monkeypatch, steps=5)  # two steps per epoch
    model = regressor(epochs=9, optimizer=constant)
    with pytest.warns(UserWarning, match="interrupted by user after 2 of 9 epochs"):
        model.fit(x, y)
    assert model.training_.stopped == "interrupted"
    np.testing.assert_array_equal(model.theta_, two.theta_)
    np.testing.assert_array_equal(model.predict(x), two.predict(x))


def test_ctrl_c_after_training_keeps_the_whole_fit_without_its_report(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    x, y = regression_rows()
    uninterrupted = regressor(epochs=2).fit(x, y)
    monkeypatch.setattr("bbb_numpy.learners.base.diagnose_fit", interrupted)
    with pytest.warns(UserWarning, match="after the fit, which is complete"):
        model = regressor(epochs=2).fit(x, y)
    assert not hasattr(model, "fit_report_")
    np.testing.assert_array_equal(model.predict(x), uninterrupted.predict(x))


def test_ctrl_c_before_the_first_epoch_keeps_an_earlier_fit(monkeypatch):
    x, y = regression_rows()
    model, fresh = regressor().fit(x, y), regressor()
    state_before = fitted_state(model)
    interrupt_after(monkeypatch, steps=1)
    for method in (model.fit, model.partial_fit, fresh.fit):
        with pytest.warns(UserWarning, match="after 0 of"):
            method(x, y)
    assert fitted_state(model) == state_before
    assert np.isfinite(fresh.predict(x)).all()  # the start: all there is


def test_the_classifier_has_the_settings_of_all_learners_and_class_weight():
    ours, theirs = classifier().get_params(deep=False), regressor().get_params(deep=False)
    assert {*ours, "target"} == {*theirs, "class_weight"}
    arguments = {name: object() for name in ours}
    assert BayesianMLPClassifier(**arguments).get_params(deep=False) == arguments
    with pytest.raises(TypeError, match="positional"):
        BayesianMLPRegressor((5,), "tanh")

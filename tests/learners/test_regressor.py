"""The regressor: scikit-learn's habits, undone standardisation, and nothing lost on failure."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import bbb_numpy
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.objectives import EUBO, MAP, MLE, FreeEnergy
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import EarlyStopping, NonFiniteError
from bbb_numpy.training.optimizers import SGD, Adam, Momentum, StepDecay

pytestmark = pytest.mark.brief


def data(rows=40, inputs=3, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, inputs))
    shape = (rows,) if outputs is None else (rows, outputs)
    f = x[:, 0] - 0.5 * x[:, -1] ** 2
    return x, np.reshape(f if outputs is None else np.outer(f, 1.0 + np.arange(outputs)), shape)


def learner(**params):
    settings = {"hidden_layer_sizes": (5,), "epochs": 3, "predict_samples": 20, "random_state": 0}
    settings["kl_warm_up"] = "none"  # of 3 epochs, there is no time for one
    return BayesianMLPRegressor(**settings | params)


def state(model):
    """Everything that predictions and further training depend on, as comparable numbers."""
    t = model.training_
    memory = t.optimizer_state
    return (
        t.theta.tobytes(),
        {name: array.tobytes() for name, array in memory.arrays.items()},
        memory.steps,
        [tuple(map(str, epoch)) for epoch in t.history],
        str(model.rng_.bit_generator.state),
        model.x_mean_.tobytes(),
        model.y_scale_.tobytes(),
    )


# scikit-learn's habits


# Copies of a row are drawn in another order than weights and so with other noise. Where neither
# enters, this check passes: test_weights.py
OTHER_NOISE = {"check_sample_weight_equivalence_on_dense_data": "other order and noise of rows"}


@parametrize_with_checks(
    [BayesianMLPRegressor(epochs=150)],  # a habit needs no thousand epochs
    expected_failed_checks=lambda estimator: OTHER_NOISE,
)
def test_every_conformance_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_clones_and_pickles_give_the_same_numbers():
    x, y = data()
    model = learner(prior=GaussianPrior(0.3), optimizer=SGD(1e-3)).fit(x, y)
    assert state(clone(model).fit(x, y)) == state(model)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(x), model.predict(x))
    assert state(twin.partial_fit(x, y)) == state(model.partial_fit(x, y))


def test_data_frames_carry_their_names():
    pandas = pytest.importorskip("pandas")
    x, y = data()
    frame = pandas.DataFrame(x, columns=["a", "b", "c"])
    model = learner().fit(frame, pandas.Series(y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame), learner().fit(x, y).predict(x))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(frame[["c", "b", "a"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.partial_fit(frame.rename(columns={"a": "z"}), y)
    assert not hasattr(model.fit(x, y), "feature_names_in_")


# What is predicted


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("outputs", [None, 1, 2])
def test_results_have_the_axes_of_y(outputs, dtype):
    x, y = data(outputs=outputs)
    model = learner(dtype=dtype).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == y.shape
    assert mean.dtype == std.dtype == np.float64
    assert model.theta_.dtype == dtype
    assert all(part.shape == y.shape for part in model.predict_distribution(x))
    assert model.sample_y(x, 4).shape == model.sample_functions(x, 4).shape == (*y.shape, 4)
    assert model.log_predictive_density(x, y).shape == (40,)
    assert model.noise_scale_.shape == (outputs or 1,)


def test_total_variance_is_epistemic_plus_aleatoric():
    x, y = data()
    model = learner().fit(x, y)
    mean, std = model.predict(x, return_std=True)
    d = model.predict_distribution(x)
    np.testing.assert_array_equal(mean, d.mean)
    np.testing.assert_allclose(std**2, d.epistemic**2 + d.aleatoric**2, rtol=1e-12)
    np.testing.assert_allclose(d.aleatoric, model.noise_scale_[0], rtol=1e-12)


def test_predictions_repeat_and_rows_do_not_know_each_other():
    x, y = data()
    model = learner().fit(x, y)
    mean, std = model.predict(x, return_std=True)
    np.testing.assert_array_equal(model.predict(x), mean)
    order = np.random.default_rng(1).permutation(40)
    for rows in (order, order[:7], order[:1]):
        alone = model.predict(x[rows], return_std=True)
        np.testing.assert_allclose(alone[0], mean[rows], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(alone[1], std[rows], rtol=1e-12)


def test_predict_averages_the_functions_that_sample_functions_returns():
    x, y = data()
    model = learner().fit(x, y)
    f = model.sample_functions(x, 20)  # (N, S)
    d = model.predict_distribution(x)
    np.testing.assert_allclose(f.mean(axis=1), d.mean, rtol=1e-12)
    np.testing.assert_allclose(f.std(axis=1, ddof=1), d.epistemic, rtol=1e-10)


def test_samples_follow_their_random_state():
    x, y = data()
    model = learner().fit(x, y)
    np.testing.assert_array_equal(model.sample_y(x), model.sample_y(x))
    np.testing.assert_array_equal(model.sample_y(x, 2, 5), model.sample_y(x, 2, 5))
    assert (model.sample_y(x, 2, 5) != model.sample_y(x, 2, 6)).all()
    rng = np.random.default_rng(0)
    assert (model.sample_y(x, 2, rng) != model.sample_y(x, 2, rng)).all()
    with pytest.raises((TypeError, ValueError), match="n_samples must be a whole number"):
        model.sample_functions(x, 0)


def test_log_predictive_density_is_that_of_y_in_its_own_units():
    x, y = data(outputs=2)
    y *= [10.0, 0.1]
    model = learner(predict_samples=1).fit(x, y)  # one sample: a plain Gaussian
    d = model.predict_distribution(x)
    z = (y - d.mean) / model.noise_scale_
    expected = -0.5 * z**2 - np.log(model.noise_scale_) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(model.log_predictive_density(x, y), expected.sum(axis=1), rtol=1e-9)


def test_real_structure_is_found_at_the_defaults():
    x, y = data(rows=200)
    model = bbb_numpy.BayesianMLPRegressor(random_state=0).fit(x, 100 * y)
    assert model.score(*data(rows=200, seed=1)) < 0  # other units: the check can fail
    x_new, y_new = data(rows=200, seed=1)
    assert model.score(x_new, 100 * y_new) > 0.95


# Standardisation is undone


@settings(max_examples=20, deadline=None)
@given(st.integers(-30, 30), st.integers(-30, 30))
def test_powers_of_two_change_no_bit(in_x, in_y):
    x, y = data()
    plain = learner().fit(x, y)
    other = learner().fit(x * 2.0**in_x, y * 2.0**in_y)
    np.testing.assert_array_equal(other.theta_, plain.theta_)
    np.testing.assert_array_equal(other.predict(x * 2.0**in_x), plain.predict(x) * 2.0**in_y)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -1e6, 1e200, 1e-300])
def test_constant_columns_are_centred_and_not_blown_up(value):
    x, y = data()
    x[:, 1] = value
    model = learner().fit(x, y)
    assert (model.x_mean_[1], model.x_scale_[1]) == (value, 1.0)
    np.testing.assert_array_equal(model.predict(x), model.predict(x))
    constant = learner(epochs=50).fit(x, np.full(40, value))
    assert constant.y_scale_ == [1.0]
    mean, std = constant.predict(x, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_rows_beyond_the_dtype_are_refused():
    x, y = data()
    model = learner(dtype="float32").fit(x, y)
    x[3, 1] = 1e60
    with pytest.raises(ValueError, match="X is too large at row 3, column 1 for float32"):
        model.predict(x)
    with pytest.raises(ValueError, match="X is too large"):
        learner(dtype="float32", standardize=False).fit(x, y)


# Training and going on


def test_the_same_seed_gives_the_same_bits():
    x, y = data()
    assert state(learner().fit(x, y)) == state(learner().fit(x, y))
    assert state(learner().fit(x, y)) != state(learner(random_state=1).fit(x, y))
    assert state(learner(random_state=None).fit(x, y)) != state(
        learner(random_state=None).fit(x, y)
    )
    rng = np.random.default_rng(0)
    model = learner(random_state=rng)
    assert state(model.fit(x, y)) != state(model.fit(x, y))


def test_memory_layout_and_number_type_change_no_bit():
    x, y = data(outputs=2)
    for layout in (np.asfortranarray, np.ndarray.tolist, lambda a: np.repeat(a, 2, axis=0)[::2]):
        assert state(learner().fit(layout(x), layout(y))) == state(learner().fit(x, y))
    x, y = np.round(4 * x), np.round(4 * y)
    assert state(learner().fit(x.astype(np.int16), y.astype(np.int16))) == state(
        learner().fit(x, y)
    )


@pytest.mark.parametrize("optimizer", [SGD(1e-3), Momentum(1e-3), Adam(1e-2)])
def test_partial_fits_in_a_row_are_one_fit(optimizer):
    x, y = data()
    whole = learner(epochs=4, optimizer=optimizer).fit(x, y)
    parts = learner(optimizer=optimizer)
    parts.partial_fit(x, y).partial_fit(x, y, epochs=2).partial_fit(x, y)
    assert state(parts) == state(whole)
    assert parts.n_iter_ == len(parts.history_) == 4


def test_partial_fit_goes_on_from_fit_and_keeps_the_scalers():
    x, y = data()
    model = learner().fit(x, y)
    steps, mean = model.training_.optimizer_state.steps, model.x_mean_.copy()
    model.partial_fit(10 + x, y)
    assert model.training_.optimizer_state.steps == steps + 2  # 40 rows, batches of 32
    np.testing.assert_array_equal(model.x_mean_, mean)
    assert model.n_iter_ == 4


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"hidden_layer_sizes": (6,)}, "hidden_layer_sizes"),
        ({"activation": "tanh"}, "activation"),
        ({"prior": GaussianPrior(9.0)}, "prior"),
        ({"likelihood": GaussianLikelihood(9.0)}, "likelihood"),
        ({"dtype": "float32"}, "dtype"),
        ({"optimizer": SGD()}, "optimizer"),
    ],
)
def test_partial_fit_refuses_another_model(changed, name):
    x, y = data()
    model = learner().fit(x, y)
    before = state(model)
    with pytest.raises(ValueError, match=name):
        model.set_params(**changed).partial_fit(x, y)
    assert state(model) == before
    assert model.fit(x, y).predict(x).shape == (40,)


def test_validation_rows_are_held_out_and_stop_training():
    x, y = data()
    model = learner(epochs=500, early_stopping=EarlyStopping(3), validation_fraction=0.25)
    model.fit(x, y)
    assert model.training_.stopped == "early stopping"
    assert model.n_iter_ < 500
    assert np.isfinite([epoch.validation for epoch in model.history_]).all()
    assert np.isnan(learner().fit(x, y).history_[0].validation)
    with pytest.raises(ValueError, match=r"validation_fraction 0\.9 of 1 rows leaves none"):
        learner(validation_fraction=0.9).fit(x[:1], y[:1])


def test_one_row_one_column_and_no_hidden_layer():
    x, y = data(rows=1, inputs=1)
    assert np.isfinite(learner().fit(x, y).predict(x)).all()
    x, y = data(inputs=1)
    linear = learner(hidden_layer_sizes=()).fit(x, y)
    assert linear.estimator_.model.network.sizes == (1, 1)
    assert learner(hidden_layer_sizes=[4, 3]).fit(x, y).theta_.shape == (2 * (8 + 15 + 4) + 1,)


# Parts of the model


def test_the_estimator_follows_the_other_parts_unless_it_is_given():
    x, y = data()
    assert type(learner().fit(x, y).estimator_) is Reparameterised
    eubo = learner(objective="eubo", samples=10, batch_size=40).fit(x, y)
    assert type(eubo.estimator_) is SelfNormalised
    assert isinstance(eubo.estimator_.objective, EUBO)
    assert learner(gradient_estimator="antithetic", samples=2).fit(x, y).estimator_.antithetic


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "mle"}, "use inference='map' or 'mle'"),
        ({"inference": "map", "gradient_estimator": "flipout"}, "needs a posterior with a density"),
        ({"inference": "map", "prior": "gaussian-learned"}, "cannot learn the numbers"),
        (
            {"gradient_estimator": "flipout", "prior": "laplace"},
            "no.* for a Gaussian q and LaplacePrior",
        ),
        ({"gradient_estimator": "flipout", "inference": "full-rank"}, "Flipout"),
        ({"gradient_estimator": "self-normalised"}, "EUBO"),
        (
            {"gradient_estimator": "reparameterised", "objective": "eubo", "samples": 9},
            "SelfNormalised",
        ),
        ({"gradient_estimator": "antithetic"}, "samples must be even"),
        ({"objective": "iwae", "kl_warm_up": "linear"}, "without a warm-up"),
        ({"objective": "iwae", "kl_weights": "geometric"}, "proportional_kl_weights"),
        ({"objective": "eubo"}, "samples must be at least 2 for the EUBO"),
        (
            {"inference": "full-rank", "hidden_layer_sizes": (10_000,)},
            r"50,001 weights has a factor of 1,250,075,001 numbers; .* GiB, the limit is 4 GiB",
        ),
    ],
)
def test_parts_that_do_not_go_together_are_refused_at_fit(params, message):
    x, y = data()
    with pytest.raises(ValueError, match=message):
        learner(**params).fit(x, y)
    model = learner().fit(x, y)
    before = state(model)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(x, y)
    assert state(model) == before


@pytest.mark.parametrize(("inference", "objective"), [("map", MAP()), ("mle", MLE())])
def test_a_point_estimate_has_no_epistemic_uncertainty(inference, objective):
    x, y = data()
    model = learner(inference=inference, epochs=200).fit(x, y)
    assert model.estimator_.objective == objective
    d = model.predict_distribution(x)
    assert (d.epistemic == 0).all()
    assert model.score(x, y) > 0.5


def test_fit_warms_up_and_partial_fit_does_not():
    x, y = data()
    assert state(learner(kl_warm_up=None).fit(x, y)) == state(
        learner(kl_warm_up="linear").fit(x, y)
    )
    assert state(learner(kl_warm_up=None).fit(x, y)) != state(learner(kl_warm_up="none").fit(x, y))
    parts = [learner(kl_warm_up=w).partial_fit(x, y, epochs=3) for w in (None, "none", "linear")]
    assert state(parts[0]) == state(parts[1]) != state(parts[2])
    iwae = learner(objective="iwae", kl_warm_up=None).fit(x, y)  # has no KL term to warm up
    assert state(iwae) == state(learner(objective="iwae", kl_warm_up="none").fit(x, y))


def test_estimator_and_objective_may_change_between_partial_fits():
    x, y = data()
    model = learner().fit(x, y)
    model.set_params(gradient_estimator="flipout", objective=FreeEnergy(0.5)).partial_fit(x, y)
    assert type(model.estimator_).__name__ == "Flipout"
    assert model.n_iter_ == 4
    with pytest.raises(ValueError, match="inference changed"):
        model.set_params(gradient_estimator=None, inference="full-rank").partial_fit(x, y)


@pytest.mark.equation("D12")
def test_noise_that_depends_on_x_is_found():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 1))
    true = 10.0 * np.where(x[:, 0] < 0, 0.2, 1.0)
    y = 50.0 + 20.0 * x[:, 0] + true * rng.standard_normal(400)
    model = BayesianMLPRegressor(likelihood="heteroscedastic", epochs=300, random_state=0)
    d = model.fit(x, y).predict_distribution([[-0.5], [0.5]])
    np.testing.assert_allclose(d.aleatoric, [2.0, 10.0], rtol=0.25)  # 4 standard errors: 0.2
    with pytest.raises(AttributeError, match=r"Heteroscedastic.* depends on X"):
        _ = model.noise_scale_
    assert not hasattr(model, "noise_scale_")


@pytest.mark.equation("D15")
def test_counts_are_modelled_by_their_rate_and_not_standardised():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 1))
    y = rng.poisson(np.exp(1.0 + x[:, 0]))
    model = BayesianMLPRegressor(likelihood="poisson", epochs=200, random_state=0).fit(x, y)
    assert (model.y_mean_, model.y_scale_) == ([0.0], [1.0])
    assert model.x_scale_[0] != 1.0
    d = model.predict_distribution([[-0.8], [0.0], [0.8]])
    np.testing.assert_allclose(d.mean, np.exp([0.2, 1.0, 1.8]), rtol=0.15)
    np.testing.assert_allclose(d.aleatoric**2, d.mean, rtol=1e-6)  # a Poisson's variance
    drawn = model.sample_y(x, 50)
    assert (drawn == np.floor(drawn)).all()
    assert model.log_predictive_density(x, y).mean() > -2.1  # entropy of the truth: 1.96


def test_columns_of_zeros_and_ones():
    x, _ = data()
    x += 0.5 * np.sign(x)  # a gap around 0: no label is in doubt
    both = x[:, :2] > 0
    model = learner(likelihood="bernoulli", epochs=300).fit(x, both)
    p = model.predict(x)
    assert ((p > 0) & (p < 1)).all()
    assert ((p > 0.5) == both).mean() > 0.9
    with pytest.raises(ValueError, match="must be 0 or 1; got 2"):
        learner(likelihood="bernoulli").fit(x, 2 * both)


def test_a_learned_prior_that_collapses_is_reported():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    options = {"optimizer": Adam(0.1), "gradient_estimator": "local-reparameterisation"}
    model = learner(prior=GaussianPrior(0.5, learn=True), epochs=400, **options)
    with pytest.warns(UserWarning, match=r"learned prior has collapsed: .*from 0\.5 to 0\.0"):
        model.fit(x, y)
    assert model.predict(x).std() < 0.02 * y.std()
    x, y = data(rows=200)  # with something to learn it stays, and nothing is said
    kept = learner(prior="gaussian-learned", epochs=300).fit(x, y)
    assert kept.theta_[kept.estimator_.layout.slices["prior_log_scale"]] > np.log(0.05)


# Numbers far beyond those of fit


def test_rows_for_which_the_network_overflows_are_named():
    x, y = data()
    x_far = np.where(np.arange(40) == 7, 1e300, 1.0)[:, None] * x
    model = learner(hidden_layer_sizes=(50,)).fit(x, 1e150 * y)  # of five units all may be off
    for method, arguments in (
        ("predict", ()),
        ("predict_distribution", ()),
        ("sample_functions", (3,)),
        ("sample_y", (3,)),
        ("log_predictive_density", (1e150 * y,)),
        ("score", (1e150 * y,)),
    ):
        with pytest.raises(ValueError, match="overflows float64 at row 7: X there is as far as"):
            getattr(model, method)(x_far, *arguments)


# Bad input, and nothing lost


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.full((40, 3), np.nan), np.zeros(40), "X contains NaN"),
        (np.zeros((40, 3)), np.full(40, -np.inf), "y contains infinity"),
        (np.zeros(40), np.zeros(40), "Reshape your data"),
        (np.zeros((40, 0)), np.zeros(40), "Found array with 0 feature"),
        (np.zeros((40, 3)), np.zeros(39), "inconsistent numbers of samples"),
        (np.zeros((40, 3)), ["a"] * 40, "y must hold numbers"),
        (np.zeros((40, 3)), None, "requires y"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "log_predictive_density"])
def test_bad_data_are_named_and_change_nothing(method, x, y, message):
    model = learner().fit(*data())
    before = state(model)
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(model, method)(x, y)
    if method != "fit":
        with pytest.raises(ValueError, match="y has 2 outputs, the model was fitted with 1"):
            getattr(model, method)(*data(outputs=2))
    assert state(model) == before


EXPLODES_IN_EPOCH_2 = SGD(1e-4, schedule=StepDecay(every=2, factor=1e80))


def test_divergence_keeps_the_last_finite_epoch():
    x, y = data()
    model = learner(epochs=5, batch_size=4, optimizer=EXPLODES_IN_EPOCH_2)
    with pytest.raises(NonFiniteError, match="in epoch 2"):
        model.fit(x, y)
    assert model.n_iter_ == 2
    good = learner(epochs=2, batch_size=4, optimizer=EXPLODES_IN_EPOCH_2).fit(x, y)
    np.testing.assert_array_equal(model.theta_, good.theta_)
    np.testing.assert_array_equal(model.predict(x), good.predict(x))
    model.set_params(optimizer=SGD(1e-4)).partial_fit(x, y)
    assert np.isfinite(model.predict(x)).all()


def test_divergence_in_the_first_epoch_keeps_an_earlier_fit():
    x, y = data()
    model = learner().fit(x, y)
    before, predicted = state(model), model.predict(x)
    model.set_params(optimizer=SGD(1e80), batch_size=4)
    with pytest.raises(NonFiniteError, match="in epoch 0"):
        model.fit(x, y)
    assert state(model) == before
    np.testing.assert_array_equal(model.predict(x), predicted)


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
    x, y = data()
    constant = Adam(1e-2)
    two = learner(epochs=2, optimizer=constant).fit(x, y)
    interrupt_after(monkeypatch, steps=5)  # two steps per epoch
    model = learner(epochs=9, optimizer=constant)
    with pytest.warns(UserWarning, match="interrupted by user after 2 of 9 epochs"):
        model.fit(x, y)
    assert model.training_.stopped == "interrupted"
    np.testing.assert_array_equal(model.theta_, two.theta_)
    np.testing.assert_array_equal(model.predict(x), two.predict(x))


def test_ctrl_c_before_the_first_epoch_keeps_an_earlier_fit(monkeypatch):
    x, y = data()
    model, fresh = learner().fit(x, y), learner()
    before = state(model)
    interrupt_after(monkeypatch, steps=1)
    for method in (model.fit, model.partial_fit, fresh.fit):
        with pytest.warns(UserWarning, match="after 0 of"):
            method(x, y)
    assert state(model) == before
    assert np.isfinite(fresh.predict(x)).all()  # the start: all there is

"""The regressor: what it predicts, undone standardisation, and the parts of its model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small_learners import fitted_state, regression_rows, regressor

from bbb_numpy import (
    MAP,
    MLE,
    NUTS,
    SGD,
    Adam,
    BayesianMLPRegressor,
    EarlyStopping,
    FreeEnergy,
    GaussianLikelihood,
    GaussianPrior,
    Sampling,
    StudentTLikelihood,
    StudentTPrior,
)

pytestmark = pytest.mark.brief


# What is predicted


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("outputs", [None, 1, 2])
def test_results_have_the_axes_of_y(outputs, dtype):
    x, y = regression_rows(outputs=outputs)
    model = regressor(dtype=dtype).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == y.shape
    assert mean.dtype == std.dtype == np.float64
    assert model.theta_.dtype == dtype
    d = model.predict_distribution(x)
    assert all(part.shape == y.shape for part in d)
    np.testing.assert_array_equal(mean, d.mean)
    np.testing.assert_allclose(std**2, d.epistemic**2 + d.aleatoric**2, rtol=1e-12)
    noise = np.broadcast_to(d.aleatoric.reshape(40, -1), (40, outputs or 1))
    np.testing.assert_allclose(noise, [model.noise_scale_] * 40, rtol=1e-6)
    f = model.sample_functions(x, 20)  # those that predict averages
    np.testing.assert_allclose(f.mean(axis=-1), d.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(f.std(axis=-1, ddof=1), d.epistemic, rtol=1e-4)
    assert model.sample_y(x, 4).shape == model.sample_functions(x, 4).shape == (*y.shape, 4)
    assert model.log_predictive_density(x, y).shape == (40,)
    assert model.noise_scale_.shape == (outputs or 1,)


def test_predictions_repeat_and_rows_do_not_know_each_other():
    x, y = regression_rows()
    model = regressor().fit(x, y)
    mean, std = model.predict(x, return_std=True)
    np.testing.assert_array_equal(model.predict(x), mean)
    order = np.random.default_rng(1).permutation(40)
    for rows in (order, order[:7], order[:1]):
        alone = model.predict(x[rows], return_std=True)
        np.testing.assert_allclose(alone[0], mean[rows], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(alone[1], std[rows], rtol=1e-12)


def test_samples_follow_their_random_state():
    x, y = regression_rows()
    model = regressor().fit(x, y)
    np.testing.assert_array_equal(model.sample_y(x), model.sample_y(x))
    np.testing.assert_array_equal(model.sample_y(x, 2, 5), model.sample_y(x, 2, 5))
    assert (model.sample_y(x, 2, 5) != model.sample_y(x, 2, 6)).all()
    rng = np.random.default_rng(0)
    assert (model.sample_y(x, 2, rng) != model.sample_y(x, 2, rng)).all()
    with pytest.raises((TypeError, ValueError), match="n_samples must be a whole number"):
        model.sample_functions(x, 0)


def test_log_predictive_density_is_that_of_y_in_its_own_units():
    x, y = regression_rows(outputs=2)
    y *= [10.0, 0.1]
    model = regressor(predict_samples=1).fit(x, y)  # one sample: a plain Gaussian
    d = model.predict_distribution(x)
    z = (y - d.mean) / model.noise_scale_
    expected = -0.5 * z**2 - np.log(model.noise_scale_) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(model.log_predictive_density(x, y), expected.sum(axis=1), rtol=1e-9)


@pytest.mark.slow
def test_real_structure_is_found_at_the_defaults():
    x, y = regression_rows(rows=96)
    model = BayesianMLPRegressor(random_state=0).fit(x, 100 * y)
    assert model.score(*regression_rows(rows=200, seed=1)) < 0  # other units: the check can fail
    x_new, y_new = regression_rows(rows=200, seed=1)
    assert model.score(x_new, 100 * y_new) > 0.95


# Standardisation is undone


@settings(max_examples=8, deadline=None)
@given(st.integers(-30, 30), st.integers(-30, 30))
def test_powers_of_two_change_no_bit(in_x, in_y):
    x, y = regression_rows()
    plain = regressor().fit(x, y)
    rescaled = regressor().fit(x * 2.0**in_x, y * 2.0**in_y)
    np.testing.assert_array_equal(rescaled.theta_, plain.theta_)
    np.testing.assert_array_equal(rescaled.predict(x * 2.0**in_x), plain.predict(x) * 2.0**in_y)


@pytest.mark.parametrize("value", [0.0, 1 / 3, 1e200, 1e-300])
def test_constant_columns_are_centred_and_not_blown_up(value):
    x, y = regression_rows()
    x[:, 1] = value
    model = regressor().fit(x, y)
    assert (model.x_mean_[1], model.x_scale_[1]) == (value, 1.0)
    np.testing.assert_array_equal(model.predict(x), model.predict(x))
    constant = regressor(epochs=50).fit(x, np.full(40, value))
    assert constant.y_scale_ == [1.0]
    mean, std = constant.predict(x, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_rows_beyond_the_dtype_are_refused():
    x, y = regression_rows()
    model = regressor(dtype="float32").fit(x, y)
    x[3, 1] = 1e60
    with pytest.raises(ValueError, match="X is too large at row 3, column 1 for float32"):
        model.predict(x)
    with pytest.raises(ValueError, match="X is too large"):
        regressor(dtype="float32", standardize=False).fit(x, y)


# Training and going on


def test_memory_layout_and_number_type_change_no_bit():
    x, y = regression_rows(outputs=2)
    for layout in (np.asfortranarray, np.ndarray.tolist, lambda a: np.repeat(a, 2, axis=0)[::2]):
        assert fitted_state(regressor().fit(layout(x), layout(y))) == fitted_state(
            regressor().fit(x, y)
        )
    x, y = np.round(4 * x), np.round(4 * y)
    assert fitted_state(regressor().fit(x.astype(np.int16), y.astype(np.int16))) == fitted_state(
        regressor().fit(x, y)
    )


def test_partial_fit_goes_on_from_fit_and_keeps_the_scalers():
    x, y = regression_rows()
    model = regressor().fit(x, y)
    steps, mean = model.training_.optimizer_state.steps, model.x_mean_.copy()
    model.partial_fit(10 + x, y)
    assert model.training_.optimizer_state.steps == steps + 2  # 40 rows, batches of 32
    np.testing.assert_array_equal(model.x_mean_, mean)
    assert model.n_iter_ == 4


def test_partial_fit_refuses_another_model():
    x, y = regression_rows()
    for name, value in {
        "hidden_layer_sizes": (6,),
        "activation": "tanh",
        "prior": GaussianPrior(9.0),
        "likelihood": GaussianLikelihood(9.0),
        "inference": "full-rank",
        "dtype": "float32",
        "optimizer": SGD(),
    }.items():
        model = regressor().fit(x, y)
        state_before = fitted_state(model)
        with pytest.raises(ValueError, match=f"changed since .*{name}.* back"):
            model.set_params(**{name: value}).partial_fit(x, y)
        assert fitted_state(model) == state_before
        assert model.fit(x, y).predict(x).shape == (40,)


def test_validation_rows_are_held_out_and_stop_training():
    x, y = regression_rows()
    model = regressor(epochs=500, early_stopping=EarlyStopping(3), validation_fraction=0.25)
    model.fit(x, y)
    assert model.training_.stopped == "early stopping"
    assert model.n_iter_ < 500
    assert np.isfinite([epoch.validation for epoch in model.history_]).all()
    assert np.isnan(regressor().fit(x, y).history_[0].validation)
    with pytest.raises(ValueError, match=r"validation_fraction 0\.9 of 1 rows leaves none"):
        regressor(validation_fraction=0.9).fit(x[:1], y[:1])


def test_one_row_one_column_and_no_hidden_layer():
    x, y = regression_rows(rows=1, inputs=1)
    assert np.isfinite(regressor().fit(x, y).predict(x)).all()
    x, y = regression_rows(inputs=1)
    linear = regressor(hidden_layer_sizes=()).fit(x, y)
    assert linear.estimator_.model.network.sizes == (1, 1)
    assert regressor(hidden_layer_sizes=[4, 3]).fit(x, y).theta_.shape == (2 * (8 + 15 + 4) + 1,)


# Parts of the model


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inference": "map", "gradient_estimator": "flipout"}, "needs a posterior with a density"),
        ({"inference": "map", "prior": "gaussian-learned"}, "cannot learn the numbers"),
        ({"gradient_estimator": "flipout", "inference": "full-rank"}, "Flipout"),
        ({"gradient_estimator": "antithetic"}, "samples must be even"),
        ({"objective": "iwae", "kl_warm_up": "linear"}, "without a warm-up"),
        ({"objective": "eubo"}, "samples must be at least 2 for the EUBO"),
        (
            {"inference": "full-rank", "hidden_layer_sizes": (10_000,)},
            r"50,001 weights has a factor of 1,250,075,001 numbers; .* GiB, the limit is 4 GiB",
        ),
    ],
)
def test_parts_that_do_not_go_together_are_refused_at_fit_and_change_nothing(params, message):
    x, y = regression_rows()
    model = regressor().fit(x, y)
    state_before = fitted_state(model)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(x, y)
    assert fitted_state(model) == state_before


@pytest.mark.parametrize(("inference", "objective"), [("map", MAP()), ("mle", MLE())])
def test_a_point_estimate_has_no_epistemic_uncertainty(inference, objective):
    x, y = regression_rows()
    model = regressor(inference=inference, epochs=200).fit(x, y)
    assert model.estimator_.objective == objective
    d = model.predict_distribution(x)
    assert (d.epistemic == 0).all()
    assert model.score(x, y) > 0.5


def test_fit_warms_up_and_partial_fit_does_not():
    x, y = regression_rows()
    assert fitted_state(regressor(kl_warm_up=None).fit(x, y)) == fitted_state(
        regressor(kl_warm_up="linear").fit(x, y)
    )
    assert fitted_state(regressor(kl_warm_up=None).fit(x, y)) != fitted_state(
        regressor(kl_warm_up="none").fit(x, y)
    )
    parts = [regressor(kl_warm_up=w).partial_fit(x, y, epochs=3) for w in (None, "none", "linear")]
    assert fitted_state(parts[0]) == fitted_state(parts[1]) != fitted_state(parts[2])


def test_estimator_and_objective_may_change_between_partial_fits():
    x, y = regression_rows()
    model = regressor().fit(x, y)
    model.set_params(gradient_estimator="flipout", objective=FreeEnergy(0.5)).partial_fit(x, y)
    assert type(model.estimator_).__name__ == "Flipout"
    assert model.n_iter_ == 4


@pytest.mark.equation("D12")
def test_noise_that_depends_on_x_is_found():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 1))
    true = 10.0 * np.where(x[:, 0] < 0, 0.2, 1.0)
    y = 50.0 + 20.0 * x[:, 0] + true * rng.standard_normal(400)
    model = BayesianMLPRegressor(likelihood="heteroscedastic", epochs=150, random_state=0)
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
    model = BayesianMLPRegressor(likelihood="poisson", epochs=100, random_state=0).fit(x, y)
    assert (model.y_mean_, model.y_scale_) == ([0.0], [1.0])
    assert model.x_scale_[0] != 1.0
    d = model.predict_distribution([[-0.8], [0.0], [0.8]])
    np.testing.assert_allclose(d.mean, np.exp([0.2, 1.0, 1.8]), rtol=0.15)
    np.testing.assert_allclose(d.aleatoric**2, d.mean, rtol=1e-6)  # a Poisson's variance
    drawn = model.sample_y(x, 50)
    assert (drawn == np.floor(drawn)).all()
    assert model.log_predictive_density(x, y).mean() > -2.1  # entropy of the truth: 1.96


def test_columns_of_zeros_and_ones():
    x, _ = regression_rows()
    x += 0.5 * np.sign(x)  # a gap around 0: no label is in doubt
    y = x[:, :2] > 0
    model = regressor(likelihood="bernoulli", epochs=300).fit(x, y)
    p = model.predict(x)
    assert ((p > 0) & (p < 1)).all()
    assert ((p > 0.5) == y).mean() > 0.9
    with pytest.raises(ValueError, match="must be 0 or 1; got 2"):
        regressor(likelihood="bernoulli").fit(x, 2 * y)


def test_a_learned_prior_that_collapses_is_reported():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    options = {"optimizer": Adam(0.1), "gradient_estimator": "local-reparameterisation"}
    model = regressor(prior=GaussianPrior(0.5, learn=True), epochs=400, **options)
    with pytest.warns(UserWarning, match=r"learned prior has collapsed: .*from 0\.5 to 0\.0"):
        model.fit(x, y)
    assert model.predict(x).std() < 0.02 * y.std()
    x, y = regression_rows(rows=200)  # with something to learn it stays, and nothing is said
    not_collapsed = regressor(prior="gaussian-learned", epochs=100).fit(x, y)
    assert not_collapsed.theta_[not_collapsed.estimator_.layout.slices["prior_log_scale"]] > np.log(
        0.05
    )


# Student's t: it is for outliers, and says what deviations it has


def spoiled(seed, rows=120):
    """A sine of which every tenth target is off by thirty to eighty deviations of the noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (rows, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(rows)
    wrong = rng.choice(rows, rows // 10, replace=False)
    y[wrong] += rng.choice([-1, 1], len(wrong)) * rng.uniform(3, 8, len(wrong))
    return x, y


GRID = np.linspace(-1.9, 1.9, 200)[:, None]


def miss(likelihood, seed):
    """RMSE on clean rows of a fit to spoiled ones."""
    model = BayesianMLPRegressor(
        (10,), activation="tanh", likelihood=likelihood, epochs=200, random_state=100 + seed
    ).fit(*spoiled(seed))
    return np.sqrt(np.mean((model.predict(GRID) - np.sin(2 * GRID[:, 0])) ** 2))


@pytest.mark.equation("D43")
@pytest.mark.parametrize("seed", [1, 2])
def test_outliers_move_the_fit_much_less_than_under_gaussian_noise(seed):
    gaussian = miss("gaussian-learned", seed)
    for likelihood in ("student-t", "student-t-learned"):
        assert miss(likelihood, seed) < gaussian - 0.2, likelihood  # the sine's own RMS is 0.7


def quick(**options):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((30, 2)), 50 + 20 * rng.standard_normal(30)
    settings = {"epochs": 3, "predict_samples": 5, "random_state": 0} | options
    return BayesianMLPRegressor((3,), **settings).fit(x, y), x, y


@pytest.mark.equation("D4", "D43")
def test_targets_are_standardised_and_the_scale_is_in_units_of_y_and_not_the_deviation():
    model, x, y = quick(likelihood=StudentTLikelihood(0.3, df=4.0))
    assert model.y_scale_[0] == pytest.approx(y.std())
    assert model.noise_scale_ == pytest.approx([0.3 * y.std()])
    distribution = model.predict_distribution(x)
    np.testing.assert_allclose(distribution.aleatoric, 2**0.5 * 0.3 * y.std(), rtol=1e-12)
    np.testing.assert_allclose(
        distribution.total, np.hypot(distribution.epistemic, distribution.aleatoric)
    )
    functions = model.sample_functions(x, 5)
    np.testing.assert_allclose(distribution.mean, functions.mean(axis=1), rtol=1e-12)
    density = stats.t.logpdf(y[:, None], 4.0, functions, 0.3 * y.std())
    expected = np.log(np.exp(density).mean(axis=1))
    np.testing.assert_allclose(model.log_predictive_density(x, y), expected, rtol=1e-10)


@pytest.mark.equation("D33", "D42", "D43")
@pytest.mark.filterwarnings("ignore:[0-9]+ divergent transitions")
def test_samplers_draw_scale_and_degrees_of_freedom_with_the_weights():
    sampling = Sampling(NUTS(max_depth=3), chains=2, draws=8, warm_up=12, start="prior")
    prior = StudentTPrior(0.4, 3.0, learn=True)
    noise = StudentTLikelihood(0.2, 3.0, learn=True)
    parts = {"prior": prior, "likelihood": noise, "inference": sampling}
    model, *_ = quick(activation="tanh", epochs=None, **parts)
    params = model.draws_.target.params(model.theta_)
    assert set(params) == {"prior_log_scale", "prior_log_df", "log_noise", "log_df"}
    assert all(np.ptp(block) > 0 for block in params.values())
    scale = np.exp(params["log_noise"]).mean() * model.y_scale_
    np.testing.assert_allclose(model.noise_scale_, scale, rtol=1e-12)

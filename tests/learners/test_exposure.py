"""exposure: rates of counts, an offset of the log link in everything that takes rows."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from bbb_numpy import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    Flipout,
    GaussianPrior,
    LocalReparameterisation,
    Reparameterised,
    Sampling,
    check,
    load,
    save,
)

pytestmark = pytest.mark.brief

ROWS = 60
SLOPES = np.array([0.5, -0.3, 0.1])  # of two inputs, and the constant


def data(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 2))
    exposure = rng.uniform(0.2, 50.0, rows)
    return x, rng.poisson(exposure * np.exp(x @ SLOPES[:2] + SLOPES[2])).astype(float), exposure


def learner(hidden=(), **params):
    settings = {"likelihood": "poisson", "random_state": 0, "progress": False, "epochs": 60}
    if isinstance(params.get("inference"), Sampling):
        del settings["epochs"]
    return BayesianMLPRegressor(hidden, **settings | params)


def newton(x, y, exposure):
    """Return coefficients of the Poisson regression with an offset, from its score equations."""
    design, b = np.column_stack([x, np.ones(len(x))]), np.zeros(3)
    for _ in range(30):
        mean = exposure * np.exp(design @ b)
        b += np.linalg.solve((design.T * mean) @ design, design.T @ (y - mean))
    return b


def coefficients(model):
    return np.r_[model.coefs_[0].ravel(), model.intercepts_[0] - np.log(model.exposure_scale_)]


@pytest.mark.equation("D72")
def test_a_linear_model_is_the_generalised_linear_model_with_an_offset():
    x, y, exposure = data(rows=200)
    wide = {"prior": GaussianPrior(10.0), "standardize": False, "epochs": 300, "batch_size": 200}
    model = learner(inference="map", **wide).fit(x, y, exposure=exposure)
    expected = newton(x, y, exposure)
    assert np.allclose(coefficients(model), expected, atol=2e-3)
    api = pytest.importorskip("statsmodels.api")
    design = np.column_stack([x, np.ones(len(x))])
    family = api.families.Poisson()
    glm = api.GLM(y, design, family=family, offset=np.log(exposure)).fit()
    assert np.allclose(glm.params, expected, rtol=1e-8)
    assert np.allclose(model.predict(x, exposure=exposure), glm.predict(), rtol=0.01)


@pytest.mark.parametrize("kind", [Reparameterised, LocalReparameterisation, Flipout])
def test_gradients_of_every_family_go_around_the_offset(kind):
    x, y, exposure = data(rows=7)
    model = learner((3,), activation="tanh", gradient_estimator=kind, epochs=1)
    model.fit(x, y, exposure=exposure)
    estimator = model.estimator_
    assert estimator.model.network.n_columns == 3 == x.shape[1] + 1
    rows = model._check_rows(x, exposure)
    assert np.allclose(rows[:, 2], np.log(exposure / model.exposure_scale_))
    arguments = (estimator.draw(np.random.default_rng(1), 2, 7), rows, y[:, None])
    assert check(estimator.value_and_grad, model.theta_, *arguments).passed


@pytest.mark.equation("D72")
def test_the_unit_of_exposures_is_the_users_and_one_count_that_of_training():
    x, y, exposure = data()
    first = learner((3,)).fit(x, y, exposure=exposure)
    days = learner((3,)).fit(x, y, exposure=365.0 * exposure)
    assert np.allclose(first.theta_, days.theta_, rtol=1e-6)
    assert np.allclose(first.predict(x), 365.0 * days.predict(x), rtol=1e-6)
    assert first.exposure_scale_ == pytest.approx(exposure.sum() / (y.sum() + 0.5))
    nothing = learner().fit(x, 0.0 * y, exposure=exposure)
    assert np.isfinite(nothing.exposure_scale_)


def test_predictions_are_rates_unless_they_are_given_an_exposure():
    x, y, exposure = data()
    model = learner((3,)).fit(x, y, exposure=exposure)
    rates = model.predict(x)
    assert np.array_equal(rates, model.predict(x, exposure=1.0))
    assert np.allclose(model.predict(x, exposure=exposure), exposure * rates)
    assert np.allclose(model.sample_functions(x, exposure=2.0), 2.0 * model.sample_functions(x))
    mean, sd = model.predict(x, return_std=True, exposure=exposure)
    p = model.predict_distribution(x, exposure)
    assert np.array_equal(sd, p.total)
    assert np.array_equal(mean, p.mean)
    _, cov = model.predict(x, return_cov=True, exposure=exposure)
    assert np.allclose(np.sqrt(np.diag(cov)), sd)
    ends = model.predict_interval(x, 0.9, exposure=exposure)
    assert np.array_equal(ends[:, 1], model.predict_quantiles(x, 0.95, exposure=exposure))
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.8
    drawn = model.sample_y(x, 200, exposure=exposure)
    assert np.allclose(drawn.mean(axis=1), mean, atol=5 * sd.max() / np.sqrt(200))


def test_counts_need_their_exposure():
    x, y, exposure = data()
    model = learner((3,)).fit(x, y, exposure=exposure)
    density = model.log_predictive_density(x, y, exposure=exposure)
    assert density.mean() == pytest.approx(model.fit_report_.log_density, abs=0.05)
    assert 0.5 < model.score(x, y, exposure=exposure) <= 1.0
    for method in (model.log_predictive_density, model.score, model.partial_fit):
        with pytest.raises(ValueError, match="exposure is missing"):
            method(x, y)


def test_refusals():
    x, y, exposure = data()
    plain = learner().fit(x, y)
    with pytest.raises(ValueError, match="exposure was not given to fit"):
        plain.predict(x, exposure=exposure)
    with pytest.raises(ValueError, match="exposure is for counts"):
        BayesianMLPRegressor().fit(x, y, exposure=exposure)
    for wrong in (0.0 * exposure, -exposure, exposure * np.nan, np.where(y > 5, np.inf, 1.0)):
        with pytest.raises(ValueError, match="exposure must be a finite number > 0; got"):
            learner().fit(x, y, exposure=wrong)
    for wrong in (exposure[1:], exposure[:, None]):
        with pytest.raises(ValueError, match="one for each of 60 rows"):
            plain.fit(x, y, exposure=wrong)
    with pytest.raises(TypeError):
        plain.fit(x, y, exposure="years")
    assert not hasattr(plain, "exposure_scale_")
    with pytest.raises(TypeError, match="exposure"):
        BayesianMLPClassifier().fit(x, y > 3, exposure=exposure)
    with pytest.raises(ValueError, match="exposure was not given to fit"):
        BayesianMLPClassifier(epochs=2).fit(x, y > 3).sample_functions(x, exposure=exposure)


def test_files_copies_and_training_on_keep_the_exposure(tmp_path):
    x, y, exposure = data()
    model = learner((3,), warm_start=True).fit(x, y, exposure=exposure)
    save(model, tmp_path / "rates.npz")
    for copy in (load(tmp_path / "rates.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(copy.predict(x, exposure=3.0), model.predict(x, exposure=3.0))
    assert not hasattr(clone(model), "exposure_scale_")
    scale = model.exposure_scale_
    model.fit(x[:40], y[:40], exposure=exposure[:40])
    model.partial_fit(x[:40], y[:40], exposure=exposure[:40])
    assert model.exposure_scale_ == scale
    assert model.n_iter_ == 121


@pytest.mark.parametrize(
    "params",
    [
        {"inference": Sampling("hmc", chains=1, draws=20, warm_up=20, start="prior")},
        {"inference": "laplace", "epochs": 20},
        {"dtype": "float32", "validation_fraction": 0.2},
    ],
    ids=["sampled", "laplace", "float32"],
)
def test_every_way_of_fitting(params):
    x, y, exposure = data()
    model = learner((3,), **params)
    model.fit(x, np.column_stack([y, y]), exposure=exposure)
    mean = model.predict(x, exposure=exposure)
    assert mean.shape == (ROWS, 2)
    assert np.isfinite(mean).all()
    assert np.allclose(mean, exposure[:, None] * model.predict(x), rtol=1e-4)


def test_a_row_of_weight_two_occurs_twice():
    x, y, exposure = data()
    counts = np.random.default_rng(4).integers(0, 3, ROWS)
    fit = partial(learner((3,), batch_size=300).fit)
    weighted = fit(x, y, counts, exposure=exposure).exposure_scale_
    rows = np.repeat(np.arange(ROWS), counts)
    repeated = fit(x[rows], y[rows], exposure=exposure[rows]).exposure_scale_
    assert weighted == pytest.approx(repeated)


def test_scikit_learn_passes_the_exposure_on():
    x, y, exposure = data()
    with config_context(enable_metadata_routing=True):
        model = learner(epochs=5).set_fit_request(exposure=True).set_score_request(exposure=True)
        scores = cross_validate(
            model, x, y, cv=2, params={"exposure": exposure}, error_score="raise"
        )
    assert len(scores["test_score"]) == 2

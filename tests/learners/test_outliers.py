"""Student's t in learners: it is for outliers, and says what deviations it has."""

import numpy as np
import pytest
from scipy import stats

from bbb_numpy import (
    BayesianMLPRegressor,
    Sampling,
    StudentTLikelihood,
    StudentTPrior,
    load,
    save,
)

pytestmark = pytest.mark.brief


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
        (10,), activation="tanh", likelihood=likelihood, epochs=400, random_state=100 + seed
    ).fit(*spoiled(seed))
    return np.sqrt(np.mean((model.predict(GRID) - np.sin(2 * GRID[:, 0])) ** 2))


@pytest.mark.equation("D43")
def test_outliers_move_the_fit_much_less_than_under_gaussian_noise():
    gaussian = np.array([miss("gaussian-learned", seed) for seed in (1, 2)])
    for likelihood in ("student-t", "student-t-learned"):
        gain = gaussian - [miss(likelihood, seed) for seed in (1, 2)]
        assert gain.mean() > 0.2, likelihood  # of a sine whose own RMS is 0.7
        assert gain.min() > 0.1, likelihood


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
    found = model.predict_distribution(x)
    np.testing.assert_allclose(found.aleatoric, 2**0.5 * 0.3 * y.std(), rtol=1e-12)
    np.testing.assert_allclose(found.total, np.hypot(found.epistemic, found.aleatoric))
    functions = model.sample_functions(x, 5)
    np.testing.assert_allclose(found.mean, functions.mean(axis=1), rtol=1e-12)
    density = stats.t.logpdf(y[:, None], 4.0, functions, 0.3 * y.std())
    expected = np.log(np.exp(density).mean(axis=1))
    np.testing.assert_allclose(model.log_predictive_density(x, y), expected, rtol=1e-10)


@pytest.mark.equation("D43")
@pytest.mark.parametrize("df", [1.0, 2.0])
def test_down_from_two_degrees_of_freedom_deviations_are_infinite_and_means_are_not(df):
    model, x, _ = quick(likelihood=StudentTLikelihood(0.3, df))
    mean, deviation = model.predict(x, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isposinf(deviation).all()
    assert np.isfinite(model.predict_distribution(x).epistemic).all()
    assert np.isfinite(model.sample_y(x, 3)).all()


@pytest.mark.equation("D33", "D42", "D43")
@pytest.mark.filterwarnings("ignore:[0-9]+ divergent transitions")
def test_samplers_draw_scale_and_degrees_of_freedom_with_the_weights(tmp_path):
    sampling = Sampling("hmc", chains=2, draws=20, warm_up=40)
    prior = StudentTPrior(0.4, 3.0, learn=True)
    noise = StudentTLikelihood(0.2, 3.0, learn=True)
    model, x, _ = quick(activation="tanh", prior=prior, likelihood=noise, inference=sampling)
    params = model.draws_.target.params(model.theta_)
    assert set(params) == {"prior_log_scale", "prior_log_df", "log_noise", "log_df"}
    assert all(np.ptp(block) > 0 for block in params.values())
    scale = np.exp(params["log_noise"]).mean() * model.y_scale_
    np.testing.assert_allclose(model.noise_scale_, scale, rtol=1e-12)
    save(model, tmp_path / "m.npz")
    twin = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(twin.predict(x), model.predict(x))

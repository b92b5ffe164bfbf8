"""intervals, quantiles, covariances and sets of the learners: names, shapes, units, and skpro."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor

from bbb_numpy import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    GaussianLikelihood,
    StudentTLikelihood,
)

pytestmark = pytest.mark.brief


def data(outputs=None, rows=40):
    random = np.random.default_rng(2)
    x = random.uniform(-2, 2, (rows, 2))
    shape = (rows,) if outputs is None else (rows, outputs)
    signal = np.sin(x[:, 0]) if outputs is None else np.sin(x[:, :1])
    return x, 100.0 + 20.0 * (signal + 0.2 * random.standard_normal(shape))


def learner(**params):
    params = {"epochs": 60, "random_state": 0, "progress": False, **params}
    return BayesianMLPRegressor((5,), **params)


@pytest.mark.parametrize("outputs", [None, 1, 2])
def test_means_and_covariances_have_the_shapes_of_a_gaussian_process(outputs):
    x, y = data(outputs)
    mean, cov = learner(epochs=5).fit(x, y).predict(x[:4], return_cov=True)
    process = GaussianProcessRegressor(optimizer=None).fit(x, y)
    if outputs != 1:  # of a single column it drops the axis
        theirs = process.predict(x[:4], return_cov=True)
        assert (mean.shape, cov.shape) == (theirs[0].shape, theirs[1].shape)
    assert mean.shape == y[:4].shape
    assert cov.shape == ((4, 4) if outputs is None else (4, 4, outputs))


@pytest.mark.parametrize("likelihood", [None, "heteroscedastic", "student-t"])
def test_an_interval_lies_between_its_quantiles_in_units_of_y(likelihood):
    x, y = data()
    model = learner(likelihood=likelihood).fit(x, y)
    low, high = model.predict_interval(x, 0.8).T
    assert np.array_equal(low, model.predict_quantiles(x, 0.5 - 0.4))
    assert np.array_equal(high, model.predict_quantiles(x, 0.5 + 0.4))
    assert (model.predict_quantiles(x, [0.0, 1.0]) == [-np.inf, np.inf]).all()
    assert (low < high).all()
    drawn = model.sample_y(x, 4000, random_state=1)
    inside = ((drawn >= low[:, None]) & (drawn <= high[:, None])).mean(axis=1)
    # the quantiles are of 100 of the posterior's weights, the draws of 4000 others
    assert np.abs(inside - 0.8).max() < 0.15
    assert inside.mean() == pytest.approx(0.8, abs=0.02)


def test_the_diagonal_of_the_covariance_is_the_squared_deviation():
    x, y = data()
    model = learner().fit(x, y)
    mean, std = model.predict(x, return_std=True)
    same, cov = model.predict(x, return_cov=True)
    assert np.array_equal(mean, same)
    assert np.allclose(np.diag(cov), std**2, rtol=1e-12)
    assert np.array_equal(cov, cov.T)
    assert np.linalg.eigvalsh(cov).min() > 0
    functions = model.sample_functions(x, 100)
    assert np.allclose(
        cov - np.diag(np.diag(cov) - functions.var(axis=1, ddof=1)), np.cov(functions)
    )


def test_a_point_estimate_has_the_quantiles_of_its_noise():
    x, y = data()
    model = learner(inference="map", likelihood=GaussianLikelihood(0.5)).fit(x, y)
    z = (model.predict_quantiles(x, [0.05, 0.5, 0.95]) - model.predict(x)[:, None]) / (
        model.noise_scale_
    )
    assert np.allclose(z, stats.norm.ppf([0.05, 0.5, 0.95]), atol=1e-9)
    cov = model.predict(x, return_cov=True)[1]
    assert np.allclose(cov, np.eye(len(x)) * model.noise_scale_**2, rtol=1e-12)


@pytest.mark.equation("D43")
@pytest.mark.parametrize("df", [1.0, 2.0])
def test_where_the_variance_is_infinite_means_and_quantiles_are_not(df):
    x, y = data()
    model = learner(likelihood=StudentTLikelihood(0.1, df)).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    cov = model.predict(x, return_cov=True)[1]
    assert np.isposinf(std).all()
    assert np.isposinf(np.diag(cov)).all()
    epistemic, drawn = model.predict_distribution(x).epistemic, model.sample_y(x, 3)
    between = cov[~np.eye(len(x), dtype=bool)]
    for finite in (mean, between, epistemic, drawn, model.predict_interval(x, 0.99)):
        assert np.isfinite(finite).all()


def test_intervals_of_counts_are_whole_numbers():
    x, _ = data()
    y = np.random.default_rng(0).poisson(np.exp(1 + x[:, 0]))
    model = learner(likelihood="poisson").fit(x, y)
    intervals = model.predict_interval(x)
    assert np.array_equal(intervals, np.floor(intervals))
    assert (intervals >= 0).all()
    ends = model.predict_quantiles(x, [0, 1])
    assert (ends == [0, np.inf]).all()
    drawn = model.sample_y(x, 4000, random_state=1)
    coverage = ((drawn >= intervals[:, :1]) & (drawn <= intervals[:, 1:])).mean()
    assert coverage >= 0.88


# Classes


def test_sets_of_classes_are_the_most_probable_ones():
    random = np.random.default_rng(4)
    x = random.standard_normal((80, 2))
    y = np.digitize(x[:, 0] + 0.5 * random.standard_normal(80), [-0.5, 0.5])
    model = BayesianMLPClassifier((8,), epochs=40, random_state=0, progress=False).fit(x, y)
    proba, sets = model.predict_proba(x), model.predict_set(x, 0.8)
    assert sets.shape == proba.shape
    assert sets.dtype == bool
    assert (np.where(sets, proba, 0).sum(axis=1) >= 0.8 - 1e-12).all()
    assert sets[np.arange(80), proba.argmax(axis=1)].all()
    sizes = [model.predict_set(x, c).sum() for c in (0.0, 0.5, 0.9, 1.0)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (80, 240)
    assert not hasattr(model, "predict_interval")  # classes have no order
    with pytest.raises(ValueError, match="coverage must be one number"):
        model.predict_set(x, [0.5, 0.9])


# skpro


def test_the_adapter_of_skpro_works_on_it():
    pandas = pytest.importorskip("pandas")
    adapters = pytest.importorskip(
        "skpro.regression.adapters.sklearn", reason="skpro is not installed: pip install skpro"
    )
    x, y = data()
    frame, target = pandas.DataFrame(x, columns=["a", "b"]), pandas.DataFrame({"y": y})
    adapted = adapters.SklearnProbaReg(learner()).fit(frame, target)
    alone = learner().fit(frame, target["y"])
    mean, std = alone.predict(frame, return_std=True)
    assert np.allclose(adapted.predict(frame)["y"], mean, rtol=1e-12)
    assert np.allclose(adapted.predict_var(frame)["y"], std**2, rtol=1e-12)
    theirs = adapted.predict_interval(frame, coverage=0.9).to_numpy()  # that of N(mean, std^2)
    ours = alone.predict_interval(frame, coverage=0.9)
    assert theirs.shape == ours.shape
    assert np.allclose(theirs, mean[:, None] + std[:, None] * stats.norm.ppf([0.05, 0.95]))
    assert np.abs(theirs - ours).max() < 0.2 * std.max()  # the mixture is nearly Gaussian here
    levels = [0.1, 0.5, 0.9]
    assert adapted.predict_quantiles(frame, levels).shape == (40, 3)
    assert adapted.predict_proba(frame).mean().shape == (40, 1)

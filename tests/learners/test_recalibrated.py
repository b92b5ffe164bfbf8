"""Estimators corrected by held-out rows: what is guaranteed, what is not, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from small_learners import class_blobs, classifier, regression_rows, regressor

from bbb_numpy import Conformal, Recalibrated
from bbb_numpy.evaluation.scoring import log_density_scorer

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
COVERAGE = 0.8


class Line(RegressorMixin, BaseEstimator):
    """States x with a standard deviation of 1, whatever it is fitted to."""

    def fit(self, X, y):
        self.seen_ = X
        return self

    def predict(self, X, return_std=False):
        mean = X[:, 0]
        return (mean, np.ones(len(X))) if return_std else mean

    def predict_interval(self, X, coverage):
        return X[:, 0, None] + norm.ppf([(1 - coverage) / 2, (1 + coverage) / 2])


class Odds(ClassifierMixin, BaseEstimator):
    """States classes 'a' and 'b' with log odds 3 x, where those of `labels` are x."""

    def fit(self, X, y):
        self.classes_ = np.array(["a", "b"])
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-3 * X[:, 0]))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def rows(n_rows, seed, scale=1.0):
    """Return x (N, 1), and y = x + noise of standard deviation `scale`, (N,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n_rows, 1))
    return x, x[:, 0] + scale * rng.standard_normal(n_rows)


def labels(n_rows, seed):
    rng = np.random.default_rng(seed)
    x = 2 * rng.standard_normal((n_rows, 1))
    return x, np.where(rng.random(n_rows) < 1 / (1 + np.exp(-x[:, 0])), "b", "a")


def covered(intervals, y):
    return ((intervals[..., 0] <= y) & (y <= intervals[..., 1])).mean()


@pytest.mark.equation("D77")
@pytest.mark.parametrize("score", ["interval", "sd", "absolute"])
@pytest.mark.parametrize("scale", [0.2, 3.0])
def test_marginal_coverage_is_what_is_said_of_a_model_too_wide_or_too_narrow(score, scale):
    n_rows, n_sets, n_new = 24, 100, 40  # rank 20 of 25
    shares = []
    for seed in range(n_sets):
        wrapper = Conformal(Line().fit(None, None), COVERAGE, score)
        wrapper.calibrate(*rows(n_rows, seed, scale))
        x, y = rows(n_new, 10_000 + seed, scale)
        shares.append(covered(wrapper.predict_interval(x), y))
    assert abs(np.mean(shares) - 20 / 25) < 3 * np.std(shares) / np.sqrt(n_sets)
    alone = covered(Line().predict_interval(x, COVERAGE), y)
    assert abs(alone - COVERAGE) > 0.15


@pytest.mark.equation("D77")
def test_sets_of_classes_hold_the_label_as_often_as_said_and_may_be_empty():
    shares = []
    for seed in range(100):
        wrapper = Conformal(Odds().fit(None, None), COVERAGE).calibrate(*labels(24, seed))
        x, y = labels(40, 10_000 + seed)
        sets = wrapper.predict_set(x)
        shares.append(sets[np.arange(40), (y == "b").astype(int)].mean())
    assert abs(np.mean(shares) - 20 / 25) < 3 * np.std(shares) / np.sqrt(100)
    wrapper.bound_ = 0.4
    assert wrapper.predict_set(np.array([[0.0], [1.0]])).tolist() == [[False] * 2, [False, True]]


@pytest.mark.equation("D77")
@pytest.mark.parametrize("score", ["interval", "sd", "absolute"])
def test_targets_that_are_tied_with_the_bound_are_inside_however_it_is_rounded(score):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = np.full((60, 1), rng.uniform(0, 2))
        y = rng.choice([0.1, 0.2, 0.7, 1.1, 1.3], 60)
        wrapper = Conformal(Line().fit(None, None), COVERAGE, score).calibrate(x, y)
        assert covered(wrapper.predict_interval(x), y) >= COVERAGE


@pytest.mark.equation("D77")
def test_probabilities_that_are_rounded_otherwise_in_another_batch_leave_the_sets():
    class Rounded(Odds):
        def predict_proba(self, X):
            return super().predict_proba(X) - 1e-7 * (len(X) == 1)

    x = np.full((40, 1), 0.2)
    wrapper = Conformal(Rounded().fit(None, None)).calibrate(x, np.repeat(["a", "b"], 20))
    assert wrapper.predict_set(x).all()
    assert wrapper.predict_set(x[:1]).all()


@pytest.mark.equation("D77")
def test_a_group_and_a_shifted_row_have_no_guarantee():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (2, 20_000, 1))
    noise = (0.1 + 0.2 * np.abs(x[..., 0])) * rng.standard_normal(x.shape[:2])
    y = x[..., 0] + noise
    equal = Conformal(Line().fit(None, None), 0.9, "absolute").calibrate(x[0], y[0])
    intervals = equal.predict_interval(x[1])
    assert abs(covered(intervals, y[1]) - 0.9) < 0.01
    near, far = np.abs(x[1, :, 0]) < 0.1, np.abs(x[1, :, 0]) > 1.9
    assert covered(intervals[near], y[1, near]) > 0.99
    assert covered(intervals[far], y[1, far]) < 0.8
    shifted = x[1] + 4
    assert covered(equal.predict_interval(shifted), shifted[:, 0] + 1 + noise[1]) < 0.2


@pytest.mark.equation("D77")
def test_intervals_by_standard_deviations_that_are_right_but_for_a_factor_hold_everywhere():
    class FiveTimesTooWide(Line):
        def predict(self, X, return_std=False):
            return X[:, 0], 5 * np.exp(X[:, 0])

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (2, 20_000, 1))
    y = x[..., 0] + np.exp(x[..., 0]) * rng.standard_normal(x.shape[:2])
    wrapper = Conformal(FiveTimesTooWide().fit(None, None), 0.9, "sd").calibrate(x[0], y[0])
    intervals = wrapper.predict_interval(x[1])
    for group in (x[1, :, 0] < -1.8, x[1, :, 0] > 1.8):
        assert abs(covered(intervals[group], y[1, group]) - 0.9) < 0.04


@pytest.mark.equation("D77")
def test_right_intervals_are_left_and_those_that_shrink_below_nothing_are_points():
    wrapper = Conformal(Line().fit(None, None), COVERAGE).calibrate(*rows(5000, 0))
    assert abs(wrapper.bound_) < 0.1

    class OfTwoWidths(Line):
        def predict_interval(self, X, coverage):
            return X[:, 0, None] + np.where(X[:, :1] > 1, 0.1, 2.0) * [-1, 1]

    x = rows(100, 0)[0]
    wrapper = Conformal(OfTwoWidths().fit(None, None), 0.5).calibrate(x, x[:, 0])
    assert wrapper.bound_ == pytest.approx(-2)
    low, high = wrapper.predict_interval(x).T
    assert (low <= high).all()
    assert np.allclose(low, high, atol=1e-5)


def test_rows_are_held_out_at_random_and_weigh_what_they_are_said_to():
    x = np.arange(400.0)[:, None]
    wrapper = Conformal(Line(), random_state=0).fit(x, x[:, 0])
    held_out = np.setdiff1d(x, wrapper.estimator_.seen_)
    assert len(held_out) == 100
    assert abs(held_out.mean() - 200) < 40
    for model, (x, y) in ((Line(), rows(60, 0, 2.0)), (Odds(), labels(60, 0))):
        weights = np.resize([0, 1, 3], 60)
        learned = []
        for arguments in ((x, y, weights), (np.repeat(x, weights, axis=0), np.repeat(y, weights))):
            wrapper = Recalibrated(model.fit(None, None)).calibrate(*arguments)
            learned.append(getattr(wrapper, "sd_factor_", None) or wrapper.temperature_)
        assert np.isclose(*learned)


@pytest.mark.equation("D76")
def test_recalibration_recovers_the_scale_and_its_density_is_one():
    x, y = rows(5000, 0, 2.5)
    wrapper = Recalibrated(Line().fit(None, None)).calibrate(x, y)
    assert abs(wrapper.sd_factor_[0] / 2.5 - 1) < 3 / np.sqrt(2 * 5000)
    mean, sd = wrapper.predict(x, return_std=True)
    assert (mean == x[:, 0]).all()
    assert np.allclose(sd, wrapper.sd_factor_)
    assert abs(covered(wrapper.predict_interval(x, 0.8), y) - 0.8) < 0.02


@pytest.mark.equation("D76")
def test_the_temperature_of_a_classifier_is_that_of_scikit_learn_and_leaves_its_labels():
    model = Odds().fit(None, None)
    x, y = labels(1000, 0)
    wrapper = Recalibrated(model).calibrate(x, y)
    assert abs(wrapper.temperature_ - 3) < 0.5
    assert (wrapper.predict(x) == model.predict(x)).all()
    assert (wrapper.predict_proba(x).argmax(axis=1) == model.predict_proba(x).argmax(axis=1)).all()
    gain = wrapper.log_predictive_density(x, y).mean()
    assert np.isclose(
        gain, np.log(wrapper.predict_proba(x))[np.arange(1000), 1 * (y == "b")].mean()
    )
    FrozenEstimator = pytest.importorskip("sklearn.frozen").FrozenEstimator
    try:
        theirs = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(x, y)
    except ValueError:
        pytest.skip("a scikit-learn before 1.8")
    assert np.allclose(theirs.predict_proba(x), wrapper.predict_proba(x), atol=1e-3)


@pytest.mark.parametrize("wrapper", [Conformal, Recalibrated])
def test_both_are_scikit_learn_estimators_around_learners(wrapper):
    x, y = regression_rows(60, outputs=2)
    model = wrapper(regressor(), random_state=0)
    assert clone(model).get_params(deep=True)["estimator__epochs"] == 3
    with pytest.raises(NotFittedError):
        model.predict(x)
    assert model.fit(x, y) is model
    assert model.n_calibration_rows_ == 15
    assert model.predict_interval(x).shape == (60, 2, 2)
    restored = pickle.loads(pickle.dumps(model))
    assert (restored.predict_interval(x) == model.predict_interval(x)).all()
    assert (restored.predict(x) == model.estimator_.predict(x)).all()
    assert not hasattr(model, "predict_proba")
    assert not is_classifier(model)
    assert np.isfinite(cross_val_score(clone(model), x, y, cv=3)).all()

    x, y = class_blobs(3)
    model = wrapper(classifier(epochs=60), random_state=0).fit(
        pd.DataFrame(x, columns=["u", "v"]), y
    )
    assert is_classifier(model)
    assert not hasattr(model, "predict_interval")
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["u", "v"]
    assert model.predict_proba(pd.DataFrame(x, columns=["u", "v"])).shape == (60, 3)
    assert model.score(pd.DataFrame(x, columns=["u", "v"]), y) > 0.5


def test_the_density_of_a_recalibrated_learner_is_stretched_and_the_scorers_take_it():
    x, y = regression_rows(60)
    model = Recalibrated(regressor()).fit(x, y)
    grid = np.linspace(-30, 30, 4001)
    at = np.repeat(x[:1], len(grid), axis=0)
    density = np.exp(model.log_predictive_density(at, grid))
    assert np.isclose(density.sum() * (grid[1] - grid[0]), 1, rtol=1e-3)
    mean, sd = model.predict(x[:1], return_std=True)
    second = ((grid - mean) ** 2 * density).sum() * (grid[1] - grid[0])
    assert np.isclose(np.sqrt(second), sd[0], rtol=1e-3)
    assert np.isclose(log_density_scorer(model, x, y), model.log_predictive_density(x, y).mean())


def test_other_estimators_of_scikit_learn_are_taken_too():
    x, y = rows(80, 0)
    assert (
        Conformal(LinearRegression(), conformity_score="absolute")
        .fit(x, y)
        .predict_interval(x)
        .shape
    )
    gp = Conformal(GaussianProcessRegressor(alpha=1.0), conformity_score="sd").fit(x, y)
    assert gp.predict_interval(x).shape == (80, 2)
    x, y = labels(80, 0)
    assert Conformal(LogisticRegression()).fit(x, y).predict_set(x).shape == (80, 2)


def test_what_cannot_be_guaranteed_is_refused_in_words():
    x, y = rows(12, 0)
    line = Line().fit(None, None)
    with pytest.raises(ValueError, match="needs at least 19 held-out rows; got 12"):
        Conformal(line, 0.95).calibrate(x, y)
    with pytest.raises(ValueError, match="needs at least 9 held-out rows; got 3"):
        Conformal(Line()).fit(x, y)  # before the estimator is trained
    with pytest.raises(
        ValueError, match="conformity_score must be one of 'interval', 'sd', 'absolute'"
    ):
        Conformal(line, conformity_score="cqr").calibrate(x, y)
    with pytest.raises(ValueError, match=r"Pipeline has no predict_interval, .* use 'sd' or"):
        Conformal(Pipeline([("last", LinearRegression())]), 0.5).fit(x, y)
    with pytest.raises(ValueError, match="coverage"):
        Conformal(line, 1.0).calibrate(x, y)
    with pytest.raises(ValueError, match="y must have the shape"):
        Conformal(line, 0.5).calibrate(x, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="held-out rows have the class 'c'"):
        Conformal(Odds().fit(None, None), 0.5).calibrate(x, np.resize(["a", "c"], 12))
    with pytest.raises(ValueError, match=r"would undo its guarantee; use Conformal\(Recalib"):
        Recalibrated(Conformal(Line(), 0.5)).fit(x, y)
    counts = regressor(likelihood="poisson").fit(x, np.arange(12), exposure=2.0)
    for wrapper in (Conformal(counts, 0.5), Recalibrated(counts)):
        with pytest.raises(ValueError, match="an exposure, which is not supported here"):
            wrapper.calibrate(x, np.arange(12))
    counts = regressor(likelihood="poisson").fit(x, np.arange(12))
    with pytest.raises(ValueError, match="for counts and target='log' use Conformal"):
        Recalibrated(counts).calibrate(x, np.arange(12))
    conformal = Conformal(counts, 0.5).calibrate(x, np.arange(12))
    assert conformal.predict_interval(x).shape == (12, 2)
    with pytest.raises(ValueError, match="for counts and target='log' use Conformal"):
        Recalibrated(Pipeline([("last", counts)])).calibrate(x, np.arange(12))
    with pytest.raises(NotFittedError):
        Conformal(Line(), 0.5).calibrate(x, y)
    line.predict = lambda X, return_std: (X[:, 0], np.full(len(X), np.inf))
    for wrapper in (Conformal(line, 0.5, "sd"), Recalibrated(line)):
        with pytest.raises(ValueError, match=r"finite standard deviations|deviation is infinite"):
            wrapper.calibrate(x, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        Conformal(Line(), 0.5).fit(x, None)


def test_targets_of_another_shape_are_refused_and_one_column_is_taken():
    x, y = rows(40, 0)
    better = Recalibrated(Line().fit(None, None)).calibrate(x, y)
    for targets in (y[:1], np.stack([y, y], axis=1)):
        with pytest.raises(ValueError, match="y must have the shape of the predictions"):
            better.calibrate(x, targets)
        with pytest.raises(ValueError, match="y must have the shape of the predictions"):
            better.log_predictive_density(x, targets)
    assert better.calibrate(x, y[:, None]).sd_factor_ == better.calibrate(x, y).sd_factor_
    x, y = labels(40, 0)
    for wrapper in (Conformal, Recalibrated):
        model = wrapper(Odds().fit(None, None))
        with pytest.raises(ValueError, match="a label for each of 40 rows; got shape"):
            model.calibrate(x, y[:20])
        assert vars(model.calibrate(x, y[:, None])) == vars(
            wrapper(model.estimator).calibrate(x, y)
        )


def test_arguments_that_are_set_later_count_from_the_next_fit():
    x, y = rows(40, 0)
    model = Conformal(Line().fit(None, None), COVERAGE).calibrate(x, y)
    intervals = model.predict_interval(x)
    model.set_params(coverage=0.5, conformity_score="absolute")
    assert (model.predict_interval(x) == intervals).all()
    assert (model.calibrate(x, y).predict_interval(x) != intervals).any()


def test_the_log_density_of_a_class_stays_finite_where_its_probability_is_0():
    x, y = np.array([[-230.0], [1.0], [-1.0], [0.5]]), np.array(["b", "b", "a", "a"])
    model = Recalibrated(Odds().fit(None, None)).calibrate(x[1:], y[1:])
    model.temperature_ = 0.5
    assert model.predict_proba(x)[0, 1] == 0
    assert np.isclose(model.log_predictive_density(x, y)[0], -2 * 690)
    x, y = labels(80, 0)
    tree = Recalibrated(DecisionTreeClassifier()).fit(x, y)  # states 0 and 1
    assert np.isfinite(tree.log_predictive_density(x, y)).all()


@pytest.mark.slow
@pytest.mark.equation("D77")
def test_learners_of_few_epochs_hold_what_is_said_and_not_on_the_rows_they_have_seen():
    n_rows, n_sets = 59, 60  # rank 48 of 60
    shares, seen = [], []
    for seed in range(n_sets):
        model = regressor(epochs=300, random_state=seed).fit(*rows(20, seed, 0.3))
        wrapper = Conformal(model, COVERAGE, "absolute").calibrate(*rows(n_rows, 1000 + seed, 0.3))
        x, y = rows(200, 2000 + seed, 0.3)
        shares.append(covered(wrapper.predict_interval(x), y))
        wrapper.calibrate(*rows(20, seed, 0.3))
        seen.append(covered(wrapper.predict_interval(x), y))
    assert abs(np.mean(shares) - COVERAGE) < 3 * np.std(shares) / np.sqrt(n_sets)
    assert np.mean(seen) < COVERAGE - 3 * np.std(seen) / np.sqrt(n_sets)

"""scoring: what scikit-learn's searches call, against the scores computed by hand."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_learners import class_blobs, classifier, regression_rows, regressor

from bbb_numpy.evaluation import scoring
from bbb_numpy.evaluation.calibration import crps_mixture, interval_score
from bbb_numpy.evaluation.predictive import mixture
from bbb_numpy.evaluation.scoring import crps_scorer, interval_scorer, log_density_scorer

X, Y = regression_rows()
SCORERS = [log_density_scorer, crps_scorer, interval_scorer]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WEIGHTS = np.where(np.arange(len(X)) % 3, 1.0, 0.0)


@pytest.fixture(scope="module")
def model():
    return regressor().fit(X, Y)


@pytest.mark.equation("D34")
def test_the_scores_are_those_of_the_predictive_distribution(model):
    density = model.log_predictive_density(X, Y)
    assert log_density_scorer(model, X, Y) == density.mean()
    low, high = model.predict_interval(X, 0.8).T
    expected = -interval_score(low, high, Y, 0.8).mean()
    assert interval_scorer(model, X, Y, coverage=0.8) == pytest.approx(expected)
    x, z = model._check_pair(X, Y)
    means, scales = model._posterior_predict(mixture, x)
    exact = crps_mixture(means, scales, z).mean() * model.y_scale_[0]
    assert -crps_scorer(model, X, Y, n_draws=4000) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("scorer", SCORERS)
def test_weights_are_copies_of_rows_and_batches_change_nothing(model, scorer, monkeypatch):
    kept = WEIGHTS > 0
    score = scorer(model, X, Y)
    assert scorer(model, X, Y, np.ones(len(X))) == pytest.approx(score)
    assert scorer(model, X, Y, sample_weight=WEIGHTS) != pytest.approx(score)
    if scorer is not crps_scorer:  # whose draws depend on the rows
        assert scorer(model, X, Y, WEIGHTS) == pytest.approx(scorer(model, X[kept], Y[kept]))
    monkeypatch.setattr(scoring, "MAX_BATCH_ROWS", 7)
    assert scorer(model, pd.DataFrame(X).to_numpy(), Y) == pytest.approx(score, rel=0.1)


def test_several_outputs_and_counts_have_scores():
    pair = np.column_stack([Y, 3.0 * Y])
    model = regressor().fit(X, pair)
    assert log_density_scorer(model, X, pair) == model.log_predictive_density(X, pair).mean()
    low, high = np.moveaxis(model.predict_interval(X), -1, 0)
    assert interval_scorer(model, X, pair) == -interval_score(low, high, pair).mean()
    assert crps_scorer(model, X, pair) < 0
    counts = np.random.default_rng(0).poisson(np.exp(1 + X[:, 0] / 2))
    rates = regressor(likelihood="poisson").fit(X, counts)
    # a forecast of the counts themselves would score 0
    assert -5 < crps_scorer(rates, X, counts) < 0
    assert interval_scorer(rates, X, counts) < 0


@pytest.mark.equation("D35")
def test_the_interval_score_is_width_and_distance_and_is_best_for_the_right_quantiles():
    assert interval_score(1.0, 3.0, [0.5, 2.0, 4.0], 0.8).tolist() == pytest.approx(
        [7.0, 2.0, 12.0]
    )
    y = np.random.default_rng(0).normal(0, 1, 100_000)
    scores = [
        interval_score(-z, z, y, 0.9).mean() for z in stats.norm.ppf(0.95) * np.array([0.8, 1, 1.2])
    ]
    assert scores[1] == min(scores)


@pytest.mark.parametrize("scorer", [*SCORERS, partial(interval_scorer, coverage=0.5)])
def test_searches_and_cross_validation_take_them(scorer):
    folds = KFold(2)
    scores = cross_val_score(regressor(), X, Y, scoring=scorer, cv=folds)
    by_hand = [scorer(regressor().fit(X[a], Y[a]), X[b], Y[b]) for a, b in folds.split(X)]
    assert scores.tolist() == by_hand


def test_they_look_into_pipelines_and_searches():
    piped = make_pipeline(StandardScaler(), regressor()).fit(X, Y)
    scaled = piped[0].transform(X)
    for scorer in SCORERS:
        assert scorer(piped, X, Y) == scorer(piped[-1], scaled, Y)
        assert scorer(make_pipeline(regressor()).fit(X, Y), X, Y) == scorer(
            regressor().fit(X, Y), X, Y
        )
    grid = {"bayesianmlpregressor__likelihood": ["gaussian", "heteroscedastic"]}
    scorings = {"density": log_density_scorer, "crps": crps_scorer}
    search = GridSearchCV(piped, grid, scoring=scorings, refit="density", cv=2).fit(X, Y)
    assert log_density_scorer(search, X, Y) == log_density_scorer(search.best_estimator_, X, Y)
    results = cross_validate(piped, X, Y, scoring=scorings, cv=2)
    assert np.isfinite(results["test_crps"]).all()


def test_classes_have_a_log_density_and_no_other_of_these_scores():
    x, labels = class_blobs(3)
    model = classifier().fit(x, labels)
    expected = np.log(model.predict_proba(x)[np.arange(len(x)), labels]).mean()
    assert log_density_scorer(model, x, labels) == pytest.approx(expected)
    for scorer, name in ((crps_scorer, "CRPS"), (interval_scorer, "interval")):
        with pytest.raises(TypeError, match=f"the {name} score is for numbers and counts"):
            scorer(model, x, labels)


@pytest.mark.parametrize("y", [Y[:5], np.column_stack([Y, Y]), Y[:, None]])
def test_targets_of_another_shape_are_refused(model, y):
    for scorer in (crps_scorer, interval_scorer):
        with pytest.raises(ValueError, match="y must have the columns of fit, 1, and as many rows"):
            scorer(model, X, y)
    with pytest.raises(ValueError, match="coverage"):
        interval_scorer(model, X, Y, coverage=1.0)


def test_what_has_no_density_is_refused():
    other = TransformedTargetRegressor(regressor(), func=np.log, inverse_func=np.exp)
    with pytest.raises(TypeError, match=r"got TransformedTargetRegressor.*use target='log'"):
        log_density_scorer(other.fit(X, np.exp(Y)), X, np.exp(Y))

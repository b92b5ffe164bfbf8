"""weights of rows and classes: they are copies, in everything that looks at rows."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data as equivalence,
)

from bbb_numpy import (
    HMC,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    EarlyStopping,
    GaussianLikelihood,
    GaussianPrior,
    Sampling,
    load,
    save,
)

pytestmark = pytest.mark.brief

ROWS = 40


def data(target_kind="real", seed=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((ROWS, 2))
    signal = np.sin(x[:, 0]) + 0.2 * rng.standard_normal(ROWS)
    if target_kind == "count":
        return x, rng.poisson(np.exp(signal))
    if target_kind == "class":
        return x, np.array(["no", "perhaps", "yes"])[np.digitize(signal, [-0.5, 0.5])]
    return x, signal


def counts(seed=4):
    return np.random.default_rng(seed).integers(0, 4, ROWS)


def settings(**params):
    return {"epochs": 40, "random_state": 0, "progress": False, **params}


def regressor(**params):
    return BayesianMLPRegressor((4,), **settings(**params))


def classifier(**params):
    return BayesianMLPClassifier((4,), **settings(**params))


def whole(**params):
    """Settings that leave nothing to chance but the starting point: no noise, all rows at once."""
    return {"inference": "map", "batch_size": 1000, **params}


# --- copies


@pytest.mark.equation("D45")
@pytest.mark.parametrize(
    ("make", "target_kind"),
    [
        (regressor, "real"),
        (partial(regressor, likelihood="heteroscedastic"), "real"),
        (partial(regressor, likelihood="student-t-learned"), "real"),
        (partial(regressor, likelihood="poisson"), "count"),
        (classifier, "class"),
    ],
)
def test_a_fit_to_weights_is_the_fit_to_copies(make, target_kind):
    (x, y), v = data(target_kind), counts()
    weighted = make(**whole()).fit(x, y, sample_weight=v)
    copies = make(**whole()).fit(np.repeat(x, v, axis=0), np.repeat(y, v))
    assert np.allclose(weighted.theta_, copies.theta_, rtol=1e-9, atol=1e-9)
    assert weighted.history_[-1].objective == pytest.approx(copies.history_[-1].objective, rel=1e-9)
    for name in ("x_mean_", "x_scale_", "y_mean_", "y_scale_"):
        assert np.allclose(getattr(weighted, name), getattr(copies, name), rtol=1e-13, atol=1e-15)


@pytest.mark.equation("D45")
@pytest.mark.parametrize(
    "estimator",
    [
        BayesianMLPRegressor((4,), epochs=50, **whole()),
        BayesianMLPRegressor((4,), epochs=50, **whole(inference="mle")),
        BayesianMLPClassifier((4,), epochs=50, **whole()),
        BayesianMLPClassifier((4,), epochs=50, class_weight="balanced", **whole()),
    ],
)
def test_scikit_learns_check_of_copies_passes_where_no_noise_and_no_order_of_rows_enter(estimator):
    equivalence(type(estimator).__name__, estimator)


@pytest.mark.equation("D45")
@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_row_of_weight_0_is_not_there(make):
    x, y = data("real" if make is regressor else "class")
    v = counts().astype(float)
    counted = v > 0
    weighted = make(validation_fraction=0.2, batch_size=8).fit(x, y, sample_weight=v)
    x[~counted] = 1e6
    without_rows = make(validation_fraction=0.2, batch_size=8).fit(
        x[counted], y[counted], v[counted]
    )
    assert np.array_equal(weighted.theta_, without_rows.theta_)
    assert np.array_equal(weighted.x_mean_, without_rows.x_mean_)
    weighted.partial_fit(x, y, sample_weight=v)
    without_rows.partial_fit(x[counted], y[counted], sample_weight=v[counted])
    assert np.array_equal(weighted.theta_, without_rows.theta_)
    for ones in (np.ones(ROWS), [1] * ROWS, 1.0):  # and weights of 1 change nothing
        same = make().fit(x, y, sample_weight=ones)
        assert np.array_equal(same.theta_, make().fit(x, y).theta_)


@pytest.mark.equation("D45")
def test_a_class_whose_rows_have_no_weight_keeps_its_place():
    x, y = data("class")
    model = classifier().fit(x, y, sample_weight=np.where(y == "perhaps", 0.0, 2.0))
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    proba = model.predict_proba(x)
    assert proba.shape == (ROWS, 3)
    assert proba[:, 1].mean() < proba[:, [0, 2]].mean(axis=0).min()


@pytest.mark.equation("D45")
def test_early_stopping_by_weighted_rows():
    (x, y), v = data(), counts() + 0.5
    model = regressor(epochs=400, validation_fraction=0.3, early_stopping=EarlyStopping(5))
    model.fit(x, y, sample_weight=v)
    losses = [epoch.validation for epoch in model.history_]
    assert np.isfinite(losses).all()
    assert len(losses) < 400
    # without validation rows it is the objective per row, rows counted by weight
    make = partial(regressor, **whole(early_stopping=EarlyStopping(3, 1e-3), epochs=400))
    two = make().fit(np.concatenate([x, x]), np.concatenate([y, y]), np.concatenate([v, v]))
    assert len(two.history_) == len(make().fit(x, y, 2 * v).history_) < 400


# --- sampled posteriors


@pytest.mark.equation("D33", "D45")
def test_chains_see_copies_in_weights():
    (x, y), v = data(), counts()
    kernel = HMC(step_size=1e-3, path=3e-3, jitter=0.0)
    few = Sampling(kernel, chains=2, draws=4, warm_up=0, start="prior")
    make = partial(regressor, inference=few, epochs=None, likelihood=GaussianLikelihood(0.5))
    weighted = make().fit(x, y, sample_weight=v)
    copies = make().fit(np.repeat(x, v, axis=0), np.repeat(y, v))
    assert np.allclose(weighted.draws_.log_density, copies.draws_.log_density, rtol=1e-9)
    assert np.allclose(weighted.theta_, copies.theta_, rtol=1e-8, atol=1e-8)


# --- what is kept


@pytest.mark.parametrize("make", [regressor, classifier])
def test_the_fitted_model_knows_nothing_of_weights(make, tmp_path):
    (x, y), v = data("real" if make is regressor else "class"), counts() + 0.5
    model = make().fit(x, y, sample_weight=v)
    plain = make().fit(x, y)
    assert model.estimator_ == plain.estimator_
    assert not np.array_equal(model.theta_, plain.theta_)
    save(model, tmp_path / "model.npz")
    twin = load(tmp_path / "model.npz")
    assert np.array_equal(twin.predict(x), model.predict(x))
    on = model.partial_fit(x, y, sample_weight=v), twin.partial_fit(x, y, sample_weight=v)
    assert np.array_equal(on[0].theta_, on[1].theta_)
    assert np.isfinite(model.partial_fit(x, y).score(x, y, sample_weight=v))


# --- refusals

DAYS = np.arange("2024-01-01", "2024-02-10", dtype="M8[D]")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(ROWS - 1), "sample_weight.shape"),
        (np.ones((ROWS, 1)), "must be 1D"),
        (-np.ones(ROWS), "sample_weight"),
        (np.full(ROWS, np.nan), "sample_weight contains NaN"),
        (np.full(ROWS, np.inf), "sample_weight contains infinity"),
        (np.zeros(ROWS), "[Ss]ample.weight"),
        (np.full(ROWS, 1e308), "weights that sum to inf"),
        (["a"] * ROWS, "sample_weight must be an array of real numbers"),
        (["1"] * ROWS, "sample_weight must be an array of real numbers"),
        (np.array(["1"] * ROWS, object), "sample_weight must be an array of real numbers"),
        (np.ma.masked_equal(np.arange(ROWS), 3), "sample_weight has masked entries"),
        (DAYS, "sample_weight must be an array of real numbers"),
        (DAYS - DAYS[0], "sample_weight must be an array of real numbers"),
        (list(DAYS), "sample_weight must be an array of real numbers"),
        (pd.Series(DAYS).dt.tz_localize("UTC"), "sample_weight must be an array of real numbers"),
    ],
)
def test_what_cannot_be_a_weight_is_refused_by_name_and_changes_nothing(weights, message):
    x, y = data()
    model = regressor(epochs=1).fit(x, y)
    theta_before = model.theta_.copy()
    for call in (model.fit, model.partial_fit):
        with pytest.raises((TypeError, ValueError), match=message):
            call(x, y, sample_weight=weights)
    assert np.array_equal(model.theta_, theta_before)


def test_weights_that_sum_to_1_are_questioned_where_there_is_a_prior():
    x, y = data()
    normalised = np.full(ROWS, 1 / ROWS)
    with pytest.warns(
        UserWarning, match="sums to 1, so that all 40 rows together count as one row"
    ):
        regressor(epochs=1).fit(x, y, sample_weight=normalised)
    regressor(epochs=1, inference="mle").fit(x, y, sample_weight=normalised)
    regressor(epochs=1).fit(x[:1], y[:1], sample_weight=[1.0])


# --- classes


@pytest.mark.equation("D45")
@pytest.mark.parametrize("class_weight", ["balanced", {"no": 3.0, "yes": 0.5}, {"perhaps": 0.0}])
def test_the_weight_of_a_class_is_that_of_its_rows(class_weight):
    x, y = data("class")
    complete = (
        class_weight
        if class_weight == "balanced"
        else {"no": 1.0, "perhaps": 1.0, "yes": 1.0} | class_weight
    )
    rows = compute_sample_weight(complete, y)
    by_class = classifier(class_weight=class_weight).fit(x, y)
    by_row = classifier().fit(x, y, sample_weight=rows)
    assert np.allclose(by_class.theta_, by_row.theta_, rtol=1e-9, atol=1e-12)
    v = counts() + 0.5
    if class_weight != "balanced":
        of_class_and_row = classifier(class_weight=class_weight).fit(x, y, sample_weight=v)
        assert np.array_equal(of_class_and_row.theta_, classifier().fit(x, y, v * rows).theta_)


def test_balanced_classes_that_occur_share_the_weight_of_the_rows_equally():
    x, y = data("class")
    occurs = y != "perhaps"
    balanced = classifier(class_weight="balanced").fit(x, y, sample_weight=occurs * 1.0)
    share = occurs.sum() / 2 / np.array([(y == label).sum() for label in ("no", "yes")])
    by_hand = classifier().fit(x, y, sample_weight=occurs * np.where(y == "no", *share))
    assert np.allclose(balanced.theta_, by_hand.theta_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("equal", "The 'class_weight' parameter of BayesianMLPClassifier"),
        (2.0, "The 'class_weight' parameter of BayesianMLPClassifier"),
        ({"maybe": 1.0}, "are not in class_weight"),
        ({"no": -1.0}, "Negative values in data passed to `sample_weight`"),
        ({"no": float("nan")}, "sample_weight contains NaN"),
        ({"no": 0, "perhaps": 0, "yes": 0}, "sample_weight|Sample weights"),
    ],
)
def test_what_cannot_be_a_class_weight_is_refused(value, message):
    x, y = data("class")
    with pytest.raises(ValueError, match=message):
        classifier(class_weight=value).fit(x, y)


def test_partial_fit_takes_a_dict_but_cannot_balance():
    x, y = data("class")
    labels = np.unique(y)
    class_weight = {"no": 2.0}
    by_class = (
        classifier(class_weight=class_weight).partial_fit(x, y, classes=labels).partial_fit(x, y)
    )
    rows = np.where(y == "no", 2.0, 1.0)
    by_row = classifier().partial_fit(x, y, classes=labels, sample_weight=rows)
    assert np.array_equal(by_class.theta_, by_row.partial_fit(x, y, sample_weight=rows).theta_)
    with pytest.raises(ValueError, match="class_weight must not be 'balanced' with partial_fit"):
        classifier(class_weight="balanced").partial_fit(x, y, classes=labels)


# --- ensembles and routing


def test_boosted_classifiers_fit_better_than_one():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (120, 2))
    y = (x**2).sum(axis=1) < 0.6  # no line divides these
    weak = BayesianMLPClassifier(
        (2,), inference="mle", epochs=60, batch_size=1000, random_state=0, progress=False
    )
    boosted = AdaBoostClassifier(weak, n_estimators=12, random_state=0).fit(x, y)
    assert len(boosted.estimators_) > 1
    assert boosted.score(x, y) > weak.fit(x, y).score(x, y) + 0.1


def test_weights_are_routed_through_a_pipeline_and_a_search():
    (x, y), v = data(), counts() + 0.5
    with config_context(enable_metadata_routing=True):
        learner = regressor(**whole()).set_fit_request(sample_weight=True)
        learner.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        steps = make_pipeline(scaler, learner)
        grid = {"bayesianmlpregressor__prior__scale": [0.1, 1.0]}
        search = GridSearchCV(steps, grid, cv=2).fit(x, y, sample_weight=v)
        best = search.best_estimator_
        [scale] = search.best_params_.values()
        alone = regressor(**whole(prior=GaussianPrior(scale)))
        alone.fit(scaler.fit_transform(x), y, sample_weight=v)
        assert np.array_equal(best[-1].theta_, alone.theta_)
        unrouted = regressor(**whole()).set_fit_request(sample_weight=False)
        plain = GridSearchCV(make_pipeline(scaler, unrouted), grid, cv=2).fit(x, y)
        assert not np.array_equal(plain.best_estimator_[-1].theta_, best[-1].theta_)
        for request in ("fit", "partial_fit", "score"):
            assert hasattr(learner, f"set_{request}_request")

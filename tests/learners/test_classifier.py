"""The classifier: labels of any type, probabilities that add up, entropies that split."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_learners import class_blobs, classifier, fitted_state

from bbb_numpy import (
    BayesianMLPClassifier,
    BernoulliLikelihood,
    CategoricalLikelihood,
    GaussianPrior,
)

pytestmark = pytest.mark.brief


def test_it_is_a_step_of_a_pipeline_and_scored_by_any_metric():
    x, y = class_blobs(3)
    inside = make_pipeline(StandardScaler(), classifier(standardize=False, epochs=30))
    assert cross_val_score(inside, x, y, cv=3, scoring="neg_log_loss").min() > -np.log(3)


@pytest.mark.slow
def test_real_structure_is_found_at_the_defaults():
    x, y = class_blobs(3, rows=150)
    model = BayesianMLPClassifier(random_state=0).fit(x, y)
    x_new, y_new = class_blobs(3, rows=300, seed=1)
    assert model.score(x_new, y_new) > 0.75  # the best possible is about 0.8
    assert model.log_predictive_density(x_new, y_new).mean() > -0.65
    assert model.score(x_new, (y_new + 1) % 3) < 0.2  # the check can fail


# Labels

TYPES = {
    "text": np.array(["no", "yes", "maybe"]),
    "object": np.array(["no", "yes", "maybe"], object),
    "int": np.array([7, -3, 40]),
    "unsigned": np.array([7, 2**64 - 1, 40], np.uint64),
    "whole floats": np.array([7.0, -3.0, 40.0]),
    "dates": np.array(["2020", "2021", "2022"], "datetime64[Y]"),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("labels", TYPES.values(), ids=TYPES)
def test_labels_of_any_type_come_back_in_that_type(labels, classes):
    x, codes = class_blobs(classes)
    y, order = labels[codes], np.argsort(labels[:classes])
    model, plain = classifier().fit(x, y), classifier().fit(x, np.argsort(order)[codes])
    np.testing.assert_array_equal(model.classes_, np.sort(labels[:classes]))
    assert model.predict(x).dtype == model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.theta_, plain.theta_)
    np.testing.assert_array_equal(model.predict(x), model.classes_[plain.predict(x)])
    assert model.score(x, y) == plain.score(x, np.argsort(order)[codes])
    assert fitted_state(classifier().fit(x, list(y))) == fitted_state(model)


def test_truth_values_and_a_pandas_column():
    x, y = class_blobs()
    model = classifier().fit(x, y > 0)
    assert model.classes_.dtype == bool
    text = pd.Series(np.where(y > 0, "on", "off"), dtype="category")
    frame = pd.DataFrame(x, columns=["a", "b"])
    of_text = classifier().fit(frame, text)
    assert list(of_text.classes_) == ["off", "on"]
    np.testing.assert_array_equal(of_text.predict(frame) == "on", model.predict(x))


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda y: np.where(y, "a", "a"), ValueError, "y has only one class, 'a'"),
        (lambda y: np.arange(60) % 3, ValueError, r"Bernoulli.* has two classes; y has 3"),
        (lambda y: [], ValueError, "inconsistent numbers of samples"),
    ],
)
def test_bad_labels_are_named_and_change_nothing(spoil, error, message):
    x, y = class_blobs()
    model = classifier(likelihood="bernoulli").fit(x, y)
    state_before = fitted_state(model)
    with pytest.raises(error, match=message):
        model.fit(x, spoil(y))
    assert fitted_state(model) == state_before


def test_labels_unknown_to_the_model():
    x, y = class_blobs()
    model = classifier().fit(x, y)
    state_before = fitted_state(model)
    strange = np.where(np.arange(60) == 3, 9, y)
    for method in (model.partial_fit, model.log_predictive_density):
        with pytest.raises(ValueError, match=r"label 9 at row 3, .* classes \[0, 1\]"):
            method(x, strange)
    right = model.predict(x) == y
    right[3] = False
    # an unknown label is predicted wrongly
    assert model.score(x, strange) == pytest.approx(right.mean(), rel=1e-12)
    with pytest.raises(ValueError, match=r"label '0' at row 0"):
        model.log_predictive_density(x, y.astype(str))
    assert fitted_state(model) == state_before


# Probabilities


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("classes", "likelihood"), [(2, None), (2, "categorical"), (4, None)])
def test_probabilities_add_up_and_decide(classes, likelihood, dtype):
    x, y = class_blobs(classes)
    model = classifier(likelihood=likelihood, dtype=dtype, epochs=20).fit(x, y)
    single = classes == 2 and likelihood is None
    expected_class = BernoulliLikelihood if single else CategoricalLikelihood
    assert type(model.estimator_.model.likelihood) is expected_class
    assert model.estimator_.model.network.sizes == (2, 5, 1 if single else classes)
    p = model.predict_proba(x)
    assert p.dtype == np.float64
    assert p.shape == (60, classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(x), model.classes_[p.argmax(axis=1)])
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), p, rtol=tolerance)
    np.testing.assert_allclose(
        model.log_predictive_density(x, y), np.log(p[np.arange(60), y]), rtol=1e-4, atol=tolerance
    )


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
def test_log_probabilities_of_what_is_next_to_impossible_are_finite(likelihood):
    x, y = class_blobs()
    model = classifier(likelihood=likelihood, epochs=30, prior=GaussianPrior(3.0)).fit(x, y)
    distant_x = 1e4 * x
    p, logs = model.predict_proba(distant_x), model.predict_log_proba(distant_x)
    assert (p == 0).any()
    assert np.isfinite(logs).all()
    assert logs.min() < -800  # far below the logarithm of the smallest number
    np.testing.assert_allclose(logs[p > 1e-8], np.log(p[p > 1e-8]), atol=1e-12)


@pytest.mark.equation("D29")
@pytest.mark.parametrize("classes", [2, 3])
def test_the_entropy_splits_into_what_data_could_tell_and_what_they_could_not(classes):
    x, y = class_blobs(classes)
    model = classifier(epochs=20).fit(x, y)
    d = model.predict_distribution(x)
    functions = model.sample_functions(x, 20)  # (N, C, S): those that predict_proba averages
    np.testing.assert_allclose(functions.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(functions.mean(axis=2), d.proba, rtol=1e-10)
    entropy = -(functions * np.log(functions)).sum(axis=1)  # (N, S)
    np.testing.assert_allclose(d.aleatoric, entropy.mean(axis=1), rtol=1e-9)
    total = -(d.proba * np.log(d.proba)).sum(axis=1)
    np.testing.assert_allclose(d.total, total, rtol=1e-12)
    np.testing.assert_allclose(d.epistemic, total - entropy.mean(axis=1), rtol=1e-9, atol=1e-12)
    assert (d.epistemic > 0).all()


def test_far_from_the_data_the_classes_are_less_certain_than_a_point_estimate_says():
    # Far out only the direction counts. The posterior doubts as many of them as its boundary
    # varies by; a single boundary those within about 1 / radius of it. (Of five units all may be
    # off: then distance does not count, and one network is in doubt of a whole sector.)
    x, y = class_blobs()
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    distant_x = 1000 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    bayes, point = (
        classifier(hidden_layer_sizes=(50,), inference=q, epochs=200)
        .fit(x, y)
        .predict_distribution(distant_x)
        for q in ("mean-field", "map")
    )
    assert (point.epistemic == 0).all()
    assert bayes.epistemic.mean() > 0.01
    assert bayes.total.mean() > 10 * point.total.mean()


# Going on


def test_classes_may_come_later_than_their_rows():
    x, y = class_blobs(3)
    model = classifier().partial_fit(x[y < 2], y[y < 2], classes=[0, 1, 2], epochs=2)
    assert model.predict_proba(x).shape == (60, 3)
    model.partial_fit(x[y == 2], y[y == 2])
    assert model.n_iter_ == 3


def test_partial_fit_needs_to_know_all_classes_and_keeps_them():
    x, y = class_blobs(3)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        classifier().partial_fit(x, y)
    with pytest.raises(ValueError, match=r"not among the classes"):
        classifier().partial_fit(x, y, classes=[0, 1])
    with pytest.raises(ValueError, match="y has only one class"):
        classifier().partial_fit(x, y, classes=[1])
    model = classifier().fit(x, y)
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(x, y, classes=[0, 1])
    with pytest.raises(ValueError, match="changed since it was fitted"):
        classifier(likelihood="bernoulli").fit(x[y < 2], y[y < 2]).set_params(
            likelihood="categorical", hidden_layer_sizes=(5,)
        ).partial_fit(x[y < 2], y[y < 2])

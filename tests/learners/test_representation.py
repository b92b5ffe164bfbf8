"""representation: what scikit-learn's users look for in a fitted network, and find."""

import warnings
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import threadpoolctl
from scipy.stats import spearmanr
from sklearn import clone, config_context
from sklearn.datasets import make_friedman1
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.neural_network import MLPRegressor

from bbb_numpy import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    GaussianPrior,
    Sampling,
    load,
    save,
)
from bbb_numpy.evaluation import predictive
from bbb_numpy.learners import ensemble
from bbb_numpy.training.schedules import TrainingSchedule

pytestmark = [pytest.mark.brief, pytest.mark.filterwarnings("ignore:.*divergent transitions")]
X = np.random.default_rng(0).standard_normal((40, 3))
Y = X[:, 0] - 0.5 * X[:, 2] ** 2


def regressor(**params):
    settings = {"hidden_layer_sizes": (5, 4), "epochs": 3, "random_state": 0, "kl_warm_up": "none"}
    return BayesianMLPRegressor(**settings | params)


def sampled():
    sampling = Sampling("hmc", chains=2, draws=4, warm_up=4, start="prior")
    return regressor(inference=sampling, kl_warm_up=None, epochs=None)


def linear_map(model, x):
    """The network that has the posterior means as its weights."""
    f = (x - model.x_mean_) / model.x_scale_
    for w, b in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        f = np.maximum(f @ w + b, 0.0)
    f = f @ model.coefs_[-1] + model.intercepts_[-1]
    return (f * model.y_scale_ + model.y_mean_)[:, 0]


# --- weights


@pytest.mark.parametrize("inference", ["mean-field", "full-rank", "map", "mle"])
def test_weights_have_the_shapes_of_scikit_learn_and_those_of_a_point_are_the_network(inference):
    model = regressor(inference=inference).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sklearn_mlp = MLPRegressor(hidden_layer_sizes=(5, 4), max_iter=1).fit(X, Y)
    for ours, theirs in (
        (model.coefs_, sklearn_mlp.coefs_),
        (model.intercepts_, sklearn_mlp.intercepts_),
    ):
        assert [array.shape for array in ours] == [array.shape for array in theirs]
    if inference in ("map", "mle"):
        np.testing.assert_allclose(linear_map(model, X), model.predict(X), rtol=1e-10)


def test_weights_of_draws_are_their_means_and_of_a_gaussian_the_mean_of_its_samples():
    model = sampled().fit(X, Y)
    for layer in range(3):
        draws = model.draws_.block(f"W{layer}").reshape(8, *model.coefs_[layer].shape)
        np.testing.assert_allclose(model.coefs_[layer], draws.mean(axis=0), rtol=1e-12)
        biases = model.draws_.block(f"b{layer}").reshape(8, -1)
        np.testing.assert_allclose(model.intercepts_[layer], biases.mean(axis=0), rtol=1e-12)
    model = regressor().fit(X, Y)
    eps = model.estimator_.draw_weights(np.random.default_rng(0), 20_000)
    first = model.estimator_.weights(model.theta_, eps)[:, :15].reshape(-1, 3, 5)
    error = first.std(axis=0) / 20_000**0.5
    assert (np.abs(first.mean(axis=0) - model.coefs_[0]) < 5 * error).all()


# --- inputs that are turned

TURNED = np.c_[X, X.sum(axis=1) + 1e-3 * np.sin(7 * X[:, 0])]


@pytest.mark.equation("D60")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weights_of_turned_inputs_are_turned_back(dtype, tmp_path):
    model = regressor(dtype=dtype).fit(TURNED, Y)
    q, axes = model.estimator_, model.x_axes_
    q.layout.views(model.theta_)["rho"][:20] = np.linspace(-4.0, 2.0, 20)  # each its own
    eps = q.draw_weights(np.random.default_rng(0), 20_000, dtype)
    first = axes @ q.weights(model.theta_, eps)[:, :20].reshape(-1, 4, 5).astype(float)
    mean, deviation = first.mean(axis=0), first.std(axis=0)
    assert (np.abs(mean - model.coefs_[0]) < 5 * deviation / 20_000**0.5).all()
    power = ((model.coefs_[0] / deviation) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.feature_importances_, power / power.sum(), rtol=0.05)
    z = (TURNED - model.x_mean_) / model.x_scale_ @ axes
    f = predictive.predict(
        q, model.theta_, z, rng=np.random.default_rng(model.predict_seed_), samples=100
    )
    expected = f.mean[:, 0] * model.y_scale_ + model.y_mean_
    np.testing.assert_allclose(model.predict(TURNED), expected, rtol=1e-5)
    save(model, tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(TURNED), model.predict(TURNED))
    for column in range(4):  # of X, not of the axes
        with pytest.raises(ValueError, match=rf"column {column}\b"):
            model.predict(TURNED + 10.0 ** (160 if dtype == "float64" else 22) * np.eye(4)[column])
    assert not hasattr(model.fit(X[:, :1].repeat(4, axis=1), Y), "x_axes_")


@pytest.mark.equation("D60")
def test_chains_draw_weights_of_turned_inputs():
    model = sampled().set_params(prior="layerwise", warm_start=True).fit(TURNED, Y)
    axes, weights = model.x_axes_, model.draws_.block("W0").mean(axis=(0, 1)).reshape(4, 5)
    np.testing.assert_allclose(model.coefs_[0], axes @ weights, rtol=1e-12)
    turned = (TURNED - model.x_mean_) / model.x_scale_ @ axes
    np.testing.assert_allclose(model.draws_.target.x, turned)
    assert model.fit(TURNED, Y).x_axes_ is axes  # chains go on along them


@pytest.mark.equation("D60")
def test_members_of_an_ensemble_are_trained_on_turned_inputs(monkeypatch):
    short = TrainingSchedule(epochs=2, batch_size=32, samples=1, learning_rate=1e-2)
    monkeypatch.setattr(ensemble, "schedule_for", lambda *_: short)
    model = BayesianMLPRegressor((5,), inference=ensemble.Ensemble(2, 3), random_state=0)
    turned = (TURNED - model.fit(TURNED, Y).x_mean_) / model.x_scale_ @ model.x_axes_
    np.testing.assert_allclose(model.draws_.target.x, turned, rtol=1e-5, atol=1e-5)


def test_members_are_the_same_whatever_number_of_threads_blas_has(monkeypatch):
    class Stopped(Exception):
        pass

    def counted(*_, **__):
        pools = threadpoolctl.threadpool_info()
        raise Stopped({pool["num_threads"] for pool in pools if pool["user_api"] == "blas"})

    monkeypatch.setattr(ensemble, "fit", counted)
    model = BayesianMLPRegressor((5,), inference=ensemble.Ensemble(2, 3), random_state=0)
    with threadpoolctl.threadpool_limits(2, "blas"), pytest.raises(Stopped, match=r"\{1\}"):
        model.fit(X, Y)


@pytest.mark.equation("D60")
def test_nothing_is_turned_for_a_prior_that_has_corners_nor_for_another_posterior():
    for params in (
        {"prior": "laplace"},
        {"inference": "map"},
        {"inference": "full-rank"},
        {"standardize": False},
    ):
        assert not hasattr(regressor(**params).fit(TURNED, Y), "x_axes_")
    on = regressor(hidden_layer_sizes=(5,), prior="layerwise", warm_start=True).fit(TURNED, Y)
    axes = on.x_axes_
    assert on.fit(TURNED, Y).x_axes_ is axes  # it goes on along the same axes


# --- importances


def test_importances_are_shares_of_the_squared_signal_to_noise_of_the_first_layer():
    model = regressor().fit(X, Y)
    blocks = model.estimator_.layout.views(model.theta_)
    mean, sigma = blocks["mu"][:15], np.log1p(np.exp(blocks["rho"][:15]))
    power = ((mean / sigma) ** 2).reshape(3, 5).sum(axis=1)
    np.testing.assert_allclose(model.feature_importances_, power / power.sum(), rtol=1e-12)
    for block, value, why in (("mu", 0.0, "mean weight"), ("rho", -1000.0, "scale must be > 0")):
        blocks[block][:] = value
        with pytest.raises(AttributeError, match=why):
            _ = model.feature_importances_
        assert "feature_importances_" not in dir(model)  # and no tool breaks that looks there


def test_importances_find_the_inputs_that_matter():
    x, y = make_friedman1(150, random_state=0, noise=1.0)  # five of ten inputs matter
    model = BayesianMLPRegressor(epochs=400, random_state=0).fit(x, y)
    importances = model.feature_importances_
    assert importances[:4].min() > importances[5:].max()
    shuffled = permutation_importance(model, x, y, n_repeats=2, random_state=0).importances_mean
    assert spearmanr(importances, shuffled).statistic > 0.6
    selected = SelectFromModel(model, prefit=True, max_features=4, threshold=-np.inf).get_support()
    assert selected.tolist() == [True] * 4 + [False] * 6


@pytest.mark.parametrize("model", [sampled(), regressor(inference="full-rank")], ids=["draws", "f"])
def test_importances_are_refused_where_weights_cannot_be_judged_one_by_one(model):
    model.fit(X, Y)
    with pytest.raises(AttributeError, match=r"feature_importances_.*permutation_importance"):
        _ = model.feature_importances_
    assert not hasattr(model, "feature_importances_")


# --- the loss


def test_the_loss_curve_is_the_free_energy_by_epoch():
    model = regressor(epochs=4).fit(X, Y)
    energy = [epoch.kl + epoch.nll for epoch in model.history_]
    np.testing.assert_allclose(model.loss_curve_, energy, rtol=1e-12)
    assert model.loss_ == model.loss_curve_[-1]
    model.partial_fit(X, Y, epochs=2)
    assert len(model.loss_curve_) == model.n_iter_ == 6
    assert not hasattr(sampled().fit(X, Y), "loss_curve_")


def test_verbose_prints_every_epoch_or_every_so_many_and_a_bar_stays_whole(capsys):
    model = regressor(epochs=4, verbose=True).fit(X, Y)
    lines = [f"Epoch {i + 1}, loss = {loss:.8g}" for i, loss in enumerate(model.loss_curve_)]
    assert capsys.readouterr().out.splitlines() == lines
    quiet = regressor(epochs=4).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    np.testing.assert_array_equal(quiet.theta_, model.theta_)
    model.set_params(verbose=2, progress=True).fit(X, Y).partial_fit(X, Y)
    out, err = capsys.readouterr()
    assert out.splitlines() == [lines[1], lines[3]]
    assert "4/4" in err
    assert "loss" not in err
    model = sampled().set_params(verbose=1).fit(X, Y)
    assert capsys.readouterr().out == f"{model.draws_.summary()}\n"


# --- warm starts


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    in_two_calls = regressor(epochs=3).fit(X, Y).partial_fit(X, Y, epochs=3)
    model = regressor(epochs=3, warm_start=True).fit(X, Y)
    first = model.theta_
    np.testing.assert_array_equal(model.fit(X, Y).theta_, in_two_calls.theta_)
    assert model.n_iter_ == 6
    mean = model.y_mean_
    model.fit(X + 5.0, Y + 5.0)
    np.testing.assert_array_equal(model.y_mean_, mean)
    assert not hasattr(clone(model), "estimator_")
    before, message = (
        model.theta_,
        "changed since .* so that fit with warm_start=True cannot continue from it",
    )
    with pytest.raises(ValueError, match=message):
        model.set_params(prior=GaussianPrior(0.1)).fit(X, Y)
    assert model.theta_ is before
    model.set_params(prior=None)
    np.testing.assert_array_equal(model.set_params(warm_start=False).fit(X, Y).theta_, first)
    assert model.n_iter_ == 3


CHANGED = ("inference", "kl_warm_up", "epochs")


def test_a_warm_start_keeps_to_the_kind_of_inference_and_holds_no_rows_out():
    model = sampled().fit(X, Y).set_params(inference="map", warm_start=True)
    with pytest.raises(ValueError, match="which fit with warm_start=True cannot train further"):
        model.fit(X, Y)
    model = sampled().fit(X, Y).set_params(inference=None)
    with pytest.raises(ValueError, match="set inference='mean-field' and warm_start=False, and"):
        model.partial_fit(X, Y)
    model.set_params(inference="mean-field").fit(X, Y).partial_fit(X, Y)
    model = regressor(warm_start=True).fit(X, Y)
    model.set_params(**{name: sampled().get_params()[name] for name in CHANGED})
    with pytest.raises(ValueError, match="warm_start=True cannot continue by sampling"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=r"leave validation_fraction=0\.5 out"):
        regressor(warm_start=True, validation_fraction=0.5).fit(X, Y)


# --- HTML


def shown(model):
    """Return the cells of the last table; tags that are not closed are errors."""
    text = model._repr_html_()
    table = ElementTree.fromstring(text[text.index('<div class="bbb-numpy-fitted">') :])
    return dict(("".join(cell.itertext()) for cell in row) for row in table.iter("tr"))


def test_html_shows_the_parts_the_sizes_the_noise_and_how_the_fit_went():
    model = regressor().fit(X, Y)
    facts = shown(model)
    assert facts["network"] == "3 → 5 → 4 → 1, relu: 49 weights"
    assert facts["prior"] == "GaussianPrior(scale=0.5, learn=False)"
    assert facts["learned"] == "99 numbers, 1 of them not of weights"
    assert facts["trained"] == f"3 epochs, free energy {model.loss_:.6g} nats"
    assert facts["noise"] == f"{model.noise_scale_[0]:.4g} (units of y)"
    assert facts["warning"] == model.fit_report_.message
    assert model._repr_mimebundle_()["text/html"].startswith("<style>")
    good = regressor(epochs=300).fit(X, Y)
    assert shown(good)["warnings"] == "none"


def test_html_of_draws_and_classes_and_several_outputs():
    model = sampled().fit(X, Y)
    assert shown(model)["posterior"] == model.draws_.summary()
    labels = BayesianMLPClassifier((3,), epochs=2, random_state=0).fit(X, Y > 0)
    assert "noise" not in shown(labels)
    two_outputs = regressor().fit(X, np.c_[Y, Y])
    assert shown(two_outputs)["noise"].count(",") == 1
    assert "log density" not in shown(two_outputs.partial_fit(X, np.c_[Y, Y]))


def test_html_escapes_what_it_shows_and_is_that_of_scikit_learn_before_fit():
    model = regressor().fit(X, Y)
    model.fit_report_ = replace(model.fit_report_, findings=("<script>&", "b"), causes=("c",))
    assert "<script>&amp;" not in model._repr_html_().split("bbb-numpy-fitted")[1]
    assert shown(model)["warning"].startswith("<script>&; b")  # once it is read again
    plain = regressor()._repr_html_()
    assert "Not fitted" in plain
    assert "bbb-numpy-fitted" not in plain
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}

"""The methods of the benchmark: together as alone, with the priors and the lengths asked for."""

import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from uci_trials import TINY, part, toy

from bbb_numpy import Sampling
from bbb_numpy.evaluation.predictive import mixture, predict
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners import regressor
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.objectives import MAP
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.parts.priors import LayerwiseGaussianPrior
from bbb_numpy.training import fit as train
from bbb_numpy.training.laplace import Laplace
from bbb_studies.dropout import Dropout
from bbb_studies.uci import methods
from bbb_studies.uci.methods import METHODS, SAMPLERS, Candidate, Fit, fit
from bbb_studies.uci.trials import Scaled, mixing
from exactgrad import check_gradient

pytestmark = pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")
PRIORS = [Candidate(None), Candidate(1.0), Candidate(2.0)]
TRAINED = [name for name, method in METHODS.items() if method.estimator is not None]
CHOOSING = [name for name, method in METHODS.items() if method.criterion != "nothing"]
HETEROSCEDASTIC = ("hmc-heteroscedastic",)


def bits(found):
    return [theta.tobytes() for theta in found.thetas]


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize(("dtype", "units"), [("float32", 50), ("float64", 4)])
def test_candidates_fitted_together_are_those_fitted_alone_bit_for_bit(method, dtype, units):
    x, y = part(dtype, 45)  # the last batch is smaller
    settings = replace(TINY, dtype=dtype, units=units)
    together = fit(x, y, method, PRIORS, settings, [7, 0])
    alone = [fit(x, y, method, [one], settings, [7, 0])[0] for one in PRIORS]
    assert [bits(found) for found in together] == [bits(found) for found in alone]
    assert {theta.dtype for found in together for theta in found.thetas} == {np.dtype(dtype)}
    assert len({*map(str, map(bits, alone))}) == 3  # the prior does something
    bounds = [found.bound for found in together]
    assert bounds == pytest.approx([found.bound for found in alone], rel=1e-5)


@pytest.mark.parametrize("method", CHOOSING)
def test_a_candidate_says_the_scales_of_the_layers_and_the_noise_is_learned(method):
    (found,) = fit(*part(), method, [Candidate(3.0)], TINY, [7, 0])
    for source in found.sources:
        assert isinstance(source.model.prior, LayerwiseGaussianPrior)
        assert source.model.prior.scales == (3.0, 1.5)  # 4 units: 3 / sqrt(4)
        assert source.model.network.sizes == (3, 4, 2 if method in HETEROSCEDASTIC else 1)
    assert methods.model(3, Candidate(None), TINY).prior.scales == (1.0, 1.0)
    if method not in HETEROSCEDASTIC:
        for theta in found.thetas:
            assert np.all(theta[..., -1] != np.float32(math.log(0.3)))  # its beginning


@pytest.mark.parametrize(
    ("method", "rate", "epochs"),
    [("map", 1.0, (8, 8, 2)), ("mean-field", 1.0, (8, 8, 2)), ("ivon", 20.0, (2, 2, 1))],
)
def test_step_size_and_length_are_those_of_the_candidate(monkeypatch, method, rate, epochs):
    asked = []

    def noticing(estimator, state, x, y, recipe, **options):
        asked.append((recipe.optimizer.learning_rate, recipe.epochs))
        return train(estimator, state, x, y, recipe, **options)

    monkeypatch.setattr(methods.training, "fit", noticing)
    x, y = part()  # three batches of 16
    for one in (Candidate(1.0), Candidate(1.0, 3e-3), Candidate(1.0, 3e-3, 0.25)):
        fit(x, y, method, [one], TINY, [7, 0])
    rates = (1e-2 * rate, 3e-3 * rate, 3e-3 * rate)
    assert asked == list(zip(rates, epochs, strict=True))  # of 24 steps, of IVON 4


def test_the_bound_is_the_free_energy_per_row_at_the_end():
    x, y = part("float64")
    settings = replace(TINY, dtype="float64", steps=900)
    (found,) = fit(x, y, "mean-field", [Candidate(1.0)], settings, [7, 0])
    (estimator,), (theta,) = found.sources, found.thetas
    rng = np.random.default_rng(1)
    values = [
        estimator.value_and_grad(theta, estimator.draw_weights(rng, 1), x, y, 1.0)[0] / len(x)
        for _ in range(800)
    ]
    # the bound is a mean over 15 epochs, whose steps move theta a little still
    error = np.std(values) * math.sqrt(1 / 800 + 1 / 15)
    assert found.bound == pytest.approx(np.mean(values), abs=4 * error)
    assert 4 * error < 0.2


@pytest.mark.parametrize("method", SAMPLERS)
def test_samplers_return_all_draws_of_all_chains_and_how_they_went(method):
    (found,) = fit(*part(), method, [Candidate(1.0)], TINY, [7, 0])
    (draws,) = found.thetas
    # W0, b0, W1, b1, and the noise or the second output's weights and bias
    rest = 4 + 1 if method in HETEROSCEDASTIC else 1
    assert draws.shape == (TINY.chains * TINY.draws, 3 * 4 + 4 + 4 + 1 + rest)
    told = {"acceptance", "divergent", "gradients_per_draw", "step_size"}
    unadjusted = method in ("mclmc", "sghmc")
    assert set(found.notes) == told | ({"expected_bias"} if unadjusted else set())
    assert 0 <= found.notes["acceptance"] <= 1


def test_members_share_the_samples_and_a_point_needs_one():
    point = Reparameterised(methods.model(3, Candidate(1.0), TINY), PointMass(), MAP())
    spread = Reparameterised(methods.model(3, Candidate(1.0), TINY))
    dropout = Dropout(point.model, PointMass(), MAP(), (0.1, 0.1))
    theta = np.zeros(1)
    assert [n for *_, n in Fit((point, point), (theta, theta)).members(500)] == [1, 1]
    assert [n for *_, n in Fit((spread,), (theta,)).members(500)] == [500]
    assert [n for *_, n in Fit((dropout,), (theta,)).members(500)] == [500]
    assert [n for *_, n in Fit((spread,) * 3, (theta,) * 3).members(500)] == [167] * 3  # at least


@pytest.mark.brief
def test_the_default_learner_is_the_one_that_a_user_gets(monkeypatch):
    brief = partial(BayesianMLPRegressor, epochs=20)
    monkeypatch.setattr(regressor, "BayesianMLPRegressor", brief)
    data = toy(48)
    scaled = Scaled(*moments(data.x, True), *moments(data.y, True))
    x, y = scaled.inputs(data.x, "float64"), scaled.targets(data.y, "float64")
    (found,) = fit(x, y, "default", [Candidate(None)], TINY, [7, 0])
    seed = int(np.random.default_rng([7, 0]).integers(2**31))
    user = brief(random_state=seed).fit(data.x, data.y[:, 0])
    np.testing.assert_allclose(found.thetas[0], user.theta_, rtol=1e-6, atol=1e-9)
    assert found.notes == {"warnings": 1.0, "epochs": float(user.n_iter_)}


def test_the_default_learner_that_samples_keeps_its_draws_and_their_mixing(monkeypatch):
    brief = partial(BayesianMLPRegressor, inference=Sampling("hmc", chains=2, draws=8, warm_up=8))
    monkeypatch.setattr(regressor, "BayesianMLPRegressor", brief)
    x, y = part()
    (found,) = fit(x, y, "default", [Candidate(None)], TINY, [7, 0])
    seed = int(np.random.default_rng([7, 0]).integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains of eight draws have not mixed
        user = brief(random_state=seed).fit(x.astype(float), y[:, 0].astype(float))
    assert bits(found) == [user.theta_.tobytes()]
    assert found.notes.keys() == {"warnings"}
    assert "r_hat_functions" in mixing(found.draws)


@pytest.mark.equation("D60")
def test_weights_that_the_default_learner_has_for_turned_inputs_are_turned_back(monkeypatch):
    sampling = Sampling("hmc", chains=2, draws=8, warm_up=8)
    brief = partial(BayesianMLPRegressor, inference=sampling, prior="gaussian", predict_samples=16)
    monkeypatch.setattr(regressor, "BayesianMLPRegressor", brief)
    x, y = part()
    x = np.c_[x, x.sum(axis=1) + 1e-3 * np.sin(7.0 * x[:, 0])]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    (found,) = fit(x, y, "default", [Candidate(None)], TINY, [7, 0])
    seed = int(np.random.default_rng([7, 0]).integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains of eight draws have not mixed
        user = brief(random_state=seed).fit(x.astype(float), y[:, 0].astype(float))
    assert hasattr(user, "x_axes_")
    rng = np.random.default_rng(0)
    mean = predict(found.sources[0], found.thetas[0], x, rng=rng, samples=16).mean[:, 0]
    expected = (user.predict(x) - user.y_mean_) / user.y_scale_
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("covariance", ["full", "last-layer"])
def test_laplace_is_the_learners_with_the_units_and_steps_of_the_others(covariance):
    x, y = part()  # three batches of 16
    rng = np.random.default_rng(7)
    rng.integers(2**63)  # of the learner's predictions
    found = methods._laplace(x, y, Candidate(None), TINY, rng, covariance)
    asked = {"epochs": 4, "batch_size": 16, "standardize": False, "dtype": "float32"}  # of 24 steps
    user = BayesianMLPRegressor((4,), inference=Laplace(covariance), random_state=7, **asked)
    user.fit(x, y[:, 0])
    assert found.sources == (user.estimator_,)
    assert bits(found) == [user.theta_.tobytes()]
    assert found.notes == {"log_evidence": user.log_evidence_}


def test_swag_is_the_gaussian_of_half_the_snapshots_covariance_and_half_its_diagonal(monkeypatch):
    path = []

    def noticing(*given, **options):
        state = train(*given, **options)
        path.append(state.theta.astype(float))
        return state

    monkeypatch.setattr(methods.training, "fit", noticing)
    (found,) = fit(*part("float64"), "swag", [Candidate(1.0)], TINY, [7, 0])
    (source,), (theta,) = found.sources, found.thetas
    _, *path = path  # the first is the point
    size, blocks = source.model.layout.size, source.layout.views(theta)
    assert len(path) == methods.N_SNAPSHOTS
    np.testing.assert_allclose(blocks["mu"], np.mean(path, axis=0)[:size], rtol=1e-12)
    parts = source.posterior.factor(blocks, Buffers())
    sigma = parts.diagonal.softplus
    covariance = sigma[:, None] * (np.eye(size) + parts.v @ parts.v.T) * sigma
    of_path = np.cov(np.transpose(path)[:size]) / 2
    np.testing.assert_allclose(covariance, of_path + np.diag(np.diag(of_path)), atol=1e-10)


def test_the_gradient_of_dropout_is_that_of_its_cost_with_prior_and_noise():
    x, y = part("float64", 7)
    family = Dropout(methods.model(3, Candidate(2.0), TINY), PointMass(0.3), MAP(), (0.2, 0.5))
    rng = np.random.default_rng(0)
    noise = family.draw(rng, 1, 7)
    family.fill(rng, noise)
    theta = family.init(rng)
    report = check_gradient(lambda theta: family.value_and_grad(theta, noise, x, y, 0.3), theta)
    assert report.passed
    whole = replace(family, rates=(0.0, 0.0)).value_and_grad(theta, noise, x, y, 0.3)
    point = Reparameterised(family.model, PointMass(), MAP())
    theirs = point.value_and_grad(theta, np.empty((1, 0)), x, y, 0.3)
    assert whole.value == pytest.approx(theirs.value, rel=1e-12)
    np.testing.assert_allclose(whole.grad, theirs.grad, rtol=1e-9, atol=1e-12)


def test_noise_that_depends_on_x_is_what_the_samples_say():
    x, y = part("float64", 200)
    noisy = y + np.where(x[:, :1] > 0, 1.0, 0.01) * np.random.default_rng(0).normal(size=y.shape)
    settings = replace(TINY, units=8, start_steps=800, warm_up=40, draws=20, dtype="float64")
    (found,) = fit(x, noisy, "hmc-heteroscedastic", [Candidate(2.0)], settings, [7, 0])
    (source,), (theta,) = found.sources, found.thetas
    rng = np.random.default_rng(1)
    _, deviation = mixture(source, theta, x, rng=rng, samples=20)
    ratio = deviation[:, x[:, 0] > 0.3].mean() / deviation[:, x[:, 0] < -0.3].mean()
    assert ratio > 2.0
    (same,) = fit(x, noisy, "hmc", [Candidate(2.0)], settings, [7, 0])
    _, deviation = mixture(same.sources[0], same.thetas[0], x, rng=rng, samples=20)
    assert np.ptp(deviation, axis=1).max() < 1e-12  # one noise for all rows

"""Starts for samplers: networks trained to MAP, in the order of the numbers that chains draw."""

import signal
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy import (
    MAP,
    MLP,
    Adam,
    BernoulliLikelihood,
    CentredGaussianPrior,
    Cosine,
    EarlyStopping,
    GaussianLikelihood,
    GaussianPrior,
    HeteroscedasticLikelihood,
    LaplacePrior,
    LayerwiseGaussianPrior,
    LogJoint,
    Model,
    PointMass,
    Reparameterised,
    StudentTPrior,
    sample,
)
from bbb_numpy.training import Recipe, ensembles, fit, start
from bbb_numpy.training.ensembles import ensemble_starts

X = np.linspace(-1.0, 1.0, 40)[:, None]
Y = np.sin(3 * X)
SHORT = Recipe(Adam(1e-2), epochs=3)


def model(prior=None, likelihood=None):
    likelihood = likelihood or GaussianLikelihood(0.3, learn=True)
    sizes = (1, 4, likelihood.heads(1))
    return Model(MLP(sizes, "tanh"), prior or GaussianPrior(), likelihood)


@pytest.mark.parametrize(
    ("prior", "recipe", "chains"),
    [
        (GaussianPrior(), SHORT, 3),
        (LaplacePrior(), SHORT, 1),
        (GaussianPrior(), replace(SHORT, epochs=9, early_stopping=EarlyStopping(1, 1e9)), 2),
    ],
    ids=["some", "one, with a prior without a scale to learn", "stopped early"],
)
def test_each_member_is_what_training_makes_of_its_own_start(prior, recipe, chains):
    members = ensemble_starts(model(prior), X, Y, chains, seed=0, recipe=recipe)
    single = Reparameterised(model(prior), PointMass(0.3), MAP())
    rngs = np.random.default_rng(0).spawn(chains)
    for member, rng in zip(members, rngs, strict=True):
        init = start(single, rng, recipe.optimizer)
        alone = fit(single, init, X, Y, recipe, rng=rng, progress=False)
        assert bool(alone.stopped) == bool(recipe.early_stopping)
        np.testing.assert_array_equal(member, alone.theta)


def test_left_to_itself_it_trains_1500_steps_of_32_rows_and_on_many_rows_more(monkeypatch):
    recipes = []

    def noted(member, begin, x, y, recipe, **others):
        recipes.append(recipe)
        return begin

    monkeypatch.setattr(ensembles, "fit", noted)
    few = {1: 1500, 32: 1500, 33: 750, 288: 166, 321: 150, 4096: 150}
    for rows, epochs in {**few, 4097: 1882, 100_000: 81, 10_000_000: 1}.items():
        ensemble_starts(model(), np.zeros((rows, 1)), np.zeros((rows, 1)), 2, seed=0)
        size, rate = (32, 1e-2) if rows in few else (256, 2e-2)
        assert recipes.pop() == Recipe(Adam(rate, schedule=Cosine()), epochs, size)


@pytest.mark.parametrize(
    "likelihood",
    [GaussianLikelihood(0.3, learn=True), HeteroscedasticLikelihood(), BernoulliLikelihood()],
    ids=lambda one: type(one).__name__,
)
def test_members_are_far_from_the_prior_and_the_chains_can_start_there(likelihood):
    y = Y if likelihood.target_kind == "real" else (Y > 0).astype(float)
    whole, recipe = model(likelihood=likelihood), Recipe(Adam(2e-2), epochs=60, batch_size=8)
    members = ensemble_starts(whole, X, y, 4, seed=0, recipe=recipe, dtype="float32")
    joint = LogJoint(whole, X.astype("float32"), y.astype("float32"))
    assert members.shape == (4, joint.layout.size)
    assert members.dtype == np.float32
    prior = joint.draw_prior(np.random.default_rng(0), 4, np.float32)
    untrained = ensemble_starts(whole, X, y, 4, seed=0, recipe=Recipe(epochs=0), dtype="float32")
    for before in (prior, untrained):
        assert joint(members)[0].min() > joint(before)[0].max()
    assert len(np.unique(members[:, 0])) == 4
    draws = sample(whole, X, y, sampler="mh", start=members, draws=2, warm_up=2, dtype="float32")
    assert np.isfinite(draws.log_density).all()


@pytest.mark.parametrize(
    "prior",
    [LayerwiseGaussianPrior((0.5, 0.6), learn=True), StudentTPrior(0.4, 5.0, learn=True)],
    ids=lambda one: type(one).__name__,
)
def test_learned_scales_of_the_prior_start_where_the_model_was_made(prior):
    found = ensemble_starts(model(prior), X, Y, 2, seed=0, recipe=SHORT)
    prior = model(prior).prior  # that knows its network
    joint = LogJoint(model(prior), X, Y)
    blocks = joint.layout.views(found)
    names = [name for name, _ in prior.blocks()]
    assert names
    np.testing.assert_array_equal(
        np.concatenate([blocks[name] for name in names], axis=1), [prior.init(float)] * 2
    )
    assert np.all(blocks["log_noise"] != np.log(0.3)), "the noise is trained"
    weights = joint.weights(found)
    held = replace(prior, learn=False)
    same = ensemble_starts(model(held), X, Y, 2, seed=0, recipe=SHORT)
    np.testing.assert_array_equal(weights, same[:, : weights.shape[1]])


@pytest.mark.parametrize("at", [2, 7], ids=["the first of two", "the second of two"])
def test_ctrl_c_is_an_interrupt_as_any(at):
    calls = [0]

    def pressed(epoch, epochs):
        calls[0] += 1
        if calls[0] == at:
            signal.raise_signal(signal.SIGINT)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        ensemble_starts(model(), X, Y, 2, seed=0, recipe=Recipe(epochs=5, warm_up=pressed))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": 3}, TypeError, "model must be"),
        ({"chains": 0}, ValueError, "chains must be"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"recipe": 100}, TypeError, "recipe must be"),
        ({"dtype": "int"}, ValueError, "dtype must be"),
        ({"progress": 1}, TypeError, "progress must be"),
        ({"x": X[:, 0]}, ValueError, "x"),
        ({"x": X[:0], "y": Y[:0]}, ValueError, "rows"),
        ({"y": "many"}, TypeError, "y must be"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(change, error, message):
    arguments = {"model": model(), "x": X, "y": Y, "chains": 2, "seed": 0, **change}
    with pytest.raises(error, match=message):
        ensemble_starts(**arguments)


# --- anchored members (D78)


def anchored_line(prior, weights=None, chains=200):
    """Return anchored members of a line, and the mean and covariance of its posterior."""
    rng = np.random.default_rng(0)
    x = rng.normal([0, 1], 1, (12, 2))
    y = x @ [[1.0], [-0.5]] + 0.5 * rng.standard_normal((12, 1))
    line = Model(MLP((2, 1)), prior, GaussianLikelihood(0.5))
    recipe = Recipe(Adam(0.1, schedule=Cosine()), epochs=150)
    members = ensemble_starts(
        line, x, y, chains, anchored=True, sample_weight=weights, seed=0, recipe=recipe
    )
    rows = np.column_stack([x, np.ones(12)])
    factor = np.ones(12) if weights is None else weights
    scale = getattr(prior, "scale", 1.0)
    precision = (factor * rows.T) @ rows / 0.25 + np.eye(3) / scale**2
    centre = np.broadcast_to(getattr(prior, "centre", 0.0), 3) / scale**2
    mean = np.linalg.solve(precision, (factor * rows.T) @ y[:, 0] / 0.25 + centre)
    return members, mean, np.linalg.inv(precision)


@pytest.mark.slow
@pytest.mark.equation("D78")
@pytest.mark.parametrize(
    ("prior", "weights"),
    [
        (GaussianPrior(0.7), None),
        (CentredGaussianPrior(0.7, centre=np.array([3.0, -2.0, 1.0])), None),
        (LayerwiseGaussianPrior(), np.repeat([0.0, 0.5, 3.0], 4)),
    ],
    ids=["one scale", "a centre", "layers, rows of different weights"],
)
def test_anchored_members_of_a_linear_model_are_draws_of_its_posterior(prior, weights):
    members, mean, covariance = anchored_line(prior, weights)
    whitened = (members - mean) @ np.linalg.cholesky(np.linalg.inv(covariance))
    n = len(members)
    assert np.abs(whitened.mean(axis=0)).max() < 4 / np.sqrt(n)
    of_draws = np.cov(whitened.T)
    assert np.abs(np.diag(of_draws) - 1).max() < 4 * np.sqrt(2 / n)
    assert np.abs(of_draws - np.diag(np.diag(of_draws))).max() < 4 / np.sqrt(n)


@pytest.mark.equation("D78")
def test_an_anchored_member_is_the_minimum_for_its_targets_around_its_anchor():
    members, mean, covariance = anchored_line(GaussianPrior(0.7), chains=3)
    x_rng = np.random.default_rng(0)
    rows = np.column_stack([x_rng.normal([0, 1], 1, (12, 2)), np.ones(12)])
    for member, rng in zip(members, np.random.default_rng(0).spawn(3), strict=True):
        eps, eps_prior = rng.standard_normal(12), rng.standard_normal(3)
        expected = mean + covariance @ (rows.T @ eps / 0.5 + eps_prior / 0.7)
        np.testing.assert_allclose(member, expected, atol=0.01)  # sd of 0.1


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (model(LaplacePrior(), GaussianLikelihood(0.3)), "GaussianPrior or LayerwiseGaussianPrior"),
        (model(GaussianPrior(learn=True), GaussianLikelihood(0.3)), "whose scale is fixed"),
        (model(), "GaussianLikelihood whose scale is fixed"),
        (model(likelihood=BernoulliLikelihood()), "GaussianLikelihood whose scale is fixed"),
    ],
    ids=["Laplace", "learned scale", "learned noise", "classes"],
)
def test_anchored_members_need_gaussians_of_fixed_scale(refused, words):
    with pytest.raises(ValueError, match=words):
        ensemble_starts(refused, X, Y, 2, anchored=True, recipe=SHORT)
    with pytest.raises(TypeError, match="anchored must be True or False"):
        ensemble_starts(refused, X, Y, 2, anchored=1, recipe=SHORT)

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

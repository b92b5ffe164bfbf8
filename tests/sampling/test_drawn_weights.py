"""Draws in place of a variational posterior, for all of `predictive` (D4, D5, D29)."""

import numpy as np
import pytest

from bbb_numpy import (
    MLP,
    BernoulliLikelihood,
    CategoricalLikelihood,
    DrawnWeights,
    GaussianLikelihood,
    GaussianPrior,
    HeteroscedasticLikelihood,
    LogJoint,
    Model,
    PoissonLikelihood,
)
from bbb_numpy.evaluation import predictive

X = np.linspace(-1.0, 1.0, 6)[:, None]
MODELS = {
    "gaussian": Model(MLP((1, 3, 2), "tanh"), GaussianPrior(), GaussianLikelihood(0.5)),
    "learned": Model(
        MLP((1, 3, 2), "tanh"), GaussianPrior(learn=True), GaussianLikelihood(learn=True)
    ),
    "heteroscedastic": Model(MLP((1, 3, 4), "tanh"), likelihood=HeteroscedasticLikelihood()),
    "bernoulli": Model(MLP((1, 3, 1), "tanh"), likelihood=BernoulliLikelihood()),
    "categorical": Model(MLP((1, 3, 3), "tanh"), likelihood=CategoricalLikelihood()),
    "poisson": Model(MLP((1, 3, 2), "tanh"), likelihood=PoissonLikelihood()),
}


def drawn(name, count=256, seed=0):
    source = DrawnWeights(MODELS[name])
    return source, 0.5 * np.random.default_rng(seed).standard_normal((count, source.layout.size))


class EachOnce(DrawnWeights):
    """Every draw once, in order: the exact mean over 256 draws, one block of `predictive`."""

    def draw_weights(self, rng, samples, dtype=float, out=None):
        return (np.arange(samples) + 0.5) / samples


def outputs(source, theta):
    """Network outputs (T, N, heads) and learned numbers of all draws."""
    target = LogJoint(source.model, X, np.zeros((len(X), source.model.outputs)))
    f = source.model.predict(np.ascontiguousarray(target.weights(theta)), X)
    return f, target.params(theta)


@pytest.mark.equation("D4")
@pytest.mark.parametrize("name", MODELS)
def test_mean_and_variances_are_those_over_the_draws(name):
    source, theta = drawn(name)
    prediction = predictive.predict(
        EachOnce(source.model), theta, X, rng=np.random.default_rng(0), samples=256
    )
    f, params = outputs(source, theta)
    likelihood = source.model.likelihood
    mean = likelihood.mean(params, f)
    aleatoric = np.broadcast_to(likelihood.variance(params, f), mean.shape)
    np.testing.assert_allclose(prediction.mean, mean.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(prediction.epistemic, mean.std(axis=0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(prediction.aleatoric, np.sqrt(aleatoric.mean(axis=0)), rtol=1e-12)


@pytest.mark.equation("D5")
@pytest.mark.parametrize("name", MODELS)
def test_the_predictive_density_is_the_mean_density_over_draws(name):
    source, theta = drawn(name)
    rng = np.random.default_rng(1)
    f, params = outputs(source, theta)
    y = source.model.likelihood.draw(rng, params, f)[0]
    log_density = predictive.log_predictive_density(
        EachOnce(source.model), theta, X, y, rng=rng, samples=256
    )
    rows = LogJoint(source.model, X, y).rowwise(theta)
    np.testing.assert_allclose(log_density, np.log(np.exp(rows).mean(axis=0)), rtol=1e-10)
    assert np.all(log_density > rows.mean(axis=0)), "Jensen: not the mean of logarithms"


@pytest.mark.equation("D29")
@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_class_probabilities_are_means_over_draws(name):
    source, theta = drawn(name)
    probabilities = predictive.predict_classes(
        EachOnce(source.model), theta, X, rng=np.random.default_rng(0), samples=256
    )
    f, params = outputs(source, theta)
    p = source.model.likelihood.mean(params, f)
    if name == "bernoulli":
        p = np.concatenate([1 - p, p], axis=-1)
    np.testing.assert_allclose(probabilities.proba, p.mean(axis=0), rtol=1e-12)
    entropy = -np.sum(p * np.log(p), axis=-1).mean(axis=0)
    np.testing.assert_allclose(probabilities.aleatoric, entropy, rtol=1e-12)
    assert np.all(probabilities.epistemic > 0)


def test_a_few_samples_are_spread_evenly_over_the_draws():
    """No gap is much larger than a fair share, for any number of samples."""
    source, rng = DrawnWeights(MODELS["gaussian"]), np.random.default_rng(0)
    for samples in (3, 10, 100, 1000):
        eps = np.sort(source.draw_weights(rng, samples))
        gaps = np.diff(np.append(eps, eps[0] + 1))
        assert gaps.max() < 2 / samples
        assert np.all((eps >= 0) & (eps < 1))
    # and each place is uniform over repetitions
    first = np.array([source.draw_weights(rng, 2)[1] for _ in range(4000)])
    counts = np.histogram(first, bins=10, range=(0, 1))[0]
    assert np.all(np.abs(counts - 400) < 4.5 * np.sqrt(400 * 0.9))


@pytest.mark.parametrize("draws", [100, 125, 250, 500])
@pytest.mark.parametrize("chains", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("samples", [100, 200, 500])
def test_fewer_samples_than_draws_are_of_all_chains(chains, draws, samples):
    """At equal steps 100 of 4 x 500 draws are all of one chain, in whose mode all else is wrong."""
    rng, total = np.random.default_rng(0), chains * draws
    eps = DrawnWeights(MODELS["gaussian"]).draw_weights(rng, samples)
    np.testing.assert_array_equal(np.sort((eps * samples).astype(int)), np.arange(samples))
    chosen = (eps * total).astype(int)  # rows of Draws.flat, in which chains take turns
    share = np.bincount(chosen % chains, minlength=chains) / samples
    np.testing.assert_allclose(share, 1.0 / chains, atol=0.06)


def test_weights_and_scales_come_from_the_same_draw():
    source, theta = drawn("learned")
    eps = source.draw_weights(np.random.default_rng(3), 10)
    w, params = source.weights(theta, eps), source.params(theta, eps)
    for s in range(10):
        row = np.flatnonzero((theta[:, : w.shape[1]] == w[s]).all(axis=1))
        np.testing.assert_array_equal(params["log_noise"][s], theta[row[0], -2:])


@pytest.mark.parametrize("shape", [(0, 17), (4, 13), (17,), (2, 3, 17)])
def test_draws_that_do_not_fit_are_refused(shape):
    source, _ = drawn("learned")
    assert source.layout.size == 17
    with pytest.raises(ValueError, match=r"theta must have shape \(T, 17\), with T >= 1 draws"):
        source.weights(np.zeros(shape), np.zeros(1))

"""layerwise: a scale for each layer, its KL divergence, and what it does to functions (D39)."""

from functools import partial

import numpy as np
import pytest

from bbb_numpy import (
    MLP,
    GaussianPrior,
    LayerwiseGaussianPrior,
    Model,
)
from bbb_numpy.numeric.buffers import Buffers

SIZES, SCALES = (2, 3, 1), (1.3, 0.4)
SHAPES = {(2, 3, 1): (1.3, 0.4), (3, 2): (0.6,), (1, 2, 3, 2): (0.3, 2.0, 0.9)}
LEARN = pytest.mark.parametrize("learn", [False, True])


def bound(sizes=SIZES, learn=False):
    return LayerwiseGaussianPrior(SHAPES[sizes], learn).for_network(sizes)


def scale_of_each_weight(sizes, scales):
    """The scale (P,) of every weight, from the names of the network's blocks, 'b1' or 'W1'."""
    blocks = MLP(sizes).layout.blocks
    return np.concatenate([np.full(shape, scales[int(name[1:])]).ravel() for name, shape in blocks])


def params_of(prior, chains=None):
    """The learned block, shared (L,), or one for each chain (S, L) and different in each."""
    if not prior.learn:
        return {}
    start = prior.init(np.float64)
    shift = 0.0 if chains is None else 0.1 * np.arange(chains * len(start)).reshape(chains, -1)
    return {"prior_log_scale": start + shift}


def drawn(sizes, seed=0, samples=3):
    """Weights (S, P) and a cotangent (S,)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((samples, MLP(sizes).layout.size)), rng.standard_normal(samples)


# --- the density


@pytest.mark.equation("D39", "D33")
def test_every_chain_has_scales_of_its_own():
    prior, (w, _) = bound(learn=True), drawn(SIZES)
    params = params_of(prior, 3)
    found, _ = prior.log_density(params, w, Buffers())
    for s in range(3):
        own = LayerwiseGaussianPrior(tuple(np.exp(params["prior_log_scale"][s])), sizes=SIZES)
        assert found[s] == pytest.approx(own.log_density({}, w[[s]], Buffers())[0][0], rel=1e-13)


@pytest.mark.equation("D39")
def test_the_stated_deviation_is_that_of_the_narrowest_layer():
    for prior in (bound(), bound(learn=True)):
        assert prior.deviation(params_of(prior)) == pytest.approx(0.4, rel=1e-14)


# --- equal scales


@pytest.mark.equation("D39", "K12", "K19", "D17")
@LEARN
def test_with_equal_scales_it_is_the_gaussian_prior(learn):
    plain = GaussianPrior(0.7, learn)
    layers = LayerwiseGaussianPrior((0.7, 0.7), learn, SIZES)
    w, cotangent = drawn(SIZES)
    found = []
    for prior, count in ((plain, 1), (layers, 2)):
        params = {"prior_log_scale": prior.init(np.float64)} if learn else {}
        d_params = {name: np.zeros_like(u) for name, u in params.items()}
        d_w, variances = np.zeros_like(w), np.array([2.0, 0.5])
        value, saved = prior.log_density(params, w, Buffers())
        prior.add_vjp(saved, cotangent, d_w, d_params)
        total = variances if count == 2 else variances.sum()
        slopes = {name: np.zeros_like(u) for name, u in params.items()}
        expected = prior.expected_log_density(params, w[0], total, slopes)
        found.append(
            [
                *(value, d_w, prior.draw(np.random.default_rng(1), params, (2, 13))),
                *(expected.value, expected.d_mean, np.broadcast_to(expected.d_variance, 13)),
                *(d_params[name].sum() for name in params),
                *(slopes[name].sum() for name in params),
            ]
        )
    assert len(found[0]) == (8 if learn else 6)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-13, atol=1e-13)


# --- the KL divergence in closed form


# --- what it does to functions


def second_moment(sizes, scales, x):
    """E f(x)^2 under the prior of a ReLU network: exact, whatever the widths (D39)."""
    v = scales[0] ** 2 * (x @ x + 1.0)
    for width, scale in zip(sizes[1:-1], scales[1:], strict=True):
        v = scale**2 * (width * v / 2.0 + 1.0)  # half the square of a symmetric number is kept
    return v


def moment_error(prior, sizes, expected, activation="relu", draws=2000):
    """How many standard errors the mean of f(x)^2 over draws is away from `expected`."""
    x, rng = np.array([0.6, -1.1]), np.random.default_rng(3)
    model, squares = Model(MLP(sizes, activation), prior), []
    for _ in range(4):
        w = model.prior.draw(rng, {}, (draws // 4, model.layout.size))
        squares.append(model.predict(w, x[None])[:, 0, 0] ** 2)
    found = np.concatenate(squares)
    return abs(found.mean() - expected(x)) / (found.std() / np.sqrt(draws))


@pytest.mark.equation("D39")
@pytest.mark.parametrize(
    "sizes", [(2, 1, 1), (2, 16, 1), (2, 256, 1), (2, 4, 4, 1), (2, 64, 64, 1)]
)
def test_the_default_scales_give_functions_of_one_size_for_every_width(sizes):
    prior = Model(MLP(sizes)).prior  # one scale: its size is the formula's too
    assert moment_error(prior, sizes, partial(second_moment, sizes, [1.0] * (len(sizes) - 1))) < 4
    scales = (1.0, *(1.0 / np.sqrt(inputs) for inputs in sizes[1:-1]))
    assert LayerwiseGaussianPrior().for_network(sizes).scales == pytest.approx(scales)
    expected = partial(second_moment, sizes, scales)
    assert moment_error(LayerwiseGaussianPrior(), sizes, expected) < 4
    # with unlimited widths every layer halves the square and the biases are lost in it
    x = np.array([0.6, -1.1])
    rest = expected(x) - (x @ x + 1.0) / 2 ** (len(sizes) - 2)
    assert 0 < rest <= sum(1.0 / width for width in sizes[1:-1]) + 1e-12


# --- the network


@pytest.mark.equation("D39")
def test_a_model_tells_the_prior_its_network():
    prior = LayerwiseGaussianPrior()
    model = Model(MLP((4, 25, 9, 2)), prior)
    assert model.prior.sizes == (4, 25, 9, 2)
    assert model.prior.scales == (1.0, 0.2, 1 / 3)
    assert model.prior.counts == (125, 234, 20)
    assert model.prior.starts == (0, 125, 359)
    assert (prior.sizes, prior.scales) == (None, None), "the prior that was passed is unchanged"
    assert Model(MLP((4, 25, 9, 2)), model.prior) == model
    assert Model(MLP((3, 1)), prior).prior.scales == (1.0,)
    assert Model(MLP((3, 1)), LayerwiseGaussianPrior([2], True)).prior.scales == (2.0,)


# --- single precision, learners, samplers

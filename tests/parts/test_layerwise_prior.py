"""layerwise: a scale for each layer, its KL divergence, and what it does to functions (D39)."""

from functools import partial

import numpy as np
import pytest
from problems import params_of

from bbb_numpy import (
    MLP,
    LayerwiseGaussianPrior,
    Model,
)


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
    mean_squares = np.concatenate(squares)
    return abs(mean_squares.mean() - expected(x)) / (mean_squares.std() / np.sqrt(draws))


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


@pytest.mark.equation("D39")
def test_a_model_tells_the_prior_its_network():
    prior = LayerwiseGaussianPrior()
    model = Model(MLP((4, 25, 9, 2)), prior)
    assert model.prior.sizes == (4, 25, 9, 2)
    assert model.prior.scales == (1.0, 0.2, 1 / 3)
    assert model.prior.counts == (125, 234, 20)
    assert model.prior.group_starts == (0, 125, 359)
    assert (prior.sizes, prior.scales) == (None, None), "the prior that was passed is unchanged"
    assert Model(MLP((4, 25, 9, 2)), model.prior) == model
    assert Model(MLP((3, 1)), prior).prior.scales == (1.0,)
    assert Model(MLP((3, 1)), LayerwiseGaussianPrior([2], True)).prior.scales == (2.0,)


@pytest.mark.equation("D39")
@pytest.mark.parametrize("learn", [False, True])
def test_the_stated_deviation_is_that_of_the_narrowest_layer(learn):
    prior = LayerwiseGaussianPrior((1.3, 0.4), learn, (2, 3, 1))
    assert prior.sd(params_of(prior)) == pytest.approx(0.4, rel=1e-14)

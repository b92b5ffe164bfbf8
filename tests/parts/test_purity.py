"""purity: no part leaves anything in the buffers, or changes what it was given or has saved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples, seeds
from purity import Pass, blank, faults

from bbb_numpy import MLP
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts import network
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.registry import (
    CHECKED_LIKELIHOODS,
    CHECKED_POSTERIORS,
    CHECKED_PRIORS,
)

SIZES = [(2, 3, 1), (1, 2), (3, 2, 2, 2), (2, 2)]
DTYPES = st.sampled_from([np.float32, np.float64])


def numbers(rng, dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


def prior_pass(prior, seed, sizes=(2, 3, 1), samples=2, dtype=np.float64, chains=False):
    """log P(w) and its gradient; with `chains` each sample has scales of its own."""
    prior, rng = prior.for_network(sizes), np.random.default_rng(seed)
    w = numbers(rng, dtype, samples, MLP(sizes).layout.size)
    cotangent, there = numbers(rng, dtype, samples), numbers(rng, dtype, *w.shape)
    start = np.repeat(prior.init(dtype)[None], samples if chains else 1, axis=0)
    start += 0.1 * numbers(rng, dtype, *start.shape)
    params = Layout(prior.blocks()).views(start if chains else start[0])

    def backward(saved, buffers):
        d_w, d_params = there.copy(), blank(params)
        prior.add_vjp(saved[1], cotangent, d_w, d_params)
        return d_w, d_params

    arguments = (params, w, cotangent)
    return Pass(arguments, lambda buffers: prior.log_density(params, w, buffers), backward)


def likelihood_pass(likelihood, seed, targets=2, samples=2, rows=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    f = numbers(rng, dtype, samples, rows, likelihood.heads(targets))
    params = Layout(likelihood.blocks(targets)).views(likelihood.init(targets, dtype))
    y, cotangent = likelihood.draw(rng, params, f)[0], numbers(rng, dtype, samples)

    def backward(saved, buffers):
        d_params = blank(params)
        return likelihood.vjp(saved[1], cotangent, d_params), d_params

    arguments = (params, f, y, cotangent)
    return Pass(arguments, lambda buffers: likelihood.log_density(params, f, y), backward)


def posterior_pass(posterior, seed, size=3, samples=2, dtype=np.float64):
    """Everything that a posterior can do, in the order in which estimators ask for it."""
    rng = np.random.default_rng(seed)
    theta = posterior.init(rng, size, dtype)
    theta[2 * size :] = 0.3 * numbers(rng, dtype, theta[2 * size :].size)
    blocks = Layout(posterior.blocks(size)).views(theta)
    eps = numbers(rng, dtype, samples, posterior.noise_size(size))
    w, d_w = numbers(rng, dtype, samples, size), numbers(rng, dtype, samples, size)
    d_log_q = numbers(rng, dtype, samples)
    dense = not isinstance(posterior, PointMass)

    def forward(buffers):
        sample = posterior.sample(blocks, eps, buffers)
        found = (sample, posterior.log_density(sample))
        if dense:
            scored = posterior.from_weights(blocks, w, buffers)
            parts = posterior.factor(blocks, buffers)
            each = posterior.entropy(parts), posterior.entropy(parts, (0, size // 2))
            found += (scored, posterior.log_density(scored), parts, *each)
        return found

    def backward(saved, buffers):
        ways = [lambda d: posterior.pull_back(saved[0], d_w, None, d)]
        if not dense:
            return _written(ways, blocks)
        own, parts = d_w.copy(), saved[4]
        posterior.add_density_slope(saved[2], d_log_q, own)

        def with_entropy(d):
            posterior.pull_back(saved[0], d_w, d_log_q, d)
            posterior.add_entropy_vjp(parts, 0.3, np.full(size, 0.2, dtype), d)
            posterior.add_entropy_vjp(parts, -0.1, 0.7, d)

        ways += [with_entropy, lambda d: posterior.pull_back_direct(saved[0], d_log_q, d)]
        return own, _written(ways, blocks)

    return Pass((theta, eps, w, d_w, d_log_q, blocks), forward, backward)


def _written(ways, blocks):
    out = []
    for write in ways:
        d_theta = blank(blocks)
        write(d_theta)
        out.append(d_theta)
    return out


def network_pass(net, seed, samples=2, rows=3, own_rows=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    w = numbers(rng, dtype, samples, net.layout.size)
    x = numbers(rng, dtype, *([samples] if own_rows else []), rows, net.sizes[0])
    d_f = numbers(rng, dtype, samples, rows, net.sizes[-1])
    return Pass(
        (w, x, d_f),
        lambda buffers: network.forward(net, w, x, buffers),
        lambda saved, buffers: network.vjp(net, saved[1], d_f, buffers),
    )


SAMPLES, ROWS = st.integers(1, 3), st.integers(0, 3)


@pytest.mark.parametrize("which", CHECKED_PRIORS)
@examples(30)
@given(data=st.data())
def test_every_prior_is_pure(which, data):
    pair = [
        prior_pass(CHECKED_PRIORS[which], *data.draw(st.tuples(seeds, st.sampled_from(SIZES))),
                   *data.draw(st.tuples(SAMPLES, DTYPES, st.booleans())))
        for _ in range(2)
    ]  # fmt: skip
    assert faults(*pair) == {}


@pytest.mark.parametrize("which", CHECKED_LIKELIHOODS)
@examples(30)
@given(data=st.data())
def test_every_likelihood_is_pure(which, data):
    drawn = st.tuples(seeds, st.integers(1, 3), SAMPLES, ROWS, DTYPES)
    pair = [likelihood_pass(CHECKED_LIKELIHOODS[which], *data.draw(drawn)) for _ in range(2)]
    assert faults(*pair) == {}


@pytest.mark.parametrize("which", CHECKED_POSTERIORS)
@examples(30)
@given(data=st.data())
def test_every_posterior_is_pure(which, data):
    drawn = st.tuples(seeds, st.integers(2, 5), SAMPLES, DTYPES)
    pair = [posterior_pass(CHECKED_POSTERIORS[which], *data.draw(drawn)) for _ in range(2)]
    assert faults(*pair) == {}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@examples(30)
@given(data=st.data())
def test_the_network_is_pure(activation, data):
    drawn = st.tuples(seeds, SAMPLES, ROWS, st.booleans(), DTYPES)
    pair = [
        network_pass(MLP(data.draw(st.sampled_from(SIZES)), activation), *data.draw(drawn))
        for _ in range(2)
    ]
    assert faults(*pair) == {}

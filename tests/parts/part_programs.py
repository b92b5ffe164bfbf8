"""Every part of a model as a function of one flat theta, with its value and its gradient.

What the value depends on is theta: weights, network outputs and learned numbers, one block after
the other. Noise, targets and cotangents are data.
"""

from typing import NamedTuple

import numpy as np

from bbb_numpy.numeric import elementary
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.registry import FAMILIES


class Program(NamedTuple):
    """A function from flat theta (D,) and data to a value and a gradient (D,), and their names."""

    function: object
    blocks: tuple  # name and shape of each block of theta
    data: tuple = ()


def with_cotangent(rows, like):
    """Return cotangents of 1 for each of some rows, in the dtype of an array."""
    return np.ones_like(like, shape=(rows,))


def activation(name):
    def value_and_grad(z):
        value, slope = z.copy(), np.empty_like(z)
        ACTIVATIONS[name](value, slope)
        return value.sum(), slope

    return Program(value_and_grad, (("z", (1,)),))


def prior(part, size=2):
    part = part.for_network((1, 1))
    layout = Layout((*part.blocks(), ("w", (1, size))))

    def value_and_grad(theta):
        blocks = layout.views(theta)
        w = blocks.pop("w")
        value, saved = part.log_density(blocks, w, Buffers())
        grad = np.zeros_like(theta)
        d_params = layout.views(grad)
        d_w = d_params.pop("w")
        part.add_vjp(saved, with_cotangent(1, theta), d_w, d_params)
        return value[0], grad

    return Program(value_and_grad, layout.blocks)


def likelihood(part, y):
    heads = part.heads(y.shape[1])
    layout = Layout((*part.blocks(y.shape[1]), ("f", (1, len(y), heads))))

    def value_and_grad(theta, y):
        blocks = layout.views(theta)
        f = blocks.pop("f")
        value, saved = part.log_likelihood(blocks, f, y)
        grad = np.zeros_like(theta)
        d_params = layout.views(grad)
        d_f = d_params.pop("f")
        d_f[...] = part.log_likelihood_vjp(saved, with_cotangent(1, theta), d_params)
        return value[0], grad

    return Program(value_and_grad, layout.blocks, (y,))


def hyperprior(part):
    def value_and_grad(u, start):
        value = part.log_density(u[None], start)
        return value[0, 0], part.slope(u[None], start)[0]

    return Program(value_and_grad, (("u", (1,)),), (np.array([-0.75]),))


def posterior_weights(part, size, seed=0):
    """A random combination of the weights that noise makes of theta."""
    layout = Layout(part.blocks(size))
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((1, part.noise_size(size)))
    cotangent = rng.standard_normal((1, size))

    def value_and_grad(theta, noise, cotangent):
        sample = part.sample(layout.views(theta), noise, Buffers())
        grad = np.zeros_like(theta)
        part.pull_back(sample, cotangent.copy(), None, layout.views(grad))
        return (sample.w * cotangent).sum(), grad

    return Program(value_and_grad, layout.blocks, (noise, cotangent))


def posterior_density(part, size, seed=0):
    """The log density of the weights that noise makes of theta."""
    layout = Layout(part.blocks(size))
    noise = np.random.default_rng(seed).standard_normal((1, part.noise_size(size)))

    def value_and_grad(theta, noise):
        sample = part.sample(layout.views(theta), noise, Buffers())
        grad = np.zeros_like(theta)
        d_w = np.zeros_like(sample.w)
        part.pull_back(sample, d_w, with_cotangent(1, theta), layout.views(grad))
        return part.log_density(sample)[0], grad

    return Program(value_and_grad, layout.blocks, (noise,))


def posterior_entropy(part, size):
    """The entropy of the weights, plus the sum of their variances."""
    layout = Layout(part.blocks(size))

    def value_and_grad(theta):
        parts = part.factor(layout.views(theta), Buffers())
        entropy = part.entropy(parts)
        grad = np.zeros_like(theta)
        part.add_entropy_vjp(parts, 1.0, 1.0, layout.views(grad))
        return entropy.value + entropy.total_variance, grad

    return Program(value_and_grad, layout.blocks)


def elementwise(function, slope):
    def value_and_grad(x):
        return function(x).sum(), slope(x)

    return Program(value_and_grad, (("x", (1,)),))


def half_step(nu_log):
    step = elementary.gamma_half_step(np.exp(nu_log))
    return step.value.sum(), step.slope


TARGETS = {
    "real": np.array([[0.5, -1.25]]),
    "count": np.array([[3.0, 0.0]]),
    "class": np.array([[1.0, 0.0]]),
}


def part_programs():
    """Return the program of every part by its family and name."""
    programs = {}
    for name in ACTIVATIONS:
        programs["activation", name] = activation(name)
    for name, part in FAMILIES["prior"].checked.items():
        programs["prior", name] = prior(part)
    for name, part in FAMILIES["likelihood"].checked.items():
        programs["likelihood", name] = likelihood(part, TARGETS[part.target_kind])
    for name, part in FAMILIES["hyperprior"].checked.items():
        programs["hyperprior", name] = hyperprior(part)
    for name, part in FAMILIES["posterior"].checked.items():
        programs["posterior", f"{name}, weights"] = posterior_weights(part, 2)
        if name != "point":
            programs["posterior", f"{name}, log q"] = posterior_density(part, 2)
            programs["posterior", f"{name}, entropy"] = posterior_entropy(part, 2)
    half = elementary.gamma_half_step
    programs |= {
        ("elementary", "softplus"): elementwise(elementary.softplus, elementary.sigmoid),
        ("elementary", "log softplus"): elementwise(
            lambda x: elementary.softplus_parts(x).log_softplus,
            lambda x: elementary.softplus_parts(x).ratio,
        ),
        ("elementary", "sigmoid"): elementwise(
            lambda x: elementary.logistic(x)[0], lambda x: elementary.logistic(x)[1]
        ),
        ("elementary", "inverse softplus"): elementwise(
            elementary.inverse_softplus, lambda y: -1.0 / np.expm1(-y)
        ),
        ("elementary", "tanh"): elementwise(np.tanh, elementary.sech_squared),
        ("elementary", "erfc"): elementwise(
            elementary.erfc, lambda x: -2.0 / np.sqrt(np.pi) * np.exp(-x * x)
        ),
        ("elementary", "gamma half step"): Program(half_step, (("log nu", (1,)),)),
        ("elementary", "logsumexp"): Program(
            lambda x: (elementary.logsumexp(x), np.exp(elementary.log_softmax(x))),
            (("x", (3,)),),
        ),
    }
    assert half
    return programs

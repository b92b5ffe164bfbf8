"""Every part of a model as a function of one flat theta, with its value and its gradient.

What the value depends on is theta: weights, network outputs and learned numbers, one block after
the other. Noise, targets and cotangents are data. `RANGES` says where each part is stable.
"""

from math import log, pi
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


def prior(part):
    part = part.for_network((1, 1))
    size = 2 if type(part).__name__ in ("ARDPrior", "LayerwiseGaussianPrior") else 1
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


def elementwise(name, function, slope):
    def value_and_grad(x):
        return function(x).sum(), slope(x)

    block = name if name in ("inverse_softplus", "log1p") else "x"
    return Program(value_and_grad, ((block, (1,)),))


def half_step(log_nu):
    step = elementary.gamma_half_step(np.exp(log_nu))
    return step.value.sum(), step.slope


def rising(log_dispersion):
    terms = elementary.rising_factorial(np.array([3.0]), np.exp(-log_dispersion))
    return terms.value.sum(), -terms.slope


TARGETS = {"real": np.array([[0.5]]), "count": np.array([[3.0]]), "class": np.array([[1.0]])}


def part_programs():
    """Return the program of every part by its family and name."""
    programs = {}
    for name in ACTIVATIONS:
        programs["activation", name] = activation(name)
    for name, part in FAMILIES["prior"].checked.items():
        programs["prior", name] = prior(part)
    for name, part in FAMILIES["likelihood"].checked.items():
        y = np.eye(3)[:1] if name == "categorical" else TARGETS[part.target_kind]
        programs["likelihood", name] = likelihood(part, y)
    for name in ("zero-inflated", "zero-inflated-negative-binomial"):
        part = FAMILIES["likelihood"].checked[name]
        programs["likelihood", f"{name}, y = 0"] = likelihood(part, np.zeros((1, 1)))
    programs["likelihood", "bernoulli, y = 0"] = likelihood(
        FAMILIES["likelihood"].checked["bernoulli"], np.zeros((1, 1))
    )
    for name, part in FAMILIES["hyperprior"].checked.items():
        programs["hyperprior", name] = hyperprior(part)
    for name, part in FAMILIES["posterior"].checked.items():
        programs["posterior", f"{name}, weights"] = posterior_weights(part, 2)
        if name != "point":
            programs["posterior", f"{name}, log q"] = posterior_density(part, 2)
            programs["posterior", f"{name}, entropy"] = posterior_entropy(part, 2)
    functions = {
        "softplus": (elementary.softplus, elementary.sigmoid),
        "log softplus": (
            lambda x: elementary.softplus_parts(x).log_softplus,
            lambda x: elementary.softplus_parts(x).ratio,
        ),
        "logistic": (lambda x: elementary.logistic(x)[0], lambda x: elementary.logistic(x)[1]),
        "inverse_softplus": (elementary.inverse_softplus, lambda y: -1.0 / np.expm1(-y)),
        "sech_squared": (np.tanh, elementary.sech_squared),
        "erfc": (elementary.erfc, lambda x: -2.0 / pi**0.5 * np.exp(-x * x)),
        "log1p": (elementary.log1p, lambda x: 1.0 / (1.0 + x)),
    }
    for name, (function, slope) in functions.items():
        programs["elementary", name] = elementwise(name, function, slope)
    programs["elementary", "rising_factorial"] = Program(rising, (("log_dispersion", (1,)),))
    programs["elementary", "gamma_half_step"] = Program(half_step, (("log nu", (1,)),))
    programs["elementary", "logsumexp"] = Program(
        lambda x: (elementary.logsumexp(x), np.exp(elementary.log_softmax(x))), (("x", (3,)),)
    )
    return programs


# Intervals of the numbers of each block in which every part is stable, by format. A part whose
# interval of a block is another one has a row of its own.
RANGES = [
    # block, part or "", float64, float32, reason
    ("z", "", (-1e8, 1e8), (-1e8, 1e8), "pre-activations of hidden units"),
    ("w", "", (-1e12, 1e12), (-1e12, 1e12), "weights; w^2 / scale^2 is a float"),
    ("mu", "", (-1e4, 1e4), (-1e4, 1e4), "means of weights"),
    ("rho", "", (-1e4, 1e4), (-1e4, 1e4), "raw scales: the tests go to -1e4, learners start at -4"),
    ("lower", "", (-1e4, 1e4), (-1e4, 1e4), "correlations of the full rank"),
    ("v", "", (-3.0, 3.0), (-3.0, 3.0), "correlations of the low rank in units of sigma, from 0.1"),
    ("f", "", (-1e4, 1e4), (-1e4, 1e4), "outputs, logits, raw noise: the tests go to 1e4"),
    ("f", "poisson", (-700.0, 700.0), (-80.0, 80.0), "log rates whose e^f is a float"),
    ("f", "zero-inflated", (-700.0, 700.0), (-80.0, 80.0), "as for poisson"),
    ("log_dispersion", "", (-5.0, 5.0), (-2.0, 5.0), "of counts, from 0.5; below, rounded as y is"),
    ("logit_zeros", "", (-1e4, 1e4), (-1e4, 1e4), "log odds of extra zeros"),
    ("log_noise", "", (-20.0, 20.0), (-10.0, 10.0), "noise scale, from 0.1"),
    ("prior_log_scale", "", (-20.0, 20.0), (-10.0, 10.0), "prior scale, from 0.5"),
    ("log_df", "", (log(0.1), log(1e3)), (log(0.1), log(100.0)), "degrees of freedom, from 4"),
    ("prior_log_df", "", (log(0.1), log(1e3)), (log(0.1), log(100.0)), "the same, of a prior"),
    ("prior_mixture", "", ((-3.0, -13.0, -30.0), (20.0, 3.0, 30.0)),
     ((-3.0, -7.0, -15.0), (10.0, 3.0, 15.0)), "t1, t2, a: sigma1 above sigma2 by a hundredth"),
    ("u", "", (-100.0, 100.0), (-30.0, 30.0), "logarithm of a learned scale"),
    ("log nu", "", (log(1e-3), log(1e9)), (log(1e-3), log(1e9)), "all that Student's t accepts"),
    ("x", "", (-1e4, 1e4), (-1e4, 1e4), "arguments of elementary functions"),
    ("inverse_softplus", "", (1e-30, 1e4), (1e-30, 1e4), "standard deviations"),
    ("log1p", "", (-0.99, 1e30), (-0.99, 1e30), "its domain"),
]  # fmt: skip


def interval(block, part, dtype):
    """Return the least and largest numbers of a block of a part in a format."""
    rows = {(name, owner): pair for name, owner, *pair, _ in RANGES}
    pair = rows.get((block, part), rows.get((block, "")))
    low, high = pair[dtype == "float32"]
    return np.asarray(low), np.asarray(high)


def draw_theta(rng, blocks, part, dtype):
    """Draw theta in the ranges of its blocks: even, at the ends, near 1, of all sizes, or equal.

    Parameters
    ----------
    rng : numpy.random.Generator
    blocks : tuple
        Name and shape of each block.
    part : str
        Name of the part.
    dtype : str
        'float64' or 'float32'.
    """
    parts = []
    for name, shape in blocks:
        low, high = interval(name, part, dtype)
        size = int(np.prod(shape))
        largest = np.log10(np.maximum(np.abs(low), np.abs(high)).max())
        signs = rng.choice([-1.0, 1.0], size)
        numbers = (
            rng.uniform(low, high, size),
            np.where(rng.random(size) < 0.5, low, high),
            rng.standard_normal(size),
            signs * 10 ** rng.uniform(-12, largest, size),
            np.full(size, signs[0] * 10 ** rng.uniform(-3, largest)),
        )[rng.integers(5)]
        parts.append(np.clip(numbers, low, high))
    return np.concatenate(parts)


def shown(bounds):
    """Return an interval, or one for each of several numbers, as text."""
    low, high = (np.atleast_1d(bound) for bound in bounds)
    return ", ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(low, high, strict=True))


def table():
    """Return `RANGES` as a table in Markdown."""
    lines = ["| numbers | of | float64 | float32 | what they are |", "|---|---|---|---|---|"]
    for block, part, wide, narrow, reason in RANGES:
        lines.append(f"| `{block}` | {part} | {shown(wide)} | {shown(narrow)} | {reason} |")
    return "\n".join(lines)

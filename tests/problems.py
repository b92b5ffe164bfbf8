"""What hypothesis draws: whole problems of every shape, and helpers that several tests share."""

import os
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from pairwise_cover import cover

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Reparameterised,
    combinations,
)
from bbb_numpy.model.objectives import free_energy
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import softplus_parts
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts import network
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.parts.full_rank import FullRank

COMPLEX_STEP = 1e-30


class Problem(NamedTuple):
    """One call of value_and_grad: an estimator and all its arguments."""

    estimator: Reparameterised
    theta: np.ndarray
    noise: np.ndarray  # (S, P)
    x: np.ndarray  # (B, d_in)
    y: np.ndarray  # (B, K)
    kl_weight: float

    def value_and_grad(self, theta):
        return self.estimator.value_and_grad(theta, self.noise, self.x, self.y, self.kl_weight)

    def gates(self, theta):
        """Return which ReLU units are on: where this changes lies a kink."""
        w = self.estimator.weights(theta, self.noise)
        return network.gates(self.estimator.model.network, w, self.x)

    def with_objective(self, objective):
        return self._replace(estimator=replace(self.estimator, objective=objective))


def complex_gradient(function, point):
    """Return d function/d point by the complex step, for a scalar function of one array."""
    point, out = np.asarray(point), np.zeros(np.shape(point))
    for index in np.ndindex(point.shape):
        stepped = point.astype(complex)
        stepped[index] += 1j * COMPLEX_STEP
        out[index] = np.imag(function(stepped)) / COMPLEX_STEP
    return out


def relative_error(actual, expected):
    """Return the largest error in units of the largest entry; nan counts as infinite.

    In units of 1 where all entries are smaller: sums of numbers of size 1 may cancel.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    worst = np.abs(actual - expected).max(initial=0.0) / np.abs(expected).max(initial=1.0)
    return np.inf if np.isnan(worst) else float(worst)


def changed(part, **methods):
    """Return a copy of a frozen dataclass with other methods: a planted error."""
    wrong = type(f"Wrong{type(part).__name__}", (type(part),), methods)
    return wrong(**{field.name: getattr(part, field.name) for field in fields(part)})


VALID, INVALID = [], {}
for _which in combinations.combinations():
    try:
        combinations.build_estimator(_which)
        VALID.append(_which)
    except ValueError as _error:
        INVALID[_which] = str(_error)
# every two parts that go together at all do so in one of these
PAIRS = cover(VALID)
# Before a commit those in which every pair of parts meets, in `make test` all of them
CHECKED = PAIRS if os.environ.get("HYPOTHESIS_PROFILE") == "check" else VALID
# the joint density is one of a prior and a likelihood; posterior and gradient take all of these
JOINTS = [
    which for which in VALID if (which[0], *which[3:]) == ("mean-field", "reparameterised", "elbo")
]


def examples(count, **options):
    """Return settings of hypothesis: `count` examples, times what its profile says."""
    share = settings().max_examples / settings.get_profile("ci").max_examples
    return settings(max_examples=max(1, round(share * count)), **options)


scales = st.floats(-2.0, 2.0).map(lambda exponent: 10.0**exponent)
seeds = st.integers(0, 2**32 - 1)


RHO = st.sampled_from([-5.0, -20.0, -2.0, 0.0, 3.0])
ACTIVATION = st.sampled_from(list(ACTIVATIONS))
LEARN = st.booleans()
N_ROWS = st.integers(0, 5)
HIDDEN = st.lists(st.integers(1, 5), max_size=3)


@st.composite
def problems(
    draw,
    rho=RHO,
    activation=ACTIVATION,
    learn=LEARN,
    rows=N_ROWS,
    hidden=HIDDEN,
    objective=free_energy,
    scales=scales,
):
    """Draw any depth, width, S, B, K, prior and noise scale; rho within a unit of `rho`."""
    sizes = (draw(st.integers(1, 4)), *draw(hidden), draw(st.integers(1, 3)))
    model = Model(
        MLP(sizes, draw(activation)),
        GaussianPrior(draw(scales)),
        GaussianLikelihood(draw(scales), draw(learn)),
    )
    estimator = Reparameterised(model, MeanField(0.7, draw(rho), 1.0), objective)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    theta = estimator.init(rng)
    noise = estimator.draw(rng, draw(st.integers(1, 4)))
    count = draw(rows)
    x = rng.standard_normal((count, sizes[0]))
    y = draw(scales) * rng.standard_normal((count, sizes[-1]))
    return Problem(estimator, theta, noise, x, y, draw(st.sampled_from([1.0, 0.25, 1e-3])))


def linear_problem(seed=0, rows=40, d_in=2, noise=0.3, prior=1.5):
    """Return a Bayesian linear regression, of which everything has a closed form."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, d_in)) @ np.array([[1.0, 0.6], [0.0, 0.8]])[:d_in, :d_in]
    y = x @ rng.standard_normal((d_in, 1)) + 0.4 + noise * rng.standard_normal((rows, 1))
    estimator = Reparameterised(
        Model(MLP((d_in, 1)), GaussianPrior(prior), GaussianLikelihood(noise))
    )
    return estimator, x, y


class ExactPosterior(NamedTuple):
    """D8: the posterior N(mean, precision^-1) over [W; b] and the log evidence."""

    mean: np.ndarray
    precision: np.ndarray
    log_evidence: float


def exact_posterior(estimator, x, y):
    """Solve the conjugate model in closed form (D8), by dense linear algebra."""
    prior = estimator.model.prior.scale
    noise = estimator.model.likelihood.scale
    design = np.hstack([x, np.ones((len(x), 1))])
    precision = design.T @ design / noise**2 + np.eye(design.shape[1]) / prior**2
    mean = np.linalg.solve(precision, design.T @ y[:, 0] / noise**2)
    covariance = noise**2 * np.eye(len(x)) + prior**2 * design @ design.T
    _, log_det = np.linalg.slogdet(covariance)
    quadratic = y[:, 0] @ np.linalg.solve(covariance, y[:, 0])
    return ExactPosterior(
        mean, precision, -0.5 * (quadratic + log_det + len(x) * np.log(2 * np.pi))
    )


class LinearCase(NamedTuple):
    """Bayesian linear regression at an arbitrary q, and the gradient of its free energy (D8)."""

    model: Model
    posterior: object
    theta: np.ndarray
    x: np.ndarray
    y: np.ndarray
    free_energy: float
    grad: np.ndarray


def linear_case(full=False, rows=12, noise=0.8, prior=1.3):
    """Return a case whose free energy and gradient follow from the first two moments of q."""
    estimator, x, y = linear_problem(rows=rows, noise=noise, prior=prior)
    rng = np.random.default_rng(5)
    size = x.shape[1] + 1
    mean, rho = rng.standard_normal(size), rng.uniform(-1.5, 0.0, size)
    parts = softplus_parts(rho)
    strict = np.tri(size, k=-1, dtype=bool)
    lower = 0.4 * rng.standard_normal(strict.sum()) if full else np.zeros(strict.sum())
    factor = np.diag(parts.softplus)
    factor[strict] = lower
    design = np.hstack([x, np.ones((len(x), 1))])
    residual = y[:, 0] - design @ mean
    kl = -np.log(parts.softplus).sum() + size * (np.log(prior) - 0.5)
    kl += ((factor**2).sum() + mean @ mean) / (2 * prior**2)
    fit = (residual @ residual + ((design @ factor) ** 2).sum()) / (2 * noise**2)
    d_factor = factor / prior**2 - np.diag(1 / parts.softplus)
    d_factor = d_factor + design.T @ (design @ factor) / noise**2
    grad = [mean / prior**2 - design.T @ residual / noise**2, np.diag(d_factor) * parts.sigmoid]
    theta = [mean, rho]
    if full:
        theta, grad = [*theta, lower], [*grad, d_factor[strict]]
    return LinearCase(
        estimator.model,
        FullRank() if full else MeanField(),
        np.concatenate(theta),
        x,
        y,
        kl + fit + 0.5 * len(x) * np.log(2 * np.pi * noise**2),
        np.concatenate(grad),
    )


SHAPES = [(2, (2,), 1), (1, (2,), 2), (1, (), 2), (2, (1, 2), 1)]


@st.composite
def small_cases(draw, which):
    """Draw a small problem of a combination: any seed, activation, shape, S and B, also B = 0."""
    inputs, hidden, targets = draw(st.sampled_from(SHAPES))
    activation = draw(st.sampled_from(list(ACTIVATIONS)))
    samples = draw(st.sampled_from([2, 4] if "antithetic" in which.estimator else [1, 2, 4]))
    built = combinations.build_estimator(which, inputs, hidden, targets, activation)
    rng = np.random.default_rng(draw(seeds))
    rows = draw(st.integers(0, 3))
    return combinations.draw_case(built, rng, samples, rows, draw(st.sampled_from([1.0, 0.7])))


def params_of(prior, dtype=np.float64):
    """Return the learned blocks at their start, by name."""
    return Layout(prior.blocks()).views(prior.init(dtype))


def log_density(prior, w, params=None):
    return prior.log_density(params_of(prior) if params is None else params, w, Buffers())[0]


def gradients(prior, w, cotangent):
    """Return what a backward pass leaves: d_w (S, P) and the prior's own block, if it has one."""
    params = params_of(prior)
    _, saved = prior.log_density(params, w, Buffers())
    d_w = np.zeros_like(w)
    d_params = {name: np.full(v.shape, np.nan) for name, v in params.items()}
    prior.add_vjp(saved, cotangent, d_w, d_params)
    return d_w, *d_params.values()


def gradients_of(estimator, theta, x, y, calls, samples, seed=0, kl_weight=1.0):
    """Return independent gradients (calls, size) with `samples` weight samples each."""
    rng = np.random.default_rng(seed)
    buffers = Buffers()
    out = np.empty((calls, theta.size))
    for i in range(calls):
        noise = estimator.draw(rng, samples, len(x), theta.dtype)
        out[i] = estimator.value_and_grad(theta, noise, x, y, kl_weight, buffers.rewind())[1]
    return out

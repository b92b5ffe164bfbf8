"""Two samplers that share nothing but the model agree on the posterior.

The log joint is written out again for JAX, with densities of its own library and gradients by
automatic differentiation; sampled by blackjax. Compared are functions, not weights, which are only
identified up to exchanges of units. Both sides have many chains, whose means give the standard
errors.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from targets import chain_means

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    HalfCauchy,
    LogJoint,
    LogNormal,
    Model,
    sample,
)

pytestmark = pytest.mark.slow
CHAINS, WIDTH = 16, 2
LIMIT = 6  # standard errors; of 18 numbers of about 30 degrees of freedom one is there once in 4e4
GRID = np.linspace(-1.5, 1.5, 7)[:, None]
HYPERPRIORS = {"prior_log_scale": LogNormal(1.2, 0.3), "log_noise": HalfCauchy(0.4)}


def problem():
    """Noise enough that the posterior has no narrow place, where trajectories would diverge."""
    rng = np.random.default_rng(0)
    model = Model(
        MLP((1, WIDTH, 1), "tanh"), GaussianPrior(learn=True), GaussianLikelihood(learn=True)
    )
    x = rng.uniform(-1.0, 1.0, (14, 1))
    y = np.sin(2 * x) + 0.5 * rng.standard_normal(x.shape)
    return model, x, y


def imported(name):
    """A module, or a visible skip; what it warns about on import is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = f"{name} is not installed; the extra bbb-numpy[samplers] brings blackjax"
        return pytest.importorskip(name, reason=reason)


def densities():
    """What the model says, for JAX: parts of a position, outputs, and the log joint."""
    jax = imported("jax")
    jnp, stats = jax.numpy, imported("jax.scipy.stats")
    _, x, y = problem()

    def function(q, x):
        first, bias, second = q[:WIDTH], q[WIDTH : 2 * WIDTH], q[2 * WIDTH : 3 * WIDTH]
        return jnp.tanh(x @ first[None] + bias) @ second + q[3 * WIDTH]

    def log_joint(q):
        w, prior, noise = q[:-2], jnp.exp(q[-2]), jnp.exp(q[-1])
        value = stats.norm.logpdf(w, 0.0, prior).sum()
        value += stats.norm.logpdf(y[:, 0], function(q, x), noise).sum()
        value += stats.norm.logpdf(q[-2], jnp.log(1.2), 0.3)
        return value + stats.cauchy.logpdf(noise, 0.0, 0.4) + jnp.log(2.0) + q[-1]

    return SimpleNamespace(jax=jax, function=function, log_joint=log_joint)


def summarised(functions, noise, prior):
    """What is compared, (T, S, K): functions, their squares, logs of the scales."""
    return np.concatenate([functions, functions**2, noise, noise**2, prior, prior**2], axis=2)


def ours(draws=100):
    model, x, y = problem()
    rng = np.random.default_rng(1)
    # no start in the tails of the prior: one of 16 chains that cannot move from there would hardly
    # lower the mean acceptance, which sets the step size of all, and stay
    start = np.concatenate(
        [0.5 * rng.standard_normal((CHAINS, model.layout.size)), np.full((CHAINS, 2), -0.3)], axis=1
    )
    found = sample(
        model, x, y, sampler="nuts", chains=CHAINS, draws=draws, warm_up=100, seed=1,
        hyperpriors=HYPERPRIORS, target_accept=0.9, start=start,
    )  # fmt: skip
    w = np.ascontiguousarray(found.flat[:, : model.layout.size])
    functions = model.predict(w, GRID)[..., 0].reshape(draws, CHAINS, -1)
    return summarised(functions, found.block("log_noise"), found.block("prior_log_scale"))


def starts():
    model, x, y = problem()
    target = LogJoint(model, x, y, HYPERPRIORS)
    return target.draw_prior(np.random.default_rng(3), CHAINS)


def by_blackjax(draws=100):
    blackjax, parts = imported("blackjax"), densities()
    jax = parts.jax

    def chain(key, position):
        first, second = jax.random.split(key)
        warm_up = blackjax.window_adaptation(
            blackjax.nuts, parts.log_joint, target_acceptance_rate=0.9
        )
        (state, settings), _ = warm_up.run(first, position, num_steps=100)
        kernel = blackjax.nuts(parts.log_joint, **settings)

        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(second, draws))[1]

    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keys = jax.random.split(jax.random.key(0), CHAINS)
        positions = jax.jit(jax.vmap(chain))(keys, jax.numpy.asarray(starts()))
        return finished(parts, np.swapaxes(np.asarray(positions), 0, 1))


def finished(parts, positions):
    jax = parts.jax
    over = jax.vmap(jax.vmap(lambda q: parts.function(q, jax.numpy.asarray(GRID))))
    functions = np.asarray(over(jax.numpy.asarray(positions)))
    return summarised(functions, positions[..., -1:], positions[..., -2:-1])


def disagreement(a, b):
    """Largest difference of two sets of chain means, in standard errors."""
    (mean_a, error_a), (mean_b, error_b) = chain_means(a), chain_means(b)
    return np.max(np.abs(mean_a - mean_b) / np.hypot(error_a, error_b))


@pytest.mark.equation("D33")
def test_the_log_joint_is_the_one_written_out_for_jax():
    parts = densities()
    model, x, y = problem()
    target, positions = LogJoint(model, x, y, HYPERPRIORS), starts()
    value, gradient = target(positions)
    with parts.jax.enable_x64(True):
        of_jax = parts.jax.vmap(parts.jax.value_and_grad(parts.log_joint))(
            parts.jax.numpy.asarray(positions)
        )
        np.testing.assert_allclose(value, np.asarray(of_jax[0]), rtol=1e-11)
        np.testing.assert_allclose(gradient, np.asarray(of_jax[1]), rtol=1e-8, atol=1e-9)


@pytest.mark.equation("D33", "M10", "M11", "M12")
def test_an_independent_sampler_finds_the_same_functions():
    assert disagreement(by_blackjax(), ours()) < LIMIT

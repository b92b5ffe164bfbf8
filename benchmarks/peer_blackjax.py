"""The same posteriors and samplers in blackjax, under jit, all chains by vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.base import get_filter_adapt_info_fn

from bbb_numpy import BernoulliLikelihood
from bbb_numpy.model.log_joint import LogJoint

from .problems import Array

__all__ = ["VERSION", "adapted_nuts", "gradient", "hmc", "nuts"]

VERSION = f"{blackjax.__version__} on JAX {jax.__version__}"
Block = Callable[[Array, int], tuple[Array, int]]


def log_joint(target: LogJoint) -> Callable[[Any], Any]:
    """Return the log joint of one chain's position (D,), as jax functions write it."""
    model = target.model
    d_in, width, _ = model.network.sizes
    size = model.layout.size
    x = jnp.asarray(target.x)
    y = jnp.asarray(target.y[:, 0])
    activation = {"relu": jax.nn.relu, "tanh": jnp.tanh}[model.network.activation]
    classes = isinstance(model.likelihood, BernoulliLikelihood)
    spots = np.cumsum([d_in * width, width, width])

    def log_density(q: Any) -> Any:
        w = q[:size]
        first, bias, second = (w[a:b] for a, b in zip([0, *spots[:-1]], spots, strict=True))
        z = x @ first.reshape(d_in, width) + bias
        f = activation(z) @ second + w[-1]
        if classes:
            return -0.5 * jnp.sum(w**2) / model.prior.scale**2 + jnp.sum(y * f - jax.nn.softplus(f))
        u, v = q[size], q[size + 1]  # log prior scale, log noise
        centre = (np.log(model.prior.scale), np.log(model.likelihood.scale))
        return (
            -0.5 * jnp.sum(w**2) * jnp.exp(-2.0 * u)
            - size * u
            - 0.5 * jnp.sum((y - f) ** 2) * jnp.exp(-2.0 * v)
            - len(y) * v
            - 0.5 * ((u - centre[0]) ** 2 + (v - centre[1]) ** 2)
        )

    return log_density


def gradient(target: LogJoint) -> Callable[[Array], Any]:
    """Return value and gradient (S, D) of all chains, compiled."""
    value_and_grad = jax.jit(jax.vmap(jax.value_and_grad(log_joint(target))))
    return lambda q: jax.block_until_ready(value_and_grad(q))


def _block(kernel: Any, draws: int) -> Block:
    """Return a function that runs `draws` steps of all chains: positions (T, S, D), gradients."""
    step = jax.vmap(lambda key, state: kernel.step(key, state))

    @jax.jit
    def run(key: Any, position: Any) -> Any:
        state = jax.vmap(kernel.init)(position)

        def one_step(state: Any, key: Any) -> Any:
            state, info = step(jax.random.split(key, len(position)), state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(one_step, state, jax.random.split(key, draws))[1]

    def block(position: Array, seed: int) -> tuple[Array, int]:
        positions, gradients = jax.block_until_ready(run(jax.random.key(seed), position))
        return np.asarray(positions), int(np.sum(gradients))

    return block


def nuts(target: LogJoint, step_size: float, variance: Array, depth: int, draws: int) -> Block:
    """Return a block of NUTS draws with a diagonal metric."""
    kernel = blackjax.nuts(
        log_joint(target), step_size, jnp.asarray(variance), max_num_doublings=depth
    )
    return _block(kernel, draws)


def hmc(target: LogJoint, step_size: float, variance: Array, steps: int, draws: int) -> Block:
    """Return a block of HMC draws with paths of `steps` leapfrog steps."""
    kernel = blackjax.hmc(log_joint(target), step_size, jnp.asarray(variance), steps)
    return _block(kernel, draws)


def adapted_nuts(
    target: LogJoint, start: Array, warm_up: int, clock: Callable[[], float], draws: int = 20
) -> tuple[float, Callable[[float], Array]]:
    """Return the seconds of a warm-up, without compilation, and a function that makes more draws.

    Every chain has the step size and metric of its own window adaptation, as usual in blackjax;
    everything else is its default.
    """
    log_density = log_joint(target)
    warmup = blackjax.window_adaptation(
        blackjax.nuts, log_density, adaptation_info_fn=get_filter_adapt_info_fn()
    )

    def adapt(key: Any, position: Any) -> Any:
        return warmup.run(key, position, warm_up)[0]

    def draw_more(key: Any, state: Any, settings: Any) -> Any:
        def one_step(state: Any, key: Any) -> Any:
            step = blackjax.nuts(log_density, **settings).step
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(one_step, state, jax.random.split(key, draws))

    def keys(number: int) -> Any:
        return jax.random.split(jax.random.key(number), len(start))

    compiled_warm_up = jax.jit(jax.vmap(adapt)).lower(keys(0), jnp.asarray(start)).compile()
    start_time = clock()
    state, settings = jax.block_until_ready(compiled_warm_up(keys(0), jnp.asarray(start)))
    elapsed = clock() - start_time
    compiled_draws = jax.jit(jax.vmap(draw_more)).lower(keys(1), state, settings).compile()
    calls = 0

    def block(seconds: float) -> Array:  # it is called until they have passed
        nonlocal state, calls
        calls += 1
        state, positions = jax.block_until_ready(compiled_draws(keys(calls), state, settings))
        return np.asarray(positions).swapaxes(0, 1)  # (T, S, D)

    return elapsed, block

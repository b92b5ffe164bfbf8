"""Contestant: JAX, the whole step compiled into one program with donated buffers.

Two forms, mu and rho as flat vectors or one array per weight matrix and bias, each with
three public generators of random bits: threefry, JAX's default, and the two "rbg" ones,
which JAX documents as faster and less strict. `step_time` times all six, takes the fastest,
and reports the default generator beside it.
"""

from __future__ import annotations

from math import log, pi, prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .problems import KL_WEIGHT, LEARNING_RATE, OPTIMIZER, Array, Problem, Step

VERSION = jax.__version__
USUAL_VARIANT = "layers threefry2x32"  # one array per layer and JAX's default generator
GENERATORS = ("threefry2x32", "rbg", "unsafe_rbg")
Leaves = list[jax.Array]
State = tuple[Leaves, Leaves, Leaves, jax.Array]  # mu and rho, Adam's moments, steps


def contestants(problem: Problem) -> dict[str, Step]:
    """Return one step for each form and each generator."""
    return {
        f"JAX {form} {generator}": Peer(problem, form, generator).step
        for form in ("layers", "flat")
        for generator in GENERATORS
    }


class Peer:
    """Parameters, Adam's memory, key and rows of one network."""

    def __init__(
        self,
        problem: Problem,
        form: str = "flat",
        generator: str = GENERATORS[0],
        dtype: Any = np.float32,
    ) -> None:
        start = problem.start(dtype)
        self.problem = problem
        self.form = form
        self.shapes = [shape for _, shape in problem.estimator.model.layout.blocks]
        self.x = jnp.array(start.x)
        self.y = jnp.array(start.y)
        leaves = [leaf for part in np.split(start.theta, 2) for leaf in self.blocks(part)]
        m, v = ([jnp.zeros_like(leaf) for leaf in leaves] for _ in range(2))
        self.state: State = ([jnp.array(leaf) for leaf in leaves], m, v, jnp.zeros((), jnp.int32))
        self.key = jax.random.key(2, impl=generator)
        self._step = jax.jit(self.drawn_step, donate_argnums=(0, 1))
        self._advance = jax.jit(self.adam_step)

    def blocks(self, flat: Any) -> list[Any]:
        """Cut (..., P) into the arrays that this form keeps."""
        return self.cut(flat) if self.form == "layers" else [flat]

    def cut(self, flat: Any) -> list[Any]:
        """View (..., P) as W0, b0, W1, b1, ..."""
        out = []
        start = 0
        for shape in self.shapes:
            stop = start + prod(shape)
            out.append(flat[..., start:stop].reshape(*flat.shape[:-1], *shape))
            start = stop
        return out

    def loss(self, leaves: Leaves, eps: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        """Return the free energy of the minibatch for noise `eps` (S, P)."""
        samples = self.problem.samples
        mu = leaves[: len(leaves) // 2]
        rho = leaves[len(leaves) // 2 :]
        noise = self.blocks(eps)
        sigma = [jax.nn.softplus(r) for r in rho]
        w = [m + s * e for m, s, e in zip(mu, sigma, noise, strict=True)]
        kl: Any = 0.0  # log q - log P; their constants cancel for a prior N(0, 1)
        for s, v, e in zip(sigma, w, noise, strict=True):
            kl = kl - jnp.log(s).sum() + (jnp.square(v).sum() - jnp.square(e).sum()) * 0.5 / samples
        blocks = w if self.form == "layers" else self.cut(w[0])
        a = x
        for layer, (weight, bias) in enumerate(zip(blocks[0::2], blocks[1::2], strict=True)):
            if layer:
                a = jax.nn.relu(a)
            a = a @ weight + bias[:, None, :]  # (S, B, width)
        constant = 0.5 * log(2.0 * pi) * y.size
        return KL_WEIGHT * kl + jnp.square(y - a).sum() * 0.5 / samples + constant

    def adam_step(
        self, state: State, eps: jax.Array, x: jax.Array, y: jax.Array
    ) -> tuple[State, jax.Array, Leaves]:
        """Take one Adam step with this noise: new state, loss and gradient before it."""
        (leaves, m, v, steps), beta1, beta2 = state, OPTIMIZER.beta1, OPTIMIZER.beta2
        loss, grad = jax.value_and_grad(self.loss)(leaves, eps, x, y)
        steps = steps + 1
        t = steps.astype(eps.dtype)
        m = [beta1 * a + (1 - beta1) * g for a, g in zip(m, grad, strict=True)]
        v = [beta2 * a + (1 - beta2) * g * g for a, g in zip(v, grad, strict=True)]
        unbias_m = 1 / (1 - beta1**t)
        unbias_v = 1 / (1 - beta2**t)
        leaves = [
            leaf - LEARNING_RATE * (a * unbias_m) / (jnp.sqrt(b * unbias_v) + OPTIMIZER.epsilon)
            for leaf, a, b in zip(leaves, m, v, strict=True)
        ]
        return (leaves, m, v, steps), loss, grad

    def drawn_step(
        self, state: State, key: jax.Array, x: jax.Array, y: jax.Array
    ) -> tuple[State, jax.Array, jax.Array]:
        """Draw the noise inside the compiled program, then take the Adam step."""
        key, subkey = jax.random.split(key)
        eps = jax.random.normal(subkey, (self.problem.samples, self.problem.weights), x.dtype)
        state, loss, _ = self.adam_step(state, eps, x, y)
        return state, key, loss

    def step(self) -> None:
        """Take one training step and wait for its result."""
        self.state, self.key, loss = self._step(self.state, self.key, self.x, self.y)
        loss.block_until_ready()  # one program, so its other results are ready with it

    def advance(self, eps: Array) -> tuple[float, Array]:
        """Take one step with given noise (S, P); return the loss and gradient before it."""
        self.state, loss, grad = self._advance(self.state, jnp.array(eps), self.x, self.y)
        return float(loss), _flat(grad)

    def theta(self) -> Array:
        """Return the parameters as one vector (2 P,), mu then rho."""
        return _flat(self.state[0])


def _flat(leaves: Leaves) -> Array:
    return np.concatenate([np.ravel(leaf) for leaf in leaves])

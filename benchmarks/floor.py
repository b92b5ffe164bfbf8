"""Contestant: the machine's own floor, the matrix products and normal draws of a step alone."""

from __future__ import annotations

import numpy as np

from .problems import Array, Problem, Step


def contestants(problem: Problem) -> dict[str, Step]:
    """Return the floor of plain ``np.matmul``, and the tight one.

    A product of inner width 1 is an outer product. ``np.matmul`` is several times slower at
    it than ``np.multiply``, which the package therefore uses; the tight floor does too.
    """
    return {"floor": step(problem, tight=False), "tight floor": step(problem, tight=True)}


def step(problem: Problem, tight: bool) -> Step:
    """Return the bare products of forward, dW and dA, and the draw of (S, P) normals.

    Operands and results are float32, preallocated, and laid out as in a training step.
    """
    plan = products(problem)
    calls = [
        (np.multiply if tight and a.shape[-1] == 1 else np.matmul, a, b, out) for a, b, out in plan
    ]
    rng = np.random.default_rng(2)
    noise = np.empty((problem.samples, problem.weights), np.float32)

    def one_step() -> None:
        rng.standard_normal(dtype=np.float32, out=noise)
        for product, a, b, out in calls:
            product(a, b, out=out)

    return one_step


def products(problem: Problem, rowwise_inputs: bool = False) -> list[tuple[Array, Array, Array]]:
    """Return the operands and the result of every matrix product of one step, in order.

    With `rowwise_inputs` the inputs of the first layer differ between samples, as in Flipout.
    """
    rng, sizes = np.random.default_rng(3), problem.sizes
    lead = (problem.samples, problem.rows)
    flat = rng.standard_normal((problem.samples, problem.weights), dtype=np.float32)
    net = problem.estimator.model.network
    weights = [layer.weight for layer in net.layers(flat)]  # (S, d_in, d_out) each
    d_weights = [layer.weight for layer in net.layers(np.empty_like(flat))]
    x = problem.start().x
    inputs = [np.stack([x] * problem.samples) if rowwise_inputs else x]  # (B, d_in) or (S, B, d_in)
    inputs += [rng.standard_normal((*lead, width), dtype=np.float32) for width in sizes[1:-1]]
    deltas = [rng.standard_normal((*lead, width), dtype=np.float32) for width in sizes[1:]]
    outputs = [np.empty_like(delta) for delta in deltas]
    forward = list(zip(inputs, weights, outputs, strict=True))
    backward: list[tuple[Array, Array, Array]] = []
    for layer in range(len(weights) - 1, -1, -1):
        backward.append((inputs[layer].swapaxes(-1, -2), deltas[layer], d_weights[layer]))  # dW
        if layer:
            below = np.empty_like(deltas[layer - 1])
            backward.append((deltas[layer], weights[layer].swapaxes(-1, -2), below))  # dA
    return forward + backward

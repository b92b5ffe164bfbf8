"""Contestant: the machine's own floor, the matrix products and random draws of a step alone.

Operands and results are float32, preallocated, and laid out as in a training step.
"""

from __future__ import annotations

import numpy as np

from .problems import Array, Problem, Step

Product = tuple[Array, Array, Array]  # operands and the result


def step(problem: Problem, tight: bool = False) -> Step:
    """Return the bare draws and ``np.matmul`` calls of one step of the problem's estimator.

    A product of inner width 1 is an outer product. ``np.matmul`` is several times slower at
    it than ``np.multiply``, which the package therefore uses; the tight floor does too.
    """
    calls = [
        (np.multiply if tight and a.shape[-1] == 1 else np.matmul, a, b, out)
        for a, b, out in products(problem)
    ]
    rng, (normals, sign_bytes) = np.random.default_rng(2), draws(problem)
    noise = np.empty(normals, np.float32)

    def one_step() -> None:
        rng.standard_normal(dtype=np.float32, out=noise)
        if sign_bytes:
            rng.bytes(sign_bytes)
        for product, a, b, out in calls:
            product(a, b, out=out)

    return one_step


def draws(problem: Problem) -> tuple[int, int]:
    """Return how many normal numbers and how many bytes of random signs one step draws."""
    samples = problem.samples
    weights = problem.weights
    sizes = problem.sizes
    if problem.estimator_name == "antithetic":
        return samples // 2 * weights, 0
    if problem.estimator_name == "local reparameterisation":
        return samples * problem.rows * sum(sizes[1:]), 0
    if problem.estimator_name == "Flipout":
        signs = samples * problem.rows * (sum(sizes[:-1]) + 2 * sum(sizes[1:]))
        return samples * weights, (signs + 7) // 8
    return samples * weights, 0


def products(problem: Problem) -> list[Product]:
    """Return every matrix product of one step."""
    if problem.estimator_name == "local reparameterisation":
        return _shared(problem) + _shared(problem)  # for means and for variances
    if (
        problem.estimator_name == "Flipout"
    ):  # whose inputs of the first layer differ between samples
        return _shared(problem) + _of_samples(problem, rowwise_inputs=True)
    plan = _of_samples(problem)
    samples = problem.samples
    weights = problem.weights
    if (
        problem.estimator_name == "self-normalised"
    ):  # no backward pass: two weighted sums over the samples
        share, eps = _random(1, samples), _random(samples, weights)
        score = [(share, eps, _random(1, weights)) for _ in ("mu", "rho")]
        return plan[: len(problem.sizes) - 1] + score
    if problem.estimator_name == "full rank":
        eps, factor, d_w = (_random(n, weights) for n in (samples, weights, samples))
        spread = (eps, factor.T, np.empty_like(eps))  # C eps
        return [spread, *plan, (d_w.T, eps, np.empty_like(factor))]  # d_w^T eps
    return plan


def _random(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape, dtype=np.float32)


def _of_samples(problem: Problem, rowwise_inputs: bool = False) -> list[Product]:
    """Return the products with the weights of each sample: forward, then dW and dA."""
    rng = np.random.default_rng(3)
    sizes = problem.sizes
    lead = (problem.samples, problem.rows)
    flat = rng.standard_normal((problem.samples, problem.weights), dtype=np.float32)
    net = problem.estimator.model.network
    weights = [layer.weight for layer in net.layers(flat)]  # (S, d_in, d_out) each
    d_weights = [layer.weight for layer in net.layers(np.empty_like(flat))]
    x = problem.start().x
    inputs = [np.stack([x] * problem.samples) if rowwise_inputs else x]  # (B, d_in) or (S, B, d_in)
    inputs += [rng.standard_normal((*lead, width), dtype=np.float32) for width in sizes[1:-1]]
    deltas = [rng.standard_normal((*lead, width), dtype=np.float32) for width in sizes[1:]]
    plan = [(a, w, np.empty_like(d)) for a, w, d in zip(inputs, weights, deltas, strict=True)]
    for layer in range(len(weights) - 1, -1, -1):
        plan.append((inputs[layer].swapaxes(-1, -2), deltas[layer], d_weights[layer]))  # dW
        if layer:
            below = np.empty_like(deltas[layer - 1])
            plan.append((deltas[layer], weights[layer].swapaxes(-1, -2), below))  # dA
    return plan


def _shared(problem: Problem) -> list[Product]:
    """Return the products with one weight matrix for all samples: one pass each way.

    The first layer has the same inputs for all samples, so its products have no axis S.
    """
    plan = []
    pairs = list(zip(problem.sizes[:-1], problem.sizes[1:], strict=True))
    for layer, (d_in, d_out) in enumerate(pairs):
        rows = problem.rows * (problem.samples if layer else 1)
        a, weight, delta = _random(rows, d_in), _random(d_in, d_out), _random(rows, d_out)
        plan.append((a, weight, np.empty_like(delta)))
        plan.append((a.T, delta, np.empty_like(weight)))  # d_mu or d_sigma^2
        if layer:
            plan.append((delta, weight.T, np.empty_like(a)))  # d_a
    return plan

"""Contestant: bbb_numpy, in the very calls that `training.fit` makes for each minibatch."""

from __future__ import annotations

import numpy as np

from bbb_numpy.numeric.buffers import Buffers

from .problems import KL_WEIGHT, OPTIMIZER, Array, Problem, Step


def contestants(problem: Problem) -> dict[str, Step]:
    """Return the step early in training, and late, when some deviations have grown."""
    early = problem.start().theta
    late = early.copy()
    rho = problem.estimator.layout.views(late)["rho"]
    # Weights that the data leave free return to the prior, sigma = 1 at rho = 0.54: the two
    # signs of rho in one array are the slow case of softplus.
    rho[...] = np.random.default_rng(1).uniform(-5.0, 1.0, rho.shape)
    return {"ours": step(problem, early), "ours late": step(problem, late)}


def step(problem: Problem, theta: Array) -> Step:
    """Return one training step: draw, forward, backward, Adam; `theta` changes in place."""
    estimator, samples, dtype = problem.estimator, problem.samples, theta.dtype
    _, x_epoch, y_epoch = problem.start(dtype)
    rng, buffers, rows = np.random.default_rng(2), Buffers(), slice(0, problem.rows)
    noise = np.empty(estimator.noise_shape(samples, problem.rows), dtype)
    state = OPTIMIZER.init(theta)

    def one_step() -> None:
        estimator.fill(rng, noise)
        _, grad, _ = estimator.value_and_grad(
            theta, noise, x_epoch[rows], y_epoch[rows], KL_WEIGHT, buffers.rewind()
        )
        factor = OPTIMIZER.schedule(0.0, 1)
        OPTIMIZER.update(theta, grad, state, factor)

    return one_step

"""Models of labels, with their probability of every label vector (M21), and of regressions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior

__all__ = [
    "LABELS",
    "NOISE",
    "POINTS",
    "PRIOR",
    "ROWS",
    "WIDTH",
    "Budget",
    "Labelled",
    "all_labels",
    "changes",
    "features",
    "label_models",
    "nodes",
    "regression_models",
    "sum_over_weights",
]

Array = NDArray[Any]
POINTS = 8
PRIOR = 5.0  # deviation of every weight, logistic models
ROWS, NOISE, WIDTH = 15, 0.3, 1.5  # regression: rows, deviations of noise and of every weight
BLOCK = 20_000  # weight vectors in one pass


class Budget(NamedTuple):
    """How much to compute."""

    side: int = 81  # quadrature nodes along each weight
    draws: int = 80_000  # of the network's prior
    chains: int = 50  # of annealed importance sampling
    steps: int = 150
    sets: int = 3  # regressions drawn from each model
    checked: int = 3  # label vectors checked by annealing


class Labelled(NamedTuple):
    """A model of labels and its probability of every label vector."""

    model: Model
    x: Array  # (N, d_in)
    probability: Array  # (2^N,)
    error: Array  # (2^N,)  standard error, 0 by quadrature


def all_labels(points: int) -> Array:
    """Return all 0-1 vectors (2^N, N)."""
    return (np.arange(2**points)[:, None] >> np.arange(points)) & 1


def changes(labels: Array) -> Array:
    """Count the places (2^N,) at which neighbouring labels differ: how complex the data are."""
    return np.count_nonzero(np.diff(labels, axis=1), axis=1)


LABELS = all_labels(POINTS)


def features(points: int, degree: int) -> Array:
    """Return orthogonal polynomials (N, degree) on a grid, each of mean 0 and mean square 1.

    With the bias, degree N - 1 has as many weights as points, and orthogonal columns: equal
    priors of the weights are then equal and independent priors of all logits.
    """
    t = np.linspace(-1.0, 1.0, points)
    columns = np.linalg.qr(np.vander(t, degree + 1, increasing=True))[0]
    return columns[:, 1:] * points**0.5


def nodes(weights: int, side: int, scale: float) -> tuple[Array, Array]:
    """Return a grid of weight vectors (side^P, P), and the share (side^P,) of the prior of each.

    The trapezoidal rule, exact to rounding for smooth integrands; the sigmoids of a wide prior
    are steep, so that it takes some eighty nodes a side for four digits of the rarest labels.
    """
    z = np.linspace(-6.0, 6.0, side)
    grid = np.stack(np.meshgrid(*[z] * weights, indexing="ij"), axis=-1).reshape(-1, weights)
    shares = np.exp(-0.5 * np.sum(grid**2, axis=1))
    return scale * grid, shares / shares.sum()


def sum_over_weights(model: Model, x: Array, w: Array, shares: Array) -> tuple[Array, Array]:
    """Return P(labels|m) = sum_s share_s prod_i P(label_i|x_i, w_s), all label vectors (M21).

    Every w spends exactly 1 on all of them, so any shares that sum to 1 do.

    Returns
    -------
    probability, error : ndarray (2^N,)
        The standard error holds if the shares are equal and the weights drawn from the prior.
    """
    total, squares, buffers = np.zeros(2 ** len(x)), np.zeros(2 ** len(x)), Buffers()
    for begin in range(0, len(w), BLOCK):
        some = w[begin : begin + BLOCK]
        p = model.likelihood.mean({}, model.predict(some, x, buffers.rewind()))[..., 0]  # (S, N)
        product: Array = np.ones((len(some), 1))
        for i in range(len(x)):  # doubles with every point, the newest label in the upper half
            product = np.concatenate(
                [product * (1.0 - p[:, i : i + 1]), product * p[:, i : i + 1]], 1
            )
        total += shares[begin : begin + BLOCK] @ product  # M21
        squares += shares[begin : begin + BLOCK] @ product**2
    return total, np.sqrt(np.maximum(squares - total**2, 0.0) / len(w))


def label_models(rng: np.random.Generator, budget: Budget) -> dict[str, Labelled]:
    """Return the four models of labels, evaluated on all label vectors."""
    prior, likelihood = GaussianPrior(PRIOR), BernoulliLikelihood()
    found = {}
    for name, degree in (("line", 1), ("parabola", 2), ("degree 7", POINTS - 1)):
        model, x = Model(MLP((degree, 1)), prior, likelihood), features(POINTS, degree)
        if degree < 3:
            w, shares = nodes(degree + 1, budget.side, PRIOR)
            probability, _ = sum_over_weights(model, x, w, shares)
        else:  # independent logits, symmetric about 0: every label is a fair coin (M21)
            probability = np.full(2**POINTS, 0.5**POINTS)
        found[name] = Labelled(model, x, probability, np.zeros_like(probability))
    model, x = Model(MLP((1, 20, 20, 1), "tanh"), prior, likelihood), features(POINTS, 1)
    w = model.prior.draw(rng, {}, (budget.draws, model.layout.size))
    shares = np.full(budget.draws, 1.0 / budget.draws)
    found["network"] = Labelled(model, x, *sum_over_weights(model, x, w, shares))
    return found


def regression_models() -> dict[str, Model]:
    """Return a line, a small and a large network with the same prior and noise."""
    prior, noise = GaussianPrior(WIDTH), GaussianLikelihood(NOISE)
    sizes = {"line": (1, 1), "small network": (1, 3, 1), "large network": (1, 20, 20, 1)}
    return {name: Model(MLP(size, "tanh"), prior, noise) for name, size in sizes.items()}

"""Forecasters of next-day directions: baselines, and a network by NUTS and by mean-field VI.

Each is a function of a `Task`, which holds training rows with targets and test rows without: what
it is not given it cannot use (D38).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation import predictive
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.sampling.draws import DrawnWeights
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import learn

__all__ = [
    "FORECASTERS",
    "NUTS_NAME",
    "VI_NAME",
    "Effort",
    "Forecast",
    "Task",
    "climatology",
    "last_value",
    "logistic",
    "nuts",
    "variational",
]

Array = NDArray[Any]
NUTS_NAME, VI_NAME = "network, NUTS", "network, VI"


@dataclass(frozen=True)
class Effort:
    """How much is computed; less for a quick look."""

    hidden: int = 5
    prior_scale: float = 0.5
    chains: int = 4
    warm_up: int = 120
    draws: int = 150
    epochs: int = 80
    samples: int = 300  # of the weights, for predictions of VI


class Task(NamedTuple):
    """What a forecaster is told before a year begins, and what it is asked."""

    x: Array  # (N, d_in)  training inputs, all companies
    y: Array  # (N, 1)
    thinned: NDArray[np.intp]  # rows of them for the networks: every company in turn
    test: Array  # (M, d_in)
    seed: tuple[int, ...]
    effort: Effort


class Forecast(NamedTuple):
    """Probabilities that the next close is higher, and the directions forecast."""

    proba: Array  # (M,)
    up: NDArray[np.bool_]  # (M,)
    note: dict[str, float]


def climatology(task: Task) -> Forecast:
    """State the share of rises so far, for every row."""
    share = float(task.y.mean())
    proba = np.full(len(task.test), share)
    return Forecast(proba, proba > 0.5, {})


def last_value(task: Task) -> Forecast:
    """Say that tomorrow goes as today; the probability is how often that was so."""
    today, tests = task.x[:, 0] > 0, task.test[:, 0] > 0  # the first input is today's return
    after = [float(task.y[today == direction].mean()) for direction in (False, True)]
    return Forecast(np.where(tests, after[1], after[0]), tests, {})


def logistic(task: Task) -> Forecast:
    """Fit a logistic regression to all training rows by Newton's method."""
    mean, scale = moments(task.x, True)
    design = np.column_stack([(task.x - mean) / scale, np.ones(len(task.x))])
    weights = np.zeros(design.shape[1])
    for _ in range(20):
        proba = sigmoid(design @ weights)
        slope = design.T @ (task.y[:, 0] - proba) - 1e-6 * weights
        bend = (design * (proba * (1.0 - proba))[:, None]).T @ design
        step = np.linalg.solve(bend + 1e-6 * np.eye(len(weights)), slope)
        weights += step
        if np.abs(step).max() < 1e-10:
            break
    proba = sigmoid((task.test - mean) / scale @ weights[:-1] + weights[-1])
    return Forecast(proba, proba > 0.5, {})


def _prepared(task: Task) -> tuple[Model, Array, Array, Array]:
    """Return the model, and inputs standardised by the training rows alone."""
    mean, scale = moments(task.x, True)
    net = MLP((task.x.shape[1], task.effort.hidden, 1), "tanh")
    model = Model(net, GaussianPrior(task.effort.prior_scale), BernoulliLikelihood())
    x, y = (task.x[task.thinned] - mean) / scale, task.y[task.thinned]
    return model, x, y, (task.test - mean) / scale


def nuts(task: Task) -> Forecast:
    """Sample the posterior of a tanh network and average its probabilities."""
    model, x, y, test = _prepared(task)
    effort = task.effort
    rng = np.random.default_rng([*task.seed, 1])
    draws = sample(
        model, x, y, sampler=NUTS(max_depth=6), chains=effort.chains, groups=1,
        warm_up=effort.warm_up, draws=effort.draws, seed=rng, dtype="float32", progress=False,
    )  # fmt: skip
    each = np.stack(
        [
            _proba(DrawnWeights(model), draws.positions[:, chain], test, rng, effort.draws)
            for chain in range(effort.chains)
        ]
    )  # (chains, M)
    note = {
        "between chains": float(each.std(axis=0, ddof=1).mean()) if len(each) > 1 else 0.0,
        "divergences": float(draws.divergences),
        "gradients": float(draws.stats["gradients"].sum()),
    }
    proba = each.mean(axis=0)
    return Forecast(proba, proba > 0.5, note)


def variational(task: Task) -> Forecast:
    """Train a mean-field posterior of the same network on the same rows."""
    model, x, y, test = _prepared(task)
    estimator, rng = (
        ClosedFormKL(model, MeanField(0.1, -3.0)),
        np.random.default_rng([*task.seed, 2]),
    )
    recipe = Recipe(Adam(1e-2, schedule=Cosine()), epochs=task.effort.epochs, batch_size=250)
    theta = learn(estimator, x, y, recipe, rng)
    proba = _proba(estimator, theta, test, rng, task.effort.samples)
    return Forecast(proba, proba > 0.5, {})


def _proba(source: Any, theta: Array, x: Array, rng: np.random.Generator, samples: int) -> Array:
    """Return the predictive probability of a rise (M,), as float64."""
    found = predictive.predict_classes(
        source, np.ascontiguousarray(theta), x, rng=rng, samples=samples
    )
    return np.asarray(found.proba[:, 1], float)


FORECASTERS: dict[str, Callable[[Task], Forecast]] = {
    "climatology": climatology,
    "last value": last_value,
    "logistic regression": logistic,
    VI_NAME: variational,
    NUTS_NAME: nuts,
}

"""Powerball's classifiers: the network sampled and fitted, and three of scikit-learn's (D37).

There are only 70 inputs, the numbers 0 to 69; so a fitted classifier is the table of its
probabilities at these, and everything else is looked up in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.data import powerball as data

__all__ = [
    "BAYESIAN",
    "COST",
    "METHODS",
    "NUMBERS",
    "PRINTED",
    "Fitted",
    "Setup",
    "logit",
    "network",
    "train",
]

Array = NDArray[Any]
NUMBERS = np.arange(70)  # 0 is no ball; 69 is the largest there ever was
PRINTED = {  # the paper's accuracies on its held-out data; "1 hidden layer, 5 units each" ...
    "NUTS, prior 1": 0.8123,
    "NUTS, 1-5-5-1": 0.8123,  # ... and weights "in the three layers": one layer or two
    "random forest": 0.8296,
    "AdaBoost": 0.8296,
    "Gaussian process": 0.8493,
}


@dataclass(frozen=True)
class Setup:
    """How the classifiers are trained; nothing here was chosen by a test score."""

    hidden: int = 5  # tanh units of a layer, the paper's
    offset: float = 1.0  # the network's input is log(number + offset), standardised
    chains: int = 4  # two at least
    start: float = 0.5  # deviation of the weights with which they begin
    warm_up: int = 200
    draws: int = 200  # of each chain
    max_depth: int = 6
    target_accept: float = 0.9
    epochs: int = 1500  # of VI, all rows in one batch
    learning_rate: float = 0.02
    samples: int = 4  # of the weights per step of VI
    functions: int = 2000  # drawn from VI's posterior
    process_draws: int = 200  # by which the Gaussian process chooses its kernel


class Fitted(NamedTuple):
    """A classifier after training."""

    probability: Array  # (70,)  P(bin 1 | number), averaged over weights if it has a posterior
    seconds: float
    functions: Array | None = None  # (S, 70)  P(bin 1 | number, w)
    weights: Array | None = None  # (S, P)
    rhat: Array | None = None  # (70,)  of the logit at every number, over several chains
    weight_rhat: float = np.nan  # largest over the weights
    divergent: int = 0


def network(setup: Setup, prior_scale: float, layers: int = 1) -> Model:
    """Return the paper's network, all weights N(0, prior_scale^2) beforehand."""
    net = MLP((1, *[setup.hidden] * layers, 1), "tanh")
    return Model(net, GaussianPrior(prior_scale), BernoulliLikelihood())


def _inputs(numbers: Array, setup: Setup) -> tuple[Array, Array]:
    """Return the transformed training inputs (B, 1), and those of all numbers (70, 1)."""
    rows, table = (np.log(part + setup.offset)[:, None] for part in (numbers, NUMBERS))
    mean, scale = rows.mean(), rows.std()
    return (rows - mean) / scale, (table - mean) / scale


def logit(p: Array) -> Array:
    """Return log(p / (1 - p)), of probabilities within 1e-12 of 0 or 1 that of 1e-12."""
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return np.log(p) - np.log1p(-p)


def _rhat(chains: Array) -> Array:
    """Return R-hat (...) of values (T, S, ...) over T draws of S chains."""
    draws = len(chains)
    within = chains.var(axis=0, ddof=1).mean(axis=0)
    between = chains.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt((draws - 1) / draws + between / within)


def _nuts(
    prior_scale: float, rows: data.Examples, seed: int, setup: Setup, layers: int = 1
) -> Fitted:
    begin, model = perf_counter(), network(setup, prior_scale, layers)
    x, table = _inputs(rows.number, setup)
    shape = (setup.chains, model.layout.size)
    begin_at = setup.start * np.random.default_rng(seed).standard_normal(shape)
    with warnings.catch_warnings():  # divergences are counted and told with the results
        warnings.filterwarnings("ignore", ".*divergent transitions", UserWarning)
        drawn = sample(
            model,
            x,
            rows.label[:, None],
            sampler=NUTS(max_depth=setup.max_depth),
            target_accept=setup.target_accept,
            chains=setup.chains,
            groups=1,
            draws=setup.draws,
            warm_up=setup.warm_up,
            start=begin_at,
            seed=seed,
            progress=False,
        )
    if not drawn.finished:
        raise KeyboardInterrupt
    used = perf_counter() - begin
    p = _functions(model, drawn.flat, table)
    logits = logit(p).reshape(*drawn.positions.shape[:2], -1)
    worst = float(_rhat(drawn.positions).max())
    return Fitted(p.mean(axis=0), used, p, drawn.flat, _rhat(logits), worst, drawn.divergences)


def _functions(model: Model, weights: Array, table: Array) -> Array:
    """Return P(bin 1 | number, w) (S, 70) for every row of the weights (S, P)."""
    outputs = model.predict(np.ascontiguousarray(weights), table)
    return model.likelihood.mean({}, outputs)[..., 0]


def _vi(prior_scale: float, rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    begin, rng = perf_counter(), np.random.default_rng(seed)
    x, table = _inputs(rows.number, setup)
    estimator = ClosedFormKL(network(setup, prior_scale), MeanField(0.5, -3.0))
    optimizer = Adam(setup.learning_rate, schedule=Cosine())
    trained = fit(
        estimator,
        start(estimator, rng, optimizer),
        x,
        rows.label[:, None],
        Recipe(optimizer=optimizer, epochs=setup.epochs, batch_size=len(x), samples=setup.samples),
        rng=rng,
        progress=False,
    )
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    used = perf_counter() - begin
    eps = estimator.draw_weights(rng, setup.functions)
    weights = estimator.weights(trained.theta, eps)
    p = _functions(estimator.model, weights, table)
    return Fitted(p.mean(axis=0), used, p, weights)


def _forest(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    from sklearn.ensemble import RandomForestClassifier

    return _sklearn(RandomForestClassifier(10, max_depth=5, random_state=seed), rows)


def _boosted(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    from sklearn.ensemble import AdaBoostClassifier

    return _sklearn(AdaBoostClassifier(random_state=seed), rows)


def _process(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    """Fit a Gaussian process to all rows, its kernel found on a few whole draws of them.

    The marginal likelihood of all rows costs a second or more for each of some twenty steps.
    """
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    begin = perf_counter()
    some = np.random.default_rng(seed).permutation(np.unique(rows.draw))[: setup.process_draws]
    few = np.isin(rows.draw, some)
    x = rows.number[:, None] / NUMBERS.std()
    first = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(x[few], rows.label[few])
    whole = GaussianProcessClassifier(first.kernel_, optimizer=None).fit(x, rows.label)
    p = whole.predict_proba(NUMBERS[:, None] / NUMBERS.std())[:, 1]
    return Fitted(p, perf_counter() - begin)


def _sklearn(learner: Any, rows: data.Examples) -> Fitted:
    begin = perf_counter()
    learner.fit(rows.number[:, None], rows.label)
    return Fitted(learner.predict_proba(NUMBERS[:, None])[:, 1], perf_counter() - begin)


METHODS: dict[str, Callable[[data.Examples, int, Setup], Fitted]] = {
    "NUTS, prior 1": partial(_nuts, 1.0),
    "NUTS, prior 4": partial(_nuts, 4.0),
    "VI, prior 1": partial(_vi, 1.0),
    "VI, prior 4": partial(_vi, 4.0),
    "NUTS, 1-5-5-1": partial(_nuts, 1.0, layers=2),
    "random forest": _forest,
    "AdaBoost": _boosted,
    "Gaussian process": _process,
}
COST = dict(zip(METHODS, (120, 120, 20, 20, 150, 1, 3, 24), strict=True))  # of a fit
BAYESIAN = tuple(METHODS)[:4]  # 1-5-1: judged by their functions, too


def train(name: str, rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    """Train a classifier of `METHODS`; KeyboardInterrupt after Ctrl-C: half a chain is none."""
    return METHODS[name](rows, seed, setup)

"""Predictive distributions of the income tax: baselines, and networks by NUTS and mean-field VI.

Targets are logarithms. Every model centres them by the means of the six classes first, so that a
network starts from climatology, and its prior from "nothing but the class matters". Each returns
a mixture of Gaussians for the test rows, of which everything is computed without sampling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.convergence import function_r_hats
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Likelihood, Model
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.sampling.draws import DrawnWeights, Draws
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import learn

__all__ = ["MODELS", "NUTS_NAME", "Effort", "Mixture", "Task", "class_mean", "least_squares"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Effort:
    """How much is computed; less for a quick look."""

    hidden: int = 8
    prior_scale: float = 0.3
    noise_floor: float = 0.02  # of the noise by cell, in deviations of the centred target
    chains: int = 4
    warm_up: int = 200
    draws: int = 200
    max_depth: int = 6
    epochs: int = 600
    kept: int = 200  # components of the mixture that is scored


class Task(NamedTuple):
    """Training cells with targets, and test cells without."""

    x: Array  # (N, d_in)
    y: Array  # (N,)  logarithms
    income_class: NDArray[np.int_]  # (N,)
    test: Array  # (M, d_in)
    test_class: NDArray[np.int_]  # (M,)
    seed: tuple[int, ...]
    effort: Effort


class Mixture(NamedTuple):
    """An equal mixture of T Gaussians for each of M cells."""

    means: Array  # (T, M, 1)
    scales: Array  # (T, M, 1)
    note: dict[str, Any]


def class_mean(task: Task) -> Mixture:
    """Climatology: mean and deviation of the class among the training cells."""
    found = [task.y[task.income_class == one] for one in range(task.income_class.max() + 1)]
    mean, scale = (np.array([function(y) for y in found]) for function in (np.mean, _deviation))
    return Mixture(mean[task.test_class][None, :, None], scale[task.test_class][None, :, None], {})


def _deviation(y: Array) -> float:
    return float(np.std(y, ddof=1))


def least_squares(task: Task) -> Mixture:
    """Linear regression with one noise deviation; the error of the coefficients included."""
    mean, scale = moments(task.x, True)
    design, test = (
        np.column_stack([(x - mean) / scale, np.ones(len(x))]) for x in (task.x, task.test)
    )
    inverse = np.linalg.pinv(design.T @ design)
    weights = inverse @ (design.T @ task.y)
    residual = task.y - design @ weights
    variance = residual @ residual / (len(task.y) - design.shape[1])
    leverage = np.einsum("mi,ij,mj->m", test, inverse, test)
    deviation = np.sqrt(variance * (1.0 + leverage))
    return Mixture((test @ weights)[None, :, None], deviation[None, :, None], {})


class Prepared(NamedTuple):
    """A task in the units of a network."""

    model: Model
    x: Array
    y: Array  # (N, 1)
    test: Array
    centre: Array  # (M, 1)  what to add to predictions, after
    scale: float  # multiplying by this


def _prepare(task: Task, hidden: tuple[int, ...], likelihood: Likelihood) -> Prepared:
    mean, scale = moments(task.x, True)
    centre = class_mean(task._replace(test_class=task.income_class)).means[0, :, 0]
    spread = _deviation(task.y - centre)
    net = MLP((task.x.shape[1], *hidden, likelihood.heads(1)), "tanh")
    return Prepared(
        Model(net, GaussianPrior(task.effort.prior_scale), likelihood),
        (task.x - mean) / scale,
        ((task.y - centre) / spread)[:, None],
        (task.test - mean) / scale,
        class_mean(task).means[0],
        spread,
    )


def _mixture(
    ready: Prepared, source: Any, theta: Array, rng: np.random.Generator, kept: int
) -> Mixture:
    """Return the mixture over `kept` weight samples, in the units of the targets."""
    eps = source.draw_weights(rng, kept, theta.dtype)
    w, params = source.weights(theta, eps), source.params(theta, eps)
    f = ready.model.predict(w, ready.test)  # (T, M, heads)
    likelihood = ready.model.likelihood
    means = ready.centre + ready.scale * likelihood.mean(params, f)
    noise = np.sqrt(np.broadcast_to(likelihood.variance(params, f), means.shape))
    return Mixture(means, ready.scale * noise, {})


def _train(ready: Prepared, task: Task, rng: np.random.Generator) -> tuple[Any, Array]:
    estimator = ClosedFormKL(ready.model, MeanField(0.3, -4.0))
    recipe = Recipe(Adam(1e-2, schedule=Cosine()), epochs=task.effort.epochs, batch_size=250)
    return estimator, learn(estimator, ready.x, ready.y, recipe, rng)


def _variational(hidden: bool, by_cell: bool) -> Callable[[Task], Mixture]:
    def predict(task: Task) -> Mixture:
        ready = _prepare(task, *_parts(task, hidden, by_cell))
        rng = np.random.default_rng([*task.seed, 1])
        estimator, theta = _train(ready, task, rng)
        return _mixture(ready, estimator, theta, rng, task.effort.kept)

    return predict


def _sampled(hidden: bool, by_cell: bool) -> Callable[[Task], Mixture]:
    """Sample by NUTS, every chain from a draw of a mean-field fit of its own."""

    def predict(task: Task) -> Mixture:
        effort = task.effort
        ready = _prepare(task, *_parts(task, hidden, by_cell))
        rng = np.random.default_rng([*task.seed, 2])
        begin = []
        for _ in range(effort.chains):
            estimator, theta = _train(ready, task, rng)
            w = estimator.weights(theta, estimator.draw_weights(rng, 1))[0]
            learned = [v.ravel() for v in estimator.layout.views(theta).values()][2:]
            begin.append(np.concatenate([w, *learned]))
        draws = sample(
            ready.model, ready.x, ready.y, sampler=NUTS(max_depth=effort.max_depth),
            chains=effort.chains, groups=1, warm_up=effort.warm_up, draws=effort.draws, seed=rng,
            start=np.array(begin), progress=False,
        )  # fmt: skip
        source = DrawnWeights(ready.model)
        found = _mixture(ready, source, draws.flat, rng, effort.kept)
        return found._replace(
            note={
                **_r_hats(draws, ready.test),
                "divergences": float(draws.divergences),
                "gradients": float(draws.stats["gradients"].sum()),
            }
        )

    return predict


def _parts(task: Task, hidden: bool, by_cell: bool) -> tuple[tuple[int, ...], Likelihood]:
    """Return the hidden widths and the likelihood."""
    likelihood: Likelihood = (
        HeteroscedasticLikelihood(task.effort.noise_floor)
        if by_cell
        else GaussianLikelihood(0.3, learn=True)
    )
    return (task.effort.hidden,) if hidden else (), likelihood


def _r_hats(draws: Draws, x: Array) -> dict[str, Any]:
    """Return the largest and the median over cells of R-hat of the function, or why there is none.

    None stands for infinity, which JSON does not know: each chain stands still.
    """
    try:
        found = function_r_hats(draws, x)
    except (ImportError, ValueError) as error:  # no ArviZ, or too few chains or draws
        return {"why no r-hat": str(error)}
    named = {"r-hat, largest": found.max(), "r-hat, median": np.median(found)}
    return {name: float(one) if np.isfinite(one) else None for name, one in named.items()}


NUTS_NAME = "network, noise by cell, NUTS"
MODELS: dict[str, Callable[[Task], Mixture]] = {
    "class mean": class_mean,
    "linear regression": least_squares,
    "linear, noise by cell, NUTS": _sampled(hidden=False, by_cell=True),
    "network, one noise, VI": _variational(hidden=True, by_cell=False),
    "network, noise by cell, VI": _variational(hidden=True, by_cell=True),
    NUTS_NAME: _sampled(hidden=True, by_cell=True),
}

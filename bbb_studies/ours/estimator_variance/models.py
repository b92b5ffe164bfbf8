"""The estimators that are compared, and the places at which their gradients are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.family import Density, Evaluated, Family
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import LogDensities
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies import linear_gaussian as exact

__all__ = [
    "ESTIMATORS",
    "REFERENCE",
    "ROWWISE",
    "SAMPLES",
    "Place",
    "ScoreFunction",
    "linear_places",
    "network_places",
]

Array = NDArray[Any]
SAMPLES = 2  # weight samples per step: one antithetic pair
ROWWISE = ("local reparam.", "Flipout")  # they need independent weights
REFERENCE = "reparameterised"


@dataclass(frozen=True)
class ScoreFunction(Family):
    """Black-box VI (Ranganath et al. 2014): the cost's values times the score of q (D20).

    Nothing but log q is differentiated; prior and likelihood have no learned numbers. With
    `baseline` each sample's cost is taken less the mean of the others, two at least.
    """

    posterior: Density = MeanField()
    baseline: bool = False

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        buffers: Buffers | None = None,
    ) -> Evaluated:
        """Return the free energy and its score-function gradient, as `Reparameterised` does."""
        buffers, blocks, grad, d_blocks = self.unpacked(theta, noise, x, y, buffers)
        sample = self.posterior.sample(blocks, noise, buffers)
        joint = self.model.forward(sample.w, blocks, x, y, buffers)
        log_q = self.posterior.log_density(sample)
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, c = self.objective(terms, kl_weight)
        costs = np.sum(np.multiply(c, terms), axis=0)  # (S,)  h_s / S
        if self.baseline:
            costs = (costs - costs.mean()) * len(costs) / (len(costs) - 1)  # D20
        self.posterior.pull_back_direct(sample, costs, d_blocks)  # D20
        return Evaluated(value, grad, terms)


ESTIMATORS: dict[str, Callable[..., Any]] = {
    REFERENCE: Reparameterised,
    "reparameterised ±": lambda model, q: Reparameterised(model, q, antithetic=True),
    "closed-form KL": ClosedFormKL,
    "closed-form KL ±": lambda model, q: ClosedFormKL(model, q, antithetic=True),
    "sticking the landing": StickingTheLanding,
    "sticking the landing ±": lambda model, q: StickingTheLanding(model, q, antithetic=True),
    "local reparam.": LocalReparameterisation,
    "Flipout": Flipout,
    "score function": ScoreFunction,
    "score, baseline": lambda model, q: ScoreFunction(model, q, baseline=True),
}


class Place(NamedTuple):
    """Where gradients are measured: a model, a q, and the rows of one step."""

    name: str
    model: Model
    posterior: MeanField | FullRank
    theta: Array
    x: Array
    y: Array
    kl_weight: float


def network_places(seed: int) -> list[Place]:
    """Train 13-50-1 on 256 rows and return start, half way and end, with the first 32 rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((256, 13))
    curve = np.sin(x @ rng.standard_normal((13, 2)) * 0.5).sum(axis=1, keepdims=True)
    y = curve + 0.3 * rng.standard_normal((256, 1))
    model = Model(MLP((13, 50, 1)), GaussianPrior(0.5), GaussianLikelihood(0.3))
    estimator, constant, fading = Reparameterised(model), Adam(5e-3), Adam(5e-3, schedule=Cosine())
    state = start(estimator, rng, constant)
    thetas = [state.theta]
    for optimizer in (constant, fading):
        recipe = Recipe(optimizer, epochs=500, samples=SAMPLES)
        state = fit(estimator, state, x, y, recipe, rng=rng, progress=False)
        thetas.append(state.theta)
    names = ("network, start", "network, half way", "network, end")
    return [
        Place(name, model, MeanField(), theta, x[:32], y[:32], 32 / 256)
        for name, theta in zip(names, thetas, strict=True)
    ]


def linear_places(seed: int) -> list[Place]:
    """Return linear regression at the optimum of mean field and at that of full rank (D28)."""
    model, x, y = problem = exact.draw(np.random.default_rng(seed))
    truth = exact.exact(problem)
    best, factor, full = exact.reverse_optimum(truth), MeanField(), FullRank()
    at_best = factor.pack(best.mean, best.deviation)
    return [
        Place("linear, mean field", model, factor, at_best, x, y, 1.0),
        Place("linear, full rank", model, full, full.pack(*truth.posterior), x, y, 1.0),
    ]

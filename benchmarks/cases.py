"""The estimators that are timed: which networks, how many samples, and the floor of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.model.objectives import EUBO, Renyi
from bbb_numpy.parts.full_rank import FullRank

from . import floor
from .problems import PROBLEMS, Array, Problem, Step

PLAIN = "reparameterised"
ESTIMATORS: dict[str, Callable[[Model], Any]] = {
    PLAIN: Reparameterised,
    "antithetic": lambda model: Reparameterised(model, antithetic=True),
    "closed-form KL": ClosedFormKL,
    "sticking the landing": StickingTheLanding,
    "local reparameterisation": LocalReparameterisation,
    "Flipout": Flipout,
    "doubly reparameterised": lambda model: DoublyReparameterised(model, objective=Renyi(0.0)),
    "self-normalised": lambda model: SelfNormalised(model, objective=EUBO()),
    "full rank": lambda model: Reparameterised(model, FullRank()),
}
# Two samples are the least that antithetic noise has; the bounds need several to differ from F.
SAMPLES = {"antithetic": 2, "doubly reparameterised": 10, "self-normalised": 10}
FULL_RANK = ((13, 50, 1),)  # larger factors are another kind of problem
FASTER_THAN_PLAIN = ("local reparameterisation", (784, 400, 400, 10))


@dataclass(frozen=True)
class Case(Problem):
    """One network with its minibatch, and the estimator that trains it."""

    kind: str = PLAIN

    @property
    def estimator(self) -> Any:
        """The estimator that trains this network."""
        model = Model(MLP(self.sizes), GaussianPrior(1.0), GaussianLikelihood(1.0))
        return ESTIMATORS[self.kind](model)


def cases(problem: Problem) -> list[Case]:
    """Return the estimators to time on a network of `problems.PROBLEMS`, the plain one first.

    A network that occurs with several S has the estimators with an S of their own once.
    """
    networks = [(p.sizes, p.samples) for p in PROBLEMS]
    out = []
    for kind in ESTIMATORS:
        samples = SAMPLES.get(kind, problem.samples)
        if samples != problem.samples and (problem.sizes, samples) in networks:
            continue
        if samples < problem.samples or (kind == "full rank" and problem.sizes not in FULL_RANK):
            continue
        bars = (("ours/plain", 1.0),) if (kind, problem.sizes) == FASTER_THAN_PLAIN else ()
        out.append(Case(problem.sizes, problem.rows, samples, bars, kind))
    return out


def floor_step(case: Case) -> Step:
    """Return the bare draws and ``np.matmul`` calls of one step, in float32, and nothing else."""
    rng = np.random.default_rng(2)
    calls = products(case)
    normals, sign_bytes = draws(case)
    noise = np.empty(normals, np.float32)

    def one_step() -> None:
        rng.standard_normal(dtype=np.float32, out=noise)
        if sign_bytes:
            rng.bytes(sign_bytes)
        for a, b, out in calls:
            np.matmul(a, b, out=out)

    return one_step


def draws(case: Case) -> tuple[int, int]:
    """Return how many normal numbers and how many bytes of random signs one step draws."""
    samples, weights, sizes = case.samples, case.weights, case.sizes
    if case.kind == "antithetic":
        return samples // 2 * weights, 0
    if case.kind == "local reparameterisation":
        return samples * case.rows * sum(sizes[1:]), 0
    if case.kind == "Flipout":
        signs = samples * case.rows * (sum(sizes[:-1]) + 2 * sum(sizes[1:]))
        return samples * weights, (signs + 7) // 8
    return samples * weights, 0


def products(case: Case) -> list[tuple[Array, Array, Array]]:
    """Return operands and result of every matrix product of one step."""
    if case.kind == "local reparameterisation":
        return _shared(case) + _shared(case)  # for means and for variances
    if case.kind == "Flipout":
        return _shared(case) + floor.products(case, rowwise_inputs=True)
    plan = floor.products(case)
    if case.kind == "self-normalised":  # no backward pass: two weighted sums over the samples
        share, eps = _random(1, case.samples), _random(case.samples, case.weights)
        score = [(share, eps, _random(1, case.weights)) for _ in ("mu", "rho")]
        return plan[: len(case.sizes) - 1] + score
    if case.kind == "full rank":
        eps, factor = _random(case.samples, case.weights), _random(case.weights, case.weights)
        spread = (eps, factor.T, np.empty_like(eps))  # C eps
        d_w = _random(case.samples, case.weights)
        return [spread, *plan, (d_w.T, eps, np.empty_like(factor))]  # d_w^T eps
    return plan


def _random(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape, dtype=np.float32)


def _shared(case: Case) -> list[tuple[Array, Array, Array]]:
    """Return the products with one weight matrix for all samples: one pass each way.

    The first layer has the same inputs for all samples, so its products have no axis S.
    """
    plan, pairs = [], list(zip(case.sizes[:-1], case.sizes[1:], strict=True))
    for layer, (d_in, d_out) in enumerate(pairs):
        rows = case.rows * (case.samples if layer else 1)
        a, weight, delta = _random(rows, d_in), _random(d_in, d_out), _random(rows, d_out)
        plan.append((a, weight, np.empty_like(delta)))
        plan.append((a.T, delta, np.empty_like(weight)))  # d_mu or d_sigma^2
        if layer:
            plan.append((delta, weight.T, np.empty_like(a)))  # d_a
    return plan

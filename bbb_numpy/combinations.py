"""Every combination of posterior, prior, likelihood, estimator and objective, proved.

`combinations` enumerates all of them by their short names; `estimator` builds one or raises the
error that says why it makes no sense; `problem` draws a small case of it. `prove_case` proves its
gradient in exact arithmetic, `check_case` measures it in floats, both through the function that
training calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from exactgrad import Proof, prove, stop_gradient
from exactgrad.gradcheck import Report, check_gradient

from .gradients.estimator import GradientEstimator as Estimator
from .gradients.reparameterised import Frozen
from .model.joint import Model
from .numeric.layout import Array
from .parts.network import MLP
from .registry import (
    CHECKED_LIKELIHOODS,
    CHECKED_OBJECTIVES,
    CHECKED_POSTERIORS,
    CHECKED_PRIORS,
    ESTIMATORS,
    LIKELIHOODS,
    POSTERIORS,
    PRIORS,
)

__all__ = [
    "Case",
    "Combination",
    "check_case",
    "combinations",
    "estimator",
    "format_matrix",
    "problem",
    "prove_case",
]


class Combination(NamedTuple):
    """The short names of one estimator's parts."""

    posterior: str
    prior: str
    likelihood: str
    estimator: str
    objective: str

    def __str__(self) -> str:
        return " / ".join(self)


class Case(NamedTuple):
    """One call of value_and_grad."""

    estimator: Estimator
    theta: Array
    noise: Array
    x: Array
    y: Array
    kl_weight: float
    sample_weight: Array | None = None


def combinations() -> Iterator[Combination]:
    """Yield all combinations of short names, valid or not."""
    tables = (POSTERIORS, PRIORS, LIKELIHOODS, ESTIMATORS, CHECKED_OBJECTIVES)
    for names in product(*tables):
        yield Combination(*names)


def estimator(
    which: Combination,
    inputs: int = 2,
    hidden: tuple[int, ...] = (2,),
    targets: int = 2,
    activation: str = "relu",
) -> Estimator:
    """Build the estimator of a combination on a small network.

    Raises
    ------
    ValueError
        If the combination makes no sense; the message says why.
    """
    likelihood = CHECKED_LIKELIHOODS[which.likelihood]
    model = Model(
        MLP((inputs, *hidden, likelihood.heads(targets)), activation),
        CHECKED_PRIORS[which.prior],
        likelihood,
    )
    posterior, objective = (
        CHECKED_POSTERIORS[which.posterior],
        CHECKED_OBJECTIVES[which.objective],
    )
    return ESTIMATORS[which.estimator](model, posterior, objective)


def problem(
    built: Estimator,
    rng: np.random.Generator,
    samples: int = 4,
    rows: int = 2,
    kl_weight: float = 0.7,
) -> Case:
    """Draw theta, noise and data; the targets come from the model itself."""
    theta = built.init(rng)
    if "lower" in built.layout.slices:  # correlated weights: L starts diagonal
        lower = built.layout.views(theta)["lower"]
        lower[...] = 0.1 * rng.standard_normal(lower.shape)
    x = rng.standard_normal((rows, built.model.network.sizes[0]))
    w = built.weights(theta, built.draw_weights(rng, 1))
    heads = built.model.predict(w, x)
    y = built.model.likelihood.draw(rng, built.layout.views(theta), heads)[0]
    noise = built.draw(rng, samples, rows=rows)
    return Case(built, theta, noise, x, y, kl_weight)


def _value_and_grad(
    case: Case, theta: Array, frozen: Array, *at: Any
) -> tuple[Any, Array]:
    """Return the gradient, and the value whose derivative it is: a surrogate's where there is one.

    Frozen is then the theta at which both are to be the same.
    """
    built, (noise, x, y, kl_weight, weights) = case.estimator, at
    if not isinstance(built, Frozen):
        return built.value_and_grad(theta, noise, x, y, kl_weight, None, weights)[:2]
    grad = built.value_and_grad(frozen, noise, x, y, kl_weight, None, weights).grad
    return built.surrogate(theta, frozen, noise, x, y, kl_weight, weights), grad


def check_case(
    case: Case, method: str = "complex", max_coordinates: int | None = None
) -> Report:
    """Check the gradient of a case: of a surrogate, frozen at its theta, where it has one."""
    return check_gradient(
        lambda theta: _value_and_grad(case, theta, case.theta, *case[2:]),
        case.theta,
        method=method,
        blocks=case.estimator.layout.slices,
        coordinate=case.estimator.coordinate,
        gates=lambda theta: case.estimator.gates(theta, case.noise, case.x),
        max_coordinates=max_coordinates,
    )


def prove_case(case: Case, seed: int = 0) -> Proof:
    """Prove the gradient of a case in exact arithmetic: of a surrogate where it has one (D44).

    For every value of theta, noise, x, real y, KL weight and row weights, on this case's path.
    """
    real = case.estimator.model.likelihood.target_kind == "real"
    return prove(
        lambda theta, *at: _value_and_grad(case, theta, stop_gradient(theta), *at),
        case.theta,
        *case._replace(y=case.y if real else case.y.astype(int))[2:],
        coordinate=case.estimator.coordinate,
        n_points=0,
        seed=seed,
    )


def format_matrix(errors: Mapping[Combination, float]) -> str:
    """Lay out the errors: one line per posterior, estimator, objective and prior.

    One column per likelihood; a combination that is not in `errors` is shown as ``-``.
    """
    columns, width = list(LIKELIHOODS), max(map(len, LIKELIHOODS)) + 1
    lines = sorted({(c.posterior, c.estimator, c.objective, c.prior) for c in errors})
    head = f"{'posterior':<11}{'estimator':<26}{'objective':<14}{'prior':<18}"
    head += "".join(f"{name:>{width}}" for name in columns)
    out, before = [head, "-" * len(head)], ("", "", "", "")
    for line in lines:
        shown = [
            "" if line[: i + 1] == before[: i + 1] else name
            for i, name in enumerate(line)
        ]
        posterior, name, objective, prior = line
        cells = []
        for likelihood in columns:
            which = Combination(posterior, prior, likelihood, name, objective)
            cells.append(
                f"{errors[which]:>{width}.1e}" if which in errors else f"{'-':>{width}}"
            )
        out.append(
            f"{shown[0]:<11}{shown[1]:<26}{shown[2]:<14}{shown[3]:<18}" + "".join(cells)
        )
        before = line
    return "\n".join(out)

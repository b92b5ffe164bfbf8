"""Every combination of posterior, prior, likelihood, estimator and objective, proved.

`combinations` enumerates all of them by their short names; `estimator` builds one or raises the
error that says why it makes no sense; `problem` draws a small case of it. `prove_case` proves its
gradient in exact arithmetic, `check_case` measures it in floats, both through the function that
training calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exact import Proof, prove, still
from ..gradcheck import Report, check
from ..model.joint import Model
from ..parts.network import MLP
from ..parts.weighted import with_weights
from .catalogue import (
    CHECKED_LIKELIHOODS,
    CHECKED_POSTERIORS,
    CHECKED_PRIORS,
    ESTIMATORS,
    LIKELIHOODS,
    OBJECTIVES,
    POSTERIORS,
    PRIORS,
    Estimator,
)
from .importance import DoublyReparameterised, SelfNormalised
from .reparameterised import StickingTheLanding

__all__ = [
    "Case",
    "Combination",
    "check_case",
    "combinations",
    "estimator",
    "format_matrix",
    "problem",
    "prove_case",
    "with_row_weights",
]

Array = NDArray[Any]
SURROGATES = StickingTheLanding | DoublyReparameterised | SelfNormalised


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


def combinations() -> Iterator[Combination]:
    """Yield all combinations of short names, valid or not."""
    tables = (POSTERIORS, PRIORS, LIKELIHOODS, ESTIMATORS, OBJECTIVES)
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
    posterior, objective = CHECKED_POSTERIORS[which.posterior], OBJECTIVES[which.objective]
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


def with_row_weights(case: Case, weights: Array) -> Case:
    """Return the case in which each row counts `weights` (B,) times (D45)."""
    built = replace(case.estimator, model=case.estimator.model.weighted())
    return case._replace(estimator=built, y=with_weights(case.y, weights))


def check_case(case: Case, method: str = "complex", most: int | None = None) -> Report:
    """Check the gradient of a case: of a surrogate, frozen at its theta, where it has one."""
    built, at = case.estimator, (case.noise, case.x, case.y, case.kl_weight)

    def value_and_grad(theta: Array) -> tuple[Any, ...]:
        return built.value_and_grad(theta, *at)

    frozen = built.value_and_grad(case.theta, *at).grad if isinstance(built, SURROGATES) else None

    def surrogate_and_grad(theta: Array) -> tuple[Any, ...]:
        assert isinstance(built, SURROGATES)
        return built.surrogate(theta, case.theta, *at), frozen

    return check(
        value_and_grad if frozen is None else surrogate_and_grad,
        case.theta,
        method=method,
        blocks=case.estimator.layout.slices,
        coordinate=case.estimator.coordinate,
        gates=lambda theta: case.estimator.gates(theta, case.noise, case.x),
        most=most,
    )


def prove_case(case: Case, seed: int = 0) -> Proof:
    """Prove the gradient of a case in exact arithmetic: of a surrogate where it has one (D44).

    For every value of theta, noise, x, real y and KL weight on the path of this case alone.
    """
    built = case.estimator
    y = case.y if built.model.likelihood.target_kind == "real" else case.y.astype(int)

    def surrogate_and_grad(theta: Array, *at: Any) -> tuple[Any, ...]:
        assert isinstance(built, SURROGATES)
        frozen = still(theta)
        return built.surrogate(theta, frozen, *at), built.value_and_grad(frozen, *at).grad

    return prove(
        surrogate_and_grad if isinstance(built, SURROGATES) else built.value_and_grad,
        case.theta,
        case.noise,
        case.x,
        y,
        case.kl_weight,
        coordinate=built.coordinate,
        points=0,
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
        shown = ["" if line[: i + 1] == before[: i + 1] else name for i, name in enumerate(line)]
        posterior, name, objective, prior = line
        cells = []
        for likelihood in columns:
            which = Combination(posterior, prior, likelihood, name, objective)
            cells.append(f"{errors[which]:>{width}.1e}" if which in errors else f"{'-':>{width}}")
        out.append(f"{shown[0]:<11}{shown[1]:<26}{shown[2]:<14}{shown[3]:<18}" + "".join(cells))
        before = line
    return "\n".join(out)

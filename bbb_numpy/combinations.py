"""Every combination of posterior, prior, likelihood, estimator and objective, proved.

`combinations` enumerates all of them by their short names. `build_estimator` builds one, or raises
the error that says why it makes no sense; `draw_case` draws data and noise for it. `prove_case`
proves its gradient in exact arithmetic and `check_case` measures its error in floats, both through
the function that training calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from exactgrad import Proof, prove, stop_gradient
from exactgrad.gradcheck import Report, check_gradient

from .gradients.estimator import GradientEstimator
from .gradients.reparameterised import Frozen
from .model.joint import Model
from .numeric.deprecation import renamed_names
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
    "build_estimator",
    "check_case",
    "combinations",
    "draw_case",
    "format_matrix",
    "prove_case",
]


class Combination(NamedTuple):
    """Short names of the parts of one estimator."""

    posterior: str
    prior: str
    likelihood: str
    estimator: str
    objective: str

    def __str__(self) -> str:
        """Return the names, separated by slashes."""
        return " / ".join(self)


class Case(NamedTuple):
    """Arguments of one call of `value_and_grad`, with its estimator."""

    estimator: GradientEstimator
    theta: Array  # (T,) flat vector of all parameters
    noise: Array  # (S, ...) noise, as `estimator.draw` returns it
    x: Array  # (B, d_in) inputs
    y: Array  # (B, K) targets
    kl_weight: float  # share of the KL term, > 0 and <= 1
    sample_weight: Array | None = None  # (B,) weight of each row; None for ones


def combinations() -> Iterator[Combination]:
    """Yield every combination of names of registered parts, also those that do not fit together."""
    tables = (POSTERIORS, PRIORS, LIKELIHOODS, ESTIMATORS, CHECKED_OBJECTIVES)
    for names in product(*tables):
        yield Combination(*names)


def build_estimator(
    combination: Combination,
    inputs: int = 2,
    hidden: tuple[int, ...] = (2,),
    targets: int = 2,
    activation: str = "relu",
) -> GradientEstimator:
    """Return the gradient estimator for a combination of parts, with a small network.

    Parameters
    ----------
    combination : Combination
        Short names of its parts.
    inputs : int
        Number of columns of x.
    hidden : tuple of int
        Widths of the hidden layers.
    targets : int
        Number of columns of y, or of classes.
    activation : str
        Name of the activation of the hidden layers.

    Raises
    ------
    ValueError
        If the parts do not go together; the message says why.
    """
    likelihood = CHECKED_LIKELIHOODS[combination.likelihood]
    model = Model(
        MLP((inputs, *hidden, likelihood.heads(targets)), activation),
        CHECKED_PRIORS[combination.prior],
        likelihood,
    )
    posterior = CHECKED_POSTERIORS[combination.posterior]
    objective = CHECKED_OBJECTIVES[combination.objective]
    return ESTIMATORS[combination.estimator](model, posterior, objective)


def draw_case(
    estimator: GradientEstimator,
    rng: np.random.Generator,
    samples: int = 4,
    rows: int = 2,
    kl_weight: float = 0.7,
) -> Case:
    """Draw the arguments of a gradient check: theta, noise, inputs, and targets from the model.

    Parameters
    ----------
    estimator : GradientEstimator
        Estimator with the model from which targets are drawn.
    rng : numpy.random.Generator
    samples : int
        Number S of weight samples.
    rows : int
        Number B of rows of the data.
    kl_weight : float
        Share of the KL term, in (0, 1].
    """
    theta = estimator.init(rng)
    if "lower" in estimator.layout.slices:  # C is diagonal at first
        lower = estimator.layout.views(theta)["lower"]
        lower[...] = 0.1 * rng.standard_normal(lower.shape)
    model = estimator.model
    x = rng.standard_normal((rows, model.network.sizes[0]))
    w = estimator.weights(theta, estimator.draw_weights(rng, 1))
    f = model.predict(w, x)
    y = model.likelihood.draw(rng, estimator.layout.views(theta), f)[0]
    noise = estimator.draw(rng, samples, rows=rows)
    return Case(estimator, theta, noise, x, y, kl_weight)


def _value_and_grad(
    case: Case, theta: Array, frozen: Array, *data: Any
) -> tuple[Any, Array]:
    """Return the value of an estimator, or of its surrogate if it has one, and its gradient.

    Parameters
    ----------
    case : Case
        Case whose estimator is evaluated.
    theta : ndarray
        Flat vector at which the value is computed.
    frozen : ndarray
        Flat vector at which the frozen parts of a surrogate, and its gradient, are computed.
    *data : object
        Noise, x, y, KL weight and row weights, the last fields of a case.
    """
    estimator = case.estimator
    noise, x, y, kl_weight, weights = data
    arguments = noise, x, y, kl_weight, None, weights
    if not isinstance(estimator, Frozen):
        return estimator.value_and_grad(theta, *arguments)[:2]
    grad = estimator.value_and_grad(frozen, *arguments).grad
    return estimator.surrogate(theta, frozen, noise, x, y, kl_weight, weights), grad


def check_case(
    case: Case, method: str = "complex", max_coordinates: int | None = None
) -> Report:
    """Compare the gradient of a case with finite differences; return the errors.

    If the estimator has a surrogate, the gradient is compared with differences of the surrogate,
    frozen at the theta of the case.

    Parameters
    ----------
    case : Case
        Estimator and arguments at which its gradient is taken.
    method : str
        Kind of finite difference, 'complex' or 'central'.
    max_coordinates : int, optional
        Largest number of coordinates of each block of theta that are checked; those of a larger
        block are drawn at random. By default all are checked.
    """
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
    """Prove in exact arithmetic that the gradient of a case is that of its value (D44).

    The gradient is proved for all values of theta, noise, x, real y, KL weight and row weights at
    which the program takes the same branches as for this case.

    Parameters
    ----------
    case : Case
        Estimator and arguments at which its gradient is taken.
    seed : int
        Seed of the numbers at which the proof evaluates the program.
    """
    real = case.estimator.model.likelihood.target_kind == "real"
    return prove(
        lambda theta, *data: _value_and_grad(case, theta, stop_gradient(theta), *data),
        case.theta,
        *case._replace(y=case.y if real else case.y.astype(int))[2:],
        coordinate=case.estimator.coordinate,
        n_points=0,
        seed=seed,
    )


def format_matrix(errors: Mapping[Combination, float]) -> str:
    """Return a text table of gradient errors of combinations, with one column per likelihood.

    It has one line for each posterior, estimator, objective and prior. A combination that is not
    in `errors` is shown as ``-``.

    Parameters
    ----------
    errors : dict of Combination to float
        Error of each combination.
    """
    width = max(map(len, LIKELIHOODS)) + 1
    head = f"{'posterior':<11}{'estimator':<26}{'objective':<14}{'prior':<18}"
    head += "".join(f"{name:>{width}}" for name in LIKELIHOODS)
    lines = [head, "-" * len(head)]
    previous = ("", "", "", "")
    for row in sorted(
        {(c.posterior, c.estimator, c.objective, c.prior) for c in errors}
    ):
        # Names that repeat those of the line above are left blank
        labels = [
            "" if row[: i + 1] == previous[: i + 1] else name
            for i, name in enumerate(row)
        ]
        line = f"{labels[0]:<11}{labels[1]:<26}{labels[2]:<14}{labels[3]:<18}"
        posterior, estimator, objective, prior = row
        for likelihood in LIKELIHOODS:
            combination = Combination(
                posterior, prior, likelihood, estimator, objective
            )
            if combination in errors:
                line += f"{errors[combination]:>{width}.1e}"
            else:
                line += f"{'-':>{width}}"
        lines.append(line)
        previous = row
    return "\n".join(lines)


__getattr__ = renamed_names(
    __name__, {"estimator": "build_estimator", "problem": "draw_case"}
)

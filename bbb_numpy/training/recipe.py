"""How something is trained, its settings, and the rows it is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ..gradients.estimator import GradientEstimator as Estimator
from ..gradients.estimator import is_linear
from ..model.kl_weights import NoWarmUp, Shares, WarmUp, proportional_kl_weights
from ..numeric.layout import Array
from ..numeric.validation import (
    COUNT,
    FUNCTION,
    MAX_STEPS,
    SAMPLES,
    InstanceOf,
    Numbers,
    Optional,
    check_fields,
    flag,
    whole,
)
from .optimizers import OPTIMIZER, Adam, Optimizer
from .stopping import EarlyStopping

__all__ = ["Recipe", "Rows", "checked_rows"]

STOPPING = Optional(InstanceOf(EarlyStopping))


class Rows(NamedTuple):
    """Data that have been checked: finite, of the widths of a network, in the dtype of theta."""

    x: Array  # (N, d_in)
    y: Array  # (N, K)
    sample_weight: Array | None = None  # (N,)

    def shuffled(self, rng: np.random.Generator) -> Rows:
        """Return copies of the rows in another order."""
        return self.at(rng.permutation(len(self.x)))

    def at(self, places: Array) -> Rows:
        """Return copies of the rows at these places."""
        x, y, weights = self
        return Rows(x[places], y[places], None if weights is None else weights[places])

    def finite(self, value: float) -> bool:
        """Whether a value of the objective is finite."""
        return isfinite(value)

    def number(self, value: Any) -> float:
        """Return a sum as it is recorded."""
        return float(value)


@dataclass(frozen=True)
class Recipe:
    """How a posterior is trained.

    Parameters
    ----------
    optimizer : SGD, Momentum, Adam or IVON
    epochs, batch_size, samples : int
        Passes over the data, rows per step, weight samples S per step; all >= 1
        (``epochs=0`` trains nothing).
    shuffle : bool
        Draw a new row order every epoch.
    kl_weights : callable
        From the minibatch sizes of an epoch to their shares pi_i, which sum to 1. The size of a
        minibatch of rows with weights is the sum of these (D45).
    warm_up : callable
        From (epoch, epochs) to the factor beta on all shares of that epoch (D24).
    early_stopping : EarlyStopping, optional
    """

    optimizer: Optimizer = Adam()
    epochs: int = 100
    batch_size: int = 32
    samples: int = 1
    shuffle: bool = True
    kl_weights: Shares = proportional_kl_weights
    warm_up: WarmUp = NoWarmUp()
    early_stopping: EarlyStopping | None = None

    def __post_init__(self) -> None:
        check_fields(
            self,
            epochs=partial(whole, minimum=0, maximum=MAX_STEPS),
            samples=SAMPLES,
            batch_size=COUNT,
            kl_weights=FUNCTION,
            warm_up=FUNCTION,
            shuffle=flag,
            optimizer=OPTIMIZER,
            early_stopping=STOPPING,
        )

    def shares(self, estimator: Estimator, sizes: Sequence[float]) -> list[float]:
        """Return the shares of minibatches of these sizes: numbers of rows, or sums of weights.

        Raises
        ------
        ValueError
            If `kl_weights` returns no shares, or those with which log P(w) - log q(w) +
            log P(D_i|w) / pi_i, of which the objective takes exponentials, means nothing (D30).
        """
        pi = np.asarray(self.kl_weights(sizes), float)
        if (
            pi.shape != (len(sizes),)
            or not abs(pi.sum() - 1.0) <= 1e-9
            or not (pi >= 0).all()
        ):
            raise ValueError(
                f"kl_weights must return {len(sizes)} shares >= 0 that sum to 1; got {pi}"
            )
        if not is_linear(estimator.objective) and not (
            self.warm_up == NoWarmUp()
            and np.allclose(pi, proportional_kl_weights(sizes), rtol=1e-9, atol=0)
        ):
            raise ValueError(
                f"{type(estimator.objective).__name__} divides the log likelihood of a minibatch "
                "by its KL weight, which must be its share B_i / N of the data; use "
                "proportional_kl_weights without a warm-up, or FreeEnergy"
            )
        shares: list[float] = pi.tolist()
        return shares


def checked_rows(
    estimator: Estimator,
    theta: Array,
    x: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    which: str = "",
) -> Rows:
    """Return rows in the dtype of theta, or say what of the `which` rows does not fit."""
    estimator.layout.views(theta)  # raises where it is another estimator's
    arrays: list[Array] = []
    widths = (estimator.model.network.sizes[0], estimator.model.outputs)
    for name, given, width in zip(
        (f"{which}x", f"{which}y"), (x, y), widths, strict=True
    ):
        rows = Numbers((len(x) if arrays else None, width), finite=False, min_length=1)(
            name, given
        )
        with np.errstate(over="ignore"):
            arrays.append(np.ascontiguousarray(rows, theta.dtype))
        if not np.isfinite(arrays[-1]).all():
            raise ValueError(
                f"{name} contains nan or infinity as {theta.dtype}; remove or impute such rows"
            )
    estimator.model.likelihood.check_targets(np.asarray(y), theta.dtype)
    if sample_weight is not None:
        name = f"{which}sample_weight"
        sample_weight = Numbers((len(x),), low=0.0)(name, sample_weight).astype(
            theta.dtype
        )
        if not sample_weight.any():
            raise ValueError(f"{name} is 0 for every row, so that none counts")
    return Rows(arrays[0], arrays[1], sample_weight)

"""The settings of training, and the rows that one trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ..gradients.estimator import GradientEstimator, is_linear
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

INITIAL_SD = 0.3  # of the weights that the training of a point estimate starts from
STOPPING = Optional(InstanceOf(EarlyStopping))


class Rows(NamedTuple):
    """Data that have been checked: finite, of the widths of a network, in the dtype of theta."""

    x: Array  # (N, d_in)
    y: Array  # (N, K)
    sample_weight: Array | None = None  # (N,)

    def shuffled(self, rng: np.random.Generator) -> Rows:
        """Return copies of the rows in another order."""
        return self.at(rng.permutation(len(self.x)))

    def at(self, index: Array | slice) -> Rows:
        """Return the rows at an index: copies for an array, views for a slice."""
        weights = self.sample_weight
        if weights is not None:
            weights = weights[index]
        return Rows(self.x[index], self.y[index], weights)

    def finite(self, value: float) -> bool:
        """Return whether a value of the objective is finite."""
        return isfinite(value)

    def number(self, value: Any) -> float:
        """Return a sum as the history records it."""
        return float(value)


@dataclass(frozen=True)
class Recipe:
    """How a posterior is trained: the settings of `fit`.

    Parameters
    ----------
    optimizer : SGD, Momentum, Adam or IVON
        The update rule, with its learning rate and schedule.
    epochs : int
        Number of passes over the data, >= 0; 0 trains nothing.
    batch_size : int
        Rows per step, >= 1. The last minibatch of an epoch may have fewer.
    samples : int
        Number S of weight samples per step, >= 1. More of them make the gradient less noisy.
    shuffle : bool
        Whether a new row order is drawn for every epoch.
    kl_weights : callable
        From the minibatch sizes of an epoch to their shares pi_i of the KL term, which sum to 1.
        The size of a minibatch of rows with weights is the sum of these (D45). By default
        proportional to the sizes.
    warm_up : callable
        From (epoch, epochs) to the factor beta on the KL term of that epoch (D24). By default 1.
    early_stopping : EarlyStopping, optional
        When to end before the last epoch. By default never.
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

    def shares(
        self, estimator: GradientEstimator, sizes: Sequence[float]
    ) -> list[float]:
        """Return the shares pi_i of the KL term that the minibatches of an epoch pay.

        Parameters
        ----------
        estimator : GradientEstimator
            Its objective may demand shares proportional to the sizes (D30).
        sizes : sequence of float (M,)
            Rows of each minibatch, or the sums of their weights.

        Returns
        -------
        list of float (M,)

        Raises
        ------
        ValueError
            If `kl_weights` returns no shares. Or if they are not proportional to the sizes while
            the objective takes exponentials of log P(w) - log q(w) + log P(D_i|w) / pi_i, which
            then mean nothing (D30).
        """
        pi = np.asarray(self.kl_weights(sizes), float)
        sums_to_1 = pi.shape == (len(sizes),) and abs(pi.sum() - 1.0) <= 1e-9
        if not sums_to_1 or not (pi >= 0).all():
            raise ValueError(
                f"kl_weights must return {len(sizes)} shares >= 0 that sum to 1; got {pi}"
            )
        if not is_linear(estimator.objective):
            proportional = np.allclose(
                pi, proportional_kl_weights(sizes), rtol=1e-9, atol=0
            )
            if self.warm_up != NoWarmUp() or not proportional:
                raise ValueError(
                    f"{type(estimator.objective).__name__} divides the log likelihood of a "
                    "minibatch by its KL weight, which must be its share B_i / N of the data; use "
                    "proportional_kl_weights without a warm-up, or FreeEnergy"
                )
        shares: list[float] = pi.tolist()
        return shares


def checked_rows(
    estimator: GradientEstimator,
    theta: Array,
    x: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    which: str = "",
) -> Rows:
    """Return rows in the dtype of theta after a check of their shapes and values.

    Parameters
    ----------
    estimator : GradientEstimator
        It says how wide the rows are, and which targets there may be.
    theta : ndarray
        Of this estimator.
    x, y : array_like (N, d_in), (N, K)
    sample_weight : array_like (N,), optional
        How often each row counts, >= 0 (D45).
    which : str
        Is put before the names of the arguments in messages, e.g. ``"validation "``.

    Returns
    -------
    Rows

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit; the message says which, and what to do.
    """
    estimator.layout.views(theta)  # raises if theta is another estimator's
    dtype = theta.dtype
    checked_x = _finite_matrix(
        f"{which}x", x, (None, estimator.model.network.sizes[0]), dtype
    )
    checked_y = _finite_matrix(f"{which}y", y, (len(x), estimator.model.outputs), dtype)
    estimator.model.likelihood.check_targets(np.asarray(y), dtype)
    if sample_weight is not None:
        name = f"{which}sample_weight"
        sample_weight = Numbers((len(x),), low=0.0)(name, sample_weight).astype(dtype)
        if not sample_weight.any():
            raise ValueError(f"{name} is 0 for every row, so that none counts")
    return Rows(checked_x, checked_y, sample_weight)


def _finite_matrix(name: str, value: Any, shape: tuple[Any, int], dtype: Any) -> Array:
    """Return `value` as a matrix of `dtype`, or raise where it is none or not finite."""
    matrix = Numbers(shape, finite=False, min_length=1)(name, value)
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(matrix, dtype)
    if not np.isfinite(matrix).all():
        raise ValueError(
            f"{name} contains nan or infinity as {dtype}; remove or impute such rows"
        )
    return matrix

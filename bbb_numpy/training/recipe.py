"""The settings of training, and the checked rows of training data."""

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

INITIAL_SD = 0.3  # standard deviation of the initial weights of a point estimate
STOPPING = Optional(InstanceOf(EarlyStopping))


class Rows(NamedTuple):
    """Data that have been checked: finite, of the widths of a network, in the dtype of theta."""

    x: Array  # (N, d_in)  inputs
    y: Array  # (N, K)  targets
    # (N,)  factors of the rows' log likelihoods; None means 1 for every row
    sample_weight: Array | None = None

    def shuffled(self, rng: np.random.Generator) -> Rows:
        """Return copies of the rows in a random order drawn from `rng`."""
        return self.at(rng.permutation(len(self.x)))

    def at(self, index: Array | slice) -> Rows:
        """Return the rows at `index`: copies if it is an array of indices, views if a slice."""
        weights = self.sample_weight
        if weights is not None:
            weights = weights[index]
        return Rows(self.x[index], self.y[index], weights)

    def finite(self, value: float) -> bool:
        """Return whether the objective's `value` is finite."""
        return isfinite(value)

    def number(self, value: Any) -> float:
        """Return `value`, a sum over a minibatch in nats, as the float that the history records."""
        return float(value)


@dataclass(frozen=True)
class Recipe:
    """The settings of training, an argument of `fit`.

    Parameters
    ----------
    optimizer : SGD, Momentum, Adam or IVON
        The update rule, with its learning rate and schedule.
    epochs : int
        Number of passes over the data, >= 0; 0 trains nothing.
    batch_size : int
        Number of rows per step, >= 1. The last minibatch of an epoch may have fewer.
    samples : int
        Number S of weight samples per step, >= 1. More of them make the gradient less noisy.
    shuffle : bool
        Whether a new row order is drawn for every epoch.
    kl_weights : callable
        Function from the sizes of an epoch's minibatches to their shares pi_i of the KL term, which
        sum to 1. If rows have weights, the size of a minibatch is the sum of its weights (D45). By
        default shares are proportional to the sizes.
    warm_up : callable
        Function from (epoch, epochs), with epochs counted from 0, to the factor beta >= 0 on the KL
        term in that epoch (D24). By default 1.
    early_stopping : EarlyStopping, optional
        Rule that ends training before the last epoch. By default none.
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
        """Return the share of the KL term that each of an epoch's M minibatches gets.

        Parameters
        ----------
        estimator : GradientEstimator
            Its objective may demand shares proportional to the sizes (D30).
        sizes : sequence of float (M,)
            Number of rows of each minibatch, or the sum of their weights.

        Returns
        -------
        list of float (M,)

        Raises
        ------
        ValueError
            If `kl_weights` does not return M shares >= 0 that sum to 1; or if the objective takes
            exponentials of log P(w) - log q(w) + log P(D_i|w) / pi_i, and the shares are not
            proportional to the sizes or there is a warm-up (D30).
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
    """Check the shapes and values of data, and return them in the dtype of theta.

    Parameters
    ----------
    estimator : GradientEstimator
        Its network gives the number of columns, its likelihood the allowed targets.
    theta : ndarray
        Flat parameters of this estimator, whose dtype the rows get.
    x, y : array_like (N, d_in), (N, K)
        Inputs and targets.
    sample_weight : array_like (N,), optional
        Factor of each row's log likelihood, >= 0 (D45). By default 1 for every row.
    which : str
        Prefix of the names of the arguments in messages, e.g. ``"validation "``.

    Returns
    -------
    Rows

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit; the message says which, and what to do.
    """
    estimator.layout.views(theta)  # raises ValueError if theta has another size
    dtype = theta.dtype
    checked_x = _finite_matrix(
        f"{which}x", x, (None, estimator.model.network.n_columns), dtype
    )
    checked_y = _finite_matrix(f"{which}y", y, (len(x), estimator.model.outputs), dtype)
    estimator.model.likelihood.check_targets(np.asarray(y), dtype)
    if sample_weight is not None:
        name = f"{which}sample_weight"
        sample_weight = Numbers((len(x),), low=0.0)(name, sample_weight).astype(dtype)
        if not sample_weight.any():
            raise ValueError(
                f"{name} must be > 0 for one row or more; got 0 for every row, so that no row "
                "counts"
            )
    return Rows(checked_x, checked_y, sample_weight)


def _finite_matrix(name: str, value: Any, shape: tuple[Any, int], dtype: Any) -> Array:
    """Return `value` as a finite matrix of `dtype`, or raise an error that names the argument.

    In `shape` None stands for any number of rows.
    """
    matrix = Numbers(shape, finite=False, min_length=1)(name, value)
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(matrix, dtype)
    if not np.isfinite(matrix).all():
        raise ValueError(
            f"{name} contains nan or infinity as {dtype}; remove or impute such rows"
        )
    return matrix

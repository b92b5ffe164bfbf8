"""Early stopping, and the validation loss that it monitors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from ..gradients.estimator import GradientEstimator
from ..numeric.buffers import Buffers
from ..numeric.deprecation import renamed_names
from ..numeric.layout import Array
from ..numeric.validation import COUNT, check_fields, not_negative
from .state import Training

__all__ = ["EarlyStopping", "Monitor", "ValidationLoss", "row_slices"]


@dataclass(frozen=True)
class EarlyStopping:
    """Rule that stops training when the loss has not fallen for `patience` epochs.

    The monitored loss is that of the validation rows if there are any, else the free energy per
    training row. With validation rows training returns the state after the best epoch, whether it
    was stopped or not.

    Parameters
    ----------
    patience : int
        Number of epochs without improvement after which training stops, >= 1.
    min_delta : float
        Smallest fall of the loss that counts as an improvement, in nats per row, >= 0.
    """

    patience: int = 50
    min_delta: float = 1e-4

    def __post_init__(self) -> None:
        check_fields(self, patience=COUNT, min_delta=not_negative)


def row_slices(n_rows: int, size: int) -> list[slice]:
    """Return slices that cut `n_rows` rows into blocks of `size` rows.

    Parameters
    ----------
    n_rows : int
        Total number of rows.
    size : int
        Number of rows of a block; the last block may be shorter.
    """
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


class ValidationLoss:
    """The mean negative log likelihood of validation rows, in nats per row.

    Its noise is drawn once, so that epochs can be compared.

    Parameters
    ----------
    estimator : GradientEstimator
    theta : ndarray
        Array of the dtype of the parameters at which the loss will be evaluated.
    rows : Rows
        Validation rows.
    rng : numpy.random.Generator
        Source of the noise.
    """

    N_SAMPLES = 32  # number of weight samples
    # largest number of activations of a layer held in memory at a time, approximately
    BLOCK_NUMBERS = 1_000_000

    def __init__(
        self, estimator: GradientEstimator, theta: Array, rows: Any, rng: Generator
    ) -> None:
        self.estimator = estimator
        self.buffers = Buffers()
        self.noise = estimator.draw_weights(rng, self.N_SAMPLES, theta.dtype)
        self.total_weight = float(len(rows.x))
        if rows.sample_weight is not None:
            # a row of weight 2 counts as two rows
            self.total_weight = float(rows.sample_weight.sum(dtype=float))  # D45
        numbers_per_row = self.N_SAMPLES * max(estimator.model.network.sizes)
        block_size = max(1, self.BLOCK_NUMBERS // numbers_per_row)
        self.blocks = [rows.at(block) for block in row_slices(len(rows.x), block_size)]

    def __call__(self, theta: Array) -> float:
        """Return the (weighted) mean of E_q[-log P(y|x, w)] over the rows, in nats, at `theta`."""
        total = 0.0
        for x, y, sample_weight in self.blocks:
            buffers = self.buffers.rewind()
            log_likelihood = self.estimator.log_likelihood(
                theta, self.noise, x, y, buffers, sample_weight
            )
            total -= float(log_likelihood.mean())  # mean over the weight samples
        return total / self.total_weight


class Monitor:
    """Count of the epochs since the monitored loss last fell, and a copy of the best state.

    Parameters
    ----------
    rule : EarlyStopping or None
        With None training never stops early, and no state is copied.
    state : Training
        State before the first epoch.
    """

    def __init__(self, rule: EarlyStopping | None, state: Training) -> None:
        self.rule = rule
        self.lowest = float("inf")
        self.n_epochs_waited = 0
        self.best = state.copy() if rule else state

    def should_stop(self, value: float, state: Training) -> bool:
        """Return whether training is to stop after an epoch; keep its state if it is the best.

        Parameters
        ----------
        value : float
            Monitored loss of the epoch, in nats per row.
        state : Training
            State after the epoch, which is copied if `value` is the lowest so far.
        """
        if self.rule is None:
            return False
        if value < self.lowest - self.rule.min_delta:
            self.lowest = value
            self.n_epochs_waited = 0
            self.best.take(state)
        else:
            self.n_epochs_waited += 1
        return self.n_epochs_waited >= self.rule.patience


__getattr__ = renamed_names(__name__, {"minibatches": "row_slices"})

NAMED = {"stopping": {"early-stopping": EarlyStopping()}}

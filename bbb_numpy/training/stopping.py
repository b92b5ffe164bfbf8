"""When training stops early, and the validation loss by which it does."""

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
    """Stop when the monitored number has not fallen by `min_delta` for `patience` epochs.

    The monitored number is the validation loss when validation rows are given, otherwise
    the free energy per training row. With validation rows the state after the best epoch is
    what training returns, whether it was stopped or not.

    Parameters
    ----------
    patience : int
        Epochs without improvement, >= 1.
    min_delta : float
        What a fall must exceed to count, in nats per row, >= 0.
    """

    patience: int = 50
    min_delta: float = 1e-4

    def __post_init__(self) -> None:
        check_fields(self, patience=COUNT, min_delta=not_negative)


def row_slices(n_rows: int, size: int) -> list[slice]:
    """Return the slices that cut rows into blocks.

    Parameters
    ----------
    n_rows : int
        Number of rows in all.
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
        Of the shape and dtype of those that will be measured.
    rows : Rows
    rng : numpy.random.Generator
        The source of the noise.
    """

    N_SAMPLES = 32
    BLOCK_NUMBERS = 1_000_000  # activations at most, or about, that are held at a time

    def __init__(
        self, estimator: GradientEstimator, theta: Array, rows: Any, rng: Generator
    ) -> None:
        self.estimator = estimator
        self.buffers = Buffers()
        self.noise = estimator.draw_weights(rng, self.N_SAMPLES, theta.dtype)
        self.total_weight = float(len(rows.x))
        if rows.sample_weight is not None:
            self.total_weight = float(rows.sample_weight.sum(dtype=float))  # D45
        numbers_per_row = self.N_SAMPLES * max(estimator.model.network.sizes)
        block_size = max(1, self.BLOCK_NUMBERS // numbers_per_row)
        self.blocks = [rows.at(block) for block in row_slices(len(rows.x), block_size)]

    def __call__(self, theta: Array) -> float:
        """Return E_q[-log P(y|x, w)] per row, rows counted by their weights if they have any."""
        total = 0.0
        for x, y, sample_weight in self.blocks:
            buffers = self.buffers.rewind()
            log_likelihood = self.estimator.log_likelihood(
                theta, self.noise, x, y, buffers, sample_weight
            )
            total -= float(log_likelihood.mean())  # of (N_SAMPLES,)
        return total / self.total_weight


class Monitor:
    """Early stopping: counts the epochs since the monitored number last fell, and keeps that state.

    Parameters
    ----------
    rule : EarlyStopping or None
        None never stops, and keeps nothing.
    state : Training
        The state before the first epoch.
    """

    def __init__(self, rule: EarlyStopping | None, state: Training) -> None:
        self.rule = rule
        self.lowest = float("inf")
        self.n_epochs_waited = 0
        self.best = state.copy() if rule else state

    def should_stop(self, value: float, state: Training) -> bool:
        """Return whether the monitored number ends training.

        Parameters
        ----------
        value : float
            The monitored number of this epoch, in nats per row.
        state : Training
            The state after it, of which a copy is kept if it is the best so far.
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

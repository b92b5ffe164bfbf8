"""When training stops early, and the validation loss by which it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ..gradients.estimator import GradientEstimator as Estimator
from ..numeric.buffers import Buffers
from ..numeric.layout import Array
from ..numeric.validation import COUNT, check_fields, not_negative
from .state import Training

__all__ = ["EarlyStopping", "HeldOut", "Watch", "minibatches"]


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


def minibatches(rows: int, batch_size: int) -> list[slice]:
    """Cut `rows` into slices of `batch_size`; the last one is shorter when it must be."""
    return [
        slice(start, min(start + batch_size, rows))
        for start in range(0, rows, batch_size)
    ]


class HeldOut:
    """Validation loss, always with the same noise so that epochs can be compared."""

    SAMPLES = 32
    NUMBERS = 1_000_000  # at most about this many in one block of activations

    def __init__(
        self, estimator: Estimator, theta: Array, rows: Any, rng: Generator
    ) -> None:
        self.estimator, self.buffers = estimator, Buffers()
        self.noise = estimator.draw_weights(rng, self.SAMPLES, theta.dtype)
        weights = (
            np.ones(len(rows.x)) if rows.sample_weight is None else rows.sample_weight
        )
        self.size = float(weights.sum(dtype=float))  # D45
        step = max(
            1, self.NUMBERS // (self.SAMPLES * max(estimator.model.network.sizes))
        )
        self.blocks = [rows.at(block) for block in minibatches(len(rows.x), step)]

    def loss(self, theta: Array) -> float:
        """Return E_q[-log P(y|x, w)] per row, rows counted by their weights if they have any."""
        total = 0.0
        for x, y, weights in self.blocks:
            buffers = self.buffers.rewind()
            found = self.estimator.log_likelihood(
                theta, self.noise, x, y, buffers, weights
            )
            total -= float(found.mean())  # of (SAMPLES,)
        return total / self.size


class Watch:
    """Counts the epochs since the monitored number last fell enough, and keeps that state."""

    def __init__(self, rule: EarlyStopping | None, state: Training) -> None:
        self.rule, self.lowest, self.waited = rule, float("inf"), 0
        self.best = state.copy() if rule else state

    def should_stop(self, value: float, state: Training) -> bool:
        """Return whether `value`, of the epoch that led to `state`, ends training."""
        if self.rule is None:
            return False
        if value < self.lowest - self.rule.min_delta:
            self.lowest, self.waited = value, 0
            self.best.take(state)
        else:
            self.waited += 1
        return self.waited >= self.rule.patience


NAMED = {"stopping": {"early-stopping": EarlyStopping()}}

"""What training changes, and what it records of every epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any, Literal, NamedTuple

import numpy as np

from ..numeric.layout import Array
from .optimizers import OptimizerState

__all__ = ["Epoch", "NonFiniteError", "Snapshots", "Training"]


class NonFiniteError(ArithmeticError):
    """Raised when the objective of a step is nan or infinite.

    Attributes
    ----------
    training : Training
        The last state whose objective was seen to be finite.
    value : float
        The value that was not finite.
    """

    def __init__(self, message: str, training: Training, value: Any = nan) -> None:
        super().__init__(message)
        self.training = training
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle rebuilds the error in another process."""
        return type(self), (*self.args, self.training), self.__dict__


class Epoch(NamedTuple):
    """What one finished epoch cost: sums over its minibatches, in nats (contract 5).

    Each minibatch is measured at the theta of its own step. For the free energy,
    ``objective = kl + nll``, with the KL term tempered or warmed up ``beta kl + nll``.
    """

    objective: float  # what was minimised: the free energy of the whole training set
    # its complexity part, sum_i pi_i mean_s [log q(w) - log P(w)], at full weight
    kl: float
    nll: float  # its likelihood part, -sum_i mean_s log P(D_i|w)
    learning_rate: float  # of the last step
    validation: float  # mean NLL per validation row; nan without validation rows


@dataclass
class Training:
    """Everything that training changes: theta, the optimizer's state, the history.

    Attributes
    ----------
    theta : ndarray
        Flat, as the estimator's `layout` names it.
    optimizer_state : OptimizerState
    history : list of Epoch
        What each finished epoch cost.
    stopped : {'', 'early stopping', 'interrupted'}
        Why training ended before its last epoch; empty if it did not.
    """

    theta: Array
    optimizer_state: OptimizerState
    history: list[Epoch] = field(default_factory=list)
    stopped: Literal["", "early stopping", "interrupted"] = ""

    def column(self, name: str) -> Array:
        """Return one field of `Epoch`, such as ``'objective'``, over all epochs (E,)."""
        return np.array([getattr(epoch, name) for epoch in self.history])

    def copy(self) -> Training:
        """Return an independent copy."""
        return Training(
            self.theta.copy(),
            self.optimizer_state.copy(),
            list(self.history),
            self.stopped,
        )

    def take(self, later: Training) -> None:
        """Overwrite this state with a later one of the same training, without new arrays."""
        np.copyto(self.theta, later.theta)
        for name, array in later.optimizer_state.arrays.items():
            np.copyto(self.optimizer_state.arrays[name], array)
        self.optimizer_state.steps = later.optimizer_state.steps
        self.history.extend(later.history[len(self.history) :])


@dataclass
class Snapshots:
    """Copies of a training state after its last two epochs, for Ctrl-C and for failures.

    There are two, so that Ctrl-C in the middle of a copy leaves the other one whole. And the
    objective at the `last` one is not measured before the first step of the next epoch: if it is
    not finite there, the state to keep is the `previous` one.
    """

    last: Training
    previous: Training

    def add(self, state: Training) -> None:
        """Keep a copy of the state after one more epoch."""
        self.previous.take(state)
        self.last, self.previous = self.previous, self.last

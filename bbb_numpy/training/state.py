"""The state of training, and the record of every epoch."""

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
        The last state with a finite objective.
    value : float
        The objective that was not finite.
    """

    def __init__(self, message: str, training: Training, value: Any = nan) -> None:
        super().__init__(message)
        self.training = training
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class, arguments and attributes from which pickle rebuilds the error."""
        return type(self), (*self.args, self.training), self.__dict__


class Epoch(NamedTuple):
    """Record of one finished epoch: sums over its minibatches, in nats (contract 5).

    Each minibatch is evaluated at the theta of its own step. For the free energy
    ``objective = kl + nll``; with a tempered or warmed up KL term it is ``beta kl + nll``.
    """

    # minimised objective of the whole training set, by default the free energy
    objective: float
    # complexity part, sum_i pi_i mean_s [log q(w) - log P(w)], not multiplied by beta
    kl: float
    nll: float  # likelihood part, -sum_i mean_s log P(D_i|w)
    learning_rate: float  # learning rate of the last step
    validation: float  # mean NLL per validation row; nan without validation rows


@dataclass
class Training:
    """Everything that training changes: theta, the optimizer's state, the history.

    Attributes
    ----------
    theta : ndarray
        Flat parameters, in the order of the estimator's `layout`.
    optimizer_state : OptimizerState
    history : list of Epoch
        One record for each finished epoch.
    stopped : {'', 'early stopping', 'interrupted'}
        Reason for which training ended before its last epoch; empty if it did not.
    """

    theta: Array
    optimizer_state: OptimizerState
    history: list[Epoch] = field(default_factory=list)
    stopped: Literal["", "early stopping", "interrupted"] = ""

    def column(self, name: str) -> Array:
        """Return the field `name` of `Epoch`, such as ``'objective'``, as an array over epochs."""
        return np.array([getattr(epoch, name) for epoch in self.history])

    def copy(self) -> Training:
        """Return a copy that shares no arrays with this state."""
        return Training(
            self.theta.copy(),
            self.optimizer_state.copy(),
            list(self.history),
            self.stopped,
        )

    def take(self, later: Training) -> None:
        """Overwrite this state with the state `later` of the same training, without new arrays."""
        np.copyto(self.theta, later.theta)
        for name, array in later.optimizer_state.arrays.items():
            np.copyto(self.optimizer_state.arrays[name], array)
        self.optimizer_state.steps = later.optimizer_state.steps
        self.history.extend(later.history[len(self.history) :])


@dataclass
class Snapshots:
    """Copies of a training state after its last two epochs, for Ctrl-C and for failures.

    There are two, so that Ctrl-C while one is overwritten leaves the other intact. Besides, the
    objective at the `last` state is not evaluated before the first step of the next epoch: if it is
    not finite, the state to return is the `previous` one.
    """

    last: Training  # state after the last finished epoch
    previous: Training  # state one epoch earlier

    def add(self, state: Training) -> None:
        """Keep a copy of `state`, reached one epoch later, and drop the older of the two."""
        self.previous.take(state)
        self.last, self.previous = self.previous, self.last

"""The training loop (floor 4): epochs, minibatches, history, early stopping."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import TqdmWarning

from .gradients import Reparameterised
from .objectives import proportional_kl_weights
from .optimizers import Adam, Optimizer, State
from .workspace import Workspace

with warnings.catch_warnings():  # a notebook without ipywidgets gets the plain bar
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

__all__ = ["EarlyStopping", "Epoch", "NonFiniteError", "Training", "fit", "minibatches", "start"]

Array = NDArray[Any]


class NonFiniteError(ArithmeticError):
    """The free energy became nan or infinite; `training` is the last finite state."""

    def __init__(self, message: str, training: Training) -> None:
        super().__init__(message)
        self.training = training


class Epoch(NamedTuple):
    """What one finished epoch cost: sums over its minibatches, in nats (contract 5).

    Each minibatch is measured at the theta of its own step. For the free energy,
    ``objective = kl + nll``.
    """

    objective: float  # what was minimised: the free energy of the whole training set
    kl: float  # its complexity part, sum_i pi_i mean_s [log q(w) - log P(w)]
    nll: float  # its likelihood part, -sum_i mean_s log P(D_i|w)
    learning_rate: float  # of the last step
    validation: float  # mean NLL per validation row; nan without validation rows


@dataclass
class Training:
    """Everything that training changes: theta, the optimizer's memory, the history."""

    theta: Array
    optimizer_state: State
    history: list[Epoch] = field(default_factory=list)
    stopped: str = ""

    def column(self, name: str) -> Array:
        """Return one field of `Epoch` over all epochs as an array."""
        return np.array([getattr(epoch, name) for epoch in self.history])

    def copy(self) -> Training:
        """Return an independent copy."""
        return Training(
            self.theta.copy(), self.optimizer_state.copy(), list(self.history), self.stopped
        )

    def take(self, other: Training) -> None:
        """Overwrite the numbers with those of `other`, which has the same shapes."""
        np.copyto(self.theta, other.theta)
        for name, array in other.optimizer_state.arrays.items():
            np.copyto(self.optimizer_state.arrays[name], array)
        self.optimizer_state.steps = other.optimizer_state.steps
        self.history.extend(other.history[len(self.history) :])


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the monitored number has not fallen by `min_delta` for `patience` epochs.

    The monitored number is the validation loss when validation rows are given, otherwise
    the free energy per training row. With validation rows the best theta is restored.

    Parameters
    ----------
    patience : int
        Epochs without improvement, >= 1.
    min_delta : float
        Smallest fall that counts, in nats per row, >= 0.
    """

    patience: int = 50
    min_delta: float = 1e-4

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1 epoch; got {self.patience}")
        if not 0.0 <= self.min_delta < float("inf"):
            raise ValueError(f"min_delta must be finite and >= 0; got {self.min_delta}")


def minibatches(rows: int, batch_size: int) -> list[slice]:
    """Cut `rows` into slices of `batch_size`; the last one is shorter when it must be."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    return [slice(start, min(start + batch_size, rows)) for start in range(0, rows, batch_size)]


def start(
    estimator: Reparameterised,
    rng: np.random.Generator,
    optimizer: Optimizer,
    dtype: Any = np.float64,
) -> Training:
    """Return the state before the first epoch: initial theta, empty memory and history."""
    theta = estimator.init(rng, dtype)
    return Training(theta, optimizer.init(theta))


def fit(
    estimator: Reparameterised,
    training: Training,
    x: Array,
    y: Array,
    *,
    rng: np.random.Generator,
    optimizer: Optimizer | None = None,
    epochs: int = 100,
    batch_size: int = 32,
    samples: int = 1,
    shuffle: bool = True,
    kl_weights: Callable[[Any], Array] = proportional_kl_weights,
    early_stopping: EarlyStopping | None = None,
    validation: tuple[Array, Array] | None = None,
    progress: bool | None = None,
) -> Training:
    """Minimise the estimator's objective from `training` on, and return the new state.

    The state passed in is never changed. Same state, data, generator state and dtype give
    bit-identical results on the same machine.

    Parameters
    ----------
    estimator : Reparameterised
        Its `value_and_grad` is called once per minibatch; gradient checks call the same.
    training : Training
        From `start`, or from an earlier `fit` to go on.
    x, y : ndarray (N, d_in), (N, K)
        Finite numbers; cast to the dtype of theta.
    rng : numpy.random.Generator
        The only source of randomness: row order first, then noise, epoch by epoch.
    optimizer : SGD, Momentum or Adam
        Default ``Adam()``. The one that `training` was started with.
    epochs, batch_size, samples : int
        Passes over the data, rows per step, weight samples S per step; all >= 1
        (``epochs=0`` returns a copy of the state).
    shuffle : bool
        Draw a new row order every epoch.
    kl_weights : callable
        From the minibatch sizes of an epoch to their shares pi_i, which sum to 1.
    early_stopping : EarlyStopping, optional
    validation : (x, y), optional
        Rows on which the loss is recorded every epoch, with the same noise each time.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.

    Returns
    -------
    Training
        `stopped` says why when training ended before `epochs`: 'early stopping' or
        'interrupted' (Ctrl-C; the state after the last finished epoch).

    Raises
    ------
    ValueError
        On sizes below 1, empty data or mismatched lengths.
    NonFiniteError
        When the free energy of a step is nan or infinite. Names epoch, step and likely
        cause, and carries the state after the last finite epoch.
    """
    _check(estimator, training, x, y, epochs, batch_size, samples)
    optimizer = Adam() if optimizer is None else optimizer
    state = training.copy()
    state.stopped = ""
    dtype = state.theta.dtype
    x, y = np.ascontiguousarray(x, dtype), np.ascontiguousarray(y, dtype)
    batches = minibatches(len(x), batch_size)
    shares = kl_weights([batch.stop - batch.start for batch in batches]).tolist()
    held_out = _HeldOut(estimator, validation, rng, dtype) if validation is not None else None
    watch = _Watch(early_stopping, state.theta)
    work = Workspace()
    last, spare = state.copy(), state.copy()  # two, so that Ctrl-C never finds half a copy
    hidden = None if progress is None else not progress
    try:
        with np.errstate(over="ignore", invalid="ignore"), _bar(epochs, hidden) as bar:
            for epoch in range(epochs):
                order = rng.permutation(len(x)) if shuffle else slice(None)
                x_epoch, y_epoch = x[order], y[order]
                objective = kl = nll = factor = 0.0
                for step, (rows, share) in enumerate(zip(batches, shares, strict=True)):
                    noise = estimator.draw(rng, samples, dtype, work)
                    value, grad = estimator.value_and_grad(
                        state.theta, noise, x_epoch[rows], y_epoch[rows], share, work
                    )
                    if not isfinite(value):
                        raise NonFiniteError(_diagnosis(value, epoch, step, state, work), last)
                    factor = optimizer.schedule(epoch + step / len(batches), epochs)
                    optimizer.update(state.theta, grad, state.optimizer_state, factor, work)
                    terms = work.log_densities
                    objective += float(value)
                    kl += share * float(np.add.reduce(terms.posterior - terms.prior)) / samples
                    nll -= float(np.add.reduce(terms.likelihood)) / samples
                loss = held_out.loss(state.theta) if held_out else nan
                rate = optimizer.learning_rate * factor
                state.history.append(Epoch(objective, kl, nll, rate, loss))
                bar.set_postfix_str(f"{objective / len(x):.4g} nats per row", refresh=False)
                bar.update()
                if watch.should_stop(loss if held_out else objective / len(x), state.theta):
                    state.stopped = "early stopping"
                    if held_out:
                        state.theta = watch.best_theta
                    return state
                spare.take(state)
                last, spare = spare, last
    except KeyboardInterrupt:
        last.stopped = "interrupted"
        return last
    return state


def _bar(epochs: int, hidden: bool | None) -> Any:
    """Return a progress bar on stderr; ``hidden=None`` shows it only to a person."""
    return tqdm(total=epochs, unit="epoch", leave=False, disable=hidden)


class _HeldOut:
    """Validation loss, always with the same noise so that epochs can be compared."""

    SAMPLES = 32

    def __init__(
        self,
        estimator: Reparameterised,
        rows: tuple[Array, Array],
        rng: np.random.Generator,
        dtype: Any,
    ) -> None:
        self.estimator = estimator
        self.x, self.y = (np.ascontiguousarray(part, dtype) for part in rows)
        self.noise = estimator.draw(rng, self.SAMPLES, dtype)
        self.work = Workspace()

    def loss(self, theta: Array) -> float:
        """Return E_q[-log P(y|x, w)] per row."""
        log_likelihood = self.estimator.log_likelihood(theta, self.noise, self.x, self.y, self.work)
        return -float(log_likelihood.mean()) / len(self.x)


class _Watch:
    """Counts the epochs since the monitored number last fell enough."""

    def __init__(self, rule: EarlyStopping | None, theta: Array) -> None:
        self.rule, self.best, self.waited = rule, float("inf"), 0
        self.best_theta = theta.copy() if rule else theta

    def should_stop(self, value: float, theta: Array) -> bool:
        if self.rule is None:
            return False
        if value < self.best - self.rule.min_delta:
            self.best, self.waited = value, 0
            np.copyto(self.best_theta, theta)
        else:
            self.waited += 1
        return self.waited >= self.rule.patience


def _check(
    estimator: Reparameterised,
    training: Training,
    x: Array,
    y: Array,
    epochs: int,
    batch_size: int,
    samples: int,
) -> None:
    for name, value, least in (
        ("epochs", epochs, 0),
        ("batch_size", batch_size, 1),
        ("samples", samples, 1),
    ):
        if value != int(value) or value < least:
            raise ValueError(f"{name} must be a whole number >= {least}; got {value!r}")
    sizes = estimator.model.network.sizes
    if training.theta.shape != (estimator.layout.size,):
        raise ValueError(
            f"theta has shape {training.theta.shape}, the estimator needs "
            f"({estimator.layout.size},); start with training.start(estimator, ...)"
        )
    for name, array, width in (("x", x, sizes[0]), ("y", y, sizes[-1])):
        if np.ndim(array) != 2 or np.shape(array)[1] != width:
            raise ValueError(
                f"{name} must have shape (rows, {width}) for a network of sizes {sizes}; "
                f"got {np.shape(array)}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains nan or infinity; remove or impute such rows")
    if len(x) != len(y) or len(x) == 0:
        raise ValueError(f"x and y must have the same number of rows, >= 1; got {len(x)}, {len(y)}")


def _diagnosis(value: Any, epoch: int, step: int, state: Training, work: Workspace) -> str:
    terms = work.log_densities
    if not np.isfinite(state.theta).all():
        cause = "the previous update made theta non-finite: lower the learning rate"
    elif not np.isfinite(terms.likelihood).all():
        cause = (
            "the likelihood overflowed: lower the learning rate, standardise x and y, "
            "or start with a larger noise scale"
        )
    else:
        cause = "log q(w) or log P(w) overflowed: lower the learning rate or widen the prior"
    return (
        f"free energy is {value} in epoch {epoch}, step {step} (both counted from 0). "
        f"Likely cause: {cause}. The state after the last finite epoch is kept."
    )

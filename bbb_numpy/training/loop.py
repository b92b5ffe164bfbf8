"""The training loop: epochs, minibatches, history, early stopping and interruption."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from ..gradients.estimator import Evaluated, GradientEstimator
from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Layout
from ..numeric.validation import (
    DTYPE,
    GENERATOR,
    InstanceOf,
    Numbers,
    Optional,
    accepts,
    flag,
    not_negative,
    short_repr,
)
from ..progress import tqdm
from .minibatches import Minibatch, Minibatches
from .optimizers import OPTIMIZER, Optimizer
from .recipe import Recipe, Rows, checked_rows
from .state import Epoch, NonFiniteError, Snapshots, Training
from .stopping import Monitor, ValidationLoss

__all__ = ["fit", "start", "train"]


@accepts(
    estimator=InstanceOf(GradientEstimator),
    rng=GENERATOR,
    optimizer=OPTIMIZER,
    dtype=DTYPE,
)
def start(
    estimator: GradientEstimator,
    rng: np.random.Generator,
    optimizer: Optimizer,
    dtype: Any = np.float64,
    variational: Array | None = None,
) -> Training:
    """Return the state before the first epoch: initial theta, and an empty history.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ...
        Its method `init` draws the initial theta.
    rng : numpy.random.Generator
        Generator of the random initial values.
    optimizer : SGD, Momentum, Adam or IVON
        The update rule that `fit` will train with, whose initial state is part of the result.
    dtype : dtype
        Dtype of theta and of all of training: float64 or float32.
    variational : ndarray, optional
        Initial parameters of the posterior, flat, from its `pack`. By default they are drawn.

    Returns
    -------
    Training
    """
    theta = estimator.init(rng, dtype)
    if variational is not None:
        size = theta.size - Layout(estimator.model.learned()).size
        theta[:size] = Numbers((size,))("variational", variational)
    return Training(theta, optimizer.init(theta, estimator))


def fit(
    estimator: GradientEstimator,
    training: Training,
    x: Array,
    y: Array,
    recipe: Recipe | None = None,
    *,
    rng: np.random.Generator,
    sample_weight: Array | None = None,
    validation: tuple[Array, Array] | tuple[Array, Array, Array] | None = None,
    progress: bool | None = None,
) -> Training:
    """Minimise the objective of an estimator, and return the new state of training.

    The state passed in is never changed. The same state, data, generator state and dtype give
    bit-identical results on the same machine.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ...
        Its `value_and_grad` is called once per minibatch.
    training : Training
        State from `start`, or from an earlier `fit` to continue its training.
    x, y : ndarray (N, d_in), (N, K)
        Inputs and targets, finite numbers, which are cast to the dtype of theta.
    recipe : Recipe, optional
        Settings of training, with the optimizer for which `start` made `training`. By default
        ``Recipe()``.
    rng : numpy.random.Generator
        The only source of randomness: in each epoch the row order, then the noise.
    sample_weight : ndarray (N,), optional
        Factor of each row's log likelihood, >= 0 (D45). By default 1 for every row.
    validation : (x, y) or (x, y, sample_weight), optional
        Rows on which the loss is recorded after every epoch, each time with the same noise.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.

    Returns
    -------
    Training
        The state after the last epoch. `stopped` is 'early stopping' or 'interrupted' if training
        ended earlier; after Ctrl-C it is the state after the last finished epoch.

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be used, such as empty data or lengths that differ.
    NonFiniteError
        If the free energy of a step is nan or infinite. The message names epoch, step and likely
        cause; the attribute `training` is the last state with a finite free energy.
    """
    if recipe is None:
        recipe = Recipe()
    InstanceOf(GradientEstimator)("estimator", estimator)
    InstanceOf(Training)("training", training)
    InstanceOf(Recipe)("recipe", recipe)
    GENERATOR("rng", rng)
    Optional(flag)("progress", progress)
    fresh_state = recipe.optimizer.init(training.theta, estimator)
    if fresh_state.arrays.keys() != training.optimizer_state.arrays.keys():
        raise ValueError(
            "optimizer must be the rule that `training` was started with; "
            f"got {type(recipe.optimizer).__name__}"
        )
    rows = checked_rows(estimator, training.theta, x, y, sample_weight)
    validation_rows = None
    if validation is not None:
        if not isinstance(validation, tuple) or len(validation) not in (2, 3):
            raise TypeError(
                f"validation must be a pair (x, y) of arrays; got {short_repr(validation)}"
            )
        validation_rows = checked_rows(
            estimator, training.theta, *validation, which="validation "
        )
    return train(estimator, training, rows, recipe, rng, validation_rows, progress)


def train(
    estimator: Any,
    training: Training,
    data: Any,
    recipe: Recipe,
    rng: Any,
    validation: Rows | None = None,
    progress: bool | None = None,
    verbose: int = 0,
) -> Training:
    """Train as `fit` does, on rows that have been checked, and return the final state.

    The loop can also train a stack of problems of equal shape at once: all arrays then have a
    leading axis of problems, and the value of the objective is an array.

    Parameters
    ----------
    estimator : GradientEstimator
        Estimator, or an object with the attributes `model`, `objective`, `noise_shape`, `fill` and
        `value_and_grad` of one.
    training : Training
        State to continue from, which is not changed.
    data : Rows
        Training rows, or an object with the attributes ``x`` (..., N, d_in), ``y`` (..., N, K),
        `sample_weight`, `shuffled`, `finite` and `number` of `Rows`.
    recipe : Recipe
    rng : numpy.random.Generator
        Generator, or the object that `data.shuffled` and `estimator.fill` draw from.
    validation : Rows, optional
        Rows on which the loss is recorded after every epoch.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.
    verbose : int
        Number of epochs from one printed loss to the next; 0 prints nothing.

    Returns
    -------
    Training

    Raises
    ------
    NonFiniteError
        When the objective of a step is nan or infinite.
    """
    validation_loss = None
    if validation:
        validation_loss = ValidationLoss(estimator, training.theta, validation, rng)
    state = training.copy()
    state.stopped = ""
    batches = Minibatches(estimator, data, recipe, state.theta.dtype)
    snapshots = Snapshots(state.copy(), state.copy())
    descent = Descent(estimator, recipe, batches, state, snapshots, rng)
    monitor = Monitor(recipe.early_stopping, state)
    progress_bar = tqdm(total=recipe.epochs, unit="epoch", progress=progress)
    try:
        with np.errstate(over="ignore", invalid="ignore"), progress_bar as bar:
            for epoch in range(recipe.epochs):
                record = descent.run_epoch(epoch)
                if validation_loss:
                    loss = validation_loss(state.theta)
                    record = record._replace(validation=loss)
                state.history.append(record)
                per_row = record.objective / batches.total_weight
                _report(bar, state.history, per_row, verbose)
                snapshots.add(state)
                monitored = record.validation if validation_loss else per_row
                if monitor.should_stop(monitored, state):
                    state.stopped = "early stopping"
                    break
            if recipe.epochs:
                descent.measure_last_update(epoch)
    except KeyboardInterrupt:
        snapshots.last.stopped = "interrupted"
        return snapshots.last
    if validation_loss and recipe.early_stopping:
        state.theta = monitor.best.theta
        state.optimizer_state = monitor.best.optimizer_state
    return state


@dataclass
class Descent:
    """Steps of the optimizer through the minibatches, one epoch at a time."""

    estimator: Any
    recipe: Recipe
    minibatches: Minibatches
    # theta and the optimizer's state are changed in place at every step
    state: Training
    snapshots: Snapshots  # states after the last two epochs, for errors
    rng: Any
    buffers: Buffers = field(default_factory=Buffers)
    beta: float = 1.0  # factor of the warm-up on the KL term in the present epoch
    last_batch: Minibatch = field(init=False)  # last minibatch of the last epoch

    def run_epoch(self, epoch: int) -> Epoch:
        """Take one step on every minibatch, changing `state`, and return the epoch's record.

        Parameters
        ----------
        epoch : int
            Number of the epoch, counted from 0; the warm-up and the schedule depend on it.
        """
        recipe = self.recipe
        state = self.state
        optimizer, n_epochs = recipe.optimizer, recipe.epochs
        number = self.minibatches.data.number
        n_steps = len(self.minibatches.slices)
        beta = recipe.warm_up(epoch, n_epochs)
        self.beta = not_negative("the value of warm_up(epoch, epochs)", beta)
        # A minibatch costs about kl_factor KL / n_steps plus the NLL of its rows; times `scale`
        # this estimates KL + NLL / kl_factor of all data (D62)
        kl_factor = self.beta * getattr(self.estimator.objective, "beta", 1.0)
        scale = n_steps / (kl_factor or 1.0)
        objective = kl = nll = factor = 0.0
        for step, batch in enumerate(self.minibatches.draw(self.rng)):
            value, grad, terms = self.evaluate(batch, epoch, step)
            factor = optimizer.schedule(epoch + step / n_steps, n_epochs)
            factor = not_negative("the value of schedule(epoch, epochs)", factor)
            optimizer.update(state.theta, grad, state.optimizer_state, factor, scale)
            objective += number(value)
            log_ratio = number(np.add.reduce(terms.posterior - terms.prior))
            kl += batch.share * log_ratio / recipe.samples
            nll -= number(np.add.reduce(terms.likelihood)) / recipe.samples
        self.last_batch = batch
        return Epoch(objective, kl, nll, optimizer.learning_rate * factor, nan)

    def evaluate(self, batch: Minibatch, epoch: int, step: int) -> Evaluated:
        """Return the objective on a minibatch, its gradient and its log densities.

        Parameters
        ----------
        batch : Minibatch
        epoch, step : int
            Numbers of the epoch and of the step in it, counted from 0, for the error message.

        Raises
        ------
        NonFiniteError
            If the objective is nan or infinite.
        """
        noise, x, y, share, weights = batch
        theta = self.state.theta
        kl_weight = self.beta * share
        buffers = self.buffers.rewind()
        evaluated = self.estimator.value_and_grad(
            theta, noise, x, y, kl_weight, buffers, weights
        )
        if not self.minibatches.data.finite(evaluated.value):
            # at the first step of an epoch, and after the very last, theta is that of the last
            # snapshot, which is therefore not finite either
            snapshots = self.snapshots
            is_last = step in (0, len(self.minibatches.slices))
            finite_state = snapshots.previous if is_last else snapshots.last
            raise _failure(evaluated, theta, epoch, step, finite_state)
        return evaluated

    def measure_last_update(self, epoch: int) -> None:
        """Raise `NonFiniteError` if the objective after the last update of theta is not finite.

        The theta after any other step is tested by the step that follows it. `epoch` is the number
        of the last epoch, counted from 0.
        """
        self.evaluate(self.last_batch, epoch, len(self.minibatches.slices))


def _report(bar: tqdm, history: list[Epoch], per_row: Any, verbose: int) -> None:
    """Show the last epoch on the bar, and print its loss after every `verbose` epochs.

    `per_row` is the objective per training row, in nats; for `verbose` = 0 nothing is printed.
    """
    if not bar.disable:
        bar.set_postfix_str(f"{np.mean(per_row):.4g} nats per row", refresh=False)
    bar.update()
    n_epochs = len(history)
    if verbose and n_epochs % verbose == 0:
        # the bar's own method prints above the bar, where print would break it
        bar.write(f"Epoch {n_epochs}, loss = {np.mean(history[-1].objective):.8g}")


def _failure(
    evaluated: Evaluated, theta: Array, epoch: int, step: int, finite_state: Training
) -> NonFiniteError:
    """Return the error that names the likely cause of an objective that is not finite.

    `evaluated` is the result at `theta` in this `epoch` and `step`, counted from 0; the error
    carries `finite_state`, the last state with a finite objective.
    """
    if not np.isfinite(theta).all():
        cause = "the previous update made theta non-finite: lower the learning rate"
    elif not np.isfinite(evaluated.terms.likelihood).all():
        cause = (
            "the likelihood overflowed: lower the learning rate, standardise x and y, "
            "or start with a larger noise scale"
        )
    else:
        cause = "log q(w) or log P(w) overflowed: lower the learning rate or widen the prior"
    message = (
        f"free energy is {evaluated.value} in epoch {epoch}, step {step} (both counted from 0). "
        f"Likely cause: {cause}. The last state with a finite free energy is kept."
    )
    return NonFiniteError(message, finite_state, evaluated.value)

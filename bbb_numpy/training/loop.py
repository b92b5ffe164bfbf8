"""The training loop: epochs, minibatches, history, early stopping."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import Estimator
from ..model.objectives import LogDensities
from ..numeric.arguments import not_negative
from ..numeric.buffers import Buffers
from ..numeric.layout import Layout
from ..progress import tqdm
from .optimizers import Optimizer
from .recipe import Recipe, Rows, checked_rows
from .state import Epoch, NonFiniteError, Training
from .stopping import HeldOut, Watch

__all__ = ["fit", "start", "train"]

Array = NDArray[Any]


def start(
    estimator: Estimator,
    rng: np.random.Generator,
    optimizer: Optimizer,
    dtype: Any = np.float64,
    variational: Array | None = None,
) -> Training:
    """Return the state before the first epoch: initial theta, empty memory and history.

    `variational`, from the posterior's `pack`, replaces its random start.
    """
    theta = estimator.init(rng, dtype)
    if variational is not None:
        size = theta.size - Layout(estimator.model.learned()).size
        if np.shape(variational) != (size,) or not np.isfinite(variational).all():
            raise ValueError(
                f"variational must have shape ({size},) and be finite; got shape "
                f"{np.shape(variational)}. Make it with the posterior's pack(mean, ...)"
            )
        theta[:size] = variational
    return Training(theta, optimizer.init(theta))


def fit(
    estimator: Estimator,
    training: Training,
    x: Array,
    y: Array,
    recipe: Recipe | None = None,
    *,
    rng: np.random.Generator,
    validation: tuple[Array, Array] | None = None,
    progress: bool | None = None,
) -> Training:
    """Minimise the estimator's objective from `training` on, and return the new state.

    The state passed in is never changed. Same state, data, generator state and dtype give
    bit-identical results on the same machine.

    Parameters
    ----------
    estimator : Reparameterised, LocalReparameterisation, ...
        Its `value_and_grad` is called once per minibatch; gradient checks call the same.
    training : Training
        From `start`, or from an earlier `fit` to go on.
    x, y : ndarray (N, d_in), (N, K)
        Finite numbers; cast to the dtype of theta.
    recipe : Recipe, optional
        With the optimizer that `training` was started with. Default ``Recipe()``.
    rng : numpy.random.Generator
        The only source of randomness: row order first, then noise, epoch by epoch.
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
        On empty data or mismatched lengths.
    NonFiniteError
        When the free energy of a step is nan or infinite. Names epoch, step and likely
        cause, and carries the last state whose own free energy was seen to be finite.
    """
    recipe = Recipe() if recipe is None else recipe
    if (
        recipe.optimizer.init(training.theta).arrays.keys()
        != training.optimizer_state.arrays.keys()
    ):
        raise ValueError(
            "optimizer must be the rule that `training` was started with; "
            f"got {type(recipe.optimizer).__name__}"
        )
    rows, held_out = checked_rows(estimator, training.theta, x, y), None
    if validation is not None:
        held_out = checked_rows(estimator, training.theta, *validation, "validation ")
    return train(estimator, training, rows, recipe, rng, held_out, progress)


def train(
    estimator: Estimator,
    training: Training,
    data: Rows,
    recipe: Recipe,
    rng: np.random.Generator,
    validation: Rows | None = None,
    progress: bool | None = None,
) -> Training:
    """Do what `fit` does, on rows that have been checked."""
    state = training.copy()
    state.stopped = ""
    epochs, samples, optimizer = recipe.epochs, recipe.samples, recipe.optimizer
    batches, shares = recipe.batches(estimator, len(data.x))
    held_out = None if validation is None else HeldOut(estimator, state.theta, validation, rng)
    watch = Watch(recipe.early_stopping, state)
    buffers, sizes = Buffers(), {batch.stop - batch.start for batch in batches}
    shapes = {rows: estimator.noise_shape(samples, rows) for rows in sizes}
    noises = {rows: np.empty(shape, state.theta.dtype) for rows, shape in shapes.items()}
    last, spare = state.copy(), state.copy()  # two, so that Ctrl-C never finds half a copy
    hidden = None if progress is None else not progress
    try:
        with np.errstate(over="ignore", invalid="ignore"), _bar(epochs, hidden) as bar:
            for epoch in range(epochs):
                beta = recipe.warm_up(epoch, epochs)
                not_negative("the value of warm_up(epoch, epochs)", beta)
                order = rng.permutation(len(data.x)) if recipe.shuffle else slice(None)
                x_epoch, y_epoch = data.x[order], data.y[order]
                objective = kl = nll = factor = 0.0
                for step, (rows, share) in enumerate(zip(batches, shares, strict=True)):
                    noise = noises[rows.stop - rows.start]
                    estimator.fill(rng, noise)
                    x, y, weight = x_epoch[rows], y_epoch[rows], beta * share
                    value, grad, terms = estimator.value_and_grad(
                        state.theta, noise, x, y, weight, buffers.rewind()
                    )
                    if not isfinite(value):  # at step 0 it is `last` itself that fails
                        known = spare if step == 0 else last
                        raise NonFiniteError(_diagnosis(value, terms, epoch, step, state), known)
                    factor = optimizer.schedule(epoch + step / len(batches), epochs)
                    optimizer.update(state.theta, grad, state.optimizer_state, factor)
                    objective += float(value)
                    kl += share * float(np.add.reduce(terms.posterior - terms.prior)) / samples
                    nll -= float(np.add.reduce(terms.likelihood)) / samples
                loss = held_out.loss(state.theta) if held_out else nan
                rate = optimizer.learning_rate * factor
                state.history.append(Epoch(objective, kl, nll, rate, loss))
                bar.set_postfix_str(f"{objective / len(data.x):.4g} nats per row", refresh=False)
                bar.update()
                spare.take(state)
                last, spare = spare, last
                if watch.should_stop(loss if held_out else objective / len(data.x), state):
                    state.stopped = "early stopping"
                    break
            if epochs:  # the last update has not been measured yet
                value, _, terms = estimator.value_and_grad(
                    state.theta, noise, x, y, weight, buffers.rewind()
                )
                if not isfinite(value):
                    raise NonFiniteError(_diagnosis(value, terms, epoch, step + 1, state), spare)
    except KeyboardInterrupt:
        last.stopped = "interrupted"
        return last
    if held_out and recipe.early_stopping:
        state.theta, state.optimizer_state = watch.best.theta, watch.best.optimizer_state
    return state


def _bar(epochs: int, hidden: bool | None) -> Any:
    """Return a progress bar on stderr; ``hidden=None`` shows it only to a person."""
    return tqdm(total=epochs, unit="epoch", leave=False, disable=hidden)


def _diagnosis(value: Any, terms: LogDensities, epoch: int, step: int, state: Training) -> str:
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
        f"Likely cause: {cause}. The last state with a finite free energy is kept."
    )

"""The training loop: epochs, minibatches, history, early stopping, Ctrl-C."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from ..gradients.estimator import Evaluated, GradientEstimator
from ..gradients.estimator import GradientEstimator as Estimator
from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Layout
from ..numeric.validation import (
    DTYPE,
    GENERATOR,
    InstanceOf,
    Numbers,
    Optional,
    accepts,
    brief,
    flag,
    not_negative,
)
from ..progress import tqdm
from .optimizers import OPTIMIZER, Optimizer
from .recipe import Recipe, Rows, checked_rows
from .state import Epoch, NonFiniteError, Training
from .stopping import HeldOut, Watch, minibatches

__all__ = ["fit", "start", "train"]


@accepts(
    estimator=InstanceOf(GradientEstimator),
    rng=GENERATOR,
    optimizer=OPTIMIZER,
    dtype=DTYPE,
)
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
        theta[:size] = Numbers((size,))("variational", variational)
    return Training(theta, optimizer.init(theta, estimator))


def fit(
    estimator: Estimator,
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
    sample_weight : ndarray (N,), optional
        How often each row counts, >= 0 (D45).
    validation : (x, y) or (x, y, sample_weight), optional
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
    InstanceOf(GradientEstimator)("estimator", estimator)
    InstanceOf(Training)("training", training)
    InstanceOf(Recipe)("recipe", recipe)
    GENERATOR("rng", rng)
    Optional(flag)("progress", progress)
    if {*recipe.optimizer.init(training.theta, estimator).arrays} != {
        *training.optimizer_state.arrays
    }:
        raise ValueError(
            "optimizer must be the rule that `training` was started with; "
            f"got {type(recipe.optimizer).__name__}"
        )
    rows, held_out = checked_rows(estimator, training.theta, x, y, sample_weight), None
    if validation is not None:
        if not isinstance(validation, tuple) or len(validation) not in (2, 3):
            raise TypeError(
                f"validation must be a pair (x, y) of arrays; got {brief(validation)}"
            )
        held_out = checked_rows(
            estimator, training.theta, *validation, which="validation "
        )
    return train(estimator, training, rows, recipe, rng, held_out, progress)


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
    """Do what `fit` does, on rows that have been checked; print every `verbose`-th epoch.

    Several problems of one shape are to this loop what one is: `estimator` has `model`,
    `objective`, `noise_shape`, `fill` and `value_and_grad`; `data`, as `Rows`, ``x``
    (..., N, d_in), ``y`` (..., N, K), `sample_weight`, `shuffled`, `finite` and `number`; both
    draw from `rng`. Minibatches of rows with weights share the KL term of an epoch by these (D45).
    """
    held_out = (
        HeldOut(estimator, training.theta, validation, rng) if validation else None
    )
    state, finite, number = training.copy(), data.finite, data.number
    state.stopped = ""
    batches = minibatches(data.x.shape[-2], recipe.batch_size)
    shares = recipe.shares(estimator, [batch.stop - batch.start for batch in batches])
    epochs, samples, optimizer = recipe.epochs, recipe.samples, recipe.optimizer
    watch = Watch(recipe.early_stopping, state)
    buffers, v, weighted = Buffers(), None, data.sample_weight is not None
    count = data.sample_weight.sum(dtype=float) if weighted else data.x.shape[-2]
    sizes = {batch.stop - batch.start for batch in batches}
    shapes = {rows: estimator.noise_shape(samples, rows) for rows in sizes}
    noises = {
        rows: np.empty(shape, state.theta.dtype) for rows, shape in shapes.items()
    }
    # two, so that Ctrl-C never finds half a copy
    last, spare = state.copy(), state.copy()
    hidden = None if progress is None else not progress  # None: shown only to a person
    progress_bar = tqdm(total=epochs, unit="epoch", leave=False, disable=hidden)
    try:
        with np.errstate(over="ignore", invalid="ignore"), progress_bar as bar:
            for epoch in range(epochs):
                beta = recipe.warm_up(epoch, epochs)
                beta = not_negative("the value of warm_up(epoch, epochs)", beta)
                # From the cost of a minibatch to that of all data, in units of the KL term (D62)
                scale = len(batches) / (
                    beta * getattr(estimator.objective, "beta", 1.0) or 1.0
                )
                rows = data.shuffled(rng) if recipe.shuffle else data
                if weighted:
                    totals = [
                        float(rows.sample_weight[b].sum(dtype=float)) for b in batches
                    ]
                    shares = recipe.shares(estimator, totals)  # D45
                objective = kl = nll = factor = 0.0
                for step, (batch, share) in enumerate(
                    zip(batches, shares, strict=True)
                ):
                    noise = noises[batch.stop - batch.start]
                    estimator.fill(rng, noise)
                    x, y, weight = (
                        rows.x[..., batch, :],
                        rows.y[..., batch, :],
                        beta * share,
                    )
                    v = rows.sample_weight[batch] if weighted else None
                    found = estimator.value_and_grad(
                        state.theta, noise, x, y, weight, buffers.rewind(), v
                    )
                    # at step 0 it is `last` itself that fails
                    if not finite(found.value):
                        kept = spare if step == 0 else last
                        raise _failure(found, state.theta, epoch, step, kept)
                    value, grad, terms = found
                    factor = optimizer.schedule(epoch + step / len(batches), epochs)
                    factor = not_negative(
                        "the value of schedule(epoch, epochs)", factor
                    )
                    optimizer.update(
                        state.theta, grad, state.optimizer_state, factor, scale
                    )
                    objective += number(value)
                    kl += (
                        share
                        * number(np.add.reduce(terms.posterior - terms.prior))
                        / samples
                    )
                    nll -= number(np.add.reduce(terms.likelihood)) / samples
                loss = held_out.loss(state.theta) if held_out else nan
                rate = optimizer.learning_rate * factor
                state.history.append(Epoch(objective, kl, nll, rate, loss))
                per_row = objective / count
                if not bar.disable:
                    bar.set_postfix_str(
                        f"{np.mean(per_row):.4g} nats per row", refresh=False
                    )
                bar.update()
                # above the bar, not through it
                if verbose and len(state.history) % verbose == 0:
                    bar.write(
                        f"Epoch {len(state.history)}, loss = {np.mean(objective):.8g}"
                    )
                spare.take(state)
                last, spare = spare, last
                if watch.should_stop(loss if held_out else per_row, state):
                    state.stopped = "early stopping"
                    break
            if epochs:  # the last update has not been measured yet
                found = estimator.value_and_grad(
                    state.theta, noise, x, y, weight, buffers.rewind(), v
                )
                if not finite(found.value):
                    raise _failure(found, state.theta, epoch, step + 1, spare)
    except KeyboardInterrupt:
        last.stopped = "interrupted"
        return last
    if held_out and recipe.early_stopping:
        state.theta, state.optimizer_state = (
            watch.best.theta,
            watch.best.optimizer_state,
        )
    return state


def _failure(
    found: Evaluated, theta: Array, epoch: int, step: int, kept: Training
) -> NonFiniteError:
    if not np.isfinite(theta).all():
        cause = "the previous update made theta non-finite: lower the learning rate"
    elif not np.isfinite(found.terms.likelihood).all():
        cause = (
            "the likelihood overflowed: lower the learning rate, standardise x and y, "
            "or start with a larger noise scale"
        )
    else:
        cause = "log q(w) or log P(w) overflowed: lower the learning rate or widen the prior"
    message = (
        f"free energy is {found.value} in epoch {epoch}, step {step} (both counted from 0). "
        f"Likely cause: {cause}. The last state with a finite free energy is kept."
    )
    return NonFiniteError(message, kept, found.value)

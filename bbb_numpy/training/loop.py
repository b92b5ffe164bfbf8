"""The training loop: epochs, minibatches, history, early stopping."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import Estimator
from ..gradients.family import is_linear
from ..model.kl_weights import NoWarmUp, Shares, WarmUp, proportional_kl_weights
from ..numeric.arguments import not_negative, whole
from ..numeric.layout import Layout
from ..numeric.workspace import Workspace
from ..progress import tqdm
from .optimizers import Adam, Optimizer
from .state import Epoch, NonFiniteError, Training
from .stopping import EarlyStopping, HeldOut, Watch, minibatches

__all__ = ["fit", "start"]

Array = NDArray[Any]
NO_WARM_UP = NoWarmUp()


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
    *,
    rng: np.random.Generator,
    optimizer: Optimizer | None = None,
    epochs: int = 100,
    batch_size: int = 32,
    samples: int = 1,
    shuffle: bool = True,
    kl_weights: Shares = proportional_kl_weights,
    warm_up: WarmUp = NO_WARM_UP,
    early_stopping: EarlyStopping | None = None,
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
    warm_up : callable
        From (epoch, epochs) to the factor beta on all shares of that epoch (D24).
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
        cause, and carries the last state whose own free energy was seen to be finite.
    """
    for name, value, least in (("epochs", epochs, 0), ("samples", samples, 1)):
        whole(name, value, least)
    optimizer = Adam() if optimizer is None else optimizer
    if optimizer.init(training.theta).arrays.keys() != training.optimizer_state.arrays.keys():
        raise ValueError(
            "optimizer must be the rule that `training` was started with; "
            f"got {type(optimizer).__name__}"
        )
    state = training.copy()
    state.stopped = ""
    dtype = state.theta.dtype
    x, y = _rows(estimator, state.theta, x, y)
    batches = minibatches(len(x), batch_size)
    pi = np.asarray(kl_weights([batch.stop - batch.start for batch in batches]), float)
    if pi.shape != (len(batches),) or not abs(pi.sum() - 1.0) <= 1e-9 or not (pi >= 0).all():
        raise ValueError(
            f"kl_weights must return {len(batches)} shares >= 0 that sum to 1; got {pi}"
        )
    if not is_linear(estimator.objective):
        _need_plain_weights(estimator, pi, batches, warm_up)
    shares = pi.tolist()
    held_out = None
    if validation is not None:
        checked = _rows(estimator, state.theta, *validation, "validation ")
        held_out = HeldOut(estimator, state.theta, checked, rng)
    watch = Watch(early_stopping, state)
    work = Workspace()
    last, spare = state.copy(), state.copy()  # two, so that Ctrl-C never finds half a copy
    hidden = None if progress is None else not progress
    try:
        with np.errstate(over="ignore", invalid="ignore"), _bar(epochs, hidden) as bar:
            for epoch in range(epochs):
                beta = not_negative("the value of warm_up(epoch, epochs)", warm_up(epoch, epochs))
                order = rng.permutation(len(x)) if shuffle else slice(None)
                x_epoch, y_epoch = x[order], y[order]
                objective = kl = nll = factor = 0.0
                for step, (rows, share) in enumerate(zip(batches, shares, strict=True)):
                    noise = estimator.draw(rng, samples, dtype, work, rows.stop - rows.start)
                    value, grad = estimator.value_and_grad(
                        state.theta, noise, x_epoch[rows], y_epoch[rows], beta * share, work
                    )
                    if not isfinite(value):  # at step 0 it is `last` itself that fails
                        known = spare if step == 0 else last
                        raise NonFiniteError(_diagnosis(value, epoch, step, state, work), known)
                    factor = optimizer.schedule(epoch + step / len(batches), epochs)
                    optimizer.update(state.theta, grad, state.optimizer_state, factor)
                    terms = work.log_densities
                    objective += float(value)
                    kl += share * float(np.add.reduce(terms.posterior - terms.prior)) / samples
                    nll -= float(np.add.reduce(terms.likelihood)) / samples
                loss = held_out.loss(state.theta) if held_out else nan
                rate = optimizer.learning_rate * factor
                state.history.append(Epoch(objective, kl, nll, rate, loss))
                bar.set_postfix_str(f"{objective / len(x):.4g} nats per row", refresh=False)
                bar.update()
                spare.take(state)
                last, spare = spare, last
                if watch.should_stop(loss if held_out else objective / len(x), state):
                    state.stopped = "early stopping"
                    break
            if epochs:  # the last update has not been measured yet
                value, _ = estimator.value_and_grad(
                    state.theta, noise, x_epoch[rows], y_epoch[rows], beta * share, work
                )
                if not isfinite(value):
                    raise NonFiniteError(_diagnosis(value, epoch, step + 1, state, work), spare)
    except KeyboardInterrupt:
        last.stopped = "interrupted"
        return last
    if held_out and early_stopping:
        state.theta, state.optimizer_state = watch.best.theta, watch.best.optimizer_state
    return state


def _bar(epochs: int, hidden: bool | None) -> Any:
    """Return a progress bar on stderr; ``hidden=None`` shows it only to a person."""
    return tqdm(total=epochs, unit="epoch", leave=False, disable=hidden)


def _rows(
    estimator: Estimator, theta: Array, x: Any, y: Any, which: str = ""
) -> tuple[Array, Array]:
    """Return `x` and `y` in the dtype of theta, or say what does not fit."""
    if theta.shape != (estimator.layout.size,):
        raise ValueError(
            f"theta has shape {theta.shape}, the estimator needs ({estimator.layout.size},); "
            "start with training.start(estimator, ...)"
        )
    sizes, arrays = estimator.model.network.sizes, []
    widths = {f"{which}x": sizes[0], f"{which}y": estimator.model.outputs}
    for (name, width), given in zip(widths.items(), (x, y), strict=True):
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(given, theta.dtype)
        if np.ndim(given) != 2 or array.shape[1] != width:
            raise ValueError(
                f"{name} must have shape (rows, {width}) for a network of sizes {sizes}; "
                f"got {np.shape(given)}"
            )
        if not np.isfinite(array).all():
            raise ValueError(
                f"{name} contains nan or infinity as {theta.dtype}; remove or impute such rows"
            )
        arrays.append(array)
    if len(x) != len(y) or len(x) == 0:
        raise ValueError(
            f"{which}x and y must have the same number of rows, >= 1; got {len(x)}, {len(y)}"
        )
    estimator.model.likelihood.check_targets(np.asarray(y), theta.dtype)
    return arrays[0], arrays[1]


def _need_plain_weights(
    estimator: Estimator, pi: Array, batches: list[slice], warm_up: WarmUp
) -> None:
    """Refuse weights with which log P(w) - log q(w) + log P(D_i|w) / pi_i means nothing (D30)."""
    plain = proportional_kl_weights([batch.stop - batch.start for batch in batches])
    if not np.allclose(pi, plain, rtol=1e-9, atol=0) or warm_up != NO_WARM_UP:
        raise ValueError(
            f"{type(estimator.objective).__name__} divides the log likelihood of a minibatch by "
            "its KL weight, which must be its share B_i / N of the data; use "
            "proportional_kl_weights without a warm-up, or FreeEnergy"
        )


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
        f"Likely cause: {cause}. The last state with a finite free energy is kept."
    )

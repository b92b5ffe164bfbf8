"""Training problems of one shape at once, each as `training.fit` trains it.

A small network spends most of a step on the way into NumPy's functions, not inside them.
Replicates, e.g. the splits of a data set, go that way once for all of them, see
`bbb_studies.replicated`.

Each draws from its own generator what it would draw alone, and theta becomes what it would become
alone on the same machine, bit for bit, but in two cases where one term of a step is rounded
otherwise: a prior that learns its scale with S > 1, and a fixed `GaussianPrior` of another scale
for each replicate. The recorded history may differ in the last digit of its sums over S.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.training.loop import train
from bbb_numpy.training.optimizers import Optimizer, OptimizerState
from bbb_numpy.training.recipe import Recipe
from bbb_numpy.training.state import Epoch, NonFiniteError, Training
from bbb_studies.replicated import replicated

Array = NDArray[Any]


def stack(layout: Layout, vectors: Sequence[Array]) -> Array:
    """Return R vectors of one layout as a single vector, each block of all R side by side.

    Parameters
    ----------
    layout : Layout
        Blocks of each vector.
    vectors : sequence of array
        R vectors, flat.
    """
    return np.concatenate(
        [vector[where] for where in layout.slices.values() for vector in vectors]
    )


def unstack(layout: Layout, flat: Array, count: int) -> list[Array]:
    """Return the R vectors that `stack` put together.

    Parameters
    ----------
    layout : Layout
        Blocks of each vector.
    flat : array
        From `stack`.
    count : int
        Number R of vectors.
    """
    blocks = [
        flat[count * where.start : count * where.stop].reshape(count, -1)
        for where in layout.slices.values()
    ]
    return [np.concatenate([block[r] for block in blocks]) for r in range(count)]


def fit_replicates(
    estimators: Sequence[Reparameterised],
    trainings: Sequence[Training],
    xs: Sequence[Array],
    ys: Sequence[Array],
    recipe: Recipe | None = None,
    *,
    rngs: Sequence[np.random.Generator],
    progress: bool | None = None,
) -> list[Training]:
    """Train R replicates in one computation, each as `training.fit` trains it.

    Parameters
    ----------
    estimators : sequence of Reparameterised
        See `replicated`.
    trainings : sequence of Training
        From `training.start`, or from an earlier fit; all after the same number of steps.
    xs, ys : sequences of ndarray (N, d_in), (N, K)
        The rows of each; N is the same for all.
    recipe : Recipe, optional
        The same for all. Early stopping needs a fit for each.
    rngs : sequence of numpy.random.Generator
        One for each, used as `training.fit` uses it.
    progress : bool, optional
        As in `training.fit`.

    Returns
    -------
    list of Training
        One for each, as the states passed in, which are not changed.

    Raises
    ------
    NonFiniteError
        When the free energy of a replicate is nan or infinite; names the replicate and carries
        its last state known to be finite. The others are unharmed: train them again without it.
    """
    recipe = Recipe() if recipe is None else recipe
    if recipe.early_stopping is not None:
        raise ValueError(
            "early_stopping must be None, since replicates end together; it needs a training.fit "
            "for each"
        )
    if getattr(recipe.optimizer, "clip", None) is not None:
        raise ValueError(
            "clip must be None, since the gradient of all replicates has one length; it needs a "
            "training.fit for each"
        )
    combined = SideBySide(estimators)
    single = estimators[0].layout
    state = _together(single, trainings, recipe.optimizer)
    dtype = state.theta.dtype
    rows = RowsOfEach(np.array(xs, dtype), np.array(ys, dtype))
    histories = [training.history for training in trainings]
    try:
        trained = train(combined, state, rows, recipe, rngs, progress=progress)
    except NonFiniteError as failure:
        failed_index = int(np.flatnonzero(~np.isfinite(failure.value))[0])
        last_finite = _apart(single, failure.training, histories)[failed_index]
        message = (
            f"replicate {failed_index} of these: {failure} Train the others without it"
        )
        raise NonFiniteError(
            message, last_finite, failure.value[failed_index]
        ) from None
    if trained.stopped:  # half-trained replicates are of no use to anyone
        raise KeyboardInterrupt
    return _apart(single, trained, histories)


class RowsOfEach(NamedTuple):
    """The rows of all replicates."""

    x: Array  # (R, N, d_in)
    y: Array  # (R, N, K)
    sample_weight: None = None

    def shuffled(self, rngs: Sequence[np.random.Generator]) -> RowsOfEach:
        """Return copies, each replicate's rows in an order of its own."""
        out = RowsOfEach(np.empty_like(self.x), np.empty_like(self.y))
        for r, rng in enumerate(rngs):
            order = rng.permutation(self.x.shape[1])
            out.x[r] = self.x[r][order]
            out.y[r] = self.y[r][order]
        return out

    def finite(self, values: Array) -> bool:
        """Whether the values (R,) of the objective are finite."""
        return bool(np.isfinite(values).all())

    def number(self, values: Array) -> Array:
        """Return sums (R,) as they are recorded."""
        return values.astype(float)


class SideBySide:
    """R estimators as one, each with the noise that it would draw alone."""

    def __init__(self, estimators: Sequence[Reparameterised]) -> None:
        self.value_and_grad = replicated(estimators).value_and_grad  # values (R,)
        self.estimators = estimators
        self.model = estimators[0].model
        self.objective = estimators[0].objective

    def noise_shape(self, samples: int, rows: int) -> tuple[int, int]:
        """Return the shape (S, R P) of the noise of one step.

        Parameters
        ----------
        samples : int
            Weight samples S of a step.
        rows : int
            Rows of each replicate in a step.
        """
        samples, width = self.estimators[0].noise_shape(samples, rows)
        return samples, len(self.estimators) * width

    def fill(self, rngs: Sequence[np.random.Generator], noise: Array) -> None:
        """Overwrite `noise` with what each replicate would draw alone, side by side.

        Parameters
        ----------
        rngs : sequence of numpy.random.Generator
            One for each replicate.
        noise : array (S, R P)
            Overwritten.
        """
        width = noise.shape[1] // len(rngs)
        own_noise = np.empty((len(noise), width), noise.dtype)
        for r, (estimator, rng) in enumerate(zip(self.estimators, rngs, strict=True)):
            estimator.fill(rng, own_noise)  # (S, P)
            noise[:, r * width : (r + 1) * width] = own_noise


def _together(
    single: Layout, trainings: Sequence[Training], optimizer: Optimizer
) -> Training:
    """Return one state of all replicates, with an empty history."""
    first = trainings[0]
    names = optimizer.init(first.theta).arrays.keys()
    # All replicates must have taken the same number of steps.
    (steps,) = {training.optimizer_state.steps for training in trainings}
    optimizer_state = OptimizerState(
        steps,
        {
            name: stack(single, [t.optimizer_state.arrays[name] for t in trainings])
            for name in names
        },
    )
    return Training(
        stack(single, [training.theta for training in trainings]), optimizer_state
    )


def _apart(
    single: Layout, state: Training, histories: list[list[Epoch]]
) -> list[Training]:
    """Return the state of each replicate, its epochs after those `histories`."""
    count = len(histories)
    optimizer_state = state.optimizer_state
    thetas = unstack(single, state.theta, count)
    arrays = {
        name: unstack(single, array, count)
        for name, array in optimizer_state.arrays.items()
    }
    out = []
    # The fields of its epochs are arrays (R,) in place of numbers.
    recorded = cast(Any, state.history)
    for r in range(count):
        own_arrays = {name: parts[r] for name, parts in arrays.items()}
        epochs = [
            Epoch(
                float(e.objective[r]),
                float(e.kl[r]),
                float(e.nll[r]),
                e.learning_rate,
                nan,
            )
            for e in recorded
        ]
        out.append(
            Training(
                thetas[r],
                OptimizerState(optimizer_state.steps, own_arrays),
                histories[r] + epochs,
            )
        )
    return out

"""The minibatches of an epoch: their rows, their noise and their shares of the KL term."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..numeric.layout import Array
from .recipe import Recipe
from .stopping import row_slices

__all__ = ["Minibatch", "Minibatches"]


class Minibatch(NamedTuple):
    """The arguments of one step: noise, rows and their share of the KL term."""

    noise: Array  # (S, ...)  noise of S weight samples
    x: Array  # (..., B, d_in)  inputs of B rows
    y: Array  # (..., B, K)  targets of B rows
    share: float  # pi_i, the minibatch's share of the KL term
    sample_weight: Array | None  # (B,)  weights of the rows


class Minibatches:
    """The data cut into minibatches, whose rows and noise are drawn anew for every epoch.

    Parameters
    ----------
    estimator : GradientEstimator
        Its methods `noise_shape` and `fill` give the shape of the noise and draw it.
    data : Rows
        All rows; see `bbb_numpy.training.loop.train`.
    recipe : Recipe
        Settings of training; used are the batch size, the number of weight samples, the shares of
        the KL term, and whether rows are shuffled.
    dtype : dtype
        Dtype of theta, in which the noise is drawn.
    """

    def __init__(self, estimator: Any, data: Any, recipe: Recipe, dtype: Any) -> None:
        self.estimator = estimator
        self.data = data
        self.recipe = recipe
        n_rows = data.x.shape[-2]
        self.slices = row_slices(n_rows, recipe.batch_size)
        sizes = [rows.stop - rows.start for rows in self.slices]
        self.shares = recipe.shares(estimator, sizes)
        # only the last minibatch may be shorter, so there are at most two arrays of noise; every
        # step overwrites one of them
        self.noise = {
            size: np.empty(estimator.noise_shape(recipe.samples, size), dtype)
            for size in set(sizes)
        }
        self.total_weight = n_rows
        if data.sample_weight is not None:
            self.total_weight = data.sample_weight.sum(dtype=float)

    def draw(self, rng: Any) -> Iterator[Minibatch]:
        """Yield the minibatches of one epoch, in a new row order and with new noise from `rng`.

        The row order is drawn first, then the noise of each minibatch in turn, which overwrites
        that of the minibatch before. If rows have weights, a minibatch's share of the KL term is
        computed from the sum of its weights (D45).
        """
        data = self.data.shuffled(rng) if self.recipe.shuffle else self.data
        weights = data.sample_weight
        shares = self.shares
        batch_weights = None
        if weights is not None:
            sums = [float(weights[batch].sum(dtype=float)) for batch in self.slices]
            shares = self.recipe.shares(self.estimator, sums)  # shares by weight (D45)
        for batch, share in zip(self.slices, shares, strict=True):
            noise = self.noise[batch.stop - batch.start]
            self.estimator.fill(rng, noise)
            x, y = data.x[..., batch, :], data.y[..., batch, :]
            if weights is not None:
                batch_weights = weights[batch]
            yield Minibatch(noise, x, y, share, batch_weights)

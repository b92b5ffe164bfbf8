"""Draws of a sampler in place of a variational posterior (floor 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import Layout
from .model import Model
from .workspace import Workspace

__all__ = ["DrawnWeights"]

Array = NDArray[Any]


@dataclass(frozen=True)
class DrawnWeights:
    """Equally weighted draws (T, D) as a posterior, for everything in `bbb_numpy.predictive`.

    There `theta` is the matrix of draws, weights first, then the scales that the chain sampled
    with them; the "noise" is the choice of rows.

    Parameters
    ----------
    model : Model
    """

    model: Model

    @cached_property
    def layout(self) -> Layout:
        """The blocks of one draw, D numbers: those of `LogJoint.layout`."""
        return Layout(self.model.layout.blocks + self.model.learned())

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        work: Workspace | None = None,
    ) -> Array:
        """Return numbers (S,) in [0, 1), evenly spread, each of which chooses a draw."""
        return rng.permutation((rng.random() + np.arange(samples)) / samples)

    def noise_blocks(
        self, rng: np.random.Generator, samples: int, block: int, dtype: Any, work: Workspace
    ) -> Iterator[Array]:
        """Yield what `draw_weights` returns, at most `block` numbers at a time.

        All are drawn at once, so that as many samples as there are draws take each of them once.
        """
        eps = self.draw_weights(rng, samples, dtype, work)
        for begin in range(0, samples, block):
            yield eps[begin : begin + block]

    def _chosen(self, theta: Array, eps: Array) -> Array:
        if theta.ndim != 2 or theta.shape[1] != self.layout.size or not len(theta):
            raise ValueError(
                f"theta must hold draws (T, {self.layout.size}), one at least; got {theta.shape}"
            )
        return theta[(eps * len(theta)).astype(int)]

    def weights(self, theta: Array, eps: Array, work: Workspace | None = None) -> Array:
        """Return the weights (S, P) of the chosen draws."""
        return np.ascontiguousarray(self._chosen(theta, eps)[:, : self.model.layout.size])

    def params(self, theta: Array, eps: Array) -> dict[str, Array]:
        """Return the scales that were drawn with these weights, (S, ...) each."""
        learned = Layout(self.model.learned())
        return learned.views(self._chosen(theta, eps)[:, self.model.layout.size :])

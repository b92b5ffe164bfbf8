"""What estimators share that give each row of a minibatch its own weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.objectives import FreeEnergy, free_energy
from ..parts.posteriors import MeanField
from .closed_form import need_closed_form
from .family import Family

__all__ = ["Rowwise", "sum_outer"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Rowwise(Family):
    """An estimator that gives each row of a minibatch its own weights, layer by layer."""

    posterior: MeanField = MeanField()
    objective: FreeEnergy = free_energy

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        need_closed_form(name, self)
        if not isinstance(self.posterior, MeanField):
            raise ValueError(
                f"the posterior of {name} must have independent weights, MeanField; got "
                f"{type(self.posterior).__name__}. Use ClosedFormKL"
            )

    def pairs(self, flat: Array) -> list[tuple[Array, Array]]:
        """View `flat` (P,) as the pairs W (d_in, d_out), b (d_out,) of each layer."""
        views = list(self.model.network.layout.views(flat).values())
        return list(zip(views[0::2], views[1::2], strict=True))


def sum_outer(a: Array, g: Array, d_weight: Array, d_bias: Array) -> None:
    """Write a^T g and 1^T g, summed over samples and rows, for g (S, B, O)."""
    if a.ndim == 2:  # all samples share the inputs of the first layer
        g = g[0] if len(g) == 1 else np.add.reduce(g, axis=0)
    rows = g.reshape(-1, g.shape[-1])
    np.matmul(a.reshape(-1, a.shape[-1]).T, rows, out=d_weight)
    np.matmul(np.ones(len(rows), rows.dtype), rows, out=d_bias)

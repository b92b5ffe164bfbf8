"""What a sampler leaves: draws of several chains (floor 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import Layout
from .mcmc import Target

__all__ = ["STATISTICS", "Draws"]

Array = NDArray[Any]
STATISTICS = ("acceptance", "accepted", "divergent", "energy", "gradients", "depth")


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """T draws of S chains, after warm-up.

    Attributes
    ----------
    positions : ndarray (T, S, D)
    log_density : ndarray (T, S)
        In nats, unnormalised.
    stats : dict of str to ndarray (T, S)
        The fields of `mcmc.Info`. With thinning: "acceptance" and "energy" of the step that was
        kept, "gradients" and "divergent" summed over the steps between.
    kernel : MetropolisHastings, HMC, NUTS or one's own
        As adapted.
    target : callable
    layout : Layout
        Names the D numbers.
    warm_up : int
        Draws that were made before and are not kept.
    warm_up_divergent : int
        Divergences among them, which do no harm.
    finished : bool
        False after Ctrl-C.
    """

    positions: Array
    log_density: Array
    stats: dict[str, Array]
    kernel: Any
    target: Target
    layout: Layout
    warm_up: int
    warm_up_divergent: int
    finished: bool

    @property
    def flat(self) -> Array:
        """All draws of all chains, (T * S, D)."""
        return self.positions.reshape(-1, self.positions.shape[-1])

    def block(self, name: str) -> Array:
        """Return the draws of one block, (T, S, ...), e.g. ``'W0'`` or ``'log_noise'``.

        Raises
        ------
        KeyError
            If there is none of that name; the message lists them.
        """
        blocks = self.layout.views(self.positions)
        if name not in blocks:
            raise KeyError(f"no block {name!r}; there are {', '.join(blocks)}")
        return blocks[name]

    @property
    def divergences(self) -> int:
        """Number of draws on whose way, since the draw before, a transition diverged."""
        return int(np.count_nonzero(self.stats["divergent"]))

    @property
    def step_size(self) -> float:
        """Step size of the kernel as adapted; nan for one without."""
        part = getattr(self.kernel, "proposal", self.kernel)
        return float(getattr(part, "step_size", np.nan))

    def __repr__(self) -> str:
        """Return the summary: the arrays would fill the screen."""
        return f"<Draws: {self.summary()}>"

    def summary(self) -> str:
        """Return one line: draws, acceptance, divergences, gradient evaluations."""
        draws, chains = self.log_density.shape
        unfinished = "" if self.finished else " (interrupted)"
        if not draws:
            return f"no draws of {chains} chains{unfinished}"
        gradients = int(self.stats["gradients"].sum())
        return (
            f"{draws} draws of {chains} chains{unfinished}, "
            f"acceptance {self.stats['acceptance'].mean():.2f}, step size {self.step_size:.3g}, "
            f"{self.divergences} divergent, {gradients:,} gradient evaluations"
        )

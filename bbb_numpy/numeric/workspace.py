"""Buffers that one training step leaves for the next.

Every ``value_and_grad`` is a pure function of its arguments. A `Workspace` only saves it
from asking the operating system for the same memory at every step: results live in its
arrays until the next call with the same workspace. Without one, every call returns fresh
arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .elementary import SoftplusParts

__all__ = ["LogDensities", "Workspace"]

Array = NDArray[Any]


class LogDensities(NamedTuple):
    """The three terms of the free energy (K5) for each of S weight samples, in nats."""

    posterior: Array  # (S,)  log q(w|theta)
    prior: Array  # (S,)  log P(w)
    likelihood: Array  # (S,)  log P(D|w) of the rows of the minibatch


class Workspace:
    """Named arrays, made when first asked for and again when shape or dtype changes.

    Not thread-safe: one workspace for each thread.

    Attributes
    ----------
    log_densities : LogDensities
        What the last ``value_and_grad`` with this workspace computed on its way.
    """

    __slots__ = ("_arrays", "_views", "log_densities")

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._views: dict[str, tuple[Array, Callable[[Array], Any], Any]] = {}
        self.log_densities = LogDensities(*np.zeros((3, 0)))

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return the uninitialised array of that name, shape and dtype."""
        found = self._arrays.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self._arrays[name] = np.empty(shape, dtype)
        return found

    def views(self, name: str, flat: Array, make: Callable[[Array], Any]) -> Any:
        """Return ``make(flat)``, made again only for another array or another `make`."""
        found = self._views.get(name)
        if found is None or found[0] is not flat or found[1] != make:
            found = self._views[name] = (flat, make, make(flat))
        return found[2]

    def softplus_parts(self, like: Array, owner: str = "") -> SoftplusParts:
        """Return four arrays of the shape and dtype of `like` for `softplus_parts`.

        Another `owner` gets other arrays: those of the posterior live through a whole step.
        """
        return SoftplusParts(
            *(self.array(owner + name, like.shape, like.dtype) for name in SoftplusParts._fields)
        )

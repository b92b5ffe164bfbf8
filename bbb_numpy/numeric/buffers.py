"""Arrays that one computation leaves for its next turn, and who owns them.

A `Buffers` belongs to whoever made it, such as a training loop. Only the owner *rewinds* it, before
another turn; whoever gets it takes, and every `array` that is taken is another one. So what a
forward pass leaves for its backward pass stays as it was, and functions that take buffers are pure
functions of their other arguments. What they return lives until the owner rewinds. No function
writes to an array that it was given, unless that is its purpose (an ``out``, an ``add_...``).

Since every turn asks for the same arrays in the same order, it finds those of the turn before by
their place alone. A target that keeps buffers between calls has `ThreadLocalBuffers`.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .elementary import SoftplusParts

__all__ = ["Buffers", "ThreadLocalBuffers"]

Array = NDArray[Any]


class Buffers:
    """Memory of one owner, given out in the order in which it is asked for.

    Not thread-safe: one for each thread.
    """

    __slots__ = ("_arrays", "_given", "_kept", "_ones", "_seen")

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._given = 0  # how many of them since the last `rewind`
        self._kept: list[tuple[Any, Callable[[Array], Any], Any]] = []
        self._seen = 0  # the same for views
        self._ones = np.ones((1, 0))

    def rewind(self) -> Buffers:
        """Take all arrays back and return the buffers themselves, for the owner's next turn."""
        self._given = self._seen = 0
        return self

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an uninitialised array that nobody else has had since the last `rewind`.

        Memory of an earlier turn where shape and dtype are those of that turn, else fresh.
        """
        place = self._given
        self._given = place + 1
        if place == len(self._arrays):
            self._arrays.append(np.empty(shape, dtype))
        found = self._arrays[place]
        if found.shape != shape or found.dtype != dtype:
            found = self._arrays[place] = np.empty(shape, dtype)
        return found

    def like(self, array: Array) -> Array:
        """Return an array of the shape and dtype of `array`, as `array` does."""
        return self.array(array.shape, array.dtype)

    def softplus_parts(self, like: Array) -> SoftplusParts:
        """Return four arrays of the shape and dtype of `like`, for `softplus_parts` to fill."""
        four = self.array((4, *like.shape), like.dtype)
        parts: SoftplusParts = self.views(four, SoftplusParts._make)
        return parts

    def views(self, flat: Array, make: Callable[[Array], Any]) -> Any:
        """Return ``make(flat)``, from an earlier turn where both were the same objects then."""
        place = self._seen
        self._seen = place + 1
        if place == len(self._kept):
            self._kept.append((None, make, None))
        found = self._kept[place]
        if found[0] is not flat or found[1] != make:
            found = self._kept[place] = (flat, make, make(flat))
        return found[2]

    def ones(self, rows: int, dtype: Any) -> Array:
        """Return (1, rows) ones, read-only: the sum over rows as a matrix product."""
        if self._ones.shape[1] != rows or self._ones.dtype != dtype:
            self._ones = np.ones((1, rows), dtype)
            self._ones.flags.writeable = False
        return self._ones


class ThreadLocalBuffers(threading.local):
    """Buffers by size of what is computed, of each thread its own; a copy begins with none."""

    def __init__(self) -> None:
        self.kept: dict[int, defaultdict[int, Buffers]] = {}

    def __reduce__(self) -> tuple[type[ThreadLocalBuffers], tuple[()]]:
        return ThreadLocalBuffers, ()

    def for_size(self, size: int) -> defaultdict[int, Buffers]:
        """Return this thread's buffers for one size; of five sizes at most."""
        if size not in self.kept and len(self.kept) > 4:
            self.kept.clear()
        return self.kept.setdefault(size, defaultdict(Buffers))

"""Arrays that a repeated computation, such as a training step, reuses in every repetition.

A `Buffers` belongs to the code that made it, such as a training loop. Only the owner *rewinds* it,
before the next repetition. Functions to which it is passed take arrays from it, and no array is
returned twice between two rewinds. So arrays that a forward pass leaves for its backward pass stay
unchanged, and functions that take buffers are pure functions of their other arguments. Their
results are valid until the owner rewinds. No function writes to an array among its arguments,
unless that is its purpose (an ``out``, an ``add_...``).

Every repetition needs the same arrays in the same order, so that an array is looked up by its
position in that order. A target that keeps buffers between calls has `ThreadLocalBuffers`.
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
MAX_SIZES = 5  # largest number of problem sizes for which a thread keeps buffers


class Buffers:
    """Reusable arrays of one owner, returned in the order of the calls.

    Buffers are not thread-safe: each thread needs its own.
    """

    __slots__ = ("_arrays", "_n_arrays_taken", "_n_views_taken", "_ones", "_views")

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._n_arrays_taken = 0  # number of arrays returned since the last `rewind`
        self._views: list[tuple[Any, Callable[[Array], Any], Any]] = []
        self._n_views_taken = 0  # number of calls of `views` since the last `rewind`
        self._ones = np.ones((1, 0))

    def rewind(self) -> Buffers:
        """Make all arrays available again for the next repetition, and return these buffers."""
        self._n_arrays_taken = self._n_views_taken = 0
        return self

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an uninitialised array that has not been returned since the last `rewind`.

        The array of the same call in the last repetition is reused if its shape and dtype are
        these.

        Parameters
        ----------
        shape : tuple of int
        dtype : dtype
        """
        index = self._n_arrays_taken
        self._n_arrays_taken = index + 1
        if index == len(self._arrays):
            self._arrays.append(np.empty(shape, dtype))
        array = self._arrays[index]
        if array.shape != shape or array.dtype != dtype:
            array = self._arrays[index] = np.empty(shape, dtype)
        return array

    def like(self, array: Array) -> Array:
        """Return an uninitialised array of the shape and dtype of `array`."""
        return self.array(array.shape, array.dtype)

    def softplus_parts(self, like: Array) -> SoftplusParts:
        """Return four uninitialised arrays shaped as `like`, for `out` of `softplus_parts`."""
        four = self.array((4, *like.shape), like.dtype)
        parts: SoftplusParts = self.views(four, SoftplusParts._make)
        return parts

    def views(self, flat: Array, make: Callable[[Array], Any]) -> Any:
        """Return ``make(flat)``, or the last repetition's result if it had the same arguments.

        Parameters
        ----------
        flat : ndarray
            Array of which views are needed.
        make : callable
            Function that takes `flat` and returns views of it.
        """
        index = self._n_views_taken
        self._n_views_taken = index + 1
        if index == len(self._views):
            self._views.append((None, make, None))
        entry = self._views[index]
        if entry[0] is not flat or entry[1] != make:
            entry = self._views[index] = (flat, make, make(flat))
        return entry[2]

    def ones(self, rows: int, dtype: Any) -> Array:
        """Return read-only ones of shape (1, rows), whose matrix product with rows adds them up.

        Parameters
        ----------
        rows : int
            Number of ones.
        dtype : dtype
        """
        if self._ones.shape[1] != rows or self._ones.dtype != dtype:
            self._ones = np.ones((1, rows), dtype)
            self._ones.flags.writeable = False
        return self._ones


class ThreadLocalBuffers(threading.local):
    """Buffers of each thread, by the size of a problem; a copy or pickle of it is empty."""

    def __init__(self) -> None:
        self.by_size: dict[int, defaultdict[int, Buffers]] = {}

    def __reduce__(self) -> tuple[type[ThreadLocalBuffers], tuple[()]]:
        """Return the class without arguments: pickles and copies hold no buffers."""
        return ThreadLocalBuffers, ()

    def for_size(self, size: int) -> defaultdict[int, Buffers]:
        """Return this thread's `Buffers` for problems of `size`, by an index the caller chooses.

        They are kept for at most five sizes; with a sixth all others are dropped.
        """
        if size not in self.by_size and len(self.by_size) >= MAX_SIZES:
            self.by_size.clear()
        return self.by_size.setdefault(size, defaultdict(Buffers))

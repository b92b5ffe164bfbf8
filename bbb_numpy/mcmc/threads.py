"""A target whose chains are shared out among threads (floor 3).

NumPy lets go of the interpreter inside its loops, and chains do not depend on each other, so the
halves of a position matrix can be evaluated at the same time. The numbers do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .states import Target

__all__ = ["Threaded"]

Array = NDArray[Any]


class Threaded:
    """Evaluate the chains of a target on several threads.

    Parameters
    ----------
    make : callable
        Returns the target; called once for each thread, since a target may keep buffers.
    threads : int
        >= 1. With one, or with fewer chains than threads, the target is called as it is.
    """

    def __init__(self, make: Callable[[], Target], threads: int) -> None:
        self.targets = [make() for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __call__(self, position: Array) -> tuple[Array, Array]:
        """Return log densities (S,) and gradients (S, D) at positions (S, D)."""
        count = len(self.targets)
        if self.pool is None or len(position) < count:
            return self.targets[0](position)
        parts = np.array_split(position, count)
        others = [
            # the context carries np.errstate
            self.pool.submit(copy_context().run, target, part)
            for target, part in zip(self.targets[1:], parts[1:], strict=True)
        ]
        found = [self.targets[0](parts[0]), *(other.result() for other in others)]
        values, gradients = zip(*found, strict=True)
        return np.concatenate(values), np.concatenate(gradients)

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

"""Named blocks of one flat vector, as views."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Blocks", "Layout", "Params"]

Array = NDArray[Any]
Params = dict[str, Array]  # array of each block, by its name
Blocks = tuple[tuple[str, tuple[int, ...]], ...]  # name and shape of each block


@dataclass(frozen=True)
class Layout:
    """Names and shapes of the blocks of one flat vector, in their order in memory."""

    blocks: Blocks

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Slice of each block in the flat vector, by name."""
        slices: dict[str, slice] = {}
        start = 0
        for name, shape in self.blocks:
            slices[name] = slice(start, start + prod(shape))
            start += prod(shape)
        return slices

    @cached_property
    def size(self) -> int:
        """Length of the flat vector."""
        return sum([prod(shape) for _, shape in self.blocks])

    def views(self, flat: Array) -> Params:
        """Return every block of `flat` (..., size) as a view (..., *shape); nothing is copied."""
        if flat.shape[-1] != self.size:
            raise ValueError(
                f"flat must have {self.size} numbers in its last axis, for the blocks "
                f"{', '.join(name for name, _ in self.blocks)}; got {flat.shape[-1]}. "
                "Build the vector with the same network and likelihood"
            )
        lead = flat.shape[:-1]
        return {
            name: flat[..., self.slices[name]].reshape(lead + shape)
            for name, shape in self.blocks
        }

    def coordinate(self, index: int) -> str:
        """Return the block, and the index in it, of the flat `index`, such as ``'W1[0, 3]'``.

        IndexError is raised if `index` is negative or not less than `size`.
        """
        for name, shape in self.blocks:
            block = self.slices[name]
            if block.start <= index < block.stop:
                in_block = np.unravel_index(index - block.start, shape)
                return f"{name}[{', '.join(str(int(i)) for i in in_block)}]"
        raise IndexError(f"index {index} is outside this layout of {self.size} numbers")

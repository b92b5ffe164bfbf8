"""Draw the inputs at which a function is tried: of all sizes, near ties, at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..structures import map_leaves
from .numbers import Format, Point, is_float_leaf, like_leaf

__all__ = ["Drawer"]

Array = NDArray[Any]
# Added to all numbers, so that differences are small beside them
SHIFTS = (1e2, 1e4, 1e8)
ULPS = (0, 1, 2, 100)  # distances of near-equal numbers, in units of the last place
# Relative distances of numbers that are not quite as near
DISTANCES = (1e-2, 1e-4, 1e-8)
DENSE_EXPONENTS = (-3.0, 3.0)  # powers of ten between which half of all sizes are drawn
MAX_DRAWS_PER_INPUT = 50  # draws after which no input is looked for in the domain
GOLDEN_RATIO = (5**0.5 - 1) / 2  # its multiples modulo 1 leave no large gaps


class Drawer(NamedTuple):
    """Draws points of a function, given a first point and the limits of the format."""

    first: Point
    limits: Format
    rng: np.random.Generator
    fixed: frozenset[int]  # positions of data that keep their values
    domain: tuple[float, float]  # least and largest number of theta
    sizes: tuple[float, float]  # least and largest size of its numbers that are not 0
    turns: Iterator[int]  # counts the sizes that are drawn

    def points(self, n_inputs: int) -> Iterator[Point]:
        """Yield the first point and `n_inputs` - 1 others, fewer if the domain is hard to hit."""
        yield self.first
        n_points = 1
        for draw_index in range(n_inputs * MAX_DRAWS_PER_INPUT):
            if n_points == n_inputs:
                break
            with np.errstate(over="ignore"):
                theta = self._draw_theta(draw_index)
            if self.accepts(theta):
                n_points += 1
                yield Point(theta, self._draw_data(theta))

    def accepts(self, theta: Array) -> bool:
        """Return whether all numbers of theta are in the domain and of the sizes asked for."""
        sizes = np.abs(theta[theta != 0])
        is_inside = (self.domain[0] <= theta) & (theta <= self.domain[1])
        is_sized = (self.sizes[0] <= sizes) & (sizes <= self.sizes[1])
        return bool(is_inside.all() and is_sized.all())

    def _draw_theta(self, draw_index: int) -> Array:
        """Return numbers (D,) of the format, of the sort whose draw_index it is."""
        first = self.first.theta.astype(float)
        n = first.size
        noise = self.rng.standard_normal(n)
        sign = self.rng.choice([-1, 1])
        edges = self.rng.choice(self.limits.edges(), n) * self.rng.choice([-1, 1], n)
        many_sizes = np.array([self._size() for _ in range(n)])
        distances = (*np.multiply(ULPS, self.limits.eps), *DISTANCES)
        center = edges[0] if draw_index % 3 else first
        one_hot = np.arange(n) == self.rng.integers(n)
        sorts = (
            first * self._size() * sign,
            noise * self._size(),
            many_sizes,
            many_sizes * np.sign(noise),
            np.full(n, self._size() * sign),
            np.full(n, edges[0] * self.rng.choice([0, 1])),
            one_hot * self.rng.choice([self._size() * sign, edges[0]]),
            edges,
            center * (1 + self.rng.choice(distances, n) * np.sign(noise)),
            noise * self._size() ** 0.25 + self.rng.choice(SHIFTS) * sign,
            noise * self.rng.choice([0.0, -0.0, 1.0], n),
            self.rng.choice([edges[0], self._size() * sign], n),
        )
        return self._in_format(sorts[draw_index % len(sorts)])

    def _size(self) -> float:
        """Return a positive number: half of them near 1, half over the whole format."""
        low, high = np.log10([self.limits.tiny, self.limits.largest])
        if self.rng.random() < 0.5:
            low, high = DENSE_EXPONENTS
        fraction = next(self.turns) * GOLDEN_RATIO % 1
        return float(10 ** (low + (high - low) * fraction))

    def _in_format(self, numbers: Array) -> Array:
        """Return numbers in the format, none so large that a sum of all would overflow."""
        bound = self.limits.largest / (4 * self.first.theta.size)
        return np.clip(numbers, -bound, bound).astype(self.limits.dtype)

    def _draw_data(self, theta: Array) -> tuple[Any, ...]:
        """Return the given data or, half of the time, others of the same signs.

        Arrays of numbers between 0 and 1, such as masks and probabilities, keep their values. A
        vector of the size of `theta` may get numbers next to those of theta.
        """
        is_near = self.rng.random() < 0.5

        def draw(value: Any) -> Any:
            if not is_float_leaf(value):
                return value
            array = np.asarray(value, float)
            if ((array >= 0) & (array <= 1)).all() and array.ndim:
                return value
            drawn = array * 10 ** self.rng.uniform(*DENSE_EXPONENTS)
            if array.size == theta.size and array.ndim < 2 and is_near:
                steps = self.rng.choice(ULPS, array.shape) * self.limits.eps
                drawn = theta.astype(float).reshape(array.shape) * (1 + steps)
            return like_leaf(value, self._in_format(drawn))

        if self.rng.random() < 0.5:
            return self.first.data
        return tuple(
            value if i in self.fixed else map_leaves(value, draw)
            for i, value in enumerate(self.first.data)
        )

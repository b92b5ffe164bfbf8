"""Draw the inputs at which a function is tried: of all sizes, near ties, at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..structures import map_leaves
from .numbers import Point, is_float_leaf

__all__ = ["Drawer", "Format"]

Array = NDArray[Any]
Rng = np.random.Generator
SHIFTS = (
    1e2,
    1e4,
    1e8,
)  # added to all numbers, so that differences are small beside them
ULPS = (0, 1, 2, 100)  # distances of near-equal numbers, in units of the last place
DISTANCES = (
    1e-2,
    1e-4,
    1e-8,
)  # relative distances of numbers that are not quite as near
DENSE_EXPONENTS = (-3.0, 3.0)  # powers of ten between which half of all sizes are drawn
MAX_DRAWS_PER_INPUT = 50  # draws after which no input is looked for in the domain


class Format(NamedTuple):
    """The limits of a format of floats, as float64."""

    dtype: np.dtype[Any]
    eps: float  # distance of 1 and the next larger number
    tiny: float  # smallest normal number
    largest: float

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> Format:
        """Return the limits of the floats of `dtype`."""
        info = np.finfo(dtype)
        return cls(dtype, float(info.eps), float(info.tiny), float(info.max))

    def edges(self) -> Array:
        """Return the numbers at which formulas overflow, underflow or round to 1, (n,)."""
        log_largest = np.log(self.largest)
        log_tiny = -np.log(self.tiny)
        log_eps = -np.log(self.eps)
        sizes = [
            *(self.tiny, np.sqrt(self.tiny), self.eps, np.sqrt(self.eps), 1e-3),
            *(1 - self.eps, 1.0, 1 + self.eps, 0.5, 2.0),
            *(0.5 * log_eps, 0.97 * log_eps, 1.03 * log_eps, 2 * log_eps),
            *(
                0.99 * log_tiny,
                0.999 * log_largest,
                1.001 * log_largest,
                1.1 * log_tiny,
            ),
            *(2 * log_largest, 0.5 / self.eps, np.sqrt(self.largest)),
        ]
        return np.array(sizes)

    def to_text(self, values: Any) -> str:
        """Return values as text that can be pasted, such as ``np.array([0.5], np.float32)``."""
        if isinstance(values, dict):
            items = [f"{key!r}: {self.to_text(x)}" for key, x in values.items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(values, tuple | list):
            return f"({', '.join(map(self.to_text, values))},)"
        if not isinstance(values, np.ndarray):
            return repr(values)
        numbers = np.array2string(
            values,
            separator=", ",
            threshold=2**31,
            max_line_width=2**31,
            floatmode="unique",
        )
        numbers = numbers.replace("\n", "").replace(".,", ".0,").replace(".]", ".0]")
        suffix = (
            ""
            if values.dtype.kind != "f" or values.dtype == float
            else f", np.{values.dtype}"
        )
        return f"np.array({numbers}{suffix})"


class Drawer(NamedTuple):
    """Draws points of a function, given a first point and the limits of the format."""

    point: Point
    limits: Format
    rng: Rng
    fixed: frozenset[int]  # positions of data that keep their values
    domain: tuple[float, float]  # least and largest number of theta
    sizes: tuple[
        float, float
    ]  # least and largest size of the numbers of theta that are not 0

    def points(self, n_inputs: int) -> Iterator[Point]:
        """Yield the first point and `n_inputs` - 1 others, fewer if the domain is hard to hit."""
        yield self.point
        draws = [self._scaled, self._random, self._equal, self._one_hot, self._edges]
        draws += [
            self._near,
            self._positive,
            self._shifted,
            self._with_zeros,
            self._ties,
        ]
        n_points = 1
        for i in range(n_inputs * MAX_DRAWS_PER_INPUT):
            if n_points >= n_inputs:
                return
            theta = self._clip(draws[i % len(draws)]())
            sizes = np.abs(theta[theta != 0])
            is_inside = ((self.domain[0] <= theta) & (theta <= self.domain[1])).all()
            if (
                is_inside
                and ((self.sizes[0] <= sizes) & (sizes <= self.sizes[1])).all()
            ):
                n_points += 1
                yield Point(theta, self._draw_data(theta, i // len(draws)))

    def _clip(self, numbers: Array) -> Array:
        """Return numbers in the format, none larger than a sum of four times as many can be."""
        bound = self.limits.largest / (4 * max(self.point.theta.size, 1))
        return np.clip(numbers, -bound, bound).astype(self.limits.dtype)

    def _size(self) -> float:
        """Return a random positive number: half of them near 1, half over the whole format."""
        exponents = np.log10([self.limits.tiny, self.limits.largest])
        low, high = DENSE_EXPONENTS if self.rng.random() < 0.5 else exponents
        return float(10 ** self.rng.uniform(low, high))

    def _sign(self) -> int:
        """Return 1 or -1."""
        return int(self.rng.choice([-1, 1]))

    def _noise(self) -> Array:
        """Return standard normal numbers of the shape of theta."""
        return self.rng.standard_normal(self.point.theta.size)

    def _scaled(self) -> Array:
        """Return the first theta times a random number."""
        return self.point.theta.astype(float) * self._size() * self._sign()

    def _random(self) -> Array:
        """Return random numbers of one size."""
        return self._noise() * self._size()

    def _positive(self) -> Array:
        """Return random numbers of different sizes, half of the time all of them positive."""
        signs = np.sign(self._noise()) if self.rng.random() < 0.5 else 1.0
        return np.array([self._size() for _ in self.point.theta]) * signs

    def _equal(self) -> Array:
        """Return equal numbers."""
        return np.full(self.point.theta.size, self._size() * self._sign())

    def _near(self) -> Array:
        """Return numbers that are next to each other, or near the first theta or near 1."""
        distances = (*np.multiply(ULPS, self.limits.eps), *DISTANCES)
        center = self.rng.choice([0, 1]) * self.point.theta.astype(float)
        if not center.any():
            center = np.full(center.size, self._edge() * self._sign())
        steps = self.rng.choice(distances, center.size) * np.sign(self._noise())
        return center * (1 + steps)

    def _shifted(self) -> Array:
        """Return random numbers plus a large one."""
        return (
            self._noise() * self._size() ** 0.25
            + self.rng.choice(SHIFTS) * self._sign()
        )

    def _edge(self) -> float:
        """Return one of the edges of the format."""
        return float(self.rng.choice(self.limits.edges()))

    def _edges(self) -> Array:
        """Return edges of the format, with random signs."""
        return np.array([self._edge() * self._sign() for _ in self.point.theta])

    def _one_hot(self) -> Array:
        """Return zeros and one number, which may be large."""
        numbers = np.zeros(self.point.theta.size)
        size = self._edge() if self.rng.random() < 0.5 else self._size()
        numbers[self.rng.integers(numbers.size)] = size * self._sign()
        return numbers

    def _with_zeros(self) -> Array:
        """Return random numbers of which about half are 0 or -0."""
        return self._noise() * self.rng.choice(
            [0.0, -0.0, 1.0, 1.0], self.point.theta.size
        )

    def _ties(self) -> Array:
        """Return two different numbers, each several times."""
        return self.rng.choice(
            [self._edge(), self._size() * self._sign()], self.point.theta.size
        )

    def _draw_data(self, theta: Array, turn: int) -> tuple[Any, ...]:
        """Return the data: at even turns the given ones, at odd turns others of the same signs.

        Arrays of numbers between 0 and 1, such as masks and probabilities, keep their values. An
        array of the shape of `theta` may get numbers next to those of theta.
        """
        if turn % 2 == 0:
            return self.point.data

        def draw(value: Any) -> Any:
            if not is_float_leaf(value):
                return value
            array = np.asarray(value, float)
            if ((array >= 0) & (array <= 1)).all() and array.ndim:
                return value
            if array.size == theta.size and turn % 4 == 1:
                steps = self.rng.choice(ULPS, theta.size) * self.limits.eps
                drawn = (theta.astype(float) * (1 + steps)).reshape(array.shape)
            else:
                drawn = array * self._size()
            return like_leaf(value, self._clip(drawn))

        return tuple(
            value if i in self.fixed else map_leaves(value, draw)
            for i, value in enumerate(self.point.data)
        )


def like_leaf(value: Any, drawn: Array) -> Any:
    """Return `drawn` as a Python float if `value` is one, else as an array."""
    return float(drawn) if isinstance(value, float) else drawn

"""Numbers a + b e with e^2 = 0, where a and b are numbers of another field: a second derivative.

A function of x + u e has the value f(x) + f'(x) u e. If the numbers have derivatives along another
direction d, as exact arrays do, those of the second part are the second derivatives u f'' d.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .finite import Field

__all__ = ["DualField"]

Array = NDArray[Any]


class DualField(Field):
    """The numbers a + b e over another field; the channels of a stand before those of b.

    What happens in a run is recorded in the other field.

    Parameters
    ----------
    base : Field
        The field of a and b, with C channels.
    """

    def __init__(self, base: Field) -> None:
        self.base = base
        self.n_channels = 2 * base.n_channels
        self.dtype = base.dtype
        self.is_decimal = base.is_decimal
        self.one = self.join(base.one)
        self.exact_constants = {}
        self.watch = None

    def join(self, a: Array, b: Any = None) -> Array:
        """Return the numbers a + b e, (..., 2 C).

        Parameters
        ----------
        a : array, shape (..., C)
            The first parts.
        b : array, shape (..., C), optional
            The second parts. By default 0: the numbers are constants.
        """
        if b is None:
            b = np.broadcast_to(0 * self.base.one, a.shape)
        return np.concatenate([a, b], axis=-1)

    def parts(self, a: Array) -> tuple[Array, Array]:
        """Return both parts, each (..., C), of the numbers (..., 2 C)."""
        return a[..., : self.base.n_channels], a[..., self.base.n_channels :]

    def _by_part(self, name: str, *arrays: Array, **options: Any) -> Array:
        """Return the results of a linear operation of the other field, on each part."""
        operation = getattr(self.base, name)
        pairs = zip(*map(self.parts, arrays), strict=True)
        return self.join(*(operation(*parts, **options) for parts in pairs))

    def add(self, a: Array, b: Array) -> Array:
        """Return the sum a + b of numbers (..., 2 C)."""
        return self._by_part("add", a, b)

    def sub(self, a: Array, b: Array) -> Array:
        """Return the difference a - b of numbers (..., 2 C)."""
        return self._by_part("sub", a, b)

    def neg(self, a: Array) -> Array:
        """Return the negative numbers -a, (..., 2 C)."""
        return self._by_part("neg", a)

    def sum(self, a: Array, axis: Any) -> Array:
        """Return the sums of numbers (..., 2 C) over axes other than the last."""
        return self._by_part("sum", a, axis=axis)

    def cumsum(self, a: Array, axis: int) -> Array:
        """Return the cumulative sums of numbers (..., 2 C) along an axis other than the last."""
        return self._by_part("cumsum", a, axis=axis)

    def _bilinear(self, name: str, a: Array, b: Array) -> Array:
        """Return the product of a and b by `name`, an operation of the other field."""
        multiply = getattr(self.base, name)
        x, y = self.parts(a)
        u, v = self.parts(b)
        slope = self.base.add(multiply(x, v), multiply(y, u))
        return self.join(multiply(x, u), slope)

    def mul(self, a: Array, b: Array) -> Array:
        """Return the products of numbers (..., 2 C)."""
        return self._bilinear("mul", a, b)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product of (..., n, k, 2 C) and (..., k, m, 2 C)."""
        return self._bilinear("matmul", a, b)

    def extend(self, value: Array, slope: Array, a: Array) -> Array:
        """Return f(x) + f'(x) y e for numbers a = x + y e.

        Parameters
        ----------
        value, slope : array, shape (..., C)
            The numbers f(x) and f'(x) of the other field.
        a : array, shape (..., 2 C)
            The arguments.
        """
        return self.join(value, self.base.mul(slope, self.parts(a)[1]))

    def inv(self, a: Array) -> Array:
        """Return 1 / a, whose second part is -y / x^2."""
        inverse = self.base.inv(self.parts(a)[0])
        slope = self.base.neg(self.base.mul(inverse, inverse))
        return self.extend(inverse, slope, a)

    def exp(self, a: Array, log_terms: Array | None = None) -> Array:
        """Return e^a, whose second part is y e^x; there are no `log_terms`."""
        e = self.base.exp(self.parts(a)[0])
        return self.extend(e, e, a)

    def log(self, u: Array) -> tuple[Array, None]:
        """Return log u, whose second part is y / x, and None in place of log terms."""
        x, _ = self.parts(u)
        t, _ = self.base.log(x)
        return self.extend(t, self.base.inv(x), u), None

    def sqrt(self, u: Array) -> Array:
        """Return the square root of u, whose second part is y / (2 sqrt x)."""
        root = self.base.sqrt(self.parts(u)[0])
        slope = self.base.inv(self.base.add(root, root))
        return self.extend(root, slope, u)

    def cos_and_sin(self, a: Array) -> tuple[Array, Array]:
        """Return cos a and sin a, whose second parts are -y sin x and y cos x."""
        cos, sin = self.base.cos_and_sin(self.parts(a)[0])
        return self.extend(cos, self.base.neg(sin), a), self.extend(sin, cos, a)

    def random_function(self, name: str, a: Array) -> Array:
        """Return constants that a random function of the other field returns for first parts."""
        return self.join(self.base.random_function(name, self.parts(a)[0]))

    def constant(self, a: Array) -> Array:
        """Return the numbers (..., 2 C) without their second parts."""
        return self.join(self.base.constant(self.parts(a)[0]))

    def from_floats(self, floats: Array) -> Array:
        """Return floats as constants (..., 2 C)."""
        return self.join(self.base.from_floats(floats))

    def from_integers(self, integers: Any) -> Array:
        """Return integers as constants (..., 2 C)."""
        return self.join(self.base.from_integers(integers))

    def from_fraction(self, x: Fraction) -> Array:
        """Return a fraction as a constant (2 C,)."""
        return self.join(self.base.from_fraction(x))

    def record_zeros(self, a: Array, floats: Array) -> None:
        """Record where the first parts of denominators or of arguments of logarithms are 0.

        Parameters
        ----------
        a, floats : array
            As in `Field.record_zeros`.
        """
        self.base.record_zeros(self.parts(a)[0], floats)

    def record_square(self, square: Array, root: Array, floats: Array) -> None:
        """Record the roots of squares, by their first parts.

        Parameters
        ----------
        square, root, floats : array
            As in `Field.record_square`.
        """
        self.base.record_square(self.parts(square)[0], self.parts(root)[0], floats)


def _recorded_in_base(name: str) -> Any:
    """Return a property that reads and writes the attribute `name` of the other field."""
    return property(
        lambda field: getattr(field.base, name),
        lambda field, value: setattr(field.base, name, value),
    )


for _name in (
    "at_pole",
    "divided_by_zero",
    "has_infinity",
    "largest_mask",
    "n_rounded",
    "path",
):
    setattr(DualField, _name, _recorded_in_base(_name))

"""Run a function on floats of a format, and on decimals that decide its comparisons themselves."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import MIN_ROUNDED_BITS, Digits, context
from ..structures import StructureError, Tree, as_tuple, copy_leaves, map_leaves
from ..trace.arrays import Exact, dual_residues, lift
from ..trace.copies import Copies
from ..verdict.runs import TraceError

__all__ = [
    "Format",
    "Point",
    "Program",
    "RealNumbers",
    "is_float_leaf",
    "like_leaf",
    "to_floats",
]

Array = NDArray[Any]
N_TINY = 2  # smallest normal numbers that a result may be away, as smaller ones have few digits
# Where the sum of a few results overflows, such as that of a mean, a result may
OVERFLOW_FACTOR = 16
# Changes of constants relative to those of arguments: unequal, so that none cancel
CONSTANT_STEPS = (0.3, 0.9)


class Format(NamedTuple):
    """The limits of a format of floats, as float64."""

    dtype: np.dtype[Any]
    eps: float  # distance of 1 and the next larger number
    tiny: float  # smallest normal number
    largest: float

    @classmethod
    def of(cls, dtype: Any) -> Format:
        """Return the limits of the floats of `dtype`."""
        info = np.finfo(dtype)
        return cls(info.dtype, float(info.eps), float(info.tiny), float(info.max))

    def edges(self) -> Array:
        """Return the numbers at which formulas overflow, underflow or round to 1, (n,)."""
        ordinary = (1e-3, 0.5, 1 - self.eps, 1.0, 1 + self.eps, 2.0)
        squares = np.sqrt([self.tiny, self.eps, self.largest])
        rounds_to_1 = np.multiply((0.5, 0.97, 1.03, 2.0), -np.log(self.eps))
        underflows = np.multiply((0.99, 1.1), -np.log(self.tiny))
        overflows = np.multiply((0.999, 1.001, 2.0), np.log(self.largest))
        extremes = (self.tiny, self.eps, 0.5 / self.eps)
        return np.hstack(
            [ordinary, squares, rounds_to_1, underflows, overflows, extremes]
        )

    def is_far(self, results: Array, exact: Array, allowed: Any) -> Array:
        """Return whether each result is farther from the exact one than allowed.

        A result may overflow if the exact one nearly does. It may be `N_TINY` smallest normal
        numbers away. No result is near nan.

        Parameters
        ----------
        results, exact : ndarray
            The results, and the exact ones.
        allowed : ndarray or float
            The errors that are allowed.
        """
        with np.errstate(all="ignore"):
            is_close = abs(results - exact) <= allowed + N_TINY * self.tiny
            overflows = ~(OVERFLOW_FACTOR * abs(exact) + allowed < self.largest)
        return ~is_close & ~(overflows & ~np.isfinite(results))

    def digits_lost(self, results: Array, exact: Array, unit: Array) -> Array:
        """Return the decimal digits that each result has lost, all if it is not finite.

        Parameters
        ----------
        results, exact : ndarray
            The results, and the exact ones.
        unit : ndarray
            The errors at which no digits are lost.
        """
        n_digits = -np.log10(self.eps)
        with np.errstate(all="ignore"):
            digits = np.log10(abs(results - exact) / (unit + self.tiny))
        return np.clip(np.where(np.isfinite(results), digits, n_digits), 0.0, n_digits)


class RealNumbers(Digits):
    """Decimals of a run that stands for the one on real numbers: they decide comparisons.

    Parameters
    ----------
    limits : Format, optional
        If given, arguments and constants are changed by about one unit in the last place of this
        format, with random signs: to numbers that rounding cannot tell from the given ones.
    seed : int
        The seed of the signs. Seeds 2 k and 2 k + 1 give opposite ones.
    by_norm : bool
        Whether arrays are changed relative to their largest number, instead of each number.
    """

    decimals_decide = True

    def __init__(
        self, limits: Format | None = None, seed: int = 0, by_norm: bool = False
    ) -> None:
        super().__init__(seed)
        self.limits = limits
        self.by_norm = by_norm
        self.n_numbers = 0  # number of arguments that have been changed
        # times an irrational number, so that multiples of a period are no periods apart
        self.eps = Decimal(limits.eps if limits else 0) / Decimal(2).sqrt()

    def variable(self, floats: Array) -> Array:
        """Return floats as decimals (..., 1), or the decimals beside them if there are limits."""
        numbers = super().variable(floats)
        if not self.limits or not floats.size:
            return numbers
        sizes: Any = abs(numbers)
        if self.by_norm:
            sizes = np.full_like(sizes, sizes.max())
        positions = self.n_numbers + np.arange(floats.size)
        rng = np.random.default_rng([self.seed // 2, self.n_numbers])
        self.n_numbers += floats.size
        codes = rng.integers(2, size=floats.size)
        # any two of four neighbours change alike by one of the first and unlike by another
        first_codes = (positions, positions >> 1, positions ^ positions >> 1)
        if self.seed // 2 < len(first_codes):
            codes = first_codes[self.seed // 2]
        signs = (1 - 2 * (codes & 1)) * (1 - 2 * (self.seed & 1))
        changes = sizes * self.eps + Decimal(self.limits.tiny)
        return numbers + changes * signs.reshape(sizes.shape)

    def _from_float(self, x: float) -> Array:
        """Return the number whose rounding gives x (1,) or, if there are limits, one beside it.

        Floats with few bits, such as 2 and 0.5, are exact.
        """
        number = super()._from_float(x)
        if (
            not np.isfinite(x)
            or x.as_integer_ratio()[0].bit_length() < MIN_ROUNDED_BITS
        ):
            return number
        # by seeds 0 to 3 a constant and an argument change in each combination of directions
        flip = 1 - self.seed // 2 % 2 * 2
        rng = random.Random(abs(x) + self.seed // 4)
        step = Decimal(flip * rng.choice((-1, 1)) * rng.uniform(*CONSTANT_STEPS))
        return number * (1 + step * self.eps)

    @staticmethod
    def infinities(a: Array) -> Array:
        """Return a float array that is 0 where the decimals `a` are finite, else inf or nan."""
        flat = [0.0 if x.is_finite() else float(x) for x in a.ravel()]
        return np.array(flat).reshape(a.shape)


def is_float_leaf(value: Any) -> bool:
    """Return whether `value` is a float or an array of floats, which has exact numbers."""
    is_array = isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f"
    return is_array or isinstance(value, float)


def like_leaf(value: Any, numbers: Array) -> Any:
    """Return `numbers` as a Python float if `value` is one, else as they are."""
    if isinstance(value, float):
        return float(numbers)
    return numbers


def to_floats(decimals: Array) -> Array:
    """Return decimals rounded to float64, nan for those that are infinite or nan."""
    flat = [float(x) if x.is_finite() else np.nan for x in decimals.ravel()]
    return np.array(flat).reshape(decimals.shape)


class Point(NamedTuple):
    """Arguments of a function: flat theta in floats of the format, and the data after it."""

    theta: Array  # (D,)
    data: tuple[Any, ...]


class Program(NamedTuple):
    """A function that is run in floats of one format, and in decimals."""

    function: Callable[..., Any]
    tree: Tree  # structure of theta
    fixed: frozenset[int]  # positions of data that are constants
    copies: Copies  # copies of the function and of what it calls

    def run_floats(self, point: Point, trace: Any = None) -> Any:
        """Return what a copy of the function returns for floats, without warnings of NumPy.

        Parameters
        ----------
        point : Point
            The input.
        trace : callable, optional
            A function for `sys.settrace`. By default there is none.
        """
        arguments = copy_leaves((self.tree.unflatten(point.theta), *point.data))
        no_field: Any = None
        with np.errstate(all="ignore"):
            return self.copies.call(no_field, self.function, *arguments, trace=trace)

    def run_decimals(
        self, point: Point, field: RealNumbers, n_digits: int, trace: Any = None
    ) -> Any:
        """Return what the function returns for the decimals of `field`.

        Parameters
        ----------
        point : Point
            The floats that the decimals equal, or that they lie beside.
        field : RealNumbers
            Makes the decimals.
        n_digits : int
            Number of their digits.
        trace : callable, optional
            A function for `sys.settrace`. By default there is none.

        Raises
        ------
        TraceError
            If the function raises an error, such as for a step that has no exact form.
        """

        def to_exact(value: Any) -> Any:
            if not is_float_leaf(value):
                return value
            floats = np.asarray(value)
            residues = dual_residues(field, field.variable(floats.astype(float)))
            return Exact(field, residues, floats)

        with localcontext(context(n_digits)), np.errstate(all="ignore"):
            theta = self.tree.unflatten(to_exact(point.theta))
            data = [
                value if i in self.fixed else map_leaves(value, to_exact)
                for i, value in enumerate(point.data)
            ]
            try:
                return self.copies.call(field, self.function, theta, *data, trace=trace)
            except Exception as error:
                raise TraceError(error) from error

    def decimal_results(self, point: Point, field: RealNumbers, n_digits: int) -> Array:
        """Return the results for the decimals of `field`, rounded to float64; nan if undefined.

        Parameters
        ----------
        point : Point
            The floats that the decimals equal, or that they lie beside.
        field : RealNumbers
            Makes the decimals.
        n_digits : int
            Number of their digits.
        """
        parts = self.parts(self.run_decimals(point, field, n_digits))
        return np.hstack([to_floats(lift(x, field).primal.ravel()) for x in parts])

    def parts(self, returned: Any) -> list[Any]:
        """Return the value and, if there is one, the flat gradient that the function returns.

        Raises
        ------
        StructureError
            If a gradient has another structure than theta, or if nothing is returned.
        """
        value, *gradients = as_tuple(returned)
        if value is None:
            raise StructureError(
                "the function must return a value, or a value and its gradient; got None: "
                "return the value"
            )
        return [value, *(self.tree.flatten(x, "the gradient") for x in gradients[:1])]

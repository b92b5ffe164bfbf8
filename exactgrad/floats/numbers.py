"""Run a function on floats of a format, and on decimals that decide its comparisons themselves."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import MIN_ROUNDED_BITS, Digits, context
from ..structures import StructureError, Tree, copy_leaves, map_leaves
from ..trace.arrays import Exact, dual_residues, lift
from ..trace.copies import Copies
from ..verdict.runs import TraceError

__all__ = ["Point", "Program", "RealNumbers", "is_float_leaf"]

Array = NDArray[Any]
Trace = Callable[..., Any]
MAX_EXPONENT = 380  # powers of ten beyond which no float of any format reaches


class RealNumbers(Digits):
    """Decimals of a run that stands for the one on real numbers: they decide comparisons.

    Parameters
    ----------
    eps : float
        If not 0, arguments and constants are changed by this relative amount, with random signs:
        the number beside them that rounding cannot tell from them.
    tiny : float
        The smallest normal number of the format, by which arguments are changed in addition.
    signs_seed : int
        The seed of the signs. Seeds 2 k and 2 k + 1 give opposite ones.
    by_norm : bool
        Whether arrays are changed relative to their largest number, instead of each number.
    """

    decimals_decide = True

    def __init__(
        self,
        eps: float = 0.0,
        tiny: float = 0.0,
        signs_seed: int = 0,
        by_norm: bool = False,
    ) -> None:
        super().__init__(0)
        self.eps = Decimal(eps)
        self.tiny = Decimal(tiny)
        self.signs_seed = signs_seed
        self.by_norm = by_norm
        self.flip = 1 - 2 * (signs_seed % 2)
        self.signs = np.random.default_rng(signs_seed // 2)
        # largest power of ten, up to `MAX_EXPONENT`, among exponentials, for the digits needed
        self.largest_exponent = 0

    def variable(self, floats: Array) -> Array:
        """Return floats as decimals (..., 1), or the decimals beside them if `eps` is not 0."""
        numbers = super().variable(floats)
        if not self.eps or not floats.size:
            return numbers
        sizes: Any = abs(numbers)
        if self.by_norm:
            sizes = np.full_like(sizes, sizes.max())
        signs = self.flip * self.signs.choice([-1, 1], numbers.shape)
        return numbers + (sizes * self.eps + self.tiny) * signs

    def _from_float(self, x: float) -> Array:
        """Return the number whose rounding gives x (1,) or, if `eps` is not 0, one beside it.

        Floats with few bits, such as 2 and 0.5, are exact.
        """
        number = super()._from_float(x)
        is_rounded = np.isfinite(x) and (
            x.as_integer_ratio()[0].bit_length() >= MIN_ROUNDED_BITS
        )
        if not self.eps or not is_rounded:
            return number
        sign = self.flip * random.Random(abs(x) + self.signs_seed // 2).choice((-1, 1))
        return number * (1 + sign * self.eps)

    def exp(self, a: Array, log_terms: Array | None = None) -> Array:
        """Return e^a to the digits of the decimal context, and record its powers of ten."""
        powers = super().exp(a)
        exponents = [abs(power.adjusted()) for power in powers.ravel()]
        largest = min(max(exponents, default=0), MAX_EXPONENT)
        self.largest_exponent = max(self.largest_exponent, largest)
        return powers

    @staticmethod
    def infinities(a: Array) -> Array:
        """Return a float array that is 0 where the decimals `a` are finite, else inf or nan."""
        flat = [0.0 if x.is_finite() else float(x) for x in a.ravel()]
        return np.array(flat).reshape(a.shape)


def is_float_leaf(value: Any) -> bool:
    """Return whether `value` is a float or an array of floats, which has exact numbers."""
    is_array = isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f"
    return is_array or isinstance(value, float)


class Point(NamedTuple):
    """Arguments of a function: flat theta in floats of the format, and the data after it."""

    theta: Array  # (D,)
    data: tuple[Any, ...]


class Program(NamedTuple):
    """A function that is run in floats of one format, and in decimals."""

    function: Callable[..., Any]
    tree: Tree  # structure of theta
    dtype: np.dtype[Any]  # the format
    fixed: frozenset[int]  # positions of data that are constants
    copies: Copies  # copies of the function and of what it calls
    n_derivatives: int = 0  # number of derivatives that it returns

    def run_floats(self, point: Point) -> Any:
        """Return what the function returns for floats; warnings of NumPy are silenced."""
        arguments = copy_leaves((self.tree.unflatten(point.theta), *point.data))
        with np.errstate(all="ignore"):
            return self.function(*arguments)

    def trace_floats(self, point: Point, trace: Trace) -> Any:
        """Return what a copy of the function returns for floats, traced by `trace`."""
        arguments = copy_leaves((self.tree.unflatten(point.theta), *point.data))
        no_field: Any = None
        with np.errstate(all="ignore"):
            return self.copies.call(no_field, self.function, *arguments, trace=trace)

    def run_decimals(
        self,
        point: Point,
        field: RealNumbers,
        n_digits: int,
        trace: Trace | None = None,
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
        returned = self.run_decimals(point, field, n_digits)
        numbers = [lift(x, field).primal.ravel() for x in self.parts(returned)]
        flat = [float(x) if x.is_finite() else np.nan for x in np.concatenate(numbers)]
        return np.array(flat)

    def parts(self, returned: Any) -> list[Any]:
        """Return the value and, if there is one, the flat gradient that the function returns.

        Raises
        ------
        StructureError
            If a gradient has another structure than theta, or if nothing is returned.
        """
        if not isinstance(returned, tuple):
            returned = (returned,)
        if not returned or returned[0] is None:
            raise StructureError(
                "the function must return a value, or a value and its gradient; got "
                f"{returned!r}: return the value"
            )
        if len(returned) == 1:
            return [returned[0]]
        return [returned[0], self.tree.flatten(returned[1], "the gradient")]

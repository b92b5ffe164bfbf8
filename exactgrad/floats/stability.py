"""Find the inputs for which a function loses digits in floats, and the line that loses them.

A function is run in floats of a format and, at the same rounded inputs, on decimals of sixty digits
and more. What it loses is measured beside what the rounding of its input costs: the largest change
of the exact result when all numbers of the input are changed by one unit in the last place.

>>> import numpy as np
>>> print(stability(lambda x: np.logaddexp(0.0, x), np.array([0.5])))
stable: float64, 200 inputs, sizes from 2.3e-308 to 4.4e+307
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_callable, check_fixed, positive_number, whole_number
from ..structures import flatten_theta, map_leaves
from ..trace.copies import Copies, in_own_context
from ..verdict.data import argument_names
from ..verdict.runs import TraceError
from .failures import Failure, find_failures
from .inputs import Drawer
from .judgement import N_DIGITS, Judge, Loss
from .numbers import (
    Format,
    Point,
    Program,
    RealNumbers,
    is_float_leaf,
    like_leaf,
)

__all__ = ["Failure", "Stability", "stability"]

Array = NDArray[Any]
# Digits that may be lost by default beyond those that the rounding of the input costs
MAX_LOSS = {"float64": 2.0, "float32": 2.0, "float16": 1.0}
NO_VALUE = "the function has no value in exact numbers at any input that was tried"
EVERYWHERE = (-np.inf, np.inf)
ALL_SIZES = (0.0, np.inf)
IS_NOT_REPEATABLE = (
    "the function returns different numbers for the same input; draw random numbers outside "
    "of it, and pass them"
)


@dataclass(frozen=True)
class Stability:
    """Result of `stability`; it is true if no digits were lost: ``assert stability(f, theta)``.

    Attributes
    ----------
    dtype : str
        The format of the floats.
    n_inputs : int
        Number of inputs tried.
    n_undefined : int
        Number of these at which the function has no value in exact numbers.
    n_failed : int
        Number of these at which digits were lost.
    failures : tuple of Failure
        One failure of each type, made small, the one that loses most digits first.
    stable_range : tuple of float, or None
        Smallest and largest size of theta, its largest absolute number, around the size of the
        given one, between which no digits were lost. None if they were lost at the given theta.
    reason : str
        Why nothing could be judged; empty otherwise.
    seconds : float
        Processor time.
    """

    dtype: str
    n_inputs: int
    n_undefined: int = 0
    n_failed: int = 0
    failures: tuple[Failure, ...] = ()
    stable_range: tuple[float, float] | None = None
    reason: str = ""
    seconds: float = field(default=0.0, compare=False)

    def __bool__(self) -> bool:
        return not self.reason and not self.failures

    @property
    def worst(self) -> Failure | None:
        """The failure that loses most digits; None if there is none."""
        return next(iter(self.failures), None)

    def __str__(self) -> str:
        if self.reason:
            return f"not judged: {self.reason}"
        head = f"stable: {self.dtype}, {self.n_inputs} inputs"
        if self.failures:
            head = f"loses digits: {self.dtype}, at {self.n_failed} of {self.n_inputs} inputs"
        if self.n_undefined:
            head += f", {self.n_undefined} without a value"
        if self.stable_range:
            low, high = self.stable_range
            verb = ", stable for sizes" if self.failures else ", sizes"
            head += f"{verb} from {low:.2g} to {high:.2g}"
        return "\n  ".join([head, *"\n".join(map(str, self.failures)).splitlines()])


@in_own_context
@np.errstate(all="ignore")
def stability(
    function: Callable[..., Any],
    theta: Any,
    *data: Any,
    dtype: Any = "float64",
    fixed: Iterable[str | int] | str = (),
    domain: tuple[float, float] = EVERYWHERE,
    sizes: tuple[float, float] = ALL_SIZES,
    floor: float | None = None,
    seed: int = 0,
    n_inputs: int = 200,
    max_loss: float | None = None,
) -> Stability:
    """Find inputs for which a function loses digits in floats that exact numbers do not lose.

    The function is run on floats and, at the same inputs, on decimals. The inputs are drawn: of all
    sizes of the format, shifted, next to each other, equal, at the edges at which exponentials
    overflow. An error is allowed if it is no larger than ``10**max_loss + n`` times the rounding of
    the result plus what the rounding of the input costs, where n is the length of theta (a sum of n
    terms rounds n times). Constants in the function count as rounded, too.

    Parameters
    ----------
    function : callable
        Function of theta and the data that returns a value, which may be an array, or a value and
        the gradient of a loss. Traced like the functions of `prove`.
    theta : ndarray, or a dict, tuple or list of arrays
        The first input, float64. Others of its structure are drawn.
    *data
        Further arguments. Floats and arrays of them are scaled at half of the inputs, by 1e-3 to
        1e3; arrays of numbers between 0 and 1 and whole numbers keep their values.
    dtype : {'float64', 'float32', 'float16'}
        The format, to which theta and the data are cast. By default float64.
    fixed : str, int, or several of them, optional
        Names or positions of data that keep their values. By default there are none.
    domain : tuple of float
        The least and the largest number of theta. By default all numbers. Where the function has
        no value in exact numbers, such as the logarithm of -1, it is not judged.
    sizes : tuple of float
        The least and the largest absolute value of the numbers of theta that are not 0. By default
        those of the format.
    floor : float, optional
        Size below which results are judged in absolute terms. By default 0 if the function returns
        a value alone, and the size of the results at the given theta if it returns a loss and its
        gradient, as nobody compares losses that are far below: ``floor=0`` judges these, too.
    seed : int
        Seed of the inputs. By default 0.
    n_inputs : int
        Number of inputs. By default 200.
    max_loss : float, optional
        Digits that may be lost. By default 2, for float16 1.

    Returns
    -------
    Stability

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of range. What the function itself raises at the
        given theta is raised too.
    """
    start = time.process_time()
    check_callable("function", function)
    dtype_name = str(np.dtype(dtype))
    if dtype_name not in MAX_LOSS:
        raise ValueError(
            f"dtype must be one of {[*MAX_LOSS]}; got {dtype!r}: give one of them"
        )
    n_inputs = whole_number("n_inputs", n_inputs, 1)
    seed = whole_number("seed", seed)
    if max_loss is None:
        max_loss = MAX_LOSS[dtype_name]
    max_loss = positive_number("max_loss", max_loss)
    flat, tree = flatten_theta(theta)
    names = argument_names(function, len(data))
    positions = frozenset(
        names.index(i) if isinstance(i, str) else int(i)
        for i in check_fixed(fixed, names)
    )
    limits = Format.of(dtype)

    def cast(value: Any) -> Any:
        if not is_float_leaf(value):
            return value
        return like_leaf(value, np.asarray(value).astype(dtype))

    first = Point(flat.astype(dtype), map_leaves(data, cast))
    program = Program(function, tree, positions, Copies())
    parts = program.parts(program.run_floats(first))
    floors = _floors(parts, floor)
    factor = 10**max_loss + flat.size
    judge = Judge(program, limits, factor, False, floors, np.size(parts[0]))
    if repr(judge.run_floats(first)) != repr(judge.run_floats(first)):
        return Stability(dtype_name, 1, reason=IS_NOT_REPEATABLE)
    try:
        judge = judge._replace(by_norm=_is_symmetric(program, first))
    except TraceError as error:
        return Stability(dtype_name, 1, reason=f"not traceable: {error}")
    rng = np.random.default_rng(seed)
    drawer = Drawer(first, limits, rng, positions, domain, sizes, count(1))
    losses = [(point, judge.loss(point)) for point in drawer.points(n_inputs)]
    judged = [(point, loss) for point, loss in losses if loss is not None]
    if not judged:
        return Stability(dtype_name, len(losses), reason=NO_VALUE)
    return Stability(
        dtype_name,
        len(losses),
        n_undefined=len(losses) - len(judged),
        n_failed=sum(bool(loss.digits.any()) for _, loss in judged),
        failures=find_failures(judge, drawer, judged),
        stable_range=_stable_range(judged, flat),
        seconds=time.process_time() - start,
    )


def _floors(parts: list[Array], floor: float | None) -> Array:
    """Return the sizes (n,) below which results are judged in absolute terms.

    Parameters
    ----------
    parts : list of ndarray
        The value at the given theta and, if there is one, the gradient.
    floor : float or None
        The size that the caller has set.
    """
    if floor is None and len(parts) == 1:
        floor = 0.0
    sizes: list[Any] = [floor] * len(parts)
    if floor is None:
        sizes = [np.max(np.abs(part)) for part in parts]
    floors = np.repeat(sizes, [np.size(part) for part in parts])
    # where the result at theta has overflown, any size is judged
    return np.nan_to_num(floors, posinf=0.0)


def _is_symmetric(program: Program, point: Point) -> bool:
    """Return whether the exact results for theta in another order are the same numbers."""
    rolled = point._replace(theta=np.roll(point.theta, 1))
    first, second = (
        np.sort(program.decimal_results(x, RealNumbers(), N_DIGITS))
        for x in (point, rolled)
    )
    is_same = np.allclose(first, second, rtol=1e-12, atol=0.0, equal_nan=True)
    return is_same and not np.array_equal(rolled.theta, point.theta)


def _stable_range(
    judged: list[tuple[Point, Loss]], theta: Array
) -> tuple[float, float] | None:
    """Return the smallest and largest size around that of theta between which nothing is lost.

    `judged` has the losses at all points; None is returned if there is one at this size.
    """
    center = float(np.abs(theta).max())
    sizes = [float(np.abs(point.theta).max()) for point, _ in judged]
    bad = [
        size for size, (_, loss) in zip(sizes, judged, strict=True) if loss.digits.any()
    ]
    low = max([size for size in bad if size <= center], default=-1.0)
    high = min([size for size in bad if size >= center], default=np.inf)
    good = [size for size in sizes if low < size < high]
    if not good:
        return None
    return min(good), max(good)

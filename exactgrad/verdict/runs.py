"""One run of a function on exact numbers, and whether two slopes are equal in a field (D44)."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import NoSeries
from ..fields.finite import Field, Gauss, Prime, Towers, ZeroTest
from ..structures import StructureError, check_returned, copy_leaves
from ..trace.arrays import Exact, dual_residues, lift
from ..trace.copies import Copies
from .data import Condition, to_exact

__all__ = [
    "Evaluation",
    "ProofProblem",
    "TraceError",
    "run",
    "stop_gradient",
    "untraceable_step",
    "vanishes",
]

Array = NDArray[Any]
MAX_POINTS = 32  # of a field that are tried where there are roots
READ_ONLY = "read-only"  # what NumPy says where a sealed array is written into
# What to write instead, by what occurs in the line or in the message
ADVICE = {
    READ_ONLY: "the function overwrites theta or another argument; let it work on a copy",
    "print|log(ging|ger)": "leave out what is printed",
    "linalg": "write the elimination itself, or pass its result as an argument",
    "finfo": "write the constant itself",
    r"math\.": "use NumPy's function, which takes arrays of any kind",
    "floor|ceil|round|rint|remainder|%": "take it out of the function: it has no derivative",
    "vectorize": "write the loop",
    r"written into|\] ([-+*/]|\*\*)?= .*an array of floats": "write into arrays that are made "
    "inside: one that is kept from call to call holds floats",
    "float|astype|dtype": "keep the dtype of theta: np.zeros_like(theta), no float(), and "
    "arrays that are made inside",
    "is not known": "add it, with its derivative: exactgrad.function",
}


class TraceError(Exception):
    """A step of a function has no exact form: the message says which, and what to write instead."""

    def __init__(self, error: Exception) -> None:
        super().__init__(untraceable_step(error))
        # whether the function can be called with floats, but overwrites what it is given
        self.overwrites_argument = READ_ONLY in str(error)


class ProofProblem(NamedTuple):
    """A function whose gradient is to be proved, and what is known of its arguments."""

    value_and_grad: Callable[..., tuple[Any, ...]]
    arguments: tuple[Any, ...]  # that come after theta
    names: Sequence[str]  # of the arguments
    data: tuple[Condition, ...]  # whether each is free, fixed, or bound by a condition
    name: Callable[[int], str]  # of a coordinate of theta
    blocks: Mapping[str, slice]  # named parts of theta
    seed: int  # of the random numbers
    copies: Copies  # of the function, and of what it reaches

    def excess(self, theta: Array, field: Field) -> Array:
        """Return the slope of the value minus that of the gradient, at random elements of a field.

        Parameters
        ----------
        theta : ndarray of shape (D,)
            The point whose floats choose the path of comparisons.
        field : Field
            Where the function is computed.
        """
        return run(self, theta, field).excess()


class Evaluation(NamedTuple):
    """What a function returns, and the terms of its gradient times the direction."""

    value: Exact  # (1,)
    grad: Exact  # of the shape of theta
    terms: Array  # (D, C)

    def excess(self) -> Array:
        """Return the slope of the value along the direction, minus that of the gradient (D44)."""
        field = self.value.field
        return field.sub(self.value.tangent[0], field.sum(self.terms, 0))


def vanishes(
    excess: Callable[[Field], Array],
    seed: int,
    size: int,
    is_refuted: Callable[[], bool] = lambda: False,
) -> tuple[bool, Field]:
    """Return whether an excess is 0 at random points of a field, and the last field.

    Parameters
    ----------
    excess : callable
        From a field to a difference (..., C) of two slopes in it, at a random point.
    seed : int
        Of the points.
    size : int
        The length of theta: a large one is not tested where the primes are small.
    is_refuted : callable, optional
        Whether no law can make the excess 0: it is called before a field is tried that knows more
        laws than the first. By default they are all tried.

    Returns
    -------
    is_zero : bool
    field : Field
        It holds the path of comparisons that was taken.
    """
    test = ZeroTest(size)
    field_types: tuple[type[Field], ...] = (Prime, Gauss, Towers)
    for field_type in field_types:
        if not field_type.applies(test):
            continue
        if field_type is not Prime and is_refuted():
            break
        test.start()
        concluded = None
        while concluded is None and test.n_points < MAX_POINTS:
            field = field_type(seed * MAX_POINTS + test.n_points)
            test.record(field, excess(field))
            concluded = field.conclude(test)
        if concluded:
            return True, field
    return False, field


def stop_gradient(values: Any) -> Any:
    """Return a copy of an array with the same numbers, whose derivatives are 0.

    In a function that is proved it marks what is frozen, as the theta of a surrogate's weights.
    Outside of a proof it returns a plain copy.
    """
    return values.stop_gradient() if type(values) is Exact else np.array(values)


def run(
    problem: ProofProblem,
    theta: Array,
    field: Field,
    direction: Array | None = None,
    trace: Callable[..., Any] | None = None,
) -> Evaluation:
    """Return what a function returns where theta moves in a direction.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments, of which exact copies are made.
    theta : ndarray of shape (D,)
        The point whose floats choose the path of comparisons.
    field : Field
        Where the function is computed. It keeps the result as its `evaluation`.
    direction : ndarray of shape (D, C), optional
        By default random numbers of the field.
    trace : callable, optional
        A trace function, as of `sys.settrace`, that follows the call.

    Raises
    ------
    TraceError
        If a step of the function has no exact form.
    NoSeries
        If the numbers are decimals, and a function has no series for them.
    StructureError
        If anything but a number and a gradient of the shape of theta is returned.
    """
    if direction is None:
        direction = field.draw(theta.shape)
    arguments = [
        to_exact(argument, field, condition)
        for argument, condition in zip(problem.arguments, problem.data, strict=True)
    ]
    moving = Exact(field, dual_residues(field, field.variable(theta), direction), theta)
    sealed = copy_leaves((moving, *arguments), sealed=True)
    field.argument_moves = True
    try:
        with np.errstate(all="ignore"):
            returned = problem.copies.call(
                field, problem.value_and_grad, *sealed, trace=trace
            )
    except (NoSeries, StructureError):
        raise
    except Exception as error:
        raise TraceError(error) from error
    finally:
        field.squares.clear()  # only roots need them, and the function has ended: free the memory
    check_returned(returned, theta.shape)
    try:
        value, grad = lift(returned[0], field).reshape(1), lift(returned[1], field)
        field.evaluation = Evaluation(value, grad, field.mul(grad.primal, direction))
        return field.evaluation
    except Exception as error:
        raise TraceError(error) from error


def untraceable_step(error: Exception) -> str:
    """Return which line of the user's has raised an error, and what to write instead."""
    inside = (np.__path__[0], str(Path(__file__).parents[1]))
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if not frame.filename.startswith(inside)]
    line = location = ""
    if own_frames:
        last = own_frames[-1]
        line = linecache.getline(last.filename, last.lineno or 0).strip()
        is_cell = Path(last.filename).parent.name.startswith("ipykernel")
        file = "the cell" if is_cell else last.filename
        location = f" in line {last.lineno} of {file}"
        location += f", `{line}`" * bool(line)
    message = f"{type(error).__name__}: {error}"
    advice = [
        text for words, text in ADVICE.items() if re.search(words, f"{line} {message}")
    ]
    called = ", ".join(dict.fromkeys(re.findall(r"\bnp\.[\w.]+", line)))
    step = f"{called}{location}" if called else location.removeprefix(" ")
    return (
        f"{step or 'a step'} has no exact form ({message}). "
        + "; or ".join(advice[:1]).capitalize()
    )

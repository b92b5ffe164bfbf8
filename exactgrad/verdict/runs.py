"""Run a function on exact numbers, and test whether two slopes are equal in a field (D44)."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import NoSeries
from ..fields.finite import Field, Gauss, Prime, Towers, Untraceable, ZeroTest
from ..sources import line_in_words, source_line
from ..structures import StructureError, check_returned, copy_leaves
from ..trace.arrays import Exact, dual_residues, lift
from ..trace.copies import Copies
from .data import Condition, to_exact

__all__ = [
    "Evaluation",
    "ProofProblem",
    "TraceError",
    "refuse_masked_nan",
    "run",
    "stop_gradient",
    "untraceable_step",
    "vanishes",
]

Array = NDArray[Any]
MAX_POINTS = 32  # largest number of random points tried in one type of field
MASKED_NAN = (
    "the result is nan or infinite in floats, where all that the masks leave is 0"
)
READ_ONLY = "read-only"  # text of NumPy's error for writing into a read-only array
# Advice on what to write instead; keys are patterns searched in the line and the error
ADVICE = {
    r"exactgrad\.jax\.rule": "give the operation a rule: exactgrad.jax.rule",
    MASKED_NAN: "subtract the largest exponent from all of them",
    READ_ONLY: "the function overwrites theta or another argument; let it work on a copy",
    "print|log(ging|ger)": "leave out what is printed",
    "NoSeries": "the prover has no digits of this function: write it by others",
    r"\blinalg\b": "write the elimination itself, or pass its result as an argument",
    "finfo": "write the constant itself",
    r"math\.": "use NumPy's function, which takes arrays of any kind",
    "vectorize": "write the loop",
    r"written into|\] ([-+*/]|\*\*)?= .*an array of floats": "write into arrays that the "
    "function makes in this call: one that it keeps from call to call holds floats",
    "float|astype|dtype": "keep the dtype of theta: np.zeros_like(theta), no float(), and "
    "arrays that the function makes itself",
    "is not known": "add it, with its derivative: exactgrad.function",
}


class TraceError(Exception):
    """Raised if a step has no exact form; the message names the step and what to write instead."""

    def __init__(self, error: Exception) -> None:
        super().__init__(untraceable_step(error))
        # whether the step writes into an argument, which is read-only in a proof
        self.overwrites_argument = READ_ONLY in str(error)


class ProofProblem(NamedTuple):
    """A function whose gradient is to be proved, with its arguments and their conditions."""

    # function of flat theta and arguments
    value_and_grad: Callable[..., tuple[Any, ...]]
    arguments: tuple[Any, ...]  # arguments after theta
    names: Sequence[str]  # names of the arguments after theta
    data: tuple[Condition, ...]  # condition on each argument, such as FREE or FIXED
    name: Callable[[int], str]  # returns the name of a coordinate of theta by its index
    blocks: Mapping[str, slice]  # named parts of flat theta
    seed: int  # seed of all random numbers of the proof
    copies: Copies  # copies of the function and of the functions that it calls

    def excess(self, theta: Array, field: Field) -> Array:
        """Return the derivative of the value along a random direction, minus grad . direction.

        Its shape is (C,), where C is the number of channels of the field; it is 0 if the gradient
        is right.

        Parameters
        ----------
        theta : ndarray of shape (D,)
            The point whose floats choose the path of comparisons.
        field : Field
            The field of the exact numbers.
        """
        return run(self, theta, field).excess()


class Evaluation(NamedTuple):
    """The value and gradient of a function, and the terms of grad . direction, from one run."""

    value: Exact  # (1,) value with its derivative along the direction
    grad: Exact  # (D,) hand-written gradient
    terms: Array  # (D, C) products of gradient and direction, in each of C channels

    def excess(self) -> Array:
        """Return the derivative (C,) of the value along the direction minus grad . direction (D44).

        C is the number of channels of the field.
        """
        field = self.value.field
        return field.sub(self.value.tangent[0], field.sum(self.terms, 0))


def vanishes(
    excess: Callable[[Field], Array],
    seed: int,
    size: int,
    is_refuted: Callable[[], bool] = lambda: False,
) -> tuple[bool, Field]:
    """Return whether the difference of two slopes is 0 in a field, and the last field tried.

    Parameters
    ----------
    excess : callable
        Takes a field and returns the difference (..., C) of two slopes at a random point of it, in
        each of C channels.
    seed : int
        The seed of the random points.
    size : int
        The length of theta: a large one is not tested in fields of small primes.
    is_refuted : callable, optional
        Function without arguments that returns whether decimals have shown that the slopes differ,
        so that no identity can make them equal. It is called before each type of field after the
        first, and True ends the test. By default all types are tried.

    Returns
    -------
    is_zero : bool
        Whether the difference is 0 at all points tried of some field.
    field : Field
        The last field tried, which holds the path of comparisons that was taken.
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
    """Return a copy of the array `values` that is constant: its derivatives are 0.

    In a function that is proved it marks numbers that the gradient must not go through, such as the
    weights of a surrogate loss. Outside of a proof it returns a plain copy.
    """
    if type(values) is Exact:
        return values.stop_gradient()
    return np.array(values)


def run(
    problem: ProofProblem,
    theta: Array,
    field: Field,
    direction: Array | None = None,
    trace: Callable[..., Any] | None = None,
) -> Evaluation:
    """Run the function on exact numbers; return its value, with a derivative, and its gradient.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments, whose floats are replaced by exact numbers.
    theta : ndarray of shape (D,)
        The point whose floats choose the path of comparisons.
    field : Field
        The field of the exact numbers. It keeps the result as its `evaluation`.
    direction : ndarray of shape (D, C), optional
        The direction of the derivative by theta, in each of C channels. By default it is random
        numbers of the field.
    trace : callable, optional
        A function for `sys.settrace` that traces the call. By default there is none.

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
        field.squares.clear()  # free memory: only the function's square roots have needed them
    check_returned(returned, theta.shape)
    try:
        value, grad = lift(returned[0], field).reshape(1), lift(returned[1], field)
        refuse_masked_nan(value, grad)
        field.evaluation = Evaluation(value, grad, field.mul(grad.primal, direction))
        return field.evaluation
    except Exception as error:
        raise TraceError(error) from error


def refuse_masked_nan(*results: Exact) -> None:
    """Raise `Untraceable` if exponents are masked and results are nan or infinite in floats.

    Then the result may be a quotient of exponentials of which all are 0 in floats, but not all are
    masked and count as 0.
    """
    is_masked = results[0].field.largest_mask > -np.inf
    if is_masked and not all(np.isfinite(x.floats).all() for x in results):
        raise Untraceable(MASKED_NAN)


def untraceable_step(error: Exception) -> str:
    """Return a sentence that names the user's line which raised `error`, with advice on it."""
    inside = (np.__path__[0], str(Path(__file__).parents[1]))
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if not frame.filename.startswith(inside)]
    line = location = ""
    if own_frames:
        last = own_frames[-1]
        line = source_line(last.filename, last.lineno or 0)
        location = " in " + line_in_words(last.filename, last.lineno, in_full=True)
    message = f"{type(error).__name__}: {error}"
    advice = [
        text for words, text in ADVICE.items() if re.search(words, f"{line} {message}")
    ]
    called = ", ".join(dict.fromkeys(re.findall(r"\bnp\.[\w.]+", line)))
    step = location.removeprefix(" ")
    if called:
        step = f"{called}{location}"
    return (
        f"{step or 'a step'} has no exact form ({message}). "
        + "; or ".join(advice[:1]).capitalize()
    )

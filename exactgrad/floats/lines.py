"""Find the line at which digits are lost: its result is the first that floats have not right."""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blame.results import MAX_DEPTH, Line, LineTracer, items_of
from ..trace.arrays import Exact
from ..verdict.runs import TraceError
from .judgement import Judge
from .numbers import Point, RealNumbers, is_float_leaf, to_floats

__all__ = ["line_of_loss"]

Array = NDArray[Any]
N_BESIDE = 8  # roundings of the input
MAX_EVENTS = 3000  # lines after which a run is not observed any more
MAX_SIZE = 10_000  # numbers of the largest array that is observed


class Recorder:
    """The float or exact arrays that a function holds after each of its lines has run."""

    def __init__(self) -> None:
        self.events: list[Line] = []  # lines in the order of running
        self.values: list[
            dict[Any, Array]
        ] = []  # arrays as float64, by path, for each event

    def observe(self, frame: FrameType, line: int, values: dict[str, Any]) -> None:
        """Append the arrays among the local variables, and in tuples, lists and dicts of them.

        Parameters
        ----------
        frame : FrameType
            The frame of the function.
        line : int
            The line that has run.
        values : dict
            The local variables by name.
        """
        if len(self.events) < MAX_EVENTS:
            self.events.append((frame.f_code.co_filename, line))
            self.values.append(_arrays(values))


def _arrays(values: dict[Any, Any], path: tuple[Any, ...] = ()) -> dict[Any, Array]:
    """Return the float and exact arrays in a dict and in the containers it holds, by path."""
    arrays = {}
    for key, value in list(values.items()):
        if type(value) is Exact:
            arrays[*path, key] = to_floats(value.primal[..., 0])
        elif is_float_leaf(value):
            arrays[*path, key] = np.array(value, float)
        elif len(path) < MAX_DEPTH:
            arrays |= _arrays(items_of(value), (*path, key))
    return {key: array for key, array in arrays.items() if 0 < array.size <= MAX_SIZE}


def line_of_loss(
    judge: Judge, point: Point, digits: float, is_value: bool
) -> tuple[str, int, int]:
    """Return the first line of which a result has lost digits: file, number, and which result.

    Floats and decimals are observed side by side, until they take another branch. The last number
    is the position in a tuple that the line returns, or -1. If no result has lost digits, the line
    is the last one.

    Parameters
    ----------
    judge : Judge
        The program, and the errors that are allowed.
    point : Point
        The input.
    digits : float
        Number of digits that a result has to have lost.
    is_value : bool
        Whether the function's value is wrong, not a derivative.
    """
    _, n_digits = judge.exact_results(point)
    eps, tiny = judge.limits.eps, judge.limits.tiny
    computed = _record(judge, point, None, n_digits)
    exact = _record(judge, point, RealNumbers(), n_digits)
    beside = [
        _record(judge, point, RealNumbers(eps, tiny, k, judge.by_norm), n_digits)
        for k in range(N_BESIDE)
    ]
    for i, line in enumerate(computed.events):
        if exact.events[i : i + 1] != [line]:
            return *computed.events[i - 1], -1
        sides = [run.values[i] for run in beside if run.events[i : i + 1] == [line]]
        lost = [
            path
            for path, right in exact.values[i].items()
            if _has_lost(
                judge, computed.values[i].get(path), right, sides, path, digits
            )
        ]
        wrong_part = ("return", 1 - is_value)
        if wrong_part in lost:
            return *line, 1 - is_value
        if lost:
            return *line, -1
    return *computed.events[-1], -1


def _has_lost(
    judge: Judge,
    result: Array | None,
    right: Array,
    sides: list[dict[Any, Array]],
    path: tuple[Any, ...],
    digits: float,
) -> bool:
    """Return whether an array has lost digits beyond what the rounding of the input costs.

    Parameters
    ----------
    judge : Judge
        Holds the errors that are allowed.
    result, right : ndarray or None
        The array in floats, None if there is none, and in decimals.
    sides : list of dict
        The arrays of decimals for inputs that rounding cannot tell from this one, by path.
    path : tuple
        The path of the array.
    digits : float
        Number of digits that an entry has to have lost.
    """
    if result is None or result.shape != right.shape:
        return False
    beside = [
        side[path] for side in sides if path in side and side[path].shape == right.shape
    ]
    with np.errstate(invalid="ignore"):
        cost = np.nan_to_num(abs(np.array([right, *beside]) - right), nan=0.0).max(
            axis=0
        )
    unit = judge.limits.eps * abs(right) + cost
    is_lost = judge.limits.is_far(result, right, judge.factor * unit) & np.isfinite(
        right
    )
    return bool(
        (is_lost & (judge.limits.digits_lost(result, right, unit) >= digits)).any()
    )


def _record(
    judge: Judge, point: Point, field: RealNumbers | None, n_digits: int
) -> Recorder:
    """Return the record of a run in floats or, if there is a field, in its decimals.

    Parameters
    ----------
    judge : Judge
        Holds the program.
    point : Point
        The input.
    field : RealNumbers or None
        Makes the decimals.
    n_digits : int
        Number of their digits.
    """
    recorder = Recorder()
    active_field: Any = field
    tracer = LineTracer(active_field, recorder.observe)
    try:
        if field is None:
            judge.program.trace_floats(point, tracer.trace_call)
        else:
            judge.program.run_decimals(point, field, n_digits, tracer.trace_call)
    except (ArithmeticError, ValueError, TraceError):
        pass  # the lines that have run are recorded
    return recorder

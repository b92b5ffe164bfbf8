"""Find the line at which digits are lost: its result is the first that floats have not right."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blame.steps import LIBRARY_PREFIXES
from ..trace.arrays import Exact
from ..trace.copies import GlobalNames
from ..verdict.runs import TraceError
from .cures import returned_part, statements_at
from .judgement import Judge
from .numbers import Point, RealNumbers, is_float_leaf, to_floats

__all__ = ["line_of_loss"]

Array = NDArray[Any]
Line = tuple[str, int]  # the path of a file and the number of a line in it
N_LINE_ROUNDINGS = 8  # roundings of the input
MAX_CONTAINER_LEVELS = 3  # levels of nested containers in which arrays are looked for
MAX_EVENTS = 3000  # lines after which a run is not observed any more
MAX_OBSERVED_SIZE = 10_000  # numbers of the largest array that is observed


class Recorder:
    """The float or exact arrays that a function holds after each of its lines has run."""

    def __init__(self) -> None:
        self.events: list[Line] = []  # lines in the order of running
        # arrays as float64, by path, for each event
        self.values: list[dict[Any, Array]] = []

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """Return the function that records the lines of a called function, or None to skip it.

        Functions of NumPy, Python's library and this package are skipped.

        Parameters
        ----------
        frame : FrameType
            The frame of the function that is called.
        event : str
            The kind of event, here always "call".
        """
        file = frame.f_code.co_filename
        is_users = type(frame.f_globals) is GlobalNames
        if not is_users or file.startswith(LIBRARY_PREFIXES):
            return None
        line = frame.f_lineno

        def record(frame: FrameType, event: str, returned: Any) -> Any:
            """Record the line that has run, before the next one runs or the function returns.

            Parameters
            ----------
            frame : FrameType
                The frame of the function.
            event : str
                "line" before a line runs, "return" when the function ends; others are ignored.
            returned
                What the function returns, for the event "return".
            """
            nonlocal line
            if event in ("line", "return") and len(self.events) < MAX_EVENTS:
                values = dict(frame.f_locals)
                if event == "return":
                    values["return"] = returned
                self.events.append((file, line))
                self.values.append(_arrays(values))
                line = frame.f_lineno
            return record

        return record


def _arrays(values: dict[Any, Any], path: tuple[Any, ...] = ()) -> dict[Any, Array]:
    """Return the float and exact arrays in a dict and in containers it holds, by path."""
    arrays = {}
    for key, value in list(values.items()):
        if type(value) is Exact:
            arrays[*path, key] = to_floats(value.primal[..., 0])
        elif is_float_leaf(value):
            arrays[*path, key] = np.array(value, float)
        elif len(path) < MAX_CONTAINER_LEVELS and isinstance(value, dict):
            arrays |= _arrays(value, (*path, key))
        elif len(path) < MAX_CONTAINER_LEVELS and isinstance(value, tuple | list):
            arrays |= _arrays(dict(enumerate(value)), (*path, key))
    return {
        key: array
        for key, array in arrays.items()
        if 0 < array.size <= MAX_OBSERVED_SIZE
    }


def line_of_loss(
    judge: Judge, point: Point, digits: float, is_value: bool
) -> tuple[str, int, int]:
    """Return the first line of which a result has lost digits: file, number, and which result.

    Floats and decimals are observed side by side, until they take another branch. The last number
    is the position in a tuple that the line returns, or -1. If no result has lost digits, the line
    is the last one; if no line was observed, as of a function in C, the file is "".

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
    computed = _record(judge, point, None, n_digits)
    exact = _record(judge, point, RealNumbers(), n_digits)
    fields = [
        RealNumbers(judge.limits, k, judge.by_norm) for k in range(N_LINE_ROUNDINGS)
    ]
    neighbour_results = [_record(judge, point, field, n_digits) for field in fields]
    if not computed.events:
        return "", 0, -1
    position = 1 - is_value
    needed = _names_behind(*computed.events[-1], position)
    for i, line in enumerate(computed.events):
        if exact.events[i : i + 1] != [line]:
            return *computed.events[i - 1], -1
        runs = [run for run in neighbour_results if run.events[i : i + 1] == [line]]
        sides = [run.values[i] for run in runs]
        arrays = computed.values[i]
        lost = [
            path
            for path, right in exact.values[i].items()
            if _has_lost(judge, arrays.get(path), right, sides, path, digits)
        ]
        if ("return", position) in lost:
            return *line, position
        if any(path[0] in needed.get(line, path) for path in lost):
            return *line, -1
    return *computed.events[-1], -1


def _names_behind(file: str, line: int, position: int) -> dict[Line, set[str]]:
    """Return the names of variables that a part of the result depends on, for each line.

    The lines are those of the function that returns the result in a tuple, else there are none.

    Parameters
    ----------
    file, line : str, int
        The line that returns.
    position : int
        Position of the part in the tuple.
    """
    function, statements = statements_at(file, line)
    parts = [part for x in statements if (part := returned_part(x, position))]
    names = {name for part in parts for name in _names(part)}
    assignments = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.For)
    ]
    for node in assignments * len(assignments):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(names & _names(target) for target in targets):
            names |= _names(node.iter if isinstance(node, ast.For) else node.value)
    first = getattr(function, "lineno", 0)
    last = getattr(function, "end_lineno", 0)
    return {(file, k): names for k in range(first, last + 1) if parts}


def _names(node: ast.AST) -> set[str]:
    """Return the names of variables in an expression."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


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
    neighbour_results = [
        side[path] for side in sides if path in side and side[path].shape == right.shape
    ]
    with np.errstate(invalid="ignore", over="ignore"):
        cost = np.nan_to_num(
            abs(np.array([right, *neighbour_results]) - right), nan=0.0
        ).max(axis=0)
        unit = judge.limits.eps * abs(right) + cost
        allowed = judge.factor * unit
    is_lost = judge.limits.is_far(result, right, allowed) & np.isfinite(right)
    is_lost &= judge.limits.digits_lost(result, right, unit) >= digits
    return bool(is_lost.any())


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
    try:
        if field is None:
            judge.program.run_floats(point, recorder.trace)
        else:
            judge.program.run_decimals(point, field, n_digits, recorder.trace)
    except (ArithmeticError, ValueError, TraceError):
        pass  # the lines that have run are recorded
    return recorder

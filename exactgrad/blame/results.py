"""Record the results that the lines of a function write, in the order of writing (D44).

The function runs once more, at random numbers, under `sys.settrace`. Whenever a line has run, the
exact arrays among the local variables are compared with what they held before, also those in lists,
dicts and objects. Entries that have changed are a new *result* of that line.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.finite import Field, Prime
from ..trace.arrays import Exact
from ..trace.copies import GlobalNames
from ..trace.makers import ACTIVE_FIELD
from ..verdict.runs import ProofProblem, run

__all__ = ["BatchedPrime", "Line", "LineTracer", "Result", "Trace", "items_of"]

Array = NDArray[Any]
Line = tuple[str, int]  # the path of a file and the number of a line in it
Observer = Callable[[FrameType, int, dict[str, Any]], None]
MAX_DEPTH = 3  # levels of nested containers in which arrays are looked for
MAX_ITEMS = 1000  # items of the largest container in which arrays are looked for
SCIPY_SPECIAL = str(Path(np.__path__[0]).with_name("scipy") / "special")
# Beginnings of the paths of library files, whose lines are not traced
LIBRARY_PREFIXES = (
    np.__path__[0],
    SCIPY_SPECIAL,
    str(Path(__file__).parents[1]),
    sysconfig.get_path("stdlib"),
    "<frozen",
    "<__",
)
# File name of code that exec() has run from a string, such as the methods of dataclasses
EXECUTED_TEXT = "<string>"
# Matches variable names for the cotangent of z: dz, d_z, grad_z, dL_dz, z_grad, ...
COTANGENT = re.compile(
    r"(?:d|g|grad|delta|adj|ct|d[A-Z]_?d)_?(\w+)$|(\w+?)_?(?:grad|bar|adj|ct|delta)$"
)


class BatchedPrime(Prime):
    """The integers modulo a prime, with derivatives along 64 directions at once.

    Residues have a last axis of 64 channels, one for each direction. All channels hold the same
    numbers, but different derivatives.
    """

    n_channels = 64

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return random residues (*shape, 64), the same in all channels."""
        return np.repeat(super().draw(shape), self.n_channels, axis=-1)

    def variable(self, floats: Array) -> Array:
        """Return random residues for the numbers in `floats`, and record their positions.

        `theta_positions` maps each residue of the latest call to its position in `floats`. A run
        makes its last call for theta.
        """
        residues = super().variable(floats)
        numbers = residues[..., 0].ravel().tolist()
        self.theta_positions = {number: j for j, number in enumerate(numbers)}
        return residues

    def from_integers(self, integers: Any) -> Array:
        """Return the residues (..., 64) of an array of integers, the same in all channels."""
        return np.repeat(super().from_integers(integers), self.n_channels, axis=-1)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the product of matrices a (..., n, k, 64) and b (..., k, m, 64) by channel."""
        return self.sum(self.mul(a[..., None, :], b[..., None, :, :, :]), -3)


class Result(NamedTuple):
    """An array that a line has written, or entries of it.

    Parameters
    ----------
    lines : tuple of Line
        The line that has written the result, followed by the lines that called its function.
    event : int
        Number of lines that had run before.
    path : tuple
        Names and keys that lead from the local variables to the array.
    residues : array of int, shape (n,)
        The numbers of the result.
    entries : bool array
        Mask of the n entries of the array that are the result; its shape is that of the array.
    theta_positions : array of int, shape (n,), or None
        Positions in theta, if all numbers of the result are entries of theta.
    assembled : bool
        Whether earlier lines have written all the numbers already, into other arrays.
    """

    lines: tuple[Line, ...]
    event: int
    path: tuple[Any, ...]
    residues: Array
    entries: Array
    theta_positions: Array | None
    assembled: bool = False

    @property
    def name(self) -> str:
        """The name of the array: the last key of its path."""
        return str(self.path[-1])

    def primal_name(self, names: set[str]) -> str:
        """Return "z" for a result named dz, z_grad or the like if "z" is in `names`, else ""."""
        match = COTANGENT.match(self.name)
        if match is None:
            return ""
        name = match[1] or match[2]
        return name if name in names else ""


def items_of(value: Any) -> dict[Any, Any]:
    """Return the contents of a container or an object, by key, position or attribute name.

    The dict is empty for classes, modules and functions, and for dicts and objects with more than
    `MAX_ITEMS` items.
    """
    if isinstance(value, type | ModuleType) or callable(value):
        return {}
    if isinstance(value, list | tuple):
        keys = getattr(value, "_fields", range(len(value)))
        return dict(zip(keys, value, strict=True))
    items: Any = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return items if len(items) <= MAX_ITEMS else {}


def _exact_arrays(
    values: Any, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Exact]]:
    """Yield (path, array) for each exact array in the dict `values` and in containers it holds.

    A path is a tuple of names, keys and positions that begins with `path`.
    """
    for key, value in list(values.items()):
        if type(value) is Exact:
            yield (*path, key), value
        elif len(path) < MAX_DEPTH:
            yield from _exact_arrays(items_of(value), (*path, key))


class LineTracer:
    """A tracer for `sys.settrace` that calls an observer after each line of the user's code.

    Parameters
    ----------
    field : Field
        The field of the traced run. If another one is active, an interrupt has ended the run, and
        the tracer removes itself.
    observe : callable
        Takes the frame, the number of the line that has run (0 when a function is entered) and the
        local variables by name.
    """

    def __init__(self, field: Field, observe: Observer) -> None:
        self.field = field
        self.observe = observe
        self.is_first_call = True
        # the line from which the user's function returned
        self.return_line: Line = ("", 0)
        # whether the user's function was made by exec() from a string
        self.is_executed_text = False
        self.outer_trace = sys.gettrace()

    def trace_call(self, frame: FrameType, event: str, _: Any) -> Any:
        """Return the function that traces the lines of a called function, or None to skip it.

        Functions of NumPy, `scipy.special`, Python's library and this package are skipped.

        Parameters
        ----------
        frame : FrameType
            The frame of the function that is called.
        event : str
            The kind of event, here always "call".
        """
        if ACTIVE_FIELD.get() is not self.field:
            sys.settrace(self.outer_trace)
            return None
        file = frame.f_code.co_filename
        if self.is_first_call:
            self.is_executed_text = file == EXECUTED_TEXT
        # only copies of the user's functions are traced, not a hook of the garbage collector
        if type(frame.f_globals) is not GlobalNames:
            return None
        if file.startswith(LIBRARY_PREFIXES):
            return None
        if file == EXECUTED_TEXT and not self.is_executed_text:
            return None
        line = frame.f_lineno
        is_outermost = self.is_first_call
        self.is_first_call = False
        self.observe(frame, 0, frame.f_locals)

        def trace_line(frame: FrameType, event: str, returned: Any) -> Any:
            """Call the observer for the line that has run; return this function, to go on tracing.

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
            if event in ("line", "return"):
                values = dict(frame.f_locals)
                if event == "return":
                    values["return"] = returned
                self.observe(frame, line, values)
                if is_outermost:
                    self.return_line = (frame.f_code.co_filename, line)
                line = frame.f_lineno
            return trace_line

        return trace_line


def _calling_lines(frame: FrameType | None, line: int) -> tuple[Line, ...]:
    """Return the line of a frame, and the lines that called it, innermost first.

    A `line` of 0, of a function that has just been entered, is left out.
    """
    lines = list[Line]()
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(LIBRARY_PREFIXES):
            break
        lines.append((file, frame.f_lineno if lines else line))
        frame = frame.f_back
    if not line and len(lines) > 1:
        return tuple(lines[1:])
    return tuple(lines)


class Trace:
    """The results that the lines of a function write when it runs on random exact numbers.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : array, shape (D,)
        The point at which the gradient is refuted.
    wrong : bool array, shape (D,)
        Whether each derivative is wrong.
    seed : int
        Seed of the prime, the random numbers and the random directions.

    Attributes
    ----------
    results : list of Result
        The results in the order of writing.
    others_are_right : bool
        Whether the derivatives not marked in `wrong` are right in the field.
    n_events : int
        Index of the last event, which is a line that has run or the entry into a function.
    return_line : Line
        The line from which the function returned.
    """

    def __init__(
        self, problem: ProofProblem, theta: Array, wrong: Array, seed: int
    ) -> None:
        self.problem = problem
        self.theta = theta
        self.wrong = wrong
        self.seed = seed
        self.field = BatchedPrime(seed)
        self.results: list[Result] = []
        self.n_events = -1
        # (residue, derivative) pairs of all results
        self._numbers = set[tuple[int, int]]()
        self._names = set[str]()  # names of all results
        # maps a size to (name of the primal, residues, derivatives) of each earlier result
        self._earlier: dict[int, list[tuple[str, Array, Array]]] = {}
        self._directions: dict[int, Array] = {}
        # maps a frame and a path to the memory and residues of the array when last observed
        self._last_seen: dict[FrameType, dict[Any, Any]] = {}
        along = np.repeat(
            self.direction(theta.size)[:, None], BatchedPrime.n_channels, axis=1
        )
        # channel 0 keeps coordinates with wrong derivatives fixed
        along[:, 0] *= ~wrong
        tracer = LineTracer(self.field, self._observe)
        evaluation = run(problem, theta, self.field, along, tracer.trace_call)
        self.others_are_right = not evaluation.excess()[0].any()
        self.return_line = tracer.return_line
        self._last_seen.clear()

    def direction(self, size: int) -> Array:
        """Return the random direction (size,) of all results of `size` numbers; [1] for size 1."""
        if size not in self._directions:
            positions = np.arange(size)[:, None]
            direction = self.field.random_function("direction", positions)[:, 0]
            if size == 1:
                direction = np.ones(1, np.int64)
            self._directions[size] = direction
        return self._directions[size]

    def _observe(self, frame: FrameType, line: int, values: dict[str, Any]) -> None:
        """Append arrays that have changed since this frame was last observed, as new results.

        `line` is the number of the line that has run, `values` the dict of local variables.
        """
        self.n_events += 1
        last_seen = self._last_seen.setdefault(frame, {})
        for path, x in _exact_arrays(values):
            if x.field is not self.field:
                # the function has kept this array from another run
                continue
            residues = x.primal[..., 0]
            tangent = x.tangent[..., 1]
            all_entries = np.ones(x.shape, bool)
            memory = x.residues.__array_interface__["data"][0], x.shape
            last_memory, last_residues = last_seen.get(path, (None, None))
            changed = all_entries
            if memory == last_memory:
                changed = last_residues != residues
            if not changed.any():
                continue
            last_seen[path] = memory, residues.copy()
            # if only some entries have changed, these entries and the whole array are two results
            parts = [changed] if changed.all() else [changed, all_entries]
            for entries in parts:
                numbers = residues[entries]
                result = Result(
                    lines=_calling_lines(frame, line),
                    event=self.n_events,
                    path=path,
                    residues=numbers,
                    entries=entries,
                    theta_positions=self._positions_in_theta(numbers),
                    assembled=entries is not changed,
                )
                self._append(result, tangent[entries])

    def _positions_in_theta(self, numbers: Array) -> Array | None:
        """Return the positions in theta of residues (n,); None unless all are entries of theta."""
        positions = [
            self.field.theta_positions.get(number, -1) for number in numbers.tolist()
        ]
        if min(positions) < 0:
            return None
        return np.array(positions)

    def _append(self, result: Result, tangent: Array) -> None:
        """Append a result with its derivatives `tangent` (n,), unless it is 0 or a repetition.

        A result with the same numbers as an earlier one is appended only if its name says that it
        is the cotangent of a variable that no earlier name did. A result is marked `assembled` if
        all its numbers are numbers of earlier results, unless it is an earlier result of which some
        entries were set to 0, such as by a mask.
        """
        residues = result.residues
        primal_name = result.primal_name(self._names)
        numbers = [*zip(residues.tolist(), tangent.tolist(), strict=True)]
        nonzero = residues != 0
        earlier = self._earlier.setdefault(len(residues), [])
        names_of_same = [
            name
            for name, same_residues, same_tangent in earlier
            if np.array_equal(residues, same_residues)
            and np.array_equal(tangent, same_tangent)
        ]
        masks_earlier = not nonzero.all() and any(
            (residues[nonzero] == unmasked[nonzero]).all() for _, unmasked, _ in earlier
        )
        consists_of_earlier = self._numbers.issuperset(x for x in numbers if x[0])
        earlier.append((primal_name, residues, tangent))
        self._numbers.update(numbers)
        self._names.add(result.name)
        if names_of_same:
            is_new = bool(primal_name) and primal_name not in names_of_same
        else:
            is_new = bool(nonzero.any())
        if is_new:
            assembled = consists_of_earlier and not names_of_same and not masks_earlier
            self.results.append(
                result._replace(assembled=result.assembled or assembled)
            )

"""Run a function operation by operation, and with operations changed (D44).

A *step* is one operation of NumPy that the user's function has applied to exact numbers. All steps
that the same place in the code runs, such as in a loop, have one *site*. The derivatives along 64
directions, or 64 changed versions of the function, are computed at once: each channel of the field
holds one of them.
"""

from __future__ import annotations

import dis
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.finite import BatchedPrime, Field, Prime
from ..fields.floats import Floats
from ..trace.arrays import Exact
from ..trace.copies import GlobalNames
from ..verdict.runs import Evaluation, ProofProblem, run

__all__ = ["N_CHANNELS", "Operation", "Site", "Step", "Trace"]

Array = NDArray[Any]
MAX_STEPS = 1000  # largest number of operations of a function whose steps are examined
# Number of lines, decorators included, within which the name of a function is looked for
MAX_HEADER = 20
# Number of versions of a function that one run computes
N_CHANNELS = BatchedPrime.n_channels
TINY_SHARE = 1e-9  # floats that are smaller than this share of the largest count as 0
N_ROUNDED_DIGITS = 7  # number of digits of the mantissas of floats that are compared
# Largest difference of derivatives that count as equal in floats, relative to their terms
RIGHT_RTOL = 1e-9
# Beginnings of the paths of library files, whose operations belong to the line that calls them
LIBRARY_PREFIXES = (
    np.__path__[0],
    str(Path(np.__path__[0]).with_name("scipy") / "special"),
    str(Path(__file__).parents[1]),
    sysconfig.get_path("stdlib"),
    "<frozen",
    "<__",
)


class Operation(NamedTuple):
    """An operation of NumPy while it runs, with its result."""

    name: str  # name of NumPy's function
    function: Callable[..., Any]  # its version for exact arrays
    inputs: tuple[Any, ...]
    options: dict[str, Any]
    result: Exact


class Site(NamedTuple):
    """A place in the user's code: an instruction that applies an operation or calls a function."""

    code: CodeType
    offset: int  # of the instruction in the bytecode
    line: int

    def expression(self) -> str:
        """Return the text of the expression at this place.

        It is "" if the expression is not in one line, or the code was not compiled from the file.
        """
        code = self.code
        line, last_line, start, end = [*code.co_positions()][self.offset // 2]
        lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
        is_own = code.co_name[0] == "<" or code.co_name in "".join(lines[:MAX_HEADER])
        if line is None or line != last_line or not end or not is_own:
            return ""
        text = linecache.getline(code.co_filename, line)
        return text.encode()[start:end].decode()

    def is_in_place(self) -> bool:
        """Return whether the instruction is an assignment such as ``+=``."""
        instructions = dis.get_instructions(self.code)
        name = next((i.argrepr for i in instructions if i.offset == self.offset), "")
        return len(name) > 1 and name.endswith("=") and name[0] in "+-*/"


class Step(NamedTuple):
    """One operation that the user's function has run."""

    name: str  # name of NumPy's function
    # the place of the operation, followed by those that called its function
    sites: tuple[Site, ...]
    residues: Array  # numbers of the result (size,)
    sources: tuple[int, ...]  # indices of the steps whose results it has taken


def _is_view(result: Exact, inputs: Iterable[Any]) -> bool:
    """Return whether the result of an operation shares memory with one of its inputs."""
    return not result.residues.flags.writeable or any(
        type(x) is Exact and np.may_share_memory(x.residues, result.residues)
        for x in inputs
    )


def _memory(x: Any) -> Any:
    """Return the array whose memory an exact array shares; other values are returned themselves."""
    memory = x.residues if type(x) is Exact else x
    while isinstance(memory, np.ndarray) and memory.base is not None:
        memory = memory.base
    return memory


def _content(x: Any) -> bytes:
    """Return the numbers of an exact array in its first channel; b"" of other values."""
    if type(x) is not Exact:
        return b""
    return bytes(x.primal[..., 0].tobytes())


def _sites() -> tuple[Site, ...]:
    """Return the place of the operation that is running, and the places that called its function.

    They are places in copies of the user's functions; there are none outside of these.
    """
    sites = list[Site]()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        is_user = not code.co_filename.startswith(LIBRARY_PREFIXES)
        if is_user and type(frame.f_globals) is GlobalNames:
            sites.append(Site(code, frame.f_lasti, frame.f_lineno))
        frame = frame.f_back
    return tuple(sites)


class Trace:
    """The steps of a function at one point, and their effects on value and gradient.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : array, shape (D,)
        The point at which the gradient is refuted.
    seed : int
        Seed of the prime, the random numbers and the random directions.
    in_floats : bool
        Whether the steps are computed in floats at theta, which obey all laws. By default they are
        residues at a random point.

    Attributes
    ----------
    steps : list of Step
        The n steps in the order in which they run.
    value : number
        The value of the function.
    right : array, shape (D,)
        The right derivatives.
    excess : array, shape (D,)
        The hand-written derivatives minus the right ones; of use in floats only.
    is_wrong : bool array, shape (D,)
        Whether each hand-written derivative differs from the right one.
    slopes : array, shape (n,)
        Derivatives of the value by a change of each step's result in a random direction.
    moves : bool array, shape (n, D)
        Whether the same change influences each hand-written derivative.
    is_valid : bool
        Whether all square roots that the function takes exist at the point.
    """

    def __init__(
        self,
        problem: ProofProblem,
        theta: Array,
        seed: int,
        in_floats: bool = False,
    ) -> None:
        self.problem = problem
        self.theta = theta
        self.seed = seed
        self.in_floats = in_floats
        self.steps: list[Step] = []
        self.is_valid = True
        self._directions: dict[int, Array] = {}
        # the memory of each result, and the steps that have written into it, by its id
        self._memories = list[Any]()
        self._writers: dict[int, list[int]] = {}
        self._producers: dict[bytes, int] = {}  # the last step with these numbers
        by_hand = list[Array]()
        slopes = list[Array]()
        moves = list[Array]()
        # a channel for each coordinate of theta, then one for each step
        for start in count(0, N_CHANNELS):
            along = np.eye(theta.size, N_CHANNELS, -start)
            watch = partial(self._perturb, start - theta.size)
            evaluation = self.run(along.astype(self._field().dtype), watch)
            by_hand.append(evaluation.grad.primal[start : start + N_CHANNELS, 0])
            slopes.append(evaluation.value.tangent[0])
            moves.append(evaluation.grad.tangent.T)
            if start + N_CHANNELS >= theta.size + len(self.steps):
                break
        self.value = evaluation.value.primal[0, 0]
        last = theta.size + len(self.steps)
        all_slopes = self.rounded(np.concatenate(slopes))
        self.right = all_slopes[: theta.size]
        hand_written = np.concatenate(by_hand)
        self.is_wrong = self.rounded(hand_written) != self.right
        self.excess = hand_written - np.concatenate(slopes)[: theta.size]
        self.slopes = all_slopes[theta.size : last]
        self.moves = self.rounded(np.concatenate(moves)[theta.size : last]) != 0

    def _field(self) -> Field:
        """Return the field for one run, whose numbers have 64 channels."""
        if self.in_floats:
            return Floats(self.seed, N_CHANNELS)
        return BatchedPrime(self.seed)

    def rounded(self, numbers: Array) -> Array:
        """Return numbers such that those that are equal but for rounding are equal.

        Residues are returned as they are, floats with seven digits of their mantissas or, if they
        are far below the largest, as 0.
        """
        if not self.in_floats:
            return numbers
        largest = np.abs(numbers).max(initial=0.0, where=np.isfinite(numbers))
        is_tiny = np.abs(numbers) <= TINY_SHARE * largest
        mantissas, exponents = np.frexp(np.where(is_tiny, 0.0, numbers))
        return np.ldexp(np.round(mantissas, N_ROUNDED_DIGITS), exponents)

    def direction(self, size: int) -> Array:
        """Return the random direction (size,) of all results of `size` numbers; [1] for size 1."""
        if size not in self._directions:
            positions = np.arange(size)[:, None]
            residues = Prime(self.seed).random_function("direction", positions)[:, 0]
            if size == 1:
                residues = np.ones(1, np.int64)
            elif self.in_floats:
                residues = residues / residues.max()
            self._directions[size] = residues
        return self._directions[size]

    def _perturb(self, start: int, k: int, operation: Operation) -> Exact:
        """Return the result of step k, with a random tangent added in channel k - `start`.

        The steps of the first run are recorded.
        """
        result = operation.result
        if k == len(self.steps) < MAX_STEPS:
            numbers = result.primal[..., 0].ravel().copy()
            memories = map(_memory, operation.inputs)
            sources = tuple(
                j for memory in memories for j in self._writers.get(id(memory), ())[-1:]
            )
            # a result that `out=` has written elsewhere is found by its numbers
            contents = map(_content, operation.inputs)
            copied = [self._producers[c] for c in contents if c in self._producers]
            sources = tuple({*sources, *copied})
            if numbers.any():
                self._producers[numbers.tobytes()] = k
            self.steps.append(Step(operation.name, _sites(), numbers, sources))
            self._memories.append(_memory(result))
            self._writers.setdefault(id(self._memories[-1]), []).append(k)
        channel = k - start
        if 0 <= channel < N_CHANNELS:
            tangent = result.tangent[..., channel]
            direction = self.direction(result.size).reshape(result.shape)
            tangent[...] = result.field.add(tangent[..., None], direction[..., None])[
                ..., 0
            ]
        return result

    def run(self, along: Array, watch: Callable[[int, Operation], Exact]) -> Evaluation:
        """Run the function on the numbers of this trace.

        Parameters
        ----------
        along : array, shape (D, 64)
            The directions of theta.
        watch : callable
            Called with the index of each step and its `Operation`; returns the result to use.

        Raises
        ------
        ValueError
            If the function runs other steps than in the first run, or too many.
        """
        indices = count()

        def apply(
            name: str,
            function: Callable[..., Any],
            inputs: tuple[Any, ...],
            options: dict[str, Any],
        ) -> Any:
            """Return the result of an operation, or what `watch` returns in its place.

            Parameters
            ----------
            name : str
                The name of the operation.
            function : callable
                Computes it.
            inputs : tuple
                Its operands.
            options : dict
                Its keywords.
            """
            result = function(*inputs, **options)
            if type(result) is not Exact or _is_view(result, inputs):
                return result
            operation = Operation(name, function, inputs, options, result)
            return watch(next(indices), operation)

        field = self._field()
        field.watch = apply
        evaluation = run(self.problem, self.theta, field, along)
        if next(indices) != len(self.steps):
            raise ValueError("two runs of the same function are different")
        self.is_valid &= not field.n_substituted
        return evaluation

    def is_right(self, evaluation: Evaluation) -> Array:
        """Return whether, in each channel, value and right derivatives belong together.

        The value has to be that of the first run, and its derivative along the direction of the
        channel the hand-written one.
        """
        values = np.append(evaluation.value.primal[0], self.value)
        is_same = self.rounded(values)[:-1] == self.rounded(values)[-1]
        if not self.in_floats:
            return is_same & (evaluation.excess() == 0)
        size = np.abs(evaluation.terms).sum(0) + np.abs(evaluation.value.tangent[0])
        return is_same & (np.abs(evaluation.excess()) <= RIGHT_RTOL * size)

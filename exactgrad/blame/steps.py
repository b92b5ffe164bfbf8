"""Run a function operation by operation, and with operations changed, in one prime field (D44).

A *step* is one operation of NumPy that the user's function has applied to exact numbers. All steps
that the same place in the code runs, such as in a loop, have one *site*. The derivatives along 64
directions, or 64 changed versions of the function, are computed at once: each channel of
`BatchedPrime` holds one of them.
"""

from __future__ import annotations

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

from ..fields.finite import BatchedPrime, Prime
from ..trace.arrays import Exact
from ..trace.copies import GlobalNames
from ..verdict.runs import Evaluation, ProofProblem, run

__all__ = ["Operation", "Site", "Step", "Trace", "WatchedPrime"]

Array = NDArray[Any]
MAX_STEPS = 2000  # largest number of operations of a function whose steps are examined
MAX_HEADER = (
    20  # lines, decorators included, within which the name of a function is looked for
)
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


class Step(NamedTuple):
    """One operation that the user's function has run."""

    name: str  # name of NumPy's function
    # the place of the operation, followed by those that called its function
    sites: tuple[Site, ...]
    residues: Array  # numbers of the result (size,)


class WatchedPrime(BatchedPrime):
    """The integers modulo a prime in 64 channels, with a function that watches all operations.

    Parameters
    ----------
    seed : int
        Seed of the prime and of all random numbers.
    watch : callable
        Called with each `Operation` of the user's function when it has run; returns its result,
        which may be changed.
    """

    def __init__(self, seed: int, watch: Callable[[Operation], Exact]) -> None:
        super().__init__(seed)
        self.watch = watch
        self.is_inside = (
            False  # whether an operation runs, whose own operations are no steps
        )

    def apply(
        self,
        name: str,
        operation: Callable[..., Any],
        inputs: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Return ``operation(*inputs, **options)`` after `watch` has seen it."""
        if self.is_inside:
            return operation(*inputs, **options)
        self.is_inside = True
        try:
            result = operation(*inputs, **options)
            if type(result) is Exact and not _is_view(result, inputs):
                result = self.watch(Operation(name, operation, inputs, options, result))
        finally:
            self.is_inside = False
        return result


def _is_view(result: Exact, inputs: Iterable[Any]) -> bool:
    """Return whether the result of an operation shares memory with one of its inputs."""
    return not result.residues.flags.writeable or any(
        type(x) is Exact and np.may_share_memory(x.residues, result.residues)
        for x in inputs
    )


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
    """The steps of a function at a random point, and their effects on value and gradient.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : array, shape (D,)
        The point at which the gradient is refuted.
    seed : int
        Seed of the prime, the random numbers and the random directions.

    Attributes
    ----------
    steps : list of Step
        The n steps in the order in which they run.
    value : int
        The value of the function.
    right : array of int, shape (D,)
        The right derivatives.
    excess : array of int, shape (D,)
        The hand-written derivatives minus the right ones.
    slopes : array of int, shape (n,)
        Derivatives of the value by a change of each step's result in a random direction.
    moves : array of int, shape (n, D)
        Derivatives of the hand-written gradient by the same changes.
    is_valid : bool
        Whether all square roots that the function takes exist at the random point.
    """

    def __init__(self, problem: ProofProblem, theta: Array, seed: int) -> None:
        self.problem = problem
        self.theta = theta
        self.seed = seed
        self.steps: list[Step] = []
        self.is_valid = True
        self._directions: dict[int, Array] = {}
        n_channels = BatchedPrime.n_channels
        self.right = np.zeros(theta.size, np.int64)
        self.excess = np.zeros(theta.size, np.int64)
        slopes = list[Array]()
        moves = list[Array]()
        # a channel for each coordinate of theta, then one for each step
        for start in count(0, n_channels):
            along = np.zeros((theta.size, n_channels), np.int64)
            coordinates = np.arange(start, min(start + n_channels, theta.size))
            along[coordinates, coordinates - start] = 1
            watch = partial(self._perturb, start - theta.size)
            evaluation = self.run(along, watch)
            field = evaluation.value.field
            self.value = int(evaluation.value.primal[0, 0])
            slope = evaluation.value.tangent[0]
            by_hand = evaluation.grad.primal[coordinates, 0]
            first = len(coordinates)
            self.right[coordinates] = slope[:first]
            self.excess[coordinates] = field.sub(by_hand, slope[:first])
            slopes.append(slope[first:])
            moves.append(evaluation.grad.tangent.T[first:])
            if start + n_channels >= theta.size + len(self.steps):
                break
        self.slopes = np.concatenate(slopes)[: len(self.steps)]
        self.moves = np.concatenate(moves)[: len(self.steps)]

    def direction(self, size: int) -> Array:
        """Return the random direction (size,) of all results of `size` numbers; [1] for size 1."""
        if size == 1:
            return np.ones(1, np.int64)
        if size not in self._directions:
            positions = np.arange(size)[:, None]
            direction = Prime(self.seed).random_function("direction", positions)
            self._directions[size] = direction[:, 0]
        return self._directions[size]

    def _perturb(self, start: int, k: int, operation: Operation) -> Exact:
        """Return the result of step k, with a random tangent added in channel k - `start`.

        The steps of the first run are recorded.
        """
        result = operation.result
        if start <= 0 and k == len(self.steps):
            numbers = result.primal[..., 0].ravel().copy()
            self.steps.append(Step(operation.name, _sites(), numbers))
            if k == MAX_STEPS:
                raise ValueError("the function has too many steps")
        channel = k - start
        if 0 <= channel < BatchedPrime.n_channels:
            tangent = result.tangent[..., channel]
            direction = self.direction(result.size).reshape(result.shape)
            tangent[...] = result.field.add(tangent, direction)
        return result

    def run(self, along: Array, watch: Callable[[int, Operation], Exact]) -> Evaluation:
        """Run the function on the exact numbers of this trace.

        Parameters
        ----------
        along : array, shape (D, 64)
            The directions of theta.
        watch : callable
            Called with the index of each step and its `Operation`; returns the result to use.

        Raises
        ------
        ValueError
            If the function runs other steps than in the first run.
        """
        indices = count()
        field = WatchedPrime(
            self.seed, lambda operation: watch(next(indices), operation)
        )
        evaluation = run(self.problem, self.theta, field, along)
        if next(indices) != len(self.steps):
            raise ValueError("two runs of the same function are different")
        self.is_valid &= not field.n_substituted
        return evaluation

"""One run of a function on exact numbers, and at how many points a field is asked (D44)."""

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
from ..fields.finite import Field, Gauss, Prime, Towers
from ..structures import StructureError, check_returned, copy_leaves
from ..trace.arrays import Exact, dual_residues, lift
from ..trace.copies import Copies
from .data import Data, exact

__all__ = [
    "ProofProblem",
    "TraceError",
    "comparisons_of",
    "run",
    "stop_gradient",
    "vanishes",
    "where",
]

Array = NDArray[Any]
# numbers: of more, one is 0 by chance modulo the small primes of `Towers`
LARGE_THETA = 20_000
MAX_POINTS = 32  # that are tried where there are roots
MIN_AGREEING_POINTS = (
    4  # of them have to agree, and all of those at which the roots exist
)


class TraceError(Exception):
    """Nothing can be said of the gradient at a theta, for this reason."""

    def __init__(self, verdict: str, reason: str) -> None:
        self.verdict, self.reason = verdict, reason


class ProofProblem(NamedTuple):
    """What is to be proved, how its parts are called, and what is known of the arguments."""

    value_and_grad: Callable[..., tuple[Any, ...]]
    arguments: tuple[Any, ...]
    names: Sequence[str]  # of the arguments
    data: tuple[Data, ...]  # free, fixed, or bound by a condition
    name: Callable[[int], str]
    blocks: Mapping[str, slice]
    seed: int
    copies: Copies  # of the function, and of what it reaches

    def excess(self, theta: Array, field: Field) -> Array:
        """Return `Evaluation.excess` at random numbers of a field."""
        return run(self, theta, field).excess()


class Evaluation(NamedTuple):
    """What a function returns, and the terms of its gradient times the direction."""

    value: Exact  # (1,)
    grad: Exact  # of the shape of theta
    terms: Array  # (D, C)

    def excess(self) -> Array:
        """Return the slope of the value along the direction less that of the gradient (D44)."""
        field = self.value.field
        return field.sub(self.value.tangent[0], field.sum(self.terms, 0))


def comparisons_of(field: Field) -> Array:
    """Return what all comparisons found, one after the other."""
    return np.concatenate([np.zeros(0, bool), *field.path])


def vanishes(
    excess: Callable[[Field], Array],
    seed: int,
    size: int,
    refuted: Callable[[], bool] = lambda: False,
) -> tuple[bool, Field]:
    """Return whether an excess is 0 at random points, and the last field.

    At all of them where the roots exist, and at four at least where there are roots: each of them
    has another sign there. A field that knows more laws is asked where the simplest says no, if
    there is anything that has laws, unless `refuted` says that none of them can help.
    """
    rooted = lawful = False
    kinds: tuple[type[Field], ...] = (Prime, Gauss, Towers)
    for kind in kinds:
        if (kind is Gauss and not rooted) or (
            kind is Towers and (size > LARGE_THETA or not lawful)
        ):
            continue
        if kind is not Prime and refuted():
            break
        agreed, levels = 0, np.ones(kind.n_levels, bool)
        for point in range(MAX_POINTS):
            field = kind(seed * MAX_POINTS + point)
            left = (excess(field) == 0).reshape(-1, field.n_channels).all(axis=0)
            zeros = left.reshape(field.n_levels, -1).all(axis=1)
            # an identity holds on the same one everywhere
            levels &= zeros | (field.n_substituted > 0)
            zero = (zeros & levels).any()
            agreed += bool(zero)
            rooted |= kind is Prime and field.n_substituted > 0
            lawful |= field.transcendental or field.n_roots > 0
            if agreed == MIN_AGREEING_POINTS or (agreed and not field.n_roots):
                return True, field
            if not zero and (not field.n_substituted or kind is Prime):
                break
            if (
                kind is Gauss
                and size <= LARGE_THETA
                and not agreed
                and point + 1 == MIN_AGREEING_POINTS
            ):
                # roots of roots are left to `Towers`, which knows the laws besides
                break
    return False, field


def stop_gradient(values: Any) -> Any:
    """Return a copy of an array whose numbers are the same and do not move: for what is frozen."""
    return values.stop_gradient() if type(values) is Exact else np.array(values)


def run(
    problem: ProofProblem,
    theta: Array,
    field: Field,
    direction: Array | None = None,
    trace: Callable[..., Any] | None = None,
) -> Evaluation:
    """Return what the function returns where theta moves in a direction, at random if not given."""
    direction = field.draw(theta.shape) if direction is None else direction
    pairs = zip(problem.arguments, problem.data, strict=True)
    given = [exact(one, field, data) for one, data in pairs]
    moving = Exact(field, dual_residues(field, field.variable(theta), direction), theta)
    at = copy_leaves((moving, *given), sealed=True)
    field.argument_moves = True
    try:
        with np.errstate(all="ignore"):
            returned = problem.copies.call(
                field, problem.value_and_grad, *at, trace=trace
            )
    except (NoSeries, StructureError):
        raise
    except Exception as error:
        verdict = "not proved" if OVERWRITTEN in str(error) else "not traceable"
        raise TraceError(verdict, where(error)) from error
    finally:
        field.squares.clear()  # no root comes any more, and they are many numbers
    check_returned(returned, theta.shape)
    try:
        value, grad = lift(returned[0], field).reshape(1), lift(returned[1], field)
        field.evaluation = Evaluation(value, grad, field.mul(grad.primal, direction))
        return field.evaluation
    except Exception as error:
        raise TraceError("not traceable", where(error)) from error


OVERWRITTEN = "read-only"  # says NumPy
# What to write instead, by what occurs in the line or in the message
ADVICE = {
    OVERWRITTEN: "the function overwrites theta or another argument; let it work on a copy",
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


def where(error: Exception) -> str:
    """Say which line cannot be traced, and what to write instead."""
    inside = (np.__path__[0], str(Path(__file__).parents[1]))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(inside)]
    line, place = "", ""
    if own:
        last = own[-1]
        line = linecache.getline(last.filename, last.lineno or 0).strip()
        place = f" in line {last.lineno} of {last.filename}"
        if Path(last.filename).parent.name.startswith("ipykernel"):
            place = f" in line {last.lineno} of the cell"
        place += f", `{line}`" * bool(line)
    told = f"{type(error).__name__}: {error}"
    advice = [
        text for words, text in ADVICE.items() if re.search(words, f"{line} {told}")
    ]
    called = ", ".join(dict.fromkeys(re.findall(r"\bnp\.[\w.]+", line)))
    what = f"{called}{place}" if called else place.removeprefix(" ")
    return (
        f"{what or 'a step'} has no exact form ({told}). "
        + "; or ".join(advice[:1]).capitalize()
    )

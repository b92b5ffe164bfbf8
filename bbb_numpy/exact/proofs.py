"""Prove a hand-written gradient in exact arithmetic (D44; of ours it imports `gradcheck`).

`gradcheck` compares a gradient with measured slopes, to 1e-12. Here the same function runs on the
residues of `numbers`, where nothing is rounded and no step is taken, at a random point and with
derivatives along a random direction. The gradient is *proved* if the derivative of the value is
``grad . direction`` at every point where the roots exist, and if at theta itself, with sixty
digits, the value exists and the two agree once more: the sign of a root has a meaning there.

A difference of the two that is not zero everywhere is a rational function of the random numbers,
and by the lemma of Schwartz and Zippel zero at a random point with a probability of at most its
degree / p: with a degree of a thousand 1e-15. What is proved holds on the paths of comparisons
that were taken (which ReLU units are on, which branch of a stable formula), that of the given theta
and those of others near it, and for numbers of infinite precision: rounding and overflow are the
business of `gradcheck`. What a proof cannot see is listed in D44, each with an example.

>>> import numpy as np
>>> def cubic(theta):
...     return (theta**3).sum(), 3 * theta**2
>>> print(prove(cubic, np.array([1.0, -2.0, 0.5])))
proved: all 3 derivatives are exact
>>> def wrong(theta):
...     return (theta**3).sum(), 3 * theta**2 + np.array([0, 1e-13, 0])
>>> print(prove(wrong, np.array([1.0, -2.0, 0.5])))
refuted: 1 of 3 derivatives is wrong
  theta[1]: by hand 12.0000000000001, right 12, too large by 1e-13
"""

from __future__ import annotations

import linecache
import operator
import random
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..gradcheck import check_callable, check_returned, checked_arguments
from .numbers import DIGITS, Number, Untraceable, exact, long, untangled, variables, within

__all__ = ["Proof", "Wrong", "prove", "prove_same"]

Array = NDArray[Any]
ValueAndGrad = Callable[..., tuple[Any, ...]]

POINTS = 32  # that are tried where there are roots
AGREED = 4  # of them have to agree, and all of those at which the roots exist
SAME = Decimal("1e-35")  # relative difference at which two of them are the same number
SMALL = Decimal("1e-20")  # of the largest derivative: smaller ones are held to that error
ROUNDED = Decimal("1e-15")  # what the rounding of float constants may do to a derivative
SHAKEN = Decimal("1e-9")  # up to here it is asked what their rounding does
CONSTANT = Decimal("1e-13")  # and to a value
FLOATS = 1e-3  # relative difference of floats and of sixty digits that is not rounding


class Wrong(NamedTuple):
    """One wrong derivative."""

    name: str
    by_hand: Decimal
    right: Decimal

    def __str__(self) -> str:
        excess = self.by_hand - self.right
        way = "too large" if excess > 0 else "too small"
        shown = f"by hand {float(self.by_hand):.15g}, right {float(self.right):.15g}"
        return f"{self.name}: {shown}, {way} by {float(abs(excess)):.3g}"


@dataclass(frozen=True)
class Proof:
    """Result of `prove`; its truth value is whether it is proved, for ``assert prove(f, theta)``.

    The verdict is *proved*, *refuted*, *not proved* (a gradient whose sixty digits are right, by an
    identity that the field does not know, or a function that has no value at theta or is none of
    its arguments) or *not traceable* (a function with a step that has no exact form).
    """

    verdict: str
    coordinates: int  # the length of theta
    wrong: tuple[Wrong, ...] = ()  # what is refuted
    reason: str = ""  # why it is not proved or not traceable, and what to do
    theta: Array | None = field(default=None, compare=False)  # where it fails, if elsewhere
    paths: int = field(default=1, compare=False)  # of comparisons, that were taken
    comparisons: int = field(default=0, compare=False)  # on one of them
    one_way: int = field(default=0, compare=False)  # that went one way only
    of_values: bool = field(default=False, compare=False)

    def __bool__(self) -> bool:
        return self.proved

    @property
    def proved(self) -> bool:
        """Whether the gradient is exact."""
        return self.verdict == "proved"

    def __str__(self) -> str:
        where = "" if self.theta is None else f" at another theta, {np.array2string(self.theta)}"
        if self.proved:
            what = f"all {self.coordinates} derivatives are exact"
            what = "the two values are the same" if self.of_values else what
            return f"proved: {what}{self._on_which_path()}"
        if self.reason:
            return f"{self.verdict}{where}: {self.reason}"
        is_are = "is" if len(self.wrong) == 1 else "are"
        head = f"refuted{where}: {len(self.wrong)} of {self.coordinates} derivatives {is_are} wrong"
        return "\n  ".join([head, *map(str, self.wrong)])

    def _on_which_path(self) -> str:
        if not self.comparisons:
            return ""
        if self.paths == 1:
            return f", on this path of {self.comparisons} comparisons"
        ways = f"{self.one_way} of {self.comparisons} went one way only"
        return (
            f", on {self.paths} paths of comparisons; "
            f"{ways if self.one_way else 'each of them went both ways'}"
        )


def prove(
    value_and_grad: ValueAndGrad,
    theta: Array,
    *arguments: Any,
    blocks: Mapping[str, slice] | None = None,
    coordinate: Callable[[int], str] | None = None,
    points: int = 8,
    seed: int = 0,
) -> Proof:
    """Prove or refute that `value_and_grad` returns the gradient of its value (D44).

    Parameters
    ----------
    value_and_grad : callable
        From theta and the `arguments` to a scalar and a gradient of the shape of theta; what it
        returns after these two is not looked at. It gets arrays of dtype object and may use
        ``+ - * / **``, ``abs``, comparisons, sums, products of matrices, and NumPy's ``exp``,
        ``log``, ``log1p``, ``expm1``, ``sqrt``, ``tanh``.
    theta : ndarray (D,)
        float64: it chooses the path of comparisons.
    *arguments
        Data, noise and constants. Floats and arrays of floats, also in tuples, lists and dicts, are
        exact too, and the proof is for all their values on the same path. Other constants should be
        whole numbers or halves, quarters, ...: ``1 / 0.7`` is rounded, and a value and a gradient
        may round it differently.
    blocks : mapping of str to slice, optional
        Named parts of theta, for the names of coordinates. Default: one block ``theta``.
    coordinate : callable, optional
        From a flat index to a readable name.
    points : int
        So many other thetas are tried where anything is compared or a root is taken, of twice the
        size of the given one down to a thousandth; where the value does not exist they are passed
        over. 0: prove the path of the given theta alone.
    seed : int
        Of the random numbers.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError, ValueError
        For an argument of another kind or out of range, which is named, and if `value_and_grad`
        returns anything but a number and a gradient of the shape of theta.
    """
    theta, name = checked_arguments(value_and_grad, theta, blocks, coordinate)
    if not theta.size:
        raise ValueError("theta is empty: there is no derivative to prove")
    asked = _Asked(value_and_grad, arguments, name, operator.index(seed))
    try:
        proof, laws = _prove_at(asked, theta)  # D44
    except _Stopped as stopped:
        return Proof(stopped.verdict, theta.size, reason=stopped.reason)
    ways, paths = [{found} for found in laws.path], {tuple(laws.path)}
    # without comparisons and roots there is one path; where digits agree for a reason that the
    # field does not know, two other thetas may show that they need not
    proved = points if laws.path or laws.roots else 0
    tries = {"proved": proved, "refuted": 0}.get(proof.verdict, min(points, 2))
    for there in islice(_moved(theta, random.Random(asked.seed)), tries):
        try:
            other, laws = _prove_at(asked, there)
        except _Stopped:
            continue
        if other.verdict == "refuted" or (proof and not other):
            return replace(other, theta=there)
        paths.add(tuple(laws.path))
        both = zip_longest(ways, [{found} for found in laws.path], fillvalue=set[bool]())
        ways = [old | new for old, new in both]
    one_way = sum(len(way) == 1 for way in ways)
    return replace(proof, paths=len(paths), comparisons=len(ways), one_way=one_way)


def prove_same(
    first: Callable[..., Any], second: Callable[..., Any], *arguments: Any, seed: int = 0
) -> Proof:
    """Prove or refute that two functions have the same value, a coded one and a formula (D44).

    Exactly, up to a constant: their difference does not move when all exact arguments do. The
    constant itself is the rounding of the functions' own constants (log 2 pi), or an error: it is
    computed to sixty digits and must be below 1e-13 of the value, or of 1 if that is more.

    Parameters
    ----------
    first, second : callable
        From the `arguments` to a number.
    *arguments
        As in `prove`; floats and arrays of floats move. Fix a constant in the functions, or give
        it as a fraction.
    seed : int
        Of the random numbers.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError
        If `first` or `second` cannot be called, or `seed` is no whole number.
    """
    check_callable("first", first)
    check_callable("second", second)
    seed = operator.index(seed)

    def values(kind: type[Number]) -> list[Number]:
        at = exact(arguments, kind, moving=True)
        with np.errstate(all="ignore"):
            return [_number(function(*_copied(at)), kind) for function in (first, second)]

    def excess(kind: type[Number]) -> Any:
        return operator.sub(*(value.b for value in values(kind)))

    try:
        same, kind = _in_fields(excess, seed)
        with localcontext(_context(DIGITS)):
            one, other = values(long(seed))
            pairs = (Wrong("value", one.a, other.a), Wrong("slope", one.b, other.b))
            wrong = [
                found
                for found in pairs
                if abs(found.by_hand - found.right)
                > CONSTANT * max(abs(found.by_hand), abs(found.right), Decimal(1))
            ]
    except Exception as error:
        return Proof("not traceable", 1, reason=_where(error))
    reason = ""
    if not all(number.is_finite() for number in (one.a, one.b, other.a, other.b)):
        reason = NOWHERE
    elif wrong:
        return Proof("refuted", 1, tuple(wrong[:1]))
    elif not same:
        reason = (
            f"the values are {abs(one.a - other.a):.1g} apart, by an identity between "
            "exponentials, logarithms or roots that the field does not know, or by constants that "
            "are rounded differently"
        )
    elif not kind.laws.moved:
        reason = "no argument moves: floats and arrays of floats do, whole numbers are constants"
    if reason:
        return Proof("not proved", 1, reason=reason)
    return Proof("proved", 1, comparisons=len(kind.laws.path), of_values=True)


NOWHERE = (
    "there is no value or no derivative here: something is divided by 0, or is the logarithm or "
    "the root of a negative number. Take a theta at which the function is defined"
)


class _Stopped(Exception):
    """Nothing can be said of the gradient at a theta, for this reason."""

    def __init__(self, verdict: str, reason: str) -> None:
        self.verdict, self.reason = verdict, reason


class _Asked(NamedTuple):
    """What is to be proved, and the names of its coordinates."""

    value_and_grad: ValueAndGrad
    arguments: tuple[Any, ...]
    name: Callable[[int], str]
    seed: int


def _moved(theta: Array, draw: random.Random) -> Iterator[Array]:
    """Yield other thetas: close to 0, where gates are, of twice the size, and of the same signs."""
    size = np.abs(theta)
    size[size == 0] = np.linalg.norm(theta) / max(1, theta.size) ** 0.5 or 1.0
    while True:
        normal = np.array([[draw.gauss(0, 1) for _ in theta] for _ in range(4)])
        yield size * normal[0] * 10 ** -draw.uniform(1, 3)
        yield 2 * size * normal[1]
        yield size * normal[2] * 10 ** -draw.uniform(0, 2)
        yield theta * np.exp(normal[3] / 2)


class _Found(NamedTuple):
    """What a function returns, and the terms of its gradient times the direction."""

    value: Number
    grad: list[Number]
    terms: list[Any]

    def numbers(self) -> list[Any]:
        """Return value and gradient without their derivatives."""
        return [self.value.a, *(g.a for g in self.grad)]

    def excess(self) -> Any:
        """Return the slope of the value along the direction less that of the gradient (D44)."""
        return self.value.b - sum(self.terms)


def _prove_at(asked: _Asked, theta: Array) -> tuple[Proof, Any]:
    """Return the proof on the path of one theta, and the laws that hold the path."""
    same, kind = _in_fields(partial(_excess, asked, theta), asked.seed)
    agree, digits = False, DIGITS
    for digits in (DIGITS, 5 * DIGITS):  # the more where most of sixty cancel
        with localcontext(_context(digits)):
            found = _run(asked, theta, long(asked.seed))
            size = sum(map(abs, found.terms), abs(found.value.b))
            exists = (found.value.a + size).is_finite()
            agree = exists and abs(found.excess()) <= SAME * size
        if agree:
            break
    if not exists:
        raise _Stopped("not proved", NOWHERE)
    if same and agree:
        reason = _otherwise_in_floats(asked, theta, found)
        proof = Proof("not proved" if reason else "proved", theta.size, reason=reason)
    else:
        proof = _amounts(asked, theta, kind, digits)
    return proof, kind.laws


def _excess(asked: _Asked, theta: Array, kind: Any) -> Any:
    return _run(asked, theta, kind).excess()


def _in_fields(excess: Callable[[Any], Any], seed: int) -> tuple[bool, Any]:
    """Return whether an excess is 0 at all random points where its roots exist, and the last."""
    agreed = 0
    for point in range(POINTS):
        kind = untangled(seed * POINTS + point)
        if excess(kind) % kind.modulus == 0:
            agreed += 1
        elif not kind.laws.loose:
            return False, kind
        if agreed == AGREED or (agreed and not kind.laws.roots):
            return True, kind
    return False, kind


def _context(digits: int) -> Context:
    return Context(digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _otherwise_in_floats(asked: _Asked, theta: Array, found: _Found) -> str:
    """Say that the function returns something else for floats than for exact numbers, if so."""
    try:
        with np.errstate(all="ignore"):
            value, grad = asked.value_and_grad(theta.copy(), *_copied(asked.arguments))[:2]
            ours, right = np.array([[value, *grad], found.numbers()], float)
    except Exception:  # a function of exact numbers alone, or values beyond floats
        return ""
    if not np.isfinite([ours, right]).all():
        return ""
    size = np.full(right.size, max(1e-6, 1e-6 * abs(right[0]), *np.abs(right[1:])))
    size[0] += abs(right[0])
    apart = np.abs(ours - right) > FLOATS * size
    if not apart.any():
        return ""
    at = int(np.argmax(apart))
    return (
        f"with floats the {'gradient' if at else 'value'} is another, {ours[at]:.6g} for "
        f"{right[at]:.6g}: the function asks for the dtype of theta, keeps something from call "
        "to call, or its floats have lost their digits"
    )


def _number(value: Any, kind: type[Number]) -> Number:
    """Return what a function returned as an exact number."""
    found = np.asarray(value, object).item()
    if isinstance(found, Number) and type(found) is not kind:
        raise Untraceable("a number of an earlier call is returned: the function keeps it")
    return found if isinstance(found, Number) else kind.constant(found)


def _copied(values: Any, writeable: bool = True) -> Any:
    """Return the same with arrays of its own."""
    if isinstance(values, tuple | list | dict):
        return within(values, partial(_copied, writeable=writeable))
    if isinstance(values, np.ndarray):
        values = values.copy()
        values.flags.writeable = writeable
    return values


def _run(asked: _Asked, theta: Array, kind: type[Number], direction: Any = None) -> _Found:
    """Return what the function returns where theta moves in a direction, at random if not given."""
    direction = [kind.tangent() for _ in theta] if direction is None else direction
    at = _copied((variables(theta, direction, kind), *exact(asked.arguments, kind)), False)
    try:
        with np.errstate(all="ignore"):  # of the floats that decide comparisons
            returned = asked.value_and_grad(*at)
    except Exception as error:
        verdict = "not proved" if OVERWRITTEN in str(error) else "not traceable"
        raise _Stopped(verdict, _where(error)) from error
    check_returned(returned, theta.shape)
    try:
        grad = [_number(one, kind) for one in np.asarray(returned[1], object)]
        terms = [g.a * d for g, d in zip(grad, direction, strict=True)]
        return _Found(_number(returned[0], kind), grad, terms)
    except Exception as error:
        raise _Stopped("not traceable", _where(error)) from error


def _amounts(asked: _Asked, theta: Array, kind: Any, digits: int) -> Proof:
    """Find the wrong derivatives with many digits, one direction after the other."""
    hand, right = [], []
    with localcontext(_context(digits)):
        decimals = long(asked.seed)
        for j in range(theta.size):
            direction = [int(k == j) for k in range(theta.size)]
            found = _run(asked, theta, decimals, direction)
            hand.append(found.grad[j].a)
            right.append(found.value.b)
        again = _run(asked, theta, decimals, direction)
        size = max(map(abs, right))
        wrong = [
            Wrong(asked.name(j), h, r)
            for j, (h, r) in enumerate(zip(hand, right, strict=True))
            if not abs(h - r) <= SAME * max(abs(h), SMALL * size)
        ]
        worst = max((abs(one.by_hand - one.right) for one in wrong), default=Decimal(0))
        rounded = worst < ROUNDED * size
        if wrong and not rounded and worst < SHAKEN * max(size, Decimal(1)):
            # along one direction, with floats shaken in their last digit
            still, *shaken = (_excess(asked, theta, long(asked.seed, k)) for k in range(7))
            rounded = worst < 1000 * max(abs(one - still) for one in shaken)
    reason = ""
    if found.numbers() != again.numbers():
        reason = (
            "two calls with the same numbers return different ones: something is kept from call "
            "to call, or noise is drawn inside. Pass it as an argument"
        )
    elif not wrong:
        reason = "all derivatives are right to 35 digits here, but " + _why(kind.laws)
    elif rounded:
        reason = (
            f"derivatives differ by {worst:.1g}, as the rounding of a float "
            "constant may make them, or of data that sum to 1. Pass constants as arguments, or "
            "make them binary fractions"
        )
    if reason:
        return Proof("not proved", theta.size, reason=reason)
    return Proof("refuted", theta.size, tuple(wrong))


def _why(laws: Any) -> str:
    """Say why the field does not agree where the digits do, and what to do."""
    if laws.loose:
        return (
            f"by the square of a root: its {len(laws.roots)} roots exist together at too few "
            "random points. Write the root times itself for what it is the root of, or prove with "
            "fewer rows"
        )
    identity = (
        "by an identity between exponentials, logarithms or roots that the field does not know "
        "(write value and gradient with the same exponentials), or "
    )
    return (
        f"{identity if laws.roots or laws.transcendental else ''}for these numbers alone: by what "
        "theta, the arguments or the constants have in common, as weights that sum to 1 or rows "
        "with a single 1. Whole numbers are constants: pass such data as integers, or let the "
        "function hold them instead of taking them"
    )


OVERWRITTEN = "read-only"  # says NumPy
# What to write instead, by what occurs in the line or in the message
ADVICE = {
    OVERWRITTEN: "the function overwrites theta or another argument; let it work on a copy",
    "linalg": "write the elimination itself, or pass its result as an argument",
    "isfinite|isnan|isinf": "compare instead: (x > -np.inf) & (x < np.inf)",
    "finfo": "write the constant itself",
    "logaddexp": "write m + np.log(np.exp(a - m) + np.exp(b - m)) with m the larger",
    "expit|special": "write it with np.exp and np.log, for instance 1 / (1 + np.exp(-x))",
    "math": "use NumPy's function, which takes arrays of any dtype",
    "float|astype|dtype": "keep the dtype of theta: np.zeros_like(theta), no float()",
    "no callable (exp|expm1|log|log1p|sqrt|tanh)": "some entries are plain: write 0 * t for 0",
    "has no attribute 'sum'": "write np.sum(...)",
    r"\b(sin|cos|tan|arctan)\b": "use exp, log, sqrt, tanh and rational functions, not sines",
}


def _where(error: Exception) -> str:
    """Say which line cannot be traced, and what to write instead."""
    inside = (np.__path__[0], str(Path(__file__).parent))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(inside)]
    line, place = "", ""
    if own:
        last = own[-1]
        line = linecache.getline(last.filename, last.lineno or 0).strip()
        place = f" in line {last.lineno} of {last.filename}, `{line}`"
    told = f"{type(error).__name__}: {error}"
    advice = [text for words, text in ADVICE.items() if re.search(words, f"{line} {told}")]
    called = ", ".join(dict.fromkeys(re.findall(r"\bnp\.[\w.]+", line)))
    what = f"{called}{place}" if called else place.removeprefix(" ")
    return (
        f"{what or 'a step'} has no exact form ({told}). " + "; or ".join(advice[:1]).capitalize()
    )

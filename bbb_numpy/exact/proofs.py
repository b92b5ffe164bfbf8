"""Prove a hand-written NumPy gradient in exact arithmetic (D44; of ours it imports `gradcheck`).

`gradcheck` compares a gradient with measured slopes, to 1e-12. Here the same function runs on
`arrays` of residues, where nothing is rounded and no step is taken, at a random point and with
derivatives along a random direction. The gradient is *proved* if the derivative of the value is
``grad . direction`` at every point where the roots exist, and if at theta itself, with sixty
digits, the value exists and the two agree once more: the sign of a root has a meaning there. Of
more than 256 numbers floats say whether the value exists.

A difference of the two that is not zero everywhere is a rational function of the random numbers,
and by the lemma of Schwartz and Zippel zero at a random point with a probability of at most its
degree / p: with a degree of a thousand 2e-12. What is proved holds on the paths of comparisons
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

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradcheck import check_callable, checked_arguments
from .digits import DIGITS, Digits, NoDigits, context
from .fields import Field
from .makers import proving
from .runs import (
    LARGE,
    Asked,
    Stopped,
    asked_fields,
    copied,
    exact,
    number,
    path_of,
    run,
    still,
    where,
)
from .wrong import SAME, Wrong, WrongBlock, amounts, in_floats, located, slopes

__all__ = ["Proof", "Wrong", "WrongBlock", "prove", "prove_same", "still"]

Array = NDArray[Any]
ValueAndGrad = Callable[..., tuple[Any, ...]]

SIXTY_DIGITS = 256  # numbers of theta of which decimals are computed
MOVED = 500_000  # numbers of other thetas that are tried in all
CONSTANT = Decimal("1e-13")  # what the rounding of constants may do to a value


@dataclass(frozen=True)
class Proof:
    """Result of `prove`; its truth value is whether it is proved, for ``assert prove(f, theta)``.

    The verdict is *proved*, *refuted*, *not proved* (a gradient whose sixty digits are right, by an
    identity that the field does not know, or a function that has no value at theta or is none of
    its arguments) or *not traceable* (a function with a step that has no exact form).
    """

    verdict: str
    coordinates: int  # the length of theta
    wrong: tuple[Any, ...] = ()  # what is refuted: `Wrong` coordinates, or `WrongBlock`s
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
        is_are, count = ("is" if len(self.wrong) == 1 else "are"), len(self.wrong)
        head = f"refuted{where}: {count} of {self.coordinates} derivatives {is_are} wrong"
        if any(isinstance(one, WrongBlock) for one in self.wrong):
            head = f"refuted{where}: of {count} blocks the derivatives are wrong"
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
        returns after these two is not looked at. It gets exact arrays, which NumPy's functions
        take: arithmetic, comparisons, reductions, shapes, indices and writing by index,
        `numpy.linalg`, elementary functions and those of `scipy.special`. Arrays that it makes by
        ``np.zeros``, ``np.empty``, ... are exact too. `function` adds what is not known.
    theta : ndarray (D,)
        float64: it chooses the path of comparisons.
    *arguments
        Data, noise and constants. Floats and arrays of floats, also in tuples, lists and dicts, are
        exact too, and the proof is for all their values on the same path. Other constants should be
        whole numbers or halves, quarters, ...: ``1 / 0.7`` is rounded, and a value and a gradient
        may round it differently.
    blocks : mapping of str to slice, optional
        Named parts of theta, for the names of coordinates, and for what is wrong with a large
        theta. Default: one block ``theta``.
    coordinate : callable, optional
        From a flat index to a readable name.
    points : int
        So many other thetas are tried where anything is compared or a root is taken, of twice the
        size of the given one down to a thousandth; where the value does not exist they are passed
        over. Of more than 60,000 numbers there are fewer. 0: prove the path of the given theta.
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
    parts = blocks or {"theta": slice(0, theta.size)}
    asked = Asked(value_and_grad, arguments, name, parts, operator.index(seed))
    try:
        proof, kind = _prove_at(asked, theta)  # D44
    except Stopped as stopped:
        return Proof(stopped.verdict, theta.size, reason=stopped.reason)
    paths = [path_of(kind)]
    # without comparisons and roots there is one path; where digits agree for a reason that the
    # field does not know, two other thetas may show that they need not
    branches = kind.path or kind.roots or (kind.laws and kind.transcendental)
    proved = min(points, MOVED // theta.size) if branches else 0
    unsure = points if kind.roots else min(points, 2)
    tries = {"proved": proved, "not proved": unsure, "refuted": 0}[proof.verdict]
    for there in islice(_moved(theta, np.random.default_rng(asked.seed)), tries):
        try:
            other, kind = _prove_at(asked, there)
        except Stopped:
            continue
        if other.verdict == "refuted" or (proof and not other):
            return replace(other, theta=there)
        paths.append(path_of(kind))
    most = max(map(len, paths))
    went = [np.concatenate([way, np.zeros(most - len(way), bool)]) for way in paths]
    one_way = int((np.all(went, axis=0) | ~np.any(went, axis=0)).sum())
    several = len({way.tobytes() for way in paths})
    return replace(proof, paths=several, comparisons=most, one_way=one_way)


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

    def values(field: Field) -> list[tuple[Any, Any]]:
        given = exact(arguments, field, moving=True)
        with np.errstate(all="ignore"), proving(field, first, second):
            found = [number(function(*copied(given)), field) for function in (first, second)]
        return [(one.a[0], one.b[0] + 0 * one.a[0]) for one in found]

    def excess(field: Field) -> Array:
        (_, slope), (_, other) = values(field)
        return field.sub(slope, other)

    try:
        same, kind = asked_fields(excess, seed, LARGE)
        with localcontext(context(DIGITS)):
            (one, slope), (other, its_slope) = values(Digits(seed))
            pairs = (Wrong("value", one[0], other[0]), Wrong("slope", slope[0], its_slope[0]))
            wrong = [
                found
                for found in pairs
                if abs(found.by_hand - found.right)
                > CONSTANT * max(abs(found.by_hand), abs(found.right), Decimal(1))
            ]
    except Exception as error:
        return Proof("not traceable", 1, reason=where(error))
    one, other, slope, its_slope = one[0], other[0], slope[0], its_slope[0]
    reason = ""
    if not all(number.is_finite() for number in (one, other, slope, its_slope)):
        reason = NOWHERE
    elif wrong:
        return Proof("refuted", 1, tuple(wrong[:1]))
    elif not same:
        reason = (
            f"the values are {abs(one - other):.1g} apart, by an identity between "
            "exponentials, logarithms or roots that the field does not know, or by constants that "
            "are rounded differently"
        )
    elif not kind.moved:
        reason = "no argument moves: floats and arrays of floats do, whole numbers are constants"
    if reason:
        return Proof("not proved", 1, reason=reason)
    return Proof("proved", 1, comparisons=len(path_of(kind)), of_values=True)


FLOATS = (
    "along a random direction the slope of floats is {:.6g} by hand and {:.6g} by differences: "
    "the function asks for the kind of theta, keeps something from call to call, or its floats "
    "have lost their digits"
)
NOWHERE = (
    "there is no value or no derivative here: something is divided by 0, or is the logarithm or "
    "the root of a negative number. Take a theta at which the function is defined"
)


def _moved(theta: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Yield other thetas: of all other signs, close to 0, where gates are, of twice the size."""
    yield -theta
    size = np.abs(theta)
    size[size == 0] = np.linalg.norm(theta) / max(1, theta.size) ** 0.5 or 1.0
    while True:
        normal = rng.standard_normal((4, theta.size))
        yield size * normal[0] * 10 ** -rng.uniform(1, 3)
        yield 2 * size * normal[1]
        yield size * normal[2] * 10 ** -rng.uniform(0, 2)
        yield theta * np.exp(normal[3] / 2)


def _prove_at(asked: Asked, theta: Array) -> tuple[Proof, Field]:
    """Return the proof on the path of one theta, and the field that holds the path."""
    same, kind = asked_fields(partial(asked.excess, theta), asked.seed, theta.size)
    if theta.size > SIXTY_DIGITS and not (same and kind.laws):
        return _prove_large(asked, theta, same, kind), kind
    try:
        return _prove_small(asked, theta, same, kind), kind
    except NoDigits:
        return _prove_large(asked, theta, same, kind), kind


def _prove_small(asked: Asked, theta: Array, same: bool, kind: Field) -> Proof:
    """Return the proof where decimals say whether the value exists, and how wrong a slope is."""
    agree, digits = False, DIGITS
    for digits in (DIGITS, 5 * DIGITS):  # the more where most of sixty cancel
        with localcontext(context(digits)):
            found = run(asked, theta, Digits(asked.seed))
            size = abs(found.terms).sum() + abs(found.value.b[0, 0])
            exists = (found.value.a[0, 0] + size).is_finite()
            agree = exists and abs(found.excess()[0]) <= SAME * size
        if agree:
            break
    if not exists:
        raise Stopped("not proved", NOWHERE)
    wrong: tuple[Any, ...] = ()
    if same and agree:
        reason = in_floats(asked, theta, found.value.a[0, 0], found.grad.a[:, 0])
    else:
        reason, wrong = amounts(asked, theta, kind, digits)
    verdict = "not proved" if reason else "refuted" if wrong else "proved"
    return Proof(verdict, theta.size, wrong, reason)


def _prove_large(asked: Asked, theta: Array, same: bool, kind: Field) -> Proof:
    """Return the proof where decimals take too long: floats say whether the value exists."""
    hand, right = slopes(
        asked, theta, np.random.default_rng(asked.seed).standard_normal(theta.size)
    )
    if not np.isfinite([hand, right]).all():
        raise Stopped("not proved", NOWHERE)
    reason, wrong = (FLOATS.format(hand, right), ()) if same else located(asked, theta, kind)
    if same and abs(hand - right) <= 1e-3 * max(abs(hand), abs(right)):
        return Proof("proved", theta.size)
    return Proof("not proved" if reason else "refuted", theta.size, wrong, reason)

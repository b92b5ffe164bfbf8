"""Prove a hand-written gradient in exact arithmetic (D44; of ours it imports `gradcheck`).

`gradcheck` compares a gradient with measured slopes, to 1e-12. Here the same function runs on
numbers of a finite field, where nothing is rounded and no step is taken:

* every number is a residue modulo the prime p = 2^61 - 1, at a random point, with its derivative
  along a random direction, and a float that decides comparisons and nothing else;
* exp of an argument of which nothing is known is a random residue, log the inverse of exp, both
  with their exact derivatives and the laws ``exp(a + b) = exp(a) exp(b)``;
* the gradient is *proved* if the derivative of the value equals ``grad . direction`` in the field.

A difference of the two that is not zero everywhere is a rational function of the random numbers,
and by the lemma of Schwartz and Zippel zero at a random point with a probability of at most its
degree / p: with a degree of a thousand 4e-16. What is proved holds for one path of comparisons
(which ReLU units are on, which branch of a stable formula is taken), that of the given theta, and
for numbers of infinite precision: rounding and overflow are the business of `gradcheck`.

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
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..gradcheck import check_blocks, check_callable, check_returned, check_theta
from .numbers import PRIME, Long, Number, exact, untangled, variables

__all__ = ["Proof", "Wrong", "prove", "prove_same"]

Array = NDArray[Any]
ValueAndGrad = Callable[..., tuple[Any, ...]]

POINTS = 8  # that are tried where there are roots
DIGITS = 60  # of the numbers that say by how much a gradient is wrong
SAME = Decimal("1e-35")  # relative difference at which two of them are the same number
SMALL = Decimal("1e-20")  # of the largest derivative: smaller ones are held to that error
ROUNDED = Decimal("1e-15")  # what the rounding of float constants may do to a derivative
CONSTANT = Decimal("1e-13")  # and to a value


class Wrong(NamedTuple):
    """One wrong derivative."""

    name: str
    by_hand: Decimal
    right: Decimal

    def __str__(self) -> str:
        excess = self.by_hand - self.right
        way = "too large" if excess > 0 else "too small"
        shown = f"by hand {self.by_hand:.15g}, right {self.right:.15g}"
        return f"{self.name}: {shown}, {way} by {float(abs(excess)):.3g}"


@dataclass(frozen=True)
class Proof:
    """Result of `prove`.

    Attributes
    ----------
    verdict : {'proved', 'refuted', 'not proved', 'not traceable'}
        *Not proved* is a gradient whose sixty digits are right, by an identity that the field
        does not know; *not traceable* a function with a step that has no exact form.
    coordinates : int
        Length of theta.
    wrong : tuple of Wrong
        What is refuted.
    reason : str
        Why it is not proved or not traceable, and what to do.
    """

    verdict: str
    coordinates: int
    wrong: tuple[Wrong, ...] = ()
    reason: str = ""

    @property
    def proved(self) -> bool:
        """Whether the gradient is exact."""
        return self.verdict == "proved"

    def __str__(self) -> str:
        if self.proved:
            return f"proved: all {self.coordinates} derivatives are exact"
        if self.reason:
            return f"{self.verdict}: {self.reason}"
        is_are = "is" if len(self.wrong) == 1 else "are"
        head = f"refuted: {len(self.wrong)} of {self.coordinates} derivatives {is_are} wrong"
        return "\n  ".join([head, *map(str, self.wrong)])


def prove(
    value_and_grad: ValueAndGrad,
    theta: Array,
    *arguments: Any,
    blocks: Mapping[str, slice] | None = None,
    coordinate: Callable[[int], str] | None = None,
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
        Data, noise and constants. Floats and arrays of floats are exact too, and the proof is for
        all their values on the same path. Other constants should be whole numbers or halves,
        quarters, ...: ``1 / 0.7`` is rounded, and a value and a gradient may round it differently.
    blocks : mapping of str to slice, optional
        Named parts of theta, for the names of coordinates. Default: one block ``theta``.
    coordinate : callable, optional
        From a flat index to a readable name.
    seed : int
        Of the random numbers.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError
        For a function, blocks or a seed of another kind, which is named.
    ValueError
        If a block ends beyond theta, theta is not a flat finite float64 array, or
        `value_and_grad` returns anything but a number and a gradient of the shape of theta.
    """
    check_callable("value_and_grad", value_and_grad, "of theta and the arguments")
    _check_seed(seed)
    if coordinate is not None:
        check_callable("coordinate", coordinate, "from an index to its name")
    theta = check_theta(theta, "prove")
    if blocks is not None:
        check_blocks(blocks, theta.size)
    for point in range(POINTS):
        kind = untangled(seed * POINTS + point)
        direction = [kind.tangent() for _ in theta]
        try:
            returned = _run(value_and_grad, theta, direction, arguments, kind)
        except Exception as error:
            return Proof("not traceable", theta.size, reason=_where(error))
        check_returned(returned, theta.shape)
        try:
            value, grad = _parts(returned, kind)
        except Exception as error:
            return Proof("not traceable", theta.size, reason=_where(error))
        total = sum(g.a * d for g, d in zip(grad, direction, strict=True))
        if value.b == total % PRIME:  # D44
            return Proof("proved", theta.size)
        if not kind.laws.roots:
            break
    return _amounts(value_and_grad, theta, arguments, _namer(blocks, coordinate))


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
    check_callable("first", first, "of the arguments")
    check_callable("second", second, "of the arguments")
    _check_seed(seed)
    for point in range(POINTS):
        kind = untangled(seed * POINTS + point)
        at = exact(arguments, kind, moving=True)
        try:
            values = [_number(function(*at), kind) for function in (first, second)]
        except Exception as error:
            return Proof("not traceable", 1, reason=_where(error))
        moves = values[0].b != values[1].b
        if not moves or not kind.laws.roots:
            break
    with localcontext(Context(DIGITS, traps=[])):
        at = exact(arguments, Long)
        one, other = (_number(function(*at), Long).a for function in (first, second))
        apart, size = abs(one - other), max(abs(one), abs(other), Decimal(1))
        differ = apart > CONSTANT * size
    if differ:
        return Proof("refuted", 1, (Wrong("value", one, other),))
    if moves:
        reason = (
            f"the values are {apart:.1g} apart, by an identity between exponentials, logarithms or "
            "roots that the field does not know, or by constants that are rounded differently"
        )
        return Proof("not proved", 1, reason=reason)
    return Proof("proved", 1)


def _check_seed(seed: Any) -> None:
    if isinstance(seed, bool | np.timedelta64) or not isinstance(seed, Integral):
        raise TypeError(f"seed must be a whole number; got {seed!r}")


def _number(value: Any, kind: type[Number]) -> Number:
    """Return what a function returned as an exact number."""
    found = np.asarray(value, object).item()
    return found if isinstance(found, Number) else kind.constant(found)


def _run(
    value_and_grad: ValueAndGrad,
    theta: Array,
    direction: Any,
    arguments: tuple[Any, ...],
    kind: type[Number],
) -> Any:
    """Return what the function returns at a theta that moves along `direction`."""
    return value_and_grad(variables(theta, direction, kind), *exact(arguments, kind))


def _parts(returned: Any, kind: type[Number]) -> tuple[Number, list[Number]]:
    """Return the value and the gradient as exact numbers."""
    grad = np.asarray(returned[1], object)
    return _number(returned[0], kind), [_number(one, kind) for one in grad]


def _amounts(
    value_and_grad: ValueAndGrad,
    theta: Array,
    arguments: tuple[Any, ...],
    name: Callable[[int], str],
) -> Proof:
    """Find the wrong derivatives with sixty digits, one direction after the other."""
    hand, right = [], []
    with localcontext(Context(DIGITS, traps=[])):
        for j in range(theta.size):
            direction = (np.arange(theta.size) == j).astype(int).tolist()
            returned = _run(value_and_grad, theta, direction, arguments, Long)
            value, grad = _parts(returned, Long)
            hand.append(grad[j].a)
            right.append(value.b)
        size = max(map(abs, right))
        pairs = list(enumerate(zip(hand, right, strict=True)))
        wrong = [
            Wrong(name(j), h, r)
            for j, (h, r) in pairs
            if abs(h - r) > SAME * max(abs(h), SMALL * size)
        ]
        worst = max((abs(one.by_hand - one.right) for one in wrong), default=Decimal(0))
    if not wrong:
        reason = (
            "all derivatives are right to 35 digits, but by an identity between exponentials, "
            "logarithms or roots that the field does not know. Write value and gradient with "
            "the same exponentials"
        )
        return Proof("not proved", theta.size, reason=reason)
    if worst < ROUNDED * size:
        reason = (
            f"derivatives differ by {worst / size:.1g} of their size, as the rounding of a float "
            "constant may make them. Pass constants as arguments, or make them binary fractions"
        )
        return Proof("not proved", theta.size, reason=reason)
    return Proof("refuted", theta.size, tuple(wrong))


def _namer(
    blocks: Mapping[str, slice] | None, coordinate: Callable[[int], str] | None
) -> Callable[[int], str]:
    if coordinate is not None:
        return coordinate
    parts = blocks or {"theta": slice(None)}
    starts = [(name, where.start or 0) for name, where in parts.items()]

    def name(index: int) -> str:
        before = [one for one in starts if one[1] <= index] or [("theta", 0)]
        block, start = max(before, key=lambda one: one[1])
        return f"{block}[{index - start}]"

    return name


# What to write instead, by what occurs in the line or in the message
ADVICE = {
    "linalg": "write the elimination itself, or pass its result as an argument",
    "isfinite|isnan|isinf": "compare instead: (x > -np.inf) & (x < np.inf)",
    "finfo": "write the constant itself",
    "logaddexp": "write m + np.log(np.exp(a - m) + np.exp(b - m)) with m the larger",
    "expit|special": "write it with np.exp and np.log, for instance 1 / (1 + np.exp(-x))",
    "math": "use NumPy's function, which takes arrays of any dtype",
    "float|astype|dtype": "keep the dtype of theta: np.zeros_like(theta), no float()",
    "sin|cos|tan|arctan": "use exp, log, sqrt, tanh and rational functions: there is no sine here",
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

"""What is wrong with a gradient, and by how much (D44).

In decimals for small theta, one coordinate after the other. In a field for large ones: along the
directions d_j = r_j^k, k = 0, 1, ..., with random r_j, the excess is sum_j delta_j r_j^k of the
errors delta_j, a recurrence whose roots are the r_j of the coordinates that are wrong (Prony), if
they are few. Otherwise each block is asked along two directions: the same quotient of both slopes
is a factor by which the block is wrong.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .digits import DIGITS, Digits, context
from .fields import Field, Prime, _key, mixed
from .runs import LARGE, Asked, asked_fields, copied, run

__all__ = ["SAME", "Wrong", "WrongBlock", "amounts", "in_floats", "located", "slopes"]

Array = NDArray[Any]
SAME = Decimal("1e-35")  # relative difference at which two of them are the same number
SMALL = Decimal("1e-20")  # of the largest derivative: smaller ones are held to that error
ROUNDED = Decimal("1e-15")  # what the rounding of float constants may do to a derivative
SHAKEN = Decimal("1e-9")  # up to here it is asked what their rounding does
FLOATS = 1e-3  # relative difference of floats and of exact numbers that is not rounding
FEW = 2  # wrong coordinates of a large theta that are found one by one


class Wrong(NamedTuple):
    """One wrong derivative."""

    name: str
    by_hand: Decimal
    right: Decimal
    seen: bool = True  # whether the difference is more than the rounding of what measures it

    def __str__(self) -> str:
        if not self.seen:
            return f"{self.name}: {float(self.by_hand):.15g} is wrong, by less than floats show"
        excess = self.by_hand - self.right
        way = "too large" if excess > 0 else "too small"
        shown = f"by hand {float(self.by_hand):.15g}, right {float(self.right):.15g}"
        return f"{self.name}: {shown}, {way} by {float(abs(excess)):.3g}"


class WrongBlock(NamedTuple):
    """A block of derivatives that are wrong, with their slopes along a random direction."""

    name: str
    size: int
    factor: Fraction | None  # by which all are too large
    by_hand: float
    right: float

    @property
    def seen(self) -> bool:
        """Whether the slopes differ by more than rounding."""
        return abs(self.by_hand - self.right) > 1e-4 * max(abs(self.by_hand), abs(self.right))

    def __str__(self) -> str:
        what = f"wrong in more than {FEW} of {self.size}"
        if self.factor is not None:
            what = f"{self.factor} times the right one, in all {self.size}"
        shown = f"along a random direction by hand {self.by_hand:.6g}, right {self.right:.6g}"
        return f"{self.name}: {what}; {shown}"


def amounts(asked: Asked, theta: Array, kind: Field, digits: int) -> tuple[str, tuple[Wrong, ...]]:
    """Find the wrong derivatives with many digits, or the reason why nothing is concluded."""
    hand, right = [], []
    with localcontext(context(digits)):
        decimals = Digits(asked.seed)
        for j in range(theta.size):
            direction = decimals.whole(np.arange(theta.size) == j)
            found = run(asked, theta, decimals, direction)
            hand.append(found.grad.a[j, 0])
            right.append(found.value.b[0, 0])
        again = run(asked, theta, decimals, direction)
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
            whole, *shaken = (asked.excess(theta, Digits(asked.seed, k))[0] for k in range(7))
            rounded = worst < 1000 * max(abs(one - whole) for one in shaken)
    reason = ""
    if (found.grad.r != again.grad.r).any() or (found.value.r != again.value.r).any():
        reason = (
            "two calls with the same numbers return different ones: something is kept from call "
            "to call, or noise is drawn inside. Pass it as an argument"
        )
    elif not wrong:
        reason = "all derivatives are right to 35 digits here, but " + _why(asked, theta, kind)
    elif rounded:
        reason = (
            f"derivatives differ by {worst:.1g}, as the rounding of a float "
            "constant may make them, or of data that sum to 1. Pass constants as arguments, or "
            "make them binary fractions"
        )
    return reason, () if reason else tuple(wrong)


def _why(asked: Asked, theta: Array, kind: Field) -> str:
    """Say why the field does not agree where the digits do, and what to do."""
    given = asked._replace(exact=False)
    if asked_fields(lambda field: given.excess(theta, field), asked.seed, theta.size)[0]:
        return (
            "only for the arguments that are given: by what their values have in common, as "
            "weights that sum to 1 or rows with a single 1. Whole numbers are constants: pass such "
            "data as integers, or let the function hold them instead of taking them"
        )
    if kind.roots or kind.transcendental:
        return (
            "by an identity between exponentials, logarithms or roots that the field does not "
            "know. Write value and gradient with the same ones"
        )
    return "for these numbers alone: by what theta or the constants have in common"


# --- large theta


def located(asked: Asked, theta: Array, field: Field) -> tuple[str, tuple[Any, ...]]:
    """Find what is wrong by the excess along chosen directions, or say that floats see nothing."""
    key = _key(asked.seed, "coordinates")
    seed, p = field.seed, Prime(field.seed).p
    roots = (mixed(np.arange(theta.size), key) % np.uint64(p)).astype(np.int64)
    power, excess = np.ones(theta.size, np.int64), []
    for _ in range(2 * FEW):
        at = Prime(seed)
        excess.append(int(run(asked, theta, at, power[:, None]).excess()[0]))
        power = at.mul(power, roots)
    found: list[Any] = []
    if any(excess):
        recurrence = _recurrence(excess, p)
        value = np.zeros(theta.size, np.int64)
        for coefficient in recurrence:
            value = at.add(at.mul(value, roots), np.full(1, coefficient))
        places = np.flatnonzero(value == 0)
        if len(places) == len(recurrence) - 1 <= FEW:
            found = [_single(asked, theta, int(place)) for place in places]
    for name, part in asked.blocks.items() if not found else ():
        found += _block(asked, theta, name, part, seed)
    if any(one.seen for one in found):
        return "", tuple(found)
    return (
        "nothing is wrong as far as floats can tell, but by an identity that the field does not "
        "know, or a constant that is rounded"
    ), ()


def _recurrence(terms: list[int], p: int) -> list[int]:
    """Return the shortest c with sum_i c_i S_(n-i) = 0 modulo p, by Berlekamp and Massey."""
    now, before, length, gap, last = [1], [1], 0, 1, 1
    for n, term in enumerate(terms):
        used = range(1, min(length, len(now) - 1) + 1)
        left = (term + sum(now[i] * terms[n - i] for i in used)) % p
        if left:
            kept, factor = now[:], left * pow(last, -1, p) % p
            now += [0] * (len(before) + gap - len(now))
            for i, one in enumerate(before):
                now[i + gap] = (now[i + gap] - factor * one) % p
            if 2 * length <= n:
                length, before, last, gap = n + 1 - length, kept, left, 0
        gap += 1
    return (now + [0] * (length + 1))[: length + 1]


def _single(asked: Asked, theta: Array, j: int) -> Any:
    """Return one coordinate by hand and right: to sixty digits, or by differences of floats."""
    direction = np.zeros(theta.size)
    direction[j] = 1.0
    if theta.size > LARGE:
        hand, right = slopes(asked, theta, direction, 1e-4)
        seen = abs(hand - right) > 1e-7 * max(abs(hand), abs(right))
        return Wrong(asked.name(j), Decimal(hand), Decimal(right), seen)
    with localcontext(context(DIGITS)):
        decimals = Digits(asked.seed)
        found = run(asked, theta, decimals, decimals.whole(direction == 1))
        hand, right = found.grad.a[j, 0], found.value.b[0, 0]
        seen = abs(hand - right) > SAME * max(abs(hand), abs(right))
        return Wrong(asked.name(j), hand, right, seen)


def _block(asked: Asked, theta: Array, name: str, part: slice, seed: int) -> list[WrongBlock]:
    """Return the block, if it is wrong, with its factor, if all of it is wrong by one."""
    size, factors = len(range(*part.indices(theta.size))), []
    for turn in range(2):
        field = Prime(seed)
        direction = np.zeros((theta.size, 1), np.int64)
        direction[part] = Prime(seed + 1 + turn).draw((size,)) % field.p
        found = run(asked, theta, field, direction)
        if not found.excess()[0]:
            return []
        hand, slope = int(field.sum(found.terms, 0)[0]), int(found.value.b[0, 0])
        factors.append(hand * pow(slope, -1, field.p) % field.p if slope else None)
    along = np.zeros(theta.size)
    along[part] = np.random.default_rng(seed).standard_normal(size)
    first, second = factors
    factor = _fraction(first, field.p) if first is not None and first == second else None
    return [WrongBlock(name, size, factor, *slopes(asked, theta, along))]


def _fraction(residue: int, p: int) -> Fraction | None:
    """Return the small fraction n / d that is a residue, by Euclid."""
    r, s, t, u = p, residue, 0, 1
    while s * s >= p:
        q = r // s
        r, s, t, u = s, r - q * s, u, t - q * u
    return Fraction(s, u) if u and abs(s * u) < 10**6 else None


# --- in floats


def slopes(asked: Asked, theta: Array, direction: Array, step: float = 1e-7) -> tuple[float, float]:
    """Return the slope along a direction by hand, and by differences of floats."""
    h = step * max(1.0, float(abs(theta).max())) / max(1e-300, float(abs(direction).max()))

    def value(steps: float) -> float:
        at = theta + steps * h * direction
        return float(asked.value_and_grad(at, *copied(asked.arguments))[0])

    with np.errstate(all="ignore"):
        grad = asked.value_and_grad(theta.copy(), *copied(asked.arguments))[1]
        right = (value(-2) - 8 * value(-1) + 8 * value(1) - value(2)) / (12 * h)
        return float(np.ravel(grad) @ direction), right


def in_floats(asked: Asked, theta: Array, value: Any, grad: Any) -> str:
    """Say that the function returns something else for floats than for exact numbers, if so."""
    try:
        with np.errstate(all="ignore"):
            floats = asked.value_and_grad(theta.copy(), *copied(asked.arguments))[:2]
            ours = np.array([floats[0], *floats[1]], float)
        right = np.array([value, *grad], float)
    except Exception:  # a function of exact numbers alone, or values beyond floats
        return ""
    if not np.isfinite([*ours, *right]).all():
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

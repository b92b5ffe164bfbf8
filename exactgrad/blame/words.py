"""What is wrong with a gradient in simple words: a factor, a term, a transposition (D44).

All that is said holds to thirty digits for every wrong derivative of a group: of all together, or
of each block, or of neighbours in theta.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, context
from ..verdict.errors import WrongDerivative
from ..verdict.runs import ProofProblem

__all__ = ["in_words"]

Array = NDArray[Any]
SAME = Decimal("1e-30")


def in_words(
    problem: ProofProblem, theta: Array, wrong: Sequence[WrongDerivative]
) -> list[str]:
    """Return what is wrong, where it is simple: a sentence for all, or for each group."""
    places = {problem.name(j): j for j in range(theta.size)}
    found = {places[one.name]: one for one in wrong if one.seen and one.size == 1}
    with localcontext(context(N_DIGITS)):
        known = Known(problem, theta)
        said = known.said(found) if found else ""
        if said or not found:
            return (
                [f"{'they are' if len(found) > 1 else 'it is'} {said}"] if said else []
            )
        parts = [set(range(theta.size)[part]) for part in problem.blocks.values()]
        groups = [[j for j in sorted(found) if j in part] for part in parts]
        if len(groups) == 1:
            runs = groupby(enumerate(sorted(found)), lambda pair: pair[1] - pair[0])
            groups = [[j for _, j in run] for _, run in runs]
        each = [
            (group, known.said({j: found[j] for j in group}))
            for group in groups
            if group
        ]
    return [
        f"{problem.name(js[0])} to {problem.name(js[-1])}: {said}"
        for js, said in each
        if said
    ]


class Known:
    """What a function is given, by name: numbers, and arrays as decimals."""

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        at = [Decimal(x) for x in theta.tolist()]
        self.theta, self.numbers, self.sizes = (
            at,
            dict[str, Decimal](),
            dict[int, str](),
        )
        self.arrays = {
            "theta": at,
            "exp(theta)": [x.exp() for x in at],
            "sigmoid(theta)": [1 / (1 + (-x).exp()) for x in at],
            "sign(theta)": [Decimal(1).copy_sign(x) for x in at],
        }
        for name, value in zip(problem.names, problem.arguments, strict=True):
            if (
                isinstance(value, float | np.ndarray)
                and np.asarray(value).dtype.kind in "fiu"
            ):
                flat = [Decimal(x) for x in np.ravel(value).tolist()]
                if np.ndim(value):
                    self.arrays[name] = flat
                    for k, size in enumerate(np.shape(value)):
                        self.sizes.setdefault(size, f"{name}.shape[{k}]")
                else:
                    self.numbers[name] = flat[0]

    def said(self, wrong: dict[int, WrongDerivative]) -> str:
        """Say what is wrong, or nothing."""
        hand, right = zip(
            *((one.by_hand, one.right) for one in wrong.values()), strict=True
        )
        if not any(hand):
            return "0 by hand"
        terms = [("", [Decimal(1)] * len(hand))]
        for name, flat in self.arrays.items():
            if len(flat) in (len(self.theta), len(hand)):
                whole = len(flat) == len(self.theta)
                terms.append((name, [flat[j] for j in wrong] if whole else flat))
        for name, v in terms:
            for over in (1, -1)[: 1 + bool(name)]:
                both = zip(right, v, strict=True)
                c = _quotient(hand, [r * x**over if x else x for r, x in both])
                if c == -1 and not name:
                    return "right but for the sign"
                if c and (not name or abs(c) == 1):
                    sign = "-" * (c < 0) + "1 / " * (over < 0)
                    factor = f"{sign}{name}" if name else self.factor(c)
                    if factor:
                        return f"{factor} times what is right"
        order = _transposed(wrong)
        if order:
            return f"in another order: transposed, {order}"
        excess = [h - r for h, r in zip(hand, right, strict=True)]
        for name, v in terms[1:] + terms[:1] * (len(hand) > 1):
            c = _quotient(excess, v)
            factor = self.factor(abs(c), term=True) if c else ""
            if factor:
                times = (
                    factor
                    if not name
                    else name
                    if factor == "1"
                    else f"{factor} * {name}"
                )
                return f"too {'large' if c and c > 0 else 'small'} by {times}"
        return ""

    def factor(self, c: Decimal, term: bool = False) -> str:
        """Return a number in words, if it is simple; of a term an argument's name comes first."""
        named = [(name, c / number) for name, number in self.numbers.items() if number]
        named += [(f"1 / {name}", c * number) for name, number in self.numbers.items()]
        for name, left in [*named, ("", c)] if term else [("", c), *named]:
            simple = Fraction(left).limit_denominator(1000)
            n, d = abs(simple.numerator), simple.denominator
            if not 0 < n <= 1000 or abs(left * d / simple.numerator - 1) > SAME:
                continue
            size = next((size for size in (n, d) if size > 1 and size in self.sizes), 0)
            also = f" (of {self.sizes[size]})" if size else ""
            if simple == 1 and name:
                return name
            return f"{simple}{also} {name.removeprefix('1 ')}".strip()
        return ""


def _same(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= SAME * max(abs(one), abs(other))


def _quotient(one: Sequence[Decimal], other: Sequence[Decimal]) -> Decimal | None:
    """Return the number that all quotients are, if they are one."""
    if not all(other):
        return None
    c = one[0] / other[0]
    c = c.to_integral_value() if _same(c, c.to_integral_value()) else c
    return c if all(_same(x, c * y) for x, y in zip(one, other, strict=True)) else None


def _transposed(wrong: dict[int, WrongDerivative]) -> str:
    """Return n x m if a part of theta is right as an array (n, m) that is turned round.

    Its corners are in place, and so is what is on the diagonal of a square.
    """
    low, high = min(wrong), max(wrong)
    for n in range(2, high + 2):
        for m in range(2, (high + 2) // n + 1):
            turned = np.arange(n * m).reshape(n, m).T.ravel()
            for start in range(max(0, high + 1 - n * m), low + 1):
                pairs = (
                    (one, start + int(turned[j - start])) for j, one in wrong.items()
                )
                if all(
                    k in wrong and _same(one.by_hand, wrong[k].right)
                    for one, k in pairs
                ):
                    return f"{n} x {m}"
    return ""

"""Explain in simple words how a gradient is wrong: by a factor, a term or a transposition (D44).

An explanation holds to thirty digits, or to those that are known, for every wrong derivative of a
group: all wrong derivatives, those of a block of theta, or neighbours in theta.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, context
from ..fields.finite import Prime
from ..verdict.errors import WrongDerivative
from ..verdict.runs import ProofProblem, run

__all__ = ["in_words"]

Array = NDArray[Any]
Decimals = Sequence[Decimal]
ErrorsByPosition = dict[int, WrongDerivative]
IS_ROUNDED = (
    "not 0, but what is rounded has derivative 0 wherever it does not jump, and so have positions "
    "by argmin or argsort"
)
MAX_SIMPLE = 1000  # largest numerator and denominator of a simple factor


def in_words(
    problem: ProofProblem, theta: Array, wrong: Sequence[WrongDerivative]
) -> list[str]:
    """Return sentences such as "they are 2/3 times what is right" on wrong derivatives.

    There is one sentence if one explanation holds for all, else at most one for each group, and
    none if there is no simple explanation.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : array, shape (D,)
        The point at which the gradient is refuted.
    wrong : sequence of WrongDerivative
        The wrong derivatives. Those of single coordinates are explained, not those of blocks.
    """
    positions = {problem.name(j): j for j in range(theta.size)}
    errors = {
        positions[error.name]: error
        for error in wrong
        if error.seen and error.size == 1
    }
    if not errors:
        return []
    with localcontext(context(N_DIGITS)):
        rtol = max(error.rtol for error in errors.values())
        quantities = KnownQuantities(problem, theta, rtol)
        words = quantities.describe(errors)
        if words:
            subject = "they are" if len(errors) > 1 else "it is"
            return [f"{subject} {words}"]
        sentences = []
        for group in _groups(problem, theta.size, sorted(errors)):
            words = quantities.describe({j: errors[j] for j in group})
            if words:
                first = problem.name(group[0])
                last = problem.name(group[-1])
                sentences.append(f"{first} to {last}: {words}")
    return sentences


def _groups(
    problem: ProofProblem, size: int, positions: list[int]
) -> Iterator[list[int]]:
    """Yield groups of sorted positions in theta: by block or, with one block, runs of neighbours.

    `size` is the length of theta, and `positions` those of the wrong derivatives.
    """
    if len(problem.blocks) == 1:
        # neighbours have the same difference of their position and their index in `positions`
        runs = groupby(enumerate(positions), lambda pair: pair[1] - pair[0])
        for _, run in runs:
            yield [j for _, j in run]
        return
    for block in problem.blocks.values():
        members = set(range(size)[block])
        group = [j for j in positions if j in members]
        if group:
            yield group


class KnownQuantities:
    """The arguments of a function as decimals, by name, with which errors are compared.

    Parameters
    ----------
    problem : ProofProblem
        The function, and its arguments with their names.
    theta : array, shape (D,)
        The point.
    rtol : Decimal
        Relative difference of derivatives that count as equal.
    """

    def __init__(self, problem: ProofProblem, theta: Array, rtol: Decimal) -> None:
        self.rtol = rtol
        self.run = partial(run, problem, theta)
        self.theta = [Decimal(x) for x in theta.tolist()]
        self.numbers: dict[str, Decimal] = {}
        # maps the length of an axis to an expression for it, such as "X.shape[0]"
        self.sizes: dict[int, str] = {}
        self.arrays = {
            "theta": self.theta,
            "exp(theta)": [x.exp() for x in self.theta],
            "sigmoid(theta)": [1 / (1 + (-x).exp()) for x in self.theta],
            "sign(theta)": [Decimal(1).copy_sign(x) for x in self.theta],
        }
        for name, value in zip(problem.names, problem.arguments, strict=True):
            self._add(name, value)

    def _add(self, name: str, value: Any) -> None:
        """Record the argument `name`: a number, or an array and the lengths of its axes.

        A `value` that is no number and no array of numbers is ignored.
        """
        if not isinstance(value, float | np.ndarray):
            return
        if np.asarray(value).dtype.kind not in "fiu":
            return
        flat = [Decimal(x) for x in np.ravel(value).tolist()]
        if not np.ndim(value):
            self.numbers[name] = flat[0]
            return
        self.arrays[name] = flat
        for axis, size in enumerate(np.shape(value)):
            self.sizes.setdefault(size, f"{name}.shape[{axis}]")

    @cached_property
    def is_rounded(self) -> bool:
        """Whether the function rounds numbers that depend on theta, or takes their signs."""
        field = Prime(0)
        self.run(field)
        return field.n_rounded > 0

    def describe(self, errors: ErrorsByPosition) -> str:
        """Return words that explain all `errors`, given by position in theta; "" if none do."""
        by_hand = [error.by_hand for error in errors.values()]
        right = [error.right for error in errors.values()]
        if not any(by_hand):
            return "0 by hand"
        if not any(right) and self.is_rounded:
            return IS_ROUNDED
        excess = [h - r for h, r in zip(by_hand, right, strict=True)]
        arrays = self._arrays_at(errors)
        words = self._factor_in_words(by_hand, right, arrays)
        if words:
            return words
        shape = self._transposed_shape(errors)
        if shape:
            return f"in another order: transposed, {shape}"
        return self._term_in_words(excess, arrays)

    def _arrays_at(self, errors: ErrorsByPosition) -> dict[str, Decimals]:
        """Return known arrays by name, with one entry for each wrong derivative in `errors`.

        Of arrays as long as theta these are the entries at the positions of the errors.
        """
        arrays: dict[str, Decimals] = {}
        for name, flat in self.arrays.items():
            if len(flat) == len(self.theta):
                arrays[name] = [flat[j] for j in errors]
            elif len(flat) == len(errors):
                arrays[name] = flat
        return arrays

    def _factor_in_words(
        self, by_hand: Decimals, right: Decimals, arrays: dict[str, Decimals]
    ) -> str:
        """Return words for a common factor `by_hand` / `right`; "" if there is no simple one.

        `by_hand` and `right` are n derivatives, and `arrays` have n entries: the factor may be a
        number, or one of these arrays or its inverse.
        """
        c = self._common_quotient(by_hand, right)
        if c == -1:
            return "right but for the sign"
        factor = self._simple(c) if c else ""
        if factor:
            return f"{factor} times what is right"
        for name, values in arrays.items():
            pairs = [*zip(right, values, strict=True)]
            products = [r * x for r, x in pairs]
            quotients = [r / x if x else x for r, x in pairs]
            for inverse, candidates in (("", products), ("1 / ", quotients)):
                c = self._common_quotient(by_hand, candidates)
                if c and abs(c) == 1:
                    sign = "-" if c < 0 else ""
                    return f"{sign}{inverse}{name} times what is right"
        return ""

    def _term_in_words(self, excess: Decimals, arrays: dict[str, Decimals]) -> str:
        """Return words for the term that is added to all derivatives; "" if it is not simple.

        `excess` are n derivatives by hand minus the right ones, and `arrays` have n entries: the
        term may be a number, or a multiple of one of these arrays.
        """
        terms = dict(arrays)
        if len(excess) > 1:
            terms[""] = [Decimal(1)] * len(excess)
        for name, values in terms.items():
            c = self._common_quotient(excess, values)
            factor = self._simple(abs(c), is_term=True) if c else ""
            if not c or not factor:
                continue
            if not name:
                term = factor
            elif factor == "1":
                term = name
            else:
                term = f"{factor} * {name}"
            return f"too {'large' if c > 0 else 'small'} by {term}"
        return ""

    def _simple(self, c: Decimal, is_term: bool = False) -> str:
        """Return c as a fraction, or as a fraction times or over an argument; "" if it is neither.

        If c is a term of derivatives arguments are tried first, if it is a factor the fraction.
        """
        named = [(name, c / number) for name, number in self.numbers.items() if number]
        named += [(f"1 / {name}", c * number) for name, number in self.numbers.items()]
        candidates = [*named, ("", c)] if is_term else [("", c), *named]
        for name, quotient in candidates:
            fraction = Fraction(quotient).limit_denominator(MAX_SIMPLE)
            n = abs(fraction.numerator)
            d = fraction.denominator
            if not 0 < n <= MAX_SIMPLE:
                continue
            if abs(quotient * d / fraction.numerator - 1) > self.rtol:
                continue
            if fraction == 1 and name:
                return name
            sizes = [size for size in (n, d) if size > 1 and size in self.sizes]
            origin = f" (of {self.sizes[sizes[0]]})" if sizes else ""
            return f"{fraction}{origin} {name.removeprefix('1 ')}".strip()
        return ""

    def _equal(self, x: Decimal, y: Decimal) -> bool:
        """Return whether two decimals differ by at most `rtol` of the larger one."""
        return abs(x - y) <= self.rtol * max(abs(x), abs(y))

    def _common_quotient(
        self, numerators: Decimals, denominators: Decimals
    ) -> Decimal | None:
        """Return the common value of all quotients; None if they differ or a denominator is 0."""
        if not all(denominators):
            return None
        c = numerators[0] / denominators[0]
        rounded = c.to_integral_value()
        if self._equal(c, rounded):
            c = rounded
        pairs = zip(numerators, denominators, strict=True)
        return c if all(self._equal(x, c * y) for x, y in pairs) else None

    def _transposed_shape(self, errors: ErrorsByPosition) -> str:
        """Return "n x m" if the derivatives in `errors` are right after a transposition, else "".

        It is the transposition of an array (n, m) anywhere in theta. Its corners, and the diagonal
        of a square one, are right as they are, so they need not be among the errors.
        """
        low = min(errors)
        high = max(errors)
        for n in range(2, high + 2):
            for m in range(2, (high + 2) // n + 1):
                order = np.arange(n * m).reshape(n, m).T.ravel()
                for start in range(max(0, high + 1 - n * m), low + 1):
                    sources = [start + int(order[j - start]) for j in errors]
                    if all(
                        source in errors
                        and self._equal(error.by_hand, errors[source].right)
                        for source, error in zip(sources, errors.values(), strict=True)
                    ):
                        return f"{n} x {m}"
        return ""

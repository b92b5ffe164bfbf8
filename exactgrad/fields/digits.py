"""Sixty digits in the place of residues, at the point itself: how large an error is (D44)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .finite import SMALLEST_NORMAL, Field

__all__ = ["N_DIGITS", "Digits", "NoSeries", "context"]

Array = NDArray[Any]
N_DIGITS = 60


def context(digits: int) -> Context:
    """Return a context of so many digits, in which what does not exist is NaN."""
    return Context(digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


class NoSeries(Exception):
    """Of a function there is no series here."""


class Digits(Field):
    """Decimals of the context's precision, as arrays of objects.

    With `shake`, floats stand for numbers that they may be rounded from, of which it chooses some.
    """

    dtype = object
    is_decimal = True
    max_symbolic_size = math.inf

    def __init__(self, seed: int, rounding_seed: int = 0) -> None:
        super().__init__(seed)
        self.rounding_seed, self.uniform = rounding_seed, random.Random(seed).uniform
        # exponentials and logarithms take long: once for each number
        self._cached = cache(lambda function, precision, x: function(x))
        self.one = self.from_integers(1)
        self.log_2 = self.one * Decimal(2).ln()

    def variable(self, v: Array) -> Array:
        """Return the floats as they are, or what they stand for."""
        return _each(self._unrounded, v)[..., None]

    def draw(self, shape: tuple[int, ...]) -> Array:
        made = [Decimal(self.uniform(-1.0, 1.0)) for _ in range(math.prod(shape))]
        return np.array(made, object).reshape(*shape, 1)

    def _from_float(self, x: float) -> Array:
        own = math.isfinite(x) and abs(x) != SMALLEST_NORMAL
        return super()._from_float(x) if own else self.one * Decimal(x)

    def from_fraction(self, x: Fraction) -> Array:
        if x.denominator & (x.denominator - 1) == 0:
            return self.one * self._unrounded(float(x))
        return self.one * (Decimal(x.numerator) / Decimal(x.denominator))

    def from_integers(self, integers: Any) -> Array:
        return _each(Decimal, np.asarray(integers, object))[..., None]

    def irrational(self, a: int, b: int) -> Array:
        return self.one * (_pi(getcontext().prec).sqrt() ** a * Decimal(2).sqrt() ** b)

    def _unrounded(self, x: float) -> Decimal:
        """Return the float, or a number that is rounded to it, unless it has few digits."""
        if (
            not self.rounding_seed
            or not math.isfinite(x)
            or x.as_integer_ratio()[0].bit_length() < 30
        ):
            return Decimal(x)
        size = abs(math.frexp(x)[0])  # 0.49, -0.49 and 0.98 were rounded alike
        up_or_down = random.Random(size * self.rounding_seed).choice((-1, 1))
        return Decimal(x) * (1 + Decimal(up_or_down) / 2**53)

    add: Any = staticmethod(np.add)
    sub: Any = staticmethod(np.subtract)
    mul: Any = staticmethod(np.multiply)
    neg: Any = staticmethod(np.negative)
    inv: Any = staticmethod(
        lambda a: _each(lambda x: 1 / x if x else Decimal("NaN"), a)
    )
    sum: Any = staticmethod(np.add.reduce)
    cumsum: Any = staticmethod(np.cumsum)

    def matmul(self, a: Array, b: Array) -> Array:
        return np.matmul(a[..., 0], b[..., 0])[..., None]

    def exp(self, a: Array, note: Array | None = None) -> Array:
        return _each(partial(self._cached, Decimal.exp, getcontext().prec), a)

    def log(self, u: Array) -> tuple[Array, None]:
        return _each(partial(self._cached, Decimal.ln, getcontext().prec), u), None

    def sqrt(self, u: Array) -> Array:
        """Return the positive root."""
        return _each(Decimal.sqrt, u)

    def record_square(self, square: Array, root: Array, v: Array) -> None:
        """Forget it: roots are positive."""

    def cos_and_sin(self, a: Array) -> tuple[Array, Array]:
        return _each(_cos, a), _each(_sin, a)

    def random_function(self, name: str, a: Array) -> Array:
        """Return NaN: what is random in a field has no value here."""
        return np.full(a.shape, Decimal("NaN"), object)

    def opaque(self, name: str, a: Array, odd: bool | None = None) -> Array:
        """Return the function by its series, if there is one here."""
        if name not in FUNCTIONS:
            raise NoSeries(name)
        return _each(FUNCTIONS[name], a)


def _each(function: Callable[[Any], Any], a: Array) -> Array:
    out = np.empty(a.shape, object)
    out.reshape(-1)[:] = [function(x) for x in a.ravel().tolist()]
    return out


# --- series, to the precision of the context


def _series(
    term: Decimal, z: Decimal, n: Callable[[int], Any], d: Callable[[int], Any]
) -> Decimal:
    """Return the sum of terms, of which each is the last times z n(k) / d(k), k = 0, 1, ..."""
    total, k = Decimal(0), 0
    while total + term != total:
        total += term
        term, k = term * z * n(k) / d(k), k + 1
    return total


@cache
def _pi(precision: int) -> Decimal:
    """Return pi by Machin: 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext() as more:
        more.prec = precision + 10
        return 16 * _arctan(Decimal(1) / 5) - 4 * _arctan(Decimal(1) / 239)


def _arctan(x: Decimal) -> Decimal:
    """Return x - x^3 / 3 + x^5 / 5 - ..., of half the angle where x is not small."""
    if not x.is_finite():
        return x * 0
    if abs(x) > Decimal("0.25"):
        return 2 * _arctan(x / (1 + (1 + x * x).sqrt()))
    return _series(x, -x * x, lambda k: 2 * k + 1, lambda k: 2 * k + 3)


def _cos(x: Decimal) -> Decimal:
    with localcontext() as more:
        more.prec += max(0, x.adjusted())
        found = _sin(x + _pi(more.prec) / 2)
    return +found


def _sin(x: Decimal) -> Decimal:
    """Return y - y^3 / 6 + y^5 / 120 - ..., of the angle less half turns."""
    if not x.is_finite():
        return x * 0
    with localcontext() as more:
        more.prec += 10 + max(0, x.adjusted())
        pi = _pi(more.prec)
        turns = (x / pi).to_integral_value()
        y = x - turns * pi
        found = _series(y, -y * y, lambda k: 1, lambda k: (2 * k + 2) * (2 * k + 3))
    return +found if turns % 2 == 0 else -found


def _erf(a: Decimal) -> Decimal:
    """Return 2/sqrt(pi) e^-a^2 [a + 2/3 a^3 + 4/15 a^5 + ...], terms of one sign."""
    if not a.is_finite():
        return a * 0
    if abs(a) > 12:  # 1 to 64 digits
        return Decimal(1).copy_sign(a)
    total = _series(a, a * a, lambda k: 2, lambda k: 2 * k + 3)
    return 2 / _pi(getcontext().prec).sqrt() * (-a * a).exp() * total


@cache
def _bernoulli(count: int) -> list[Fraction]:
    """Return B_2, B_4, ..., by the recurrence of all B_n."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum(
            (math.comb(n + 1, k) * b for k, b in enumerate(numbers)), Fraction(0)
        )
        numbers.append(-total / (n + 1))
    return numbers[2::2]


def _polygamma(n: int, x: Decimal) -> Decimal:
    """Return the n-th derivative of digamma for x > 0, digamma for 0, log Gamma for -1.

    By Stirling's series from 50 on, where 40 terms have 80 digits, and the recurrence below.
    """
    if not x > 0 or not x.is_finite():
        return Decimal("NaN")
    sign, below = (-1) ** (n + 1), Decimal(0)
    while x < 50:
        below += x.ln() if n < 0 else math.factorial(n) / x ** (n + 1)
        x += 1
    if n < 0:
        total = (
            (x - Decimal("0.5")) * x.ln() - x + (2 * _pi(getcontext().prec)).ln() / 2
        )
    else:
        total = math.factorial(n) / (2 * x ** (n + 1))
        total += -x.ln() if n == 0 else math.factorial(n - 1) / x**n
    for k, b in enumerate(_bernoulli(40), 1):
        rising = Decimal(math.factorial(2 * k + n - 1)) / math.factorial(2 * k)
        total += Decimal(b.numerator) / b.denominator * rising / x ** (2 * k + n)
    return total - below if n < 0 else sign * (total + below)


FUNCTIONS: dict[str, Callable[[Decimal], Decimal]] = {
    "erf": _erf,
    "arctan": _arctan,
    "arcsin": lambda x: _arctan(x / (1 - x * x).sqrt()),
    "gammaln": partial(_polygamma, -1),
    "digamma": partial(_polygamma, 0),
    **{f"polygamma {n}": partial(_polygamma, n) for n in range(1, 5)},
}

"""Decimals of 60 digits in place of residues: they tell how large an error is at theta (D44)."""

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
GUARD_DIGITS = 10  # extra digits with which pi and angles are computed
MIN_ROUNDED_BITS = 30  # significant bits; a float with fewer is taken to be exact
# Smallest x at which Stirling's series is used: from there on 40 terms give 80 digits
STIRLING_START = 50
N_STIRLING_TERMS = 40


def context(digits: int) -> Context:
    """Return a `decimal.Context` of `digits` digits; invalid operations give NaN and no error."""
    return Context(digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


class NoSeries(Exception):
    """Raised for a function without a series in `SERIES`, whose decimals cannot be computed."""


class Digits(Field):
    """Decimal numbers in place of residues, as object arrays (..., 1) of `Decimal`.

    They have as many digits as the decimal context that is active.

    Parameters
    ----------
    seed : int
        Seed from which random directions are drawn.
    rounding_seed : int
        If not 0, each float of 30 significant bits or more is replaced by a number that rounds to
        it, which is drawn from this seed. By default floats are converted as they are.
    """

    dtype = object
    is_decimal = True
    max_symbolic_size = math.inf

    def __init__(self, seed: int, rounding_seed: int = 0) -> None:
        super().__init__(seed)
        self.rounding_seed = rounding_seed
        self.uniform = random.Random(seed).uniform
        # exponentials and logarithms of decimals are slow: each is computed only once
        self._cached = cache(lambda function, precision, x: function(x))
        self.one = self.from_integers(1)
        self.log_2 = self.one * Decimal(2).ln()

    def variable(self, floats: Array) -> Array:
        """Return floats, or numbers that round to them (see `rounding_seed`), as decimals."""
        return _elementwise(self._unrounded, floats)[..., None]

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return uniform random decimals (*shape, 1) between -1 and 1."""
        numbers = [Decimal(self.uniform(-1.0, 1.0)) for _ in range(math.prod(shape))]
        return np.array(numbers, object).reshape(*shape, 1)

    def _from_float(self, x: float) -> Array:
        """Return the number whose rounding gives the float x, as a decimal (1,).

        Infinity, nan and `SMALLEST_NORMAL` stand for themselves, unlike in finite fields.
        """
        if not math.isfinite(x) or abs(x) == SMALLEST_NORMAL:
            return self.one * Decimal(x)
        return super()._from_float(x)

    def from_fraction(self, x: Fraction) -> Array:
        """Return a fraction as a decimal, in an array (1,).

        If `rounding_seed` is not 0, a fraction whose denominator is a power of 2, as that of a
        float, is replaced by a number that rounds to the same float.
        """
        is_float = x.denominator & (x.denominator - 1) == 0
        if is_float:
            return self.one * self._unrounded(float(x))
        return self.one * (Decimal(x.numerator) / Decimal(x.denominator))

    def from_integers(self, integers: Any) -> Array:
        """Return integers as decimals (..., 1)."""
        return _elementwise(Decimal, np.asarray(integers, object))[..., None]

    def irrational(self, a: int, b: int) -> Array:
        """Return pi^(a/2) 2^(b/2) for integers a and b, to the digits of the decimal context."""
        root_of_pi = _pi(getcontext().prec).sqrt()
        return self.one * (root_of_pi**a * Decimal(2).sqrt() ** b)

    def _unrounded(self, x: float) -> Decimal:
        """Return a decimal that rounds to the float x: x (1 +- 2^-53), or x itself.

        It is x itself if `rounding_seed` is 0, if x has fewer than 30 significant bits, or if x is
        not finite. The sign is drawn from the seed and from the mantissa of x.
        """
        if not self.rounding_seed or not math.isfinite(x):
            return Decimal(x)
        if x.as_integer_ratio()[0].bit_length() < MIN_ROUNDED_BITS:
            return Decimal(x)
        # the mantissa, so that x, -x and 2 x get the same sign
        size = abs(math.frexp(x)[0])
        sign = random.Random(size * self.rounding_seed).choice((-1, 1))
        return Decimal(x) * (1 + Decimal(sign) / 2**53)

    add: Any = staticmethod(np.add)
    sub: Any = staticmethod(np.subtract)
    mul: Any = staticmethod(np.multiply)
    neg: Any = staticmethod(np.negative)
    sum: Any = staticmethod(np.add.reduce)
    cumsum: Any = staticmethod(np.cumsum)

    def inv(self, a: Array) -> Array:
        """Return 1 / a, or NaN where a is 0."""
        return _elementwise(lambda x: 1 / x if x else Decimal("NaN"), a)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product (..., n, m, 1) of (..., n, k, 1) and (..., k, m, 1)."""
        return np.matmul(a[..., 0], b[..., 0])[..., None]

    def exp(self, a: Array, log_terms: Array | None = None) -> Array:
        """Return e^a to the digits of the decimal context; `log_terms` are ignored."""
        exp = partial(self._cached, Decimal.exp, getcontext().prec)
        return _elementwise(exp, a)

    def log(self, u: Array) -> tuple[Array, None]:
        """Return log u, and None in place of log terms, which decimals do not need."""
        log = partial(self._cached, Decimal.ln, getcontext().prec)
        return _elementwise(log, u), None

    def sqrt(self, u: Array) -> Array:
        """Return the nonnegative square root of each u; NaN for negative u."""
        return _elementwise(Decimal.sqrt, u)

    def record_square(self, square: Array, root: Array, floats: Array) -> None:
        """Do nothing: decimal roots are never negative.

        Parameters
        ----------
        square, root, floats : array
            Ignored.
        """

    def cos_and_sin(self, a: Array) -> tuple[Array, Array]:
        """Return cos a and sin a."""
        return _elementwise(_cos, a), _elementwise(_sin, a)

    def random_function(self, name: str, a: Array) -> Array:
        """Return NaN for each entry of a: random functions of finite fields have no decimals."""
        return np.full(a.shape, Decimal("NaN"), object)

    def opaque(self, name: str, a: Array, odd: bool | None = None) -> Array:
        """Return the values at a of the function called `name`, from its entry of `SERIES`.

        Parameters
        ----------
        name : str
            The name of the function, such as "erf" or "digamma".
        a : array of Decimal, shape (..., 1)
            The arguments.
        odd : bool, optional
            Ignored: the series is odd or even by itself.

        Raises
        ------
        NoSeries
            If `SERIES` has no entry of this name.
        """
        if name not in SERIES:
            raise NoSeries(name)
        return _elementwise(SERIES[name], a)


def _elementwise(function: Callable[[Any], Any], a: Array) -> Array:
    """Return an object array of the shape of `a` with function(x) for each of its entries x."""
    out = np.empty(a.shape, object)
    out.reshape(-1)[:] = [function(x) for x in a.ravel().tolist()]
    return out


# --- series, computed to the digits of the active decimal context


def _series(
    term: Decimal, z: Decimal, n: Callable[[int], Any], d: Callable[[int], Any]
) -> Decimal:
    """Return the sum of a series, given its first term and the ratios z n(k) / d(k) of neighbours.

    The ratio for k = 0 is that of the second term to the first. The sum ends when a term no longer
    changes it at the precision of the decimal context.
    """
    total = Decimal(0)
    k = 0
    while total + term != total:
        total += term
        term = term * z * n(k) / d(k)
        k += 1
    return total


@cache
def _pi(precision: int) -> Decimal:
    """Return pi to `precision` digits by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext() as more_digits:
        more_digits.prec = precision + GUARD_DIGITS
        return 16 * _arctan(Decimal(1) / 5) - 4 * _arctan(Decimal(1) / 239)


def _arctan(x: Decimal) -> Decimal:
    """Return arctan x by the series x - x^3 / 3 + x^5 / 5 - ...; NaN unless x is finite.

    While |x| > 1/4 the angle is halved first: arctan x = 2 arctan(x / (1 + sqrt(1 + x^2))).
    """
    if not x.is_finite():
        return x * 0
    if abs(x) > Decimal("0.25"):
        return 2 * _arctan(x / (1 + (1 + x * x).sqrt()))
    return _series(x, -x * x, lambda k: 2 * k + 1, lambda k: 2 * k + 3)


def _arcsin(x: Decimal) -> Decimal:
    """Return arcsin x as arctan(x / sqrt(1 - x^2)), for |x| < 1."""
    return _arctan(x / (1 - x * x).sqrt())


def _cos(x: Decimal) -> Decimal:
    """Return cos x, computed as sin(x + pi / 2)."""
    with localcontext() as more_digits:
        more_digits.prec += max(0, x.adjusted())
        cos = _sin(x + _pi(more_digits.prec) / 2)
    return +cos


def _sin(x: Decimal) -> Decimal:
    """Return sin x by the series y - y^3 / 6 + y^5 / 120 - ... of y = x - n pi, |y| <= pi / 2."""
    if not x.is_finite():
        return x * 0
    with localcontext() as more_digits:
        more_digits.prec += GUARD_DIGITS + max(0, x.adjusted())
        pi = _pi(more_digits.prec)
        half_turns = (x / pi).to_integral_value()
        y = x - half_turns * pi
        sin = _series(y, -y * y, lambda k: 1, lambda k: (2 * k + 2) * (2 * k + 3))
    return -sin if half_turns % 2 else +sin


def _erf(a: Decimal) -> Decimal:
    """Return erf a as 2/sqrt(pi) e^(-a^2) (a + 2/3 a^3 + 4/15 a^5 + ...).

    The terms have one sign, so that no digits cancel.
    """
    if not a.is_finite():
        return a * 0
    if a * a > 3 * getcontext().prec:  # 1 - |erf a| < e^(-a^2), and log 10 < 3
        return Decimal(1).copy_sign(a)
    total = _series(a, a * a, lambda k: 2, lambda k: 2 * k + 3)
    return 2 / _pi(getcontext().prec).sqrt() * (-a * a).exp() * total


@cache
def _bernoulli(count: int) -> list[Fraction]:
    """Return the first `count` Bernoulli numbers of even index, B_2, B_4, ..., as fractions."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        terms = (math.comb(n + 1, k) * b for k, b in enumerate(numbers))
        numbers.append(-sum(terms, Fraction(0)) / (n + 1))
    return numbers[2::2]


def _polygamma(n: int, x: Decimal) -> Decimal:
    """Return the n-th derivative of digamma at x > 0, digamma for n = 0, log Gamma for n = -1.

    From x = 50 on it is computed by 40 terms of Stirling's series, which give 80 digits; below by
    the recurrence from x to x + 1. It is NaN unless x is positive and finite.
    """
    if not x > 0 or not x.is_finite():
        return Decimal("NaN")
    shift = Decimal(0)  # sum of the terms that the recurrence from x to x + 1 adds
    while x < STIRLING_START:
        shift += x.ln() if n < 0 else math.factorial(n) / x ** (n + 1)
        x += 1
    if n < 0:
        log_2_pi = (2 * _pi(getcontext().prec)).ln()
        total = (x - Decimal("0.5")) * x.ln() - x + log_2_pi / 2
    else:
        total = math.factorial(n) / (2 * x ** (n + 1))
        total += -x.ln() if n == 0 else math.factorial(n - 1) / x**n
    for k, b in enumerate(_bernoulli(N_STIRLING_TERMS), 1):
        rising = Decimal(math.factorial(2 * k + n - 1)) / math.factorial(2 * k)
        total += Decimal(b.numerator) / b.denominator * rising / x ** (2 * k + n)
    if n < 0:
        return total - shift
    return (-1) ** (n + 1) * (total + shift)


SERIES: dict[str, Callable[[Decimal], Decimal]] = {
    "arcsin": _arcsin,
    "arctan": _arctan,
    "digamma": partial(_polygamma, 0),
    "erf": _erf,
    "gammaln": partial(_polygamma, -1),
    **{f"polygamma {n}": partial(_polygamma, n) for n in range(1, 5)},
}

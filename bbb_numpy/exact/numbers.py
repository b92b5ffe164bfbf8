"""Numbers of a finite field, with derivatives: what exact proofs compute with (D44).

A `Residue` is a number modulo a prime p of 61 bits that is drawn, with its derivative along one
direction and a float that decides comparisons and nothing else. By its `Laws` exp of an argument of
which nothing is known is a random residue, log the inverse of exp, both with their exact
derivatives and ``exp(a + b) = exp(a) exp(b)``. A `Long` has sixty digits in the place of residues.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from numbers import Real
from types import NotImplementedType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DIGITS",
    "Laws",
    "Long",
    "Number",
    "Residue",
    "Untraceable",
    "exact",
    "long",
    "still",
    "untangled",
    "variables",
    "within",
]

Array = NDArray[Any]
BITS = 61
DIGITS = 60
FLOATS = (float, int, np.float64)
LOG_2 = Decimal(2).ln(Context(6 * DIGITS))
MEMORY = 1000  # how many exponentials back a law is looked for
ERF_SLOPE = 2.0 / math.sqrt(math.pi)  # of erf at 0


class Untraceable(TypeError):
    """Something was done with a number that has no exact form."""


def _compared(operation: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    """Return the method that compares floats, and refuses nan and ties of different numbers."""

    def compared(self: Number, other: Any) -> bool:
        if not isinstance(other, Number):
            if not math.isfinite(other):
                return operation(self.v, float(other))
            other = self.constant(other)
        if math.isnan(self.v) or math.isnan(other.v):
            raise Untraceable("a number that is nan in floats is compared, so no path is right")
        if self.v == other.v and self.a != other.a and not self.rounded:
            raise Untraceable(
                "two different numbers of the same size are compared: this theta lies on a kink "
                "or a tie. Take another"
                if self.b or other.b
                else "data are compared with a number that they equal: pass labels and masks as "
                "integers or booleans"
            )
        found = operation(self.v, other.v)
        self.goes(found)
        return found

    return compared


class Number:
    """A number with its derivative along one direction; NumPy computes with arrays of them."""

    __slots__ = ("a", "b", "v")  # number and derivative, int or Decimal; the size, for comparisons
    modulus: ClassVar[Any]
    known: ClassVar[dict[Any, Number]]  # constants that were met
    rounded: ClassVar[bool] = False

    def __init__(self, a: Any, b: Any, v: float) -> None:
        self.a, self.b, self.v = a, b, v

    # --- what differs between residues and decimals

    constant: ClassVar[Any]  # from a float or a fraction to the number that it is
    variable: ClassVar[Any]  # from a size and a tangent to an argument that moves
    tangent: ClassVar[Any]  # to an entry of a random direction
    laws: ClassVar[Any]  # what has exp, log, sqrt, erf and 1 / a of a

    def goes(self, found: bool) -> None:
        """Take note of what a comparison found."""

    def squared(self) -> None:
        """Take note of the square of this number."""

    # --- the field; the remainder leaves a Decimal as it is

    def _other(self, x: Any) -> Any:
        if type(x) in FLOATS:
            found = self.known.get(x)
            if found is None:
                found = self.known[x] = self.constant(x)
            return found
        if isinstance(x, Number):
            if x.modulus != self.modulus:
                raise Untraceable("a number of an earlier call is used: the function keeps it")
            return x
        if isinstance(x, float | int | Real):  # Real, which is slow to ask, comes last
            return self.constant(x)
        return self.constant(int(x)) if isinstance(x, np.bool_) else None

    def __add__(self, other: Any) -> Number | NotImplementedType:
        o = other if type(other) is type(self) else self._other(other)
        if o is None:
            return NotImplemented
        p = self.modulus
        return type(self)((self.a + o.a) % p, (self.b + o.b) % p, self.v + o.v)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Number | NotImplementedType:
        o = other if type(other) is type(self) else self._other(other)
        if o is None:
            return NotImplemented
        p = self.modulus
        return type(self)((self.a - o.a) % p, (self.b - o.b) % p, self.v - o.v)

    def __rsub__(self, other: Any) -> Number | NotImplementedType:
        o = self._other(other)
        return NotImplemented if o is None else o - self

    def __mul__(self, other: Any) -> Number | NotImplementedType:
        """Return the product: (a b)' = a b' + a' b."""
        o = other if type(other) is type(self) else self._other(other)
        if o is None:
            return NotImplemented
        p = self.modulus
        if self.a == o.a:
            self.squared()
        slope = self.a * o.b + self.b * o.a if o.b or self.b else o.b
        return type(self)(self.a * o.a % p, slope % p, self.v * o.v)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Number | NotImplementedType:
        """Return the quotient q = a / b: q' = (a' - q b') / b."""
        o = other if type(other) is type(self) else self._other(other)
        if o is None:
            return NotImplemented
        p, over = self.modulus, self.laws.inverse(o.a)
        q = self.a * over % p
        return type(self)(q, (self.b - q * o.b) * over % p, _divided(self.v, o.v))

    def __rtruediv__(self, other: Any) -> Number | NotImplementedType:
        o = self._other(other)
        return NotImplemented if o is None else o / self

    def __pow__(self, n: Any) -> Any:
        """Return the power: by products for a whole n, as a root for n = 1/2, else exp(n log)."""
        halves = math.nan if isinstance(n, Number) else 2 * float(n)
        if not halves.is_integer():
            return (n * self.log()).exp()
        whole = halves % 2 == 0
        factor, out = self if whole else self.sqrt(), self.constant(1)
        times = abs(int(halves)) // (2 if whole else 1)
        while times:
            if times % 2:
                out = out * factor
            times //= 2
            factor = factor * factor if times else factor
        return out if n >= 0 else 1 / out

    def __rpow__(self, base: Any) -> Any:
        return (self * self.constant(base).log()).exp()

    def __neg__(self) -> Number:
        return type(self)(-self.a % self.modulus, -self.b % self.modulus, -self.v)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        """Return a or -a, as the float says."""
        return -self if self < 0 else self

    def conjugate(self) -> Number:
        """Return a: all numbers are real."""
        return self

    real = property(conjugate)

    @property
    def imag(self) -> Number:
        """0."""
        return self.constant(0)

    # --- elementary functions; NumPy's ufuncs call these methods

    def exp(self) -> Number:
        """Return e^a, with slope e^a a'."""
        e = self.laws.exp(self.a)
        return type(self)(e, e * self.b % self.modulus, _exp(self.v))

    def log(self) -> Number:
        """Return log a, with slope a' / a."""
        slope = self.b * self.laws.inverse(self.a) % self.modulus
        return type(self)(self.laws.log(self.a), slope, _log(self.v))

    def sqrt(self) -> Number:
        """Return r with r^2 = a, with slope a' / (2 r)."""
        r = self.laws.sqrt(self.a)
        slope = self.b * self.laws.inverse(2 * r) % self.modulus
        return type(self)(r, slope, math.sqrt(self.v) if self.v >= 0 else math.nan)

    def log1p(self) -> Any:
        """Return log(1 + a)."""
        return (self + 1).log()

    def expm1(self) -> Any:
        """Return e^a - 1."""
        return self.exp() - 1

    def tanh(self) -> Any:
        """Return (1 - e^-2a) / (1 + e^-2a)."""
        e = (self * -2).expm1()
        return -e / (2 + e)

    # --- comparisons, by the float

    __lt__, __le__ = _compared(operator.lt), _compared(operator.le)
    __gt__, __ge__ = _compared(operator.gt), _compared(operator.ge)
    __eq__ = _compared(operator.eq)
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self != 0

    def __float__(self) -> float:
        """Refuse: a float has no derivative."""
        raise Untraceable("a float is made of an exact number, which would lose its derivative")

    __int__ = __index__ = __complex__ = __float__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.v!r})"

    def erf(self) -> Number:
        """Return erf a, with slope 2/sqrt(pi) e^-a^2 a'; the float 2/sqrt(pi) stands for itself."""
        p, slope = self.modulus, (-(self * self)).exp() * ERF_SLOPE
        value = self.laws.erf(self.a, -self.a % p) % p
        return type(self)(value, slope.a * self.b % p, math.erf(self.v))


class Laws:
    """exp and log of residues: random where nothing is known of them, else by their laws.

    One table of pairs (t, e^t) for both; whatever is found by a law is entered too. A pair that is
    drawn has e^t = r^4, so that e^(t/2) and e^(t/4) are known. The float ``math.log(2)`` stands for
    log 2, and its multiples for the logarithms of powers of two. The prime is drawn as well: with a
    fixed one, a gradient could be wrong by a multiple of it.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.p = _prime(self.draw)
        self.half = (self.p + 1) // 2
        self.path: list[bool] = []  # what the comparisons found, and the signs of squares' roots
        self.squares: dict[int, tuple[int, bool]] = {}  # t^2 -> |t|, and whether it is t
        self.moved = False  # whether an argument does
        self.loose = False  # whether a root was drawn that does not exist
        self.exps: dict[int, int] = {0: 1}  # t -> e^t
        self.logs: dict[int, int] = {1: 0}  # e^t -> t
        self.roots: dict[int, int] = {}
        self.erfs: dict[int, int] = {0: 0}
        self.recent: list[tuple[int, int, int]] = []  # t, e^t, e^-t
        self.logged: list[tuple[int, int, int]] = []  # those found by log
        self.last = 0, 1
        for power in range(1, 4):
            pair = self.constant(power * math.log(2)), 1 << power, pow(1 << power, -1, self.p)
            self._enter(*pair)
            self.recent.append(pair)

    @property
    def transcendental(self) -> bool:
        """Whether an exponential or a logarithm was met, beside those of log 2."""
        return len(self.recent) > 3

    def random(self) -> int:
        """Return a residue other than 0."""
        return self.draw.randrange(1, self.p)

    def inverse(self, a: int) -> int:
        """Return 1 / a, by Euclid's algorithm."""
        if a == 0:
            raise Untraceable("a division by 0")
        return pow(a, -1, self.p)

    def constant(self, x: Any) -> int:
        """Return the residue n / d that a float or a fraction is."""
        top, bottom = (x if isinstance(x, Fraction) else float(x)).as_integer_ratio()
        return top * pow(bottom, -1, self.p) % self.p

    def _enter(self, t: int, e: int, over: int) -> None:
        self.exps[t], self.exps[-t % self.p] = e, over
        self.logs[e], self.logs[over] = t, -t % self.p

    def exp(self, t: int) -> int:
        """Return e^t."""
        found = self.exps.get(t)
        if found is not None:
            return found
        half = self.exps.get(t * self.half % self.p)
        if half is not None:
            e = half * half % self.p  # e^2t = (e^t)^2
        else:
            last, e_last = self.last  # one that was drawn: sums of three are found beside it
            e = self._sum(t) or self._sum((t - last) % self.p) * e_last % self.p
            if not e:
                return self._drawn(t)
        over = pow(e, -1, self.p)
        self._enter(t, e, over)
        self.recent.append((t, e, over))
        return e

    def _met(self) -> list[tuple[int, int, int]]:
        """Return the last pairs, the newest first, and the powers of two."""
        return self.recent[:-MEMORY:-1] + self.logged[:-MEMORY:-1] + self.recent[:3]

    def _sum(self, t: int) -> int:
        """Return e^t = e^s e^(t - s) = e^(t + s) / e^s if both of either are known, else 0."""
        exps, p = self.exps, self.p
        if t in exps:
            return exps[t]
        for s, e, over in self._met():
            if (t - s) % p in exps:
                return exps[(t - s) % p] * e % p
            if (t + s) % p in exps:
                return exps[(t + s) % p] * over % p
        return 0

    def _drawn(self, t: int) -> int:
        r = self.random()
        over, step = pow(r, -1, self.p), t * self.half * self.half % self.p
        for _ in range(3):
            self._enter(step, r, over)
            r, over, step = r * r % self.p, over * over % self.p, 2 * step % self.p
        e, over = self.exps[t], self.exps[-t % self.p]
        self.recent.append((t, e, over))
        self.last = t, e
        return e

    def log(self, u: int) -> int:
        """Return log u."""
        found = self.logs.get(u)
        if found is not None:
            return found
        if u == 0:
            raise Untraceable("the logarithm of 0")
        over = pow(u, -1, self.p)
        logs, p = self.logs, self.p
        for s, e, other in self._met():  # log u = log(u / e^s) + s
            if u * other % p in logs:
                t = (logs[u * other % p] + s) % p
                break
            if u * e % p in logs:
                t = (logs[u * e % p] - s) % p
                break
        else:
            t = self.random()
        self._enter(t, u, over)
        self.recent.append((t, u, over))
        self.logged.append((t, u, over))
        return t

    def sqrt(self, u: int) -> int:
        """Return the root of `u`: |t| of a square t^2 that was computed, else one of the field.

        The field's own has either sign, as p is drawn; that of a product is the product of roots.
        Half of all residues have none: theirs is drawn. What holds whatever r is holds for the
        root; what needs r^2 = u is found at another point, where there is one.
        """
        if u in self.squares:
            root, positive = self.squares[u]
            self.path.append(positive)
            return root
        if u not in self.roots:
            r = pow(u, (self.p + 1) // 4, self.p)  # p = 3 mod 4
            exists = r * r % self.p == u
            self.loose |= not exists
            self.roots[u] = r if exists else self.random()
        return self.roots[u]

    def erf(self, t: int, minus: int) -> int:
        """Return erf t: drawn, or minus that of `minus`, -t, as erf is odd."""
        if minus in self.erfs:
            return -self.erfs[minus]
        return self.erfs.setdefault(t, self.random())


def _prime(draw: random.Random) -> int:
    """Return a random prime of 61 bits that is 3 mod 4, by the test of Miller and Rabin."""
    while True:
        p = draw.getrandbits(BITS) | 1 << BITS - 1 | 3
        # p - 1 is twice an odd number, and these bases decide below 3e24
        if all(
            pow(a, p >> 1, p) in (1, p - 1) for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
        ):
            return p


class Residue(Number):
    """A number modulo p; each proof has a subclass with laws of its own."""

    __slots__ = ()

    @classmethod
    def constant(cls, x: Any) -> Number:
        """Return the residue of n / d."""
        return cls(cls.laws.constant(x), 0, float(x))

    @classmethod
    def variable(cls, v: float, tangent: Any) -> Number:
        """Return a random residue."""
        cls.laws.moved |= tangent != 0
        return cls(cls.laws.random(), tangent, v)

    def goes(self, found: bool) -> None:
        """Take note of what a comparison found."""
        self.laws.path.append(found)

    def squared(self) -> None:
        """Take note that the root of the square is |t|."""
        if self.v != 0 and not math.isnan(self.v):
            root = self.a if self.v > 0 else -self.a % self.modulus
            self.laws.squares[self.a * self.a % self.modulus] = root, self.v > 0


class _OfDecimals:
    exp, log, sqrt, inverse = Decimal.exp, Decimal.ln, Decimal.sqrt, staticmethod(lambda a: 1 / a)

    @staticmethod
    def erf(a: Decimal, minus: Decimal) -> Decimal:
        """Return 2/sqrt(pi) e^-a^2 [a + 2/3 a^3 + 4/15 a^5 + ...], terms of one sign."""
        if abs(a) > 12:  # 1 to 64 digits
            return Decimal(1).copy_sign(a)
        total, term, odd = Decimal(0), a, 1
        while total != total + term:
            total, odd = total + term, odd + 2
            term *= 2 * a * a / odd
        slope = Decimal("1.12837916709551257389615890312154517168810125865799771368817144342")
        return slope * (-a * a).exp() * total


class Long(Number):
    """A number of sixty digits, at the point itself: says how large an error is."""

    __slots__ = ()
    known: ClassVar[dict[Any, Number]] = {}
    shake: ClassVar[int] = 0  # if not 0: floats stand for numbers that they may be rounded from
    laws = _OfDecimals
    modulus = Decimal("Infinity")  # a remainder that leaves every number as it is
    rounded = True

    @classmethod
    def constant(cls, x: Any) -> Number:
        """Return n / d; multiples of the float ``math.log(2)`` stand for those of log 2."""
        power = float(x) / math.log(2)
        if power in (-3, -2, -1, 1, 2, 3):
            return cls(int(power) * LOG_2, Decimal(0), float(x))
        if isinstance(x, Fraction):
            return cls(Decimal(x.numerator) / Decimal(x.denominator), Decimal(0), float(x))
        return cls(cls._meant(float(x)), Decimal(0), float(x))

    @classmethod
    def variable(cls, v: float, tangent: Any) -> Number:
        """Return the float as it is."""
        return cls(cls._meant(float(v)), Decimal(tangent), float(v))

    @classmethod
    def _meant(cls, x: float) -> Decimal:
        """Return the float, or a number that is rounded to it, unless it has few digits."""
        if not cls.shake or not math.isfinite(x) or x.as_integer_ratio()[0].bit_length() < 30:
            return Decimal(x)
        digits = abs(math.frexp(x)[0])  # 0.49, -0.49 and 0.98 were rounded alike
        up_or_down = random.Random(digits * cls.shake).choice((-1, 1))
        return Decimal(x) * (1 + Decimal(up_or_down) / 2**53)

    def log1p(self) -> Any:
        """Return log(1 + a), as a - a^2 / 2 where a is not seen beside 1."""
        if self.a.adjusted() < -DIGITS:
            return self - self * self / 2
        return _finer(self.a, lambda: (self + 1).log())

    def expm1(self) -> Any:
        """Return e^a - 1, as a + a^2 / 2 where a is not seen beside 1."""
        if self.a.adjusted() < -DIGITS:
            return self + self * self / 2
        return _finer(self.a, lambda: self.exp() - 1)


def _finer(small: Decimal, number: Callable[[], Any]) -> Any:
    """Return what is computed with as many digits more as cancel beside a small number."""
    with localcontext() as context:
        context.prec -= min(0, small.adjusted())
        return number()


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan


def _exp(v: float) -> float:
    return math.exp(v) if v < 700.0 else math.inf


def _log(v: float) -> float:
    return math.log(v) if v > 0.0 else (-math.inf if v == 0.0 else math.nan)


def exact(values: Any, kind: type[Number], moving: bool = False) -> Any:
    """Return floats and arrays of them, alone or in tuples, lists and dicts, as exact numbers.

    They stand still, or move in a random direction. Everything else (whole numbers, fractions,
    truth values, names) is returned as it is.
    """
    if isinstance(values, tuple | list | dict):
        return within(values, lambda value: exact(value, kind, moving))
    if isinstance(values, float):  # np.float64 is one
        return kind.variable(float(values), kind.tangent() if moving else 0)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return variables(
            values, [kind.tangent() if moving else 0 for _ in range(values.size)], kind
        )
    return values


def within(values: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tuple, list or dict of what each entry becomes."""
    if isinstance(values, dict):
        return {key: change(value) for key, value in values.items()}
    made = [change(value) for value in values]
    if isinstance(values, list):
        return made
    return type(values)(*made) if hasattr(values, "_fields") else tuple(made)


def variables(values: Array, tangents: Any, kind: type[Number]) -> Array:
    """Return an array of floats as numbers of which each moves by its tangent."""
    out = np.empty(values.shape, object)
    flat = out.reshape(-1)
    for i, (value, tangent) in enumerate(zip(values.ravel().tolist(), tangents, strict=True)):
        flat[i] = kind.variable(value, tangent)
    return out


def still(values: Array) -> Array:
    """Return a copy of an array whose numbers are the same and do not move: for what is frozen."""
    out = np.array(values)
    if out.dtype == object:
        for index in np.ndindex(out.shape):
            one: Any = out[index]
            out[index] = type(one)(one.a, 0 * one.b, one.v)
    return out


def untangled(seed: int) -> type[Residue]:
    """Return residues of their own, with no law known yet."""
    laws = Laws(seed)
    own = {"__slots__": (), "known": {}, "laws": laws, "modulus": laws.p, "tangent": laws.random}
    return type("Residue", (Residue,), own)


def long(seed: int, shake: int = 0) -> type[Long]:
    """Return numbers of sixty digits whose random directions are their own."""
    draw = random.Random(seed)
    tangent = staticmethod(lambda: Decimal(draw.uniform(-1.0, 1.0)))
    own = {"__slots__": (), "known": {}, "tangent": tangent, "shake": shake}
    return type("Long", (Long,), own)

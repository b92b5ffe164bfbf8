"""Finite fields on plain arrays: what exact arrays compute with (D44).

The last axis of every array of residues is the *channel*, so that indices, axes and broadcasting
mean the same as without it. `Prime` has one channel, the integers modulo a prime of 50 bits that is
drawn, and is made for size: functions that are not rational are random functions of the residue.
`Gauss` adds a root of -1, so that every number of the prime field has a root. `Towers` has many
small primes, where exponentials and logarithms are powers, with all their laws.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache, cached_property, lru_cache, reduce
from hashlib import blake2b
from math import inf, isnan, log, pi
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Field", "Gauss", "Prime", "Towers", "Untraceable"]

Array = NDArray[Any]
PRIME_BITS = 50
LOW_HALF = (1 << 25) - 1  # the lower half of a residue
CACHE_BLOCK_SIZE = (
    1 << 14
)  # numbers of one pass, so that its scratch stays in the cache
MAX_INT64_TERMS = 8192  # of which a sum is below 2^63
MAX_DIRECT_PRODUCTS = 4096  # of a product of matrices: more are faster by BLAS
MAX_RECORDED_SQUARES = (
    20_000  # numbers of one array: of larger ones no squares are remembered
)
MAX_LOG_TERMS = 200_000  # and no logarithms
LOG_2 = log(2.0)
MULTIPLES_OF_LOG_2 = {
    k * LOG_2: k for k in (1, 2, 3)
}  # the floats, which stand for k log 2
# which keeps floats from a division by 0, and stands for 0
SMALLEST_NORMAL = float(np.finfo(float).tiny)
# The floats that stand for pi^(a/2) 2^(b/2), as they may be rounded, by (a, b)
IRRATIONAL_FLOATS = {
    float(np.nextafter(size, way)): (a, b)
    for a in range(-2, 3)
    for b in range(-8, 9)
    if a or b % 2
    for size in [pi ** (a / 2) * 2.0 ** (b / 2)]
    for way in (0.0, size, np.inf)
}


class Untraceable(TypeError):
    """Something was done with a number that has no exact form."""


def hash64(*parts: Any) -> int:
    """Return 64 bits that depend on all of `parts`."""
    return int.from_bytes(
        blake2b(repr(parts).encode(), digest_size=8).digest(), "little"
    )


@cache
def mixing_key(seed: int, name: str) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(hash64(seed, name, turn)) for turn in range(3))


def mix64(x: Array, key: tuple[np.uint64, ...]) -> Array:
    """Return a keyed pseudo-random function of 64 bits: rounds of the finaliser of splitmix64."""
    z = x.astype(np.uint64) ^ key[0]
    for part in key[1:]:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))) + part
    return z ^ (z >> np.uint64(29))


def _blockwise(f: Callable[..., Array], *arrays: Array) -> Array:
    """Return f of numbers, of so many at once that its scratch stays in the cache."""
    if np.broadcast(*arrays).size <= CACHE_BLOCK_SIZE:
        return f(*arrays)
    access: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    flags: Any = ["external_loop", "buffered"]
    with np.nditer(
        [*arrays, None], flags, access, order="C", buffersize=CACHE_BLOCK_SIZE
    ) as blocks:
        for *parts, out in blocks:
            out[...] = f(*parts)
        return blocks.operands[-1]


def _fractions(v: Array) -> tuple[Array, Array]:
    """Return numerators and denominators: of 0.1 or 1/3, as they are rounded, 1/10 and 1/3.

    The convergents of continued fractions up to a denominator of 10^6, the first that is rounded to
    the float; below 1000 there is at most one. Of other floats the float itself, and 1.
    """
    top, bottom = v.copy(), np.ones(v.shape, np.int64)
    open_ = (np.abs(v) > 1e-7) & (np.abs(v) < 1000) & (v * 2.0**20 % 1 != 0)
    whole = np.floor(v[open_])
    rest = v[open_] - whole
    p: Array = np.array([np.ones_like(whole), whole])
    q: Array = np.array([np.zeros_like(whole), np.ones_like(whole)])
    found = np.zeros(whole.size, bool)
    while (live := ~found & (rest > 0) & (q[1] <= 1e6)).any():
        with np.errstate(divide="ignore"):
            step = np.where(live, np.floor(1 / rest), 0.0)
            rest = np.where(live, 1 / rest - step, rest)
        p = np.where(live, [p[1], step * p[1] + p[0]], p)
        q = np.where(live, [q[1], step * q[1] + q[0]], q)
        found |= live & (q[1] <= 1e6) & (p[1] / q[1] == v[open_])
    top[open_], bottom[open_] = (
        np.where(found, p[1], v[open_]),
        np.where(found, q[1], 1),
    )
    return top, bottom


@lru_cache(100_000)
def _fraction(x: float) -> Fraction:
    top, bottom = _fractions(np.array(x))
    return Fraction(float(top)) / int(bottom)


def random_prime(draw: random.Random) -> int:
    """Return a random prime of 50 bits that is 7 modulo 8, by the test of Miller and Rabin.

    -1 has no root there, and 2 has one.
    """
    while True:
        p = draw.getrandbits(PRIME_BITS) | 1 << PRIME_BITS - 1 | 7
        # p - 1 is twice an odd number, and these bases decide below 3e14 times 2^10
        if all(
            pow(a, p >> 1, p) in (1, p - 1) for a in (2, 3, 5, 7, 11, 13, 17, 19, 23)
        ):
            return p


class Field:
    """What all fields share: residues modulo a prime, or several; arrays of them are (..., C)."""

    n_channels: ClassVar[int] = 1
    dtype: ClassVar[Any] = np.int64
    # floats of one array that may stand for irrational numbers
    max_symbolic_size: ClassVar[float] = 16
    n_levels: ClassVar[int] = 1  # on one of them an excess is to be 0 in all channels
    # whether exponentials and logarithms have all their laws
    knows_all_laws: ClassVar[bool] = False
    is_decimal: ClassVar[bool] = (
        False  # whether numbers are decimals at the point itself
    )
    p: Any  # the prime, or those of the channels
    one: Array  # (C,)
    log_2: Array  # (C,), for which a float stands
    # what each field has for itself; 1/0 is 0
    mul: Callable[[Array, Array], Array]
    inv: Callable[[Array], Array]
    matmul: Callable[[Array, Array], Array]  # (..., n, k, C) and (..., k, m, C)
    from_fraction: Callable[[Fraction], Array]  # (C,)
    random_function: Callable[[str, Array], Array]
    _exp: Callable[[Array], Array]
    _log: Callable[[Array], Array]

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(hash64(type(self).__name__, seed))
        self.constants: dict[float, Array] = {}  # constants that were met
        self.exact_constants: dict[Any, Any] = {}  # and as exact numbers
        self.evaluation: Any = None  # what the function returned
        # what comparisons found, and the signs of squares' roots
        self.path: list[Array] = []
        self.squares: list[tuple[Array, Array, Array]] = []  # t^2, t and its floats
        self.n_roots = 0  # arrays of which roots were taken
        # arrays of numbers that were drawn in place of what does not exist
        self.n_substituted = 0
        self.divided_by_zero = False  # whether by 0, or the logarithm of 0 was taken
        # whether by a number that is 0 at theta, and not everywhere
        self.at_pole = False
        self.argument_moves = False  # whether an argument does
        # whether a number is given as infinity, and not only floats overflow
        self.has_infinity = False
        self.transcendental = False  # whether an exponential or a logarithm was met

    # --- arguments and constants

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return random numbers other than 0."""
        return self.rng.integers(1, self.p, (*shape, np.size(self.p)))

    def variable(self, v: Array) -> Array:
        """Return residues of arguments: random squares, so that their roots are in the field."""
        r = self.draw(v.shape)
        return self.mul(r, r)

    @cached_property
    def uninitialized(self) -> Array:
        """What stands in memory in which nothing was written."""
        return self.random_function("unwritten", self.one)

    def from_integers(self, m: Any) -> Array:
        """Return the residues of int64."""
        return np.asarray(m, np.int64)[..., None] % self.p

    def from_floats(self, v: Array) -> Array:
        """Return the residues of floats, of the fractions that they stand for; 0 of nan.

        Infinity is a random number: what is right for any is right for large ones and in the limit.
        """
        if v.size <= self.max_symbolic_size:
            each = [self._from_float(x) for x in v.ravel().tolist()]
            return np.array(each, self.dtype).reshape(*v.shape, self.n_channels)
        finite = np.isfinite(v)
        top, bottom = _fractions(np.where(finite, v, 0.0))
        m, e = np.frexp(top)
        powers, place = np.unique(e - 53, return_inverse=True)
        scale = np.array(
            [self.from_fraction(Fraction(2) ** int(e)) for e in powers], self.dtype
        )
        r = self.mul(
            self.from_integers(np.ldexp(m, 53).astype(np.int64)),
            scale[place.reshape(v.shape)],
        )
        r = (
            self.mul(r, self.inv(self.from_integers(bottom)))
            if (bottom > 1).any()
            else r
        )
        for x in (inf, -inf) if not finite.all() else ():
            r[v == x] = self._from_float(x)
        return r

    def _from_float(self, x: float) -> Array:
        found = self.constants.get(x)
        if found is None:
            size = abs(x)
            if size == inf:
                found = self.random_function("infinity", self.one)
            elif isnan(x) or size == SMALLEST_NORMAL:
                found = 0 * self.one
            elif size in IRRATIONAL_FLOATS:
                found = self.irrational(*IRRATIONAL_FLOATS[size])
            elif size in MULTIPLES_OF_LOG_2:
                found = self.mul(
                    self.from_integers(MULTIPLES_OF_LOG_2[size]), self.log_2
                )
            else:
                found = self.from_fraction(_fraction(size))
            found = self.constants[x] = found if x >= 0 else self.neg(found)
        return found

    def irrational(self, a: int, b: int) -> Array:
        """Return pi^(a/2) 2^(b/2): a root of 2, and of pi a random root."""
        root_of_pi = self.random_function("root of pi", self.one)
        of_2 = self.from_fraction(Fraction(2) ** (b // 2))
        of_2 = (
            self.mul(of_2, self.root(self.from_fraction(Fraction(2))))
            if b % 2
            else of_2
        )
        return self.mul(
            self.power(root_of_pi if a > 0 else self.inv(root_of_pi), abs(a)), of_2
        )

    # --- rational functions

    def record_zeros(self, a: Array, v: Array) -> None:
        """Take note of zeros among denominators, or arguments of logarithms, with floats v.

        What does not exist there is a number in a field: digits have to say whether it is needed.
        """
        zero, zero_here = (a == 0).all(axis=-1), v == 0
        self.divided_by_zero |= bool(zero.any() or zero_here.any())
        self.at_pole |= bool((zero_here & ~zero).any())

    def add(self, a: Array, b: Array) -> Array:
        return (a + b) % self.p

    def sub(self, a: Array, b: Array) -> Array:
        return (a - b) % self.p

    def neg(self, a: Array) -> Array:
        return self.sub(np.zeros(1, np.int64), a)

    def sum(self, a: Array, axis: Any) -> Array:
        """Return sums over axes."""
        return np.add.reduce(a, axis=axis) % self.p

    def cumsum(self, a: Array, axis: int) -> Array:
        return np.cumsum(a, axis) % self.p

    def power(self, a: Array, n: Any) -> Array:
        """Return a^n for a whole number n that is not negative, or such an array."""
        out = np.broadcast_to(self.one, np.broadcast_shapes(a.shape, np.shape(n)))
        for place in range(int(np.max(n, initial=0)).bit_length())[::-1]:
            out, bit = self.mul(out, out), n >> place & 1
            if isinstance(bit, np.ndarray):
                out = np.where(bit, self.mul(out, a), out)
            elif bit:
                out = self.mul(out, a)
        return out

    def is_representative(self, a: Array) -> Array:
        """Return whether a and not -a stands for both."""
        return a > self.p - a

    # --- roots

    def record_square(self, square: Array, root: Array, v: Array) -> None:
        """Take note of squares t^2 of t, with floats v."""
        square, root = (a.reshape(-1, self.n_channels).copy() for a in (square, root))
        self.squares.append((square, root, v.flatten()))

    def sqrt(self, u: Array) -> Array:
        """Return roots: |t| of squares that were computed, else the field's, of either sign."""
        r = self.root(u)
        self.n_roots += 1
        flat, found = u.reshape(-1, self.n_channels), r.reshape(-1, self.n_channels)
        for square, t, v in self.squares if len(flat) <= MAX_RECORDED_SQUARES else ():
            order = np.argsort(square[:, 0], kind="stable")
            place = np.searchsorted(square[order, 0], flat[:, 0])
            at = order[np.minimum(place, len(order) - 1)]
            same = (square[at] == flat).all(axis=1) & np.isfinite(v[at]) & (v[at] != 0)
            positive = v[at[same]] > 0
            found[same] = np.where(
                positive[:, None], t[at[same]], self.neg(t[at[same]])
            )
            self.path.append(positive)
        return found.reshape(r.shape)

    def root(self, u: Array) -> Array:
        """Return u^((p + 1) / 4), a root of u or of -u; in the second case any number."""
        r = self.power(u, (self.p + 1) // 4)
        bad = self.mul(r, r) != u
        if bad.any():
            self.n_substituted += 1
            r = np.where(bad, self.random_function("sqrt", u), r)
        return r

    # --- exponentials and logarithms

    def exp(self, a: Array, note: Array | None = None) -> Array:
        """Return e^a; of a = a0 + k log u with k = 1 or -1, by its note, e^a0 u^k."""
        self.transcendental = True
        if note is None:
            return self._exp(a)
        note = self._with_factor(note, np.broadcast_to(self.one, a.shape))
        known = (note[..., 2, :] == self.one).all(axis=-1)[..., None, None]
        note = note if known.all() else np.where(known, note, self.no_log_term)
        return self.mul(self._exp(self.sub(a, note[..., 1, :])), note[..., 0, :])

    def log(self, u: Array) -> tuple[Array, Array | None]:
        """Return t = log u, and the note (u, t, 1) (..., 3, C) by which exp finds its way back."""
        self.transcendental = True
        t = self._log(u)
        if u.size > MAX_LOG_TERMS:
            return t, None
        return t, np.stack([u, t, np.broadcast_to(self.one, u.shape)], axis=-2)

    # The note (u, t, k) of a number says that it contains k t, where t = log u. What it says of
    # exp is right whether that is so or not: e^a = e^(a - t) u for any such u and t.

    @cached_property
    def no_log_term(self) -> Array:
        """The note of a number in which no logarithm is known."""
        return np.array([self.one, 0 * self.one, self.one])

    def add_log_terms(self, one: Array, other: Array) -> Array:
        """Return the note of a sum: of both, where k is the same, else of the one where k is 1."""
        other = self._with_factor(other, one[..., 2, :])
        u, t, k = (one[..., part, :] for part in range(3))
        v, s, m = (other[..., part, :] for part in range(3))
        both = np.stack([self.mul(u, v), self.add(t, s), k], axis=-2)
        same = (k == m).all(axis=-1)
        if same.all():
            return both
        empty = (t == 0).all(axis=-1)
        simple = (m == self.one).all(axis=-1) & (s != 0).any(axis=-1)
        chosen = np.where((empty | simple)[..., None, None], other, one)
        return np.where(same[..., None, None], both, chosen)

    def _with_factor(self, note: Array, k: Array) -> Array:
        """Return a note with k for -k."""
        u, t, own = (note[..., part, :] for part in range(3))
        turn = (own == self.neg(k)).all(axis=-1)
        if not turn.any():
            return note
        return np.where(
            turn[..., None, None], np.stack([self.inv(u), self.neg(t), k], -2), note
        )

    def negate_log_terms(self, note: Array) -> Array:
        """Return the note of -x."""
        u, t, k = (note[..., part, :] for part in range(3))
        return np.stack([self.inv(u), self.neg(t), k], axis=-2)

    def scale_log_terms(self, note: Array, a: Array) -> Array:
        """Return the note of a multiple a x."""
        u, t, k = (note[..., part, :] for part in range(3))
        k = self.mul(k, a)
        return np.stack([np.broadcast_to(part, k.shape) for part in (u, t, k)], axis=-2)

    # --- functions of which the field knows little

    def opaque(self, name: str, a: Array, odd: bool | None = None) -> Array:
        """Return a random function of the residue, an odd or an even one if it is known to be."""
        self.transcendental = True
        if odd is None:
            return self.random_function(name, a)
        turned = self.is_representative(a)
        r = self.random_function(name, np.where(turned, self.neg(a), a))
        return (
            np.where(a == self.neg(a), 0, np.where(turned, self.neg(r), r))
            if odd
            else r
        )

    def cos_and_sin(self, a: Array) -> tuple[Array, Array]:
        """Return cos and sin: a point of the unit circle, turned round by the angle's sign."""
        t = self.opaque("tan", a, odd=True)
        square = self.mul(t, t)
        over = self.inv(self.add(self.one, square))
        return self.mul(self.sub(self.one, square), over), self.mul(
            self.add(t, t), over
        )


class Prime(Field):
    """Residues modulo a prime of 50 bits, 7 modulo 8, that is drawn: a constant does not vanish.

    A product a b is an integer of 100 bits, of which int64 keeps the last 64. So does a b - q p,
    which lies in (-p, p) for a whole number q within 7/8 of a b / p: and a float is.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.p = random_prime(random.Random(hash64("prime", seed)))
        self.modulus, self.p_reciprocal = np.uint64(self.p), 1.0 / self.p
        self.one = self.from_integers(1)
        self.log_2 = self.random_function("log 2", self.one)

    def from_fraction(self, x: Fraction) -> Array:
        return self.from_integers(x.numerator * pow(x.denominator, -1, self.p) % self.p)

    def add(self, a: Array, b: Array) -> Array:
        r = (a + b).view(np.uint64)
        # r - p wraps round where r < p
        return np.minimum(r, r - self.modulus).view(np.int64)

    def sub(self, a: Array, b: Array) -> Array:
        r = (a - b).view(np.uint64)
        return np.minimum(r, r + self.modulus).view(np.int64)

    def mul(self, a: Array, b: Array) -> Array:
        return _blockwise(self._product, a, b)

    def _product(self, a: Array, b: Array) -> Array:
        q = a.astype(float) * b
        q *= self.p_reciprocal  # within 3/8: three roundings of 2^-53 of less than 2^50
        np.rint(q, out=q)
        r = a * b
        r -= q.astype(np.int64) * self.p
        # in (-p, p): of r and r + p the smaller one, as -1 is the largest
        u = r.view(np.uint64)
        np.minimum(u, u + self.modulus, out=u)
        return r

    def inv(self, a: Array) -> Array:
        """Return 1 / a by Euclid of a product tree's root, and three products each; 1/0 is 0."""
        flat: Array = np.where(a == 0, 1, a).reshape(-1)
        levels: list[Array] = []
        while len(flat) > 8:
            flat = np.append(flat, 1) if len(flat) % 2 else flat
            levels.append(flat)
            flat = Prime.mul(self, flat[0::2], flat[1::2])
        up = np.array([pow(x, -1, self.p) for x in flat.tolist()], np.int64)
        for flat in reversed(levels):
            down = np.empty(len(flat), np.int64)
            up = up[: len(flat) // 2]
            down[0::2], down[1::2] = (Prime.mul(self, up, flat[k::2]) for k in (1, 0))
            up = down
        return up[: a.size].reshape(a.shape) * (a != 0)

    def sum(self, a: Array, axis: Any) -> Array:
        return (
            super().sum(a, axis)
            if a.size <= MAX_INT64_TERMS
            else self._sum_by_halves(np.add.reduce, a, axis)
        )

    def cumsum(self, a: Array, axis: int) -> Array:
        return self._sum_by_halves(np.cumsum, a, axis)

    def _sum_by_halves(self, added: Callable[..., Array], a: Array, axis: Any) -> Array:
        low, high = added(a & LOW_HALF, axis) % self.p, added(a >> 25, axis) % self.p
        return self.add(low, self._product(high, np.array(1 << 25)))

    def matmul(self, a: Array, b: Array) -> Array:
        """Return products of matrices (..., n, k, 1) and (..., k, m, 1), large ones by BLAS.

        a is x0 + x1 2^17 + x2 2^34 and b is y0 + y1 2^25, so that each of the six products of
        limbs is a sum of at most 2048 terms below 2^42: an integer of at most 2^53, which float64
        holds, as it does each of its partial sums, in whatever order BLAS adds.
        """
        if a.size * b.shape[-2] <= MAX_DIRECT_PRODUCTS:
            return self.sum(Prime.mul(self, a[..., None, :], b[..., None, :, :, :]), -3)
        a, b = a[..., 0], b[..., 0]
        parts = range(0, a.shape[-1], 2048)
        each = (
            self._limbs(a[..., k : k + 2048], b[..., k : k + 2048, :]) for k in parts
        )
        return reduce(self.add, each)[..., None]

    def _limbs(self, a: Array, b: Array) -> Array:
        n, m = a.shape[-2], b.shape[-1]
        left = np.concatenate(
            [(a >> s & 0x1FFFF).astype(float) for s in (0, 17, 34)], axis=-2
        )
        right = np.concatenate(
            [(b & LOW_HALF).astype(float), (b >> 25).astype(float)], axis=-1
        )
        c = np.matmul(left, right).astype(np.int64) % self.p
        c = c.reshape(*c.shape[:-2], 3, n, 2, m)
        powers = np.array(
            [[(1 << s + t) % self.p for t in (0, 25)] for s in (0, 17, 34)]
        )
        return (
            np.add.reduce(Prime.mul(self, c, powers[:, None, :, None]), (-4, -2))
            % self.p
        )

    # --- functions that are not rational

    def random_function(self, name: str, a: Array) -> Array:
        """Return random residues that depend on those of `a`."""
        key = mixing_key(self.seed, name)
        r = _blockwise(lambda x: (mix64(x, key) >> np.uint64(14)).astype(np.int64), a)
        return np.where(r < self.p, r, r - self.p)

    def _exp(self, a: Array) -> Array:
        """Return a random square, with e^-a = 1 / e^a."""
        turned = self.is_representative(a)
        e = self.random_function("exp", np.where(turned, self.neg(a), a))
        e, turned = self.mul(e, e), turned[..., 0]
        e[turned] = self.inv(e[turned])
        return self._replace_known(a, e, *self._powers_of_2)

    def _log(self, u: Array) -> Array:
        return self._replace_known(
            u, self.random_function("log", u), *self._powers_of_2[::-1]
        )

    @cached_property
    def _powers_of_2(self) -> tuple[Array, Array]:
        """Return the logarithms of powers of two, and the powers."""
        k = np.arange(-3.0, 4.0)
        return self.from_floats(k * LOG_2), self.from_floats(2.0**k)

    @staticmethod
    def _replace_known(a: Array, b: Array, known: Array, values: Array) -> Array:
        """Return b, but where a is known the value that belongs to it."""
        same = (a[..., None, :] == known).all(axis=-1)
        return np.where(same.any(axis=-1)[..., None], values[same.argmax(axis=-1)], b)


class Gauss(Prime):
    """F_p[i]: two channels, the real and the imaginary part.

    Arguments are drawn from F_p, of which every number has a root here, since p is 3 modulo 4: so
    r^2 = u holds for all roots but roots of roots.
    """

    n_channels = 2

    def draw(self, shape: tuple[int, ...]) -> Array:
        return self._real(super().draw(shape))

    def from_integers(self, m: Any) -> Array:
        return self._real(super().from_integers(m))

    def _real(self, x: Array) -> Array:
        return np.concatenate([x, np.zeros(x.shape, np.int64)], axis=-1)

    def is_representative(self, a: Array) -> Array:
        x, y = a[..., :1], a[..., 1:]
        return np.where(x != 0, x > self.p - x, y > self.p - y)

    def _complex_product(
        self, times: Callable[[Array, Array], Array], a: Array, b: Array
    ) -> Array:
        """Return the product (x + i y)(u + i v), by real ones."""
        x, y, u, v = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
        real = times(x, u)
        if not y.any() and not v.any():
            return self._real(real)
        imaginary = self.add(times(x, v), times(y, u))
        return np.concatenate([self.sub(real, times(y, v)), imaginary], axis=-1)

    def mul(self, a: Array, b: Array) -> Array:
        return self._complex_product(super().mul, a, b)

    def matmul(self, a: Array, b: Array) -> Array:
        return self._complex_product(super().matmul, a, b)

    def inv(self, a: Array) -> Array:
        """Return (x - i y) / (x^2 + y^2)."""
        m, x, y = super().mul, a[..., :1], a[..., 1:]
        over = super().inv(self.add(m(x, x), m(y, y)))
        return np.concatenate([m(x, over), m(self.neg(y), over)], axis=-1)

    def random_function(self, name: str, a: Array) -> Array:
        """Return random numbers, real ones of real ones."""
        f, x, y = super().random_function, a[..., :1], a[..., 1:]
        key = np.where(
            y == 0, x, x ^ mix64(y, mixing_key(self.seed, "i")).astype(np.int64)
        )
        return np.concatenate(
            [f(name, key), np.where(y == 0, 0, f(f"i {name}", key))], axis=-1
        )

    def root(self, u: Array) -> Array:
        """Return r or i r, with r^2 = u or -u."""
        real, deeper = self._real(u[..., :1]), u[..., 1:] != 0
        r = self.power(real, (self.p + 1) // 4)
        r = np.where((self.mul(r, r) == real)[..., :1], r, r[..., ::-1])
        self.n_substituted += bool(deeper.any())
        return np.where(deeper, self.random_function("sqrt", u), r)


@cache
def _logarithms(p: int) -> tuple[int, Array]:
    """Return a generator g modulo p = 2 q + 1, and k of each power g^k."""
    g = next(g for g in range(2, p) if pow(g, p >> 1, p) != 1)  # no square, nor -1
    low = np.array([pow(g, k, p) for k in range(1 << 11)])
    high = np.array([pow(g, k << 11, p) for k in range((p >> 11) + 1)])
    powers = (high[:, None] * low % p).ravel()[: p - 1]
    logarithms = np.zeros(p, np.int32)
    logarithms[powers] = np.arange(p - 1, dtype=np.int32)
    return g, logarithms


class Towers(Field):
    """Two chains of six primes, each twice the next and 1 more; channel 2 j + i is level j of i.

    Every number has a residue in each of them. exp leads from the residues modulo p_(j+1), which is
    the order of the squares modulo p_j, to the squares modulo p_j, and log leads back, by a table:
    so e^(s + t) = e^s e^t, log u v = log u + log v, e^(t/3)^3 = e^t hold without being looked for,
    on levels that are as many fewer as exponentials and logarithms are nested.
    """

    n_chains: ClassVar[int] = 2
    n_channels = 12
    n_levels = 6
    knows_all_laws = True
    primes: ClassVar[list[int]] = [
        (lowest + 1 << 5 - level) - 1
        for level in range(6)
        for lowest in (63_419, 127_139)
    ]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.p = np.array(self.primes, np.int64)
        self.tables = [_logarithms(p) for p in self.primes[: -self.n_chains]]
        self.one = np.ones(self.n_channels, np.int64)
        self.log_2, self.n_substituted = self._log(self.from_integers(2)), 0

    def from_fraction(self, x: Fraction) -> Array:
        return np.array(
            [x.numerator * pow(x.denominator, -1, p) % p for p in self.primes], np.int64
        )

    def mul(self, a: Array, b: Array) -> Array:
        return a * b % self.p

    def inv(self, a: Array) -> Array:
        """Return 1 / a = a^(p - 2); 1/0 is 0, and is noted where it is so by chance."""
        self.n_substituted += self._partly_zero(a)
        return self.power(a, self.p - 2)

    @staticmethod
    def _partly_zero(a: Array) -> bool:
        """Return whether numbers are 0 by chance: in some channels and not in all."""
        zero = a == 0
        return bool((zero.any(axis=-1) & ~zero.all(axis=-1)).any())

    def matmul(self, a: Array, b: Array) -> Array:
        """Return products of matrices: sums of 2^9 terms below 2^44 are exact in float64."""
        a, b = (np.moveaxis(x.astype(float), -1, -3) for x in (a, b))  # (..., C, n, k)
        out, p = np.zeros(1, np.int64), self.p[:, None, None]
        for at in range(0, max(a.shape[-1], 1), 1 << 9):
            part = np.matmul(a[..., at : at + (1 << 9)], b[..., at : at + (1 << 9), :])
            out = (out + part.astype(np.int64)) % p
        return np.moveaxis(out, -3, -1)

    def random_function(self, name: str, a: Array) -> Array:
        """Return random residues that depend on those of `a`, channel by channel."""
        keys = (mixing_key(self.seed, f"{name} {c}") for c in range(self.n_channels))
        each = [mix64(a[..., c : c + 1], key) for c, key in enumerate(keys)]
        return (np.concatenate(each, axis=-1) % self.p.astype(np.uint64)).astype(
            np.int64
        )

    def _exp(self, a: Array) -> Array:
        """Return (g^2)^a; on the lowest level any number."""
        squares = np.array([g * g for g, _ in self.tables] + [1] * self.n_chains)
        out = self.power(squares, np.roll(a, -self.n_chains, axis=-1))
        lowest = self.random_function("exp", a)[..., -self.n_chains :]
        out = np.concatenate([out[..., : -self.n_chains], lowest], axis=-1)
        return np.where(a == 0, 1, out)

    def _log(self, u: Array) -> Array:
        """Return half the discrete logarithm of u or of -u; on the first level any number."""
        t, negative = self.random_function("log", u), False
        for c, (_, logarithms) in enumerate(self.tables):
            k, q = (
                logarithms[u[..., c]].astype(np.int64),
                self.primes[c + self.n_chains],
            )
            t[..., c + self.n_chains] = k * ((q + 1) // 2) % q
            negative |= bool((k % 2).any())
        t[u == 1] = 0
        self.n_substituted += negative or self._partly_zero(u)
        return t

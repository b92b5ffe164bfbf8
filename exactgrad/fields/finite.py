"""Arithmetic of finite fields on plain integer arrays; exact arrays store their numbers so (D44).

The last axis of every array of residues is the *channel*, so that indices, axes and broadcasting
mean the same as without it. `Prime` has one channel, the integers modulo a prime of 50 bits that is
drawn, and is made for size: functions that are not rational are random functions of the residue.
`Gauss` adds a root of -1, so that every number of the prime field has a root. `Towers` has many
small primes, where exponentials and logarithms are powers, with all their laws.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache, reduce
from hashlib import blake2b
from math import inf, isnan, log, pi
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGE_THETA",
    "MASK_SIZE",
    "BatchedPrime",
    "Field",
    "Gauss",
    "Prime",
    "Towers",
    "Untraceable",
    "ZeroTest",
]

Array = NDArray[Any]
PRIME_BITS = 50
LOW_HALF = (1 << 25) - 1  # bit mask of the lower 25 of the 50 bits of a residue
# Array elements that are processed at once, so that temporaries stay in the cache
CACHE_BLOCK_SIZE = 1 << 14
MAX_INT64_TERMS = 8192  # number of residues below 2^50 whose sum is below 2^63
# Scalar multiplications of a matrix product up to which it is computed without BLAS
MAX_DIRECT_PRODUCTS = 4096
# Number of products below 2^42 (of integers of 17 and 25 bits) whose sum is exact in float64
MAX_LIMB_TERMS = 2048
# Array sizes above which squares (for `Field.sqrt`) or logarithms (for `Field.exp`) are not
# recorded
MAX_RECORDED_SQUARES = 20_000
MAX_LOG_TERMS = 200_000
# Length of theta above which some number is 0 by chance modulo a small prime of `Towers`
LARGE_THETA = 20_000
# Size from which a negative constant of the program, if it is added to an exponent, is a mask
MASK_SIZE = 1e4
# Number of random points at which the excess (derivative minus the gradient to be proved) has
# to be 0 if square roots are involved
MIN_ZERO_POINTS = 4
# Largest denominator of a fraction that a float is taken to be rounded from
MAX_DENOMINATOR = 1e6
LOG_2 = log(2.0)
MULTIPLES_OF_LOG_2 = {k * LOG_2: k for k in (1, 2, 3)}  # maps the float k log 2 to k
# Programs add this float to denominators so that they never divide by 0; its residue is 0
SMALLEST_NORMAL = float(np.finfo(float).tiny)
# Maps each float to which pi^(a/2) 2^(b/2) may be rounded to the integers (a, b)
IRRATIONAL_FLOATS = {
    float(np.nextafter(size, bound)): (a, b)
    for a in range(-2, 3)
    for b in range(-8, 9)
    if a or b % 2
    for size in [pi ** (a / 2) * 2.0 ** (b / 2)]
    for bound in (0.0, size, np.inf)
}


class Untraceable(TypeError):
    """Raised by an operation that has no exact form on the numbers of a field."""


def hash64(*parts: Any) -> int:
    """Return a 64-bit integer hash of `parts`, any objects with a `repr`."""
    digest = blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@cache
def mixing_key(seed: int, name: str) -> tuple[np.uint64, ...]:
    """Return three 64-bit integers that select one pseudo-random function of `mix64`.

    Parameters
    ----------
    seed : int
        The seed of the field.
    name : str
        The name of the function.
    """
    return tuple(np.uint64(hash64(seed, name, i)) for i in range(3))


def mix64(x: Array, key: tuple[np.uint64, ...]) -> Array:
    """Return a pseudo-random uint64 for each integer in x, by rounds of the splitmix64 finaliser.

    Equal integers have equal values; another key gives another function.

    Parameters
    ----------
    x : array of int64
        The arguments of the function.
    key : tuple of uint64
        The key of the function, from `mixing_key`.

    Returns
    -------
    array of uint64
        The values of the function, of the shape of x.
    """
    z = x.astype(np.uint64) ^ key[0]
    for round_key in key[1:]:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))) + round_key
    return z ^ (z >> np.uint64(29))


def _blockwise(function: Callable[..., Array], *arrays: Array) -> Array:
    """Return an elementwise `function` of broadcast arrays, block by block to stay in the cache."""
    if np.broadcast(*arrays).size <= CACHE_BLOCK_SIZE:
        return function(*arrays)
    access: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    flags: Any = ["external_loop", "buffered"]
    with np.nditer(
        [*arrays, None], flags, access, order="C", buffersize=CACHE_BLOCK_SIZE
    ) as blocks:
        for *operands, out in blocks:
            out[...] = function(*operands)
        return blocks.operands[-1]


def _fractions(floats: Array) -> tuple[Array, Array]:
    """Return numerators and denominators of the simple fractions whose rounding gives the floats.

    The float 0.1 becomes 1/10, and the float nearest to 1/3 becomes 1/3: the first convergent of
    the continued fraction that rounds to the float, with a denominator of at most 10^6. For floats
    below 1000 there is at most one such fraction. Floats without one are returned as numerators
    (floats) with the denominator 1.
    """
    numerators = floats.copy()
    denominators = np.ones(floats.shape, np.int64)
    sizes = np.abs(floats)
    candidates = (sizes > 1e-7) & (sizes < 1000) & (floats * 2.0**20 % 1 != 0)
    target = floats[candidates]
    whole_part = np.floor(target)
    fraction = target - whole_part
    # numerators p and denominators q of the last two convergents, (2, n)
    p: Array = np.array([np.ones_like(whole_part), whole_part])
    q: Array = np.array([np.zeros_like(whole_part), np.ones_like(whole_part)])
    matched = np.zeros(whole_part.size, bool)
    while (active := ~matched & (fraction > 0) & (q[1] <= MAX_DENOMINATOR)).any():
        with np.errstate(divide="ignore"):
            term = np.where(active, np.floor(1 / fraction), 0.0)
            fraction = np.where(active, 1 / fraction - term, fraction)
        p = np.where(active, [p[1], term * p[1] + p[0]], p)
        q = np.where(active, [q[1], term * q[1] + q[0]], q)
        matched |= active & (q[1] <= MAX_DENOMINATOR) & (p[1] / q[1] == target)
    numerators[candidates] = np.where(matched, p[1], target)
    denominators[candidates] = np.where(matched, q[1], 1)
    return numerators, denominators


@lru_cache(100_000)
def _fraction(x: float) -> Fraction:
    """Return the simple fraction whose rounding gives the float x (see `_fractions`)."""
    numerator, denominator = _fractions(np.array(x))
    return Fraction(float(numerator)) / int(denominator)


def random_prime(rng: random.Random) -> int:
    """Return a random prime p of 50 bits with p = 7 modulo 8, found by the Miller-Rabin test.

    Modulo such a prime -1 has no square root, and 2 has one.
    """
    while True:
        p = rng.getrandbits(PRIME_BITS) | 1 << PRIME_BITS - 1 | 7
        # one power per base is enough, since (p - 1) / 2 is odd; the test is exact below 3.8e18
        if all(
            pow(a, p >> 1, p) in (1, p - 1) for a in (2, 3, 5, 7, 11, 13, 17, 19, 23)
        ):
            return p


@lru_cache(1000)
def prime_of_seed(seed: int) -> int:
    """Return the 50-bit prime drawn from a seed; cached, as the search for it is slow."""
    return random_prime(random.Random(hash64("prime", seed)))


@dataclass
class ZeroTest:
    """Results of the tests whether an excess is 0, at random points of one field after the other.

    The excess is the derivative of a value minus the gradient that is to be proved. Each field
    says by `Field.applies` whether it is worth a try after those before it, and by
    `Field.conclude` what follows from the points that have been tried in it.
    """

    size: int  # the length of theta
    # whether a number, such as a square root, did not exist in one of the fields so far
    lacks_roots: bool = False
    # whether the program computes a square root or a function that is not rational
    has_laws: bool = False
    n_points: int = 0  # number of random points tried in the present field
    n_zero: int = 0  # number of these points at which the excess was 0
    is_zero: bool = False  # whether the excess was 0 at the last point
    # for each level of the field, whether the excess may still be 0 after the points so far
    zero_levels: Array | bool = True

    def start(self) -> None:
        """Reset the counts of points and of zeros before points of another field are tried."""
        self.n_points = self.n_zero = 0
        self.zero_levels = True

    def record(self, field: Field, excess: Array) -> None:
        """Record whether derivative and gradient agree at one more random point of a field.

        Parameters
        ----------
        field : Field
            The field, after the function has run in it.
        excess : array, shape (..., C)
            The residues, in the C channels of the field, of the derivative minus the gradient; all
            are 0 if the gradient is right.
        """
        channels = (excess == 0).reshape(-1, field.n_channels).all(axis=0)
        levels = channels.reshape(field.n_levels, -1).all(axis=1)
        # if the gradient is right, the excess is 0 at every point on the same level of the field;
        # a point where random numbers replaced some that do not exist excludes no level
        self.zero_levels &= levels | (field.n_substituted > 0)
        self.is_zero = bool((levels & self.zero_levels).any())
        self.n_points += 1
        self.n_zero += self.is_zero
        self.lacks_roots |= field.n_substituted > 0
        self.has_laws |= field.transcendental or field.n_roots > 0


class RecordedSquare(NamedTuple):
    """Squares t^2 of n numbers t that the program has computed, with their roots t."""

    square: Array  # residues of t^2, (n, C) in a field with C channels
    root: Array  # residues of t, (n, C)
    floats: Array  # t in floating point, (n,), whose signs tell which root is |t|


class Field:
    """Base class of the fields, which also records events of one run of a function in the field.

    Arrays of residues are (..., C), with C = `n_channels`.

    Parameters
    ----------
    seed : int
        Seed from which primes, arguments and random functions are drawn.

    Attributes
    ----------
    path : list of bool arrays
        Results of comparisons, and signs of the roots of recorded squares.
    squares : list of RecordedSquare
        Squares that were computed, whose roots are known up to the sign.
    watch : callable, optional
        Called for each operation of the user's function in its place, with the arguments of
        `apply`; returns the result. By default there is none.
    evaluation : optional
        The value that the function returned; None before.
    n_roots : int
        Number of arrays of which roots were taken.
    n_rounded : int
        Number of arrays with derivatives that were rounded, or of which signs or positions were
        taken.
    n_substituted : int
        Number of arrays in which random numbers stand for what does not exist in the field.
    divided_by_zero : bool
        Whether there was a division by 0, or the logarithm of 0.
    at_pole : bool
        Whether a divisor, or an argument of a logarithm, is 0 at theta and not everywhere.
    argument_moves : bool
        Whether an argument has a derivative that is not 0.
    has_infinity : bool
        Whether the program uses infinity as a constant; floats that overflow do not count.
    largest_mask : float
        Largest finite constant, such as -1e9, that counted as minus infinity in an exponent; -inf
        if there was none.
    transcendental : bool
        Whether the program computes an exponential, a logarithm or another function that is
        neither rational nor a square root.
    """

    n_channels: int = 1
    dtype: Any = np.int64
    # largest array in which floats such as sqrt(pi) or log 2 are recognised, one by one
    max_symbolic_size: ClassVar[float] = 16
    # number of groups of channels: the gradient is right if the excess is 0 in one whole group
    n_levels: ClassVar[int] = 1
    # Whether exp and log obey all their laws, such as e^(s + t) = e^s e^t
    knows_all_laws: ClassVar[bool] = False
    # Whether numbers are decimals near theta instead of residues of random arguments
    is_decimal: bool = False
    # Whether these decimals decide comparisons, instead of floats, in which they may overflow
    decimals_decide: ClassVar[bool] = False
    p: Any  # the prime (int), or the primes (C,) of the channels
    one: Array  # the residue (C,) of 1
    log_2: Array  # the residue (C,) for which the float log 2 stands
    # operations that each field defines; inv returns 0 for 0
    mul: Callable[[Array, Array], Array]
    inv: Callable[[Array], Array]
    matmul: Callable[[Array, Array], Array]  # of (..., n, k, C) and (..., k, m, C)
    from_fraction: Callable[[Fraction], Array]  # returns one residue (C,)
    random_function: Callable[[str, Array], Array]
    # if decimals decide: returns floats that are 0, or infinite or nan where the decimals are
    infinities: Callable[[Array], Array]
    _exp: Callable[[Array], Array]
    _log: Callable[[Array], Array]

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(hash64(type(self).__name__, seed))
        self.constants: dict[float, Array] = {}  # maps a float to its residue (C,)
        # maps (number, its type) to the exact scalar that `lift` makes of it
        self.exact_constants: dict[Any, Any] = {}
        self.evaluation: Any = None
        self.watch: Callable[..., Any] | None = None
        self.path: list[Array] = []
        self.squares: list[RecordedSquare] = []
        self.n_roots = 0
        self.n_rounded = 0
        self.n_substituted = 0
        self.divided_by_zero = False
        self.at_pole = False
        self.argument_moves = False
        self.has_infinity = False
        self.largest_mask = -inf
        self.transcendental = False

    # --- whether to try the field, and what its points prove

    @classmethod
    def applies(cls, test: ZeroTest) -> bool:
        """Return whether this field may prove the gradient right where earlier fields did not."""
        return True

    def conclude(self, test: ZeroTest) -> bool | None:
        """Return True if the excess is 0, False if it is not, None if another point has to decide.

        The excess, the derivative minus the gradient to be proved, is 0 if it vanishes at one
        random point; if the program takes square roots, whose signs are random, at four points. It
        is not 0 if it is nonzero at a point at which all roots exist.
        """
        if test.n_zero and (test.n_zero == MIN_ZERO_POINTS or not self.n_roots):
            return True
        return None if test.is_zero or self.n_substituted else False

    @property
    def signs_matter(self) -> bool:
        """Whether the program uses square roots or `SMALLEST_NORMAL`, whose signs residues lose."""
        tiny = {SMALLEST_NORMAL, -SMALLEST_NORMAL} & self.constants.keys()
        return bool(self.n_roots or tiny)

    def apply(
        self,
        name: str,
        operation: Callable[..., Any],
        inputs: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Return ``operation(*inputs, **options)``, or what `watch` returns instead.

        Parameters
        ----------
        name : str
            The name of NumPy's function that the user's function has called.
        operation : callable
            Its version for exact arrays.
        inputs : tuple
            The arguments, of which at least one is exact.
        options : dict
            The keyword arguments.
        """
        watch = self.watch
        if watch is None:
            return operation(*inputs, **options)
        # the operations of which this one consists are not watched
        self.watch = None
        try:
            return watch(name, operation, inputs, options)
        finally:
            self.watch = watch

    def comparisons(self) -> Array:
        """Return the results of all comparisons of the run in their order, as one bool vector."""
        return np.concatenate([np.zeros(0, bool), *self.path])

    # --- arguments and constants

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return random nonzero residues, (*shape, C) in a field with C channels."""
        return self.rng.integers(1, self.p, (*shape, np.size(self.p)))

    def variable(self, floats: Array) -> Array:
        """Return random residues (..., C) as arguments: squares, so that they have square roots.

        Only the shape of `floats` is used.
        """
        roots = self.draw(floats.shape)
        return self.mul(roots, roots)

    @cached_property
    def uninitialized(self) -> Array:
        """The random residue, one in each channel, that stands for entries of np.empty."""
        return self.random_function("unwritten", self.one)

    def from_integers(self, integers: Any) -> Array:
        """Return the residues (..., C) of an array of integers in a field with C channels."""
        return np.asarray(integers, np.int64)[..., None] % self.p

    def from_floats(self, floats: Array) -> Array:
        """Return the residues of the simple fractions whose rounding gives the floats, (..., C).

        In arrays of up to `max_symbolic_size` floats, those of powers of sqrt(pi) and sqrt(2) and
        of multiples of log 2 are recognised as well. The residue of nan is 0. That of infinity is
        a random number: what holds for any number holds for large ones, and so in the limit.
        """
        if floats.size <= self.max_symbolic_size:
            residues = [self._from_float(x) for x in floats.ravel().tolist()]
            shape = (*floats.shape, self.n_channels)
            return np.array(residues, self.dtype).reshape(shape)
        finite = np.isfinite(floats)
        numerators, denominators = _fractions(np.where(finite, floats, 0.0))
        mantissas, exponents = np.frexp(numerators)
        powers, positions = np.unique(exponents - 53, return_inverse=True)
        residues = [self.from_fraction(Fraction(2) ** int(e)) for e in powers]
        scales = np.array(residues, self.dtype)[positions.reshape(floats.shape)]
        integers = np.ldexp(mantissas, 53).astype(np.int64)
        r = self.mul(self.from_integers(integers), scales)
        if (denominators > 1).any():
            r = self.mul(r, self.inv(self.from_integers(denominators)))
        if not finite.all():
            r[floats == inf] = self._from_float(inf)
            r[floats == -inf] = self._from_float(-inf)
        return r

    def _from_float(self, x: float) -> Array:
        """Return the residue (C,) of the number whose rounding gives the float x, and cache it."""
        residue = self.constants.get(x)
        if residue is not None:
            return residue
        size = abs(x)
        if size == inf:
            residue = self.random_function("infinity", self.one)
        elif isnan(x) or size == SMALLEST_NORMAL:
            residue = 0 * self.one
        elif size in IRRATIONAL_FLOATS:
            residue = self.irrational(*IRRATIONAL_FLOATS[size])
        elif size in MULTIPLES_OF_LOG_2:
            factor = self.from_integers(MULTIPLES_OF_LOG_2[size])
            residue = self.mul(factor, self.log_2)
        else:
            residue = self.from_fraction(_fraction(size))
        if x < 0:
            residue = self.neg(residue)
        self.constants[x] = residue
        return residue

    def irrational(self, a: int, b: int) -> Array:
        """Return the residue of pi^(a/2) 2^(b/2), with a random number for the square root of pi.

        Parameters
        ----------
        a, b : int
            Twice the exponents of pi and of 2.
        """
        root_of_pi = self.random_function("root of pi", self.one)
        if a <= 0:
            root_of_pi = self.inv(root_of_pi)
        power_of_2 = self.from_fraction(Fraction(2) ** (b // 2))
        if b % 2:
            root_of_2 = self.root(self.from_fraction(Fraction(2)))
            power_of_2 = self.mul(power_of_2, root_of_2)
        return self.mul(self.power(root_of_pi, abs(a)), power_of_2)

    def constant(self, a: Array) -> Array:
        """Return residues (..., C) without derivatives; only dual numbers contain any."""
        return a

    # --- rational functions

    def record_zeros(self, a: Array, floats: Array) -> None:
        """Record whether denominators, or arguments of logarithms, are 0 everywhere or at theta.

        A field returns a number for 1 / 0 and for log 0, which do not exist. So decimals have to
        tell whether the result depends on it.

        Parameters
        ----------
        a : array, shape (..., C)
            The residues of the denominators or arguments.
        floats : array, shape (...)
            The same numbers at theta, in floating point.
        """
        is_zero = (a == 0).all(axis=-1)
        is_zero_at_theta = floats == 0
        self.divided_by_zero |= bool(is_zero.any() or is_zero_at_theta.any())
        self.at_pole |= bool((is_zero_at_theta & ~is_zero).any())

    def add(self, a: Array, b: Array) -> Array:
        """Return the sum a + b in the field.

        Parameters
        ----------
        a, b : array, shape (..., C)
            The terms.
        """
        return (a + b) % self.p

    def sub(self, a: Array, b: Array) -> Array:
        """Return the difference a - b in the field.

        Parameters
        ----------
        a, b : array, shape (..., C)
            The minuend a and the subtrahend b.
        """
        return (a - b) % self.p

    def neg(self, a: Array) -> Array:
        """Return the negative -a of each residue in the field."""
        return self.sub(np.zeros(1, np.int64), a)

    def sum(self, a: Array, axis: Any) -> Array:
        """Return the sums of residues in the field, over one or more axes.

        Parameters
        ----------
        a : array, shape (..., C)
            The terms.
        axis : int or tuple of int
            Axes other than that of the channels.
        """
        return np.add.reduce(a, axis=axis) % self.p

    def cumsum(self, a: Array, axis: int) -> Array:
        """Return the cumulative sums of residues in the field, along an axis.

        Parameters
        ----------
        a : array, shape (..., C)
            The terms.
        axis : int
            An axis other than that of the channels.
        """
        return np.cumsum(a, axis) % self.p

    def power(self, a: Array, n: Any) -> Array:
        """Return a^n in the field, for nonnegative integers n.

        Parameters
        ----------
        a : array, shape (..., C)
            The base.
        n : int or array of int
            The exponent; an array is broadcast against a.
        """
        out = np.broadcast_to(self.one, np.broadcast_shapes(a.shape, np.shape(n)))
        for shift in range(int(np.max(n, initial=0)).bit_length())[::-1]:
            out = self.mul(out, out)
            bit = n >> shift & 1
            if isinstance(bit, np.ndarray):
                out = np.where(bit, self.mul(out, a), out)
            elif bit:
                out = self.mul(out, a)
        return out

    def is_representative(self, a: Array) -> Array:
        """Return whether each residue is the one chosen from the pair a and -a, to tell them apart.

        The bool array is true for exactly one of a and -a; for 0 it is False.
        """
        return a > self.p - a

    # --- square roots

    def record_square(self, square: Array, root: Array, floats: Array) -> None:
        """Record the root t of each square t^2, so that `sqrt` of the square returns |t|.

        Parameters
        ----------
        square, root : array, shape (..., C)
            The residues of t^2 and of t.
        floats : array, shape (...)
            t at theta in floating point, which decides the sign of the root.
        """
        shape = (-1, self.n_channels)
        square = square.reshape(shape).copy()
        root = root.reshape(shape).copy()
        self.squares.append(RecordedSquare(square, root, floats.flatten()))

    def sqrt(self, u: Array) -> Array:
        """Return a square root of each u: |t| if u = t^2 was recorded, else one of arbitrary sign.

        Also record the signs of these t as comparisons of the run.
        """
        roots = self.root(u)
        self.n_roots += 1
        flat = u.reshape(-1, self.n_channels)
        if len(flat) > MAX_RECORDED_SQUARES:
            return roots
        flat_roots = roots.reshape(flat.shape)
        for square, root, floats in self.squares:
            order = np.argsort(square[:, 0], kind="stable")
            position = np.searchsorted(square[order, 0], flat[:, 0])
            nearest = order[np.minimum(position, len(order) - 1)]
            has_sign = np.isfinite(floats[nearest]) & (floats[nearest] != 0)
            same = (square[nearest] == flat).all(axis=1) & has_sign
            signed = root[nearest[same]]
            positive = floats[nearest[same]] > 0
            flat_roots[same] = np.where(positive[:, None], signed, self.neg(signed))
            self.path.append(positive)
        return flat_roots.reshape(roots.shape)

    def root(self, u: Array) -> Array:
        """Return u^((p + 1) / 4), a square root of u; a random number where u has no root."""
        r = self.power(u, (self.p + 1) // 4)
        wrong = self.mul(r, r) != u
        if wrong.any():
            self.n_substituted += 1
            r = np.where(wrong, self.random_function("sqrt", u), r)
        return r

    # --- exponentials and logarithms

    # The log terms (u, k log u, k) of a number a say that a = rest + k log u. `exp` uses them for
    # k = 1: e^a = e^(a - log u) u, which is right whatever the rest is, even if it has no log u.

    def exp(self, a: Array, log_terms: Array | None = None) -> Array:
        """Return e^a, computed as e^(a - k log u) u^k where a is known to contain log u, k = +-1.

        Parameters
        ----------
        a : array, shape (..., C)
            The exponents, as residues.
        log_terms : array, shape (..., 3, C), optional
            The logarithms that the exponents contain, as u, k log u and k. By default none.
        """
        self.transcendental = True
        if log_terms is None:
            return self._exp(a)
        log_terms = self._with_factor(log_terms, np.broadcast_to(self.one, a.shape))
        is_usable = (log_terms[..., 2, :] == self.one).all(axis=-1)[..., None, None]
        if not is_usable.all():
            log_terms = np.where(is_usable, log_terms, self.no_log_term)
        u, t, _ = _unpack(log_terms)
        return self.mul(self._exp(self.sub(a, t)), u)

    def log(self, u: Array) -> tuple[Array, Array | None]:
        """Return t = log u, and the log terms (u, t, 1) from which `exp` recovers u = e^t.

        The log terms are (..., 3, C), or None if u has more than `MAX_LOG_TERMS` entries.
        """
        self.transcendental = True
        t = self._log(u)
        if u.size > MAX_LOG_TERMS:
            return t, None
        return t, np.stack([u, t, np.broadcast_to(self.one, u.shape)], axis=-2)

    @cached_property
    def no_log_term(self) -> Array:
        """The log terms (3, C) of a number without a known logarithm: those of 1 log 1 = 0."""
        return np.array([self.one, 0 * self.one, self.one])

    def add_log_terms(self, first: Array, second: Array) -> Array:
        """Return the log terms (u, k log u, k) of the sum of two numbers, from those of both.

        If both have the same factor k, the terms are merged: k log u + k log v = k log(u v). Else
        those of one number are kept: of the second if the first has none, or if the second has
        k = 1, else of the first.

        Parameters
        ----------
        first, second : array, shape (..., 3, C)
            The log terms of the first and of the second number.
        """
        second = self._with_factor(second, first[..., 2, :])
        u, t, k = _unpack(first)
        v, s, m = _unpack(second)
        merged = np.stack([self.mul(u, v), self.add(t, s), k], axis=-2)
        same = (k == m).all(axis=-1)
        if same.all():
            return merged
        is_empty = (t == 0).all(axis=-1)
        is_simple = (m == self.one).all(axis=-1) & (s != 0).any(axis=-1)
        chosen = np.where((is_empty | is_simple)[..., None, None], second, first)
        return np.where(same[..., None, None], merged, chosen)

    def _with_factor(self, log_terms: Array, k: Array) -> Array:
        """Return log terms with the factor -k rewritten to have the factor k; the others unchanged.

        The rule is -k log u = k log(1 / u). `log_terms` are (..., 3, C), and k is (..., C).
        """
        u, t, factor = _unpack(log_terms)
        opposite = (factor == self.neg(k)).all(axis=-1)
        if not opposite.any():
            return log_terms
        inverted = np.stack([self.inv(u), self.neg(t), k], -2)
        return np.where(opposite[..., None, None], inverted, log_terms)

    def negate_log_terms(self, log_terms: Array) -> Array:
        """Return the log terms (..., 3, C) of the number -x, from those of x."""
        u, t, k = _unpack(log_terms)
        return np.stack([self.inv(u), self.neg(t), k], axis=-2)

    def scale_log_terms(self, log_terms: Array, a: Array) -> Array:
        """Return the log terms (u, k log u, k) of the product a x, from those of a number x.

        Parameters
        ----------
        log_terms : array, shape (..., 3, C)
            The log terms of x.
        a : array, shape (..., C)
            The residues of the factor.
        """
        u, t, k = _unpack(log_terms)
        k = self.mul(k, a)
        return np.stack([np.broadcast_to(part, k.shape) for part in (u, t, k)], axis=-2)

    # --- functions of which only the symmetry is known

    def opaque(self, name: str, a: Array, odd: bool | None = None) -> Array:
        """Return the values of a random function that is odd, even or neither, at residues a.

        It stands for a function of which only the symmetry is known in the field, such as erf.

        Parameters
        ----------
        name : str
            Name that determines the function: the same name gives the same function.
        a : array, shape (..., C)
            The arguments.
        odd : bool, optional
            Whether the function is odd (True) or even (False). By default it is neither.
        """
        self.transcendental = True
        if odd is None:
            return self.random_function(name, a)
        negated = self.is_representative(a)
        r = self.random_function(name, np.where(negated, self.neg(a), a))
        if not odd:
            return r
        signed = np.where(negated, self.neg(r), r)
        return np.where(a == self.neg(a), 0, signed)

    def cos_and_sin(self, a: Array) -> tuple[Array, Array]:
        """Return cos a and sin a as a random point of the unit circle, mirrored for -a.

        So cos^2 a + sin^2 a = 1, cos(-a) = cos a and sin(-a) = -sin a hold.
        """
        # a random odd function in place of tan(a / 2)
        t = self.opaque("tan", a, odd=True)
        square = self.mul(t, t)
        reciprocal = self.inv(self.add(self.one, square))
        cos = self.mul(self.sub(self.one, square), reciprocal)
        return cos, self.mul(self.add(t, t), reciprocal)


def _unpack(log_terms: Array) -> tuple[Array, Array, Array]:
    """Return u, k log u and k, each (..., C), from log terms (..., 3, C)."""
    return log_terms[..., 0, :], log_terms[..., 1, :], log_terms[..., 2, :]


class Prime(Field):
    """Integers modulo a random prime p of 50 bits with p = 7 modulo 8, in one channel.

    As p is random, a constant of the program that is not 0 is almost never 0 modulo p. A product
    a b has 100 bits, of which int64 keeps the last 64. They suffice for a b - q p, which lies in
    (-p, p) if the integer q is within 7/8 of a b / p; q computed in float64 is.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.p = prime_of_seed(seed)
        self.modulus = np.uint64(self.p)
        self.p_reciprocal = 1.0 / self.p
        self.one = self.from_integers(1)
        self.log_2 = self.random_function("log 2", self.one)

    def conclude(self, test: ZeroTest) -> bool | None:
        """Return True if the excess is 0, False if it is not, None if another point has to decide.

        It is False if the excess is nonzero at this point, even if a root did not exist there: the
        fields that are tried next decide whether that matters.
        """
        concluded = super().conclude(test)
        return False if concluded is None and not test.is_zero else concluded

    def from_fraction(self, x: Fraction) -> Array:
        """Return the residue (1,) of a fraction."""
        return self.from_integers(x.numerator * pow(x.denominator, -1, self.p) % self.p)

    def add(self, a: Array, b: Array) -> Array:
        """Return the sum a + b modulo p."""
        r = (a + b).view(np.uint64)
        # r - p wraps round to a larger number where r < p
        return np.minimum(r, r - self.modulus).view(np.int64)

    def sub(self, a: Array, b: Array) -> Array:
        """Return the difference a - b modulo p."""
        r = (a - b).view(np.uint64)
        return np.minimum(r, r + self.modulus).view(np.int64)

    def mul(self, a: Array, b: Array) -> Array:
        """Return the product a b modulo p, computed block by block."""
        return _blockwise(self._product, a, b)

    def _product(self, a: Array, b: Array) -> Array:
        """Return the product a b modulo p of small arrays, from the lower 64 bits of a b - q p."""
        q = a.astype(float) * b
        # q is within 3/8 of a b / p: three roundings, each by at most 2^-53 of less than 2^50
        q *= self.p_reciprocal
        np.rint(q, out=q)
        r = a * b
        r -= q.astype(np.int64) * self.p
        # r is in (-p, p): as unsigned numbers the smaller one of r and r + p is in [0, p)
        u = r.view(np.uint64)
        np.minimum(u, u + self.modulus, out=u)
        return r

    def inv(self, a: Array) -> Array:
        """Return 1 / a modulo p, and 0 for a = 0.

        Entries are multiplied in pairs, pairs of pairs and so on; at most 8 products are inverted,
        and from 1 / (a b) follow 1 / a = b / (a b) and 1 / b = a / (a b).
        """
        flat: Array = np.where(a == 0, 1, a).reshape(-1)
        levels: list[Array] = []
        while len(flat) > 8:
            if len(flat) % 2:
                flat = np.append(flat, 1)
            levels.append(flat)
            flat = Prime.mul(self, flat[0::2], flat[1::2])
        inverses = np.array([pow(x, -1, self.p) for x in flat.tolist()], np.int64)
        for flat in reversed(levels):
            of_pairs = inverses[: len(flat) // 2]
            inverses = np.empty(len(flat), np.int64)
            inverses[0::2] = Prime.mul(self, of_pairs, flat[1::2])
            inverses[1::2] = Prime.mul(self, of_pairs, flat[0::2])
        return inverses[: a.size].reshape(a.shape) * (a != 0)

    def sum(self, a: Array, axis: Any) -> Array:
        """Return the sums modulo p over one or more axes."""
        if a.size <= MAX_INT64_TERMS:
            return super().sum(a, axis)
        return self._sum_by_halves(np.add.reduce, a, axis)

    def cumsum(self, a: Array, axis: int) -> Array:
        """Return the cumulative sums modulo p along an axis."""
        return self._sum_by_halves(np.cumsum, a, axis)

    def _sum_by_halves(self, sum_: Callable[..., Array], a: Array, axis: Any) -> Array:
        """Return sums by `sum_` modulo p, adding lower and upper 25 bits apart against overflow."""
        low = sum_(a & LOW_HALF, axis) % self.p
        high = sum_(a >> 25, axis) % self.p
        return self.add(low, self._product(high, np.array(1 << 25)))

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product (..., n, m, 1) of (..., n, k, 1) and (..., k, m, 1) modulo p.

        A large product is computed by BLAS in float64, without rounding. The factors are split
        into *limbs*, a = x0 + x1 2^17 + x2 2^34 and b = y0 + y1 2^25. Each of the six products of
        limbs is a sum of at most 2048 terms below 2^42: an integer of at most 2^53, which float64
        holds exactly, as it does each partial sum, in whatever order BLAS adds.
        """
        if a.size * b.shape[-2] <= MAX_DIRECT_PRODUCTS:
            return self.sum(Prime.mul(self, a[..., None, :], b[..., None, :, :, :]), -3)
        a = a[..., 0]
        b = b[..., 0]
        products = (
            self._limb_product(
                a[..., k : k + MAX_LIMB_TERMS], b[..., k : k + MAX_LIMB_TERMS, :]
            )
            for k in range(0, a.shape[-1], MAX_LIMB_TERMS)
        )
        return reduce(self.add, products)[..., None]

    def _limb_product(self, a: Array, b: Array) -> Array:
        """Return the matrix product modulo p of (..., n, k) and (..., k, m), computed by BLAS.

        The factors are split into limbs of 17 and of 25 bits, whose products are exact in float64.
        """
        n = a.shape[-2]
        m = b.shape[-1]
        limbs_of_a = [(a >> shift & 0x1FFFF).astype(float) for shift in (0, 17, 34)]
        limbs_of_b = [(b & LOW_HALF).astype(float), (b >> 25).astype(float)]
        rows = np.concatenate(limbs_of_a, axis=-2)
        columns = np.concatenate(limbs_of_b, axis=-1)
        c = np.matmul(rows, columns).astype(np.int64) % self.p
        c = c.reshape(*c.shape[:-2], 3, n, 2, m)
        powers = np.array(
            [[(1 << s + t) % self.p for t in (0, 25)] for s in (0, 17, 34)]
        )
        scaled = Prime.mul(self, c, powers[:, None, :, None])
        return np.add.reduce(scaled, (-4, -2)) % self.p

    # --- functions that are not rational

    def random_function(self, name: str, a: Array) -> Array:
        """Return values at residues `a` of the pseudo-random function that is called `name`."""
        key = mixing_key(self.seed, name)
        r = _blockwise(lambda x: (mix64(x, key) >> np.uint64(14)).astype(np.int64), a)
        return np.where(r < self.p, r, r - self.p)

    def _exp(self, a: Array) -> Array:
        """Return e^a: a random square with e^-a = 1 / e^a; exact where a is k log 2, |k| <= 3."""
        negated = self.is_representative(a)
        e = self.random_function("exp", np.where(negated, self.neg(a), a))
        e = self.mul(e, e)
        negated = negated[..., 0]
        e[negated] = self.inv(e[negated])
        logarithms, powers = self._powers_of_2
        return self._replace_known(a, e, logarithms, powers)

    def _log(self, u: Array) -> Array:
        """Return log u: a random residue for each u; k log 2 where u is 2^k, |k| <= 3."""
        logarithms, powers = self._powers_of_2
        return self._replace_known(
            u, self.random_function("log", u), powers, logarithms
        )

    @cached_property
    def _powers_of_2(self) -> tuple[Array, Array]:
        """Residues of the logarithms of 2^-3, ..., 2^3, and of these powers, both (7, C)."""
        k = np.arange(-3.0, 4.0)
        return self.from_floats(k * LOG_2), self.from_floats(2.0**k)

    @staticmethod
    def _replace_known(a: Array, b: Array, known_a: Array, known_b: Array) -> Array:
        """Return b, but `known_b[i]` wherever a equals `known_a[i]`, both tables (n, C)."""
        same = (a[..., None, :] == known_a).all(axis=-1)
        is_known = same.any(axis=-1)[..., None]
        return np.where(is_known, known_b[same.argmax(axis=-1)], b)


class BatchedPrime(Prime):
    """The integers modulo a prime, with 64 channels that hold derivatives or numbers of their own.

    Arguments have the same residues in all channels.
    """

    n_channels = 64

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return random residues (*shape, 64), the same in all channels."""
        return np.repeat(super().draw(shape), self.n_channels, axis=-1)

    def from_integers(self, integers: Any) -> Array:
        """Return the residues (..., 64) of an array of integers, the same in all channels."""
        return np.repeat(super().from_integers(integers), self.n_channels, axis=-1)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the product of matrices a (..., n, k, 64) and b (..., k, m, 64) by channel."""
        return self.sum(self.mul(a[..., None, :], b[..., None, :, :, :]), -3)

    def _exp(self, a: Array) -> Array:
        """Return e^a, with e^-a = 1 / e^a in each channel by itself."""
        is_negated = self.is_representative(a)
        powers = super()._exp(np.where(is_negated, self.neg(a), a))
        return np.where(is_negated, self.inv(powers), powers)


class Gauss(Prime):
    """Complex numbers x + i y modulo a prime p; x and y, integers modulo p, are the two channels.

    Arguments are real. Every real number has a square root here, since p = 3 modulo 4: so r^2 = u
    holds for all roots r, except for roots of complex numbers, such as roots of roots.
    """

    n_channels = 2

    @classmethod
    def applies(cls, test: ZeroTest) -> bool:
        """Return whether a square root did not exist in one of the fields tried before."""
        return test.lacks_roots

    def conclude(self, test: ZeroTest) -> bool | None:
        """Return True if the excess is 0, False if it is not, None if another point has to decide.

        Roots of complex numbers, such as roots of roots, may exist at no point. After four points
        without a zero it is False, so that `Towers` is tried, unless theta is too large for it.
        """
        concluded = Field.conclude(self, test)
        gives_up = test.n_points == MIN_ZERO_POINTS and test.size <= LARGE_THETA
        if concluded is None and gives_up and not test.n_zero:
            return False
        return concluded

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return random nonzero real numbers with an imaginary part of 0, (*shape, 2)."""
        return self._as_complex(super().draw(shape))

    def from_integers(self, integers: Any) -> Array:
        """Return the residues (..., 2) of an array of integers."""
        return self._as_complex(super().from_integers(integers))

    def _as_complex(self, x: Array) -> Array:
        """Return real numbers (..., 1) as complex ones (..., 2), with an imaginary part of 0."""
        return np.concatenate([x, np.zeros(x.shape, np.int64)], axis=-1)

    def is_representative(self, a: Array) -> Array:
        """Return whether each residue is the one chosen from the pair a and -a, to tell them apart.

        The bool array (..., 1) is true for exactly one of a and -a; for 0 it is False.
        """
        x, y = a[..., :1], a[..., 1:]
        return np.where(x != 0, x > self.p - x, y > self.p - y)

    def _complex_product(
        self, multiply: Callable[[Array, Array], Array], a: Array, b: Array
    ) -> Array:
        """Return the complex product of a and b, from real products computed by `multiply`."""
        x, y = a[..., :1], a[..., 1:]
        u, v = b[..., :1], b[..., 1:]
        real = multiply(x, u)
        if not y.any() and not v.any():
            return self._as_complex(real)
        imaginary = self.add(multiply(x, v), multiply(y, u))
        return np.concatenate([self.sub(real, multiply(y, v)), imaginary], axis=-1)

    def mul(self, a: Array, b: Array) -> Array:
        """Return the complex product a b, (..., 2), modulo p."""
        return self._complex_product(super().mul, a, b)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the complex matrix product of (..., n, k, 2) and (..., k, m, 2)."""
        return self._complex_product(super().matmul, a, b)

    def inv(self, a: Array) -> Array:
        """Return 1 / a for a = x + i y, as (x - i y) / (x^2 + y^2); 0 for a = 0."""
        mul = super().mul
        x, y = a[..., :1], a[..., 1:]
        reciprocal = super().inv(self.add(mul(x, x), mul(y, y)))
        parts = [mul(x, reciprocal), mul(self.neg(y), reciprocal)]
        return np.concatenate(parts, axis=-1)

    def random_function(self, name: str, a: Array) -> Array:
        """Return values of the pseudo-random function called `name`, which are real for real a."""
        function = super().random_function
        x, y = a[..., :1], a[..., 1:]
        mixed_y = mix64(y, mixing_key(self.seed, "i")).astype(np.int64)
        argument = np.where(y == 0, x, x ^ mixed_y)
        imaginary = np.where(y == 0, 0, function(f"i {name}", argument))
        return np.concatenate([function(name, argument), imaginary], axis=-1)

    def root(self, u: Array) -> Array:
        """Return the square root r or i r of a real u, as r^2 = u or -u; random if u is complex."""
        real = self._as_complex(u[..., :1])
        r = self.power(real, (self.p + 1) // 4)
        r = np.where((self.mul(r, r) == real)[..., :1], r, r[..., ::-1])
        is_complex = u[..., 1:] != 0
        self.n_substituted += bool(is_complex.any())
        return np.where(is_complex, self.random_function("sqrt", u), r)


@cache
def _discrete_logarithms(p: int) -> tuple[int, Array]:
    """Return a generator g modulo a prime p, and a table (p,) whose entry g^k modulo p is k.

    p has to be 2 q + 1 for a prime q.
    """
    # modulo such p every number from 2 to p - 2 that is no square is a generator
    g = next(g for g in range(2, p) if pow(g, p >> 1, p) != 1)
    low = np.array([pow(g, k, p) for k in range(1 << 11)])
    high = np.array([pow(g, k << 11, p) for k in range((p >> 11) + 1)])
    powers = (high[:, None] * low % p).ravel()[: p - 1]
    logarithms = np.zeros(p, np.int32)
    logarithms[powers] = np.arange(p - 1, dtype=np.int32)
    return g, logarithms


class Towers(Field):
    """Integers modulo twelve small primes, where exp and log are powers and obey all their laws.

    The primes form two chains of six levels, p_j = 2 p_(j+1) + 1; channel 2 j + i is level j of
    chain i. Every number has a residue in each channel. exp maps residues modulo p_(j+1), the order
    of the squares modulo p_j, to squares modulo p_j, and log maps them back, by a table. So
    e^(s + t) = e^s e^t, log u v = log u + log v and (e^(t/3))^3 = e^t hold by themselves. Each exp
    inside an exp, or log inside a log, leaves one level less on which they hold.
    """

    n_chains: ClassVar[int] = 2
    n_levels = 6
    n_channels = 12
    knows_all_laws = True
    primes: ClassVar[list[int]] = [
        (lowest + 1 << 5 - level) - 1
        for level in range(6)
        for lowest in (63_419, 127_139)
    ]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.p = np.array(self.primes, np.int64)
        self.tables = [_discrete_logarithms(p) for p in self.primes[: -self.n_chains]]
        self.one = np.ones(self.n_channels, np.int64)
        self.log_2 = self._log(self.from_integers(2))
        self.n_substituted = 0  # reset: `_log` may have raised it

    @classmethod
    def applies(cls, test: ZeroTest) -> bool:
        """Return whether exp, log or a root was computed, and theta is at most `LARGE_THETA` long.

        For a longer theta some number of the run would be 0 by chance modulo a small prime.
        """
        return test.has_laws and test.size <= LARGE_THETA

    def from_fraction(self, x: Fraction) -> Array:
        """Return the residues (12,) of a fraction modulo the twelve primes."""
        residues = [x.numerator * pow(x.denominator, -1, p) % p for p in self.primes]
        return np.array(residues, np.int64)

    def mul(self, a: Array, b: Array) -> Array:
        """Return the product a b modulo each of the twelve primes, (..., 12)."""
        return a * b % self.p

    def inv(self, a: Array) -> Array:
        """Return 1 / a = a^(p - 2), and 0 for a = 0; count a that are 0 in some channels only."""
        self.n_substituted += self._is_partly_zero(a)
        return self.power(a, self.p - 2)

    @staticmethod
    def _is_partly_zero(a: Array) -> bool:
        """Return whether a number is 0 by chance: in some of its channels, but not in all."""
        zero = a == 0
        return bool((zero.any(axis=-1) & ~zero.all(axis=-1)).any())

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product modulo the primes, from sums that are exact in float64.

        Each sum has at most 2^9 terms below 2^44.
        """
        # the axis of the channels before those of the matrices: (..., C, n, k)
        a, b = (np.moveaxis(x.astype(float), -1, -3) for x in (a, b))
        n_terms = 1 << 9
        out: Array = np.zeros(1, np.int64)
        p = self.p[:, None, None]
        for start in range(0, max(a.shape[-1], 1), n_terms):
            terms = slice(start, start + n_terms)
            product = np.matmul(a[..., terms], b[..., terms, :])
            out = (out + product.astype(np.int64)) % p
        return np.moveaxis(out, -3, -1)

    def random_function(self, name: str, a: Array) -> Array:
        """Return values at `a` of the pseudo-random functions called `name`, one per channel."""
        channels = [
            mix64(a[..., c : c + 1], mixing_key(self.seed, f"{name} {c}"))
            for c in range(self.n_channels)
        ]
        bits = np.concatenate(channels, axis=-1)
        return (bits % self.p.astype(np.uint64)).astype(np.int64)

    def _exp(self, a: Array) -> Array:
        """Return e^a: on each level g^(2 a), with a from the level below; random on the lowest."""
        squares = np.array([g * g for g, _ in self.tables] + [1] * self.n_chains)
        out = self.power(squares, np.roll(a, -self.n_chains, axis=-1))
        lowest = self.random_function("exp", a)[..., -self.n_chains :]
        out = np.concatenate([out[..., : -self.n_chains], lowest], axis=-1)
        return np.where(a == 0, 1, out)

    def _log(self, u: Array) -> Array:
        """Return log u: half the discrete logarithm of u or -u one level up; random on the first.

        It is 0 for u = 1. Count u that are no squares, whose logarithm does not exist.
        """
        t = self.random_function("log", u)
        has_odd = False  # whether some u is an odd power of g, which is no square
        for c, (_, logarithms) in enumerate(self.tables):
            k = logarithms[u[..., c]].astype(np.int64)
            q = self.primes[c + self.n_chains]
            t[..., c + self.n_chains] = k * ((q + 1) // 2) % q
            has_odd |= bool((k % 2).any())
        t[u == 1] = 0
        self.n_substituted += has_odd or self._is_partly_zero(u)
        return t

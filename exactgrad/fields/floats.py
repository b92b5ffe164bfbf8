"""Floats with derivatives in place of residues, in channels that are rounded differently (D44).

They are fast where decimals are slow, and tell how far they can be trusted: each channel changes
the result of every operation in its last digits at random, so that the channels differ by what
rounding can do to the result (J. Vignes, A stochastic arithmetic for reliable scientific
computation, 1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .digits import NoSeries
from .finite import LOG_2, Field

__all__ = ["N_ROUNDINGS", "Floats"]

Array = NDArray[Any]
# Largest relative change of a result: some units of its last digit, so that changes differ
PERTURBATION = 2.0**-48
# Largest relative difference of channels in an argument of a function that may hide it
SETTLED_RTOL = 1e-6
N_FACTORS = 1 << 16  # number of random factors that are drawn
N_ROUNDINGS = 4  # channels that differ by their random changes alone
# Products of two numbers of at most this size, and at least 1 / of it, are floats
MAX_SIZE = 1e150
# Elementwise functions by the names under which `Field.opaque` asks for them
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "arcsin": np.arcsin,
    "arctan": np.arctan,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "gammaln": np.vectorize(math.lgamma, otypes=[float]),
}


class Floats(Field):
    """Floats (..., C) in place of residues, whose last digits are changed at random.

    Parameters
    ----------
    seed : int
        Seed of the random directions and changes.
    n_channels : int
        The number C of channels.

    Attributes
    ----------
    is_reliable : bool
        Whether no number has come near overflow or underflow, and the channels of all arguments of
        functions agree, so that results whose channels agree are right.
    """

    dtype = float
    is_decimal = True
    max_symbolic_size = 0
    n_channels: int

    def __init__(self, seed: int, n_channels: int = N_ROUNDINGS) -> None:
        super().__init__(seed)
        self.n_channels = n_channels
        self.one = np.ones(n_channels)
        self.log_2 = LOG_2 * self.one
        self.is_reliable = True
        perturbations = self.rng.uniform(-PERTURBATION, PERTURBATION, N_FACTORS)
        self.factors = 1 + perturbations

    def _rounded(self, a: Array) -> Array:
        """Return numbers (..., C) changed at random by at most `PERTURBATION`, each by itself."""
        size = np.abs(a)
        in_range = (size <= MAX_SIZE) & (size >= 1 / MAX_SIZE) | (a == 0)
        self.is_reliable &= bool(in_range.all())
        start = int(self.rng.integers(self.factors.size))
        factors = self.factors[start : start + a.size]
        return a * np.resize(factors, a.size).reshape(a.shape)

    def _settled(self, a: Array, scale: float = 0.0) -> Array:
        """Return a, the argument of a function; note whether its channels agree to six digits.

        Numbers smaller than `scale` need to agree to a millionth of it only.
        """
        spread = np.ptp(a, axis=-1)
        size = np.maximum(np.abs(a).max(axis=-1), scale)
        self.is_reliable &= bool((spread <= SETTLED_RTOL * size).all())
        return a

    def _positive(self, a: Array) -> Array:
        """Return a, the argument of a function for a > 0; note whether it is far enough from 0."""
        self.is_reliable &= bool((a > 1 / MAX_SIZE).all())
        return self._settled(a)

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return uniform random floats (*shape, C) between -1 and 1, equal in all channels."""
        return self.variable(self.rng.uniform(-1, 1, shape))

    def variable(self, floats: Array) -> Array:
        """Return floats in all channels."""
        return np.repeat(np.asarray(floats, float)[..., None], self.n_channels, axis=-1)

    def from_floats(self, floats: Array) -> Array:
        """Return floats in all channels."""
        return self.variable(floats)

    def from_integers(self, integers: Any) -> Array:
        """Return integers as floats in all channels."""
        return self.variable(integers)

    def from_fraction(self, x: Fraction) -> Array:
        """Return a fraction as a float in all channels, (C,)."""
        return float(x) * self.one

    def add(self, a: Array, b: Array) -> Array:
        """Return the sum a + b.

        Parameters
        ----------
        a, b : array, shape (..., C)
            The terms.
        """
        return self._rounded(a + b)

    def sub(self, a: Array, b: Array) -> Array:
        """Return the difference a - b.

        Parameters
        ----------
        a, b : array, shape (..., C)
            The minuend a and the subtrahend b.
        """
        return self._rounded(a - b)

    def mul(self, a: Array, b: Array) -> Array:
        """Return the product a b."""
        return self._rounded(a * b)

    def neg(self, a: Array) -> Array:
        """Return -a."""
        return -a

    def inv(self, a: Array) -> Array:
        """Return 1 / a, or NaN where a is 0."""
        return self._rounded(1 / np.where(a == 0, np.nan, self._settled(a)))

    def sum(self, a: Array, axis: Any) -> Array:
        """Return the sums over one or more axes.

        Parameters
        ----------
        a : array, shape (..., C)
            The terms.
        axis : int or tuple of int
            Axes other than that of the channels.
        """
        return self._rounded(np.add.reduce(self._rounded(a), axis=axis))

    def cumsum(self, a: Array, axis: int) -> Array:
        """Return the cumulative sums along an axis.

        Parameters
        ----------
        a : array, shape (..., C)
            The terms.
        axis : int
            An axis other than that of the channels.
        """
        return self._rounded(np.cumsum(self._rounded(a), axis))

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product (..., n, m, C) of (..., n, k, C) and (..., k, m, C)."""
        # the axis of the channels before those of the matrices
        a, b = (np.moveaxis(self._rounded(x), -1, -3) for x in (a, b))
        return self._rounded(np.moveaxis(np.matmul(a, b), -3, -1))

    def exp(self, a: Array, log_terms: Array | None = None) -> Array:
        """Return e^a, which may be 0; `log_terms` are ignored."""
        powers = np.exp(self._settled(a, 1.0))
        return self._rounded(np.where(powers < 1 / MAX_SIZE, 0.0, powers))

    def log(self, u: Array) -> tuple[Array, None]:
        """Return log u, and None in place of log terms, which floats do not need."""
        return self._rounded(np.log(self._positive(u))), None

    def sqrt(self, u: Array) -> Array:
        """Return the nonnegative square root of each u; NaN for negative u."""
        return self._rounded(np.sqrt(self._positive(u)))

    def irrational(self, a: int, b: int) -> Array:
        """Return pi^(a/2) 2^(b/2) for integers a and b."""
        return math.pi ** (a / 2) * 2.0 ** (b / 2) * self.one

    def record_square(self, square: Array, root: Array, floats: Array) -> None:
        """Do nothing: roots are never negative.

        Parameters
        ----------
        square, root, floats : array
            Ignored.
        """

    def cos_and_sin(self, a: Array) -> tuple[Array, Array]:
        """Return cos a and sin a."""
        self._settled(a, 1.0)
        return self._rounded(np.cos(a)), self._rounded(np.sin(a))

    def random_function(self, name: str, a: Array) -> Array:
        """Return NaN for each entry of a: random functions of finite fields have no floats."""
        return np.full(a.shape, np.nan)

    def opaque(self, name: str, a: Array, odd: bool | None = None) -> Array:
        """Return the values at a of the function called `name`.

        Parameters
        ----------
        name : str
            The name of the function, such as "erf".
        a : array, shape (..., C)
            The arguments.
        odd : bool, optional
            Ignored: the function is odd or even by itself.

        Raises
        ------
        NoSeries
            If the function is not known here.
        """
        if name not in FUNCTIONS:
            raise NoSeries(name)
        return self._rounded(FUNCTIONS[name](self._settled(a, 1.0)))

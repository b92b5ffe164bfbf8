"""Measure the digits that a function loses, beyond what the rounding of its input costs (D66)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..verdict.runs import TraceError
from .numbers import Format, Point, Program, RealNumbers

__all__ = ["Judge", "Loss"]

Array = NDArray[Any]
N_DIGITS = 60  # decimal digits of the first run
MAX_DIGITS = 1000  # decimal digits beyond which the right result is given up
N_BESIDE = 16  # roundings of an input that are tried before a function is accused
N_BESIDE_A_NUMBER = 4  # of a single number: up and down, and so do constants
# Roundings after which an infinite result or nan is not excused any more: by them any two of four
# numbers have changed alike and unlike, in both directions
N_SIDES = 6


class Loss(NamedTuple):
    """What a function returns at one point, what is right, and how many digits are lost."""

    computed: Array  # (n,) values and derivatives in floats
    exact: Array  # (n,) those of decimals; nan if there are none
    digits: Array  # (n,) decimal digits lost, 0 where these are few enough


class Judge(NamedTuple):
    """Compares a program's floats with decimals."""

    program: Program
    limits: Format  # of its floats
    factor: float  # number of rounding errors that are allowed
    by_norm: bool  # whether inputs are rounded like their largest number
    floors: Array  # (n,) sizes below which the results are judged in absolute terms
    n_values: int  # number of values, which stand before the derivatives

    def loss(self, point: Point, n_beside: int = N_BESIDE) -> Loss | None:
        """Return the loss of digits at a point, or None if the function has no exact value there.

        Parameters
        ----------
        point : Point
            The input.
        n_beside : int
            Largest number of roundings of the input that are tried.
        """
        computed = self.run_floats(point)
        exact, n_digits = self.exact_results(point)
        exists = np.isfinite(exact) | np.isinf(exact)
        if not exists[: self.n_values].any():
            return None
        cost = np.zeros(len(exact))
        # where a derivative does not exist, as at a kink, any between those beside it will do
        has_sides = ~exists
        # next to a pole, or to where the function ends, the right result for the rounded input may
        # be infinite or nan
        is_singular = np.zeros(len(exact), bool)
        if point.theta.size + len(point.data) == 1:
            n_beside = N_BESIDE_A_NUMBER
        is_finite = np.isfinite(computed)
        for k in range(n_beside + 1):
            is_far = self._is_far(computed, exact, cost)
            is_far &= is_finite | ~is_singular
            is_lost = np.where(exists, is_far, has_sides & ~is_finite)
            is_excusable = is_lost & (is_finite | (k < N_SIDES))
            if k == n_beside or not is_excusable.any():
                break
            field = RealNumbers(self.limits, k, self.by_norm)
            neighbours = self._decimals(point, field, n_digits)
            has_sides &= np.isfinite(neighbours)
            with np.errstate(invalid="ignore"):
                change = abs(neighbours - exact)
            cost = np.fmax(cost, change)
            # not even the first binary digit is certain
            is_uncertain = ~(change <= abs(exact) / 2) & (exact != 0)
            is_singular |= np.isfinite(exact) & (is_uncertain | np.isnan(neighbours))
        unit = self._rounding(exact) + cost
        digits = self.limits.digits_lost(computed, exact, unit)
        return Loss(computed, exact, np.where(is_lost, digits, 0.0))

    def run_floats(self, point: Point) -> Array:
        """Return the results in floats, as float64 (n,); nan if the function raises an error."""
        try:
            returned = self.program.run_floats(point)
            parts = self.program.parts(returned)
        except (ArithmeticError, ValueError):
            return np.full(len(self.floors), np.nan)
        return np.hstack([np.ravel(part).astype(float) for part in parts])

    def exact_results(self, point: Point) -> tuple[Array, int]:
        """Return the exact results, and the number of digits they were computed with.

        These are doubled until the results agree with those of half as many digits, or with the
        floats. If they never do, the results are nan.
        """
        n_digits = N_DIGITS
        reference = self.run_floats(point)
        exact = self._decimals(point, RealNumbers(), n_digits)
        while self._is_far(reference, exact, 0.0).any():
            n_digits *= 2
            if (exact == 0).any():  # it may be a smaller number that more digits show
                tiny_exponent = int(np.log10(self.limits.tiny))
                n_digits = max(n_digits, N_DIGITS - tiny_exponent)
            if n_digits > MAX_DIGITS:
                return np.full(len(exact), np.nan), n_digits
            reference = np.where(np.isnan(exact), np.inf, exact)
            exact = self._decimals(point, RealNumbers(), n_digits)
        return exact, n_digits

    def _decimals(self, point: Point, field: RealNumbers, n_digits: int) -> Array:
        """Return the results in decimals (n,); nan if the function raises an error.

        Parameters
        ----------
        point : Point
            The input.
        field : RealNumbers
            Makes the decimals.
        n_digits : int
            Number of their digits.
        """
        try:
            return self.program.decimal_results(point, field, n_digits)
        except TraceError:
            return np.full(len(self.floors), np.nan)

    def _rounding(self, exact: Array) -> Array:
        """Return the rounding errors (n,) of results: eps times the size that each is judged by.

        That is its own size, its floor, or the size of the largest number of an array of values.
        """
        sizes = np.nan_to_num(abs(exact), posinf=0.0)
        values = sizes[: self.n_values]
        values[:] = values.max(initial=0.0)
        return self.limits.eps * np.maximum(sizes, self.floors)

    def _is_far(self, results: Array, exact: Array, cost: Any) -> Array:
        """Return whether each result is farther from the exact one than allowed.

        Parameters
        ----------
        results, exact : ndarray of shape (n,)
            The results, and those of decimals.
        cost : ndarray of shape (n,) or float
            What the rounding of the input costs.
        """
        allowed = self.factor * (self._rounding(exact) + cost)  # D66
        return self.limits.is_far(results, exact, allowed)

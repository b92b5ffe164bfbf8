"""Measure the digits that a function loses, beyond what the rounding of its input costs (D66)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..verdict.runs import TraceError
from .inputs import Format
from .numbers import Point, Program, RealNumbers

__all__ = ["Judge", "Loss"]

Array = NDArray[Any]
N_DIGITS = 60  # decimal digits of the first run
MAX_DIGITS = 1000  # decimal digits beyond which the right result is given up
N_DIRECTIONS = 6  # random signs with which the input is rounded, each also reversed
N_TINY = 2  # smallest normal numbers that a result may be away, as smaller ones have few digits


class Loss(NamedTuple):
    """What a function returns at one point, what is right, and how many digits are lost."""

    computed: Array  # (n,) values and derivatives in floats
    exact: Array  # (n,) those of decimals; nan if there are none
    digits: Array  # (n,) decimal digits lost, 0 where these are few enough

    @property
    def worst(self) -> int:
        """Index of the result that has lost most digits; among equals the first."""
        return int(self.digits.argmax())


class Judge(NamedTuple):
    """Compares a program's floats with decimals.

    Parameters
    ----------
    program : Program
        The function.
    limits : Format
        The limits of its floats.
    factor : float
        Number of rounding errors that are allowed.
    by_norm : bool
        Whether the rounding of the input is that of its largest number, not of each number.
    floors : ndarray of shape (n,)
        Sizes below which the results are judged in absolute terms.
    """

    program: Program
    limits: Format
    factor: float
    by_norm: bool
    floors: Array

    def loss(self, point: Point, seed: int = 0) -> Loss | None:
        """Return the loss of digits at a point, or None if the function has no exact value there.

        Parameters
        ----------
        point : Point
            The input.
        seed : int
            Seed of the directions in which the input is rounded.
        """
        computed = self.run_floats(point)
        try:
            exact, n_digits = self._exact_unless_equal(point, computed)
        except TraceError:
            return None
        if computed is None:
            computed = np.full(exact.shape, np.nan)
        n_values = len(exact) - self.program.n_derivatives
        if np.isnan(exact[:n_values]).all():
            return None
        digits = np.zeros(exact.shape)
        if self._is_far(computed, exact, 0.0).any():
            beside = self._beside(point, n_digits, seed)
            digits = self.digits_lost(computed, exact, beside)
        return Loss(computed, exact, digits)

    def confirmed_loss(self, point: Point) -> Loss | None:
        """Return the loss at a point, measured again in other directions if digits seem lost."""
        loss = self.loss(point)
        if loss is None or not loss.digits.any():
            return loss
        again = self.loss(point, seed=1)
        assert again is not None
        return again._replace(digits=np.minimum(loss.digits, again.digits))

    def is_value(self, i: int) -> bool:
        """Return whether result i is a value, not a derivative."""
        return i < len(self.floors) - self.program.n_derivatives

    def run_floats(self, point: Point) -> Array | None:
        """Return the results in floats, as float64 (n,); None if the function raises an error."""
        try:
            parts = self.program.parts(self.program.run_floats(point))
        except (ArithmeticError, ValueError):
            return None
        return np.concatenate([np.ravel(part).astype(float) for part in parts])

    def _exact_unless_equal(
        self, point: Point, computed: Array | None
    ) -> tuple[Array, int]:
        """Return the exact results, and the number of digits they were computed with.

        These are doubled until the results agree with those of half as many digits, or with the
        floats. If they never do, the results are nan.
        """
        n_digits = N_DIGITS
        field = RealNumbers()
        exact = self.program.decimal_results(point, field, n_digits)
        n_needed = N_DIGITS + 2 * field.largest_exponent
        while (
            computed is None
            or self._is_far(computed, exact, 0.0).any()
            or (n_digits < n_needed and (exact == 0).any())
        ):
            coarser = exact
            n_digits *= 2
            if n_digits > MAX_DIGITS:
                return np.full(exact.shape, np.nan), n_digits // 2
            exact = self.program.decimal_results(point, RealNumbers(), n_digits)
            agree = ~self._is_far(coarser, exact, 0.0)
            is_resolved = n_digits >= n_needed or (exact != 0).all()
            if is_resolved and (agree | np.isnan(coarser) & np.isnan(exact)).all():
                break
        return exact, n_digits

    def _beside(self, point: Point, n_digits: int, seed: int) -> Array:
        """Return the results (k, n) for inputs that rounding cannot tell from the point.

        Parameters
        ----------
        point : Point
            The input.
        n_digits : int
            Number of decimal digits.
        seed : int
            Seed of the directions.
        """
        n_inputs = point.theta.size + len(point.data)
        count = 2 * N_DIRECTIONS if n_inputs > 1 else 2
        results = []
        for k in range(count):
            field = RealNumbers(
                self.limits.eps, self.limits.tiny, count * seed + k, self.by_norm
            )
            try:
                results.append(self.program.decimal_results(point, field, n_digits))
            except TraceError:
                continue
        if not results:
            return np.full((1, len(self.floors)), np.nan)
        return np.array(results)

    def rounding(self, exact: Array) -> Array:
        """Return the rounding errors (n,) of results: eps times the size that each is judged by.

        That is its own size, its floor, or the size of the largest number of an array of values.
        """
        sizes = np.maximum(np.nan_to_num(abs(exact), posinf=0.0), self.floors)
        n_values = len(exact) - self.program.n_derivatives
        sizes[:n_values] = sizes[:n_values].max(initial=0.0)
        return self.limits.eps * sizes

    def _is_far(self, computed: Array, exact: Array, cost: Any) -> Array:
        """Return whether each result is farther from the exact one than allowed.

        A result may overflow if the exact one does, or nearly does. No number is near nan.
        """
        with np.errstate(all="ignore"):
            allowed = self.factor * (self.rounding(exact) + cost)  # D66
            allowed = allowed + N_TINY * self.limits.tiny
            overflows = ~(abs(exact) + allowed < self.limits.largest)
            is_close = abs(computed - exact) <= allowed
        return ~(is_close | (overflows & ~(abs(computed) < self.limits.largest)))

    def digits_lost(self, computed: Array, exact: Array, beside: Array) -> Array:
        """Return the digits that each result loses; 0 if it is as near as may be expected.

        Parameters
        ----------
        computed, exact : ndarray of shape (n,)
            The results in floats, and those of decimals.
        beside : ndarray of shape (k, n)
            The exact results for inputs that rounding cannot tell from this one.
        """
        with np.errstate(all="ignore"):
            cost = np.nan_to_num(abs(beside - exact), nan=0.0).max(axis=0)
            error = abs(computed - exact)
            # where a derivative does not exist, as at a kink, any between those beside it will do
            has_sides = np.isfinite(beside).all(axis=0)
            no_exact = np.isnan(exact)
            is_lost = self._is_far(computed, exact, cost)
            is_lost[no_exact] = (has_sides & ~np.isfinite(computed))[no_exact]
            unit = self.rounding(exact) + cost + self.limits.tiny
            digits = np.log10(error / unit)
        n_digits = -np.log10(self.limits.eps)
        digits = np.where(np.isfinite(computed), np.clip(digits, 0, n_digits), n_digits)
        return np.where(is_lost, digits, 0.0)

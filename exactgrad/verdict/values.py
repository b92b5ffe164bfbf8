"""The claim that two functions have the same values (D44)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, Digits, context
from ..fields.finite import LARGE_THETA, Field, Prime
from ..structures import StructureError, Tree, copy_leaves
from ..trace.arrays import Exact, lift
from ..trace.copies import Copies
from .attempts import Claim, Conclusion
from .data import FIXED, Condition, to_exact
from .errors import WrongDerivative
from .evidence import UNDEFINED
from .gradients import UNKNOWN_IDENTITY
from .runs import MAX_POINTS, TraceError, refuse_masked_nan, vanishes

__all__ = ["EqualityClaim"]

Array = NDArray[Any]
# Largest relative difference of two values that the rounding of constants may cause
VALUE_RTOL = Decimal("1e-13")
# Digits of a run that only shows that values exist, after a field has shown that they agree
N_DIGITS_TO_EXIST = 20
# Largest relative difference of slopes that are equal by an identity
LAW_RTOL = Decimal("1e-25")
NOTHING_MOVES = (
    "no argument varies: pass floats or arrays of floats, since integers are constants"
)
# Beginning of the name of an error if the slopes of both functions differ, not their values
SLOPE_OF = "slope of "


class Difference(NamedTuple):
    """Values and slopes of two functions with N values, as decimals (N, 2), and differences."""

    first: Array  # (N, 2) values and slopes of the first function
    second: Array  # (N, 2) values and slopes of the second function
    absolute: Array  # (N, 2) absolute differences
    relative: Array  # (N, 2) absolute difference over the larger of both numbers and 1


class EqualityClaim(Claim):
    """The claim that two functions have the same values, up to the rounding of their constants.

    Parameters
    ----------
    first, second : callable
        Functions of the arguments.
    arguments : tuple
        The arguments of both functions.
    names : list of str
        The names of the arguments.
    data : tuple of Condition
        The caller's condition on each argument.
    seed : int
        The seed of the random numbers.
    """

    def __init__(
        self,
        first: Callable[..., Any],
        second: Callable[..., Any],
        arguments: tuple[Any, ...],
        names: list[str],
        data: tuple[Condition, ...],
        seed: int,
    ) -> None:
        super().__init__(arguments, names, data)
        self.functions = (first, second)
        self.seed = seed
        self.copies = Copies()
        # structure of the functions' values; that of a single number until the first call
        self.structure = Tree.of(0.0, "value")

    def conclude(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion about equal values if argument i satisfies ``data[i]``.

        Slopes are compared in a field, values in decimals.
        """
        field = self._field_of_same_values(data)
        with localcontext(context(N_DIGITS)):
            n_digits = N_DIGITS_TO_EXIST if field else N_DIGITS
            difference = self._difference(data, n_digits)
            if field and not (difference.relative <= VALUE_RTOL).all():
                difference = self._difference(data, N_DIGITS)
            errors = self._errors(difference)
        if not all(number.is_finite() for number in difference.absolute.ravel()):
            return self.conclusion(data, None, UNDEFINED)
        if errors:
            return self.conclusion(data, None, errors=errors)
        is_zero = True
        if field is None:
            is_zero, field = self._moves_alike(data)
        if field.knows_all_laws:
            is_zero &= bool((difference.relative[:, 1] <= LAW_RTOL).all())
        if not is_zero:
            largest = difference.absolute[:, 0].max()
            reason = f"the values differ by {largest:.1g}; perhaps they agree {UNKNOWN_IDENTITY}"
            return self.conclusion(data, field, reason)
        if not field.argument_moves:
            return self.conclusion(data, field, NOTHING_MOVES)
        return self.conclusion(data, field)

    def holds(self, data: tuple[Condition, ...]) -> bool:
        """Return whether both functions have equal slopes in a field, under conditions `data`."""
        return self._moves_alike(data)[0]

    def depends_on_data(self, conclusion: Conclusion) -> bool:
        """Return whether the claim failed because of slopes only; values differ for any data."""
        if conclusion.verdict.is_proof:
            return False
        assert not callable(conclusion.errors)
        return all(error.name.startswith(SLOPE_OF) for error in conclusion.errors)

    def conclude_for_some(
        self, conclusion: Conclusion, data: tuple[Condition, ...], changed: list[int]
    ) -> Conclusion:
        """Return *proved for these data* if conditions suffice, else the conclusion for all data.

        Parameters
        ----------
        conclusion : Conclusion
            The conclusion for all data.
        data : tuple of Condition
            The weakest conditions under which slopes are equal, one for each argument.
        changed : list of int
            Indices of the arguments whose condition in `data` is not that of `conclusion`.
        """
        if any(data[i] is FIXED for i in changed):
            return conclusion
        restricted = self.conclude(data)
        if not restricted.verdict.is_proof:
            return conclusion
        names = " and ".join(self.names[i] for i in changed)
        return replace(restricted, reason=f"with other {names} they are not")

    def call_with_floats(self) -> None:
        """Call both functions with the caller's floats, to raise the errors that they raise."""
        for function in self.functions:
            function(*copy_leaves(self.arguments))

    def _values(self, data: tuple[Condition, ...], field: Field) -> tuple[Exact, Exact]:
        """Return the exact values (N,) of both functions, with derivatives by all free arguments.

        Arguments satisfy the conditions `data`; those that are `FIXED` are constants.
        """
        try:
            exact = [
                to_exact(argument, field, condition, moving=condition is not FIXED)
                for argument, condition in zip(self.arguments, data, strict=True)
            ]
            with np.errstate(all="ignore"):
                first, second = (
                    self.copies.call(field, function, *copy_leaves(exact))
                    for function in self.functions
                )
                self.structure = Tree.of(first, "value")
                second = self.structure.flatten(second, "the second value")
                first = self.structure.flatten(first)
                values = lift(first, field), lift(second, field)
                refuse_masked_nan(*values)
                return values
        except StructureError:
            raise
        except Exception as error:
            raise TraceError(error) from error

    def _moves_alike(self, data: tuple[Condition, ...]) -> tuple[bool, Field]:
        """Return whether both functions have equal slopes in a field, and the last field tried."""

        def excess(field: Field) -> Array:
            first, second = self._values(data, field)
            return field.sub(first.tangent, second.tangent)

        return vanishes(excess, self.seed, LARGE_THETA)

    def _field_of_same_values(self, data: tuple[Condition, ...]) -> Field | None:
        """Return a field in which both functions' values are equal, or None.

        It is None if they differ, or if the sign of a root matters, which a field does not know.
        """
        field = Prime(self.seed * MAX_POINTS)
        first, second = self._values(data, field)
        if field.signs_matter or (first.residues != second.residues).any():
            return None
        return field

    def _difference(self, data: tuple[Condition, ...], n_digits: int) -> Difference:
        """Return values and slopes of both functions and their differences, to `n_digits`.

        Arguments satisfy the conditions `data`.
        """
        with localcontext(context(n_digits)):
            first, second = (
                Decimal(0) + values.residues[..., 0]
                for values in self._values(data, Digits(self.seed))
            )
            absolute = abs(first - second)
            size = np.maximum(np.maximum(abs(first), abs(second)), np.array(Decimal(1)))
            return Difference(first, second, absolute, absolute / size)

    def _errors(self, difference: Difference) -> tuple[WrongDerivative, ...]:
        """Return an error for each element whose values differ or, if not, whose slopes differ."""
        errors = []
        for n, (value_rtol, slope_rtol) in enumerate(difference.relative):
            # column to compare: 0, the values, if these differ, else 1, the slopes
            k = int(value_rtol <= VALUE_RTOL)
            if not (value_rtol, slope_rtol)[k] <= VALUE_RTOL:
                name = SLOPE_OF * k + self.structure.coordinate(n)
                errors.append(
                    WrongDerivative(
                        name, difference.first[n, k], difference.second[n, k]
                    )
                )
        return tuple(errors)

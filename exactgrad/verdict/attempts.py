"""An attempt at a proof: for all data, or else for some that keep a condition or are fixed (D44).

What is to be proved is a `Claim`: that a gradient is the derivative of its value, or that two
functions have the same values. A claim concludes what holds for given data; `attempt` looks for
the weakest conditions under which it holds where it does not hold for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from ..fields.finite import Field
from .data import Condition, describe_data, weakest_conditions
from .errors import WrongDerivative
from .runs import TraceError

__all__ = ["Claim", "Conclusion", "Errors", "Verdict", "attempt"]

# the wrong derivatives, or a function that computes them when they are first read
Errors = tuple[WrongDerivative, ...] | Callable[[], tuple[WrongDerivative, ...]]


class Verdict(StrEnum):
    """What a proof says; each is equal to its text, and is printed as it."""

    PROVED = "proved"
    PROVED_FOR_DATA = "proved for these data"  # data are fixed or satisfy a condition
    REFUTED = "refuted"
    NOT_PROVED = "not proved"
    NOT_TRACEABLE = "not traceable"  # a step of the function has no exact form

    __repr__ = str.__repr__

    @property
    def is_proof(self) -> bool:
        """Whether the verdict is *proved* or *proved for these data*."""
        return self in (Verdict.PROVED, Verdict.PROVED_FOR_DATA)


@dataclass(frozen=True)
class Conclusion:
    """What follows from the runs of a function: a verdict, why, and for which data."""

    verdict: Verdict
    data: tuple[Condition, ...]
    field: Field | None = None  # field of the last run; None if there is no value
    reason: str = ""  # why the claim is not proved, or what holds for other data
    errors: Errors = ()  # wrong derivatives, if the claim is refuted


class Claim(ABC):
    """A statement to be proved about one or two functions of some arguments."""

    def __init__(
        self,
        arguments: tuple[Any, ...],
        names: Sequence[str],
        data: tuple[Condition, ...],
    ) -> None:
        self.arguments = arguments
        self.names = names
        self.data = data  # the caller's condition on each argument

    @abstractmethod
    def conclude(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion on the claim for data that satisfy these conditions.

        Raises `TraceError` if a step of the functions has no exact form.
        """

    @abstractmethod
    def holds(self, data: tuple[Condition, ...]) -> bool:
        """Return whether the claim holds in a field for data under these conditions.

        Decimals are not computed, which `conclude` may need besides.
        """

    @abstractmethod
    def depends_on_data(self, conclusion: Conclusion) -> bool:
        """Return whether the claim may still hold for some data, after this conclusion for all."""

    @abstractmethod
    def conclude_for_some(
        self, conclusion: Conclusion, data: tuple[Condition, ...], changed: list[int]
    ) -> Conclusion:
        """Return the conclusion if the claim holds for some data, but not for all.

        Parameters
        ----------
        conclusion : Conclusion
            The conclusion for all data.
        data : tuple of Condition
            The weakest conditions under which the claim holds.
        changed : list of int
            Indices of the arguments that are fixed or conditioned in `data` only.
        """

    @abstractmethod
    def call_with_floats(self) -> None:
        """Call the functions with their original floats; what they raise is not caught."""

    def conclusion(
        self,
        data: tuple[Condition, ...],
        field: Field | None,
        reason: str = "",
        errors: Errors = (),
    ) -> Conclusion:
        """Return *not proved* if there is a reason, *refuted* if there are errors, else *proved*.

        Parameters
        ----------
        data : tuple of Condition
            The conditions on the arguments with which the functions were run.
        field : Field or None
            The field of the last run.
        reason : str
            Why nothing is proved. By default there is no such reason.
        errors : tuple or callable
            The wrong derivatives, or a function that computes them. By default none.
        """
        if reason:
            return Conclusion(Verdict.NOT_PROVED, data, field, reason)
        if errors:
            return Conclusion(Verdict.REFUTED, data, field, errors=errors)
        for_some = describe_data(self.names, data)
        verdict = Verdict.PROVED_FOR_DATA if for_some else Verdict.PROVED
        return Conclusion(verdict, data, field)


def attempt(claim: Claim) -> Conclusion:
    """Return the conclusion about a claim, for all data or under the weakest conditions found.

    Raises
    ------
    Exception
        Whatever the functions themselves raise when they are called with floats.
    """
    try:
        conclusion = claim.conclude(claim.data)
        if not claim.depends_on_data(conclusion):
            return conclusion
        data = weakest_conditions(claim.arguments, conclusion.data, claim.holds)
        changed = [
            i for i, condition in enumerate(data) if condition is not conclusion.data[i]
        ]
        if not changed:
            return conclusion
        return claim.conclude_for_some(conclusion, data, changed)
    except TraceError as error:
        if error.overwrites_argument:
            return Conclusion(Verdict.NOT_PROVED, claim.data, reason=str(error))
        with np.errstate(all="ignore"):
            claim.call_with_floats()
        return Conclusion(Verdict.NOT_TRACEABLE, claim.data, reason=str(error))

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

# what is wrong, or a function that computes it when it is read
Errors = tuple[WrongDerivative, ...] | Callable[[], tuple[WrongDerivative, ...]]


class Verdict(StrEnum):
    """What a proof says; each is equal to its text, and is printed as it."""

    PROVED = "proved"
    PROVED_FOR_DATA = "proved for these data"  # that are fixed or keep a condition
    REFUTED = "refuted"
    NOT_PROVED = "not proved"
    NOT_TRACEABLE = "not traceable"  # a step of the function has no exact form

    __repr__ = str.__repr__

    @property
    def is_proof(self) -> bool:
        """Whether the claim holds, for all data or for those that are named."""
        return self in (Verdict.PROVED, Verdict.PROVED_FOR_DATA)


@dataclass(frozen=True)
class Conclusion:
    """What follows from the runs of a function: a verdict, why, and for which data."""

    verdict: Verdict
    data: tuple[Condition, ...]
    field: Field | None = None  # of the last run; None if there is no value
    reason: str = ""  # why it is not proved, or what holds for other data
    errors: Errors = ()  # what is wrong, if it is refuted


class Claim(ABC):
    """What is to be proved of a function, or of two, for some arguments."""

    def __init__(
        self,
        arguments: tuple[Any, ...],
        names: Sequence[str],
        data: tuple[Condition, ...],
    ) -> None:
        self.arguments = arguments
        self.names = names
        self.data = data  # what the caller says of each argument

    @abstractmethod
    def conclude(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return whether the claim holds for such data; raise TraceError if it cannot be run."""

    @abstractmethod
    def holds(self, data: tuple[Condition, ...]) -> bool:
        """Return whether the claim holds in a field for such data, whatever digits say."""

    @abstractmethod
    def depends_on_data(self, conclusion: Conclusion) -> bool:
        """Return whether the claim may hold for other data where this was concluded."""

    @abstractmethod
    def conclude_for_some(
        self, conclusion: Conclusion, data: tuple[Condition, ...], changed: list[int]
    ) -> Conclusion:
        """Return what to say where the claim holds for some data and not for all.

        Parameters
        ----------
        conclusion : Conclusion
            What was concluded for all of them.
        data : tuple of Condition
            The weakest for which it holds.
        changed : list of int
            The arguments that are fixed or keep a condition in these data alone.
        """

    @abstractmethod
    def call_with_floats(self) -> None:
        """Call the functions as they are: an error of their own is raised as it is."""

    def conclusion(
        self,
        data: tuple[Condition, ...],
        field: Field | None,
        reason: str = "",
        errors: Errors = (),
    ) -> Conclusion:
        """Return *not proved* for a reason, *refuted* for errors, and *proved* if there is neither.

        Parameters
        ----------
        data : tuple of Condition
            The data for which the functions were run.
        field : Field or None
            The field of the last run.
        reason : str
            Why nothing is proved. By default nothing stands against it.
        errors : tuple or callable
            What is wrong. By default nothing.
        """
        if reason:
            return Conclusion(Verdict.NOT_PROVED, data, field, reason)
        if errors:
            return Conclusion(Verdict.REFUTED, data, field, errors=errors)
        for_some = describe_data(self.names, data)
        verdict = Verdict.PROVED_FOR_DATA if for_some else Verdict.PROVED
        return Conclusion(verdict, data, field)


def attempt(claim: Claim) -> Conclusion:
    """Return what can be concluded of a claim, for all data or for as many as possible.

    Raises
    ------
    Exception
        What the functions themselves raise where they are called with floats.
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

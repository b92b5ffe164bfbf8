"""Prove a claim for all data, or else for data that satisfy a condition or are fixed (D44).

A `Claim` says that a gradient is the derivative of its value, or that two functions have the same
values. It concludes whether it holds under given conditions on the data. If it does not hold for
all data, `attempt` looks for the weakest conditions under which it does.
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

# Wrong derivatives, or a function without arguments that computes them
Errors = tuple[WrongDerivative, ...] | Callable[[], tuple[WrongDerivative, ...]]


class Verdict(StrEnum):
    """The result of a proof; each verdict equals its text, and is printed as this text."""

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
    """The conclusion about a claim: a verdict, the reason, and the data that it holds for."""

    verdict: Verdict
    data: tuple[Condition, ...]  # condition on each argument
    # field of the last run; None if no value exists at theta
    field: Field | None = None
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
        # condition on each argument, as the caller of `prove` has set it
        self.data = data

    @abstractmethod
    def conclude(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion about the claim, for arguments i that satisfy ``data[i]``.

        `TraceError` is raised if a step of the functions has no exact form.
        """

    @abstractmethod
    def holds(self, data: tuple[Condition, ...]) -> bool:
        """Return whether the claim holds in a field if argument i satisfies ``data[i]``.

        This is faster than `conclude`, which also computes decimals.
        """

    @abstractmethod
    def depends_on_data(self, conclusion: Conclusion) -> bool:
        """Return whether the claim may hold for some data, given the `conclusion` for all data."""

    @abstractmethod
    def conclude_for_some(
        self, conclusion: Conclusion, data: tuple[Condition, ...], changed: list[int]
    ) -> Conclusion:
        """Return the final conclusion about a claim that holds in a field for some data only.

        Parameters
        ----------
        conclusion : Conclusion
            The conclusion for all data.
        data : tuple of Condition
            The weakest conditions under which the claim holds, one for each argument.
        changed : list of int
            Indices of the arguments whose condition in `data` is not that of `conclusion`.
        """

    @abstractmethod
    def call_with_floats(self) -> None:
        """Call the functions with the caller's floats, to raise the errors that they raise."""

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
            The condition on each argument in the runs of the functions.
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
    """Return the conclusion about `claim`, for all data or under the weakest conditions found.

    If a step has no exact form the conclusion is *not traceable*.

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

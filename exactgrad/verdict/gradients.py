"""The claim that a gradient is the derivative of its value, at one theta (D44)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

from numpy.typing import NDArray

from ..fields.digits import NoSeries
from ..fields.finite import LARGE_THETA, Field
from ..structures import copy_leaves
from ..trace.arrays import KINK_MESSAGE
from .attempts import Claim, Conclusion, Errors, Verdict
from .data import FIXED, Condition, describe_data, keep_zeros
from .errors import deferred_errors, error_candidates, find_errors
from .evidence import (
    IS_STATEFUL,
    UNDEFINED,
    DecimalEvidence,
    DualEvidence,
    Evidence,
    gather_evidence,
)
from .runs import ProofProblem, TraceError, run, vanishes

__all__ = ["UNKNOWN_IDENTITY", "GradientClaim"]

Array = NDArray[Any]
MAX_NAMES_SHOWN = 4  # largest number of wrong coordinates that a reason names
UNKNOWN_IDENTITY = (
    "by an identity between exponentials, logarithms or roots that the prover does not know, or by "
    "constants that are rounded differently"
)
THESE_NUMBERS = "for these numbers alone, by a coincidence of theta and the constants"


class GradientClaim(Claim):
    """The claim that a function returns the gradient of its value, on theta's path of comparisons.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
        The point, whose floats decide the function's comparisons.
    """

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        super().__init__(problem.arguments, problem.names, problem.data)
        self.problem = problem
        self.theta = theta

    def conclude(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion about the gradient if argument i satisfies ``data[i]``.

        If the function has a kink where an argument is 0, zeros of free arguments remain 0.
        """
        try:
            return self.conclude_on_path(data)
        except TraceError as error:
            masked = keep_zeros(self.arguments, data)
            if KINK_MESSAGE not in str(error) or masked == data:
                raise
            return self.conclude_on_path(masked)

    def conclude_on_path(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion under the conditions `data`, for the comparisons made at theta.

        The path consists of the results of all comparisons of the function.
        """
        problem = self.problem._replace(data=data)
        theta = self.theta
        decimals = cache(partial(DecimalEvidence, problem, theta))
        duals = cache(partial(DualEvidence, problem, theta))

        def is_refuted() -> bool:
            try:
                is_small = theta.size <= LARGE_THETA
                return is_small and (duals().refutes or decimals().refutes)
            except NoSeries:
                return False

        is_zero, field = vanishes(
            partial(problem.excess, theta), problem.seed, theta.size, is_refuted
        )
        evidence = gather_evidence(problem, theta, is_zero, field, decimals, duals)
        if not evidence.exists:
            return Conclusion(Verdict.NOT_PROVED, data, reason=UNDEFINED)
        if is_zero and evidence.agrees:
            return self.conclusion(data, field, evidence.float_mismatch())
        reason, errors = _reason_and_errors(problem, theta, is_zero, evidence)
        if errors and (mismatch := evidence.float_mismatch()):
            return self.conclusion(data, field, mismatch)
        if not reason and not errors:
            lacks_law = field.n_roots or field.transcendental
            cause = UNKNOWN_IDENTITY if lacks_law else THESE_NUMBERS
            reason = evidence.right_so_far + cause
        return self.conclusion(data, field, reason, errors)

    def holds(self, data: tuple[Condition, ...]) -> bool:
        """Return whether the gradient is right in a field if argument i satisfies ``data[i]``."""
        excess = partial(self.problem._replace(data=data).excess, self.theta)
        return vanishes(excess, self.problem.seed, self.theta.size)[0]

    def depends_on_data(self, conclusion: Conclusion) -> bool:
        """Return whether the gradient is *not proved* although it exists and is reproducible."""
        return (
            conclusion.verdict is Verdict.NOT_PROVED
            and conclusion.field is not None
            and conclusion.reason != IS_STATEFUL
        )

    def conclude_for_some(
        self, conclusion: Conclusion, data: tuple[Condition, ...], changed: list[int]
    ) -> Conclusion:
        """Return *proved for these data* if conditions suffice, *not proved* if data must be fixed.

        Parameters
        ----------
        conclusion : Conclusion
            The conclusion for all data.
        data : tuple of Condition
            The weakest conditions under which the gradient is right, one for each argument.
        changed : list of int
            Indices of the arguments whose condition in `data` is not that of `conclusion`.
        """
        restricted = self.conclude(data)
        if restricted.field is None or not restricted.verdict.is_proof:
            return conclusion
        names = " and ".join(self.names[i] for i in changed)
        wrong_names = self._wrong_names(conclusion.data, restricted.field)
        with_other_data = f"with other {names} {wrong_names}"
        if all(data[i] is not FIXED for i in changed):
            return replace(restricted, reason=with_other_data)
        fixed = tuple(self.names[i] for i in changed)
        for_data = describe_data(self.names, restricted.data)
        reason = (
            f"all {self.theta.size} derivatives are exact {for_data} alone; {with_other_data}. "
            f"Say fixed={fixed} if that is meant, or pass whole numbers as integers, which are "
            "constants"
        )
        return Conclusion(Verdict.NOT_PROVED, restricted.data, restricted.field, reason)

    def call_with_floats(self) -> None:
        """Call the function with the caller's floats, to raise the error that it raises."""
        self.problem.value_and_grad(self.theta.copy(), *copy_leaves(self.arguments))

    def _wrong_names(self, data: tuple[Condition, ...], field: Field) -> str:
        """Return "1 of 3 are wrong: W1[0]" or the like, on coordinates or blocks of theta.

        They are tested in a new field like `field`, with data under the conditions `data`.
        """
        problem = self.problem._replace(data=data)
        candidates = list(error_candidates(problem, self.theta, is_zero=True))
        wrong = []
        for candidate in candidates:
            fresh = type(field)(field.seed)
            direction = fresh.from_floats(candidate.direction)
            if run(problem, self.theta, fresh, direction).excess().any():
                wrong.append(candidate.name)
        names = ", ".join(wrong[:MAX_NAMES_SHOWN])
        names += ", ..." * (len(wrong) > MAX_NAMES_SHOWN)
        return f"{len(wrong)} of {len(candidates)} are wrong: {names}"


def _reason_and_errors(
    problem: ProofProblem, theta: Array, is_zero: bool, evidence: Evidence
) -> tuple[str, Errors]:
    """Return the reason and errors of `find_errors`, with certain errors computed when read."""
    if not (isinstance(evidence, DecimalEvidence | DualEvidence) and evidence.refutes):
        return find_errors(problem, theta, is_zero, evidence)
    if evidence.is_stateful:
        return IS_STATEFUL, ()
    return "", deferred_errors(problem, theta, is_zero, evidence)

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
    Evidence,
    gather_evidence,
)
from .runs import ProofProblem, TraceError, run, vanishes

__all__ = ["UNKNOWN_IDENTITY", "GradientClaim"]

Array = NDArray[Any]
MAX_NAMES_SHOWN = 4  # names shown of coordinates that are wrong with other data
UNKNOWN_IDENTITY = (
    "by an identity between exponentials, logarithms or roots that the prover does not know, or by "
    "constants that are rounded differently"
)
THESE_NUMBERS = "for these numbers alone, by a coincidence of theta and the constants"


class GradientClaim(Claim):
    """The claim that a function returns the gradient of its value, on the path that theta takes.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
    """

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        super().__init__(problem.arguments, problem.names, problem.data)
        self.problem = problem
        self.theta = theta

    def conclude(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion for data under these conditions; zeros on a kink are held at 0."""
        try:
            return self.conclude_on_path(data)
        except TraceError as error:
            masked = keep_zeros(self.arguments, data)
            if KINK_MESSAGE not in str(error) or masked == data:
                raise
            return self.conclude_on_path(masked)

    def conclude_on_path(self, data: tuple[Condition, ...]) -> Conclusion:
        """Return the conclusion for data under these conditions, on the path that theta takes.

        The path is the results of all comparisons of the function.
        """
        problem = self.problem._replace(data=data)
        theta = self.theta
        decimals = cache(partial(DecimalEvidence, problem, theta))

        def is_refuted() -> bool:
            try:
                return theta.size <= LARGE_THETA and decimals().refutes
            except NoSeries:
                return False

        is_zero, field = vanishes(
            partial(problem.excess, theta), problem.seed, theta.size, is_refuted
        )
        evidence = gather_evidence(problem, theta, is_zero, field, decimals)
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
        """Return whether the gradient is right in a field, for data under these conditions."""
        excess = partial(self.problem._replace(data=data).excess, self.theta)
        return vanishes(excess, self.problem.seed, self.theta.size)[0]

    def depends_on_data(self, conclusion: Conclusion) -> bool:
        """Return whether the gradient is not proved, though it exists and repeated calls agree."""
        return (
            conclusion.verdict is Verdict.NOT_PROVED
            and conclusion.field is not None
            and conclusion.reason != IS_STATEFUL
        )

    def conclude_for_some(
        self, conclusion: Conclusion, data: tuple[Condition, ...], changed: list[int]
    ) -> Conclusion:
        """Return *proved for these data* under conditions, *not proved* if data must be fixed.

        Parameters
        ----------
        conclusion, data, changed
            As in `Claim.conclude_for_some`.
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
        """Call the function with its original floats; what it raises is not caught."""
        self.problem.value_and_grad(self.theta.copy(), *copy_leaves(self.arguments))

    def _wrong_names(self, data: tuple[Condition, ...], field: Field) -> str:
        """Return a phrase that counts and names what is wrong: coordinates, or blocks of theta."""
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
    """Return the reason and the errors of `find_errors`, the errors deferred if possible."""
    if not (isinstance(evidence, DecimalEvidence) and evidence.refutes):
        return find_errors(problem, theta, is_zero, evidence)
    if evidence.is_stateful:
        return IS_STATEFUL, ()
    return "", deferred_errors(problem, theta, is_zero, evidence)

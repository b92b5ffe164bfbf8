"""Which derivatives are wrong at theta, and by how much (D44).

Which they are is computed only when it is read, or where the error is so small that all of them
decide. Of a small theta every coordinate is tested. Of a large one the field says
which are wrong: along the directions d_j = r_j^k, k = 1, 2, 3, 4, with random r_j, the excess is
sum_j delta_j r_j^k of the errors delta_j, a recurrence whose roots are the r_j of the coordinates
that are wrong (Prony), if these are one or two. Otherwise each block is tested along two
directions: the same quotient of both slopes is a factor by which the block is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, context
from ..fields.finite import Prime, mix64, mixing_key
from ..structures import copy_leaves
from ..trace.copies import Copies, in_own_context
from .evidence import (
    DECIMAL_RTOL,
    FLOATS_DIFFER,
    IS_STATEFUL,
    MAX_COORDINATES_TESTED,
    SHAKEN_RTOL,
    UNDEFINED,
    DecimalEvidence,
    Evidence,
    FloatEvidence,
)
from .runs import ProofProblem, run

__all__ = [
    "Candidate",
    "WrongDerivative",
    "deferred_errors",
    "error_candidates",
    "find_errors",
]

Array = NDArray[Any]
# Share of the largest derivative below which derivatives are held to the same absolute error
MIN_DERIVATIVE_SHARE = Decimal("1e-20")
# Largest relative error that the rounding of float constants may cause in a derivative
CONSTANT_RTOL = Decimal("1e-15")
MAX_FACTOR_TERMS = 10**6  # largest numerator times denominator of a factor

ROUNDED = (
    "derivatives differ by {:.1g}, which may be the rounding of a float constant, or of data that "
    "sum to 1. Pass constants as arguments, or make them exact in binary (0.5, not 0.1)"
)


class WrongDerivative(NamedTuple):
    """A wrong derivative; or a block of them, with their slopes along a random direction."""

    name: str
    by_hand: Decimal
    right: Decimal
    # whether the difference exceeds the uncertainty of its measurement
    seen: bool = True
    size: int = 1  # number of coordinates of the block
    # derivatives by hand over right ones, if one for all
    factor: Fraction | None = None

    @property
    def excess(self) -> Decimal:
        """The derivative written by hand minus the right one."""
        return self.by_hand - self.right

    def __str__(self) -> str:
        by_hand, right = float(self.by_hand), float(self.right)
        if not self.seen:
            return f"{self.name}: {by_hand:.15g} is wrong, by less than floats show"
        if self.size > 1:
            error = f"wrong in more than 2 of {self.size}"
            if self.factor is not None:
                error = f"{self.factor} times the right one, in all {self.size}"
            slopes = f"by hand {by_hand:.6g}, right {right:.6g}"
            return f"{self.name}: {error}; along a random direction {slopes}"
        size = "large" if self.excess > 0 else "small"
        error = f"too {size} by {float(abs(self.excess)):.3g}"
        return f"{self.name}: by hand {by_hand:.15g}, right {right:.15g}, {error}"


class Candidate(NamedTuple):
    """A coordinate or block of theta that may be wrong, and a direction to test it along."""

    name: str
    direction: Array  # (D,)
    size: int = 1
    # factor by which the whole block is wrong in the field
    factor: Fraction | None = None


def deferred_errors(
    problem: ProofProblem, theta: Array, is_zero: bool, evidence: DecimalEvidence
) -> Callable[[], tuple[WrongDerivative, ...]]:
    """Return a function that computes which derivatives are wrong, at its first call.

    The returned function calls the user's function again, with copies of the arguments. It returns
    no errors if the user's function returns other numbers than before.

    Parameters
    ----------
    problem, theta, is_zero, evidence
        As in `find_errors`.
    """
    arguments = copy_leaves(problem.arguments)
    problem = problem._replace(arguments=arguments, copies=Copies())
    theta = theta.copy()
    numbers = evidence.numbers()

    @cache
    @in_own_context
    def errors() -> tuple[WrongDerivative, ...]:
        try:
            evidence = DecimalEvidence(problem, theta)
            if evidence.numbers() != numbers:
                return ()
            return find_errors(problem, theta, is_zero, evidence)[1]
        except Exception:  # the verdict stands, whatever the function does later
            return ()

    return errors


def find_errors(
    problem: ProofProblem, theta: Array, is_zero: bool, evidence: Evidence
) -> tuple[str, tuple[WrongDerivative, ...]]:
    """Return why nothing can be concluded, if so, and which derivatives are wrong at theta.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
    is_zero : bool
        Whether the excess is 0 in the field, which then cannot tell what is wrong.
    evidence : Evidence
        The source of the slopes: decimals or floats.

    Returns
    -------
    reason : str
        Why nothing is concluded; empty if the errors are certain, or if there are none.
    errors : tuple of WrongDerivative
        The wrong derivatives; empty if there is a reason, or if none can be seen.
    """
    if is_zero and isinstance(evidence, FloatEvidence):
        return FLOATS_DIFFER.format("slope", evidence.by_hand, evidence.right), ()
    with localcontext(context(5 * N_DIGITS)):
        errors = []
        uncertainties = []
        for name, direction, size, factor in error_candidates(problem, theta, is_zero):
            by_hand, right, uncertainty = map(Decimal, evidence.slopes(direction))
            errors.append(WrongDerivative(name, by_hand, right, True, size, factor))
            uncertainties.append(uncertainty)
        evidence.slopes(np.ones(theta.size))
        if evidence.is_stateful:
            return IS_STATEFUL, ()
        if not all((error.by_hand + error.right).is_finite() for error in errors):
            return UNDEFINED, ()
        largest = max((abs(error.right) for error in errors), default=Decimal(0))
        for i, (error, uncertainty) in enumerate(
            zip(errors, uncertainties, strict=True)
        ):
            scale = max(abs(error.by_hand), MIN_DERIVATIVE_SHARE * largest)
            tolerance = uncertainty + DECIMAL_RTOL * scale
            errors[i] = error._replace(seen=not abs(error.excess) <= tolerance)
        visible = [abs(error.excess) for error in errors if error.seen]
        if not visible:
            return "", ()
        worst = max(visible)
        if worst < CONSTANT_RTOL * largest:
            return ROUNDED.format(worst), ()
        is_small = worst < SHAKEN_RTOL * max(largest, Decimal(1))
        if is_small and worst < 1000 * evidence.rounding():
            return ROUNDED.format(worst), ()
    # single coordinates of a large theta are wrong in the field, even if decimals cannot see it
    is_large = theta.size > MAX_COORDINATES_TESTED
    return "", tuple(
        error for error in errors if error.seen or (is_large and error.size == 1)
    )


def error_candidates(
    problem: ProofProblem, theta: Array, is_zero: bool
) -> Iterator[Candidate]:
    """Yield coordinates or blocks of theta whose derivatives may be wrong.

    They are all coordinates of a small theta. For a large one they are the coordinates or else the
    blocks that the field finds wrong, and all of theta if it finds none.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
    is_zero : bool
        Whether the excess is 0 in the field: then all blocks of a large theta are candidates.
    """
    coordinates: Any = range(theta.size)
    if theta.size > MAX_COORDINATES_TESTED:
        coordinates = [] if is_zero else _wrong_coordinates(problem, theta)
    for j in coordinates:
        yield Candidate(problem.name(int(j)), (np.arange(theta.size) == j) * 1.0)
    if len(coordinates):
        return
    blocks: list[tuple[str, slice, Fraction | None]] = []
    for name, block in problem.blocks.items():
        if is_zero:
            blocks.append((name, block, None))
            continue
        is_wrong, factor = _test_block(problem, theta, block)
        if is_wrong:
            blocks.append((name, block, factor))
    for name, block, factor in blocks or [("theta", slice(None), None)]:
        size = len(range(*block.indices(theta.size)))
        direction = np.zeros(theta.size)
        direction[block] = np.random.default_rng(problem.seed).standard_normal(size)
        yield Candidate(name, direction, size, factor)


def _wrong_coordinates(problem: ProofProblem, theta: Array) -> Array:
    """Return the indices of the wrong coordinates if there are one or two, else no indices.

    They are the roots of the recurrence of the excess along four directions (Prony).
    """
    field = Prime(problem.seed)
    p = field.p
    key = mixing_key(problem.seed, "r")
    r = (mix64(np.arange(theta.size), key) % np.uint64(p)).astype(np.int64)
    power, s = r, []
    for _ in range(4):
        evaluation = run(problem, theta, Prime(problem.seed), power[:, None])
        s.append(int(evaluation.excess()[0]))
        power = field.mul(power, r)
    nothing = r[:0]
    if not s[0]:
        return nothing
    determinant = (s[1] * s[1] - s[0] * s[2]) % p
    if determinant:  # two coordinates are wrong: r^2 = b r + c
        over = pow(determinant, -1, p)
        b = (s[1] * s[2] - s[0] * s[3]) * over % p
        c = (s[1] * s[3] - s[2] * s[2]) * over % p
        coordinates = np.flatnonzero(field.mul(r, field.sub(r, np.array([b]))) == c)
        return coordinates if len(coordinates) == 2 else nothing
    coordinates = np.flatnonzero(r == s[1] * pow(s[0], -1, p) % p)
    return coordinates if len(coordinates) == 1 else nothing


def _test_block(
    problem: ProofProblem, theta: Array, block: slice
) -> tuple[bool, Fraction | None]:
    """Return whether a block is wrong, and the factor by which all of it is wrong, or None.

    `block` is a slice of theta. Two random directions in the block have to agree on the factor.
    """
    factors = []
    size = len(range(*block.indices(theta.size)))
    for seed in (problem.seed + 1, problem.seed + 2):
        field = Prime(problem.seed)
        direction = np.zeros((theta.size, 1), np.int64)
        direction[block] = Prime(seed).draw((size,)) % field.p
        evaluation = run(problem, theta, field, direction)
        if field.n_substituted or not evaluation.excess()[0]:
            return field.n_substituted > 0, None
        by_hand = int(field.sum(evaluation.terms, 0)[0])
        slope = int(evaluation.value.tangent[0, 0])
        factors.append(by_hand * pow(slope, -1, field.p) % field.p if slope else None)
    first, second = factors
    if first is None or first != second:
        return True, None
    return True, _fraction(first, field.p)


def _fraction(residue: int, p: int) -> Fraction | None:
    """Return the small fraction n / d that is congruent to `residue` modulo p, or None."""
    r, s = p, residue
    t, u = 0, 1
    while s * s >= p:
        q = r // s
        r, s = s, r - q * s
        t, u = u, t - q * u
    return Fraction(s, u) if u and abs(s * u) < MAX_FACTOR_TERMS else None

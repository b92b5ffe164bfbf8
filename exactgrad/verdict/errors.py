"""Find which derivatives are wrong at theta, and by how much (D44).

This is computed when a user reads it, or at once if the error is so small that the verdict depends
on the single derivatives. If theta is small every coordinate is tested. If it is large the field
finds the wrong coordinates: along the directions d_j = r_j^k, k = 1, 2, 3, 4, with random r_j, the
excess is sum_j delta_j r_j^k, where delta_j is the error of coordinate j. This sequence satisfies a
recurrence whose roots are the r_j of the wrong coordinates (Prony), if there are one or two of
them. Otherwise each block is tested along two directions: if the quotient of the slopes by hand and
right is the same along both, it is the factor by which the block is wrong.
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
from ..fields.finite import BatchedPrime, Prime, mix64, mixing_key
from ..structures import copy_leaves
from ..trace.copies import Copies, in_own_context
from .evidence import (
    DECIMAL_RTOL,
    FLOATS_DIFFER,
    IS_STATEFUL,
    MAX_COORDINATES_TESTED,
    MAX_DECIMAL_SLOPES,
    SHAKEN_RTOL,
    UNDEFINED,
    DecimalEvidence,
    DualEvidence,
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
Refutation = DecimalEvidence | DualEvidence
# Relative errors of derivatives are taken of at least this share of the largest derivative
MIN_DERIVATIVE_SHARE = Decimal("1e-20")
# Largest relative error that the rounding of float constants may cause in a derivative
CONSTANT_RTOL = Decimal("1e-15")
MAX_FACTOR_TERMS = 10**6  # largest product of numerator and denominator of a factor

# Relative difference of decimals that count as equal in words
EXACT_RTOL = Decimal("1e-30")

ROUNDED = (
    "derivatives differ by {:.1g}, which may be the rounding of a float constant, or of data that "
    "sum to 1. Pass constants as arguments, or make them exact in binary (0.5, not 0.1)"
)


class WrongDerivative(NamedTuple):
    """A wrong derivative of a coordinate of theta, or wrong derivatives of a block of theta."""

    name: str  # name of the coordinate or block
    by_hand: Decimal  # hand-written derivative; of a block, along a random direction
    right: Decimal  # right derivative; of a block, along the same direction
    # whether the difference of both exceeds its uncertainty
    seen: bool = True
    size: int = 1  # number of coordinates of the block
    # common quotient of derivatives by hand and right ones in a block; None if they differ
    factor: Fraction | None = None
    # relative uncertainty of the right derivative
    rtol: Decimal = EXACT_RTOL

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
    """A coordinate or block of theta whose derivatives may be wrong, and a direction to test."""

    name: str  # name of the coordinate or block
    direction: Array  # (D,) floats that are 0 outside of the coordinate or block
    size: int = 1  # number of coordinates of the block
    # factor by which all derivatives of the block are wrong, if it is known
    factor: Fraction | None = None


def deferred_errors(
    problem: ProofProblem, theta: Array, is_zero: bool, evidence: Refutation
) -> Callable[[], tuple[WrongDerivative, ...]]:
    """Return a function that computes the wrong derivatives when it is first called.

    It calls the user's function again, with copies of the arguments that are made now. If the
    user's function then raises, or returns other numbers than before, it returns an empty tuple.

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
    @np.errstate(all="ignore")
    def errors() -> tuple[WrongDerivative, ...]:
        try:
            again = type(evidence)(problem, theta)
            if not again.returns(numbers):
                return ()
            return find_errors(problem, theta, is_zero, again)[1]
        except Exception:
            # the function may fail later, which does not change the verdict
            return ()

    return errors


def find_errors(
    problem: ProofProblem, theta: Array, is_zero: bool, evidence: Evidence
) -> tuple[str, tuple[WrongDerivative, ...]]:
    """Find the wrong derivatives at theta; return (reason, errors), of which one or both are empty.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
        The point at which derivatives are tested.
    is_zero : bool
        Whether the excess, the derivative of the value minus grad . direction, is 0 in the field,
        which then cannot find the wrong coordinates.
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
        candidates = [*error_candidates(problem, theta, is_zero)]
        slopes = evidence.slopes_along([one.direction for one in candidates])
        for candidate, slope in zip(candidates, slopes, strict=True):
            by_hand, right, uncertainty = map(Decimal, slope)
            name, _, size, factor = candidate
            rtol = EXACT_RTOL + 2 * uncertainty / (abs(right) or 1)
            errors.append(
                WrongDerivative(name, by_hand, right, True, size, factor, rtol)
            )
            uncertainties.append(uncertainty)
        if not isinstance(evidence, DualEvidence):  # which has called it twice
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
    # the field has shown that single coordinates of a large theta are wrong, even if the error is
    # below the uncertainty of decimals or floats
    is_large = theta.size > MAX_COORDINATES_TESTED
    return "", tuple(
        error for error in errors if error.seen or (is_large and error.size == 1)
    )


def error_candidates(
    problem: ProofProblem, theta: Array, is_zero: bool
) -> Iterator[Candidate]:
    """Yield coordinates or blocks of theta whose derivatives may be wrong.

    If theta is small these are all its coordinates. If it is large these are the one or two
    coordinates that the field finds wrong, or else the blocks that it finds wrong, or else all of
    theta as one block.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
        The point at which derivatives are tested.
    is_zero : bool
        Whether the excess, the derivative of the value minus grad . direction, is 0 in the field:
        then all blocks of a large theta are candidates.
    """
    coordinates: Any = range(theta.size)
    if theta.size > MAX_COORDINATES_TESTED:
        coordinates = [] if is_zero else _wrong_coordinates(problem, theta)
    elif theta.size > MAX_DECIMAL_SLOPES and not is_zero:
        coordinates = _wrong_in_field(problem, theta)
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


def _wrong_in_field(problem: ProofProblem, theta: Array) -> Array:
    """Return the indices of all coordinates of theta that may be wrong: not right in the field.

    If roots are taken these are all coordinates, as a field does not know the sign of a root.
    """
    n_channels = BatchedPrime.n_channels
    is_wrong = np.ones(theta.size, bool)
    for start in range(0, theta.size, n_channels):
        along = np.eye(theta.size, n_channels, -start, np.int64)
        field = BatchedPrime(problem.seed)
        excess = run(problem, theta, field, along).excess()
        part = is_wrong[start : start + n_channels]
        part[...] = (excess != 0)[: part.size] | field.signs_matter
    return np.flatnonzero(is_wrong)


def _wrong_coordinates(problem: ProofProblem, theta: Array) -> Array:
    """Return the indices of the wrong coordinates of theta if these are one or two, else none.

    They follow from the roots of a recurrence: the excess along four directions (Prony's method).
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
    if determinant:  # two wrong coordinates, whose r are the roots of r^2 = b r + c
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
    """Return whether a block of theta is wrong, and its factor: by hand over right, or None.

    `block` is a slice of theta. The factor is None unless it is the same along two random
    directions in the block.
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
    """Return the fraction n / d congruent to `residue` modulo p with small n d; None if none is."""
    r, s = p, residue
    t, u = 0, 1
    while s * s >= p:
        q = r // s
        r, s = s, r - q * s
        t, u = u, t - q * u
    return Fraction(s, u) if u and abs(s * u) < MAX_FACTOR_TERMS else None

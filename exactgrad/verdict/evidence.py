"""What the numbers at theta say of a gradient: whether it exists, and agrees with its value (D44).

Sixty digits say whether value and gradient exist, and the slope along any direction; floats do
where theta is large. One direction refutes an error that no rounding explains.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, Digits, NoSeries, context
from ..fields.finite import LARGE_THETA, Field
from ..structures import copy_leaves
from .runs import Evaluation, ProofProblem, run

__all__ = [
    "DECIMAL_RTOL",
    "FLOATS_DIFFER",
    "IS_STATEFUL",
    "MAX_COORDINATES_TESTED",
    "SHAKEN_RTOL",
    "UNDEFINED",
    "DecimalEvidence",
    "Evidence",
    "FloatEvidence",
    "Slopes",
    "gather_evidence",
]

Array = NDArray[Any]
MAX_COORDINATES_TESTED = 256  # coordinates that are tested one by one, in decimals
DECIMAL_RTOL = Decimal("1e-35")  # relative difference of equal 60-digit numbers
# Relative error below which the effect of rounding the floats is measured
SHAKEN_RTOL = Decimal("1e-9")
FLOAT_RTOL = 1e-3  # largest relative difference of floats and exact numbers by rounding
# Relative steps of central differences: small ones stay on a path, large ones keep digits
DIFFERENCE_STEPS = (1e-7, 1e-4)

UNDEFINED = (
    "there is no value or no derivative here: something is divided by 0, or a logarithm, a root or "
    "a non-integer power of a negative number is taken (pass a whole exponent as an integer, since "
    "a float stands for any number). Choose a theta at which the function is defined"
)
FLOATS_DIFFER = (
    "with floats the {} is {:.6g} in place of {:.6g}: the function depends on the dtype of theta, "
    "stores something from call to call, or loses its digits to rounding"
)
IS_STATEFUL = (
    "two calls with the same arguments return different numbers: the function stores something "
    "from call to call, or draws noise. Pass what it stores, or the noise, as an argument"
)


class Slopes(NamedTuple):
    """The slopes along a direction, by hand and right, and the uncertainty of their difference."""

    by_hand: Any
    right: Any
    uncertainty: Any


class Evidence:
    """Evidence on a gradient from the numbers at theta: whether it exists and is right.

    This base class says that it is, by the floats that a proof has carried along.
    """

    # beginning of the reason for a gradient that is neither proved nor refuted
    right_so_far: ClassVar[str] = ""
    exists = agrees = True  # value and gradient exist, and agree with each other
    refutes = False  # whether the error along one direction exceeds any rounding
    # whether repeated calls have returned different numbers
    is_stateful = False

    def slopes(self, direction: Array) -> Slopes:
        """Return the slopes along a direction (D,), by hand and right."""
        raise NotImplementedError

    def rounding(self) -> Decimal:
        """Return how much the excess changes when floats move within their rounding, or 0."""
        return Decimal(0)

    def float_mismatch(self) -> str:
        """Return how the function differs when it is called with floats; "" if it does not."""
        return ""


class DecimalEvidence(Evidence):
    """Evidence from decimals: sixty digits, or three hundred where most of sixty cancel."""

    right_so_far = "all derivatives are right to 35 digits here, but perhaps "

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        self.problem = problem
        self.theta = theta
        for self.n_digits in (N_DIGITS, 5 * N_DIGITS):
            with localcontext(context(self.n_digits)):
                self.field = Digits(problem.seed)
                self.evaluation = run(problem, theta, self.field)
                value = self.evaluation.value.primal[0, 0]
                slope = self.evaluation.value.tangent[0, 0]
                size = abs(self.evaluation.terms).sum() + abs(slope)
                excess = abs(self.evaluation.excess()[0])
                self.exists = (value + size).is_finite()
                self.agrees = self.exists and excess <= DECIMAL_RTOL * size
            if self.agrees:
                break
        self.refutes = self.exists and not self.agrees and self._is_beyond_rounding()

    def _is_beyond_rounding(self) -> bool:
        """Return whether the excess is so large that `find_errors` is certain to refute.

        The largest of the n errors is at least 1 / n of the excess, as directions are below 1.
        """
        with localcontext(context(self.n_digits)):
            grad = abs(self.evaluation.grad.primal)
            largest = max(1, grad.max(initial=Decimal(0)))
            bound = 2 * self.theta.size * SHAKEN_RTOL * largest
            is_large = abs(self.evaluation.excess()[0]) > bound
        if is_large:  # call once more: `slopes` notes if other numbers are returned
            self.slopes(np.ones(self.theta.size))
        return bool(is_large)

    def slopes(self, direction: Array) -> Slopes:
        """Return the slopes along a direction (D,), by hand and right, with uncertainty 0."""
        with localcontext(context(self.n_digits)):
            along = self.field.from_floats(direction)
            evaluation = run(self.problem, self.theta, self.field, along)
            self.is_stateful |= _numbers(evaluation) != self.numbers()
            by_hand = evaluation.terms.sum()
            return Slopes(by_hand, evaluation.value.tangent[0, 0], Decimal(0))

    def rounding(self) -> Decimal:
        """Return the largest change of the excess over six perturbations of the floats.

        Each moves the floats within their rounding.
        """
        with localcontext(context(self.n_digits)):
            excess, *shaken_excesses = (
                self.problem.excess(self.theta, Digits(self.problem.seed, shake))[0]
                for shake in range(7)
            )
            return max(abs(shaken - excess) for shaken in shaken_excesses)

    def numbers(self) -> tuple[Decimal, ...]:
        """Return the value and the gradient as decimals (1 + D)."""
        return _numbers(self.evaluation)

    def float_mismatch(self) -> str:
        """Return how the function differs when it is called with floats; "" if it does not."""
        value, grad = self.evaluation.value.primal, self.evaluation.grad.primal
        return _float_mismatch(self.problem, self.theta, value, grad) or ""


def _numbers(evaluation: Evaluation) -> tuple[Decimal, ...]:
    """Return the value and the gradient of an evaluation as decimals (1 + D)."""
    return (*evaluation.value.primal[0], *evaluation.grad.primal[:, 0])


def _float_mismatch(
    problem: ProofProblem, theta: Array, value: Array, grad: Array
) -> str | None:
    """Return how the function differs with floats from `value` (1,) and `grad` (D,).

    "" if it does not differ, None if it cannot be called with floats.
    """
    try:
        with np.errstate(all="ignore"):
            arguments = theta.copy(), *copy_leaves(problem.arguments)
            returned = problem.value_and_grad(*arguments)[:2]
            floats = np.array([returned[0], *returned[1]], float)
        right = np.concatenate([value.ravel(), grad.ravel()]).astype(float)
    except Exception:  # the function takes only exact numbers, or floats overflow
        return None
    if not np.isfinite([*floats, *right]).all():
        return ""
    size = np.full(right.size, max(1e-6, 1e-6 * abs(right[0]), *np.abs(right[1:])))
    size[0] += abs(right[0])
    worst = int(np.argmax(np.abs(floats - right) / size))
    if not abs(floats[worst] - right[worst]) > FLOAT_RTOL * size[worst]:
        return ""
    name = "gradient" if worst else "value"
    return FLOATS_DIFFER.format(name, floats[worst], right[worst])


class FloatEvidence(Evidence):
    """Evidence from floats, where decimals take too long or a function has no series."""

    right_so_far = "nothing is wrong as far as floats can tell, but perhaps "
    grad: Any = None

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        self.problem = problem
        self.theta = theta
        direction = np.random.default_rng(problem.seed).standard_normal(theta.size)
        self.by_hand, self.right, _ = self.slopes(direction, DIFFERENCE_STEPS[:1])
        self.exists = bool(np.isfinite([self.by_hand, self.right]).all())
        size = max(abs(self.by_hand), abs(self.right))
        self.agrees = abs(self.by_hand - self.right) <= FLOAT_RTOL * size

    def slopes(
        self, direction: Array, steps: tuple[float, ...] = DIFFERENCE_STEPS
    ) -> Slopes:
        """Return the slopes along a direction, the right one by fourth-order central differences.

        Parameters
        ----------
        direction : ndarray of shape (D,)
        steps : tuple of float
            Steps of the differences, for a theta and a direction of unit size. The slope nearest
            to that by hand is returned.
        """
        f = self.problem.value_and_grad
        arguments = self.problem.arguments
        length = max(1e-300, float(abs(direction).max()))
        unit = max(1.0, float(abs(self.theta).max())) / length

        def difference(h: float) -> float:
            points = (self.theta + k * h * direction for k in (-2, -1, 1, 2))
            v = [float(f(point, *copy_leaves(arguments))[0]) for point in points]
            return (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h)

        with np.errstate(all="ignore"):
            grad = np.ravel(f(self.theta.copy(), *copy_leaves(arguments))[1])
            if self.grad is None:
                self.grad = grad
            self.is_stateful |= not np.array_equal(grad, self.grad, equal_nan=True)
            by_hand = float(grad @ direction)
            estimates = [difference(step * unit) for step in steps]
        right = min(estimates, key=lambda estimate: abs(estimate - by_hand))
        spread = abs(estimates[0] - estimates[-1])
        size = max(abs(by_hand), abs(right))
        return Slopes(by_hand, right, 10 * spread + 1e-10 * size)


def gather_evidence(
    problem: ProofProblem,
    theta: Array,
    is_zero: bool,
    field: Field,
    decimals: Callable[[], DecimalEvidence],
) -> Evidence:
    """Return evidence on a gradient from the numbers at theta: from decimals or from floats.

    Decimals are computed for a small theta, for a large one only if floats are not enough, and
    always for a field that knows all laws, whose primes are small. If no sign of a root matters and
    nothing is divided by 0, the floats of a proof show that value and gradient exist.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
    is_zero : bool
        Whether the excess is 0 in the field.
    field : Field
        The last field in which the excess was computed.
    decimals : callable
        Computes the evidence from decimals.
    """
    floats = partial(FloatEvidence, problem, theta)
    by_law = is_zero and field.knows_all_laws
    if theta.size > MAX_COORDINATES_TESTED and not by_law:
        evidence: Evidence = floats()
        if theta.size > LARGE_THETA or (is_zero and evidence.agrees):
            return evidence
        try:
            return decimals()
        except NoSeries:
            return evidence
    if is_zero and not (by_law or field.divided_by_zero or field.signs_matter):
        value, grad = field.evaluation.value.floats, field.evaluation.grad.floats
        exists = np.isfinite(value).all() and np.isfinite(grad).all()
        if exists and _float_mismatch(problem, theta, value, grad) == "":
            return Evidence()
    try:
        return decimals()
    except NoSeries:
        return floats()

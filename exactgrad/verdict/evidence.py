"""Evidence at theta itself: whether a gradient exists there, and agrees with its value (D44).

The function is run at theta with sixty decimal digits or, if theta is large, with floats. This
shows whether value and gradient exist, and gives the slope along any direction, by hand (from the
gradient) and right (from the value). A gradient is refuted by one direction along which the two
slopes differ by more than rounding can explain.
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
MAX_COORDINATES_TESTED = 256  # largest theta whose coordinates are tested one by one
DECIMAL_RTOL = Decimal("1e-35")  # relative difference of decimals that count as equal
# Relative error below which a wrong derivative is compared with the effect of rounding floats
SHAKEN_RTOL = Decimal("1e-9")
# Largest relative difference of float and exact results that rounding can cause
FLOAT_RTOL = 1e-3
# Relative steps of central differences: small ones cross no kink, large ones lose fewer digits
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
    """The slope of a value along a direction, by hand and right, as decimals or floats."""

    by_hand: Any  # product of the hand-written gradient and the direction
    right: Any  # derivative of the value along the direction
    uncertainty: Any  # largest difference of both slopes that numerical error can cause


class Evidence:
    """Evidence on a gradient from the numbers at theta: whether it exists and is right.

    This base class says that it exists and is right, for problems whose proof needs no decimals.
    """

    # first words of the reason given for a gradient that is neither proved nor refuted
    right_so_far: ClassVar[str] = ""
    # whether value and gradient exist, and agree along one direction
    exists = agrees = True
    refutes = False  # whether both slopes differ by more than rounding can explain
    # whether repeated calls of the function have returned different numbers
    is_stateful = False

    def slopes(self, direction: Array) -> Slopes:
        """Return the slope of the value along a direction (D,): by hand, right, and uncertainty."""
        raise NotImplementedError

    def rounding(self) -> Decimal:
        """Return the largest change of the excess from rounding the function's floats; here 0."""
        return Decimal(0)

    def float_mismatch(self) -> str:
        """Return a sentence on how results with floats differ from exact ones; "" if they agree."""
        return ""


class DecimalEvidence(Evidence):
    """Evidence from a run with sixty decimal digits, or with three hundred if sixty disagree."""

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
        """Return whether the excess is so large that `find_errors` is certain to find an error.

        The excess is the derivative of the value minus grad . direction. The largest error of D
        derivatives is at least 1 / D of it, since the entries of the direction are below 1.
        """
        with localcontext(context(self.n_digits)):
            grad = abs(self.evaluation.grad.primal)
            largest = max(1, grad.max(initial=Decimal(0)))
            bound = 2 * self.theta.size * SHAKEN_RTOL * largest
            is_large = abs(self.evaluation.excess()[0]) > bound
        if is_large:
            # `slopes` calls the function again, and sets `is_stateful` if it differs
            self.slopes(np.ones(self.theta.size))
        return bool(is_large)

    def slopes(self, direction: Array) -> Slopes:
        """Return the slope along a direction (D,), by hand and right, with uncertainty 0.

        `is_stateful` is set if the function returns other numbers than in its first call.
        """
        with localcontext(context(self.n_digits)):
            along = self.field.from_floats(direction)
            evaluation = run(self.problem, self.theta, self.field, along)
            self.is_stateful |= _numbers(evaluation) != self.numbers()
            by_hand = evaluation.terms.sum()
            return Slopes(by_hand, evaluation.value.tangent[0, 0], Decimal(0))

    def rounding(self) -> Decimal:
        """Return the largest change of the excess from rounding the function's floats.

        Floats are changed within their rounding by six random perturbations. The excess is the
        derivative of the value minus grad . direction.
        """
        with localcontext(context(self.n_digits)):
            excess, *shaken_excesses = (
                self.problem.excess(self.theta, Digits(self.problem.seed, shake))[0]
                for shake in range(7)
            )
            return max(abs(shaken - excess) for shaken in shaken_excesses)

    def numbers(self) -> tuple[Decimal, ...]:
        """Return a tuple of 1 + D decimals: the value, and the gradient by theta (D,)."""
        return _numbers(self.evaluation)

    def float_mismatch(self) -> str:
        """Return a sentence on how results with floats differ from decimals; "" if they agree."""
        value, grad = self.evaluation.value.primal, self.evaluation.grad.primal
        return _float_mismatch(self.problem, self.theta, value, grad) or ""


def _numbers(evaluation: Evaluation) -> tuple[Decimal, ...]:
    """Return the value and the gradient (D,) of an evaluation as a tuple of 1 + D decimals."""
    return (*evaluation.value.primal[0], *evaluation.grad.primal[:, 0])


def _float_mismatch(
    problem: ProofProblem, theta: Array, value: Array, grad: Array
) -> str | None:
    """Return a sentence on how a call with floats differs from `value` (1,) and `grad` (D,).

    It is "" if they agree or are not finite, and None if the function cannot be called with floats.
    """
    try:
        with np.errstate(all="ignore"):
            arguments = theta.copy(), *copy_leaves(problem.arguments)
            returned = problem.value_and_grad(*arguments)[:2]
            floats = np.array([returned[0], *returned[1]], float)
        right = np.concatenate([value.ravel(), grad.ravel()]).astype(float)
    except Exception:
        # the function takes exact numbers only, or a number is too large for floats
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
    """Evidence from floats, if decimals take too long or a function has no series for them."""

    right_so_far = "nothing is wrong as far as floats can tell, but perhaps "
    # (D,) gradient of the first call, with which later calls are compared
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
        """Return the slope along a direction, by hand and by fourth-order central differences.

        Parameters
        ----------
        direction : ndarray of shape (D,)
            The direction, of any length.
        steps : tuple of float
            Steps of the differences, relative to the largest entries of theta (at least 1) and of
            the direction. Of their estimates the one nearest to the slope by hand is returned.
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
    """Return evidence on whether a gradient exists and is right at theta, from decimals or floats.

    Decimals are computed if theta is small; if it is large, only if floats are not enough; and
    always for a field that knows all identities, whose primes are small. They are not needed if the
    excess is 0, no sign of a root matters and nothing is divided by 0: then the floats that the
    exact run has carried along show that value and gradient exist.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
        The point at which evidence is gathered.
    is_zero : bool
        Whether the excess, the derivative of the value minus grad . direction, is 0 in the field.
    field : Field
        The last field in which the excess was computed.
    decimals : callable
        Function without arguments that computes the evidence from decimals.
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

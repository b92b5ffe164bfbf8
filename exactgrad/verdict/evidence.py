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
DECIMAL_RTOL = Decimal("1e-35")  # up to which two of sixty digits are the same number
# relative error up to which the effect of the rounding of floats is measured
SHAKEN_RTOL = Decimal("1e-9")
FLOAT_RTOL = 1e-3  # between floats and exact numbers: more is not rounding
# of differences of floats: small ones stay on a path, large ones keep digits
DIFFERENCE_STEPS = (1e-7, 1e-4)

UNDEFINED = (
    "there is no value or no derivative here: something is divided by 0, or is the logarithm or "
    "the root of a negative number, or a power of it (pass a whole exponent as an integer: a float "
    "is free). Take a theta at which the function is defined"
)
FLOATS_DIFFER = (
    "with floats the {} is another, {:.6g} for {:.6g}: the function asks for the dtype of theta, "
    "keeps something from call to call, or its floats have lost their digits"
)
IS_STATEFUL = (
    "two calls with the same numbers return different ones: something is kept from call to call, "
    "or noise is drawn inside. Pass it as an argument"
)


class Slopes(NamedTuple):
    """The slope along a direction by hand and the right one, and how uncertain both are."""

    by_hand: Any
    right: Any
    uncertainty: Any


class Evidence:
    """What the numbers at theta say of a gradient.

    This base class says that all is well: by the floats that a proof has carried along.
    """

    # what it says of a gradient that is neither proved nor wrong
    right_so_far: ClassVar[str] = ""
    exists = agrees = True  # value and gradient, and these with each other
    refutes = False  # whether the error along one direction is more than any rounding
    # whether value and gradient have changed from call to call
    is_stateful = False

    def slopes(self, direction: Array) -> Slopes:
        """Return the slopes along a direction (D,)."""
        raise NotImplementedError

    def rounding(self) -> Decimal:
        """Return what floats shaken in their last digit do to the excess, where it is known."""
        return Decimal(0)

    def float_mismatch(self) -> str:
        """Return that the function returns something else for floats, if it does."""
        return ""


class DecimalEvidence(Evidence):
    """Sixty digits at theta, three hundred where most of sixty cancel."""

    right_so_far = "all derivatives are right to 35 digits here, but "

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
        """Return whether `find_errors` would refute, whichever derivatives are wrong.

        The largest error is at least 1 / n of the excess: the direction has numbers below 1.
        """
        with localcontext(context(self.n_digits)):
            grad = abs(self.evaluation.grad.primal)
            largest = max(1, grad.max(initial=Decimal(0)))
            bound = 2 * self.theta.size * SHAKEN_RTOL * largest
            is_large = abs(self.evaluation.excess()[0]) > bound
        if is_large:  # call once more: `slopes` notes if it returns something else
            self.slopes(np.ones(self.theta.size))
        return bool(is_large)

    def slopes(self, direction: Array) -> Slopes:
        """Return the slopes along a direction (D,), which are certain."""
        with localcontext(context(self.n_digits)):
            along = self.field.from_floats(direction)
            evaluation = run(self.problem, self.theta, self.field, along)
            self.is_stateful |= _numbers(evaluation) != self.numbers()
            by_hand = evaluation.terms.sum()
            return Slopes(by_hand, evaluation.value.tangent[0, 0], Decimal(0))

    def rounding(self) -> Decimal:
        """Return how far the excess moves, at most, where floats are rounded in six other ways."""
        with localcontext(context(self.n_digits)):
            excess, *shaken_excesses = (
                self.problem.excess(self.theta, Digits(self.problem.seed, shake))[0]
                for shake in range(7)
            )
            return max(abs(shaken - excess) for shaken in shaken_excesses)

    def numbers(self) -> tuple[Decimal, ...]:
        """Return value and gradient."""
        return _numbers(self.evaluation)

    def float_mismatch(self) -> str:
        """Return that the function returns something else for floats, if it can be called so."""
        value, grad = self.evaluation.value.primal, self.evaluation.grad.primal
        return _float_mismatch(self.problem, self.theta, value, grad) or ""


def _numbers(evaluation: Evaluation) -> tuple[Decimal, ...]:
    return (*evaluation.value.primal[0], *evaluation.grad.primal[:, 0])


def _float_mismatch(
    problem: ProofProblem, theta: Array, value: Array, grad: Array
) -> str | None:
    """Return how the function differs for floats, ``""`` if it does not, None if it has none."""
    try:
        with np.errstate(all="ignore"):
            arguments = theta.copy(), *copy_leaves(problem.arguments)
            returned = problem.value_and_grad(*arguments)[:2]
            floats = np.array([returned[0], *returned[1]], float)
        right = np.concatenate([value.ravel(), grad.ravel()]).astype(float)
    except Exception:  # a function of exact numbers alone, or values beyond floats
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
    """Floats and their differences, where decimals take too long or have no series."""

    right_so_far = "nothing is wrong as far as floats can tell, but "
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
        """Return the slopes along a direction, the right one by differences of fourth order.

        Parameters
        ----------
        direction : ndarray of shape (D,)
        steps : tuple of float
            Steps of the differences, for a theta and a direction of unit size. Of several the one
            counts whose slope is nearest to that by hand.
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
    """Return what the numbers at theta say of a gradient.

    Sixty digits say it, of a large theta only where floats are not enough. Where the field knows
    all laws its primes are small, and decimals are computed as well. Where no root's sign has to be
    looked at and nothing is divided by 0, the floats of a proof say that value and gradient exist.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments.
    theta : ndarray of shape (D,)
    is_zero : bool
        Whether the excess vanishes in the field.
    field : Field
        The field that has said so.
    decimals : callable
        Computes the evidence of sixty digits.
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

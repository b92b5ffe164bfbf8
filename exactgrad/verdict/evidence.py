"""Evidence at theta itself: whether a gradient exists there, and agrees with its value (D44).

The function is run at theta with sixty decimal digits or, if theta is large, with floats. This
shows whether value and gradient exist, and gives the slope along any direction, by hand (from the
gradient) and right (from the value). A gradient is refuted by one direction along which the two
slopes differ by more than rounding can explain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, Digits, NoSeries, context
from ..fields.finite import LARGE_THETA, Field
from ..fields.floats import N_ROUNDINGS, Floats
from ..structures import copy_leaves
from .runs import Evaluation, ProofProblem, TraceError, run

__all__ = [
    "DECIMAL_RTOL",
    "FLOATS_DIFFER",
    "IS_STATEFUL",
    "MAX_COORDINATES_TESTED",
    "MAX_DECIMAL_SLOPES",
    "SHAKEN_RTOL",
    "UNDEFINED",
    "DecimalEvidence",
    "DualEvidence",
    "Evidence",
    "FloatEvidence",
    "Slopes",
    "gather_evidence",
]

Array = NDArray[Any]
MAX_COORDINATES_TESTED = 256  # largest theta whose coordinates are tested one by one
DECIMAL_RTOL = Decimal("1e-35")  # relative difference of decimals that count as equal
# Floats refute if the excess is larger than this fraction of its terms, and than this multiple of
# the spread of differently rounded floats
CLEAR_RTOL = 1e-6
CLEAR_SPREADS = 1000
SAME_RTOL = 1e-9  # relative difference of floats that two equal calls may return
# Number of slopes up to which all are computed by decimals, of which each takes a run
MAX_DECIMAL_SLOPES = 32
N_DIRECTIONS = 16  # number of directions along which floats are computed in one run
MIN_DIGITS = 6  # fewest digits that floats have to know of a slope
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

    def slopes_along(self, directions: Sequence[Array]) -> list[Slopes]:
        """Return the slopes of the value along several directions (D,)."""
        return [self.slopes(direction) for direction in directions]

    def rounding(self) -> Decimal:
        """Return the largest change of the excess from rounding the function's floats; here 0."""
        return Decimal(0)

    def float_mismatch(self) -> str:
        """Return a sentence on how results with floats differ from exact ones; "" if they agree."""
        return ""


class DualEvidence(Evidence):
    """Evidence from floats with derivatives, which refutes only what is clearly wrong."""

    agrees = False

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        self.problem = problem
        self.theta = theta
        direction = np.random.default_rng(problem.seed).uniform(-1, 1, (theta.size, 1))
        self.along = np.repeat(direction, N_ROUNDINGS, axis=1)
        try:
            self.evaluation, is_reliable = self._run(self.along)
        except (NoSeries, TraceError):
            return
        if not is_reliable:
            return
        excess = self.evaluation.excess()
        slope = self.evaluation.value.tangent[0]
        size = (np.abs(self.evaluation.terms).sum(0) + np.abs(slope)).max()
        largest = max(1.0, np.abs(self.evaluation.grad.primal).max(initial=0.0))
        # as in `DecimalEvidence._is_beyond_rounding`: some derivative is certain to be wrong
        bound = 2 * theta.size * float(SHAKEN_RTOL) * largest
        bound = max(bound, CLEAR_RTOL * size, CLEAR_SPREADS * np.ptp(excess))
        self.refutes = bool((np.abs(excess) > bound).all())
        if self.refutes:
            again, _ = self._run(self.along)
            self.is_stateful = not self.returns(_numbers(again))

    def _run(self, along: Array) -> tuple[Evaluation, bool]:
        """Return an evaluation along directions (D, C), and whether its floats are reliable."""
        field = Floats(self.problem.seed, along.shape[1])
        evaluation = run(self.problem, self.theta, field, along)
        floats = evaluation.value.residues, evaluation.grad.residues
        is_finite = all(bool(np.isfinite(part).all()) for part in floats)
        return evaluation, field.is_reliable and is_finite

    def numbers(self) -> tuple[Any, ...]:
        """Return a tuple of 1 + D floats: the value, and the gradient by theta (D,)."""
        return _numbers(self.evaluation)

    def returns(self, numbers: tuple[Any, ...]) -> bool:
        """Return whether the function has returned these `numbers`, up to rounding."""
        own = np.array(self.numbers())
        return bool(np.allclose(own, numbers, SAME_RTOL, SAME_RTOL * np.abs(own).max()))

    def float_mismatch(self) -> str:
        """Return a sentence on how a plain call differs from these floats; "" if they agree."""
        value = self.evaluation.value.primal[:, 0]
        grad = self.evaluation.grad.primal[:, 0]
        return _float_mismatch(self.problem, self.theta, value, grad) or ""

    def slopes(self, direction: Array) -> Slopes:
        """Return the slope along a direction (D,), by hand and right, in decimals."""
        return self._decimals.slopes(direction)

    def rounding(self) -> Decimal:
        """Return the largest change of the excess from rounding the function's floats."""
        return self._decimals.rounding()

    def slopes_along(self, directions: Sequence[Array]) -> list[Slopes]:
        """Return the slopes along directions (D,), which are decimals if they are few.

        Else the right ones are floats, rounded to the digits that are certain; decimals are
        computed where floats do not tell whether they differ from the slopes by hand.
        """
        if len(directions) <= MAX_DECIMAL_SLOPES:
            return super().slopes_along(directions)
        with localcontext(context(N_DIGITS)):
            evaluation = run(self.problem, self.theta, Digits(self.problem.seed))
            grad = evaluation.grad.primal[:, 0]
        slopes = list[Slopes]()
        for start in range(0, len(directions), N_DIRECTIONS):
            batch = directions[start : start + N_DIRECTIONS]
            along = np.repeat(np.transpose(batch), N_ROUNDINGS, axis=1)
            evaluation, is_reliable = self._run(along)
            right = evaluation.value.tangent[0].reshape(-1, N_ROUNDINGS)
            for direction, estimates in zip(batch, right, strict=True):
                moved = np.flatnonzero(direction)
                by_hand = sum(grad[j] * Decimal(direction[j]) for j in moved)
                slope = _certain_slope(by_hand, estimates) if is_reliable else None
                slopes.append(slope or self.slopes(direction))
        return slopes

    @cached_property
    def _decimals(self) -> DecimalEvidence:
        """Return the evidence from decimals."""
        return DecimalEvidence(self.problem, self.theta)


def _certain_slope(by_hand: Decimal, estimates: Array) -> Slopes | None:
    """Return a slope by hand and the right one, to the digits that are certain, or None.

    `estimates` are floats for the right slope. It is None if they may equal the slope by hand.
    """
    right = float(np.mean(estimates))
    uncertainty = 10 * float(np.ptp(estimates)) + abs(right) * 1e-15
    if not abs(float(by_hand) - right) > 1000 * uncertainty:
        return None
    if right == 0:
        return Slopes(by_hand, Decimal(0), Decimal(0))
    n_digits = math.floor(math.log10(abs(right) / uncertainty))
    if n_digits < MIN_DIGITS:
        return None
    last_digit = abs(right) * 10.0 ** (1 - n_digits)
    return Slopes(by_hand, Decimal(f"{right:.{n_digits}g}"), Decimal(last_digit))


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

    def returns(self, numbers: tuple[Any, ...]) -> bool:
        """Return whether the function has returned exactly these `numbers`."""
        return self.numbers() == numbers

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
    duals: Callable[[], DualEvidence],
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
    decimals, duals : callable
        Functions without arguments that compute the evidence from decimals, and that from floats
        with derivatives.
    """
    if not is_zero and theta.size <= LARGE_THETA and duals().refutes:
        return duals()
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

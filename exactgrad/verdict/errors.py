"""What the numbers at theta say, and which derivatives are wrong there, by how much (D44).

Sixty digits say whether value and gradient exist, and the slope along any direction; floats do
where theta is large. One direction refutes an error that no rounding explains. Which derivatives
are wrong is computed only when it is read, or where the error is so small that all of them decide.

Of a small theta every coordinate is tested. Of a large one the field says
which are wrong: along the directions d_j = r_j^k, k = 1, 2, 3, 4, with random r_j, the excess is
sum_j delta_j r_j^k of the errors delta_j, a recurrence whose roots are the r_j of the coordinates
that are wrong (Prony), if these are one or two. Otherwise each block is tested along two
directions:
the same quotient of both slopes is a factor by which the block is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import N_DIGITS, Digits, NoSeries, context
from ..fields.finite import SMALLEST_NORMAL, Field, Prime, mix64, mixing_key
from ..structures import copy_leaves
from ..trace.copies import Copies, in_own_context
from .runs import LARGE_THETA, Evaluation, ProofProblem, run

__all__ = [
    "FLOATS",
    "NOWHERE",
    "STATE",
    "Numbers",
    "WrongDerivative",
    "deferred_errors",
    "find_errors",
    "numbers",
    "parts",
]

Array = NDArray[Any]
SIXTY_DIGITS = 256  # coordinates that are tested one by one, in decimals
SAME = Decimal("1e-35")  # relative difference at which two of them are the same number
# of the largest derivative: smaller ones are held to that error
SMALL = Decimal("1e-20")
# what the rounding of float constants may do to a derivative
ROUNDING = Decimal("1e-15")
SHAKEN = Decimal("1e-9")  # up to here the effect of their rounding is measured
APART = 1e-3  # relative difference of floats and of exact numbers that is not rounding
# of differences of floats: small ones stay on a path, large ones keep digits
STEPS = (1e-7, 1e-4)

NOWHERE = (
    "there is no value or no derivative here: something is divided by 0, or is the logarithm or "
    "the root of a negative number, or a power of it (pass a whole exponent as an integer: a float "
    "is free). Take a theta at which the function is defined"
)
FLOATS = (
    "with floats the {} is another, {:.6g} for {:.6g}: the function asks for the dtype of theta, "
    "keeps something from call to call, or its floats have lost their digits"
)
STATE = (
    "two calls with the same numbers return different ones: something is kept from call to call, "
    "or noise is drawn inside. Pass it as an argument"
)
ROUNDED = (
    "derivatives differ by {:.1g}, as the rounding of a float constant may make them, or of data "
    "that sum to 1. Pass constants as arguments, or make them binary fractions"
)


class WrongDerivative(NamedTuple):
    """A wrong derivative; or a block of them, with their slopes along a random direction."""

    name: str
    by_hand: Decimal
    right: Decimal
    # whether the difference is more than the rounding of what measures it
    seen: bool = True
    size: int = 1
    factor: Fraction | None = None  # by which all of a block are too large

    def __str__(self) -> str:
        hand, right, excess = (
            float(self.by_hand),
            float(self.right),
            self.by_hand - self.right,
        )
        if not self.seen:
            return f"{self.name}: {hand:.15g} is wrong, by less than floats show"
        if self.size > 1:
            what = f"wrong in more than 2 of {self.size}"
            if self.factor is not None:
                what = f"{self.factor} times the right one, in all {self.size}"
            shown = f"by hand {hand:.6g}, right {right:.6g}"
            return f"{self.name}: {what}; along a random direction {shown}"
        way = f"too {'large' if excess > 0 else 'small'} by {float(abs(excess)):.3g}"
        return f"{self.name}: by hand {hand:.15g}, right {right:.15g}, {way}"


# --- the numbers at theta


class Numbers:
    """What is known at theta; as they are, the floats that a proof has carried along."""

    RIGHT = ""  # what they say of a gradient that is not proved and not wrong
    exists = agrees = True  # value and gradient, and these with each other
    refutes = False  # whether the error along one direction is more than any rounding
    changed = False  # whether numbers do, though they depend on no direction
    # the slope along a direction by hand and right, and how unsure both are
    slopes: Callable[[Array], tuple[Any, Any, Any]]

    def rounding(self) -> Decimal:
        """Return what floats shaken in their last digit do to the excess, where it is known."""
        return Decimal(0)

    def otherwise(self) -> str:
        """Say that the function returns something else for floats, if it does."""
        return ""


class Decimals(Numbers):
    """Sixty digits at theta, three hundred where most of sixty cancel."""

    RIGHT = "all derivatives are right to 35 digits here, but "

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        self.problem, self.theta = problem, theta
        for self.digits in (N_DIGITS, 5 * N_DIGITS):
            with localcontext(context(self.digits)):
                self.field = Digits(problem.seed)
                self.evaluation = run(problem, theta, self.field)
                slope, value = (
                    self.evaluation.value.tangent[0, 0],
                    self.evaluation.value.primal[0, 0],
                )
                size = abs(self.evaluation.terms).sum() + abs(slope)
                self.exists = (value + size).is_finite()
                self.agrees = (
                    self.exists and abs(self.evaluation.excess()[0]) <= SAME * size
                )
            if self.agrees:
                break
        self.refutes = self.exists and not self.agrees and self._more_than_rounding()

    def _more_than_rounding(self) -> bool:
        """Return whether `find_errors` would refute, whichever derivatives are wrong.

        The largest error is at least 1 / n of the excess: the direction has numbers below 1.
        """
        with localcontext(context(self.digits)):
            most = max(1, abs(self.evaluation.grad.primal).max(initial=Decimal(0)))
            large = (
                abs(self.evaluation.excess()[0]) > 2 * self.theta.size * SHAKEN * most
            )
        if large:  # does the next call return the same?
            self.slopes(np.ones(self.theta.size))
        return bool(large)

    def slopes(self, direction: Array) -> tuple[Decimal, Decimal, Decimal]:
        """Return the slopes, of which it is sure."""
        with localcontext(context(self.digits)):
            found = run(
                self.problem, self.theta, self.field, self.field.from_floats(direction)
            )
            self.changed |= _numbers(found) != self.numbers()
            return found.terms.sum(), found.value.tangent[0, 0], Decimal(0)

    def rounding(self) -> Decimal:
        """Return how far six choices of them move it."""
        with localcontext(context(self.digits)):
            fields = (Digits(self.problem.seed, shake) for shake in range(7))
            first, *shaken = (
                self.problem.excess(self.theta, field)[0] for field in fields
            )
            return max(abs(one - first) for one in shaken)

    def numbers(self) -> tuple[Decimal, ...]:
        """Return value and gradient."""
        return _numbers(self.evaluation)

    def otherwise(self) -> str:
        """Say so, unless there are no floats of it."""
        return (
            _otherwise(
                self.problem,
                self.theta,
                self.evaluation.value.primal,
                self.evaluation.grad.primal,
            )
            or ""
        )


def _numbers(found: Evaluation) -> tuple[Decimal, ...]:
    return (*found.value.primal[0], *found.grad.primal[:, 0])


def _otherwise(
    problem: ProofProblem, theta: Array, value: Array, grad: Array
) -> str | None:
    """Say that the function returns something else for floats, if it does; None if none at all."""
    try:
        with np.errstate(all="ignore"):
            at = theta.copy(), *copy_leaves(problem.arguments)
            floats = problem.value_and_grad(*at)[:2]
            ours = np.array([floats[0], *floats[1]], float)
        right = np.concatenate([value.ravel(), grad.ravel()]).astype(float)
    except Exception:  # a function of exact numbers alone, or values beyond floats
        return None
    if not np.isfinite([*ours, *right]).all():
        return ""
    size = np.full(right.size, max(1e-6, 1e-6 * abs(right[0]), *np.abs(right[1:])))
    size[0] += abs(right[0])
    k = int(np.argmax(np.abs(ours - right) / size))
    apart = abs(ours[k] - right[k]) > APART * size[k]
    return (
        FLOATS.format("gradient" if k else "value", ours[k], right[k]) if apart else ""
    )


class Floats(Numbers):
    """Floats and their differences, where decimals take too long or have no series."""

    RIGHT = "nothing is wrong as far as floats can tell, but "
    grad: Any = None

    def __init__(self, problem: ProofProblem, theta: Array) -> None:
        self.problem, self.theta = problem, theta
        direction = np.random.default_rng(problem.seed).standard_normal(theta.size)
        self.hand, self.right, _ = self.slopes(direction, STEPS[:1])
        self.exists = bool(np.isfinite([self.hand, self.right]).all())
        self.agrees = abs(self.hand - self.right) <= APART * max(
            abs(self.hand), abs(self.right)
        )

    def slopes(
        self, direction: Array, steps: Any = STEPS
    ) -> tuple[float, float, float]:
        """Return the slopes, the right one by differences."""
        f, arguments = self.problem.value_and_grad, self.problem.arguments
        size = max(1.0, float(abs(self.theta).max())) / max(
            1e-300, float(abs(direction).max())
        )

        def differences(h: float) -> float:
            at = (self.theta + k * h * direction for k in (-2, -1, 1, 2))
            v = [float(f(there, *copy_leaves(arguments))[0]) for there in at]
            return (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h)

        with np.errstate(all="ignore"):
            grad = np.ravel(f(self.theta.copy(), *copy_leaves(arguments))[1])
            self.grad = grad if self.grad is None else self.grad
            self.changed |= not np.array_equal(grad, self.grad, equal_nan=True)
            hand = float(grad @ direction)
            each = [differences(step * size) for step in steps]
        right = min(each, key=lambda one: abs(one - hand))
        return (
            hand,
            right,
            10 * abs(each[0] - each[-1]) + 1e-10 * max(abs(hand), abs(right)),
        )


def numbers(
    problem: ProofProblem,
    theta: Array,
    same: bool,
    kind: Field,
    decimals: Callable[[], Decimals],
) -> Numbers:
    """Return what to ask: decimals of a large theta only where floats do not say that all is well.

    Where the field knows all laws its primes are small, and decimals are computed as well. Where no
    root's sign has to be looked at and nothing is divided by 0, the floats of a proof say that
    value and gradient exist.
    """
    floats = partial(Floats, problem, theta)
    ways: list[Any] = [floats] if theta.size > LARGE_THETA else [floats, decimals]
    if theta.size <= SIXTY_DIGITS or (same and kind.knows_all_laws):
        ways = [decimals]
        signs = (
            kind.n_roots or {SMALLEST_NORMAL, -SMALLEST_NORMAL} & kind.constants.keys()
        )
        if same and not (kind.knows_all_laws or kind.divided_by_zero or signs):
            value, grad = kind.evaluation.value.floats, kind.evaluation.grad.floats
            finite = np.isfinite(value).all() and np.isfinite(grad).all()
            if finite and _otherwise(problem, theta, value, grad) == "":
                return Numbers()
    found: Any = None
    for way in ways:
        try:
            found = way()
        except NoSeries:
            found = found or floats()
        if same and found.agrees:
            break
    return found


# --- which derivatives are wrong


def deferred_errors(
    problem: ProofProblem, theta: Array, same: bool, at: Decimals
) -> Callable[[], tuple[WrongDerivative, ...]]:
    """Return what says which derivatives are wrong; it calls the function again, when it is called.

    Nothing is said if the function has changed since, as one does that reads a global variable.
    """
    arguments = copy_leaves(problem.arguments)
    problem, theta = (
        problem._replace(arguments=arguments, copies=Copies()),
        theta.copy(),
    )
    before = at.numbers()

    @cache
    @in_own_context
    def wrong() -> tuple[WrongDerivative, ...]:
        try:
            now = Decimals(problem, theta)
            if now.numbers() != before:
                return ()
            return find_errors(problem, theta, same, now)[1]
        except Exception:  # the verdict stands, whatever the function does later
            return ()

    return wrong


def find_errors(
    problem: ProofProblem, theta: Array, same: bool, at: Numbers
) -> tuple[str, tuple[WrongDerivative, ...]]:
    """Return what is wrong at theta, or the reason why nothing is concluded; both may be empty."""
    if same and isinstance(at, Floats):
        return FLOATS.format("slope", at.hand, at.right), ()
    with localcontext(context(5 * N_DIGITS)):
        slopes = []
        for name, direction, size, factor in parts(problem, theta, same):
            hand, right, unsure = map(Decimal, at.slopes(direction))
            slopes.append(
                (WrongDerivative(name, hand, right, True, size, factor), unsure)
            )
        at.slopes(np.ones(theta.size))
        if at.changed:
            return STATE, ()
        if not all((one.by_hand + one.right).is_finite() for one, _ in slopes):
            return NOWHERE, ()
        most = max((abs(one.right) for one, _ in slopes), default=Decimal(0))
        found = []
        for one, unsure in slopes:
            held_to = unsure + SAME * max(abs(one.by_hand), SMALL * most)
            found.append(one._replace(seen=not abs(one.by_hand - one.right) <= held_to))
        if not any(one.seen for one in found):
            return "", ()
        worst = max(abs(one.by_hand - one.right) for one in found if one.seen)
        shaken = worst < SHAKEN * max(most, Decimal(1)) and worst < 1000 * at.rounding()
        if worst < ROUNDING * most or shaken:
            return ROUNDED.format(worst), ()
    few = theta.size > SIXTY_DIGITS  # of which the field knows that they are wrong
    return "", tuple(one for one in found if one.seen or (few and one.size == 1))


# a name, a direction, how many, by which factor
Part = tuple[str, Array, int, Fraction | None]


def parts(problem: ProofProblem, theta: Array, same: bool) -> Iterator[Part]:
    """Yield what may be wrong: every coordinate of a small theta, else what the field says.

    If that is no block it is all of theta: blocks need not have all coordinates.
    """
    few: Any = range(theta.size)
    if theta.size > SIXTY_DIGITS:
        few = [] if same else _few(problem, theta)
    for j in few:
        yield problem.name(int(j)), (np.arange(theta.size) == j) * 1.0, 1, None
    if len(few):
        return
    blocks = []
    for name, part in problem.blocks.items():
        wrong, factor = (True, None) if same else _asked_twice(problem, theta, part)
        if wrong:
            blocks.append((name, part, factor))
    for name, part, factor in blocks or [("theta", slice(None), None)]:
        size = len(range(*part.indices(theta.size)))
        direction = np.zeros(theta.size)
        direction[part] = np.random.default_rng(problem.seed).standard_normal(size)
        yield name, direction, size, factor


def _few(problem: ProofProblem, theta: Array) -> Array:
    """Return the wrong coordinates, if there are one or two, by the recurrence of the excess."""
    field, p = Prime(problem.seed), Prime(problem.seed).p
    r = (
        mix64(np.arange(theta.size), mixing_key(problem.seed, "r")) % np.uint64(p)
    ).astype(np.int64)
    power, s = r, []
    for _ in range(4):
        s.append(
            int(run(problem, theta, Prime(problem.seed), power[:, None]).excess()[0])
        )
        power = field.mul(power, r)
    if not s[0]:
        return power[:0]
    det = (s[1] * s[1] - s[0] * s[2]) % p
    if det:  # r^2 = b r + c
        b, c = ((s[1] * s[2] - s[0] * s[3]), (s[1] * s[3] - s[2] * s[2]))
        b, c = (x * pow(det, -1, p) % p for x in (b, c))
        places = np.flatnonzero(field.mul(r, field.sub(r, np.array([b]))) == c)
    else:
        places = np.flatnonzero(r == s[1] * pow(s[0], -1, p) % p)
    return places if len(places) == 1 + bool(det) else places[:0]


def _asked_twice(
    problem: ProofProblem, theta: Array, part: slice
) -> tuple[bool, Fraction | None]:
    """Return whether a block is wrong, and its factor, if all of it is wrong by one."""
    factors, size = [], len(range(*part.indices(theta.size)))
    for turn in range(2):
        field, direction = Prime(problem.seed), np.zeros((theta.size, 1), np.int64)
        direction[part] = Prime(problem.seed + 1 + turn).draw((size,)) % field.p
        found = run(problem, theta, field, direction)
        if field.n_substituted or not found.excess()[0]:
            return field.n_substituted > 0, None
        hand, slope = int(field.sum(found.terms, 0)[0]), int(found.value.tangent[0, 0])
        factors.append(hand * pow(slope, -1, field.p) % field.p if slope else None)
    first, second = factors
    return True, _fraction(
        first, field.p
    ) if first is not None and first == second else None


def _fraction(residue: int, p: int) -> Fraction | None:
    """Return the small fraction n / d that is a residue, by Euclid."""
    r, s, t, u = p, residue, 0, 1
    while s * s >= p:
        q = r // s
        r, s, t, u = s, r - q * s, u, t - q * u
    return Fraction(s, u) if u and abs(s * u) < 10**6 else None

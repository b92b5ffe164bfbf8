"""Prove a hand-written NumPy gradient in exact arithmetic (D44).

`check_gradient` compares a gradient with measured slopes, to 1e-12. Here the same function runs on
`arrays` of residues, where nothing is rounded and no step is taken, at a random point and with
derivatives along a random direction. The gradient is *proved* if the derivative of the value is
``grad . direction`` at every point where the roots exist, and if at theta itself the value exists
in floats. Where a root is taken, or floats disagree, sixty digits decide at theta whether the value
exists and the two agree once more: the sign of a root has a meaning there.

A difference of the two that is not zero everywhere is a rational function of the random numbers,
and by the lemma of Schwartz and Zippel zero at a random point with a probability of at most its
degree / p: with a degree of a thousand 2e-12. What is proved holds on the paths of comparisons
that were taken (which ReLU units are on, which branch of a stable formula), that of the given theta
and those of others near it, and for numbers of infinite precision: rounding and overflow are the
business of `check_gradient`. What a proof cannot see is listed in D44, each with an example.

>>> import numpy as np
>>> def cubic(theta):
...     return (theta**3).sum(), 3 * theta**2
>>> print(prove(cubic, np.array([1.0, -2.0, 0.5])))
proved: all 3 derivatives are exact
>>> def wrong(theta):
...     return (theta**3).sum(), 3 * theta**2 + np.array([0, 1e-13, 0])
>>> print(prove(wrong, np.array([1.0, -2.0, 0.5])))
refuted: 1 of 3 derivatives is wrong
  theta[1]: by hand 12.0000000000001, right 12, too large by 1e-13
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import check_callable, check_plain, whole_number
from .blame.lines import explanation
from .deprecation import renamed_arguments, renamed_names
from .fields.digits import N_DIGITS, Digits, NoSeries, context
from .fields.finite import SMALLEST_NORMAL, Field, Prime
from .structures import StructureError, Tree, checked_arguments, copy_leaves, leaves
from .trace.arrays import KINK_MESSAGE, Exact, lift
from .trace.copies import Copies, in_own_context
from .verdict.data import FIXED, Data, argument_names, bound, exact, kinds, masked, told
from .verdict.errors import (
    NOWHERE,
    STATE,
    Decimals,
    WrongDerivative,
    deferred_errors,
    find_errors,
    numbers,
    parts,
)
from .verdict.runs import (
    LARGE_THETA,
    MAX_POINTS,
    ProofProblem,
    TraceError,
    comparisons_of,
    run,
    stop_gradient,
    vanishes,
    where,
)

__all__ = [
    "Proof",
    "WrongDerivative",
    "assert_proved",
    "prove",
    "prove_same",
    "stop_gradient",
]

Array = NDArray[Any]
ValueAndGrad = Callable[..., tuple[Any, ...]]
Wrongs = tuple[WrongDerivative, ...] | Callable[[], tuple[WrongDerivative, ...]]

__getattr__ = renamed_names(
    __name__, {"Wrong": "WrongDerivative", "still": "stop_gradient"}
)

MOVED = 500_000  # numbers of other thetas that are tried in all
SHOWN = 4  # coordinates that are named where data are free
CONSTANT = Decimal("1e-13")  # what the rounding of constants may do to a value
# which show that values exist, where a field says that they are the same
FEW_DIGITS = 20
LAWFUL = Decimal("1e-25")  # how far slopes may be apart that are the same by laws alone
IDENTITY = (
    "by an identity between exponentials, logarithms or roots that the field does not know, or by "
    "constants that are rounded differently"
)
SINCE = (
    "which derivatives are wrong was not computed before it was read, and the function returns "
    "other numbers now. Print the proof at once"
)
UNMOVED = (
    "no argument moves: floats and arrays of floats do, whole numbers are constants"
)


class Later:
    """The wrong derivatives of a proof, or a function that computes them when they are read."""

    def __get__(
        self, proof: Proof | None, owner: Any = None
    ) -> tuple[WrongDerivative, ...]:
        if proof is None:
            return ()  # the default
        wrong = vars(proof)["wrong"]
        if callable(wrong):
            wrong = vars(proof)["wrong"] = wrong()
        return wrong

    def __set__(self, proof: Proof, wrong: Wrongs) -> None:
        vars(proof)["wrong"] = wrong


@dataclass(frozen=True)
class Proof:
    """Result of `prove`; its truth value is whether it is proved, for ``assert prove(f, theta)``.

    The verdict is *proved*, *proved for these data* (where they keep a condition that is named, or
    are fixed because the caller says so), *refuted*, *not proved* (a gradient whose sixty digits
    are right, by an identity that the field does not know or by what the data have in common, or a
    function that has no value at theta or is none of its arguments) or *not traceable* (a function
    with a step that has no exact form).

    What is wrong is computed when it is read or printed first: then the function is called again,
    with a copy of its arguments.
    """

    verdict: str
    coordinates: int  # the length of theta, or how many numbers are compared
    wrong: Later = Later()  # what is refuted
    reason: str = ""  # why it is not proved or not traceable, and what to do
    # where it fails, if elsewhere
    theta: Array | None = field(default=None, compare=False)
    paths: int = field(default=1, compare=False)  # of comparisons, that were taken
    comparisons: int = field(default=0, compare=False)  # on one of them
    one_way: int = field(default=0, compare=False)  # that went one way only
    of_values: bool = field(default=False, compare=False)
    # for which it is proved, such as "for these y"
    data: str = field(default="", compare=False)
    # it is refuted
    why: Callable[[], list[str]] = field(default=list, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "wrong": self.wrong, "why": list}

    def __bool__(self) -> bool:
        return self.proved

    @property
    def proved(self) -> bool:
        """Whether the gradient is exact, for all data or for those that are named."""
        return self.verdict.startswith("proved")

    def __str__(self) -> str:
        where = (
            ""
            if self.theta is None
            else f" at another theta, {np.array2string(self.theta)}"
        )
        if self.proved:
            what = f"all {self.coordinates} derivatives are exact"
            what = "the two values are the same" if self.of_values else what
            head = f"proved {self.data}".rstrip()
            return f"{head}: {what}{self._on_which_path()}{'; ' * bool(self.reason)}{self.reason}"
        if self.reason:
            return f"{self.verdict}{where}: {self.reason}"
        what, count = "values" if self.of_values else "derivatives", len(self.wrong)
        if not count:
            return f"{self.verdict}{where}: {SINCE}"
        is_are = "is" if count == 1 else "are"
        head = f"refuted{where}: {count} of {self.coordinates} {what} {is_are} wrong"
        if any(one.size > 1 for one in self.wrong):
            head = f"refuted{where}: of {count} blocks the derivatives are wrong"
        return "\n  ".join([head, *map(str, self.wrong), *self.why()])

    def _on_which_path(self) -> str:
        if not self.comparisons:
            return ""
        if self.paths == 1:
            return f", on this path of {self.comparisons} comparisons"
        ways = f"{self.one_way} of {self.comparisons} went one way only"
        return (
            f", on {self.paths} paths of comparisons; "
            f"{ways if self.one_way else 'each of them went both ways'}"
        )


@renamed_arguments(points="n_points")
@in_own_context
def prove(
    value_and_grad: ValueAndGrad,
    theta: Array,
    *arguments: Any,
    blocks: Mapping[str, slice] | None = None,
    coordinate: Callable[[int], str] | None = None,
    n_points: int = 8,
    seed: int = 0,
    fixed: Iterable[str | int] | str = (),
) -> Proof:
    """Prove or refute that `value_and_grad` returns the gradient of its value (D44).

    Parameters
    ----------
    value_and_grad : callable
        From theta and the `arguments` to a scalar and a gradient of the shape of theta; what it
        returns after these two is not looked at. It gets exact arrays, which NumPy's functions
        take: arithmetic, comparisons, reductions, shapes, indices and writing by index,
        `numpy.linalg`, elementary functions and those of `scipy.special`. Arrays that it makes by
        ``np.zeros``, ``np.empty``, ... are exact too. `function` adds what is not known.
    theta : ndarray, or a dict, tuple or list of arrays
        float64: it chooses the path of comparisons. The gradient has the same structure.
    *arguments
        Data, noise and constants. Floats and arrays of floats, also in tuples, lists and dicts, are
        exact too, and the proof is for all their values on the same path. Constants are the small
        fractions that they are rounded from: ``1 / 0.7`` is 10 / 7. Others, as ``np.log(0.7)``, a
        value and a gradient may round differently.
    blocks : mapping of str to slice, optional
        Named parts of flat theta, for the names of coordinates, and for what is wrong with a large
        theta. Default: its arrays.
    coordinate : callable, optional
        From a flat index to a readable name. Default: such as ``W1[0, 2]``.
    n_points : int
        Number of other thetas that are tried, if the function compares numbers or takes roots: they
        have between a thousandth of the size of the given one and twice its size. A theta at which
        the value does not exist is passed over, and a theta of more than 60,000 numbers gets fewer.
        With 0 the proof is for the path of the given theta alone. By default 8.
    seed : int
        Of the random numbers.
    fixed : names or positions of arguments, optional
        Data that are what they are: the proof is for these alone. Without it a gradient that is
        right for the given data only is proved where they keep a condition that is found (rows that
        sum to 1 or 0, a symmetric matrix), with the verdict *proved for these data*, and else not.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError, ValueError
        For an argument of another kind or out of range, which is named, and if `value_and_grad`
        returns anything but a number and a gradient of the shape of theta.
    """
    function, theta, blocks, name = checked_arguments(
        value_and_grad, theta, blocks, coordinate
    )
    n_points = whole_number("n_points", n_points)
    seed = whole_number("seed", seed)
    names = argument_names(value_and_grad, len(arguments))
    data = kinds(names, fixed)
    _check_data(names, arguments)
    problem = ProofProblem(
        function, arguments, names, data, name, blocks, seed, Copies()
    )
    try:
        try:
            proof, kind = _prove_at(problem, theta)  # D44
        except TraceError as stopped:
            mask = masked(arguments, data)
            if KINK_MESSAGE not in stopped.reason or mask == data:
                raise
            problem = problem._replace(data=mask)
            proof, kind = _prove_at(problem, theta)
        if proof.verdict == "not proved" and proof.reason != STATE:
            proof, kind, problem = _for_the_data(problem, theta, proof, kind)
    except TraceError as stopped:
        if stopped.verdict == "not traceable":
            with np.errstate(all="ignore"):  # an error of its own is raised as it is
                function(theta.copy(), *copy_leaves(arguments))
        return Proof(stopped.verdict, theta.size, reason=stopped.reason)
    paths = [comparisons_of(kind)]
    # without comparisons and roots there is one path; where digits agree for a reason that the
    # field does not know, two other thetas may show that they need not
    branches = (
        kind.path or kind.n_roots or (kind.knows_all_laws and kind.transcendental)
    )
    unsure = n_points if kind.n_roots else min(n_points, 2)
    tries = 0 if proof.verdict == "refuted" else unsure
    if proof:
        tries = min(n_points, MOVED // theta.size) if branches else 0
    for there in islice(_moved(theta, np.random.default_rng(problem.seed)), tries):
        try:
            other, kind = _prove_at(problem, there)
        except TraceError:
            continue
        if other.verdict == "refuted" or (proof and not other):
            return with_fields(_explained(other, problem, there), theta=there)
        paths.append(comparisons_of(kind))
    most = max(map(len, paths))
    if proof.verdict == "refuted":
        proof = _explained(proof, problem, theta)
    went = [np.concatenate([way, np.zeros(most - len(way), bool)]) for way in paths]
    one_way = int((np.all(went, axis=0) | ~np.any(went, axis=0)).sum())
    several = len({way.tobytes() for way in paths})
    return with_fields(proof, paths=several, comparisons=most, one_way=one_way)


def _check_data(names: list[str], arguments: tuple[Any, ...]) -> None:
    """Raise ValueError for data whose numbers a proof would not see as they are."""
    for name, value in zip(names, arguments, strict=True):
        for path, leaf in leaves(value, name):
            check_plain(path, leaf)


def assert_proved(
    value_and_grad: ValueAndGrad, theta: Array, *arguments: Any, **options: Any
) -> Proof:
    """Raise AssertionError with the verdict unless `prove`, of these arguments, says *proved*.

    Returns
    -------
    Proof
        For a look at the paths that were taken.
    """
    __tracebackhide__ = True
    proof = prove(value_and_grad, theta, *arguments, **options)
    if not proof:
        raise AssertionError(str(proof))
    return proof


def with_fields(proof: Proof, **changes: Any) -> Proof:
    """Return the proof with other fields; what has not been read yet is not computed."""
    return Proof(**{**vars(proof), **changes})


def _explained(proof: Proof, problem: ProofProblem, theta: Array) -> Proof:
    """Return a proof that is refuted at theta, with what says why."""
    return with_fields(proof, why=explanation(problem, theta, lambda: proof.wrong))


def _moved(theta: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Yield other thetas: of all other signs, close to 0, where gates are, of twice the size."""
    yield -theta
    size = np.abs(theta)
    size[size == 0] = np.linalg.norm(theta) / max(1, theta.size) ** 0.5 or 1.0
    while True:
        normal = rng.standard_normal((4, theta.size))
        yield size * normal[0] * 10 ** -rng.uniform(1, 3)
        yield 2 * size * normal[1]
        yield size * normal[2] * 10 ** -rng.uniform(0, 2)
        yield theta * np.exp(normal[3] / 2)


def _prove_at(problem: ProofProblem, theta: Array) -> tuple[Proof, Field]:
    """Return the proof on the path of one theta, and the field that holds the path."""
    decimals = cache(partial(Decimals, problem, theta))

    def refuted() -> bool:
        try:
            return theta.size <= LARGE_THETA and decimals().refutes
        except NoSeries:
            return False

    same, kind = vanishes(
        partial(problem.excess, theta), problem.seed, theta.size, refuted
    )
    at = numbers(problem, theta, same, kind, decimals)
    if not at.exists:
        raise TraceError("not proved", NOWHERE)
    wrong: Wrongs = ()
    if same and at.agrees:
        reason = at.otherwise()
    elif isinstance(at, Decimals) and at.refutes:
        reason = STATE if at.changed else at.otherwise()
        wrong = () if reason else deferred_errors(problem, theta, same, at)
    else:
        reason, wrong = find_errors(problem, theta, same, at)
        if wrong and (another := at.otherwise()):
            reason, wrong = another, ()
        elif not reason and not wrong:
            alone = (
                "for these numbers alone: by what theta or the constants have in common"
            )
            reason = at.RIGHT + (
                IDENTITY if kind.n_roots or kind.transcendental else alone
            )
    if not reason and not wrong:
        data = told(problem.names, problem.data)
        return Proof(
            f"proved{' for these data' * bool(data)}", theta.size, data=data
        ), kind
    return Proof("not proved" if reason else "refuted", theta.size, wrong, reason), kind


# --- right for the given data


def _for_the_data(
    problem: ProofProblem, theta: Array, proof: Proof, kind: Field
) -> tuple[Proof, Field, ProofProblem]:
    """Return the proof where data are fixed or keep a condition, if it holds there."""

    def holds(data: tuple[Data, ...]) -> bool:
        excess = partial(problem._replace(data=data).excess, theta)
        return vanishes(excess, problem.seed, theta.size)[0]

    data = bound(problem.arguments, problem.data, holds)
    if data == problem.data:
        return proof, kind, problem
    then = problem._replace(data=data)
    found, its_kind = _prove_at(then, theta)
    if not found:
        return proof, kind, problem
    changed = [i for i, one in enumerate(data) if one is not problem.data[i]]
    names = " and ".join(problem.names[i] for i in changed)
    others = f"with other {names} {_differing(problem, theta, its_kind)}"
    if any(data[i] is FIXED for i in changed):
        fixed = tuple(problem.names[i] for i in changed)
        reason = (
            f"all {theta.size} derivatives are exact {found.data} alone; {others}. Say fixed="
            f"{fixed} if that is meant, or pass whole numbers as integers, which are constants"
        )
        return Proof("not proved", theta.size, reason=reason), its_kind, then
    return with_fields(found, reason=others), its_kind, then


def _differing(problem: ProofProblem, theta: Array, kind: Field) -> str:
    """Say in which coordinates, or blocks of a large theta, the excess is not 0."""
    places = [
        (name, direction) for name, direction, *_ in parts(problem, theta, same=True)
    ]
    differing = []
    for name, direction in places:
        field = type(kind)(kind.seed)
        if run(problem, theta, field, field.from_floats(direction)).excess().any():
            differing.append(name)
    shown = ", ".join(differing[:SHOWN]) + ", ..." * (len(differing) > SHOWN)
    return f"{len(differing)} of {len(places)} are wrong: {shown}"


# --- values


@in_own_context
def prove_same(
    first: Callable[..., Any],
    second: Callable[..., Any],
    *arguments: Any,
    seed: int = 0,
    fixed: Iterable[str | int] | str = (),
) -> Proof:
    """Prove or refute that two functions have the same values, coded ones and formulas (D44).

    Exactly, up to constants: their difference does not move when all exact arguments do. The
    constants themselves are the rounding of the functions' own constants (log 2 pi), or an error:
    they are computed to sixty digits and must be below 1e-13 of the value, or of 1 if that is more.
    Where there is no constant either, and no root, twenty digits say that the values exist.

    Parameters
    ----------
    first, second : callable
        From the `arguments` to a number, an array, or a dict, tuple or list of arrays, both alike.
    *arguments
        As in `prove`; floats and arrays of floats move. Fix a constant in the functions, or give
        it as a fraction.
    seed : int
        Of the random numbers.
    fixed : names or positions of arguments, optional
        Data that do not move. A condition that others keep, and need, is found as in `prove`.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError, ValueError
        If `first` or `second` cannot be called, `seed` is no whole number, or the values of both
        have different shapes.
    """
    check_callable("first", first)
    check_callable("second", second)
    seed = whole_number("seed", seed)
    names = argument_names(first, len(arguments), before=0)
    _check_data(names, arguments)
    given, of, copies = kinds(names, fixed), Tree.of(0.0, "value"), Copies()

    def values(data: tuple[Data, ...], field: Field) -> tuple[Exact, Exact]:
        nonlocal of
        pairs = zip(arguments, data, strict=True)
        at = [exact(one, field, how, moving=how is not FIXED) for one, how in pairs]
        with np.errstate(all="ignore"):
            one, other = (
                copies.call(field, f, *copy_leaves(at)) for f in (first, second)
            )
            of = Tree.of(one, "value")
            return lift(of.flat(one), field), lift(
                of.flat(other, "the second value"), field
            )

    def same_for(data: tuple[Data, ...]) -> tuple[bool, Field]:
        def excess(field: Field) -> Array:
            one, other = values(data, field)
            return field.sub(one.tangent, other.tangent)

        return vanishes(excess, seed, LARGE_THETA)

    def without_constants(data: tuple[Data, ...]) -> Field | None:
        """Return the field if the values are the same in it, and no root's sign has a meaning."""
        field = Prime(seed * MAX_POINTS)
        one, other = values(data, field)
        signs = (
            field.n_roots
            or {SMALLEST_NORMAL, -SMALLEST_NORMAL} & field.constants.keys()
        )
        return None if signs or (one.residues != other.residues).any() else field

    def at_theta(data: tuple[Data, ...], digits: int) -> tuple[Array, ...]:
        """Return values and slopes (N, 2) of both, how far they are apart, and relative to them."""
        with localcontext(context(digits)):
            x, y = (
                Decimal(0) + each.residues[..., 0]
                for each in values(data, Digits(seed))
            )
            apart = abs(x - y)
            size = np.maximum(np.maximum(abs(x), abs(y)), np.array(Decimal(1)))
            return x, y, apart, apart / size

    def proved(data: tuple[Data, ...]) -> Proof:
        kind, same = without_constants(data), True
        with localcontext(context(N_DIGITS)):
            x, y, apart, ratio = at_theta(data, FEW_DIGITS if kind else N_DIGITS)
            if kind and not (ratio <= CONSTANT).all():
                x, y, apart, ratio = at_theta(data, N_DIGITS)
            places = [(n, int(row[0] <= CONSTANT)) for n, row in enumerate(ratio)]
            wrong = [
                WrongDerivative("slope of " * k + of.name(n), x[n, k], y[n, k])
                for n, k in places
                if not ratio[n, k] <= CONSTANT
            ]
        reason, for_data = "", told(names, data)
        if not all(number.is_finite() for number in apart.ravel()):
            reason = NOWHERE
        elif wrong:
            return Proof("refuted", of.size, tuple(wrong), of_values=True)
        else:
            if kind is None:
                same, kind = same_for(data)
            same &= not kind.knows_all_laws or bool((ratio[:, 1] <= LAWFUL).all())
            if not same:
                reason = f"the values are {apart[:, 0].max():.1g} apart, {IDENTITY}"
            elif not kind.argument_moves:
                reason = UNMOVED
        if reason:
            return Proof("not proved", of.size, reason=reason, of_values=True)
        assert kind is not None  # a proof has run in a field
        verdict = f"proved{' for these data' * bool(for_data)}"
        comparisons = len(comparisons_of(kind))
        return Proof(
            verdict, of.size, comparisons=comparisons, of_values=True, data=for_data
        )

    try:
        proof = proved(given)
        # values that differ here differ for these data under any condition
        settled = proof or any(
            not one.name.startswith("slope of ") for one in proof.wrong
        )
        data = (
            given
            if settled
            else bound(arguments, given, lambda data: same_for(data)[0])
        )
        changed = [i for i, how in enumerate(data) if how is not given[i]]
        if (
            changed
            and all(data[i] is not FIXED for i in changed)
            and (there := proved(data))
        ):
            others = " and ".join(names[i] for i in changed)
            return with_fields(there, reason=f"with other {others} they are not")
        return proof
    except StructureError:
        raise
    except Exception as error:
        with np.errstate(all="ignore"):  # an error of their own is raised as it is
            for function in (first, second):
                function(*copy_leaves(arguments))
        return Proof("not traceable", of.size, reason=where(error), of_values=True)

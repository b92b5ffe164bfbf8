"""Prove a hand-written NumPy gradient in exact arithmetic (D44).

`check_gradient` compares a gradient with numerical derivatives, to 1e-12. Here the same function
runs on arrays of residues modulo a prime, where nothing is rounded and no step is taken, at a
random point and with derivatives along a random direction. The gradient is *proved* if the
derivative of the value is ``grad . direction`` at every point where all square roots exist, and if
at theta itself the value exists in floats. If a root is taken, or floats disagree, the function is
run at theta with sixty decimal digits: the value must exist and both slopes must agree there too,
since only real numbers say which of two roots is the positive one.

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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import check_callable, check_plain, whole_number
from .blame.lines import explanation
from .deprecation import renamed_arguments, renamed_names
from .structures import (
    StructureError,
    Tree,
    copy_leaves,
    flatten_arguments,
    leaves,
    reduce_to_gradient,
)
from .trace.copies import Copies, in_own_context
from .trace.slopes import slope_along
from .verdict.attempts import Conclusion, Errors, Verdict, attempt
from .verdict.data import argument_names, describe_data, parse_fixed
from .verdict.errors import WrongDerivative
from .verdict.gradients import GradientClaim
from .verdict.runs import ProofProblem, TraceError, stop_gradient
from .verdict.values import EqualityClaim

__all__ = [
    "Proof",
    "Verdict",
    "WrongDerivative",
    "assert_proved",
    "prove",
    "prove_same",
    "stop_gradient",
]

Array = NDArray[Any]
ValueAndGrad = Callable[..., tuple[Any, ...]]

__getattr__ = renamed_names(
    __name__, {"Wrong": "WrongDerivative", "still": "stop_gradient"}
)

MAX_NUMBERS_MOVED = 500_000  # largest number of other thetas times the length of theta
MASKS = "constants of {:g} and below count as minus infinity in exponents"
NOT_READ_IN_TIME = (
    "which derivatives are wrong was not computed before the function began to return other "
    "numbers. Print the proof right after `prove` returns"
)


class DeferredErrors:
    """Descriptor of `Proof.wrong`, which computes the wrong derivatives when they are first read.

    It is set to the wrong derivatives or to a function without arguments that returns them.
    """

    def __get__(
        self, proof: Proof | None, owner: Any = None
    ) -> tuple[WrongDerivative, ...]:
        if proof is None:
            return ()  # `dataclass` reads the default of the field from the class
        wrong = vars(proof)["wrong"]
        if callable(wrong):
            wrong = vars(proof)["wrong"] = wrong()
        return wrong

    def __set__(self, proof: Proof, wrong: Errors) -> None:
        vars(proof)["wrong"] = wrong


@dataclass(frozen=True)
class Proof:
    """Result of `prove`; it is true if the gradient is proved: ``assert prove(f, theta)``.

    The wrong derivatives are computed when they are first read or printed: then the function is
    called again, with a copy of its arguments.

    Attributes
    ----------
    verdict : Verdict
        *proved*: the gradient is right for all data. *proved for these data*: it is right if the
        data satisfy a condition, or are fixed by the caller; `data` says which. *refuted*: it is
        wrong. *not proved*: sixty digits of it are right, but perhaps by an identity that the
        prover does not know or by a property of the data; or there is no value at theta; or the
        function depends on more than its arguments. *not traceable*: a step of the function has
        no exact form.
    coordinates : int
        Number of derivatives that are compared; of values, for `prove_same`.
    wrong : tuple of WrongDerivative
        The wrong derivatives, one for each coordinate, or for each block of a large theta.
    reason : str
        Why the gradient is not proved or not traceable, and what to do; for a proof that holds for
        some data alone, what is wrong with other data; for a proof in which constants such as -1e9
        count as minus infinity, which. Empty otherwise.
    theta : ndarray or None
        The theta at which the gradient is wrong; None if that is the theta passed to `prove`.
    paths : int
        Number of different paths of comparisons that were taken.
    comparisons : int
        Number of comparisons on the longest of these paths.
    one_way : int
        Number of comparisons that had the same result at every theta.
    of_values : bool
        Whether the proof is one of `prove_same`, which compares values.
    data : str
        The data that the proof holds for, such as ``for these y``; empty if it holds for all.
    why : callable
        Returns lines that say where a refuted gradient goes wrong.
    """

    verdict: Verdict
    coordinates: int
    wrong: DeferredErrors = DeferredErrors()
    reason: str = ""
    theta: Array | None = field(default=None, compare=False)
    paths: int = field(default=1, compare=False)
    comparisons: int = field(default=0, compare=False)
    one_way: int = field(default=0, compare=False)
    of_values: bool = field(default=False, compare=False)
    data: str = field(default="", compare=False)
    why: Callable[[], list[str]] = field(default=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        vars(self)["verdict"] = Verdict(self.verdict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "wrong": self.wrong, "why": list}

    def __bool__(self) -> bool:
        return self.proved

    @property
    def proved(self) -> bool:
        """Whether the gradient is proved exact, for all data or for those named in `data`."""
        return self.verdict.is_proof

    def __str__(self) -> str:
        if self.proved:
            result = f"all {self.coordinates} derivatives are exact"
            if self.of_values:
                result = "the two values are the same"
            head = f"proved {self.data}".rstrip()
            reason = f"; {self.reason}" if self.reason else ""
            return f"{head}: {result}{self._describe_paths()}{reason}"
        head = str(self.verdict)
        if self.theta is not None:
            head += f" at another theta, {np.array2string(self.theta)}"
        if self.reason or not self.wrong:
            return f"{head}: {self.reason or NOT_READ_IN_TIME}"
        count = len(self.wrong)
        if any(error.size > 1 for error in self.wrong):
            head += f": of {count} blocks the derivatives are wrong"
        else:
            compared = "values" if self.of_values else "derivatives"
            verb = "is" if count == 1 else "are"
            head += f": {count} of {self.coordinates} {compared} {verb} wrong"
        return "\n  ".join([head, *map(str, self.wrong), *self.why()])

    def _describe_paths(self) -> str:
        """Return a phrase that counts paths of comparisons; "" if the function compares nothing."""
        if not self.comparisons:
            return ""
        if self.paths == 1:
            return f", on this path of {self.comparisons} comparisons"
        ways = "each of them went both ways"
        if self.one_way:
            ways = f"{self.one_way} of {self.comparisons} went one way only"
        return f", on {self.paths} paths of comparisons; {ways}"


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
    order: int = 1,
) -> Proof:
    """Prove or refute that `value_and_grad` returns the gradient of its value (D44).

    Parameters
    ----------
    value_and_grad : callable
        Function of theta and the `arguments` that returns a scalar and a gradient of the shape of
        theta; further results are ignored. It is called with exact arrays, on which these
        operations of NumPy work: arithmetic, comparisons, reductions, shapes, indices and writing
        by index, `numpy.linalg`, elementary functions and those of `scipy.special`. Arrays that it
        makes by ``np.zeros``, ``np.empty``, ... are exact too. `exactgrad.function` adds other
        functions.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64: it chooses the path of comparisons. The gradient has the same structure.
    *arguments
        Data, noise and constants. Floats and arrays of floats, also in tuples, lists and dicts, are
        exact too, and the proof is for all their values on the same path. Floats written inside the
        function are read as the small fractions that they are rounded from: ``1 / 0.7`` is 10 / 7.
        Other constants, such as ``np.log(0.7)``, may be rounded differently in the value and in the
        gradient.
    blocks : mapping of str to slice, optional
        Named parts of flat theta, for the names of coordinates, and for what is wrong with a large
        theta. By default its arrays.
    coordinate : callable, optional
        Function from an index of flat theta to a readable name. By default the name is a path such
        as ``W1[0, 2]``.
    n_points : int
        Number of other thetas that are tried, if the function compares numbers or takes roots: they
        have between a thousandth of the size of the given one and twice its size. A theta at which
        the value does not exist is passed over, and a theta of more than 60,000 numbers gets fewer.
        With 0 the proof is for the path of the given theta alone. By default 8.
    seed : int
        Seed of the random numbers that stand for theta and the data. By default 0.
    fixed : str, int, or several of them, optional
        Names or positions of arguments that keep the values passed: the proof is for these data
        alone. By default there are none. A gradient that is right for the given data only is then
        *proved for these data* if a condition on them suffices that the prover knows (rows that sum
        to 1 or 0, a symmetric matrix, ...), and *not proved* otherwise.
    order : {1, 2}
        With 2 the function returns (value, gradient, second) or (value, second), where `second` is
        the Hessian, of shape ``theta.shape + theta.shape``, or its product with a vector, which has
        the structure of theta and is the first of the `arguments`. The gradient is proved first,
        and then `second`; without a gradient it is proved from the value. `blocks` and `coordinate`
        are not used.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of range, or if `value_and_grad` returns anything
        but a number and a gradient of the shape of theta. What the function itself raises when it
        is called with floats is raised too.
    """
    if whole_number("order", order) == 2:
        options = {"n_points": n_points, "seed": seed, "fixed": fixed}
        return _prove_second(value_and_grad, theta, arguments, options)
    if order != 1:
        raise ValueError(f"order must be 1 or 2; got {order}")
    function, theta, blocks, name = flatten_arguments(
        value_and_grad, theta, blocks, coordinate
    )
    n_points = whole_number("n_points", n_points)
    seed = whole_number("seed", seed)
    names = argument_names(value_and_grad, len(arguments))
    data = parse_fixed(names, fixed)
    _check_data(names, arguments)
    problem = ProofProblem(
        function, arguments, names, data, name, blocks, seed, Copies()
    )
    conclusion = attempt(GradientClaim(problem, theta))  # verdict at theta itself (D44)
    proof = _to_proof(conclusion, theta.size, names)
    if conclusion.field is None:
        return proof
    problem = problem._replace(data=conclusion.data)
    comparisons = [conclusion.field.comparisons()]
    thetas = _other_thetas(theta, np.random.default_rng(seed))
    for point in islice(thetas, _n_other_thetas(conclusion, theta.size, n_points)):
        try:
            at_point = GradientClaim(problem, point).conclude_on_path(problem.data)
        except TraceError:
            continue
        if at_point.field is None:
            continue
        is_refuted = at_point.verdict is Verdict.REFUTED
        if is_refuted or (proof and not at_point.verdict.is_proof):
            failure = _to_proof(at_point, theta.size, names)
            return with_fields(_explained(failure, problem, point), theta=point)
        comparisons.append(at_point.field.comparisons())
    if proof.verdict is Verdict.REFUTED:
        proof = _explained(proof, problem, theta)
    return _with_paths(proof, comparisons)


def _check_data(names: list[str], arguments: tuple[Any, ...]) -> None:
    """Raise ValueError if an argument is or contains a masked array or a matrix.

    `names` are the names of the `arguments`, for the error. A proof would misread such arrays.
    """
    for name, value in zip(names, arguments, strict=True):
        for path, leaf in leaves(value, name):
            check_plain(path, leaf)


def assert_proved(
    value_and_grad: ValueAndGrad, theta: Array, *arguments: Any, **options: Any
) -> Proof:
    """Prove a gradient and return the proof; raise AssertionError if it is not proved.

    Parameters
    ----------
    value_and_grad, theta, *arguments, **options
        As in `prove`.

    Returns
    -------
    Proof
        The proof, *proved* or *proved for these data*.

    Raises
    ------
    AssertionError
        If the gradient is refuted, not proved or not traceable; the message is the printed proof.
    """
    __tracebackhide__ = True
    proof = prove(value_and_grad, theta, *arguments, **options)
    if not proof:
        raise AssertionError(str(proof))
    return proof


def with_fields(proof: Proof, **changes: Any) -> Proof:
    """Return a copy of `proof` with the fields in `changes` replaced.

    Wrong derivatives that have not been computed yet are not computed by this.
    """
    return Proof(**{**vars(proof), **changes})


def with_sentences(proof: Proof, sentences: Sequence[str]) -> Proof:
    """Return a copy of a refuted proof that also prints `sentences`."""
    return with_fields(proof, why=lambda: [*proof.why(), *sentences])


def _to_proof(
    conclusion: Conclusion, size: int, names: list[str], of_values: bool = False
) -> Proof:
    """Return the `Proof` with a conclusion about `size` derivatives or, if `of_values`, values.

    `names` are the names of the function's arguments, with which the proof describes its data.
    """
    data = ""
    reason = conclusion.reason
    if conclusion.verdict.is_proof and conclusion.field is not None:
        data = describe_data(names, conclusion.data)
        masks = MASKS.format(conclusion.field.largest_mask)
        if conclusion.field.largest_mask > -np.inf:
            reason = "; ".join(filter(None, [reason, masks]))
    return Proof(
        conclusion.verdict,
        size,
        conclusion.errors,
        reason,
        of_values=of_values,
        data=data,
    )


def _explained(proof: Proof, problem: ProofProblem, theta: Array) -> Proof:
    """Return a proof that is refuted at theta (D,) with its field `why` filled in."""
    return with_fields(proof, why=explanation(problem, theta, lambda: proof.wrong))


def _with_paths(proof: Proof, comparisons: list[Array]) -> Proof:
    """Return a copy of `proof` with `paths`, `comparisons` and `one_way` counted.

    `comparisons` holds for each theta the results of the function's n comparisons, bool (n,).
    """
    longest = max(map(len, comparisons))
    paths = [
        np.concatenate([path, np.zeros(longest - len(path), bool)])
        for path in comparisons
    ]
    is_one_way = np.all(paths, axis=0) | ~np.any(paths, axis=0)
    return with_fields(
        proof,
        paths=len({path.tobytes() for path in comparisons}),
        comparisons=longest,
        one_way=int(is_one_way.sum()),
    )


def _n_other_thetas(conclusion: Conclusion, size: int, n_points: int) -> int:
    """Return the number of other thetas to try, at most `n_points`, after a conclusion at theta.

    `size` is the length of theta. The number is 0 for a refuted gradient, and if there is one path.
    """
    field = conclusion.field
    assert field is not None
    if conclusion.verdict is Verdict.REFUTED:
        return 0
    if not conclusion.verdict.is_proof:
        # both slopes agree in decimals but not in the field: two other thetas may show that they
        # agree at this theta by chance
        if field.n_roots:
            return n_points
        return min(n_points, 2)
    # a function without comparisons and roots has one path, which is already proved
    uses_laws = field.knows_all_laws and field.transcendental
    has_paths = field.path or field.n_roots or uses_laws
    if not has_paths:
        return 0
    return min(n_points, MAX_NUMBERS_MOVED // size)


def _other_thetas(theta: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Yield other thetas (D,) to try: -theta, then random ones without end.

    Random thetas are close to 0, where ReLU units switch, or of up to twice the size of theta.
    """
    yield -theta
    size = np.abs(theta)
    size[size == 0] = np.linalg.norm(theta) / max(1, theta.size) ** 0.5 or 1.0
    while True:
        normal = rng.standard_normal((4, theta.size))
        yield size * normal[0] * 10 ** -rng.uniform(1, 3)
        yield 2 * size * normal[1]
        yield size * normal[2] * 10 ** -rng.uniform(0, 2)
        yield theta * np.exp(normal[3] / 2)


# --- proofs of derivatives of other shapes


def prove_reduced(
    shape: str,
    f: Callable[..., Any],
    by_hand: Callable[..., Any],
    theta: Any,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> Proof:
    """Return the proof that `by_hand` is the derivative of f; `wrong` names each wrong derivative.

    Parameters
    ----------
    shape : {'vjp', 'jvp', 'jacobian', 'hvp', 'hessian'}
        What `by_hand` returns.
    f, by_hand, theta, arguments
        As in `structures.reduce_to_gradient`.
    options : dict
        Keyword arguments of `prove`.
    """
    ask = partial(prove, **options)
    reduced = reduce_to_gradient(shape, f, by_hand, theta, arguments, ask, slope_along)
    proof: Proof = reduced.answer
    is_product = shape in ("jvp", "hvp")

    def wrong() -> tuple[WrongDerivative, ...]:
        errors = []
        for row, row_proof in reduced.wrong_rows():
            for error in row_proof.wrong:
                name = row if is_product else f"{row} by {error.name}"
                errors.append(error._replace(name=name))
        return tuple(errors) or proof.wrong

    return with_fields(proof, coordinates=reduced.n_derivatives, wrong=wrong)


def _prove_second(
    f: Callable[..., Any],
    theta: Any,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> Proof:
    """Return the proof that the last result of f is the Hessian of its value, or a product with it.

    Parameters
    ----------
    f, theta, arguments
        As in `prove` for ``order=2``.
    options : dict
        Keyword arguments of `prove`.
    """
    check_callable("value_and_grad", f)
    returned = f(copy_leaves(theta), *copy_leaves(arguments))
    if not isinstance(returned, tuple) or len(returned) not in (2, 3):
        raise StructureError(
            "with order=2 the function must return (value, gradient, second) or (value, second)"
        )

    @wraps(f)
    def first(*arguments: Any) -> Any:
        *results, _ = f(*arguments)
        return tuple(results) if len(results) > 1 else results[0]

    @wraps(f)
    def second(*arguments: Any) -> Any:
        return f(*arguments)[-1]

    shapes = Tree.of(theta, "theta").shapes
    is_product = Tree.of(returned[-1], "theta").shapes == shapes != {"theta": ()}
    if not is_product:
        return prove_reduced("hessian", first, second, theta, arguments, options)
    vector, *further_arguments = arguments or (None,)
    if Tree.of(vector, "theta").shapes != shapes:
        raise StructureError(
            "a product with the Hessian, which has the structure of theta, is one with the first "
            "argument after theta, which must have it too; a Hessian has the shape of theta twice"
        )

    def first_alone(theta: Any, *further_arguments: Any) -> Any:
        return first(theta, vector, *further_arguments)

    return prove_reduced(
        "hvp", first_alone, second, theta, tuple(further_arguments), options
    )


# --- proofs that two functions have the same values


@in_own_context
def prove_same(
    first: Callable[..., Any],
    second: Callable[..., Any],
    *arguments: Any,
    seed: int = 0,
    fixed: Iterable[str | int] | str = (),
) -> Proof:
    """Prove or refute that two functions have the same values, such as code and its formula (D44).

    The proof is exact up to a constant: it shows that the difference of the values does not change
    when the arguments do. The constant is either the rounding of the functions' own constants (such
    as log 2 pi) or an error. It is computed to sixty digits, and must be below 1e-13 times the
    value, or below 1e-13 if the value is below 1. If both functions have exactly the same values,
    and no root is taken, twenty digits suffice to show that the values exist.

    Parameters
    ----------
    first, second : callable
        Functions of the `arguments` that return a number, an array, or a dict, tuple or list of
        arrays, both with the same structure.
    *arguments
        Arguments of both functions. Floats and arrays of floats vary, also in tuples, lists and
        dicts; constants are written into the functions, or passed as fractions.
    seed : int
        Seed of the random numbers that stand for the arguments. By default 0.
    fixed : str, int, or several of them, optional
        Names or positions of arguments that keep the values passed. By default all vary. If the
        proof needs a condition that the arguments satisfy, it is found as in `prove`.

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
    names = argument_names(first, len(arguments), skipped=0)
    _check_data(names, arguments)
    data = parse_fixed(names, fixed)
    claim = EqualityClaim(first, second, arguments, names, data, seed)
    conclusion = attempt(claim)
    proof = _to_proof(conclusion, claim.structure.size, names, of_values=True)
    if not proof or conclusion.field is None:
        return proof
    return with_fields(proof, comparisons=len(conclusion.field.comparisons()))

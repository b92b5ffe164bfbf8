"""The data of a proof: free, fixed to the caller's values, or subject to a condition (D44).

The exact numbers of free data are random, so a proof holds for all data. A gradient that is right
for some data only, such as that of softmax regression for targets whose rows sum to 1, is proved
with fixed data or, better, with random numbers whose rows sum to 1 too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_fixed
from ..fields.finite import Field
from ..structures import leaves, map_leaves
from ..trace.arrays import Exact, dual_residues, lift

__all__ = [
    "FIXED",
    "FREE",
    "Condition",
    "argument_names",
    "describe_data",
    "keep_zeros",
    "parse_fixed",
    "to_exact",
    "weakest_conditions",
]

Array = NDArray[Any]
SUM_TOLERANCE = 1e-12  # largest absolute rounding error of a sum of floats


class Condition(NamedTuple):
    """A property of an argument's floats, and a function that gives it to random numbers."""

    text: str  # the condition in words, with {} or {0} for the name of the argument
    holds: Callable[[Array], bool]  # whether floats satisfy the condition
    impose: Callable[[Exact], None]  # makes exact numbers satisfy it, in place


# FREE replaces an argument's floats by random numbers, FIXED by the fractions they stand for
FREE = Condition("", lambda v: False, lambda x: None)
FIXED = Condition("", lambda v: False, lambda x: None)


def _sums(axis: int | None, total: int) -> Condition:
    """Return the condition that all sums along `axis` are `total`; None sums all elements."""

    def holds(v: Array) -> bool:
        if v.ndim == 0 or v.size < 2 or (axis is not None and v.ndim < 2):
            return False
        return bool((np.abs(v.sum(axis) - total) < SUM_TOLERANCE).all())

    def impose(x: Exact) -> None:
        rows = x.reshape(-1) if axis is None else x.swapaxes(axis, 0)
        rows[-1] = total - np.sum(rows[:-1], axis=0)

    axis_text = "" if axis is None else f"axis={axis}"
    return Condition(f"{{0}}.sum({axis_text}) = {total}", holds, impose)


def _is_square(v: Array) -> bool:
    """Return whether v is a square matrix with at least 2 rows."""
    return v.ndim == 2 and len(v) == v.shape[1] > 1


def _mirror(x: Exact) -> None:
    """Make x symmetric in place: copy the lower triangle to the upper one."""
    rows, columns = np.triu_indices(x.shape[0], 1)
    x[rows, columns] = x[columns, rows]


def _zero(x: Exact) -> None:
    """Set the exact numbers in x whose original floats are 0 to 0, in place."""
    x[x.floats == 0] = 0.0


def _diagonal(value: int) -> Condition:
    """Return the condition that all entries on the diagonal of a square matrix are `value`."""
    return Condition(
        f"diag({{0}}) = {value}",
        lambda v: _is_square(v) and bool((v.diagonal() == value).all()),
        lambda x: x.__setitem__(np.diag_indices(len(x)), value),
    )


def _all(*conditions: Condition) -> Condition:
    """Return the condition that all `conditions` hold, which are imposed in this order.

    Imposing one of them must not break those before it.
    """

    def impose(x: Exact) -> None:
        for condition in conditions:
            condition.impose(x)

    return Condition(
        " and ".join(condition.text for condition in conditions),
        lambda v: all(condition.holds(v) for condition in conditions),
        impose,
    )


def _symmetric() -> list[Condition]:
    """Return the conditions that a matrix is symmetric and has a diagonal or sums of 1 or 0.

    Row sums are imposed by changing the diagonal, the total by changing entries [0, 1] and [1, 0].
    """

    def set_row_sums(x: Exact, total: int) -> None:
        x[np.diag_indices(len(x))] += total - np.sum(x, axis=1)

    def set_sum(x: Exact, total: int) -> None:
        x[[0, 1], [1, 0]] += (total - np.sum(x)) / 2

    row_sums = [
        _sums(-1, total)._replace(impose=partial(set_row_sums, total=total))
        for total in (1, 0)
    ]
    sums = [
        _sums(None, total)._replace(impose=partial(set_sum, total=total))
        for total in (1, 0)
    ]
    diagonals = [_diagonal(value) for value in (1, 0)]
    conditions = (*diagonals, *row_sums, *sums)
    pairs = [_all(SYMMETRIC, condition) for condition in conditions]
    triples = [_all(*three) for three in product([SYMMETRIC], diagonals, sums)]
    return pairs + triples


# For masks and padding: a function may have a kink where such an argument is 0
ZEROS = Condition(
    "the zeros of {} stay 0", lambda v: bool(v.any() and not v.all()), _zero
)
SYMMETRIC = Condition(
    "{0} = {0}.T", lambda v: _is_square(v) and np.array_equal(v, v.T), _mirror
)
CONDITIONS = [  # weaker conditions stand before stronger ones
    SYMMETRIC,
    *(_sums(axis, total) for axis in (None, -1, 0) for total in (1, 0)),
    *(_diagonal(value) for value in (1, 0)),
    *(_all(_sums(-1, total), _sums(0, total)) for total in (1, 0)),
    *_symmetric(),
]


def _float_arrays(argument: Any) -> list[Array]:
    """Return the float arrays in an argument, which may be nested tuples, lists and dicts."""
    arrays = [leaf for _, leaf in leaves(argument, "") if isinstance(leaf, np.ndarray)]
    return [array for array in arrays if array.dtype.kind == "f"]


def conditions_of(argument: Any) -> list[Condition]:
    """Return those of `CONDITIONS` that at least one float array in the argument satisfies."""
    arrays = _float_arrays(argument)
    return [condition for condition in CONDITIONS if any(map(condition.holds, arrays))]


def keep_zeros(
    arguments: Sequence[Any], data: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    """Return `data` with the condition `ZEROS` for each free argument that is partly zero.

    Parameters
    ----------
    arguments : sequence
        The arguments of the function.
    data : tuple of Condition
        The condition on each argument.
    """
    return tuple(
        ZEROS
        if condition is FREE and any(map(ZEROS.holds, _float_arrays(argument)))
        else condition
        for argument, condition in zip(arguments, data, strict=True)
    )


def to_exact(
    values: Any, field: Field, condition: Condition = FREE, moving: bool = False
) -> Any:
    """Return the argument `values` with exact numbers of `field` in place of its floats.

    Parameters
    ----------
    values : any
        An argument. Floats and arrays of them become exact, alone or in tuples, lists and dicts.
        Everything else (whole numbers, fractions, truth values, names) is returned as it is.
    field : Field
        The field of the exact numbers.
    condition : Condition
        The condition that the random numbers satisfy, by default none. With `FIXED` the numbers are
        not random, but the fractions that the floats stand for.
    moving : bool
        Whether the numbers have derivatives along a random direction. By default False: they are
        constants, with derivatives 0. With `FIXED` it is ignored.
    """

    def leaf_to_exact(value: Any) -> Any:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if not (is_array or isinstance(value, float)):
            return value
        floats = np.array(value, float)
        if condition is FIXED:
            return lift(floats, field)
        field.argument_moves |= moving
        field.has_infinity |= bool(np.isinf(floats).any())
        tangent = None
        if moving:
            tangent = field.draw(floats.shape)
        exact = Exact(
            field, dual_residues(field, field.variable(floats), tangent), floats
        )
        if condition.holds(floats):
            condition.impose(exact)
        return exact

    return map_leaves(values, leaf_to_exact)


def argument_names(
    function: Callable[..., Any], count: int, skipped: int = 1
) -> list[str]:
    """Return the names of a function's arguments; ``argument 0``, ... where these are not known.

    Parameters
    ----------
    function : callable
        A function of `skipped` + `count` arguments.
    count : int
        Number of names to return.
    skipped : int
        Number of leading arguments whose names are not returned. By default 1, for theta.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except Exception:
        # functions in C have no signature, and a callable may raise anything
        parameters = []
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind <= parameter.POSITIONAL_OR_KEYWORD
    ]
    return [*names, *(f"argument {i}" for i in range(len(names), count))][:count]


def parse_fixed(
    names: list[str], fixed: Iterable[str | int] | str
) -> tuple[Condition, ...]:
    """Return `FIXED` for each argument named or numbered in `fixed`, and `FREE` for the others.

    Parameters
    ----------
    names : list of str
        The names of all arguments.
    fixed : str, int, or several of them
        Names and positions of arguments. An unknown one raises ValueError, a wrong type TypeError.
    """
    chosen = check_fixed(fixed, names)
    return tuple(
        FIXED if name in chosen or i in chosen else FREE for i, name in enumerate(names)
    )


def describe_data(names: Sequence[str], data: Sequence[Condition]) -> str:
    """Return a phrase on the data that a proof holds for, ``for these y``; "" if for all data.

    Parameters
    ----------
    names : sequence of str
        The names of the arguments.
    data : sequence of Condition
        The condition on each argument in the proof.
    """
    pairs = list(zip(names, data, strict=True))
    fixed = " and ".join(name for name, condition in pairs if condition is FIXED)
    conditions = " and ".join(
        condition.text.format(name) for name, condition in pairs if condition.text
    )
    phrases = []
    if fixed:
        phrases.append(f"for these {fixed}")
    if conditions:
        phrases.append(f"where {conditions}")
    return " ".join(phrases)


def _with_condition(
    data: tuple[Condition, ...], i: int, condition: Condition
) -> tuple[Condition, ...]:
    """Return a copy of `data`, the conditions on all arguments, with `condition` for argument i."""
    return (*data[:i], condition, *data[i + 1 :])


def weakest_conditions(
    arguments: Sequence[Any],
    data: tuple[Condition, ...],
    proves: Callable[[tuple[Condition, ...]], bool],
) -> tuple[Condition, ...]:
    """Return the weakest conditions on the free arguments with which a proof succeeds.

    Parameters
    ----------
    arguments : sequence
        The arguments of the function.
    data : tuple of Condition
        The caller's condition on each argument. Only those that are `FREE` are changed.
    proves : callable
        Takes conditions on all arguments, and returns whether the proof succeeds with them.

    Returns
    -------
    tuple of Condition
        The condition on each argument. It is `data` itself if the proof succeeds neither with all
        free arguments fixed, nor with the strongest condition that each of them satisfies.
    """
    free = [i for i, condition in enumerate(data) if condition is FREE]
    conditions = {i: conditions_of(arguments[i]) for i in free}

    fixed = conditioned = data
    for i in free:
        fixed = _with_condition(fixed, i, FIXED)
        strongest = (FIXED, *conditions[i])[-1]
        conditioned = _with_condition(conditioned, i, strongest)
    starts = (start for start in (fixed, conditioned) if proves(start))
    weakest = next(starts, data)
    if weakest == data:
        return data
    for i in free:
        for condition in (FREE, *conditions[i]):
            weaker = _with_condition(weakest, i, condition)
            if weakest[i] is not condition and proves(weaker):
                weakest = weaker
                break
    return weakest

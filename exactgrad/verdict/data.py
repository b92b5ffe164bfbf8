"""The data of a proof: free, fixed to what they are, or bound by a condition that they keep (D44).

Exact data are random numbers, so what is proved holds for all of them. A gradient that is right for
some alone, as that of softmax regression where rows sum to 1, is proved where they are fixed, or
better where they are random numbers that sum to 1 as well.
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
    """A property of an argument's floats, and how random numbers are given it."""

    text: str  # the condition in words, with {} or {0} for the name of the argument
    holds: Callable[[Array], bool]  # whether floats satisfy the condition
    impose: Callable[[Exact], None]  # makes exact numbers satisfy it, in place


# With FREE an argument's numbers are random, with FIXED they are those it holds
FREE = Condition("", lambda v: False, lambda x: None)
FIXED = Condition("", lambda v: False, lambda x: None)


def _sums(axis: int | None, total: int) -> Condition:
    """Return the condition that all sums along `axis`, or the sum of all if None, are `total`."""

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
    """Set the entries of x whose floats are 0 to an exact 0, in place."""
    x[x.floats == 0] = 0.0


def _diagonal(value: int) -> Condition:
    """Return the condition that all entries on the diagonal of a square matrix are `value`."""
    return Condition(
        f"diag({{0}}) = {value}",
        lambda v: _is_square(v) and bool((v.diagonal() == value).all()),
        lambda x: x.__setitem__(np.diag_indices(len(x)), value),
    )


def _all(*conditions: Condition) -> Condition:
    """Return the condition that all `conditions` hold; imposing it imposes them in this order.

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
    """Return the conditions of symmetric matrices with a fixed diagonal or with fixed sums.

    The sums of its rows are imposed by the diagonal, the sum of all by two numbers beside it.
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


# for masks: a function may have a kink where a mask is 0
ZEROS = Condition(
    "the zeros of {} stay 0", lambda v: bool(v.any() and not v.all()), _zero
)
SYMMETRIC = Condition(
    "{0} = {0}.T", lambda v: _is_square(v) and np.array_equal(v, v.T), _mirror
)
CONDITIONS = [  # weaker ones first
    SYMMETRIC,
    *(_sums(axis, total) for axis in (None, -1, 0) for total in (1, 0)),
    *(_diagonal(value) for value in (1, 0)),
    *(_all(_sums(-1, total), _sums(0, total)) for total in (1, 0)),
    *_symmetric(),
]


def _float_arrays(argument: Any) -> list[Array]:
    """Return the arrays of floats in an argument, which may be a structure of arrays."""
    arrays = [leaf for _, leaf in leaves(argument, "") if isinstance(leaf, np.ndarray)]
    return [array for array in arrays if array.dtype.kind == "f"]


def conditions_of(argument: Any) -> list[Condition]:
    """Return the conditions in `CONDITIONS` that some array of the argument satisfies."""
    arrays = _float_arrays(argument)
    return [condition for condition in CONDITIONS if any(map(condition.holds, arrays))]


def keep_zeros(
    arguments: Sequence[Any], data: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    """Return the data with `ZEROS` for each free argument that has zeros and other numbers.

    Parameters
    ----------
    arguments : sequence
        The arguments of the function.
    data : tuple of Condition
        The condition on each of them.
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
    """Return an argument with exact numbers in place of its floats.

    Parameters
    ----------
    values : any
        An argument. Floats and arrays of them become exact, alone or in tuples, lists and dicts.
        Everything else (whole numbers, fractions, truth values, names) is returned as it is.
    field : Field
        The field of the exact numbers.
    condition : Condition
        The condition that random numbers are to satisfy. With `FIXED` the numbers are not
        random but the fractions that the floats stand for.
    moving : bool
        Whether the numbers have derivatives, along a random direction. By default these are 0.
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
        tangent = field.draw(floats.shape) if moving else None
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
    """Return the names of a function's arguments; ``argument 0`` and so on where it has none.

    Parameters
    ----------
    function : callable
        A function of theta and `count` arguments.
    count : int
        Number of names.
    skipped : int
        Number of leading arguments without a name in the result. By default 1: theta.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except Exception:  # a function in C has no signature, and an object may raise
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
        Names and positions of arguments; any other raises an error.
    """
    chosen = check_fixed(fixed, names)
    return tuple(
        FIXED if name in chosen or i in chosen else FREE for i, name in enumerate(names)
    )


def describe_data(names: Sequence[str], data: Sequence[Condition]) -> str:
    """Return the data that a proof holds for, such as ``for these y``; "" if it holds for all.

    Parameters
    ----------
    names : sequence of str
        The names of the arguments.
    data : sequence of Condition
        The condition on each of them in the proof.
    """
    pairs = list(zip(names, data, strict=True))
    fixed = " and ".join(name for name, condition in pairs if condition is FIXED)
    conditions = " and ".join(
        condition.text.format(name) for name, condition in pairs if condition.text
    )
    phrases = [
        f"for these {fixed}" if fixed else "",
        f"where {conditions}" if conditions else "",
    ]
    return " ".join(filter(None, phrases))


def _with_condition(
    data: tuple[Condition, ...], i: int, condition: Condition
) -> tuple[Condition, ...]:
    """Return the data with `condition` for argument i."""
    return (*data[:i], condition, *data[i + 1 :])


def weakest_conditions(
    arguments: Sequence[Any],
    data: tuple[Condition, ...],
    proves: Callable[[tuple[Condition, ...]], bool],
) -> tuple[Condition, ...]:
    """Return data in which as few arguments are fixed or conditioned as a proof needs.

    Parameters
    ----------
    arguments : sequence
        The arguments of the function.
    data : tuple of Condition
        The caller's condition on each of them.
    proves : callable
        Returns whether the proof succeeds for given data.

    Returns
    -------
    tuple of Condition
        `data` itself if the proof succeeds neither where all free arguments are fixed nor where
        each of them keeps a condition.
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

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
SUM_TOLERANCE = 1e-12  # what the rounding of floats may do to their sum


class Condition(NamedTuple):
    """What the floats of an argument keep, and how random numbers are made to keep it."""

    text: str  # in words, with {} for the name of the argument
    holds: Callable[[Array], bool]
    impose: Callable[[Exact], None]  # changes exact numbers in place


# random numbers, and the numbers that the argument holds
FREE = Condition("", lambda v: False, lambda x: None)
FIXED = Condition("", lambda v: False, lambda x: None)


def _sums(axis: int | None, total: int) -> Condition:
    """Return the condition that all sums along an axis, or the sum of all, are this number."""

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
    return v.ndim == 2 and len(v) == v.shape[1] > 1


def _mirror(x: Exact) -> None:
    rows, columns = np.triu_indices(x.shape[0], 1)
    x[rows, columns] = x[columns, rows]


def _zero(x: Exact) -> None:
    x[x.floats == 0] = 0.0


def _diagonal(value: int) -> Condition:
    return Condition(
        f"diag({{0}}) = {value}",
        lambda v: _is_square(v) and bool((v.diagonal() == value).all()),
        lambda x: x.__setitem__(np.diag_indices(len(x)), value),
    )


def _all(*conditions: Condition) -> Condition:
    """Return all conditions together; none breaks an earlier one when it is imposed."""

    def impose(x: Exact) -> None:
        for condition in conditions:
            condition.impose(x)

    return Condition(
        " and ".join(condition.text for condition in conditions),
        lambda v: all(condition.holds(v) for condition in conditions),
        impose,
    )


def _symmetric() -> list[Condition]:
    """Return what else a symmetric matrix may keep.

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


# of a mask: what it multiplies has a kink where it is 0
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
    arrays = [leaf for _, leaf in leaves(argument, "") if isinstance(leaf, np.ndarray)]
    return [array for array in arrays if array.dtype.kind == "f"]


def conditions_of(argument: Any) -> list[Condition]:
    """Return the conditions that an argument keeps."""
    arrays = _float_arrays(argument)
    return [condition for condition in CONDITIONS if any(map(condition.holds, arrays))]


def keep_zeros(
    arguments: Sequence[Any], data: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    """Return the data with the zeros of free arrays held at 0, if they hold other numbers too.

    Parameters
    ----------
    arguments : sequence
        The arguments of the function.
    data : tuple of Condition
        What is known of each of them.
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
    """Return the floats of an argument as exact numbers.

    Parameters
    ----------
    values : any
        An argument. Floats and arrays of them become exact, alone or in tuples, lists and dicts.
        Everything else (whole numbers, fractions, truth values, names) is returned as it is.
    field : Field
        Where the exact numbers lie.
    condition : Condition
        What the random numbers keep. With `FIXED` they are the fractions that the floats are.
    moving : bool
        Whether they move, in a random direction. By default they stand still.
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
    """Return the names of a function's arguments, or ``argument 0`` and so on.

    Parameters
    ----------
    function : callable
        A function of theta and `count` arguments.
    count : int
        Number of names.
    skipped : int
        Number of arguments that come before them. By default 1: theta.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except Exception:  # of a function in C, or an object that raises where it is asked
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
    """Return `FIXED` for each argument that is fixed by its name or position, else `FREE`.

    Parameters
    ----------
    names : list of str
        Of all arguments.
    fixed : str, int, or several of them
        Names and positions. Others than those of arguments raise an error.
    """
    chosen = check_fixed(fixed, names)
    return tuple(
        FIXED if name in chosen or i in chosen else FREE for i, name in enumerate(names)
    )


def describe_data(names: Sequence[str], data: Sequence[Condition]) -> str:
    """Return for which data a proof holds, such as ``for these y``; nothing if for all.

    Parameters
    ----------
    names : sequence of str
        Of the arguments.
    data : sequence of Condition
        What holds for each of them in the proof.
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
    return (*data[:i], condition, *data[i + 1 :])


def weakest_conditions(
    arguments: Sequence[Any],
    data: tuple[Condition, ...],
    proves: Callable[[tuple[Condition, ...]], bool],
) -> tuple[Condition, ...]:
    """Return the data with as few fixed, or bound by a condition, as a proof needs.

    Parameters
    ----------
    arguments : sequence
        The arguments of the function.
    data : tuple of Condition
        What the caller says of each of them.
    proves : callable
        Whether the proof succeeds for such data.

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

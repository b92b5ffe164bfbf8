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
    "Data",
    "argument_names",
    "bound",
    "exact",
    "kinds",
    "masked",
    "told",
]

Array = NDArray[Any]
NEARLY = 1e-12  # what the rounding of sums of floats may be


class Condition(NamedTuple):
    """What an array may keep, where it does: ``{}`` is its name."""

    text: str
    kept: Callable[[Array], bool]
    impose: Callable[[Exact], None]  # on random numbers


FREE, FIXED = (Condition("", lambda v: False, lambda x: None) for _ in range(2))
Data = Condition


def _sums(axis: int | None, total: int) -> Condition:
    """Return the condition that all sums along an axis, or the sum of all, are this number."""

    def kept(v: Array) -> bool:
        few = v.ndim == 0 or v.size < 2 or (axis is not None and v.ndim < 2)
        return not few and bool((np.abs(v.sum(axis) - total) < NEARLY).all())

    def impose(x: Exact) -> None:
        rows = x.reshape(-1) if axis is None else x.swapaxes(axis, 0)
        rows[-1] = total - np.sum(rows[:-1], axis=0)

    return Condition(
        f"{{0}}.sum({'' if axis is None else f'axis={axis}'}) = {total}", kept, impose
    )


def _square(v: Array) -> bool:
    return v.ndim == 2 and len(v) == v.shape[1] > 1


def _mirror(x: Exact) -> None:
    rows, columns = np.triu_indices(x.shape[0], 1)
    x[rows, columns] = x[columns, rows]


def _zero(x: Exact) -> None:
    x[x.floats == 0] = 0.0


def _diagonal(value: int) -> Condition:
    return Condition(
        f"diag({{0}}) = {value}",
        lambda v: _square(v) and bool((v.diagonal() == value).all()),
        lambda x: x.__setitem__(np.diag_indices(len(x)), value),
    )


def _all(*parts: Condition) -> Condition:
    """Return all conditions together, of which no later one when imposed breaks an earlier."""

    def impose(x: Exact) -> None:
        for one in parts:
            one.impose(x)

    text = " and ".join(one.text for one in parts)
    return Condition(text, lambda v: all(one.kept(v) for one in parts), impose)


def _symmetric() -> list[Condition]:
    """Return what else a symmetric matrix: sums of rows by its diagonal, of all by two others."""

    def rows(x: Exact, total: int) -> None:
        x[np.diag_indices(len(x))] += total - np.sum(x, axis=1)

    def everything(x: Exact, total: int) -> None:
        x[[0, 1], [1, 0]] += (total - np.sum(x)) / 2

    of_rows = [_sums(-1, n)._replace(impose=partial(rows, total=n)) for n in (1, 0)]
    of_all = [
        _sums(None, n)._replace(impose=partial(everything, total=n)) for n in (1, 0)
    ]
    diagonals = [_diagonal(n) for n in (1, 0)]
    pairs = [_all(SYMMETRIC, one) for one in (*diagonals, *of_rows, *of_all)]
    return pairs + [_all(*three) for three in product([SYMMETRIC], diagonals, of_all)]


# Of a mask, on a kink of what it multiplies
ZEROS = Condition(
    "the zeros of {} stay 0", lambda v: bool(v.any() and not v.all()), _zero
)
SYMMETRIC = Condition(
    "{0} = {0}.T", lambda v: _square(v) and np.array_equal(v, v.T), _mirror
)
CONDITIONS = [  # weaker ones first
    SYMMETRIC,
    *(_sums(axis, total) for axis in (None, -1, 0) for total in (1, 0)),
    *(_diagonal(value) for value in (1, 0)),
    *(_all(_sums(-1, total), _sums(0, total)) for total in (1, 0)),
    *_symmetric(),
]


def _floats(values: Any) -> list[Array]:
    arrays = (one for _, one in leaves(values, "") if isinstance(one, np.ndarray))
    return [one for one in arrays if one.dtype.kind == "f"]


def conditions(values: Any) -> list[Condition]:
    """Return those that an argument keeps."""
    floats = _floats(values)
    return [one for one in CONDITIONS if any(map(one.kept, floats))]


def masked(arguments: Sequence[Any], data: tuple[Data, ...]) -> tuple[Data, ...]:
    """Return the data where the zeros of free arrays that have other numbers too stay 0."""
    pairs = zip(arguments, data, strict=True)
    return tuple(
        ZEROS if how is FREE and any(map(ZEROS.kept, _floats(one))) else how
        for one, how in pairs
    )


def exact(values: Any, field: Field, data: Data = FREE, moving: bool = False) -> Any:
    """Return floats and arrays of them, alone or in tuples, lists and dicts, as exact numbers.

    They stand still, or move in a random direction. Everything else (whole numbers, fractions,
    truth values, names) is returned as it is. What is fixed are the fractions that floats are.
    """

    def made(value: Any) -> Any:
        floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if not (floats or isinstance(value, float)):
            return value
        v = np.array(value, float)
        if data is FIXED:
            return lift(v, field)
        field.argument_moves |= moving
        field.has_infinity |= bool(np.isinf(v).any())
        slope = field.draw(v.shape) if moving else None
        found = Exact(field, dual_residues(field, field.variable(v), slope), v)
        if data.kept(v):
            data.impose(found)
        return found

    return map_leaves(values, made)


def argument_names(
    function: Callable[..., Any], count: int, before: int = 1
) -> list[str]:
    """Return the names of a function's arguments, after theta."""
    try:
        taken = list(inspect.signature(function).parameters.values())[before:]
    except Exception:  # of a function in C, or an object that raises where it is asked
        taken = []
    named = [one.name for one in taken if one.kind <= one.POSITIONAL_OR_KEYWORD]
    return [*named, *(f"argument {i}" for i in range(len(named), count))][:count]


def kinds(names: list[str], fixed: Iterable[str | int] | str) -> tuple[Data, ...]:
    """Return which arguments are fixed, by name or by position."""
    chosen = check_fixed(fixed, names)
    return tuple(
        FIXED if name in chosen or i in chosen else FREE for i, name in enumerate(names)
    )


def told(names: Sequence[str], data: Sequence[Data]) -> str:
    """Say of which data a proof is."""
    pairs = list(zip(names, data, strict=True))
    fixed = " and ".join(name for name, one in pairs if one is FIXED)
    kept = " and ".join(one.text.format(name) for name, one in pairs if one.text)
    parts = [f"for these {fixed}" if fixed else "", f"where {kept}" if kept else ""]
    return " ".join(filter(None, parts))


def bound(
    arguments: Sequence[Any],
    data: tuple[Data, ...],
    holds: Callable[[tuple[Data, ...]], bool],
) -> tuple[Data, ...]:
    """Return the data with as few fixed, or bound by a condition, as a proof needs to hold.

    If it does not hold where all are fixed to what they are, or keep a condition, they are returned
    as they were.
    """
    able = [i for i, one in enumerate(data) if one is FREE]
    kept = {i: conditions(arguments[i]) for i in able}

    def with_(i: int, one: Data, of: tuple[Data, ...]) -> tuple[Data, ...]:
        return (*of[:i], one, *of[i + 1 :])

    fixed = conditioned = data
    for i in able:
        fixed = with_(i, FIXED, fixed)
        conditioned = with_(i, (FIXED, *kept[i])[-1], conditioned)
    now = next((start for start in (fixed, conditioned) if holds(start)), data)
    for i in able if now != data else ():
        for less in (FREE, *kept[i]):
            if now[i] is not less and holds(with_(i, less, now)):
                now = with_(i, less, now)
                break
    return now

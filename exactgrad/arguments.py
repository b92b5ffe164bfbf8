"""What callers give, checked once, at the public door: each error says what was asked and got."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import numpy as np

__all__ = [
    "check_blocks",
    "check_callable",
    "check_fixed",
    "check_floats",
    "check_plain",
    "holds_no_numbers",
    "positive_number",
    "whole_number",
]

BOOLEANS = (bool, np.bool_)


def check_callable(name: str, value: Any) -> None:
    """Raise TypeError unless `value` can be called: a proof would take it for untraceable."""
    if not callable(value):
        raise TypeError(f"{name} must be a function; got {reprlib.repr(value)}")


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """Return a whole number, also one of NumPy's; refuse what is smaller, and truth values."""
    message = (
        f"{name} must be a whole number, {least} or more; got {reprlib.repr(value)}"
    )
    if isinstance(value, BOOLEANS):
        raise TypeError(f"{message}: give an int")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{message}: give an int") from None
    if number < least:
        raise ValueError(f"{message}: leave it out for the default")
    return number


def positive_number(name: str, value: Any) -> float:
    """Return a positive finite number as a float."""
    message = f"{name} must be a positive number; got {reprlib.repr(value)}"
    if isinstance(value, (*BOOLEANS, str, bytes)) or np.ndim(value):
        raise TypeError(f"{message}: give a float such as 1e-6")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{message}: give a float such as 1e-6") from None
    if not (isfinite(number) and number > 0):
        raise ValueError(f"{message}: leave it out for the default")
    return number


def check_blocks(blocks: Any, size: int) -> None:
    """Raise an error unless these are named slices of so many numbers, or None."""
    message = f"blocks must map names to slices of theta, {size} numbers; got "
    if blocks is None:
        return
    if not isinstance(blocks, Mapping):
        raise TypeError(
            message + reprlib.repr(blocks) + ": give a dict, or leave it out"
        )
    for name, where in blocks.items():
        try:
            inside = isinstance(where, slice) and where.indices(size) is not None
        except TypeError:  # of a slice between texts
            inside = False
        if not inside or max(where.start or 0, where.stop or 0) > size:
            raise ValueError(f"{message}{name!r}: {where!r}")


def check_fixed(fixed: Any, names: list[str]) -> list[str | int]:
    """Return the names and positions of the arguments that are fixed."""
    message = f"fixed must name arguments, of {names}; got "
    if isinstance(fixed, str | int):
        fixed = [fixed]
    several = isinstance(fixed, Iterable) and not isinstance(fixed, bytes | Mapping)
    if not several or (isinstance(fixed, np.ndarray) and fixed.ndim != 1):
        raise TypeError(message + reprlib.repr(fixed) + ": give names or positions")
    chosen = list(fixed)
    for one in chosen:
        known = isinstance(one, str) and one in names
        place = isinstance(one, int | np.integer) and not isinstance(one, BOOLEANS)
        if not known and not (place and 0 <= one < len(names)):
            raise ValueError(message + repr(one))
    return chosen


def check_floats(name: str, value: Any) -> None:
    """Raise ValueError unless this is a number, or an array of them, at which one can derive."""
    check_plain(name, value)
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{name} is complex, and derivatives are asked by real numbers: take its real and "
            "its imaginary part as two arrays, in a dict"
        )
    if array.dtype != np.float64:
        remedy = (
            f"give {name}.astype(float)"
            if array.dtype.kind in "iufb"
            else "give numbers"
        )
        raise ValueError(
            f"{name} must be a float64 array; got dtype {array.dtype}: {remedy}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds nan or infinity; take a finite point")


def check_plain(name: str, value: Any) -> None:
    """Raise ValueError for a masked array or a matrix, which plain arrays are made of here."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must be an array without a mask; got a masked array: fill it, and give the "
            "mask as an array of its own"
        )
    if isinstance(value, np.matrix):
        raise ValueError(
            f"{name} must be an array; got a matrix: give np.asarray({name})"
        )


def holds_no_numbers(value: Any) -> bool:
    """Return whether this is text or dates, or an array of them."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return isinstance(value, str | bytes) or kind in "USmMV"

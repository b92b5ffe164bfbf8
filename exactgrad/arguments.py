"""Checks of the arguments of public functions; each error says what to pass instead."""

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
    "check_options",
    "check_plain",
    "holds_no_numbers",
    "positive_number",
    "whole_number",
]

BOOLEANS = (bool, np.bool_)


def check_callable(name: str, value: Any) -> None:
    """Raise TypeError unless `value`, the argument called `name`, is callable.

    Parameters
    ----------
    name : str
        The name of the argument, for the error.
    value : any
    """
    if not callable(value):
        raise TypeError(f"{name} must be a function; got {reprlib.repr(value)}")


def whole_number(name: str, value: Any, minimum: int = 0) -> int:
    """Return `value` as an int; raise an error if it is not an integer or is below `minimum`.

    Parameters
    ----------
    name : str
        The name of the argument, for the error.
    value : any
        An integer of Python or NumPy, but no bool.
    minimum : int
        The smallest value allowed. By default 0.

    Raises
    ------
    TypeError
        If the value is no integer.
    ValueError
        If the value is below the minimum.
    """
    message = (
        f"{name} must be a whole number, {minimum} or more; got {reprlib.repr(value)}"
    )
    if isinstance(value, BOOLEANS):
        raise TypeError(f"{message}: give an int")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{message}: give an int") from None
    if number < minimum:
        raise ValueError(f"{message}: leave it out for the default")
    return number


def positive_number(name: str, value: Any) -> float:
    """Return `value` as a float; raise an error unless it is a positive finite number.

    Parameters
    ----------
    name : str
        The name of the argument, for the error.
    value : any
        A number of Python or NumPy, but no bool.

    Raises
    ------
    TypeError
        If the value is no number.
    ValueError
        If the value is not positive, or not finite.
    """
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
    """Raise an error unless `blocks` is None or maps names to slices of a theta of length `size`.

    Parameters
    ----------
    blocks : any
        Should map names to slices, or be None.
    size : int
        The length of theta, beyond which no slice may reach.

    Raises
    ------
    TypeError
        If `blocks` is no mapping.
    ValueError
        If a value is no slice, or reaches beyond `size`.
    """
    message = f"blocks must map names to slices of theta, which has size {size}; got "
    if blocks is None:
        return
    if not isinstance(blocks, Mapping):
        raise TypeError(
            message + reprlib.repr(blocks) + ": give a dict, or leave it out"
        )
    for name, block in blocks.items():
        try:
            is_slice = isinstance(block, slice) and block.indices(size) is not None
        except TypeError:  # `slice.indices` raises it for bounds that are not integers
            is_slice = False
        if not is_slice or max(block.start or 0, block.stop or 0) > size:
            raise ValueError(f"{message}{name!r}: {block!r}")


def check_fixed(fixed: Any, names: list[str]) -> list[str | int]:
    """Return `fixed` as a list of argument names and positions; raise an error if one is unknown.

    Parameters
    ----------
    fixed : any
        The name of an argument, its position (int, counted from 0 after theta), or several of both.
    names : list of str
        The names of all arguments.

    Raises
    ------
    TypeError
        If `fixed` is neither a name, a position nor several of them.
    ValueError
        If a name or position is not that of an argument.
    """
    message = f"fixed must hold names or positions of the arguments {names}; got "
    if isinstance(fixed, str | int):
        fixed = [fixed]
    is_list = isinstance(fixed, Iterable) and not isinstance(fixed, bytes | Mapping)
    if not is_list or (isinstance(fixed, np.ndarray) and fixed.ndim != 1):
        raise TypeError(message + reprlib.repr(fixed) + ": give names or positions")
    chosen = list(fixed)
    for argument in chosen:
        if isinstance(argument, str):
            exists = argument in names
        else:
            is_integer = isinstance(argument, int | np.integer)
            is_position = is_integer and not isinstance(argument, BOOLEANS)
            exists = is_position and 0 <= argument < len(names)
        if not exists:
            raise ValueError(message + repr(argument))
    return chosen


def check_floats(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a finite float or a float64 array of finite numbers.

    Parameters
    ----------
    name : str
        The name of the argument, for the error.
    value : any
    """
    check_plain(name, value)
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{name} must be real; got complex numbers: give the real and the imaginary part as "
            "two arrays, in a dict"
        )
    if array.dtype != np.float64:
        remedy = "give numbers"
        if array.dtype.kind in "iufb":
            remedy = f"give {name}.astype(float)"
        raise ValueError(
            f"{name} must be a float64 array; got dtype {array.dtype}: {remedy}"
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite; got nan or infinity: choose a finite point"
        )


def check_options(function: str, options: Iterable[str], allowed: str) -> None:
    """Raise TypeError if an option is none of those that a prover of JAX or PyTorch takes.

    Parameters
    ----------
    function : str
        The name of the prover, for the error.
    options : iterable of str
        The names of the options that were given.
    allowed : str
        The names of the options that it takes, with spaces between them.
    """
    for option in options:
        if option not in allowed.split():
            remedy = "leave it out"
            if option == "order":
                remedy = (
                    "second derivatives are proved of functions of NumPy, by "
                    "exactgrad.prove(..., order=2)"
                )
            raise TypeError(
                f"options of {function} must be among {allowed.replace(' ', ', ')}; got "
                f"{option}: {remedy}"
            )


def check_plain(name: str, value: Any) -> None:
    """Raise ValueError if `value` is a masked array or a matrix, which proofs would misread.

    Parameters
    ----------
    name : str
        The name of the argument, for the error.
    value : any
    """
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
    """Return whether `value` is text or bytes, or has a dtype of text, dates or records."""
    dtype_kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return isinstance(value, str | bytes) or dtype_kind in "USmMV"

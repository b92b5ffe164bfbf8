"""Checks of arguments that stand for a part of a learner, with errors that name them (floor 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from .arguments import whole
from .names import named

__all__ = ["check_dtype", "check_flag", "check_function", "check_part", "check_sizes"]


def check_flag(name: str, value: Any, accepted: tuple[bool | None, ...] = (True, False)) -> Any:
    """Return a bool (or None, if accepted), or raise TypeError."""
    if value is None and None in accepted:
        return None
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be one of {accepted}; got {value!r}")
    return bool(value)


def check_part(
    name: str, value: Any, kinds: tuple[type, ...], table: Mapping[str, Any] | None = None
) -> Any:
    """Return a part of the model: `value`, or the entry of `table` that it names.

    Raises
    ------
    TypeError
        Unless it is an object of one of `kinds`, or text.
    ValueError
        If no entry has this name.
    """
    if isinstance(value, kinds):
        return value
    if isinstance(value, str) and table is not None:
        return named(name, value, table)
    accepted = " or ".join(kind.__name__ for kind in kinds)
    if table is not None:
        accepted += f", or one of the names {', '.join(map(repr, table))}"
    if isinstance(value, type):
        given = f"the class {value.__name__}; make an object of it: {value.__name__}()"
    else:
        given = f"{value!r} of type {type(value).__name__}"
    raise TypeError(f"{name} must be None or an object of type {accepted}; got {given}")


def check_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return layer widths as a tuple of int; one number stands for one layer, () for none."""
    if isinstance(value, Integral):
        value = (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(
            f"{name} must be a tuple of whole numbers >= 1, e.g. (50,) or (100, 100), or () for "
            f"no hidden layer; got {value!r}"
        )
    return tuple(whole(f"{name}[{i}]", width, 1) for i, width in enumerate(value))


def check_function(name: str, value: Any, default: Any, table: Mapping[str, Any]) -> Any:
    """Return the entry of `table` that `value` names, or `value` if it can be called."""
    if value is None:
        return default
    if isinstance(value, str):
        return named(name, value, table)
    if isinstance(value, type) or not callable(value):
        example = "function" if name == "kl_weights" else "LinearWarmUp(0.5)"
        raise TypeError(
            f"{name} must be None, one of {', '.join(map(repr, table))}, or a {example} like those "
            f"of bbb_numpy.kl_weights; got {value!r}"
        )
    return value


def check_dtype(value: Any) -> np.dtype[Any]:
    """Return the dtype of training and prediction, or raise ValueError."""
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if value is None or dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be 'float64' or 'float32'; got {value!r}")
    return dtype

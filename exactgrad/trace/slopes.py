"""The derivative of a function along a direction, as a number that a proof differentiates again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..fields.dual import DualField
from ..structures import copy_leaves, leaves, map_leaves
from .arrays import Exact, lift
from .makers import ACTIVE_FIELD

__all__ = ["slope_along"]

Function = Callable[..., Any]
# Largest step of differences of fourth order, relative to the size of a number or to MIN_SIZE
DIFFERENCE_STEP = 1e-3
MIN_SIZE = 1e-3


def slope_along(f: Function, theta: Any, direction: Any, *arguments: Any) -> Any:
    """Return the derivative of ``f(theta, *arguments)`` along a direction; exact in a proof.

    In a proof it has a derivative itself, which is a second derivative of f. With floats it is
    computed by central differences.

    Parameters
    ----------
    f : callable
        Function of theta and the `arguments` that returns a number or an array.
    theta, direction : ndarray, or a dict, tuple or list of arrays
        The point and the direction, which have one structure.
    *arguments
        Further arguments of f.
    """
    given = theta, direction, arguments
    numbers = [leaf for _, leaf in leaves(given, "") if type(leaf) is Exact]
    if not numbers:
        return _difference(f, theta, direction, arguments)
    field = numbers[0].field
    duals = DualField(field)

    def to_dual(x: Any, slope: Any = None) -> Any:
        if slope is None and type(x) is not Exact:
            return x
        x = lift(x, field)
        second = None if slope is None else lift(slope, field).residues
        return Exact(
            duals, duals.join(x.residues, second), x.floats, None, x.large_terms
        )

    try:
        ACTIVE_FIELD.set(None)
        floats = _difference(f, *map_leaves(given, lambda x: getattr(x, "floats", x)))
        ACTIVE_FIELD.set(duals)
        slopes = _in_order(direction)
        point = map_leaves(theta, lambda x: to_dual(x, next(slopes)))
        value = lift(f(point, *map_leaves(arguments, to_dual)), duals)
    finally:
        ACTIVE_FIELD.set(field)
    return Exact(field, duals.parts(value.residues)[1], floats)


def _in_order(values: Any) -> Iterator[Any]:
    """Yield the leaves of a structure in the order in which `map_leaves` changes them."""
    return (leaf for _, leaf in leaves(values, ""))


def _difference(
    f: Function, theta: Any, direction: Any, arguments: tuple[Any, ...]
) -> Any:
    """Return the derivative of f along a direction by central differences of floats.

    Parameters
    ----------
    f, theta, direction, arguments
        As in `slope_along`, with floats.
    """
    pairs = zip(_in_order(theta), _in_order(direction), strict=True)
    rates = [np.max(np.abs(u) / np.maximum(np.abs(x), MIN_SIZE)) for x, u in pairs]
    h = DIFFERENCE_STEP / (max(rates) or 1.0)

    def value(n_steps: int) -> Any:
        slopes = _in_order(direction)
        moved = map_leaves(theta, lambda x: x + n_steps * h * next(slopes))
        return np.asarray(f(moved, *copy_leaves(arguments)), float)

    near = value(1) - value(-1)
    far = value(2) - value(-2)
    return (8 * near - far) / (12 * h)

"""The derivative of a function along a direction, as a number that a proof differentiates again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..fields.dual import DualField
from ..structures import Tree, copy_leaves, leaves, map_leaves
from .arrays import Exact, floats_of, lift
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
    tree = Tree.of(theta, "theta")
    point = tree.flatten(theta)
    along = tree.flatten(direction)
    leaf_values = [leaf for _, leaf in leaves((point, along, arguments), "")]
    numbers = [leaf for leaf in leaf_values if type(leaf) is Exact]
    if not numbers:
        return _difference(f, tree, point, along, arguments)
    field = numbers[0].field
    duals = DualField(field)

    def to_dual(x: Any, second: Any = None) -> Any:
        if type(x) is not Exact:
            return x
        residues = duals.join(x.residues, second)
        return Exact(duals, residues, x.floats, None, x.large_terms)

    dual_point = to_dual(lift(point, field), lift(along, field).residues)
    try:
        ACTIVE_FIELD.set(None)
        float_arguments = map_leaves((point, along, arguments), floats_of)
        floats = _difference(f, tree, *float_arguments)
        ACTIVE_FIELD.set(duals)
        value = f(tree.unflatten(dual_point), *map_leaves(arguments, to_dual))
        residues = lift(value, duals).residues
    finally:
        ACTIVE_FIELD.set(field)
    return Exact(field, duals.parts(residues)[1], floats)


def _difference(
    f: Function, tree: Tree, point: Any, along: Any, arguments: tuple[Any, ...]
) -> Any:
    """Return the derivative of f along a direction by central differences of floats.

    Parameters
    ----------
    f : callable
        As in `slope_along`.
    tree : Tree
        The structure of theta.
    point, along : ndarray, shape (D,)
        Theta and the direction, flattened.
    arguments : tuple
        Further arguments of f.
    """
    rate = np.max(np.abs(along) / np.maximum(np.abs(point), MIN_SIZE))
    h = DIFFERENCE_STEP / (rate or 1.0)

    def value(n_steps: int) -> Any:
        moved = tree.unflatten(point + n_steps * h * along)
        return np.asarray(f(moved, *copy_leaves(arguments)), float)

    near = value(1) - value(-1)
    wide = value(2) - value(-2)
    return (8 * near - wide) / (12 * h)

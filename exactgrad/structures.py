"""Structures of arrays, and every shape of derivative as the gradient of one number (D44).

`prove` and `check_gradient` ask the same of a function: a flat theta, one number and its gradient.
Dicts, tuples and lists of arrays are laid out flat. Of a function f of many numbers the product u J
with its Jacobian is the gradient of ``u . f(theta)``, and J t the derivative of ``f(theta + s t)``
by s.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arguments import (
    check_blocks,
    check_callable,
    check_floats,
    check_plain,
    holds_no_numbers,
)

__all__ = [
    "StructureError",
    "Tree",
    "checked_arguments",
    "copy_leaves",
    "leaves",
    "map_leaves",
    "reduce_to_gradient",
]

Array = NDArray[Any]
Function = Callable[..., Any]
DRAWING = (  # what another call finds in another state
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
)
# numbers of a function: of more it is not asked which of them have a wrong derivative
MANY = 1000


class StructureError(ValueError):
    """A function returns something of another structure or shape than it should."""


# --- structures of arrays


def map_leaves(values: Any, change: Callable[[Any], Any]) -> Any:
    """Return tuples, lists and dicts, also in each other, of what each leaf becomes."""
    if isinstance(values, dict):
        return {key: map_leaves(value, change) for key, value in values.items()}
    if not isinstance(values, tuple | list):
        return change(values)
    made = [map_leaves(value, change) for value in values]
    if isinstance(values, list):
        return made
    return type(values)(*made) if hasattr(values, "_fields") else tuple(made)


def copy_leaves(values: Any, sealed: bool = False) -> Any:
    """Return the same with arrays and generators of its own; sealed arrays cannot be written."""

    def copied_leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = not sealed
        return copy.deepcopy(value) if isinstance(value, DRAWING) else value

    return map_leaves(values, copied_leaf)


def leaves(values: Any, what: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a structure with their paths, such as ``W1`` or ``theta[0]``."""
    if isinstance(values, dict) or hasattr(values, "_fields"):
        named = values.items() if isinstance(values, dict) else values._asdict().items()
        for key, value in named:
            yield from leaves(value, what, f"{path}.{key}" if path else str(key))
    elif isinstance(values, tuple | list):
        for i, value in enumerate(values):
            yield from leaves(value, what, f"{path or what}[{i}]")
    else:
        yield path or what, values


class Tree(NamedTuple):
    """The structure of values that are laid out flat."""

    like: Any
    what: str
    shapes: dict[str, tuple[int, ...]]  # by path

    @classmethod
    def of(cls, values: Any, what: str) -> Tree:
        """Return the structure of some values, which have this name."""
        return cls(
            values, what, {path: np.shape(one) for path, one in leaves(values, what)}
        )

    @property
    def size(self) -> int:
        """How many numbers."""
        return sum(map(prod, self.shapes.values()))

    @property
    def blocks(self) -> dict[str, slice]:
        """Where each array lies."""
        sizes = [*map(prod, self.shapes.values())]
        ends = zip(self.shapes, sizes, accumulate(sizes), strict=True)
        return {path: slice(end - size, end) for path, size, end in ends}

    def name(self, i: int) -> str:
        """Return the path of a number, such as ``W1[0, 2]``."""
        path, at = next((path, at) for path, at in self.blocks.items() if i < at.stop)
        index = ", ".join(map(str, np.unravel_index(i - at.start, self.shapes[path])))
        return f"{path}[{index}]" if index else path

    def grown(self, flat: Any) -> Any:
        """Return the structure of flat numbers: of views of them."""
        parts = (
            flat[at].reshape(self.shapes[path]) for path, at in self.blocks.items()
        )
        return map_leaves(self.like, lambda _: next(parts))

    def flat(self, values: Any, whose: str = "") -> Any:
        """Return the numbers of a structure like this one; raise `StructureError` for another."""
        found, whose = dict(leaves(values, self.what)), whose or self.what
        if found.keys() != self.shapes.keys():
            raise StructureError(
                f"{whose} must have the parts {[*self.shapes]}; got {[*found]}"
            )
        for path, shape in self.shapes.items():
            if np.shape(found[path]) != shape:
                got = np.shape(found[path])
                raise StructureError(
                    f"{whose} has shape {got} at {path}, which must be {shape}"
                )
        parts = [np.ravel(found[path]) for path in self.shapes]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


# --- what is asked of a function


def _array_or_tree(theta: Any) -> Any:
    nested = isinstance(theta, tuple | list | dict)
    check_plain("theta", theta)
    numbers = nested and all(isinstance(one, float | int) for one in theta)
    return (
        theta
        if nested and not (numbers and isinstance(theta, list))
        else np.asarray(theta)
    )


def flatten(theta: Any) -> tuple[Array, Tree]:
    """Return theta flat, and its structure; raise ValueError for what is no theta."""
    theta = _array_or_tree(theta)
    tree = Tree.of(theta, "theta")
    for path, leaf in leaves(theta, "theta"):
        check_floats(path, leaf)
    if not tree.size:
        raise ValueError(
            "theta is empty: there is no derivative; give at least one number"
        )
    return np.array(tree.flat(theta), float), tree


def checked_arguments(
    value_and_grad: Any, theta: Any, blocks: Any, coordinate: Any
) -> tuple[Function, Array, Mapping[str, slice], Callable[[int], str]]:
    """Return function and theta laid flat, its blocks and the names of its coordinates."""
    check_callable("value_and_grad", value_and_grad)
    flat, tree = flatten(theta)
    check_blocks(blocks, flat.size)
    if coordinate is not None:
        check_callable("coordinate", coordinate)

    def name_of(i: int) -> str:
        inside = (
            (name, range(flat.size)[where]) for name, where in (blocks or {}).items()
        )
        found = (f"{name}[{places.index(i)}]" for name, places in inside if i in places)
        return next(found, None) or tree.name(i)

    def of_flat(theta: Any, *arguments: Any) -> Any:
        returned = value_and_grad(tree.grown(theta), *arguments)
        check_returned(returned)
        return returned[0], tree.flat(returned[1], "the gradient")

    bare = tree.shapes == {"theta": flat.shape}
    function = value_and_grad if bare else of_flat
    return function, flat, blocks or tree.blocks, coordinate or name_of


def check_returned(returned: Any, shape: tuple[int, ...] | None = None) -> None:
    """Raise ValueError unless this is a number and a gradient of the shape of theta."""
    pair = isinstance(returned, tuple) and len(returned) > 1
    words = pair and any(map(holds_no_numbers, returned[:2]))
    if not pair or words or np.ndim(returned[0]) != 0:
        came = (
            f"a value of shape {np.shape(returned[0])}"
            if pair
            else type(returned).__name__
        )
        came = "text or dates" if words else came
        raise StructureError(
            "value_and_grad must return (value, grad), a single number and an array; got "
            f"{came}. Return the sum of the loss, and its gradient"
        )
    if shape is not None and np.shape(returned[1]) != shape:
        raise StructureError(
            f"the gradient has shape {np.shape(returned[1])}, theta has {shape}"
        )


# --- derivatives of other shapes


def reduce_to_gradient(
    shape: str,
    f: Function,
    by_hand: Function,
    theta: Any,
    arguments: tuple[Any, ...],
    ask: Function,
) -> tuple[Any, int, Callable[[], list[tuple[str, Any]]]]:
    """Ask whether a derivative of another shape is right, as the gradient of u . f with random u.

    Return the answer, of how many derivatives it is, and what says, if it is no, the answers for
    those numbers of f for which it is no, each with the name of the number.
    Of second derivatives f is the gradient, or value and gradient, which is asked first.
    """
    second = shape in ("hvp", "hessian")
    check_callable("gradient" if second else "f", f)
    check_callable(shape, by_hand)
    flat, tree = flatten(theta)
    draw, values = np.random.default_rng(0).standard_normal, f
    returned = f(copy_leaves(theta), *copy_leaves(arguments))
    if (
        second
        and isinstance(returned, tuple)
        and Tree.of(returned, "theta")[1:] != tree[1:]
    ):
        first = ask(f, theta, *arguments)
        if not first:
            return first, tree.size, list

        def values(theta: Any, *arguments: Any) -> Any:
            return f(theta, *arguments)[1]

        returned = returned[1]
    of = Tree.of(returned, "gradient" if second else "value")

    def weighted(theta: Any, u: Any, arguments: list[Any]) -> Any:
        return (u * of.flat(values(theta, *arguments))).sum()

    def of_vjp(theta: Any, *given: Any) -> Any:
        *arguments, u = given
        return weighted(theta, u, arguments), by_hand(theta, of.grown(u), *arguments)

    def of_jvp(s: Any, *given: Any) -> Any:
        *arguments, theta, t, u = given
        ahead = (tree.grown(theta + s[0] * t) for _ in range(2))
        slope = of.flat(by_hand(next(ahead), tree.grown(t), *arguments), f"the {shape}")
        return weighted(next(ahead), u, arguments), (u * slope).sum().reshape(1)

    def of_jacobian(theta: Any, *given: Any) -> Any:
        *arguments, u = given

        def row(part: Any) -> Any:
            lead, rest = (
                np.shape(part)[: len(rows or ())],
                np.shape(part)[len(rows or ()) :],
            )
            if lead != rows:
                raise StructureError(
                    f"the {shape} has shape {lead + rest}; it must begin with {rows}"
                )
            return np.matmul(u, np.reshape(part, (of.size, -1))).reshape(rest)

        return weighted(theta, u, arguments), map_leaves(
            by_hand(theta, *arguments), row
        )

    rows, more = of.shapes.get(of.what), (*arguments,)
    program: Function = of_jacobian
    count = of.size * tree.size
    if shape == "vjp":
        program, count = of_vjp, tree.size
    elif shape in ("jvp", "hvp"):
        program, count, more = of_jvp, of.size, (*arguments, flat, draw(flat.size))
        theta, ask = np.zeros(1), partial(ask, blocks=None, coordinate=None)
    elif rows is None:
        raise ValueError(f"f must return one array for a {shape}; got {[*of.shapes]}")
    with suppress(Exception):  # a function in C has no names, and an object may raise
        program.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    answer, size = ask(program, theta, *more, draw(of.size)), of.size
    if answer or shape == "vjp" or count > MANY:
        return answer, count, list
    at = copy_leaves((theta, *more))

    def wrong_units() -> list[tuple[str, Any]]:
        units = ((of.name(n), np.eye(1, size, n, int)[0]) for n in range(size))
        answers = ((name, ask(program, *copy_leaves(at), unit)) for name, unit in units)
        return [(name, one) for name, one in answers if not one]

    return answer, count, wrong_units

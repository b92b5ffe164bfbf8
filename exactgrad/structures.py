"""Structures of arrays, and every shape of derivative as the gradient of one number (D44).

`prove` and `check_gradient` work with functions of one flat vector theta that return a number and
its gradient. For these a dict, tuple or list of arrays is flattened into one vector. If a function
f with the Jacobian J returns several numbers, the product u J is the gradient of ``u . f(theta)``,
and J t the derivative of ``f(theta + s t)`` by the number s.
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
    "FlatArguments",
    "ReducedAnswer",
    "StructureError",
    "Tree",
    "as_tuple",
    "check_returned",
    "copy_leaves",
    "flatten_arguments",
    "flatten_theta",
    "leaves",
    "map_leaves",
    "reduce_to_gradient",
    "with_signature",
]

Array = NDArray[Any]
Function = Callable[..., Any]
STATEFUL_GENERATORS = (  # each call gets a copy, as drawing changes the state
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
)
# Largest number of derivatives for which the outputs of f with wrong derivatives are named
MAX_DERIVATIVES_LOCATED = 1000


class StructureError(ValueError):
    """Raised if what a function returns has a wrong structure or shape."""


# --- structures of arrays


def map_leaves(values: Any, change: Callable[[Any], Any]) -> Any:
    """Return the structure `values` with each leaf replaced by ``change(leaf)``.

    Parameters
    ----------
    values : any
        A leaf, or tuples, lists, dicts and named tuples of leaves.
    change : callable
        Returns the new value of a leaf.
    """
    if isinstance(values, dict):
        return {key: map_leaves(value, change) for key, value in values.items()}
    if not isinstance(values, tuple | list):
        return change(values)
    changed = [map_leaves(value, change) for value in values]
    if isinstance(values, list):
        return changed
    if hasattr(values, "_fields"):
        return type(values)(*changed)
    return tuple(changed)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a tuple as it is, and any other value as a tuple of length 1."""
    return value if isinstance(value, tuple) else (value,)


def copy_leaves(values: Any, sealed: bool = False) -> Any:
    """Return the structure `values` with copies of its arrays and random generators.

    Parameters
    ----------
    values : any
        A leaf, or tuples, lists and dicts of leaves. Leaves other than arrays and random generators
        are not copied.
    sealed : bool
        Whether the copied arrays are read-only. By default they can be written into.
    """

    def copy_leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = not sealed
        if isinstance(value, STATEFUL_GENERATORS):
            return copy.deepcopy(value)
        return value

    return map_leaves(values, copy_leaf)


def leaves(values: Any, name: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, leaf) for each leaf of `values`; paths are such as ``W1`` or ``theta[0]``.

    Parameters
    ----------
    values : any
        A leaf, or tuples, lists and dicts of leaves.
    name : str
        The name of the whole structure, which is the path of a single leaf.
    path : str
        The path of `values` in a larger structure. By default there is no larger one.
    """
    if isinstance(values, dict) or hasattr(values, "_fields"):
        named = values if isinstance(values, dict) else values._asdict()
        prefix = f"{path}." if path else ""
        for key, value in named.items():
            yield from leaves(value, name, f"{prefix}{key}")
    elif isinstance(values, tuple | list):
        for i, value in enumerate(values):
            yield from leaves(value, name, f"{path or name}[{i}]")
    else:
        yield path or name, values


class Tree(NamedTuple):
    """The structure of nested arrays, with methods that flatten and restore such values."""

    example: Any  # values that have this structure
    name: str  # name of the values in paths and errors
    shapes: dict[str, tuple[int, ...]]  # shapes of the arrays, by path

    @classmethod
    def of(cls, values: Any, name: str) -> Tree:
        """Return the `Tree` that describes the structure of `values`.

        Parameters
        ----------
        values : any
            A number or array, or tuples, lists and dicts of them.
        name : str
            The name of the values in paths and errors.
        """
        shapes = {path: np.shape(leaf) for path, leaf in leaves(values, name)}
        return cls(values, name, shapes)

    @property
    def size(self) -> int:
        """The total number of elements of all arrays in the structure."""
        return sum(map(prod, self.shapes.values()))

    @property
    def blocks(self) -> dict[str, slice]:
        """The slice of the flat vector that holds each array, by the path of the array."""
        sizes = [*map(prod, self.shapes.values())]
        stops = zip(self.shapes, sizes, accumulate(sizes), strict=True)
        return {path: slice(stop - size, stop) for path, size, stop in stops}

    def coordinate(self, i: int) -> str:
        """Return the path of element i of the flat vector, such as ``W1[0, 2]``."""
        blocks = self.blocks.items()
        path, block = next((path, block) for path, block in blocks if i < block.stop)
        indices = np.unravel_index(i - block.start, self.shapes[path])
        index = ", ".join(map(str, indices))
        return f"{path}[{index}]" if index else path

    def unflatten(self, flat: Any) -> Any:
        """Return the flat vector (size,) as a structure of arrays, which are views of it."""
        arrays = (
            flat[block].reshape(self.shapes[path])
            for path, block in self.blocks.items()
        )
        return map_leaves(self.example, lambda _: next(arrays))

    def flatten(self, values: Any, name: str = "") -> Any:
        """Return values that have this structure as one flat vector (size,).

        Parameters
        ----------
        values : any
            Arrays of floats, or of exact numbers, with the structure and shapes of this tree.
        name : str
            The name of the values in an error. By default the name of the structure.

        Raises
        ------
        StructureError
            If the values have another structure, or an array has another shape.
        """
        name = name or self.name
        arrays = dict(leaves(values, self.name))
        if arrays.keys() != self.shapes.keys():
            raise StructureError(
                f"{name} must have the parts {[*self.shapes]}; got {[*arrays]}"
            )
        for path, shape in self.shapes.items():
            got = np.shape(arrays[path])
            if got != shape:
                raise StructureError(
                    f"{name} must have shape {shape} at {path}; got {got}"
                )
        flat = [np.ravel(arrays[path]) for path in self.shapes]
        if len(flat) == 1:
            return flat[0]
        return np.concatenate(flat)


# --- theta and functions of theta, flattened


def array_or_structure(theta: Any) -> Any:
    """Return theta as an array; return it unchanged if it is a tuple, list or dict of arrays.

    A list of numbers is converted to an array.
    """
    check_plain("theta", theta)
    if not isinstance(theta, tuple | list | dict):
        return np.asarray(theta)
    if isinstance(theta, list) and all(isinstance(x, float | int) for x in theta):
        return np.asarray(theta)
    return theta


def flatten_theta(theta: Any) -> tuple[Array, Tree]:
    """Return a copy of theta as a float64 vector (D,), and its structure.

    ValueError is raised if theta is empty or holds anything but finite float64 numbers.
    """
    theta = array_or_structure(theta)
    tree = Tree.of(theta, "theta")
    for path, leaf in leaves(theta, "theta"):
        check_floats(path, leaf)
    if not tree.size:
        raise ValueError(
            "theta must hold at least one number; got none: there is no derivative"
        )
    return np.array(tree.flatten(theta), float), tree


class FlatArguments(NamedTuple):
    """A function of flat theta, with theta and the names of its coordinates."""

    # function of flat theta that returns a value and a flat gradient
    function: Function
    theta: Array  # (D,) flat theta, a copy
    blocks: Mapping[str, slice]  # named parts of flat theta
    # returns the name of a coordinate by its flat index
    coordinate: Callable[[int], str]


def flatten_arguments(
    value_and_grad: Any, theta: Any, blocks: Any, coordinate: Any
) -> FlatArguments:
    """Return `value_and_grad` as a function of a flat theta, with that theta and its names.

    Parameters
    ----------
    value_and_grad : callable
        Function of theta and further arguments that returns a value and a gradient with the
        structure of theta.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64.
    blocks : mapping of str to slice, or None
        Named parts of flat theta. With None they are the arrays of theta.
    coordinate : callable or None
        Function from an index of flat theta to a name. With None the name is ``block[i]`` if
        `blocks` are given, and the path in the structure otherwise.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type, or is out of range.
    """
    check_callable("value_and_grad", value_and_grad)
    flat, tree = flatten_theta(theta)
    check_blocks(blocks, flat.size)
    if coordinate is not None:
        check_callable("coordinate", coordinate)

    def path_of(i: int) -> str:
        for name, block in (blocks or {}).items():
            coordinates = range(flat.size)[block]
            if i in coordinates:
                return f"{name}[{coordinates.index(i)}]"
        return tree.coordinate(i)

    def of_flat(theta: Any, *arguments: Any) -> Any:
        returned = value_and_grad(tree.unflatten(theta), *arguments)
        check_returned(returned)
        return returned[0], tree.flatten(returned[1], "the gradient")

    is_flat = tree.shapes == {"theta": flat.shape}
    function = value_and_grad if is_flat else of_flat
    return FlatArguments(function, flat, blocks or tree.blocks, coordinate or path_of)


def check_returned(returned: Any, shape: tuple[int, ...] | None = None) -> None:
    """Raise StructureError unless `returned` is a tuple that begins with a number and a gradient.

    Parameters
    ----------
    returned : any
        What `value_and_grad` has returned; results after the gradient may be anything.
    shape : tuple of int, optional
        The shape that the gradient must have, that of theta. By default it may have any.
    """
    if not isinstance(returned, tuple) or len(returned) < 2:
        got = type(returned).__name__
    elif any(map(holds_no_numbers, returned[:2])):
        got = "text or dates"
    elif np.ndim(returned[0]) != 0:
        got = f"a value of shape {np.shape(returned[0])}"
    else:
        got = ""
    if got:
        raise StructureError(
            "value_and_grad must return (value, grad), a single number and an array; got "
            f"{got}. Return the sum of the loss, and its gradient"
        )
    if shape is not None and np.shape(returned[1]) != shape:
        raise StructureError(
            f"the gradient must have the shape {shape} of theta; got {np.shape(returned[1])}"
        )


# --- Jacobians, Hessians and their products with vectors


class ReducedAnswer(NamedTuple):
    """Whether a hand-written Jacobian, Hessian or product is right, from `reduce_to_gradient`."""

    answer: Any  # `Proof` or `Report` on the whole derivative
    n_derivatives: int  # number of derivatives that were compared
    # returns (name, proof or report) for each output of f whose derivatives are wrong
    wrong_rows: Callable[[], list[tuple[str, Any]]] = list


def with_signature(program: Function, function: Function) -> Function:
    """Return `program` with the signature of the user's function, whose arguments proofs name."""
    # functions in C have no signature, and other callables may raise any error
    with suppress(Exception):
        program.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return program


def reduce_to_gradient(
    shape: str,
    f: Function,
    by_hand: Function,
    theta: Any,
    arguments: tuple[Any, ...],
    ask: Function,
    slope_along: Function | None = None,
) -> ReducedAnswer:
    """Prove or check a Jacobian, a Hessian or a product as the gradient of the number u . f.

    u is a random vector of weights for the numbers that f returns.

    Parameters
    ----------
    shape : {'vjp', 'jvp', 'jacobian', 'hvp', 'hessian'}
        What `by_hand` returns.
    f : callable
        Function of theta and the `arguments` that returns numbers. For 'hvp' and 'hessian' it
        returns the gradient, or a value and its gradient, which is then proved or checked first,
        or the value alone if `slope_along` is given.
    by_hand : callable
        The hand-written derivative, a function of the same arguments; a product takes its vector
        after theta.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64.
    arguments : tuple
        The arguments of f after theta.
    ask : callable
        `prove` or `check_gradient` with their options: takes a function that returns a value and a
        gradient, theta and further arguments, and returns a `Proof` or a `Report`.
    slope_along : callable, optional
        Function of f, theta, a direction and the `arguments` that returns the derivative of f along
        the direction, with its own derivative.
    """
    is_second = shape in ("hvp", "hessian")
    check_callable("gradient" if is_second else "f", f)
    check_callable(shape, by_hand)
    flat, tree = flatten_theta(theta)
    returned = f(copy_leaves(theta), *copy_leaves(arguments))
    values = f
    is_pair = isinstance(returned, tuple)
    if is_second and is_pair and Tree.of(returned, "theta").shapes != tree.shapes:
        first = ask(f, theta, *arguments)
        if not first:
            return ReducedAnswer(first, tree.size)
        values = _second_of(f)
        returned = returned[1]
    outputs = Tree.of(returned, "gradient" if is_second else "value")
    weighted = _weighted(values, outputs)
    is_value = [*outputs.shapes.values()] == [()] != [*tree.shapes.values()]
    if is_second and slope_along and is_value:
        outputs = Tree.of(theta, "gradient")
        weighted = _weighted_slope(f, outputs, slope_along)
    rng = np.random.default_rng(0)
    if shape == "vjp":
        program = _vjp_program(weighted, by_hand, outputs)
        n_derivatives = tree.size
    elif shape in ("jvp", "hvp"):
        program = _jvp_program(shape, weighted, by_hand, tree, outputs)
        n_derivatives = outputs.size
        arguments = (*arguments, flat, rng.standard_normal(flat.size))
        theta = np.zeros(1)
        # `blocks` and `coordinate` name numbers of theta, but the variable is now the number s
        ask = partial(ask, blocks=None, coordinate=None)
    else:
        program = _jacobian_program(shape, weighted, by_hand, outputs)
        n_derivatives = outputs.size * tree.size
    program = with_signature(program, f)
    answer = ask(program, theta, *arguments, rng.standard_normal(outputs.size))
    if answer or shape == "vjp" or n_derivatives > MAX_DERIVATIVES_LOCATED:
        return ReducedAnswer(answer, n_derivatives)
    point = copy_leaves((theta, *arguments))

    def wrong_rows() -> list[tuple[str, Any]]:
        rows = []
        for n in range(outputs.size):
            unit = np.eye(1, outputs.size, n, int)[0]
            row = ask(program, *copy_leaves(point), unit)
            if not row:
                rows.append((outputs.coordinate(n), row))
        return rows

    return ReducedAnswer(answer, n_derivatives, wrong_rows)


def _second_of(f: Function) -> Function:
    """Return a function that returns the gradient, where f returns a value and its gradient."""

    def second(theta: Any, *arguments: Any) -> Any:
        return f(theta, *arguments)[1]

    return second


def _weighted(values: Function, outputs: Tree) -> Function:
    """Return a function of (theta, u, arguments) that computes ``u . f(theta, *arguments)``.

    `values` is f, `outputs` the structure of what f returns, and u its vector of weights.
    """

    def weighted(theta: Any, u: Any, arguments: list[Any]) -> Any:
        """Return ``u . f(theta, *arguments)``, a number.

        Parameters
        ----------
        theta : array, or a structure of arrays
            The point.
        u : array, shape (outputs.size,)
            The weights of the numbers that f returns.
        arguments : list
            The arguments of f after theta.
        """
        return (u * outputs.flatten(values(theta, *arguments))).sum()

    return weighted


def _weighted_slope(f: Function, tree: Tree, slope_along: Function) -> Function:
    """Return a function of (theta, u, arguments) for the product of u and the gradient of f.

    The number is computed by `slope_along`, a function of f, theta, u and the arguments. `tree` is
    the structure of theta, and u is flat.
    """

    def weighted(theta: Any, u: Any, arguments: list[Any]) -> Any:
        """Return the derivative of f at theta along u, a number.

        Parameters
        ----------
        theta : array, or a structure of arrays
            The point.
        u : array, shape (tree.size,)
            The direction, flattened.
        arguments : list
            The arguments of f after theta.
        """
        return slope_along(f, theta, tree.unflatten(u), *arguments)

    return weighted


def _vjp_program(weighted: Function, vjp: Function, outputs: Tree) -> Function:
    """Return a function of (theta, *arguments, u) that computes ``u . f(theta)`` and u J.

    `weighted` computes u . f, J is the Jacobian of f, `vjp` the product u J by hand, and `outputs`
    the structure of what f returns.
    """

    def value_and_vjp(theta: Any, *arguments_and_u: Any) -> Any:
        *arguments, u = arguments_and_u
        value = weighted(theta, u, arguments)
        return value, vjp(theta, outputs.unflatten(u), *arguments)

    return value_and_vjp


def _jvp_program(
    shape: str, weighted: Function, jvp: Function, tree: Tree, outputs: Tree
) -> Function:
    """Return a function of (s, *arguments, theta, t, u) for ``u . f(theta + s t)`` and u . J t.

    s has shape (1,) and the tangent t has shape (D,); u . J t is the derivative by s. `weighted`
    computes u . f, J is the Jacobian of f, `jvp` the product J t by hand; `tree` and `outputs` are
    the structures of theta and of what f returns; `shape` is the name of the product in errors.
    """

    def value_and_jvp(s: Any, *arguments_and_point: Any) -> Any:
        *arguments, theta, t, u = arguments_and_point
        first, second = (tree.unflatten(theta + s[0] * t) for _ in range(2))
        slope = jvp(first, tree.unflatten(t), *arguments)
        slope = outputs.flatten(slope, f"the {shape}")
        return weighted(second, u, arguments), (u * slope).sum().reshape(1)

    return value_and_jvp


def _jacobian_program(
    shape: str, weighted: Function, jacobian: Function, outputs: Tree
) -> Function:
    """Return a function of (theta, *arguments, u) that computes ``u . f(theta)`` and u J.

    `weighted` computes u . f, and J is the Jacobian of f, which the hand-written `jacobian`
    returns; `outputs` is the structure of what f returns, and `shape` the name of J in errors.
    """
    rows = outputs.shapes.get(outputs.name)
    if rows is None:
        raise ValueError(
            f"f must return a single array for a {shape}; got arrays at {[*outputs.shapes]}"
        )

    def value_and_product(theta: Any, *arguments_and_u: Any) -> Any:
        *arguments, u = arguments_and_u

        def product(block: Any) -> Any:
            shape_of_block = np.shape(block)
            columns = shape_of_block[len(rows) :]
            if shape_of_block[: len(rows)] != rows:
                raise StructureError(
                    f"the shape of the {shape} must begin with {rows}; got {shape_of_block}"
                )
            return np.matmul(u, np.reshape(block, (outputs.size, -1))).reshape(columns)

        value = weighted(theta, u, arguments)
        return value, map_leaves(jacobian(theta, *arguments), product)

    return value_and_product

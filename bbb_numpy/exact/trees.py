"""Structures of arrays, and every shape of derivative as the gradient of one number (D44).

`prove` and `check` ask the same of a function: a flat theta, one number and its gradient. Dicts,
tuples and lists of arrays are laid out flat. Of a function f of many numbers the product u J with
its Jacobian is the gradient of ``u . f(theta)``, and J t the derivative of ``f(theta + s t)`` by s.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Program", "Tree", "Unlike", "checked_arguments", "copied", "leaves", "within"]

Array = NDArray[Any]
Function = Callable[..., Any]
MANY = 1000  # numbers of a function: of more it is not asked which of them have a wrong derivative


class Unlike(ValueError):
    """A function returns something of another structure or shape than it should."""


# --- structures of arrays


def within(values: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tuple, list or dict of what each entry becomes."""
    if isinstance(values, dict):
        return {key: change(value) for key, value in values.items()}
    made = [change(value) for value in values]
    if isinstance(values, list):
        return made
    return type(values)(*made) if hasattr(values, "_fields") else tuple(made)


def copied(values: Any, sealed: bool = False) -> Any:
    """Return the same with arrays and generators of its own; sealed arrays cannot be written."""
    if isinstance(values, tuple | list | dict):
        return within(values, partial(copied, sealed=sealed))
    if isinstance(values, np.ndarray):
        values = values.copy()
        values.flags.writeable = not sealed
    return copy.deepcopy(values) if isinstance(values, np.random.Generator) else values


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
        return cls(values, what, {path: np.shape(one) for path, one in leaves(values, what)})

    @property
    def size(self) -> int:
        """How many numbers."""
        return sum(map(prod, self.shapes.values()))

    @property
    def blocks(self) -> dict[str, slice]:
        """Where each array lies."""
        ends = np.cumsum([prod(shape) for shape in self.shapes.values()]).tolist()
        starts = [0, *ends]
        return {path: slice(*at) for path, at in zip(self.shapes, zip(starts, ends), strict=False)}

    def name(self, i: int) -> str:
        """Return the path of a number, such as ``W1[0, 2]``."""
        path, at = next((path, at) for path, at in self.blocks.items() if i < at.stop)
        index = ", ".join(map(str, np.unravel_index(i - at.start, self.shapes[path])))
        return f"{path}[{index}]" if index else path

    def grown(self, flat: Any) -> Any:
        """Return the structure of flat numbers: of views of them."""
        parts = (flat[at].reshape(self.shapes[path]) for path, at in self.blocks.items())

        def leaf(value: Any) -> Any:
            nested = isinstance(value, tuple | list | dict)
            return within(value, leaf) if nested else next(parts)

        return leaf(self.like)

    def flat(self, values: Any, whose: str = "") -> Any:
        """Return the numbers of a structure like this one; raise `Unlike` for another."""
        found, whose = dict(leaves(values, self.what)), whose or self.what
        if found.keys() != self.shapes.keys():
            raise Unlike(f"{whose} must have the parts {[*self.shapes]}; got {[*found]}")
        for path, shape in self.shapes.items():
            if np.shape(found[path]) != shape:
                got = np.shape(found[path])
                raise Unlike(f"{whose} has shape {got} at {path}, which must be {shape}")
        parts = [np.ravel(found[path]) for path in self.shapes]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


# --- what is asked of a function


def check_callable(name: str, value: Any) -> None:
    """Raise TypeError unless `value` can be called: a proof would take it for untraceable."""
    if not callable(value):
        raise TypeError(f"{name} must be a function; got {value!r}")


def _array_or_tree(theta: Any) -> Any:
    nested = isinstance(theta, tuple | list | dict)
    numbers = nested and all(isinstance(one, float | int) for one in theta)
    return theta if nested and not (numbers and isinstance(theta, list)) else np.asarray(theta)


def laid_out(theta: Any) -> tuple[Array, Tree]:
    """Return theta flat, and its structure; raise ValueError for what is no theta."""
    theta = _array_or_tree(theta)
    tree = Tree.of(theta, "theta")
    for path, leaf in leaves(theta, "theta"):
        one = np.asarray(leaf)
        if one.dtype.kind == "c":
            raise ValueError(
                f"{path} is complex, and derivatives are asked by real numbers: take its real and "
                "its imaginary part as two arrays, in a dict"
            )
        if one.dtype != np.float64:
            raise ValueError(f"{path} must be a float64 array; got dtype {one.dtype}")
        if not np.isfinite(one).all():
            raise ValueError(f"{path} holds nan or infinity; take a finite point")
    return np.array(tree.flat(theta) if tree.shapes else [], float), tree


def checked_arguments(
    value_and_grad: Any, theta: Any, blocks: Any, coordinate: Any
) -> tuple[Function, Array, Mapping[str, slice], Callable[[int], str]]:
    """Return function and theta laid flat, its blocks and the names of its coordinates."""
    check_callable("value_and_grad", value_and_grad)
    flat, tree = laid_out(theta)
    named: dict[int, str] = {}
    for name, where in (blocks or {}).items():
        if not isinstance(where, slice) or max(where.start or 0, where.stop or 0) > flat.size:
            raise ValueError(
                f"blocks must map names to slices of theta, {flat.size} numbers; got "
                f"{name!r}: {where!r}"
            )
        named |= {i: f"{name}[{k}]" for k, i in enumerate(range(flat.size)[where])}

    def of_flat(theta: Any, *arguments: Any) -> Any:
        returned = value_and_grad(tree.grown(theta), *arguments)
        check_returned(returned)
        return returned[0], tree.flat(returned[1], "the gradient")

    bare = tree.shapes == {"theta": flat.shape}
    name = coordinate or (lambda i: named.get(i) or tree.name(i))
    return value_and_grad if bare else of_flat, flat, blocks or tree.blocks, name


def check_returned(returned: Any, shape: tuple[int, ...] | None = None) -> None:
    """Raise ValueError unless this is a number and a gradient of the shape of theta."""
    if not isinstance(returned, tuple) or len(returned) < 2 or np.ndim(returned[0]) != 0:
        raise Unlike(
            "value_and_grad must return (value, grad), a single number and an array; got "
            f"{type(returned).__name__}. Return the sum of the loss, and its gradient"
        )
    if shape is not None and np.shape(returned[1]) != shape:
        raise Unlike(f"the gradient has shape {np.shape(returned[1])}, theta has {shape}")


# --- derivatives of other shapes


class Program(NamedTuple):
    """A derivative as the gradient of one number, ``u . f``, with random weights u."""

    value_and_grad: Function  # of theta, u, what else is random, and the arguments
    theta: Any
    weights: Array  # u
    of: Tree  # the numbers of f
    vjp: bool = False  # whether u is an argument of what is asked
    more: tuple[Array, ...] = ()
    along: bool = False  # whether theta is the s of f(theta + s t)

    @property
    def count(self) -> int:
        """How many derivatives there are."""
        size = 1 if self.along else Tree.of(self.theta, "theta").size
        return size if self.vjp else size * self.of.size

    def each(self, ask: Callable[[Array], Any]) -> tuple[Any, list[tuple[str, Any]]]:
        """Return the answer for u, and if it is no, those for each number of f that are no."""
        answer, size = ask(self.weights), self.of.size
        if answer or self.vjp or self.count > MANY:
            return answer, []
        units = ((self.of.name(n), ask(np.eye(1, size, n, int)[0])) for n in range(size))
        return answer, [(name, one) for name, one in units if not one]

    def name(self, number: str, coordinate: str) -> str:
        """Return what the derivative of a number of f by a coordinate is called."""
        return number if self.along else f"{number} by {coordinate}"


def of_vjp(f: Function, vjp: Function, theta: Any, arguments: tuple[Any, ...]) -> Program:
    """Return u J as the gradient of u . f."""
    check_callable("vjp", vjp)
    of, draw = _probed(f, theta, arguments)

    def value_and_grad(theta: Any, u: Any, *arguments: Any) -> Any:
        return (u * of.flat(f(theta, *arguments))).sum(), vjp(theta, of.grown(u), *arguments)

    return Program(value_and_grad, theta, draw(of.size), of, vjp=True)


def of_jvp(
    f: Function, jvp: Function, theta: Any, arguments: tuple[Any, ...], what: str = "jvp"
) -> Program:
    """Return J t as the derivative of f(theta + s t) by s: theta moves along the t that is given."""
    check_callable(what, jvp)
    of, draw = _probed(f, theta, arguments)
    flat, tree = laid_out(theta)

    def value_and_grad(s: Any, u: Any, theta: Any, t: Any, *arguments: Any) -> Any:
        def there() -> Any:
            return tree.grown(theta + s[0] * t)

        slope = of.flat(jvp(there(), tree.grown(t), *arguments), what)
        value = (u * of.flat(f(there(), *arguments))).sum()
        return value, (u * slope).sum().reshape(1)

    more = flat, draw(flat.size)
    return Program(value_and_grad, np.zeros(1), draw(of.size), of, more=more, along=True)


def of_jacobian(
    f: Function, jacobian: Function, theta: Any, arguments: tuple[Any, ...], what: str = "jacobian"
) -> Program:
    """Return u J as the gradient of u . f, where J is given."""
    check_callable(what, jacobian)
    of, draw = _probed(f, theta, arguments)
    shape = np.shape(of.like)
    if isinstance(of.like, tuple | list | dict):
        raise ValueError(f"a {what} is one array for each array of theta: f must return an array")

    def value_and_grad(theta: Any, u: Any, *arguments: Any) -> Any:
        def weighted(part: Any) -> Any:
            if isinstance(part, tuple | list | dict):
                return within(part, weighted)
            if np.shape(part)[: len(shape)] != shape:
                raise Unlike(f"the {what} has shape {np.shape(part)}, which must begin with that "
                             f"of the values, {shape}, and end with that of theta")  # fmt: skip
            rest = np.shape(part)[len(shape) :]
            return np.matmul(u, np.reshape(part, (of.size, -1))).reshape(rest)

        value = (u * of.flat(f(theta, *arguments))).sum()
        return value, weighted(jacobian(theta, *arguments))

    return Program(value_and_grad, theta, draw(of.size), of)


def gradient_of(
    function: Function, theta: Any, arguments: tuple[Any, ...]
) -> tuple[Function, bool]:
    """Return what gives the gradient, and whether `function` gives the value with it."""
    check_callable("gradient", function)
    returned = function(copied(theta), *copied(arguments))
    alike = dict(leaves(returned, "theta")).keys() == Tree.of(theta, "theta").shapes.keys()
    if alike or not isinstance(returned, tuple):
        return function, False
    return (lambda theta, *arguments: function(theta, *arguments)[1]), True


def _probed(
    f: Function, theta: Any, arguments: tuple[Any, ...]
) -> tuple[Tree, Callable[[int], Array]]:
    """Return the structure of what a function returns, and what draws numbers."""
    check_callable("f", f)
    laid_out(theta)
    returned = f(copied(theta), *copied(arguments))
    return Tree.of(returned, "value"), np.random.default_rng(0).standard_normal

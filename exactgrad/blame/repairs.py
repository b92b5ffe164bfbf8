"""Changes of a single operation, one of which may make a wrong gradient right (D44)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..trace.arrays import UFUNCS, Exact, lift
from .steps import Operation

__all__ = ["Repair", "repairs", "repairs_by"]

SYMBOLS = {
    "multiply": "*",
    "divide": "/",
    "add": "+",
    "subtract": "-",
    "power": "**",
}
VERBS = {
    "times": "multiply",
    "divided by": "divide",
    "plus": "add",
    "minus": "subtract",
}
# Functions whose second argument is an axis
POSITIONAL_AXIS = ("sum", "mean", "prod", "max", "min", "std", "var")


class Repair(NamedTuple):
    """Another result of an operation."""

    words: str  # what is changed, such as "with * in place of /"
    compute: Callable[[], Any]  # returns the other result
    # 2 for another operation, 1 for what only changes a sign, 0 for a factor
    specificity: int = 0
    # whether the result has another shape
    reshapes: bool = False


def repairs(operation: Operation) -> Iterator[Repair]:
    """Yield changes of an operation: another operator, operand, constant, axis, order or factor.

    Some of them cannot be computed, or give a result that the function cannot use.
    """
    result = operation.result
    yield from _of_operator(operation)
    yield from _of_constant(operation)
    yield from _of_axis(operation)
    inputs = operation.inputs
    arrays = [x for x in inputs if type(x) is Exact]
    if len(inputs) == 1 and arrays:
        x = arrays[0]
        yield Repair("left out", partial(_broadcast, x, result), 2)
        function = partial(operation.function, **operation.options)
        yield Repair("of minus its argument", lambda: function(-x), 1)
    if result.ndim > 1:
        yield Repair("transposed", lambda: result.T.reshape(result.shape), 2)
    yield Repair("with the other sign", lambda: -result, 1)
    sizes = {2, *(n for x in (*arrays, result) for n in (*x.shape, x.size))}
    for n in sorted(sizes - {0, 1}):
        yield Repair(f"divided by {n}", partial(UFUNCS["divide"], result, n))
        yield Repair(f"times {n}", partial(UFUNCS["multiply"], result, n))
    yield Repair("squared", lambda: result * result)
    yield Repair("inverted", partial(UFUNCS["divide"], 1, result))


def repairs_by(
    operation: Operation, known: dict[str, Exact], uncertain: dict[str, Exact]
) -> Iterator[Repair]:
    """Yield changes of an operation by results of earlier steps.

    Parameters
    ----------
    operation : Operation
        The operation.
    known : dict
        Earlier results that are right or unused, by words for them.
    uncertain : dict
        Other earlier results, which replace operands of their shape only.
    """
    result = operation.result
    for words, x in uncertain.items():
        for i, side in enumerate(("left", "right")[: len(operation.inputs)]):
            operand = operation.inputs[i]
            if type(operand) is Exact and operand.shape == x.shape:
                changed = [*operation.inputs]
                changed[i] = x
                compute = partial(operation.function, *changed, **operation.options)
                yield Repair(f"with {words} as its {side} operand", compute, 1)
    for words, x in known.items():
        lengths = zip(x.shape[::-1], result.shape[::-1], strict=False)
        if x.ndim > result.ndim or any(n not in (1, m) for n, m in lengths):
            continue
        for verb, name in VERBS.items():
            yield Repair(f"{verb} {words}", partial(UFUNCS[name], result, x))
        for i in range(2 * (operation.name in SYMBOLS)):
            inputs = (x, operation.inputs[1]) if i == 0 else (operation.inputs[0], x)
            side = ("left", "right")[i]
            compute = partial(operation.function, *inputs)
            yield Repair(f"with {words} as its {side} operand", compute, 1)


def _broadcast(x: Any, result: Exact) -> Exact:
    """Return x as an exact array of the shape of a result."""
    zeros: Exact = lift(np.zeros(result.shape, int), result.field)
    return zeros + x


def _of_operator(operation: Operation) -> Iterator[Repair]:
    """Yield repairs with other operators and operands."""
    name, function, inputs, options, result = operation
    if name == "concatenate":
        parts = [*inputs[0]]
        for i in range(len(parts) - 1):
            order = [*parts]
            order[i : i + 2] = parts[i + 1], parts[i]
            words = f"with parts {i} and {i + 1} exchanged"
            yield Repair(words, partial(function, order, **options), 2)
        yield Repair("in reverse order", partial(function, parts[::-1], **options), 2)
    if len(inputs) != 2 or name not in (*SYMBOLS, "matmul"):
        return
    x, y = inputs
    for other, symbol in SYMBOLS.items():
        if other != name and name in SYMBOLS:
            words = f"with {symbol} in place of {SYMBOLS[name]}"
            yield Repair(words, partial(UFUNCS[other], x, y), 2)
    exchanged = partial(function, y, x)
    specificity = 1 if name == "subtract" else 2
    yield Repair("with its operands exchanged", exchanged, specificity)
    if name == "matmul":
        transposed = [partial(np.swapaxes, z, -1, -2) for z in (x, y)]
        words = "with its {} operand transposed"
        yield Repair(words.format("left"), lambda: function(transposed[0](), y), 2)
        yield Repair(words.format("right"), lambda: function(x, transposed[1]()), 2)
        return
    for side, other, z in (("right", x, y), ("left", y, x)):
        words = f"without its {side} operand"
        # a constant that is left out is a factor
        specificity = 2 if type(z) is Exact else 0
        yield Repair(words, partial(_broadcast, other, result), specificity)
        z = lift(z, result.field)
        pair = (z * z, other) if side == "left" else (other, z * z)
        yield Repair(f"with its {side} operand squared", partial(function, *pair), 2)


def _of_constant(operation: Operation) -> Iterator[Repair]:
    """Yield repairs with other numbers in place of constants."""
    name, function, inputs, options, _ = operation
    for i, c in enumerate(() if name in POSITIONAL_AXIS else inputs):
        if type(c) not in (int, float):
            continue
        others = [c + 1, c - 1]
        if name not in ("multiply", "divide"):
            others += [-c, 2 * c, c / 2]
        for other in others:
            changed = (*inputs[:i], other, *inputs[i + 1 :])
            compute = partial(function, *changed, **options)
            yield Repair(f"with {other} in place of {c}", compute, 2)


def _of_axis(operation: Operation) -> Iterator[Repair]:
    """Yield repairs of sums and the like over another axis, or that keep it."""
    name, function, inputs, options, _ = operation
    if name in POSITIONAL_AXIS and len(inputs) == 2:
        options = {**options, "axis": inputs[1]}
        inputs = inputs[:1]
    if type(options.get("axis")) is not int or type(inputs[0]) is not Exact:
        return
    for other in range(inputs[0].ndim):
        for keeps in (False, 2):
            changed = {**options, "axis": other}
            if keeps:
                changed["keepdims"] = True
            words = f"with axis={other}" + ", keepdims=True" * keeps
            compute = partial(function, *inputs, **changed)
            yield Repair(words, compute, 2, reshapes=True)

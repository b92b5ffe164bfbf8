"""Whether forward and backward are pure functions of their arguments, whatever buffers they reuse.

A `Pass` is one computation on fixed arguments. `faults` lets it run alone, between the halves of
another one, in that one's buffers and in buffers full of nan, and names what came out otherwise.
"""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from bbb_numpy.numeric.buffers import Buffers


def nothing(saved, buffers):
    """Return no gradients: the backward pass of a forward pass that has none."""
    return ()


class Pass(NamedTuple):
    """Forward and backward; `arguments`, and what both return, are nested tuples and dicts."""

    arguments: Any  # every array that goes in
    forward: Callable[[Buffers], Any]  # to all that is found and all that is saved
    backward: Callable[[Any, Buffers], Any] = nothing  # from that to the gradients


def leaves(nested):
    """Return all arrays and numbers of nested tuples, lists and dicts."""
    if isinstance(nested, dict):
        nested = tuple(nested.values())
    if isinstance(nested, tuple | list):
        return [leaf for part in nested for leaf in leaves(part)]
    return [] if nested is None else [nested]


def bits(nested):
    """Return what two results must share to be called the same: dtype, shape and bytes of each."""
    arrays = [np.asarray(leaf) for leaf in leaves(nested)]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


@contextmanager
def sealed(nested):
    """Make all arrays read-only for a while: who writes to one gets a ValueError."""
    mine = [a for a in leaves(nested) if isinstance(a, np.ndarray) and a.flags.writeable]
    for array in mine:
        array.flags.writeable = False
    try:
        yield
    finally:
        for array in sorted(mine, key=lambda array: array.base is not None):  # views come last
            array.flags.writeable = True


def soil(buffers, number=np.nan):
    """Hand the buffers on for another turn, the number in all their memory."""
    for array in buffers.rewind()._arrays:
        array.fill(number)
    return buffers


def alone(computation):
    """Return the bits that forward and backward give in fresh buffers of their own."""
    buffers = Buffers()
    saved = computation.forward(buffers)
    forward_bits = bits(saved)
    return forward_bits, bits(computation.backward(saved, buffers))


class Known(NamedTuple):
    """A pass, and the bits that it gives alone."""

    run: Pass
    forward: list
    backward: list


def writes_to_nothing_that_was_given(tested, neighbour):
    bits_before = bits(tested.run.arguments)
    with sealed(tested.run.arguments):
        saved = tested.run.forward(Buffers())
        with sealed(saved):
            tested.run.backward(saved, Buffers())
    yield bits(tested.run.arguments), bits_before
    yield bits(saved), tested.forward


def can_be_pulled_back_twice(tested, neighbour):
    buffers = Buffers()
    saved = tested.run.forward(buffers)
    for _ in range(2):
        yield bits(tested.run.backward(saved, buffers)), tested.backward


def is_not_disturbed_in_between(tested, neighbour):
    """Run both orders of the backward passes in the same buffers."""
    for second in (False, True):
        buffers = Buffers()
        pairs = [
            (computation, computation.run.forward(buffers)) for computation in (tested, neighbour)
        ]
        for computation, saved in reversed(pairs) if second else pairs:
            yield bits(saved), computation.forward
            yield bits(computation.run.backward(saved, buffers)), computation.backward
        for computation, saved in pairs:
            yield bits(saved), computation.forward


def can_be_pulled_back_in_other_buffers(tested, neighbour):
    saved = tested.run.forward(Buffers())
    used_buffers = Buffers()
    neighbour.run.backward(neighbour.run.forward(used_buffers), used_buffers)
    for buffers in (used_buffers, soil(used_buffers), Buffers()):
        yield bits(tested.run.backward(saved, buffers)), tested.backward


def does_not_see_who_was_there_before(tested, neighbour):
    """Run after either of two numbers: fresh memory may by chance hold one of them, too."""
    buffers = Buffers()
    for index, computation in enumerate((tested, neighbour, neighbour, tested, tested, neighbour)):
        saved = computation.run.forward(soil(buffers, (np.nan, 7.0)[index % 2]))
        yield bits(saved), computation.forward
        yield bits(computation.run.backward(saved, buffers)), computation.backward


CHECKS = (
    writes_to_nothing_that_was_given,
    can_be_pulled_back_twice,
    is_not_disturbed_in_between,
    can_be_pulled_back_in_other_buffers,
    does_not_see_who_was_there_before,
)


def faults(tested, neighbour):
    """Return the `CHECKS` that a pass fails beside another, each with its error if any."""
    alone_results = [Known(computation, *alone(computation)) for computation in (tested, neighbour)]
    fault_by_check = {}
    for check in CHECKS:
        try:
            right = all(bits_here == bits_alone for bits_here, bits_alone in check(*alone_results))
        except Exception as error:  # alone, both run through
            fault_by_check[check.__name__] = repr(error)
        else:
            if not right:
                fault_by_check[check.__name__] = "other bits"
    return fault_by_check


def blank(blocks):
    """Return arrays for gradients, of which every number has to be written."""
    return {name: np.full_like(block, np.nan) for name, block in blocks.items()}

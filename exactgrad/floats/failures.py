"""Describe the inputs at which a function loses digits: the simplest ones, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sources import line_in_words, source_line
from .cures import cure_of
from .inputs import Drawer
from .judgement import N_BESIDE, Judge, Loss
from .lines import line_of_loss
from .numbers import Point
from .shrinking import shrink

__all__ = ["Failure", "find_failures"]

Array = NDArray[Any]
Category = tuple[bool, ...]  # whether results are values, and whether they are finite
N_BESIDE_WHILE_SHRINKING = 4  # fewer roundings are tried, and all of them at the end
MAX_SHRINKING_RUNS = 60  # inputs that are tried to make a failing one simpler
MANY_DIGITS = 4  # losses that differ by fewer digits are about equal


@dataclass(frozen=True)
class Failure:
    """An input for which a function loses digits.

    Attributes
    ----------
    name : str
        The result that is wrong: ``value``, ``value[2]`` or ``derivative by theta[0]``.
    theta : ndarray, or a dict, tuple or list of arrays
        The smallest theta found at which this happens.
    data : tuple
        The data after theta.
    digits_lost : float
        Number of decimal digits lost beyond those that the rounding of the input costs. A float64
        has 15.7, a float32 6.9, a float16 3.
    computed, exact : float
        What the function returns in floats, and what is right.
    line : str
        The first line whose result lost its digits, such as ``line 3 of loss.py, `...```.
    cure : str
        What to write instead; empty if no pattern of the line is known.
    """

    name: str
    theta: Any
    data: tuple[Any, ...]
    digits_lost: float
    computed: float
    exact: float
    line: str
    cure: str

    def __str__(self) -> str:
        n_digits = 7
        if f"{self.computed:.7g}" == f"{self.exact:.7g}":
            n_digits = 17
        values = f"{self.computed:.{n_digits}g}, right {self.exact:.{n_digits}g}"
        arguments = ", ".join(map(to_text, (self.theta, *self.data)))
        lines = [
            f"at {arguments}",
            f"  {self.name} is {values}; digits lost: {self.digits_lost:.0f}",
            f"  look at {self.line}" * bool(self.line),
            f"  write {self.cure}" * bool(self.cure),
        ]
        return "\n".join(filter(None, lines))


def to_text(values: Any) -> str:
    """Return values as text that can be pasted, such as ``np.array([0.5], np.float32)``."""
    if isinstance(values, dict):
        items = [f"{key!r}: {to_text(item)}" for key, item in values.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(values, tuple | list):
        return f"({', '.join(map(to_text, values))},)"
    if not isinstance(values, np.ndarray):
        return repr(values)
    if values.dtype.kind != "f" or values.dtype == float:
        return f"np.array({values.tolist()})"
    # the shortest text of a float32 is read as a float64, whose text is short, too
    return f"np.array({values.astype(str).astype(float).tolist()}, np.{values.dtype})"


def find_failures(
    judge: Judge, drawer: Drawer, losses: list[tuple[Point, Loss]]
) -> tuple[Failure, ...]:
    """Return a failure of each category, made small, the one that loses most digits first.

    A failure is of the value or of a derivative, which is a number or infinite or nan.

    Parameters
    ----------
    judge : Judge
        Measures the loss at simpler points.
    drawer : Drawer
        Accepts points of the domain, and has the caller's point, whose data are the simplest.
    losses : list of (Point, Loss)
        The points that were tried, and the losses there.
    """
    failures = []
    for category in product((True, False), repeat=2):
        cases = [(point, _digits(judge, loss, category)) for point, loss in losses]
        failed = [(point, digits) for point, digits in cases if digits.any()]
        if failed:
            point, digits = min(failed, key=lambda case: _complexity(*case))
            least = digits.max() / 2
            failures.append(
                _failure(
                    judge, _shrunk(judge, drawer, point, category, least), category
                )
            )
    return tuple(sorted(failures, key=lambda failure: -failure.digits_lost))


def _digits(judge: Judge, loss: Loss | None, category: Category) -> Array:
    """Return the digits (n,) lost by results of one category; 0 for others and without a loss.

    Parameters
    ----------
    judge : Judge
        Knows which results are values.
    loss : Loss or None
        The loss at a point.
    category : tuple of bool
        Whether the results are values, and whether they are finite.
    """
    if loss is None:
        return np.zeros(1)
    is_value = np.arange(len(loss.digits)) < judge.n_values
    is_chosen = (is_value == category[0]) & (np.isfinite(loss.computed) == category[1])
    return np.where(is_chosen, loss.digits, 0.0)


def _shrunk(
    judge: Judge, drawer: Drawer, point: Point, category: Category, least: float
) -> Point:
    """Return the simplest point found at which results of a category lose `least` digits or more.

    Parameters
    ----------
    judge : Judge
        Measures the loss.
    drawer : Drawer
        Accepts points of the domain, and has the caller's point.
    point : Point
        The point at which the search begins.
    category : tuple of bool
        Whether the results are values, and whether they are finite.
    least : float
        Number of digits.
    """

    def still_fails(simpler: Point, n_beside: int = N_BESIDE_WHILE_SHRINKING) -> bool:
        if not drawer.accepts(simpler.theta):
            return False
        digits = _digits(judge, judge.loss(simpler, n_beside), category)
        return bool(digits.max() >= least)

    small = shrink(point, drawer.first.data, still_fails, MAX_SHRINKING_RUNS)
    return small if still_fails(small, N_BESIDE) else point


def _complexity(point: Point, digits: Array) -> tuple[Any, ...]:
    """Return what to sort by, so that great losses of few numbers of usual sizes come first."""
    sizes = np.abs(point.theta[point.theta != 0]).astype(float)
    n_losses = -int(digits.max() / MANY_DIGITS)
    return (
        n_losses,
        len(np.unique(sizes)),
        float(np.abs(np.log10(sizes)).max(initial=0)),
    )


def _failure(judge: Judge, point: Point, category: Category) -> Failure:
    """Return the failure at a point: of results of one category the worst, and its line."""
    loss = judge.loss(point)
    assert loss is not None
    lost = _digits(judge, loss, category)
    i = int(lost.argmax())
    tree = judge.program.tree
    is_value = i < judge.n_values
    name = "value"
    if not is_value:
        name = f"derivative by {tree.coordinate(i - judge.n_values)}"
    elif judge.n_values > 1:
        name = f"value[{i}]"
    file, number, position = line_of_loss(judge, point, lost[i] / 2, is_value)
    words = line_in_words(file, number)
    return Failure(
        name=name,
        theta=tree.unflatten(point.theta),
        data=point.data,
        digits_lost=float(lost[i]),
        computed=float(loss.computed[i]),
        exact=float(loss.exact[i]),
        line=words * bool(source_line(file, number)),
        cure=cure_of(file, number, position),
    )

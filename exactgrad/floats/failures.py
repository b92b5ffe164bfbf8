"""Describe the inputs at which a function loses digits: the simplest ones, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .judgement import Judge, Loss
from .numbers import Point
from .shrinking import shrink

__all__ = ["Failure", "find_failures"]

MAX_SHRINKING_RUNS = 60  # inputs that are tried to make a failing one simpler


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
    text : str
        The arguments as text that can be pasted.
    """

    name: str
    theta: Any
    data: tuple[Any, ...]
    digits_lost: float
    computed: float
    exact: float
    line: str = ""
    cure: str = ""
    text: str = ""

    def __str__(self) -> str:
        lines = [
            f"at {self.text}",
            f"  {self.name} is {self.computed:.10g}, right {self.exact:.10g}: "
            f"{self.digits_lost:.0f} digits lost",
        ]
        if self.line:
            lines.append(f"  look at {self.line}")
        if self.cure:
            lines.append(f"  write {self.cure}")
        return "\n".join(lines)


class FailureType(NamedTuple):
    """In which way a result is wrong; one failure of each type is described."""

    is_value: bool  # whether it is a value, not a derivative
    is_finite: bool  # whether it is a number, not infinite or nan

    @classmethod
    def of(cls, judge: Judge, loss: Loss) -> FailureType:
        """Return the type of the result that has lost most digits."""
        i = loss.worst
        return cls(judge.is_value(i), bool(np.isfinite(loss.computed[i])))


def find_failures(
    judge: Judge, first: Point, failed: list[tuple[Point, Loss]]
) -> tuple[Failure, ...]:
    """Return a failure of each type, made small, the one that loses most digits first.

    Parameters
    ----------
    judge : Judge
        Measures the loss at simpler points.
    first : Point
        The caller's point.
    failed : list of (Point, Loss)
        Points at which digits are lost, and the losses there.
    """
    simplest: dict[FailureType, tuple[Point, Loss]] = {}
    for point, loss in sorted(failed, key=lambda pair: _complexity(pair[0])):
        simplest.setdefault(FailureType.of(judge, loss), (point, loss))
    failures = [
        _failure(judge, _shrunk(judge, first, *pair), first)
        for pair in simplest.values()
    ]
    return tuple(sorted(failures, key=lambda failure: -failure.digits_lost))


def _shrunk(judge: Judge, first: Point, point: Point, loss: Loss) -> Point:
    """Return the simplest point found that fails in the same way and loses half of the digits.

    Parameters
    ----------
    judge : Judge
        Measures the loss.
    first : Point
        The caller's point, whose data are the simplest.
    point, loss : Point, Loss
        The point at which the search begins, and the loss there.
    """
    failure_type = FailureType.of(judge, loss)
    least = loss.digits.max() / 2

    def still_fails(simpler: Point) -> bool:
        new_loss = judge.confirmed_loss(simpler)
        if new_loss is None or new_loss.digits.max() < least:
            return False
        return FailureType.of(judge, new_loss) == failure_type

    return shrink(point, first.data, still_fails, MAX_SHRINKING_RUNS)


def _complexity(point: Point) -> tuple[int, float]:
    """Return what to sort points by, so that few numbers of usual sizes come first."""
    sizes = np.abs(point.theta[point.theta != 0]).astype(float)
    return len(np.unique(sizes)), float(np.abs(np.log10(sizes)).max(initial=0.0))


def _failure(judge: Judge, point: Point, first: Point) -> Failure:
    """Return the failure at a point; data are printed if they are not those of `first`."""
    loss = judge.confirmed_loss(point)
    assert loss is not None
    i = loss.worst
    program = judge.program
    n_values = len(loss.exact) - program.n_derivatives
    if judge.is_value(i):
        name = "value" if n_values == 1 else f"value[{i}]"
    else:
        name = f"derivative by {program.tree.coordinate(i - n_values)}"
    theta = program.tree.unflatten(point.theta)
    values = [theta, *(point.data if repr(point.data) != repr(first.data) else ())]
    text = ", ".join(judge.limits.to_text(value) for value in values)
    return Failure(
        name,
        theta,
        point.data,
        float(loss.digits[i]),
        float(loss.computed[i]),
        float(loss.exact[i]),
        text=text,
    )

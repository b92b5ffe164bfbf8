"""Describe the inputs at which a function loses digits: the simplest ones, and what is wrong."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .cures import cure_of
from .judgement import Judge, Loss
from .lines import line_of_loss
from .numbers import Point
from .shrinking import shrink

__all__ = ["Failure", "find_failures"]

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
    judge: Judge, first: Point, failed: list[tuple[Point, Loss]]
) -> tuple[Failure, ...]:
    """Return a failure of each type, made small, the one that loses most digits first.

    A failure is of the value or of a derivative, which is finite or not.

    Parameters
    ----------
    judge : Judge
        Measures the loss at simpler points.
    first : Point
        The caller's point, whose data are the simplest.
    failed : list of (Point, Loss)
        Points at which digits are lost, and the losses there.
    """

    def failure_type(loss: Loss) -> tuple[bool, bool]:
        is_finite = bool(np.isfinite(loss.computed[loss.worst]))
        return loss.worst < judge.n_values, is_finite

    simplest: dict[Any, tuple[Point, Loss]] = {}
    for point, loss in sorted(failed, key=lambda pair: _complexity(*pair)):
        simplest.setdefault(failure_type(loss), (point, loss))
    failures = []
    for kept_type, (point, loss) in simplest.items():

        def still_fails(
            simpler: Point, kept: Any = kept_type, least: float = loss.digits.max() / 2
        ) -> bool:
            new = judge.loss(simpler, N_BESIDE_WHILE_SHRINKING)
            return (
                new is not None
                and new.digits.max() > least
                and failure_type(new) == kept
            )

        small = shrink(point, first.data, still_fails, MAX_SHRINKING_RUNS)
        small_loss = judge.loss(small)
        if small_loss is not None and small_loss.digits.any():
            point, loss = small, small_loss
        failures.append(_failure(judge, point, loss))
    return tuple(sorted(failures, key=lambda failure: -failure.digits_lost))


def _complexity(point: Point, loss: Loss) -> tuple[Any, ...]:
    """Return what to sort by, so that great losses of few numbers of usual sizes come first."""
    sizes = np.abs(point.theta[point.theta != 0]).astype(float)
    n_losses = -int(loss.digits.max() / MANY_DIGITS)
    return (
        n_losses,
        len(np.unique(sizes)),
        float(np.abs(np.log10(sizes)).max(initial=0)),
    )


def _failure(judge: Judge, point: Point, loss: Loss) -> Failure:
    """Return the failure at a point, where there is a loss: its worst result, and the line."""
    i = loss.worst
    is_value = i < judge.n_values
    tree = judge.program.tree
    name = f"value[{i}]" if judge.n_values > 1 else "value"
    if not is_value:
        name = f"derivative by {tree.coordinate(i - judge.n_values)}"
    digits = float(loss.digits[i])
    file, number, position = line_of_loss(judge, point, digits / 2, is_value)
    code = linecache.getline(file, number).strip()
    return Failure(
        name=name,
        theta=tree.unflatten(point.theta),
        data=point.data,
        digits_lost=digits,
        computed=float(loss.computed[i]),
        exact=float(loss.exact[i]),
        line=f"line {number} of {Path(file).name}, `{code}`" * bool(code),
        cure=cure_of(file, number, position),
    )

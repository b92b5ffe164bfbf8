"""Peak memory of one training step against S (P + B width), as tracemalloc counts it."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

from . import ours
from .problems import Problem

# One axis grows at a time: samples, rows, width.
GROWTH = tuple(
    Problem(sizes, rows, samples)
    for sizes, rows, samples in (
        ((8, 64, 64, 1), 64, 1),
        ((8, 64, 64, 1), 64, 4),
        ((8, 64, 64, 1), 64, 16),
        ((8, 64, 64, 1), 64, 64),
        ((8, 64, 64, 1), 256, 16),
        ((8, 64, 64, 1), 1024, 16),
        ((8, 64, 64, 1), 4096, 16),
        ((8, 128, 128, 1), 64, 16),
        ((8, 256, 256, 1), 64, 16),
        ((8, 512, 512, 1), 64, 16),
    )
)


class Peak(NamedTuple):
    """Bytes that one step holds at its worst moment, and the unit they are judged in."""

    problem: Problem
    bytes: int
    unit: int  # 4 S (P + B * sum of widths): one float32 copy of all weights and activations

    @property
    def copies(self) -> float:
        """How many such copies the step holds: bounded by a constant, whatever grows."""
        return self.bytes / self.unit


def peak(problem: Problem) -> Peak:
    """Measure the first step with fresh buffers; theta, Adam's memory and rows not counted."""
    step = ours.step(problem, problem.start().theta)
    tracemalloc.start()
    try:
        step()
        size = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    widths = sum(problem.sizes[1:])
    return Peak(problem, size, 4 * problem.samples * (problem.weights + problem.rows * widths))


def table(peaks: list[Peak]) -> list[list[str]]:
    """Return the rows of the printed table, header first."""
    head = ["network", "rows", "S", "peak bytes", "4 S (P + B widths)", "peak / that"]
    return [head] + [
        [
            p.problem.name,
            str(p.problem.rows),
            str(p.problem.samples),
            f"{p.bytes:,}",
            f"{p.unit:,}",
            f"{p.copies:.2f}",
        ]
        for p in peaks
    ]

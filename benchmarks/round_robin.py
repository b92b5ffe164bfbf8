"""Fair timing: contestants in turn, many rounds, ratios within each round."""

from __future__ import annotations

import random
from collections.abc import Mapping
from time import perf_counter, sleep
from typing import NamedTuple

import numpy as np

from .problems import Array, Step


class Pace(NamedTuple):
    """How long to measure."""

    rounds: int  # turns of every contestant
    seconds: float  # timed steps of one turn together
    # Thread pools spin for up to 30 ms after their last work; a pause before each turn keeps
    # the threads of one contestant out of the time of the next.
    pause: float = 0.05


class Spread(NamedTuple):
    """Quartiles over the rounds."""

    q1: float
    median: float
    q3: float


def spread(values: Array) -> Spread:
    """Return the quartiles of `values`."""
    return Spread(*(float(q) for q in np.quantile(values, (0.25, 0.5, 0.75))))


def turn(step: Step, pace: Pace) -> float:
    """Return the median time of a step (seconds) in one turn of many steps.

    The turn begins with untimed steps that bring caches and threads back.
    """
    sleep(pace.pause)
    _times(step, 0.2 * pace.seconds)
    return float(np.median(_times(step, pace.seconds)))


def _times(step: Step, seconds: float) -> list[float]:
    times: list[float] = []
    start = previous = perf_counter()
    while len(times) < 3 or previous - start < seconds:
        step()
        now = perf_counter()
        times.append(now - previous)
        previous = now
    return times


def race(contestants: Mapping[str, Step], pace: Pace) -> dict[str, Array]:
    """Return the time of a step (seconds), one number per round (rounds,), per contestant.

    The order changes from round to round, so that nobody always follows the same other.
    """
    order, shuffle = list(contestants), random.Random(0).shuffle
    for step in contestants.values():  # compile, allocate
        step()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(pace.rounds):
        shuffle(order)
        for name in order:
            times[name].append(turn(contestants[name], pace))
    return {name: np.array(values) for name, values in times.items()}


def fastest(contestants: Mapping[str, Step], pace: Pace) -> tuple[str, dict[str, float]]:
    """Return the name with the smallest median in a short race, and all medians (seconds)."""
    medians = {name: float(np.median(t)) for name, t in race(contestants, pace).items()}
    return min(medians, key=lambda name: medians[name]), medians

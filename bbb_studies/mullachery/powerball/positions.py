"""Where the numbers of a draw lie: unsorted, in the five sorted bins, and the Powerball (D37)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_studies.data import powerball as data

__all__ = ["Position", "dispersion", "positions"]

Array = NDArray[Any]


class Position(NamedTuple):
    """The numbers at one position of all draws, and how the rules spread them."""

    name: str
    seen: NDArray[np.int_]  # (L,)
    mass: Array  # (N + 1,)  P(number), over the rules of these draws

    @property
    def mean(self) -> float:
        """The mean number by the rules."""
        return float(self.mass @ np.arange(len(self.mass)))

    @property
    def error(self) -> float:
        """The standard error of the mean that was seen, by the rules."""
        return float(np.sqrt(dispersion(self.mass) * self.mean / len(self.seen)))


def dispersion(mass: Array) -> float:
    """Return the variance of a number over its mean: 1 of a Poisson distribution."""
    number = np.arange(len(mass))
    mean = mass @ number
    return float(mass @ (number - mean) ** 2 / mean)


def positions(draws: data.Draws, seed: int = 0) -> list[Position]:
    """Return all positions: two unsorted ones, the five bins, and the Powerball if there is one.

    The order in which balls came is lost. As they are drawn without replacement all orders of a
    draw are equally likely, so that one at random has the distribution of the true one.
    """
    unsorted = np.random.default_rng(seed).permuted(draws.white, axis=1)
    rows: list[tuple[str, Any, Any, Callable[[int], Array]]] = [
        (f"unsorted, position {place}", unsorted[:, place - 1], draws.balls, _flat)
        for place in data.PLACES
    ]
    for place in range(1, data.WHITE + 1):
        mass = partial(data.mass_of_place, place=place)
        rows.append((f"sorted, bin {place}", draws.white[:, place - 1], draws.balls, mass))
    if draws.red is not None:
        rows.append(("Powerball", draws.red, data.urn(draws.days, data.REDS), _flat))
    return [Position(name, seen, _mixed(urns, mass)) for name, seen, urns, mass in rows]


def _flat(balls: int) -> Array:
    return np.append(0.0, np.full(balls, 1.0 / balls))


def _mixed(urns: NDArray[np.int_], mass: Callable[[int], Array]) -> Array:
    total = np.zeros(urns.max() + 1)
    for balls, count in zip(*np.unique(urns, return_counts=True), strict=True):
        total[: balls + 1] += count / len(urns) * mass(int(balls))
    return total

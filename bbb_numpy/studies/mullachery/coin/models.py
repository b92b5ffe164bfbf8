"""Priors of the probability r of a head, and the posterior as samplers see it (M18, M19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .conjugate import Beta

__all__ = ["PRIORS", "Coin", "Prior", "beta", "logistic_normal", "triangular"]

Array = NDArray[Any]


class Prior(NamedTuple):
    """A density of r on (0, 1), its slope, and the object in closed form if it is conjugate."""

    title: str
    log_density: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    conjugate: Beta | None = None


def beta(prior: Beta, title: str) -> Prior:
    """Return a conjugate prior."""
    a, b = prior.alpha - 1.0, prior.beta - 1.0
    return Prior(title, prior.log_density, lambda r: a / r - b / (1.0 - r), prior)


def triangular() -> Prior:
    """Return the density 4 min(r, 1 - r): fair coins are likeliest, and there is a kink."""
    return Prior(
        "triangular",
        lambda r: log(4.0) + np.log(np.minimum(r, 1.0 - r)),
        lambda r: np.where(r < 0.5, 1.0 / r, -1.0 / (1.0 - r)),
    )


def logistic_normal(deviation: float = 1.0) -> Prior:
    """Return the density of r = sigmoid(z), z ~ N(0, deviation^2): |dz/dr| = 1 / (r (1 - r))."""

    def log_density(r: Array) -> Array:
        z = np.log(r) - np.log1p(-r)
        normal = -0.5 * (z / deviation) ** 2 - log(deviation) - 0.5 * log(2.0 * pi)
        return normal - np.log(r) - np.log1p(-r)

    def slope(r: Array) -> Array:
        z = np.log(r) - np.log1p(-r)
        return (2.0 * r - 1.0 - z / deviation**2) / (r * (1.0 - r))

    return Prior("logistic-normal", log_density, slope)


PRIORS = (
    beta(Beta(1.0, 1.0), "uniform, Beta(1, 1)"),
    beta(Beta(20.0, 20.0), "informative, Beta(20, 20)"),
    triangular(),
    logistic_normal(),
)


@dataclass(frozen=True)
class Coin:
    """r^h (1 - r)^t times the prior: a target of samplers, unnormalised, -inf outside (0, 1).

    Parameters
    ----------
    prior : Prior
    heads, tails : int
    """

    prior: Prior
    heads: int
    tails: int

    def __call__(self, position: Array) -> tuple[Array, Array]:
        """Return the log density (S,) and its slope (S, 1) at r = position (S, 1)."""
        inside = (position > 0.0) & (position < 1.0)
        r = np.where(inside, position, 0.5)
        value = self.heads * np.log(r) + self.tails * np.log1p(-r) + self.prior.log_density(r)
        slope = self.heads / r - self.tails / (1.0 - r) + self.prior.slope(r)
        return np.where(inside, value, -np.inf)[:, 0], np.where(inside, slope, 0.0)

r"""Densities of the scales that prior and likelihood learn (D32).

Variational inference gives these numbers a point estimate; a sampler draws them like the
weights, and for that they need a proper prior. With :math:`u = \log s` flat on the real line the
posterior of the prior's scale is improper: as s and the weights shrink to 0 together, the density
of the weights given s makes up for their shrinking, and a constant is left at u = -infinity.

The learned numbers are logarithms, so a density :math:`p(s)` of the scale becomes
:math:`p(e^u)\, e^u`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, Protocol

import numpy as np

from ..numeric.elementary import LOG_2PI
from ..numeric.layout import Array
from ..numeric.validation import (
    HasMethods,
    MappingOf,
    Optional,
    check_fields,
    standard_deviation,
)

__all__ = ["HalfCauchy", "HalfNormal", "Hyperprior", "LogNormal", "check_hyperpriors"]


class Hyperprior(Protocol):
    """Interface of a hyperprior: `LogNormal`, `HalfNormal`, `HalfCauchy`, or your own."""

    def log_density(self, u: Array, start: Array) -> Array:
        """Return the log density in nats of each learned number in `u` under the hyperprior.

        Parameters
        ----------
        u : ndarray (S, K)
            Learned numbers, such as logarithms of scales: K numbers for each of S samples.
        start : ndarray (K,)
            Starting values of the learned numbers, with which prior or likelihood were made.
        """

    def slope(self, u: Array, start: Array) -> Array:
        """Return the derivative of each learned number's log density with respect to it, (S, K).

        Parameters
        ----------
        u : ndarray (S, K)
            Learned numbers, such as logarithms of scales: K numbers for each of S samples.
        start : ndarray (K,)
            Starting values of the learned numbers, with which prior or likelihood were made.
        """

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], start: Array
    ) -> Array:
        """Draw values of the learned numbers, such as log scales, from the hyperprior; (S, K).

        Parameters
        ----------
        rng : numpy.random.Generator
        shape : tuple of int
            (S, K), the numbers of samples and of learned numbers.
        start : ndarray (K,)
            Starting values of the learned numbers, with which prior or likelihood were made.
        """


def check_hyperpriors(hyperpriors: Any) -> dict[str, Hyperprior]:
    """Return `hyperpriors`, checked, as a dict of block name to hyperprior; {} if it is None."""
    density = HasMethods("HalfNormal(1.0)", "log_density", "slope", "draw")
    check = MappingOf(density, "{'log_noise': HalfNormal(1.0)}")
    return dict(check("hyperpriors", {} if hyperpriors is None else hyperpriors))


@dataclass(frozen=True)
class LogNormal:
    r"""Hyperprior of a learned number u, :math:`N(\log\mathrm{median}, \mathrm{width}^2)` (D32).

    If u is the logarithm of a scale, that scale is log-normal. It suits other learned numbers too.

    Parameters
    ----------
    median : float, optional
        Median of the scale, > 0. By default the value with which the prior or likelihood was made.
    width : float
        Standard deviation of u, > 0: with 1, two thirds of the mass lie within a factor of e.
    """

    median: float | None = None
    width: float = 1.0

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, "the hyperprior", width=standard_deviation)
        check_fields(self, "the hyperprior", median=Optional(standard_deviation))

    def _centre(self, start: Array) -> Any:
        """Return the mean of u: log(median), or the starting values `start` if median is None."""
        return start if self.median is None else log(self.median)

    def log_density(self, u: Array, start: Array) -> Array:
        """Return the log density of N(m, width^2) at each learned number u, (S, K) in nats (D32).

        It is -(u - m)^2 / (2 width^2) - log width - log(2 pi) / 2.

        Parameters
        ----------
        u : ndarray (S, K)
            Learned numbers, such as logarithms of scales: K numbers for each of S samples.
        start : ndarray (K,)
            Their starting values, which are m if `median` is None; otherwise m = log median.
        """
        z = (u - self._centre(start)) / self.width
        return -0.5 * z * z - log(self.width) - 0.5 * LOG_2PI

    def slope(self, u: Array, start: Array) -> Array:
        """Return the derivative -(u - m) / width^2 of the log density for each number in `u` (D32).

        The mean m is the log median, or `start` (K,) if the median is None.
        """
        return -(u - self._centre(start)) / self.width**2  # d log N / du (D32)

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], start: Array
    ) -> Array:
        """Draw values of the learned numbers, such as log scales, from the hyperprior; (S, K).

        Parameters
        ----------
        rng : numpy.random.Generator
        shape : tuple of int
            (S, K), the numbers of samples and of learned numbers.
        start : ndarray (K,)
            Starting values of the learned numbers, with which prior or likelihood were made.
        """
        return self._centre(start) + self.width * rng.standard_normal(shape)


@dataclass(frozen=True)
class _ScaleDensity:
    """Base class of hyperpriors of a scale s = e^u > 0, whose field `scale` is c, in units of s.

    Arguments of their methods are those of `Hyperprior`.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        """Raise an error unless `scale` is valid."""
        check_fields(self, "the hyperprior", scale=standard_deviation)

    def _log_ratio(self, u: Array) -> Array:
        """Return the log of each scale e^u over the hyperprior's own scale: u - log(scale)."""
        return u - log(self.scale)


@dataclass(frozen=True)
class HalfNormal(_ScaleDensity):
    """Half-normal hyperprior of a scale s = e^u, of density sqrt(2/pi) e^(-s^2/(2 c^2)) / c (D32).

    `scale` is c, between 1e-150 and 1e150, in the units of s; ValueError otherwise.
    """

    def log_density(self, u: Array, start: Array) -> Array:
        """Return the log density of u = log s, for a half-normal scale s, (S, K) in nats (D32).

        It is log(2/pi)/2 - log c - s^2 / (2 c^2) + u, where c is `scale` and u is log ds/du.

        Parameters
        ----------
        u : ndarray (S, K)
            Learned numbers u = log s: K numbers for each of S samples.
        start : ndarray (K,)
            Not used.
        """
        ratio = np.exp(self._log_ratio(u))
        return 0.5 * log(2.0 / np.pi) - log(self.scale) - 0.5 * ratio**2 + u

    def slope(self, u: Array, start: Array) -> Array:
        """Return the derivative 1 - e^(2 u) / scale^2 of the log density for u (D32)."""
        return -np.expm1(2.0 * self._log_ratio(u))  # no digits cancel at u = log(scale)

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], start: Array
    ) -> Array:
        """Draw values of the learned numbers, such as log scales, from the hyperprior; (S, K).

        Parameters
        ----------
        rng : numpy.random.Generator
        shape : tuple of int
            (S, K), the numbers of samples and of learned numbers.
        start : ndarray (K,)
            Not used.
        """
        return np.log(np.abs(rng.standard_normal(shape))) + log(self.scale)


@dataclass(frozen=True)
class HalfCauchy(_ScaleDensity):
    """Half-Cauchy hyperprior of a scale s = e^u, of density 2 / (pi c (1 + s^2/c^2)) (D32).

    `scale` is c, the median, between 1e-150 and 1e150, in the units of s; ValueError otherwise.
    """

    def log_density(self, u: Array, start: Array) -> Array:
        """Return the log density of u = log s, for a half-Cauchy scale s, (S, K) in nats (D32).

        It is log(2/pi) - log(2 cosh v) with v = u - log c, where c is `scale`.

        It includes the Jacobian, log ds/du = u.

        Parameters
        ----------
        u : ndarray (S, K)
            Learned numbers u = log s: K numbers for each of S samples.
        start : ndarray (K,)
            Not used.
        """
        v = self._log_ratio(u)
        magnitude = np.where(v.real < 0, -v, v)
        return log(2.0 / np.pi) - magnitude - np.log(1.0 + np.exp(-2.0 * magnitude))

    def slope(self, u: Array, start: Array) -> Array:
        """Return the derivative -tanh(u - log(scale)) of the log density for u (D32)."""
        return -np.tanh(self._log_ratio(u))

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int], start: Array
    ) -> Array:
        """Draw values of the learned numbers, such as log scales, from the hyperprior; (S, K).

        Parameters
        ----------
        rng : numpy.random.Generator
        shape : tuple of int
            (S, K), the numbers of samples and of learned numbers.
        start : ndarray (K,)
            Not used.
        """
        return np.log(np.tan(0.5 * np.pi * rng.random(shape))) + log(self.scale)


NAMED = {
    "hyperprior": {
        "log-normal": LogNormal(),
        "half-normal": HalfNormal(),
        "half-cauchy": HalfCauchy(),
    }
}

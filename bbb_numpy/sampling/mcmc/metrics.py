r"""Mass matrices: the kinetic energy of Hamiltonian methods, and their time unit.

The momentum is :math:`r \sim N(0, M)`, the kinetic energy :math:`\tfrac12 r^T M^{-1} r`. With
:math:`M^{-1}` the covariance of the target, every direction of a Gaussian has the same period
:math:`2\pi` (M12).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...numeric.elementary import inner, symmetric
from ...numeric.validation import Like, Optional, brief

__all__ = ["DenseMetric", "DiagonalMetric", "Metric", "check_metric", "identity"]

Array = NDArray[Any]


class Metric(Protocol):
    """What a metric has: `DiagonalMetric`, `DenseMetric`, or one's own."""

    def draw_momentum(self, rng: np.random.Generator, like: Array) -> Array:
        """Draw momenta r ~ N(0, M), one for each row of `like` (S, D)."""

    def draw_step(self, rng: np.random.Generator, like: Array) -> Array:
        """Draw steps ~ N(0, M^-1), one for each row of `like` (S, D)."""

    def velocity(self, momentum: Array) -> Array:
        """Return M^-1 r (S, D)."""

    def kinetic(self, momentum: Array) -> Array:
        """Return the kinetic energies (S,)."""

    def whiten(self, offset: Array) -> Array:
        """Return the offsets (S, D) in the coordinates where M = I: z with z^T z = u^T M u."""


def check_metric(metric: Any, *more: str) -> None:
    """Raise TypeError unless `metric` is None or has what such a kernel uses, and `more`."""
    example = "DiagonalMetric(variance) or DenseMetric(covariance), or None"
    uses = ("draw_momentum", "velocity", "kinetic", *more)
    Optional(Like(example, *uses))("metric", metric)


def _normal(rng: np.random.Generator, like: Array) -> Array:
    return rng.standard_normal(like.shape, like.dtype.type)


def _numbers(name: str, value: Any) -> Array:
    """Return an array of numbers, complex ones too: those of a complex step."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.array("")
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} must be an array of numbers; got {brief(value)}")
    return array


@dataclass(frozen=True, eq=False)
class DiagonalMetric:
    """M^-1 = diag(variance).

    Parameters
    ----------
    variance : ndarray (D,)
        Estimated variance of each coordinate, > 0.

    Raises
    ------
    ValueError
        Unless `variance` is a vector of finite positive numbers.
    """

    variance: Array

    def __post_init__(self) -> None:
        v = _numbers("variance", self.variance)
        if v.ndim != 1 or not (np.isfinite(v).all() and (v > 0).all()):
            raise ValueError(f"variance must be a vector of finite numbers > 0; got {v}")
        object.__setattr__(self, "variance", v)

    @cached_property
    def _deviation(self) -> Array:
        return np.sqrt(self.variance)

    def draw_momentum(self, rng: np.random.Generator, like: Array) -> Array:
        """Draw momenta r ~ N(0, M), one for each row of `like` (S, D)."""
        return _normal(rng, like) / self._deviation

    def draw_step(self, rng: np.random.Generator, like: Array) -> Array:
        """Draw steps ~ N(0, M^-1), one for each row of `like` (S, D)."""
        return _normal(rng, like) * self._deviation

    def velocity(self, momentum: Array) -> Array:
        """Return M^-1 r (S, D)."""
        return momentum * self.variance

    def kinetic(self, momentum: Array) -> Array:
        """Return the kinetic energies r^T M^-1 r / 2 (S,)."""
        return 0.5 * inner(momentum, self.velocity(momentum))

    def whiten(self, offset: Array) -> Array:
        """Return z with z^T z = u^T M u, row by row (S, D)."""
        return offset / self._deviation


@dataclass(frozen=True, eq=False)
class DenseMetric:
    """M^-1 = covariance.

    Parameters
    ----------
    covariance : ndarray (D, D)
        Symmetric, positive definite.

    Raises
    ------
    ValueError
        Unless `covariance` is finite, symmetric to 1e-5 and positive definite.
    """

    covariance: Array

    def __post_init__(self) -> None:
        c = _numbers("covariance", self.covariance)
        if c.ndim != 2 or c.shape[0] != c.shape[1]:
            raise ValueError(f"covariance must be a symmetric matrix; got shape {c.shape}")
        if not (np.isfinite(c).all() and symmetric(c)):
            raise ValueError(f"covariance must be symmetric, of finite numbers; got {c}")
        object.__setattr__(self, "covariance", c)
        try:
            self._factor  # noqa: B018
        except np.linalg.LinAlgError:
            raise ValueError("covariance must be positive definite; this one is not") from None

    @cached_property
    def _factor(self) -> Array:
        """C with C C^T = M^-1."""
        return np.linalg.cholesky(self.covariance)

    @cached_property
    def _inverse_factor(self) -> Array:
        """C^-1: z^T C^-1 has covariance C^-T C^-1 = M."""
        return np.linalg.solve(self._factor, np.eye(len(self._factor), dtype=self._factor.dtype))

    def draw_momentum(self, rng: np.random.Generator, like: Array) -> Array:
        """Draw momenta r ~ N(0, M), one for each row of `like` (S, D)."""
        return _normal(rng, like) @ self._inverse_factor

    def draw_step(self, rng: np.random.Generator, like: Array) -> Array:
        """Draw steps ~ N(0, M^-1), one for each row of `like` (S, D)."""
        return _normal(rng, like) @ self._factor.T

    def velocity(self, momentum: Array) -> Array:
        """Return M^-1 r (S, D)."""
        return momentum @ self.covariance

    def kinetic(self, momentum: Array) -> Array:
        """Return the kinetic energies r^T M^-1 r / 2 (S,)."""
        return 0.5 * inner(momentum, self.velocity(momentum))

    def whiten(self, offset: Array) -> Array:
        """Return z = C^-1 u with z^T z = u^T M u, row by row (S, D)."""
        return offset @ self._inverse_factor.T


def identity(like: Array) -> DiagonalMetric:
    """Return the metric of unit variances for positions (S, D)."""
    return DiagonalMetric(np.ones(like.shape[1], like.dtype))

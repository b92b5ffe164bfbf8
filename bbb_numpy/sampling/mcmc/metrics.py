r"""Mass matrices, which define the kinetic energy and the unit of time of Hamiltonian methods.

The momentum is :math:`r \sim N(0, M)`, the kinetic energy :math:`\tfrac12 r^T M^{-1} r`. If
:math:`M^{-1}` is the covariance of a Gaussian target, all its directions have the same period
:math:`2\pi` (M12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from ...numeric.deprecation import accept_old_members
from ...numeric.elementary import inner, symmetric
from ...numeric.layout import Array
from ...numeric.validation import (
    STEPS,
    HasMethods,
    Optional,
    check_fields,
    positive,
    short_repr,
)

__all__ = ["DenseMetric", "DiagonalMetric", "Metric", "Scaled", "identity"]


class Metric:
    """A mass matrix M; a metric of your own needs the methods of this class, not the class."""

    def draw_momentum(self, rng: Generator, like: Array) -> Array:
        """Draw momenta (S, D) from N(0, M), with M the mass matrix.

        Parameters
        ----------
        rng : Generator
            Source of the random numbers.
        like : ndarray (S, D)
            Array whose shape and dtype the momenta have.
        """
        return self._momentum(rng.standard_normal(like.shape, like.dtype.type))

    def draw_step(self, rng: Generator, like: Array) -> Array:
        """Draw steps of the positions (S, D) from N(0, M^-1), with M the mass matrix.

        Parameters
        ----------
        rng : Generator
            Source of the random numbers.
        like : ndarray (S, D)
            Array whose shape and dtype the steps have.
        """
        return self._step(rng.standard_normal(like.shape, like.dtype.type))

    def velocity(self, momentum: Array) -> Array:
        """Return the velocities M^-1 r (S, D) of momenta r (S, D), with M the mass matrix."""
        raise NotImplementedError

    def kinetic(self, momentum: Array) -> Array:
        """Return the kinetic energies r^T M^-1 r / 2 (S,), in nats, of momenta r (S, D)."""
        return 0.5 * inner(momentum, self.velocity(momentum))

    def whiten(self, offset: Array) -> Array:
        """Return each offset u of `offset` (S, D) as a whitened z (S, D), with z^T z = u^T M u."""
        raise NotImplementedError

    def _momentum(self, z: Array) -> Array:
        """Return momenta from N(0, M) (S, D), computed from standard normal numbers `z` (S, D)."""
        raise NotImplementedError

    def _step(self, z: Array) -> Array:
        """Return steps from N(0, M^-1) (S, D), computed from standard normal numbers `z` (S, D)."""
        raise NotImplementedError


def _numbers(name: str, value: Any) -> Array:
    """Return `value` as an array of floats or complex numbers; else raise TypeError with `name`.

    Integers, booleans and float16 become float64. Complex numbers are those of a complex step.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.array("")
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} must be an array of numbers; got {short_repr(value)}")
    if array.dtype.kind in "biu" or array.dtype == np.float16:
        return array.astype(np.float64)
    return array


@dataclass(frozen=True, eq=False)
class DiagonalMetric(Metric):
    """Metric with M^-1 = diag(variance), one scale for each coordinate.

    Parameters
    ----------
    variance : ndarray (D,)
        Estimated variance of each coordinate, finite and > 0.

    Raises
    ------
    TypeError, ValueError
        Unless `variance` is a vector of finite numbers > 0.
    """

    variance: Array

    def __post_init__(self) -> None:
        check_fields(self, variance=_numbers)
        v = self.variance
        if v.ndim != 1 or not (np.isfinite(v).all() and (v > 0).all()):
            raise ValueError(
                f"variance must be a vector of finite numbers > 0; got {v}"
            )

    @cached_property
    def _scale(self) -> Array:
        """Estimated standard deviations of the coordinates (D,), the roots of `variance`."""
        return np.sqrt(self.variance)

    def _momentum(self, z: Array) -> Array:
        """Return momenta (S, D): standard normal `z` (S, D) over the standard deviations."""
        return z / self._scale

    def _step(self, z: Array) -> Array:
        """Return steps (S, D): standard normal `z` (S, D) times the standard deviations."""
        return z * self._scale

    def velocity(self, momentum: Array) -> Array:
        """Return the velocities (S, D): the momenta (S, D) times the coordinates' variances."""
        return momentum * self.variance

    def whiten(self, offset: Array) -> Array:
        """Return whitened offsets (S, D): `offset` (S, D) over the standard deviations."""
        return offset / self._scale


@dataclass(frozen=True, eq=False)
class DenseMetric(Metric):
    """Metric with M^-1 = covariance, which knows correlations; each step costs D^2 operations.

    Parameters
    ----------
    covariance : ndarray (D, D)
        Estimated covariance of the coordinates: finite, symmetric within 1e-5, positive definite.

    Raises
    ------
    TypeError, ValueError
        Unless `covariance` is a symmetric matrix, of finite numbers, and positive definite.
    """

    covariance: Array

    def __post_init__(self) -> None:
        check_fields(self, covariance=_numbers)
        c = self.covariance
        if c.ndim != 2 or c.shape[0] != c.shape[1]:
            raise ValueError(f"covariance must be a square matrix; got shape {c.shape}")
        if not (np.isfinite(c).all() and symmetric(c)):
            raise ValueError(
                f"covariance must be symmetric, of finite numbers; got {c}"
            )
        try:
            self._factor  # noqa: B018
        except np.linalg.LinAlgError:
            raise ValueError(
                "covariance must be positive definite; this one is not"
            ) from None

    @cached_property
    def _factor(self) -> Array:
        """Cholesky factor of the covariance: lower triangular C (D, D) with C C^T = M^-1."""
        return np.linalg.cholesky(self.covariance)

    @cached_property
    def _inverse_factor(self) -> Array:
        """Inverse C^-1 (D, D) of `_factor`: z^T C^-1 ~ N(0, M) for standard normal z."""
        return np.linalg.solve(
            self._factor, np.eye(len(self._factor), dtype=self._factor.dtype)
        )

    def _momentum(self, z: Array) -> Array:
        """Return momenta (S, D): C^-T z for each row z of standard normal numbers, C `_factor`."""
        return z @ self._inverse_factor

    def _step(self, z: Array) -> Array:
        """Return steps (S, D): C z for each row z of standard normal numbers, with C `_factor`."""
        return z @ self._factor.T

    def velocity(self, momentum: Array) -> Array:
        """Return the velocities (S, D): the covariance times each momentum of `momentum` (S, D)."""
        return momentum @ self.covariance

    def whiten(self, offset: Array) -> Array:
        """Return whitened offsets (S, D): C^-1 u for each row u of `offset`, with C `_factor`."""
        return offset @ self._inverse_factor.T


def identity(like: Array) -> DiagonalMetric:
    """Return a metric with D variances of 1, in the dtype of the positions `like` (S, D)."""
    return DiagonalMetric(np.ones(like.shape[1], like.dtype))


class Scaled:
    """Base class of kernels and proposals with a step size and a metric.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float
    metric: Metric | None

    # Names of the fields that a warm-up learns, in the order of `tuning`
    tuned_fields: tuple[str, ...] = ("step_size", "metric")

    # Old and new names of members that a user's subclass may define
    old_names: ClassVar[Mapping[str, str]] = {"learned": "tuned_fields"}

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a user's subclass define members under their `old_names`, with a warning."""
        super().__init_subclass__(**options)
        accept_old_members(cls, cls.old_names)

    def __post_init__(self) -> None:
        example = "DiagonalMetric(variance) or DenseMetric(covariance), or None"
        uses = ("draw_momentum", "draw_step", "velocity", "kinetic", "whiten")
        check_fields(
            self, step_size=positive, metric=Optional(HasMethods(example, *uses))
        )
        if hasattr(self, "max_steps"):
            check_fields(self, max_steps=STEPS)

    def metric_for(self, like: Array) -> Metric:
        """Return the kernel's metric; if it is None, unit variances for positions `like` (S, D)."""
        return identity(like) if self.metric is None else self.metric

    @property
    def tuning(self) -> tuple[Any, ...]:
        """Values of the fields that a warm-up learns, which are the arguments of `tuned`."""
        return tuple(getattr(self, name) for name in self.tuned_fields)

    def tuned(self, *tuning: Any) -> Self:
        """Return a copy in which the fields named in `tuned_fields` have new values.

        Parameters
        ----------
        *tuning
            Step size, metric, and a path length if the kernel learns one; fewer values leave the
            later fields as they are.
        """
        values = dict(zip(self.tuned_fields, tuning, strict=False))
        return replace(self, **values)  # type: ignore[type-var]


NAMED = {"state": {"DenseMetric": DenseMetric, "DiagonalMetric": DiagonalMetric}}

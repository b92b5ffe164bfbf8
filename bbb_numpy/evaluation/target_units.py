r"""Units of targets: from the standardised numbers z of training to y, linear or logarithmic (D73).

A posterior is trained on ``z = (t - mean) / scale``, where t is y itself or log y. Predictions in
units of y follow by the change of variables: quantiles and draws are mapped, the density is that of
z times dz/dy, and means and standard deviations are those of the mixture over weight samples. If
log y given the weights is Gaussian with mean m and variance v, y is log-normal ::

    E[y|w] = e^(m + v/2),    Var[y|w] = E[y|w]^2 (e^v - 1)

Where the noise depends on x, v is cut at the variance of log y over the training rows: far from
them some weights say more, and the mean of e^(v/2) over weights would be theirs alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..numeric.layout import Array, Params
from ..parts.likelihoods import Likelihood
from . import predictive
from .predictive import Predictive, Source, is_gaussian

__all__ = ["TARGET_UNITS", "LogUnits", "TargetUnits"]


@dataclass(frozen=True, eq=False)
class TargetUnits:
    """Units of targets that were standardised for training: y = mean + scale z.

    Parameters
    ----------
    mean, scale : ndarray (K,)
        Shift and scale of the standardisation of K outputs.
    """

    mean: Array
    scale: Array

    noise_unit: ClassVar[str] = (
        "units of {}"  # unit of the noise scale of a target of this name
    )

    @staticmethod
    def from_y(y: Array) -> Array:
        """Return the numbers (N, K) that are standardised for training: here `y` itself."""
        return y

    @staticmethod
    def impossible(y: Array) -> Array:
        """Return, in the shape of `y`, whether the density of each target is 0 everywhere."""
        return np.zeros(y.shape, bool)

    def to_y(self, z: Array) -> Array:
        """Return standardised numbers `z` (..., K) in units of y; the map increases with z."""
        return z * self.scale + self.mean

    def log_slope(self, z: Array) -> Array:
        """Return log dz/dy of rows `z` (N, K), summed over outputs: (N,), in nats."""
        return np.full(len(z), -np.log(self.scale).sum())

    def predict(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Predictive:
        """Return mean, epistemic and aleatoric standard deviation, (N, K) each, in units of y.

        Parameters
        ----------
        estimator : Source
            What draws functions at `theta`.
        theta : ndarray (D,)
            Learned numbers.
        x : ndarray (N, d_in)
            Standardised rows.
        rng : Generator
        samples : int
            Number of draws S of the weights.
        """
        p = predictive.predict(estimator, theta, x, rng=rng, samples=samples)
        mean = p.mean * self.scale + self.mean
        return Predictive(mean, p.epistemic * self.scale, p.aleatoric * self.scale)

    def covariance(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Array:
        """Return the covariance (N, N, K) of new targets, in squared units of y.

        Parameters
        ----------
        estimator : Source
            What draws functions at `theta`.
        theta : ndarray (D,)
            Learned numbers.
        x : ndarray (N, d_in)
            Standardised rows.
        rng : Generator
        samples : int
            Number of draws S of the weights.
        """
        between = predictive.covariance(estimator, theta, x, rng=rng, samples=samples)
        return between * self.scale**2

    def sample_functions(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Array:
        """Draw functions E[y|x, w] (S, N, K), in units of y.

        Parameters
        ----------
        estimator : Source
            What draws functions at `theta`.
        theta : ndarray (D,)
            Learned numbers.
        x : ndarray (N, d_in)
            Standardised rows.
        rng : Generator
        samples : int
            Number of draws S of the weights.
        """
        return self.to_y(
            predictive.sample_functions(estimator, theta, x, rng=rng, samples=samples)
        )

    def sample_targets(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Array:
        """Draw targets (S, N, K), in units of y.

        Parameters
        ----------
        estimator : Source
            What draws functions at `theta`.
        theta : ndarray (D,)
            Learned numbers.
        x : ndarray (N, d_in)
            Standardised rows.
        rng : Generator
        samples : int
            Number of draws S of the weights.
        """
        return self.to_y(
            predictive.sample_targets(estimator, theta, x, rng=rng, samples=samples)
        )


class LogUnits(TargetUnits):
    """Units of targets whose logarithms were standardised: y = exp(mean + scale z) (D73)."""

    noise_unit = "of log {}"

    @staticmethod
    def from_y(y: Array) -> Array:
        """Return log `y` (N, K); raise ValueError unless all numbers are positive."""
        if not (y > 0).all():
            row, column = np.argwhere(~(y > 0))[0].tolist()
            place = f"row {row}" if y.shape[1] == 1 else f"row {row}, column {column}"
            raise ValueError(
                f"target='log' needs y > 0, whose logarithm is modelled; got {y[row, column]:g} at "
                f"{place}. Correct or leave out such rows, or use target='identity'; counts with "
                "zeros have likelihood='poisson'"
            )
        return np.log(y)

    @staticmethod
    def impossible(y: Array) -> Array:
        """Return whether `y` <= 0, which no log-normal variable is."""
        return y <= 0

    def to_y(self, z: Array) -> Array:
        """Return exp(mean + scale z) of standardised numbers `z` (..., K)."""
        return np.exp(super().to_y(z))

    def log_slope(self, z: Array) -> Array:
        """Return log dz/dy = -log scale - log y of rows `z` (N, K), summed over outputs, (N,)."""
        return super().log_slope(z) - super().to_y(z).sum(axis=1)  # Jacobian (D73)

    def predict(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Predictive:
        """Return mean, epistemic and aleatoric standard deviation of a log-normal mixture (D73)."""
        if is_gaussian(estimator):
            p = super().predict(estimator, theta, x, rng=rng, samples=samples)
            of_f, of_noise = p.epistemic**2, p.aleatoric**2
            mean = np.exp(p.mean + 0.5 * (of_f + of_noise))  # one log-normal (D73)
            epistemic = mean * np.sqrt(np.expm1(of_f))
            aleatoric = mean * np.sqrt(np.exp(of_f) * np.expm1(of_noise))
            return Predictive(mean, epistemic, aleatoric)
        p = predictive.predict(
            self._relative(estimator), theta, x, rng=rng, samples=samples
        )
        return Predictive(*(part * self._unit for part in p))

    def covariance(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Array:
        """Return the covariance (N, N, K) of new log-normal targets, in squared units of y."""
        if not is_gaussian(estimator):
            of_y = self._relative(estimator)
            between = predictive.covariance(of_y, theta, x, rng=rng, samples=samples)
            return between * self._unit**2
        mean = self.predict(estimator, theta, x, rng=rng, samples=samples).mean
        of_logs = super().covariance(estimator, theta, x, rng=rng, samples=samples)
        return (
            mean[:, None] * mean * np.expm1(of_logs)
        )  # of jointly Gaussian logs (D73)

    def sample_functions(
        self, estimator: Source, theta: Array, x: Array, *, rng: Generator, samples: int
    ) -> Array:
        """Draw functions E[y|x, w] (S, N, K), in units of y."""
        of_y = self._relative(estimator)
        drawn = predictive.sample_functions(of_y, theta, x, rng=rng, samples=samples)
        return drawn * self._unit

    @property
    def _unit(self) -> Array:
        """Geometric mean (K,) of the training targets, in units of y."""
        return np.exp(self.mean)

    def _relative(self, estimator: Source) -> Source:
        """Return `estimator` for targets y / `_unit`, whatever their size in float32."""
        likelihood = _LogNormal(estimator.model.likelihood, self.scale)
        return replace(estimator, model=replace(estimator.model, likelihood=likelihood))


@dataclass(frozen=True, eq=False)
class _LogNormal(Likelihood):
    """The moments of exp(factor z), for targets z of a likelihood with outputs f (D73).

    Parameters
    ----------
    of_logs : Likelihood
        Likelihood of z, Gaussian given the weights or with heavy tails. With heavy tails y has no
        moments: the median exp(factor f) stands for its mean, and its variance is infinite.
    factor : ndarray (K,)
        Standard deviation by which the logarithms were divided.
    """

    of_logs: Likelihood
    factor: Array

    def initial_values(self) -> dict[str, float]:
        """Return the learned numbers of the likelihood of z, which are the only ones."""
        return self.of_logs.initial_values()

    def heads(self, targets: int) -> int:
        """Return the number of network outputs for `targets` target columns."""
        return self.of_logs.heads(targets)

    def targets(self, heads: int) -> int:
        """Return the number of target columns of `heads` network outputs."""
        return self.of_logs.targets(heads)

    def curvature(self, params: Params, f: Array) -> Array:
        """Return the curvature of the likelihood of z."""
        return self.of_logs.curvature(params, f)

    def mean(self, params: Params, f: Array) -> Array:
        """Return E[y|x, w] = exp(factor f + factor^2 Var[z] / 2); with heavy tails the median."""
        center = self.factor * self.of_logs.mean(params, f)
        if self.of_logs.heavy_tails:
            return np.exp(center)
        return np.exp(center + 0.5 * self._log_variance(params, f))  # D73

    def variance(self, params: Params, f: Array) -> Array:
        """Return Var[y|x, w] = E[y|x, w]^2 (exp(factor^2 Var[z]) - 1), or inf."""
        mean = self.mean(params, f)
        if self.of_logs.heavy_tails:
            return np.full_like(mean, inf)
        return mean**2 * np.expm1(self._log_variance(params, f))  # D73

    def _log_variance(self, params: Params, f: Array) -> Array:
        """Return the variance of log y given the weights, which broadcasts to (S, B, K).

        Noise that depends on x counts at most as the variance of log y over the training rows.
        """
        variance = self.of_logs.variance(params, f)
        if not self.of_logs.noise_name:
            variance = np.minimum(
                variance, 1.0
            )  # else a few weights make the mean (D73)
        return self.factor**2 * variance


# Units by the name of the scale on which targets are modelled
TARGET_UNITS: dict[str, type[TargetUnits]] = {"identity": TargetUnits, "log": LogUnits}

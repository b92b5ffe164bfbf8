"""Counts that vary more than Poisson's: negative binomial, and zeros beyond it (D70, D71).

The outputs are logarithms of the mean of the counts that are not extra zeros. Poisson's likelihood
is in `discrete`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from ..numeric.elementary import (
    for_outputs,
    log1p,
    log_factorial,
    rising_factorial,
    sigmoid,
    softplus_parts,
    write_gradient,
)
from ..numeric.layout import Array, Params
from ..numeric.validation import check_fields, real, standard_deviation
from .discrete import PoissonLikelihood
from .likelihoods import Likelihood, check_shape

__all__ = ["NegativeBinomialLikelihood", "ZeroInflatedLikelihood"]

# Terms of the log density: values (S, B, K), and derivatives by the outputs and by the learned
# numbers of each block, which broadcast to (S, B, K)
Terms = tuple[Array, Array, dict[str, Array]]


def _share(name: str, value: Any) -> float:
    """Return a share as a float; raise an error that mentions `name` unless 0 < share < 1."""
    return real(
        name, value, 1e-6, 1.0 - 1e-6, "between 0 and 1, at least 1e-6 from both"
    )


class _Counts(PoissonLikelihood):
    """Base class of likelihoods of counts with learned numbers; a subclass defines `_terms`."""

    def _terms(self, params: Params, f: Array, y: Array) -> Terms:
        """Return the log density of each count, and its derivatives."""
        raise NotImplementedError

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Any]:
        """Return the log likelihood of each row's counts, log P(y|x, w), summed over outputs.

        Parameters
        ----------
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        y : ndarray (B, K)
            Targets of the rows.

        Returns
        -------
        value : ndarray (S, B)
            log P(y|x, w) of each sample and row in nats.
        saved : tuple
            Derivatives of the log density, for `vjp`.
        """
        check_shape(f, y)
        value, *slopes = self._terms(params, f, y)
        constant = log_factorial(y).astype(f.real.dtype)  # (B, K)
        return np.add.reduce(value - constant, axis=-1), tuple(slopes)

    def vjp(self, saved: Any, cotangent: Array, d_params: Params) -> Array:
        """Return the gradient for the outputs; write those for the learned numbers to `d_params`.

        Parameters
        ----------
        saved : tuple
            Second result of `log_density` for the same arguments.
        cotangent : ndarray (S,) or (S, B)
            Derivative of the loss with respect to each sum over rows, or to each row.
        d_params : dict
            Gradients for the learned blocks by name, each in the shape of its block; overwritten.

        Returns
        -------
        ndarray (S, B, K)
            Derivative of the loss with respect to the network outputs, a new array.
        """
        slope, learned = saved
        for name, slopes in learned.items():
            if cotangent.ndim == 1:
                slopes = np.add.reduce(slopes, axis=1)  # sum over rows, (S, K)
            write_gradient(d_params[name], cotangent, slopes)
        return np.multiply(slope, for_outputs(cotangent), out=np.empty_like(slope))

    # the curvature depends on y, or on numbers that Laplace's approximation does not learn
    curvature = Likelihood.curvature

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance of each count, (S, B, K)."""
        raise NotImplementedError


def _negative_binomial(f: Array, y: Array, log_dispersion: Array) -> Terms:
    """Return log P(y) + log y! of the negative binomial of mean e^f, and its derivatives (D70)."""
    r = np.exp(-log_dispersion)
    rising = rising_factorial(y, r)
    # log(1 + a e^f), and a e^f / (1 + a e^f), for the dispersion a
    share = softplus_parts(f + log_dispersion)
    value = rising.value + y * f - (y + r) * share.softplus  # D70
    slope = y * (1.0 - share.sigmoid) - r * share.sigmoid
    d_dispersion = (
        r * (share.softplus - share.sigmoid) - y * share.sigmoid - rising.slope
    )
    return value, slope, {"log_dispersion": d_dispersion}


@dataclass(frozen=True)
class NegativeBinomialLikelihood(_Counts):
    """Negative binomial likelihood of counts, of mean m = e^f and variance m + a m^2 (D70).

    It is Poisson's likelihood with a rate that is not known but for its mean m: a Gamma
    distribution of rates with the variance a m^2, for what the inputs do not say of a row. For
    a -> 0 it is Poisson's.

    Parameters
    ----------
    dispersion : float
        Starting value of the dispersion a > 0, of which the logarithm, ``log_dispersion``, is
        learned for each output.
    """

    dispersion: float = 0.5

    def __post_init__(self) -> None:
        """Raise an error unless the dispersion is positive."""
        check_fields(self, "the counts", dispersion=standard_deviation)

    def initial_values(self) -> dict[str, float]:
        """Return {'log_dispersion': log(dispersion)}."""
        return {"log_dispersion": log(self.dispersion)}

    def _terms(self, params: Params, f: Array, y: Array) -> Terms:
        """Return log P(y) + log y!, and its derivatives."""
        return _negative_binomial(f, y, params["log_dispersion"][..., None, :])

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        """Return mean (S, B, K) and dispersion, (1, K) or (S, 1, K)."""
        return np.exp(f), np.exp(params["log_dispersion"][..., None, :])

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance of each count, m + a m^2, (S, B, K)."""
        mean, dispersion = self.components(params, f)
        return mean * (1.0 + dispersion * mean)

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the probability of a count <= y, a regularised incomplete beta function (D70).

        Parameters
        ----------
        special : module
            `scipy.special`.
        y : ndarray
            Values of the target; they broadcast with the components.
        *components : ndarray
            Parameters of the distribution of y, as `components` returns them.
        upper : bool
            If true, return the probability of a count > y instead.

        Returns
        -------
        ndarray
            Probabilities, in the shape to which `y` and the components broadcast.
        """
        mean, dispersion = components
        ratio = dispersion * mean
        with np.errstate(all="ignore"):  # where the mean is 0, all counts are
            share = np.where(np.isinf(ratio), 1.0, ratio / (1.0 + ratio))
            above = np.maximum(np.floor(y), 0.0) + 1.0
            beta = special.betainc if upper else special.betaincc
            probability = beta(above, 1.0 / dispersion, share)
        probability = np.where(mean > 0, probability, float(not upper))
        return np.where(y < 0, float(upper), probability)

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw counts (S, B, K): Poisson counts, whose rates are Gamma distributed around e^f.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        """
        shape = 1.0 / self.components(params, f)[1]
        rate = rng.gamma(np.broadcast_to(shape, f.shape)) / shape
        # A rate of 0, which a very large dispersion draws, has the logarithm -745, its count 0
        log_rate = f + np.log(np.maximum(rate, np.nextafter(0.0, 1.0)))
        return super().draw(rng, params, log_rate.astype(f.dtype))


def _log_add(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return log(e^a + e^b), and its derivatives by a and b.

    No two numbers are compared but a with b: equal ones of other rows are no ties in proofs.
    """
    difference = a - b
    positive = difference.real > 0
    decayed = np.exp(np.where(positive, -difference, difference))
    small = decayed / (1.0 + decayed)
    large = 1.0 / (1.0 + decayed)
    value = np.where(positive, a, b) + log1p(decayed)
    return value, np.where(positive, large, small), np.where(positive, small, large)


@dataclass(frozen=True)
class ZeroInflatedLikelihood(_Counts):
    """Likelihood of counts that are 0 with a share q, and else Poisson or negative binomial (D71).

    P(0) = q + (1 - q) p(0), and P(y) = (1 - q) p(y) for y > 0. The share is one learned number for
    each output: that of rows at which nothing can happen, whatever the inputs say of the rate.

    Parameters
    ----------
    zeros : float
        Starting value of q, between 0 and 1; its log odds, ``logit_zeros``, are learned.
    dispersion : float, optional
        Starting value of the dispersion of negative binomial counts, learned as in
        `NegativeBinomialLikelihood`. By default the counts are Poisson.
    """

    zeros: float = 0.25
    dispersion: float | None = None

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, "the counts", zeros=_share)
        if self.dispersion is not None:
            check_fields(self, "the counts", dispersion=standard_deviation)

    @property
    def _counts(self) -> PoissonLikelihood:
        """Likelihood of the counts that are not extra zeros."""
        if self.dispersion is None:
            return PoissonLikelihood()
        return NegativeBinomialLikelihood(self.dispersion)

    def initial_values(self) -> dict[str, float]:
        """Return the log odds of extra zeros and, if it is learned, the log of the dispersion."""
        log_odds = log(self.zeros / (1.0 - self.zeros))
        return {"logit_zeros": log_odds} | self._counts.initial_values()

    def _terms(self, params: Params, f: Array, y: Array) -> Terms:
        """Return log P(y) + log y!, and its derivatives (D71)."""
        log_odds = params["logit_zeros"][..., None, :]
        learned: dict[str, Array] = {}
        if self.dispersion is None:
            rate = np.exp(f)
            value = y * f - rate
            slope = y - rate
        else:
            log_dispersion = params["log_dispersion"][..., None, :]
            value, slope, learned = _negative_binomial(f, y, log_dispersion)
        is_zero = np.equal(y, 0).astype(np.int8)
        # log[e^z + p(0)], and the probabilities that a zero is an extra one, or a count of 0
        of_zero, extra, count = _log_add(log_odds, is_zero * value)
        total, share, _ = _log_add(log_odds, np.zeros_like(log_odds))  # -log(1 - q), q
        value = (1 - is_zero) * value + is_zero * of_zero - total  # D71
        count = 1 - is_zero + is_zero * count
        learned = {name: count * slopes for name, slopes in learned.items()}
        learned["logit_zeros"] = is_zero * extra - share
        return value, count * slope, learned

    def mean(self, params: Params, f: Array) -> Array:
        """Return the expected counts (1 - q) e^f, (S, B, K)."""
        return np.exp(f) * sigmoid(-params["logit_zeros"][..., None, :])

    def components(self, params: Params, f: Array) -> tuple[Array, ...]:
        """Return the mean (S, B, K), the share of extra zeros, and the components of the counts."""
        share = sigmoid(params["logit_zeros"][..., None, :])
        return self.mean(params, f), share, *self._counts.components(params, f)

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance of each count, (1 - q) (v + q m^2) for counts of variance v (D71)."""
        _, share, mean, *_ = self.components(params, f)
        return (1.0 - share) * (self._counts.variance(params, f) + share * mean**2)

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the probability of a count <= y, from 0 on q + (1 - q) times that without zeros.

        Parameters
        ----------
        special : module
            `scipy.special`.
        y : ndarray
            Values of the target; they broadcast with the components.
        *components : ndarray
            Parameters of the distribution of y, as `components` returns them.
        upper : bool
            If true, return the probability of a count > y instead.

        Returns
        -------
        ndarray
            Probabilities, in the shape to which `y` and the components broadcast.
        """
        _, share, *counts = components
        probability = (1.0 - share) * self._counts.cdf(special, y, *counts, upper=upper)
        if upper:
            return np.where(y < 0, 1.0, probability)
        return np.where(y < 0, 0.0, probability + share)

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw counts (S, B, K), a share q of which is 0.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        """
        counts = self._counts.draw(rng, params, f)
        counts[rng.random(f.shape) < self.components(params, f)[1]] = 0.0
        return counts


NAMED = {
    "likelihood": {
        "negative-binomial": NegativeBinomialLikelihood(),
        "zero-inflated": ZeroInflatedLikelihood(),
        "zero-inflated-negative-binomial": ZeroInflatedLikelihood(dispersion=0.5),
    }
}

"""Likelihoods P(D | w) of classes and counts; `likelihoods` has those of real targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numeric.elementary import (
    for_outputs,
    inner,
    log1p,
    log_factorial,
    log_softmax,
    softplus_parts,
)
from ..numeric.layout import Array, Params
from .likelihoods import Likelihood, check_shape

__all__ = ["BernoulliLikelihood", "CategoricalLikelihood", "PoissonLikelihood"]

# exp(43.6), about 9e18, is the largest Poisson rate for which NumPy can draw counts
MAX_LOG_RATE = 43.6


def _check_all(y: Array, allowed: Array, requirement: str) -> None:
    """Raise ValueError if `allowed` is False for any target; the message shows the first of them.

    Parameters
    ----------
    y : ndarray (B, K)
        Targets.
    allowed : ndarray (B, K) of bool
        Whether each target is valid.
    requirement : str
        What targets must be, with which the message begins.
    """
    if not allowed.all():
        row, column = (int(i) for i in np.argwhere(~allowed)[0])
        raise ValueError(
            f"{requirement}; got {y[row, column]!s} at row {row}, column {column}"
        )


class _Discrete(Likelihood):
    """Base class of likelihoods of logits or log rates, which have no learned numbers.

    The second result of their `log_density`, which `vjp` takes, is its derivative for the outputs.
    """

    target_kind: ClassVar[str] = "class"

    def vjp(self, saved: Array, cotangent: Array, d_params: Params) -> Array:
        """Return the gradient for the network outputs, `cotangent` times `saved` = y - E[y].

        Parameters
        ----------
        saved : ndarray (S, B, K)
            Second result of `log_density`: d log P/df.
        cotangent : ndarray (S,) or (S, B)
            Derivative of the loss with respect to each sum over rows, or to each row.
        d_params : dict
            Not used, as nothing is learned.

        Returns
        -------
        ndarray (S, B, K)
            Derivative of the loss with respect to the network outputs, a new array.
        """
        return np.multiply(saved, for_outputs(cotangent), out=np.empty_like(saved))

    def curvature(self, params: Params, f: Array) -> Array:
        """Return minus the Hessian of log P(y|x, w) for each row's outputs: diag(Var[y]) (D54).

        That is so because f is the natural parameter of the distribution of y.
        """
        return self.variance(params, f)[..., None] * np.eye(f.shape[-1], dtype=f.dtype)

    def variance(self, params: Params, f: Array) -> Array:
        """Return the variance p (1 - p) of each target, where p is its probability of being 1."""
        p = self.mean(params, f)
        return p * (1.0 - p)

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the probability that a target, 1 with probability p and else 0, is <= y.

        It is 0 for y < 0, 1 - p for 0 <= y < 1, and 1 from 1 on.

        Parameters
        ----------
        special : module
            `scipy.special`.
        y : ndarray
            Values of the target; they broadcast with the components.
        *components : ndarray
            Parameters of the distribution of y, as `components` returns them.
        upper : bool
            If true, return the probability of a target > y instead.

        Returns
        -------
        ndarray
            Probabilities, in the shape to which `y` and the components broadcast.
        """
        (p,) = components
        if upper:
            return np.where(y < 0, 1.0, np.where(y < 1, p, 0.0))
        return np.where(y < 0, 0.0, np.where(y < 1, 1.0 - p, 1.0))


@dataclass(frozen=True)
class BernoulliLikelihood(_Discrete):
    """Bernoulli likelihood prod s(z)^y (1 - s(z))^(1 - y) of y in {0, 1}, logits z = f(x, w) (D13).

    Several columns are independent yes-or-no questions (multi-label).
    """

    def check_targets(self, y: Array, dtype: Any) -> None:
        """Raise ValueError unless every target in `y` is 0 or 1; `dtype` is not used."""
        _check_all(
            y, (y == 0) | (y == 1), "targets of a Bernoulli likelihood must be 0 or 1"
        )

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Array]:
        """Return the Bernoulli log likelihood of each row, log P(y|x, w), for logits `f` (D13).

        It is sum_k [y_k f_k - softplus(f_k)].

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
            log P(y|x, w) of each sample and row in nats, summed over targets.
        saved : ndarray (S, B, K)
            The derivative d log P/dz = y - sigmoid(z), which `vjp` takes.
        """
        check_shape(f, y)
        positive = np.greater(f.real, 0).astype(np.int8)  # the likelier target, 0 or 1
        decayed = softplus_parts(np.where(positive, -f, f))  # functions of -|f|
        # 0 if the logit is right: then the small log1p(e^-|f|) and its slope are not rounded
        error = y - positive
        rowwise = np.add.reduce(error * f - decayed.softplus, axis=-1)
        slope = error + np.where(
            positive, decayed.sigmoid, -decayed.sigmoid
        )  # D13: y - p
        return rowwise, slope

    def mean(self, params: Params, f: Array) -> Array:
        """Return the probability that each target is 1, sigmoid(f), an array (S, B, K)."""
        return softplus_parts(f).sigmoid

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw targets, each 0.0 or 1.0, from their Bernoulli distributions; (S, B, K) like `f`.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        """
        return (rng.random(f.shape) < self.mean(params, f)).astype(f.dtype)


@dataclass(frozen=True)
class CategoricalLikelihood(_Discrete):
    """Categorical likelihood prod softmax(z)_y with a logit z_k = f_k(x, w) for each class (D14).

    Targets are one-hot rows (B, K); any row of probabilities works, as for soft labels.
    """

    def check_targets(self, y: Array, dtype: Any) -> None:
        """Raise ValueError unless each row of `y` holds class probabilities >= 0 that sum to 1.

        Parameters
        ----------
        y : ndarray (B, K)
            One-hot rows or probabilities; a sum may be off by 1e-6.
        dtype : dtype
            Not used.
        """
        _check_all(
            y,
            (y >= 0) & (y <= 1),
            "targets of a categorical likelihood must be one-hot rows",
        )
        wrong_rows = np.flatnonzero(np.abs(y.sum(axis=1) - 1.0) > 1e-6)
        if wrong_rows.size:
            raise ValueError(
                "targets of a categorical likelihood must be one-hot rows that sum to 1; row "
                f"{wrong_rows[0]} sums to {y[wrong_rows[0]].sum():g}. Encode class "
                "labels 0, ..., K - 1 as np.eye(K)[labels]"
            )

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Array]:
        """Return the log likelihood of each row's class, log P(y|x, w), for class logits `f` (D14).

        It is sum_k y_k log softmax(f)_k.

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
            log P(y|x, w) of each sample and row in nats, summed over targets.
        saved : ndarray (S, B, K)
            The derivative d log P/df = y - softmax(f), which `vjp` takes.
        """
        check_shape(f, y)
        # In these copies the numbers of one class are contiguous in memory, so that a sum over
        # classes, the axis before the last, adds whole rows, which is faster
        z = f.swapaxes(-1, -2).copy()  # logits (S, K, B)
        y = y.swapaxes(-1, -2).copy()  # targets (K, B)
        largest = np.max(z.real, axis=-2, keepdims=True)
        is_largest = np.equal(z.real, largest).astype(np.int8)
        z -= largest
        p = np.exp(z)  # softmax(f), before division by its sum over classes
        # That of the largest logit is 1, beside which the others would be rounded: `others` is
        # the sum over classes minus 1
        p -= is_largest
        others = np.add.reduce(p, axis=-2, keepdims=True)
        others += np.add.reduce(is_largest, axis=-2, keepdims=True) - 1
        z -= log1p(others)  # z is now log softmax(f)
        # y - softmax(f), where 1 - 1 is taken before a small number is added to it
        np.subtract(y * others, p, out=p)
        p += y - is_largest
        p /= 1.0 + others
        log_likelihood = np.add.reduce(
            z * y, axis=-2
        )  # D14: sum_k y_k log softmax(f)_k
        return log_likelihood, p.swapaxes(-1, -2)

    def mean(self, params: Params, f: Array) -> Array:
        """Return the probabilities of the K classes, softmax(f), an array (S, B, K)."""
        return np.exp(log_softmax(f))

    def curvature(self, params: Params, f: Array) -> Array:
        """Return the covariance diag(p) - p p^T of a one-hot target of probabilities p (D54)."""
        p = self.mean(params, f)
        return p[..., None] * (
            np.eye(f.shape[-1], dtype=f.dtype) - p[..., None, :]
        )  # diag(p) - p p^T (D54)

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw one class for each sample and row, as one-hot vectors (S, B, K) in the dtype of `f`.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        """
        cumulated = np.cumsum(self.mean(params, f), axis=-1)
        uniform = rng.random(f.shape[:-1])[..., None] * cumulated[..., -1:]
        labels = (uniform >= cumulated).sum(axis=-1)
        return np.eye(f.shape[-1], dtype=f.dtype)[labels]


@dataclass(frozen=True)
class PoissonLikelihood(_Discrete):
    """Poisson likelihood prod e^(-rate) rate^y / y! of counts y, with log rate = f(x, w) (D15)."""

    target_kind: ClassVar[str] = "count"
    log_link: ClassVar[bool] = True

    def check_targets(self, y: Array, dtype: Any) -> None:
        """Raise ValueError unless targets are whole numbers >= 0 that are exact in `dtype`."""
        _check_all(
            y, (y >= 0) & (y == np.floor(y)), "counts must be whole numbers >= 0"
        )
        exact = 2.0 ** (np.finfo(dtype).nmant + 1)
        requirement = (
            f"counts must be at most {exact:.0f} to be exact in {np.dtype(dtype)}; count in "
            "larger units"
        )
        _check_all(y, y <= exact, requirement)

    def log_density(self, params: Params, f: Array, y: Array) -> tuple[Array, Array]:
        """Return the Poisson log likelihood of each row, log P(y|x, w), for log rates f (D15, D31).

        It is sum_k [y_k f_k - e^f_k - log y_k!].

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
            log P(y|x, w) of each sample and row in nats, summed over targets.
        saved : ndarray (S, B, K)
            The derivative d log P/df = y - e^f, which `vjp` takes.
        """
        check_shape(f, y)
        rate = np.exp(f)
        # log y! summed over the K targets of each row, an array (B,)
        constant = np.add.reduce(log_factorial(y), axis=-1).astype(f.real.dtype)
        rowwise = (
            inner(f, np.broadcast_to(y, f.shape))
            - np.add.reduce(rate, axis=-1)
            - constant
        )
        return rowwise, np.subtract(y, rate, out=rate)  # derivative y - e^f (D15)

    def mean(self, params: Params, f: Array) -> Array:
        """Return the expected counts, the rates e^f, an array (S, B, K)."""
        return np.exp(f)

    variance = mean

    def cdf(
        self, special: Any, y: Array, *components: Array, upper: bool = False
    ) -> Array:
        """Return the probability that a Poisson count is <= y, that is, of at most floor(y) events.

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
        (rate,) = components
        cdf = special.pdtrc if upper else special.pdtr
        probability = cdf(np.maximum(np.floor(y), 0.0), rate)
        return np.where(y < 0, float(upper), probability)

    def draw(self, rng: np.random.Generator, params: Params, f: Array) -> Array:
        """Draw Poisson counts (S, B, K) of rates e^f; raise ValueError if a rate is above 9e18.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Learned numbers of the likelihood by block name: (K,), or (S, K), one row per sample.
        f : ndarray (S, B, K)
            Network outputs of S weight samples for B rows.
        """
        if f.size and f.max() > MAX_LOG_RATE:
            raise ValueError(
                f"log rates must be at most {MAX_LOG_RATE} to draw counts; got {f.max():g}. "
                "The network extrapolates too far: draw for inputs nearer to the data"
            )
        return rng.poisson(np.exp(f)).astype(f.dtype)


NAMED = {
    "likelihood": {
        "bernoulli": BernoulliLikelihood(),
        "categorical": CategoricalLikelihood(),
        "poisson": PoissonLikelihood(),
    }
}

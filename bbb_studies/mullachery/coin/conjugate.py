"""Conjugate priors: posteriors, evidence and predictions in closed form.

The table of Mullachery et al., corrected (M19):

=====================  =======================  ==========================================
data                   prior                    posterior
=====================  =======================  ==========================================
Bernoulli p            `Beta` (a, b)            Beta(a + sum x, b + N - sum x)
categorical p          `Dirichlet` (a_k)        Dirichlet(a_k + c_k), c_k rows of class k
Poisson rate           `Gamma` (a, rate b)      Gamma(a + sum x, b + N)
=====================  =======================  ==========================================

Every prior is proportional to exp(<eta, T>) with log normaliser A(eta); the data add their
statistics to eta. Hence log P(D) = A(posterior) - A(prior) + log base measure, in nats, for the
observations in their order. The row for normal data with known noise, for any linear model, is
`studies.linear_gaussian.exact` (D8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bbb_numpy.numeric.elementary import log_factorial, softplus
from bbb_numpy.numeric.validation import positive, real, whole

__all__ = ["Beta", "Dirichlet", "Gamma", "coin_log_density", "log_gamma"]

Array = NDArray[Any]
POINTS = 10_001  # on each side of the grid on which a distribution function is inverted
DROP = 45.0  # the grid ends where the density has fallen by this many nats


def log_gamma(x: ArrayLike) -> Array:
    """Return log Gamma(x), elementwise for x > 0: log x! - log x (D31)."""
    x = np.asarray(x, float)
    return log_factorial(x) - np.log(x)


def coin_log_density(r: ArrayLike, heads: int, tails: int) -> Array:
    r"""Return the log of the paper's posterior of a coin under the uniform prior (M18).

    :math:`\frac{(h + t + 1)!}{h!\, t!} r^h (1 - r)^t`, elementwise for r in [0, 1]; -inf elsewhere.
    One head and no tail give 2r: "p * 1" is this without its factor.
    """
    heads, tails = whole("heads", heads, 0), whole("tails", tails, 0)
    factor = log_factorial(heads + tails + 1) - log_factorial(heads) - log_factorial(tails)
    return factor + _powers(r, heads, tails)  # M18


def _powers(r: ArrayLike, above: float, below: float) -> Array:
    """Return above * log r + below * log(1 - r) with 0 log 0 = 0; -inf outside [0, 1]."""
    r = np.asarray(r, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = above * np.log(r) if above else np.zeros_like(r)
        second = below * np.log1p(-r) if below else np.zeros_like(r)
        return np.where((r < 0) | (r > 1), -np.inf, first + second)


def _counts(data: ArrayLike, what: str, most: float = np.inf) -> Array:
    """Return `data` as one flat float array, or raise unless whole numbers from 0 to `most`."""
    flat = np.atleast_1d(np.asarray(data, float)).ravel()
    wrong = flat[~((flat >= 0) & (flat <= most) & (flat == np.floor(flat)) & (flat < np.inf))]
    if wrong.size:
        raise ValueError(f"data must be {what}; got {wrong[0]:g}")
    return flat


def _interval(log_density: Callable[[Array], Array], mode: float, mass: float) -> Array:
    """Return the equal-tailed interval (2,) of a unimodal density on the real line.

    Its distribution function is the cumulative trapezoidal sum over a grid that is finest at
    the `mode`, inverted by straight lines: both ends good to 1e-5 of the deviation.
    """
    mass = real("mass", mass, 1e-9, 1.0, "above 0 and below 1")
    top, ends = float(log_density(np.array([mode]))[0]), []
    for direction in (-1.0, 1.0):
        low, high = 0.0, 1e-6
        while log_density(np.array([mode + direction * high]))[0] > top - DROP:
            low, high = high, 2.0 * high
        for _ in range(20):  # bisection: a grid no wider than it must be
            middle = 0.5 * (low + high)
            above = log_density(np.array([mode + direction * middle]))[0] > top - DROP
            low, high = (middle, high) if above else (low, middle)
        ends.append(mode + direction * high)
    place = np.linspace(0.0, 1.0, POINTS) ** 3
    grid = mode + np.concatenate([(ends[0] - mode) * place[:0:-1], (ends[1] - mode) * place])
    density = np.exp(log_density(grid) - top)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) * np.diff(grid))])
    return np.interp([0.5 - 0.5 * mass, 0.5 + 0.5 * mass], below / below[-1], grid)


class Conjugate:
    """What all rows share: the evidence from their normalisers and base measures (M19)."""

    @property
    def log_normaliser(self) -> float:
        """A, the logarithm of the integral of the kernel."""
        raise NotImplementedError

    def update(self, data: ArrayLike) -> Self:
        """Return the posterior."""
        raise NotImplementedError

    def log_base(self, data: ArrayLike) -> float:
        """Return the log factor of P(data | parameter) without the parameter."""
        return 0.0

    def log_evidence(self, data: ArrayLike) -> float:
        """Return log P(data) in nats, the observations in their order."""
        return self.update(data).log_normaliser - self.log_normaliser + self.log_base(data)


@dataclass(frozen=True)
class Beta(Conjugate):
    """P(p) proportional to p^(alpha - 1) (1 - p)^(beta - 1), the prior of a probability (M19).

    Like alpha - 1 successes and beta - 1 failures seen from a uniform prior: what the paper's
    table prints as the *posterior*.

    Parameters
    ----------
    alpha, beta : float
        Positive.
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    def observe(self, successes: float, failures: float) -> Beta:
        """Return the posterior Beta(alpha + successes, beta + failures) (M19)."""
        return Beta(self.alpha + successes, self.beta + failures)  # M19

    def update(self, data: ArrayLike) -> Beta:
        """Return the posterior after `data`, each 0 or 1."""
        flat = _counts(data, "0 or 1", 1)
        return self.observe(float(flat.sum()), float(len(flat) - flat.sum()))

    @property
    def log_normaliser(self) -> float:
        """The logarithm of Euler's B(alpha, beta)."""
        a, b = self.alpha, self.beta
        return float(log_gamma(a) + log_gamma(b) - log_gamma(a + b))

    def log_density(self, p: ArrayLike) -> Array:
        """Return the log density at `p`; -inf outside [0, 1]."""
        return _powers(p, self.alpha - 1.0, self.beta - 1.0) - self.log_normaliser

    @property
    def mean(self) -> float:
        """The ratio alpha / (alpha + beta), also the predictive probability of a success."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> float:
        """The product mean (1 - mean) / (alpha + beta + 1)."""
        return self.mean * (1.0 - self.mean) / (self.alpha + self.beta + 1.0)

    def interval(self, mass: float = 0.95) -> Array:
        """Return the equal-tailed interval (2,), found on the grid of z = logit p."""
        a, b = self.alpha, self.beta
        ends = _interval(lambda z: a * z - (a + b) * softplus(z), float(np.log(a / b)), mass)
        return np.exp(-softplus(-ends))

    def log_predictive(self, y: ArrayLike) -> Array:
        """Return log P(next = y), elementwise for y in {0, 1}."""
        ones = _counts(y, "0 or 1", 1).reshape(np.shape(y))
        return np.log(np.where(ones == 1, self.mean, 1.0 - self.mean))


@dataclass(frozen=True)
class Dirichlet(Conjugate):
    """P(p) proportional to prod_k p_k^(alpha_k - 1), the prior of K probabilities (M19).

    Parameters
    ----------
    alpha : tuple of K >= 2 floats
        Positive; kept as a tuple.
    """

    alpha: tuple[float, ...]

    def __post_init__(self) -> None:
        if np.ndim(self.alpha) == 0:  # text, too
            raise TypeError(
                "alpha must be a tuple of positive numbers, one for each class, e.g. (1.0, 1.0); "
                f"got {self.alpha!r}"
            )
        alpha = tuple(positive(f"alpha[{k}]", a) for k, a in enumerate(self.alpha))
        if len(alpha) < 2:
            raise ValueError(f"alpha needs at least 2 numbers, one for each class; got {alpha}")
        object.__setattr__(self, "alpha", alpha)

    def observe(self, counts: ArrayLike) -> Dirichlet:
        """Return the posterior Dirichlet(alpha_k + c_k): counts (K,) by class, not summed (M19)."""
        counts = _counts(counts, "whole numbers >= 0")
        if len(counts) != len(self.alpha):
            raise ValueError(f"there are {len(self.alpha)} classes; got {len(counts)} counts")
        return Dirichlet(tuple(np.add(self.alpha, counts)))

    def update(self, data: ArrayLike) -> Dirichlet:
        """Return the posterior after `data`, each a class 0 ... K - 1."""
        classes = len(self.alpha)
        flat = _counts(data, f"classes 0 ... {classes - 1}", classes - 1)
        return self.observe(np.bincount(flat.astype(int), minlength=classes))

    @property
    def total(self) -> float:
        """The sum of alpha."""
        return sum(self.alpha)

    @property
    def log_normaliser(self) -> float:
        """The difference sum_k log Gamma(alpha_k) - log Gamma(sum_k alpha_k)."""
        return float(log_gamma(self.alpha).sum() - log_gamma(self.total))

    def log_density(self, p: Array) -> Array:
        """Return the log density at `p` (..., K) on the simplex, for p_1 ... p_(K-1)."""
        powers = np.asarray(self.alpha) - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(powers == 0, 0.0, powers * np.log(p))
        return terms.sum(axis=-1) - self.log_normaliser

    @property
    def mean(self) -> Array:
        """The ratios alpha_k / sum alpha (K,), also the predictive probabilities."""
        return np.asarray(self.alpha) / self.total

    @property
    def variance(self) -> Array:
        """Marginal variances (K,)."""
        return self.mean * (1.0 - self.mean) / (self.total + 1.0)

    def interval(self, mass: float = 0.95) -> Array:
        """Return the equal-tailed intervals (K, 2) of the marginals Beta(alpha_k, rest)."""
        return np.stack([Beta(a, self.total - a).interval(mass) for a in self.alpha])

    def log_predictive(self, y: ArrayLike) -> Array:
        """Return log P(next = y), elementwise for classes y."""
        last = len(self.alpha) - 1
        flat = _counts(y, f"classes 0 ... {last}", last)
        return np.log(self.mean)[flat.astype(int)].reshape(np.shape(y))


@dataclass(frozen=True)
class Gamma(Conjugate):
    """P(rate) proportional to rate^(shape - 1) e^(-rate * b), the prior of a Poisson rate (M19).

    Parameters
    ----------
    shape, rate : float
        Positive; `rate` is b, one over the scale. Like `shape` events in `rate` intervals: what
        the paper's table prints as the *posterior*.
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("rate", self.rate)

    def update(self, data: ArrayLike) -> Gamma:
        """Return the posterior Gamma(shape + sum x, rate + N) after counts (M19)."""
        flat = _counts(data, "whole numbers >= 0")
        return Gamma(self.shape + float(flat.sum()), self.rate + len(flat))

    def log_base(self, data: ArrayLike) -> float:
        """Return -sum log x!."""
        return -float(log_factorial(_counts(data, "whole numbers >= 0")).sum())

    @property
    def log_normaliser(self) -> float:
        """The difference log Gamma(shape) - shape log rate."""
        return float(log_gamma(self.shape) - self.shape * np.log(self.rate))

    def log_density(self, x: ArrayLike) -> Array:
        """Return the log density at `x`; -inf for x < 0."""
        x = np.asarray(x, float)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = (self.shape - 1.0) * np.log(x) if self.shape != 1.0 else np.zeros_like(x)
            return np.where(x < 0, -np.inf, power - self.rate * x - self.log_normaliser)

    @property
    def mean(self) -> float:
        """Shape / rate."""
        return self.shape / self.rate

    @property
    def variance(self) -> float:
        """Shape / rate^2."""
        return self.shape / self.rate**2

    def interval(self, mass: float = 0.95) -> Array:
        """Return the equal-tailed interval (2,), found on the grid of z = log x."""
        a, b = self.shape, self.rate
        top = float(np.log(a / b))
        return np.exp(_interval(lambda z: a * (z - top) - a * np.expm1(z - top), top, mass))

    def log_predictive(self, y: ArrayLike) -> Array:
        """Return log P(next = y), elementwise: negative binomial."""
        flat = _counts(y, "whole numbers >= 0").reshape(np.shape(y))
        top = log_gamma(self.shape + flat) - log_gamma(self.shape) - log_factorial(flat)
        return top - self.shape * np.log1p(1.0 / self.rate) - flat * np.log1p(self.rate)

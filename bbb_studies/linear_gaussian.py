"""Bayesian linear regression, where every bound has a closed form (D8, D28, D63).

Without a hidden layer, with Gaussian noise and a Gaussian prior, the posterior is Gaussian. The
studies of bounds and variances are judged by it, and so are tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.estimator import GradientEstimator as Estimator
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import LogDensities
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import LOG_2PI, softplus
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior

Array = NDArray[Any]


class Gaussian(NamedTuple):
    """A Gaussian over the P weights [W; b]."""

    mean: Array  # (P,)
    covariance: Array  # (P, P)

    @property
    def deviation(self) -> Array:
        """Marginal standard deviation of every weight (P,)."""
        return np.sqrt(np.diag(self.covariance))


class Natural(NamedTuple):
    """The natural parameters of a Gaussian over the P weights (D63)."""

    location: Array  # (P,)  precision times mean
    precision: Array  # (P, P)


class Regression(NamedTuple):
    """A linear model and its data."""

    model: Model
    x: Array  # (N, d_in)
    y: Array  # (N, 1)


class Exact(NamedTuple):
    """The posterior and the log evidence, in nats (D8)."""

    posterior: Gaussian
    precision: Array  # (P, P)  inverse covariance of the posterior
    log_evidence: float


def draw(
    rng: np.random.Generator,
    rows: int = 40,
    d_in: int = 2,
    correlation: float = 0.8,
    noise: float = 0.3,
    prior: float = 1.5,
) -> Regression:
    """Draw a linear regression problem with correlated inputs of mean 1.

    The mean of the inputs makes weights and bias correlated under the posterior, too.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws inputs, weights and noise.
    rows : int
        Number N of rows.
    d_in : int
        Number of inputs.
    correlation : float
        Of any two inputs, in [0, 1).
    noise : float
        Standard deviation of y around the line, in units of y.
    prior : float
        Standard deviation of every weight and of the bias.
    """
    common = rng.standard_normal((rows, 1))
    independent = rng.standard_normal((rows, d_in))
    x = 1.0 + correlation**0.5 * common + (1.0 - correlation) ** 0.5 * independent
    weights = prior * rng.standard_normal((d_in, 1))
    y = (
        x @ weights
        + prior * rng.standard_normal()
        + noise * rng.standard_normal((rows, 1))
    )
    return Regression(
        Model(MLP((d_in, 1)), GaussianPrior(prior), GaussianLikelihood(noise)), x, y
    )


def _gaussian_parts(problem: Regression) -> tuple[GaussianPrior, GaussianLikelihood]:
    """Return prior and likelihood of a problem, both of which must be Gaussian."""
    prior = problem.model.prior
    likelihood = problem.model.likelihood
    assert isinstance(prior, GaussianPrior)
    assert isinstance(likelihood, GaussianLikelihood)
    return prior, likelihood


def exact(problem: Regression, prior_scale: float | None = None) -> Exact:
    """Return posterior and log evidence, the latter as a Gaussian density of y (D8).

    Parameters
    ----------
    problem : Regression
        Model and rows.
    prior_scale : float, optional
        Standard deviation of the weights to use instead of that of the model's prior, for
        example a learned one.
    """
    prior, likelihood = _gaussian_parts(problem)
    s = prior.scale if prior_scale is None else prior_scale
    sigma = likelihood.scale
    y = problem.y[:, 0]
    design = np.column_stack([problem.x, np.ones(len(y))])  # (N, P)
    precision = design.T @ design / sigma**2 + np.eye(design.shape[1]) / s**2
    covariance = np.linalg.inv(precision)
    mean = np.linalg.solve(precision, design.T @ y / sigma**2)
    of_y = sigma**2 * np.eye(len(y)) + s**2 * design @ design.T  # (N, N)
    quadratic = float(y @ np.linalg.solve(of_y, y))
    log_evidence = -0.5 * (quadratic + _log_det(of_y) + len(y) * LOG_2PI)
    return Exact(Gaussian(mean, covariance), precision, log_evidence)


def natural_step(
    natural: Natural, problem: Regression, rows: Any, rate: float
) -> Natural:
    """Return natural parameters after one stochastic natural-gradient step (D63).

    Parameters
    ----------
    natural : Natural
        Parameters before the step.
    problem : Regression
        Model and all N rows.
    rows : array (B,) of int, or slice
        Rows of the minibatch; each stands for N / B.
    rate : float
        Step size; a step of 1 on all rows ends at the posterior.
    """
    prior, likelihood = _gaussian_parts(problem)
    design = np.column_stack([problem.x[rows], np.ones(len(problem.x[rows]))])  # (B, P)
    row_weight = len(problem.y) / len(design) / likelihood.scale**2
    row_location = row_weight * design.T @ problem.y[rows, 0]
    row_precision = (
        row_weight * design.T @ design + np.eye(design.shape[1]) / prior.scale**2
    )
    return Natural(
        (1.0 - rate) * natural.location + rate * row_location,  # D63
        (1.0 - rate) * natural.precision + rate * row_precision,  # D63
    )


def gaussian(estimator: Estimator, theta: Array) -> Gaussian:
    """Return the q that `theta` describes.

    Parameters
    ----------
    estimator : GradientEstimator
        With a `MeanField` or `FullRank` posterior.
    theta : array
        Parameters of q.
    """
    blocks = estimator.layout.views(theta)
    if isinstance(estimator.posterior, FullRank):
        factor = estimator.posterior.factor(blocks, Buffers()).lower
    else:
        factor = np.diag(softplus(blocks["rho"]))
    return Gaussian(blocks["mu"].copy(), factor @ factor.T)


def reverse_optimum(truth: Exact) -> Gaussian:
    """Return the independent Gaussians of least KL(q || posterior): 1 / sqrt(Lambda_jj) (D28)."""
    variances = 1.0 / np.diag(truth.precision)  # D28
    return Gaussian(truth.posterior.mean, np.diag(variances))


def inclusive_optimum(truth: Exact) -> Gaussian:
    """Return the independent Gaussians of least KL(posterior || q): the marginals (D28)."""
    variances = np.diag(truth.posterior.covariance)  # D28
    return Gaussian(truth.posterior.mean, np.diag(variances))


def kl(p: Gaussian, q: Gaussian) -> float:
    """Return KL(p || q) in nats.

    Parameters
    ----------
    p, q : Gaussian
        Over the same P weights.
    """
    gap = q.mean - p.mean
    quadratic = np.trace(np.linalg.solve(q.covariance, p.covariance))
    quadratic += gap @ np.linalg.solve(q.covariance, gap) - len(gap)
    return 0.5 * float(quadratic + _log_det(q.covariance) - _log_det(p.covariance))


def renyi_divergence(alpha: float, q: Gaussian, p: Gaussian) -> float:
    r"""Return :math:`\frac{1}{\alpha-1}\log\int q^\alpha p^{1-\alpha}` in nats.

    ``q^alpha p^(1-alpha)`` is a Gaussian of precision alpha Q + (1 - alpha) R, with Q and R those
    of q and p. Where that is not positive definite the integral is infinite, and the divergence
    +inf for alpha > 1, -inf for alpha < 0.

    Parameters
    ----------
    alpha : float
        Order; 1 gives KL(q || p).
    q, p : Gaussian
        Over the same P weights.
    """
    if alpha == 1.0:
        return kl(q, p)
    if alpha == 0.0:
        return 0.0
    precision_q = np.linalg.inv(q.covariance)
    precision_p = np.linalg.inv(p.covariance)
    mixed = alpha * precision_q + (1.0 - alpha) * precision_p
    if np.linalg.eigvalsh(mixed).min() <= 0.0:
        return float("inf") if alpha > 1.0 else -float("inf")
    gap = q.mean - p.mean
    # Completing the square leaves alpha (1 - alpha) gap^T Q mixed^-1 R gap.
    quadratic = (
        alpha
        * (1.0 - alpha)
        * gap
        @ precision_q
        @ np.linalg.solve(mixed, precision_p @ gap)
    )
    logs = (
        _log_det(mixed)
        - alpha * _log_det(precision_q)
        - (1.0 - alpha) * _log_det(precision_p)
    )
    return float(-0.5 * (quadratic + logs) / (alpha - 1.0))


def elbo(truth: Exact, q: Gaussian) -> float:
    """Return log P(D) - KL(q || posterior).

    Parameters
    ----------
    truth : Exact
        Posterior and evidence.
    q : Gaussian
        Over the same weights.

    Returns
    -------
    float
        In nats.
    """
    return truth.log_evidence - kl(q, truth.posterior)


def eubo(truth: Exact, q: Gaussian) -> float:
    """Return log P(D) + KL(posterior || q).

    Parameters
    ----------
    truth : Exact
        Posterior and evidence.
    q : Gaussian
        Over the same weights.

    Returns
    -------
    float
        In nats.
    """
    return truth.log_evidence + kl(truth.posterior, q)


def renyi(truth: Exact, q: Gaussian, alpha: float) -> float:
    """Return Renyi's bound of infinitely many samples, log P(D) - D_alpha(q || posterior).

    Parameters
    ----------
    truth : Exact
        Posterior and evidence.
    q : Gaussian
        Over the same weights.
    alpha : float
        Order of the divergence.

    Returns
    -------
    float
        In nats.
    """
    return truth.log_evidence - renyi_divergence(alpha, q, truth.posterior)


def log_densities(
    estimator: Estimator, theta: Array, noise: Array, problem: Regression
) -> LogDensities:
    """Return the three log densities (S,) that ``value_and_grad`` computes.

    Parameters
    ----------
    estimator : GradientEstimator
        Prior, likelihood and posterior.
    theta : array
        Parameters of q.
    noise : array (S, P)
        Noise of the weights.
    problem : Regression
        Rows.
    """
    return estimator.value_and_grad(theta, noise, problem.x, problem.y).terms


def _log_det(matrix: Array) -> float:
    _, value = np.linalg.slogdet(matrix)
    return float(value)

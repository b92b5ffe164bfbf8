"""Measurements of a fit on its training rows, so that no held-out rows are needed.

A posterior is judged on at most a thousand rows, in the units of training. The measurements use
generators of their own and change nothing in the learner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log, nan
from typing import Any, NamedTuple

import numpy as np

from ..evaluation.convergence import function_r_hats
from ..evaluation.predictive import (
    Source,
    log_predictive_density,
    mixture,
    outputs,
    predict,
    sample_targets,
)
from ..evaluation.quantiles import distribution_function
from ..model.joint import Likelihood, Prior
from ..model.objectives import MLE
from ..numeric.layout import Array, Layout
from ..numeric.standardisation import moments
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from ..parts.network import MLP
from ..training import Epoch

__all__ = [
    "COVERAGE",
    "MAX_R_HAT",
    "MIN_EPOCHS",
    "TARGETS",
    "JudgedFit",
    "TargetKind",
    "baseline_log_density",
    "bulk_sd",
    "chain_agreement",
    "initial_parameters",
    "largest_loss_rise",
    "linear_gain",
    "loss_slope",
    "loss_slope_along_path",
    "noise_is_fixed",
    "offsets",
    "prior_function_sd",
    "split_r_hat",
]

COVERAGE = 0.9  # nominal probability of the intervals whose coverage is measured
# smallest number of epochs over which the slope of the loss is estimated
MIN_EPOCHS = 4
# R-hat above which chains plainly differ (Gelman and Rubin 1992); below 1.01 they have mixed
MAX_R_HAT = 1.1
# number of standard deviations of a statistic over drawn targets that the model explains
N_STANDARD_DEVIATIONS = 3.0
SMALLEST_DISPERSION = (
    1e-9  # of a negative binomial that stands for Poisson's distribution
)
MIN_FUNCTION_SAMPLES = 32  # number of functions whose spread is measured
N_FUNCTION_ROWS = 100  # approximate number of rows at which functions are evaluated
N_R_HAT_ROWS = 50  # number of rows at which R-hat is computed, in about 50 milliseconds
BULK_QUANTILES = (0.1, 0.9)  # quantiles between which the bulk of a column lies
# distance between the `BULK_QUANTILES` of a Gaussian, in standard deviations
GAUSSIAN_BULK_WIDTH = 2.56


class TargetKind(NamedTuple):
    """Baseline model of a kind of targets, and the unit for the spread of functions."""

    baseline: str  # name of the baseline, a distribution of y that ignores X
    # standard deviation over rows that a network output f needs to describe y; nan: that of y
    unit: float
    unit_name: str  # name of the unit in messages


TARGETS = {
    "real": TargetKind("N(mean(y), var(y))", nan, "the standard deviation of y"),
    "log": TargetKind(
        "the log-normal with mean and variance of log y",
        nan,
        "the standard deviation of log y",
    ),
    # a logit of 3 is the probability 95 %: the class is nearly certain
    "class": TargetKind("the base rates", 3.0, "a logit of 3"),
    "count": TargetKind("counts of the mean rate", 1.0, "a log rate of 1"),
}


@dataclass(frozen=True)
class JudgedFit:
    """A fitted posterior, and the training rows on which it is judged, in training's units.

    Parameters
    ----------
    estimator : Reparameterised, ..., Linearised or DrawnWeights
        Model and posterior.
    theta : ndarray
        Learned numbers (P,); after sampling the draws (T, D).
    seed : int
        Seed of the weight samples; every measurement makes a new generator from it.
    x, y : ndarray (n, d_in), (n, K)
        Inputs and targets of the judged rows.
    n_samples : int
        Number of weight samples of a prediction.
    """

    estimator: Source
    theta: Array
    seed: int
    x: Array
    y: Array
    n_samples: int

    def _predict(self, function: Callable[..., Any], *targets: Array) -> Any:
        """Return `function`, one such as `predict`, of the posterior at the judged rows."""
        return function(
            self.estimator,
            self.theta,
            self.x,
            *targets,
            rng=np.random.default_rng(self.seed),
            samples=self.n_samples,
        )

    def log_density(self) -> Array:
        """Return the log predictive density (n,) of the judged rows, in nats, for standardised y.

        It is -inf where the network overflows.
        """
        density = self._predict(log_predictive_density, self.y)
        return np.where(np.isfinite(density), density, -np.inf).astype(np.float64)

    def interval_coverage(self) -> float:
        """Return the share of targets in their central 90 % intervals; nan if the noise is learned.

        Learned noise has the width of the residuals, whereas fixed noise may be far too small.
        """
        if not noise_is_fixed(self.estimator):
            return nan
        try:
            pit = self._predict(distribution_function, self.y)
        except (TypeError, ValueError):
            # There is no coverage if the likelihood has no CDF, or the network overflows
            return nan
        return float(np.mean(np.abs(pit - 0.5) <= 0.5 * COVERAGE))

    def spread_of_counts(self) -> dict[str, Any]:
        """Return posterior predictive checks of counts, as fields of a `FitReport` by name (D70).

        They are the sum of squared errors divided by the variance that the model expects, the share
        of zeros, and for both the largest value that the model explains: its mean for counts drawn
        from the model plus three standard deviations. The dict is empty where none can be drawn.
        """
        drawing = replace(self, n_samples=max(self.n_samples, MIN_FUNCTION_SAMPLES))
        means, scales = drawing._predict(mixture)  # of each weight sample, (S, n, K)
        try:
            drawn = drawing._predict(sample_targets)  # (S, n, K), with the same weights
        except (NotImplementedError, ValueError):  # rates beyond those of NumPy
            return {}
        variances = np.square(scales)
        ratios = np.square(drawn - means).sum(axis=(1, 2)) / variances.sum(axis=(1, 2))
        p_zero = np.mean(drawn == 0, axis=0)
        zeros_sd = np.sqrt(np.sum(p_zero * (1.0 - p_zero))) / p_zero.size
        # Zeros of a negative binomial distribution whose dispersion explains the errors (D70)
        mean = means.mean(axis=0)
        errors = np.square(self.y - mean).sum()
        alpha = max((errors - mean.sum()) / np.square(mean).sum(), SMALLEST_DISPERSION)
        explained = np.exp(-np.log1p(alpha * mean) / alpha)
        measured = {
            "dispersion": errors / variances.mean(axis=0).sum(),
            "largest_dispersion": ratios.mean() + N_STANDARD_DEVIATIONS * ratios.std(),
            "zero_share": np.mean(self.y == 0),
            "largest_zero_share": p_zero.mean() + N_STANDARD_DEVIATIONS * zeros_sd,
            "dispersed_zero_share": explained.mean(),
        }
        return {name: float(value) for name, value in measured.items()}

    def rmse(self) -> float:
        """Return the root mean square of y - E[y|x, w] over rows and weight samples."""
        prediction = self._predict(predict)
        squares = np.square(self.y - prediction.mean) + np.square(prediction.epistemic)
        return float(np.sqrt(squares.mean()))

    def posterior_function_sd(self) -> float:
        """Return the root mean square, over rows, of the standard deviation of f(x) over weights.

        The unit is that of `TARGETS`: 1 means that functions differ by as much as y varies.
        """
        rng = np.random.default_rng(self.seed)
        x = _spread_rows(self.x)
        n_outputs = self.estimator.model.outputs
        f = np.empty((MIN_FUNCTION_SAMPLES, len(x), n_outputs))
        blocks = outputs(self.estimator, self.theta, x, rng, MIN_FUNCTION_SAMPLES)
        for samples, rows, block, _ in blocks:
            f[samples, rows] = block[..., :n_outputs]
        sd = f.std(axis=0) / _unit(self.estimator.model.likelihood, self.y)
        return float(np.sqrt(np.square(sd).mean()))


def offsets(network: MLP, x: Array) -> Array:
    """Return the offsets (n, 1) among the inputs `x` of a network, 0 if it has none (D72)."""
    return x[:, network.sizes[0] :].sum(axis=1, keepdims=True)


def _spread_rows(x: Array) -> Array:
    """Return rows of `x` at equal intervals, about `N_FUNCTION_ROWS`, or all if there are fewer."""
    return x[:: max(1, len(x) // N_FUNCTION_ROWS)]


def _unit(likelihood: Likelihood, y: Array) -> Any:
    """Return the unit of functions: the standard deviation (K,) of real `y`, else a constant."""
    if likelihood.target_kind == "real":
        return moments(y, True)[1]
    return TARGETS[likelihood.target_kind].unit


def initial_parameters(prior: Prior) -> dict[str, Array]:
    """Return the initial values of a prior's learned parameters, by the names of their blocks."""
    return Layout(prior.blocks()).views(prior.init(np.float64))


def noise_is_fixed(estimator: Source) -> bool:
    """Return whether the likelihood has a noise scale, and it is not learned."""
    likelihood = estimator.model.likelihood
    return bool(likelihood.noise_name) and not likelihood.blocks(
        estimator.model.outputs
    )


def prior_function_sd(estimator: Source, x: Array, y: Array, seed: int) -> float:
    """Return how much functions drawn from the prior vary over rows; nan for maximum likelihood.

    It is the median over functions of their standard deviation over rows, in units of `TARGETS`.
    A learned scale of the prior is at its initial value.

    Parameters
    ----------
    estimator : Reparameterised, ..., Linearised or DrawnWeights
        Estimator whose model has the prior.
    x, y : ndarray (n, d_in), (n, K)
        Inputs and targets, in training's units.
    seed : int
        Seed of the weights drawn from the prior.
    """
    model, prior = estimator.model, estimator.model.prior
    if isinstance(getattr(estimator, "objective", None), MLE):
        return nan
    shape = (MIN_FUNCTION_SAMPLES, model.layout.size)
    w = prior.draw(np.random.default_rng(seed), initial_parameters(prior), shape)
    rows = _spread_rows(x)
    f = model.predict(w, rows)[..., : model.outputs] - offsets(model.network, rows)
    return float(np.median(f.std(axis=1) / _unit(model.likelihood, y)))


def baseline_log_density(
    likelihood: Likelihood,
    y: Array,
    judged_y: Array,
    exposure: Array | float = 1.0,
    judged_exposure: Array | float = 1.0,
) -> tuple[Array, int]:
    """Fit the baseline, which ignores X, and return its log densities and number of parameters.

    Half an observation is added to every count, so that the log probability of a class that never
    occurs is finite.

    Parameters
    ----------
    likelihood : Likelihood
        Distribution of y, which determines the baseline.
    y : ndarray (N, K)
        All targets, to which the baseline is fitted.
    judged_y : ndarray (n, K)
        Targets whose density is returned.
    exposure, judged_exposure : ndarray (N, 1), (n, 1), optional
        Exposures over which counts `y` and `judged_y` were observed; by default 1.

    Returns
    -------
    log_density : ndarray (n,)
        Log density of each judged target under the baseline, in nats.
    n_parameters : int
        Number of parameters of the baseline.
    """
    n_outputs = y.shape[1]
    if likelihood.target_kind == "count" and likelihood.blocks(n_outputs):
        return _count_baseline(likelihood, judged_y, judged_exposure)
    if likelihood.target_kind == "real":
        from scipy import stats  # imported here, since the import would delay --help

        gaussian = stats.norm(*moments(y.astype(np.float64), True))
        return gaussian.logpdf(judged_y).sum(axis=1), 2 * n_outputs
    total = y.sum(axis=0, dtype=np.float64) + 0.5
    complement: Any = np.sum(np.broadcast_to(exposure, (len(y), 1)))
    if isinstance(likelihood, BernoulliLikelihood):
        complement = len(y) - total + 1.0
    shape = (1, *judged_y.shape)
    constant = np.broadcast_to(
        np.log(total / complement * judged_exposure), shape
    ).copy()
    log_density, _ = likelihood.log_density({}, constant, judged_y)
    return log_density[0], n_outputs - isinstance(likelihood, CategoricalLikelihood)


def _count_baseline(
    likelihood: Likelihood, y: Array, exposure: Array | float
) -> tuple[Array, int]:
    """Fit constant log rates and the learned numbers of a likelihood of counts to y (n, K).

    Return the log density (n,) of each row in nats, and the number of parameters.
    """
    from scipy.optimize import (
        minimize,
    )  # imported here, since the import would delay --help

    n_outputs = y.shape[1]
    layout = Layout((("f", (n_outputs,)), *likelihood.blocks(n_outputs)))
    rates = (y.sum(axis=0) + 0.5) / np.sum(np.broadcast_to(exposure, (len(y), 1)))
    init = np.concatenate([np.log(rates), likelihood.init(n_outputs, np.float64)])

    def negative_log_likelihood(theta: Array) -> tuple[float, Array]:
        """Return minus the log likelihood of all rows, and its gradient."""
        params = layout.views(theta)
        f = np.broadcast_to(params["f"] + np.log(exposure), (1, *y.shape))
        value, saved = likelihood.log_likelihood(params, f, y)
        grad = np.empty_like(theta)
        d_params = layout.views(grad)
        d_f = likelihood.log_likelihood_vjp(saved, np.array([-1.0]), d_params)
        d_params["f"][...] = d_f.sum(axis=(0, 1))
        return -float(value[0]), grad

    fitted = minimize(negative_log_likelihood, init, jac=True, method="L-BFGS-B")
    params = layout.views(fitted.x)
    f = np.broadcast_to(params["f"] + np.log(exposure), (1, *y.shape))
    return likelihood.log_density(params, f, y)[0][0], len(init)


def bulk_sd(array: Array, judged: Array) -> float:
    """Return the bulk's standard deviation relative to the column's, for the worst column.

    It is small if a few rows are far from all others: it is 1 for a Gaussian column, near 0
    with far outliers. The standard deviation of the bulk is estimated from the 10 % and 90 %
    quantiles. Columns whose bulk is constant are left out.

    Parameters
    ----------
    array : ndarray (N, d)
        All rows, of which some may be extreme.
    judged : ndarray (n, d)
        Rows whose quantiles are taken.
    """
    low, high = np.quantile(judged, BULK_QUANTILES, axis=0)
    sds = (high - low) / (GAUSSIAN_BULK_WIDTH * moments(array, True)[1])
    return float(sds[high > low].min(initial=np.inf))


def linear_gain(x: Array, y: Array) -> float:
    """Return the log density that a least-squares line gains over a constant, in nats per row.

    BIC's penalty is subtracted. The gain is that of the best of the K outputs, and never negative.
    For classes and counts the line is fitted to their numbers, which detects a
    signal as well.

    Parameters
    ----------
    x, y : ndarray (n, d_in), (n, K)
        Inputs and targets.
    """
    n_rows = len(x)
    x, y = _standardise(x), _standardise(y)
    x = x[:, x.any(axis=0)]
    n_columns = x.shape[1]
    if n_rows < 2 * (n_columns + 1) or not n_columns:
        return 0.0
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    residual = np.square(y - fitted).mean(axis=0)
    residual = np.maximum(residual, np.finfo(float).eps)
    cost = 0.5 * n_columns * log(n_rows) / n_rows
    gain = -0.5 * np.log(residual[y.any(axis=0)]) - cost
    return max(float(gain.max(initial=0.0)), 0.0)


def _standardise(array: Array) -> Array:
    """Return columns with mean 0 and standard deviation 1; constant columns become 0."""
    mean, scale = moments(array, True)
    return (array - mean) / scale


def split_r_hat(values: Array) -> float:
    """Return split R-hat (Gelman and Rubin 1992) of `values` (T, S), T draws of each of S chains.

    Each chain is cut into two halves. R-hat is inf if no chain ever moves, or there are fewer than
    four draws.
    """
    half = len(values) // 2
    if half < 2:
        return inf
    halves = np.concatenate([values[:half], values[-half:]], axis=1).astype(np.float64)
    within = halves.var(axis=0, ddof=1).mean()
    if not within:
        return inf
    between = halves.mean(axis=0).var(ddof=1)
    return float(np.sqrt((half - 1) / half + between / within))


def chain_agreement(learner: Any, x: Array) -> dict[str, Any]:
    """Return R-hat of E[y|x, w] between a learner's chains, as fields of a `FitReport` by name.

    The keys are 'r_hat' and 'share_unmixed', or only 'unmeasured' if R-hat cannot be computed. The
    dict is empty for a learner without chains.

    Parameters
    ----------
    learner : BayesianMLPRegressor or BayesianMLPClassifier
        The fitted learner.
    x : ndarray (n, d_in)
        Rows in training's units, of which 50 are used.
    """
    if not hasattr(learner, "draws_"):
        return {}
    judged = np.linspace(0, len(x) - 1, min(N_R_HAT_ROWS, len(x))).astype(int)
    try:
        r_hats = function_r_hats(learner.draws_, x[judged])
    except (ImportError, ValueError) as error:
        return {"unmeasured": str(error)}
    return {
        "r_hat": float(r_hats.max()),
        "share_unmixed": float(np.mean(r_hats > MAX_R_HAT)),
    }


def _loss_per_row(history: Sequence[Epoch], n_rows: int) -> Array:
    """Return the negative log likelihood of each epoch, in nats per row, as a vector.

    The KL term is left out: warm-up changes its weight, and it falls for long without consequence
    while standard deviations still grow towards the prior's.
    """
    return np.array([epoch.nll for epoch in history]) / n_rows


def loss_slope(history: Sequence[Epoch], n_rows: int) -> tuple[float, float]:
    """Return the change of the loss if the number of epochs doubled, and its standard error.

    The change is extrapolated from a line fitted to the last quarter of the epochs. Both numbers
    are in nats per row, and nan for less than four epochs.

    Parameters
    ----------
    history : sequence of Epoch
        Epochs of training.
    n_rows : int
        Number of training rows, by which the loss is divided.
    """
    n_epochs = len(history)
    if n_epochs < MIN_EPOCHS:
        return nan, nan
    loss = _loss_per_row(history[-max(MIN_EPOCHS, n_epochs // 4) :], n_rows)
    (slope, _), covariance = np.polyfit(np.arange(len(loss)), loss, 1, cov=True)
    return float(slope * n_epochs), float(covariance[0, 0] ** 0.5 * n_epochs)


def loss_slope_along_path(history: Sequence[Epoch], n_rows: int) -> tuple[float, float]:
    """Return the change of the loss if the sum of learning rates doubled, and its standard error.

    The change is extrapolated from a line fitted over the last quarter of this sum, the path.
    Under a schedule whose rate falls to 0 the loss of the last epochs is flat however short
    training was, but they are a small part of the path. Both numbers are in nats per row, and nan
    for less than four epochs.

    Parameters
    ----------
    history : sequence of Epoch
        Epochs of training.
    n_rows : int
        Number of training rows, by which the loss is divided.
    """
    rate = np.array([epoch.learning_rate for epoch in history])
    if len(history) < MIN_EPOCHS or not rate.sum() > 0:
        return nan, nan
    path = np.cumsum(rate) / rate.sum()
    first = min(int(np.searchsorted(path, 0.75)), len(history) - MIN_EPOCHS)
    loss = _loss_per_row(history[first:], n_rows)
    (slope, _), covariance = np.polyfit(path[first:], loss, 1, cov=True)
    return float(slope), float(covariance[0, 0] ** 0.5)


def largest_loss_rise(history: Sequence[Epoch], n_rows: int) -> float:
    """Return the largest rise of the loss above its earlier minimum, in nats per row.

    Parameters
    ----------
    history : sequence of Epoch
        Epochs of training.
    n_rows : int
        Number of training rows, by which the loss is divided.
    """
    loss = _loss_per_row(history, n_rows)
    return float((loss - np.minimum.accumulate(loss)).max())

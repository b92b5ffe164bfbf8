"""What is measured of a fit on its training rows, so that no held-out rows are needed.

A posterior is judged on at most a thousand rows, in the units of training. No generator of the
learner is used, and no measurement changes a bit of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, nan
from typing import Any, NamedTuple

import numpy as np

from ..evaluation.convergence import function_r_hats
from ..evaluation.predictive import Source, log_predictive_density, outputs, predict
from ..evaluation.quantiles import distribution_function
from ..model.joint import Likelihood, Prior
from ..model.objectives import MLE
from ..numeric.layout import Array, Layout
from ..numeric.standardisation import moments
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
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
    "prior_function_sd",
    "split_r_hat",
]

COVERAGE = 0.9  # probability of the intervals that are looked at
MIN_EPOCHS = 4  # the loss is watched over their last quarter, and so many at least
# R-hat above which chains plainly differ (Gelman and Rubin 1992); mixed is below 1.01
MAX_R_HAT = 1.1
MIN_FUNCTION_SAMPLES = 32
N_FUNCTION_ROWS = 100  # rows at which functions are drawn, about
N_R_HAT_ROWS = 50  # which take about as many milliseconds
BULK_QUANTILES = (0.1, 0.9)
GAUSSIAN_BULK_WIDTH = 2.56  # standard deviations of a Gaussian between these quantiles


class TargetKind(NamedTuple):
    """What targets of one kind are compared with, and what functions have to vary by."""

    baseline: str  # the distribution of y that ignores X
    # standard deviation over rows of a function that describes y; nan: that of y itself
    unit: float
    unit_name: str


TARGETS = {
    "real": TargetKind("N(mean(y), var(y))", nan, "the standard deviation of y"),
    # a logit of 3 is a probability of 95 %
    "class": TargetKind("the base rates", 3.0, "a logit of 3"),
    "count": TargetKind("a Poisson of the mean rate", 1.0, "a log rate of 1"),
}


@dataclass(frozen=True)
class JudgedFit:
    """A fitted posterior, and the training rows on which it is judged, in training's units.

    Parameters
    ----------
    estimator : Reparameterised, ..., Linearised or DrawnWeights
        Model and posterior.
    theta : ndarray
        What was learned: (P,), after sampling the draws (T, P).
    seed : int
        Of the weights that are drawn; every measurement starts from it anew.
    x, y : ndarray (n, d_in), (n, K)
    n_samples : int
        Number of weight samples of a prediction.
    """

    estimator: Source
    theta: Array
    seed: int
    x: Array
    y: Array
    n_samples: int

    def log_density(self) -> Array:
        """Return log P(y|x, D) of each row (n,), in nats; -inf where it overflows."""
        rng = np.random.default_rng(self.seed)
        density = log_predictive_density(
            self.estimator, self.theta, self.x, self.y, rng=rng, samples=self.n_samples
        )
        return np.where(np.isfinite(density), density, -np.inf).astype(np.float64)

    def interval_coverage(self) -> float:
        """Return the share of targets in their central intervals; nan where noise is learned.

        Noise that is learned is as wide as the rows ask for, noise that is fixed may be anything.
        """
        if not noise_is_fixed(self.estimator):
            return nan
        rng = np.random.default_rng(self.seed)
        try:
            pit = distribution_function(
                self.estimator,
                self.theta,
                self.x,
                self.y,
                rng=rng,
                samples=self.n_samples,
            )
        except (TypeError, ValueError):
            return nan  # the likelihood has none, or the network overflows
        return float(np.mean(np.abs(pit - 0.5) <= 0.5 * COVERAGE))

    def rmse(self) -> float:
        """Return the root mean square of y - E[y|x, w] over rows and weights, of real y."""
        rng = np.random.default_rng(self.seed)
        prediction = predict(
            self.estimator, self.theta, self.x, rng=rng, samples=self.n_samples
        )
        squares = np.square(self.y - prediction.mean) + np.square(prediction.epistemic)
        return float(np.sqrt(squares.mean()))

    def posterior_function_sd(self) -> float:
        """Return the standard deviation of f(x) over weights, root mean square over rows.

        In units of `TARGETS`: it is 1 where the posterior leaves open as much as there is in y.
        """
        rng = np.random.default_rng(self.seed)
        x = _spread_rows(self.x)
        blocks = outputs(self.estimator, self.theta, x, rng, MIN_FUNCTION_SAMPLES)
        f = np.concatenate([block for *_, block, _ in blocks]).astype(np.float64)
        f = f[..., : self.estimator.model.outputs]
        sd = f.std(axis=0) / _unit(self.estimator.model.likelihood, self.y)
        return float(np.sqrt(np.square(sd).mean()))


def _spread_rows(x: Array) -> Array:
    return x[:: max(1, len(x) // N_FUNCTION_ROWS)]


def _unit(likelihood: Likelihood, y: Array) -> Any:
    """Return what functions have to vary by: a number, or one for each output (K,)."""
    if likelihood.target_kind == "real":
        return moments(y, True)[1]
    return TARGETS[likelihood.target_kind].unit


def initial_parameters(prior: Prior) -> dict[str, Array]:
    """Return what a prior learns, by block, as it is before training."""
    return Layout(prior.blocks()).views(prior.init(np.float64))


def noise_is_fixed(estimator: Source) -> bool:
    """Whether the likelihood has a noise scale that is not learned."""
    likelihood = estimator.model.likelihood
    return bool(likelihood.noise_name) and not likelihood.blocks(
        estimator.model.outputs
    )


def prior_function_sd(estimator: Source, x: Array, y: Array, seed: int) -> float:
    """Return how much functions under the prior vary over the rows; nan without a prior.

    The median over functions of their standard deviation over rows, under the prior before
    training, in units of `TARGETS`.

    Parameters
    ----------
    estimator : Reparameterised, ..., Linearised or DrawnWeights
    x, y : ndarray (n, d_in), (n, K)
        In training's units.
    seed : int
    """
    model, prior = estimator.model, estimator.model.prior
    if isinstance(getattr(estimator, "objective", None), MLE):
        return nan
    shape = (MIN_FUNCTION_SAMPLES, model.layout.size)
    w = prior.draw(np.random.default_rng(seed), initial_parameters(prior), shape)
    f = model.predict(w, _spread_rows(x))[..., : model.outputs]
    return float(np.median(f.std(axis=1) / _unit(model.likelihood, y)))


def baseline_log_density(
    likelihood: Likelihood, y: Array, judged_y: Array
) -> tuple[Array, int]:
    """Return the log density of each judged row under the best model that ignores X.

    Half an observation is added to every count, so that what never occurs has a logarithm.

    Parameters
    ----------
    likelihood : Likelihood
    y : ndarray (N, K)
        All targets, to which the baseline is fitted.
    judged_y : ndarray (n, K)
        Those whose density is returned.

    Returns
    -------
    log_density : ndarray (n,)
        In nats.
    n_parameters : int
        Of the baseline.
    """
    n_outputs = y.shape[1]
    if likelihood.target_kind == "real":
        from scipy import stats  # --help does not wait for it

        gaussian = stats.norm(*moments(y.astype(np.float64), True))
        return gaussian.logpdf(judged_y).sum(axis=1), 2 * n_outputs
    total = y.sum(axis=0, dtype=np.float64) + 0.5
    complement: Any = len(y)
    if isinstance(likelihood, BernoulliLikelihood):
        complement = len(y) - total + 1.0
    shape = (1, *judged_y.shape)
    constant = np.broadcast_to(np.log(total / complement), shape).copy()
    log_density, _ = likelihood.log_density({}, constant, judged_y)
    return log_density[0], n_outputs - isinstance(likelihood, CategoricalLikelihood)


def bulk_sd(array: Array, judged: Array) -> float:
    """Return the smallest standard deviation of the bulk of a column, in units of the column's.

    It is small where a few rows are far from all others. Columns whose bulk does not vary at all
    are left out, as they have nothing to lose.

    Parameters
    ----------
    array : ndarray (N, d)
        All rows, of which some may be extreme.
    judged : ndarray (n, d)
        Those of which the bulk is taken.
    """
    low, high = np.quantile(judged, BULK_QUANTILES, axis=0)
    sds = (high - low) / (GAUSSIAN_BULK_WIDTH * moments(array, True)[1])
    return float(sds[high > low].min(initial=np.inf))


def linear_gain(x: Array, y: Array) -> float:
    """Return what a least-squares line gains over a constant, less what it costs (BIC).

    In nats per row. For classes and counts its correlation with their numbers is as good a sign of
    a signal.

    Parameters
    ----------
    x, y : ndarray (n, d_in), (n, K)
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
    mean, scale = moments(array, True)
    return (array - mean) / scale


def split_r_hat(values: Array) -> float:
    """Return R-hat of numbers (T, S), each of S chains cut in two (Gelman and Rubin 1992).

    It is infinite where the chains stand still, or have fewer than four draws.
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
    """Return how far chains agree on E[y|x] at 50 rows: fields of a report, none after training.

    Without ArviZ the one field says what to install.

    Parameters
    ----------
    learner : BayesianMLPRegressor or BayesianMLPClassifier
    x : ndarray (n, d_in)
        In training's units.
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
    """Return the negative log likelihood of each epoch, (epochs,), in nats per row.

    The rest of the loss is changed by warm-up, and falls for long without consequence where
    standard deviations still grow towards the prior's.
    """
    return np.array([epoch.nll for epoch in history]) / n_rows


def loss_slope(history: Sequence[Epoch], n_rows: int) -> tuple[float, float]:
    """Return the change of the loss that as many further epochs would bring, and its error.

    It extrapolates the last quarter of the epochs. The second number is the standard error. Both
    are in nats per row, and nan for less than four epochs.

    Parameters
    ----------
    history : sequence of Epoch
    n_rows : int
    """
    n_epochs = len(history)
    if n_epochs < MIN_EPOCHS:
        return nan, nan
    loss = _loss_per_row(history[-max(MIN_EPOCHS, n_epochs // 4) :], n_rows)
    (slope, _), covariance = np.polyfit(np.arange(len(loss)), loss, 1, cov=True)
    return float(slope * n_epochs), float(covariance[0, 0] ** 0.5 * n_epochs)


def loss_slope_along_path(history: Sequence[Epoch], n_rows: int) -> tuple[float, float]:
    """Return the change of the loss per row that as long a path again would bring, and its error.

    The path of an epoch is its learning rate. Where a schedule lets the rate fall, the last epochs
    are flat however short training was; along the path they are few.

    Parameters
    ----------
    history : sequence of Epoch
    n_rows : int
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
    """Return how far the loss per row has risen above its lowest value before.

    Parameters
    ----------
    history : sequence of Epoch
    n_rows : int
    """
    loss = _loss_per_row(history, n_rows)
    return float((loss - np.minimum.accumulate(loss)).max())

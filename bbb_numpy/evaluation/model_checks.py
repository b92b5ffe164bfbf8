"""Model checking (M22): prior predictive draws, posterior predictive checks, reweighted draws.

`prior_predictive` draws targets that the model expects before any data; `posterior_check` compares
data replicated from the posterior with the observed data; `reweight` turns draws of one posterior
into weighted draws of the posterior under another prior.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from math import log
from typing import NamedTuple

import numpy as np

from ..model.log_joint import LogJoint
from ..numeric.deprecation import accept_old_attributes
from ..numeric.elementary import logsumexp
from ..numeric.layout import Array
from ..numeric.validation import (
    FUNCTION,
    GENERATOR,
    InstanceOf,
    MappingOf,
    Numbers,
    accepts,
)

__all__ = [
    "QUANTITIES",
    "Check",
    "Predicted",
    "Quantity",
    "Reweighted",
    "posterior_check",
    "predicted",
    "prior_predictive",
    "reweight",
]

MIN_ESS_SHARE = 0.1  # `reweight` warns if fewer draws are effective, as a share of all


class Predicted(NamedTuple):
    """Predictions at N rows of each of S draws of the weights and learned numbers."""

    mean: Array  # (S, N, K)  E[y|x, w]: functions, probabilities or rates
    sd: Array  # (S, N, K)  standard deviation of y around `mean`, given the weights
    targets: Array  # (S, N, K)  one draw of y for each draw of the weights


accept_old_attributes(Predicted, {"deviation": "sd"})


@accepts(joint=InstanceOf(LogJoint), rng=GENERATOR)
def predicted(
    joint: LogJoint, positions: Array, rng: np.random.Generator, x: Array | None = None
) -> Predicted:
    """Return mean, standard deviation and one draw of y, for each draw of the weights.

    Parameters
    ----------
    joint : LogJoint
        Model with its data.
    positions : ndarray (S, D)
        Draws of weights and learned numbers from the posterior, or from the prior.
    rng : numpy.random.Generator
        Draws the targets.
    x : ndarray (N, d_in), optional
        Rows at which to predict. By default the rows of the data.

    Returns
    -------
    Predicted
    """
    positions = Numbers((None, joint.layout.size))("positions", positions)
    rows = joint.x
    if x is not None:
        rows = Numbers((None, joint.model.network.n_columns))("x", x)
    likelihood = joint.model.likelihood
    params = joint.params(positions)
    w = np.ascontiguousarray(joint.weights(positions))
    f = joint.model.predict(w, rows)
    mean = likelihood.mean(params, f).copy()
    sd = np.broadcast_to(np.sqrt(likelihood.variance(params, f)), mean.shape)
    return Predicted(mean, sd, likelihood.draw(rng, params, f))


@accepts(joint=InstanceOf(LogJoint))
def prior_predictive(
    joint: LogJoint,
    rng: np.random.Generator,
    samples: int = 100,
    x: Array | None = None,
) -> Predicted:
    """Draw weights from the prior, and return the predictions that they make (M22).

    Weights are drawn from the prior, learned scales from their hyperpriors. The targets of the data
    are not used.

    Parameters
    ----------
    joint : LogJoint
        Model with its data.
    rng : numpy.random.Generator
        Draws weights, learned numbers and targets.
    samples : int
        Number of draws S.
    x : ndarray (N, d_in), optional
        Rows at which to predict. By default the rows of the data.

    Returns
    -------
    Predicted
    """
    return predicted(joint, joint.draw_prior(rng, samples), rng, x)


# A test quantity is a function of targets y (S or 1, N, K) and of their means and standard
# deviations (S, N, K) that returns one number for each draw, (S,)
Quantity = Callable[[Array, Array, Array], Array]


def _of_residuals(quantity: Callable[[Array], Array]) -> Quantity:
    """Return a test quantity: `quantity` of the standardised residuals (y - mean) / sd."""
    return lambda y, mean, sd: quantity((y - mean) / sd)


QUANTITIES: Mapping[str, Quantity] = {
    "mean of y": lambda y, mean, sd: y.mean(axis=(1, 2)),
    "deviation of y": lambda y, mean, sd: y.std(axis=(1, 2)),
    "smallest y": lambda y, mean, sd: y.min(axis=(1, 2)),
    "largest y": lambda y, mean, sd: y.max(axis=(1, 2)),
    "sum of squared residuals": _of_residuals(lambda z: (z**2).sum(axis=(1, 2))),
    "largest residual": _of_residuals(lambda z: np.abs(z).max(axis=(1, 2))),
    # mean product of the residuals of adjacent rows: serial correlation
    "residuals of neighbours": _of_residuals(
        lambda z: (z[:, 1:] * z[:, :-1]).mean(axis=(1, 2))
    ),
}


class Check(NamedTuple):
    """Values of one test quantity T, for the data and for replicated data."""

    # (S,) T of the observed data for each draw of the weights, on which residuals depend
    observed: Array
    replicated: Array  # (S,) T of the data replicated from each draw

    @property
    def p_value(self) -> float:
        """Posterior predictive p-value P(T(replicated) > T(observed)), ties counted half (M22).

        A value near 0 or 1 says that the model does not produce such data. Under a right model the
        p-value is not uniform but closer to 1/2, since the posterior was fitted to the same data.
        """
        above = self.replicated > self.observed
        return float(np.mean(above + 0.5 * (self.replicated == self.observed)))


@accepts(joint=InstanceOf(LogJoint), quantities=MappingOf(FUNCTION))
def posterior_check(
    joint: LogJoint,
    positions: Array,
    rng: np.random.Generator,
    quantities: Mapping[str, Quantity] = QUANTITIES,
) -> dict[str, Check]:
    """Compute test quantities of the observed data, and of data replicated from each draw (M22).

    Parameters
    ----------
    joint : LogJoint
        Model with its data. The quantity "residuals of neighbours" has a meaning only if the rows
        are ordered, by time or by an input.
    positions : ndarray (S, D)
        Draws of the posterior, e.g. ``draws.flat``; of the prior for a prior predictive check.
    rng : numpy.random.Generator
        Draws the replicated data.
    quantities : dict of str to callable
        ``quantity(y, mean, sd)`` of targets (S or 1, N, K), means and standard deviations
        (S, N, K) returns one number for each draw (S,).

    Returns
    -------
    dict of str to Check
        Values of each quantity, by its name.
    """
    mean, sd, targets = predicted(joint, positions, rng)
    checks = {}
    for name, quantity in quantities.items():
        observed = quantity(joint.y[None], mean, sd)  # T of the data, per draw (M22)
        observed = np.broadcast_to(observed, len(positions))
        checks[name] = Check(observed, quantity(targets, mean, sd))
    return checks


class Reweighted(NamedTuple):
    """Draws of one posterior as weighted draws of another."""

    weights: Array  # (S,)  importance weights, which sum to 1
    # number of unweighted draws from the other posterior of equal worth: 1 / sum of weights^2
    effective_sample_size: float
    # log P'(D) - log P(D) in nats: log Bayes factor of the other model against this one
    log_ratio: float

    def mean(self, values: Array) -> Array:
        """Return the weighted mean of `values` (S, ...): the mean under the other posterior."""
        return np.tensordot(self.weights, values, axes=1)


accept_old_attributes(
    Reweighted, {"shares": "weights", "effective": "effective_sample_size"}
)


@accepts(joint=InstanceOf(LogJoint), other=InstanceOf(LogJoint))
def reweight(joint: LogJoint, other: LogJoint, positions: Array) -> Reweighted:
    """Return importance weights with which draws of one posterior represent another (M22).

    So the posterior under another prior is found without sampling again. The weights are
    proportional to P'(w, u, D) / P(w, u, D), where P is the joint density of `joint`, P' that of
    `other`, and u are the learned numbers.

    Parameters
    ----------
    joint : LogJoint
        Model and data whose posterior was sampled.
    other : LogJoint
        Model and data of the other posterior: any prior, noise or likelihood, with the same network
        and the same learned numbers.
    positions : ndarray (S, D)
        Draws of the posterior of `joint`, e.g. ``draws.flat``.

    Returns
    -------
    Reweighted

    Warns
    -----
    UserWarning
        If less than a tenth of the draws is effective: then sample the other posterior itself.
    """
    if joint.layout != other.layout:
        raise ValueError(
            "both models must have the same network and learned numbers; got "
            f"{joint.layout.blocks} and {other.layout.blocks}"
        )
    positions = Numbers((None, joint.layout.size))("positions", positions)
    log_weights = other(positions)[0] - joint(positions)[0]
    log_total = float(logsumexp(log_weights))
    weights = np.exp(log_weights - log_total)
    effective = float(1.0 / np.sum(weights**2))
    if effective < MIN_ESS_SHARE * len(weights):
        warnings.warn(
            f"only {effective:.1f} of {len(weights)} draws are effective under the other model, "
            "whose posterior is too different; sample that model itself",
            # the warning names the caller's line, beyond the wrapper that checks arguments
            stacklevel=3,
        )
    return Reweighted(weights, effective, log_total - log(len(weights)))

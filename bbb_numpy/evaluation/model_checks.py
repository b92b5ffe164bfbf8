"""Model checking (M22): what the model can say before and after the data.

`prior_predictive` draws what the model expects before any data; `posterior_check` compares data
replicated from the posterior with those seen; `reweight` asks what another prior would have
made of the same draws.
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

MIN_ESS_SHARE = 0.1  # of the draws: with fewer effective ones, `reweight` warns


class Predicted(NamedTuple):
    """What S draws of weights and learned numbers predict at N rows."""

    mean: Array  # (S, N, K)  E[y|x, w]: functions, probabilities or rates
    sd: Array  # (S, N, K)  standard deviation of y around it
    targets: Array  # (S, N, K)  one draw of y for each draw of the weights


accept_old_attributes(Predicted, {"deviation": "sd"})


@accepts(joint=InstanceOf(LogJoint), rng=GENERATOR)
def predicted(
    joint: LogJoint, positions: Array, rng: np.random.Generator, x: Array | None = None
) -> Predicted:
    """Return the mean and standard deviation of y for each draw, and targets drawn given it.

    Parameters
    ----------
    joint : LogJoint
    positions : ndarray (S, D)
        Draws of the posterior, or of the prior.
    rng : numpy.random.Generator
        Draws the targets.
    x : ndarray (N, d_in), optional
        By default the rows of the data.

    Returns
    -------
    Predicted
    """
    positions = Numbers((None, joint.layout.size))("positions", positions)
    rows = joint.x
    if x is not None:
        rows = Numbers((None, joint.model.network.sizes[0]))("x", x)
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
    """Return what the model predicts before it sees a target (M22).

    Weights come from the prior, learned scales from their hyperpriors. Of the data only x is used,
    and not even that if `x` is given.

    Parameters
    ----------
    joint : LogJoint
    rng : numpy.random.Generator
    samples : int
        Number of draws S.
    x : ndarray (N, d_in), optional
        By default the rows of the data.

    Returns
    -------
    Predicted
    """
    return predicted(joint, joint.draw_prior(rng, samples), rng, x)


# A test quantity: numbers (S,) of targets y (S or 1, N, K), given means and standard deviations
# (S, N, K)
Quantity = Callable[[Array, Array, Array], Array]


def _of_residuals(quantity: Callable[[Array], Array]) -> Quantity:
    """Return the quantity of residuals in units of the model's own standard deviation."""
    return lambda y, mean, sd: quantity((y - mean) / sd)


QUANTITIES: Mapping[str, Quantity] = {
    "mean of y": lambda y, mean, sd: y.mean(axis=(1, 2)),
    "deviation of y": lambda y, mean, sd: y.std(axis=(1, 2)),
    "smallest y": lambda y, mean, sd: y.min(axis=(1, 2)),
    "largest y": lambda y, mean, sd: y.max(axis=(1, 2)),
    "sum of squared residuals": _of_residuals(lambda z: (z**2).sum(axis=(1, 2))),
    "largest residual": _of_residuals(lambda z: np.abs(z).max(axis=(1, 2))),
    # mean product of one row's and the next one's
    "residuals of neighbours": _of_residuals(
        lambda z: (z[:, 1:] * z[:, :-1]).mean(axis=(1, 2))
    ),
}


class Check(NamedTuple):
    """One test quantity, for the data and for replications of them."""

    observed: Array  # (S,)  a number for each draw: residuals depend on it
    replicated: Array  # (S,)

    @property
    def p_value(self) -> float:
        """Posterior predictive p-value P(T(replicated) > T(observed)), ties counted half (M22).

        Near 0 or 1: the model does not produce such data. It is not uniform under a right model
        but closer to 1/2, since the data have been used to find the posterior.
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
    """Return test quantities of the data, and of a replication for each draw (M22).

    Parameters
    ----------
    joint : LogJoint
        Rows in an order that means something (time, the input) if "residuals of neighbours" is
        to mean something.
    positions : ndarray (S, D)
        Draws of the posterior, e.g. ``draws.flat``; of the prior for a prior predictive check.
    rng : numpy.random.Generator
    quantities : dict of str to callable
        ``quantity(y, mean, sd)`` of targets (S or 1, N, K), means and standard deviations
        (S, N, K) returns one number for each draw (S,).

    Returns
    -------
    dict of str to Check
        By the name of the quantity.
    """
    mean, sd, targets = predicted(joint, positions, rng)
    checks = {}
    for name, quantity in quantities.items():
        observed = quantity(joint.y[None], mean, sd)  # M22
        observed = np.broadcast_to(observed, len(positions))
        checks[name] = Check(observed, quantity(targets, mean, sd))
    return checks


class Reweighted(NamedTuple):
    """Draws of one posterior as weighted draws of another."""

    weights: Array  # (S,)  they sum to 1
    effective_sample_size: (
        float  # as many draws of the other posterior would do as well
    )
    log_ratio: float  # log P'(D) - log P(D): the Bayes factor of the two priors, nats

    def mean(self, values: Array) -> Array:
        """Return the mean of `values` (S, ...) under the other posterior."""
        return np.tensordot(self.weights, values, axes=1)


accept_old_attributes(
    Reweighted, {"shares": "weights", "effective": "effective_sample_size"}
)


@accepts(joint=InstanceOf(LogJoint), other=InstanceOf(LogJoint))
def reweight(joint: LogJoint, other: LogJoint, positions: Array) -> Reweighted:
    """Return the draws of one posterior as weighted draws of another (M22).

    So one learns what another prior would have made of the data, without sampling again. The
    weights are proportional to P'(w, u, D) / P(w, u, D), P' that of `other`.

    Parameters
    ----------
    joint : LogJoint
        Of which the draws are.
    other : LogJoint
        Of any prior, noise or likelihood with the same network and learned numbers.
    positions : ndarray (S, D)
        Draws, e.g. ``draws.flat``.

    Returns
    -------
    Reweighted

    Warns
    -----
    UserWarning
        If less than a tenth of the draws is effective: sample the other model itself.
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
            f"only {effective:.1f} of {len(weights)} draws are effective under the other model; "
            "its posterior lies elsewhere: sample it",
            stacklevel=3,  # beyond the check of the arguments: whoever called
        )
    return Reweighted(weights, effective, log_total - log(len(weights)))

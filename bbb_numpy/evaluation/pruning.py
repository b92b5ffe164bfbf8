r"""Which weights matter: signal-to-noise ratios, and networks without the rest.

Blundell et al. 2015, Section 5.1: order the weights by :math:`|\mu| / \sigma` and remove those
with the lowest ratios (D36).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.estimator import GradientEstimator
from ..numeric.deprecation import renamed_arguments
from ..numeric.elementary import softplus
from ..numeric.layout import Array, Layout
from ..numeric.validation import (
    NUMBERS,
    SHARE,
    SMALLEST_POSITIVE,
    InstanceOf,
    Numbers,
    accepts,
    short_repr,
)
from ..parts.posteriors import MeanField

__all__ = [
    "decibels",
    "lowest",
    "matrices",
    "prune",
    "signal_to_noise",
    "signal_to_noise_of",
]

REMOVED_RHO = -1000.0  # softplus of it is exactly 0 in float32 and float64


@renamed_arguments(deviation="scale")
@accepts(mean=NUMBERS, scale=Numbers(low=SMALLEST_POSITIVE))
def signal_to_noise(mean: Any, scale: Any) -> Array:
    r"""Return the signal-to-noise ratio :math:`|\mu| / \sigma`, elementwise (D36).

    Parameters
    ----------
    mean, scale : array-like
        mu, and sigma > 0.
    """
    with np.errstate(over="ignore"):
        return np.abs(np.asarray(mean, float)) / np.asarray(scale, float)  # D36


@renamed_arguments(family="estimator")
@accepts(estimator=InstanceOf(GradientEstimator))
def signal_to_noise_of(estimator: GradientEstimator, theta: Array) -> Array:
    """Return the signal-to-noise ratio |mu| / sigma (P,) of every weight and bias.

    Parameters
    ----------
    estimator : GradientEstimator
        With a mean-field posterior.
    theta : ndarray (2 P,)
        What it learned.

    Raises
    ------
    ValueError
        For another posterior: only independent weights can be judged one by one.
    """
    if not isinstance(estimator.posterior, MeanField):
        raise ValueError(
            "pruning by signal-to-noise needs independent weights, a MeanField posterior; got "
            f"{type(estimator.posterior).__name__}"
        )
    theta = Numbers((estimator.layout.size,))("theta", theta)
    blocks = estimator.layout.views(theta)
    return signal_to_noise(blocks["mu"], softplus(np.asarray(blocks["rho"], float)))


@accepts(ratio=Numbers(finite=False, low=0.0))
def decibels(ratio: Any) -> Array:
    """Return 10 log10(ratio), elementwise; -inf for 0.

    The paper's figure is in dB and does not say of what; this is the ratio itself, not its
    square, which would be twice as much.
    """
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(np.asarray(ratio, float))


def matrices(layout: Layout) -> NDArray[np.bool_]:
    """Return which of the P weights stand in matrices ``W0``, ``W1``, ..., not in biases."""
    in_matrix = np.zeros(layout.size, bool)
    for name, block in layout.slices.items():
        in_matrix[block] = name.startswith("W")
    return in_matrix


@accepts(ratio=Numbers((None,), low=0.0, finite=False), share=SHARE)
def lowest(
    ratio: Any, share: float, eligible: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Return which weights (P,) to remove: the given share with the lowest ratios (D36).

    Parameters
    ----------
    ratio : ndarray (P,)
        Signal-to-noise ratios, as of `signal_to_noise_of`.
    share : float
        Between 0 and 1, of the eligible weights; their number is rounded. Of equal ratios the
        first are removed first, so that the number is always met.
    eligible : ndarray (P,) of bool, optional
        Weights that may be removed; by default all. `matrices` leaves the biases alone.

    Returns
    -------
    ndarray (P,) of bool
    """
    if eligible is None:
        eligible = np.ones(len(ratio), bool)
    eligible = np.asarray(eligible)
    if eligible.shape != ratio.shape or eligible.dtype != bool:
        raise ValueError(
            f"eligible must hold one truth value for each of {len(ratio)} ratios; "
            f"got {short_repr(eligible)}"
        )
    order = np.flatnonzero(eligible)[np.argsort(ratio[eligible], kind="stable")]
    removed = np.zeros(len(ratio), bool)
    removed[order[: round(share * len(order))]] = True
    return removed


@renamed_arguments(family="estimator")
def prune(
    estimator: GradientEstimator,
    theta: Array,
    share: float,
    eligible: NDArray[np.bool_] | None = None,
) -> Array:
    r"""Return a copy of a mean-field `theta` without the weights of lowest ratio (D36).

    A removed weight has mu = 0 and rho = `REMOVED_RHO`, whose softplus is exactly 0 in floating
    point: every sampled network has exactly 0 in its place, which is to remove it. A small but
    positive sigma would leave noise, and mu = 0 alone its old sigma: N(0, sigma^2) is a weight.

    The result is for predicting. Its free energy is finite but meaningless, since the entropy
    of a removed weight is about -1000 nats; to train on, remove again after every step.

    Parameters
    ----------
    estimator : GradientEstimator
        With a mean-field posterior.
    theta : ndarray (2 P,)
        What it learned; it is not changed.
    share : float
        Share of the eligible weights to remove, between 0 and 1; their number is rounded.
    eligible : ndarray (P,) of bool, optional
        Weights that may be removed; by default all, biases too. `matrices` leaves these alone.

    Returns
    -------
    ndarray (2 P,)

    Raises
    ------
    ValueError
        For another posterior: only independent weights can be judged one by one.
    """
    removed = lowest(signal_to_noise_of(estimator, theta), share, eligible)
    pruned = np.array(theta)
    blocks = estimator.layout.views(pruned)
    blocks["mu"][removed] = 0.0
    blocks["rho"][removed] = REMOVED_RHO
    return pruned

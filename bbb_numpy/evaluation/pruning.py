r"""Pruning: signal-to-noise ratios of weights, and networks without the lowest ones.

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

# rho of a removed weight; softplus(rho), its sigma, is exactly 0 in float32 and float64
REMOVED_RHO = -1000.0


@renamed_arguments(deviation="scale")
@accepts(mean=NUMBERS, scale=Numbers(low=SMALLEST_POSITIVE))
def signal_to_noise(mean: Any, scale: Any) -> Array:
    r"""Return the signal-to-noise ratio :math:`|\mu| / \sigma` of weights, elementwise (D36).

    Parameters
    ----------
    mean, scale : array-like
        Means mu and standard deviations sigma > 0, of shapes that broadcast.
    """
    with np.errstate(over="ignore"):
        return np.abs(np.asarray(mean, float)) / np.asarray(scale, float)  # SNR (D36)


@renamed_arguments(family="estimator")
@accepts(estimator=InstanceOf(GradientEstimator))
def signal_to_noise_of(estimator: GradientEstimator, theta: Array) -> Array:
    """Return the signal-to-noise ratio |mu| / sigma (P,) of every weight and bias.

    Parameters
    ----------
    estimator : GradientEstimator
        With a mean-field posterior.
    theta : ndarray (2 P,)
        Parameters of the posterior: mu and rho of P weights and biases.

    Raises
    ------
    ValueError
        If the posterior is not mean-field: only independent weights can be judged one by one.
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
    """Convert ratios >= 0 to decibels, 10 log10(ratio), elementwise; -inf for a ratio of 0.

    The figure of Blundell et al. is in dB without a definition. Here it is the ratio itself that is
    converted, not its square, which would have twice as many decibels.
    """
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(np.asarray(ratio, float))


def matrices(layout: Layout) -> NDArray[np.bool_]:
    """Return a mask (P,) over weights and biases that is True for weights and False for biases."""
    in_matrix = np.zeros(layout.size, bool)
    for name, block in layout.slices.items():
        in_matrix[block] = name.startswith("W")
    return in_matrix


@accepts(ratio=Numbers((None,), low=0.0, finite=False), share=SHARE)
def lowest(
    ratio: Any, share: float, eligible: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Return a mask (P,) that is True for the share of weights with the lowest ratios (D36).

    Parameters
    ----------
    ratio : ndarray (P,)
        Signal-to-noise ratios |mu| / sigma, as `signal_to_noise_of` returns them.
    share : float
        Share of the eligible weights to remove, between 0 and 1; their number is rounded. Of equal
        ratios the first in order are removed first, so that the number is exact.
    eligible : ndarray (P,) of bool, optional
        Weights that may be removed; by default all. `matrices` leaves the biases alone.

    Returns
    -------
    ndarray (P,) of bool
        True for a weight to remove.
    """
    if eligible is None:
        eligible = np.ones(len(ratio), bool)
    eligible = np.asarray(eligible)
    if eligible.shape != ratio.shape or eligible.dtype != bool:
        raise ValueError(
            f"eligible must be an array of bool, one for each of the {len(ratio)} ratios; "
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
    r"""Return parameters in which the weights of lowest signal-to-noise |mu| / sigma are 0 (D36).

    A removed weight has mu = 0 and rho = `REMOVED_RHO`, whose softplus sigma is exactly 0 in
    floating point, so that it is exactly 0 in every sampled network. With a small but positive
    sigma, or with mu = 0 and its old sigma, the weight would add noise to the outputs.

    The result is for predicting. Its free energy is finite but meaningless, since the entropy
    of a removed weight is about -1000 nats. To train it further, prune again after every step.

    Parameters
    ----------
    estimator : GradientEstimator
        With a mean-field posterior.
    theta : ndarray (2 P,)
        Parameters of the posterior: mu and rho of P weights and biases. It is not changed.
    share : float
        Share of the eligible weights to remove, between 0 and 1; their number is rounded.
    eligible : ndarray (P,) of bool, optional
        Weights that may be removed; by default all weights and biases. The mask that `matrices`
        returns excludes the biases.

    Returns
    -------
    ndarray (2 P,)
        Parameters of the pruned posterior.

    Raises
    ------
    ValueError
        If the posterior is not mean-field: only independent weights can be judged one by one.
    """
    removed = lowest(signal_to_noise_of(estimator, theta), share, eligible)
    pruned = np.array(theta)
    blocks = estimator.layout.views(pruned)
    blocks["mu"][removed] = 0.0
    blocks["rho"][removed] = REMOVED_RHO
    return pruned

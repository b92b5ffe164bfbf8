"""How much of the KL term each minibatch and each epoch pays (contract 5, D6, D24).

*Shares* pi_i divide one KL term between the minibatches of an epoch and sum to 1. A *warm-up*
multiplies all of them by one factor beta(epoch), 0 < beta <= 1, which is 1 in the last epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..numeric.layout import Array
from ..numeric.validation import COUNT, Numbers, accepts, check_fields, real

__all__ = [
    "CyclicalWarmUp",
    "LinearWarmUp",
    "NoWarmUp",
    "Shares",
    "WarmUp",
    "geometric_kl_weights",
    "proportional_kl_weights",
]

# Function that maps the batch sizes of an epoch to the minibatches' shares of the KL term
Shares = Callable[[Any], Array]
# Function that maps an epoch, counted from 0, and the number of epochs to a factor of the KL term
WarmUp = Callable[[int, int], float]
SHARE_OF_EPOCHS = partial(
    real, low=1e-12, high=1.0 + 1e-12, expected="a number > 0 and <= 1"
)


def proportional_kl_weights(batch_sizes: ArrayLike) -> Array:
    """Return each minibatch's share of the KL term in one epoch, proportional to its rows (D6).

    The share is B_i / N, the minibatch's part of all rows, and all shares sum to 1. With one
    example per step this is the 1/n of K18; with a ragged last minibatch it stays
    exact, where 1/M would not. A minibatch whose rows all have weight 0 (D45) has the share 0.

    Parameters
    ----------
    batch_sizes : array_like (M,)
        Number of rows of each minibatch, or sum of the weights of its rows; >= 0.

    Returns
    -------
    ndarray (M,)
        Shares of the KL term, which sum to 1.
    """
    rows = np.asarray(batch_sizes, float)
    if rows.ndim != 1 or not (rows >= 0).all() or not 0 < rows.sum() < np.inf:
        raise ValueError(
            "batch_sizes must be a vector of finite numbers >= 0, of which at least one is "
            f"> 0; got {batch_sizes!r}"
        )
    return rows / rows.sum()


@accepts(batch_sizes=Numbers((None,)))
def geometric_kl_weights(batch_sizes: ArrayLike) -> Array:
    """Return each minibatch's share of the KL term in one epoch, halved from one to the next (D6).

    Minibatch i of M has the share 2^(M-i) / (2^M - 1), computed without overflow for any M. The
    prior dominates in the first minibatches, the data in the last ones (Blundell et
    al. 2015, Section 3.4).

    Parameters
    ----------
    batch_sizes : array_like (M,)
        Number of rows of each minibatch, of which only the number M of minibatches matters.

    Returns
    -------
    ndarray (M,)
        Shares of the KL term, which sum to 1.
    """
    half_powers = 0.5 ** np.arange(1.0, len(np.asarray(batch_sizes)) + 1.0)
    return half_powers / half_powers.sum()


@dataclass(frozen=True)
class NoWarmUp:
    """Factor of the KL term without a warm-up, 1 in every epoch."""

    def __call__(self, epoch: int, epochs: int) -> float:
        """Return the factor 1 for every epoch."""
        return 1.0


@dataclass(frozen=True)
class LinearWarmUp:
    """Factor beta that rises linearly to 1 over the first `share` of the epochs, then stays (D24).

    Epoch e of a ramp of R epochs has beta = (e + 1) / R, so that no epoch ignores the KL term.

    Parameters
    ----------
    share : float
        Part of the epochs that the ramp takes, > 0 and <= 1.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, share=SHARE_OF_EPOCHS)

    def __call__(self, epoch: int, epochs: int) -> float:
        """Return the factor beta of the KL term in an epoch, min((epoch + 1) / ramp, 1) (D24).

        Parameters
        ----------
        epoch : int
            Number of the epoch, counted from 0.
        epochs : int
            Number of epochs of the training.
        """
        return min((epoch + 1) / max(self.share * epochs, 1.0), 1.0)


@dataclass(frozen=True)
class CyclicalWarmUp:
    """Ramp of `LinearWarmUp`, which starts again in each of several cycles (D24; Fu et al. 2019).

    Parameters
    ----------
    cycles : int
        Number of equal cycles, >= 1. The last one takes the epochs that do not divide.
    share : float
        Part of a cycle that its ramp takes, > 0 and <= 1.
    """

    cycles: int = 4
    share: float = 0.5

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, cycles=COUNT, share=SHARE_OF_EPOCHS)

    def __call__(self, epoch: int, epochs: int) -> float:
        """Return the factor beta of the KL term in an epoch, from the ramp of its cycle (D24).

        Parameters
        ----------
        epoch : int
            Number of the epoch, counted from 0.
        epochs : int
            Number of epochs of the training.
        """
        length = max(epochs // self.cycles, 1)
        cycle = min(epoch // length, self.cycles - 1)
        return LinearWarmUp(self.share)(epoch - length * cycle, length)


NAMED = {
    "kl_weights": {
        "proportional": proportional_kl_weights,
        "geometric": geometric_kl_weights,
    },
    "kl_warm_up": {
        "none": NoWarmUp(),
        "linear": LinearWarmUp(),
        "cyclical": CyclicalWarmUp(),
    },
}

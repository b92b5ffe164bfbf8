"""Prior densities P(w) of all weights and biases (floor 1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from numpy.typing import NDArray

from .arguments import positive
from .numerics import LOG_2PI, sums_of_squares

__all__ = ["GaussianPrior"]

Array = NDArray[Any]


@dataclass(frozen=True)
class GaussianPrior:
    """P(w) = prod_j N(w_j; 0, scale^2) (K11-K13).

    The report sets the scale to "the data's" deviation sigma_data; here it is a number of
    its own, since the spread of weights and the spread of targets have different units.

    Parameters
    ----------
    scale : float
        Standard deviation, > 0.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        positive("scale of the prior", self.scale)

    def log_density(self, w: Array) -> Array:
        r"""Return log P(w) (S,) of weights (S, P), constants kept (K12).

        :math:`\sum_j [-\log\sigma_{data} - \tfrac12\log 2\pi - w_j^2 / (2\sigma_{data}^2)]`;
        K13 is the same without :math:`\tfrac12\log 2\pi`.
        """
        constant = w.shape[-1] * (log(self.scale) + 0.5 * LOG_2PI)
        return -0.5 / self.scale**2 * sums_of_squares(w) - constant

    def add_vjp(self, w: Array, cotangent: Array, d_w: Array) -> None:
        """Add cotangent (S,) times d log P(w)/dw = -w / scale^2 to `d_w` (S, P) (K19, K26).

        Overwrites `w`, which no later step of a backward pass needs.
        """
        w *= (-cotangent / self.scale**2)[:, None]
        d_w += w

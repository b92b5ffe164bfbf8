"""Prior densities P(w) of all weights and biases (floor 1).

A prior may own numbers that are learned with everything else: `blocks` names them, `params`
holds them, `add_vjp` writes their gradient. They are unconstrained: any real number is allowed.
One set serves all S weight vectors (a block of shape (K,), as in variational inference), or each
has its own (S, K), as the chains of a sampler do (D33).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arguments import flag, spread
from .numerics import LOG_2PI, sums_of_squares, write_gradient
from .workspace import Workspace

__all__ = ["ExpectedLogPrior", "GaussianPrior", "LaplacePrior"]

Array = NDArray[Any]
Blocks = tuple[tuple[str, tuple[int, ...]], ...]


class ExpectedLogPrior(NamedTuple):
    """E_q[log P(w)] for a Gaussian q, and its derivatives."""

    value: Any  # scalar, nats
    d_mean: Any  # (P,)  with respect to the mean of each weight
    d_variance: Any  # the same with respect to the variance of every weight, scalar or (P,)


@dataclass(frozen=True)
class GaussianPrior:
    """P(w) = prod_j N(w_j; 0, scale^2) (K11-K13, D17).

    The report sets the scale to "the data's" deviation sigma_data; here it is a number of
    its own, since the spread of weights and the spread of targets have different units.

    Parameters
    ----------
    scale : float
        Standard deviation, > 0; the starting value when it is learned.
    learn : bool
        Learn ``prior_log_scale = log scale`` by its own gradient (D17).

    Raises
    ------
    ValueError
        If `scale` is not between 1e-150 and 1e150.
    """

    scale: float = 1.0
    learn: bool = False

    def __post_init__(self) -> None:
        spread("scale of the prior", self.scale)
        flag("learn", self.learn)

    @property
    def starts(self) -> None:
        """All weights are one group."""
        return

    def blocks(self) -> Blocks:
        """Name the learned blocks: ``prior_log_scale`` (1,) or none."""
        return (("prior_log_scale", (1,)),) if self.learn else ()

    def init(self, dtype: Any) -> Array:
        """Return the starting values of the learned blocks, one flat vector."""
        return np.full(1 if self.learn else 0, log(self.scale), dtype)

    def deviation(self, params: dict[str, Array]) -> float:
        """Return the standard deviation of one weight under the prior."""
        return float(np.exp(params["prior_log_scale"][0])) if self.learn else self.scale

    def _precision(self, params: dict[str, Array]) -> tuple[Any, Any]:
        """Return 1 / scale^2 and log scale."""
        if not self.learn:
            return self.scale**-2, log(self.scale)
        log_scale = params["prior_log_scale"][..., 0]  # () or (S,)
        return np.exp(-2.0 * log_scale), log_scale

    def log_density(self, params: dict[str, Array], w: Array, work: Workspace) -> Array:
        r"""Return log P(w) (S,) of weights (S, P), constants kept (K12).

        :math:`\sum_j [-\log\sigma_{data} - \tfrac12\log 2\pi - w_j^2 / (2\sigma_{data}^2)]`;
        K13 is the same without :math:`\tfrac12\log 2\pi`.
        """
        precision, log_scale = self._precision(params)
        return -0.5 * precision * sums_of_squares(w) - w.shape[-1] * (log_scale + 0.5 * LOG_2PI)

    def add_vjp(
        self,
        params: dict[str, Array],
        w: Array,
        cotangent: Array,
        d_w: Array,
        d_params: dict[str, Array],
        work: Workspace,
    ) -> None:
        """Add cotangent (S,) times d log P(w)/dw = -w / scale^2 to `d_w` (S, P) (K19, K26).

        For a learned scale, d log P / d log scale = sum_j w_j^2 / scale^2 - P (D17).
        Overwrites `w`, which no later step of a backward pass needs.
        """
        precision, _ = self._precision(params)
        if self.learn:
            slope = precision * sums_of_squares(w) - w.shape[-1]  # (S,)
            write_gradient(d_params["prior_log_scale"], cotangent, slope[:, None])
        w *= (-cotangent * precision)[:, None]
        d_w += w

    def draw(
        self, rng: np.random.Generator, params: dict[str, Array], shape: tuple[int, int]
    ) -> Array:
        """Draw weights (S, P) from the prior."""
        scale = np.exp(params["prior_log_scale"]) if self.learn else self.scale
        return rng.standard_normal(shape) * scale

    def expected_log_density(
        self, params: dict[str, Array], mean: Array, total_variance: Any, d_params: dict[str, Array]
    ) -> ExpectedLogPrior:
        r"""Return E_q[log P(w)] for q of mean (P,) and summed variance (D18, D19).

        :math:`-P (\log S + \tfrac12\log 2\pi) - (|\mu|^2 + \sum_j \mathrm{Var}\,w_j) / (2S^2)`
        with S the scale. `d_params` receives its derivative with respect to log S (D17).
        """
        precision, log_scale = self._precision(params)
        size, squares = len(mean), sums_of_squares(mean) + total_variance
        if self.learn:
            d_params["prior_log_scale"][0] = precision * squares - size
        value = -0.5 * precision * squares - size * (log_scale + 0.5 * LOG_2PI)
        return ExpectedLogPrior(value, -precision * mean, -0.5 * precision)


@dataclass(frozen=True)
class LaplacePrior:
    """P(w) = prod_j exp(-|w_j| / scale) / (2 scale), heavier tails than a Gaussian (D16).

    Parameters
    ----------
    scale : float
        Mean of abs(w), > 0; the standard deviation is sqrt(2) scale.

    Raises
    ------
    ValueError
        If `scale` is not between 1e-150 and 1e150.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        spread("scale of the prior", self.scale)

    def blocks(self) -> Blocks:
        """Name the learned blocks: none."""
        return ()

    def init(self, dtype: Any) -> Array:
        """Return the starting values of the learned blocks: none."""
        return np.zeros(0, dtype)

    def deviation(self, params: dict[str, Array]) -> float:
        """Return the standard deviation of one weight under the prior."""
        return self.scale * 2.0**0.5

    def log_density(self, params: dict[str, Array], w: Array, work: Workspace) -> Array:
        """Return log P(w) (S,) of weights (S, P): sum_j [-log 2 scale - abs(w_j) / scale] (D16)."""
        size = np.multiply(w, np.sign(w.real), out=work.array("abs w", w.shape, w.dtype))
        return np.add.reduce(size, axis=-1) * (-1.0 / self.scale) - w.shape[-1] * log(
            2.0 * self.scale
        )

    def add_vjp(
        self,
        params: dict[str, Array],
        w: Array,
        cotangent: Array,
        d_w: Array,
        d_params: dict[str, Array],
        work: Workspace,
    ) -> None:
        """Add cotangent (S,) times d log P(w)/dw = -sign(w) / scale to `d_w` (S, P) (D16).

        At w = 0, where the density has a kink, the slope is taken as 0. Overwrites `w`.
        """
        np.sign(w.real, out=w, casting="unsafe")
        w *= (-cotangent / self.scale)[:, None]
        d_w += w

    def draw(
        self, rng: np.random.Generator, params: dict[str, Array], shape: tuple[int, int]
    ) -> Array:
        """Draw weights (S, P) from the prior."""
        return rng.laplace(0.0, self.scale, shape)

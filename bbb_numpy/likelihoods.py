"""Likelihoods P(D | w): how targets scatter around the network's outputs (floor 1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arguments import positive
from .numerics import LOG_2PI, inner
from .workspace import Workspace

__all__ = ["GaussianLikelihood", "GaussianResiduals"]

Array = NDArray[Any]


class GaussianResiduals(NamedTuple):
    """What the forward pass of the Gaussian likelihood leaves for its backward pass."""

    plain: Array  # (S, B, K)  y - f
    scaled: Array  # (S, B, K)  (y - f) / sigma_y^2


@dataclass(frozen=True)
class GaussianLikelihood:
    """P(D|w) = prod over rows and outputs of N(y; f(x, w), sigma_y^2) (K14-K16, D1).

    The report fixes sigma_y = 1 (K14), with which its first problem cannot be learnt:
    there the noise deviation is 0.06.

    Parameters
    ----------
    scale : float
        Noise deviation sigma_y > 0, in units of y; the starting value when it is learned.
    learn : bool
        Learn one ``log_noise = log sigma_y`` per output, by its own gradient (D1).

    Raises
    ------
    ValueError
        If `scale` is not positive and finite.
    """

    scale: float = 1.0
    learn: bool = False

    def __post_init__(self) -> None:
        positive("scale of the noise", self.scale)

    def blocks(self, outputs: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name the learned blocks for K = `outputs`: ``log_noise`` (K,) or none."""
        return (("log_noise", (outputs,)),) if self.learn else ()

    def init(self, outputs: int, dtype: Any) -> Array:
        """Return the starting values of the learned blocks, one flat vector."""
        return np.full(outputs if self.learn else 0, log(self.scale), dtype)

    def log_density(
        self, params: dict[str, Array], f: Array, y: Array, work: Workspace
    ) -> tuple[Array, GaussianResiduals]:
        r"""Return log P(y|x, w) (S, B) of every row, summed over outputs, constants kept.

        :math:`\sum_k [-\tfrac12\log 2\pi - \log\sigma_k - (y_k-f_k)^2/(2\sigma_k^2)]`
        (K15, D1). With sigma_y = 1 and without the constant this is K16.

        Parameters
        ----------
        params : dict
            The blocks named by `blocks`.
        f : ndarray (S, B, K)
            Network outputs.
        y : ndarray (B, K)
            Targets.
        """
        if y.shape != f.shape[1:]:
            raise ValueError(f"y must have shape (rows, outputs) = {f.shape[1:]}; got {y.shape}")
        precision: Any
        if self.learn:
            log_noise = params["log_noise"]
            precision, log_scales = np.exp(-2.0 * log_noise), np.add.reduce(log_noise)
        else:
            precision, log_scales = self.scale**-2, f.shape[-1] * log(self.scale)
        residual = work.array("residual", f.shape, f.dtype)
        scaled = work.array("scaled residual", f.shape, f.dtype)
        np.subtract(y, f, out=residual)
        np.multiply(residual, precision, out=scaled)
        rowwise = inner(residual, scaled)
        rowwise *= -0.5
        rowwise -= log_scales + 0.5 * LOG_2PI * f.shape[-1]
        return rowwise, GaussianResiduals(residual, scaled)

    def vjp(self, saved: GaussianResiduals, cotangent: Array, d_params: dict[str, Array]) -> Array:
        """Pull a cotangent (S,) of the summed rows back to the outputs and the noise.

        ``d log P/df = (y - f) / sigma_y^2``, which with sigma_y = 1 and the minus sign of
        the loss is the report's ``-(y - yhat)`` (K37); and for the noise (D1)
        ``d log P/d log_noise_k = sum_b ((y - f)^2 / sigma_k^2 - 1)``.

        Returns
        -------
        d_f : ndarray (S, B, K)
            Overwrites the saved residuals.
        """
        if self.learn:
            squares = np.einsum("sbk,sbk->sk", saved.plain, saved.scaled)
            d_params["log_noise"][...] = cotangent @ (squares - saved.plain.shape[1])  # D1
        return np.multiply(saved.scaled, cotangent[:, None, None], out=saved.scaled)

    def noise_scale(self, params: dict[str, Array], outputs: int) -> Array:
        """Return sigma_y of each output (K,), learned or fixed, in units of y."""
        if self.learn:
            return np.exp(params["log_noise"])
        return np.full(outputs, self.scale)

    def variance(self, params: dict[str, Array], f: Array) -> Array:
        """Return the aleatoric variance, broadcastable to outputs `f` (S, B, K)."""
        return self.noise_scale(params, f.shape[-1]) ** 2

    def draw(self, rng: np.random.Generator, params: dict[str, Array], f: Array) -> Array:
        """Draw targets (S, B, K) around the outputs `f`."""
        noise = rng.standard_normal(f.shape, f.dtype.type)
        return f + self.noise_scale(params, f.shape[-1]).astype(f.dtype) * noise

"""The scale mixture prior *as Krasser's post programs it*, to show how it fails (R4, R8)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.buffers import Buffers

__all__ = ["RawMixturePrior"]

Array = NDArray[Any]


@dataclass(frozen=True)
class RawMixturePrior:
    """The prior *as the post programs it*, to show that it fails: never use it.

    The trained numbers are pi, sigma1 and sigma2 themselves, and the density is the logarithm
    of a sum of densities (R4, R8).
    """

    pi: float = 0.2
    sigma1: float = 1.0
    sigma2: float = 0.1

    kink: ClassVar[bool] = False

    def for_network(self, sizes: tuple[int, ...]) -> RawMixturePrior:
        """Return itself: it is the same for every network."""
        return self

    def blocks(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name the learned block: ``prior_raw`` (3,) = (pi, sigma1, sigma2)."""
        return (("prior_raw", (3,)),)

    def init(self, dtype: Any) -> Array:
        """Return the starting values."""
        return np.array([self.pi, self.sigma1, self.sigma2], dtype)

    def values(self, params: dict[str, Array]) -> tuple[float, ...]:
        """Return pi, sigma1, sigma2 as they are now."""
        return tuple(float(v) for v in params["prior_raw"])

    def deviation(self, params: dict[str, Array]) -> float:
        """Return the standard deviation of one weight under the prior."""
        pi, sigma1, sigma2 = self.values(params)
        return sqrt(pi * sigma1**2 + (1.0 - pi) * sigma2**2)

    def _densities(self, params: dict[str, Array], w: Array) -> list[Array]:
        """Return N(w; 0, sigma_k^2) (S, P) of both components, nan for a negative sigma_k."""
        with np.errstate(divide="ignore", invalid="ignore"):
            sigmas = params["prior_raw"][1:]
            return [np.exp(-0.5 * (w / s) ** 2 - np.log(s * sqrt(2.0 * np.pi))) for s in sigmas]

    def log_density(
        self, params: dict[str, Array], w: Array, buffers: Buffers
    ) -> tuple[Array, tuple[Array, Array]]:
        """Return sum_j log[pi N1(w_j) + (1 - pi) N2(w_j)] (S,): -inf or nan where it fails."""
        wide, narrow = self._densities(params, w)
        pi = params["prior_raw"][0]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(pi * wide + (1.0 - pi) * narrow).sum(axis=-1)
        return value, (params["prior_raw"], w)

    def add_vjp(
        self,
        saved: tuple[Array, Array],
        cotangent: Array,
        d_w: Array,
        d_params: dict[str, Array],
    ) -> None:
        """Add cotangent (S,) times d log P/dw to `d_w`; write the gradient of the three."""
        raw, w = saved
        pi, s1, s2 = raw
        with np.errstate(divide="ignore", invalid="ignore"):
            wide, narrow = self._densities({"prior_raw": raw}, w)
            total = pi * wide + (1.0 - pi) * narrow
            r1, r2 = pi * wide / total, (1.0 - pi) * narrow / total  # responsibilities (S, P)
            slopes = (
                (wide - narrow) / total,
                r1 * (w**2 / s1**3 - 1.0 / s1),
                r2 * (w**2 / s2**3 - 1.0 / s2),
            )
            d_params["prior_raw"][...] = [cotangent @ slope.sum(axis=-1) for slope in slopes]
            d_w -= cotangent[:, None] * w * (r1 / s1**2 + r2 / s2**2)

r"""Maps T from constrained numbers theta to real numbers zeta, with their Jacobians (M15).

Every transform has the same five methods, on arrays (..., K) with any leading axes:

* ``forward(theta)``: zeta = T(theta), which refuses a theta outside its range;
* ``inverse(zeta)``: theta = T^-1(zeta), for every real zeta;
* ``log_det(zeta)`` (...): the log of the absolute determinant of dT^-1/dzeta;
* ``log_det_slope(zeta)`` (..., K): its gradient;
* ``pull_back(zeta, d_theta)`` (..., K): the gradient for zeta, given the one for theta.

A density p(theta) is the density p(T^-1(zeta)) e^log_det(zeta) of zeta (M14). The maps from zeta
are complex-safe, and keep their digits for |zeta| up to 1e4, except where theta itself has none:
e^zeta overflows beyond 709, and a theta within 1e-16 of a bound rounds to that bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.elementary import inverse_softplus, sigmoid, softplus
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.numeric.validation import real

__all__ = ["Blockwise", "Identity", "Log", "Logit", "Ordered", "Softplus", "Transform"]

Array = NDArray[Any]


class _Elementwise:
    """Each theta_k from its own zeta_k: the Jacobian is diagonal."""

    def _log_slope(self, zeta: Array) -> Array:  # log d theta/d zeta (..., K)
        raise NotImplementedError

    def _slope(self, zeta: Array) -> Array:  # d theta/d zeta (..., K)
        raise NotImplementedError

    def log_det(self, zeta: Array) -> Array:
        """Return the sum of the log slopes (...): the determinant is their product."""
        return np.add.reduce(self._log_slope(zeta), axis=-1)

    def pull_back(self, zeta: Array, d_theta: Array) -> Array:
        """Return d_theta times d theta/d zeta (..., K)."""
        return d_theta * self._slope(zeta)


@dataclass(frozen=True)
class Identity(_Elementwise):
    """Real numbers as they are: theta = zeta (M15)."""

    def forward(self, theta: Array) -> Array:
        """Return theta, which must be finite."""
        return _inside(theta, np.isfinite(theta), "finite")

    def inverse(self, zeta: Array) -> Array:
        """Return zeta."""
        return zeta

    def _log_slope(self, zeta: Array) -> Array:
        return np.zeros_like(zeta)

    def _slope(self, zeta: Array) -> Array:
        return np.ones_like(zeta)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return 0 (..., K)."""
        return np.zeros_like(zeta)


@dataclass(frozen=True)
class Log(_Elementwise):
    """Positive numbers by their logarithm: theta = e^zeta, of slope e^zeta (M15)."""

    def forward(self, theta: Array) -> Array:
        """Return log theta, for theta > 0."""
        return np.log(_positive(theta))

    def inverse(self, zeta: Array) -> Array:
        """Return e^zeta."""
        return np.exp(zeta)

    def _log_slope(self, zeta: Array) -> Array:
        return zeta

    def _slope(self, zeta: Array) -> Array:
        return np.exp(zeta)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return 1 (..., K)."""
        return np.ones_like(zeta)


@dataclass(frozen=True)
class Softplus(_Elementwise):
    """Positive numbers, nearly as they are when large: log(1 + e^zeta), of slope s(zeta) (M15)."""

    def forward(self, theta: Array) -> Array:
        """Return log(e^theta - 1), for theta > 0."""
        return inverse_softplus(_positive(theta))

    def inverse(self, zeta: Array) -> Array:
        """Return log(1 + e^zeta)."""
        return softplus(zeta)

    def _log_slope(self, zeta: Array) -> Array:
        return -softplus(-zeta)  # M15: log s(zeta), which is not log of 0 far left

    def _slope(self, zeta: Array) -> Array:
        return sigmoid(zeta)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return s(-zeta) (..., K), without the cancellation of 1 - s(zeta)."""
        return sigmoid(-zeta)


@dataclass(frozen=True)
class Logit(_Elementwise):
    """Between two bounds: low + (high - low) s(zeta), of slope (high - low) s(zeta) s(-zeta) (M15).

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low = real("low", self.low, -1e300, 1e300)
        real("high", self.high, np.nextafter(low, np.inf), 1e300, f"above low = {low:g}, finite")

    @cached_property
    def _width(self) -> float:
        return float(self.high) - float(self.low)

    def forward(self, theta: Array) -> Array:
        """Return log((theta - low) / (high - theta)), for low < theta < high."""
        within = (np.real(theta) > self.low) & (np.real(theta) < self.high)
        theta = _inside(theta, within, f"between {self.low:g} and {self.high:g}, both excluded")
        return np.log(theta - self.low) - np.log(self.high - theta)

    def inverse(self, zeta: Array) -> Array:
        """Return low + (high - low) s(zeta), counted from the nearer bound."""
        below = zeta.real < 0
        share = self._width * sigmoid(np.where(below, zeta, -zeta))  # of the way, at most half
        return np.where(below, self.low + share, self.high - share)

    def _log_slope(self, zeta: Array) -> Array:
        return log(self._width) - softplus(zeta) - softplus(-zeta)

    def _slope(self, zeta: Array) -> Array:
        return self._width * sigmoid(zeta) * sigmoid(-zeta)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return s(-zeta) - s(zeta) (..., K)."""
        return sigmoid(-zeta) - sigmoid(zeta)


@dataclass(frozen=True)
class Ordered:
    """Increasing vectors: theta_1 = zeta_1 and theta_k = theta_(k-1) + e^zeta_k (M15).

    The Jacobian is lower triangular with diagonal (1, e^zeta_2, ..., e^zeta_K).

    Parameters
    ----------
    size : int
        Length K >= 1 of the last axis.
    """

    size: int

    def _check(self, x: Array) -> Array:
        if x.ndim == 0 or x.shape[-1] != self.size:
            raise ValueError(f"{self} needs a last axis of that length; got shape {x.shape}")
        return x

    def forward(self, theta: Array) -> Array:
        """Return (theta_1, log(theta_2 - theta_1), ...), for theta_1 < theta_2 < ..."""
        steps = np.diff(self._check(theta), axis=-1)
        rises = np.isfinite(theta)
        rises[..., 1:] &= steps.real > 0
        _inside(theta, rises, "finite and larger than the number before it")
        return np.concatenate([theta[..., :1], np.log(steps)], axis=-1)

    def inverse(self, zeta: Array) -> Array:
        """Return the running sum of (zeta_1, e^zeta_2, ..., e^zeta_K)."""
        return np.cumsum(self._steps(zeta, zeta[..., :1]), axis=-1)

    def log_det(self, zeta: Array) -> Array:
        """Return sum_(k >= 2) zeta_k (...)."""
        return np.add.reduce(self._check(zeta)[..., 1:], axis=-1)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return (0, 1, ..., 1) (..., K)."""
        slope = np.ones_like(self._check(zeta))
        slope[..., 0] = 0.0
        return slope

    def pull_back(self, zeta: Array, d_theta: Array) -> Array:
        """Return e^zeta_k (for k = 1: 1) times sum_(j >= k) d_theta_j: theta_j holds step k."""
        later = np.cumsum(d_theta[..., ::-1], axis=-1)[..., ::-1]
        return later * self._steps(zeta, np.ones_like(zeta[..., :1]))

    def _steps(self, zeta: Array, first: Array) -> Array:
        """Return (first, e^zeta_2, ..., e^zeta_K)."""
        return np.concatenate([first, np.exp(self._check(zeta)[..., 1:])], axis=-1)


Transform: TypeAlias = "Identity | Log | Softplus | Logit | Ordered | Blockwise"


@dataclass(frozen=True)
class Blockwise:
    """Named blocks of one flat vector, each with its own transform (M15).

    The Jacobian is block diagonal, so log determinants add. A transform acts along the last axis
    of its block: ``("cuts", (4, 3), Ordered(3))`` is four increasing vectors.

    Parameters
    ----------
    parts : tuple of (name, shape, transform)
        In the order in which they lie in the flat vector, e.g. ``(("rate", (), Log()),)``.
    """

    parts: tuple[tuple[str, tuple[int, ...], Transform], ...]

    def __post_init__(self) -> None:
        names = [name for name, _, _ in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"parts needs another name for each block: {names}")

    @classmethod
    def real(cls, layout: Layout) -> Blockwise:
        """Return the identity on every block of `layout`, for densities of real numbers."""
        blocks = [(name, shape, Identity()) for name, shape in layout.blocks if 0 not in shape]
        return cls(tuple(blocks))

    @cached_property
    def layout(self) -> Layout:
        """Names and places of the blocks, the same for theta and zeta."""
        return Layout(tuple((name, shape) for name, shape, _ in self.parts))

    def _each(self, *flat: Array) -> Iterator[tuple[str, Transform, list[Array]]]:
        """Give name, transform and views (..., vectors, length) of each block of the arrays."""
        views = [self.layout.views(np.asarray(x)) for x in flat]
        lead = flat[0].shape[:-1]
        for name, shape, part in self.parts:
            length = shape[-1] if shape else 1
            inner = (*lead, prod(shape) // length, length)
            yield name, part, [view[name].reshape(inner) for view in views]

    def _join(self, blocks: Iterable[Array]) -> Array:
        merged = [x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1]) for x in blocks]
        return np.concatenate(merged, axis=-1)

    def forward(self, theta: Array) -> Array:
        """Return zeta (..., K); an error names the block that is out of range."""
        found = []
        for name, part, (block,) in self._each(theta):
            try:
                found.append(part.forward(block))
            except ValueError as error:
                raise ValueError(f"block {name}: {error}") from None
        return self._join(found)

    def inverse(self, zeta: Array) -> Array:
        """Return theta (..., K)."""
        return self._join(part.inverse(block) for _, part, (block,) in self._each(zeta))

    def log_det(self, zeta: Array) -> Array:
        """Return the sum of the log determinants of all blocks (...)."""
        logs = [part.log_det(block) for _, part, (block,) in self._each(zeta)]
        return np.add.reduce(np.concatenate(logs, axis=-1), axis=-1)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return the gradient of `log_det` (..., K)."""
        return self._join(part.log_det_slope(block) for _, part, (block,) in self._each(zeta))

    def pull_back(self, zeta: Array, d_theta: Array) -> Array:
        """Return the gradient for zeta (..., K)."""
        return self._join(part.pull_back(*pair) for _, part, pair in self._each(zeta, d_theta))


def _positive(theta: Array) -> Array:
    inside = (np.real(theta) > 0) & np.isfinite(theta)
    return _inside(theta, inside, "positive and finite")


def _inside(theta: Array, inside: Array, wanted: str) -> Array:
    """Return `theta`, or raise naming its first entry that is not `inside`."""
    if not np.all(inside):
        where = tuple(int(i) for i in np.argwhere(~np.asarray(inside))[0])
        raise ValueError(f"theta must be {wanted}; got {theta[where]!s} at index {where}")
    return theta

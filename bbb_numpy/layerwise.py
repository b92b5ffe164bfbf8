r"""A Gaussian prior with a scale of its own for every layer, fixed or learned (floor 1; D39).

One scale for all weights says that a wider layer sends a larger signal: with H hidden units and
output weights of deviation s the function's prior deviation grows like :math:`s \sqrt H`. Neal
(1996) divides the scale of the output weights by the square root of H, and the prior over functions
has a limit. Its deviation is then the same for every width, but for the part of the biases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import flag, spread, whole
from .numerics import LOG_2PI, sums_of_squares, write_gradient
from .priors import ExpectedLogPrior
from .workspace import Workspace

__all__ = ["LayerwiseGaussianPrior"]

Array = NDArray[Any]
Blocks = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class LayerwiseGaussianPrior:
    r"""P(w) = prod over layers l and their weights j of N(w_j; 0, scale_l^2) (D39).

    A layer's biases have the scale of its weights.

    Parameters
    ----------
    scales : tuple of float, optional
        One deviation > 0 for each layer, from the input on; the starting values when they are
        learned. Default: 1 for the first layer, 1 / sqrt(inputs of the layer) for the others.
    learn : bool
        Learn ``prior_log_scale = log scale`` (L,).
    sizes : tuple of int, optional
        Widths of the network, which `Model` fills in.

    Raises
    ------
    TypeError, ValueError
        If a scale is not a number between 1e-150 and 1e150, or their number is not that of the
        layers.
    """

    scales: tuple[float, ...] | None = None
    learn: bool = False
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        flag("learn", self.learn)
        if self.sizes is not None:
            object.__setattr__(self, "sizes", _widths(self.sizes))
        if self.scales is None:
            if self.sizes is not None:
                scales = (1.0, *(size**-0.5 for size in self.sizes[1:-1]))
                object.__setattr__(self, "scales", scales)
            return
        given: Any = self.scales
        each = () if isinstance(given, str) or not np.iterable(given) else tuple(given)
        if not each:
            raise ValueError(
                f"scales must be one number for each layer, e.g. (1.0, 0.1); got {given!r}"
            )
        each = tuple(spread("every scale of the prior", scale) for scale in each)
        object.__setattr__(self, "scales", each)
        if self.sizes is not None and len(each) != len(self.sizes) - 1:
            raise ValueError(
                f"scales has {len(each)} numbers, the network of sizes {self.sizes} has "
                f"{len(self.sizes) - 1} layers; give one scale for each"
            )

    def for_network(self, sizes: tuple[int, ...]) -> LayerwiseGaussianPrior:
        """Return the prior for a network of these widths."""
        if self.sizes not in (None, tuple(sizes)):
            raise ValueError(
                f"the prior is for a network of sizes {self.sizes}; got {sizes}. Give each model "
                "a prior of its own, without sizes"
            )
        return replace(self, sizes=tuple(sizes))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of weights and biases of each layer, L numbers that sum to P."""
        if self.sizes is None:
            raise ValueError(
                "a LayerwiseGaussianPrior has to know its network: make a Model of both, or use "
                "for_network(sizes)"
            )
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        return tuple((d_in + 1) * d_out for d_in, d_out in pairs)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the weights of each layer begin in the flat vector, L numbers."""
        return tuple(sum(self.counts[:layer]) for layer in range(len(self.counts)))

    def _layers(self, w: Array) -> list[Array]:
        """View each layer's part of `w` (..., P)."""
        return [
            w[..., start : start + count]
            for start, count in zip(self.starts, self.counts, strict=True)
        ]

    def blocks(self) -> Blocks:
        """Name the learned blocks: ``prior_log_scale`` (L,) or none."""
        return (("prior_log_scale", (len(self.counts),)),) if self.learn else ()

    def init(self, dtype: Any) -> Array:
        """Return the starting values of the learned blocks, one flat vector."""
        return np.array([log(s) for s in self.scales or ()] if self.learn else [], dtype)

    def deviation(self, params: dict[str, Array]) -> float:
        """Return the smallest of the layers' deviations."""
        return float(np.min(np.exp(self._log_scales(params, np.float64))))

    def _log_scales(self, params: dict[str, Array], dtype: Any) -> Array:
        """Return log scale of each layer, (L,) or (S, L)."""
        if self.learn:
            return params["prior_log_scale"]
        return np.array([log(scale) for scale in self.scales or ()], dtype)

    def _squares(self, w: Array) -> Array:
        """Return sum_j w_j^2 of each layer (S, L)."""
        return np.stack([sums_of_squares(part) for part in self._layers(w)], axis=-1)

    def log_density(self, params: dict[str, Array], w: Array, work: Workspace) -> Array:
        r"""Return log P(w) (S,) of weights (S, P), constants kept (D39).

        :math:`\sum_l [-P_l (\log s_l + \tfrac12\log 2\pi) - |w_l|^2 / (2 s_l^2)]` with P_l
        weights w_l in layer l.
        """
        log_scales = self._log_scales(params, w.real.dtype)
        counts = np.array(self.counts, w.real.dtype)
        terms = -0.5 * np.exp(-2.0 * log_scales) * self._squares(w)  # (S, L)
        terms -= counts * (log_scales + 0.5 * LOG_2PI)
        return np.add.reduce(terms, axis=-1)

    def add_vjp(
        self,
        params: dict[str, Array],
        w: Array,
        cotangent: Array,
        d_w: Array,
        d_params: dict[str, Array],
        work: Workspace,
    ) -> None:
        """Add cotangent (S,) times d log P(w)/dw = -w / scale_l^2 to `d_w` (S, P) (D39).

        For learned scales, d log P / d log scale_l = |w_l|^2 / scale_l^2 - P_l. Overwrites `w`,
        which no later step of a backward pass needs.
        """
        log_scales = self._log_scales(params, w.real.dtype)
        precision = np.exp(-2.0 * log_scales)  # (L,) or (S, L)
        if self.learn:
            slope = precision * self._squares(w) - np.array(self.counts, w.real.dtype)  # (S, L)
            write_gradient(d_params["prior_log_scale"], cotangent, slope)
        factors = -cotangent[:, None] * precision  # (S, L)
        for layer, part in enumerate(self._layers(w)):
            part *= factors[:, layer, None]
        d_w += w

    def draw(
        self, rng: np.random.Generator, params: dict[str, Array], shape: tuple[int, int]
    ) -> Array:
        """Draw weights (S, P) from the prior."""
        scales = np.exp(self._log_scales(params, np.float64))
        return rng.standard_normal(shape) * np.repeat(scales, self.counts, axis=-1)

    def expected_log_density(
        self, params: dict[str, Array], mean: Array, total_variance: Any, d_params: dict[str, Array]
    ) -> ExpectedLogPrior:
        r"""Return E_q[log P(w)] for q of mean (P,) and variances summed by layer (L,) (D39).

        :math:`\sum_l [-P_l (\log s_l + \tfrac12\log 2\pi)
        - (|\mu_l|^2 + \sum_{j \in l} \mathrm{Var}\,w_j) / (2 s_l^2)]`. `d_params` receives its
        derivative with respect to the log s_l.
        """
        log_scales = self._log_scales(params, mean.real.dtype)
        precision, counts = np.exp(-2.0 * log_scales), np.array(self.counts, mean.real.dtype)
        squares = self._squares(mean) + total_variance  # (L,)
        if self.learn:
            d_params["prior_log_scale"][...] = precision * squares - counts
        value = np.add.reduce(-0.5 * precision * squares - counts * (log_scales + 0.5 * LOG_2PI))
        each = np.repeat(precision, self.counts)  # (P,)
        return ExpectedLogPrior(value, -each * mean, -0.5 * each)


def _widths(given: Any) -> tuple[int, ...]:
    """Return the widths of a network, or raise."""
    if isinstance(given, str) or not np.iterable(given) or len(each := tuple(given)) < 2:
        raise ValueError(
            f"sizes of the prior must be the widths of its network, e.g. (1, 100, 1); got {given!r}"
        )
    return tuple(whole("every size of the prior's network", size, 1) for size in each)

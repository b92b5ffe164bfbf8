"""Rows that count more than once, or less: each row's log likelihood times its weight (D45)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .likelihoods import Blocks, GaussianLikelihood, Likelihood

__all__ = ["Weighted", "total_weight", "with_weights"]

Array = NDArray[Any]


def with_weights(y: Array, weights: Array) -> Array:
    """Return targets (N, K) with the weights (N,) of their rows as a last column."""
    return np.column_stack([y, weights.astype(y.dtype)])


def total_weight(y: Array) -> float:
    """Return the sum of the weights in the last column of `y`: as how many rows they count."""
    return float(y[:, -1].sum(dtype=float))


class WeightedRows(NamedTuple):
    """What the forward pass leaves for the backward pass."""

    residuals: Any  # of the likelihood itself
    weights: Array  # (B,), or (S, B) where each sample has its own targets


@dataclass(frozen=True)
class Weighted:
    """P(D|w) = prod_b P(y_b|x_b, w)^v_b: every row has a weight v_b >= 0 (D45).

    A weight of 2 is a row that occurs twice, one of 0 a row that is not there. The weights are the
    last column of the targets, `with_weights`, so that they go wherever the rows go. The methods
    are those of `Likelihood`.

    Parameters
    ----------
    likelihood : Likelihood
        Of one row; predictions are made with it alone.
    """

    likelihood: Likelihood = GaussianLikelihood()

    def __getattr__(self, name: str) -> Any:
        """Return what weights leave as it is: the kind of targets, mean, variance, draws."""
        if name.startswith("_") or name == "likelihood":  # of one that is being unpickled
            raise AttributeError(name)
        return getattr(self.likelihood, name)

    def heads(self, targets: int) -> int:
        """Return how many network outputs `targets` columns need, the last of them the weights."""
        return self.likelihood.heads(targets - 1)

    def targets(self, heads: int) -> int:
        """Return how many target columns belong to `heads` network outputs: K and the weights."""
        return self.likelihood.targets(heads) + 1

    def check_targets(self, y: Array, dtype: Any) -> None:
        """Raise ValueError unless weights are >= 0, one is > 0, and the rest can be targets."""
        weights, what = y[:, -1], "the weights of rows, the last column of y,"
        possible = np.isfinite(weights) & (weights >= 0)
        if not possible.all():
            row = int(np.argmin(possible))
            raise ValueError(f"{what} must be finite and >= 0; got {weights[row]!s} at row {row}")
        if not (weights > 0).any():
            raise ValueError(f"{what} are all 0, so that no row counts")
        self.likelihood.check_targets(y[:, :-1], dtype)

    def blocks(self, outputs: int) -> Blocks:
        """Name the learned blocks: those of the likelihood, for which weights are no output."""
        return self.likelihood.blocks(outputs - 1)

    def init(self, outputs: int, dtype: Any) -> Array:
        """Return their starting values, one flat vector."""
        return self.likelihood.init(outputs - 1, dtype)

    def log_density(
        self, params: dict[str, Array], f: Array, y: Array
    ) -> tuple[Array, WeightedRows]:
        """Return v_b log P(y_b|x_b, w) (S, B) of every row; `y` (B, K + 1) ends with v (D45)."""
        rowwise, residuals = self.likelihood.log_density(params, f, y[..., :-1])
        weights = y[..., -1]
        return rowwise * weights, WeightedRows(residuals, weights)  # D45

    def vjp(self, saved: WeightedRows, cotangent: Array, d_params: dict[str, Array]) -> Array:
        """Pull a cotangent, (S,) or (S, B), back to outputs and learned blocks (D45).

        The likelihood sees one cotangent for each row: that of the sum, times v_b.
        """
        each = cotangent[:, None] if cotangent.ndim == 1 else cotangent
        return self.likelihood.vjp(saved.residuals, each * saved.weights, d_params)  # D45

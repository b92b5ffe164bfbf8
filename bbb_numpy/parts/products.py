"""The products of one layer, each in the order of operations that is fastest.

`network` says what is computed, with the report's equations; here is how. Four tricks:

* **bias as a weight**: w_0 and b_0 lie side by side, so [x 1] [w_0; b_0] is one product, and its
  backward pass too; it saves a pass over the widest array in each direction (`Layer.both`);
* **outer product**: with a single input a product of matrices is an outer product, which
  `numpy.multiply` does four times as fast as BLAS;
* **rows summed by BLAS**: the sum over rows is the product with a row of ones;
* **columns scaled last**: where delta has a single column, (delta W^T) o gate is gate o delta with
  its columns scaled by the row W^T. Scaled after the products over the rows, that costs a pass over
  the weights instead of one over the activations (`Delta.columns`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Delta", "Layer", "affine", "affine_vjp", "gated", "with_ones"]

Array = NDArray[Any]


class Layer(NamedTuple):
    """The weights of one layer, or their gradients: views of one flat array."""

    weight: Array  # (S, d_in, d_out)
    bias: Array  # (S, 1, d_out)
    both: (
        Array | None
    )  # (S, d_in + 1, d_out)  one above the other, where inputs have a 1 at their end


class Delta(NamedTuple):
    """The cotangent of a layer's outputs: rows o columns."""

    rows: Array  # (S, B, width)
    columns: Array | None = None  # (S, 1, width), or None for ones


def with_ones(x: Array, out: Array) -> Array:
    """Write `x` (..., B, d_in) and a last column of 1 into `out`."""
    out[..., :-1] = x
    out[..., -1] = 1.0
    return out


def affine(a: Array, layer: Layer, out: Array) -> Array:
    """Write a W + b (S, B, d_out) into `out`, for inputs `a` (B, d_in) or (S, B, d_in)."""
    weight, bias, both = layer
    if both is not None:
        return np.matmul(a, both, out=out)  # [x 1] [w_0; b_0]
    if a.shape[-1] == 1:
        np.multiply(a, weight, out=out)
    else:
        np.matmul(a, weight, out=out)
    out += bias
    return out


def affine_vjp(a: Array, delta: Delta, ones: Array, out: Layer) -> None:
    """Write a^T delta and 1^T delta, the gradients for W and b, into `out`."""
    rows, columns = delta
    weight, bias, both = out
    if both is not None:
        np.matmul(a.swapaxes(-1, -2), rows, out=both)
        if columns is not None:
            both *= columns
        return
    np.matmul(ones, rows, out=bias)
    np.matmul(a.swapaxes(-1, -2), rows, out=weight)
    if columns is not None:
        bias *= columns
        weight *= columns


def gated(delta: Delta, weight: Array, slope: Array, out: Array) -> Delta:
    """Return (delta W^T) o slope, whose rows are written into `out` (S, B, d_in)."""
    rows, columns = delta
    if columns is not None:
        weight = weight * columns
    transposed = weight.swapaxes(-1, -2)
    if rows.shape[-1] == 1:
        return Delta(np.multiply(slope, rows, out=out), transposed)
    np.matmul(rows, transposed, out=out)
    out *= slope
    return Delta(out, None)

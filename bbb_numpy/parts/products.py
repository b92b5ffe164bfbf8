"""The products of one layer, each in the order of operations that is fastest.

`network` says what is computed, with the report's equations; this module computes it. Six tricks:

* **bias as a weight**: w_0 and b_0 lie side by side, so [x 1] [w_0; b_0] is one product, and its
  backward pass too; it saves a pass over the widest array in each direction (`Layer.stacked`);
* **outer product**: with a single input a product of matrices is an outer product, which
  `numpy.multiply` does four times as fast as BLAS;
* **rows summed by BLAS**: the sum over rows is the product with a row of ones;
* **columns scaled last**: where delta has a single column, (delta W^T) o gate is gate o delta with
  its columns scaled by the row W^T. Scaled after the products over the rows, that costs a pass over
  the weights instead of one over the activations (`Delta.columns`);
* **rows scaled on the narrow side**: and its rows are scaled by that single column, which goes
  to the other factor of a^T (scale o gate) = (scale o a)^T gate where that one is narrower:
  13 inputs instead of 50 units. For that [x 1] lies in memory by columns (`Delta.scale`);
* **small transposes copied**: BLAS has fast AVX-512 code for small matrices in the order of memory,
  and W^T in that order takes two thirds of the time of a view of W (`SMALL_WEIGHTS`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.layout import Array

__all__ = ["Delta", "Layer", "affine", "affine_vjp", "gated", "with_ones"]


# Largest number of weights of a layer whose transpose is copied, and the number of rows from which
# on the copy takes less time than it saves
SMALL_WEIGHTS = 4096
COPY_MIN_ROWS = 64


class Layer(NamedTuple):
    """Weights and biases of one layer, or their gradients: views of one flat array."""

    weight: Array  # (S, d_in, d_out) weights W
    bias: Array  # (S, 1, d_out) biases b
    # W and b in one array (S, d_in + 1, d_out), if inputs end with a column of 1; else None
    stacked: Array | None


class Delta(NamedTuple):
    """Cotangent of the outputs of a layer, the product scale o rows o columns."""

    rows: Array  # (S, B, width), one factor per row and unit
    columns: Array | None = None  # (S, 1, width); None for ones
    scale: Array | None = None  # (S, B, 1); None for ones


def with_ones(x: Array, out: Array) -> Array:
    """Return the inputs `x` with an extra last column of ones, stored column by column.

    Parameters
    ----------
    x : ndarray (..., B, d_in)
        Inputs.
    out : ndarray (..., d_in + 1, B)
        Memory that is overwritten; the result is its transpose (..., B, d_in + 1).
    """
    out[..., :-1, :] = x.swapaxes(-1, -2)
    out[..., -1, :] = 1.0
    return out.swapaxes(-1, -2)


def affine(a: Array, layer: Layer, out: Array) -> Array:
    """Compute the outputs a W + b of a layer for inputs `a`; write them into `out`, and return it.

    Parameters
    ----------
    a : ndarray (B, d_in) or (S, B, d_in)
        Inputs, with a last column of 1 if the layer has `Layer.stacked`.
    layer : Layer
        Weights and biases.
    out : ndarray (S, B, d_out)
        Array that is overwritten, and returned.
    """
    weight, bias, stacked = layer
    if stacked is not None:
        return np.matmul(a, stacked, out=out)  # [x 1] [W; b] = x W + b
    if a.shape[-1] == 1:
        np.multiply(a, weight, out=out)
    else:
        np.matmul(a, weight, out=out)
    out += bias
    return out


def affine_vjp(
    a: Array, delta: Delta, ones: Array, out: Layer, buffers: Buffers
) -> None:
    """Write a layer's gradients for weights, a^T delta, and biases, 1^T delta, into `out`.

    Parameters
    ----------
    a : ndarray (B, d_in) or (S, B, d_in)
        Inputs of the layer in the forward pass, as `affine` took them.
    delta : Delta
        Derivative of the loss for the outputs of the layer.
    ones : ndarray (1, B)
        Ones, with which BLAS sums over rows; of the dtype of delta.
    out : Layer
        Gradients for W and b, which are overwritten.
    buffers : Buffers
        Source of the memory of intermediate arrays.
    """
    rows, columns, scale = delta
    weight, bias, stacked = out
    transposed = a.swapaxes(-1, -2)  # a^T: (d_in, B) or (S, d_in, B)
    if scale is not None:  # a^T (scale * rows) = (scale * a)^T rows
        ones = scale.swapaxes(-1, -2)
        shape = (len(rows), *transposed.shape[-2:])
        transposed = np.multiply(transposed, ones, out=buffers.array(shape, rows.dtype))
    if stacked is not None:
        np.matmul(transposed, rows, out=stacked)
        if columns is not None:
            stacked *= columns
        return
    np.matmul(ones, rows, out=bias)
    np.matmul(transposed, rows, out=weight)
    if columns is not None:
        bias *= columns
        weight *= columns


def gated(
    delta: Delta, weight: Array, slope: Array, narrow: bool, buffers: Buffers
) -> Delta:
    """Return the gradient for the pre-activations of the layer below: (delta W^T) * slope.

    Parameters
    ----------
    delta : Delta
        Derivative of the loss for the outputs of a layer.
    weight : ndarray (S, d_in, d_out)
        Weights of that layer.
    slope : ndarray (S, B, d_in)
        Derivative of the activation of the layer below.
    narrow : bool
        Whether the layer below is the first and its inputs are fewer than its outputs; then its
        delta keeps a scale for the rows.
    buffers : Buffers
        Source of the memory of the result.
    """
    # The scale of delta is ignored: only the first layer's delta has one, and there is no layer
    # below the first
    rows, columns, _ = delta
    if columns is not None:
        weight = weight * columns
    transposed = weight.swapaxes(-1, -2)
    if rows.shape[-1] == 1 and narrow:
        return Delta(slope, transposed, rows)
    out = buffers.like(slope)
    if rows.shape[-1] == 1:
        return Delta(np.multiply(slope, rows, out=out), transposed)
    d_in, d_out = weight.shape[-2:]
    if d_in * d_out <= SMALL_WEIGHTS and rows.shape[-2] >= COPY_MIN_ROWS:
        transposed = np.ascontiguousarray(transposed)
    np.matmul(rows, transposed, out=out)
    out *= slope
    return Delta(out)

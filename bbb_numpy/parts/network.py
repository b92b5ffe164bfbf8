"""The multilayer perceptron: forward pass and its vector-Jacobian product.

Report, Section 5.3, K31-K42, vectorised over S weight samples and B rows. The report's
running index ``n`` of K35-K42 is here the last layer, L - 1; layers count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.arguments import whole
from ..numeric.elementary import sech_squared
from ..numeric.layout import Layout
from ..numeric.workspace import Workspace

__all__ = ["ACTIVATIONS", "MLP", "Tape", "activate", "forward", "gates", "vjp"]

Array = NDArray[Any]
ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class MLP:
    """A fully connected network, linear in its last layer.

    Parameters
    ----------
    sizes : tuple of int
        ``(d_in, hidden..., K)``, e.g. ``(1, 100, 1)``. Two numbers mean no hidden layer.
    activation : {'relu', 'tanh'}
        Of every hidden layer.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, one is below 1, or the activation is unknown.
    """

    sizes: tuple[int, ...]
    activation: str = "relu"

    def __post_init__(self) -> None:
        try:
            sizes = tuple(whole("size", size, 1) for size in self.sizes)
        except (TypeError, ValueError):
            sizes = ()
        if len(sizes) < 2:
            raise ValueError(
                f"sizes must be at least two whole numbers >= 1, input and output width "
                f"included, e.g. (1, 100, 1); got {self.sizes}"
            )
        object.__setattr__(self, "sizes", sizes)
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {ACTIVATIONS}; got {self.activation!r}")

    @cached_property
    def layout(self) -> Layout:
        """Blocks ``W0``, ``b0``, ``W1``, ``b1``, ... of one flat weight vector of length P."""
        blocks: list[tuple[str, tuple[int, ...]]] = []
        for layer, (d_in, d_out) in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
            blocks += [(f"W{layer}", (d_in, d_out)), (f"b{layer}", (d_out,))]
        return Layout(tuple(blocks))

    def layers(self, flat: Array) -> list[tuple[Array, Array]]:
        """View `flat` (S, P) as the pairs W (S, d_in, d_out), b (S, 1, d_out) of each layer."""
        views = list(self.layout.views(flat).values())
        return [(w, b[:, None, :]) for w, b in zip(views[0::2], views[1::2], strict=True)]

    @property
    def folded(self) -> bool:
        """Whether the first layer takes its bias as the weights of a further input, 1.

        w_0 and b_0 lie side by side, and [x 1] [w_0; b_0] saves a pass over the widest array in
        each direction. A single input has a faster product of its own, see `_matmul`.
        """
        return self.sizes[0] > 1

    def first(self, flat: Array) -> Array:
        """View w_0, and b_0 below it, in `flat` (S, P) as one matrix (S, d_in + 1, width)."""
        rows, width = self.sizes[0] + 1, self.sizes[1]
        return flat[:, : rows * width].reshape(len(flat), rows, width)


class Tape(NamedTuple):
    """What the forward pass leaves for the backward pass."""

    w: Array  # (S, P)
    inputs: list[Array]  # a_{l-1} of every layer: x as given, or x and 1; then (S, B, width)
    slopes: list[Array]  # activation'(z_l) (S, B, width); for ReLU the gate [z_l > 0]


def _with_ones(x: Array, out: Array) -> Array:
    """Write `x` (..., B, d_in) and a last column of 1 into `out`."""
    out[..., :-1] = x
    out[..., -1] = 1.0
    return out


def _matmul(a: Array, b: Array, out: Array) -> Array:
    """Matrix product; an inner width of 1 is an outer product, which BLAS does 4x slower."""
    if a.shape[-1] == 1:
        return np.multiply(a, b, out=out)
    return np.matmul(a, b, out=out)


def forward(net: MLP, w: Array, x: Array, work: Workspace) -> tuple[Array, Tape]:
    """Run `x` through the network with every weight sample at once (K31-K36).

    Parameters
    ----------
    net : MLP
    w : ndarray (S, P)
        Flat weights of S samples.
    x : ndarray (B, d_in) or (S, B, d_in)
        Rows; B may be 0. The same for all samples, or each sample has its own.
    work : Workspace
        Holds the activations until the next call.

    Returns
    -------
    f : ndarray (S, B, K)
    tape : Tape
    """
    samples, rows = len(w), x.shape[-2]
    layers = work.views("layers of w", w, net.layers)
    inputs, slopes, a = [], [], x
    for layer, (weight, bias) in enumerate(layers):
        shape = (samples, rows, bias.shape[-1])
        z = work.array(f"z{layer}", shape, w.dtype)  # (S, B, width)
        if layer == 0 and net.folded:
            shape_of_a = (*x.shape[:-1], net.sizes[0] + 1)
            a = _with_ones(x, work.array("x and 1", shape_of_a, w.dtype))
            np.matmul(a, work.views("first layer of w", w, net.first), out=z)  # [x 1] [w_0; b_0]
        else:
            _matmul(a, weight, out=z)
            z += bias  # K31, K33, K36: z_l = a_{l-1} w_l + b_l
        inputs.append(a)
        if layer < len(layers) - 1:
            slopes.append(activate(net, z, work.array(f"slope{layer}", shape, w.dtype)))
        a = z
    return a, Tape(w, inputs, slopes)


def activate(net: MLP, z: Array, slope: Array) -> Array:
    """Replace `z` by its activation and fill `slope`, which is returned, with the derivative."""
    if net.activation == "relu":
        np.greater(z.real, 0, out=slope)  # 0 or 1 as numbers: a fast multiply
        z *= slope  # K32, K34, K35: a_l = ReLU(z_l) = z_l [z_l > 0]
    else:
        sech_squared(z, out=slope)  # D10: tanh'(z_l)
        np.tanh(z, out=z)  # a_l = tanh(z_l)
    return slope


def vjp(net: MLP, tape: Tape, d_f: Array, work: Workspace) -> Array:
    """Pull a cotangent of the outputs back to the weights (K37-K42, order corrected).

    With ``delta_{L-1} = d_f`` (for the unit-variance NLL: ``-(y - yhat)``, K37) ::

        db_l        = sum over rows of delta_l                          K37, K39, K41
        dW_l        = a_{l-1}^T delta_l                                 K38, K40, K42
        delta_{l-1} = (delta_l W_l^T) o [z_{l-1} > 0]                   K39, K41

    The report prints the factors in an order that does not conform as matrices; read
    elementwise, K40 has the right shape and wrong values for one row and equal widths.

    Parameters
    ----------
    tape : Tape
        From `forward` with the same workspace. Its activations are overwritten.
    d_f : ndarray (S, B, K)
        Cotangent of the outputs.

    Returns
    -------
    d_w : ndarray (S, P)
        Lives in `work` until the next call.
    """
    d_w = work.array("d_w", tape.w.shape, tape.w.dtype)
    weights = work.views("layers of w", tape.w, net.layers)
    d_weights = work.views("layers of d_w", d_w, net.layers)
    ones = work.array("ones", (1, d_f.shape[1]), d_f.dtype)
    ones.fill(1.0)
    delta, scale = d_f, None  # delta_l is delta, or delta o scale with scale (S, 1, width)
    for layer in range(len(weights) - 1, -1, -1):
        a, weight, (d_weight, d_bias) = tape.inputs[layer], weights[layer][0], d_weights[layer]
        if layer == 0 and net.folded:  # K41, K42 in one product: [x 1]^T delta_0
            d_first = work.views("first layer of d_w", d_w, net.first)
            np.matmul(a.swapaxes(-1, -2), delta, out=d_first)
            if scale is not None:
                d_first *= scale
            break
        np.matmul(ones, delta, out=d_bias)  # K37, K39, K41: the sum over rows, by BLAS
        np.matmul(a.swapaxes(-1, -2), delta, out=d_weight)  # K38, K40, K42
        if scale is not None:
            d_bias *= scale
            d_weight *= scale
        if layer:
            below, slope = a, tape.slopes[layer - 1]  # a_{l-1} is spent: a buffer (S, B, width)
            if scale is not None:
                weight = weight * scale
            if delta.shape[-1] == 1:
                # (delta_l W_l^T) o gate with a single column delta_l: its row W_l^T scales the
                # columns of gate o delta_l, which costs less after the products over the rows
                np.multiply(slope, delta, out=below)
                scale = weight.swapaxes(-1, -2)
            else:
                np.matmul(delta, weight.swapaxes(-1, -2), out=below)
                below *= slope  # K39, K41: the gate of the layer below
                scale = None
            delta = below
    return d_w


def gates(net: MLP, w: Array, x: Array) -> NDArray[np.bool_]:
    """Return which ReLU units are on, one flat bool array; empty for tanh.

    A finite difference across a change of these compares two different linear pieces, so
    gradient checks count and skip such coordinates (see `bbb_numpy.gradcheck`).
    """
    if net.activation != "relu" or len(net.sizes) == 2:
        return np.zeros(0, bool)
    _, tape = forward(net, w, x, Workspace())
    return np.concatenate([slope.ravel() != 0 for slope in tape.slopes])

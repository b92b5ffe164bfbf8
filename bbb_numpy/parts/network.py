"""The multilayer perceptron: forward pass and its vector-Jacobian product.

Report, Section 5.3, K31-K42, vectorised over S weight samples and B rows. The report's
running index ``n`` of K35-K42 is here the last layer, L - 1; layers count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Layout
from ..numeric.validation import KeyOf, check_fields, flag, real, whole
from .activations import ACTIVATIONS
from .products import Delta, Layer, affine, affine_vjp, gated, with_ones

__all__ = ["MLP", "Tape", "activate", "forward", "gates", "jvp", "open_gates", "vjp"]

ACTIVATION = KeyOf(ACTIVATIONS)
LARGEST_FLOAT = float(np.finfo(float).max)
MAX_WEIGHTS = 10**9  # largest number of weights of a network: 8 GB in float64


def _check_ceiling(name: str, value: Any) -> float:
    """Return a ceiling as a float; raise an error unless it is a finite number or inf."""
    if isinstance(value, float) and value == inf:
        return inf
    return real(name, value, -LARGEST_FLOAT, inf, "a finite number, or inf for none")


@dataclass(frozen=True, repr=False)
class MLP:
    """Fully connected network, linear in its last layer.

    Parameters
    ----------
    sizes : tuple of int
        Widths ``(d_in, hidden..., K)``, e.g. ``(1, 100, 1)``. Two numbers mean no hidden layer.
    activation : str
        One of 'relu', 'tanh', 'sigmoid', 'silu', 'softplus', 'gelu', 'gelu-tanh'.
        All hidden layers have it.
    offset : bool
        Whether the inputs have one more column, an offset that is added to every output and has no
        weight (D72).
    ceiling : float
        Output, without its offset, from which on predictions grow with its logarithm (D72), as
        learners set it for counts. Training knows no ceiling, and it does not make a network
        another one.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, a size is below 1, or the activation is unknown.
    """

    sizes: tuple[int, ...]
    activation: str = "relu"
    offset: bool = False
    ceiling: float = field(default=inf, compare=False)

    def __post_init__(self) -> None:
        """Raise an error unless the sizes and the activation are valid."""
        try:
            sizes = tuple([whole("size", size, 1) for size in self.sizes])
        except (TypeError, ValueError):
            sizes = ()
        if len(sizes) < 2:
            raise ValueError(
                f"sizes must be at least two whole numbers >= 1, input and output width "
                f"included, e.g. (1, 100, 1); got {self.sizes}"
            )
        weights = sum([d_in * d_out + d_out for d_in, d_out in pairwise(sizes)])
        if weights > MAX_WEIGHTS:
            raise ValueError(
                f"a network must have at most {MAX_WEIGHTS} weights; got {weights} of sizes "
                f"{sizes}, which are inputs, hidden_layer_sizes and outputs. Use fewer units"
            )
        object.__setattr__(self, "sizes", sizes)
        ACTIVATION("activation", self.activation)
        check_fields(self, "the network", offset=flag, ceiling=_check_ceiling)

    def __repr__(self) -> str:
        """Return the constructor call, by which a checkpoint tells its model from others."""
        offset = ", offset=True" if self.offset else ""
        return f"MLP(sizes={self.sizes}, activation={self.activation!r}{offset})"

    @cached_property
    def layout(self) -> Layout:
        """Names and shapes of the blocks ``W0``, ``b0``, ``W1``, ... of a flat weight vector."""
        blocks: list[tuple[str, tuple[int, ...]]] = []
        for layer, (d_in, d_out) in enumerate(
            zip(self.sizes[:-1], self.sizes[1:], strict=True)
        ):
            blocks += [(f"W{layer}", (d_in, d_out)), (f"b{layer}", (d_out,))]
        return Layout(tuple(blocks))

    @cached_property
    def n_columns(self) -> int:
        """Number of columns of the inputs: ``sizes[0]``, and one more if there is an offset."""
        return self.sizes[0] + self.offset

    def without_offset(self, x: Array) -> Array:
        """Return the columns of `x` (..., B, n_columns) that have weights."""
        return x[..., : self.sizes[0]]

    def add_offset(self, f: Array, x: Array) -> Array:
        """Add the offset among the columns of `x`, if any, to the outputs `f` (S, B, K) in place.

        Its derivative with respect to the weights is 0, so that no backward pass changes (D72).
        """
        if self.offset:
            f += x[..., -1:]  # f = f(x, w) + log exposure (D72)
        return f

    def below_ceiling(self, f: Array, x: Array) -> Array:
        """Return outputs `f` (S, B, K) at inputs `x`, of which those above the ceiling are lower.

        With a log link a rate, which is an exponential of f up to the ceiling c, goes on as its
        tangent, e^c (1 + f - c): the function of x that f itself is (D72).
        """
        if self.ceiling == inf:
            return f
        offset = x[..., -1:] if self.offset else 0.0
        excess = np.maximum(f - offset - self.ceiling, 0.0)
        return f - excess + np.log1p(excess)  # log rate (D72)

    def layers(self, flat: Array) -> list[Layer]:
        """Return each layer's weights and biases, as views of the weight vectors `flat` (S, P)."""
        views = list(self.layout.views(flat).values())
        layers = [
            Layer(w, b[:, None, :], None)
            for w, b in zip(views[0::2], views[1::2], strict=True)
        ]
        if self.bias_as_weight:
            rows, width = self.sizes[0] + 1, self.sizes[1]
            stacked = flat[:, : rows * width].reshape(len(flat), rows, width)
            layers[0] = layers[0]._replace(stacked=stacked)
        return layers

    @property
    def bias_as_weight(self) -> bool:
        """Whether the first layer's biases are weights of an extra input that is always 1."""
        return self.sizes[0] > 1


class Tape(NamedTuple):
    """Intermediate arrays of a forward pass, for `vjp` and `jvp`."""

    w: Array  # (S, P) weights
    layers: list[Layer]  # views of w
    # Inputs of each layer: x, with a column of 1 if `bias_as_weight`, then (S, B, width)
    inputs: list[Array]
    # Derivative of the activation in each hidden layer, (S, B, width); for ReLU it is 0 or 1
    slopes: list[Array]


def forward(net: MLP, w: Array, x: Array, buffers: Buffers) -> tuple[Array, Tape]:
    """Return the network outputs for S weight samples, and a tape for `vjp`, `jvp` (K31-K36).

    Parameters
    ----------
    net : MLP
        The network.
    w : ndarray (S, P)
        S flat weight vectors.
    x : ndarray (B, d_in) or (S, B, d_in)
        Inputs, the same for all samples or with rows for each sample; B may be 0. With an offset,
        it is their last column, beside d_in others.
    buffers : Buffers
        Source of the memory for outputs and tape, which its owner reuses.
    """
    layers = buffers.views(w, net.layers)
    inputs: list[Array] = []
    slopes: list[Array] = []
    a = net.without_offset(x)
    if net.bias_as_weight:
        a = with_ones(
            a, buffers.array((*x.shape[:-2], net.sizes[0] + 1, x.shape[-2]), w.dtype)
        )
    for layer, width in zip(layers, net.sizes[1:], strict=True):
        inputs.append(a)
        # Memory for the pre-activations z_l, (S, B, width)
        a = buffers.array((len(w), x.shape[-2], width), w.dtype)
        affine(inputs[-1], layer, out=a)  # K31, K33, K36: z_l = a_{l-1} w_l + b_l
        if len(inputs) < len(layers):
            slopes.append(
                activate(net, a, buffers.like(a))
            )  # K32, K34, K35: a_l = ReLU(z_l)
    return net.add_offset(a, x), Tape(w, layers, inputs, slopes)


def activate(net: MLP, z: Array, slope: Array) -> Array:
    """Apply the activation to pre-activations `z` in place; return its derivative.

    Parameters
    ----------
    net : MLP
        The network, whose activation is applied.
    z : ndarray (S, B, width)
        Pre-activations, which are overwritten by the activations.
    slope : ndarray (S, B, width)
        Array that is overwritten by the derivative, and returned.
    """
    ACTIVATIONS[net.activation](z, slope)
    return slope


def vjp(net: MLP, tape: Tape, d_f: Array, buffers: Buffers) -> Array:
    """Return the gradient for the weights by backpropagation, given that for the outputs (K37-K42).

    With ``delta_{L-1} = d_f`` (for the unit-variance NLL: ``-(y - yhat)``, K37) ::

        db_l        = sum over rows of delta_l                          K37, K39, K41
        dW_l        = a_{l-1}^T delta_l                                 K38, K40, K42
        delta_{l-1} = (delta_l W_l^T) o [z_{l-1} > 0]                   K39, K41

    The report prints the factors in an order that does not conform as matrices; read
    elementwise, K40 has the right shape and wrong values for one row and equal widths.

    Parameters
    ----------
    net : MLP
        The network.
    tape : Tape
        Second result of `forward`.
    d_f : ndarray (S, B, K)
        Derivative of the loss for the outputs.
    buffers : Buffers
        Source of the memory for the result and intermediate arrays, which its owner reuses.

    Returns
    -------
    ndarray (S, P)
        Derivative of the loss for the weights.
    """
    w, layers, inputs, slopes = tape
    d_w = buffers.like(w)
    d_layers = buffers.views(d_w, net.layers)
    ones = buffers.ones(d_f.shape[1], d_f.dtype)
    delta = Delta(d_f)  # the output layer has no activation (K37)
    for index in range(len(layers) - 1, -1, -1):
        a = inputs[index]
        affine_vjp(
            a, delta, ones, d_layers[index], buffers
        )  # biases: K37, K39, K41; weights: K38, K40, K42
        if index:  # K39, K41: the gate of the layer below
            narrow = index == 1 and inputs[0].shape[-1] < a.shape[-1]
            delta = gated(
                delta, layers[index].weight, slopes[index - 1], narrow, buffers
            )
    return d_w


def jvp(net: MLP, tape: Tape, d_w: Array, buffers: Buffers) -> Array:
    """Return the derivative of the outputs along a direction `d_w` of the weights (D54).

    With ``da_l = activation'(z_l) o dz_l``, layer by layer ``dz_l = a_{l-1} dW_l + db_l +
    da_{l-1} W_l``.

    Parameters
    ----------
    net : MLP
        The network.
    tape : Tape
        Second result of `forward`, for S weight vectors, or for one that all tangents share.
    d_w : ndarray (S, P)
        Tangents, directions in which the weights change.
    buffers : Buffers
        Source of the memory for the result and intermediate arrays, which its owner reuses.

    Returns
    -------
    ndarray (S, B, K)
        Tangents of the outputs.
    """
    d_a: Array = np.zeros(0)
    for index, (layer, d_layer) in enumerate(
        zip(tape.layers, net.layers(d_w), strict=True)
    ):
        a = tape.inputs[index]
        d_z = buffers.array((len(d_w), a.shape[-2], net.sizes[index + 1]), d_w.dtype)
        affine(a, d_layer, out=d_z)
        if index:
            # The layer's inputs change too, by d_a times the derivative of the activation
            d_z += (d_a * tape.slopes[index - 1]) @ layer.weight  # D54
        d_a = d_z
    return d_a


def gates(net: MLP, w: Array, x: Array) -> Array:
    """Return for each ReLU unit, sample and row whether it is on; empty without ReLU.

    A finite difference across a change of gates compares two different linear pieces, so gradient
    checks count and skip such coordinates.

    Parameters
    ----------
    net : MLP
        The network.
    w : ndarray (S, P)
        S flat weight vectors.
    x : ndarray (B, d_in)
        Inputs.
    """
    return open_gates(net, forward(net, w, x, Buffers())[1].slopes)


def open_gates(net: MLP, slopes: list[Array]) -> Array:
    """Return a flat mask of the ReLU units that are on, from a tape's `slopes` (S, B, units)."""
    on = [slope.ravel() != 0 for slope in slopes if net.activation == "relu"]
    return np.concatenate([*on, np.zeros(0, bool)])

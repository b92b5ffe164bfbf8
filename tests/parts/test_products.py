"""The products of one layer: whatever the order of operations, the same numbers."""

import numpy as np
import pytest

from bbb_numpy import MLP
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts import network, products
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.parts.products import Delta, Layer

RNG = np.random.default_rng(0)


def layer(samples, d_in, d_out, together):
    """Room for the gradients of a layer."""
    both = np.empty((samples, d_in + 1, d_out))
    if together:
        return Layer(both[:, :-1], both[:, -1:], both)
    return Layer(np.empty((samples, d_in, d_out)), np.empty((samples, 1, d_out)), None)


@pytest.mark.equation("K39", "K41")
@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_scale_of_rows_is_the_same_on_either_side_of_the_product(own_rows, together, dtype):
    """a^T (scale o gate) = (scale o a)^T gate, and the same with the bias's row of ones."""
    samples, rows, d_in, width = 3, 6, 2, 5
    x = RNG.standard_normal((samples, rows, d_in) if own_rows else (rows, d_in)).astype(dtype)
    gate = (RNG.standard_normal((samples, rows, width)) > 0).astype(dtype)
    scale = RNG.standard_normal((samples, rows, 1)) + (1j if dtype == np.complex128 else 0.0)
    columns = RNG.standard_normal((samples, 1, width)).astype(dtype)
    a, ones = x, np.ones((1, rows))
    if together:
        a = products.with_ones(x, np.empty((*x.shape[:-2], d_in + 1, rows), dtype))
    found, expected = [
        Layer(*(None if part is None else part.astype(dtype) for part in layer(3, 2, 5, together)))
        for _ in range(2)
    ]
    products.affine_vjp(a, Delta(gate, columns, scale), ones, found, Buffers())
    products.affine_vjp(a, Delta(scale * gate, columns), ones, expected, Buffers())
    for one, other in zip(found, expected, strict=True):
        if other is not None and (other is not expected.stacked) == (not together):
            # of the largest: a sum of six terms that cancel is less exact than its own size
            largest = np.abs(other).max()
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-14 * largest)
            assert largest > 0.1


@pytest.mark.equation("K39")
def test_only_a_single_column_above_narrow_inputs_is_left_for_later():
    slope = (RNG.standard_normal((2, 4, 3)) > 0) * 1.0
    one, two = RNG.standard_normal((2, 4, 1)), RNG.standard_normal((2, 4, 2))
    for rows, narrow, later in ((one, True, True), (one, False, False), (two, True, False)):
        weight = RNG.standard_normal((2, 3, rows.shape[-1]))
        found = products.gated(Delta(rows), weight, slope, narrow, Buffers())
        assert (found.scale is not None) == later
        assert (found.rows is slope) == later, "the gates themselves, not a copy"
        factors = [1.0 if part is None else part for part in (found.columns, found.scale)]
        expected = np.matmul(rows, weight.swapaxes(-1, -2)) * slope
        np.testing.assert_allclose(found.rows * factors[0] * factors[1], expected, rtol=1e-14)


@pytest.mark.equation("K38", "K40", "K42")
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(2, 6, 1), (7, 3, 1), (1, 4, 1), (2, 5, 4, 1), (2, 6, 2)])
def test_narrow_and_wide_inputs_have_the_same_gradient(sizes, activation, monkeypatch):
    """The gradient with the scale on the narrow side, and without that trick."""
    net = MLP(sizes, activation)
    w, x = RNG.standard_normal((3, net.layout.size)), RNG.standard_normal((8, sizes[0]))
    d_f = RNG.standard_normal((3, 8, sizes[-1]))

    def gradient():
        buffers = Buffers()
        return network.vjp(net, network.forward(net, w, x, buffers)[1], d_f, buffers)

    found, right = gradient(), products.gated
    monkeypatch.setattr(
        "bbb_numpy.parts.network.gated", lambda d, w, s, narrow, b: right(d, w, s, False, b)
    )
    np.testing.assert_allclose(found, gradient(), rtol=1e-12, atol=1e-13)

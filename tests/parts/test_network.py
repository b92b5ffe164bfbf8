"""network: the forward pass is a function of each row and sample; vjp is its exact adjoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy import MLP
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.parts.network import forward, gates, vjp

shapes = st.tuples(
    st.lists(st.integers(1, 5), min_size=2, max_size=5),
    st.sampled_from(list(ACTIVATIONS)),
    st.integers(1, 4),  # S
    st.integers(0, 5),  # B
    st.integers(0, 2**32 - 1),
)


def draw(shape):
    sizes, activation, samples, rows, seed = shape
    net, rng = MLP(tuple(sizes), activation), np.random.default_rng(seed)
    w = rng.standard_normal((samples, net.layout.size))
    return net, w, rng.standard_normal((rows, sizes[0])), rng


@pytest.mark.equation("K31", "K32", "K33", "K34", "K35", "K36")
def test_two_layers_by_hand():
    # z0 = [2, -1] [[1, 2], [3, 4]] + [0, 1] = [-1, 1]; a0 = [0, 1]; f = 5 * 0 - 2 * 1 + 0.5
    net = MLP((2, 2, 1))
    w = np.array([[1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 5.0, -2.0, 0.5]])
    f, tape = forward(net, w, np.array([[2.0, -1.0]]), Buffers())
    assert f.tolist() == [[[-1.5]]]
    assert tape.slopes[0].tolist() == [[[0.0, 1.0]]]


@given(shape=shapes)
def test_samples_and_rows_do_not_mix(shape):
    net, w, x, _ = draw(shape)
    together, _ = forward(net, w, x, Buffers())
    assert together.shape == (len(w), len(x), net.sizes[-1])
    for s in range(len(w)):
        for row in range(len(x)):
            alone, _ = forward(net, w[s : s + 1], x[row : row + 1], Buffers())
            assert np.allclose(together[s, row], alone[0, 0], rtol=1e-12, atol=1e-12)


@given(shape=shapes)
def test_rows_of_their_own_give_each_sample_what_it_has_alone(shape):
    net, w, x, rng = draw(shape)
    rows_by_sample = rng.standard_normal((len(w), *x.shape))
    buffers = Buffers()
    f, tape = forward(net, w, rows_by_sample, buffers)
    d_f = rng.standard_normal(f.shape)
    pulled = vjp(net, tape, d_f.copy(), buffers)
    for s in range(len(w)):
        sample_buffers = Buffers()
        alone, tape = forward(net, w[s : s + 1], rows_by_sample[s], sample_buffers)
        assert np.array_equal(f[s], alone[0])
        assert np.array_equal(pulled[s], vjp(net, tape, d_f[s : s + 1].copy(), sample_buffers)[0])


def test_gates_change_exactly_where_a_pre_activation_changes_sign():
    net, x = MLP((1, 1, 1)), np.ones((1, 1))
    on, off = np.array([[1.0, 0.5, 1.0, 0.0]]), np.array([[1.0, -1.5, 1.0, 0.0]])
    assert gates(net, on, x).tolist() == [True]
    assert gates(net, off, x).tolist() == [False]
    assert gates(MLP((1, 1, 1), "tanh"), on, x).size == 0


@pytest.mark.equation("K32", "K34", "K39", "K41")
def test_a_unit_exactly_at_zero_is_off():
    net, w, x, buffers = (
        MLP((1, 1, 1)),
        np.array([[1.0, -1.0, 1.0, 0.0]]),
        np.ones((1, 1)),
        Buffers(),
    )
    _, tape = forward(net, w, x, buffers)
    assert tape.slopes[0].item() == 0
    assert gates(net, w, x).tolist() == [False]
    assert vjp(net, tape, np.ones((1, 1, 1)), buffers).tolist() == [[0.0, 0.0, 0.0, 1.0]]

"""States: where chains may start, and what counts as outside."""

import numpy as np
import pytest
from targets import Gammas, Gaussian, correlated

from bbb_numpy.sampling.mcmc import HMC, NUTS, Langevin, MetropolisHastings, State, init
from bbb_numpy.sampling.mcmc.states import evaluate

KERNELS = [NUTS(), HMC(), MetropolisHastings(), MetropolisHastings(Langevin())]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_begins_with_density_and_gradient_of_a_copy(kernel):
    target, position = correlated(), np.ones((2, 3))
    state = kernel.init(target, position)
    value, gradient = target(position)
    np.testing.assert_array_equal(state.log_density, value)
    np.testing.assert_array_equal(state.gradient, gradient)
    position[:] = 7.0
    np.testing.assert_array_equal(state.position, 1.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_step_is_a_function_of_its_arguments_and_leaves_them_alone(kernel):
    target = correlated()
    state = kernel.init(target, np.random.default_rng(0).standard_normal((5, 3)))
    copies = State(*(array.copy() for array in state))
    first = kernel.step(target, np.random.default_rng(1), state)
    repeated = kernel.step(target, np.random.default_rng(1), state)
    for a, b in zip((*first[0], *first[1]), (*repeated[0], *repeated[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(state, copies, strict=True):
        np.testing.assert_array_equal(a, b)
    value, gradient = target(first[0].position)
    np.testing.assert_allclose(first[0].log_density, value, rtol=1e-12)
    np.testing.assert_allclose(first[0].gradient, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chains_keep_their_dtype_and_report_one_number_each(kernel, dtype):
    target = Gaussian(np.eye(2))
    state = kernel.init(target, np.ones((3, 2), dtype))
    state, info = kernel.step(target, np.random.default_rng(0), state)
    assert {array.dtype for array in state} == {np.dtype(dtype)}
    assert {array.shape for array in info} == {(3,)}
    assert info.accepted.dtype == info.divergent.dtype == bool
    assert np.all((info.acceptance >= 0) & (info.acceptance <= 1))
    assert np.all(info.gradients >= 1)


@pytest.mark.parametrize(
    ("value", "gradient"),
    [(np.nan, 1.0), (np.inf, 1.0), (-np.inf, 1.0), (0.0, np.nan), (0.0, np.inf), (0.0, -np.inf)],
)
def test_what_is_not_finite_is_outside(value, gradient):
    def target(position):
        return np.array([1.0, value]), np.array([[2.0, 3.0], [gradient, 1.0]])

    result = evaluate(target, np.zeros((2, 2)))
    np.testing.assert_array_equal(result[0], [1.0, -np.inf])
    np.testing.assert_array_equal(result[1], [[2.0, 3.0], [0.0, 0.0]])


THREE, ROWS = np.zeros((4, 3)), np.arange(4)[:, None] == 2
MATRIX = r"position must have shape \(chains, numbers\); got"
OUTSIDE = r"not finite where chains \[2\] start"
WANTED = r"log densities \(S,\) and gradients \(S, D\), .*; got "


@pytest.mark.parametrize(
    ("target", "position", "message"),
    [
        (correlated(), np.ones(3), MATRIX),
        (correlated(), np.ones((2, 3, 1)), MATRIX),
        (correlated(), np.ones(()), MATRIX),
        (Gammas(), np.where(ROWS, np.nan, np.ones((4, 2))), OUTSIDE),
        (Gammas(), np.where(ROWS, np.inf, np.ones((4, 2))), OUTSIDE),
        (Gammas(), np.where(ROWS, -1.0, np.ones((4, 2))), OUTSIDE),
        # infinities of both signs, without a warning about their sum
        (lambda p: (np.full(4, np.inf), np.full((4, 3), -np.inf)), THREE, "not finite where"),
        (lambda p: -(p**2).sum(axis=1), THREE, f"{WANTED}ndarray"),
        (
            lambda p: (-(p**2).sum(axis=1), -2.0 * p[:, :1]),
            THREE,
            WANTED + r"arrays of shapes \(\(4,\), \(4, 1\)\)",
        ),
        (
            lambda p: (-(p**2).sum(), -2.0 * p),
            THREE,
            WANTED + r"arrays of shapes \(\(\), \(4, 3\)\)",
        ),
        (
            lambda p: (-(p**2).sum(axis=1, keepdims=True), -2.0 * p),
            THREE,
            WANTED + r"arrays of shapes \(\(4, 1",
        ),
        (None, THREE, f"{WANTED}NoneType"),
    ],
)
def test_starts_and_targets_that_do_not_fit_are_refused(target, position, message):
    with pytest.raises(ValueError, match=message):
        init(target, position)

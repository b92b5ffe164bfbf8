"""The covariance of functions under the prior, and its limit for wide networks (D81 to D83)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf

from bbb_numpy import (
    MLP,
    CentredGaussianPrior,
    GaussianPrior,
    LaplacePrior,
    LayerwiseGaussianPrior,
    Model,
)
from bbb_numpy.evaluation import function_space
from bbb_numpy.evaluation.function_space import excess_kurtosis, gp_kernel

X = np.array([[0.3, -1.0], [0.3, -1.0], [2.0, 0.5], [0.0, 0.0], [-2.0, -0.5]])


def written_out(x, other, scales, widths):
    """Return the kernel of ReLU networks at two rows, from the equations alone."""
    k = [[scales[0] ** 2 * (a @ b + 1) for b in (x, other)] for a in (x, other)]
    for s, n in zip(scales[1:], widths, strict=True):
        root = np.sqrt(k[0][0] * k[1][1])
        angle = np.arccos(np.clip(k[0][1] / root, -1, 1))
        crossed = root / (2 * np.pi) * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
        crossed = s**2 * (n * crossed + 1)
        k = [
            [s**2 * (n * k[0][0] / 2 + 1), crossed],
            [crossed, s**2 * (n * k[1][1] / 2 + 1)],
        ]
    return k[0][1]


@pytest.mark.equation("D81")
@given(
    sizes=st.lists(st.integers(1, 6), max_size=3),
    scale=st.floats(0.1, 3.0),
    seed=st.integers(0, 10_000),
)
def test_the_kernel_is_the_recursion_written_out(sizes, scale, seed):
    rows = np.random.default_rng(seed).standard_normal((2, 3))
    network = MLP((3, *sizes, 2))
    for prior in (GaussianPrior(scale), LayerwiseGaussianPrior()):
        model = Model(network, prior)
        scales = getattr(model.prior, "scales", None) or (scale,) * (len(sizes) + 1)
        expected = written_out(*rows, scales, sizes)
        np.testing.assert_allclose(gp_kernel(model, rows[:1], rows[1:]), [[expected]], rtol=1e-12)


@pytest.mark.equation("D81")
@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "softplus"])
def test_a_kernel_is_symmetric_positive_and_the_same_at_equal_rows(activation):
    model = Model(MLP((2, 7, 9, 1), activation), LayerwiseGaussianPrior())
    kernel = gp_kernel(model, X)
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
    np.testing.assert_allclose(kernel[0], kernel[1], rtol=1e-7)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9
    np.testing.assert_allclose(gp_kernel(model, X, X[2:]), kernel[:, 2:], rtol=1e-12)


@pytest.mark.equation("D81")
@pytest.mark.parametrize(("activation", "width"), [("relu", 3), ("tanh", 5), ("gelu", 2)])
def test_with_one_hidden_layer_it_is_the_covariance_at_every_width(activation, width):
    model = Model(MLP((2, width, 1), activation), GaussianPrior(0.8))
    n_draws = 40_000
    w = model.prior.draw(np.random.default_rng(0), {}, (n_draws, model.layout.size))
    f = model.predict(w, X)[:, :, 0]
    products = f[:, :, None] * f[:, None, :]
    error = products.std(axis=0) / np.sqrt(n_draws)
    assert (abs(products.mean(axis=0) - gp_kernel(model, X)) < 4.5 * error).all()


@pytest.mark.equation("D81")
@pytest.mark.parametrize("sd", [0.2, 1.0, 3.0])
def test_the_trapezoidal_rule_gives_the_known_kernel_of_erf(sd, monkeypatch):
    """Williams (1997): E erf(z) erf(z') = 2 / pi arcsin(2 k / sqrt((1 + 2 v)(1 + 2 v')))."""

    def write_erf(z, slope):
        z[...] = erf(z)

    monkeypatch.setitem(function_space.ACTIVATIONS, "erf", write_erf)
    v = np.array([sd**2, 0.5 * sd**2])
    for c in (-1.0, -0.6, 0.0, 0.99, 1.0):
        k = c * np.sqrt(v[:1, None] * v[None, 1:])
        expected = 2 / np.pi * np.arcsin(2 * k / np.sqrt((1 + 2 * v[:1]) * (1 + 2 * v[1:])))
        found = function_space._expected_products("erf", k, v[:1], v[1:])
        np.testing.assert_allclose(found, expected, atol=1e-9)
    squares = 2 / np.pi * np.arcsin(2 * v / (1 + 2 * v))
    np.testing.assert_allclose(function_space._expected_squares("erf", v), squares, atol=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "silu", "gelu"])
def test_the_error_of_the_rule_is_what_the_notes_say(activation):
    """Against a rule with twenty times as many nodes, where units nearly jump."""
    u = np.linspace(-9, 9, 2401)
    p = np.exp(-0.5 * u * u)
    p /= p.sum()
    for sd in (1.0, 10.0):
        values = function_space._activated(activation, sd * u)
        found = function_space._expected_squares(activation, np.array([sd**2]))[0]
        assert found == pytest.approx(p @ values**2, rel=3e-3 if sd > 1 else 1e-9)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (LaplacePrior(), "must be a GaussianPrior or LayerwiseGaussianPrior"),
        (GaussianPrior(learn=True), "with fixed scales"),
        (CentredGaussianPrior(centre=1.0), "must be a GaussianPrior"),
    ],
    ids=["Laplace", "learned", "a centre"],
)
@pytest.mark.parametrize("call", [gp_kernel, excess_kurtosis])
def test_other_priors_are_refused(call, prior, words):
    with pytest.raises(ValueError, match=words):
        call(Model(MLP((2, 3, 1)), prior), X)


@pytest.mark.equation("D82")
@given(scale=st.floats(0.1, 3.0), n=st.integers(1, 40), x=st.floats(-3.0, 3.0))
def test_the_kurtosis_of_one_hidden_layer_is_that_of_its_closed_form(scale, n, x):
    """3 Var(V) / (E V)^2, with V = s^2 (sum a^2 + 1): Var(a^2) is 5/4 of the squared variance."""
    v = scale**2 * (x**2 + 1)
    expected = 3 * n * 1.25 * v**2 / (n * v / 2 + 1) ** 2
    found = excess_kurtosis(Model(MLP((1, n, 1)), GaussianPrior(scale)), [[x]])
    np.testing.assert_allclose(found, [expected], rtol=1e-9, atol=1e-12)
    none = excess_kurtosis(Model(MLP((1, 1)), GaussianPrior(scale)), [[x]])
    np.testing.assert_allclose(none, [0], atol=1e-12)


@pytest.mark.equation("D82")
def test_the_kurtosis_of_a_small_network_is_that_of_its_draws():
    model = Model(MLP((2, 30, 20, 1)), GaussianPrior(0.5))
    w = model.prior.draw(np.random.default_rng(0), {}, (40_000, model.layout.size))
    f = model.predict(w, X[:1])[:, 0, 0]
    found = np.mean(f**4) / np.mean(f**2) ** 2 - 3
    error = np.std(f**4) / np.mean(f**2) ** 2 / np.sqrt(len(f))
    assert abs(found - excess_kurtosis(model, X[:1])[0]) < 4 * error


def test_the_kurtosis_of_other_activations_is_refused():
    with pytest.raises(ValueError, match="must be 'relu'; got 'tanh'"):
        excess_kurtosis(Model(MLP((2, 3, 1), "tanh")), X)


def test_rows_have_as_many_columns_as_the_network_reads():
    model = Model(MLP((2, 3, 1)))
    with pytest.raises(ValueError, match="x must have shape"):
        gp_kernel(model, [[1.0]])
    with pytest.raises(ValueError, match="others must have shape"):
        gp_kernel(model, X, [[1.0]])
    assert gp_kernel(model, np.zeros((0, 2))).shape == (0, 0)
    for call in (gp_kernel, excess_kurtosis):
        with pytest.raises(ValueError, match="x must be between"):
            call(model, [[1e80, 0.0]])  # its fourth power is infinite
        assert np.isfinite(call(model, [[1e50, 0.0]])).all()


@pytest.mark.equation("D81")
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
@pytest.mark.parametrize("correlation", [-1.0, -0.99, 0.5, 1.0])
def test_the_trapezoidal_rule_has_the_error_that_is_stated_at_the_largest_scales(
    activation, correlation, monkeypatch
):
    variances = np.array([9.9**2])
    numbers = (activation, correlation * variances[:, None], variances, variances)
    product = function_space._expected_products(*numbers)
    monkeypatch.setattr(function_space, "N_NODES", 481)
    error = abs(product - function_space._expected_products(*numbers))
    assert error < 0.003 * function_space._expected_squares(activation, variances)


def test_many_rows_are_integrated_in_blocks_of_the_same_numbers(monkeypatch):
    model = Model(MLP((2, 7, 1), "tanh"), LayerwiseGaussianPrior())
    whole = gp_kernel(model, X)
    monkeypatch.setattr(function_space, "MAX_BLOCK_SIZE", 2 * 5 * function_space.N_NODES)
    np.testing.assert_allclose(gp_kernel(model, X), whole, rtol=1e-14)
    assert function_space.N_NODES**2 == 14_641

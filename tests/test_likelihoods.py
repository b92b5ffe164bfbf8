"""likelihoods: exact densities, zero gradient at the best noise, and draws that agree."""

from math import log
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import COMPLEX_STEP, scales

from bbb_numpy import GaussianLikelihood
from bbb_numpy.workspace import Workspace


def draw(seed, samples=2, rows=4, outputs=3):
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((samples, rows, outputs))
    return f, rng.standard_normal((rows, outputs)), rng


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.equation("K14", "K15", "D1")
@given(seed=seeds, scale=scales, learn=st.booleans())
def test_each_row_has_the_density_of_independent_normals_around_the_outputs(seed, scale, learn):
    f, y, _ = draw(seed)
    y = f[0] + scale * y  # within reach of the density for every scale
    f = f[:1]
    likelihood = GaussianLikelihood(scale, learn)
    params = {"log_noise": likelihood.init(3, np.float64)} if learn else {}
    value, _ = likelihood.log_density(params, f, y, Workspace())
    expected = [
        sum(log(NormalDist(m, scale).pdf(t)) for m, t in zip(f[0, b], y[b], strict=True))
        for b in range(4)
    ]
    assert np.allclose(value[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.equation("K16")
def test_unit_variance_without_the_constant_is_the_report():
    f, y, _ = draw(0)
    value, _ = GaussianLikelihood(1.0).log_density({}, f, y, Workspace())
    k16 = -0.5 * ((y - f) ** 2).sum(axis=2)
    assert np.allclose(value, k16 - 1.5 * np.log(2 * np.pi), rtol=1e-13)


@pytest.mark.equation("K37", "D1")
@given(seed=seeds)
def test_vjp_is_the_derivative_for_outputs_and_noise(seed):
    f, y, rng = draw(seed)
    likelihood, cotangent = GaussianLikelihood(1.0, learn=True), rng.standard_normal(2)
    params = {"log_noise": rng.standard_normal(3)}
    work, d_params = Workspace(), {"log_noise": np.zeros(3)}
    _, saved = likelihood.log_density(params, f, y, work)
    d_f = likelihood.vjp(saved, cotangent, d_params).copy()

    def total(f, log_noise):
        rowwise, _ = likelihood.log_density({"log_noise": log_noise}, f, y, Workspace())
        return cotangent @ rowwise.sum(axis=1)

    for index in np.ndindex(f.shape):
        stepped = f.astype(complex)
        stepped[index] += 1j * COMPLEX_STEP
        slope = total(stepped, params["log_noise"]).imag / COMPLEX_STEP
        assert d_f[index] == pytest.approx(slope, rel=1e-12, abs=1e-14)
    for k in range(3):
        stepped = params["log_noise"].astype(complex)
        stepped[k] += 1j * COMPLEX_STEP
        slope = total(f.astype(complex), stepped).imag / COMPLEX_STEP
        assert d_params["log_noise"][k] == pytest.approx(slope, rel=1e-12, abs=1e-12)


@pytest.mark.equation("K37")
def test_unit_variance_gives_the_reports_minus_y_minus_yhat_for_the_loss():
    f, y, _ = draw(0)
    _, saved = GaussianLikelihood(1.0).log_density({}, f, y, Workspace())
    d_f = GaussianLikelihood(1.0).vjp(saved, np.full(2, -1.0), {})
    assert np.allclose(d_f, -(y - f), rtol=1e-14)


@pytest.mark.equation("D1")
def test_the_noise_gradient_vanishes_at_the_root_mean_square_residual():
    f, y, _ = draw(5)
    best = np.log(np.sqrt(((y - f) ** 2).mean(axis=(0, 1))))
    likelihood, d_params = GaussianLikelihood(1.0, learn=True), {"log_noise": np.zeros(3)}
    _, saved = likelihood.log_density({"log_noise": best}, f, y, Workspace())
    likelihood.vjp(saved, np.ones(2), d_params)
    assert np.abs(d_params["log_noise"]).max() < 1e-12


@pytest.mark.equation("D1")
def test_draws_scatter_with_the_stated_deviation():
    likelihood = GaussianLikelihood(0.7, learn=True)
    params = {"log_noise": np.log([0.2, 3.0])}
    f = np.zeros((1, 40_000, 2))
    y = likelihood.draw(np.random.default_rng(0), params, f)
    ratio = y.std(axis=(0, 1)) / [0.2, 3.0]
    assert np.abs(ratio - 1).max() < 4 / np.sqrt(2 * 40_000)
    assert np.allclose(likelihood.variance(params, f), [0.04, 9.0], rtol=1e-14)


def test_fixed_noise_has_no_learned_block():
    assert GaussianLikelihood(2.0).blocks(3) == ()
    assert GaussianLikelihood(2.0).init(3, np.float32).size == 0
    start = GaussianLikelihood(2.0, learn=True).init(3, np.float32)
    assert start.dtype == np.float32
    assert np.allclose(start, np.log(2.0))


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_impossible_scales_are_refused_with_the_value(scale):
    with pytest.raises(ValueError, match=f"scale of the noise must be positive.*got {scale}"):
        GaussianLikelihood(scale)

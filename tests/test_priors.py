"""priors: exact densities for any scale, and their gradients."""

from math import log
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import COMPLEX_STEP, scales

from bbb_numpy import GaussianPrior
from bbb_numpy.workspace import Workspace


@pytest.mark.equation("K11", "K12")
@given(scale=scales, seed=st.integers(0, 2**32 - 1))
def test_log_density_is_that_of_independent_normals(scale, seed):
    w = scale * np.random.default_rng(seed).standard_normal((3, 5))
    expected = [sum(log(NormalDist(0, scale).pdf(value)) for value in row) for row in w]
    assert np.allclose(GaussianPrior(scale).log_density({}, w, Workspace()), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.equation("K13", "K17")
def test_the_report_drops_half_log_two_pi_per_weight_and_k17_the_scale_too():
    w = np.array([[3.0, -1.0]])
    k13 = -2 * log(2.5) - 10 / (2 * 2.5**2)
    assert GaussianPrior(2.5).log_density({}, w, Workspace())[0] == pytest.approx(k13 - np.log(2 * np.pi))
    # K17's 1/2 w^2 is the same number for unit scale, and only then
    k17 = -0.5 * 10
    assert GaussianPrior(1.0).log_density({}, w, Workspace())[0] == pytest.approx(k17 - np.log(2 * np.pi))
    assert abs(GaussianPrior(2.5).log_density({}, w, Workspace())[0] - (k17 - np.log(2 * np.pi))) > 1


@pytest.mark.equation("K19", "K26")
@given(scale=scales, seed=st.integers(0, 2**32 - 1))
def test_add_vjp_adds_the_cotangent_times_the_derivative(scale, seed):
    rng = np.random.default_rng(seed)
    w, cotangent, before = rng.standard_normal((2, 4)), rng.standard_normal(2), np.ones((2, 4))
    after = before.copy()
    GaussianPrior(scale).add_vjp({}, w.copy(), cotangent, after, {}, Workspace())
    for j in range(4):
        stepped = w.astype(complex)
        stepped[:, j] += 1j * COMPLEX_STEP
        slope = GaussianPrior(scale).log_density({}, stepped, Workspace()).imag / COMPLEX_STEP
        assert np.allclose(after[:, j] - before[:, j], cotangent * slope, rtol=1e-9, atol=1e-12)


def test_the_density_integrates_to_one():
    grid = np.linspace(-20, 20, 20_001)
    density = np.exp(GaussianPrior(1.7).log_density({}, grid[:, None], Workspace()))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_impossible_scales_are_refused_with_the_value(scale):
    with pytest.raises(ValueError, match=f"scale of the prior must be positive.*got {scale}"):
        GaussianPrior(scale)

"""Mass matrices: momenta have covariance M, steps M^-1; kinetic energy r^T M^-1 r / 2 (M12)."""

import numpy as np
import pytest

from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    MCLMC,
    NUTS,
    ChEES,
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    Langevin,
    StudentWalk,
)
from bbb_numpy.sampling.mcmc.metrics import identity

COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 0.5, -0.2], [0.0, -0.2, 1.5]])
METRICS = {
    "diagonal": (DiagonalMetric(np.diag(COVARIANCE).copy()), np.diag(np.diag(COVARIANCE))),
    "dense": (DenseMetric(COVARIANCE), COVARIANCE),
}


@pytest.mark.equation("M12")
@pytest.mark.parametrize("kind", METRICS)
def test_velocity_is_the_slope_of_the_kinetic_energy(kind):
    metric, inverse = METRICS[kind]
    momentum = np.random.default_rng(1).standard_normal((7, 3))
    np.testing.assert_allclose(metric.velocity(momentum), momentum @ inverse, atol=1e-14)
    expected = 0.5 * np.einsum("si,ij,sj->s", momentum, inverse, momentum)
    np.testing.assert_allclose(metric.kinetic(momentum), expected, rtol=1e-14)


@pytest.mark.equation("M12")
@pytest.mark.parametrize("kind", METRICS)
def test_whitened_offsets_have_the_length_that_the_mass_matrix_gives_them(kind):
    metric, inverse = METRICS[kind]
    offset = np.random.default_rng(3).standard_normal((7, 3))
    white = metric.whiten(offset)
    expected = np.einsum("si,ij,sj->s", offset, np.linalg.inv(inverse), offset)
    np.testing.assert_allclose(np.sum(white * white, axis=1), expected, rtol=1e-12)


def test_a_dense_metric_without_covariances_is_the_diagonal_one():
    variance = np.array([0.3, 2.0])
    dense, diagonal = DenseMetric(np.diag(variance)), DiagonalMetric(variance)
    like = np.ones((4, 2))
    for name in ("draw_momentum", "draw_step"):
        drawn = [getattr(m, name)(np.random.default_rng(0), like) for m in (dense, diagonal)]
        np.testing.assert_allclose(drawn[0], drawn[1], rtol=1e-14)
    np.testing.assert_allclose(dense.kinetic(like), diagonal.kinetic(like))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_that_of_the_chains(dtype):
    like = np.ones((2, 3), dtype)
    for metric in (
        identity(like),
        DiagonalMetric(np.ones(3, dtype)),
        DenseMetric(np.eye(3, dtype=dtype)),
    ):
        rng = np.random.default_rng(0)
        assert metric.draw_momentum(rng, like).dtype == dtype
        assert metric.draw_step(rng, like).dtype == dtype
        assert metric.velocity(like).dtype == dtype
        assert metric.kinetic(like).dtype == dtype


VARIANCE = "variance must be a vector of finite numbers > 0; got"
NUMBERS = "must be an array of numbers; got"
SYMMETRIC = "symmetric, of finite numbers; got"


@pytest.mark.parametrize(
    ("make", "given", "error", "message"),
    [
        (DiagonalMetric, np.array([1.0, 0.0]), ValueError, VARIANCE),
        (DiagonalMetric, np.array([1.0, -1.0]), ValueError, VARIANCE),
        (DiagonalMetric, np.array([1.0, np.nan]), ValueError, VARIANCE),
        (DiagonalMetric, np.array([np.inf]), ValueError, VARIANCE),
        (DiagonalMetric, np.array([[1.0]]), ValueError, VARIANCE),
        (DiagonalMetric, np.arange(3).astype("M8[D]"), TypeError, f"variance {NUMBERS}"),
        (DiagonalMetric, [[1.0], 2.0], TypeError, f"variance {NUMBERS}"),
        (DenseMetric, ["a"], TypeError, f"covariance {NUMBERS}"),
        (DenseMetric, [None], TypeError, f"covariance {NUMBERS}"),
        (DenseMetric, np.ones((2, 3)), ValueError, r"symmetric matrix; got shape \(2, 3\)"),
        (DenseMetric, np.ones(2), ValueError, r"symmetric matrix; got shape \(2,\)"),
        (DenseMetric, np.array([[1.0, 0.5], [0.4, 1.0]]), ValueError, SYMMETRIC),
        (DenseMetric, np.array([[1e-9, 1e-10], [5e-10, 1e-9]]), ValueError, SYMMETRIC),
        (DenseMetric, np.array([[1.0, 0.0], [0.0, np.inf]]), ValueError, SYMMETRIC),
        (DenseMetric, np.array([[1.0, np.nan], [np.nan, 1.0]]), ValueError, SYMMETRIC),
        (DenseMetric, np.array([[1.0, 2.0], [2.0, 1.0]]), ValueError, "positive definite"),
        (DenseMetric, np.zeros((2, 2)), ValueError, "positive definite"),
    ],
)
def test_what_is_no_variance_or_covariance_is_refused(make, given, error, message):
    with pytest.raises(error, match=message):
        make(given)


@pytest.mark.parametrize(
    "kernel", [HMC, NUTS, ChEES, MAMS, MCLMC, GaussianWalk, StudentWalk, Langevin]
)
@pytest.mark.parametrize(
    ("metric", "given"),
    [
        *((3, "3"), ("dense", "'dense'"), (np.ones(3), r"an array of shape \(3,\)")),
        (DiagonalMetric, "the class DiagonalMetric"),
    ],
)
def test_what_is_no_metric_is_refused_at_once(kernel, metric, given):
    wanted = r"metric must be an object such as DiagonalMetric\(variance\) or .*, or None; got "
    with pytest.raises(TypeError, match=f"{wanted}{given}"):
        kernel(metric=metric)


@pytest.mark.parametrize("units", [1e-9, 1e9])
def test_a_covariance_may_miss_symmetry_by_rounding_in_any_units(units):
    DenseMetric(units * np.array([[1.0, 1e-8], [3e-8, 1.0]]))

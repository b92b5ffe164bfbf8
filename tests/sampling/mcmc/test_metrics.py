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


def scatter_error(draws, expected):
    """Largest z-score of the second moments of zero-mean Gaussian draws (S, D)."""
    products = np.einsum("si,sj->sij", draws, draws)
    error = products.std(axis=0) / np.sqrt(len(draws))
    return np.max(np.abs(products.mean(axis=0) - expected) / error)


@pytest.mark.equation("M12")
@pytest.mark.parametrize("kind", METRICS)
def test_momenta_have_covariance_m_and_steps_its_inverse(kind):
    metric, inverse = METRICS[kind]
    like, rng = np.empty((40_000, 3)), np.random.default_rng(0)
    momentum, step = metric.draw_momentum(rng, like), metric.draw_step(rng, like)
    assert scatter_error(momentum, np.linalg.inv(inverse)) < 4.5
    assert scatter_error(step, inverse) < 4.5
    # the two exchanged would be seen
    assert scatter_error(momentum, inverse) > 20
    assert scatter_error(step, np.linalg.inv(inverse)) > 20


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


@pytest.mark.parametrize("variance", [[1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [np.inf], [[1.0]]])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(ValueError, match="variance must be a vector of finite numbers > 0; got"):
        DiagonalMetric(np.array(variance))


@pytest.mark.parametrize("given", [np.arange(3).astype("M8[D]"), ["a"], [None], [[1.0], 2.0]])
def test_what_holds_no_numbers_is_refused(given):
    with pytest.raises(TypeError, match="variance must be an array of numbers; got"):
        DiagonalMetric(given)
    with pytest.raises(TypeError, match="covariance must be an array of numbers; got"):
        DenseMetric(given)


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


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.ones((2, 3)), r"symmetric matrix; got shape \(2, 3\)"),
        (np.ones(2), r"symmetric matrix; got shape \(2,\)"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "symmetric, of finite numbers; got"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "symmetric, of finite numbers; got"),
        (np.array([[1.0, 0.0], [0.0, np.inf]]), "symmetric, of finite numbers; got"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "symmetric, of finite numbers; got"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (np.zeros((2, 2)), "positive definite"),
    ],
)
def test_a_covariance_that_is_none_is_refused(covariance, message):
    with pytest.raises(ValueError, match=message):
        DenseMetric(covariance)


@pytest.mark.parametrize("units", [1e-9, 1e9])
def test_whether_a_covariance_is_symmetric_does_not_depend_on_units(units):
    DenseMetric(units * np.array([[1.0, 1e-8], [3e-8, 1.0]]))
    with pytest.raises(ValueError, match="covariance must be symmetric"):
        DenseMetric(units * np.array([[1.0, 0.1], [0.5, 1.0]]))

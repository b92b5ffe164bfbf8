"""SWAG: the Gaussian around a path, and what SGD's cloud is on a parabola (D80)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_course.keys import find
from bbb_numpy import MAP, MLP, SGD, GaussianLikelihood, GaussianPrior, Model, PointMass
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.training import Recipe, fit
from bbb_numpy.training.state import Training
from bbb_numpy.training.swag import swag


@pytest.mark.equation("D80")
@given(st.integers(2, 6), st.integers(0, 10_000), st.sampled_from(["float32", "float64"]))
def test_the_covariance_is_half_that_of_the_path_and_half_its_diagonal(length, seed, dtype):
    path = np.random.default_rng(seed).standard_normal((length, 3)).astype(dtype)
    posterior, theta = swag(path)
    assert theta.dtype == dtype
    model = Model(MLP((2, 1)))
    blocks = dict(zip(("mu", "rho", "v"), np.split(theta, [3, 6]), strict=True))
    sigma = np.log1p(np.exp(blocks["rho"].astype(float)))
    columns = sigma[:, None] * blocks["v"].reshape(3, length)
    covariance = np.diag(sigma**2) + columns @ columns.T
    of_path = np.cov(path.T)
    expected = 0.5 * of_path + 0.5 * np.diag(np.diag(of_path))
    tolerance = 1e-5 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(covariance, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(blocks["mu"], path.mean(axis=0), rtol=tolerance, atol=tolerance)
    noise = np.random.default_rng(seed + 1).standard_normal((1, 3 + length))
    draw = Reparameterised(model, posterior).weights(theta.astype(float), noise)[0]
    of_exercise = find("swag").right(path.astype(float), noise[0, :3], noise[0, 3:])[2]
    np.testing.assert_allclose(draw, of_exercise, rtol=1e-4, atol=1e-4)


def test_weights_that_do_not_move_have_almost_no_variance_and_one_snapshot_is_refused():
    posterior, theta = swag([[1, 0], [1, 2]])
    assert np.isfinite(theta).all()
    assert theta.dtype == np.float64
    assert np.exp(theta[2]) < 2e-6
    with pytest.raises(ValueError, match="2 or more rows"):
        swag(np.ones((1, 3)))
    with pytest.raises(ValueError, match="must have shape"):
        swag(np.ones(3))
    assert posterior.rank == 2


def sgd_cloud(rate, batch, n_rows=64, steps=60_000, seed=0):
    """Return posterior covariance, and SGD's covariance on a line with rows that are drawn anew."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, 2)) * [0.3, 2.0]
    x -= x.mean(axis=0)
    rows = np.linalg.qr(x)[0] * np.sqrt(n_rows) * [0.3, 2.0]
    residual = rng.standard_normal(n_rows)
    gradients = rows * residual[:, None]
    precision = rows.T @ rows
    of_one = np.cov(gradients.T, bias=True)
    chosen = rng.integers(0, n_rows, (steps, batch))
    w, path = np.zeros(2), np.empty((steps, 2))
    minimum = np.linalg.solve(precision, rows.T @ residual)
    for t, some in enumerate(chosen):
        error = rows[some] @ w - residual[some]
        w = w - rate * rows[some].T @ error / batch
        path[t] = w - minimum
    return precision / n_rows, of_one, path[1000:]


@pytest.mark.slow
@pytest.mark.equation("D80")
def test_sgd_on_rows_that_are_drawn_has_the_stationary_covariance_of_the_box():
    """With C as it is for these rows; the noise depends on w in the order of the rate."""
    rate, batch = 0.02, 8
    slopes, of_one, path = sgd_cloud(rate, batch)
    step = np.eye(2) - rate * slopes
    equation = np.eye(4) - np.kron(step, step)
    law = np.linalg.solve(equation, (rate**2 / batch * of_one).ravel()).reshape(2, 2)
    measured = np.cov(path.T)
    np.testing.assert_allclose(np.diag(measured), np.diag(law), rtol=0.12)
    # nearly a ball, though the posterior's standard deviations differ by 2 / 0.3
    assert 0.5 < measured[0, 0] / measured[1, 1] < 2
    np.testing.assert_allclose(slopes[1, 1] / slopes[0, 0], (2 / 0.3) ** 2)


@pytest.mark.slow
@pytest.mark.equation("D80")
def test_shuffled_rows_make_the_snapshots_of_epochs_closer_than_drawn_rows_do():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 1))
    y = x + 0.5 * rng.standard_normal((40, 1))
    model = Model(MLP((1, 1)), GaussianPrior(10.0), GaussianLikelihood(0.5))
    point = Reparameterised(model, PointMass(), MAP())
    rate, batch = 0.01, 4
    rule = SGD(rate / batch)
    state = Training(np.zeros(2), rule.init(np.zeros(2)))
    snapshots = []
    for _ in range(600):
        recipe = Recipe(rule, epochs=1, batch_size=batch)
        state = fit(point, state, x, y, recipe, rng=rng, progress=False)
        snapshots.append(state.theta)
    variance = np.var(snapshots[100:], axis=0)
    assert (variance < 0.3 * rate / (2 * batch)).all()  # of drawn rows: about rate / (2 batch)
    assert (variance > 0).all()

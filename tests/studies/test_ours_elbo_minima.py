"""The study of the bound's minima: its noiseless free energy, its symmetries, and the ways."""

import numpy as np
import pytest
from tables import cells_of

from bbb_studies.ours import elbo_minima as minima

RNG = np.random.default_rng
X = np.linspace(-2, 2, minima.N_TRAIN_ROWS)[:, None]
Y = np.sin(3 * X) + 0.2 * RNG(1).standard_normal(X.shape)
SIZE = minima.ESTIMATOR.model.layout.size


def some_theta(seed=0):
    rng = RNG(seed)
    return np.concatenate([1.5 * rng.standard_normal(SIZE), rng.uniform(-3, 0, SIZE)])


@pytest.fixture(scope="module")
def reproduced(short):
    return short("elbo-minima")


@pytest.mark.equation("D53", "R1")
def test_the_free_energy_by_quadrature_is_the_mean_of_the_estimators():
    theta, count = some_theta(), 20_000
    draws = RNG(2).standard_normal((count, SIZE))
    terms = minima.ESTIMATOR.value_and_grad(theta, draws, X, Y).terms
    sampled = terms.posterior - terms.prior - terms.likelihood
    error = sampled.std() / np.sqrt(count)
    found = minima.free_energy(theta, X, Y)
    assert abs(found - sampled.mean()) < 4 * error
    assert error < 0.02 * abs(found)
    functions = minima.MODEL.predict(minima.ESTIMATOR.weights(theta, draws), X)[..., 0]
    mean, variance = minima.moments(theta, X)
    assert np.abs(functions.mean(axis=0) - mean).max() < 5 * np.sqrt(variance.max() / count)
    np.testing.assert_allclose(functions.var(axis=0), variance, rtol=0.06)  # 5 s.e.


@pytest.mark.equation("D53")
def test_every_image_has_the_same_moments_and_the_same_bound():
    theta = some_theta()
    every = list(minima.images(theta))
    assert len(every) == 48 == len({image.tobytes() for image in every})
    np.testing.assert_array_equal(every[0], theta)
    for image in every:
        for one, other in zip(minima.moments(image, X), minima.moments(theta, X), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert minima.free_energy(image, X, Y) == pytest.approx(minima.free_energy(theta, X, Y))
    exchanged = theta.reshape(2, -1).copy()  # planted: the means exchanged, their rho not
    exchanged[0] = every[8].reshape(2, -1)[0]
    assert abs(minima.free_energy(exchanged.ravel(), X, Y) - minima.free_energy(theta, X, Y)) > 0.1


@pytest.mark.equation("D53")
def test_the_centre_of_all_images_is_constant_and_above_the_level_that_no_such_theta_passes():
    for seed in range(20):
        centre = np.mean(list(minima.images(some_theta(seed))), axis=0)
        mean, _ = minima.moments(centre, X)
        assert np.ptp(mean) < 1e-12
        level = ((Y - Y.mean()) ** 2).sum() / (
            2 * minima.NOISE_SCALE**2
        ) + minima.FREE_ENERGY_CONSTANT
        assert minima.free_energy(centre, X, Y) > level


@pytest.mark.equation("D53")
def test_a_trained_network_refutes_convexity(reproduced):
    text, _, numbers, _ = reproduced
    claims = cells_of(text, "claim of derivations.md")
    assert [row[-1] for row in claims.values()] == ["yes"] * 3
    ways = numbers["ways"]
    for name in ("itself, a unit turned", "itself, two units exchanged"):
        way = np.array(ways[name])
        assert way[0] == pytest.approx(way[-1])
        np.testing.assert_allclose(way, way[::-1], rtol=1e-9)  # the same from either end
        assert way[20] > way[0] + 10  # of a convex function never


def test_the_tables_have_the_numbers(reproduced):
    text, _, numbers, _ = reproduced
    energies, kinds = np.array(numbers["energies"]), np.array(numbers["kinds"])
    assert (np.diff(energies) >= 0).all()
    assert kinds[0] == 0
    rows = cells_of(text, "function")
    for kind in range(kinds.max() + 1):
        own = energies[kinds == kind]
        assert rows[f"{kind}"] == [f"{len(own)}", f"{-own[0]:.2f}", f"{-own[-1]:.2f}"]
    barriers = cells_of(text, "to  ")
    for name, way in numbers["ways"].items():
        assert barriers[name] == [f"{max(way) - max(way[0], way[-1]):.2f}"]

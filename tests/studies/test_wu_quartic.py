"""Wu's quartic, and the exact ends of the family that it compares: MLE (W1) and MAP (W2)."""

from dataclasses import replace
from math import pi, sqrt

import numpy as np
import pytest

from bbb_numpy.model.joint import Model
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior
from bbb_studies.comparing import METHODS, Setup, train
from bbb_studies.kit import average
from bbb_studies.wu import quartic as wu_quartic
from bbb_studies.wu.quartic import (
    DATA_INTERVALS,
    DATA_NOISE_SCALE,
    TUTORIAL_SETUP,
    TUTORIAL_X,
    draw_quartic,
    quartic_curve,
    run,
    tutorial,
)

SHORT = Setup(epochs=300, likelihood=GaussianLikelihood(0.25))


def gradients(prior, kl_weight, theta, x, y):
    """Return the gradients of MLE and MAP at the same weights."""
    model = Model(MLP((2, 5, 1), "tanh"), GaussianPrior(prior), GaussianLikelihood(0.3))
    found = []
    for name in ("MLE", "MAP"):
        estimator = METHODS[name](model)
        noise = estimator.draw(np.random.default_rng(0), 1)
        found.append(estimator.value_and_grad(theta, noise, x, y, kl_weight)[1].copy())
    return found


@pytest.mark.equation("W1", "W2")
@pytest.mark.parametrize("kl_weight", [1.0, 0.25])
@pytest.mark.parametrize("prior", [0.2, 3.0])
def test_the_gradient_of_map_is_that_of_mle_and_weight_decay(prior, kl_weight):
    rng = np.random.default_rng(1)
    theta, x, y = rng.standard_normal(21), rng.standard_normal((8, 2)), rng.standard_normal((8, 1))
    mle, map_ = gradients(prior, kl_weight, theta, x, y)
    np.testing.assert_allclose(map_ - mle, kl_weight * theta / prior**2, rtol=1e-9, atol=1e-9)


def test_a_mixture_has_the_moments_and_the_density_of_its_members():
    data, setup = (
        draw_quartic(np.random.default_rng(3), 30, DATA_INTERVALS),
        replace(SHORT, epochs=20),
    )
    mixture = train(METHODS["VI"], setup, *data[:2], seed=0, members=2)
    x = np.linspace(-2, 2, 7)[:, None]
    functions = mixture.functions(x, 100)  # (200, 7, 1), the same weights as predict's
    found = mixture.predict(x, 100)
    np.testing.assert_allclose(found.mean, functions.mean(axis=0), rtol=1e-12)
    parts = np.split(functions, 2)
    within = np.mean([part.var(axis=0, ddof=1) for part in parts], axis=0)
    between = np.var([part.mean(axis=0) for part in parts], axis=0, ddof=1)
    np.testing.assert_allclose(found.epistemic**2, within + between, rtol=1e-10)
    noise = 0.25 * float(data.y.std())
    np.testing.assert_allclose(found.aleatoric, noise, rtol=1e-12)
    y = data.truth(x)
    density = np.mean(np.exp(-0.5 * ((y - functions) / noise) ** 2), axis=0) / sqrt(2 * pi) / noise
    logs = mixture.log_density(x, y, 100)
    np.testing.assert_allclose(np.exp(logs), density[:, 0], rtol=1e-9, atol=1e-300)
    assert np.isfinite(logs).all()


def test_the_tutorial_has_its_rows_network_noise_prior_and_steps():
    fitted = tutorial(0, replace(TUTORIAL_SETUP, epochs=1))
    np.testing.assert_allclose(quartic_curve(TUTORIAL_X)[:, 0], [-3, 0.2224, 3, 3, 0.2224, -3])
    model = fitted.estimator.model
    assert (model.network.sizes, model.network.activation) == ((1, 32, 1), "sigmoid")
    assert (model.prior.scale, model.likelihood.scale) == (10.0, 0.1)
    # one step of plain Adam from 0, in its own units: all parameters have moved by 0.1
    assert (TUTORIAL_SETUP.epochs, TUTORIAL_SETUP.schedule(1999, 2000)) == (2000, 1.0)
    np.testing.assert_allclose(np.abs(fitted.thetas[0]), 0.1, rtol=1e-4)
    assert np.ravel([fitted.x_scale, fitted.y_scale]).tolist() == [0.0, 1.0, 0.0, 1.0]


def test_the_curve_and_the_data_are_those_of_the_slides():
    x = np.array([0.0, 1.0, -1.0, sqrt(1.5), 2.0])
    np.testing.assert_allclose(quartic_curve(x), [1.0, 3.0, 3.0, 3.25, -3.0], atol=1e-12)
    data = draw_quartic(np.random.default_rng(6), 5000, DATA_INTERVALS)
    left = (data.x >= -1.5) & (data.x <= -0.6)
    assert np.all(left | ((data.x >= 0.2) & (data.x <= 1.5)))
    assert left.mean() == pytest.approx(0.9 / 2.2, abs=4 * sqrt(0.25 / 5000))
    noise = data.y - data.truth(data.x)
    assert noise.std() == pytest.approx(DATA_NOISE_SCALE, abs=4 * DATA_NOISE_SCALE / sqrt(2 * 5000))


@pytest.mark.parametrize("seeds", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_vi_covers_new_data_where_data_were_and_a_point_does_so_less(seeds, monkeypatch):
    monkeypatch.setattr(wu_quartic, "N_MEMBERS", 1)
    monkeypatch.setattr(wu_quartic, "N_FRESH_ROWS", 2000 if seeds > 1 else 500)
    runs = [run(seed, replace(SHORT, epochs=600))[2] for seed in range(seeds)]
    found = {name: average([r[name]["data"] for r in runs])["coverage"].mean for name in METHODS}
    points = found["MLE"], found["MAP"]
    assert found["VI"] > max(points)
    assert seeds == 1 or abs(found["VI"] - 0.95) < 0.5 * min(abs(point - 0.95) for point in points)

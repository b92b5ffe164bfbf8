"""Krasser's system: its data, the prior as the post programs it, and what the post claims."""

from math import sqrt

import numpy as np
import pytest

from bbb_numpy import MLP, GaussianPrior, MeanField, Model, Reparameterised, check
from bbb_numpy.evaluation.predictive import Predictive, sample_functions
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_studies import krasser as models
from bbb_studies.data.toys import one_period, ten_sine
from bbb_studies.krasser import RawMixturePrior, domains, run


def test_the_data_are_one_period_at_32_even_places_with_unit_noise():
    data = one_period(np.random.default_rng(0))
    assert data.x.shape == data.y.shape == (32, 1)
    assert (data.x[0, 0], data.x[-1, 0]) == (-0.5, 0.5)
    assert np.allclose(np.diff(data.x[:, 0]), 1 / 31, rtol=1e-12)
    assert np.allclose(ten_sine(np.array([0.0, 0.25, -0.25, 1 / 12])), [0, 10, -10, 5])
    many = one_period(np.random.default_rng(1), rows=40_000)
    residual = many.y - many.truth(many.x)
    assert abs(residual.mean()) < 4 / sqrt(40_000)
    assert abs(residual.var() - 1.0) < 4 * sqrt(2 / 40_000)
    silent = one_period(np.random.default_rng(1), noise=0.0)
    assert np.array_equal(silent.y, ten_sine(silent.x))


def raw_value_and_grad(w):
    """log P(w) and its gradient for (pi, sigma1, sigma2), by the raw prior's own methods."""

    def value_and_grad(raw):
        params = {"prior_raw": raw}
        grad = {"prior_raw": np.zeros_like(raw)}
        value, saved = RawMixturePrior().log_density(params, w[None], Buffers())
        d_w = np.zeros_like(w[None], raw.dtype)
        RawMixturePrior().add_vjp(saved, np.ones(1), d_w, grad)
        return value[0], grad["prior_raw"]

    return value_and_grad


@pytest.mark.equation("R4", "R5", "R6", "R7")
def test_where_the_printed_prior_is_finite_it_is_the_mixture_and_has_its_gradient():
    """So what fails below fails for want of a domain, not for a wrong formula."""
    w = np.array([-2.0, -0.3, 0.05, 0.27, 1.5])
    raw = np.array([0.3, 1.2, 0.2])
    values, slopes = [], np.zeros((2, 1, 5))
    params = {"prior_raw": raw}
    for prior, slope in zip((RawMixturePrior(), ScaleMixturePrior(*raw)), slopes, strict=True):
        value, saved = prior.log_density(params, w[None], Buffers())
        prior.add_vjp(saved, np.ones(1), slope, {"prior_raw": np.zeros(3)})
        values.append(value)
    assert values[0] == pytest.approx(values[1], rel=1e-13)
    assert np.allclose(slopes[0], slopes[1], rtol=1e-12)
    assert check(raw_value_and_grad(w), raw).error < 1e-12
    far = np.array([[40.0]])  # standard deviations: there the printed density is lost
    start = {"prior_raw": np.array([0.2, 1.0, 0.1])}
    assert RawMixturePrior().log_density(start, far, Buffers())[0][0] == -np.inf
    assert np.isfinite(ScaleMixturePrior().log_density({}, far, Buffers())[0][0])


@pytest.mark.equation("R8")
def test_at_a_raised_rate_the_raw_numbers_leave_their_domain_and_the_mapped_ones_cannot():
    found = domains(seed=7, seeds=2, epochs=70)
    raw, safe = found["as the post trains it"], found["through a sigmoid (R8)"]
    assert raw.left == 2
    assert max(trace.prior[:, 0].max() for trace in raw.traces) > 1
    assert raw.finite.count(False) <= raw.left
    assert (safe.left, safe.finite) == (0, [True, True])
    assert all((trace.prior[:, 2] < trace.prior[:, 1]).all() for trace in safe.traces)
    assert 0.5 < max(trace.prior[:, 0].max() for trace in safe.traces) < 1


def test_an_interrupted_training_gives_no_numbers(monkeypatch, interrupted):
    monkeypatch.setattr(models, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("post", epochs=5)


@pytest.mark.equation("R10")
def test_the_total_band_holds_95_percent_only_with_the_noise_in_it():
    """Of N(0, 1) around the mean: +- 1.96 deviations of 1 hold 95 %, of 0.5 only 67 %."""
    assert models._coverage(np.zeros(1), np.ones(1)) == pytest.approx(0.95, abs=1e-4)
    assert models._coverage(np.zeros(1), np.full(1, 0.5)) == pytest.approx(0.6729, abs=1e-3)
    for error in (-1.96, 1.96):  # a mean that is 1.96 off loses half of the mass
        assert models._coverage(np.array([error]), np.ones(1)) == pytest.approx(0.5, abs=1e-3)


def of_random_weights(sizes, start):
    """Gap of E f(w) and f(E w) at 60 places; `start` sets the means, all deviations are 0.7."""
    model = Model(MLP(sizes), GaussianPrior(1.0), GaussianLikelihood(1.0))
    estimator = Reparameterised(model, MeanField(0.5, float(np.log(np.expm1(0.7))), 0.0))
    theta = estimator.init(np.random.default_rng(0))
    mu = estimator.layout.views(theta)["mu"]
    start(model.layout.views(mu))
    x = np.linspace(-1, 1, 60)[:, None]
    count = models.N_FUNCTIONS
    f = sample_functions(estimator, theta, x, rng=np.random.default_rng(1), samples=count)
    p = Predictive(f.mean(axis=0), f.std(axis=0, ddof=1), np.ones((60, 1)))
    return x, models._gap(p, model.predict(mu[None], x)[0])


@pytest.mark.equation("R9")
def test_the_mean_of_outputs_is_the_output_of_the_mean_without_a_hidden_layer_only():
    """With one, of 20 units max(0, u), u ~ N(0, s^2 (1 + x^2)): f(E w) = 0, E f(w) is not.

    E f(w) = 20 E[v] E[max(0, u)], the last the deviation of u over sqrt(2 pi).
    """
    _, straight = of_random_weights((1, 1), lambda mu: None)
    assert straight["gap_seen"] == 0
    assert straight["gap"] < 4 * straight["gap_error"]

    def even_in_the_hidden_layer(mu):
        mu["W0"][...] = mu["b0"][...] = mu["b1"][...] = 0.0
        mu["W1"][...] = 0.5

    x, bent = of_random_weights((1, 20, 1), even_in_the_hidden_layer)
    exact = 20 * 0.5 * 0.7 * np.sqrt((1 + x**2) / (2 * np.pi))
    assert bent["gap_seen"] == 1
    assert abs(bent["gap"] - np.sqrt(np.mean(exact**2))) < 4 * bent["gap_error"]


@pytest.mark.parametrize("epochs", [150, pytest.param(800, marks=pytest.mark.slow)])
def test_the_learned_prior_widens_its_narrow_half_and_at_last_the_band_outside(epochs, monkeypatch):
    if epochs < 800:
        monkeypatch.setattr(models, "N_FUNCTIONS", 50)
    post, fixed = (run(name, epochs=epochs).numbers for name in ("post", "fixed"))
    assert post.sigma1 > post.sigma2 > 3 * 0.1
    assert post.free_energy < fixed.free_energy - 50
    if epochs < 800:
        return
    # on the same data; over other data 1.7 times, with a deviation of 0.13, and 2.3, of 0.32
    assert post.ratio > 1.2 * fixed.ratio
    assert post.epistemic_outside > 1.1 * fixed.epistemic_outside
    # both have learned the curve: a constant has 7.1; over other data at most 2.3, of 0.4
    assert max(post.rmse, fixed.rmse) < 0.6 * 10 / sqrt(2)

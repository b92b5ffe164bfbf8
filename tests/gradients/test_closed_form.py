"""closed_form: KL divergences without Monte Carlo error, and weights of its own for every row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import seeds

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.network import forward

POSTERIORS = [MeanField(0.5, -0.5, 0.5), FullRank(0.5, -0.5, 0.5)]


def model_of(sizes=(2, 3, 1), activation="tanh", learn=True):
    return Model(MLP(sizes, activation), GaussianPrior(0.7, learn), GaussianLikelihood(0.6, learn))


def theta_of(built, seed):
    rng = np.random.default_rng(seed)
    theta = built.init(rng)
    if "lower" in built.layout.slices:
        lower = built.layout.views(theta)["lower"]
        lower[...] = 0.2 * rng.standard_normal(lower.shape)
    return theta, rng


@pytest.mark.equation("D18", "D19", "R1")
@pytest.mark.parametrize("posterior", POSTERIORS, ids=str)
def test_the_sampled_kl_has_that_mean(posterior):
    built = ClosedFormKL(model_of(), posterior)
    theta, rng = theta_of(built, 1)
    none = np.zeros((0, 2)), np.zeros((0, 1))
    exact = built.value_and_grad(theta, built.draw(rng, 1), *none).value
    sampled = Reparameterised(built.model, posterior)
    terms = sampled.value_and_grad(theta, sampled.draw(rng, 20_000), *none).terms
    kl = terms.posterior - terms.prior
    assert abs(kl.mean() - exact) < 4 * kl.std() / np.sqrt(len(kl))


def noise_parts(built, rows, samples, seed):
    rng = np.random.default_rng(seed)
    return built.draw(rng, samples, rows), rng.standard_normal((rows, 2)), rng


@pytest.mark.equation("D21")
def test_the_outputs_of_a_layer_have_the_mean_and_variance_that_random_weights_give_them():
    # a hidden layer too: its inputs differ from sample to sample, so compare what its z is made of
    model = model_of((2, 3), learn=False)
    built = LocalReparameterisation(model, POSTERIORS[0])
    theta, _ = theta_of(built, 2)
    noise, x, _ = noise_parts(built, 2, 60_000, 3)
    x[1] = 0.5 * x[0]  # rows that share their weights' errors, whatever these are
    blocks = built.layout.views(theta)
    sigma = np.log1p(np.exp(blocks["rho"]))
    z, _ = built._forward(built.make_batch(theta, noise, x, x, 1.0, None, None), sigma)
    w = blocks["mu"] + sigma * np.random.default_rng(4).standard_normal((60_000, len(sigma)))
    f, _ = forward(model.network, w, x, Buffers())
    for moment in (lambda a: a, lambda a: (a - f.mean(axis=0)) ** 2):
        ours, theirs = moment(z), moment(f)
        error = np.hypot(ours.std(axis=0), theirs.std(axis=0)) / np.sqrt(60_000)
        # the worst of a dozen: once in 1e4
        assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4.5 * error)
    # rows that weights would tie together are independent here, and so are outputs
    assert abs(np.corrcoef(z[:, 0, 0], z[:, 1, 0])[0, 1]) < 4 / np.sqrt(60_000)
    # covariance sum(sigma^2 x^2) / 2 + sigma_b^2: the correlation is at least sqrt(8 / 9)
    assert np.corrcoef(f[:, 0, 0], f[:, 1, 0])[0, 1] > 0.9


@pytest.mark.equation("D22")
@given(seed=seeds, rows=st.integers(0, 4), samples=st.integers(1, 3))
def test_flipout_is_the_network_with_the_explicit_weights_of_every_row(seed, rows, samples):
    model = model_of((2, 3, 2, 1), learn=False)
    built = Flipout(model, POSTERIORS[0])
    theta, _ = theta_of(built, seed)
    noise, x, _ = noise_parts(built, rows, samples, seed)
    size, blocks = model.layout.size, built.layout.views(theta)
    sigma = np.log1p(np.exp(blocks["rho"]))
    z, _ = built._forward(built.make_batch(theta, noise, x, x, 1.0, None, None), sigma)
    perturbations = built._flips(noise, rows)
    for s in range(samples):
        for b in range(rows):
            flips = [
                part.ravel()
                for sign in perturbations
                for part in (np.outer(sign.inputs[s, b], sign.outputs[s, b]), sign.bias[s, b])
            ]
            w = blocks["mu"] + np.concatenate(flips) * sigma * noise[s, :size]
            f, _ = forward(model.network, w[None], x[b : b + 1], Buffers())
            assert np.allclose(z[s, b], f[0, 0], rtol=1e-12, atol=1e-13)


@pytest.mark.equation("D22")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_flipouts_noise_is_normal_numbers_then_fair_signs(dtype):
    built = Flipout(model_of((3, 8, 1)))
    size, rows = built.model.layout.size, 50
    noise = built.draw(np.random.default_rng(0), 20, rows, dtype)
    assert noise.dtype == dtype
    assert noise.shape == (20, size + rows * (3 + 2 * 8 + 8 + 2 * 1))
    eps, signs = noise[:, :size].astype(float), noise[:, size:].astype(float)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 4 / np.sqrt(signs.size)
    assert abs(np.corrcoef(signs[:, :-1].ravel(), signs[:, 1:].ravel())[0, 1]) < 4 / np.sqrt(
        signs.size
    )
    assert abs(eps.mean()) < 4 / np.sqrt(eps.size)
    assert abs(eps.var() - 1) < 4 * np.sqrt(2 / eps.size)
    assert len(np.unique(eps)) == eps.size
    assert built.draw(np.random.default_rng(0), 2, 0, dtype).shape == (2, size)


@pytest.mark.equation("D18", "D21")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rho", [9.9, 10.1, 100.0, 800.0])
def test_deviations_however_wide_have_the_kl_term_and_the_gradient_of_the_other_estimators(
    rho, dtype
):
    local, closed = LocalReparameterisation(model_of()), ClosedFormKL(model_of())
    theta = local.init(np.random.default_rng(0), dtype)
    local.layout.views(theta)["rho"][::2] = rho
    none = np.zeros((0, 2), dtype), np.zeros((0, 1), dtype)
    actual, expected = (
        built.value_and_grad(theta, built.draw(np.random.default_rng(1), 1, 0, dtype), *none)
        for built in (local, closed)
    )
    digits = 10 * float(np.finfo(dtype).eps)
    assert actual.value == pytest.approx(expected.value, rel=digits)
    assert actual.grad == pytest.approx(expected.grad, rel=digits)


@pytest.mark.equation("D21")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rho", [-20.0, -60.0, -400.0, -800.0])
def test_deviations_that_vanish_leave_the_network_at_its_means(rho, dtype):
    model = model_of(learn=False)
    local = LocalReparameterisation(model)
    theta = local.init(np.random.default_rng(0), dtype)
    size = model.layout.size
    theta[size:] = rho
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((4, 2)).astype(dtype), rng.standard_normal((4, 1)).astype(dtype)
    x[0] = 0.0
    noise = local.draw(rng, 2, 4, dtype)
    value, grad, terms = local.value_and_grad(theta, noise, x, y)
    f, _ = forward(model.network, theta[None, :size], x, Buffers())
    rowwise, _ = model.likelihood.log_density({}, f, y)
    digits = 1e3 * float(np.finfo(dtype).eps) + 1e-6 * (rho == -20.0)
    assert terms.likelihood == pytest.approx(np.repeat(rowwise.sum(), 2), rel=digits)
    assert np.isfinite(value)
    assert np.isfinite(grad).all()

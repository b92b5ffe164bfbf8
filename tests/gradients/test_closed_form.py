"""closed_form: KL divergences without Monte Carlo error, and weights of its own for every row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples, linear_case, seeds

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.gradients import local_reparameterisation
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.matrix import Combination, check_case, estimator, problem
from bbb_numpy.model.objectives import FreeEnergy
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import softplus_parts
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.network import forward
from tests.gradients.test_reparameterised import check_gradient_of, distance, gradients_of

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
@given(seed=seeds, beta=st.sampled_from([1.0, 0.2]))
def test_without_rows_the_value_is_the_textbook_kl_of_two_gaussians(posterior, seed, beta):
    built = ClosedFormKL(model_of(), posterior, FreeEnergy(beta))
    theta, rng = theta_of(built, seed)
    blocks, size = built.layout.views(theta), built.model.layout.size
    scale = np.exp(blocks["prior_log_scale"][0])
    factor = np.diag(np.log1p(np.exp(blocks["rho"])))
    if "lower" in blocks:
        factor[np.tri(size, k=-1, dtype=bool)] = blocks["lower"]
    covariance = factor @ factor.T
    kl = 0.5 * (
        np.trace(covariance) / scale**2
        + blocks["mu"] @ blocks["mu"] / scale**2
        - size
        + 2 * size * np.log(scale)
        - np.linalg.slogdet(covariance)[1]
    )
    noise = built.draw(rng, 1)
    none = np.zeros((0, 2)), np.zeros((0, 1))
    value, _, terms = built.value_and_grad(theta, noise, *none, 0.3)
    assert value == pytest.approx(0.3 * beta * kl, rel=1e-11)
    assert (terms.posterior - terms.prior)[0] == pytest.approx(kl, rel=1e-11)
    if isinstance(posterior, MeanField):
        for make in (LocalReparameterisation, Flipout):
            rowwise = make(built.model, posterior, FreeEnergy(beta))
            noise = rowwise.draw(rng, 1)
            again = rowwise.value_and_grad(theta, noise, *none, 0.3).value
            assert again == pytest.approx(value, rel=1e-12)


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


@given(seed=seeds, beta=st.sampled_from([1.0, 0.2]), weight=st.sampled_from([1.0, 0.3]))
def test_with_the_same_noise_the_likelihood_part_is_that_of_the_reports_estimator(
    seed, beta, weight
):
    built = ClosedFormKL(model_of(), POSTERIORS[0], FreeEnergy(beta))
    theta, rng = theta_of(built, seed)
    x, y, noise = rng.standard_normal((4, 2)), rng.standard_normal((4, 1)), built.draw(rng, 3)
    plain = Reparameterised(built.model, POSTERIORS[0], FreeEnergy(beta))
    ours, theirs = (
        one.value_and_grad(theta, noise, x, y, weight).terms.likelihood for one in (built, plain)
    )
    assert np.allclose(ours, theirs, rtol=1e-12)


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
    z, _ = built._forward(blocks["mu"], sigma**2, noise, x, Buffers())
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
    z, _ = built._forward(blocks["mu"], noise[:, :size] * sigma, noise, x, Buffers())
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


def test_local_noise_is_one_normal_number_for_each_row_and_output_of_each_layer():
    built = LocalReparameterisation(model_of((3, 8, 2)))
    noise = built.draw(np.random.default_rng(0), 40, 50)
    assert noise.shape == (40, 50 * 10)
    cut = built._zetas(noise, 50)
    assert [part.shape for part in cut] == [(40, 50, 8), (40, 50, 2)]
    assert np.array_equal(np.sort(np.concatenate([p.ravel() for p in cut])), np.sort(noise.ravel()))
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)


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
    found, expected = (
        built.value_and_grad(theta, built.draw(np.random.default_rng(1), 1, 0, dtype), *none)
        for built in (local, closed)
    )
    digits = 10 * float(np.finfo(dtype).eps)
    assert found.value == pytest.approx(expected.value, rel=digits)
    assert found.grad == pytest.approx(expected.grad, rel=digits)


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


@pytest.mark.parametrize("make", [LocalReparameterisation, Flipout])
def test_rows_of_their_own_have_a_smaller_variance_on_many_rows(make):
    # one weight sample is shared by all rows of the plain estimator: their errors add up
    case = linear_case(rows=200)
    ours, plain = (
        gradients_of(built(case.model, case.posterior), case.theta, case.x, case.y, 300, 1)
        for built in (make, ClosedFormKL)
    )
    # for mu, whose gradient is linear in the weights
    assert np.all(ours[:, :3].var(axis=0) < 0.5 * plain[:, :3].var(axis=0))


# --- planted errors: both gradients written out once more, with switches for wrong formulas, and
# refused by the check that the right ones pass


def backward(self, theta, x, y, forward_layer, backward_layer):
    """A network of layers that bring their own noise: gradient for mu and sigma^2 or sigma."""
    net, grad = self.model.network, np.zeros_like(theta)
    blocks, d_blocks = self.layout.views(theta), self.layout.views(grad)
    means, d_means = (net.layout.views(b["mu"]) for b in (blocks, d_blocks))
    sigmas = net.layout.views(np.log1p(np.exp(blocks["rho"])))
    d_sigmas = net.layout.views(d_blocks["rho"])
    a, inputs, slopes, last = x[None], [], [], len(net.sizes) - 2
    for layer in range(last + 1):
        inputs.append(a)
        names = f"W{layer}", f"b{layer}"
        a = forward_layer(layer, a, [means[n] for n in names], [sigmas[n] for n in names])
        if layer < last:
            slopes.append(1 - np.tanh(a) ** 2)
            a = np.tanh(a)
    _, saved = self.model.likelihood.log_density(blocks, a, y)
    g = self.model.likelihood.vjp(saved, np.full(len(a), -1 / len(a)), d_blocks)
    for layer in range(last, -1, -1):
        names = f"W{layer}", f"b{layer}"
        d_mean, d_sigma, d_a = backward_layer(
            layer, inputs[layer], g, [means[n] for n in names], [sigmas[n] for n in names]
        )
        for name, slope, slope_sigma in zip(names, d_mean, d_sigma, strict=True):
            d_means[name][...], d_sigmas[name][...] = slope, slope_sigma
        if layer:
            g = d_a * slopes[layer - 1]
    rho = blocks["rho"]
    d_blocks["rho"] /= 1 + np.exp(-rho)
    return grad, blocks, d_blocks


def add_kl(self, grad, blocks, d_blocks, kl_weight):
    sigma, scale = np.log1p(np.exp(blocks["rho"])), self.model.prior.scale
    d_blocks["mu"] += kl_weight * blocks["mu"] / scale**2
    slope = 1 / (1 + np.exp(-blocks["rho"]))
    d_blocks["rho"] += kl_weight * (sigma / scale**2 - 1 / sigma) * slope
    return grad


def local_gradient(half=0.5, power=2, two=2.0, factor_a=True, of_sigma=2.0, root=0.5):
    """D21 as ERRATA and Kingma et al. have it; every argument is one way to get it wrong."""

    def gradient(self, theta, noise, x, y, kl_weight):
        rows, cut = len(x), []
        for width in self.model.network.sizes[1:]:
            start = sum(part.shape[1] * part.shape[2] for part in cut)
            part = noise[:, start : start + rows * width]
            cut.append(part.reshape(len(noise), rows, width))
        variances = {}

        def forward_layer(layer, a, mean, sigma):
            variances[layer] = a**2 @ sigma[0] ** 2 + sigma[1] ** 2
            return a @ mean[0] + mean[1] + np.sqrt(variances[layer]) * cut[layer]

        def backward_layer(layer, a, g, mean, sigma):
            h = half * g * cut[layer] / variances[layer] ** root
            a = np.broadcast_to(a, (len(g), *a.shape[1:]))
            d_mean = np.einsum("sbi,sbo->io", a, g), g.sum(axis=(0, 1))
            d_variance = np.einsum("sbi,sbo->io", np.abs(a) ** power, h), h.sum(axis=(0, 1))
            d_a = g @ mean[0].T + two * (a if factor_a else 1.0) * (h @ (sigma[0] ** 2).T)
            d_sigma = [of_sigma * s * d for s, d in zip(sigma, d_variance, strict=True)]
            return d_mean, d_sigma, d_a

        found = backward(self, theta, x, y, forward_layer, backward_layer)
        return add_kl(self, *found, kl_weight)

    return gradient


def flipout_gradient(r_back=True, s_back=True, t_back=True, mean_back=True, eps_back=True):
    """D22; every argument leaves one factor out of the backward pass."""

    def gradient(self, theta, noise, x, y, kl_weight):
        rows, net = len(x), self.model.network
        eps, at, signs = net.layers(noise[:, : net.layout.size]), net.layout.size, []
        for d_in, d_out in zip(net.sizes[:-1], net.sizes[1:], strict=True):
            three = []
            for width in (d_in, d_out, d_out):
                three.append(noise[:, at : at + rows * width].reshape(len(noise), rows, width))
                at += rows * width
            signs.append(three)

        def forward_layer(layer, a, mean, sigma):
            r, s, t = signs[layer]
            push = sigma[0] * eps[layer].weight
            return a @ mean[0] + ((a * r) @ push) * s + mean[1] + t * sigma[1] * eps[layer].bias

        def backward_layer(layer, a, g, mean, sigma):
            r, s, t = signs[layer]
            a = np.broadcast_to(a, (len(g), *a.shape[1:]))
            flipped, inside = g * (s if s_back else 1.0), a * (r if r_back else 1.0)
            d_push = np.einsum("sbi,sbo->sio", inside, flipped)
            d_bias = (g * (t if t_back else 1.0)).sum(axis=1, keepdims=True)
            e, e_b = eps[layer][:2] if eps_back else (1.0, 1.0)
            d_sigma = (d_push * e).sum(axis=0), (d_bias * e_b).sum(axis=(0, 1))
            d_a = (flipped @ np.swapaxes(sigma[0] * eps[layer].weight, 1, 2)) * (
                r if r_back else 1.0
            )
            if mean_back:
                d_a = d_a + g @ mean[0].T
            return (np.einsum("sbi,sbo->io", a, g), g.sum(axis=(0, 1))), d_sigma, d_a

        found = backward(self, theta, x, y, forward_layer, backward_layer)
        return add_kl(self, *found, kl_weight)

    return gradient


LOCAL = Combination("mean-field", "gaussian", "bernoulli", "local-reparameterisation", "elbo")
FLIP = LOCAL._replace(estimator="flipout")
WRONG_GRADIENTS = {
    "D21 H without its 1/2": (LOCAL, local_gradient(half=1.0)),
    "D21 H over D, not its root": (LOCAL, local_gradient(root=1.0)),
    "D21 a in place of a^2": (LOCAL, local_gradient(power=1)),
    "D21 da without its 2": (LOCAL, local_gradient(two=1.0)),
    "D21 da without its a": (LOCAL, local_gradient(factor_a=False)),
    "D21 d sigma without its 2": (LOCAL, local_gradient(of_sigma=1.0)),
    "D22 without signs in dX": (FLIP, flipout_gradient(r_back=False)),
    "D22 without the signs of the outputs": (FLIP, flipout_gradient(s_back=False)),
    "D22 without the signs of the bias": (FLIP, flipout_gradient(t_back=False)),
    "D22 without eps": (FLIP, flipout_gradient(eps_back=False)),
    "D22 without the path through the means": (FLIP, flipout_gradient(mean_back=False)),
}


def small_case(which):
    built = estimator(which, 2, (3,), 1, "tanh")
    return problem(built, np.random.default_rng(7), samples=2, rows=3)


@pytest.mark.equation("D21", "D22")
@pytest.mark.parametrize("which", [LOCAL, FLIP], ids=["local", "Flipout"])
def test_the_gradients_written_out_once_more_pass_the_check(which, monkeypatch):
    right = local_gradient() if which is LOCAL else flipout_gradient()
    found = check_gradient_of(small_case(which), right, monkeypatch)
    assert found.passed, str(found)


@pytest.mark.equation("D21", "D22")
@pytest.mark.parametrize("name", WRONG_GRADIENTS)
def test_a_planted_wrong_gradient_is_caught(name, monkeypatch):
    which, wrong = WRONG_GRADIENTS[name]
    case = small_case(which)
    assert check_case(case).passed
    found = check_gradient_of(case, wrong, monkeypatch)
    assert not found.passed
    assert found.error > 1e-3, str(found)


def edited(kind, method, before=None, after=None):
    """A method that runs the true one between two edits."""
    true = getattr(kind, method)

    def run(self, *arguments):
        found = true(self, *(arguments if before is None else before(*arguments)))
        return found if after is None else after(found)

    return run


def scaled_parts(of_entropy, of_variance):
    return lambda parts, d_entropy, d_variance, d_theta: (
        parts, of_entropy * d_entropy, of_variance * d_variance, d_theta,
    )  # fmt: skip


CLOSED = LOCAL._replace(estimator="closed-form-kl", prior="gaussian-learned")
FULL = CLOSED._replace(posterior="full-rank")
WRONG_KL = {
    "D18 mean without 1 / S^2": (
        CLOSED, GaussianPrior, "expected_log_density",
        {"after": lambda found: found._replace(d_mean=0.64 * found.d_mean)},
    ),
    "D18 value without the variances": (
        CLOSED, GaussianPrior, "expected_log_density",
        {"before": lambda params, mean, total, d: (params, mean, 0.0 * total, d)},
    ),
    "D18 sigma / S^2 halved": (
        CLOSED, MeanField, "add_entropy_vjp", {"before": scaled_parts(1.0, 0.5)},
    ),
    "D18 without the entropy": (
        CLOSED, MeanField, "add_entropy_vjp", {"before": scaled_parts(0.0, 1.0)},
    ),
    "D19 without the entropy": (
        FULL, FullRank, "add_entropy_vjp", {"before": scaled_parts(0.0, 1.0)},
    ),
    "D19 L / S^2 doubled": (
        FULL, FullRank, "add_entropy_vjp", {"before": scaled_parts(1.0, 2.0)},
    ),
}  # fmt: skip


@pytest.mark.equation("D17", "D18", "D19")
@pytest.mark.parametrize("name", WRONG_KL)
def test_a_planted_wrong_divergence_is_caught(name, monkeypatch):
    which, kind, method, edits = WRONG_KL[name]
    case = small_case(which)
    assert check_case(case).passed
    monkeypatch.setattr(kind, method, edited(kind, method, **edits))
    found = check_case(case)
    assert not found.passed
    assert found.error > 1e-3, str(found)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (LocalReparameterisation, local_gradient(), local_gradient(half=1.0)),
        (LocalReparameterisation, local_gradient(), local_gradient(of_sigma=1.0)),
        (Flipout, flipout_gradient(), flipout_gradient(s_back=False)),
        (Flipout, flipout_gradient(), flipout_gradient(t_back=False)),
    ],
)
def test_such_an_error_biases_the_gradient_as_the_closed_form_shows(
    kind, right, wrong, monkeypatch
):
    case = linear_case()
    for gradient, biased in ((right, False), (wrong, True)):

        def value_and_grad(
            self, theta, noise, x, y, kl_weight=1.0, buffers=None, gradient=gradient
        ):
            return None, gradient(self, theta, noise, x, y, kl_weight), None

        monkeypatch.setattr(kind, "value_and_grad", value_and_grad)
        built = kind(case.model, case.posterior)
        far = distance(gradients_of(built, case.theta, case.x, case.y, 100, 40), case.grad)
        assert far > 6 if biased else far < 4


@examples(20)
@given(seed=seeds)
def test_every_row_counts_once_however_the_rows_are_ordered(seed):
    built = LocalReparameterisation(model_of())
    theta, rng = theta_of(built, seed)
    x, y = rng.standard_normal((5, 2)), rng.standard_normal((5, 1))
    noise, order = built.draw(rng, 2, 5), rng.permutation(5)
    cut = [part[:, order].reshape(2, -1) for part in built._zetas(noise, 5)]
    value, grad, _ = built.value_and_grad(theta, noise, x, y)
    moved = np.concatenate(cut, axis=1)
    again, grad_again, _ = built.value_and_grad(theta, moved, x[order], y[order])
    assert again == pytest.approx(value, rel=1e-12)
    assert np.allclose(grad_again, grad, rtol=1e-9, atol=1e-10)


@pytest.mark.equation("D18")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("centre", [-5.0, 0.0, -30.0, 9.5])
@given(size=st.integers(1, 40), seed=seeds)
def test_the_passes_in_the_cache_give_what_the_readable_form_gives(dtype, centre, size, seed):
    rho = (centre + np.random.default_rng(seed).uniform(-1, 1, size)).astype(dtype)
    found = local_reparameterisation._variance_parts(rho, None, Buffers())
    parts = softplus_parts(rho.astype(float))
    entropy = MeanField().entropy(parts)
    digits = 20 * float(np.finfo(dtype).eps)
    assert found.entropy.value == pytest.approx(entropy.value, rel=digits, abs=size * digits)
    assert found.entropy.total_variance == pytest.approx(entropy.total_variance, rel=digits)
    assert np.allclose(found.variance, parts.softplus**2, rtol=digits, atol=0)
    assert np.allclose(found.half_slope, parts.softplus * parts.sigmoid, rtol=digits, atol=0)
    assert np.allclose(found.ratio, parts.ratio, rtol=digits)
    assert found.ratio.dtype == found.half_slope.dtype == found.variance.dtype == dtype


@pytest.mark.parametrize("block", [1, 5, 8, 9, 64])
def test_the_size_of_the_blocks_changes_nothing(block, monkeypatch):
    built = LocalReparameterisation(model_of((2, 5, 1)))
    theta, rng = theta_of(built, 0)
    theta[built.layout.slices["rho"]][::3] = -40.0  # beside moderate ones
    x, y = rng.standard_normal((4, 2)), rng.standard_normal((4, 1))
    noise = built.draw(rng, 2, 4)
    value, grad, _ = built.value_and_grad(theta, noise, x, y, 0.3)
    monkeypatch.setattr(local_reparameterisation, "BLOCK", block)
    again, grad_again, _ = built.value_and_grad(theta, noise, x, y, 0.3)
    assert again == pytest.approx(value, rel=1e-13)
    assert np.allclose(grad_again, grad, rtol=1e-12, atol=1e-13)

"""laplace: curvature, posterior and evidence are those of dense formulas, exact where linear."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bbb_numpy import (
    MLP,
    Adam,
    BernoulliLikelihood,
    CategoricalLikelihood,
    Cosine,
    GaussianLikelihood,
    GaussianPrior,
    HeteroscedasticLikelihood,
    LaplacePrior,
    LayerwiseGaussianPrior,
    Model,
    PoissonLikelihood,
    Recipe,
    Reparameterised,
    StudentTLikelihood,
)
from bbb_numpy.evaluation import predictive, quantiles
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.network import forward, jvp
from bbb_numpy.training import laplace
from bbb_numpy.training.laplace import (
    COVARIANCES,
    Laplace,
    Linearised,
    Spectrum,
    best_scales,
    compute_spectrum,
    fit,
    jacobian,
    log_evidence,
)
from bbb_numpy.training.recipe import Rows
from exactgrad import prove, prove_jacobian, prove_jvp

NETS = [MLP((1, 3, 1)), MLP((2, 2, 2, 2), "tanh"), MLP((3, 2))]
LIKELIHOODS = {
    "noise of each output": GaussianLikelihood(0.5, learn=True),
    "fixed noise": GaussianLikelihood(0.5),
    "classes": CategoricalLikelihood(),
    "yes or no": BernoulliLikelihood(),
    "counts": PoissonLikelihood(),
}
LEARNED = GaussianPrior(0.5, learn=True)
PRIORS = [LEARNED, LayerwiseGaussianPrior((0.5, 2.0)), LayerwiseGaussianPrior(learn=True)]
each_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
each_covariance = pytest.mark.parametrize("covariance", COVARIANCES)


# What is proved (D54, D55)


@pytest.mark.equation("D54")
@pytest.mark.parametrize("net", NETS, ids=lambda net: str(net.sizes))
def test_tangents_go_forward_and_jacobians_are_proved(net):
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal(net.layout.size), rng.standard_normal((2, net.sizes[0]))

    def outputs(w, x):
        return forward(net, w[None], x, Buffers())[0][0]

    def along(w, d_w, x):
        _, tape = forward(net, w[None], x, Buffers())
        return jvp(net, tape, d_w[None], Buffers())[0]

    assert prove_jacobian(outputs, lambda w, x: jacobian(net, w, x)[1], w, x)
    assert prove_jvp(outputs, along, w, x)
    assert not prove_jvp(outputs, lambda w, d_w, x: along(w, 1.001 * d_w, x), w, x)


@pytest.mark.equation("D54")
@each_likelihood
def test_each_sample_and_row_has_a_curvature_of_its_own(likelihood):
    f, noise = np.random.default_rng(0).standard_normal((2, 4, 3)), {"log_noise": np.ones(3)}
    together = likelihood.curvature(noise, f)
    alone = [[likelihood.curvature(noise, row[None, None])[0, 0] for row in each] for each in f]
    np.testing.assert_allclose(together, alone, rtol=1e-13)


@pytest.mark.equation("D54")
@each_likelihood
def test_the_curvature_of_a_likelihood_is_proved_whatever_y(likelihood):
    rng = np.random.default_rng(0)
    f, noise = rng.standard_normal(3), rng.standard_normal(3)
    y = likelihood.draw(rng, {"log_noise": noise}, f[None, None])[0]

    def slope(f, y, noise):
        _, saved = likelihood.log_density({"log_noise": noise}, f[None, None], y)
        return likelihood.vjp(saved, np.ones(1), {"log_noise": np.empty(3)})[0, 0]

    def second(f, y, noise):
        return -likelihood.curvature({"log_noise": noise}, f[None, None])[0, 0]

    assert prove_jacobian(slope, second, f, y, noise)
    assert second(f, y, noise).any()
    if isinstance(likelihood, GaussianLikelihood):  # the others take a second each
        assert not prove_jacobian(slope, lambda *at: 1.001 * second(*at), f, y, noise)


def evidence(t, curvature, squares, misfit, rows):
    at = Spectrum(curvature, (), np.ones(0), squares, misfit, rows)
    value, d_alpha, d_beta = log_evidence(t[0], t[1:], at)
    return value, np.concatenate([d_alpha[None], d_beta])


@pytest.mark.equation("D55")
def test_the_slopes_of_the_log_evidence_are_proved():
    rng = np.random.default_rng(0)
    arguments = rng.uniform(0.1, 2, (2, 5)), np.array(1.7), rng.uniform(1, 2, 2), 7.0
    assert prove(evidence, rng.standard_normal(3), *arguments)

    def wrong(*at):
        value, slopes = evidence(*at)
        return value, slopes * np.array([1.0, 1.0, 1.001])

    assert prove(wrong, rng.standard_normal(3), *arguments).verdict == "refuted"


@pytest.mark.equation("D55")
@pytest.mark.parametrize(("learn", "count"), [((True, True), 2), ((True, False), 1), ((0, 1), 3)])
def test_mackays_updates_end_where_the_slopes_are_0_and_nowhere_near_is_better(learn, count):
    rng = np.random.default_rng(1)
    curvature, misfit = 10 * rng.exponential(size=(count, 6)), rng.uniform(2, 9, count)
    at = Spectrum(curvature, (), np.ones(0), 2.5, misfit, 20.0)
    log_alpha, log_beta = best_scales(at, *learn)
    value, d_alpha, d_beta = log_evidence(log_alpha, log_beta, at)
    if learn[0]:
        assert abs(d_alpha) < 1e-6
        assert all(log_evidence(log_alpha + s, log_beta, at)[0] < value for s in (-0.1, 0.1))
    else:
        assert log_alpha == 0.0
    if learn[1]:
        assert np.abs(d_beta).max() < 1e-6
        assert all(log_evidence(log_alpha, log_beta + s, at)[0] < value for s in (-0.1, 0.1))
    else:
        assert not log_beta.any()


def test_the_noise_stays_positive_where_an_approximation_counts_more_directions_than_rows():
    """MacKay's (N - gamma) / E would be negative at its start: gamma is 5.9 of 3 rows."""
    at = Spectrum(np.full((1, 6), 50.0), (), np.ones(0), 1.0, np.array([0.1]), 3.0)
    log_alpha, log_beta = best_scales(at)
    assert np.isfinite([log_alpha, *log_beta]).all()
    _, d_alpha, d_beta = log_evidence(log_alpha, log_beta, at)
    assert max(abs(d_alpha), *np.abs(d_beta)) < 1e-6  # both are learned where nothing is said


@pytest.mark.parametrize("likelihood", [CategoricalLikelihood(), BernoulliLikelihood()])
def test_a_curvature_has_the_dtype_of_the_outputs(likelihood):
    outputs = np.zeros((1, 2, 3), np.float32)
    assert likelihood.curvature({}, outputs).dtype == np.float32


# The posterior is that of dense formulas


def problem(likelihood, covariance, prior=LEARNED, sizes=(2, 3, 2), rows=7):
    """A source, weights, learned scales and rows."""
    rng = np.random.default_rng(0)
    model = Model(MLP(sizes, "tanh"), prior, likelihood)
    source, mu = Linearised(model, Laplace(covariance)), rng.standard_normal(model.layout.size)
    learned = np.concatenate([model.prior.init(float), likelihood.init(model.outputs, float)])
    learned += 0.3 * rng.standard_normal(len(learned))
    x = rng.standard_normal((rows, sizes[0]))
    theta = np.concatenate([np.zeros(source.layout.size - len(learned)), learned])
    y = likelihood.draw(rng, source.layout.views(theta), model.predict(mu[None], x))[0]
    return source, mu, learned, Rows(x, y)


def dense(source, mu, learned, rows):
    """The precision of the prior (P,), and J^T Lambda J (P, P) with slopes by complex step."""
    model, offset, params = source.model, 0, {}
    for name, (count,) in model.learned():
        params[name] = learned[offset : offset + count]
        offset += count
    curvature = model.likelihood.curvature(params, model.predict(mu[None], rows.x))[0]
    slopes = model.predict(mu + 1e-30j * np.eye(len(mu)), rows.x).imag / 1e-30  # (P, N, K)
    v = np.ones(len(rows.x)) if rows.sample_weight is None else rows.sample_weight
    data = np.einsum("pnk,nkl,qnl,n->pq", slopes, curvature, slopes, v)
    _, saved = model.prior.log_density(params, np.ones((1, len(mu))), Buffers())
    d_w = np.zeros((1, len(mu)))
    model.prior.add_vjp(
        saved, np.ones(1), d_w, {name: np.empty_like(p) for name, p in params.items()}
    )
    return -d_w[0], data


def found(source, mu, learned, rows):
    """Return the spectrum, theta, and the covariance of weights, by their map of the noise."""
    at = compute_spectrum(source, mu, learned, rows)
    theta = source.pack(mu, at, np.zeros(()), np.zeros(len(at.misfit)), learned)
    moved = source.weights(theta, np.eye(len(mu))) - mu  # row i: what eps_i does
    return at, theta, moved.T @ moved


@pytest.mark.equation("D54")
@pytest.mark.parametrize("covariance", ["full", "diagonal", "last-layer"])
@each_likelihood
@pytest.mark.parametrize("prior", PRIORS)
def test_the_covariance_is_the_inverse_of_the_dense_curvature(likelihood, covariance, prior):
    source, mu, learned, rows = problem(likelihood, covariance, prior)
    precision, data = dense(source, mu, learned, rows)
    at, _, covariance_found = found(source, mu, learned, rows)
    expected = np.zeros_like(data)
    if covariance == "diagonal":
        np.fill_diagonal(expected, 1 / (np.diag(data) + precision))
    else:
        uncertain = slice(
            0 if covariance == "full" else len(mu) - 8, None
        )  # 3 units and 1, 2 outputs
        expected[uncertain, uncertain] = np.linalg.inv(
            data[uncertain, uncertain] + np.diag(precision[uncertain])
        )
        logs = np.linalg.slogdet(
            np.diag(precision)[uncertain, uncertain] + data[uncertain, uncertain]
        )[1]
        logs -= np.log(precision[uncertain]).sum()
        np.testing.assert_allclose(np.log(at.curvature.sum(axis=0) + 1).sum(), logs, rtol=1e-9)
        np.testing.assert_allclose(
            at.squared_norm, (mu**2 * precision)[uncertain].sum(), rtol=1e-12
        )
    np.testing.assert_allclose(covariance_found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.equation("D69")
@each_likelihood
@pytest.mark.parametrize("rows", [1, 3, 6])
@pytest.mark.parametrize("covariance", ["full", "last-layer"])
def test_through_rows_and_through_weights_the_posterior_is_the_same(likelihood, covariance, rows):
    """Twice as many rows at half the weight are more than the weights, and say the same."""
    source, mu, learned, few = problem(likelihood, covariance, rows=rows)
    repeats = 12 if rows == 1 else 4
    many = few.at(np.tile(np.arange(rows), repeats))
    many = many._replace(sample_weight=np.full(rows * repeats, 1 / repeats))
    by_rows, by_weights = (found(source, mu, learned, which) for which in (few, many))
    np.testing.assert_allclose(by_rows[2], by_weights[2], rtol=1e-9, atol=1e-12)
    for at in (by_rows[0], by_weights[0]):
        assert at.curvature.shape == (len(at.misfit), len(at.basis[1]))
    scales = -0.4, np.full(len(by_rows[0].misfit), 0.7)
    values = [log_evidence(*scales, at[0])[0] for at in (by_rows, by_weights)]
    if len(by_rows[0].misfit) == 1:  # else the outputs' curvatures have no common eigenvectors
        assert values[0] == pytest.approx(values[1], rel=1e-10)
    np.testing.assert_allclose(by_rows[0].misfit, by_weights[0].misfit, rtol=1e-12)


@pytest.mark.equation("D54")
@each_likelihood
@pytest.mark.parametrize("prior", PRIORS)
def test_kronecker_is_the_product_of_the_means_over_inputs_and_the_sums_over_units(
    likelihood, prior
):
    source, mu, learned, rows = problem(likelihood, "kronecker", prior)
    precision, _ = dense(source, mu, learned, rows)
    _, _, covariance_found = found(source, mu, learned, rows)
    model, expected, begin = source.model, np.zeros((len(mu), len(mu))), 0
    f, slopes, tape = jacobian(model.network, mu, rows.x)
    theta = np.concatenate([np.zeros(source.layout.size - len(learned)), learned])
    params = source.layout.views(theta)
    curvature = model.likelihood.curvature(params, f[None])[0]
    for layer, (inputs, units) in enumerate([(2, 3), (3, 2)]):
        a = np.hstack([tape.inputs[layer][:, 0, :inputs], np.ones((7, 1))])
        end = begin + (inputs + 1) * units
        g = slopes[..., end - units : end]  # of the biases, (N, K, units)
        factors = a.T @ a / 7, np.einsum("nki,nkl,nlj->ij", g, curvature, g)
        own = slice(begin, end)
        expected[own, own] = np.linalg.inv(np.kron(*factors) + np.diag(precision[own]))
        begin = end
    np.testing.assert_allclose(covariance_found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.equation("D54")
@each_covariance
@each_likelihood
def test_a_row_of_weight_2_is_one_that_occurs_twice(likelihood, covariance):
    source, mu, learned, rows = problem(likelihood, covariance)
    twice = rows.at(np.array([0, 1, 1, 2, 3, 4, 5, 6, 6]))
    weighted = rows._replace(sample_weight=np.array([1.0, 2, 1, 1, 1, 1, 2]))
    repeated_fit, weighted_fit = (found(source, mu, learned, which) for which in (twice, weighted))
    np.testing.assert_allclose(repeated_fit[2], weighted_fit[2], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(repeated_fit[0].misfit, weighted_fit[0].misfit)
    assert repeated_fit[0].n_rows == weighted_fit[0].n_rows == 9


def test_rows_are_looked_at_in_blocks(monkeypatch):
    source, mu, learned, rows = problem(LIKELIHOODS["classes"], "full")
    in_one_block = found(source, mu, learned, rows)
    monkeypatch.setattr("bbb_numpy.training.laplace.MAX_JACOBIAN_NUMBERS", 3 * 2 * len(mu))
    np.testing.assert_allclose(
        found(source, mu, learned, rows)[2], in_one_block[2], rtol=1e-9, atol=1e-13
    )


@pytest.mark.equation("D54")
@each_covariance
def test_predictions_are_those_of_the_linear_network(covariance):
    """f is a straight line in w; mean and covariance of the outputs are f(mu) and J S J^T."""
    source, mu, learned, rows = problem(LIKELIHOODS["fixed noise"], covariance)
    _, theta, of_weights = found(source, mu, learned, rows)
    f, slopes, _ = jacobian(source.model.network, mu, rows.x)
    w = mu + 10.0 * np.eye(len(mu))
    line = f[None] + 10.0 * np.moveaxis(slopes, -1, 0)
    np.testing.assert_allclose(
        source.outputs(theta, w, rows.x, Buffers()), line, rtol=1e-9, atol=1e-9
    )
    rng = np.random.default_rng(0)
    p = predictive.predict(source, theta, rows.x, rng=rng)
    np.testing.assert_allclose(p.mean, f, rtol=1e-12)
    deviation = np.sqrt(np.einsum("nkp,pq,nkq->nk", slopes, of_weights, slopes))
    np.testing.assert_allclose(p.epistemic, deviation, rtol=1e-9)
    np.testing.assert_allclose(p.aleatoric, 0.5, rtol=1e-12)


@pytest.mark.equation("D54")
@each_covariance
def test_the_outputs_are_proved_to_be_linear_in_the_noise(covariance):
    source, mu, learned, rows = problem(
        LIKELIHOODS["noise of each output"], covariance, sizes=(1, 1, 2), rows=2
    )
    _, theta, _ = found(source, mu, learned, rows)

    def outputs(eps, theta):
        w = source.weights(theta, eps[None])
        return source.outputs(theta, w, rows.x, Buffers())[0]

    def slopes(eps, theta):
        return source.affine(theta, rows.x)[1]

    eps = np.random.default_rng(1).standard_normal(len(mu))
    assert prove_jacobian(outputs, slopes, eps, theta)
    assert not prove_jacobian(outputs, lambda *at: 1.001 * slopes(*at), eps, theta)


@pytest.mark.equation("D54", "D46")
@pytest.mark.parametrize("covariance", ["full", "last-layer"])
@pytest.mark.parametrize("noise", ["fixed noise", "noise of each output"])
def test_what_is_predicted_under_gaussian_noise_is_that_gaussian(covariance, noise):
    """Each answer is one textbook's of N(f(mu), J S J^T + noise^2), and the limit of samples'."""
    source, mu, learned, rows = problem(LIKELIHOODS[noise], covariance)
    _, theta, of_weights = found(source, mu, learned, rows)
    assert predictive.is_gaussian(source)
    f, slopes, _ = jacobian(source.model.network, mu, rows.x)
    sigma = np.exp(source.layout.views(theta)["log_noise"]) if "each" in noise else np.full(2, 0.5)
    between = np.einsum("nkp,pq,mlq->nmkl", slopes, of_weights, slopes)
    every = np.arange(7)
    joint = between[every, every] + np.diag(sigma**2)  # (N, K, K)
    ask = {"rng": np.random.default_rng(0)}
    expected = [
        stats.multivariate_normal(*at).logpdf(y) for *at, y in zip(f, joint, rows.y, strict=True)
    ]
    density = predictive.log_predictive_density(source, theta, *rows[:2], **ask)
    np.testing.assert_allclose(density, expected, rtol=1e-9)
    marginal_sd = np.sqrt(np.einsum("nkk->nk", joint))
    p = predictive.predict(source, theta, rows.x, **ask)
    np.testing.assert_allclose(p.mean, f, rtol=1e-12)
    np.testing.assert_allclose(p.total, marginal_sd, rtol=1e-9)
    levels = np.array([0.9, 0.001, 0.5])
    found_at = quantiles.quantiles(source, theta, rows.x, levels, **ask)
    np.testing.assert_allclose(
        found_at, stats.norm.ppf(levels[:, None, None], f, marginal_sd), rtol=1e-9
    )
    below = quantiles.distribution_function(source, theta, rows.x, rows.y, **ask)
    np.testing.assert_allclose(below, stats.norm.cdf(rows.y, f, marginal_sd), rtol=1e-9)
    cov = predictive.covariance(source, theta, rows.x, **ask)
    plus = np.einsum("nmkk->nmk", between) + np.eye(7)[..., None] * sigma**2
    np.testing.assert_allclose(cov, plus, rtol=1e-9, atol=1e-12)
    # What is drawn comes from the same Gaussian: z is N(0, 1) in every direction of the outputs
    y = predictive.sample_targets(source, theta, rows.x, **ask, samples=20_000)
    z = np.linalg.solve(np.linalg.cholesky(joint), (y - f)[..., None])[..., 0]
    second = np.einsum("snk,snl->nkl", z, z) / len(z)
    np.testing.assert_allclose(second, np.broadcast_to(np.eye(2), second.shape), atol=0.05)
    with pytest.raises(ValueError, match="y must have shape"):
        predictive.log_predictive_density(source, theta, rows.x, rows.y[:, :1], **ask)


@pytest.mark.equation("D54")
def test_of_certain_outputs_the_density_is_finite_however_small_the_noise():
    source, mu, learned, rows = problem(LIKELIHOODS["noise of each output"], "last-layer")
    _, theta, _ = found(source, mu, learned, rows)
    blocks = source.layout.views(theta)
    blocks["sd"][:], blocks["log_noise"][:] = 0.0, -200.0
    f = source.affine(theta, rows.x)[0]
    density = predictive.log_predictive_density(
        source, theta, rows.x, f, rng=np.random.default_rng()
    )
    np.testing.assert_allclose(density, 400.0 - np.log(2 * np.pi))


def test_classes_and_noise_that_is_not_gaussian_are_drawn():
    assert not predictive.is_gaussian(problem(LIKELIHOODS["classes"], "full")[0])
    model = problem(LIKELIHOODS["fixed noise"], "full")[0].model
    assert not predictive.is_gaussian(Reparameterised(model))


# A linear model has an exact posterior and an exact evidence


def regression(outputs, rows=30):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 3))
    noise = 0.3 * np.arange(1, outputs + 1)
    return x, x @ rng.standard_normal((3, outputs)) + noise * rng.standard_normal((rows, outputs))


def exactly(x, y, scale, noise):
    """Mean, covariance and log evidence of Bayesian linear regression, all outputs together."""
    a, outputs = np.hstack([x, np.ones((len(x), 1))]), y.shape[1]
    size = a.shape[1]
    covariances = [np.linalg.inv(a.T @ a / s**2 + np.eye(size) / scale**2) for s in noise]
    mean = np.stack(
        [c @ a.T @ y[:, k] / noise[k] ** 2 for k, c in enumerate(covariances)], 1
    ).ravel()
    covariance = np.zeros((size, outputs, size, outputs))
    for k, c in enumerate(covariances):
        covariance[:, k, :, k] = c
    log_evidence = 0.0
    for k, s in enumerate(noise):
        total = s**2 * np.eye(len(x)) + scale**2 * a @ a.T
        log_evidence -= 0.5 * (
            y[:, k] @ np.linalg.solve(total, y[:, k]) + np.linalg.slogdet(2 * np.pi * total)[1]
        )
    return mean, covariance.reshape(size * outputs, -1), log_evidence


SLOWLY = Recipe(Adam(0.05, schedule=Cosine()), epochs=600, batch_size=100)


@pytest.mark.equation("D54", "D55")
@pytest.mark.parametrize("covariance", ["full", "kronecker", "last-layer"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_for_a_linear_model_posterior_and_evidence_are_bayesian_linear_regressions(
    covariance, outputs
):
    x, y = regression(outputs)
    model = Model(MLP((3, outputs)), LEARNED, GaussianLikelihood(0.5, learn=True))
    source, rng = Linearised(model, Laplace(covariance, rounds=6)), np.random.default_rng(0)
    state, evidence = fit(source, Rows(x, y), SLOWLY, rng, progress=False)
    blocks = source.layout.views(state.theta)
    scale, noise = np.exp(blocks["prior_log_scale"][0]), np.exp(blocks["log_noise"])
    mean, expected, log_evidence = exactly(x, y, scale, noise)
    moved = source.weights(state.theta, np.eye(len(mean))) - blocks["mu"]
    np.testing.assert_allclose(blocks["mu"], mean, atol=1e-4)
    np.testing.assert_allclose(moved.T @ moved, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(evidence, log_evidence, atol=1e-3)
    for factor in (0.9, 1.1):  # no other scales have more evidence
        assert exactly(x, y, scale * factor, noise)[2] < log_evidence
        for unit in np.eye(outputs):
            assert exactly(x, y, scale, noise * factor**unit)[2] < log_evidence


@pytest.mark.equation("D56")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_last_layer_is_bayesian_linear_regression_on_the_features(dtype):
    """Of a network that is nowhere near its mode: mean, covariance, evidence and best scales."""
    x, y = regression(1)
    y, model = np.tanh(y), Model(MLP((3, 4, 1), "tanh"), LEARNED, GaussianLikelihood(0.5, True))
    source, recipe = Linearised(model, Laplace("last-layer", rounds=2)), Recipe(epochs=2)
    rows = Rows(x.astype(dtype), y.astype(dtype))
    state, evidence = fit(source, rows, recipe, np.random.default_rng(0), False)
    blocks = source.layout.views(state.theta.astype(float))
    scale, noise = np.exp(blocks["prior_log_scale"][0]), np.exp(blocks["log_noise"])
    inside = forward(model.network, blocks["mu"][None], x, Buffers())[1].inputs[-1][0]
    mean, expected, log_evidence = exactly(inside, y, scale, noise)
    loose = 1 if dtype is np.float64 else 1e4
    np.testing.assert_allclose(blocks["mu"][-5:], mean, rtol=1e-6 * loose, atol=1e-8 * loose)
    moved = (source.weights(state.theta, np.eye(21, dtype=dtype)) - blocks["mu"])[:, -5:]
    np.testing.assert_allclose(moved.T @ moved, expected, rtol=1e-5 * loose, atol=1e-7 * loose)
    np.testing.assert_allclose(evidence, log_evidence, atol=1e-7 * loose)
    for factor in (0.99, 1.01):
        assert exactly(inside, y, scale * factor, noise)[2] < log_evidence
        assert exactly(inside, y, scale, noise * factor)[2] < log_evidence


@pytest.mark.equation("D54")
def test_of_orthogonal_inputs_the_diagonal_is_exact_too():
    q = np.linalg.qr(np.column_stack([np.ones(8), np.random.default_rng(0).normal(size=(8, 3))]))[0]
    x = q[:, 1:] * 3  # columns are orthogonal to each other and to that of ones
    source, mu, learned, rows = problem(LIKELIHOODS["fixed noise"], "diagonal", sizes=(3, 1))
    _, _, covariance_found = found(source, mu, learned, Rows(x, rows.y[:1].repeat(8, 0)))
    expected = exactly(x, np.zeros((8, 1)), np.exp(learned[0]), np.array([0.5]))[1]
    np.testing.assert_allclose(covariance_found, expected, atol=1e-12)


# Fitting


@each_covariance
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_is_reproducible_in_the_dtype_of_the_rows(covariance, dtype):
    source, _, _, rows = problem(LIKELIHOODS["noise of each output"], covariance)
    rows, recipe = Rows(rows.x.astype(dtype), rows.y.astype(dtype)), Recipe(epochs=6)
    first, second = (fit(source, rows, recipe, np.random.default_rng(3), False) for _ in range(2))
    assert first[0].theta.tobytes() == second[0].theta.tobytes()
    assert first[1] == second[1]
    assert np.isfinite(first[1])
    assert first[0].theta.dtype == dtype
    assert len(first[0].history) == 6 + 7 * 3


@each_likelihood
def test_scales_that_are_not_learned_stay(likelihood):
    source, _, _, rows = problem(likelihood, "full", GaussianPrior(0.7))
    state, evidence = fit(source, rows, Recipe(epochs=4), np.random.default_rng(0), False)
    assert {name for name, _ in source.model.learned()} <= {"log_noise"}
    assert np.isfinite(evidence)
    assert np.isfinite(state.theta).all()


def test_layers_keep_the_ratio_of_their_scales():
    source, _, _, rows = problem(LIKELIHOODS["counts"], "full", LayerwiseGaussianPrior(learn=True))
    state, _ = fit(source, rows, Recipe(epochs=4), np.random.default_rng(0), False)
    scales = source.layout.views(state.theta)["prior_log_scale"]
    assert scales[0] != 0.0
    np.testing.assert_allclose(scales[0] - scales[1], 0.5 * np.log(3.0), rtol=1e-12)


def interrupted_after(calls, function):
    """Return a function that ends in Ctrl-C after so many calls."""
    calls_left = [calls]

    def interrupted(*arguments, **options):
        calls_left[0] -= 1
        if calls_left[0] < 0:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return interrupted


@each_covariance
@pytest.mark.parametrize("where", ["train", "compute_spectrum"])
def test_ctrl_c_in_the_first_round_keeps_the_mode(where, covariance, monkeypatch):
    source, _, _, rows = problem(LIKELIHOODS["noise of each output"], covariance)
    recipe, rng = Recipe(epochs=4, batch_size=len(rows.x)), np.random.default_rng(0)
    mode = laplace.Mode.value_and_grad
    with monkeypatch.context() as patch:
        if where == "compute_spectrum":
            patch.setattr(
                laplace, "compute_spectrum", interrupted_after(0, laplace.compute_spectrum)
            )
        else:  # in the fourth epoch
            patch.setattr(laplace.Mode, "value_and_grad", interrupted_after(3, mode))
        state, evidence = fit(source, rows, recipe, rng, False)
    assert state.stopped == "interrupted"
    assert np.isnan(evidence)
    assert len(state.history) == (4 if where == "compute_spectrum" else 3)
    mu = source.layout.views(state.theta)["mu"]
    weights = source.weights(state.theta, np.ones((2, len(mu))))
    np.testing.assert_array_equal(weights, [mu, mu])
    assert np.abs(mu).max() > 0.0


@pytest.mark.parametrize("where", ["train", "compute_spectrum"])
def test_ctrl_c_later_keeps_the_last_whole_round(where, monkeypatch):
    source, _, _, rows = problem(LIKELIHOODS["noise of each output"], "full")
    recipe = Recipe(epochs=4, batch_size=len(rows.x))
    one_round = replace(source, posterior=replace(source.posterior, rounds=1))
    expected, expected_evidence = fit(one_round, rows, recipe, np.random.default_rng(0), False)
    monkeypatch.setattr(laplace, where, interrupted_after(1, getattr(laplace, where)))
    state, evidence = fit(source, rows, recipe, np.random.default_rng(0), False)
    assert (state.stopped, expected.stopped, evidence) == ("interrupted", "", expected_evidence)
    np.testing.assert_array_equal(state.theta, expected.theta)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Model(MLP((2, 3, 1)), LaplacePrior()), ValueError, "needs a prior whose curvature is its"),
        (
            Model(MLP((2, 3, 1)), likelihood=StudentTLikelihood()),
            TypeError,
            "curvature of StudentTLikelihood depends on y",
        ),
        (
            Model(MLP((2, 3, 2)), likelihood=HeteroscedasticLikelihood()),
            TypeError,
            "curvature of HeteroscedasticLikelihood depends on y",
        ),
        (Model(MLP((2, 3000, 1))), ValueError, r"a matrix of 12,001 rows; accepted are 8,000 at"),
    ],
)
def test_what_has_no_such_curvature_is_refused(model, error, message):
    with pytest.raises(error, match=message):
        Linearised(model, Laplace())


@pytest.mark.parametrize("covariance", ["kronecker", "diagonal", "last-layer"])
def test_large_networks_have_a_sparse_curvature(covariance):
    assert Linearised(Model(MLP((2, 3000, 1))), Laplace(covariance)).layout.size > 24_000


@pytest.mark.parametrize(("name", "value"), [("covariance", "dense"), ("rounds", 0)])
def test_settings_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Laplace(**{name: value})

"""layerwise: a scale for each layer, its KL divergence, and what it does to functions (D39)."""

import warnings
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from problems import complex_gradient, relative_error, seeds

from bbb_numpy import (
    MLP,
    BayesianMLPRegressor,
    ClosedFormKL,
    Flipout,
    GaussianLikelihood,
    GaussianPrior,
    LayerwiseGaussianPrior,
    LocalReparameterisation,
    MeanField,
    Model,
    Sampling,
)
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.full_rank import FullRank

SIZES, SCALES = (2, 3, 1), (1.3, 0.4)
SHAPES = {(2, 3, 1): (1.3, 0.4), (3, 2): (0.6,), (1, 2, 3, 2): (0.3, 2.0, 0.9)}
LEARN = pytest.mark.parametrize("learn", [False, True])
POSTERIORS = [MeanField(0.5, -0.5, 1.0), FullRank(0.5, -0.5, 1.0)]
CLOSED = [
    (ClosedFormKL, POSTERIORS[0]),
    (ClosedFormKL, POSTERIORS[1]),
    (LocalReparameterisation, POSTERIORS[0]),
    (Flipout, POSTERIORS[0]),
]


def bound(sizes=SIZES, learn=False):
    return LayerwiseGaussianPrior(SHAPES[sizes], learn).for_network(sizes)


def scale_of_each_weight(sizes, scales):
    """The scale (P,) of every weight, from the names of the network's blocks, 'b1' or 'W1'."""
    blocks = MLP(sizes).layout.blocks
    return np.concatenate([np.full(shape, scales[int(name[1:])]).ravel() for name, shape in blocks])


def params_of(prior, chains=None):
    """The learned block, shared (L,), or one for each chain (S, L) and different in each."""
    if not prior.learn:
        return {}
    start = prior.init(np.float64)
    shift = 0.0 if chains is None else 0.1 * np.arange(chains * len(start)).reshape(chains, -1)
    return {"prior_log_scale": start + shift}


def drawn(sizes, seed=0, samples=3):
    """Weights (S, P) and a cotangent (S,)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((samples, MLP(sizes).layout.size)), rng.standard_normal(samples)


# --- the density


def value_error(prior, seed=0):
    """Largest error of log P(w), for every weight the normal density of its layer."""
    w, _ = drawn(prior.sizes, seed)
    deviations = scale_of_each_weight(prior.sizes, prior.scales)
    exact = [
        sum(np.log(NormalDist(0, d).pdf(v)) for v, d in zip(row, deviations, strict=True))
        for row in w
    ]
    return relative_error(prior.log_density(params_of(prior), w, Buffers())[0], exact)


@pytest.mark.equation("D39")
@LEARN
@pytest.mark.parametrize("sizes", SHAPES)
@given(seed=seeds)
def test_the_density_is_the_product_of_normal_densities_with_the_scale_of_their_layer(
    sizes, learn, seed
):
    assert value_error(bound(sizes, learn), seed) <= 1e-13


@pytest.mark.equation("D39", "D33")
def test_every_chain_has_scales_of_its_own():
    prior, (w, _) = bound(learn=True), drawn(SIZES)
    params = params_of(prior, 3)
    found, _ = prior.log_density(params, w, Buffers())
    for s in range(3):
        own = LayerwiseGaussianPrior(tuple(np.exp(params["prior_log_scale"][s])), sizes=SIZES)
        assert found[s] == pytest.approx(own.log_density({}, w[[s]], Buffers())[0][0], rel=1e-13)


def gradient_error(prior, chains=None, seed=0):
    """Largest error of d_w and of the scales' gradient against the complex step."""
    w, cotangent = drawn(prior.sizes, seed)
    params = params_of(prior, chains)
    _, saved = prior.log_density(params, w, Buffers())
    d_w, d_params = np.zeros_like(w), {name: np.full_like(u, np.nan) for name, u in params.items()}
    prior.add_vjp(saved, cotangent, d_w, d_params)

    def value(params, w):
        return cotangent @ prior.log_density(params, w, Buffers())[0]

    for_w = complex_gradient(lambda v: value(params, v), w)
    errors = [relative_error(d_w, for_w)]
    for name, u in params.items():
        for_u = complex_gradient(lambda v, name=name: value({name: v}, w), u)
        errors.append(relative_error(d_params[name], for_u))
    return max(errors)


@pytest.mark.equation("D39")
@pytest.mark.parametrize(("learn", "chains"), [(False, None), (True, None), (True, 3)])
@pytest.mark.parametrize("sizes", SHAPES)
@given(seed=seeds)
def test_gradients_are_the_derivatives_for_shared_scales_and_for_each_chains_own(
    sizes, learn, chains, seed
):
    assert gradient_error(bound(sizes, learn), chains, seed) <= 1e-12


@pytest.mark.equation("D39")
def test_a_learned_scale_is_at_rest_at_the_root_mean_square_of_its_layer():
    w, ones = drawn(SIZES, samples=1)[0], np.ones(1)
    layer = scale_of_each_weight(SIZES, (0, 1))
    best = tuple(np.sqrt((w[0, layer == part] ** 2).mean()) for part in (0, 1))
    prior = LayerwiseGaussianPrior(best, True, SIZES)
    d_params = params_of(prior)
    _, saved = prior.log_density(params_of(prior), w, Buffers())
    prior.add_vjp(saved, ones, np.zeros_like(w), d_params)
    assert np.abs(d_params["prior_log_scale"]).max() < 1e-12


@pytest.mark.equation("D39")
def test_the_stated_deviation_is_that_of_the_narrowest_layer():
    for prior in (bound(), bound(learn=True)):
        assert prior.deviation(params_of(prior)) == pytest.approx(0.4, rel=1e-14)


# --- equal scales


@pytest.mark.equation("D39", "K12", "K19", "D17")
@LEARN
def test_with_equal_scales_it_is_the_gaussian_prior(learn):
    plain = GaussianPrior(0.7, learn)
    layers = LayerwiseGaussianPrior((0.7, 0.7), learn, SIZES)
    w, cotangent = drawn(SIZES)
    found = []
    for prior, count in ((plain, 1), (layers, 2)):
        params = {"prior_log_scale": prior.init(np.float64)} if learn else {}
        d_params = {name: np.zeros_like(u) for name, u in params.items()}
        d_w, variances = np.zeros_like(w), np.array([2.0, 0.5])
        value, saved = prior.log_density(params, w, Buffers())
        prior.add_vjp(saved, cotangent, d_w, d_params)
        total = variances if count == 2 else variances.sum()
        slopes = {name: np.zeros_like(u) for name, u in params.items()}
        expected = prior.expected_log_density(params, w[0], total, slopes)
        found.append(
            [
                *(value, d_w, prior.draw(np.random.default_rng(1), params, (2, 13))),
                *(expected.value, expected.d_mean, np.broadcast_to(expected.d_variance, 13)),
                *(d_params[name].sum() for name in params),
                *(slopes[name].sum() for name in params),
            ]
        )
    assert len(found[0]) == (8 if learn else 6)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-13, atol=1e-13)


# --- the KL divergence in closed form


def case(make, posterior, prior, sizes=SIZES, rows=4, seed=0):
    """An estimator, theta with correlated weights, noise, and data."""
    model = Model(MLP(sizes, "tanh"), prior, GaussianLikelihood(0.6, learn=True))
    built, rng = make(model, posterior), np.random.default_rng(seed)
    theta = built.init(rng)
    views = built.layout.views(theta)
    if "lower" in views:
        views["lower"][...] = 0.2 * rng.standard_normal(views["lower"].shape)
    if "prior_log_scale" in views:
        views["prior_log_scale"] += 0.3 * rng.standard_normal(len(sizes) - 1)
    noise = built.draw(rng, 2, rows=rows)
    return built, theta, noise, rng.standard_normal((rows, sizes[0])), np.ones((rows, sizes[-1]))


def kl_error(make, posterior, prior, sizes=SIZES):
    """Error of the KL term against that of two Gaussians with full covariances."""
    built, theta, noise, x, y = case(make, posterior, prior, sizes, rows=0)
    blocks = built.layout.views(theta)
    scales = np.exp(blocks["prior_log_scale"]) if prior.learn else built.model.prior.scales
    factor = np.diag(np.log1p(np.exp(blocks["rho"])))
    if "lower" in blocks:
        factor[np.tri(len(factor), k=-1, dtype=bool)] = blocks["lower"]
    covariance, mu = factor @ factor.T, blocks["mu"]
    of_prior = np.diag(scale_of_each_weight(sizes, scales) ** 2)
    logs = np.linalg.slogdet(of_prior)[1] - np.linalg.slogdet(covariance)[1]
    square = mu @ np.linalg.solve(of_prior, mu)
    exact = 0.5 * (np.trace(np.linalg.solve(of_prior, covariance)) + square - len(mu) + logs)
    return relative_error(built.value_and_grad(theta, noise, x, y)[0], exact)


@pytest.mark.equation("D39", "D18", "D19")
@LEARN
@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize(("make", "posterior"), CLOSED)
def test_without_rows_the_free_energy_is_the_textbook_kl_of_two_gaussians(
    make, posterior, sizes, learn
):
    prior = LayerwiseGaussianPrior(SHAPES[sizes], learn)
    assert kl_error(make, posterior, prior, sizes) <= 1e-12


# --- what it does to functions


def second_moment(sizes, scales, x):
    """E f(x)^2 under the prior of a ReLU network: exact, whatever the widths (D39)."""
    v = scales[0] ** 2 * (x @ x + 1.0)
    for width, scale in zip(sizes[1:-1], scales[1:], strict=True):
        v = scale**2 * (width * v / 2.0 + 1.0)  # half the square of a symmetric number is kept
    return v


def moment_error(prior, sizes, expected, activation="relu", draws=2000):
    """How many standard errors the mean of f(x)^2 over draws is away from `expected`."""
    x, rng = np.array([0.6, -1.1]), np.random.default_rng(3)
    model, squares = Model(MLP(sizes, activation), prior), []
    for _ in range(4):
        w = model.prior.draw(rng, {}, (draws // 4, model.layout.size))
        squares.append(model.predict(w, x[None])[:, 0, 0] ** 2)
    found = np.concatenate(squares)
    return abs(found.mean() - expected(x)) / (found.std() / np.sqrt(draws))


@pytest.mark.equation("D39")
@pytest.mark.parametrize(
    "sizes", [(2, 1, 1), (2, 16, 1), (2, 256, 1), (2, 4, 4, 1), (2, 64, 64, 1)]
)
def test_the_default_scales_give_functions_of_one_size_for_every_width(sizes):
    prior = Model(MLP(sizes)).prior  # one scale: its size is the formula's too
    assert moment_error(prior, sizes, partial(second_moment, sizes, [1.0] * (len(sizes) - 1))) < 4
    scales = (1.0, *(1.0 / np.sqrt(inputs) for inputs in sizes[1:-1]))
    assert LayerwiseGaussianPrior().for_network(sizes).scales == pytest.approx(scales)
    expected = partial(second_moment, sizes, scales)
    assert moment_error(LayerwiseGaussianPrior(), sizes, expected) < 4
    # with unlimited widths every layer halves the square and the biases are lost in it
    x = np.array([0.6, -1.1])
    rest = expected(x) - (x @ x + 1.0) / 2 ** (len(sizes) - 2)
    assert 0 < rest <= sum(1.0 / width for width in sizes[1:-1]) + 1e-12


# --- the network


@pytest.mark.equation("D39")
def test_a_model_tells_the_prior_its_network():
    prior = LayerwiseGaussianPrior()
    model = Model(MLP((4, 25, 9, 2)), prior)
    assert model.prior.sizes == (4, 25, 9, 2)
    assert model.prior.scales == (1.0, 0.2, 1 / 3)
    assert model.prior.counts == (125, 234, 20)
    assert model.prior.starts == (0, 125, 359)
    assert (prior.sizes, prior.scales) == (None, None), "the prior that was passed is unchanged"
    assert Model(MLP((4, 25, 9, 2)), model.prior) == model
    assert Model(MLP((3, 1)), prior).prior.scales == (1.0,)
    assert Model(MLP((3, 1)), LayerwiseGaussianPrior([2], True)).prior.scales == (2.0,)


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        ((1.0,), ValueError, r"scales has 1 numbers, .* sizes \(2, 3, 1\) has 2 layers; give one"),
        ((1.0, 0.5, 0.5), ValueError, "scales has 3 numbers"),
        ((), ValueError, r"one number for each layer, e.g. \(1.0, 0.1\); got \(\)"),
        (0.5, ValueError, "one number for each layer.*got 0.5"),
        (np.array(0.5), ValueError, "one number for each layer"),
        ("1.0, 0.1", ValueError, "one number for each layer.*got '1.0, 0.1'"),
        (("1.0", 0.1), TypeError, "every scale of the prior must be positive .* got '1.0'"),
        ((True, 0.1), TypeError, "every scale of the prior .* got True"),
        ((1.0, None), TypeError, "every scale of the prior .* got None"),
        ((1.0, 0.0), ValueError, "every scale of the prior must be positive.*got 0.0"),
        ((-1.0, 1.0), ValueError, "every scale of the prior must be positive.*got -1.0"),
        ((1.0, np.nan), ValueError, "every scale of the prior must be positive"),
        ((1.0, np.inf), ValueError, "every scale of the prior must be positive"),
        ((1e-200, 1.0), ValueError, "between 1e-150 and 1e150; got 1e-200"),
    ],
)
def test_scales_that_fit_no_network_are_refused(scales, error, message):
    with pytest.raises(error, match=message):
        Model(MLP(SIZES), LayerwiseGaussianPrior(scales))


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ("2, 3, 1", ValueError, "the widths of its network"),
        (5, ValueError, "the widths of its network.*got 5"),
        ((2,), ValueError, "the widths of its network"),
        ((2, 0, 1), ValueError, "every size of the prior's network .* >= 1; got 0"),
        ((2, "3", 1), TypeError, "every size of the prior's network"),
    ],
)
def test_sizes_that_are_no_network_are_refused(sizes, error, message):
    with pytest.raises(error, match=message):
        LayerwiseGaussianPrior(sizes=sizes)


def test_a_prior_serves_one_network_and_has_to_know_it():
    prior = Model(MLP(SIZES), LayerwiseGaussianPrior()).prior
    with pytest.raises(ValueError, match=r"for a network of sizes \(2, 3, 1\); got \(2, 4, 1\)"):
        Model(MLP((2, 4, 1)), prior)
    with pytest.raises(ValueError, match="make a Model of both"):
        LayerwiseGaussianPrior().log_density({}, np.zeros((1, 13)), Buffers())
    with pytest.raises(TypeError, match="learn must be True or False; got 'no'"):
        LayerwiseGaussianPrior(learn="no")


# --- single precision, learners, samplers


def rows_of_a_sine(count=24):
    x = np.linspace(-1.0, 1.0, count)[:, None]
    return x, np.sin(3.0 * x[:, 0])


def learner(prior, **options):
    settings = {"epochs": 3, "samples": 2, "predict_samples": 5, "random_state": 0} | options
    return BayesianMLPRegressor((6,), prior=prior, **settings)


@pytest.mark.brief
@pytest.mark.equation("D39", "D33")
def test_a_sampler_draws_the_scales_of_every_layer():
    how = Sampling("hmc", chains=2, draws=5, warm_up=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws have not converged
        model = learner("layerwise-learned", inference=how).fit(*rows_of_a_sine())
    scales = model.draws_.block("prior_log_scale").reshape(10, 2)
    assert np.ptp(scales, axis=0).min() > 0
    assert np.isfinite(model.predict(rows_of_a_sine()[0])).all()

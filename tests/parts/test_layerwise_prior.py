"""layerwise: a scale for each layer, its KL divergence, and what it does to functions (D39)."""

import warnings
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from problems import changed, complex_gradient, relative_error, seeds

from bbb_numpy import (
    MLP,
    BayesianMLPRegressor,
    ClosedFormKL,
    Flipout,
    GaussianLikelihood,
    GaussianPrior,
    LayerwiseGaussianPrior,
    LocalReparameterisation,
    LogNormal,
    MeanField,
    Model,
    Reparameterised,
    Sampling,
)
from bbb_numpy.gradients import local_reparameterisation
from bbb_numpy.learners import checkpoint
from bbb_numpy.model.log_joint import LogJoint
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


@pytest.mark.equation("D39", "D18", "D19")
@pytest.mark.parametrize(("make", "posterior"), CLOSED)
def test_with_equal_scales_the_free_energy_and_its_gradient_are_those_of_the_gaussian_prior(
    make, posterior
):
    found = []
    for prior in (GaussianPrior(0.7), LayerwiseGaussianPrior((0.7, 0.7))):
        built, theta, noise, x, y = case(make, posterior, prior)
        found.append(built.value_and_grad(theta, noise, x, y, 0.6))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-13)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12, atol=1e-13)


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


@pytest.mark.equation("D39", "D18", "D19")
@LEARN
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_the_sampled_kl_has_that_mean(posterior, learn):
    prior = LayerwiseGaussianPrior(SCALES, learn)
    built, theta, noise, x, y = case(ClosedFormKL, posterior, prior, rows=0)
    exact = built.value_and_grad(theta, noise, x, y).value
    sampled = Reparameterised(built.model, posterior)
    noise = sampled.draw(np.random.default_rng(1), 20_000)
    terms = sampled.value_and_grad(theta, noise, x, y).terms
    kl = terms.posterior - terms.prior
    assert abs(kl.mean() - exact) < 4 * kl.std() / np.sqrt(len(kl))


def estimator_error(make, posterior, prior, sizes=SIZES):
    """Largest error of the free energy's gradient against the complex step."""
    built, theta, noise, x, y = case(make, posterior, prior, sizes)
    _, grad, _ = built.value_and_grad(theta, noise, x, y, 0.7)
    exact = complex_gradient(lambda v: built.value_and_grad(v, noise, x, y, 0.7)[0], theta)
    return relative_error(grad, exact)


@pytest.mark.equation("D39", "D18", "D19", "D21", "D22")
@LEARN
@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize(("make", "posterior"), [*CLOSED, (Reparameterised, POSTERIORS[0])])
def test_the_gradient_of_the_free_energy_is_its_derivative(make, posterior, sizes, learn):
    prior = LayerwiseGaussianPrior(SHAPES[sizes], learn)
    assert estimator_error(make, posterior, prior, sizes) <= 1e-12


@pytest.mark.equation("D39")
@pytest.mark.parametrize("block", [1, 5, 9])
def test_blocks_of_the_cache_may_end_inside_a_layer(block, monkeypatch):
    arguments = (LocalReparameterisation, POSTERIORS[0], LayerwiseGaussianPrior(SCALES, True))
    built, *call = case(*arguments)
    value, grad, _ = built.value_and_grad(*call)
    expected = grad.copy()
    monkeypatch.setattr(local_reparameterisation, "BLOCK", block)
    again, grad, _ = built.value_and_grad(*call)
    assert again == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(grad, expected, rtol=1e-12, atol=1e-13)


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


@pytest.mark.equation("D39")
def test_functions_of_tanh_units_have_the_size_that_quadrature_gives():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    def expected(x, width=50):
        z = nodes * np.sqrt(x @ x + 1.0)
        return weights @ np.tanh(z) ** 2 / weights.sum() + 1.0 / width

    assert moment_error(LayerwiseGaussianPrior(), (2, 50, 1), expected, "tanh") < 4


@pytest.mark.equation("D39")
def test_with_one_scale_functions_grow_like_the_root_of_the_width():
    x = np.array([0.6, -1.1])
    sizes = [(2, width, 1) for width in (16, 256, 4096)]
    one = np.sqrt([second_moment(s, (1.0, 1.0), x) for s in sizes])
    np.testing.assert_allclose(one[1:] / one[:-1], 4.0, rtol=0.1)
    neal = np.sqrt([second_moment(s, (1.0, s[1] ** -0.5), x) for s in sizes])
    np.testing.assert_allclose(neal[1:] / neal[:-1], 1.0, rtol=0.03)
    # and the measured functions are not of the size that the other prior gives
    for prior, scales in ((GaussianPrior(1.0), (1.0, 1 / 16)), (LayerwiseGaussianPrior(), (1, 1))):
        assert moment_error(prior, sizes[1], partial(second_moment, sizes[1], scales)) > 10


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


@pytest.mark.equation("D39")
@LEARN
def test_single_precision_stays_single_precision(learn):
    prior = bound(learn=learn)
    w, cotangent = (part.astype(np.float32) for part in drawn(SIZES))
    params = {name: u.astype(np.float32) for name, u in params_of(prior).items()}
    d_params = {name: np.zeros_like(u) for name, u in params.items()}
    (value, saved), d_w = prior.log_density(params, w, Buffers()), np.zeros_like(w)
    total = np.ones(2, np.float32)
    expected = prior.expected_log_density(params, w[0], total, d_params)
    assert {np.asarray(part).dtype for part in (value, *expected)} == {np.dtype(np.float32)}
    exact, _ = prior.log_density(params_of(prior), w.astype(float), Buffers())
    np.testing.assert_allclose(value, exact, rtol=1e-5)
    prior.add_vjp(saved, cotangent, d_w, d_params)
    assert saved.w is w  # not a float64 copy of it
    assert {d_w.dtype, saved.precision.dtype} == {np.dtype(np.float32)}
    assert all(part.dtype == np.float32 for part in d_params.values())


def rows_of_a_sine(count=24):
    x = np.linspace(-1.0, 1.0, count)[:, None]
    return x, np.sin(3.0 * x[:, 0])


def learner(prior, **options):
    settings = {"epochs": 3, "samples": 2, "predict_samples": 5, "random_state": 0} | options
    return BayesianMLPRegressor((6,), prior=prior, **settings)


NAMES = ["layerwise", "layerwise-learned", LayerwiseGaussianPrior((2.0, 0.3), learn=True)]


@pytest.mark.brief
@pytest.mark.equation("D39")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("prior", NAMES, ids=str)
def test_a_learner_trains_with_it_and_learns_the_scales_that_it_should(prior, dtype):
    model = learner(prior, dtype=dtype, inference="full-rank").fit(*rows_of_a_sine())
    assert model.theta_.dtype == dtype
    inside = model.estimator_.model.prior
    assert inside.sizes == (1, 6, 1)
    views = model.estimator_.layout.views(model.theta_)
    assert ("prior_log_scale" in views) == inside.learn
    if inside.learn:
        moved = views["prior_log_scale"] - np.log(inside.scales)
        assert (moved != 0).all()
    assert model.prior is prior, "the argument is left as it was given"
    if isinstance(prior, str):  # the same argument for another network
        again = model.set_params(hidden_layer_sizes=(3, 2)).fit(*rows_of_a_sine())
        assert again.estimator_.model.prior.sizes == (1, 3, 2, 1)
    else:
        with pytest.raises(ValueError, match="has 3 layers; give one scale for each"):
            model.set_params(hidden_layer_sizes=(3, 2)).fit(*rows_of_a_sine())


@pytest.mark.brief
@pytest.mark.parametrize("prior", NAMES, ids=str)
def test_a_learner_with_it_is_saved_and_loaded_bit_for_bit(prior, tmp_path):
    x, y = rows_of_a_sine()
    model = learner(prior).fit(x, y)
    checkpoint.save(model, tmp_path / "model.npz")
    twin = checkpoint.load(tmp_path / "model.npz")
    assert twin.prior == model.prior
    assert twin.estimator_ == model.estimator_
    np.testing.assert_array_equal(twin.theta_, model.theta_)
    for one in (model, twin):
        one.partial_fit(x, y)
    np.testing.assert_array_equal(twin.theta_, model.theta_)
    np.testing.assert_array_equal(twin.predict(x), model.predict(x))


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


@pytest.mark.equation("D39", "D32", "D33")
def test_by_default_every_scale_has_a_log_normal_prior_around_its_own_start():
    x, y = rows_of_a_sine()
    model = Model(MLP((1, 25, 1)), LayerwiseGaussianPrior(learn=True), GaussianLikelihood(0.1))
    target = LogJoint(model, x, y[:, None], {}, power=0.0)
    position = target.draw_prior(np.random.default_rng(0), 3)
    u = target.params(position)["prior_log_scale"]
    start = np.log([1.0, 0.2])
    exact = LogNormal().log_density(u, start).sum(axis=1)
    for s in range(3):
        w = target.weights(position)[[s]]
        own = LayerwiseGaussianPrior(tuple(np.exp(u[s])), sizes=(1, 25, 1))
        exact[s] += own.log_density({}, w, Buffers())[0][0]
    np.testing.assert_allclose(target(position)[0], exact, rtol=1e-12)


# --- planted errors: each is refused by the check that the right formula passes

L = LayerwiseGaussianPrior


def precision_for_scale(self, params, dtype):
    return -2.0 * L._log_scales(self, params, dtype)


def biases_of_the_next_layer(self):
    """The block of a layer ends before its biases."""
    weights = [a * b for a, b in zip(self.sizes[:-1], self.sizes[1:], strict=True)]
    counts = [weights[0], *(b + w for b, w in zip(self.sizes[1:], weights[1:], strict=False))]
    counts[-1] += self.sizes[-1]
    return tuple(counts)


def no_normaliser(self, params, w, buffers):
    u = L._log_scales(self, params, float)
    value, saved = L.log_density(self, params, w, buffers)
    return value + (np.array(self.counts) * u).sum(axis=-1), saved


def sum_over_samples(self, params, w, buffers):
    """Of the terms (S, L) those of a layer added, not those of a sample."""
    u = L._log_scales(self, params, float)
    terms = -0.5 * np.exp(-2.0 * u) * self._squares(w)
    terms -= np.array(self.counts) * (u + 0.5 * np.log(2 * np.pi))
    return np.add.reduce(terms, axis=0), L.log_density(self, params, w, buffers)[1]


def slope_without_counts(self, saved, cotangent, d_w, d_params):
    L.add_vjp(self, saved, cotangent, d_w, d_params)
    d_params["prior_log_scale"] += cotangent.sum() * np.array(self.counts)


def variances_of_all_layers(self, params, mean, total, d_params):
    return L.expected_log_density(self, params, mean, np.full_like(total, total.sum()), d_params)


def one_precision_for_all(self, params, mean, total, d_params):
    found = L.expected_log_density(self, params, mean, total, d_params)
    return found._replace(d_variance=found.d_variance.mean())


def default_over_width(self):
    L.__post_init__(self)
    if self.sizes is not None:
        object.__setattr__(self, "scales", (1.0, *(1.0 / size for size in self.sizes[1:-1])))


def value_of_two_samples(prior):
    """As `value_error`, for as many samples as there are layers: wrong axes have right shapes."""
    w = drawn(prior.sizes, samples=2)[0]
    found, _ = prior.log_density(params_of(prior), w, Buffers())
    return max(
        relative_error(found[s], prior.log_density(params_of(prior), w[[s]], Buffers())[0].sum())
        for s in range(2)
    )


def default_error(prior):
    sizes = (2, 256, 1)
    expected = partial(second_moment, sizes, (1.0, 1 / 16))
    own = type(prior)()
    return max(0.0, moment_error(own, sizes, expected) / 4 - 1)


mean_field_kl = partial(kl_error, ClosedFormKL, POSTERIORS[0])
full_rank_gradient = partial(estimator_error, ClosedFormKL, POSTERIORS[1])
local_gradient = partial(estimator_error, LocalReparameterisation, POSTERIORS[0])
chains_gradient = partial(gradient_error, chains=3)
COUNTS = {"counts": property(biases_of_the_next_layer)}
WRONG = {
    "the precision for the scale": (value_error, False, {"_log_scales": precision_for_scale}),
    "the same in the KL, learned": (mean_field_kl, True, {"_log_scales": precision_for_scale}),
    "biases with the scale of the next layer": (value_error, False, COUNTS),
    "such biases in the KL": (mean_field_kl, False, COUNTS),
    "no P_l log s_l": (value_error, False, {"log_density": no_normaliser}),
    "no P_l log s_l, learned": (gradient_error, True, {"log_density": no_normaliser}),
    "no -P_l in its slope": (gradient_error, True, {"add_vjp": slope_without_counts}),
    "scales summed over the samples": (
        value_of_two_samples, False, {"log_density": sum_over_samples},
    ),
    "all variances for every layer": (
        mean_field_kl, False, {"expected_log_density": variances_of_all_layers},
    ),
    "one precision for all variances": (
        full_rank_gradient, False, {"expected_log_density": one_precision_for_all},
    ),
    "the same, rows of their own": (
        local_gradient, True, {"expected_log_density": one_precision_for_all},
    ),
    "1 / inputs for 1 / sqrt(inputs)": (
        default_error, False, {"__post_init__": default_over_width},
    ),
}  # fmt: skip


@pytest.mark.equation("D39")
@pytest.mark.parametrize("name", WRONG)
def test_a_planted_wrong_formula_is_refused(name):
    error, learn, methods = WRONG[name]
    assert error(bound(learn=learn)) <= 1e-12
    assert error(changed(bound(learn=learn), **methods)) > 1e-3

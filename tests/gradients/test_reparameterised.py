"""gradients: the proof. Every term alone and the whole free energy, through the very function
that training calls, against the complex step and central differences; and planted errors."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import (
    Problem,
    complex_gradient,
    exact_posterior,
    examples,
    gradients_of,
    linear_case,
    problems,
)

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.gradcheck import check
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import StickingTheLanding
from bbb_numpy.model.kl_weights import geometric_kl_weights, proportional_kl_weights
from bbb_numpy.model.objectives import EUBO, TERMS, Renyi
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import softplus_parts

EXTREME_RHO = [-5.0, -40.0, -800.0, 0.0, 15.0]


def report(problem, method, most=None):
    return check(
        problem.value_and_grad,
        problem.theta,
        method=method,
        blocks=problem.estimator.layout.slices,
        coordinate=problem.estimator.coordinate,
        gates=problem.gates,
        most=most,
    )


@pytest.mark.equation("K19", "K21", "K25", "K30", "K37-K42", "D1", "D10")
@pytest.mark.parametrize("term", list(TERMS))
@examples(60)
@given(problem=problems(rho=st.sampled_from(EXTREME_RHO)))
def test_every_gradient_agrees_with_the_complex_step_to_1e_12(term, problem):
    found = report(problem.with_objective(TERMS[term]), "complex")
    assert found.passed, str(found)
    assert found.bar == 1e-12
    assert found.skipped == 0


@pytest.mark.equation("D9")
def test_at_most_two_percent_of_the_coordinates_are_skipped_at_kinks():
    # counted over many networks at once: a single tiny one may lose one of its ten numbers
    checked = skipped = 0
    rng = np.random.default_rng(0)
    for _ in range(12):
        problem = random_relu_problem(rng)
        found = report(problem, "central", most=30)
        assert found.passed, str(found)
        checked += sum(block.checked for block in found.blocks)
        skipped += sum(block.skipped for block in found.blocks)
    assert checked > 500
    assert skipped <= 0.02 * (checked + skipped)


def random_relu_problem(rng):
    sizes = (2, *rng.integers(2, 6, rng.integers(1, 4)).tolist(), 2)
    model = Model(MLP(sizes), GaussianPrior(0.8), GaussianLikelihood(0.5, learn=True))
    estimator = Reparameterised(model, MeanField(0.7, -2.0, 1.0))
    theta = estimator.init(rng)
    x, y = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    return Problem(estimator, theta, estimator.draw(rng, 3), x, y, 0.25)


@pytest.mark.equation("K20", "K28")
@pytest.mark.parametrize("samples", [1, 3])
def test_mu_moves_weights_one_to_one_and_rho_by_eps_times_slope_and_back(samples):
    rng = np.random.default_rng(0)
    problem = random_relu_problem(rng)
    estimator, theta = problem.estimator, problem.theta
    size = estimator.model.layout.size
    eps = rng.standard_normal((samples, size))
    direction = rng.standard_normal(theta.size)
    pushed = estimator.weights(theta + 1e-30j * direction, eps).imag / 1e-30
    slope = softplus_parts(theta[size : 2 * size]).sigmoid
    expected = direction[:size] + eps * slope * direction[size : 2 * size]
    assert np.allclose(pushed, expected, rtol=1e-13)
    # the pull-back of cotangents is the transpose of that map
    d_w, grad = rng.standard_normal((samples, size)), np.zeros_like(theta)
    views = estimator.layout.views
    sample = estimator.posterior.sample(views(theta), eps, Buffers())
    estimator.posterior.pull_back(sample, d_w, None, views(grad))
    assert grad @ direction == pytest.approx(np.sum(d_w * expected), rel=1e-12)


@pytest.mark.equation("K22", "K26", "K27", "K29")
@pytest.mark.parametrize("samples", [1, 3])
def test_each_term_of_the_loss_has_its_own_term_in_the_gradient_for_rho(samples):
    rng = np.random.default_rng(1)
    problem = random_relu_problem(rng)
    p, model = problem, problem.estimator.model
    p = p._replace(noise=rng.standard_normal((samples, model.layout.size)))
    params, size = p.estimator.layout.views(p.theta), model.layout.size
    w = p.estimator.weights(p.theta, p.noise).copy()
    sigma = np.log1p(np.exp(params["rho"]))
    by_rho = p.noise / (1 + np.exp(-params["rho"]))  # dw/drho, K28
    g_w = -complex_gradient(
        lambda v: model.evaluate(v, params, p.x, p.y, Buffers()).log_likelihood.sum(), w
    )
    expected = {
        "posterior": -p.kl_weight / sigma / (1 + np.exp(-params["rho"])),  # K22
        "prior": np.mean(p.kl_weight * w / model.prior.scale**2 * by_rho, axis=0),  # K26
        "likelihood": np.mean(g_w * by_rho, axis=0),  # K27, K29
    }
    for term, slope in expected.items():
        grad = p.with_objective(TERMS[term]).value_and_grad(p.theta)[1]
        assert np.allclose(grad[size : 2 * size], slope, rtol=1e-11, atol=1e-13), term


@pytest.mark.equation("K2")
def test_coordinates_are_named_down_to_the_layer():
    problem = random_relu_problem(np.random.default_rng(0))
    size = problem.estimator.model.layout.size
    assert problem.estimator.coordinate(0) == "mu W0[0, 0]"
    assert problem.estimator.coordinate(size + 1) == "rho W0[0, 1]"
    assert problem.estimator.coordinate(2 * size + 1) == "log_noise[1]"


# --- the other estimators: surrogates, stochastic gradients, and what a wrong one would show


def distance(gradients, exact, error_of_exact=0.0):
    """Largest distance of a mean of gradients from the exact one, in standard errors."""
    errors = np.hypot(gradients.std(axis=0, ddof=1) / np.sqrt(len(gradients)), error_of_exact)
    errors += 1e-13 * np.abs(gradients).max()  # antithetic pairs leave rounding alone for some
    return (np.abs(gradients.mean(axis=0) - exact) / errors).max()


ESTIMATORS = {
    "reparameterised": (Reparameterised, "both"),
    "antithetic": (partial(Reparameterised, antithetic=True), "both"),
    "sticking the landing": (StickingTheLanding, "both"),
    "closed-form KL": (ClosedFormKL, "both"),
    "closed-form KL, antithetic": (partial(ClosedFormKL, antithetic=True), "both"),
    "local reparameterisation": (LocalReparameterisation, "mean field"),
    "Flipout": (Flipout, "mean field"),
}
UNBIASED = [
    pytest.param(make, full, id=f"{name}{', full rank' if full else ''}")
    for name, (make, which) in ESTIMATORS.items()
    for full in (False, True)
    if which == "both" or not full
]


@pytest.mark.equation("D8", "D18", "D19", "D20", "D21", "D22", "D23", "D28", "R1", "R3", "K21")
@pytest.mark.parametrize(("make", "full"), UNBIASED)
def test_the_mean_gradient_is_that_of_the_exact_free_energy(make, full):
    case = linear_case(full)
    estimator = make(case.model, case.posterior)
    found = gradients_of(estimator, case.theta, case.x, case.y, calls=200, samples=40)
    assert distance(found, case.grad) < 4
    noise = estimator.draw(np.random.default_rng(1), 20_000, len(case.x))
    value, _, _ = estimator.value_and_grad(case.theta, noise, case.x, case.y)
    assert value == pytest.approx(case.free_energy, rel=0.02)


@pytest.mark.equation("D6", "D21", "D22")
@pytest.mark.parametrize("shares", [proportional_kl_weights, geometric_kl_weights])
@pytest.mark.parametrize(("make", "full"), UNBIASED)
def test_over_the_minibatches_of_an_epoch_it_adds_up_to_that_gradient(make, full, shares):
    case = linear_case(full)
    estimator, batches = (
        make(case.model, case.posterior),
        [slice(0, 5), slice(5, 10), slice(10, 12)],
    )
    each = [
        gradients_of(estimator, case.theta, case.x[rows], case.y[rows], 150, 10, seed, kl_weight)
        for seed, (rows, kl_weight) in enumerate(zip(batches, shares([5, 5, 2]), strict=True))
    ]
    assert distance(np.sum(each, axis=0), case.grad) < 4


@pytest.mark.equation("G4", "G6", "G8")
def test_the_self_normalised_gradient_is_that_of_the_upper_bound_for_many_samples():
    # without rows the posterior is the prior N(0, s^2), and for each weight
    # U = log(sigma / s) - 1/2 + (s^2 + mu^2) / (2 sigma^2): dU/dmu = mu / sigma^2,
    # dU/dsigma = 1 / sigma - (s^2 + mu^2) / sigma^3
    scale = 0.6
    model = Model(MLP((1, 1)), GaussianPrior(scale))
    estimator = SelfNormalised(model, MeanField(), EUBO())
    mu, sigma = np.array([0.3, -0.2]), np.array([0.9, 0.7])
    theta = MeanField().pack(mu, sigma)
    slope = -np.expm1(-sigma)  # softplus'
    d_sigma = 1 / sigma - (scale**2 + mu**2) / sigma**3
    exact = np.concatenate([mu / sigma**2, d_sigma * slope])
    none = np.zeros((0, 1))
    found = gradients_of(estimator, theta, none, none, calls=100, samples=20_000)
    assert distance(found, exact) < 4
    noise = estimator.draw(np.random.default_rng(5), 200_000)
    bound = estimator.value_and_grad(theta, noise, none, none).value
    upper = np.sum(np.log(sigma / scale) - 0.5 + (scale**2 + mu**2) / (2 * sigma**2))
    assert bound == pytest.approx(upper, abs=0.02)  # the log evidence of no data is 0
    # with one sample it is zero-mean noise that teaches nothing (ERRATA: -.0002 against -.5925)
    alone = gradients_of(estimator, theta, none, none, calls=4_000, samples=1)
    assert distance(alone, np.zeros(4)) < 4
    assert distance(alone, exact) > 10


@pytest.mark.equation("D23")
@pytest.mark.parametrize("make", [Reparameterised, ClosedFormKL])
def test_antithetic_noise_comes_in_pairs_of_opposite_sign(make):
    model = Model(MLP((2, 3, 1)))
    estimator = make(model, antithetic=True)
    noise = estimator.draw(np.random.default_rng(0), 6, dtype=np.float32)
    assert noise.shape == (6, model.layout.size)
    assert noise.dtype == np.float32
    assert np.array_equal(noise[:3], -noise[3:])
    assert len(np.unique(np.abs(noise))) == 3 * model.layout.size
    with pytest.raises(ValueError, match="samples must be even; got 5"):
        estimator.draw(np.random.default_rng(0), 5)


@pytest.mark.equation("D23")
def test_with_antithetic_noise_a_linear_function_has_no_error_at_all():
    # linear regression: the slope for mu is linear in the weights, so the pair gives it exactly
    case = linear_case()
    size = case.model.layout.size
    for antithetic, exact in ((True, True), (False, False)):
        estimator = ClosedFormKL(case.model, case.posterior, antithetic=antithetic)
        found = gradients_of(estimator, case.theta, case.x, case.y, calls=5, samples=2)
        error = np.abs(found[:, :size] - case.grad[:size]).max()
        assert bool(error < 1e-12 * np.abs(case.grad).max()) is exact


def antithetic_ratios(case, mu):
    """Return variance of a pair over that of two independent samples, of every rho: exactly.

    The gradient of linear regression is quadratic in the noise and its variance of degree 4, for
    which three nodes of Gauss and Hermite in every direction are exact.
    """
    size = case.model.layout.size
    theta = np.concatenate([mu, case.theta[size:]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    eps = np.stack(np.meshgrid(*[nodes] * size), axis=-1).reshape(-1, size)
    weight = np.stack(np.meshgrid(*[weights] * size), axis=-1).reshape(-1, size).prod(axis=1)
    weight /= weight.sum()
    q = Reparameterised(case.model, case.posterior)

    def variances(samples):  # of the mean of one or two samples (nodes, S, P)
        grads = np.array([q.value_and_grad(theta, one, case.x, case.y).grad for one in samples])
        return (weight @ grads**2 - (weight @ grads) ** 2)[size:]

    return variances(np.stack([eps, -eps], axis=1)) / (variances(eps[:, None]) / 2)


def ratios_of_d23(case, mu):
    """Return 2 Var h_+ / (Var h_+ + Var h_-), from the moments of the quadratic."""
    size = case.model.layout.size
    exact = exact_posterior(Reparameterised(case.model, case.posterior), case.x, case.y)
    sigma = softplus_parts(case.theta[size:]).softplus
    odd = (exact.precision @ (mu - exact.mean)) ** 2
    even = (exact.precision * sigma) ** 2
    even = even.sum(axis=1) + np.diag(even)
    return 2 * even / (even + odd)


@pytest.mark.equation("D8", "D23")
def test_for_rho_antithetic_noise_doubles_the_variance_at_the_optimum_and_helps_far_from_it():
    case = linear_case()
    exact = exact_posterior(Reparameterised(case.model, case.posterior), case.x, case.y)
    way = np.random.default_rng(0).standard_normal(len(exact.mean))
    found = []
    for far in (0.0, 0.5, 2.0, 100.0):
        mu = exact.mean + far * way
        found.append(antithetic_ratios(case, mu))
        assert np.allclose(found[-1], ratios_of_d23(case, mu), rtol=1e-9)
    assert np.allclose(found[0], 2.0, rtol=1e-9)
    assert np.max(found[1:]) < 1.99, "2 at mu = m alone"
    assert np.all(np.diff(found, axis=0) < 0)
    assert np.max(found[-1]) < 0.01


@pytest.mark.equation("D30")
@pytest.mark.parametrize(
    ("make", "objective"),
    [(Reparameterised, Renyi(0.5)), (DoublyReparameterised, Renyi(0.0)), (SelfNormalised, EUBO())],
)
def test_a_minibatch_counts_as_its_share_of_n_over_b_copies_of_itself(make, objective):
    # pi = B / N: value and gradient are pi times those of the minibatch repeated N / B times
    case = linear_case(rows=4)
    estimator = make(case.model, case.posterior, objective)
    noise = estimator.draw(np.random.default_rng(0), 3)
    value, grad, _ = estimator.value_and_grad(case.theta, noise, case.x, case.y, 0.25)
    copies = np.tile(case.x, (4, 1)), np.tile(case.y, (4, 1))
    whole_value, whole, _ = estimator.value_and_grad(case.theta, noise, *copies, 1.0)
    assert value == pytest.approx(0.25 * whole_value, rel=1e-12)
    assert np.allclose(grad, 0.25 * whole, rtol=1e-10, atol=1e-12)

"""gradients: the proof. Every term alone and the whole free energy, through the very function
that training calls, against the complex step and central differences; and planted errors."""

import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Problem, problems

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Reparameterised,
    network,
)
from bbb_numpy.gradcheck import check
from bbb_numpy.numerics import softplus_parts
from bbb_numpy.objectives import TERMS
from bbb_numpy.workspace import Workspace

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


@pytest.mark.equation("K1-K42", "D1", "D9", "D10")
@pytest.mark.parametrize("term", list(TERMS))
@settings(max_examples=60)
@given(problem=problems(rho=st.sampled_from(EXTREME_RHO)))
def test_every_gradient_agrees_with_the_complex_step_to_1e_12(term, problem):
    found = report(problem.with_objective(TERMS[term]), "complex")
    assert found.passed, str(found)
    assert found.bar == 1e-12
    assert found.skipped == 0


@pytest.mark.equation("K21", "K30", "K37", "K38", "K39", "K40", "K41", "K42", "D9")
@pytest.mark.parametrize("term", list(TERMS))
@settings(max_examples=30)
@given(problem=problems(scales=st.floats(-1.0, 1.0).map(lambda exponent: 10.0**exponent)))
def test_every_gradient_agrees_with_central_differences_to_1e_6(term, problem):
    # Scales within a factor of ten of 1: where the gradient is 1e-9 of the value, a difference
    # of values cannot resolve it. The complex step above has no such limit.
    found = report(problem.with_objective(TERMS[term]), "central", most=15)
    assert found.error <= 1e-6, str(found)
    assert found.bar == 1e-6


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


@dataclass(frozen=True)
class PlusOneOverSigma(MeanField):
    """K30 with +1/sigma in place of -1/sigma."""

    def pull_back(self, sample, d_w, d_log_q, d_theta):
        wrong = 2 * d_log_q.sum() * sample.parts.ratio
        super().pull_back(sample, d_w, d_log_q, d_theta)
        d_theta["rho"] += wrong


@dataclass(frozen=True)
class NoEps(MeanField):
    """K30 without the factor eps on the prior and likelihood."""

    def pull_back(self, sample, d_w, d_log_q, d_theta):
        super().pull_back(sample._replace(eps=np.ones_like(sample.eps)), d_w, d_log_q, d_theta)


@dataclass(frozen=True)
class DoubleCountedScore(MeanField):
    """The direct partials of log q(w|theta) added to the reparameterised gradient (Wu's split
    form without its third part)."""

    def pull_back(self, sample, d_w, d_log_q, d_theta):
        eps, parts = sample.eps, sample.parts
        d_mu = d_log_q @ (eps / parts.softplus)
        d_rho = d_log_q @ ((eps**2 - 1) * parts.ratio)
        super().pull_back(sample, d_w, d_log_q, d_theta)
        d_theta["mu"] += d_mu
        d_theta["rho"] += d_rho


@dataclass(frozen=True)
class LikelihoodNotItsLogarithm(Model):
    """K19 as literally printed: dP(D|w)/dw, the likelihood itself, in place of d(-log P)/dw."""

    def vjp(self, joint, d_log_prior, d_log_likelihood, d_params, work):
        printed = -d_log_likelihood * np.exp(joint.log_likelihood)
        return super().vjp(joint, d_log_prior, printed, d_params, work)


@dataclass(frozen=True)
class ForgottenPriorScale(GaussianPrior):
    """The prior's gradient w in place of w / scale^2."""

    def add_vjp(self, params, w, cotangent, d_w, d_params, work):
        d_w -= cotangent[:, None] * w


def planted(problem, wrong):
    estimator = problem.estimator
    if issubclass(wrong, MeanField):
        planted = replace(estimator, posterior=wrong(**vars_of(estimator.posterior)))
    elif issubclass(wrong, Model):
        planted = replace(estimator, model=wrong(**vars_of(estimator.model)))
    else:
        model = replace(estimator.model, prior=wrong(**vars_of(estimator.model.prior)))
        planted = replace(estimator, model=model)
    return problem._replace(estimator=planted)


def vars_of(instance):
    return {name: getattr(instance, name) for name in instance.__dataclass_fields__}


@pytest.mark.equation("K10", "K19", "K21", "K30")
@pytest.mark.parametrize("method", ["complex", "central"])
@pytest.mark.parametrize(
    "wrong",
    [PlusOneOverSigma, NoEps, DoubleCountedScore, LikelihoodNotItsLogarithm, ForgottenPriorScale],
)
def test_a_planted_wrong_formula_is_caught(wrong, method):
    problem = random_relu_problem(np.random.default_rng(4))
    assert report(problem, method).passed
    found = report(planted(problem, wrong), method)
    assert not found.passed
    assert found.error > 1e-2, str(found)


@pytest.mark.equation("K39", "K40")
@pytest.mark.parametrize("method", ["complex", "central"])
def test_the_elementwise_reading_of_k40_is_caught(method, monkeypatch):
    # -(y - yhat) w_n [z > 0] a, all elementwise: for one row, one output and equal widths the
    # factors (1, 1), (H, 1), (1, H), (1, H) broadcast to (H, H), the shape of W0
    rng = np.random.default_rng(0)
    model = Model(MLP((3, 3, 1)), GaussianPrior(), GaussianLikelihood(0.5))
    estimator = Reparameterised(model, MeanField(0.7, -2.0, 1.0))
    theta, noise = estimator.init(rng), estimator.draw(rng, 1)
    x, y = rng.standard_normal((1, 3)), rng.standard_normal((1, 1))
    problem = Problem(estimator, theta, noise, x, y, 1.0)
    assert report(problem, method).passed
    true_vjp = network.vjp

    def elementwise(net, tape, d_f, work):
        w_n, gate = net.layers(tape.w)[1][0][0], tape.slopes[0][0]
        printed = d_f[0] * w_n * gate * tape.inputs[0]  # (H, H)
        d_w = true_vjp(net, tape, d_f, work)
        net.layers(d_w)[0][0][0] = printed
        return d_w

    monkeypatch.setattr(network, "vjp", elementwise)
    found = report(problem, method)
    assert not found.passed
    assert found.error > 1e-2, str(found)


@pytest.mark.equation("K20", "K28")
def test_mu_moves_weights_one_to_one_and_rho_by_eps_times_slope():
    rng = np.random.default_rng(0)
    problem = random_relu_problem(rng)
    estimator, theta, eps = problem.estimator, problem.theta, problem.noise
    size = estimator.model.layout.size
    direction = rng.standard_normal(theta.size)
    pushed = estimator.weights(theta + 1e-30j * direction, eps).imag / 1e-30
    slope = softplus_parts(theta[size : 2 * size]).sigmoid
    expected = direction[:size] + eps * slope * direction[size : 2 * size]
    assert np.allclose(pushed, expected, rtol=1e-13)


@given(problem=problems(rho=st.sampled_from([-5.0, 0.0])))
def test_float32_gives_the_float64_gradient_to_single_precision(problem):
    def cast(array):
        return array.astype(np.float32)

    value, grad = problem.value_and_grad(problem.theta)
    p = problem
    value32, grad32 = p.estimator.value_and_grad(
        cast(p.theta), cast(p.noise), cast(p.x), cast(p.y), p.kl_weight
    )
    assert grad32.dtype == np.float32
    scale = max(np.abs(grad).max(), 1e-3)
    assert np.abs(grad32 - grad).max() <= 2e-3 * scale
    assert abs(value32 - value) <= 2e-4 * (1 + abs(value))


@given(problem=problems(rows=st.just(0)))
def test_without_rows_the_free_energy_is_the_kl_alone(problem):
    value, grad = problem.value_and_grad(problem.theta)
    prior_and_posterior = sum(
        problem.with_objective(TERMS[name]).value_and_grad(problem.theta)[0]
        for name in ("posterior", "prior")
    )
    assert value == pytest.approx(prior_and_posterior, rel=1e-12, abs=1e-12)
    assert np.isfinite(grad).all()


@given(problem=problems())
def test_the_gradient_of_samples_is_the_mean_of_the_gradients_of_each(problem):
    p = problem
    value, grad = p.value_and_grad(p.theta)
    each = [
        p.estimator.value_and_grad(p.theta, p.noise[s : s + 1], p.x, p.y, p.kl_weight)
        for s in range(len(p.noise))
    ]
    sizes = np.mean([np.abs(g) for _, g in each], axis=0)
    assert np.all(np.abs(np.mean([g for _, g in each], axis=0) - grad) <= 1e-11 * (sizes + 1e-9))
    assert value == pytest.approx(np.mean([v for v, _ in each]), rel=1e-10, abs=1e-10)


def test_coordinates_are_named_down_to_the_layer():
    problem = random_relu_problem(np.random.default_rng(0))
    size = problem.estimator.model.layout.size
    assert problem.estimator.coordinate(0) == "mu W0[0, 0]"
    assert problem.estimator.coordinate(size + 1) == "rho W0[0, 1]"
    assert problem.estimator.coordinate(2 * size + 1) == "log_noise[1]"


def peak_memory(sizes, rows, samples):
    """Bytes that one step with a new workspace holds at its peak."""
    estimator = Reparameterised(Model(MLP(sizes)))
    rng = np.random.default_rng(0)
    theta = estimator.init(rng)
    x, y = rng.standard_normal((rows, sizes[0])), rng.standard_normal((rows, sizes[-1]))
    work = Workspace()
    tracemalloc.start()
    estimator.value_and_grad(theta, estimator.draw(rng, samples, work=work), x, y, 1.0, work)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    ("sizes", "rows", "samples"),
    [((10, 50, 50, 1), 200, 1), ((10, 50, 50, 1), 200, 16), ((10, 300, 300, 1), 20, 4)],
)
def test_memory_of_a_step_is_a_few_times_s_times_p_plus_b_times_width(sizes, rows, samples):
    size, width = Model(MLP(sizes)).layout.size, sum(sizes[1:])
    budget = 8 * (samples * (size + rows * width))
    assert peak_memory(sizes, rows, samples) <= 4 * budget + 8 * 8 * size + 200_000

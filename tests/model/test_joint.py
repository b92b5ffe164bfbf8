"""model: the log joint is the sum of its parts, and its gradient that of the sum."""

import numpy as np
import pytest
from hypothesis import given
from problems import JOINTS, complex_gradient, problems, relative_error

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.gradients.matrix import estimator, problem
from bbb_numpy.numeric.buffers import Buffers


@given(problem=problems())
def test_the_likelihood_of_all_rows_is_the_product_over_rows(problem):
    p, model = problem, problem.estimator.model
    params, w = p.estimator.layout.views(p.theta), p.estimator.weights(p.theta, p.noise)
    whole = model.forward(w, params, p.x, p.y, Buffers()).log_likelihood.copy()
    rows = [
        model.forward(w, params, p.x[i : i + 1], p.y[i : i + 1], Buffers()).log_likelihood
        for i in range(len(p.x))
    ]
    assert np.allclose(whole, np.sum(rows, axis=0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("which", JOINTS, ids=lambda which: f"{which.prior} / {which.likelihood}")
def test_the_log_joint_of_every_prior_and_likelihood_has_the_gradient_of_the_sum(which):
    rng = np.random.default_rng(0)
    case = problem(estimator(which), rng)
    model, params = case.estimator.model, case.estimator.layout.views(case.theta)
    w = 0.5 * rng.standard_normal((2, model.layout.size))
    c_prior, c_likelihood = rng.standard_normal((2, 2))
    buffers = Buffers()
    joint = model.forward(w.copy(), params, case.x, case.y, buffers)
    d_params = {name: np.full(shape, np.nan) for name, shape in model.learned()}
    d_w = model.vjp(joint, c_prior, c_likelihood, d_params, buffers)

    def total(w, params):
        j = model.forward(w, params, case.x, case.y, Buffers())
        return c_prior @ j.log_prior + c_likelihood @ j.log_likelihood

    assert relative_error(d_w, complex_gradient(lambda v: total(v, params), w)) <= 1e-12
    for name, _ in model.learned():
        slope = complex_gradient(
            lambda v, name=name: total(w.astype(complex), {**params, name: v}), params[name]
        )
        assert relative_error(d_params[name], slope) <= 1e-12


def test_the_likelihood_alone_is_that_of_the_joint():
    case = problem(estimator(JOINTS[0]), np.random.default_rng(0))
    model, params = case.estimator.model, case.estimator.layout.views(case.theta)
    w = np.random.default_rng(1).standard_normal((2, model.layout.size))
    buffers, other = Buffers(), Buffers()
    joint = model.forward(w.copy(), params, case.x, case.y, buffers)
    found = model.evaluate(w.copy(), params, case.x, case.y, other)
    assert np.array_equal(joint.log_likelihood, found.log_likelihood)
    ones, zeros = np.ones(2), np.zeros(2)
    alone = model.likelihood_vjp(found, ones, {}, other)
    assert np.array_equal(model.vjp(joint, zeros, ones, {}, buffers), alone)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"network": (2, 1)}, r"network must be an object of type MLP; got \(2, 1\)"),
        ({"prior": GaussianPrior}, r"prior must be an object such as .*; got the class"),
        ({"prior": GaussianLikelihood()}, "prior must be an object such as"),
        ({"likelihood": GaussianLikelihood}, "likelihood must be an object such as"),
        ({"likelihood": 0.1}, r"likelihood must be an object such as .*; got 0.1"),
    ],
)
def test_a_part_of_another_kind_is_refused_by_name(parts, message):
    with pytest.raises(TypeError, match=message):
        Model(**({"network": MLP((2, 1))} | parts))

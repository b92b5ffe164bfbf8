"""model: the log joint is the sum of its parts, and its gradient that of the sum."""

import numpy as np
import pytest
from problems import JOINTS

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.combinations import build_estimator, draw_case
from bbb_numpy.numeric.buffers import Buffers


def test_the_likelihood_alone_is_that_of_the_joint():
    case = draw_case(build_estimator(JOINTS[0]), np.random.default_rng(0))
    model, params = case.estimator.model, case.estimator.layout.views(case.theta)
    w = np.random.default_rng(1).standard_normal((2, model.layout.size))
    buffers, own_buffers = Buffers(), Buffers()
    joint = model.forward(w.copy(), params, case.x, case.y, buffers)
    evaluation = model.evaluate(w.copy(), params, case.x, case.y, own_buffers)
    assert np.array_equal(joint.log_likelihood, evaluation.log_likelihood)
    ones, zeros = np.ones(2), np.zeros(2)
    unused = {name: np.zeros_like(block) for name, block in params.items()}
    alone = model.likelihood_vjp(evaluation, ones, {}, own_buffers)
    assert np.array_equal(model.vjp(joint, zeros, ones, unused, buffers), alone)


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

"""workspace: buffers come back until shape or dtype changes; results do not depend on it."""

import numpy as np
from hypothesis import given
from problems import problems

from bbb_numpy import MLP
from bbb_numpy.numeric.buffers import Buffers


def test_a_buffer_is_reused_until_shape_or_dtype_changes():
    work = Buffers()
    first = work.array("a", (2, 3), np.float64)
    assert work.array("a", (2, 3), np.float64) is first
    assert work.array("b", (2, 3), np.float64) is not first
    assert work.array("a", (2, 4), np.float64) is not first
    assert work.array("a", (2, 3), np.float32).dtype == np.float32


def test_views_are_made_again_for_another_array_or_another_layout():
    work, a = Buffers(), np.zeros((1, 7))
    net, same_size = MLP((2, 1, 2)), MLP((6, 1))
    first = work.views("v", a, net.layers)
    assert work.views("v", a, net.layers) is first
    assert work.views("v", a.copy(), net.layers) is not first
    assert len(work.views("v", a, same_size.layers)) == 1


@given(problem=problems(), other=problems())
def test_a_workspace_used_before_gives_the_same_bits_as_none(problem, other):
    work = Buffers()
    for p in (other, problem, other, problem):
        value, grad, _ = p.estimator.value_and_grad(p.theta, p.noise, p.x, p.y, p.kl_weight, work)
        fresh_value, fresh_grad, _ = p.value_and_grad(p.theta)
        assert value == fresh_value
        assert np.array_equal(grad, fresh_grad)

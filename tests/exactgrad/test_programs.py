"""Programs traced elsewhere run as Python functions that have the lines of the user's files."""

import linecache
import sys

import numpy as np
import pytest

from exactgrad import prove
from exactgrad.programs import Program, Step, Variable, to_function

SOURCE = """\
def loss(theta, x):
    a = x @ theta
    z = (a
         * 2)
    z = z + square(a)
    return z.sum()
def square(q):
    return q * q
def backward(x, a):
    dz = 1
    da = 2 * dz + 3 * a
    return x.T @ da
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "user.py"
    path.write_text(SOURCE)
    return str(path)


def program(file, factor):
    """Return the steps of SOURCE, in which the backward pass has `factor` (2 is right) for 3."""
    theta, x = Variable("theta"), Variable("x")
    a, z, square, total, value, scaled, da, transposed, grad = (Variable() for _ in range(9))
    unused = Variable()
    steps = [
        Step(np.matmul, (x, theta), (a,), ((file, 2),)),
        Step(np.multiply, (a, 2), (z,), ((file, 4),)),
        Step(np.multiply, (a, a), (square,), ((file, 8), (file, 5))),
        Step(np.log, (a,), (unused,), ((file, 8), (file, 5))),
        Step(np.add, (z, square), (total,), ((file, 5),)),
        Step(np.sum, (total,), (value,), ((file, 6),)),
        Step(np.multiply, (a, factor), (scaled,), ((file, 11),)),
        Step(np.add, (scaled, 2), (da,)),
        Step(np.transpose, (x,), (transposed,), ((file, 12),)),
        Step(np.matmul, (transposed, da), (grad,), ((file, 12),)),
    ]
    return Program((theta, x), steps, (value, grad))


def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal(3), rng.standard_normal((4, 3))


def test_a_program_computes_what_its_steps_say(file):
    theta, x = data()
    value, grad = to_function(program(file, 2))(theta, x)
    a = x @ theta
    assert value == pytest.approx((2 * a + a * a).sum(), rel=1e-14)
    np.testing.assert_allclose(grad, x.T @ (2 * a + 2), rtol=1e-14)


def test_a_right_program_is_proved_and_a_wrong_one_is_refuted_at_the_line_of_the_user(file):
    assert prove(to_function(program(file, 2)), *data())
    proof = str(prove(to_function(program(file, 3)), *data()))
    assert (
        "look at line 11 of user.py, `da = 2 * dz + 3 * a`: this line with 2 in place of 3 makes"
        in proof
    )


def test_each_line_runs_once_in_the_order_and_with_the_variables_of_the_user(file):
    events = []

    def trace(frame, event, _):
        if event == "line" and frame.f_code.co_filename == file:
            names = [name for name in frame.f_locals if not name.startswith("_")]
            events.append((frame.f_lineno, names, frame.f_back.f_code.co_filename == file))
        return trace

    function = to_function(program(file, 2))
    outer = sys.gettrace()
    sys.settrace(trace)
    function(*data())
    sys.settrace(outer)
    lines = [line for line, _, _ in events]
    assert lines == [2, 3, 5, 8, 6, 11, 12]
    assert {"a", "z"} <= set(events[2][1])
    assert events[3] == (8, ["a"], True)  # square, called from line 5
    assert "da" in events[-1][1]


def test_an_error_names_the_line_of_the_user(file):
    x = Variable("x")
    y = Variable()
    steps = [Step(int, (x,), (y,), ((file, 8), (file, 5)))]
    proof = prove(to_function(Program((x,), steps, (y, x))), np.array(0.5))
    assert proof.verdict == "not traceable"
    assert "`return q * q`" in proof.reason


def test_a_variable_that_is_assigned_again_keeps_its_earlier_value_for_later_steps(tmp_path):
    path = tmp_path / "again.py"
    path.write_text("z = x + 1\nz = z * 2\ny = 0\n")
    x, first, second, third = Variable("x"), Variable(), Variable(), Variable()
    steps = [
        Step(np.add, (x, 1), (first,), ((str(path), 1),)),
        Step(np.multiply, (first, 2), (second,), ((str(path), 2),)),
        Step(np.subtract, (second, first), (third,), ((str(path), 3),)),
    ]
    function = to_function(Program((x,), steps, (first, second, third, x, 5)))
    assert function(3.0) == (4.0, 8.0, 4.0, 3.0, 5)


def test_steps_of_several_outputs_and_of_no_lines():
    x, quotient, rest = Variable("x"), Variable(), Variable()
    steps = [Step(divmod, (x, 3), (quotient, rest))]
    assert to_function(Program((x,), steps, (rest,)))(7) == (1,)
    assert to_function(Program((x,), steps, (rest, quotient)))(7) == (1, 2)
    assert to_function(Program((), [], (4,)))() == (4,)


def test_a_file_that_is_no_python_is_no_obstacle():
    linecache.cache["<page>"] = (3, None, ["z = = 1\n"], "<page>")
    x, y = Variable(), Variable()
    assert to_function(Program((x,), [Step(abs, (x,), (y,), (("<page>", 1),))], (y,)))(-1) == (1,)

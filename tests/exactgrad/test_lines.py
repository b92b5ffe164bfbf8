"""lines: the verdict on a wrong gradient says at which of its lines to look."""

import gc
import inspect
import linecache
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from bbb_numpy.numeric.elementary import erfc
from exactgrad import prove

RNG = np.random.default_rng(0)
normal = RNG.standard_normal


def network(theta, x, y):
    w, b, v = theta[:6].reshape(2, 3), theta[6:9], theta[9:12]
    z = x @ w + b
    h = np.tanh(z)
    f = h @ v
    off = f - y
    d_f = off / len(y)
    d_v = h.T @ d_f
    d_h = d_f[:, None] * v
    d_z = d_h * (1 - h**2)
    grad = np.zeros_like(theta)
    grad[:6] = (x.T @ d_z).ravel()
    grad[6:9] = d_z.sum(axis=0)
    grad[9:] = d_v
    return (off**2).mean() / 2, grad


def classes(theta, x, y):
    weights = [theta[:8].reshape(2, 4), theta[8:20].reshape(4, 3)]
    kept = [x]
    kept.append(np.maximum(x @ weights[0], 0))
    scores = kept[-1] @ weights[1]
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    value = -np.log(p[rows, y]).sum()
    delta = p - 1.0 * (np.arange(3) == y[:, None])
    grads = []
    for layer in (1, 0):
        step = kept[layer].T @ delta
        grads.insert(0, step.ravel())
        delta = delta @ weights[layer].T * (kept[layer] > 0)
    return value, np.concatenate(grads)


class Dense:
    def __init__(self, weight):
        self.weight = weight

    def forward(self, x):
        self.x = x
        return x @ self.weight

    def backward(self, d_y):
        self.d_weight = self.x.T @ d_y
        return d_y @ self.weight.T


def objects(theta, x, y):
    one, two = Dense(theta[:6].reshape(2, 3)), Dense(theta[6:].reshape(3, 1))
    off = two.forward(one.forward(x))[:, 0] - y
    one.backward(two.backward(off[:, None]))
    return (off**2).sum() / 2, np.concatenate([one.d_weight.ravel(), two.d_weight.ravel()])


def add_to(total, array, factor):
    total += array * factor


def summed(theta, x, y, lam):
    off = x @ theta - y
    loss, penalty = (off**2).sum() / 2, (theta**2).sum() / 2
    grad = np.zeros_like(theta)
    add_to(grad, x.T @ off, 1)
    add_to(grad, theta, lam)
    return loss + lam * penalty, grad


AT = {
    network: (normal(12), normal((5, 2)), normal(5)),
    classes: (normal(20), normal((6, 2)), np.array([0, 1, 2, 2, 1, 0])),
    objects: (normal(9), normal((5, 2)), normal(5)),
    summed: (normal(2), normal((5, 2)), normal(5), 0.5),
}
MUTANTS = [
    (network, "off / len(y)", "off * len(y)"),
    (network, "h.T @ d_f", "-h.T @ d_f"),
    (network, "d_f[:, None] * v", "d_f[:, None] / v"),
    (network, "d_h * (1 - h**2)", "d_h"),
    (network, "d_h * (1 - h**2)", "d_h * (1 - h)"),
    (network, "(x.T @ d_z).ravel()", "(d_z.T @ x).ravel()"),
    (network, "d_z.sum(axis=0)", "d_z.mean(axis=0)"),
    (classes, "p - 1.0", "p - 2.0"),
    (classes, "kept[layer].T @ delta", "kept[layer].T @ delta / 2"),
    (objects, "one.d_weight.ravel(), two", "one.d_weight.T.ravel(), two"),
    (classes, "delta @ weights[layer].T * (", "delta @ weights[layer].T * 2 * ("),
    (objects, "self.x.T @ d_y", "self.x.T @ d_y * 2"),
    (objects, "d_y @ self.weight.T", "d_y @ self.weight.T * 2"),
    (summed, "(grad, x.T @ off, 1)", "(grad, x.T @ y, 1)"),
    (summed, "(grad, theta, lam)", "(grad, theta, 2 * lam)"),
    (summed, "array * factor", "array * factor**2"),
]  # fmt: skip
SOURCE = "".join(inspect.getsource(one) for one in (Dense, add_to, *AT))


def changed(function, old, new):
    """The function with other text, and the number of the line that changes."""
    assert SOURCE.count(old) == 1
    lines = SOURCE.replace(old, new).splitlines(keepends=True)
    linecache.cache["<mutant>"] = (0, None, lines, "<mutant>")
    names = {"np": np}
    exec(compile("".join(lines), "<mutant>", "exec"), names)
    return names[function.__name__], SOURCE[: SOURCE.index(old)].count("\n") + 1


@pytest.mark.parametrize("function", AT)
def test_the_originals_are_proved(function):
    assert prove(function, *AT[function], n_points=0)


@pytest.mark.parametrize(("function", "old", "new"), MUTANTS)
def test_the_line_that_is_changed_is_named(function, old, new):
    mutant, line = changed(function, old, new)
    verdict = str(prove(mutant, *AT[function], n_points=0))
    assert f"look at line {line} of <mutant>, `" in verdict


def test_of_a_text_that_was_run_no_line_is_named():
    names = {"np": np}
    exec(inspect.getsource(network).replace("d_h * (1 - h**2)", "d_h"), names)
    assert "look at" not in str(prove(names["network"], *AT[network], n_points=0))


def test_it_is_named_whenever_garbage_is_collected_and_someone_listens():
    def heard(phase, info):
        gc.set_threshold(int(RNG.integers(1, 9)))

    mutant, line = changed(network, "d_h * (1 - h**2)", "d_h")
    often = gc.get_threshold()
    gc.callbacks.append(heard)
    gc.set_threshold(1)
    try:
        verdict = str(prove(mutant, *AT[network], n_points=0))
    finally:
        gc.set_threshold(*often)
        gc.callbacks.remove(heard)
    assert f"look at line {line} of <mutant>, `" in verdict
    assert gc.isenabled()


def test_a_line_that_computes_nothing_is_named_after_the_last_right_result():
    mutant, _ = changed(network, "d_h * (1 - h**2)", "d_h")
    verdict = str(prove(mutant, *AT[network], n_points=0))
    assert verdict.endswith("`d_z = d_h`: `d_f[:, None] * v` is right, but not what becomes of it")


def test_the_change_that_makes_all_derivatives_right_is_told():
    def poisson(theta, x, y):
        eta = x @ theta
        grad = x.T @ np.exp(eta)
        grad += x.T @ y
        return (np.exp(eta) - y * eta).sum(), grad

    verdict = str(prove(poisson, normal(3), normal((5, 3)), np.arange(5)))
    line = poisson.__code__.co_firstlineno
    assert (
        f"look at line {line + 3} of {Path(__file__).name}, `grad += x.T @ y`: `grad += x.T @ y` "
        "with - in place of + makes all derivatives right" in verdict
    )


def test_an_array_that_is_written_into_and_then_not_used_is_told():
    def swapped(theta, x, y):
        off = x @ theta - y
        loss = (off**2).sum() / 2 + 0.3 * np.exp(theta).sum()
        penalty, grad = np.exp(theta), x.T @ off
        add_to(penalty, grad, 0.3)
        return loss, grad

    verdict = str(prove(swapped, normal(3), normal((5, 3)), normal(5)))
    assert "`total += array * factor`: what it writes is not used" in verdict


def test_an_earlier_result_of_the_function_is_tried_as_an_operand():
    def ratios(theta, x):
        first, second = np.exp(x @ theta), np.exp(2 * (x @ theta))
        sums = [one.sum() for one in (first, second)]
        slopes = [x.T @ first, 2 * x.T @ second]
        grad = slopes[0] / sums[0] + slopes[1] / sums[0]
        return np.log(sums[0]) + np.log(sums[1]), grad

    verdict = str(prove(ratios, normal(3), normal((5, 3))))
    line = ratios.__code__.co_firstlineno + 4
    assert f"look at line {line} of " in verdict


def test_the_method_dot_is_a_step_of_the_function():
    def layer(theta, x, y):
        off = x.dot(theta.reshape(2, 3)) - y
        grad = off.T.dot(x)
        return (off**2).sum() / 2, grad.ravel()

    verdict = str(prove(layer, normal(6), normal((5, 2)), normal((5, 3)), n_points=0))
    assert "`grad = off.T.dot(x)`: `off.T.dot(x)` transposed makes" in verdict


def test_what_erfc_computes_for_its_own_derivative_is_no_step_of_the_function():
    def gelu(theta):  # several runs: only in the first ones theta moves
        phi = erfc(-theta * 0.5**0.5) / 2
        density = np.exp(-theta * theta / 2) / np.sqrt(2 * np.pi)
        return (theta * phi).sum(), phi - theta * density

    verdict = str(prove(gelu, normal(60), n_points=0))
    assert "`phi - theta * density` with + in place of - makes" in verdict


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("at", [99.0, 200.0, 300.0])
def test_numbers_beyond_the_floats_do_not_warn_when_a_refutation_is_printed(at):
    def powers(theta):
        large = np.exp(theta)
        return (large**3).sum(), np.cos(large) + np.tanh(theta)

    assert "refuted" in str(prove(powers, np.array([0.5, at])))


def test_without_a_source_and_for_a_large_theta_no_line_is_named():
    names = {}
    exec("def f(theta):\n    return (theta**2).sum(), theta * theta", names)
    assert "look at" not in str(prove(names["f"], normal(3)))
    assert "look at" not in str(prove(lambda t: ((t**2).sum(), t * t), normal(300)))


def test_a_function_that_remembers_is_not_watched_and_keeps_its_verdict():
    calls = []

    def remembers(theta):
        calls.append(1)
        extra = theta * 1.5 if len(calls) % 2 else None
        return (theta**2).sum(), 3 * theta if extra is None else 2 * extra

    assert str(prove(remembers, normal(3))).startswith("refuted: 3 of 3 ")


def test_nothing_is_watched_where_a_gradient_is_proved_or_no_verdict_is_printed(monkeypatch):
    traced = []
    monkeypatch.setattr(sys, "settrace", traced.append)
    proof = prove(network, *AT[network])
    assert str(proof).startswith("proved")
    wrong = prove(lambda t: ((t**2).sum(), 3 * t), normal(3))
    assert wrong.verdict == "refuted"
    assert not traced


def test_a_tracer_that_was_there_is_there_again():
    before = sys.gettrace()
    str(prove(lambda t: ((t**2).sum(), 3 * t), normal(3)))
    assert sys.gettrace() is before


def test_a_verdict_can_be_sent_to_another_process():
    proof = prove(lambda t: ((t**2).sum(), 3 * t), normal(3))
    sent = pickle.loads(pickle.dumps(proof))
    assert sent == proof
    assert str(proof).startswith(str(sent))

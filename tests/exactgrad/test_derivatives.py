"""shapes: each derivative that is right is proved and checked, each planted error is named."""

from typing import NamedTuple

import numpy as np
import pytest

import bbb_numpy
from bbb_numpy import check
from exactgrad import prove, prove_same

RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((2, 3)), np.array([1.5, 0.5, -0.7])
EVERY = ("prove", "check")


def asked(how, shape):
    return getattr(bbb_numpy, f"{how}_{shape}")


def row_sums(x, a):  # of squares times a
    return (x**2 * a).sum(axis=1)


def rosenbrock(t):
    first, rest = t[:-1], t[1:] - t[:-1] ** 2
    slope = np.zeros_like(t)
    slope[:-1] = -2 * (1 - first) - 400 * first * rest
    slope[1:] += 200 * rest
    return ((1 - first) ** 2 + 100 * rest**2).sum(), slope


def rosenbrock_hessian(t):
    out = np.zeros((len(t), len(t)), t.dtype)
    for i in range(len(t) - 1):
        out[i, i] += 2 - 400 * t[i + 1] + 1200 * t[i] ** 2
        out[i, i + 1] = out[i + 1, i] = -400 * t[i]
        out[i + 1, i + 1] += 200
    return out


def jacobian(x, a, wrong=0):
    out = np.zeros((2, 2, 3), x.dtype)
    out[0, 0], out[1, 1] = 2 * x[0] * a, 2 * x[1] * a
    out[1, 0, 2] += wrong * x[0, 2]
    return out


def off(hessian):
    def wrong(t):
        out = hessian(t)
        out[0, 2] = out[2, 0] = 1.0
        return out

    return wrong


# of a shape f, its derivative, theta, arguments, a wrong derivative, and the name of its error
SHAPES = {
    "vjp": (row_sums, lambda x, u, a: 2 * x * a * u[:, None], X, (2.5,),
            lambda x, u, a: 2 * x * u[:, None] * np.array([a, a, a - 1]), "theta[0, 2]"),
    "jvp": (row_sums, lambda x, t, a: (2 * x * a * t).sum(1), X, (2.5,),
            lambda x, t, a: (2 * x * a * t).sum(1) * np.array([1, 1.5]), "value[1]"),
    "jacobian": (row_sums, jacobian, X, (2.5,),
                 lambda x, a: jacobian(x, a, 1), "value[1] by theta[0, 2]"),
    "hvp": (rosenbrock, lambda t, v: rosenbrock_hessian(t) @ v, V, (),
            lambda t, v: rosenbrock_hessian(t) @ v * np.array([1, 2, 1]), "gradient[1]"),
    "hessian": (rosenbrock, rosenbrock_hessian, V, (), off(rosenbrock_hessian),
                "gradient[0] by theta[2]"),
}  # fmt: skip


@pytest.mark.equation("D44")
@pytest.mark.parametrize("how", EVERY)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_right_passes_and_one_line_switches_from_proved_to_checked(how, shape):
    f, right, theta, arguments, _, _ = SHAPES[shape]
    assert asked(how, shape)(f, right, theta, *arguments)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_error_is_refuted_and_named(shape):
    f, _, theta, arguments, wrong, name = SHAPES[shape]
    proof = asked("prove", shape)(f, wrong, theta, *arguments)
    assert proof.verdict == "refuted"
    assert name in [one.name for one in proof.wrong]
    assert all(one.by_hand != one.right for one in proof.wrong)
    report = asked("check", shape)(f, wrong, theta, *arguments)
    assert not report
    rows = [block.worst if shape == "vjp" else block.name for block in report.blocks]
    assert name.split(" by ")[0] in rows[-1 if shape == "vjp" else 0 :]


def test_a_gradient_in_a_tuple_is_not_taken_for_a_value_with_its_gradient():
    def gradient(theta):
        a, b = theta
        return a * b.sum(), b * b

    def product(theta, along):
        (a, b), (s, t) = theta, along
        return s * b.sum() + a * t.sum(), 2 * b * t

    assert bbb_numpy.prove_hvp(gradient, product, (V[:2], V))


def test_derivatives_are_counted():
    count = {"vjp": 6, "jvp": 2, "jacobian": 12, "hvp": 3, "hessian": 9}
    for shape, (f, right, theta, arguments, _, _) in SHAPES.items():
        assert asked("prove", shape)(f, right, theta, *arguments).coordinates == count[shape]


NONLINEAR = {  # right along the axes or for u = 1, and no product
    "vjp": lambda x, u, a: 2 * x * a * u[:, None] ** 2,
    "jvp": lambda x, t, a: (2 * x * a * t * t).sum(1),
    "jvp of sizes": lambda x, t, a: (2 * x * a * np.abs(t)).sum(1),
}


@pytest.mark.parametrize("name", NONLINEAR)
@pytest.mark.parametrize("how", EVERY)
def test_a_product_that_is_not_linear_is_refused(how, name):
    assert not asked(how, name[:3])(row_sums, NONLINEAR[name], X, 2.5)


@pytest.mark.parametrize("shape", ["hvp", "hessian"])
def test_of_second_derivatives_the_gradient_is_proved_first_where_there_is_a_value(shape):
    _, right, theta, _, _, _ = SHAPES[shape]

    def wrong(t):  # has its own second derivatives, and is no gradient of the value
        return rosenbrock(t)[0] * 2, rosenbrock(t)[1]

    proof = asked("prove", shape)(wrong, right, theta)
    assert [one.name for one in proof.wrong] == ["theta[0]", "theta[1]", "theta[2]"]
    assert not asked("check", shape)(wrong, right, theta)
    assert asked("prove", shape)(lambda t: rosenbrock(t)[1], right, theta)
    assert asked("check", shape)(lambda t: rosenbrock(t)[1], right, theta)


def test_a_transposed_jacobian_is_refused_in_words():
    with pytest.raises(ValueError, match=r"must begin with \(2,\); got \(3, 2\)"):
        bbb_numpy.prove_jacobian(lambda t: t[:2], lambda t: np.eye(3, 2), V)
    square = bbb_numpy.prove_jacobian(
        lambda t: np.array([t[1], 2 * t[0]]), lambda t: np.array([[0, 2], [1, 0]]), V[:2]
    )
    assert square.verdict == "refuted"


@pytest.mark.parametrize("how", EVERY)
def test_what_cannot_be_called_is_named(how):
    for shape in ("vjp", "jvp", "jacobian"):
        with pytest.raises(TypeError, match=f"{shape} must be a function; got 3"):
            asked(how, shape)(row_sums, 3, X, 1.0)
        with pytest.raises(TypeError, match="f must be a function; got 3"):
            asked(how, shape)(3, row_sums, X, 1.0)


def test_other_paths_are_tried_along_the_tangent():
    def relu(x):
        return np.maximum(x, 0)

    positive = np.abs(X)
    assert bbb_numpy.prove_jvp(relu, lambda x, t: t, positive, n_points=0)
    assert not bbb_numpy.prove_jvp(relu, lambda x, t: t, positive)
    assert bbb_numpy.prove_jvp(relu, lambda x, t: (x > 0) * t, positive)


def test_data_are_fixed_by_name_in_every_shape():
    def scaled(x, a):
        return a * x

    proof = bbb_numpy.prove_vjp(scaled, lambda x, u, a: a * a * u, X, np.ones(3))
    assert "for these a alone" in proof.reason
    assert bbb_numpy.prove_vjp(scaled, lambda x, u, a: a * a * u, X, np.ones(3), fixed="a")
    jvp = bbb_numpy.prove_jvp(scaled, lambda x, t, a: a * a * t, X, np.ones(3), fixed="a")
    assert str(jvp) == "proved for these a: all 6 derivatives are exact"


# --- structures of arrays


class Weights(NamedTuple):
    W: np.ndarray
    b: np.ndarray


def of_layer(x):
    def value_and_grad(p):
        z = p["W"] @ x + p["b"]
        return (z**2).sum(), {"b": 2 * z, "W": 2 * np.outer(z, x)}

    return value_and_grad


STRUCTURES = {
    "a dict, in another order": (of_layer(V), {"W": X, "b": V[:2]}, "W[0, 2]"),
    "a named tuple": (
        lambda p: (lambda v, g: (v, Weights(g["W"], g["b"])))(*of_layer(V)(p._asdict())),
        Weights(X, V[:2]), "W[0, 2]"),
    "a tuple": (
        lambda p: (lambda v, g: (v, (g["W"], g["b"])))(*of_layer(V)({"W": p[0], "b": p[1]})),
        (X, V[:2]), "theta[0][0, 2]"),
    "a list of dicts": (
        lambda p: (lambda v, g: (v, [g]))(*of_layer(V)(p[0])), [{"W": X, "b": V[:2]}],
        "theta[0].W[0, 2]"),
    "a matrix": (
        lambda w: (lambda v, g: (v, g["W"]))(*of_layer(V)({"W": w, "b": 1})), X, "theta[0, 2]"),
    "coefficients and an intercept": (
        lambda p: (((X @ p[0] + p[1]) ** 2).sum(),
                   (2 * (X @ p[0] + p[1]) @ X, 2 * (X @ p[0] + p[1]).sum())),
        (V, 0.5), "theta[0][2]"),
}  # fmt: skip


def first_row_off(grad):
    """The third number of the first array off by a factor."""
    if isinstance(grad, np.ndarray):
        change = np.ones(grad.shape)
        change[(0,) * (grad.ndim - 1) + (2,)] = 1.5
        return grad * change
    if isinstance(grad, dict):
        return grad | {"W": first_row_off(grad["W"])}
    changed = [first_row_off(grad[0]), *grad[1:]]
    return type(grad)(*changed) if isinstance(grad, Weights) else type(grad)(changed)


@pytest.mark.equation("D44")
@pytest.mark.parametrize("name", STRUCTURES)
def test_gradients_in_structures_are_proved_and_their_coordinates_named_by_path(name):
    right, theta, coordinate = STRUCTURES[name]
    assert prove(right, theta)
    assert check(right, theta)

    def wrong(p):
        value, grad = right(p)
        return value, first_row_off(grad)

    assert [one.name for one in prove(wrong, theta).wrong] == [coordinate]
    assert check(wrong, theta).worst.worst == coordinate


UNLIKE = {
    "a part that is missing": (lambda p: (p["a"].sum(), {"a": 1 + 0 * p["a"]}), r"parts \['a', 'b"),
    "a part of another shape": (
        lambda p: (p["a"].sum(), {"a": 1.0, "b": 0 * p["b"]}), r"at a; got \(\)"),
    "an array": (lambda p: (p["a"].sum(), p["a"]), r"got \['theta'\]"),
    "no value": (lambda p: p, "must return"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
@pytest.mark.parametrize("how", [prove, check])
def test_a_gradient_of_another_structure_is_refused_in_words(how, name):
    program, said = UNLIKE[name]
    with pytest.raises(ValueError, match=said):
        how(program, {"a": V, "b": X})


def test_overwriting_one_of_several_arrays_is_seen():
    def overwrites(p):
        p[0][...] = 1
        return p[0].sum() + (p[1] ** 2).sum(), (0 * V, 2 * p[1])

    assert "overwrites theta" in prove(overwrites, (V, X)).reason


def test_a_layer_of_several_arrays_forwards_and_backwards():
    def forward(p, x):
        return {"out": x @ p["W"].T + p["b"], "norm": (p["W"] ** 2).sum()}

    def backward(p, u, x, twice=1):
        weights = u["out"].T @ x + 2 * u["norm"] * p["W"] * twice
        return {"W": weights, "b": u["out"].sum(axis=0)}

    theta, x = {"W": X, "b": V[:2]}, RNG.standard_normal((5, 3))
    assert bbb_numpy.prove_vjp(forward, backward, theta, x)
    wrong = bbb_numpy.prove_vjp(forward, lambda *at: backward(*at, twice=2), theta, x)
    assert {one.name[0] for one in wrong.wrong} == {"W"}
    assert not bbb_numpy.check_vjp(forward, lambda *at: backward(*at, twice=2), theta, x)


# --- noise


def test_a_seeded_generator_is_an_argument_that_starts_anew_in_each_call():
    def noisy(t, rng):
        eps = rng.standard_normal(t.shape)
        return (eps * t**2).sum(), 2 * eps * t

    for how in (prove, check):
        assert how(noisy, V, np.random.default_rng(3))
        assert how(lambda t: noisy(t, np.random.default_rng(3)), V)
    drawn_on = np.random.default_rng(3)
    assert "two calls" in prove(lambda t: noisy(t, drawn_on)[:1] + noisy(t, drawn_on)[1:], V).reason


# --- values


def test_values_that_are_arrays_are_compared_entry_by_entry():
    def gram(x):
        return x @ x.T

    assert prove_same(gram, lambda x: np.einsum("ik,jk->ij", x, x), X).coordinates == 4
    wrong = prove_same(gram, lambda x: gram(x) * np.array([[1, 1], [2, 1]]), X)
    assert [one.name for one in wrong.wrong] == ["value[1, 0]"]
    assert str(wrong).startswith("refuted: 1 of 4 values is wrong\n  value[1, 0]: by hand ")
    both = prove_same(lambda x: {"a": x, "b": (x, x)}, lambda x: {"b": (x, 2 * x), "a": x}, V)
    assert [one.name for one in both.wrong] == ["b[1][0]", "b[1][1]", "b[1][2]"]
    with pytest.raises(
        ValueError, match=r"the second value must have shape .* at value; got \(3,\)"
    ):
        prove_same(gram, lambda x: x[0], X)

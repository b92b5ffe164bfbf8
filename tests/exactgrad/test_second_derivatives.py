"""Second derivatives: of a value alone by dual numbers, of a gradient as its derivatives.

That dual numbers have the second derivatives of NumPy's functions is tested with their first ones,
in test_arrays.
"""

import numpy as np
import pytest
from gallery.second_derivatives import SECOND_DERIVATIVES
from scipy import special

from exactgrad import prove, prove_gauss_newton, prove_hessian, prove_hvp, stop_gradient
from exactgrad.fields.dual import DualField
from exactgrad.fields.finite import Gauss, Prime, Towers
from exactgrad.structures import StructureError

THREE = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).uniform(0.2, 0.9, (3, 3))


@pytest.mark.parametrize("base", [Prime(0), Gauss(0), Towers(0)])
def test_dual_numbers_are_a_ring_over_each_field(base):
    field = DualField(base)
    a, b, c = (field.join(base.draw((2, 3)), base.draw((2, 3))) for _ in range(3))
    equal = np.testing.assert_array_equal
    equal(field.mul(a, field.add(b, c)), field.add(field.mul(a, b), field.mul(a, c)))
    equal(field.mul(a, field.mul(b, c)), field.mul(field.mul(a, b), c))
    equal(field.mul(a, field.inv(a)), np.broadcast_to(field.one, a.shape))
    equal(field.add(a, field.neg(a)), 0 * a)
    equal(field.sub(a, b), field.add(a, field.neg(b)))
    e = field.join(0 * base.one, base.one)
    equal(field.mul(e, e), 0 * e)
    cos, sin = field.cos_and_sin(a)
    unit = field.add(field.mul(cos, cos), field.mul(sin, sin))
    equal(unit, np.broadcast_to(field.one, a.shape))
    equal(field.sum(a, 0), field.add(a[0], a[1]))
    left, right = a[:, :2], b.swapaxes(0, 1)[:2]
    entries = [[field.sum(field.mul(row, column), 0) for column in right.swapaxes(0, 1)]
               for row in left]  # fmt: skip
    equal(field.matmul(left, right), np.array(entries))


# --- the ten of the gallery


@pytest.mark.parametrize("item", SECOND_DERIVATIVES, ids=lambda item: item.ask.__name__)
def test_a_second_derivative_of_the_gallery_is_proved_and_its_mistake_refuted(item):
    proof = item.ask()
    assert proof.verdict == "proved", proof
    assert item.ask_with_mistake().verdict == "refuted"


# --- attacks


def norm(t):
    r = np.sqrt((t**2).sum())
    return r, (np.eye(3) - np.outer(t, t) / r**2) / r


def filled(t):
    out = np.zeros(3)
    out[0] = t[0] * t[1]
    out[1:] = t[1:] ** 2
    hessian = np.zeros((3, 3))
    hessian[0, 1] = hessian[1, 0] = 1
    hessian[1, 1] = hessian[2, 2] = 2
    return out.sum(), hessian


def soft_maximum(t):
    p = np.exp(t - special.logsumexp(t))
    return special.logsumexp(t), np.diag(p) - np.outer(p, p)


def masked(t):
    p = np.exp(np.where([True, True, False], t, -1e9))
    p = p / p.sum()
    value = np.log(np.exp(np.where([True, True, False], t, -1e9)).sum())
    return value, np.diag(p) - np.outer(p, p)


RIGHT = {
    "a root": norm,
    "arrays that are filled": filled,
    "a logarithm of exponentials": soft_maximum,
    "a mask": masked,
    "a kink": lambda t: ((np.abs(t) * t).sum(), np.diag(2 * np.sign(t))),
    "an opaque function": lambda t: (
        special.gammaln(t + 1).sum(), np.diag(special.polygamma(1, t + 1))),
    "an opaque function of an opaque function": lambda t: (
        special.erf(np.arctan(t)).sum(),
        np.diag(2 / np.sqrt(np.pi) * np.exp(-np.arctan(t) ** 2) / (1 + t**2) ** 2
                * (-2 * np.arctan(t) - 2 * t))),
    "a constant": lambda t: ((stop_gradient(t) * t).sum(), np.zeros((3, 3))),
    "a rounded factor": lambda t: ((np.round(9 * t) * t**2).sum(), np.diag(2 * np.round(9 * t))),
}  # fmt: skip


SLOW = {"a root", "an opaque function", "an opaque function of an opaque function"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in RIGHT]
)
def test_a_hessian_is_proved_from_the_value_and_refuted_if_it_is_changed(name):
    function = RIGHT[name]
    assert prove(function, THREE, order=2).verdict == "proved"
    if name == "a constant":
        return

    def doubled(t):
        value, hessian = function(t)
        return value, 2 * hessian

    def not_symmetric(t):
        value, hessian = function(t)
        return value, hessian + np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0]])

    assert prove(doubled, THREE, order=2).verdict == "refuted"
    proof = prove(not_symmetric, THREE, order=2)
    assert proof.verdict == "refuted"
    assert {"gradient[0] by theta[1]", "gradient[1] by theta[0]"} == {
        error.name for error in proof.wrong
    }


def test_the_verdict_names_the_second_derivative_that_is_wrong_and_the_right_number():
    def wrong(t):
        return (t**3).sum(), np.diag([6, 6, 3] * t)

    (error,) = prove(wrong, THREE, order=2).wrong
    assert error.name == "gradient[2] by theta[2]"
    assert (float(error.by_hand), float(error.right)) == pytest.approx((0.9, 1.8))


def cubes(t):
    return (t**3).sum(), 3 * t**2, 6 * np.diag(t)


def test_the_gradient_is_proved_before_the_hessian():
    assert prove(cubes, THREE, order=2).coordinates == 9
    wrong_gradient = prove(lambda t: (2 * cubes(t)[0], *cubes(t)[1:]), THREE, order=2)
    assert wrong_gradient.verdict == "refuted"
    assert [error.name for error in wrong_gradient.wrong] == [f"theta[{i}]" for i in range(3)]
    wrong_pair = prove(lambda t: (cubes(t)[0], 2 * cubes(t)[1], 2 * cubes(t)[2]), THREE, order=2)
    assert [error.name for error in wrong_pair.wrong] == [f"theta[{i}]" for i in range(3)]
    wrong_hessian = prove(lambda t: (*cubes(t)[:2], 2 * cubes(t)[2]), THREE, order=2)
    assert len(wrong_hessian.wrong) == 3


def test_a_product_is_one_with_the_first_argument_for_all_vectors():
    def product(t, v, a):
        return (a * t**3).sum(), 3 * a * t**2, 6 * a * t * v

    def of_structure(t, v):
        value = (t["a"] ** 2).sum() * t["b"].sum()
        a = 2 * t["a"] * v["b"].sum() + 2 * v["a"] * t["b"].sum()
        return value, {"a": a, "b": 2 * t["a"] @ v["a"] + 0 * t["b"]}

    a = np.array([1.5, 2.5, -0.5])
    assert prove(product, THREE, np.ones(3), a, order=2)
    assert prove(lambda *given: product(*given)[::2], THREE, np.ones(3), a, order=2)
    squared = prove(lambda t, v, a: product(t, v * v, a), THREE, np.ones(3), a, order=2)
    assert squared.verdict == "refuted"  # is right for ones alone
    tree = {"a": THREE, "b": THREE[:2]}
    assert prove(of_structure, tree, tree, order=2)
    wrong = prove(lambda t, v: of_structure(t, {**v, "b": 2 * v["b"]}), tree, tree, order=2)
    assert [error.name for error in wrong.wrong] == ["a[0]", "a[1]", "a[2]"]


def test_functions_for_hessians_take_a_value_alone():
    assert prove_hessian(lambda t: (t**3).sum(), lambda t: 6 * np.diag(t), THREE)
    assert prove_hvp(lambda t: (t**3).sum(), lambda t, v: 6 * t * v, THREE)
    assert not prove_hessian(lambda t: (t**3).sum(), lambda t: 3 * np.diag(t), THREE)
    assert not prove_hvp(lambda t: (t**3).sum(), lambda t, v: 6 * v, THREE)


def test_there_is_no_second_derivative_where_it_is_infinite():
    def three_halves(t):
        with np.errstate(divide="ignore"):
            return (t**1.5).sum(), np.diag(0.75 * t**-0.5)

    proof = prove(three_halves, np.array([0.0, 1.0]), order=2)
    assert (proof.verdict, "no derivative here" in proof.reason) == ("not proved", True)


def residuals(t, x):
    return np.tanh(x @ t)


def gauss_newton(t, x):
    slopes = (1 - np.tanh(x @ t) ** 2)[:, None] * x
    return slopes.T @ slopes


def test_a_gauss_newton_matrix_is_no_hessian():
    assert prove_gauss_newton(residuals, gauss_newton, THREE, X)
    hessian = prove(
        lambda t, x: ((residuals(t, x) ** 2).sum() / 2, gauss_newton(t, x)),
        THREE,
        X,
        order=2,
    )
    assert hessian.verdict == "refuted"


def test_a_gauss_newton_product_is_for_all_vectors_and_structures_of_outputs():
    def product(t, v, x):
        return gauss_newton(t, x) @ v

    def outputs(t, x):
        return {"first": residuals(t, x[:1]), "others": [residuals(t, x[1:])]}

    for f in (residuals, outputs):
        assert prove_gauss_newton(f, product, THREE, X, product=True)
        wrong = prove_gauss_newton(
            f, lambda t, v, x: product(t, np.abs(v), x), THREE, X, product=True
        )
        assert wrong.verdict == "refuted"


@pytest.mark.parametrize(
    ("function", "arguments", "order", "said"),
    [
        (cubes, (), 3, "order must be 1 or 2; got 3"),
        (lambda t: (t.sum(),), (), 2, "value, gradient, second"),
        (lambda t: t.sum(), (), 2, "value, gradient, second"),
        (lambda t: ((t**2).sum(), 2 * t, 2 + 0 * t), (), 2, "a product with the Hessian"),
        (lambda t, x: ((t**2).sum(), 2 * t, 2 + 0 * t), (X,), 2, "a product with the Hessian"),
        (lambda t: ((t**2).sum(), 2 * np.eye(2)), (), 2, "shape"),
    ],
)
def test_what_is_no_second_derivative_is_refused_in_words(function, arguments, order, said):
    with pytest.raises((StructureError, ValueError), match=said):
        prove(function, THREE, *arguments, order=order)

"""proofs: what is proved, refuted, not proved and not traceable."""

import math
import pickle
from itertools import islice

import numpy as np
import pytest
from scipy.special import dawsn

import bbb_numpy
from bbb_numpy import plain
from exactgrad import Proof, prove, prove_same
from exactgrad.proofs import _other_thetas

POINT = np.array([0.3, -0.7, 1.9])


# --- the verdicts


def logistic(theta, x, y):
    z = x @ theta
    p = 1 / (1 + np.exp(-z))
    return (np.log1p(np.exp(z)) - y * z).sum(), x.T @ (p - y)


DATA = np.random.default_rng(0).standard_normal((5, 3)), np.array([0, 1, 1, 0, 1])


@pytest.mark.equation("D44")
def test_a_students_own_gradient_is_proved():
    proof = bbb_numpy.prove(logistic, POINT, *DATA)
    assert proof == Proof("proved", 3)
    assert proof.proved
    assert str(proof) == "proved: all 3 derivatives are exact"


@pytest.mark.equation("D44")
@pytest.mark.parametrize("error", [0.5, 1e-13])
def test_a_wrong_one_is_refuted_with_coordinates_and_amounts(error):
    def wrong(theta, x, y):
        value, grad = logistic(theta, x, y)
        return value, grad + np.array([0.0, error, 0.0])

    proof = prove(wrong, POINT, *DATA, blocks={"bias": slice(1), "slope": slice(1, 3)})
    assert proof.verdict == "refuted"
    assert not proof.proved
    (one,) = proof.wrong
    assert one.name == "slope[0]"
    assert float(one.by_hand - one.right) == error
    assert str(proof).startswith("refuted: 1 of 3 derivatives is wrong\n  slope[0]: by hand ")
    assert f"too large by {error:g}" in str(proof)


def test_what_is_wrong_is_computed_when_it_is_read_of_what_the_arguments_were():
    calls, theta, x = [], np.arange(1.0, 21.0), np.arange(21.0, 41.0)

    def wrong(theta, x):
        calls.append(1)
        return (x * theta).sum(), 2 * x

    proof, again = prove(wrong, theta, x), prove(wrong, theta, x)
    assert (proof.verdict, bool(proof)) == ("refuted", False)
    assert len(calls) <= 10  # a prime, sixty digits, more twice, and floats: for each of both
    right = x.tolist()
    theta[:], x[:] = 7.0, 8.0
    assert [float(one.right) for one in proof.wrong] == right
    assert len(calls) > 20
    assert proof == again
    assert hash(proof) == hash(again)
    saved = pickle.loads(pickle.dumps(proof))
    assert (saved, saved.wrong) == (proof, proof.wrong)
    assert "they are 2 times what is right" in str(again)


def test_of_a_function_that_has_changed_since_nothing_is_said():
    factor = [3.0]
    proof = prove(lambda theta: ((theta**2).sum(), factor[0] * theta), POINT)
    factor[0] = 5.0
    assert str(proof).startswith("refuted: which derivatives are wrong was not computed before")
    assert proof.wrong == ()


def test_two_proofs_are_equal_if_they_say_the_same_however_it_was_found():
    way = {"paths": 2, "comparisons": 4, "one_way": 1, "of_values": True, "data": "for these y"}
    one, other = Proof("proved", 3), Proof("proved", 3, theta=np.zeros(3), why=lambda: [""], **way)
    assert one == other
    assert one != Proof("proved", 4)
    assert "why" not in repr(one)


def test_a_list_of_numbers_is_an_array_to_the_function():
    assert prove(lambda theta: (theta @ theta, 2 * theta), [0.3, 0.7]).proved


def test_values_that_are_the_same_by_an_identity_that_is_not_known_are_not_proved():
    proof = prove_same(
        lambda t: np.sin(t[0] + t[1]),
        lambda t: np.sin(t[0]) * np.cos(t[1]) + np.cos(t[0]) * np.sin(t[1]),
        POINT,
    )
    assert (proof.verdict, proof.coordinates) == ("not proved", 1)
    assert "an identity between exponentials" in proof.reason


KEPT = np.empty(len(POINT))
UNTRACEABLE = [  # a function in one line, what it calls there, and the advice
    (lambda t: (np.linalg.eigvalsh(np.outer(t, t)).sum(), 2 * t),
     "np.linalg.eigvalsh, np.outer ", "Write the elimination itself"),
    (lambda t: (float(t.sum()), t), "", "Keep the dtype of theta"),
    (lambda t: (float((t / 0).sum()), t), "", "Keep the dtype of theta"),
    (lambda t: (np.spacing(t).sum(), 0 * t), "np.spacing ", "Add it, with its derivative"),
    (lambda t: (math.exp(t[0]), t), "", "Use NumPy's function"),
    (lambda t: (KEPT.__setitem__(slice(None), t), t), "", "Keep the dtype of theta"),
    (lambda t: (np.multiply(t, t, out=KEPT).sum(), 2 * t), "np.multiply ", "the function makes"),
    (lambda t: (np.vectorize(sum, signature="(n)->()")(t), 2 * t), "np.vectorize ",
     "Write the loop"),
    (lambda t: (dawsn(t).sum(), 1 - 2 * t * dawsn(t)), "", "bbb_numpy.exact.function"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "calls", "advice"), UNTRACEABLE)
def test_what_cannot_be_traced_names_calls_and_line_and_what_to_write(function, calls, advice):
    proof = prove(function, POINT)
    assert proof.verdict == "not traceable"
    line = function.__code__.co_firstlineno
    assert proof.reason.startswith(f"{calls}in line {line} of {__file__}, `(lambda t: ")
    assert advice in proof.reason


def spacings(t):
    return np.spacing(t)


def test_of_a_function_in_a_function_the_inner_line_is_named():
    proof = prove(lambda t: (spacings(t).sum(), 0 * t), POINT)
    assert proof.reason.startswith(f"np.spacing in line {spacings.__code__.co_firstlineno + 1} of ")


def test_what_is_written_into_a_kept_array_is_to_be_made_inside():
    def kept(t):
        KEPT[:] = 2 * t
        return (t**2).sum(), KEPT

    assert "Write into arrays that the function makes" in prove(kept, POINT).reason


def test_an_error_of_the_users_own_is_raised_as_it_is():
    with pytest.raises(ValueError, match=r"could not be broadcast together with shapes \(2,\)"):
        prove_same(lambda x, y: (np.asarray(x, dtype=float) + y).sum(), np.dot, np.ones(2), POINT)


def test_values_that_cannot_be_traced_are_named_too():
    proof = prove_same(lambda z: np.spacing(z).sum(), lambda z: z.sum(), POINT)
    assert (proof.verdict, proof.coordinates, proof.of_values) == ("not traceable", 1, True)
    assert proof.reason.startswith("np.spacing in line ")


@pytest.mark.parametrize("seed", range(8))
def test_a_root_whose_square_matters_is_looked_for_at_several_points(seed):
    # r / u is 1 / r only where u has the root r in the field: every other u has one
    def inverse(u):
        return (1 / np.sqrt(u)).sum()

    same = prove_same(inverse, lambda u: (np.sqrt(u) / u).sum(), np.array([0.7]), seed=seed)
    assert same == Proof("proved", 1)


def test_two_forms_of_one_value_are_the_same_and_other_ones_are_not():
    def bernoulli(z):
        return (np.log1p(np.exp(z)) - z).sum()

    same = prove_same(bernoulli, lambda z: -np.log(1 / (1 + np.exp(-z))).sum(), POINT)
    assert same == Proof("proved", 1)
    other = prove_same(bernoulli, lambda z: bernoulli(z) + (z[0] * 1e-9), POINT)
    assert (other.verdict, other.coordinates) == ("refuted", 1)
    assert other.wrong[0].name == "value"


def test_other_thetas_are_of_other_signs_close_to_0_twice_as_large_and_of_about_the_same_size():
    theta = np.array([2.0, 0.0, -0.5])
    size = np.array([2.0, np.sqrt(4.25 / 3), 0.5])
    first, *others = islice(_other_thetas(theta, np.random.default_rng(0)), 4001)
    assert (first == -theta).all()
    close, twice, between, alike = (np.array(others[k::4]) for k in range(4))
    np.testing.assert_allclose(twice.std(axis=0), 2 * size, rtol=0.1)
    for there, digits in ((close, 2), (between, 1)):
        smaller = np.log10(np.abs(there / size)).mean(axis=0)
        np.testing.assert_allclose(smaller, -digits - 0.276, atol=0.1)  # log |normal|: -0.276
    np.testing.assert_allclose(np.log(alike[:, ::2] / theta[::2]).std(axis=0), 0.5, rtol=0.1)


# --- what is not a combination of parts


@pytest.mark.parametrize(("rho", "net"), [(-40.0, (2, 3, 1)), (-1.0, (1, 4, 3, 2)), (3.0, (3, 2))])
def test_the_report_on_one_screen_is_proved(rho, net):
    rng = np.random.default_rng(1)
    theta = plain.init(net, rng)
    theta[len(theta) // 2 :] = rho + rng.uniform(-0.5, 0.5, len(theta) // 2)
    eps = rng.standard_normal((4, len(theta) // 2))
    x, y = rng.standard_normal((5, net[0])), rng.standard_normal((5, net[-1]))

    def value_and_grad(theta, *arguments):
        return plain.value_and_grad(net, theta, *arguments)

    assert prove(value_and_grad, theta, eps, x, y, 0.7, 0.3, 0.25).proved


def square(theta):
    return (theta**2).sum(), 2 * theta


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: prove(5, POINT), TypeError, "value_and_grad must be a function; got 5"),
        (lambda: prove_same(5, square, 1.0), TypeError, "first must be a function; got 5"),
        (lambda: prove_same(square, 6, 1.0), TypeError, "second must be a function; got 6"),
        (lambda: prove(square, np.arange(3)), ValueError, "float64 array; got dtype int64"),
        (lambda: prove(square, {"a": POINT + 1j}), ValueError, "a must be real.*two arrays"),
        (lambda: prove(square, POINT, fixed="x"), ValueError, r"arguments \[\]; got 'x'"),
        (lambda: prove(logistic, POINT, *DATA, fixed=(2,)), ValueError, r"'x', 'y'\]; got 2"),
        (lambda: prove(square, np.array([0, np.nan])), ValueError, "nan or infinity"),
        (lambda: prove(square, np.zeros(0)), ValueError, "theta must hold at least one"),
        (lambda: prove(lambda t: t.sum(), POINT), ValueError, r"must return \(value, grad\)"),
        (lambda: prove(lambda t: (t.sum(), t[:2]), POINT), ValueError, r"of theta; got \(2,\)"),
        (lambda: prove(square, POINT, blocks={"a": slice(9)}), ValueError, "size 3; got 'a': s"),
        (lambda: prove(square, POINT, blocks={"a": 1}), ValueError, "blocks must map names to sli"),
        (lambda: prove(square, POINT, seed=1.5), TypeError, "seed must be a whole number, 0 or"),
        (lambda: prove_same(abs, abs, 0.5, seed="x"), TypeError, "seed must be a whole .* got 'x'"),
    ],
)
def test_every_argument_of_another_kind_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_constants_far_below_1_may_differ_where_the_value_is_small():
    def nothing(z):
        return (z - z).sum()

    assert prove_same(nothing, lambda z: nothing(z) + 2.0**-60, POINT).proved
    assert prove_same(nothing, lambda z: nothing(z) + 2.0**-40, POINT).verdict == "refuted"


def test_values_of_which_twenty_digits_cancel_are_the_same():
    assert prove_same(lambda z: (z + 2.0**80 - 2.0**80).sum(), lambda z: z.sum(), POINT)


def test_values_beyond_all_decimals_are_the_same_by_the_field_alone():
    huge = np.array([1e10])
    assert prove_same(lambda z: np.exp(2 * z)[0], lambda z: (np.exp(z) ** 2)[0], huge).proved


def test_blocks_may_be_given_in_any_order_and_what_is_in_none_has_a_name():
    blocks = {"b": slice(1, 3), "a": slice(3, 5)}
    found = prove(lambda theta: ((theta**2).sum(), 2 * theta + 1), np.ones(5), blocks=blocks)
    assert [one.name for one in found.wrong] == ["theta[0]", "b[0]", "b[1]", "a[0]", "a[1]"]
